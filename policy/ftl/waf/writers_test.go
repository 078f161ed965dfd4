package waf

import (
	"math"
	"testing"
)

// TestWriters verifies that one writer is equivalent to the drive's own load, two that write at random are equivalent
// to classes, and unordered runs to the runs of an experiment. Data at rest cost no writes and do not count as spare
// space.
func TestWriters(t *testing.T) {
	e := DefaultExperiment()
	e.Blocks, e.Alpha = 400, 1.15
	run := func(change func(*Experiment)) float64 {
		x := e
		change(&x)
		r, err := Simulate(x)
		if err != nil {
			t.Fatal(err)
		}
		return r.WAF
	}
	pages := int32(e.Blocks * e.Pages)
	var runs [][2]int32
	for at := int32(0); at < pages; at += 16 {
		runs = append(runs, [2]int32{at, 16})
	}
	for name, x := range map[string][2]func(*Experiment){
		"random": {func(x *Experiment) { x.Writers = []Writer{{Space: 1, Writes: 1}} }, func(*Experiment) {}},
		"sequential": {func(x *Experiment) { x.Writers = []Writer{{Space: 1, Writes: 1, Sequential: 0.8}} },
			func(x *Experiment) { x.Sequential = 0.8 }},
		"classes": {func(x *Experiment) { x.Writers = []Writer{{Space: 0.2, Writes: 0.8}, {Space: 0.8, Writes: 0.2}} },
			func(x *Experiment) { x.Classes = []Class{{Writes: 0.8, Space: 0.2}, {Writes: 0.2, Space: 0.8}} }},
		"runs": {func(x *Experiment) { x.Writers = []Writer{{Space: 1, Writes: 1, Runs: runs}} },
			func(x *Experiment) { x.Runs = runs }},
		"who is not": {func(x *Experiment) { x.Writers = []Writer{{Space: 1, Writes: 1}, {}, {Sequential: 1}} },
			func(*Experiment) {}},
	} {
		if a, b := run(x[0]), run(x[1]); math.Abs(a/b-1) > 0.03 {
			t.Errorf("%s: %v, not %v", name, a, b)
		}
	}
	cold := run(func(x *Experiment) { x.Writers = []Writer{{Space: 0.5, Writes: 1}, {Space: 0.5}} })
	all := run(func(*Experiment) {})
	// Half of the drive is at rest, so the other half has twice the share of spare space.
	if want := GreedyExact(1.3, 64); math.Abs(cold/want-1) > 0.05 || !(cold < all) {
		t.Errorf("half of it lies still: %v, not %v; all written: %v", cold, want, all)
	}
	// Writers receive the requested shares of the pages, whatever their runs.
	l := Experiment{Blocks: 100, Pages: 64, Seed: 1, Classes: uniform(),
		Writers: []Writer{{Space: 0.25, Writes: 0.4, Runs: [][2]int32{{0, 50}, {100, 30}}},
			{Space: 0.75, Writes: 0.6}}}.load()
	first := 0
	const draws = 200_000
	for range draws {
		if l.next() < 1600 {
			first++
		}
	}
	if got := float64(first) / draws; math.Abs(got-0.4) > 0.01 {
		t.Errorf("a writer of 40 %% wrote %v", got)
	}
	for name, list := range map[string][]Writer{
		"space": {{Space: 0.9, Writes: 1}}, "writes": {{Space: 1, Writes: 1.1}},
		"negative": {{Space: 1.5, Writes: 1}, {Space: -0.5}}, "sequential": {{Space: 1, Writes: 1, Sequential: 1.1}},
		"run": {{Space: 1, Writes: 1, Runs: [][2]int32{{0, 0}}}},
	} {
		x := e
		x.Writers = list
		if _, err := Simulate(x); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	x := e
	x.Writers, x.Sequential = []Writer{{Space: 1, Writes: 1}}, 0.5
	if _, err := Simulate(x); err == nil {
		t.Error("writers and a sequential share beside them were taken")
	}
}
