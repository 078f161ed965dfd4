package result

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$`)
	for _, table := range []*Table{Metrics, SeriesNames, HistogramNames, MatrixNames} {
		for _, d := range table.All() {
			if !name.MatchString(d.Name) {
				t.Errorf("%s %q is not a plain dotted name", table.what, d.Name)
			}
			if d.Help == "" || strings.HasSuffix(d.Help, ".") {
				t.Errorf("%s %s: help %q", table.what, d.Name, d.Help)
			}
			if _, ok := Units[d.Unit]; !ok {
				t.Errorf("%s %s: unknown unit %q", table.what, d.Name, d.Unit)
			}
		}
		// Groups are contiguous, or names of one group could not stand together.
		seen := map[string]bool{}
		last := ""
		for _, d := range table.All() {
			group, _, _ := strings.Cut(d.Name, ".")
			if group != last && seen[group] {
				t.Errorf("%s: group %s is in two places", table.what, group)
			}
			seen[group], last = true, group
		}
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]bool{
		"read.latency.p99": true, "ssd.waf": true, "ssd[0].waf": true, "ssd[12].queue.wait.host_read.urgent.mean": true,
		"ssd[511].utilisation.die": true, "ssd[3].read.count": true, "read.stage.network_back.mean": true, "write.stage.txq.mean": true, "all.stage.flash.mean": false,
		"": false, "read": false, "ssd[].waf": false, "ssd[-1].waf": false, "ssd[01].waf": false, "ssd[1.waf": false,
		"read[1].count": false, "ssd[1].nothing": false, "ssd[1]waf": false,
	} {
		if _, ok := Metrics.Lookup(name); ok != want {
			t.Errorf("Lookup(%q) = %v", name, ok)
		}
	}
}

func TestOrder(t *testing.T) {
	want := []string{"read.count", "read.latency.p50", "read.latency.max", "write.count", "all.count", "ssd.waf", "ssd.gc.count",
		"ssd[0].waf", "ssd[0].gc.count", "ssd[2].waf", "ssd[10].waf", "fabric.drops", "sim.events", "another", "x[y]"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Metrics.compare)
	if !slices.Equal(got, want) {
		t.Errorf("order is %v", got)
	}
}

// TestContract holds the names that CLI.md lists for drives and requests.
func TestContract(t *testing.T) {
	var names []string
	for _, k := range []string{"read", "write", "all"} {
		for _, m := range strings.Fields("count bytes iops bandwidth latency.mean latency.stddev latency.min latency.p50 latency.p90 latency.p95 latency.p99 latency.p99_9 latency.p99_99 latency.max") {
			names = append(names, k+"."+m)
		}
	}
	for _, m := range strings.Fields("waf gc.count gc.pages_moved flash.reads flash.programs flash.erases cmt.hit_ratio cache.hit_ratio utilisation.die utilisation.channel") {
		names = append(names, "ssd."+m, "ssd[3]."+m)
	}
	names = append(names, strings.Fields("fabric.pause.count fabric.pause.time fabric.ecn.marks fabric.cnp.count fabric.drops fabric.packet_hops fabric.retransmits fabric.queue.max flow.fct.mean flow.fct.p50 flow.fct.p99 flow.fct.max initiator.read.bandwidth target.write.bandwidth aggregate.bandwidth cluster.put.count cluster.get.rate cluster.disk.utilisation snis.iterations rate.demanded sim.events")...)
	for _, n := range names {
		if _, ok := Metrics.Lookup(n); !ok {
			t.Errorf("%s is missing", n)
		}
	}
}

func TestSetPanicsOnUnknownName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an unknown name was accepted")
		}
	}()
	New("d", 1, "v").Set("read.latency.p98", 1)
}
