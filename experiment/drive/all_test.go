package drive_test

import (
	"fmt"
	"math"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/model/cosim"
)

// TestAllKinds verifies Little's law for requests of all kinds: all.count, all.iops and all.latency cover the same
// requests, flushes included, with and without a warm-up.
func TestAllKinds(t *testing.T) {
	const text = `
ssd: mqsim-default
workload: [{synthetic: {writes: {size: 16KiB}, requests: 400}, closed: 4, flush: {every: 3}}]
`
	for _, set := range [][]string{nil, {"measure.warm_up=5ms"}} {
		s, err := trialtest.Parse(text, set...)
		if err != nil {
			t.Fatal(err)
		}
		until, inside := 0.0, 0.0
		o, err := trial.Run(t.Context(), s, experiment.Options{Seed: 1, Sample: func(x cosim.Sample) error {
			inside += (x.Finished - x.Arrival).Seconds()
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		m := func(name string) float64 { return trialtest.Metric(t, o, name) }
		if m("all.count") != m("write.count")+m("flush.count") || m("flush.count") == 0 {
			t.Errorf("%v: %v requests are %v writes and %v flushes", set, m("all.count"), m("write.count"),
				m("flush.count"))
		}
		mean := (m("write.count")*m("write.latency.mean") + m("flush.count")*m("flush.latency.mean")) / m("all.count")
		if got := m("all.latency.mean"); math.Abs(got-mean) > 1e-9*mean {
			t.Errorf("%v: the mean latency of all is %v, that of writes and flushes %v", set, got, mean)
		}
		if n := o.Result.Histogram("all.latency").Count(); n != int64(m("all.count")) {
			t.Errorf("%v: latencies of %d requests, and %v were counted", set, n, m("all.count"))
		}
		until = o.Result.WarmUp.UntilS
		if under := m("all.iops") * m("all.latency.mean") / 1e6; until == 0 &&
			math.Abs(under-inside/o.Result.SimulatedS) > 1e-6*under || math.Abs(under-4) > 0.1 {
			t.Errorf("%v: rate times latency is %v under way, and 4 were, or %v", set, under,
				inside/o.Result.SimulatedS)
		}
	}
}

// TestAllOfParts verifies that the latencies of all requests are those of its workloads combined.
func TestAllOfParts(t *testing.T) {
	const item = "{synthetic: {writes: {size: 16KiB}, requests: 300}, closed: 4, flush: {every: %d}}"
	for _, set := range [][]string{nil, {"measure.warm_up=5ms"}} {
		o := trialtest.Run(t, fmt.Sprintf("ssd: mqsim-default\nworkload: ["+item+", "+item+"]\n", 3, 5), 1, set...)
		m := func(name string) float64 { return trialtest.Metric(t, o, name) }
		sum := 0.0
		for _, w := range []string{"workload[0].all", "workload[1].all"} {
			sum += m(w+".count") * m(w+".latency.mean")
		}
		if whole := m("all.count") * m("all.latency.mean"); math.Abs(whole-sum) > 1e-9*whole {
			t.Errorf("%v: latencies of all add up to %v us, those of workloads to %v", set, whole, sum)
		}
	}
}

// TestControllerQueue compares the wait for a processor that each command uses once, under Poisson arrivals, with that
// of an M/D/1 queue: service times rho / (2 (1 - rho)).
func TestControllerQueue(t *testing.T) {
	o := trialtest.Run(t, `
ssd: {preset: tlc-enterprise, controller: {processors: 1, command: 10us, completion: 0s}}
workload: [{synthetic: {reads: {size: 4KiB, interarrival: {mean: 12.5us, kind: exponential}}, requests: 200000}}]
measure: {warm_up: 1%}
`, 1)
	x, ok := o.Result.Matrix("ssd.latency.breakdown")
	if !ok {
		t.Fatal("no breakdown")
	}
	got := math.NaN()
	for k, c := range x.Cols {
		if c == "controller" {
			got = x.V[0][k]
		}
	}
	if want := 10 + 10*0.8/(2*(1-0.8)); math.Abs(got-want) > 0.05*want {
		t.Errorf("a command is %v us with the processor, of an M/D/1 queue %v", got, want)
	}
}

// TestWholeLatency verifies that the parts of the mean latency add up to it wherever a request waits before it reaches
// the drive, and that background work is not a part.
func TestWholeLatency(t *testing.T) {
	const drive = "ssd: {preset: tlc-enterprise, mapping: {ideal: true}%s}\n"
	for name, c := range map[string]struct {
		text  string
		waits bool
	}{
		"room": {fmt.Sprintf(drive, "") +
			"workload: [{synthetic: {reads: {size: 4KiB}, requests: 2000}, closed: 16}]", false},
		"short queue": {fmt.Sprintf(drive, "") +
			"workload: [{synthetic: {reads: {size: 4KiB}, requests: 2000}, closed: 16, queue: {depth: 2}}]\nmeasure: " +
			"{warm_up: 10%}", true},
		"submission": {fmt.Sprintf(drive, ", host: {submission_depth: 4}") +
			"workload: [{synthetic: {reads: {size: 4KiB}, requests: 2000}, closed: 16}]", true},
		"device's": {fmt.Sprintf(drive, ", host: {submission_depth: 4}") +
			"workload: [{synthetic: {reads: {size: 4KiB}, requests: 2000}, closed: 16, latency_from: submission}]",
			false},
		"zones": {fmt.Sprintf(drive, ", zones: {}") +
			"workload: [{synthetic: {writes: {size: 4KiB}, requests: 2000}, closed: 64, zones: {append: false}}]",
			true},
		"two queues": {"ssd: {preset: mqsim-default, host: {fetch_size: 16}}\nrate_control: {kind: static, " +
			"weight_ratio: 3}\nworkload: [{synthetic: {reads: {size: 16KiB}, writes: {size: 16KiB}, read_fraction: " +
			"50%, requests: 2000}, closed: 200, queue: {depth: 1024}}]", true},
	} {
		o := trialtest.Run(t, c.text+"\n", 1)
		x, ok := o.Result.Matrix("ssd.latency.breakdown")
		if !ok {
			t.Fatalf("%s: no breakdown", name)
		}
		if got := x.Cols[0] == "host"; got != c.waits {
			t.Errorf("%s: the columns are %v", name, x.Cols)
		}
		for i, op := range x.Rows {
			mean, ok := o.Result.Metric(op + ".latency.mean")
			sum := 0.0
			for _, v := range x.V[i] {
				sum += v
			}
			if ok && math.Abs(sum-mean.Value) > 1e-6*sum {
				t.Errorf("%s: the parts of a mean %s of %v us add up to %v: %v %v", name, op, mean.Value, sum, x.Cols,
					x.V[i])
			}
		}
	}
}
