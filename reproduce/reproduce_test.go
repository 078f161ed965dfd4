package reproduce_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"farflash/reproduce"
)

func TestFind(t *testing.T) {
	if _, err := reproduce.Find("snis-fig3"); err == nil || !strings.Contains(err.Error(), "snis-fig2") {
		t.Errorf("error %v does not suggest snis-fig2", err)
	}
	seen := map[string]bool{}
	for _, e := range reproduce.All() {
		if seen[e.ID] || e.Title == "" || e.Paper == "" {
			t.Errorf("%+v", e)
		}
		seen[e.ID] = true
	}
}

func TestSnisFig2(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	e, err := reproduce.Find("snis-fig2")
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(context.Background(), reproduce.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		t.Logf("%-40s %-16s %8.3f %v", row.Label, row.Metric, row.Ours, row.OK)
		if !row.OK {
			t.Errorf("%s: %s is %v; %s", row.Label, row.Metric, row.Ours, row.Expect)
		}
	}
	if len(r.Curves) != 4 || len(r.Scenarios) != 54 {
		t.Errorf("%d curves, %d scenarios", len(r.Curves), len(r.Scenarios))
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := reproduce.All()[0].Run(ctx, reproduce.Options{Seed: 1}); err == nil {
		t.Error("a cancelled run gave a report")
	}
}

// TestReplicast runs the quickest of the Replicast paper, and with FARFLASH_LONG all that end within a minute.
func TestReplicast(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	ids := []string{"replicast-fig8"}
	if os.Getenv("FARFLASH_LONG") != "" {
		ids = append(ids, "replicast-table4", "replicast-table5", "replicast-fig10")
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
		for _, row := range r.Rows {
			if !row.OK {
				t.Errorf("%s: %s: %s is %v; %s", id, row.Label, row.Metric, row.Ours, row.Expect)
			}
		}
		if len(r.Curves) == 0 {
			t.Errorf("%s has no picture", id)
		}
		for _, c := range r.Curves {
			if len(c.X) != len(c.Y) || c.Names != nil && len(c.Names) != len(c.X) || c.Panel == "" {
				t.Errorf("%s: %s, %s: %d by %d", id, c.Panel, c.Name, len(c.X), len(c.Y))
			}
		}
	}
}
