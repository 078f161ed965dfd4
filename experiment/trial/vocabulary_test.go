package trial_test

import (
	"regexp"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/result"
)

// TestVocabulary checks invariants of definitions.
func TestVocabulary(t *testing.T) {
	v := trial.Vocabulary()
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$`)
	for k, table := range []*result.Table{v.Metrics, v.Series, v.Histograms, v.Matrices} {
		what := []string{"metric", "series", "histogram", "matrix"}[k]
		for _, d := range table.All() {
			if !name.MatchString(d.Name) {
				t.Errorf("%s %q is not a plain dotted name", what, d.Name)
			}
			if d.Help == "" || strings.HasSuffix(d.Help, ".") {
				t.Errorf("%s %s: help %q", what, d.Name, d.Help)
			}
			if _, err := result.ParseCondition(table, d.Name+"<0"); err != nil {
				t.Errorf("%s %s in %q: %v", what, d.Name, d.Unit, err)
			}
		}
	}
}

// TestLookup checks which names exist, including indices.
func TestLookup(t *testing.T) {
	metrics := trial.Vocabulary().Metrics
	for name, want := range map[string]bool{
		"read.latency.p99": true, "ssd.waf": true, "ssd[0].waf": true, "ssd[12].queue.wait.host_read.urgent.mean": true,
		"ssd[511].utilisation.die": true, "ssd[3].read.count": true, "read.stage.network_back.mean": true,
		"write.stage.txq.mean": true, "all.stage.flash.mean": false,
		"": false, "read": false, "ssd[].waf": false, "ssd[-1].waf": false, "ssd[01].waf": false, "ssd[1.waf": false,
		"read[1].count": false, "ssd[1].nothing": false, "ssd[1]waf": false,
	} {
		if _, ok := metrics.Lookup(name); ok != want {
			t.Errorf("Lookup(%q) = %v", name, ok)
		}
	}
}

// TestContract checks the names that CLI.md lists for drives and requests.
func TestContract(t *testing.T) {
	metrics := trial.Vocabulary().Metrics
	var names []string
	for _, k := range []string{"read", "write", "all"} {
		for _, m := range strings.Fields(
			"count bytes iops bandwidth latency.mean latency.stddev latency.min latency.p50 latency.p90 latency.p95 " +
				"latency.p99 latency.p99_9 latency.p99_99 latency.max") {
			names = append(names, k+"."+m)
		}
	}
	for _, m := range strings.Fields(
		"waf gc.count gc.pages_moved flash.reads flash.programs flash.erases cmt.hit_ratio cache.hit_ratio " +
			"utilisation.die utilisation.channel") {
		names = append(names, "ssd."+m, "ssd[3]."+m)
	}
	names = append(names,
		strings.Fields("fabric.pause.count fabric.pause.time fabric.ecn.marks fabric.cnp.count fabric.drops "+
			"fabric.packet_hops fabric.retransmits fabric.queue.max flow.fct.mean flow.fct.p50 flow.fct.p99 "+
			"flow.fct.max initiator.read.bandwidth target.write.bandwidth aggregate.bandwidth cluster.put.count "+
			"cluster.get.rate cluster.disk.utilisation snis.iterations sim.events")...)
	for _, n := range names {
		if _, ok := metrics.Lookup(n); !ok {
			t.Errorf("%s is missing", n)
		}
	}
}

// TestBetter checks the directions of metrics.
func TestBetter(t *testing.T) {
	metrics := trial.Vocabulary().Metrics
	for name, want := range map[string]result.Direction{
		"read.latency.p99_9": result.LowerIsBetter, "all.latency.stddev": result.LowerIsBetter,
		"flow.slowdown.p99": result.LowerIsBetter, "ssd[3].waf": result.LowerIsBetter,
		"fabric.drops": result.LowerIsBetter, "read.iops": result.HigherIsBetter,
		"initiator[0].read.bandwidth": result.HigherIsBetter, "ssd.cache.hit_ratio": result.HigherIsBetter,
		"cluster.put.rate": result.HigherIsBetter, "cluster.put.latency.p99": result.LowerIsBetter,
		"fabric.goodput":      result.HigherIsBetter,
		"ssd.utilisation.die": result.NeitherBetter, "read.count": result.NeitherBetter,
		"ssd.gc.count": result.NeitherBetter, "nonsense": result.NeitherBetter, "cpu[1].waf": result.NeitherBetter,
	} {
		if got := metrics.Better(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
