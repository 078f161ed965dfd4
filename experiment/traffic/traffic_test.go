package traffic_test

import (
	"bytes"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
)

// TestClusterOthers runs SURGE's models without chunks, by their numbers, and verifies that two runs yield the same
// bytes, that every check holds, and agreement with closed forms.
func TestClusterOthers(t *testing.T) {
	for _, x := range []struct {
		number, metric string
		least, most    float64
	}{
		{"1", "cluster.bound.reached", 0.95, 1.05}, {"1.1", "cluster.bound.reached", 0.95, 1.05},
		{"2", "cluster.bound.reached", 0.95, 1.05}, {"2.1", "cluster.bound.reached", 0.95, 1.05},
		{"3", "cluster.bound.reached", 0.95, 1.05}, {"4", "cluster.bound.reached", 0.95, 1.05},
		{"c", "cluster.tier.used", 0.2, 0.75},
	} {
		text := "object_cluster: {protocol: " + x.number + "}\nmeasure: {until: 200us, warm_up: 20%, requests: true}\n"
		if x.number == "c" {
			text = strings.Replace(text, "200us", "1s", 1)
		}
		// Reproducibility is checked for both of the underlying engines.
		o := trialtest.Run(t, text, 3)
		if x.number == "1.1" || x.number == "c" {
			a, err := o.Result.Encode()
			if err != nil {
				t.Fatal(err)
			}
			if b, err := trialtest.Run(t, text, 3).Result.Encode(); err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: two runs differ (%v)", x.number, err)
			}
		}
		if got := trialtest.Metric(t, o, x.metric); got < x.least || got > x.most {
			t.Errorf("%s: %s is %g, not %g to %g", x.number, x.metric, got, x.least, x.most)
		}
		if !o.Result.OK() {
			t.Errorf("%s: %+v", x.number, o.Result.Checks)
		}
		s, err := trialtest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		trialtest.RoundTrip(t, s)
		rows := 0
		if _, err := trial.Run(t.Context(), s,
			experiment.Options{Seed: 1, Chunk: func(experiment.Chunk) error { rows++; return nil }}); err != nil ||
			rows < 100 {
			t.Errorf("%s: %d rows, %v", x.number, rows, err)
		}
	}
}
