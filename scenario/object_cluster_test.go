package scenario

import (
	"bytes"
	"errors"
	"farflash/shape"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallCluster = `object_cluster: {gateways: 18, targets: 18}
measure: {until: 5ms}
`

func TestClusterMistakes(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"misspelt section", "object_cluster", "object_clusters", `a.yaml:1:1: unknown key "object_clusters" in the scenario; did you mean "object_cluster"?`},
		{"misspelt key", "gateways", "gateway", `a.yaml:1:18: unknown key "gateway" in object_cluster; did you mean "gateways"?`},
		{"misspelt protocol", "gateways: 18", "protocol: replicast", `a.yaml:1:28: object_cluster.protocol: "replicast" is not possible; use uch-ccp, uch-ccp-inverse, replicast-m, replicast-h, pull, chain, grants, dctcp, uch-aimd, replicast-h-double`},
		{"few targets", "targets: 18", "targets: 2", "a.yaml:1:41: object_cluster.targets: 2 are one group; Replicast needs at least two, 18 targets"},
		{"odd groups", "targets: 18", "targets: 20", "a.yaml:1:17: object_cluster.group: 9 does not divide the 20 targets; the nearest number of targets that it divides is 18"},
		{"no chunk", "gateways: 18", "chunk: 0B", "a.yaml:1:25: object_cluster.chunk: 0B is not possible; use 1B to 1GiB"},
		{"without an end", "until: 5ms", "warm_up: auto", "a.yaml:2:10: measure.until: gateways put chunks for ever; give a time such as 10ms"},
		{"flows", "until: 5ms", "until: 5ms, flows: true", "a.yaml:2:30: measure.flows: an object cluster has none"},
		{"a bad pattern", "gateways: 18", "protocol: storm, traffic: {choices: 0}", "a.yaml:1:54: object_cluster.traffic.choices: 0 is not possible; use 1 to 64"},
		{"a pattern of nothing", "gateways: 18", "traffic: {choices: 2}", "a.yaml:1:27: object_cluster.traffic: gateways with replicast-m do not exchange events; leave it out, or use a protocol such as storm"},
		{"tiers of nothing", "gateways: 18", "protocol: 1, tier: {cycle: 2}", "a.yaml:1:37: object_cluster.tier: gateways with storm do not fill tiers; leave it out, or use protocol: tiering"},
		{"compat of events", "gateways: 18", "protocol: 1, compat: surge-d92018f", "a.yaml:1:39: object_cluster.compat: storm has no rules of SURGE's to follow; leave it out"},
		{"a trace of events", "gateways: 18, targets: 18}", "protocol: 1}\nworkload: [{trace: {file: a.csv}}]", "a.yaml:2:11: workload: storm has a load of its own and replays no trace; leave it out, or use a protocol such as replicast-m"},
		{"a bad tier", "gateways: 18, targets: 18", "protocol: c, tier: {ssd: {capacity: 1MiB}}", "a.yaml:1:54: object_cluster.tier.ssd.capacity: 1MiB is too little for chunks of 1MiB; use at least 2MiB"},
		{"a build without it", "gateways: 18", "protocol: replicast-proxy, compat: surge-d92018f", "a.yaml:1:53: object_cluster.compat: surge-d92018f has no replicast-proxy; use surge-9872498"},
		{"choosy without a choice", "gateways: 18", "choosy: true", "a.yaml:1:26: object_cluster.choosy: replicast-m does not choose among windows that follow each other; leave it out, or use replicast-h"},
		{"with a drive", "measure", "ssd: tlc-enterprise\nmeasure", "a.yaml:2:6: ssd: the targets of an object cluster have such drives with object_cluster.disk.model: ssd only; set that, or leave ssd out"},
		{"without its drive", "gateways: 18", "disk: {model: ssd}", `a.yaml:1:32: object_cluster.disk.model: there is no section ssd that says which drive; add one, such as ssd: tlc-enterprise`},
		{"two traces", "measure", "workload: [{trace: {file: a.csv}}, {trace: {file: b.csv}}]\nmeasure", "a.yaml:2:11: workload: an object cluster replays one trace; leave out all others, or say with object_cluster.load how many chunks come"},
		{"a code for multicast", "gateways: 18", "code: {data: 4, parity: 2}", "a.yaml:1:24: object_cluster.code: replicast-m sends the same to all targets, and the pieces of a code differ; use replicast-h or pull"},
		{"two loads", "gateways: 18", "load: {rate: 100, share: 50%}", "a.yaml:1:43: object_cluster.load.share: the load is given twice; leave rate or share out"},
		{"placement of groups", "gateways: 18", "placement: hrw", "a.yaml:1:29: object_cluster.placement: hrw decides nothing: the group of a chunk bids for it; leave it out, or use another protocol"},
		{"shares of disks", "gateways: 18", "disk: {kinds: [{share: 60%}, {share: 50%}]}", "a.yaml:1:32: object_cluster.disk.kinds: the shares add up to 110%; use at most 100%"},
		{"hedging alone", "gateways: 18", "reads: 50%, read: hedged, replicas: 1", `a.yaml:1:36: object_cluster.read: hedged needs another target to ask, and a chunk is read from all 1 that have it`},
		{"SURGE that queues", "gateways: 18", "compat: surge-d92018f, control: {queued: true}", "a.yaml:1:59: object_cluster.control.queued: SURGE's control messages never wait for each other; use false, or compat: none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(smallCluster, c.old, c.new, 1)
			_, err := parse(text)
			var errs shape.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("error %v is not located", err)
			}
			found := false
			for _, line := range strings.Split(err.Error(), "\n") {
				found = found || strings.HasPrefix(line, c.want)
			}
			if !found {
				t.Errorf("got\n%v\nwant\n%v", err, c.want)
			}
		})
	}
}

