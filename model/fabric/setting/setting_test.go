package setting_test

import (
	"fmt"
	"testing"

	"farflash/model/fabric/setting"
	"farflash/numeric/units"
)

// TestWords verifies that written values are read back, and that text that is neither a word nor a quantity is
// rejected.
func TestWords(t *testing.T) {
	for _, x := range []setting.Threshold{{Dynamic: true}, {Size: 64 * units.KiB}} {
		text, _ := x.MarshalText()
		var y setting.Threshold
		if err := y.UnmarshalText(text); err != nil || x != y {
			t.Errorf("%s: %v, %v", text, y, err)
		}
	}
	for _, x := range []setting.Timeout{{Auto: true}, {}, {Time: units.Millisecond}} {
		text, _ := x.MarshalText()
		var y setting.Timeout
		if err := y.UnmarshalText(text); err != nil || x != y {
			t.Errorf("%s: %v, %v", text, y, err)
		}
	}
	if (&setting.Threshold{}).UnmarshalText([]byte("much")) == nil ||
		(&setting.Timeout{}).UnmarshalText([]byte("0s")) == nil ||
		(&setting.Headroom{}).UnmarshalText([]byte("x")) == nil {
		t.Error("something is read that says nothing")
	}
}

func Example() {
	var h setting.Headroom
	_ = h.UnmarshalText([]byte("64KiB"))
	fmt.Println(h.Kind == setting.HeadroomFixed, h.Size)
	// Output: true 64KiB
}
