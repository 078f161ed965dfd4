package fabric

import (
	"fmt"
	"math"
	"testing"

	"farflash/model/fabric/spread"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/sim"
)

// spraying returns a configuration that spreads packets over several paths.
func spraying(choice spread.Choice) Config {
	c := plain()
	c.LoadBalancing.Choice = choice
	c.Recovery.Kind, c.Recovery.Reordering = SelectiveRepeat, 256
	c.Recovery.Timeout = Timeout{Time: 10 * units.Millisecond}
	return c
}

// crossed returns a leaf-spine network whose first n hosts each send to one below the other leaf, rotated by shift.
func crossed(t *testing.T, c Config, n, shift int, size units.Bytes) *rig {
	t.Helper()
	g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: n, HostsPerLeaf: n}}, 100*units.Gbps,
		100*units.Gbps, units.Microsecond)
	r := newRig(t, c, g, 1)
	for i := range n {
		r.mustSend(t, int32(i), int32(n+(i+shift)%n), 1, size)
	}
	return r
}

// goodput returns the payload that has arrived by a time, as a share of the capacity of n links of 100 Gbit/s from when
// the first packet can arrive.
func goodput(r *rig, n int, until sim.Time) float64 {
	const first = 4*units.Microsecond + 500*units.Nanosecond
	r.eng.Run(first)
	was := r.net.Counters.Received
	r.eng.Run(until)
	return float64(r.net.Counters.Received-was) * 8 / ((until - first).Seconds() * 100e9 * float64(n))
}

// TestSprayingFillsAllWays verifies that a permutation across two leaves, with one flow a host and as many spines as
// hosts a leaf, reaches the line rate less headers with each way of spreading packets. With a hash of queue pairs it
// reaches the capacity of the spines that the hash selects: n balls in n bins leave a share (1 - 1/n)^n of them empty.
func TestSprayingFillsAllWays(t *testing.T) {
	const n, size = 8, 8 * units.MB
	line := 1024.0 / (1024 + 82)
	for _, choice := range []spread.Choice{spread.RoundRobin, spread.Random, spread.LeastQueue} {
		r := crossed(t, spraying(choice), n, 0, size)
		share := goodput(r, n, 400*units.Microsecond)
		if want := line; share < 0.98*want || share > want*1.001 {
			t.Errorf("%v: %.4f of the links, want %.4f", choice, share, want)
		}
		r.run(t, 1e7)
		r.drained(t)
		x := &r.net.Counters
		if x.Retransmits > 0 || x.Timeouts > 0 || x.Duplicates > 0 {
			t.Errorf("%v: %d packets sent again, %d timeouts, %d duplicates with nothing lost", choice, x.Retransmits,
				x.Timeouts, x.Duplicates)
		}
		if choice == spread.Random && x.Overtaken == 0 {
			t.Error("nothing came out of order")
		}
	}
	var sum, squares float64
	const shifts = n
	for shift := range shifts {
		c := plain()
		r := crossed(t, c, n, shift, size)
		met := map[int32]bool{}
		for q := range n {
			met[r.net.paths[2*q*r.net.hopLimit]&stepPort] = true
		}
		share := goodput(r, n, 400*units.Microsecond)
		if want := line * float64(len(met)) / n; math.Abs(share/want-1) > 0.01 {
			t.Errorf("hash, shift %d: %.4f of the links, want %.4f of %d spines", shift, share, want, len(met))
		}
		sum += share / line
		squares += share / line * share / line
	}
	mean := sum / shifts
	deviation := math.Sqrt((squares/shifts - mean*mean) / (shifts - 1))
	if want := 1 - math.Pow(1-1.0/n, n); math.Abs(mean-want) > 4*deviation {
		t.Errorf("hash: %.4f of the line rate, n balls in n bins %.4f, standard error %.4f", mean, want, deviation)
	}
}