// TestClusterOthers: SURGE's models that put nothing, by their numbers: the same bytes twice, every check holds, and what they have in common with
// their closed forms.
func TestClusterOthers(t *testing.T) {
	for _, x := range []struct {
		number, metric string
		least, most    float64
	}{
		{"1", "cluster.bound.reached", 0.95, 1.05}, {"1.1", "cluster.bound.reached", 0.95, 1.05}, {"2", "cluster.bound.reached", 0.95, 1.05}, {"2.1", "cluster.bound.reached", 0.95, 1.05},
		{"3", "cluster.bound.reached", 0.95, 1.05}, {"4", "cluster.bound.reached", 0.95, 1.05}, {"c", "cluster.tier.used", 0.2, 0.75},
	} {
		text := "object_cluster: {protocol: " + x.number + "}\nmeasure: {until: 200us, warm_up: 20%, requests: true}\n"
		if x.number == "c" {
			text = strings.Replace(text, "200us", "1s", 1)
		}
		o, again := run(t, text, 3), run(t, text, 3)
		a, err := o.Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := again.Result.Encode(); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: two runs differ (%v)", x.number, err)
		}
		if got := metric(t, o, x.metric); got < x.least || got > x.most {
			t.Errorf("%s: %s is %g, not %g to %g", x.number, x.metric, got, x.least, x.most)
		}
		if !o.Result.OK() {
			t.Errorf("%s: %+v", x.number, o.Result.Checks)
		}
		s, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, s)
		rows := 0
		if _, err := s.Run(t.Context(), Options{Seed: 1, Chunk: func(Chunk) error { rows++; return nil }}); err != nil || rows < 100 {
			t.Errorf("%s: %d rows, %v", x.number, rows, err)
		}
	}
}

