package report

import (
	"errors"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/result"
)

// TestTransientMarked verifies that the write amplification of a run whose figures depend on a transient is marked on
// the terminal and on the page; another's is not.
func TestTransientMarked(t *testing.T) {
	for _, transient := range []string{"", "free space fell"} {
		r := result.New(trial.Vocabulary(), "sha256:0123456789abcdef", 1, "test")
		r.SimulatedS, r.Transient = 1, transient
		r.Set("ssd.waf", 2.67)
		r.Set("ssd.writes.host", 100)
		r.Set("ssd.gc.count", 3)
		if transient != "" {
			r.Warn("the drive's figures rest on a transient: %s", transient)
		}
		var text, page strings.Builder
		if err := errors.Join(WriteText(&text, Run{Result: r}, term.Style{}),
			WriteHTML(&page, Run{Result: r})); err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct{ in, want string }{{text.String(), "of a transient; 100 host pages"},
			{text.String(), "warning: the drive's figures rest on a transient"},
			{page.String(), "of a transient, 3 blocks collected"},
			{page.String(), "rest on a transient: free space fell"}} {
			if strings.Contains(x.in, x.want) != (transient != "") {
				t.Errorf("%q: %q in\n%s", transient, x.want, text.String())
			}
		}
	}
}
