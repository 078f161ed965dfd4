package study

import (
	"slices"
	"testing"

	"farflash/experiment/trial"
	"farflash/result"
	"farflash/scenario/shape"
)

// TestFamilies checks the lists against the vocabulary and their sizes.
func TestFamilies(t *testing.T) {
	words := trial.Vocabulary().Metrics
	for _, f := range families {
		if f.most < 6 || f.most > 8 || len(f.metrics) < f.most {
			t.Errorf("a family of %d of %d metrics: %v", f.most, len(f.metrics), f.metrics)
		}
		for i, name := range slices.Concat(f.has, f.metrics) {
			if _, ok := words.Lookup(name); !ok {
				t.Errorf("no metric is called %s", name)
			}
			if i >= len(f.has) && slices.Contains(f.metrics[:i-len(f.has)], name) {
				t.Errorf("%s is there twice", name)
			}
		}
	}
}

// TestPrimary runs each kind of experiment, on separate seeds so that everything that can differ does, and verifies
// that each has six to eight metrics that differ and are not aliases of each other.
func TestPrimary(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string // among them
	}{
		"reads": {small, []string{"read.latency.mean", "all.bandwidth"}},
		"drive": {`
workload:
  - synthetic: {reads: {size: {mean: 8KiB, kind: exponential, granule: 4KiB}, interarrival: {mean: 60us, kind: exponential}}, writes: {size: 4KiB, interarrival: {mean: 120us, kind: exponential}}, requests: 2000}
ssd: mqsim-default
`, []string{"read.latency.p99", "write.latency.mean", "all.bandwidth"}},
		"network": {simulated[1].text, []string{"flow.fct.mean", "flow.slowdown.p99", "fabric.goodput"}},
		"system": {`
initiators: 1
targets: [{count: 2, ssds: 1, ssd: src-ssd-a}]
workload:
  - synthetic: {reads: {size: 4KiB, interarrival: {mean: 20us, kind: exponential}}, writes: {size: 4KiB, interarrival: {mean: 20us, kind: exponential}}, requests: 1500}
fabric: {host_link: 25Gbps}
`, []string{"read.latency.p99", "write.latency.mean", "initiator.read.bandwidth"}},
		"cluster": {`
object_cluster: {gateways: 4, targets: 12, group: 6, protocol: pull, chunk: 128KiB, disk: {rate: 1000MiB/s}}
measure: {until: 8ms, warm_up: 1ms}
`, []string{"cluster.put.latency.mean", "cluster.put.iops"}},
		"many puts": {`
object_cluster: {gateways: 8, targets: 24, group: 6, protocol: pull, chunk: 128KiB, disk: {rate: 1000MiB/s}}
measure: {until: 24ms, warm_up: 1ms}
`, []string{"cluster.put.latency.p99", "cluster.put.iops"}},
	} {
		source := shape.Source{File: name + ".yaml", Text: []byte(c.text)}
		p, err := NewComparison([]Arm{{Label: "a", Source: source}, {Label: "b", Source: source}}, 1, 3)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p.Apart = true
		x, err := Compare(p, (&Runner{Version: "v"}).Run(t.Context(), p.Trials()), DefaultTest())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		pair := &x.Pairs[0]
		var names []string
		for _, e := range pair.Primary() {
			names = append(names, e.Name)
		}
		if pair.Family < 6 || pair.Family > 8 {
			t.Errorf("%s: a family of %d: %v", name, pair.Family, names)
		}
		for _, want := range c.want {
			if !slices.Contains(names, want) {
				t.Errorf("%s: %s is not among %v", name, want, names)
			}
		}
	}
}

// TestAliases verifies that aliases are merged under the primary name, and that with few distinct values proportional
// metrics keep their names.
func TestAliases(t *testing.T) {
	arm := func(b float64) func(*result.Result, int) {
		return func(r *result.Result, rep int) {
			v := 100 + wave(rep) + b*float64(rep%4)
			r.Set("all.latency.mean", v)
			r.Set("read.latency.mean", v)
			r.Set("workload[0].read.latency.mean", v)
			r.Set("read.iops", 1000+v)
			r.Set("read.bandwidth", 4096*(1000+v))
			r.Set("read.latency.p99", -v) // no real latency; it has the opposite sign
			r.Set("ssd.gc.count", 2+2*b)
			r.Set("ssd.writes.gc", 5+5*b)
			r.Set("ssd.gc.pages_moved", 5+5*b)
			r.Set("ssd.waf", 2)
			r.Set("ssd.waf.bytes", 2)
		}
	}
	p, out := armsOf(10, arm(0), arm(1))
	x, err := Compare(p, out, DefaultTest())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, e := range x.Pairs[0].Effects {
		got[e.Name] = e.Aliases
	}
	want := map[string][]string{
		"read.latency.mean": {"all.latency.mean", "workload[0].read.latency.mean"}, "read.iops": {"read.bandwidth"},
		"read.latency.p99": nil,
		"ssd.gc.count":     nil, "ssd.writes.gc": {"ssd.gc.pages_moved"}, "ssd.waf": nil, "ssd.waf.bytes": nil,
	}
	for name, aliases := range want {
		if mine, ok := got[name]; !ok || !slices.Equal(mine, aliases) {
			t.Errorf("%s: %v, %v; want %v", name, ok, mine, aliases)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %v", got)
	}
	if n := x.Pairs[0].Family; n != 2 {
		t.Errorf("%d primary metrics were tested", n)
	}
	// A metric can be requested by its alias.
	test := DefaultTest()
	test.Metrics = []string{"read.bandwidth"}
	if x, err = Compare(p, out, test); err != nil || x.Pairs[0].Primary()[0].Name != "read.bandwidth" ||
		!slices.Equal(x.Pairs[0].Primary()[0].Aliases, []string{"read.iops"}) {
		t.Errorf("%+v, %v", x, err)
	}
}
