package waf

import (
	"flag"
	"fmt"
	"testing"

	"farflash/flash/ctl/heat"
	"farflash/internal/golden"
	"farflash/internal/patience"
)

var update = flag.Bool("update", false, "with FARFLASH_LONG, write the tables of docs/validation/flash.md")

const page = "../../../docs/validation/flash.md"

// loads names a load by the share of writes that the hottest fifth of its pages gets.
var loads = map[float64]string{0.2: "uniform", 0.8: "Zipf 80/20", 0.95: "Zipf 95/20"}

// TestControllerWAF verifies the benefit of stream separation. The gate runs a small pool, in which frontiers and
// reserve take a larger part of the spare space; FARFLASH_LONG runs the size that is reported, on three seeds not used
// for tuning.
func TestControllerWAF(t *testing.T) {
	if raced {
		t.Skip("all of it is in one goroutine, and the race detector makes it take minutes")
	}
	load := Load{Segments: 256, Pages: 64, OP: 0.07, WarmUp: 3, Measure: 4}
	seeds := []uint64{101}
	bars := []struct{ share, least float64 }{{0.2, -0.12}, {0.8, 0.40}, {0.95, 0.68}}
	lines := golden.Head("load", ">seed", ">baseline", ">controller", ">of which log, checkpoints, summaries",
		">less", ">oracle", ">less", ">wanted")
	long := patience.Long(t)
	if long {
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
				t.Logf("share %.2f, seed %d: baseline %.3f, controller %.3f (%+.1f %%; moved %.3f, log %.4f, "+
					"checkpoints %.4f, summaries %.4f), oracle %.3f (%+.1f %%), streams %v",
					bar.share, seed, base, s.WAF(), -100*less, float64(s.Moved)/float64(s.Puts),
					float64(s.Log)/float64(s.Puts),
					float64(s.Checkpoint)/float64(s.Puts), float64(s.Summaries)/float64(s.Puts), oracle,
					-100*(1-oracle/base), s.Streams)
				own := float64(s.Log+s.Checkpoint+s.Summaries) / float64(s.Puts)
				lines = append(lines,
					golden.Row(loads[bar.share], fmt.Sprint(seed), fmt.Sprintf("%.3f", base),
						fmt.Sprintf("%.3f", s.WAF()), fmt.Sprintf("%.3f", own),
						fmt.Sprintf("%.1f %%", 100*less), fmt.Sprintf("%.3f", oracle),
						fmt.Sprintf("%.1f %%", 100*(1-oracle/base)), fmt.Sprintf("at least %.0f %%", 100*bar.least)))
				if less < bar.least {
					t.Errorf("share %.2f, seed %d: %.1f %% less than the baseline, at least %.0f %% are wanted",
						bar.share, seed, 100*less, 100*bar.least)
				}
			})
		}
	}
	if long {
		golden.Table(t, page, "flash-waf", "seeds 101 to 103", lines, *update && !t.Failed())
	}
}

// TestVirtualClock verifies that the same code under a simulator's clock, with many concurrent operations that complete
// out of order, has the write amplification of immediate completion within 3 %.
func TestVirtualClock(t *testing.T) {
	if raced {
		t.Skip("all of it is in one goroutine, and the race detector makes it take minutes")
	}
	// Collection that lags by some segments has that much more spare space than immediate collection; with few segments
	// the difference shows (12 % less with 128 of them).
	load, seeds := Load{Segments: 512, Pages: 32, OP: 0.07, WarmUp: 2, Measure: 2}, []uint64{101}
	shares := []float64{0.8, 0.95}
	lines := golden.Head("load", ">seed", ">at once", ">in virtual time", ">off by")
	long := patience.Long(t)
	if long {
		load, seeds, shares = Default(), []uint64{101, 102, 103}, []float64{0.2, 0.8, 0.95}
	}
	for _, share := range shares {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("share %.2f seed %d", share, seed), func(t *testing.T) {
				load.Share, load.Seed = share, seed
				at, err := Controller(load, heat.Default())
				if err != nil {
					t.Fatal(err)
				}
				s, clock, err := controllerTimed(load, heat.Default(), 16)
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("share %.2f, seed %d: %.4f at once, %.4f in virtual time (%+.2f %%); %d of %d writes by "+
					"themselves; %+v", share, seed, at.WAF(), s.WAF(), 100*(s.WAF()/at.WAF()-1),
					s.Puts, at.Puts, clock)
				lines = append(lines,
					golden.Row(loads[share], fmt.Sprint(seed), fmt.Sprintf("%.3f", at.WAF()),
						fmt.Sprintf("%.3f", s.WAF()), fmt.Sprintf("%+.1f %%", 100*(s.WAF()/at.WAF()-1))))
				if off := s.WAF()/at.WAF() - 1; off < -0.03 || off > 0.03 {
					t.Errorf("in virtual time %.3f pages are written for one, and %.3f when each is done at once",
						s.WAF(), at.WAF())
				}
				if clock.Most < 16 || clock.Disorder == 0 || clock.Nanoseconds == 0 {
					t.Errorf("%+v: operations were one after the other", clock)
				}
				if asked := int64(load.Measure * float64(load.logical())); at.Puts != asked || s.Puts < asked*99/100 {
					t.Errorf("of %d writes %d and %d were written; the others were absorbed in memory", asked,
						at.Puts, s.Puts)
				}
			})
		}
	}
	if long {
		golden.Table(t, page, "flash-clock", "seeds 101 to 103", lines, *update && !t.Failed())
	}
}
