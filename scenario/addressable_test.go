package scenario_test

import (
	"testing"

	"farflash/experiment/trial/trialtest"
	"farflash/model/ssd"
	"farflash/numeric/units"
)

// TestAddressable compares the capacity that scenarios are checked against with that of their drives, for each
// namespace.
func TestAddressable(t *testing.T) {
	const reads = "workload: [{synthetic: {reads: {size: 4KiB}, requests: 1}, closed: 1}]\n"
	for _, drive := range []string{
		"tlc-enterprise", "mqsim-default", "qlc-client", "src-ssd-a",
		"{preset: mqsim-default, compat: mqsim, namespaces: [{}, {channels: [0]}]}",
		"{preset: tlc-enterprise, namespaces: [{channels: [0]}, {channels: [1, 2, 3, 4, 5, 6, 7]}]}",
		"{preset: tlc-enterprise, mapping: {ideal: true}, zones: {}}",
	} {
		s, err := trialtest.Parse("ssd: " + drive + "\n" + reads)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ssd.Prepare(s.SSD.Config, 1, "ssd[0]", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range max(1, len(s.SSD.Namespaces)) {
			if got, want := s.Addressable(i), units.Bytes(m.Capacity(i)); got != want || got == 0 {
				t.Errorf("%s: namespace %d is said to have %v, and has %v", drive, i, got, want)
			}
		}
	}
}
