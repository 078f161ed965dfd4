package network_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// simulate runs a scenario and verifies its checks.
func simulate(t *testing.T, text string, sets ...string) *result.Result {
	t.Helper()
	var changes []shape.Change
	for _, s := range sets {
		c, err := shape.ParseChange(s)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c)
	}
	s, err := scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, changes)
	if err != nil {
		t.Fatal(err)
	}
	out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range out.Result.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	return out.Result
}

func metricOf(t *testing.T, r *result.Result, name string) float64 {
	t.Helper()
	m, ok := r.Metric(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return m.Value
}

// TestCollectiveTimes compares collectives on one switch, without contention, with closed forms: a latency per step,
// and each host's data at its link rate, shared with the ACKs for its received data.
func TestCollectiveTimes(t *testing.T) {
	const hosts, size, rate, wire = 8, 8e6, 100e9, 1024.0 / (1024 + 82 + 86)
	const packet = (1024 + 82) * 8e6 / rate
	const latency = 2 + packet // us: two links, and the switch's time for the last packet
	carry := func(bytes float64) float64 { return bytes * 8e6 / rate / wire }
	const n = float64(hosts)
	for _, x := range []struct {
		operation, algorithm string
		steps, share         float64
	}{
		{"all-reduce", "ring", 2 * (n - 1), 2 * (n - 1) / n}, {"reduce-scatter", "ring", n - 1, (n - 1) / n},
		{"all-gather", "ring", n - 1, (n - 1) / n}, {"all-to-all", "ring", n - 1, (n - 1) / n},
		{"all-reduce", "halving-doubling", 2 * 3, 2 * (n - 1) / n},
		{"all-gather", "halving-doubling", 3, (n - 1) / n}, {"reduce-scatter", "halving-doubling", 3, (n - 1) / n},
	} {
		r := simulate(t, fmt.Sprintf("fabric: {topology: {star: {hosts: %d}}, host_link: 100Gbps, "+
			"congestion_control: {algorithm: none}}\nflows: [{collective: {operation: %s, algorithm: %s, size: 8MB, "+
			"delay: 3us, rounds: 2, pause: 50us}}]\n",
			hosts, x.operation, x.algorithm))
		want := carry(x.share*size) + x.steps*latency + (x.steps-1)*3
		for _, name := range []string{"collective.time.mean", "collective.time.max"} {
			if got := metricOf(t, r, name); math.Abs(got/want-1) > 0.01 {
				t.Errorf("%s, %s: %s %.2f us, want %.2f", x.operation, x.algorithm, name, got, want)
			}
		}
		if metricOf(t, r, "collective.count") != 2 || metricOf(t, r, "collective.unfinished") != 0 ||
			metricOf(t, r, "flow.unfinished") != 0 {
			t.Errorf("%s, %s: %v rounds", x.operation, x.algorithm, metricOf(t, r, "collective.count"))
		}
		if a, b := metricOf(t, r, "collective.bandwidth"),
			metricOf(t, r, "collective.bus_bandwidth"); math.Abs(b/a/x.share-1) > 1e-9 {
			t.Errorf("bandwidths %v and %v", a, b)
		}
	}
}

// TestSprayedCollective verifies that on a fat-tree with rings across pods, spraying takes a third less time than
// hashing.
func TestSprayedCollective(t *testing.T) {
	const text = `fabric: {topology: {fat_tree: {k: 4}}, host_link: 100Gbps, up_link: 100Gbps, congestion_control: {algorithm: none}, recovery: {kind: selective-repeat, reordering: 256, timeout: 10ms}}
flows: [{collective: {operation: all-reduce, size: 8MB, hosts: [0, 5, 10, 15, 1, 4, 11, 14, 2, 7, 8, 13, 3, 6, 9, 12]}}]
`
	hash, spray := simulate(t, text), simulate(t, text, "fabric.load_balancing.choice=round-robin")
	if a, b := metricOf(t, hash, "collective.time.mean"), metricOf(t, spray, "collective.time.mean"); b > 0.67*a {
		t.Errorf("%.0f us with a hash, %.0f with spraying", a, b)
	}
}

// TestDependentsInParts verifies that a setting for parts only adds a remark.
func TestDependentsInParts(t *testing.T) {
	const text = "fabric: {topology: {fat_tree: {k: 4}}}\nflows: [{collective: {operation: all-reduce, algorithm: " +
		"halving-doubling, size: 1MB}}, {list: [{name: a, src: 0, dst: 9, class: 3, size: 10KB}, {src: 9, dst: 3, " +
		"class: 3, size: 10KB, start: 5us, after: [a]}]}]\n"
	want := simulate(t, text)
	for _, parts := range []string{"fabric.parts=2", "fabric.threads=2"} {
		got := simulate(t, text, parts)
		for _, m := range want.Metrics {
			if metricOf(t, got, m.Name) != m.Value {
				t.Errorf("%s: %s is %v, and %v in one part", parts, m.Name, metricOf(t, got, m.Name), m.Value)
			}
		}
	}
	if metricOf(t, want, "flows[1].count") != 2 || metricOf(t, want, "flows[0].collective.count") != 1 {
		t.Error("flows are missing")
	}
}

// TestDependentsAlone verifies that dependent flows are rejected next to drives.
func TestDependentsAlone(t *testing.T) {
	_, err := scenario.Parse(shape.Source{File: "a.yaml",
		Text: []byte("initiators: 3\ntargets: [{count: 2, ssds: 2, ssd: tlc-enterprise}]\nworkload: [{synthetic: " +
			"{reads: {size: 4KiB, interarrival: 5us}, requests: 100}}]\nflows: [{collective: {size: 1MB}}]\n")}, nil)
	if err == nil || !strings.Contains(err.Error(),
		"a.yaml:4:9: flows[0]: flows that wait for others need a network alone") {
		t.Error(err)
	}
}

// TestProgress verifies that each queue pair's acknowledged bytes over time add up to its flow, and that its in-flight
// bytes never exceed a window.
func TestProgress(t *testing.T) {
	const text = "fabric: {topology: {star: {hosts: 3}}, congestion_control: {algorithm: none, none: {window: " +
		"bdp}}}\nflows: [{list: [{src: 0, dst: 2, class: 3, size: 1MB}, {src: 1, dst: 2, class: 3, size: " +
		"500KB}]}]\nmeasure: {progress: true}\n"
	r := simulate(t, text)
	for q, size := range []float64{1e6, 5e5} {
		sum, most, found := 0.0, 0.0, 0
		for _, s := range r.Series {
			switch s.Name {
			case fmt.Sprintf("flow[%d].throughput", q):
				found++
				for i, v := range s.V {
					width := s.Width
					if i == len(s.V)-1 {
						width = r.SimulatedS - s.T[i]
					}
					if width > 0 {
						sum += v * width / 8
					}
				}
			case fmt.Sprintf("flow[%d].in_flight", q):
				found++
				for _, v := range s.V {
					most = max(most, v)
				}
			}
		}
		if found != 2 || math.Abs(sum/size-1) > 1e-6 || most == 0 || most > 30e3 {
			t.Errorf("queue pair %d: %d series, %.0f bytes of %.0f acknowledged, %.0f in flight at most", q, found,
				sum, size, most)
		}
	}
	for _, s := range simulate(t, text, "measure.progress=false").Series {
		if strings.HasSuffix(s.Name, "throughput") {
			t.Error("a series that nobody asked for")
		}
	}
}
