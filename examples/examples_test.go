package examples

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/internal/patience"
	"farflash/scenario"
	"farflash/scenario/shape"
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

// TestAll verifies that every example is tested here.
func TestAll(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 22 {
		t.Errorf("there are %d examples, and tests for 22", len(files))
	}
}

func TestNoisyNeighbour(t *testing.T) {
	brief := []shape.Change{{Path: "workload[0].synthetic.requests", Value: "10000"},
		{Path: "workload[1].until", Value: "400ms"}}
	urgent := run(t, "noisy-neighbour.yaml", brief...)
	equal := run(t, "noisy-neighbour.yaml",
		append(brief, shape.Change{Path: "workload[*].queue.class", Value: "medium"})...)
	if a, b := urgent("tenant[0].slowdown.mean"), equal("tenant[0].slowdown.mean"); a > 0.2*b || a < 1 {
		t.Errorf("small reads take %v times as long as alone if they are urgent, %v times if all are equal", a, b)
	}
	if a, b := urgent("tenant[1].slowdown.mean"), equal("tenant[1].slowdown.mean"); a > 1.1*b {
		t.Errorf("the scan takes %v times as long as alone beside urgent reads, %v times if all are equal", a, b)
	}
	if a, b := urgent("fairness.slowdown"), equal("fairness.slowdown"); a < 3*b {
		t.Errorf("fairness of slowdown is %v if small reads are urgent, %v if all are equal", a, b)
	}
}

func TestHostsOfTenants(t *testing.T) {
	limited := run(t, "hosts-of-tenants.yaml")
	free := run(t, "hosts-of-tenants.yaml", shape.Change{Path: "nvmf.limits.r_bytes", Value: "0B/s"})
	for i, tenant := range []string{"web", "backup"} { // each has its host's requests, and no others
		for _, x := range []func(string) float64{limited, free} {
			a, b := x(fmt.Sprintf("tenant[%d].read.count", i)), x(fmt.Sprintf("initiator[%d].read.count", i))
			if a != b || a == 0 {
				t.Errorf("%s has %v reads, its host %v", tenant, a, b)
			}
		}
	}
	if a, b := limited("tenant[1].read.bandwidth"), free("tenant[1].read.bandwidth"); a > 1.01*6e9 || b < 1.5*a {
		t.Errorf("the scan reads %v B/s of at most 6e9, and %v without a limit", a, b)
	}
	if a, b := limited("tenant[0].read.latency.p99"), free("tenant[0].read.latency.p99"); a < 1.5*b {
		t.Errorf("the p99 of small reads is %v us beside bursts, %v us beside a stream", a, b)
	}
}

func TestStreams(t *testing.T) {
	brief := []shape.Change{{Path: "workload[0].synthetic.requests", Value: "270000"},
		{Path: "workload[1].synthetic.requests", Value: "30000"}}
	apart := run(t, "streams.yaml", brief...)("ssd.waf")
	mixed := run(t, "streams.yaml",
		append(brief, shape.Change{Path: "workload[*].placement", Value: "0"})...)("ssd.waf")
	if apart > 0.9*mixed {
		t.Errorf("write amplification is %v with streams and %v without", apart, mixed)
	}
}

func TestBursts(t *testing.T) {
	bursts := run(t, "bursts.yaml")("read.latency.p99")
	smooth := run(t, "bursts.yaml",
		shape.Change{Path: "workload[0].synthetic.reads.interarrival",
			Value: "{mean: 1500ns, kind: exponential}"})("read.latency.p99")
	if bursts < 2*smooth {
		t.Errorf("the 99th percentile is %v us with bursts and %v us without", bursts, smooth)
	}
}

