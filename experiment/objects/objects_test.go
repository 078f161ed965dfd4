package objects_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial/trialtest"
)

// TestClusterMix runs reads and writes of an open loop, on unequal disks and under a code, and verifies that all checks
// hold, that each operation has its figures, and that all arrivals complete.
func TestClusterMix(t *testing.T) {
	o := trialtest.Run(t, trialtest.SmallCluster, 3, "object_cluster.protocol=pull", "object_cluster.reads=60%",
		"object_cluster.load.share=50%", "object_cluster.outstanding=64",
		"object_cluster.code={data: 4, parity: 2}", "object_cluster.disk.kinds=[{share: 50%, rate: 200MiB/s}]",
		"object_cluster.objects=500", "measure.until=60ms", "measure.warm_up=20%")
	put, get := trialtest.Metric(t, o, "cluster.put.iops"), trialtest.Metric(t, o, "cluster.get.iops")
	if share := get / (put + get); share < 0.55 || share > 0.65 {
		t.Errorf("%.3f of chunks are read, not 60 %%", share)
	}
	if reached := trialtest.Metric(t, o, "cluster.bound.reached"); reached < 0.45 || reached > 0.55 {
		t.Errorf("%.3f of the bound, not the half that comes", reached)
	}
	for _, c := range o.Result.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// TestClusterRun verifies that two runs yield the same bytes, that every check holds, that figures agree with each
// other, and that scenarios accept SURGE's names.
func TestClusterRun(t *testing.T) {
	for _, protocol := range []string{"uch-ccp", "7", "replicast-h", "pull", "chain", "grants", "dctcp", "6", "9",
		"a", "b"} {
		o := trialtest.Run(t, trialtest.SmallCluster, 3, "object_cluster.protocol="+protocol, "measure.warm_up=20%")
		again := trialtest.Run(t, trialtest.SmallCluster, 3, "object_cluster.protocol="+protocol, "measure.warm_up=20%")
		a, err := o.Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := again.Result.Encode(); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: two runs differ (%v)", protocol, err)
		}
		if rate, bound := trialtest.Metric(t, o, "cluster.put.rate"),
			trialtest.Metric(t, o, "cluster.bound.rate"); rate <= 0 || rate > 1.03*bound {
			// part of the completed chunks' work was in the warm-up
			t.Errorf("%s: %g of %g B/s", protocol, rate, bound)
		}
		// Little's law: a gateway has one chunk outstanding, or two commands, except for those that span the ends of
		// the measured time.
		if n := trialtest.Metric(t, o, "cluster.put.iops") * trialtest.Metric(t, o, "cluster.put.latency.mean") /
			1e6 / map[bool]float64{true: 2, false: 1}[protocol == "b"]; n < 14 || n > 20 {
			t.Errorf("%s: %g chunks outstanding, not about 18", protocol, n)
		}
		s, err := trialtest.Parse(trialtest.SmallCluster, "object_cluster.compat=surge-d92018f")
		if err != nil {
			t.Fatal(err)
		}
		trialtest.RoundTrip(t, s)
		if s.ObjectCluster.Control.Queued {
			t.Error("SURGE's control messages queue")
		}
	}
}

// TestClusterDrives verifies that targets whose disks are garbage-collecting drives reach the drives' rate and no more,
// satisfy the laws of both, and continue when one of them fails midway.
func TestClusterDrives(t *testing.T) {
	const text = `ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 24, pages_per_block: 32}, preconditioning: {fill: steady}}
object_cluster: {gateways: 6, targets: 6, group: 3, protocol: pull, chunk: 256KiB, outstanding: 4, disk: {model: ssd, rate: 1GB/s}, link: {rate: 100Gbps}}
measure: {until: 60ms, warm_up: 20%}`
	for _, failure := range []string{"[]", "[{target: 2, at: 20ms}]"} {
		o := trialtest.Run(t, text, 3, "object_cluster.failures="+failure)
		if waf := trialtest.Metric(t, o, "ssd.waf"); waf <= 1.05 || waf > 10 {
			t.Errorf("failures %s: a write amplification of %v on full drives", failure, waf)
		}
		if reached := trialtest.Metric(t, o, "cluster.bound.reached"); reached < 0.1 || reached > 1 {
			t.Errorf("failures %s: %.3f of the bound", failure, reached)
		}
		for _, c := range o.Result.Checks {
			if !c.OK {
				t.Errorf("failures %s: %s: %s", failure, c.Name, c.Detail)
			}
		}
	}
}

