package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"farflash/internal/term"
	"farflash/model/cluster"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/planner/objects"
	"farflash/report/chart"
)

// measuredOf returns hand-written measurements of a design over a number of runs: percentiles and their half widths in
// us, and chunks per second.
func measuredOf(down, runs int, put, putHalf, get, getHalf, rate, rateHalf float64) *objects.Measured {
	m := &objects.Measured{Down: down}
	for i := range runs {
		m.Samples = append(m.Samples, objects.Sample{Seed: uint64(3 + i), Digest: fmt.Sprintf("run%.0f", put+get)})
	}
	of := func(mean, half float64) stats.Interval {
		if runs < 2 {
			return stats.Interval{Mean: mean, Level: 0.95}
		}
		return stats.Interval{Mean: mean, Half: half, N: runs, Level: 0.95}
	}
	m.Put, m.Get, m.Rate = of(put, putHalf), of(get, getHalf), of(rate, rateHalf)
	return m
}

// sizedNeed returns a need that sets everything the text can mention.
func sizedNeed() *objects.Need {
	n := objects.DefaultNeed()
	n.Name, n.Rate, n.Reads, n.PutP99, n.GetP99, n.Capacity, n.Survive = "store <1>", 30_000, 0.3,
		2*units.Millisecond, 3*units.Millisecond, 500_000_000_000_000, 1
	n.Drives = []objects.Drive{{Name: "sata", Price: 220}, {Name: "nvme", Price: 480}}
	n.NICs = []objects.NIC{{Name: "10G", Price: 250}, {Name: "25G", Price: 550}}
	n.Node.Price, n.Gateways.Count = 1500, 16
	n.Protocols = []cluster.Scheme{cluster.Pull, cluster.Chain, cluster.ReplicastH}
	return &n
}

// sized returns a possible result of a search, written by hand with all figures different, so that a swapped figure is
// noticed.
func sized() *objects.Plan {
	p := &objects.Plan{Need: sizedNeed(), Seeds: []uint64{3, 4, 5}}
	point := func(o objects.Option, nodes int, why string, intact, down *objects.Measured) *objects.Point {
		x := &objects.Point{Design: objects.Design{Option: o, Nodes: nodes}, Meets: why == "", Why: why,
			Intact: intact, Down: down, Bound: objects.Bound{Resource: "disks", Chunks: 1000 * float64(nodes+20)}}
		p.Points = append(p.Points, x)
		return x
	}
	meets := func(o objects.Option, nodes int, cost units.Money, x *objects.Point) *objects.Candidate {
		return &objects.Candidate{Option: o, State: objects.Meets, Least: 9, From: 17_000, Nodes: nodes, Cost: cost,
			Point: x, Fewer: "the bound"}
	}
	pull, large := objects.Option{Drive: 1, Protocol: cluster.Pull}, objects.Option{NIC: 1, Protocol: cluster.Pull}
	chain, grouped := objects.Option{Drive: 1, NIC: 1, Protocol: cluster.Chain},
		objects.Option{Protocol: cluster.ReplicastH, Group: 6}
	point(pull, 10, "with 1 down, p99 of puts 3ms is not below 2ms", nil, measuredOf(1, 1, 3000, 0, 1200, 0, 29_000, 0))
	point(pull, 11, "with 1 down, p99 of puts 2.1ms +- 50us is not below 2ms", nil,
		measuredOf(1, 3, 2100, 50, 1100, 40, 29_500, 100))
	best := meets(pull, 12, 27_000,
		point(pull, 12, "", measuredOf(0, 3, 1500, 60, 900, 27, 30_100, 301),
			measuredOf(1, 3, 1800, 36, 1000, 20, 30_050, 601)))
	best.Remarks = []string{"12 nodes are enough, but 13 are not (noise): the number was raised"}
	point(pull, 13, "", measuredOf(0, 3, 1400, 42, 850, 17, 30_000, 0), measuredOf(1, 3, 1300, 39, 860, 17, 30_000, 0))
	dear := meets(chain, 18, 54_000,
		point(chain, 18, "", measuredOf(0, 3, 1700, 34, 800, 8, 30_000, 0),
			measuredOf(1, 3, 1750, 35, 810, 8, 30_000, 0)))
	groups := meets(grouped, 24, 40_500,
		point(grouped, 24, "", measuredOf(0, 3, 1000, 10, 700, 7, 30_000, 0),
			measuredOf(1, 3, 1100, 11, 710, 7, 30_000, 0)))
	second := meets(large, 9, 31_000,
		point(large, 9, "", measuredOf(0, 3, 1600, 16, 600, 6, 30_000, 0),
			measuredOf(1, 3, 1650, 16, 610, 6, 30_000, 0)))
	p.Candidates = []*objects.Candidate{
		{Option: objects.Option{Protocol: cluster.Chain}, State: objects.Impossible,
			Why:    "the gateways' links allow 20000 chunks/s",
			Advice: objects.Advice{Key: "rate", Value: -20_000, Text: "a lower rate"}},
		dear, second,
		{Option: objects.Option{Protocol: cluster.ReplicastH, Group: 9}, State: objects.Short, Least: 9, From: 17_730,
			Why: "72 nodes: the queue grows"},
		{Option: objects.Option{Drive: 1, Protocol: cluster.ReplicastH, Group: 9}, State: objects.Short, Least: 8,
			From: 17_730.5, Why: "64 nodes: the queue grows"},
		groups,
		{Option: objects.Option{Protocol: cluster.Pull}, State: objects.Costlier, Least: 15, From: 29_550,
			Why: "needs at least 15 nodes, for $29,550"},
		{Option: objects.Option{Drive: 1, Protocol: cluster.ReplicastH, Group: 12}, State: objects.Open, Least: 12,
			From: 26_760},
		best,
	}
	p.Best = best
	return p
}

