package ftl_test

import (
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
	"farflash/policy/ftl/ftltest"
)

// TestCounts verifies that a pool that asks its driver which pages are valid asks for the same operations as one with
// bitmaps of its own, and that its books add up.
func TestCounts(t *testing.T) {
	run := func(counts bool) []string {
		cfg := ftl.DefaultConfig()
		cfg.BlocksPerPool, cfg.PagesPerBlock, cfg.Streams, cfg.Victim, cfg.Counts = 24, 70, 2, ftl.CostAge, counts
		d, err := newFlash(cfg, 1000, nil)
		if err != nil {
			t.Fatal(err)
		}
		d.tracer = true
		draw := rng.NewStream(1, "counts")
		var given []ftl.Block // which the driver keeps for itself
		for i := range 20_000 {
			lpa := ftl.LPA(draw.IntN(int64(len(d.to))))
			if draw.IntN(4) > 0 {
				lpa %= 100
			}
			switch {
			case draw.IntN(200) == 0:
				if b, ok := d.Give(0); ok {
					given = append(given, b)
				}
				if len(given) > 1 {
					d.Return(given[0])
					given = given[1:]
				}
			case draw.IntN(50) == 0:
				d.trim(lpa)
			case !d.put(0, int(lpa)%2, lpa):
				t.Fatal("no space")
			}
			if i%1000 == 0 {
				if err := d.verify(); err != nil {
					t.Fatal(err)
				}
			}
		}
		return d.trace
	}
	want, got := run(false), run(true)
	if len(want) < 30_000 || !slices.Equal(got, want) {
		t.Errorf("%d operations instead of %d, or others", len(got), len(want))
	}
}

// TestCountsNeed verifies that only a map that knows which pages are valid is accepted instead of bitmaps.
func TestCountsNeed(t *testing.T) {
	cfg := ftl.DefaultConfig()
	cfg.Counts = true
	if _, err := ftl.New(cfg, struct{ ftl.Map }{ftltest.NewMap(10, 10)}, nil); err == nil {
		t.Error("a map that does not know which pages are valid is accepted")
	}
	cfg.Pools = 2
	if cfg.Validate() == nil {
		t.Error("two pools are accepted")
	}
}
