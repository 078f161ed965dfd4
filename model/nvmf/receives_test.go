package nvmf_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"farflash/block"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// drawShared draws shared receives and buffers, where there can be any.
func drawShared(t *rapid.T, l *layout) {
	if l.steered == nil && l.protocol.Capsules() {
		l.cfg.Buffers = nvmf.Buffers{Count: rapid.SampledFrom([]int{0, 0, 1, 3, 40}).Draw(t, "buffers"),
			Size: rapid.SampledFrom([]units.Bytes{512, 8 * units.KiB}).Draw(t, "buffer")}
	}
	if l.protocol == nvmf.NVMeoF && l.own {
		l.cfg.Receives = nvmf.Receives{Shared: rapid.SampledFrom([]int{0, 0, 1, 2, 30}).Draw(t, "receives"),
			RNRTimer: rapid.SampledFrom([]sim.Time{10 * us, 240 * us}).Draw(t, "rnr timer")}
	}
}

// TestSharedReceive is worked out by hand: two initiators send the command of a read to a target with one receive at
// once. The second command arrives behind the first, a capsule's time on the wire later, and is refused. It leaves
// again after the NAK's way back and the timer, and then takes as long as a lone one: by then the first has its
// response, and with that its receive is posted again.
func TestSharedReceive(t *testing.T) {
	for _, timer := range []sim.Time{120 * us, 655360 * us} {
		l := defaultLayout()
		l.initiators = 2
		l.cfg.Target.Cores = 1
		l.cfg.Receives = nvmf.Receives{Shared: 1, RNRTimer: timer}
		r := newRig(t, l)
		for i := range int32(2) {
			r.ask(ask{initiator: i, req: read4k})
		}
		r.run(t)
		alone := newRig(t, l)
		alone.ask(ask{req: read4k})
		alone.run(t)
		capsule, nak := rate.TimeFor(64+l.network.Header), rate.TimeFor(l.network.Acks.Size)
		unloaded := alone.done[0].Ended
		again := 3*capsule + 2*delay + 2*nak + 2*delay + timer
		want := []sim.Time{unloaded, again + unloaded}
		for i, w := range want {
			if d := r.done[i]; d.Ended != w || int(d.Initiator) != i {
				t.Errorf("%v: read %d of initiator %d ended at %v, not at %v", timer, i, d.Initiator, d.Ended, w)
			}
		}
		if n, k := r.net.Counters.RNRs, r.sys.Counters.MostReceives; n != 1 || k != 1 || r.net.Counters.Timeouts > 0 {
			t.Errorf("%v: %d refused, at most %d receives taken, %d timeouts", timer, n, k, r.net.Counters.Timeouts)
		}
	}
}

// TestReceivesPerCore: the queue pairs of a core and network card share receives, and no others. Four initiators, whose
// queue pairs alternate between cores, keep a bounded number of a receive each.
func TestReceivesPerCore(t *testing.T) {
	for _, x := range []struct{ cores, receives, refused int }{
		{1, 4, 0}, {1, 3, 1}, {2, 2, 0}, {2, 1, 2}, {4, 1, 0}, {0, 1, 0}, {1, 1, 3 + 2 + 1},
	} {
		l := defaultLayout()
		l.initiators = 4
		l.cfg.Target.Cores = x.cores
		l.cfg.Receives = nvmf.Receives{Shared: x.receives, RNRTimer: 960 * us}
		r := newRig(t, l)
		for i := range int32(4) {
			r.ask(ask{initiator: i, req: read4k})
		}
		r.run(t)
		if got := int(r.net.Counters.RNRs); got != x.refused {
			t.Errorf("%+v: %d refused", x, got)
		}
		if err := r.sys.Idle(); err != nil {
			t.Errorf("%+v: %v", x, err)
		}
	}
	for _, paths := range []int{2, 4} { // one or two to each of the target's network cards
		l := defaultLayout()
		l.nics = 2
		l.cfg.Target.Cores, l.cfg.Multipath = 1, nvmf.Multipath{Paths: paths, Policy: nvmf.TurnPaths}
		l.cfg.Receives = nvmf.Receives{Shared: 1, RNRTimer: 960 * us}
		r := newRig(t, l)
		for range paths {
			r.ask(ask{req: read4k})
		}
		r.run(t)
		if got := r.net.Counters.RNRs; got != uint64(paths-2) {
			t.Errorf("%d paths to two network cards: %d refused", paths, got)
		}
	}
}