// TestClusterMix: reads and writes of an open loop, on unequal disks and under a code: all checks hold, each kind has its figures, and what comes is done.
func TestClusterMix(t *testing.T) {
	o := run(t, smallCluster, 3, "object_cluster.protocol=pull", "object_cluster.reads=60%", "object_cluster.load.share=50%", "object_cluster.outstanding=64",
		"object_cluster.code={data: 4, parity: 2}", "object_cluster.disk.kinds=[{share: 50%, rate: 200MiB/s}]", "object_cluster.objects=500", "measure.until=60ms", "measure.warm_up=20%")
	put, get := metric(t, o, "cluster.put.iops"), metric(t, o, "cluster.get.iops")
	if share := get / (put + get); share < 0.55 || share > 0.65 {
		t.Errorf("%.3f of chunks are read, not 60 %%", share)
	}
	if reached := metric(t, o, "cluster.bound.reached"); reached < 0.45 || reached > 0.55 {
		t.Errorf("%.3f of the bound, not the half that comes", reached)
	}
	for _, c := range o.Result.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// TestClusterRun: the same bytes twice, every check holds, figures agree with each other, and the scenario by SURGE's names.
func TestClusterRun(t *testing.T) {
	for _, protocol := range []string{"uch-ccp", "7", "replicast-h", "pull", "chain", "grants", "dctcp", "6", "9", "a", "b"} {
		o := run(t, smallCluster, 3, "object_cluster.protocol="+protocol, "measure.warm_up=20%")
		again := run(t, smallCluster, 3, "object_cluster.protocol="+protocol, "measure.warm_up=20%")
		a, err := o.Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := again.Result.Encode(); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: two runs differ (%v)", protocol, err)
		}
		if rate, bound := metric(t, o, "cluster.put.rate"), metric(t, o, "cluster.bound.rate"); rate <= 0 || rate > 1.03*bound { // chunks that are done had part of their work in the warm-up
			t.Errorf("%s: %g of %g B/s", protocol, rate, bound)
		}
		// Little's law: a gateway has one chunk outstanding, or two commands, but for those that have not begun or ended in the measured time.
		if n := metric(t, o, "cluster.put.iops") * metric(t, o, "cluster.put.latency.mean") / 1e6 / map[bool]float64{true: 2, false: 1}[protocol == "b"]; n < 14 || n > 20 {
			t.Errorf("%s: %g chunks outstanding, not about 18", protocol, n)
		}
		s, err := parse(smallCluster, "object_cluster.compat=surge-d92018f")
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, s)
		if s.ObjectCluster.Control.Queued {
			t.Error("SURGE's control messages queue")
		}
	}
}

// TestClusterDrives: targets whose disks are drives that collect garbage reach what the drives can do and not more, keep the laws of both, and go on when
// one of them fails in the middle.
func TestClusterDrives(t *testing.T) {
	const text = `ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 24, pages_per_block: 32}, preconditioning: {fill: steady}}
object_cluster: {gateways: 6, targets: 6, group: 3, protocol: pull, chunk: 256KiB, outstanding: 4, disk: {model: ssd, rate: 1GB/s}, link: {rate: 100Gbps}}
measure: {until: 60ms, warm_up: 20%}`
	for _, failure := range []string{"[]", "[{target: 2, at: 20ms}]"} {
		o := run(t, text, 3, "object_cluster.failures="+failure)
		if waf := metric(t, o, "ssd.waf"); waf <= 1.05 || waf > 10 {
			t.Errorf("failures %s: a write amplification of %v on full drives", failure, waf)
		}
		if reached := metric(t, o, "cluster.bound.reached"); reached < 0.1 || reached > 1 {
			t.Errorf("failures %s: %.3f of the bound", failure, reached)
		}
		for _, c := range o.Result.Checks {
			if !c.OK {
				t.Errorf("failures %s: %s: %s", failure, c.Name, c.Detail)
			}
		}
	}
}