// TestOutage: hosts lose a target whose link is down, and find it again; the tail of reads is that of the outage and of
// the hosts' timers.
func TestOutage(t *testing.T) {
	x := run(t, "outage.yaml")
	if x("nvmf.losses") != 4 || x("nvmf.reconnects") != 4 || x("nvmf.failed") != 0 || x("nvmf.retries") != 16 {
		t.Errorf("%v losses, %v connected, %v commands repeated, %v failed", x("nvmf.losses"), x("nvmf.reconnects"),
			x("nvmf.retries"), x("nvmf.failed"))
	}
	if most := x("read.latency.max"); most < 500e3 {
		t.Errorf("no read took longer than %v us of an outage of 500 ms", most)
	}
	early := run(t, "outage.yaml", shape.Change{Path: "nvmf.host.keep_alive", Value: "40ms"})
	if early("nvmf.timeouts") != 0 || early("nvmf.unreachable") <= x("nvmf.unreachable") {
		t.Errorf("keep-alives do not find the loss earlier: %v and %v us", early("nvmf.unreachable"),
			x("nvmf.unreachable"))
	}
	fast := run(t, "outage.yaml", shape.Change{Path: "nvmf.host.fast_io_fail", Value: "100ms"})
	if fast("nvmf.failed") < 16 || fast("nvmf.reconnects") != 4 {
		t.Errorf("%v commands failed fast", fast("nvmf.failed"))
	}
}

// TestTwoPaths: reads that wait for a lost path are late by the hosts' timer, and the others are not; those that a
// target refuses go elsewhere.
func TestTwoPaths(t *testing.T) {
	for _, policy := range []string{"round-robin", "numa", "queue-depth", "service-time"} {
		x := run(t, "two-paths.yaml", shape.Change{Path: "nvmf.multipath.policy", Value: policy})
		if x("nvmf.losses") != 2 || x("nvmf.reconnects") != 2 || x("nvmf.failed") != 0 || x("nvmf.held.path") != 0 {
			t.Errorf("%s: %v losses, %v connected, %v failed, %v found no path", policy, x("nvmf.losses"),
				x("nvmf.reconnects"), x("nvmf.failed"), x("nvmf.held.path"))
		}
		if most := x("read.latency.max"); most < 100e3 || most > 100.1e3 {
			t.Errorf("%s: the slowest read took %v us, with a limit of 100 ms", policy, most)
		}
	}
}

// TestSharedReceives: with too few receives queue pairs wait for the timer of a refusal, and the target is idle; enough
// of them, a short timer or shared buffers instead lose no time.
func TestSharedReceives(t *testing.T) {
	const receives, file = "nvmf.receives.shared", "shared-receives.yaml"
	few := run(t, file)
	if n := few("nvmf.receives.refused"); n < 100 || few("nvmf.receives.max") != 256 || few("read.latency.p90") < 655e3 {
		t.Errorf("%v commands found none of 256 receives; p90 %v us", n, few("read.latency.p90"))
	}
	enough := run(t, file, shape.Change{Path: receives, Value: "512"})
	if n := enough("nvmf.receives.refused"); n > 0 {
		t.Errorf("%v of 512 commands found none of 512 receives", n)
	}
	soon := run(t, file, shape.Change{Path: "nvmf.receives.rnr_timer", Value: "10us"})
	buffers := run(t, file, shape.Change{Path: receives, Value: "0"}, shape.Change{Path: "nvmf.buffers", Value: "128"})
	if buffers("nvmf.held.buffers") == 0 {
		t.Error("no command waited for one of 128 buffers")
	}
	for name, x := range map[string]func(string) float64{"a short timer": soon, "buffers": buffers} {
		if got, want := x("read.iops"), enough("read.iops"); got < 0.97*want {
			t.Errorf("%s: %v reads a second of %v", name, got, want)
		}
	}
}

func TestShortQueues(t *testing.T) {
	brief := shape.Change{Path: "workload[0].synthetic.requests", Value: "8000"}
	deep := run(t, "short-queues.yaml", brief)
	short := run(t, "short-queues.yaml", brief, shape.Change{Path: "nvmf.queue_depth", Value: "4"})
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
	full := run(t, "cluster-drives.yaml", shape.Change{Path: "measure", Value: "{until: 100ms, warm_up: 50%}"})
	fresh := run(t, "cluster-drives.yaml", shape.Change{Path: "ssd.preconditioning.fill", Value: "none"},
		shape.Change{Path: "measure", Value: "{until: 60ms, warm_up: 20%}"})
	if waf := full("ssd.waf"); waf < 1.2 || fresh("ssd.waf") > 1.05 {
		t.Errorf("a write amplification of %v on full drives and of %v on fresh ones", waf, fresh("ssd.waf"))
	}
	if a, b := full("cluster.put.iops"), fresh("cluster.put.iops"); a > 0.9*b {
		t.Errorf("%v chunks a second on full drives, %v on fresh ones", a, b)
	}
}

