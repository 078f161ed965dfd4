package report

import (
	"regexp"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/result"
)

// clusterText returns the text of a cluster's figures, with single spaces and without bars.
func clusterText(t *testing.T, values map[string]float64) string {
	t.Helper()
	r := result.New(trial.Vocabulary(), "d", 1, "v")
	for name, v := range values {
		r.Set(name, v)
	}
	var b strings.Builder
	if err := (&Run{Result: r}).cluster(&b, term.Style{}); err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`[█▉▊▋▌▍▎▏·]+ `).ReplaceAllString(b.String(), "")
	return strings.Join(strings.Fields(text), " ")
}

// TestClusterOfTiers verifies the text of an SSD in front of disks.
func TestClusterOfTiers(t *testing.T) {
	text := clusterText(t, map[string]float64{"cluster.put.count": 100, "cluster.tier.used": 0.75,
		"cluster.tier.drains": 3, "cluster.tier.moved": 42, "cluster.tier.held": 7, "cluster.tier.waiting.max": 5,
		"cluster.bound.reached": 0.5, "cluster.bound.rate": 2e9})
	for _, want := range []string{"bound reached 50.0 % of 2.00 GB/s, the long-run rate of all devices",
		"SSD in use 75.0 % 3 times at its high watermark", "moved 42 chunks to HDDs",
		"held back 7 writes that waited for the SSD, at most 5 at once"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %q", want, text)
		}
	}
}

// TestClusterOfEvents verifies the text of nodes that exchange events.
func TestClusterOfEvents(t *testing.T) {
	values := map[string]float64{"cluster.exchange.count": 1000, "cluster.exchange.iops": 2500,
		"cluster.exchange.latency.mean": 12, "cluster.exchange.latency.max": 90, "cluster.event.count": 4000,
		"cluster.event.iops": 8000, "cluster.event.pending.mean": 0.5, "cluster.event.pending.max": 6,
		"cluster.event.crowded": 0.25, "cluster.event.held": 1, "cluster.event.shaped": 1, "cluster.bound.reached": 0.5}
	rows := []string{"held back 1 exchanges not started", "shaped 1 exchanges delayed",
		"events sent 50.0 % of the pattern's long-run rate"}
	text := clusterText(t, values)
	for _, want := range append(rows, "exchange 1,000 2.50k 12.0 us 90.0 us", "event 4,000 8.00k",
		"pending at a node 0.500 at most 6; more than one 25.0 % of the time") {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %q", want, text)
		}
	}
	values["cluster.event.held"], values["cluster.event.shaped"] = 0, 0
	delete(values, "cluster.bound.reached")
	text = clusterText(t, values)
	for _, row := range rows {
		if what, _, _ := strings.Cut(row, " 1 "); strings.Contains(text, what) {
			t.Errorf("%q is said of nothing: %q", what, text)
		}
	}
}