// TestClusterReplay verifies that a trace's requests arrive as the chunks that they touch, reads and writes at its
// times.
func TestClusterReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.csv")
	var b strings.Builder
	b.WriteString("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n")
	for i := range 100 {
		op := "Write"
		if i%4 == 0 {
			op = "Read"
		}
		// two or more chunks of 128 KiB every 100 us
		fmt.Fprintf(&b, "%d,host,0,%s,%d,%d,100\n", 128166372000000000+int64(i)*1000, op, i<<20, 200<<10)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	o := trialtest.Run(t, "workload: [{trace: {file: "+file+"}}]\n"+trialtest.SmallCluster, 3,
		"object_cluster.protocol=pull", "object_cluster.outstanding=8", "measure.until=40ms", "measure.warm_up=none")
	if put, get := trialtest.Metric(t, o, "cluster.put.count"),
		trialtest.Metric(t, o, "cluster.get.count"); put != 150 || get != 50 {
		t.Errorf("%v chunks put and %v got, not 150 and 50", put, get)
	}
	if _, err := trialtest.Parse("workload: [{trace: {file: "+file+"}}]\n"+trialtest.SmallCluster,
		"object_cluster.reads=10%"); err == nil {
		t.Error("reads beside a trace are not refused")
	}
}

// TestClusterLinks verifies that links are busy at most all of the time, for any backlog and any end of the run, and
// that in a packet network their utilisation covers at least the payload they carry.
func TestClusterLinks(t *testing.T) {
	const text = `object_cluster: {gateways: 4, targets: 8, chunk: 64KiB, protocol: grants, core: packet}
fabric: {topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 6}}}
measure: {until: 2ms}
`
	for _, set := range [][]string{
		{"measure.until=1ps"}, {"measure.until=1ns"}, {"measure.until=1us"}, {"object_cluster.outstanding=255"},
		{"object_cluster.outstanding=255", "object_cluster.disk.rate=10GiB/s"},
		{"object_cluster.protocol=pull", "object_cluster.group=4", "object_cluster.outstanding=255"},
		{"object_cluster.core=ideal", "fabric=null", "object_cluster.outstanding=255"},
		{"object_cluster.core=ideal", "fabric=null", "measure.until=1ps"},
	} {
		o := trialtest.Run(t, text, 1, set...)
		if busy := trialtest.Metric(t, o, "cluster.link.utilisation"); busy < 0 || busy > 1 {
			t.Errorf("%q: links are busy %v of the time", set, busy)
		}
	}
	o := trialtest.Run(t, text, 1, "fabric.host_link=10Gbps", "object_cluster.replicas=2")
	busy, rate := trialtest.Metric(t, o, "cluster.link.utilisation"), trialtest.Metric(t, o, "cluster.put.rate")
	// Each replica enters a target once and leaves a gateway once: transports are between two nodes.
	least := 2 * 2 * rate * 8 / (12 * 10e9)
	if busy < least || busy > 1.3*least {
		t.Errorf("links are busy %.4f of the time; what is put takes %.4f", busy, least)
	}
}

