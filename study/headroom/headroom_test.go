package headroom_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
	"farflash/study/headroom"
)

// die is a drive with one die that reads whole pages, with its map in DRAM: a queue with one server and a constant
// service time.
const die = `
ssd:
  preset: mqsim-default
  geometry: {channels: 1, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 1, blocks_per_plane: 64, pages_per_block: 64}
  over_provisioning: 25%
  cache: {mode: off}
  mapping: {ideal: true}
`

const poisson = die + `
workload:
  - synthetic: {reads: {size: 8KiB, interarrival: {mean: 400us, kind: exponential}, addresses: {align: 8KiB}}, requests: 20000}
`

func config(t *testing.T, text string, limits ...string) headroom.Config {
	t.Helper()
	c := headroom.DefaultConfig()
	c.Source = shape.Source{File: "drive.yaml", Text: []byte(text)}
	for _, l := range limits {
		x, err := result.ParseCondition(trial.Vocabulary().Metrics, l)
		if err != nil {
			t.Fatal(err)
		}
		c.Limits = append(c.Limits, x)
	}
	return c
}

func search(t *testing.T, c headroom.Config) *headroom.Headroom {
	t.Helper()
	h, err := headroom.Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	runner := study.Runner{Version: "test"}
	if err := h.Search(context.Background(), runner.Run, nil); err != nil {
		t.Fatal(err)
	}
	return h
}

