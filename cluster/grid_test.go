package cluster_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"farflash/cluster"
	"farflash/internal/golden"
	"farflash/rng"
	"farflash/sim"
	"farflash/units"
)

var update = flag.Bool("update", false, "write the table of docs/validation/replicast.md anew")

// long is set at night, when all of a table is made.
var long = os.Getenv("FARFLASH_LONG") != ""

// gridSeed is the seed of the comparison, tuneSeed that by which rivals choose how many candidates they ask.
const (
	gridSeed = 1
	tuneSeed = 101
)

// cell is a case in which pull and its rivals are compared.
type cell struct {
	chunk       units.Bytes
	rate        int // of disks, MiB/s
	gbps        int // of links
	outstanding int // 0: an open loop
	load        int // of one, % of what disks allow
	bursts      bool
	code        cluster.Code
	slow        bool // a tenth of the disks has a quarter of the rate
	loss        bool // of 0.1 % of all frames and messages
	gate        bool // it is held by every run of the tests
}

// cells are the grid: each size and rate with chunks outstanding and loads, and beside them codes, disks that differ, losses and bursts.
func cells() []cell {
	const k16, k128, m1 = 16 * units.KiB, 128 * units.KiB, units.MiB
	var list []cell
	for _, x := range []cell{{chunk: k16, rate: 1000, gbps: 10}, {chunk: k128, rate: 400, gbps: 10}, {chunk: k128, rate: 1000, gbps: 10}, {chunk: k128, rate: 1000, gbps: 25}} {
		for _, n := range []int{1, 4, 16} {
			x.outstanding = n
			list = append(list, x)
		}
		x.outstanding, x.load = 0, 90
		list = append(list, x)
	}
	c42, c83 := cluster.Code{Data: 4, Parity: 2}, cluster.Code{Data: 8, Parity: 3}
	return append(list,
		cell{chunk: k16, rate: 400, gbps: 10, outstanding: 1, gate: true},
		cell{chunk: k16, rate: 400, gbps: 10, outstanding: 4},
		cell{chunk: m1, rate: 1000, gbps: 10, outstanding: 1},
		cell{chunk: m1, rate: 1000, gbps: 10, outstanding: 4},
		cell{chunk: k128, rate: 1000, gbps: 10, load: 95},
		cell{chunk: k16, rate: 1000, gbps: 10, load: 70, bursts: true},
		cell{chunk: k128, rate: 1000, gbps: 10, load: 70, bursts: true},
		cell{chunk: m1, rate: 1000, gbps: 10, outstanding: 1, code: c42},
		cell{chunk: m1, rate: 1000, gbps: 10, outstanding: 2, code: c42},
		cell{chunk: m1, rate: 1000, gbps: 10, outstanding: 8, code: c42},
		cell{chunk: m1, rate: 1000, gbps: 10, load: 70, code: c42},
		cell{chunk: m1, rate: 400, gbps: 10, outstanding: 1, code: c42},
		cell{chunk: k128, rate: 1000, gbps: 10, outstanding: 4, code: c42},
		cell{chunk: m1, rate: 1000, gbps: 10, outstanding: 1, code: c83},
		cell{chunk: m1, rate: 1000, gbps: 10, outstanding: 4, code: c83},
		cell{chunk: m1, rate: 400, gbps: 10, outstanding: 1, code: c83},
		cell{chunk: k128, rate: 400, gbps: 10, outstanding: 1, slow: true},
		cell{chunk: k128, rate: 400, gbps: 10, outstanding: 4, slow: true},
		cell{chunk: k128, rate: 1000, gbps: 10, outstanding: 1, loss: true},
		cell{chunk: k128, rate: 1000, gbps: 10, outstanding: 4, loss: true},
		cell{chunk: k128, rate: 400, gbps: 10, load: 70, loss: true},
	)
}

// rival is a protocol and how many candidates it asks for each piece, or how wide its bids are, or how large its groups.
type rival struct {
	protocol cluster.Scheme
	choices  int
	width    units.Fraction
	group    int
}

// rivals are those that are tried with tuneSeed. Replicast's has messages of 100 B, as the others have, and keeps 3 % of the links for them.
var rivals = []rival{
	{protocol: cluster.Chain, choices: 1}, {protocol: cluster.Chain, choices: 2}, {protocol: cluster.Chain, choices: 3}, {protocol: cluster.Chain, choices: 4}, {protocol: cluster.Chain, choices: 6},
	{protocol: cluster.DCTCP, choices: 2}, {protocol: cluster.DCTCP, choices: 3}, {protocol: cluster.DCTCP, choices: 4}, {protocol: cluster.DCTCP, choices: 6},
	{protocol: cluster.Grants, choices: 2}, {protocol: cluster.Grants, choices: 3}, {protocol: cluster.Grants, choices: 4}, {protocol: cluster.Grants, choices: 6},
	{protocol: cluster.ReplicastM, width: 1.1}, {protocol: cluster.ReplicastM, width: 1.4}, {protocol: cluster.ReplicastM, width: 2},
	{protocol: cluster.ReplicastProxy, group: 9}, {protocol: cluster.ReplicastProxy, group: 18}, {protocol: cluster.ReplicastProxy, group: 45},
}