// TestClusterDrivesSteady verifies that a run of twice the length gives the same figures as the example.
func TestClusterDrivesSteady(t *testing.T) {
	if !patience.Long(t) {
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
		if narrow, enough := run(t, "oversubscribed.yaml", p)("cluster.put.iops"),
			run(t, "oversubscribed.yaml", p, wide)("cluster.put.iops"); narrow > 0.85*enough {
			t.Errorf("%s: %v chunks a second with a quarter of the rate between leaves, %v with all", protocol,
				narrow, enough)
		}
	}
}

func TestTraining(t *testing.T) {
	spray, hash := run(t, "training.yaml"),
		run(t, "training.yaml", shape.Change{Path: "fabric.load_balancing.choice", Value: "hash"})
	if a, b := spray("collective.time.mean"), hash("collective.time.mean"); a > 0.75*b {
		t.Errorf("an all-reduce takes %.0f us with spraying and %.0f with a hash", a, b)
	}
	if spray("fabric.retransmits") > 0 || spray("fabric.reordered") == 0 {
		t.Error("packets are sent again, or none came out of order")
	}
}

func TestUltraEthernet(t *testing.T) {
	ultra := run(t, "ultra-ethernet.yaml")
	roce := run(t, "ultra-ethernet.yaml", shape.Change{Path: "fabric.congestion_control.algorithm", Value: "dcqcn"},
		shape.Change{Path: "fabric.load_balancing", Value: "{choice: hash}"},
		shape.Change{Path: "fabric.trimming.enabled", Value: "false"},
		shape.Change{Path: "fabric.pfc.enabled", Value: "true"})
	if ultra("fabric.trimmed") == 0 || ultra("fabric.timeouts") > 0 || ultra("fabric.pause.count") > 0 {
		t.Error("nothing is trimmed, or something waits for a timer or a pause")
	}
	if a, b := ultra("fabric.queue.max"), roce("fabric.queue.max"); a > 179e3 || a > b {
		t.Errorf("a queue of %v bytes, and of %v with pauses", a, b)
	}
	if a, b := ultra("flow.fct.max"), roce("flow.fct.max"); a > 1.05*b {
		t.Errorf("the last flow ends after %v us, with pauses after %v", a, b)
	}
}

func TestRAID(t *testing.T) {
	change := func(value string) func(string) float64 {
		return run(t, "raid.yaml", shape.Change{Path: "host_raid", Value: value})
	}
	five, six, mirrors := run(t, "raid.yaml"), change("{level: 6}"), change("{level: 1}")
	for _, c := range []struct {
		of   func(string) float64
		want float64 // write commands per small write
	}{{five, 2}, {six, 3}, {mirrors, 2}} {
		if got := c.of("raid.write.commands") / c.of("write.count"); got != c.want {
			t.Errorf("a small write is %v writes, and should be %v", got, c.want)
		}
	}
	if a, b := mirrors("write.latency.mean"), five("write.latency.mean"); b < 2*a {
		t.Errorf("a small write takes %v us with parity, and %v us with mirrors, which read nothing before", b, a)
	}
	degraded, rebuilt := change("{level: 5, failed: [2]}"), change("{level: 5, failed: [2], rebuild: 500MB/s}")
	if a, b := five("read.latency.mean"), degraded("read.latency.mean"); b < 1.02*a {
		t.Errorf("a read takes %v us, and %v us with a drive less", a, b)
	}
	if rebuilt("raid.rebuilt") < 0.002 || rebuilt("raid.rebuilt") > 0.5 ||
		rebuilt("read.latency.mean") < five("read.latency.mean") {
		t.Errorf("%v is rebuilt", rebuilt("raid.rebuilt"))
	}
}

