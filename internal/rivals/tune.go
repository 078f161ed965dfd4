package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// gridSeed is the seed of the comparison, tuneSeed that by which forms are chosen.
const (
	gridSeed = 1
	tuneSeed = 101
)

// What is no worse: so much less of the rate, where gateways work as fast as they can, or more of the 99th percentile.
const (
	ofRate = 0.005
	ofP99  = 0.05
)

// How long runs are, in rounds: chunks a gateway that disks take that time for, and how many times what is
// outstanding at least.
const (
	roughly, roughlyDeep = 10, 3
	closer, closerDeep   = 28, 4
	finally, finallyDeep = 64, 6

	inDoubt = 4 // so many times longer, where pull did not keep up
)

// inHindsight is how many rivals are compared in each cell, of which the best counts.
const inHindsight = 3

// found is what a run finds: chunks a second, and times in us.
type found struct{ rate, mean, p99 float64 }

// better orders what was found, the best first: of those within a share of the most chunks the one with the shortest
// tail. The shorter runs are, the more they differ by chance, and in a short one more may end than disks can do,
// which counts as what they can do.
func (x cell) better(list []found, within float64) []int {
	within = max(within, x.load.keepsUp())
	most := 0.0
	for _, f := range list {
		most = max(most, x.counted(f))
	}
	order := make([]int, len(list))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int {
		p, q := list[a], list[b]
		full := func(f found) bool { return x.counted(f) >= (1-within)*most }
		switch {
		case full(p) != full(q):
			return map[bool]int{true: -1, false: 1}[full(p)]
		case full(p):
			return cmp.Compare(p.p99, q.p99)
		}
		return cmp.Compare(q.rate, p.rate)
	})
	return order
}

// allowed is how many chunks a second disks allow, or come.
func (x cell) allowed() float64 {
	if x.load.share > 0 {
		return x.capacity() * float64(x.load.share) / 100
	}
	return x.capacity()
}

// counted is the rate of a run, of which no more counts than is possible for long: in a run's second half a few more
// may end than that.
func (x cell) counted(f found) float64 { return min(f.rate, x.allowed()) }

// run runs a rival in a cell.
func (x cell) run(ctx context.Context, r rival, seed uint64, seconds float64) (found, error) {
	text := x.scenario(r, seconds)
	s, err := scenario.Parse(shape.Source{File: r.String(), Text: []byte(text)}, nil)
	if err != nil {
		return found{}, fmt.Errorf("%w\n%s", err, text)
	}
	out, err := trial.Run(ctx, s, experiment.Options{Seed: seed})
	switch {
	case err != nil:
		return found{}, fmt.Errorf("%v: %w\n%s", r, err, text)
	case out.Interrupted:
		return found{}, context.Canceled
	}
	var f found
	longest := 0.0
	for _, m := range out.Result.Metrics {
		switch m.Name {
		case "cluster.put.iops":
			f.rate = m.Value
		case "cluster.put.latency.mean":
			f.mean = m.Value
		case "cluster.put.latency.p99":
			f.p99 = m.Value
		case "cluster.put.latency.max":
			longest = m.Value
		}
	}
	if f.p99 == 0 { // too few chunks support it
		f.p99 = longest
	}
	return f, nil
}