// sizedNothing returns a search, with single runs of reads alone, that found no design.
func sizedNothing() *objects.Plan {
	p := sized()
	n := p.Need
	n.Reads, n.Capacity, n.Survive, n.Code = 1, 0, 0, cluster.Code{Data: 4, Parity: 2}
	o := objects.Option{Protocol: cluster.Pull}
	p.Seeds = p.Seeds[:1]
	p.Points = []*objects.Point{{Design: objects.Design{Option: o, Nodes: 40},
		Why: "p99 of gets 4ms is not below 3ms", Intact: measuredOf(0, 1, 0, 0, 4000, 0, 29_900, 0)}}
	p.Candidates = []*objects.Candidate{
		{Option: o, State: objects.Short, Least: 5, From: 9850, Why: "40 nodes: p99 of gets 4ms is not below 3ms",
			Advice: objects.Advice{Key: "get_p99", Value: 4000, Text: "a get_p99 above 4ms"}},
		{Option: objects.Option{Protocol: cluster.Chain}, State: objects.Impossible,
			Why:    "the gateways' links allow 20000 chunks/s",
			Advice: objects.Advice{Key: "rate", Value: -20_000, Text: "a lower rate"}},
	}
	p.Best = nil
	return p
}

// sizedEverywhere returns a search with a design for each of the protocols, each with three numbers of nodes, the
// last of which has the given percentile.
func sizedEverywhere(schemes []cluster.Scheme, nodes int, last float64) *objects.Plan {
	p := sized()
	p.Need.Protocols, p.Need.Survive = schemes, 0
	p.Points, p.Candidates = nil, nil
	for i, s := range schemes {
		o := objects.Option{Protocol: s}
		for k, y := range []float64{last, 1900, 1000} {
			m := measuredOf(0, 3, y+float64(i), 10, 500, 5, 30_000, 0)
			x := &objects.Point{Design: objects.Design{Option: o, Nodes: []int{10, nodes / 2, nodes + i}[k]},
				Meets: y < 2000, Intact: m, Bound: objects.Bound{Resource: "capacity", Chunks: 60_000}}
			if !x.Meets {
				x.Why = "it is too slow"
			}
			p.Points = append(p.Points, x)
			if k == 2 {
				p.Candidates = append(p.Candidates,
					&objects.Candidate{Option: o, State: objects.Meets, Nodes: nodes + i,
						Cost: units.Money(20_000 + 100*i), Point: x, Fewer: "disks allow 1 chunks/s"})
			}
		}
	}
	p.Best = p.Candidates[0]
	return p
}