// TestClusterNetwork verifies that on a packet network every protocol satisfies its laws, that on an idle network
// without oversubscription pull behaves as on the ideal core, and that oversubscription has a cost.
func TestClusterNetwork(t *testing.T) {
	const text = `object_cluster: {gateways: 8, targets: 8, group: 4, protocol: pull, core: packet, disk: {rate: 400MiB/s}}
fabric: {topology: {leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 8}}, host_link: 10Gbps, up_link: 100Gbps}
measure: {until: 16ms, warm_up: 4ms}`
	for _, protocol := range []string{"uch-ccp", "replicast-m", "replicast-h", "pull", "chain", "grants", "dctcp"} {
		o := trialtest.Run(t, text, 3, "object_cluster.protocol="+protocol)
		for _, c := range o.Result.Checks {
			if !c.OK {
				t.Errorf("%s: %s: %s", protocol, c.Name, c.Detail)
			}
		}
		narrow := trialtest.Metric(t,
			trialtest.Run(t, text, 3, "object_cluster.protocol="+protocol, "object_cluster.disk.rate=1000MiB/s",
				"fabric.up_link=10Gbps"), "cluster.put.iops")
		wide := trialtest.Metric(t,
			trialtest.Run(t, text, 3, "object_cluster.protocol="+protocol, "object_cluster.disk.rate=1000MiB/s"),
			"cluster.put.iops")
		if narrow >= 0.95*wide {
			t.Errorf("%s: %v chunks a second with up links that carry an eighth, %v with all", protocol, narrow, wide)
		}
		if protocol == "pull" {
			if reached := trialtest.Metric(t, o, "cluster.bound.reached"); reached < 0.97 || reached > 1.03 {
				t.Errorf("pull reaches %.3f of the bound on a network that is not busy", reached)
			}
		}
	}
}

// TestClusterLasting: durability follows the protocol's groups and the placement, and the simulation of accelerated
// failures agrees with the chain.
func TestClusterLasting(t *testing.T) {
	nines := map[string]float64{}
	for _, c := range []string{"replicast-m", "pull", "chain", "chain copysets"} {
		protocol, placement, there := strings.Cut(c, " ")
		overrides := []string{"object_cluster.protocol=" + protocol, "object_cluster.durability.afr=2%",
			"object_cluster.targets=90"}
		if there {
			overrides = append(overrides, "object_cluster.placement="+placement)
		}
		o := trialtest.Run(t, trialtest.SmallCluster, 3, overrides...)
		nines[c] = trialtest.Metric(t, o, "cluster.durability.nines")
		chain, simulated, half := trialtest.Metric(t, o, "cluster.durability.accelerated.chain"),
			trialtest.Metric(t, o, "cluster.durability.accelerated.simulated"),
			trialtest.Metric(t, o, "cluster.durability.accelerated.half")
		if math.Abs(chain-simulated) > 2*half { // about four standard errors
			t.Errorf("%s: %v years by the chain, %v +- %v as simulated", c, chain, simulated, half)
		}
	}
	if nines["pull"] != nines["chain"] || nines["chain copysets"] <= nines["chain"] {
		t.Errorf("nines: %v; few copysets lose less often, and where chunks may go anywhere the protocol does not "+
			"matter", nines)
	}
	o := trialtest.Run(t, trialtest.SmallCluster, 3)
	if rules := trialtest.Metric(t, o, "cluster.multicast.rules"); rules != 2*(84+36)+2 {
		t.Errorf("%v rules for two groups of nine with three replicas", rules)
	}
}

// TestClusterTrend verifies that an overloaded open loop is reported as such, and that a closed loop has no such
// figures.
func TestClusterTrend(t *testing.T) {
	for _, c := range []struct {
		share  string
		growth [2]float64
		drift  [2]float64
	}{
		{"50%", [2]float64{-0.05, 0.05}, [2]float64{-0.2, 0.2}},
		{"150%", [2]float64{0.25, 0.45}, [2]float64{0.5, 5}},
	} {
		o := trialtest.Run(t, trialtest.SmallCluster, 3, "object_cluster.protocol=pull",
			"object_cluster.load.share="+c.share, "object_cluster.outstanding=64", "measure.until=100ms",
			"measure.warm_up=20%")
		growth, _ := o.Result.Metric("cluster.backlog.growth")
		drift, _ := o.Result.Metric("cluster.drift")
		if growth.Value < c.growth[0] || growth.Value > c.growth[1] || drift.Value < c.drift[0] ||
			drift.Value > c.drift[1] {
			t.Errorf("at %s the backlog grows by %v and times by %v", c.share, growth.Value, drift.Value)
		}
	}
	if _, there := trialtest.Run(t, trialtest.SmallCluster, 3).Result.Metric("cluster.drift"); there {
		t.Error("a closed loop has a drift")
	}
}

