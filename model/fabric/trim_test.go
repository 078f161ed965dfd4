package fabric

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// trimming returns a configuration with queues of a number of packets and no lossless class.
func trimming(queue int) Config {
	c := plain()
	c.PFC.Enabled = false
	c.Recovery.Kind = SelectiveRepeat
	c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: 5 * units.Millisecond}, 5*units.Millisecond
	c.Recovery.Retries = 0
	c.Trimming.Enabled, c.Trimming.Queue = true, units.Bytes(queue)*(c.Payload+c.Header)
	return c
}

// TestTrimmedIncast verifies that an incast into a queue of eight packets loses no header, waits for no timer and
// retransmits each trimmed packet once, and that the receiver's link stays busy with full packets and trimmed headers.
func TestTrimmedIncast(t *testing.T) {
	for _, scheme := range []cc.Scheme{cc.SchemeNSCC, cc.SchemeDCTCP, cc.SchemeDCQCN, cc.SchemeSwift} {
		const senders, size = 16, 200 * units.KB
		c := trimming(8)
		c.CongestionControl.Algorithm = scheme
		c.ECN.Enabled, c.ECN.Kmin, c.ECN.Kmax, c.ECN.Rate = true, 2*units.KB, 6*units.KB, 100*units.Gbps
		r := newRig(t, c, star(t, senders+1, 100*units.Gbps, units.Microsecond), 1)
		for i := range int32(senders) {
			r.mustSend(t, i+1, 0, 1, size)
		}
		r.run(t, 1e7)
		r.drained(t)
		x := &r.net.Counters
		if x.Trimmed == 0 || x.Retransmits != x.Trimmed || x.Timeouts > 0 || x.DropCount() > 0 || x.Duplicates > 0 {
			t.Errorf("%v: %d trimmed, %d sent again, %d timeouts, %d drops, %d duplicates", scheme, x.Trimmed,
				x.Retransmits, x.Timeouts, x.DropCount(), x.Duplicates)
		}
		if x.Lost+x.Received != x.Sent || x.Wasted > 0 {
			t.Errorf("%v: %d lost and %d received of %d", scheme, x.Lost, x.Received, x.Sent)
		}
		p := r.net.Port(r.net.PortOf(0, false))
		if p.MaxQueue > c.Trimming.Queue {
			t.Errorf("%v: a queue of %v, %v at most", scheme, p.MaxQueue, c.Trimming.Queue)
		}
		data := (x.Received + 1023) / 1024
		if want := x.Received + data*uint64(c.Header) + x.Trimmed*64; p.Bytes < want ||
			p.Bytes > want+senders*uint64(c.Header) {
			t.Errorf("%v: %d bytes on the last link, want %d", scheme, p.Bytes, want)
		}
		if busy := r.net.Busy(r.net.PortOf(0, false), r.eng.Now()).Seconds() /
			r.eng.Now().Seconds(); scheme == cc.SchemeNSCC && busy < 0.9 {
			t.Errorf("%v: the last link is busy %.3f of the time", scheme, busy)
		}
	}
}

// TestTrimmedInParts verifies that a trimmed and sprayed network behaves in parts as in one piece.
func TestTrimmedInParts(t *testing.T) {
	c := trimming(16)
	c.CongestionControl.Algorithm = cc.SchemeNSCC
	c.ECN.Enabled, c.ECN.Kmin, c.ECN.Kmax, c.ECN.Rate = true, 4*units.KB, 12*units.KB, 100*units.Gbps
	c.LoadBalancing.Choice, c.Recovery.Reordering = spread.Random, 0
	sameInParts(t, c)
}

