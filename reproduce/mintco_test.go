package reproduce_test

import (
	"context"
	"os"
	"testing"

	"farflash/reproduce"
)

// TestMinTCO runs the quick ones of minTCO's; all their rows must be as expected.
func TestMinTCO(t *testing.T) {
	ids := []string{"mintco-table4", "mintco-fig9"}
	if os.Getenv("FARFLASH_LONG") != "" {
		ids = append(ids, "mintco-fig6")
	}
	for _, id := range ids {
		e, err := reproduce.Find(id)
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Run(context.Background(), reproduce.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !r.OK || len(r.Rows) < 10 || len(r.Curves) == 0 {
			t.Errorf("%s: %d rows, %d curves", id, len(r.Rows), len(r.Curves))
		}
		for _, row := range r.Rows {
			if !row.OK {
				t.Errorf("%s, %s: %s is %v; %s", id, row.Label, row.Metric, row.Ours, row.Expect)
			}
		}
	}
}