func (r rival) String() string {
	switch {
	case r.width > 0:
		return fmt.Sprintf("%v, bids of %v", r.protocol, r.width)
	case r.group > 0:
		return fmt.Sprintf("%v, groups of %d", r.protocol, r.group)
	}
	return fmt.Sprintf("%v, %d", r.protocol, r.choices)
}

// plays reports whether a rival can do what a cell asks for: what is multicast is the same for all, groups do not go on without their proxy, and no more than 64 targets are
// asked at a time.
func (r rival) plays(x *cell) bool {
	if r.width > 0 || r.group > 0 {
		return x.code.Data == 0 && (r.group == 0 || !x.loss)
	}
	return r.choices*max(x.code.Data+x.code.Parity, 1) <= 64
}

// String names a cell in the table.
func (x *cell) String() string {
	s := fmt.Sprintf("%v, %d MiB/s, %dG", x.chunk, x.rate, x.gbps)
	if x.code.Data > 0 {
		s += fmt.Sprintf(", %d+%d", x.code.Data, x.code.Parity)
	}
	switch {
	case x.bursts:
		s += fmt.Sprintf(", bursts at %d %%", x.load)
	case x.load > 0:
		s += fmt.Sprintf(", open loop at %d %%", x.load)
	default:
		s += fmt.Sprintf(", %d outstanding", x.outstanding)
	}
	if x.slow {
		s += ", a tenth slow"
	}
	if x.loss {
		s += ", 0.1 % lost"
	}
	return s
}

// longest is of how many chunks a burst is at most, and paretoShape what its size's distribution falls with.
const (
	longest     = 64
	paretoShape = 1.2
)

// pareto has bursts of chunks come to one gateway each, by a Poisson process; their sizes have a bounded Pareto distribution.
type pareto struct {
	rand    rng.Stream
	gap     float64 // mean between bursts, ps
	at      sim.Time
	gateway int32
	left    int
}

func burst(u float64) int {
	return min(int(1/rng.Pow(1-u*(1-rng.Pow(longest, -paretoShape)), 1/paretoShape)), longest)
}

// meanBurst is the mean size of a burst.
func meanBurst() float64 {
	const n = 100_000
	sum := 0
	for k := range n {
		sum += burst((float64(k) + 0.5) / n)
	}
	return float64(sum) / n
}

func (p *pareto) Next(a *cluster.Arrival) bool {
	if p.left == 0 {
		p.left, p.gateway = burst(p.rand.Float64()), int32(p.rand.IntN(90))
		p.at += sim.Time(p.rand.Exp() * p.gap)
	}
	p.left--
	*a = cluster.Arrival{At: p.at, Gateway: p.gateway, Object: -1}
	return true
}

// found is what a run finds.
type found struct {
	rate      float64 // chunks a second
	mean, p99 float64 // us
}

// run runs a cell, its first half not measured, for so long as the cluster takes for so many chunks a gateway at least.
func (x *cell) run(t *testing.T, r rival, seed uint64, chunks float64) found {
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Choices, cfg.Chunk, cfg.Code = r.protocol, max(r.choices, 1), x.chunk, x.code
	if r.width > 0 || r.group > 0 {
		cfg.BidWidth, cfg.Control.Replicast, cfg.Control.Share = r.width, 100, 0.03
	}
	if r.group > 0 {
		cfg.Group = r.group
	}
	cfg.Disk.Rate, cfg.Link.Rate = units.ByteRate(x.rate)*units.ByteRate(units.MiB), units.BitRate(x.gbps)*units.Gbps
	cfg.Outstanding = max(x.outstanding, 1)
	if x.slow {
		cfg.Disk.Kinds = []cluster.Kind{{Share: 0.1, Rate: cfg.Disk.Rate / 4}}
	}
	if x.loss {
		cfg.Link.Loss = 0.001
	}
	copies := 3 * float64(x.chunk)
	if x.code.Data > 0 {
		copies = float64(x.code.Data+x.code.Parity) / float64(x.code.Data) * float64(x.chunk)
	}
	disks := 90 * float64(cfg.Disk.Rate) / copies // chunks a second
	if x.load > 0 {
		cfg.Outstanding = 256
		if !x.bursts {
			cfg.Load.Rate = disks * float64(x.load) / 100
		}
	}
	eng := sim.New()
	c, err := cluster.New(cfg, eng, seed)
	if err != nil {
		t.Error(x, r, err)
		return found{}
	}
	if x.bursts {
		c.Replay(&pareto{rand: rng.NewStream(seed, "bursts"), gap: 1e14 / (disks * float64(x.load)) * meanBurst()})
	}
	until := sim.Time(1e12 * 90 * chunks * float64(max(x.outstanding, 4)) / 4 / disks)
	var took []float64
	sum := 0.0
	c.OnDone = func(d *cluster.Done) {
		if d.Done > until/2 {
			took = append(took, (d.Done-d.Begun).Seconds()*1e6)
			sum += took[len(took)-1]
		}
	}
	c.Start()
	eng.Run(until)
	if len(took) == 0 {
		return found{}
	}
	slices.Sort(took)
	return found{rate: float64(len(took)) / (until - until/2).Seconds(), mean: sum / float64(len(took)), p99: took[len(took)*99/100]}
}