// sameInParts verifies that a fat tree with trimming and spraying yields the same figures in one piece, in parts one
// after another (below 0), and in concurrent parts.
func sameInParts(t *testing.T, c Config) {
	t.Helper()
	g := build(t, topo.Config{FatTree: &topo.FatTree{K: 4}}, 100*units.Gbps, 100*units.Gbps, units.Microsecond)
	var flows []Flow
	for i := range int32(24) {
		flows = append(flows,
			Flow{Src: i % 16, Dst: (i%4*5 + 7 + i/4) % 16, Class: 1, Size: 300 * units.KB,
				Start: sim.Time(i/8) * 10 * units.Microsecond})
		if f := &flows[i]; f.Src == f.Dst {
			f.Dst = (f.Dst + 1) % 16
		}
	}
	want := ""
	for _, parts := range []int{1, -2, 2, -4, 4} {
		n := newRig(t, c, g, 3).net
		runParts(t, n, g.Partition(max(parts, -parts)), parts < 0, flows)
		if err := n.Check(); err != nil {
			t.Fatal(err)
		}
		got := figures(n)
		if want == "" {
			want = got
			if n.Counters.Trimmed == 0 || n.Counters.Overtaken == 0 || int(n.Counters.Completed) != len(flows) {
				t.Fatalf("%d trimmed, %d overtaken, %d completed", n.Counters.Trimmed, n.Counters.Overtaken,
					n.Counters.Completed)
			}
		}
		if got != want {
			t.Errorf("in %d parts\n%s\nin one\n%s", parts, got, want)
		}
	}
}

// trimmedAnswers compares trimmed and sprayed packets on a fat tree of 16 hosts with the results of another simulator
// in a file. A row has the load, the number of senders (incast) or the distance (permutation), the arrival of the last
// message, the mean of all, and the number of trimmed packets. Times may differ by the share within, trimmed packets by
// 15 % and a few, on the mean of four seeds, as there. A message has the given number of packets.
func trimmedAnswers(t *testing.T, file string, within, few float64, packets units.Bytes, config func() Config) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.HasPrefix(s.Text(), "#") {
			continue
		}
		rows++
		var what string
		var n int32
		var last, mean, cuts float64
		if _, err := fmt.Sscan(s.Text(), &what, &n, &last, &mean, &cuts); err != nil {
			t.Fatalf("%s: %v", s.Text(), err)
		}
		var gotLast, gotMean, gotCuts float64
		const seeds = 4
		for seed := range uint64(seeds) {
			c := config()
			size := packets * c.Payload
			g := build(t, topo.Config{FatTree: &topo.FatTree{K: 4}}, 100*units.Gbps, 100*units.Gbps, units.Microsecond)
			r := newRig(t, c, g, seed)
			if what == "incast" {
				for i := range n {
					r.mustSend(t, i+1, 0, 1, size)
				}
			} else {
				for i := range int32(16) {
					r.mustSend(t, i, (i+n)%16, 1, size)
				}
			}
			r.run(t, 1e7)
			r.drained(t)
			latest := 0.0
			for _, m := range r.net.Messages() {
				latest = max(latest, m.Acked.Microseconds())
				gotMean += m.Acked.Microseconds() / float64(len(r.net.Messages())*seeds)
			}
			gotLast += latest / seeds
			gotCuts += float64(r.net.Counters.Trimmed) / seeds
			if r.net.Counters.Timeouts > 0 {
				t.Errorf("%s: %d timeouts", s.Text(), r.net.Counters.Timeouts)
			}
		}
		t.Logf("%s: %.1f us (%+.1f %%), mean %.1f (%+.1f %%), %.0f trimmed", s.Text(), gotLast, 100*(gotLast/last-1),
			gotMean, 100*(gotMean/mean-1), gotCuts)
		if math.Abs(gotLast/last-1) > within || math.Abs(gotMean/mean-1) > within ||
			math.Abs(gotCuts-cuts) > 0.15*cuts+few {
			t.Errorf("%s: ours %.1f us, mean %.1f us, %.1f trimmed", s.Text(), gotLast, gotMean, gotCuts)
		}
	}
	if rows == 0 {
		t.Errorf("%s has no answers", file)
	}
}

func TestTrimmingRefusals(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"trimming.enabled":  func(c *Config) { c.PFC.Enabled = true },
		"trimming.enabled ": func(c *Config) { c.Recovery.Kind = GoBackN },
		// would trim each packet for ever
		"trimming.queue": func(c *Config) { c.Trimming.Queue = c.Payload + c.Header - 1 },
		"trimming.size":  func(c *Config) { c.Trimming.Size = 0 },
	} {
		c := trimming(1)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if f := units.FieldErrors(c.Validate()); len(f) != 1 || f[0].Path != want[:len(f[0].Path)] {
			t.Errorf("%s: %v", want, c.Validate())
		}
	}
}
