package trial_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// TestLonersPreparationIsInterrupted verifies that when the context ends during the preparation of a drive for a tenant
// alone, the earlier results are kept, as when it ends a moment later.
func TestLonersPreparationIsInterrupted(t *testing.T) {
	text := "ssd: {preset: tlc-enterprise, preconditioning: {fill: replay, passes: 1}}\n" +
		"workload:\n  - {name: a, synthetic: {reads: {size: 16KiB}, requests: 10}, closed: 1}\n  - {name: b, " +
		"synthetic: {reads: {size: 16KiB}, requests: 10}, closed: 1}\nmeasure: {alone: true}\n"
	s, err := scenario.Parse(shape.Source{File: "test.yaml", Text: []byte(text)}, []shape.Change{
		{Path: "ssd.geometry.channels", Value: "2"}, {Path: "ssd.geometry.chips_per_channel", Value: "1"},
		{Path: "ssd.geometry.blocks_per_plane", Value: "64"}, {Path: "ssd.geometry.pages_per_block", Value: "256"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, pass := range []int{1, 2} {
		ctx, cancel := context.WithCancel(t.Context())
		out, err := trial.Run(ctx, s, experiment.Options{Seed: 1, Progress: func(p experiment.Progress) {
			if p.Pass == pass && p.Prepared > 0 {
				cancel()
			}
		}})
		cancel()
		if err != nil || !out.Interrupted || !out.Result.Interrupted {
			t.Fatalf("alone %d: %v; want what was found among others", pass, err)
		}
		if v, ok := out.Result.Metric("read.count"); !ok || v.Value != 20 {
			t.Errorf("alone %d: %+v reads", pass, v)
		}
		if _, ok := out.Result.Metric("workload[0].alone.iops"); ok != (pass == 2) {
			t.Errorf("alone %d: the first item alone is known: %v", pass, ok)
		}
		if w := out.Result.Warnings; len(w) == 0 ||
			!strings.Contains(w[len(w)-1],
				"incomplete: the run of "+[]string{"", "a", "b"}[pass]+" alone was interrupted") {
			t.Errorf("alone %d: %q", pass, w)
		}
	}
}

// TestPreparationIsInterrupted verifies that a trial whose context ends during preparation is interrupted, and reports
// its progress.
func TestPreparationIsInterrupted(t *testing.T) {
	for _, text := range []string{
		"ssd: {preset: tlc-enterprise, preconditioning: {fill: replay, passes: 1000}}\nworkload: [{synthetic: " +
			"{reads: {size: 16KiB}, requests: 10}, closed: 1}]\n",
		"initiators: 3\ntargets: [{count: 2, ssds: 2, ssd: {preset: tlc-enterprise, preconditioning: {fill: replay, " +
			"passes: 1000}}}]\nworkload: [{synthetic: {reads: {size: 16KiB}, requests: 10}, closed: 1}]\n",
	} {
		s, err := scenario.Parse(shape.Source{File: "test.yaml", Text: []byte(text)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		told := 0
		_, err = trial.Run(ctx, s, experiment.Options{Seed: 1, Progress: func(p experiment.Progress) {
			if p.Prepared > 0 {
				told++
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, trial.ErrInterrupted) || told != 1 {
			t.Errorf("after being told %d times: %v; want it to be interrupted after the first", told, err)
		}
	}
}