// What is no worse: so much less of the rate, or more of the 99th percentile.
const (
	ofRate = 0.005
	ofP99  = 0.05
)

// compare runs a cell and returns its row, and whether pull is ahead and whether it is behind.
func (x *cell) compare(t *testing.T) (row string, ahead, behind bool) {
	const chunks, forTuning = 120, 60
	most := 0.0
	tuned := make([]found, len(rivals))
	for k, r := range rivals {
		if !r.plays(x) {
			continue
		}
		tuned[k] = x.run(t, r, tuneSeed, forTuning)
		most = max(most, tuned[k].rate)
	}
	best := -1
	for k, f := range tuned {
		switch {
		case f.rate == 0:
		case x.load > 0: // who does not keep up takes ever longer
			if best < 0 || f.mean < tuned[best].mean {
				best = k
			}
		case f.rate >= (1-ofRate)*most: // of those that do as many chunks as any, the one with the shortest tail
			if best < 0 || f.p99 < tuned[best].p99 {
				best = k
			}
		}
	}
	ours, theirs := x.run(t, rival{protocol: cluster.Pull}, gridSeed, chunks), x.run(t, rivals[best], gridSeed, chunks)
	rate, tail := ours.rate/theirs.rate-1, ours.p99/theirs.p99-1
	behind = rate < -ofRate || tail > ofP99
	ahead = !behind && (rate > ofRate || tail < -ofP99)
	verdict := map[bool]string{true: "ahead", false: "even"}[ahead]
	if behind {
		verdict = "behind"
	}
	return golden.Row(x.String(), rivals[best].String(), fmt.Sprintf("%.1f, %.1f", ours.rate/1000, theirs.rate/1000), fmt.Sprintf("%.0f, %.0f", ours.mean, theirs.mean),
		fmt.Sprintf("%.0f, %.0f", ours.p99, theirs.p99), fmt.Sprintf("%+.1f %%, %+.0f %%", 100*rate, 100*tail), verdict), ahead, behind
}

// TestGrid holds the table of pull and its rivals in docs/validation/replicast.md: all of it with FARFLASH_LONG, else a few of its rows.
func TestGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	const page, name = "../docs/validation/replicast.md", "pull-grid"
	list := cells()
	if !long {
		list = slices.DeleteFunc(list, func(x cell) bool { return !x.gate })
	}
	rows := make([]string, len(list))
	count := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for k := range list {
		wg.Go(func() {
			row, ahead, behind := list[k].compare(t)
			mu.Lock()
			defer mu.Unlock()
			rows[k] = row
			switch {
			case ahead:
				count["ahead"]++
			case behind:
				count["behind"]++
			}
		})
	}
	wg.Wait()
	t.Logf("%d cells, ahead in %d, behind in %d", len(list), count["ahead"], count["behind"])
	if !long {
		golden.Rows(t, page, name, rows)
		return
	}
	lines := append(golden.Head("case", "best rival, choices", ">thousand chunks/s: pull, rival", ">mean, us", ">p99, us", ">rate, p99 against the rival", "pull is"), rows...)
	lines = append(lines, golden.Row(fmt.Sprintf("%d cells", len(list)), "", "", "", "", "", fmt.Sprintf("ahead in %d, behind in %d", count["ahead"], count["behind"])))
	golden.Table(t, page, name, fmt.Sprintf("seed %d, rivals tuned with seed %d", gridSeed, tuneSeed), lines, *update)
	if strings.Contains(strings.Join(rows, ""), "NaN") {
		t.Error("a protocol does nothing in some cell")
	}
}
