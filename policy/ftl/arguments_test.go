package ftl_test

import (
	"math"
	"testing"

	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// little is a translation layer of two pools of 16 blocks of 4 pages, with a stream.
func little(t testing.TB) *flash {
	t.Helper()
	cfg := ftl.DefaultConfig()
	cfg.Pools, cfg.BlocksPerPool, cfg.PagesPerBlock = 2, 16, 4
	d, err := newFlash(cfg, 64, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestArguments verifies that pools, blocks, pages and streams that the flash does not have are refused.
func TestArguments(t *testing.T) {
	refused := hostile.Check(t, "ftl")
	config := func(change func(*ftl.Config)) func() error {
		return func() error {
			c := ftl.DefaultConfig()
			change(&c)
			_, err := ftl.New(c, &flash{}, nil)
			return err
		}
	}
	refused("nil map", func() error { _, err := ftl.New(ftl.DefaultConfig(), nil, nil); return err }, "the map is nil")
	refused("no configuration", func() error { _, err := ftl.New(ftl.Config{}, &flash{}, nil); return err }, "pools")
	refused("pools that fill the memory", config(func(c *ftl.Config) { c.Pools = 1 << 40 }), "pools")
	refused("start that overflows", config(func(c *ftl.Config) { c.GCStart = math.MaxInt }), "gc_start")
	refused("choices without end", config(func(c *ftl.Config) {
		c.Victim, c.Choices = ftl.DChoices, math.MaxInt
	}), "choices")
	refused("wear that overflows", config(func(c *ftl.Config) { c.StaticWear = math.MaxInt }), "static_wear")
	refused("nil policy", func() error { return little(t).CollectBy(nil) }, "is nil")
	for _, c := range []struct {
		name string
		do   func(f *flash)
		want string
	}{
		{"allocate in no pool", func(f *flash) { f.Allocate(2, 0, 0) }, "no such pool"},
		{"allocate in a negative pool", func(f *flash) { f.Allocate(-1, 0, 0) }, "no such pool"},
		{"allocate on no stream", func(f *flash) { f.Allocate(0, 1, 0) }, "no such stream"},
		{"allocate regardless", func(f *flash) { f.AllocateRegardless(0, -1, 0) }, "no such stream"},
		{"free", func(f *flash) { f.Free(2) }, "no such pool"},
		{"urgent", func(f *flash) { f.Urgent(-1) }, "no such pool"},
		{"wants", func(f *flash) { f.Wants(2) }, "no such pool"},
		{"next", func(f *flash) { f.Next(math.MaxInt) }, "no such pool"},
		{"capacity", func(f *flash) { f.Capacity(2) }, "no such pool"},
		{"wear", func(f *flash) { f.Wear(-1) }, "no such pool"},
		{"yield", func(f *flash) { f.Yield(32) }, "no such pool"},
		{"programmed page", func(f *flash) { f.Programmed(-1) }, "no such pool"},
		{"page of a block that was never opened", func(f *flash) { f.Programmed(60) }, "no such block"},
		{"programmed block", func(f *flash) { f.ProgrammedIn(0, 1<<32) }, "no such block"},
		{"invalidated", func(f *flash) { f.Invalidate(1<<40, 0) }, "no such pool"},
		{"invalidated block", func(f *flash) { f.Invalidate(60, 0) }, "no such block"},
		{"read", func(f *flash) { f.ReadStarted(60) }, "no such block"},
		{"read of a block", func(f *flash) { f.ReadStartedIn(0, -1) }, "no such block"},
		{"end of a read", func(f *flash) { f.ReadDoneIn(0, 99) }, "no such block"},
		{"stream", func(f *flash) { f.StreamOf(15) }, "no such block"},
		{"erased", func(f *flash) { f.Erased(15) }, ""},
		{"relocated", func(f *flash) { f.Relocate(60, 0) }, "no such block"},
		{"moved", func(f *flash) { f.Moved(60, 61, 0) }, "no such block"},
		{"failed", func(f *flash) { f.ProgramFailed(60, 0) }, "no such block"},
		{"aligned", func(f *flash) { f.Align(0, 3, 0) }, "Align to 3 pages"},
		{"aligned to nothing", func(f *flash) { f.Align(0, 0, 0) }, "Align to 0 pages"},
		{"clone", func(f *flash) { f.Clone(nil, nil) }, "without a map"},
		{"rebound", func(f *flash) { f.Rebind(nil, nil) }, "without a map"},
		{"separate streams", func(*flash) { ftl.Separate(-1) }, "-1 streams"},
		{"generations", func(*flash) { ftl.Generations(1, 0) }, "0 streams"},
		{"mixed streams", func(*flash) { ftl.Mixed(1 << 40) }, "streams"},
	} {
		refused(c.name, func() error { c.do(little(t)); return nil }, c.want)
	}
	f := little(t)
	for _, p := range []ftl.PPA{-1, 1 << 40} {
		hostile.Refused(t, "ftl", func() { f.IsValid(p) })
	}
	if f.Holds(0, -1, 0) || f.Holds(0, 0, -1) || f.Holds(0, 99, 0) || f.Holds(0, 0, 99) {
		t.Error("pages that do not exist are held")
	}
}

// FuzzFTL makes a translation layer of a configuration that the input changes, writes, overwrites and collects as it
// says, and checks the books; then it calls everything with any arguments, which is refused or has an effect, and never
// a fault.
func FuzzFTL(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22})
	f.Add([]byte{2, 0, 9, 3, 0, 12, 2, 200, 1, 200, 2, 200, 3, 200, 4, 200, 5, 200, 6, 200, 7, 240, 1, 2, 3, 4, 5, 6})
	f.Add([]byte("pages are written and overwritten, victims are moved and erased, and then anything at all"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		cfg := ftl.DefaultConfig()
		cfg.Pools, cfg.BlocksPerPool, cfg.PagesPerBlock = 2, 16, 4
		code.Change(&cfg, code.Below(4))
		if cfg.Pools > 8 || cfg.BlocksPerPool > 64 || cfg.PagesPerBlock > 64 {
			return // larger flash is no different, and slow
		}
		random := rng.NewStream(1, "victims")
		if cfg.Validate() != nil {
			return
		}
		d, err := newFlash(cfg, 40, &random)
		if err != nil {
			return
		}
		for range 100 {
			if len(code) < 40 {
				break
			}
			pool := code.Below(cfg.Pools)
			if lpa := code.Below(40); code.Below(3) > 0 {
				if ppa, ok := d.Allocate(pool, code.Below(cfg.Streams), d.now); ok {
					d.pages[ppa] = content{ftl.LPA(lpa), 1}
					old := d.to[lpa]
					d.to[lpa] = ppa
					d.Programmed(ppa)
					if old != ftl.NoPPA {
						d.Invalidate(old, d.now)
					}
				}
			}
			a, ok := d.Next(pool)
			switch {
			case !ok:
			case a.Kind == ftl.Erase:
				d.Erased(a.Block)
			default:
				if dst, ok := d.Relocate(a.Source, d.now); ok {
					d.pages[dst] = d.pages[a.Source]
					d.Moved(a.Source, dst, d.now)
				}
			}
			d.now++
		}
		if err := d.Check(); err != nil {
			t.Error(err)
		}
		for range 60 {
			if !code.More() {
				return
			}
			a, b, c := int(code.Int()), int(code.Int()), int(code.Int())
			calls := []func(){
				func() { d.Allocate(a, b, 0) }, func() { d.AllocateRegardless(a, b, 0) }, func() { d.Align(a, b, 0) },
				func() { d.Programmed(ftl.PPA(a)) }, func() { d.ProgrammedIn(a, b) },
				func() { d.Invalidate(ftl.PPA(a), 0) },
				func() { d.ReadStarted(ftl.PPA(a)) }, func() { d.ReadDone(ftl.PPA(a)) },
				func() { d.ReadStartedIn(a, b) },
				func() { d.ReadDoneIn(a, b) }, func() { d.Free(a) }, func() { d.Urgent(a) }, func() { d.Collecting(a) },
				func() { d.Wear(ftl.Block(a)) }, func() { d.Capacity(a) }, func() { d.Spare(a) },
				func() { d.StreamOf(ftl.Block(a)) }, func() { d.Yield(ftl.Block(a)) }, func() { d.Retired(a) },
				func() { d.Failing(a) }, func() { d.PPA(ftl.Block(a), b) }, func() { d.BlockOf(ftl.PPA(a)) },
				func() { d.PoolOf(ftl.PPA(a)) }, func() { d.Skip(ftl.PPA(a), 0) }, func() { d.Next(a) },
				func() { d.Wants(a) }, func() { d.Relocate(ftl.PPA(a), 0) }, func() { d.RelocateTo(ftl.PPA(a), b, 0) },
				func() { d.Moved(ftl.PPA(a), ftl.PPA(b), 0) }, func() { d.Held(ftl.PPA(a), ftl.PPA(b), 0) },
				func() { d.MoveFailed(ftl.PPA(a), ftl.PPA(b), 0) }, func() { d.ProgramFailed(ftl.PPA(a), 0) },
				func() { d.Erased(ftl.Block(a)) }, func() { d.Retire(ftl.Block(a)) }, func() { d.Fail(ftl.Block(a)) },
				func() { d.Give(a) }, func() { d.Fill(ftl.Block(a)) }, func() { d.Left(ftl.Block(a)) },
				func() { d.Return(ftl.Block(a)) }, func() { d.Renew(ftl.Block(a)) }, func() { d.Hold(a, b) },
				func() { d.Holds(a, b, c) }, func() { d.Look(a) }, func() { d.Rescue(a) }, func() { d.Exhausted(a) },
				func() { d.Erases(ftl.Block(a)) }, func() { d.IsFast(ftl.PPA(a)) }, func() { d.FastBlocks(a) },
				func() { d.Fold(a, b > 0) }, func() { d.Untouched(a) }, func() { d.Valid(a) },
				func() { d.ValidBelow(ftl.Block(a), b) }, func() { d.IsValid(ftl.PPA(a)) },
				func() { d.Expect(a, b&15) },
				func() { d.EachHeld(a, func(int, int, uint64) {}) }, func() { d.Stats() },
				func() { d.EraseHistogram() },
				func() { d.Blocks(a, func(ftl.Block, ftl.Restored) bool { return true }) },
			}
			stop := false
			if hostile.Refused(t, "ftl", calls[int(code.Byte())%len(calls)]) != "" {
				stop = code.Below(2) == 0 // a call that a driver must not make leaves the books undefined
			}
			if stop || t.Failed() {
				return
			}
		}
	})
}
