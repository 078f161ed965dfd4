package nvmf_test

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"farflash/block"
	"farflash/internal/golden"
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
)

var update = flag.Bool("update", false, "write the tables of docs/validation/nvmeof.md")

const page = "../../docs/validation/nvmeof.md"

// incast has two targets answer one initiator's reads of 44 KB and serve another's writes of 23 KB, the sizes of SRC's
// first experiment (section IV-D), and returns how many of each complete in ten milliseconds.
func incast(t *testing.T, reads int, change func(*nvmf.Config)) (k nvmf.Counters, done [2]int) {
	t.Helper()
	l := defaultLayout()
	l.initiators, l.targets = 2, 2
	change(&l.cfg)
	r := newRig(t, l)
	for target := range int32(2) {
		for range reads {
			r.ask(ask{initiator: 0, drive: target, req: block.Request{Op: block.Read, Length: 44_000 / 512 * 512}})
		}
		for range 8 {
			r.ask(ask{initiator: 1, drive: target, req: block.Request{Op: block.Write, Length: 23_000 / 512 * 512}})
		}
	}
	r.onEnded = func(d *nvmf.Done) {
		r.done = r.done[:0]
		done[d.Op]++
		r.sys.Submit(d.Initiator, d.Drive, block.Request{Op: d.Op, Length: d.Length})
	}
	r.eng.Run(10 * units.Millisecond)
	if err := errors.Join(r.sys.Err(), r.sys.Check(), r.net.Check()); err != nil {
		t.Fatal(err)
	}
	return r.sys.Counters, done
}

// TestTXQHoldsWrites reproduces SRC's mechanism (section II). When two targets' reads meet at one initiator, congestion
// control backs them up in the targets' transmit queues. While these have space, another initiator's writes are
// unaffected. Once they are full, "the entries in CQ are sequentially transferred into TXQ", so that a write's
// completion waits behind reads that find no space, and the write throughput collapses although network and drives
// could sustain it. A transmit queue large enough for all data prevents the collapse.
func TestTXQHoldsWrites(t *testing.T) {
	none, alone := incast(t, 0, func(*nvmf.Config) {})
	_, wide := incast(t, 100, func(*nvmf.Config) {})
	held, narrow := incast(t, 100, func(c *nvmf.Config) { c.TXQ = 512 * units.KiB })
	t.Logf("writes %d alone, %d beside reads, %d with full transmit queues; reads %d, %d", alone[1], wide[1],
		narrow[1], wide[0], narrow[0])
	if none.HeldAtTXQ > 0 || held.HeldAtTXQ == 0 {
		t.Errorf("%d and %d answers waited for room", none.HeldAtTXQ, held.HeldAtTXQ)
	}
	if float64(wide[1]) < 0.9*float64(alone[1]) {
		t.Errorf("%d writes beside reads with room for all, %d alone", wide[1], alone[1])
	}
	if float64(narrow[1]) > 0.5*float64(wide[1]) {
		t.Errorf("%d writes with full transmit queues, %d with room: SRC's collapse is missing", narrow[1], wide[1])
	}
	if float64(narrow[0]) < 0.9*float64(wide[0]) {
		t.Errorf("%d reads with full transmit queues, %d with room: the line is the bound of both", narrow[0], wide[0])
	}
	lines := golden.Head("transmit queue", ">writes without reads",
		">writes beside 100 reads outstanding at each target", ">reads")
	lines = append(lines,
		golden.Row(nvmf.DefaultConfig().TXQ.String(), fmt.Sprint(alone[1]), fmt.Sprint(wide[1]), fmt.Sprint(wide[0])),
		golden.Row("512KiB", "", fmt.Sprint(narrow[1]), fmt.Sprint(narrow[0])))
	golden.Table(t, page, "nvmeof-congested", "no random numbers", lines, *update)
}

// TestBesideWrites measures reads alongside large writes of the same initiator. On RDMA their capsules wait for a
// packet; on TCP for all earlier data in the connection.
func TestBesideWrites(t *testing.T) {
	const span = 20 * units.Millisecond
	lines := golden.Head("", "", ">nvmeof", ">nvme-tcp")
	for _, c := range []struct {
		name             string
		size             int64
		readers, writers int
		// TCP's reads take at least slower times as long, and have at most this share of RDMA's throughput
		slower, throughput float64
	}{{"4 KiB reads at depth 1, 128 KiB writes at depth 32", 4096, 1, 32, 4, 0.25},
		{"16 KiB reads at depth 64, 128 KiB writes at depth 256", 16384, 64, 256, 4, 0.25}} {
		var mean, reads, writes [2]float64
		for i, protocol := range []nvmf.Protocol{nvmf.NVMeoF, nvmf.NVMeTCP} {
			l := defaultLayout()
			l.protocol, l.cfg.QueueDepth = protocol, 512
			if protocol == nvmf.NVMeTCP {
				l.network = fabric.TCP(fabric.DefaultConfig())
			}
			r := newRig(t, l)
			for n := range c.readers + c.writers {
				q := block.Request{Op: block.Write, Length: 128 << 10}
				if n < c.readers {
					q = block.Request{Op: block.Read, Length: c.size}
				}
				r.ask(ask{req: q})
			}
			count := 0.0
			r.onEnded = func(d *nvmf.Done) {
				r.done = r.done[:0]
				if d.Op == block.Read {
					count++
					mean[i] += (d.Ended - d.Submitted).Seconds()
					reads[i] += float64(d.Length)
				} else {
					writes[i] += float64(d.Length)
				}
				r.sys.Submit(0, 0, block.Request{Op: d.Op, Length: d.Length})
			}
			r.eng.Run(span)
			if err := errors.Join(r.sys.Err(), r.sys.Check(), r.net.Check()); err != nil {
				t.Fatal(err)
			}
			mean[i] *= 1e6 / count
			reads[i] /= span.Seconds() * 1e9
			writes[i] /= span.Seconds() * 1e9
		}
		if mean[1] < c.slower*mean[0] || reads[1] > c.throughput*reads[0] {
			t.Errorf("%s: reads take %.1f us on RDMA and %.1f on TCP, and move %.3f and %.3f GB/s", c.name, mean[0],
				mean[1], reads[0], reads[1])
		}
		cells := func(format string, x [2]float64) []string {
			return []string{fmt.Sprintf(format, x[0]), fmt.Sprintf(format, x[1])}
		}
		lines = append(lines, golden.Row(append([]string{c.name, "a read"}, cells("%.1f us", mean)...)...),
			golden.Row(append([]string{"", "reads"}, cells("%.3f GB/s", reads)...)...),
			golden.Row(append([]string{"", "writes"}, cells("%.3f GB/s", writes)...)...))
	}
	golden.Table(t, page, "nvmeof-beside", "no random numbers", lines, *update)
}