// once simulates a scenario and returns a metric.
func once(t *testing.T, text, metric string) float64 {
	t.Helper()
	s, err := scenario.Parse(shape.Source{File: "once.yaml", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	runner := study.Runner{Version: "test"}
	o := runner.Run(context.Background(), []trial.Trial{{Scenario: s, Digest: digest, Seed: 1}})[0]
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	m, ok := o.Result.Metric(metric)
	if !ok {
		t.Fatalf("there is no %s", metric)
	}
	return m.Value
}

// waits is the probability that a request of M/D/1 waits no longer than x service times, at a utilisation of rho
// (Crommelin, "Delay probability formulae", 1934).
func waits(rho, x float64) float64 {
	sum := 0.0
	for k := 0; float64(k) <= x; k++ {
		y := rho * (float64(k) - x)
		term := math.Exp(-y)
		for i := 1; i <= k; i++ {
			term *= y / float64(i)
		}
		sum += term
	}
	return (1 - rho) * sum
}

// TestQueue finds the loads at which the mean and the 99th percentile of M/D/1 exceed limits, and compares them with
// theory.
func TestQueue(t *testing.T) {
	loop := strings.Replace(poisson, "interarrival: {mean: 400us, kind: exponential}, ", "", 1) + "    closed: 8\n"
	service := 1e6 / once(t, loop, "read.iops") // us
	idle := once(t, poisson, "read.latency.min")
	base := service / 400

	const limit = 150
	wait := (limit - idle) / service
	rho := 2 * wait / (1 + 2*wait) // Pollaczek and Khinchin: the mean wait is rho/(2(1-rho)) service times
	c := config(t, poisson, "read.latency.mean>150us")
	c.Reps = 3
	h := search(t, c)
	check(t, h, rho/base, 0.03)

	c = config(t, poisson, "read.latency.mean>10s", "read.latency.p99>600us")
	c.Reps, c.Within = 3, 0.01
	h = search(t, c)
	low, high := 0.01, 0.99
	for high-low > 1e-6 {
		if rho = (low + high) / 2; waits(rho, (600-idle)/service) < 0.99 {
			high = rho
		} else {
			low = rho
		}
	}
	check(t, h, rho/base, 0.03)
	if p := h.Points[h.Over]; p.Limit != 1 {
		t.Errorf("the limit that is passed is number %d", p.Limit)
	}
	if h.Points[h.Over].Load > h.Points[h.Under].Load*1.01 {
		t.Errorf("the limit lies between %v and %v, which is wider than 1 %%", h.Points[h.Under].Load,
			h.Points[h.Over].Load)
	}
}

// check compares a result with theory: the loads on both sides of the limit, and the interval over seeds, each within
// allowed.
func check(t *testing.T, h *headroom.Headroom, want, allowed float64) {
	t.Helper()
	if h.Under < 0 || h.Over < 0 {
		t.Fatalf("no bracket: %d and %d", h.Under, h.Over)
	}
	for _, got := range []float64{h.Points[h.Under].Load, h.Points[h.Over].Load, h.Crossing.Mean} {
		if math.Abs(got/want-1) > allowed {
			t.Errorf("the limit is passed at %v times the load, and should be at %v", got, want)
		}
	}
	if h.Crossing.N != 3 || !(h.Crossing.Half > 0) {
		t.Errorf("seed by seed: %+v", h.Crossing)
	}
}

// TestEnds checks the results if no load exceeds the limit, if every load does, and if larger loads are impossible.
func TestEnds(t *testing.T) {
	small := strings.Replace(poisson, "requests: 20000", "requests: 500", 1)
	c := config(t, small, "read.latency.mean>10s")
	c.Most = 4
	if h := search(t, c); h.Over >= 0 || h.Under < 0 || h.Points[h.Under].Load != 4 || h.Refused != nil ||
		len(h.Points) != 3 {
		t.Errorf("nothing passes the limit: under %d, over %d of %d", h.Under, h.Over, len(h.Points))
	}
	c = config(t, small, "read.latency.mean>1us")
	c.Most = 4
	if h := search(t, c); h.Under >= 0 || h.Over != 0 || h.Points[0].Load != 0.25 {
		t.Errorf("everything passes the limit: under %d, over %d", h.Under, h.Over)
	}
	// Flows of a Poisson process use at most the full link rate.
	c = config(t, "fabric: {topology: {star: {hosts: 4}}, host_link: 10Gbps}\nflows: [{poisson: {load: 30%, sizes: "+
		"10KB, duration: 1ms}}]\n", "flow.fct.p50>10s")
	h := search(t, c)
	if h.Refused == nil || h.Over >= 0 || math.Abs(h.Points[h.Under].Load-1/0.3) > 0.07 ||
		!strings.Contains(h.Refused.Error(), "load") {
		t.Errorf("refused: %v, at %+v", h.Refused, h.Points[h.Under].Load)
	}
	// Depths are integers: with one die the mean latency is the depth times the service time.
	loop := strings.Replace(small, "interarrival: {mean: 400us, kind: exponential}, ", "", 1) + "    closed: 2\n"
	c = config(t, loop, "read.latency.mean>1ms")
	c.Depth, c.Within = true, 0.001
	h = search(t, c)
	if under, over := h.Points[h.Under].Values[0], h.Points[h.Over].Values[0]; !h.Finest ||
		under != "9" && under != "10" || over <= under && over != "10" {
		t.Errorf("depths %s and %s, finest %v", under, over, h.Finest)
	}
	doc, err := h.Document()
	if err != nil || !doc.Finest || doc.Under == nil || *doc.Under != h.Points[h.Under].Load ||
		len(doc.Points) != len(h.Points) || doc.Points[0].Metrics["read.latency.mean"].Mean == 0 {
		t.Errorf("%v: %+v", err, doc)
	}
}

// TestFailing verifies that a load at which models fail exceeds the limit, if a smaller one does not, and that an
// interruption keeps the results so far.
func TestFailing(t *testing.T) {
	h, err := headroom.Plan(config(t, poisson, "read.latency.mean>1s"))
	if err != nil {
		t.Fatal(err)
	}
	runs := 0
	fake := func(_ context.Context, trials []trial.Trial) []study.Outcome {
		runs++
		o := study.Outcome{Trial: trials[0], State: study.Done,
			Result: &result.Result{Metrics: []result.Metric{{Name: "read.latency.mean", Unit: "us", Value: 5}}}}
		switch {
		case runs > 4:
			o.State = study.Pending
		case runs > 2:
			o.State, o.Result, o.Err = study.Failed, nil, errors.New("the queue grows without end")
		}
		return []study.Outcome{o}
	}
	if err := h.Search(context.Background(), fake, nil); !errors.Is(err, trial.ErrInterrupted) {
		t.Fatal(err)
	}
	if h.Under != 1 || h.Over != 2 || !strings.Contains(h.Points[2].Why, "without end") || !h.Interrupted ||
		h.Crossing.N != 0 {
		t.Errorf("under %d, over %d: %+v", h.Under, h.Over, h.Points)
	}
	h, err = headroom.Plan(config(t, poisson, "read.latency.mean>1s"))
	if err != nil {
		t.Fatal(err)
	}
	runs = 2
	if err := h.Search(context.Background(), fake, nil); err == nil || !strings.Contains(err.Error(), "without end") {
		t.Errorf("the scenario's own load fails: %v", err)
	}
}

// TestKeys checks the keys found for load, and the errors if there are none.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		text  string
		scale []string
		depth bool
		want  string // keys and their values at twice the load, or an error
	}{
		{poisson, nil, false, "workload[0].synthetic.reads.interarrival.mean=200us"},
		{die + "workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 4KiB}, interarrival: 10us, " +
			"read_fraction: 50%, requests: 5}}]", nil, false, "workload[0].synthetic.interarrival.mean=5us"},
		{die + "workload: [{mqsim: {bandwidth: 5MB/s}}]", nil, false, "workload[0].mqsim.bandwidth=10MB/s"},
		{die + "workload: [{closed: 3, synthetic: {reads: {size: 4KiB}, requests: 5}}]", nil, true,
			"workload[0].closed=6"},
		{die + "workload: [{closed: 3, synthetic: {reads: {size: 4KiB}, requests: 5}}]", nil, false,
			"workload[0] is a closed loop"},
		{die + "workload: [{name: a, closed: 3, synthetic: {reads: {size: 4KiB}, requests: 5}}, {name: b, synthetic: " +
			"{writes: {size: 4KiB, interarrival: 1ms}, requests: 5}}]",
			[]string{"b"}, false, "workload[1].synthetic.writes.interarrival.mean=500us"},
		{poisson, nil, true, "--depth: x has no closed loop to scale; leave --depth out"},
		{poisson, []string{"workload[1]"}, false, `--scale: no item "workload[1]"; did you mean workload[0]?`},
		{"fabric: {topology: {star: {hosts: 4}}}\nflows: [{incast: {fan: 3, size: 1KB, rounds: 4, every: 1ms}}]", nil,
			false, "flows[0].incast.every=500us"},
		{"fabric: {topology: {star: {hosts: 4}}}\nflows: [{incast: {fan: 3, size: 1KB}}]", nil, false,
			"flows[0]: its flows start at fixed times"},
		{"object_cluster: {gateways: 3, targets: 18, load: {rate: 100}}\nmeasure: {until: 1ms}", nil, false,
			"object_cluster.load.rate=200"},
		{"object_cluster: {gateways: 3, targets: 18}\nmeasure: {until: 1ms}", nil, false,
			"or give it interarrival times with object_cluster.load.rate"},
	} {
		s, err := scenario.Parse(shape.Source{File: "x.yaml", Text: []byte(c.text)}, nil)
		if err != nil {
			t.Fatalf("%s: %v", c.text, err)
		}
		got := ""
		keys, err := headroom.Keys(s, c.scale, c.depth)
		if err != nil {
			got = err.Error()
		}
		for i, k := range keys {
			v, err := k.At(2)
			if err != nil {
				t.Error(err)
			}
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("%s=%s", k.Path, v)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s gives %s instead of %s", c.text, got, c.want)
		}
	}
}
