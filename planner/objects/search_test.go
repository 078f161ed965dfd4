package objects

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// table is an evaluator with a fixed sufficient number of nodes for each option.
type table struct {
	need  *Need
	from  map[Option]int // 0: never
	odd   map[Design]bool
	asked map[string]int
}

func (x *table) enough(d Design) bool {
	if x.odd[d] {
		return false
	}
	return x.from[d.Option] > 0 && d.Nodes >= x.from[d.Option]
}

func (x *table) Evaluate(_ context.Context, d Design, down int, seeds []uint64) ([]Sample, error) {
	var out []Sample
	for _, seed := range seeds {
		x.asked[fmt.Sprint(d, down, seed)]++
		limit := x.need.PutP99.Microseconds()
		s := Sample{Seed: seed, Put: limit / 2, Rate: x.need.Rate}
		if !x.enough(d) {
			s.Put = limit * 1.01
		}
		out = append(out, s)
	}
	return out, nil
}

// exhaustive is the cost of the cheapest sufficient design among the options that f selects.
func (x *table) exhaustive(p *Plan, f func(Option) bool) units.Money {
	best := units.Money(math.Inf(1))
	for _, c := range p.Candidates {
		if !f(c.Option) {
			continue
		}
		for nodes := c.step(); nodes <= x.need.Search.Most; nodes += c.step() {
			d := c.with(nodes)
			if c.Least > 0 && nodes >= c.Least && x.enough(d) && x.need.Cost(d) < best {
				best = x.need.Cost(d)
			}
		}
	}
	return best
}

func someNeed() *Need {
	n := DefaultNeed()
	n.Rate, n.PutP99 = 5000, 2*units.Millisecond
	n.Drives = []Drive{{Name: "slow", Rate: 400 * units.ByteRate(units.MiB), Price: 200},
		{Name: "fast", Rate: 1200 * units.ByteRate(units.MiB), Price: 500}}
	n.NICs = []NIC{{Name: "10G", Rate: 10 * units.Gbps, Price: 250}}
	n.Node.Price, n.Gateways.Count = 1500, 16
	n.Search.Most = 120
	return &n
}

// TestExhaustive verifies that the result meets the need, and that no cheaper design does.
func TestExhaustive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := someNeed()
		n.Rate = float64(rapid.IntRange(500, 12_000).Draw(t, "rate"))
		n.Survive = rapid.IntRange(0, 2).Draw(t, "survive")
		for i := range n.Drives {
			n.Drives[i].Price = units.Money(rapid.IntRange(0, 2000).Draw(t, "price"))
		}
		n.Node.Price = units.Money(rapid.IntRange(1, 2000).Draw(t, "node"))
		n.Protocols = rapid.SliceOfNDistinct(rapid.SampledFrom(cluster.SharedSchemes()), 1, 3,
			rapid.ID[cluster.Scheme]).Draw(t, "protocols")
		n.GroupSizes = rapid.SliceOfNDistinct(rapid.IntRange(3, 8), 1, 2, rapid.ID[int]).Draw(t, "groups")
		n.Search.Others = rapid.Bool().Draw(t, "others")
		x := &table{need: n, from: map[Option]int{}, asked: map[string]int{}}
		for drive := range n.Drives {
			for _, scheme := range n.Protocols {
				for _, group := range n.groups(scheme) {
					o := Option{Drive: drive, Protocol: scheme, Group: group}
					if l := n.least(o); l.nodes > 0 && rapid.IntRange(0, 4).Draw(t, "ever") > 0 {
						x.from[o] = l.nodes + o.step()*rapid.IntRange(0, 7).Draw(t, "more")
					}
				}
			}
		}
		best := math.Inf(1)
		p, err := Search(t.Context(), n, x, []uint64{1, 2, 3}, func(at Step) {
			switch {
			case at.Best == nil && !math.IsInf(best, 1):
				t.Errorf("a design for %v was found, and is lost again", best)
			case at.Best != nil && (at.Best.State != Meets || float64(at.Best.Cost) > best):
				t.Errorf("the best design so far is %+v, after one for %v", at.Best, best)
			case at.Best != nil:
				best = float64(at.Best.Cost)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for key, k := range x.asked {
			if k > 1 {
				t.Errorf("%s was simulated %d times", key, k)
			}
		}
		want := x.exhaustive(p, func(Option) bool { return true })
		switch {
		case p.Best == nil && !math.IsInf(float64(want), 1):
			t.Fatalf("nothing was found, and a design of %v is enough", want)
		case p.Best == nil:
			return
		case !x.enough(p.Best.Point.Design) || !p.Best.Point.Meets || p.Best.Nodes > n.Search.Most:
			t.Fatalf("%s does not meet the need", n.Label(p.Best.Point.Design))
		case p.Best.Cost != want || p.Best.Cost != n.Cost(p.Best.Point.Design):
			t.Fatalf("%s costs %v; a design of %v is enough", n.Label(p.Best.Point.Design), p.Best.Cost, want)
		}
		for _, c := range p.Candidates {
			if c.State == Open {
				t.Errorf("%+v was not decided", c.Option)
			}
		}
		if !n.Search.Others {
			return
		}
		for _, s := range n.Protocols {
			want := x.exhaustive(p, func(o Option) bool { return o.Protocol == s })
			if c := p.Cheapest(s); c == nil && !math.IsInf(float64(want), 1) || c != nil && c.Cost != want {
				t.Errorf("%v: %+v, and a design of %v is enough", s, c, want)
			}
		}
	})
}

