package patience

import (
	"fmt"
	"testing"
)

// TestLong verifies that 1 selects all, that each name is in exactly one part, that parts are about equally large, and
// that other values are errors.
func TestLong(t *testing.T) {
	if yes, err := long("", "a"); yes || err != nil {
		t.Errorf("unset: %v %v", yes, err)
	}
	if yes, err := long("1", "a"); !yes || err != nil {
		t.Errorf("1: %v %v", yes, err)
	}
	const names, parts = 1400, 14
	size := [parts]int{}
	for i := range names {
		in := 0
		for k := range parts {
			yes, err := long(fmt.Sprintf("%d/%d", k+1, parts), fmt.Sprintf("TestTables/table-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			if yes {
				in++
				size[k]++
			}
		}
		if in != 1 {
			t.Errorf("name %d is in %d parts", i, in)
		}
	}
	for k, n := range size {
		if n < 60 || n > 150 {
			t.Errorf("part %d has %d of %d names", k+1, n, names)
		}
	}
	for _, setting := range []string{"0", "2", "yes", "0/3", "4/3", "1/0", "-1/3", "1/2/3", "1/2 3", "/"} {
		if _, err := long(setting, "a"); err == nil {
			t.Errorf("%q is accepted", setting)
		}
	}
}
