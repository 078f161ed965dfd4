package waftest

import (
	"fmt"
	"os"
	"testing"

	"farflash/flash/ctl/heat"
)

// TestControllerWAF holds what separation is worth. The gate runs a small pool, on which frontiers and reserve take more of what is spare;
// FARFLASH_LONG runs the one that is reported, three seeds that nothing was tuned on.
func TestControllerWAF(t *testing.T) {
	if raced {
		t.Skip("all of it is in one goroutine, and the race detector makes it take minutes")
	}
	load := Load{Segments: 256, Pages: 64, OP: 0.07, WarmUp: 3, Measure: 4}
	seeds := []uint64{101}
	bars := []struct{ share, least float64 }{{0.2, -0.12}, {0.8, 0.40}, {0.95, 0.68}}
	if os.Getenv("FARFLASH_LONG") != "" {
		load, seeds = Default(), []uint64{101, 102, 103}
		bars[0].least, bars[1].least, bars[2].least = -0.05, 0.46, 0.78
	}
	for _, bar := range bars {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("share %.2f seed %d", bar.share, seed), func(t *testing.T) {
				load.Share, load.Seed = bar.share, seed
				base, err := Baseline(load)
				if err != nil {
					t.Fatal(err)
				}
				s, err := Controller(load, heat.Default())
				if err != nil {
					t.Fatal(err)
				}
				oracle, err := Oracle(load, heat.Default().Hot, heat.Default().Warm)
				if err != nil {
					t.Fatal(err)
				}
				less := 1 - s.WAF()/base
				t.Logf("share %.2f, seed %d: baseline %.3f, controller %.3f (%+.1f %%; moved %.3f, log %.4f, checkpoints %.4f, summaries %.4f), oracle %.3f (%+.1f %%), streams %v",
					bar.share, seed, base, s.WAF(), -100*less, float64(s.Moved)/float64(s.Puts), float64(s.Log)/float64(s.Puts),
					float64(s.Checkpoint)/float64(s.Puts), float64(s.Summaries)/float64(s.Puts), oracle, -100*(1-oracle/base), s.Streams)
				if less < bar.least {
					t.Errorf("share %.2f, seed %d: %.1f %% less than the baseline, at least %.0f %% are wanted", bar.share, seed, 100*less, 100*bar.least)
				}
			})
		}
	}
}
