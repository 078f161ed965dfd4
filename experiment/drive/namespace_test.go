package drive_test

import (
	"testing"

	"farflash/experiment/trial/trialtest"
)

// TestNamespaceFigures verifies that the pages programmed for each namespace add up to the total, whether collection
// separates their data, copies them within the chip, or neither.
func TestNamespaceFigures(t *testing.T) {
	const text = `ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 64, pages_per_block: 32, channels: 2, chips_per_channel: 2, planes_per_die: 2}, over_provisioning: 25%,
  cache: {mode: "off"}, mapping: {grain: page, ideal: true}, wear: {static: 0}, namespaces: [{}, {}], preconditioning: {fill: sequential}}
workload:
  - {namespace: 0, synthetic: {writes: {size: 16KiB, addresses: {pattern: sequential}}, requests: 12000}, closed: 4}
  - {namespace: 1, synthetic: {writes: {size: 16KiB}, requests: 12000}, closed: 4}
`
	for name, set := range map[string][]string{
		"mixed": nil, "apart": {"ssd.collection.streams=true"},
		"copies": {"ssd.collection.copyback=true", "ssd.mapping.allocation=static"},
	} {
		out := trialtest.Run(t, text, 1, set...)
		get := func(metric string) float64 { return trialtest.Metric(t, out, metric) }
		written, moved := get("namespace[0].writes.host")+get("namespace[1].writes.host"),
			get("namespace[0].writes.moved")+get("namespace[1].writes.moved")
		if written != get("ssd.writes.host") || moved != get("ssd.writes.gc") || moved == 0 {
			t.Errorf("%s: namespaces %v written, %v moved; the drive %v and %v", name, written, moved,
				get("ssd.writes.host"), get("ssd.writes.gc"))
		}
		if got := get("namespace[0].all.count") + get("namespace[1].all.count"); got != get("all.count") {
			t.Errorf("%s: %v requests", name, got)
		}
		if name == "apart" && get("namespace[0].waf") > get("namespace[1].waf")-0.3 {
			t.Errorf("%s: in order %v, at random %v pages a page", name, get("namespace[0].waf"),
				get("namespace[1].waf"))
		}
	}
}
