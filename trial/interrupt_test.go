package trial_test

import (
	"context"
	"errors"
	"testing"

	"farflash/experiment"
	"farflash/scenario"
	"farflash/shape"
	"farflash/trial"
)

// A trial whose context ends while its drives are made ready is interrupted, and says how far that was.
func TestPreparationIsInterrupted(t *testing.T) {
	for _, text := range []string{
		"ssd: {preset: tlc-enterprise, preconditioning: {fill: replay, passes: 1000}}\nworkload: [{synthetic: {reads: {size: 16KiB}, requests: 10}, closed: 1}]\n",
		"initiators: 3\ntargets: [{count: 2, ssds: 2, ssd: {preset: tlc-enterprise, preconditioning: {fill: replay, passes: 1000}}}]\nworkload: [{synthetic: {reads: {size: 16KiB}, requests: 10}, closed: 1}]\n",
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