// TestReorderingIsBoundedByQueues verifies that a packet overtakes at most as many packets as its queue pair sends
// while another waits in the longest queues of a path.
func TestReorderingIsBoundedByQueues(t *testing.T) {
	for _, choice := range []spread.Choice{spread.RoundRobin, spread.Random, spread.LeastQueue} {
		c := spraying(choice)
		g := build(t, topo.Config{FatTree: &topo.FatTree{K: 4}}, 100*units.Gbps, 100*units.Gbps, units.Microsecond)
		r := newRig(t, c, g, 1)
		for i := range int32(16) {
			r.mustSend(t, i, (i+5)%16, 1, units.MB)
		}
		r.run(t, 1e7)
		r.drained(t)
		most := map[uint8]units.Bytes{} // by tier and direction; a path has one of each
		for pi := range int32(r.net.Ports()) {
			p := r.net.Port(pi)
			if from := g.Nodes[p.Node]; from.Kind == topo.Switch {
				k := from.Tier<<4 | g.Nodes[p.Peer].Tier
				most[k] = max(most[k], p.MaxQueue)
			}
		}
		bound := 0.0
		for _, b := range most {
			bound += float64(b+1106) / 1106
		}
		if x := &r.net.Counters; float64(x.Reordered) > bound {
			t.Errorf("%v: a packet came %d too early; the queues of a way are %.0f packets long at most", choice,
				x.Reordered, bound)
		} else if choice == spread.Random && x.Reordered < 2 {
			t.Errorf("%v: a packet came %d too early at most", choice, x.Reordered)
		}
	}
}

// TestFlowletsKeepTheirWay verifies that without gaps a queue pair keeps to one path, so that all packets arrive in
// order, with or without go-back-N; and that a message after a gap may take another.
func TestFlowletsKeepTheirWay(t *testing.T) {
	for _, choice := range []spread.Choice{spread.Random, spread.LeastQueue, spread.RoundRobin} {
		c := plain()
		c.LoadBalancing.Choice, c.LoadBalancing.Per, c.LoadBalancing.Gap = choice, spread.Flowlet, 20*units.Microsecond
		r := crossed(t, c, 8, 0, 64*units.KB)
		for k := range 8 {
			r.send(post{at: sim.Time(k+1) * 200 * units.Microsecond, src: 0, dst: 8, class: 1, size: 64 * units.KB})
		}
		r.run(t, 1e7)
		r.drained(t)
		if x := &r.net.Counters; x.Overtaken > 0 || x.Retransmits > 0 {
			t.Errorf("%v: %d packets overtook others, %d were sent again", choice, x.Overtaken, x.Retransmits)
		}
		used := 0
		leaf := r.net.Node(r.net.ports[r.net.nodes[0].first].peer)
		for pi := range int32(r.net.Ports()) {
			if p := r.net.Port(pi); p.Node == leaf && r.graph.Nodes[p.Peer].Kind == topo.Switch && p.Packets > 60 {
				used++
			}
		}
		if choice == spread.LeastQueue && used != 8 {
			t.Errorf("least-queue: %d of 8 spines are used by 8 flows that begin at once", used)
		}
	}
}

// TestOvertakenWithLoss verifies that with packets on several paths the lost ones are retransmitted and few others, and
// that the window of packet numbers is respected.
func TestOvertakenWithLoss(t *testing.T) {
	for _, window := range []int{0, 64, 1024} {
		c := spraying(spread.Random)
		c.PFC.Enabled, c.Recovery.Reordering, c.Recovery.Window = false, 64, window
		c.Recovery.Timeout = Timeout{Time: 200 * units.Microsecond}
		g := build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 4, HostsPerLeaf: 4}}, 100*units.Gbps,
			100*units.Gbps, units.Microsecond)
		for i := range g.Links {
			g.Links[i].Loss = 0.001
		}
		r := newRig(t, c, g, 1)
		for i := range int32(4) {
			r.mustSend(t, i, 4+i, 1, 2*units.MB)
		}
		for at := sim.Time(0); r.eng.Pending() > 0 && at < units.Second; at += units.Microsecond {
			r.eng.Run(at)
			for q := range r.net.senders {
				if s := &r.net.senders[q]; window > 0 && s.top-s.una > uint32(window) {
					t.Fatalf("window %d: %d packets are under way", window, s.top-s.una)
				}
			}
		}
		r.drained(t)
		x := &r.net.Counters
		lost := x.Drops[DropCorrupted]
		if lost == 0 || x.Retransmits < lost/2 || x.Retransmits > 4*lost+200 {
			t.Errorf("window %d: %d packets lost, %d sent again", window, lost, x.Retransmits)
		}
	}
}