func TestIdle(t *testing.T) {
	sleeps, awake := run(t, "idle.yaml"), run(t, "idle.yaml", shape.Change{Path: "ssd.power_states", Value: "[]"})
	if a, b := sleeps("ssd.energy"), awake("ssd.energy"); a > 0.5*b {
		t.Errorf("a drive that rests takes %v J, one that does not %v", a, b)
	}
	if a, b := sleeps("read.latency.p99"), awake("read.latency.p99"); a < 100*b || a > 45000 {
		t.Errorf("p99 of reads is %v us, without rest %v", a, b)
	}
	if rested := sleeps("ssd.power_states.rested"); rested < 0.5 || rested > 1 {
		t.Errorf("it rests for %v of the time", rested)
	}
}

func TestProcessors(t *testing.T) {
	for n, want := range map[string]float64{"1": 400e3, "2": 800e3} { // each handles one request per 2.5 us
		if got := run(t, "processors.yaml",
			shape.Change{Path: "ssd.controller.processors", Value: n})("read.iops"); got < 0.99*want ||
			got > want*1.001 {
			t.Errorf("%s processors: %v reads a second, not %v", n, got, want)
		}
	}
	without := run(t, "processors.yaml", shape.Change{Path: "ssd.controller", Value: "null"})("read.iops")
	if four := run(t, "processors.yaml")("read.iops"); four > 1.001*without || four < 0.95*without {
		t.Errorf("four processors: %v reads a second, without their time %v", four, without)
	}
}

func TestSLCCache(t *testing.T) {
	folded := run(t, "slc-cache.yaml")
	if a, b := folded("tenant[0].write.latency.mean"), folded("tenant[1].write.latency.mean"); b > 1.02*a ||
		a > 1.02*b {
		t.Errorf("the first burst's mean is %v us, the second's, after a rest, %v", a, b)
	}
	if n := folded("ssd.slc.folds"); n != 32*64 || folded("ssd.slc.share") < 0.8 {
		// 4 GiB are 32 superblocks of 64 blocks; those of the second burst are still in the cache
		t.Errorf("%v blocks were folded, %v of the writes went to the cache", n, folded("ssd.slc.share"))
	}
	hurried := run(t, "slc-cache.yaml", shape.Change{Path: "ssd.slc_cache.idle_after", Value: "30s"})
	if a, b := hurried("tenant[0].write.latency.mean"), hurried("tenant[1].write.latency.mean"); b < 2.5*a ||
		hurried("ssd.slc.folds") != 0 {
		t.Errorf("without a rest the second burst's mean is %v us, the first's %v", b, a)
	}
}

func TestFDP(t *testing.T) {
	brief := shape.Change{Path: "measure.until", Value: "6s"}
	apart := run(t, "fdp.yaml", brief)
	together := run(t, "fdp.yaml", brief, shape.Change{Path: "workload[*].placement", Value: "0"})
	if a, b := apart("ssd.waf"), together("ssd.waf"); a > 0.6*b {
		t.Errorf("write amplification is %v through handles of their own, %v through one", a, b)
	}
	if a, b := apart("ssd.fdp.mbmw")/apart("ssd.fdp.hbmw"), apart("ssd.waf.bytes"); a < 0.999*b || a > 1.001*b {
		t.Errorf("media bytes over host bytes are %v, the write amplification in bytes is %v", a, b)
	}
}

func TestReclaimGroups(t *testing.T) {
	two := run(t, "groups.yaml")
	one := run(t, "groups.yaml", shape.Change{Path: "ssd.fdp.groups", Value: "1"},
		shape.Change{Path: "workload[*].group", Value: "0"})
	if a, least, b := two("read.latency.max"), two("read.latency.min"), one("read.latency.p99_9"); a > 1.01*least ||
		b < 2*a {
		t.Errorf("reads take %v to %v us in a group of their own; in one with writes 1 in 1,000 takes %v or more",
			least, a, b)
	}
	if a, b := two("reclaim_group[1].waf"), one("ssd.waf"); a < 1.1*b {
		t.Errorf("write amplification is %v with half of the spare space, %v with all", a, b)
	}
	if n := two("reclaim_group[0].writes.host") + two("reclaim_group[0].writes.strayed") +
		two("reclaim_group[1].writes.strayed"); n != 0 {
		t.Errorf("%v grains went to the table's group, or past their own", n)
	}
}

