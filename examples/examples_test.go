package examples

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"farflash/experiment"
	"farflash/scenario"
	"farflash/shape"
	"farflash/trial"
)

// run simulates an example with changes and returns its metrics.
func run(t *testing.T, name string, changes ...shape.Change) func(string) float64 {
	t.Helper()
	src, err := scenario.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(src, changes)
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
	for _, w := range out.Result.Warnings {
		t.Logf("warning: %s", w)
	}
	return func(metric string) float64 {
		t.Helper()
		m, ok := out.Result.Metric(metric)
		if !ok {
			t.Fatalf("%s has no metric %s", name, metric)
		}
		t.Logf("%s %s = %v %s", name, metric, m.Value, m.Unit)
		return m.Value
	}
}

// TestAll holds that every example is tested here.
func TestAll(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 6 {
		t.Errorf("there are %d examples, and tests for 6", len(files))
	}
}

func TestNoisyNeighbour(t *testing.T) {
	urgent := run(t, "noisy-neighbour.yaml")("read.latency.mean")
	equal := run(t, "noisy-neighbour.yaml", shape.Change{Path: "workload[*].queue.class", Value: "medium"})("read.latency.mean")
	if urgent > 0.75*equal {
		t.Errorf("the mean read takes %v us if the small ones are urgent, %v us if all are equal", urgent, equal)
	}
}

func TestStreams(t *testing.T) {
	apart := run(t, "streams.yaml")("ssd.waf")
	mixed := run(t, "streams.yaml", shape.Change{Path: "workload[*].placement", Value: "0"})("ssd.waf")
	if apart > 0.9*mixed {
		t.Errorf("write amplification is %v with streams and %v without", apart, mixed)
	}
}

func TestBursts(t *testing.T) {
	bursts := run(t, "bursts.yaml")("read.latency.p99")
	smooth := run(t, "bursts.yaml", shape.Change{Path: "workload[0].synthetic.reads.interarrival", Value: "{mean: 1500ns, kind: exponential}"})("read.latency.p99")
	if bursts < 2*smooth {
		t.Errorf("the 99th percentile is %v us with bursts and %v us without", bursts, smooth)
	}
}

func TestShortQueues(t *testing.T) {
	deep := run(t, "short-queues.yaml")
	short := run(t, "short-queues.yaml", shape.Change{Path: "nvmf.queue_depth", Value: "4"})
	if deep("fabric.pause.count") == 0 || short("fabric.pause.count") > 0 {
		t.Error("deep queues are to pause the network, short ones not")
	}
	if a, b := deep("read.stage.network_back.mean"), short("read.stage.network_back.mean"); b > a/2 {
		t.Errorf("the way back takes %v us with deep queues and %v with short ones", a, b)
	}
	if a, b := deep("read.stage.initiator.mean"), short("read.stage.initiator.mean"); b < 10*a {
		t.Errorf("reads wait for %v us at the initiator with deep queues and %v with short ones", a, b)
	}
}

func TestClusterDrives(t *testing.T) {
	full := run(t, "cluster-drives.yaml")
	fresh := run(t, "cluster-drives.yaml", shape.Change{Path: "ssd.preconditioning.fill", Value: "none"}, shape.Change{Path: "measure", Value: "{until: 60ms, warm_up: 20%}"})
	if waf := full("ssd.waf"); waf < 1.2 || fresh("ssd.waf") > 1.05 {
		t.Errorf("a write amplification of %v on full drives and of %v on fresh ones", waf, fresh("ssd.waf"))
	}
	if a, b := full("cluster.put.iops"), fresh("cluster.put.iops"); a > 0.9*b {
		t.Errorf("%v chunks a second on full drives, %v on fresh ones", a, b)
	}
}

// TestClusterDrivesSteady: what the example measures is what a run of twice the time does.
func TestClusterDrivesSteady(t *testing.T) {
	if os.Getenv("FARFLASH_LONG") == "" {
		t.Skip("takes 20 s; set FARFLASH_LONG=1")
	}
	once := run(t, "cluster-drives.yaml")
	twice := run(t, "cluster-drives.yaml", shape.Change{Path: "measure", Value: "{until: 800ms, warm_up: 400ms}"})
	for _, m := range []string{"cluster.put.iops", "ssd.waf"} {
		if a, b := once(m), twice(m); a < 0.98*b || a > 1.02*b {
			t.Errorf("%s is %v, and %v later", m, a, b)
		}
	}
}

func TestOversubscribed(t *testing.T) {
	wide := shape.Change{Path: "fabric.up_link", Value: "40Gbps"}
	for _, protocol := range []string{"pull", "dctcp"} {
		p := shape.Change{Path: "object_cluster.protocol", Value: protocol}
		if narrow, enough := run(t, "oversubscribed.yaml", p)("cluster.put.iops"), run(t, "oversubscribed.yaml", p, wide)("cluster.put.iops"); narrow > 0.85*enough {
			t.Errorf("%s: %v chunks a second with a quarter of the rate between leaves, %v with all", protocol, narrow, enough)
		}
	}
}