// TestRaised verifies that if more nodes are insufficient though fewer suffice, the number is raised until the next one
// suffices as well.
func TestRaised(t *testing.T) {
	n := someNeed()
	n.Drives, n.Protocols = n.Drives[:1], []cluster.Scheme{cluster.Chain}
	o := Option{Protocol: cluster.Chain}
	from := n.least(o).nodes + 3
	x := &table{need: n, from: map[Option]int{o: from}, odd: map[Design]bool{{o, from + 1}: true},
		asked: map[string]int{}}
	p, err := Search(t.Context(), n, x, []uint64{1, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Best == nil || p.Best.Nodes != from+2 || len(p.Best.Remarks) != 1 && len(p.Best.Remarks) != 2 ||
		!strings.Contains(strings.Join(p.Best.Remarks, " "), fmt.Sprintf("%d nodes are enough", from)) {
		t.Errorf("%+v", p.Best)
	}
}

// TestUnmet verifies the reported obstacle and the advice.
func TestUnmet(t *testing.T) {
	n := someNeed()
	n.Protocols = []cluster.Scheme{cluster.Chain}
	x := &table{need: n, from: map[Option]int{}, asked: map[string]int{}}
	p, err := Search(t.Context(), n, x, []uint64{1, 2}, nil)
	if err != nil || p.Best != nil || p.Candidates[0].State != Short ||
		!strings.Contains(p.Candidates[0].Why, "p99 of puts 2.02ms is not below 2ms") {
		t.Errorf("%v %+v", err, p.Candidates[0])
	}
	if a := p.Advice(); len(a) != 1 || a[0].Text != "a put_p99 above 2.02ms" {
		t.Errorf("%+v", a)
	}
	for _, c := range []struct {
		name, why, advice string
		change            func(*Need)
	}{
		{"floor", "a single chunk takes", "a put_p99 above", func(n *Need) { n.PutP99 = 100 * units.Microsecond }},
		{"gateways", "the gateways' links allow", "gateways.count: 2, or faster NICs",
			func(n *Need) { n.Gateways.Count, n.Rate = 1, 15_000 }},
		{"most at the first possible", "the disks allow", "search.most above 3", func(n *Need) { n.Search.Most = 3 }},
		{"most below it", "not possible: replicas: 3 replicas need as many targets", "",
			func(n *Need) { n.Search.Most = 2 }},
		{"most", "the disks allow", "search.most above 4", func(n *Need) { n.Search.Most = 4 }},
		{"group", "group: 4 with 2 down cannot keep 3 parts", "", func(n *Need) {
			n.Protocols, n.GroupSizes, n.Survive = []cluster.Scheme{cluster.ReplicastH}, []int{4}, 2
		}},
		{"capacity", "the drives' capacities allow", "search.most above 120", func(n *Need) {
			n.Capacity = 1000 * units.TB
			n.Drives[0].Capacity = 4 * units.TB
		}},
	} {
		n := someNeed()
		n.Drives, n.Protocols = n.Drives[:1], []cluster.Scheme{cluster.Chain}
		c.change(n)
		p, err := Search(t.Context(), n, x, []uint64{1, 2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		k := p.Candidates[0]
		if k.State != Impossible || !strings.Contains(k.Why, c.why) || !strings.Contains(k.Advice.Text, c.advice) ||
			len(p.Points) > 0 {
			t.Errorf("%s: %+v", c.name, k)
		}
	}
}

// TestRoom verifies that a placement with several candidates has space for them also with nodes down.
func TestRoom(t *testing.T) {
	n := someNeed()
	n.Rate, n.Survive, n.Cluster.Placement, n.Cluster.Choices = 100, 1, cluster.PlaceHRW, 2
	if x := n.least(Option{Protocol: cluster.Chain}); x.nodes != 7 || !strings.Contains(x.fewer, "with 5 nodes left") {
		t.Errorf("%+v", x)
	}
}

type broken struct{ after int }

func (x *broken) Evaluate(_ context.Context, _ Design, _ int, seeds []uint64) ([]Sample, error) {
	if x.after--; x.after < 0 {
		return nil, errors.New("stopped")
	}
	return make([]Sample, len(seeds)), nil
}

// TestInterrupted verifies that results before an error are returned with it.
func TestInterrupted(t *testing.T) {
	n := someNeed()
	n.Protocols = []cluster.Scheme{cluster.Chain}
	p, err := Search(t.Context(), n, &broken{after: 20}, []uint64{1, 2}, nil)
	if err == nil {
		p, err = Search(t.Context(), n, &broken{after: 3}, []uint64{1, 2}, nil)
	}
	if err == nil || len(p.Points) == 0 || p.Candidates[len(p.Candidates)-1].State != Open {
		t.Errorf("%v %+v", err, p)
	}
}

// TestJudge compares runs with a need.
func TestJudge(t *testing.T) {
	n := someNeed()
	n.Reads, n.GetP99 = 0.5, units.Millisecond
	good := Sample{Put: 1000, Get: 500, Rate: 5000}
	for _, c := range []struct {
		want   string
		change func(*Sample)
	}{
		{"", func(*Sample) {}},
		{"p99 of puts 2.1ms +- 248us is not below 2ms", func(s *Sample) { s.Put = 1900 + 100*float64(s.Seed) }},
		{"p99 of puts 1.77ms +- 759us is not below 2ms",
			func(s *Sample) { s.Put = 1500 + 200*float64(s.Seed)*float64(s.Seed-1)/2 }},
		{"p99 of gets 1ms is not below 1ms", func(s *Sample) { s.Get = 1000 }},
		{"the queue grows: 3.0 %", func(s *Sample) { s.Growth = 0.03 }},
		{"the queue grows: chunks take 20 % longer", func(s *Sample) { s.Drift = 0.19 + 0.005*float64(s.Seed) }},
		{"", func(s *Sample) { s.Drift = 0.4 * float64(s.Seed-2) }},
		{"2 chunks could not be put or got", func(s *Sample) { s.Failed = 2 }},
	} {
		var list []Sample
		for seed := range uint64(3) {
			s := good
			s.Seed = seed + 1
			c.change(&s)
			list = append(list, s)
		}
		if got := n.fails(measure(0, list)); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

// TestCost adds up nodes, gateways and electricity.
func TestCost(t *testing.T) {
	n := someNeed()
	n.Gateways = Gateways{Count: 10, Price: 100}
	n.Node.Watts, n.Drives[0].Watts, n.NICs[0].Watts = 100, 10, 15
	n.Power = Power{Price: 0.2, PUE: 1.5, Years: 2}
	// 125 W for two years at 1.5 are 3285 kWh.
	if got, want := n.Cost(Design{Nodes: 3}),
		units.Money(3*(1500+200+250+657)+1000); math.Abs(float64(got-want)) > 1e-6 {
		t.Errorf("%v, not %v", got, want)
	}
	n.Gateways.Count = 0
	if got, want := n.Cost(Design{Nodes: 3}),
		units.Money(3*(1500+200+250+657)+300); math.Abs(float64(got-want)) > 1e-6 {
		t.Errorf("%v, not %v", got, want)
	}
}
