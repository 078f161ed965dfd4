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

// gridSeed is the seed of the comparison, tuneSeed that of the choice of forms.
const (
	gridSeed = 1
	tuneSeed = 101
)

// Margins within which figures count as equal: of the rate, when gateways work at their limit, and of the 99th
// percentile.
const (
	ofRate = 0.005
	ofP99  = 0.05
)

// Lengths of runs: rounds, in chunks per gateway, and the least multiple of the outstanding chunks.
const (
	roughly, roughlyDeep = 10, 3
	closer, closerDeep   = 28, 4
	finally, finallyDeep = 64, 6

	inDoubt = 4 // factor on the length where pull did not sustain the load
)

// inHindsight is the number of rivals that are compared in each cell; the best of them counts.
const inHindsight = 3

// found is the result of a run: chunks per second, and times in microseconds.
type found struct{ rate, mean, p99 float64 }

// better returns the order of results, the best first: of those within a share of the highest rate the one with the
// shortest tail is best. Shorter runs vary more by chance. A short run may complete more chunks than the disks can
// sustain, so only the sustainable rate counts.
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

// allowed returns the highest rate in chunks per second: that of the disks, or in an open loop that of the arrivals.
func (x cell) allowed() float64 {
	if x.load.open() {
		return x.capacity() * float64(x.load.share) / 100
	}
	return x.capacity()
}

// counted returns the rate of a run, limited to the sustainable one: in the second half of a run slightly more chunks
// may complete.
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
	if f.p99 == 0 { // too few chunks for the percentile
		f.p99 = longest
	}
	return f, nil
}

// runs runs several rivals, each for the given rounds.
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

// choose tries all forms for a short time, then the best form of each protocol and at least the best atLeast forms for
// longer, and returns the latter, the best first.
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

// tuned are the forms to compare: the best of the rivals, the best first, and the best of pull.
type tuned struct {
	theirs []rival // nil until they are needed
	ours   *rival
}

// class returns the cell in which the forms for all loads of a kind are chosen.
func (x cell) class() cell {
	switch {
	case !x.load.open():
		x.load = load{outstanding: 4}
	case !x.load.bursts:
		x.load = load{share: 90}
	}
	return x
}

// rival measures the best rival of a cell, with forms that are chosen for the cell's class when first needed.
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

// pull adds pull's figures to a row, with forms chosen in the same way.
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

// again runs a row's rival and both forms of pull for longer, and the longer runs replace the others: a backlog that
// keeps growing shows only over time.
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

// ahead returns how far ahead of need pull's targets offer themselves by default in a cell, in microseconds.
func (x cell) ahead() (float64, error) {
	s, err := scenario.Parse(shape.Source{File: "pull", Text: []byte(x.scenario(usual, 1))}, nil)
	if err != nil {
		return 0, err
	}
	t, err := s.ObjectCluster.UsualAhead()
	return t.Seconds() * 1e6, err
}

// Rates of SSDs, by cell without its load.
var (
	driven  = map[cell]float64{}
	driving sync.Mutex
)

// capacity returns the number of chunks per second that the cluster's disks sustain.
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

// measure measures the rate of a cell's SSDs: that of a chain with two candidates and sixteen chunks outstanding.
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

// does records the rate of a cell's SSDs, in chunks per second. It has no effect on cells without SSDs.
func (x cell) does(rate float64) {
	if x.condition == ssds {
		driving.Lock()
		defer driving.Unlock()
		driven[x.setting()] = rate
	}
}