// TestIdealOfManyWays verifies that a lone message whose packets are spread over several paths takes its ideal time, up
// to a packet or two on the slow links. With a hash it uses one path.
func TestIdealOfManyWays(t *testing.T) {
	const up = 10 * units.Gbps
	packet := sim.Time(1024+82) * 8 * 100 * units.Picosecond // on an uplink
	graphs := map[string]*topo.Graph{
		"leaf-spine": build(t, topo.Config{LeafSpine: &topo.LeafSpine{Leaves: 2, Spines: 4, HostsPerLeaf: 2}},
			100*units.Gbps, up, units.Microsecond),
		"fat-tree": build(t, topo.Config{FatTree: &topo.FatTree{K: 4}}, 100*units.Gbps, up, units.Microsecond),
	}
	for name, g := range graphs {
		dst := int32(0)
		for i := range g.Nodes {
			if g.Nodes[i].Kind == topo.Host {
				dst = int32(i) // the last one
			}
		}
		for _, choice := range []spread.Choice{spread.RoundRobin, spread.LeastQueue, spread.Random, spread.Hash} {
			for _, size := range []units.Bytes{1, 1024, 5000, 100 * units.KB, units.MB} {
				c := spraying(choice)
				c.Recovery.Reordering = 4096
				r := newRig(t, c, g, 1)
				m := r.mustSend(t, 0, dst, 1, size)
				ideal := r.net.Ideal(m)
				r.run(t, 1e7)
				r.drained(t)
				x := r.net.Messages()[m]
				over := x.Acked - x.Posted - ideal
				if over < 0 || choice == spread.Hash && over > 0 ||
					(choice == spread.RoundRobin || choice == spread.LeastQueue) && over > 2*packet {
					t.Errorf("%s, %v, %v: took %v, ideally %v", name, choice, size, x.Acked-x.Posted, ideal)
				}
			}
		}
	}
}

// TestSpreadRefusals verifies which settings do not go with packets on several paths.
func TestSpreadRefusals(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"load_balancing.choice": func(c *Config) { c.Recovery.Kind, c.Recovery.Reordering = GoBackN, 0 },
		"recovery.reordering":   func(c *Config) { c.Recovery.Reordering = 0 },
		"load_balancing.gap":    func(c *Config) { c.LoadBalancing.Gap = 0 },
		"load_balancing.table":  func(c *Config) { c.LoadBalancing.Table = 0 },
		"load_balancing.per": func(c *Config) {
			c.LoadBalancing.Choice, c.LoadBalancing.Per = spread.Hash,
				spread.Flowlet
		},
		"recovery.window": func(c *Config) { c.Recovery.Window = -1 },
	} {
		c := spraying(spread.RoundRobin)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		found := false
		for _, f := range units.FieldErrors(c.Validate()) {
			found = found || f.Path == want
		}
		if !found {
			t.Errorf("%s is not refused: %v", want, c.Validate())
		}
	}
}

