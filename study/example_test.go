package study_test

import (
	"context"
	"fmt"

	"farflash/scenario/shape"
	"farflash/study"
)

// A faster flash array compared with the unchanged drive, over five replicates.
func Example() {
	src := shape.Source{File: "reads.yaml", Text: []byte(`
workload:
  - synthetic: {reads: {size: 4KiB, interarrival: {mean: 50us, kind: exponential}}, requests: 500}
ssd: mqsim-default
`)}
	plan, err := study.NewComparison([]study.Arm{
		{Label: "as it is", Source: src},
		{Label: "faster", Source: src, Changes: []shape.Change{{Path: "ssd.timing.read_latency", Value: "50us"}}},
	}, 1, 5)
	if err != nil {
		fmt.Println(err)
		return
	}
	runner := study.Runner{Version: "example"}
	test := study.DefaultTest()
	test.Metrics = []string{"read.latency.p50"}
	effects, err := study.Compare(plan, runner.Run(context.Background(), plan.Trials()), test)
	if err != nil {
		fmt.Println(err)
		return
	}
	e := effects.Pairs[0].Effects[0]
	relative, _, _, _ := e.Relative()
	fmt.Printf("%s: %+.0f %%, %s\n", e.Name, 100*relative, e.Verdict)
	// Output:
	// read.latency.p50: -30 %, better
}
