//go:build unix

package trial_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/internal/usage"
)

// countdown is a context that is cancelled after a number of calls of Err, or some time after the first.
type countdown struct {
	context.Context
	left  atomic.Int64
	ended atomic.Int64 // processor time at the cancellation
	delay time.Duration
	asked sync.Once
}

func newCountdown(t *testing.T, n int) *countdown {
	c := &countdown{Context: t.Context()}
	c.left.Store(int64(n))
	return c
}

func (c *countdown) Err() error {
	if c.delay > 0 {
		c.asked.Do(func() { time.AfterFunc(c.delay, c.end) })
	} else if c.left.Add(-1) == 0 {
		c.end()
	}
	if c.ended.Load() == 0 {
		return nil
	}
	return context.Canceled
}

func (c *countdown) end() { c.ended.CompareAndSwap(0, int64(usage.CPU())) }

// TestEveryKindStops verifies that every kind of experiment stops within a second of CPU time after cancellation, at
// any point, and keeps its partial result. It does not run in parallel, because CPU time is the process's.
func TestEveryKindStops(t *testing.T) {
	const (
		load = "workload:\n  - {name: a, synthetic: {reads: {size: 16KiB, interarrival: 20us}, writes: {size: " +
			"16KiB, interarrival: 40us}, requests: 20000000}}\n"
		system = "initiators: 4\ntargets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]\n"
		tree   = "fabric: {topology: {fat_tree: {k: 8}}}\nflows: [{poisson: {load: 60%, sizes: websearch, duration: " +
			"10s}}]\n"
		crowd = "fabric: {topology: {fat_tree: {k: 16}}}\nflows: [{all_to_all: {size: 200KB}}]\n"
	)
	for _, c := range []struct {
		name, text string
		set        []string
		after      int // calls of Err
		delay      time.Duration
		nothing    bool
	}{
		{name: "drive", text: "ssd: tlc-enterprise\n" + load},
		{name: "drive until steady", text: "ssd: tlc-enterprise\n" + load + "measure: {until: steady}\n", after: 3},
		{name: "drive, prepared",
			text:    "ssd: {preset: tlc-enterprise, preconditioning: {fill: replay, passes: 1000}}\n" + load,
			nothing: true},
		{name: "volume", text: "ssd: tlc-enterprise\nhost_raid: {drives: 4, level: 5}\n" + load},
		{name: "tenants alone",
			text: "ssd: tlc-enterprise\nmeasure: {alone: true}\n" + load +
				"  - {name: b, synthetic: {reads: {size: 4KiB}, requests: 10000000}, closed: 4}\n"},
		{name: "network", text: tree, set: []string{"fabric.parts=1"}},
		{name: "network in parts", text: tree, set: []string{"fabric.parts=4"}, after: 2000},
		{name: "network on threads", text: tree, set: []string{"fabric.threads=2"}, after: 2000},
		{name: "a million flows", text: crowd, set: []string{"fabric.parts=1"}, delay: 50 * time.Millisecond},
		{name: "a million flows in parts", text: crowd, delay: 50 * time.Millisecond},
		{name: "system", text: system + load},
		{name: "system and flows",
			text:  system + load + "fabric: {topology: {fat_tree: {k: 16}}}\nflows: [{all_to_all: {size: 200KB}}]\n",
			delay: 50 * time.Millisecond},
		{name: "turns, the first", text: system + "protocol: flows\ncoupling: {mode: iterative}\n" + load,
			set: []string{"workload[0].synthetic.requests=300000"}, after: 60, nothing: true},
		{name: "turns and one loop",
			text: system + "coupling: {mode: both, iterative: {full: true, iterations: 1000}}\nfabric: {parts: 1}\n" +
				load, set: []string{"workload[0].synthetic.requests=2000"}, after: 5000},
		{name: "objects", text: "object_cluster: {gateways: 63, targets: 63, chunk: 64KiB}\nmeasure: {until: 1000s}\n"},
		{name: "objects on drives",
			text: "object_cluster: {gateways: 2, targets: 6, chunk: 64KiB, protocol: chain, disk: {model: " +
				"ssd}}\nssd: tlc-enterprise\nmeasure: {until: 1000s}\n"},
		{name: "objects over packets",
			text: "object_cluster: {gateways: 4, targets: 8, chunk: 64KiB, protocol: grants, core: packet}\nfabric: " +
				"{topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 6}}}\nmeasure: {until: 1000s}\n"},
		{name: "storm", text: "object_cluster: {protocol: storm}\nmeasure: {until: 100s}\n"},
		{name: "ping-pong", text: "object_cluster: {protocol: ping-pong}\nmeasure: {until: 100s}\n"},
		{name: "tiering", text: "object_cluster: {protocol: tiering}\nmeasure: {until: 1000000s}\n"},
	} {
		s, err := trialtest.Parse(c.text, c.set...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.after == 0 {
			c.after = 20
		}
		ctx := newCountdown(t, c.after)
		ctx.delay = c.delay
		out, err := trial.Run(ctx, s, experiment.Options{Seed: 1})
		at := time.Duration(ctx.ended.Load())
		switch took := usage.CPU() - at; {
		case at == 0:
			t.Errorf("%s: it ended before: %v", c.name, err)
			continue
		case took > time.Second:
			t.Errorf("%s: it goes on for %v", c.name, took)
		}
		if c.nothing {
			if !errors.Is(err, trial.ErrInterrupted) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil || !out.Interrupted ||
			!strings.Contains(strings.Join(out.Result.Warnings, "\n"), "incomplete: ") {
			t.Errorf("%s: %v; want what was done", c.name, err)
			continue
		}
		for _, law := range out.Result.Checks {
			if !law.OK {
				t.Errorf("%s: %s: %s", c.name, law.Name, law.Detail)
			}
		}
	}
}

// TestTurnsKeepWhole verifies that completed iterations are kept as if no more had been requested, wherever in the next
// one the context ends.
func TestTurnsKeepWhole(t *testing.T) {
	const text = "initiators: 4\ntargets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]\nprotocol: flows\ncoupling: " +
		"{mode: iterative, iterative: {full: true, iterations: 5}}\nfabric: {parts: 1}\n" +
		"workload: [{synthetic: {reads: {size: 64KiB, interarrival: 20us}, writes: {size: 64KiB, interarrival: " +
		"40us}, requests: 300}}]\n"
	want := map[int]string{}
	figures := func(o *experiment.Outcome) string {
		var b strings.Builder
		for _, m := range o.Result.Metrics {
			if m.Name != "sim.events" {
				fmt.Fprintln(&b, m.Name, m.Value)
			}
		}
		return b.String()
	}
	for k := 2; k <= 5; k++ {
		want[k] = figures(trialtest.Run(t, text, 1, fmt.Sprint("coupling.iterative.iterations=", k)))
	}
	kept, runs := map[int]bool{}, 0
	for after := 5; ; after += 151 {
		s, err := trialtest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		out, err := trial.Run(newCountdown(t, after), s, experiment.Options{Seed: 1})
		runs++
		if errors.Is(err, trial.ErrInterrupted) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !out.Interrupted {
			break
		}
		m, ok := out.Result.Matrix("snis.turns")
		if !ok {
			t.Fatal("no iterations are kept")
		}
		n := len(m.Rows)
		if kept[n] = true; n > 1 && figures(out) != want[n] {
			t.Errorf("ended after %d questions: %d iterations are not as if no more had been asked for", after, n)
		}
	}
	if t.Logf("%d runs", runs); len(kept) < 3 {
		t.Errorf("iterations that were kept: %v", kept)
	}
}
