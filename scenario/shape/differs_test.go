package shape

import (
	"slices"
	"testing"
)

// TestDiffers verifies that sections are compared key by key, lists as a whole, and fields without a key not at all.
func TestDiffers(t *testing.T) {
	type inner struct{ Size, Count int }
	type outer struct {
		Name   string
		In     inner
		List   []int
		Hidden int `yaml:"-"`
	}
	l := &Language{}
	a := outer{"a", inner{1, 2}, []int{1}, 3}
	b := outer{"a", inner{1, 3}, []int{1, 2}, 4}
	if got := l.Differs(&a, &b); !slices.Equal(got, []string{"in.count", "list"}) {
		t.Errorf("%v", got)
	}
	if got := l.Differs(a, a); got != nil {
		t.Errorf("%v", got)
	}
}
