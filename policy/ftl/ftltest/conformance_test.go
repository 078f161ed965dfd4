package ftltest_test

import (
	"fmt"
	"testing"

	"farflash/policy/ftl"
	"farflash/policy/ftl/ftltest"
)

func TestMap(t *testing.T) {
	ftltest.Conform(t, func(*testing.T) ftltest.Subject {
		m := ftltest.NewMap(1000, 1500)
		return ftltest.Subject{Map: m, Logical: 1000, Physical: 1500, Set: func(l ftl.LPA, p ftl.PPA) { m.Set(l, p) },
			Program: m.Program}
	})
}

// A driver in a few lines, with every operation synchronous.
func Example() {
	cfg := ftl.DefaultConfig()
	cfg.BlocksPerPool, cfg.PagesPerBlock = 16, 4
	m := ftltest.NewMap(20, 64)
	f, err := ftl.New(cfg, m, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 200 {
		lpa := ftl.LPA(i * 7 % 20)
		ppa, _ := f.Allocate(0, 0, ftl.Tick(i))
		m.Program(ppa, lpa)
		old := m.Set(lpa, ppa)
		f.Programmed(ppa)
		if old != ftl.NoPPA {
			f.Invalidate(old, ftl.Tick(i))
		}
		for a, ok := f.Next(0); ok; a, ok = f.Next(0) {
			if a.Kind == ftl.Erase {
				f.Erased(a.Block)
			} else if dst, ok := f.Relocate(a.Source, ftl.Tick(i)); ok {
				m.Program(dst, a.LPA)
				f.Moved(a.Source, dst, ftl.Tick(i))
			}
		}
	}
	fmt.Println(f.ValidPages(), "pages are valid;", f.Check() == nil)
	// Output: 20 pages are valid; true
}