func runAt(digest string, seed uint64) string { return fmt.Sprintf("runs/%s-%d", digest, seed) }

// TestSizingWords checks the text of a search for a cluster on a terminal and on its page, and every mark of its
// charts.
func TestSizingWords(t *testing.T) {
	for name, p := range map[string]*objects.Plan{
		"sizing": sized(), "sizing of nothing": sizedNothing(),
		"sizing by many protocols": sizedEverywhere(cluster.SharedSchemes()[:7], 30, 25_000),
	} {
		holdWords(t, name, func(text, page io.Writer) error {
			if err := WriteSizingText(text, p, term.Style{}); err != nil {
				return err
			}
			return WriteSizing(page, p,
				Study{Version: "test", Scenario: "name: store\n", Command: "farflash plan cluster"}, runAt)
		})
	}
}

// TestSizingOfOneRun verifies that the percentiles of single runs are shown without intervals.
func TestSizingOfOneRun(t *testing.T) {
	p := sizedEverywhere([]cluster.Scheme{cluster.Pull}, 30, 2500)
	p.Seeds = p.Seeds[:1]
	for _, x := range p.Points {
		x.Intact = measuredOf(0, 1, x.Intact.Put.Mean, 0, 500, 0, 30_000, 0)
	}
	var page, text bytes.Buffer
	if err := WriteSizing(&page, p, Study{Version: "test"}, runAt); err != nil {
		t.Fatal(err)
	}
	sound(t, page.String())
	if err := WriteSizingText(&text, p, term.Style{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "+-") || !strings.Contains(text.String(), "seed 3\n") ||
		!strings.Contains(text.String(), "1.00 ms, limit 2ms\n") {
		t.Error(text.String())
	}
	if got := marks(page.String()); !strings.Contains(got, "* nodes 30; pull: 1 ms; limit: 2 ms\n") ||
		strings.Contains(got, "±") {
		t.Error(got)
	}
	if !strings.Contains(page.String(), `id="protocols"`) ||
		!strings.Contains(text.String(), "\nthe cheapest with each protocol\n") {
		t.Error("the only protocol is not listed")
	}
	if strings.Contains(page.String(), " to -") {
		t.Error("one run is listed as several")
	}
}

// TestSizingOfNoMoney verifies that clusters of parts already owned cost 0, and show no relative costs.
func TestSizingOfNoMoney(t *testing.T) {
	p := sizedEverywhere([]cluster.Scheme{cluster.Pull, cluster.Chain}, 30, 2500)
	for _, c := range p.Candidates {
		c.Cost = 0
	}
	for _, c := range p.Candidates {
		if got := protocolCells(p, c); got[1] != "$0" || got[2] != "" {
			t.Errorf("%q", got)
		}
	}
	p.Candidates[0].Cost, p.Candidates[1].Cost = 0.5, 1
	if got := protocolCells(p, p.Candidates[1]); got[1] != "$1.000" || got[2] != "+100.0 %" {
		t.Errorf("%q", got)
	}
	p.Candidates[0].Cost, p.Candidates[1].Cost = 0, 10
	if got := protocolCells(p, p.Candidates[1]); got[1] != "$10.00" || got[2] != "" {
		t.Errorf("%q", got)
	}
}

// TestSizingScales verifies that an axis is logarithmic if the values are far from their limit, or span many numbers of
// nodes.
func TestSizingScales(t *testing.T) {
	for _, c := range []struct {
		what  string
		nodes int
		last  float64 // percentile of the smallest design, us
		want  string
	}{
		{"near", 40, 20_000,
			"[chart: pull · limit · 0 · 5 · 10 · 15 · 20 · 25 · 10 · 15 · 20 · 25 · 30 · 35 · 40 · nodes · p99 of " +
				"puts (ms)]"},
		{"far from the limit", 40, 20_100,
			"[chart: pull · limit · 1 ms · 10 ms · 10 · 15 · 20 · 25 · 30 · 35 · 40 · nodes · p99 of puts]"},
		{"over many numbers of nodes", 41, 2500,
			"[chart: pull · limit · 0 · 1 · 2 · 3 · 5 · 10 · 20 · 50 · nodes · p99 of puts (ms)]"},
	} {
		f := sizingFigures(sizedEverywhere([]cluster.Scheme{cluster.Pull}, c.nodes, c.last))
		if got, _, _ := strings.Cut(words(string(f[1].SVG)), "\n"); got != c.want {
			t.Errorf("%s: %s; %s is right", c.what, got, c.want)
		}
	}
	for count, multiples := range map[int]bool{6: false, 7: true} {
		f := sizingFigures(sizedEverywhere(cluster.SharedSchemes()[:count], 30, 2500))
		if strings.Contains(string(f[1].SVG), `class="multiples"`) != multiples || f[1].Wide != multiples ||
			strings.HasPrefix(f[0].Caption, "Cost of the cheapest") != multiples {
			t.Errorf("%d protocols: %s, %v", count, f[0].Caption, f[1].Wide)
		}
	}
	if f := sizingFigures(sized()); !slices.Equal(styles(f[0]), []string{"0", "1", "2"}) ||
		!slices.Equal(styles(f[1]), []string{"0", "1", "2", "7"}) {
		t.Errorf("styles %v and %v", styles(f[0]), styles(f[1]))
	}
	p := sizedEverywhere([]cluster.Scheme{cluster.Pull}, 30, 2500)
	p.Need.Reads = 1
	for _, x := range p.Points {
		x.Intact.Put = stats.Interval{}
	}
	if got := words(string(sizingFigures(p)[1].SVG)); !strings.Contains(got, "p99 of gets") ||
		!strings.Contains(got, "* nodes 10; pull: 500 us ± 5 us; limit: 3 ms\n") {
		t.Error(got)
	}
	if f := sizingFigures(sizedNothing()); f != nil {
		t.Errorf("%d figures of nothing", len(f))
	}
}

// TestSizingNeed checks the one-line description of a need, without the parts that it does not ask for.
func TestSizingNeed(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(n *objects.Need)
	}{
		{"30,000 chunks/s of 128KiB x 3, 30% of them read, p99 of puts below 2ms, of gets below 3ms, 500TB stored, " +
			"with 1 node down", func(*objects.Need) {}},
		{"30,000 chunks/s of 128KiB x 3, p99 of puts below 2ms",
			func(n *objects.Need) { n.Reads, n.GetP99, n.Capacity, n.Survive = 0, 0, 0, 0 }},
		{"30,000 chunks/s of 128KiB x 3, 100% of them read, p99 of gets below 3ms",
			func(n *objects.Need) { n.Reads, n.Capacity, n.Survive = 1, 0, 0 }},
		{"30,000 chunks/s of 128KiB as 4+2 pieces, 30% of them read, p99 of puts below 2ms, with 2 nodes down",
			func(n *objects.Need) {
				n.Code, n.GetP99, n.Capacity, n.Survive = cluster.Code{Data: 4, Parity: 2}, 0, 0, 2
			}},
	} {
		n := sizedNeed()
		c.change(n)
		if got := needText(n); got != c.want {
			t.Errorf("%s; %s is right", got, c.want)
		}
	}
}

