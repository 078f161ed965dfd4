package report

import (
	"bytes"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
)

// clusterResult returns the result of a cluster that is bound by its links, with gets and a failure.
func clusterResult() *result.Result {
	r := result.New(trial.Vocabulary(), "sha256:00", 1, "test")
	for _, op := range []string{"put", "get"} {
		h := new(stats.Histogram)
		for k := range 100 {
			h.Record(units.Duration(k+1) * units.Microsecond)
		}
		r.Set("cluster."+op+".count", 100)
		r.Set("cluster."+op+".rate", 3e9)
		r.SetLatencies("cluster."+op, h)
	}
	for name, v := range map[string]float64{"lost": 12, "retried": 3, "get.degraded": 2, "repair.lost": 10,
		"repair.done": 9, "repair.until": 0.02, "bound.reached": 0.6, "bound.rate": 10e9} {
		r.Set("cluster."+name, v)
	}
	r.Set("cluster.imbalance.target.max", 1.25)
	r.Set("cluster.imbalance.target.cv", 0.1)
	r.SetMatrix("cluster.bounds", []string{"disks", "gateways' links"}, []string{"rate"}, [][]float64{{20e9}, {10e9}})
	uses := []string{"work", "repair", "control", "receiving", "reserved", "tentative", "waiting", "idle", "down"}
	r.SetMatrix("cluster.spent", []string{"disks", "gateways' links"}, uses,
		[][]float64{{0.3, 0.1, 0, 0.2, 0.1, 0, 0, 0.2, 0.1}, {0.6, 0, 0.1, 0, 0, 0, 0.3, 0, 0}})
	r.SetMatrix("cluster.target.time", []string{"0", "1"}, uses,
		[][]float64{{0.4, 0.1, 0, 0.2, 0.1, 0, 0, 0.1, 0.1}, {0.2, 0.1, 0, 0.2, 0.1, 0, 0, 0.3, 0.1}})
	return r
}

// TestClusterLosses verifies that the lost time of the bottleneck is shown part by part, on the terminal and on the
// page, and so are the losses and retries.
func TestClusterLosses(t *testing.T) {
	r := Run{Result: clusterResult(), Label: "a"}
	var b strings.Builder
	if err := r.cluster(&b, term.Style{}); err != nil {
		t.Fatal(err)
	}
	said := strings.Join(strings.Fields(b.String()), " ") // independent of line breaks
	for _, want := range []string{"gateways' links lost", "40.0 %", "control messages 10.0 %, waiting 30.0 %",
		"x1.25", "standard deviation 10.0 %", "put", "get", "retried", "degraded", "9",
		"of 10 lost pieces rebuilt; the last at 20.0 ms"} {
		if !strings.Contains(said, want) {
			t.Errorf("the table does not say %q:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "hedged") {
		t.Error("the table has what there was not")
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Where the time went", "Where the time went, by target", "Latencies, sorted",
		"Losses and retries", "<td class=\"text\">Retried</td>", "target down", "Get latency p99"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}
