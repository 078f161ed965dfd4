package objects

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// TestNeedLimits verifies the limits on a need, from both sides of each bound.
func TestNeedLimits(t *testing.T) {
	nothing := func(string) bool { return false }
	for _, c := range []struct {
		change func(*Need)
		want   string
	}{
		{func(*Need) {}, ""},
		{func(n *Need) { n.Rate = 0 }, "rate: 0 is not possible; give the rate in chunks per second, such as 50000"},
		{func(n *Need) { n.Rate = 1e9 }, ""}, {func(n *Need) { n.Rate = 1.001e9 }, "rate: 1.001e+09 is not possible"},
		{func(n *Need) { n.Chunk = 1 }, ""},
		{func(n *Need) { n.Chunk = 0 }, "chunk: 0B is not possible; use 1B to 1GiB"},
		{func(n *Need) { n.Chunk = units.GiB + 1 }, "chunk: "},
		{func(n *Need) { n.Reads, n.GetP99 = 1, units.Millisecond }, ""},
		{func(n *Need) { n.Reads, n.GetP99 = 1.01, units.Millisecond }, "reads: 101% is not possible; use 0% to 100%"},
		{func(n *Need) { n.Replicas = 0 }, "replicas: 0 are not possible; use 1 to 16"},
		{func(n *Need) { n.Replicas = 17 }, "replicas: 17 are not possible"}, {func(n *Need) { n.Replicas = 16 }, ""},
		{func(n *Need) { n.PutP99 = 0 },
			"put_p99: 0s is not possible; give the limit of the 99th percentile of puts, such as 2ms"},
		{func(n *Need) { n.Reads, n.PutP99, n.GetP99 = 1, 0, units.Millisecond }, ""},
		{func(n *Need) { n.Reads, n.GetP99 = 0.5, -1 }, "get_p99: -1ps is not possible"},
		{func(n *Need) { n.Reads = 1 },
			"get_p99: all chunks are read; give the limit of the 99th percentile of gets, such as 2ms"},
		{func(n *Need) { n.Reads = 0.5 }, ""},
		{func(n *Need) { n.GetP99 = 1 },
			"get_p99: no chunks are read; give reads, such as 50%, or leave the limit out"},
		{func(n *Need) { n.Capacity = -1 }, "capacity: -1B is not possible"},
		{func(n *Need) { n.Capacity = 1 },
			"drives[0].capacity: the cluster must store 1B, so state the capacity of slow, such as 4TB"},
		{func(n *Need) { n.Survive = -1 },
			"survive: -1 is not possible; give the number of nodes that may be down, such as 1"},
		{func(n *Need) { n.Replicas, n.Survive = 3, 2 }, ""},
		{func(n *Need) { n.Replicas, n.Survive = 3, 3 },
			"survive: with 3 nodes down, chunks kept on 3 nodes are lost; use at most 2"},
		{func(n *Need) { n.Replicas, n.Survive = 1, 1 },
			"survive: with 1 nodes down, chunks kept on 1 node are lost; use at most 0"},
		{func(n *Need) { n.Code.Data, n.Code.Parity, n.Survive = 4, 2, 2 }, ""},
		{func(n *Need) { n.Code.Data, n.Code.Parity, n.Survive = 4, 2, 3 },
			"survive: a code of 4+2 pieces survives at most 2 nodes down"},
		{func(n *Need) { n.Drives = nil }, "drives: no drives; write for example"},
		{func(n *Need) { n.NICs = nil }, "nics: no NICs; write for example"},
		{func(n *Need) { n.Drives[1].Name = "slow" }, `drives[1].name: "slow" is used twice; give each its own name`},
		{func(n *Need) { n.NICs = append(n.NICs, n.NICs[0]) }, `nics[1].name: "10G" is used twice`},
		{func(n *Need) { n.Drives[0].Rate = 0 }, "drives[0].rate: 0B/s is not possible; use a rate such as 400MiB/s"},
		{func(n *Need) { n.NICs[0].Rate = 0 }, "nics[0].rate: 0bps is not possible; use a rate such as 25Gbps"},
		{func(n *Need) { n.Drives[0].Watts = -1 }, "drives[0].watts: -1 is not possible; use watts such as 8"},
		{func(n *Need) { n.NICs[0].Watts = 1e6 }, "nics[0].watts: 1e+06 is not possible; use watts such as 15"},
		{func(n *Need) { n.Node.Watts = -1 }, "node.watts: -1 is not possible; use watts such as 120"},
		{func(n *Need) { n.Node.Watts, n.Drives[0].Watts, n.NICs[0].Watts = 0, 0, 0 }, ""},
		{func(n *Need) { n.Gateways.Count = -1 },
			"gateways.count: -1 is not possible; use 0 (as many as nodes) or more"},
		{func(n *Need) { n.Power.PUE = 1 }, ""},
		{func(n *Need) { n.Power.PUE = 0.99 }, "power.pue: 0.99 is not possible; use 1 to 10"},
		{func(n *Need) { n.Power.PUE = 10.1 }, "power.pue: 10.1 is not possible"},
		{func(n *Need) { n.Power.Years = 100 }, ""},
		{func(n *Need) { n.Power.Years = 101 }, "power.years: 101 is not possible; use 0 to 100"},
		{func(n *Need) { n.Power.Years = -1 }, "power.years: -1 is not possible"},
		{func(n *Need) { n.GroupSizes = []int{2} }, "group_sizes[0]: a group of 2 cannot keep 3 parts of a chunk"},
		{func(n *Need) { n.GroupSizes = []int{3, 6, 3} }, "group_sizes[2]: 3 is listed twice"},
		{func(n *Need) { n.Protocols = []cluster.Scheme{cluster.Chain, cluster.Chain} },
			"protocols[1]: chain is listed twice"},
		{func(n *Need) { n.Search.Chunks = 100 }, ""},
		{func(n *Need) { n.Search.Chunks = 99 },
			"search.chunks: 99 is not possible; use 100 or more, since the slowest hundredth decides"},
		{func(n *Need) { n.Search.WarmUp = 0.9 }, ""},
		{func(n *Need) { n.Search.WarmUp = 0.91 }, "search.warm_up: 91% leaves too little to measure; use at most 90%"},
		{func(n *Need) { n.Search.Most = 1 }, ""},
		{func(n *Need) { n.Search.Most = 0 }, "search.most: 0 is not possible; use 1 to 1048576 nodes"},
		{func(n *Need) { n.Search.Most = 1<<20 + 1 }, "search.most: 1048577 is not possible"},
		{func(n *Need) { n.Cluster.Repair.Streams *= 2 },
			"cluster.repair: no node is down, so nothing is rebuilt; set survive, or leave it out"},
	} {
		n := someNeed()
		c.change(n)
		err := n.Validate(nothing)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v\nnot\n%s", err, c.want)
		}
	}
	for _, key := range decidedKeys() {
		if err := someNeed().Validate(func(k string) bool { return k == key }); err == nil ||
			!strings.HasPrefix(err.Error(), key+": ") || !strings.HasSuffix(err.Error(), "; leave it out") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestDesigns compares a design's cost, its length of run and its cluster with values worked out by hand.
func TestDesigns(t *testing.T) {
	n := someNeed()
	n.Node.Watts, n.Drives[1].Watts, n.NICs[0].Watts = 100, 8, 12
	n.Node.Price, n.Gateways.Count, n.Gateways.Price = 1000, 0, 300
	n.Power.Price, n.Power.PUE, n.Power.Years = 0.1, 1.5, 2
	d := Design{Option{Drive: 1, Protocol: cluster.Chain}, 4}
	// 0.12 kW for 17,520 hours at 1.5 times and $0.1: 315.36 for each node
	if got, want := float64(n.Cost(d)), 4*(1000+500+250+315.36)+4*300; math.Abs(got-want) > 1e-6 {
		t.Errorf("it costs %v, not %v", got, want)
	}
	n.Gateways.Count = 2
	if got, want := float64(n.Cost(d)), 4*(1000+500+250+315.36)+2*300; math.Abs(got-want) > 1e-6 {
		t.Errorf("with 2 gateways it costs %v, not %v", got, want)
	}
	n.Rate, n.Search.Chunks, n.Search.WarmUp, n.PutP99, n.GetP99 = 1000, 9000, 0.1, units.Millisecond, 0
	if got := n.Until(); got != 10*units.Second {
		t.Errorf("until 9000 of 1000 a second have come behind a tenth, it lasts %v", got)
	}
	n.GetP99 = 90 * units.Millisecond
	if n.PutP99 = 180 * units.Millisecond; n.Until() != 20*units.Second {
		t.Errorf("a hundred times the longest limit it lasts %v", n.Until())
	}
	c := n.Config(d, 0)
	if c.Targets != 4 || c.Gateways != 2 || c.Protocol != cluster.Chain || c.Disk.Rate != n.Drives[1].Rate ||
		c.Link.Rate != n.NICs[0].Rate || c.Load.Rate != 1000 || c.Failures != nil || c.Replicas != n.Replicas {
		t.Errorf("%+v", c)
	}
	n.NICs[0].Rate = 25 * units.Gbps
	if c = n.Config(d, 0); c.Link.Rate != 25*units.Gbps {
		t.Errorf("links of %v", c.Link.Rate)
	}
	n.Chunk, n.Replicas, n.Reads = 7, 5, 0.25
	if c = n.Config(d, 0); c.Chunk != 7 || c.Replicas != 5 || c.Reads != 0.25 || c.Code != n.Code {
		t.Errorf("%+v", c)
	}
	n.Replicas, n.Code = 3, cluster.Code{Data: 4, Parity: 2}
	if c = n.Config(d, 0); c.Code != n.Code {
		t.Errorf("%+v", c)
	}
	n.Chunk, n.Code, n.Reads = 128*units.KiB, cluster.Code{}, 0
	if c = n.Config(d, 2); len(c.Failures) != 2 || c.Failures[1].Target != 1 || c.Repair.Detect != 0 || c.Objects == 0 {
		t.Errorf("%+v", c)
	}
	for _, c := range []struct {
		d    Design
		want string
	}{{d, "chain, 4 nodes, fast, 10G"},
		{Design{Option{Protocol: cluster.Chain, Group: 6}, 1}, "chain, 1 node, slow, 10G, groups of 6"}} {
		if got := n.Label(c.d); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
	if got := (Option{}).step()*10 + (Option{Group: 6}).step(); got != 16 {
		t.Errorf("steps of %d", got)
	}
	for _, c := range []struct {
		replicas, data, parity int
		copies                 int
		expansion              float64
	}{{3, 0, 0, 3, 3}, {3, 4, 2, 6, 1.5}, {1, 0, 2, 1, 1}} {
		n.Replicas, n.Code.Data, n.Code.Parity = c.replicas, c.data, c.parity
		if n.copies() != c.copies || n.expansion() != c.expansion {
			t.Errorf("%+v: %d copies, %v times the bytes", c, n.copies(), n.expansion())
		}
	}
	n = someNeed()
	for _, s := range cluster.SharedSchemes() {
		if want := []int{6, 9, 12}; s.Grouped() && !slices.Equal(n.groups(s), want) ||
			!s.Grouped() && !slices.Equal(n.groups(s), []int{0}) {
			t.Errorf("groups of %v: %v", s, n.groups(s))
		}
	}
	if got := fmt.Sprint(n.schemes()); got != fmt.Sprint(cluster.SharedSchemes()) {
		t.Errorf("%v", got)
	}
	if n.Protocols = []cluster.Scheme{cluster.Chain}; len(n.schemes()) != 1 {
		t.Errorf("%v", n.schemes())
	}
}

// TestJudgeWords verifies when runs show that a design does not meet the need, and the message, on both sides of each
// limit.
func TestJudgeWords(t *testing.T) {
	n := someNeed() // puts within 2 ms
	n.Reads, n.GetP99 = 0.5, units.Millisecond
	for _, c := range []struct {
		s    Sample
		runs int
		want string
	}{
		{Sample{Put: 1999, Get: 999}, 1, ""}, {Sample{Put: 6000, Get: 3000}, 3, ""},
		{Sample{Put: 6001, Get: 3000}, 3, "p99 of puts 6ms is not below 2ms"},
		{Sample{Put: 6000, Get: 3001}, 3, "p99 of gets 3ms is not below 1ms"},
		{Sample{Failed: 2}, 3, "2 chunks could not be put or got"}, {Sample{Growth: 0.02}, 3, ""},
		{Sample{Growth: 0.025}, 3, "the queue grows: 2.5 % of the arriving chunks are not completed"},
	} {
		if got := n.hopeless(c.s, c.runs); got != c.want {
			t.Errorf("%+v in %d runs: %q", c.s, c.runs, got)
		}
	}
	runs := func(list ...Sample) *Measured { return measure(0, list) }
	for _, c := range []struct {
		m    *Measured
		want string
	}{
		{runs(Sample{Put: 1999, Get: 999}), ""},
		{runs(Sample{Put: 2000, Get: 999}), "p99 of puts 2ms is not below 2ms"},
		{runs(Sample{Put: 1999, Get: 1000}), "p99 of gets 1ms is not below 1ms"},
		{runs(Sample{Put: 1900, Get: 9}, Sample{Put: 1960, Get: 9}), "p99 of puts 1.93ms +- 381us is not below 2ms"},
		{runs(Sample{Put: 1500, Get: 9}, Sample{Put: 1501, Get: 9}), ""},
		{runs(Sample{Put: 9, Get: 9}, Sample{Put: 9, Get: 9, Failed: 1}), "1 chunks could not be put or got"},
		{runs(Sample{Drift: 0.2}, Sample{Drift: 0.2001}),
			"the queue grows: chunks take 20 % longer in the second half of a run"},
		{runs(Sample{Drift: 0.1}, Sample{Drift: 0.1}), ""}, {runs(Sample{Drift: 0.9}), ""},
	} {
		if got := n.fails(c.m); got != c.want {
			t.Errorf("%+v: %q, not %q", c.m.Samples, got, c.want)
		}
	}
	n.Reads = 1
	if got := n.fails(runs(Sample{Put: 9000, Get: 999})); got != "" {
		t.Errorf("puts count although nothing is put: %s", got)
	}
	for us, want := range map[float64]string{1: "1us", 999.4: "999us", 1000: "1ms", 12345: "12.3ms", 1e6: "1s",
		2.5e6: "2.5s"} {
		if got := micros(us); got != want {
			t.Errorf("%v us is %s", us, got)
		}
	}
	// The worse of two states has the higher upper end of its percentile: of puts, or of gets if there are no puts.
	of := func(put, get float64) *Measured {
		return &Measured{Put: stats.Interval{Mean: put}, Get: stats.Interval{Mean: get},
			Samples: []Sample{{Put: put, Get: get}}}
	}
	a, b := of(5, 1), of(0, 7)
	for _, c := range []struct{ intact, down, want *Measured }{{a, nil, a}, {a, b, b}, {b, a, b}, {nil, a, a}} {
		if got := (&Point{Intact: c.intact, Down: c.down}).Worst(); got != c.want {
			t.Errorf("%+v", got)
		}
	}
	if got := (&Point{Intact: a, Down: b}).Samples(); len(got) != 2 || got[0].Get != 7 {
		t.Errorf("%+v", got)
	}
	if got := (&Point{Intact: a}).Samples(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestChoice verifies that the cheapest design is chosen, overall and per protocol, and the fastest among equally cheap
// ones; and that for each key the advice is the smallest change that would suffice.
func TestChoice(t *testing.T) {
	candidate := func(s cluster.Scheme, state State, cost units.Money, put float64) *Candidate {
		return &Candidate{Option: Option{Protocol: s}, State: state, Cost: cost,
			Point: &Point{Intact: &Measured{Put: stats.Interval{Mean: put}}}}
	}
	first, second := cluster.SharedSchemes()[0], cluster.SharedSchemes()[1]
	list := []*Candidate{candidate(first, Costlier, 1, 1), candidate(first, Meets, 9, 5),
		candidate(second, Meets, 8, 5), candidate(second, Meets, 8, 4), candidate(first, Meets, 9, 6)}
	p := Plan{Need: someNeed(), Candidates: list}
	if got := p.Cheapest(first); got != list[1] {
		t.Errorf("%+v", got)
	}
	if got := p.Cheapest(second); got != list[3] {
		t.Errorf("%+v", got)
	}
	if got := p.Cheapest(cluster.SharedSchemes()[2]); got != nil {
		t.Errorf("%+v", got)
	}
	s := search{Plan: &p}
	if s.choose(); p.Best != list[3] {
		t.Errorf("%+v", p.Best)
	}
	for i, a := range []Advice{{}, {"put_p99", 5, "five"}, {"rate", -9, "nine"}, {"put_p99", 4, "four"},
		{"put_p99", 6, "six"}} {
		list[i].Advice = a
	}
	if got := p.Advice(); !slices.Equal(got, []Advice{{"put_p99", 4, "four"}, {"rate", -9, "nine"}}) {
		t.Errorf("%+v", got)
	}
	o := Option{Protocol: first}
	p.Points = []*Point{{Design: Design{o, 9}}, {Design: Design{Option{Protocol: second}, 1}}, {Design: Design{o, 3}}}
	if got := p.Near(o); len(got) != 2 || got[0].Nodes != 3 || got[1].Nodes != 9 {
		t.Errorf("%+v", got)
	}
	n := someNeed()
	n.Reads, n.GetP99 = 0.5, units.Millisecond
	for _, c := range []struct {
		s    Sample
		want string
	}{{Sample{Put: 2000, Get: 1}, "put_p99"}, {Sample{Put: 1999, Get: 1000}, "get_p99"},
		{Sample{Put: 1999, Get: 999}, "rate"}, {Sample{Put: 9000, Failed: 1}, "rate"},
		{Sample{Put: 9000, Growth: 0.03}, "rate"}} {
		if a := n.advice(&Point{Intact: measure(0, []Sample{c.s})}); a.Key != c.want ||
			c.want == "rate" && a.Value != -n.Rate {
			t.Errorf("%+v: %+v", c.s, a)
		}
	}
}

// TestDescribedIntervals verifies that the mean of a single run has no interval, and that of several runs has one, also
// if they agree exactly.
func TestDescribedIntervals(t *testing.T) {
	if d := describeInterval(stats.Interval{Mean: 7, N: 1}); d.Mean != 7 || d.Half != nil {
		t.Errorf("one run: %+v", d)
	}
	for _, half := range []float64{0, 0.5} {
		if d := describeInterval(stats.Interval{Mean: 7, Half: half, N: 2}); d.Half == nil || *d.Half != half {
			t.Errorf("two runs: %+v", d)
		}
	}
	if d := describeInterval(stats.Interval{}); d.Half != nil {
		t.Errorf("no run: %+v", d)
	}
}
