package nvmf_test

import (
	"fmt"
	"math"
	"testing"

	"farflash/block"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// heldFor returns how long a lone read holds its buffers, from its capsule's arrival until its response is
// acknowledged, and when in that time its data and response have arrived; no software takes time.
func heldFor(l *layout, length units.Bytes) (hold, ended sim.Time) {
	at := l.device.Latency[block.Read] + hops(l.network, delay, length, response)[1]
	return at + 2*rate.TimeFor(l.network.Acks.Size) + 2*delay, at
}

// TestOneBuffer: with a single buffer reads follow each other, each from the last one's response's acknowledgement on,
// to the picosecond. With a transmit queue of one answer instead, their time in the drive overlaps.
func TestOneBuffer(t *testing.T) {
	l := defaultLayout()
	free(&l.cfg)
	l.cfg.Buffers = nvmf.Buffers{Count: 1, Size: 8 * units.KiB}
	r := newRig(t, l)
	const count = 9
	for range count {
		r.ask(ask{req: read4k})
	}
	r.run(t)
	hold, ended := heldFor(&l, 4096)
	first := hops(l.network, delay, 64)[0]
	for i, d := range r.done {
		begun := first + sim.Time(i)*hold
		if d.DriveIn != begun || d.Ended != begun+ended {
			t.Errorf("read %d is in the drive from %v on and ends at %v; not %v, %v", i, d.DriveIn, d.Ended, begun,
				begun+ended)
		}
	}
	if k := &r.sys.Counters; k.HeldForBuffers != count-1 || k.MostBuffers != 8*units.KiB {
		t.Errorf("%d waited, at most %v in use", k.HeldForBuffers, k.MostBuffers)
	}
	if err := r.sys.Idle(); err != nil {
		t.Error(err)
	}
	l.cfg.Buffers.Count, l.cfg.TXQ = 0, 4096+response
	r = newRig(t, l)
	for range count {
		r.ask(ask{req: read4k})
	}
	r.run(t)
	drive := l.device.Latency[block.Read]
	if last := r.done[count-1].Ended; last > first+drive+count*(hold-drive) {
		t.Errorf("with a transmit queue of one answer the last read ends at %v", last)
	}
}

// TestBuffersLittle verifies Little's law: of 64 reads outstanding as many are served as there are buffers, each for
// the time that it holds its own, unless the drive's queue or the queue pair allows fewer.
func TestBuffersLittle(t *testing.T) {
	for _, x := range []struct {
		protocol      nvmf.Protocol
		buffers       int
		size          units.Bytes
		length        units.Bytes
		driveDepth    int
		atOnce        int // reads with buffers
		boundByBuffer bool
	}{
		{nvmf.NVMeoF, 2, 4 * units.KiB, 4 * units.KiB, 1024, 2, true},
		{nvmf.NVMeoF, 8, 8 * units.KiB, 4 * units.KiB, 1024, 8, true},
		{nvmf.NVMeoF, 8, 4 * units.KiB, 16 * units.KiB, 1024, 2, true},
		{nvmf.NVMeoF, 9, 8 * units.KiB, 12 * units.KiB, 1024, 4, true},
		{nvmf.NVMeoF, 1, 4 * units.KiB, 12 * units.KiB, 1024, 1, true}, // larger than all: alone
		{nvmf.NVMeoF, 16, 4 * units.KiB, 4 * units.KiB, 4, 4, false},   // the drive's depth
		{nvmf.NVMeoF, 512, 4 * units.KiB, 4 * units.KiB, 1024, 64, false},
		{nvmf.NVMeTCP, 4, 128 * units.KiB, 4 * units.KiB, 1024, 4, true},
	} {
		l := defaultLayout()
		free(&l.cfg)
		l.protocol = x.protocol
		if x.protocol == nvmf.NVMeTCP {
			l.network, l.lossy = fabric.TCP(l.network), true
		}
		l.cfg.Buffers = nvmf.Buffers{Count: x.buffers, Size: x.size}
		l.cfg.DriveDepth = x.driveDepth
		r := newRig(t, l)
		req := block.Request{Op: block.Read, Length: int64(x.length)}
		const count = 2000
		left := count - 64
		r.onEnded = func(*nvmf.Done) {
			if left--; left >= 0 {
				r.sys.Submit(0, 0, req)
			}
		}
		for range 64 {
			r.sys.Submit(0, 0, req)
		}
		r.eng.Run(sim.Forever)
		if err := r.sys.Check(); err != nil || len(r.done) != count {
			t.Fatalf("%+v: %d ended; %v", x, len(r.done), err)
		}
		first, last := r.done[count/4], r.done[count*3/4]
		got := float64(count/2) / (last.Ended - first.Ended).Seconds()
		hold := 0.0
		for _, d := range r.done[count/4 : count*3/4] {
			hold += (d.Ended - d.DriveIn).Seconds() / (count / 2)
		}
		if x.boundByBuffer { // the acknowledgement's way back
			hold += (2*rate.TimeFor(l.network.Acks.Size) + 2*delay).Seconds()
		}
		want := float64(x.atOnce) / hold
		if x.driveDepth == 4 { // whose places are for the drive's time
			want = 4 / l.device.Latency[block.Read].Seconds()
		}
		if x.atOnce == 64 {
			want = 64 / ((last.Ended - last.Submitted).Seconds())
		}
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("%+v: %.0f reads a second, want %.0f", x, got, want)
		}
		if held := r.sys.Counters.HeldForBuffers > 0; held != (x.boundByBuffer || x.driveDepth == 4) {
			t.Errorf("%+v: %d waited", x, r.sys.Counters.HeldForBuffers)
		}
	}
}