// TestSizingChoice checks the text of the choice, its grounds, and why one step fewer is not enough.
func TestSizingChoice(t *testing.T) {
	facts := func(p *objects.Plan) string {
		var b strings.Builder
		for _, f := range bestFacts(p) {
			fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
		}
		return b.String()
	}
	p := sized()
	if got, want := bestText(p), "$27,000: 12 nodes with nvme and 10G, protocol pull"; got != want {
		t.Errorf("%s; %s is right", got, want)
	}
	if got, want := facts(p), `p99 of puts: 1.50 ms +- 4.0 %, limit 2ms
p99 of gets: 900 us +- 3.0 %, limit 3ms
done: 30.1k chunks/s +- 1.0 %
p99 of puts, 1 down: 1.80 ms +- 2.0 %, limit 2ms
p99 of gets, 1 down: 1.00 ms +- 2.0 %, limit 3ms
done, 1 down: 30.1k chunks/s +- 2.0 %
bound: 93.8 % of the 32.0k chunks/s that the disks allow
one step fewer: 11: with 1 down, p99 of puts 2.1ms +- 50us is not below 2ms
remark: 12 nodes are enough, but 13 are not (noise): the number was raised
`; got != want {
		t.Errorf("%s\nis not\n%s", got, want)
	}
	p.Need.GetP99 = 0
	if got := facts(p); strings.Contains(got, "gets") || !strings.Contains(got, "p99 of puts: ") {
		t.Errorf("gets have no limit:\n%s", got)
	}
	p.Need.Reads, p.Need.GetP99 = 1, 3*units.Millisecond
	if got := facts(p); !strings.Contains(got, "p99 of gets: ") || strings.Contains(got, "puts: ") {
		t.Errorf("nothing is put:\n%s", got)
	}
	p.Best.Point.Bound.Resource, p.Points = "capacity", p.Points[3:]
	if got := facts(p); !strings.Contains(got,
		"chunks/s that the drives' capacities allow\none step fewer: the bound\n") {
		t.Errorf("bound by capacity:\n%s", got)
	}
	p.Best = p.Candidates[5]
	if got, want := bestText(p), "$40,500: 24 nodes with sata and 10G, protocol replicast-h, groups of 6"; got != want {
		t.Errorf("%s; %s is right", got, want)
	}
	p.Best.Nodes = 1
	if got, want := bestText(p), "$40,500: 1 node with"; !strings.HasPrefix(got, want) {
		t.Errorf("%s; %s is right", got, want)
	}
	p.Best = nil
	if got, want := bestText(p), "no design found: the search was interrupted"; got != want {
		t.Errorf("%s; %s is right", got, want)
	}
	if got, want := bestText(sizedNothing()), "no design meets the need"; got != want {
		t.Errorf("%s; %s is right", got, want)
	}
	p = sizedNothing()
	if got, want := effortText(p), "2 options, 1 design simulated for 834ms, seed 3"; got != want {
		t.Errorf("%s; %s is right", got, want)
	}
	p.Candidates, p.Points = p.Candidates[:1], append(p.Points, p.Points...)
	if got, want := effortText(p), "1 option, 2 designs simulated for 834ms each, seed 3"; got != want {
		t.Errorf("%s; %s is right", got, want)
	}
}