func TestZones(t *testing.T) {
	zones := run(t, "zones.yaml")
	blocks := run(t, "zones.yaml", shape.Change{Path: "ssd.zones", Value: "null"},
		shape.Change{Path: "workload[*].zones", Value: "null"})
	if a, b := zones("ssd.waf"), blocks("ssd.waf"); a != 1 || b < 1.1 {
		t.Errorf("write amplification is %v with zones and %v without", a, b)
	}
	if a, b := zones("read.latency.p99_9"), blocks("read.latency.p99_9"); b < 2*a {
		t.Errorf("reads' 99.9th percentile is %v us with zones and %v without", a, b)
	}
	if a, b := zones("write.latency.p99"), blocks("write.latency.p99"); b < 20*a {
		t.Errorf("writes' 99th percentile is %v us with zones and %v without", a, b)
	}
}

func TestSharedLog(t *testing.T) {
	log := func(appends, closed, zones string) func(string) float64 {
		return run(t, "shared-log.yaml", shape.Change{Path: "workload[0].zones.append", Value: appends},
			shape.Change{Path: "workload[0].closed", Value: closed},
			shape.Change{Path: "workload[0].zones.at_once", Value: zones})
	}
	one := log("false", "1", "1")("write.iops")
	for _, c := range []struct {
		appends, closed, zones string
		least, most            float64 // relative to one write at a time
	}{{"true", "1", "1", 0.99, 1.01}, {"true", "4", "1", 3.9, 4}, {"true", "64", "1", 17, 19},
		{"false", "4", "1", 0.99, 1.02}, {"false", "64", "1", 0.99, 1.02}, {"false", "64", "4", 3.9, 4.1}} {
		x := log(c.appends, c.closed, c.zones)
		if got := x("write.iops") / one; got < c.least || got > c.most {
			t.Errorf("appends %s, %s writes at once, %s zones: %v times as many writes as one at a time", c.appends,
				c.closed, c.zones, got)
		}
		if x("ssd.waf") != 1 || x("ssd.zones.resets") < 5 {
			t.Error("something is moved, or nothing reset")
		}
	}
	if a, b := log("true", "64", "1")("initiator[3].write.count"),
		log("true", "64", "1")("write.count"); a < 0.12*b || a > 0.13*b {
		t.Errorf("one of eight hosts has written %v of %v", a, b)
	}
}

func TestNamespaces(t *testing.T) {
	apart, together := run(t, "namespaces.yaml"),
		run(t, "namespaces.yaml", shape.Change{Path: "ssd.namespaces", Value: "[{}, {}]"})
	alone := run(t, "namespaces.yaml", shape.Change{Path: "workload[1].closed", Value: "1"})
	if a, b := apart("namespace[0].read.latency.p99"), alone("namespace[0].read.latency.p99"); a > 1.05*b {
		t.Errorf("on dies of its own a reader's p99 is %v us beside a writer, %v beside little of one", a, b)
	}
	if a, b := apart("namespace[0].read.latency.p99"), together("namespace[0].read.latency.p99"); b < 3*a {
		t.Errorf("a reader's p99 is %v us on dies of its own, %v on dies that a writer uses too", a, b)
	}
}

func TestWorn(t *testing.T) {
	reliability := func(value string) func(string) float64 {
		return run(t, "worn.yaml", shape.Change{Path: "ssd.reliability", Value: value})
	}
	worn := run(t, "worn.yaml")
	fresh := reliability("{cycles: 0, retention: 0d}")
	refreshed := reliability("{cycles: 2000, retention: 1y, refresh: {at: 60%}}")
	if a, b := worn("read.latency.mean"), fresh("read.latency.mean"); a < 1.5*b {
		t.Errorf("reads of a worn drive take %v us, of a new one %v", a, b)
	}
	if a, b := refreshed("read.latency.mean"), fresh("read.latency.mean"); a > 1.1*b {
		t.Errorf("after refresh reads take %v us, of a new drive %v", a, b)
	}
	if worn("ssd.errors.retried") < 0.6 || fresh("ssd.errors.retried") > 0 ||
		refreshed("ssd.errors.retried") > 0.02 || worn("ssd.errors.failed") > 0 {
		t.Error("what is read again is not what the example says")
	}
}
