package scenario

import (
	"strings"
	"testing"
)

// TestZonesShared verifies which items may write to the same zones at the same time.
func TestZonesShared(t *testing.T) {
	load := func(more string) string {
		return "{synthetic: {writes: {size: 64KiB}, requests: 100}, closed: 4, " + more + "}"
	}
	for name, c := range map[string]struct {
		items string
		wrong string
	}{
		"appends": {load("zones: {append: true}") + ", " + load("zones: {append: true}"), ""},
		"writes, appends": {load("zones: {append: false}") + ", " + load("zones: {append: true}"),
			"workload[1].zones: it and workload[0] write the same zones"},
		"appends, writes": {load("zones: {append: true}") + ", " + load("zones: {append: false}"),
			"workload[1].zones: it and workload[0] write the same zones"},
		"behind it": {load("name: a, zones: {append: false}") + ", " + load("after: a, zones: {append: false}"),
			""},
		"copies": {load("copies: {count: 2}, zones: {append: false}"),
			"workload[0].zones: its copies write the same zones"},
		"copies append": {load("copies: {count: 2}, zones: {append: true}"), ""},
	} {
		_, err := parse("ssd: {preset: tlc-enterprise, mapping: {ideal: true}, zones: {}}\nworkload: [" + c.items +
			"]\n")
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestZonesOfReads verifies that errors in the zones of an item without writes are reported, whatever other errors it
// has.
func TestZonesOfReads(t *testing.T) {
	for items, wrong := range map[string]string{
		"{synthetic: {reads: {size: 4KiB, interarrival: 100us}, requests: 10}, addresses: fold, zones: {append: true}}": "workload[0].addresses: writes to zones must be in order",
		"{trace: {file: none.csv}, addresses: fold, zones: {append: true}}":                                             "workload[0].addresses: writes to zones must be in order",
		"{addresses: fold, zones: {append: true}}":                                                                      "workload[0]: no source of requests",
	} {
		_, err := parse("ssd: {preset: tlc-enterprise, zones: {}}\nworkload: [" + items + "]\n")
		if err == nil || !strings.Contains(err.Error(), wrong) || !strings.Contains(err.Error(), ":2:") {
			t.Errorf("%s: %v", items, err)
		}
	}
}