// TestSizingOrder verifies that options that meet the need come first, then undecided ones, then the others by
// reason, and the cheapest first within each kind. Protocols start with the chosen one.
func TestSizingOrder(t *testing.T) {
	p := sized()
	var got []int
	for _, c := range inOrder(p) {
		got = append(got, slices.Index(p.Candidates, c))
	}
	if want := []int{8, 2, 5, 1, 7, 6, 3, 4, 0}; !slices.Equal(got, want) {
		t.Errorf("%v; %v is right", got, want)
	}
	p.Candidates[4].From = p.Candidates[3].From
	if list := inOrder(p); list[6] != p.Candidates[3] || list[7] != p.Candidates[4] {
		t.Error("what costs the same is not in the order of the need")
	}
	protocols := func() (names []string) {
		for _, c := range byProtocol(p) {
			names = append(names, c.Protocol.String())
		}
		return names
	}
	if got, want := protocols(), []string{"pull", "replicast-h", "chain"}; !slices.Equal(got, want) {
		t.Errorf("%v; %v is right", got, want)
	}
	p.Candidates[1].Cost = p.Candidates[5].Cost
	if got, want := protocols(), []string{"pull", "chain", "replicast-h"}; !slices.Equal(got, want) {
		t.Errorf("of what costs the same: %v; %v is right", got, want)
	}
	p.Candidates[1].Cost = p.Best.Cost
	p.Best = p.Candidates[1]
	if got, want := protocols(), []string{"chain", "pull", "replicast-h"}; !slices.Equal(got, want) {
		t.Errorf("the one that was chosen costs as much as another: %v; %v is right", got, want)
	}
	p.Need.Search.Others = false
	if got := protocols(); got != nil {
		t.Errorf("nobody asked for others: %v", got)
	}
}

