package objects

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/model/cluster"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
)

// TestOrder compares the designs that a search simulates, in order, with sequences worked out by hand: the largest
// number of nodes first (8 times the least, or the most that costs less than the best so far), then steps that double,
// bisection, the next number above, and two steps below.
func TestOrder(t *testing.T) {
	chain, pull := Option{Protocol: cluster.Chain}, Option{Protocol: cluster.Pull, Group: 4}
	fast := func(o Option) Option { o.Drive = 1; return o }
	for _, c := range []struct {
		name  string
		from  map[Option]int
		odd   []Design
		with  func(*Need)
		want  string
		found string
	}{
		// Of the fast drive 3 nodes are the least, of the slow one 5; the fast drive's are cheaper, so they come first.
		{"both", map[Option]int{chain: 6, fast(chain): 7}, nil, nil,
			"fast: 24+ 3- 4- 6- 10+ 8+ 7+ 5- slow: 8+ 6+ 5- 7+", "6 slow"},
		{"least", map[Option]int{chain: 5, fast(chain): 3}, nil, nil, "fast: 24+ 3+ 4+", "3 fast"},
		{"too dear", map[Option]int{chain: 9, fast(chain): 7}, nil, nil,
			"fast: 24+ 3- 4- 6- 10+ 8+ 7+ 5- slow: 8-", "7 fast"},
		{"never", map[Option]int{}, nil, nil, "fast: 24- slow: 40-", ""},
		{"only the slow", map[Option]int{chain: 12}, nil, nil,
			"fast: 24- slow: 40+ 5- 6- 8- 12+ 10- 11- 13+", "12 slow"},
		{"most", map[Option]int{fast(chain): 7}, nil, func(n *Need) { n.Search.Most = 7 },
			"fast: 7+ 3- 4- 6- 5- slow: 7-", "7 fast"},
		{"raised", map[Option]int{chain: 5}, []Design{{chain, 6}}, func(n *Need) { n.Drives = n.Drives[:1] },
			"slow: 40+ 5+ 6- 7+ 8+", "7 slow"},
		{"noise", map[Option]int{chain: 5}, []Design{{chain, 6}, {chain, 7}, {chain, 8}},
			func(n *Need) { n.Drives = n.Drives[:1] }, "slow: 40+ 5+ 6- 7- 8- 10+ 9+", "9 slow"},
		{"groups", map[Option]int{pull: 12}, nil,
			func(n *Need) { n.Drives, n.Protocols = n.Drives[:1], []cluster.Scheme{cluster.Pull} },
			"slow: 64+ 8- 12+ 16+", "12 slow"},
	} {
		n := someNeed()
		n.Protocols, n.GroupSizes = []cluster.Scheme{cluster.Chain}, []int{4}
		if c.with != nil {
			c.with(n)
		}
		x := &table{need: n, from: c.from, odd: map[Design]bool{}, asked: map[string]int{}}
		for _, d := range c.odd {
			x.odd[d] = true
		}
		steps := 0
		p, err := Search(t.Context(), n, x, []uint64{1, 2}, func(at Step) {
			decided := 0
			if len(n.Drives) == 2 && at.Design.Drive == 0 {
				decided = 1 // the fast drive is first
			}
			if steps++; at.Of != len(n.Drives) || at.Down != 0 || at.Decided != decided {
				t.Errorf("%s: %+v", c.name, at)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if steps != len(p.Points) {
			t.Errorf("%s: %d steps reported, %d designs simulated", c.name, steps, len(p.Points))
		}
		var got []string
		drive := -1
		for _, q := range p.Points {
			if q.Drive != drive {
				drive = q.Drive
				got = append(got, n.Drives[drive].Name+":")
			}
			got = append(got, fmt.Sprintf("%d%c", q.Nodes, map[bool]rune{true: '+', false: '-'}[q.Meets]))
		}
		found := ""
		if p.Best != nil {
			found = fmt.Sprintf("%d %s", p.Best.Nodes, n.Drives[p.Best.Drive].Name)
		}
		if text := strings.Join(got, " "); text != c.want || found != c.found {
			t.Errorf("%s: %s, best %s\nnot  %s, best %s", c.name, text, found, c.want, c.found)
		}
	}
}

// TestWords compares what a search says of options that it rules out, or of limits within the noise.
func TestWords(t *testing.T) {
	n := someNeed()
	n.Protocols = []cluster.Scheme{cluster.Chain}
	slow, fast := Option{Protocol: cluster.Chain}, Option{Protocol: cluster.Chain, Drive: 1}
	search := func(from map[Option]int, odd ...Design) *Plan {
		t.Helper()
		x := &table{need: n, from: from, odd: map[Design]bool{}, asked: map[string]int{}}
		for _, d := range odd {
			x.odd[d] = true
		}
		p, err := Search(t.Context(), n, x, []uint64{1, 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := search(map[Option]int{slow: 9, fast: 7})
	if c := p.Candidates[0]; c.State != Costlier ||
		c.Why != "8 nodes, the most for less than $15750: p99 of puts 2.02ms is not below 2ms" {
		t.Errorf("%+v", c)
	}
	p = search(map[Option]int{slow: 9, fast: 3})
	if c := p.Candidates[0]; c.State != Costlier || c.Why != "needs at least 5 nodes, for $9750" {
		t.Errorf("%+v", c)
	}
	// 10 nodes of the fast drive are enough, and so are 8, but not 9.
	p = search(map[Option]int{fast: 8}, Design{fast, 9})
	if c := p.Candidates[1]; c.Nodes != 10 || len(c.Remarks) != 2 ||
		!strings.HasPrefix(c.Remarks[0], "8 nodes are enough, but 9 are not (p99 of puts") ||
		!strings.HasPrefix(c.Remarks[1], "8 nodes are enough in these runs, but 9 are not") {
		t.Errorf("%+v", c)
	}
}

// TestBound compares the bottleneck of a design with the need's capacity, with the nodes that may be down absent.
func TestBound(t *testing.T) {
	n := someNeed()
	n.Capacity, n.Drives[0].Capacity = 8*units.TB, 4*units.TB
	d := Design{Option{Protocol: cluster.Chain}, 5}
	// 5 drives of 4 TB hold 6.67 TB of three copies, for 8 TB at 5,000 chunks/s.
	if b, err := n.bound(d); err != nil || b.Resource != "capacity" || math.Abs(b.Chunks-5000*20/24.) > 1e-9 {
		t.Errorf("%+v %v", b, err)
	}
	n.Survive = 1
	if b, err := n.bound(d); err != nil || b.Resource != "capacity" || math.Abs(b.Chunks-5000*16/24.) > 1e-9 {
		t.Errorf("with a node down: %+v %v", b, err)
	}
	n.Capacity = 5 * units.TB
	if b, err := n.bound(d); err != nil || b.Resource == "capacity" {
		t.Errorf("%+v %v", b, err)
	}
	if got := n.least(d.Option); got.nodes < 6 {
		t.Errorf("%+v", got)
	}
}

// TestRebuilt compares the number of chunks that are stored for a rebuild with one worked out by hand.
func TestRebuilt(t *testing.T) {
	n := someNeed()
	n.Rate, n.Search.Chunks, n.Search.WarmUp = 1000, 800, 0.2 // a run of 1 s
	c := n.Config(Design{Option{Protocol: cluster.Chain}, 11}, 0)
	c.Disk.Rate, c.Repair.Disk, c.Repair.Streams = units.ByteRate(64*units.MiB), 0.5, 0.25
	// 10 disks rebuild for a second with a quarter of 64 MiB/s, half of it for reading: 80 MiB, 640 pieces of 128 KiB.
	// A node holds 3 of 11 copies.
	if got, want := n.rebuilt(&c, 1), 640*11/3; got != want {
		t.Errorf("%d chunks, not %d", got, want)
	}
	if got, want := n.rebuilt(&c, 2), 576*11/6; got != want {
		t.Errorf("with two down %d chunks, not %d", got, want)
	}
	n.Code.Data, n.Code.Parity = 2, 2 // pieces of half the size, four a chunk
	if got, want := n.rebuilt(&c, 1), 1280*11/4; got != want {
		t.Errorf("with a code %d chunks, not %d", got, want)
	}
}

// TestSample verifies which metrics of a result become a sample, and that during a rebuild the times within it count.
func TestSample(t *testing.T) {
	r := result.New(trial.Vocabulary(), "d", 7, "test")
	for name, v := range map[string]float64{"cluster.put.latency.p99": 10, "cluster.get.latency.p99": 20,
		"cluster.put.iops": 3, "cluster.get.iops": 4, "cluster.backlog.growth": 0.5, "cluster.drift": 0.25,
		"cluster.failed": 1, "cluster.get.unavailable": 2, "cluster.put.rebuild.count": 999,
		"cluster.put.rebuild.p99": 50, "cluster.get.rebuild.count": 1000, "cluster.get.rebuild.p99": 60} {
		r.Set(name, v)
	}
	want := Sample{Seed: 7, Digest: "d", Put: 10, Get: 60, Rate: 7, Growth: 0.5, Drift: 0.25, Failed: 3}
	if got := sample(r); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
	r.Set("cluster.put.rebuild.count", 1000)
	r.Set("cluster.get.rebuild.p99", 19)
	want.Put, want.Get = 50, 20
	if got := sample(r); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

// TestScenarioOfDesign verifies the name and the length of a design's scenario.
func TestScenarioOfDesign(t *testing.T) {
	n := someNeed()
	d := Design{Option{Protocol: cluster.Chain}, 6}
	s, err := scenarioFor(n, d, 0)
	if err != nil || s.Name != "chain, 6 nodes, slow, 10G" || s.ObjectCluster.Targets != 6 {
		t.Errorf("%+v %v", s, err)
	}
	if s, err = scenarioFor(n, d, 2); err != nil || s.Name != "chain, 6 nodes, slow, 10G, 2 down" ||
		len(s.ObjectCluster.Failures) != 2 {
		t.Errorf("%+v %v", s, err)
	}
}

// TestFloor verifies that a limit as short as a single chunk takes is ruled out, and one that is longer by a tenth of a
// microsecond is not.
func TestFloor(t *testing.T) {
	n := someNeed()
	o := Option{Protocol: cluster.Chain}
	c, err := n.look(Design{o, n.least(o).nodes})
	if err != nil {
		t.Fatal(err)
	}
	n.PutP99 = c.Floor()
	if x := n.least(o); x.nodes != 0 || !strings.HasPrefix(x.why, "a single chunk takes ") || x.advice.Key != "put_p99" {
		t.Errorf("%+v", x)
	}
	n.PutP99 += units.Microsecond / 10
	if x := n.least(o); x.nodes == 0 {
		t.Errorf("%+v", x)
	}
	n.Reads, n.PutP99 = 1, 0
	if x := n.least(o); x.nodes == 0 {
		t.Errorf("puts limit a need without puts: %+v", x)
	}
}

// TestDescribed verifies that a plan's document has its best candidate, and the advice only if there is none.
func TestDescribed(t *testing.T) {
	n := someNeed()
	n.Drives, n.Protocols = n.Drives[:1], []cluster.Scheme{cluster.Chain}
	for from, want := range map[int]int{6: 6, 0: 0} {
		x := &table{need: n, from: map[Option]int{{Protocol: cluster.Chain}: from}, asked: map[string]int{}}
		p, err := Search(t.Context(), n, x, []uint64{1, 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		d := Describe(p, &File{Need: n}, true, func(string, uint64) string { return "run" })
		if (d.Best != nil) != (want > 0) ||
			d.Best != nil && d.Best.Nodes != want || (len(d.Advice) > 0) != (want == 0) ||
			len(d.Candidates) != 1 || len(d.Points) != len(p.Points) || d.Points[0].Intact.Runs[0].Run != "run" {
			t.Errorf("enough from %d nodes on: %+v", from, d)
		}
	}
}

// TestInvalidDesign verifies that the error of a design that no cluster can have names it.
func TestInvalidDesign(t *testing.T) {
	if _, err := scenarioFor(someNeed(), Design{Option{Protocol: cluster.Chain}, 1}, 0); err == nil ||
		!strings.HasPrefix(err.Error(), "chain, 1 node, slow, 10G: ") {
		t.Errorf("%v", err)
	}
}

// TestReplicatesOfMeasured verifies that each interval is made of its own figure.
func TestReplicatesOfMeasured(t *testing.T) {
	m := measure(2, []Sample{{Put: 1, Get: 10, Rate: 100}, {Put: 3, Get: 30, Rate: 300}})
	if m.Down != 2 || m.Put.Mean != 2 || m.Get.Mean != 20 || m.Rate.Mean != 200 || m.Put.N != 2 || m.Put.Half == 0 {
		t.Errorf("%+v", m)
	}
	if m = measure(0, []Sample{{Put: 1, Get: 10, Rate: 100}}); m.Put != (stats.Interval{Mean: 1, Level: 0.95}) {
		t.Errorf("%+v", m.Put)
	}
}
