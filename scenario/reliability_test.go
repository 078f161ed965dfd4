package scenario_test

import (
	"strings"
	"testing"

	"farflash/scenario"
	"farflash/scenario/shape"
)

// TestReliability verifies where flash errors can be enabled, and that an absent key leaves no trace.
func TestReliability(t *testing.T) {
	const load = "workload: [{synthetic: {reads: {size: 4KiB}, requests: 10}, closed: 1}]\n"
	for _, c := range []struct{ text, want string }{
		{"ssd: {preset: mqsim-default, reliability: {}}\n" + load, ""},
		{"ssd: {preset: mqsim-default, compat: mqsim, reliability: {cycles: 5}}\n" + load,
			"a.yaml:1:58: ssd.reliability: not available with compat: mqsim"},
		{"ssd: {preset: mqsim-default, reliability: {gain: 200%}}\n" + load,
			"a.yaml:1:50: ssd.reliability.gain: 200% is not possible; use 0% to 100%"},
		{"ssd: {preset: mqsim-default, reliability: {refresh: {at: 0%}}}\n" + load,
			"ssd.reliability.refresh.at: 0% is not possible"},
		{"object_cluster: {gateways: 2, targets: 6, disk: {model: ssd}}\nssd: {preset: mqsim-default, reliability: " +
			"{cycles: 5}}\nmeasure: {until: 3ms}\n",
			"a.yaml:2:43: ssd.reliability: an object cluster reads no other copy"},
	} {
		_, err := scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(c.text)}, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.text, err, c.want)
		}
	}
	s, err := scenario.Parse(shape.Source{File: "a.yaml", Text: []byte("ssd: mqsim-default\n" + load)}, nil)
	if err != nil || strings.Contains(s.Resolved(), "reliability") {
		t.Errorf("a drive that says nothing of errors: %v", err)
	}
}