// TestClusterReplay: a trace's requests come as the chunks that they touch, reads and writes at its times.
func TestClusterReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.csv")
	var b strings.Builder
	b.WriteString("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n")
	for i := range 100 {
		op := "Write"
		if i%4 == 0 {
			op = "Read"
		}
		fmt.Fprintf(&b, "%d,host,0,%s,%d,%d,100\n", 128166372000000000+int64(i)*1000, op, i<<20, 200<<10) // two or more chunks of 128 KiB each 100 us
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := run(t, "workload: [{trace: {file: "+file+"}}]\n"+smallCluster, 3, "object_cluster.protocol=pull", "object_cluster.outstanding=8", "measure.until=40ms", "measure.warm_up=none")
	if put, get := metric(t, o, "cluster.put.count"), metric(t, o, "cluster.get.count"); put != 150 || get != 50 {
		t.Errorf("%v chunks put and %v got, not 150 and 50", put, get)
	}
	if _, err := parse("workload: [{trace: {file: "+file+"}}]\n"+smallCluster, "object_cluster.reads=10%"); err == nil {
		t.Error("reads beside a trace are not refused")
	}
}

// TestClusterNetwork: on a network of packets every protocol keeps its laws, on an idle one that is not oversubscribed pull does what it does on the ideal core, and an
// oversubscribed one costs something.
func TestClusterNetwork(t *testing.T) {
	const text = `object_cluster: {gateways: 8, targets: 8, group: 4, protocol: pull, core: packet, disk: {rate: 400MiB/s}}
fabric: {topology: {leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 8}}, host_link: 10Gbps, up_link: 100Gbps}
measure: {until: 16ms, warm_up: 4ms}`
	for _, protocol := range []string{"uch-ccp", "replicast-m", "replicast-h", "pull", "chain", "grants", "dctcp"} {
		o := run(t, text, 3, "object_cluster.protocol="+protocol)
		for _, c := range o.Result.Checks {
			if !c.OK {
				t.Errorf("%s: %s: %s", protocol, c.Name, c.Detail)
			}
		}
		narrow := metric(t, run(t, text, 3, "object_cluster.protocol="+protocol, "object_cluster.disk.rate=1000MiB/s", "fabric.up_link=10Gbps"), "cluster.put.iops")
		wide := metric(t, run(t, text, 3, "object_cluster.protocol="+protocol, "object_cluster.disk.rate=1000MiB/s"), "cluster.put.iops")
		if narrow >= 0.95*wide {
			t.Errorf("%s: %v chunks a second with up links that carry an eighth, %v with all", protocol, narrow, wide)
		}
		if protocol == "pull" {
			if reached := metric(t, o, "cluster.bound.reached"); reached < 0.97 || reached > 1.03 {
				t.Errorf("pull reaches %.3f of the bound on a network that is not busy", reached)
			}
		}
	}
}

// TestClusterLasting: durability follows the protocol's groups and the placement, and the simulation of accelerated failures agrees with the chain.
func TestClusterLasting(t *testing.T) {
	nines := map[string]float64{}
	for _, c := range []string{"replicast-m", "pull", "chain", "chain copysets"} {
		protocol, placement, there := strings.Cut(c, " ")
		overrides := []string{"object_cluster.protocol=" + protocol, "object_cluster.durability.afr=2%", "object_cluster.targets=90"}
		if there {
			overrides = append(overrides, "object_cluster.placement="+placement)
		}
		o := run(t, smallCluster, 3, overrides...)
		nines[c] = metric(t, o, "cluster.durability.nines")
		chain, simulated, half := metric(t, o, "cluster.durability.accelerated.chain"), metric(t, o, "cluster.durability.accelerated.simulated"), metric(t, o, "cluster.durability.accelerated.half")
		if math.Abs(chain-simulated) > 2*half { // some four standard errors
			t.Errorf("%s: %v years by the chain, %v +- %v as simulated", c, chain, simulated, half)
		}
	}
	if nines["pull"] != nines["chain"] || nines["chain copysets"] <= nines["chain"] {
		t.Errorf("nines: %v; few copysets lose less often, and where chunks may go anywhere the protocol does not matter", nines)
	}
	o := run(t, smallCluster, 3)
	if rules := metric(t, o, "cluster.multicast.rules"); rules != 2*(84+36)+2 {
		t.Errorf("%v rules for two groups of nine with three replicas", rules)
	}
}
