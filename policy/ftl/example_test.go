package ftl_test

import (
	"fmt"

	"farflash/policy/ftl"
)

// tiny is an in-memory drive without timing: the map and its inverse.
type tiny struct {
	ftl    *ftl.FTL
	places map[ftl.LPA]ftl.PPA
	owners map[ftl.PPA]ftl.LPA
}

func (d *tiny) Lookup(lpa ftl.LPA) ftl.PPA {
	if ppa, ok := d.places[lpa]; ok {
		return ppa
	}
	return ftl.NoPPA
}

func (d *tiny) Owner(ppa ftl.PPA) ftl.LPA { return d.owners[ppa] }

func (d *tiny) CompareAndSwap(lpa ftl.LPA, old, new ftl.PPA) bool {
	if d.places[lpa] != old {
		return false
	}
	d.places[lpa] = new
	return true
}

func (d *tiny) write(lpa ftl.LPA) error {
	ppa, ok := d.ftl.Allocate(0, 0, 0)
	if !ok {
		return fmt.Errorf("no page for %d", lpa)
	}
	old, had := d.places[lpa]
	d.places[lpa], d.owners[ppa] = ppa, lpa
	d.ftl.Programmed(ppa)
	if had {
		d.ftl.Invalidate(old, 0)
	}
	for {
		a, ok := d.ftl.Next(0)
		switch {
		case !ok:
			return nil
		case a.Kind == ftl.Erase:
			d.ftl.Erased(a.Block)
		default:
			if dst, ok := d.ftl.Relocate(a.Source, 0); ok {
				d.owners[dst] = a.LPA
				d.ftl.Moved(a.Source, dst, 0)
			}
		}
	}
}

// A drive of 32 blocks of 8 pages with 200 logical pages, every third of which is overwritten again and again.
func Example() {
	cfg := ftl.DefaultConfig()
	cfg.BlocksPerPool, cfg.PagesPerBlock = 32, 8
	d := &tiny{places: map[ftl.LPA]ftl.PPA{}, owners: map[ftl.PPA]ftl.LPA{}}
	var err error
	if d.ftl, err = ftl.New(cfg, d, nil); err != nil {
		fmt.Println(err)
		return
	}
	for i := range ftl.LPA(6000) {
		lpa := i % 200
		if i >= 200 {
			lpa = i * 3 % 201 % 200
		}
		if err := d.write(lpa); err != nil {
			fmt.Println(err)
			return
		}
	}
	s := d.ftl.Stats()
	fmt.Printf("%d pages written, %d moved, %d blocks erased: write amplification %.2f\n", s.HostPrograms,
		s.GCPrograms, s.Erases, s.WAF())
	fmt.Println(d.ftl.ValidPages(), "pages are valid;", d.ftl.Check())
	// Output:
	// 6000 pages written, 3872 moved, 1204 blocks erased: write amplification 1.65
	// 200 pages are valid; <nil>
}