// TestSpreadAllocatesNothing verifies that choosing a packet's path allocates no memory once the tables exist.
func TestSpreadAllocatesNothing(t *testing.T) {
	for _, choice := range []spread.Choice{spread.RoundRobin, spread.Random, spread.LeastQueue} {
		for _, per := range []spread.Unit{spread.Packet, spread.Flowlet} {
			c := spraying(choice)
			c.LoadBalancing.Per = per
			r := crossed(t, c, 8, 0, 100*units.MB)
			at := 200 * units.Microsecond
			r.eng.Run(at)
			if got := testing.AllocsPerRun(20, func() { at += 20 * units.Microsecond; r.eng.Run(at) }); got > 0 {
				t.Errorf("%v per %v: %v allocations", choice, per, got)
			}
		}
	}
}

func ExampleConfig_loadBalancing() {
	c := DefaultConfig()
	c.LoadBalancing.Choice = spread.Random
	fmt.Println(c.Validate() != nil)
	c.Recovery.Kind, c.Recovery.Reordering = SelectiveRepeat, 256
	fmt.Println(c.Validate())
	// Output:
	// true
	// <nil>
}

// TestWaitAt verifies the order in which ports are preferred: an idle one with an empty queue, one that is sending,
// then by queue length, of which one byte outweighs being busy; a paused port comes last, and only for the paused
// class.
func TestWaitAt(t *testing.T) {
	r := crossed(t, spraying(spread.LeastQueue), 2, 0, units.KB)
	n := r.net
	pi := n.nodes[len(n.nodes)-1].first
	p := &n.ports[pi]
	l := n.lane(pi, 1)
	for _, c := range []struct {
		queued int64
		sends  bool
		paused uint8
		want   int64
	}{
		{0, false, 0, 0}, {0, true, 0, 1}, {1, false, 0, 2}, {1, true, 0, 3}, {1000, false, 0, 2000},
		{0, false, 1 << 1, 1 << 56}, {1000, true, 1 << 1, 1<<56 + 2001}, {0, false, 1<<2 | 1<<0, 0},
	} {
		l.out, p.free = c.queued, n.eng.Now()
		if c.sends {
			p.free++
		}
		p.paused = c.paused
		if got := n.waitAt(pi, 1); got != c.want {
			t.Errorf("%d bytes queued, sending %v, paused %b: %d, want %d", c.queued, c.sends, c.paused, got, c.want)
		}
	}
}

// TestRoundTripByHand: two hosts at one switch, 8 Gbit/s and 1 us a link, packets of 1000 B with 82 B of headers, ACKs
// of 66 B. The two links each way take 4 us of delay and, twice, (1082 + 66) ns on the wire. Without headers and the
// ACKs' time they take 4 us and 2 us. The other figure is the payload of the link in that time.
func TestRoundTripByHand(t *testing.T) {
	const us, ns = units.Microsecond, units.Nanosecond
	for _, c := range []struct {
		only  bool
		trip  sim.Time
		bytes units.Bytes
	}{{false, 4*us + 2*(1082+66)*ns, 6296}, {true, 4*us + 2*us, 6000}} {
		cfg := plain()
		cfg.Payload, cfg.Header, cfg.Acks.Size = 1000, 82, 66
		cfg.RoundTrip.PayloadOnly = c.only
		r := newRig(t, cfg, star(t, 2, 8*units.Gbps, us), 1)
		if trip, bytes := r.net.roundTrip(r.net.routes, 0, 1); trip != c.trip || bytes != c.bytes {
			t.Errorf("payload only %v: %v and %v, want %v and %v", c.only, trip, bytes, c.trip, c.bytes)
		}
	}
}

// TestMostPackets verifies that a queue pair numbers its packets modulo 2^32, and accepts at most half of that at once.
func TestMostPackets(t *testing.T) {
	cfg := plain()
	cfg.Payload = 1
	for _, c := range []struct {
		size units.Bytes
		ok   bool
	}{{1<<31 - 1, true}, {1 << 31, false}} {
		r := newRig(t, cfg, star(t, 2, units.Gbps, units.Microsecond), 1)
		q, err := r.net.Open(0, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.net.Post(q, c.size); (err == nil) != c.ok {
			t.Errorf("%d packets: %v", c.size, err)
		}
	}
}
