package ftl_test

import (
	"reflect"
	"sync"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
	"farflash/policy/ftl/ftltest"
)

// TestPoolsApart works on each pool of one translation layer from a goroutine of its own, failures included, as a
// controller with a lock per pool may; the race detector reports illegal sharing. Each pool has its own logical pages,
// so the map needs no lock either.
func TestPoolsApart(t *testing.T) {
	const each = 60
	cfg := small()
	cfg.Pools, cfg.Streams, cfg.StaticWear = 4, 2, 8
	m := ftltest.NewMap(ftl.LPA(cfg.Pools*each), ftl.PPA(cfg.Pools*cfg.BlocksPerPool*cfg.PagesPerBlock))
	f, err := ftl.New(cfg, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	f = f.Clone(m, nil) // its pools are shared with the original until they are touched
	var all sync.WaitGroup
	for pool := range cfg.Pools {
		all.Go(func() {
			random := rng.NewStream(uint64(pool), "work")
			now := ftl.Tick(0)
			for i := range 5000 {
				now++
				ppa, ok := f.Allocate(pool, int(random.IntN(2)), now)
				if !ok {
					t.Errorf("pool %d has no page", pool)
					return
				}
				lpa := ftl.LPA(pool) + ftl.LPA(random.IntN(each))*ftl.LPA(cfg.Pools)
				if i == 2000 {
					f.ProgramFailed(ppa, now)
				} else {
					m.Program(ppa, lpa)
					old := m.Set(lpa, ppa)
					f.Programmed(ppa)
					if old != ftl.NoPPA {
						f.Invalidate(old, now)
					}
				}
				for a, ok := f.Next(pool); ok; a, ok = f.Next(pool) {
					if a.Kind == ftl.Erase {
						f.Erased(a.Block)
					} else if dst, ok := f.Relocate(a.Source, now); ok {
						m.Program(dst, a.LPA)
						f.Moved(a.Source, dst, now)
					}
				}
				if f.PoolOf(ppa) != pool || f.Free(pool) < 0 || f.Spare(pool) > cfg.BlocksPerPool ||
					f.Urgent(pool) && f.Exhausted(pool) {
					t.Errorf("pool %d, page %d", pool, ppa)
				}
			}
		})
	}
	all.Wait()
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	s := f.Stats()
	if s.HostPrograms != int64(cfg.Pools*5000) || s.FailedPrograms != int64(cfg.Pools) ||
		s.Retired != int64(cfg.Pools) || s.Programs[0]+s.Programs[1] != s.HostPrograms {
		t.Errorf("%+v", s)
	}
}

// TestStatsArithmetic verifies that subtracting and adding back restores every field.
func TestStatsArithmetic(t *testing.T) {
	a := ftl.Stats{Programs: []int64{1, 2}, HostPrograms: 3, GCPrograms: 5, WearPrograms: 7, FailurePrograms: 11,
		RenewalPrograms: 12, Renewals: 14, FailedPrograms: 13, Raced: 17,
		Erases: 19, Failures: 23, Retired: 29, Collections: 31, Relocations: 37}
	twice := ftl.Stats{Programs: []int64{2, 4}, HostPrograms: 6, GCPrograms: 10, WearPrograms: 14,
		FailurePrograms: 22, RenewalPrograms: 24, Renewals: 28, FailedPrograms: 26, Raced: 34,
		Erases: 38, Failures: 46, Retired: 58, Collections: 62, Relocations: 74}
	if got := a.Add(a); !reflect.DeepEqual(got, twice) {
		t.Errorf("%+v", got)
	}
	if got := twice.Sub(a); !reflect.DeepEqual(got, a) {
		t.Errorf("%+v", got)
	}
	if a.Programs[0] != 1 || twice.Programs[1] != 4 {
		t.Error("a sum changed what was added")
	}
	// Streams that only one of them has.
	if got := (ftl.Stats{Programs: []int64{1}}).Add(a); len(got.Programs) != 2 || got.Programs[0] != 2 ||
		got.Programs[1] != 2 {
		t.Errorf("%+v", got)
	}
	if waf := a.WAF(); waf != float64(3+5+7+11+12)/3 {
		t.Errorf("WAF %v", waf)
	}
}
