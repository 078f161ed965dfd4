package experiment_test

import (
	"testing"

	"farflash/experiment"
	"farflash/internal/hostile"
	"farflash/result"
	"farflash/scenario"
)

// TestArguments verifies that a run without a kind, a scenario, a context or words is an error.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "experiment")
	words := result.NewVocabulary()
	var none experiment.Options
	run := func(s *scenario.Scenario) func() error {
		return func() error { _, err := experiment.Run(t.Context(), nil, words, s, none); return err }
	}
	refused("no kind", run(&scenario.Scenario{}), "is nil")
	refused("no scenario", run(nil), "is nil")
	refused("no kind to check", func() error {
		return experiment.Check(t.Context(), nil, &scenario.Scenario{}, none)
	}, "is nil")
	refused("no scenario to check", func() error { return experiment.Check(t.Context(), nil, nil, none) }, "is nil")
}