// TestLadder verifies that a run's result has the message sequence of some chunks, each with its messages in order and
// all its replicas.
func TestLadder(t *testing.T) {
	hops := map[string][]float64{} // sources of data among targets; -1 is a gateway
	for _, protocol := range []string{"replicast-m", "replicast-h", "uch-ccp", "pull", "chain", "grants", "dctcp"} {
		out := trialtest.Run(t, trialtest.SmallCluster, 1, "object_cluster.protocol="+protocol, "measure.until=20ms",
			"measure.warm_up=25%")
		m, ok := out.Result.Matrix("cluster.protocol")
		if !ok {
			t.Fatalf("%s: there is none", protocol)
		}
		col := func(name string) int { return slices.Index(m.Cols, name) }
		count := map[string]int{}
		for i, kind := range m.Rows {
			v := m.V[i]
			if v[col("chunk")] != 1 {
				continue
			}
			count[kind]++
			if v[col("end")] < v[col("begin")] || v[col("begin")] < (out.Result.WarmUp.UntilS*1e6) {
				t.Errorf("%s: %s from %g to %g us, the warm-up ends at %g s", protocol, kind, v[col("begin")],
					v[col("end")], out.Result.WarmUp.UntilS)
			}
		}
		if count["< ack"] != 3 || count["data"] != 3 || count["disk"] != 3 || count["put"] != 1 {
			t.Errorf("%s: %v", protocol, count)
		}
		if protocol == "pull" && (count["> request"] == 0 || count["< offer"] < 3 || count["> take"] == 0) {
			t.Errorf("%v", count)
		}
		for i, kind := range m.Rows {
			if v := m.V[i]; kind == "data" && v[col("chunk")] == 1 {
				hops[protocol] = append(hops[protocol], v[col("from")])
			}
		}
		if chained := protocol == "pull" || protocol == "chain"; chained != (slices.Max(hops[protocol]) >= 0) ||
			!slices.Contains(hops[protocol], -1) {
			t.Errorf("%s: data comes from %v", protocol, hops[protocol])
		}
		if protocol == "replicast-m" &&
			(count["> request"] != 9 || count["< bid"] != 9 || count["> accept"] != 9 || count["accepted"] != 3 ||
				count["canceled"] != 6 || count["tentative"] != 3) {
			t.Errorf("%v", count)
		}
	}
}

// TestLadderOfGets verifies that the sequence of a read goes from the request over the disk to the data at its gateway.
func TestLadderOfGets(t *testing.T) {
	for read, first := range map[string]string{"bids": "> read request", "least-loaded": "> read request",
		"random": "> read", "tied": "> read"} {
		out := trialtest.Run(t, trialtest.SmallCluster, 1, "object_cluster.protocol=pull",
			"object_cluster.reads=100%", "object_cluster.objects=500", "object_cluster.read="+read,
			"measure.until=20ms", "measure.warm_up=25%")
		m, ok := out.Result.Matrix("cluster.protocol")
		if !ok {
			t.Fatalf("%s: there is none", read)
		}
		col := func(name string) int { return slices.Index(m.Cols, name) }
		at := map[string]float64{} // start times of the first chunk's steps
		for i, kind := range m.Rows {
			if v := m.V[i]; v[col("chunk")] == 1 {
				if _, ok := at[kind]; !ok {
					at[kind] = v[col("begin")]
				}
			}
		}
		order := []string{first, "> read", "disk reads", "got"}
		for k, kind := range order {
			if _, ok := at[kind]; !ok || k > 0 && at[kind] < at[order[k-1]] {
				t.Errorf("%s: %s at %v, all: %v", read, kind, at[kind], at)
			}
		}
		if _, ok := at["get"]; !ok || at["data"] > 0 || at["put"] > 0 {
			t.Errorf("%s: %v", read, at)
		}
	}
}