// runs runs several, each for so many rounds.
func (x cell) runs(ctx context.Context, list []rival, seed uint64, rounds, deep int) ([]found, error) {
	out := make([]found, len(list))
	for k, r := range list {
		var err error
		if out[k], err = x.run(ctx, r, seed, x.window(rounds, deep)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// choose tries all forms for a short time, the best form of each protocol, or so many of them if that is more, for
// longer, and returns them, the best first.
func (x cell) choose(ctx context.Context, list []rival, atLeast int) ([]rival, error) {
	tried, err := x.runs(ctx, list, tuneSeed, roughly, roughlyDeep)
	if err != nil {
		return nil, err
	}
	var last []rival
	there := map[string]bool{}
	for n, k := range x.better(tried, 0.04) {
		if r := list[k]; n < atLeast || !there[r.protocol] {
			there[r.protocol] = true
			last = append(last, r)
		}
	}
	if tried, err = x.runs(ctx, last, tuneSeed, closer, closerDeep); err != nil {
		return nil, err
	}
	var ordered []rival
	for _, k := range x.better(tried, 0.01) {
		ordered = append(ordered, last[k])
	}
	return ordered, nil
}

// tuned are the forms that are compared: the best of the rivals, the best first, and the best of pull.
type tuned struct {
	theirs []rival // nil: not needed so far
	ours   *rival
}

// class is the cell by which forms are chosen for all loads of a kind.
func (x cell) class() cell {
	switch {
	case x.load.share == 0:
		x.load = load{outstanding: 4}
	case !x.load.bursts:
		x.load = load{share: 90}
	}
	return x
}

// rival finds what the best rival does in a cell, with forms that are chosen for its class when they are needed first.
func (x cell) rival(ctx context.Context, t *tuned) (row, error) {
	r := row{cell: x, open: true}
	if t.theirs == nil {
		list, err := x.class().choose(ctx, x.rivals(), 1)
		if err != nil {
			return r, err
		}
		t.theirs = list[:min(inHindsight, len(list))]
	}
	last, err := x.runs(ctx, t.theirs, gridSeed, finally, finallyDeep)
	if err != nil {
		return r, err
	}
	k := x.better(last, ofRate)[0]
	r.rival, r.theirs = t.theirs[k].String(), last[k].kept()
	return r, nil
}

// pull adds what pull does in a row's cell, likewise.
func (r *row) pull(ctx context.Context, t *tuned) error {
	if t.ours == nil {
		ahead, err := r.ahead()
		if err != nil {
			return err
		}
		list, err := r.class().choose(ctx, r.pulls(ahead), 2)
		if err != nil {
			return err
		}
		t.ours = &list[0]
	}
	last, err := r.runs(ctx, []rival{*t.ours, usual}, gridSeed, finally, finallyDeep)
	if err != nil {
		return err
	}
	r.form, r.best, r.usual, r.open = t.ours.says, last[0].kept(), last[1].kept(), false
	r.settle()
	if r.verdict(r.best) == fails || r.verdict(r.usual) == fails {
		return r.again(ctx, *t.ours)
	}
	return nil
}

// again runs a row's rival and both forms of pull for longer, which then counts: what does not keep up, or does so
// with a backlog that still grows, shows only in time.
func (r *row) again(ctx context.Context, ours rival) error {
	list := r.rivals()
	k := slices.IndexFunc(list, func(x rival) bool { return x.String() == r.rival })
	last, err := r.runs(ctx, []rival{list[k], ours, usual}, gridSeed, inDoubt*finally, finallyDeep)
	if err != nil {
		return err
	}
	r.theirs, r.form, r.best, r.usual = last[0].kept(), ours.says, last[1].kept(), last[2].kept()
	r.settle()
	return nil
}

// ahead is how far ahead of need targets of pull offer themselves in a cell if nothing is said, in us.
func (x cell) ahead() (float64, error) {
	s, err := scenario.Parse(shape.Source{File: "pull", Text: []byte(x.scenario(usual, 1))}, nil)
	if err != nil {
		return 0, err
	}
	t, err := s.ObjectCluster.UsualAhead()
	return t.Seconds() * 1e6, err
}

// What drives do, by cells that differ in their load alone.
var (
	driven  = map[cell]float64{}
	driving sync.Mutex
)

// capacity is how many chunks a second the cluster's disks do.
func (x cell) capacity() float64 {
	if x.condition == ssds {
		driving.Lock()
		defer driving.Unlock()
		if rate := driven[x.setting()]; rate > 0 {
			return rate
		}
	}
	return x.disks()
}

// measure finds what drives do: what a chain with two candidates does that has sixteen chunks outstanding.
func (x cell) measure(ctx context.Context) error {
	if x.condition != ssds {
		return nil
	}
	x.load = load{outstanding: 16}
	f, err := x.run(ctx, rival{protocol: "chain", set: []string{"choices: 2"}}, tuneSeed,
		x.window(finally, finallyDeep))
	x.does(math.Round(f.rate))
	return err
}

// does keeps what drives do, in chunks a second, if it is drives that a cell has.
func (x cell) does(rate float64) {
	if x.condition == ssds {
		driving.Lock()
		defer driving.Unlock()
		driven[x.setting()] = rate
	}
}