// TestReceivesEachMicrosecond verifies at each microsecond of a mixed load that the receives taken are those of
// commands in the target, from a capsule's arrival until its response is posted, and of capsules that have arrived in
// part.
func TestReceivesEachMicrosecond(t *testing.T) {
	for _, receives := range []int{1, 3, 7} {
		l := defaultLayout()
		l.initiators = 3
		l.cfg.Target.Cores = 1
		l.cfg.Receives = nvmf.Receives{Shared: receives, RNRTimer: 30 * us}
		r := newRig(t, l)
		for i := range 90 {
			r.ask(ask{at: sim.Time(i/3) * us, initiator: int32(i % 3), req: block.Request{Op: block.Op(i % 2),
				Offset: int64(i) << 16, Length: []int64{4096, 512, 16384}[i/2%3]}})
		}
		busy := false
		for at := sim.Time(0); r.eng.Pending() > 0; at += us {
			r.eng.Run(at)
			inside, taken := r.sys.Receiving(0)
			if taken < inside || taken > receives || taken-inside > 3 {
				t.Fatalf("%d receives, at %v: %d are taken, and %d commands are in the target", receives, at, taken, inside)
			}
			busy = busy || taken == receives
		}
		r.run(t)
		if err := r.sys.Idle(); err != nil || !busy || r.net.Counters.RNRs == 0 {
			t.Errorf("%d receives: %v; %d refused", receives, err, r.net.Counters.RNRs)
		}
	}
}

func TestReceivesConfig(t *testing.T) {
	for _, x := range []struct {
		change func(*nvmf.Receives)
		want   string
	}{
		{func(c *nvmf.Receives) { c.Shared = -1 }, "receives.shared: -1 is not possible; use 1 to 65535, or 0 for none"},
		{func(c *nvmf.Receives) { c.Shared = 65536 },
			"receives.shared: 65536 is not possible; use 1 to 65535, or 0 for none"},
		{func(c *nvmf.Receives) { c.RNRTimer = 0 },
			"receives.rnr_timer: 0s is none of InfiniBand's times, 10us to 655.36ms; use the nearest, 10us"},
		{func(c *nvmf.Receives) { c.RNRTimer = 100 * us },
			"receives.rnr_timer: 100us is none of InfiniBand's times, 10us to 655.36ms; use the nearest, 80us"},
		{func(c *nvmf.Receives) { c.RNRTimer = units.Second },
			"receives.rnr_timer: 1s is none of InfiniBand's times, 10us to 655.36ms; use the nearest, 655.36ms"},
	} {
		c := nvmf.DefaultConfig()
		x.change(&c.Receives)
		if err := c.Validate(); fmt.Sprint(err) != x.want {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

// TestSharedRefused: what a protocol does not have is not ignored.
func TestSharedRefused(t *testing.T) {
	for _, x := range []struct {
		p       nvmf.Protocol
		own     bool
		change  func(*nvmf.Config)
		refused bool
	}{
		{nvmf.NVMeoF, true, func(c *nvmf.Config) { c.Receives.Shared = 1 }, false},
		{nvmf.NVMeoF, false, func(c *nvmf.Config) { c.Receives.Shared = 1 }, true},
		{nvmf.NVMeTCP, true, func(c *nvmf.Config) { c.Receives.Shared = 1 }, true},
		{nvmf.Flows, true, func(c *nvmf.Config) { c.Receives.Shared = 1 }, true},
		{nvmf.Flows, false, func(c *nvmf.Config) { c.Buffers.Count = 1 }, true},
		{nvmf.NVMeoF, false, func(c *nvmf.Config) { c.Buffers.Count = 1 }, false},
		{nvmf.NVMeTCP, true, func(c *nvmf.Config) { c.Buffers.Count = 1 }, false},
	} {
		c := nvmf.DefaultConfig()
		x.change(&c)
		if _, err := nvmf.New(c, x.p, x.own, sim.New()); (err != nil) != x.refused {
			t.Errorf("%v, own %v: %v", x.p, x.own, err)
		}
	}
}