// TestBuffersInOrder: reads and fetched writes wait for buffers in one order, in which a large write holds up small
// reads, and writes in their capsules do not wait.
func TestBuffersInOrder(t *testing.T) {
	l := defaultLayout()
	l.cfg.Target.Cores = 1
	l.cfg.Buffers = nvmf.Buffers{Count: 4, Size: 4 * units.KiB}
	r := newRig(t, l)
	for i, q := range []block.Request{
		{Op: block.Read, Length: 12288}, {Op: block.Write, Length: 8192}, {Op: block.Read, Length: 4096},
		{Op: block.Read, Length: 4096}, {Op: block.Write, Length: 4096},
	} {
		r.ask(ask{at: sim.Time(i), req: q})
	}
	r.run(t)
	in := make([]sim.Time, 5)
	for _, d := range r.done {
		in[d.Tag] = d.DriveIn
	}
	// The write waits for the first read's buffers, and the reads for the write's place in the order, although there is
	// a buffer for one of them. Then there are buffers for all three; the write's data has yet to come.
	if !(in[4] < in[2] && in[0] < in[4] && in[2] < in[1] && in[2] == in[3]) {
		t.Errorf("in the drive at %v", in)
	}
	if k := &r.sys.Counters; k.MostBuffers != 16*units.KiB || k.HeldForBuffers != 1 {
		t.Errorf("at most %v, %d waited for buffers", k.MostBuffers, k.HeldForBuffers)
	}
}

func TestBuffersConfig(t *testing.T) {
	for _, x := range []struct {
		b    nvmf.Buffers
		want string
	}{
		{nvmf.Buffers{Count: -1, Size: 512},
			"buffers.count: -1 is not possible; use 1 to 16777216, or 0 for write_buffers alone"},
		{nvmf.Buffers{Count: 1<<24 + 1, Size: 512},
			"buffers.count: 16777217 is not possible; use 1 to 16777216, or 0 for write_buffers alone"},
		{nvmf.Buffers{Size: 511}, "buffers.size: 511B is not possible; use 512B to 1GiB"},
		{nvmf.Buffers{Size: units.GiB + 1}, "buffers.size: 1.073741825GB is not possible; use 512B to 1GiB"},
		{nvmf.Buffers{Count: 1 << 24, Size: units.GiB}, "<nil>"},
	} {
		c := nvmf.DefaultConfig()
		c.Buffers = x.b
		if err := c.Validate(); fmt.Sprint(err) != x.want {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}
