package reproduce_test

import (
	"context"
	"strings"
	"testing"

	"farflash/study/reproduce"
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

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := reproduce.All()[0].Run(ctx, reproduce.Options{Seed: 1}); err == nil {
		t.Error("a cancelled run gave a report")
	}
}
