package trial_test

import (
	"context"
	"fmt"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/scenario"
	"farflash/scenario/shape"
)

func Example() {
	src := shape.Source{File: "example.yaml", Text: []byte(`
ssd: mqsim-default
workload: [{mqsim: {requests: 1000}, closed: 1}]
`)}
	s, err := scenario.Parse(src, []shape.Change{{Path: "ssd.mapping.ideal", Value: "true"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, _ := out.Result.Metric("read.latency.p50")
	fmt.Printf("median read %.1f %s\n", m.Value, m.Unit)
	// Output:
	// median read 88.9 us
}

// BenchmarkRun measures a whole run, including parsing the scenario.
func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		trialtest.Run(b, "ssd: mqsim-default\nworkload: [{mqsim: {requests: 100000}, closed: 16}]\n", 1)
	}
}
