package cli

import (
	"testing"

	"farflash/experiment/trial/trialtest"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// TestUnits verifies the units in which progress is counted.
func TestUnits(t *testing.T) {
	for text, want := range map[string]string{
		trialtest.SmallSystem: "requests",
		"fabric: {topology: {star: {hosts: 3}}, host_link: 25Gbps}\nflows: [{incast: {fan: 2, size: 1KB}}]\n":          "flows",
		"ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: {mean: 1ms}}, requests: 5}}]\n": "requests",
	} {
		s, err := scenario.Parse(shape.Source{File: "s.yaml", Text: []byte(text)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := unitOf(s); got != want {
			t.Errorf("progress counts %s, want %s, of\n%s", got, want, text)
		}
	}
}
