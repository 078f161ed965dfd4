package ftl_test

import (
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
	"farflash/policy/ftl/ftltest"
)

// TestGivenBlocks verifies that given blocks are filled page by page, keep their data alongside streams that are
// collected, and are erased once they are returned and no reader pins them. No action moves their pages, and the
// program counts add up at each step.
func TestGivenBlocks(t *testing.T) {
	const streamed = 240 // logical pages of the stream; those above belong to given blocks, by physical page
	for seed := range uint64(20) {
		r := rng.NewStream(seed, "given")
		cfg := ftl.DefaultConfig()
		cfg.BlocksPerPool, cfg.PagesPerBlock, cfg.StaticWear = 40, 16, int(r.IntN(2))*5
		pages := ftl.PPA(cfg.BlocksPerPool * cfg.PagesPerBlock)
		m := ftltest.NewMap(streamed+ftl.LPA(pages), pages)
		f, err := ftl.New(cfg, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		type held struct {
			b     ftl.Block
			pages []ftl.PPA
			taken int
		}
		var given []held
		pinned := map[ftl.PPA]bool{}
		drain := func() {
			for a, ok := f.Next(0); ok; a, ok = f.Next(0) {
				if a.Kind == ftl.Erase {
					f.Erased(a.Block)
					continue
				}
				if a.LPA >= streamed {
					t.Fatalf("page %d of a given block is moved", a.Source)
				}
				if dst, ok := f.Relocate(a.Source, 0); ok {
					m.Program(dst, a.LPA)
					f.Moved(a.Source, dst, 0)
				}
			}
		}
		write := func(l ftl.LPA, p ftl.PPA) {
			m.Program(p, l)
			if old := m.Set(l, p); old != ftl.NoPPA {
				f.Invalidate(old, 0)
			}
		}
		for range 4000 {
			switch k := r.IntN(12); {
			case k < 6:
				if p, ok := f.Allocate(0, 0, 0); ok {
					write(ftl.LPA(r.IntN(streamed)), p)
					f.Programmed(p)
				}
			case k == 6 && len(given) < 8:
				if b, ok := f.Give(0); ok {
					given = append(given, held{b: b})
				}
			case k < 10 && len(given) > 0:
				g := &given[r.IntN(int64(len(given)))]
				if f.Left(g.b) == 0 {
					continue
				}
				if r.IntN(6) == 0 {
					if n := f.Skip(f.PPA(g.b, g.taken+1), 0); n != 1 {
						t.Fatalf("%d pages are given up, not 1", n)
					}
				} else {
					p := f.Fill(g.b)
					if p != f.PPA(g.b, g.taken) {
						t.Fatalf("page %d is taken, not %d", p, f.PPA(g.b, g.taken))
					}
					write(streamed+ftl.LPA(p), p)
					f.Programmed(p) // without effect
					g.pages = append(g.pages, p)
				}
				if g.taken++; f.Left(g.b) != cfg.PagesPerBlock-g.taken {
					t.Fatalf("%d pages are left of %d", f.Left(g.b), cfg.PagesPerBlock-g.taken)
				}
			case k == 10 && len(given) > 0:
				i := int(r.IntN(int64(len(given))))
				g := given[i]
				given = append(given[:i], given[i+1:]...)
				for _, p := range g.pages {
					f.Invalidate(p, 0)
					m.Set(streamed+ftl.LPA(p), ftl.NoPPA)
				}
				at := f.PPA(g.b, 0)
				if r.IntN(3) == 0 && !pinned[at] {
					f.ReadStarted(at)
					pinned[at] = true
				}
				wear := f.Wear(g.b)
				f.Return(g.b)
				drain()
				if pinned[at] {
					if f.Wear(g.b) != wear {
						t.Fatal("a block was erased that a reader has pinned")
					}
					delete(pinned, at)
					f.ReadDone(at)
					drain()
				}
				if f.Wear(g.b) != wear+1 {
					t.Fatalf("a block that was given back was erased %d times", f.Wear(g.b)-wear)
				}
			}
			drain()
			if err := f.Check(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		sum := int64(0)
		for _, g := range given {
			sum += int64(len(g.pages))
		}
		if s := f.Stats(); s.GCPrograms == 0 && cfg.StaticWear == 0 {
			t.Errorf("seed %d: nothing was collected beside: %+v", seed, s)
		}
		// A translation layer restored from it is identical.
		g, err := ftl.New(cfg, m, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Blocks(0, func(b ftl.Block, x ftl.Restored) bool {
			if err := g.RestoreBlock(b, x); err != nil {
				t.Fatal(err)
			}
			return true
		})
		if g.ValidPages() != f.ValidPages() || sum == 0 && len(given) > 2 {
			t.Errorf("%d pages are valid after restoring, %d before", g.ValidPages(), f.ValidPages())
		}
		for _, x := range given {
			if g.Left(x.b) != f.Left(x.b) {
				t.Errorf("block %d has %d pages left after restoring, %d before", x.b, g.Left(x.b), f.Left(x.b))
			}
		}
		if err := g.Check(); err != nil {
			t.Errorf("restored: %v", err)
		}
	}
}
