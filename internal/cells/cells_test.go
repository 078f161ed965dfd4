package cells_test

import (
	"strings"
	"testing"

	"farflash/internal/cells"
)

func TestText(t *testing.T) {
	for _, s := range []string{"", "a", "=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "'", "'a", "a=1"} {
		made := cells.Text(s)
		if strings.IndexAny(made, "=+-@\t\r") == 0 {
			t.Errorf("%q becomes %q, which is a formula", s, made)
		}
		if back := cells.Plain(made); back != s {
			t.Errorf("%q becomes %q and then %q", s, made, back)
		}
	}
}
