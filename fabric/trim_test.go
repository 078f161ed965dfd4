package fabric

import (
	"testing"

	"farflash/fabric/cc"
	"farflash/fabric/spread"
	"farflash/fabric/topo"
	"farflash/sim"
	"farflash/units"
)

// trimming is a configuration with queues of so many packets and nothing lossless.
func trimming(queue int) Config {
	c := plain()
	c.PFC.Enabled = false
	c.Recovery.Kind = SelectiveRepeat
	c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: 5 * units.Millisecond}, 5*units.Millisecond
	c.Trimming.Enabled, c.Trimming.Queue = true, units.Bytes(queue)*(c.Payload+c.Header)
	return c
}

// TestTrimmedIncast holds that an incast into a queue of eight packets loses no header, waits for no timer and repeats each trimmed packet once, and keeps the receiver's link busy but for what headers take: what
// comes on it is payload with headers, and trimmed headers.
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
			t.Errorf("%v: %d trimmed, %d sent again, %d timeouts, %d drops, %d duplicates", scheme, x.Trimmed, x.Retransmits, x.Timeouts, x.DropCount(), x.Duplicates)
		}
		if x.Lost+x.Received != x.Sent || x.Wasted > 0 {
			t.Errorf("%v: %d lost and %d received of %d", scheme, x.Lost, x.Received, x.Sent)
		}
		p := r.net.Port(r.net.PortOf(0, false))
		if p.MaxQueue > c.Trimming.Queue {
			t.Errorf("%v: a queue of %v, %v at most", scheme, p.MaxQueue, c.Trimming.Queue)
		}
		data := (x.Received + 1023) / 1024
		if want := x.Received + data*uint64(c.Header) + x.Trimmed*64; p.Bytes < want || p.Bytes > want+senders*uint64(c.Header) {
			t.Errorf("%v: %d bytes on the last link, want %d", scheme, p.Bytes, want)
		}
		if busy := r.net.Busy(r.net.PortOf(0, false), r.eng.Now()).Seconds() / r.eng.Now().Seconds(); scheme == cc.SchemeNSCC && busy < 0.9 {
			t.Errorf("%v: the last link is busy %.3f of the time", scheme, busy)
		}
	}
}

// TestTrimmedInParts: a trimmed and sprayed network does in parts what it does in one piece.
func TestTrimmedInParts(t *testing.T) {
	g := build(t, topo.Config{FatTree: &topo.FatTree{K: 4}}, 100*units.Gbps, 100*units.Gbps, units.Microsecond)
	var flows []Flow
	for i := range int32(24) {
		flows = append(flows, Flow{Src: i % 16, Dst: (i%4*5 + 7 + i/4) % 16, Class: 1, Size: 300 * units.KB, Start: sim.Time(i/8) * 10 * units.Microsecond})
		if f := &flows[i]; f.Src == f.Dst {
			f.Dst = (f.Dst + 1) % 16
		}
	}
	c := trimming(16)
	c.CongestionControl.Algorithm = cc.SchemeNSCC
	c.ECN.Enabled, c.ECN.Kmin, c.ECN.Kmax, c.ECN.Rate = true, 4*units.KB, 12*units.KB, 100*units.Gbps
	c.LoadBalancing.Choice, c.Recovery.Reordering = spread.Random, 0
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
				t.Fatalf("%d trimmed, %d overtaken, %d completed", n.Counters.Trimmed, n.Counters.Overtaken, n.Counters.Completed)
			}
		}
		if got != want {
			t.Errorf("in %d parts\n%s\nin one\n%s", parts, got, want)
		}
	}
}

func TestTrimmingRefusals(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"trimming.enabled":  func(c *Config) { c.PFC.Enabled = true },
		"trimming.enabled ": func(c *Config) { c.Recovery.Kind = GoBackN },
		"trimming.queue":    func(c *Config) { c.Trimming.Queue = 0 },
		"trimming.size":     func(c *Config) { c.Trimming.Size = 0 },
	} {
		c := trimming(8)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if f := units.FieldErrors(c.Validate()); len(f) != 1 || f[0].Path != want[:len(f[0].Path)] {
			t.Errorf("%s: %v", want, c.Validate())
		}
	}
}