// TestSizingOptions verifies that each option has a row, and that a terminal shows only the first twenty.
func TestSizingOptions(t *testing.T) {
	p := sized()
	for i, want := range [][]string{
		{"", "", "sata", "10G", "chain", "", "the gateways' links allow 20000 chunks/s"},
		{"$54,000", "18", "nvme", "25G", "chain", "", "meets the need"},
		{"$31,000", "9", "sata", "25G", "pull", "", "meets the need"},
		{">=$17,730", ">=9", "sata", "10G", "replicast-h", "9", "72 nodes: the queue grows"},
		{">=$17,731", ">=8", "nvme", "10G", "replicast-h", "9", "64 nodes: the queue grows"},
		{"$40,500", "24", "sata", "10G", "replicast-h", "6", "meets the need"},
		{">=$29,550", ">=15", "sata", "10G", "pull", "", "needs at least 15 nodes, for $29,550"},
		{">=$26,760", ">=12", "nvme", "10G", "replicast-h", "12", "not decided"},
		{"$27,000", "12", "nvme", "10G", "pull", "", "chosen"},
	} {
		if got := optionCells(p, p.Candidates[i]); !slices.Equal(got, want) {
			t.Errorf("%q; %q is right", got, want)
		}
	}
	for i, want := range map[int][]string{
		8: {"pull", "$27,000", "", "12", "nvme", "10G", "", "1.80 ms +- 2.0 %", "93.8 %", "disks"},
		5: {"replicast-h", "$40,500", "+50.0 %", "24", "sata", "10G", "6", "1.10 ms +- 1.0 %", "68.2 %", "disks"},
	} {
		if got := protocolCells(p, p.Candidates[i]); !slices.Equal(got, want) {
			t.Errorf("%q; %q is right", got, want)
		}
	}
	p.Candidates[6].Least, p.Candidates[6].From, p.Candidates[6].Group = 1, 10, 1
	if got := optionCells(p, p.Candidates[6]); got[0] != ">=$10.00" || got[1] != ">=1" || got[5] != "1" {
		t.Errorf("%q", got)
	}
	impossible := p.Candidates[0]
	for count, want := range map[int]string{20: "", 21: "and 1 more, in plan.json and report.html\n"} {
		p.Candidates = slices.Repeat([]*objects.Candidate{impossible}, count)
		var b strings.Builder
		if err := writeOptions(&b, p, term.Style{}); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.Count(got, "chain") != 20 || !strings.HasSuffix(got, want) ||
			strings.Contains(got, " more, in") != (want != "") {
			t.Errorf("%d options:\n%s", count, got)
		}
	}
}

// TestSizingSeries verifies that sorting keeps the values of each position together, and is stable.
func TestSizingSeries(t *testing.T) {
	s := chart.Series{X: []float64{3, 1, 2, 1}, Y: []float64{30, 10, 20, 11}}
	sortSeries(&s)
	if !slices.Equal(s.X, []float64{1, 1, 2, 3}) || !slices.Equal(s.Y, []float64{10, 11, 20, 30}) {
		t.Errorf("%v %v", s.X, s.Y)
	}
}

// TestSizingRuns verifies that the list of runs has no percentile of puts or gets that do not occur.
func TestSizingRuns(t *testing.T) {
	for reads, want := range map[units.Fraction][2]string{0: {"3.00 ms", ""}, 0.5: {"3.00 ms", "1.20 ms"},
		1: {"", "1.20 ms"}} {
		p := sized()
		p.Need.Reads = reads
		row := runTable(p, runAt).Rows[0]
		if row[3].Text != want[0] || row[4].Text != want[1] {
			t.Errorf("%v are read: %q and %q; %q is right", reads, row[3].Text, row[4].Text, want)
		}
	}
}
