package ssd

import (
	"errors"
	"strings"
	"testing"

	"farflash/block"
	"farflash/policy/ftl"
	"farflash/sim"
)

// filled returns a small drive that was filled, and written to since.
func filled(t *testing.T, fill Fill) *Drive {
	t.Helper()
	cfg := round()
	cfg.Geometry.PlanesPerDie = 2
	cfg.OverProvisioning = .3
	cfg.Preconditioning.Fill = fill
	m, err := Prepare(cfg, 1, "ssd", nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{eng: sim.New()}
	if a.d, err = NewFrom(m, a.eng, a, 1, "ssd"); err != nil {
		t.Fatal(err)
	}
	q := a.open(t, block.QueueConfig{Depth: 8, Weight: 1})
	for i := range int64(60) {
		a.d.Submit(q, block.Request{Op: block.Write, Offset: i * 7919 % 2000 * 8192, Length: 8192})
		a.eng.Run(sim.Forever)
	}
	if a.d.l2p.chunks != nil {
		t.Fatal("the map keeps every page")
	}
	return a.d
}

// TestEndCheckFinds verifies that the end check, which examines only changes, also finds errors in the rest. Each case
// breaks the agreement of map and flash without changing any count.
func TestEndCheckFinds(t *testing.T) {
	for _, fill := range []Fill{FillSequential, FillSteady} {
		// One page never written, and one that was written.
		whole := func(d *Drive) (untouched, written uint32) {
			for untouched = 0; ; untouched++ {
				if _, ok := d.l2p.sparse.get(untouched); !ok {
					break
				}
			}
			for written = 0; ; written++ {
				if p, ok := d.l2p.sparse.get(written); ok && p.page < trimmed {
					return untouched, written
				}
			}
		}
		for _, c := range []struct {
			name string
			do   func(d *Drive)
			want string
		}{
			{"nothing", func(*Drive) {}, ""},
			{"a page of the filling is lost and not counted", func(d *Drive) {
				u, _ := whole(d)
				d.ftl.Invalidate(ftl.PPA(d.l2p.get(u)), 0)
				d.mapped--
			}, "pages"},
			{"a page that was written is lost", func(d *Drive) {
				_, w := whole(d)
				d.ftl.Invalidate(ftl.PPA(d.l2p.get(w)), 0)
				d.mapped--
			}, "does not hold it"},
			{"two pages lie on one", func(d *Drive) {
				u, w := whole(d)
				d.ftl.Invalidate(ftl.PPA(d.l2p.get(u)), 0)
				d.mapped--
				d.l2p.set(u, d.l2p.get(w))
			}, "does not hold it"},
			{"a page lies where it lay and where it was written", func(d *Drive) {
				u, w := whole(d)
				d.ftl.Invalidate(ftl.PPA(d.l2p.get(w)), 0)
				d.l2p.set(w, trimmed)
				d.l2p.set(u, d.l2p.get(u))
				d.mapped--
			}, "still lies on"},
		} {
			d := filled(t, fill)
			c.do(d)
			said := ""
			for _, x := range d.Checks() {
				if !x.OK {
					said += x.Detail
				}
			}
			if (said == "") != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("%v, %s: %q; want %q", fill, c.name, said, c.want)
			}
		}
	}
}

// TestReplayOfSomePlanes verifies that the end check counts the changes made by fill: replay in planes that the drive
// has not written to.
func TestReplayOfSomePlanes(t *testing.T) {
	cfg := round()
	cfg.Geometry.PlanesPerDie, cfg.OverProvisioning = 2, .3
	cfg.Preconditioning = Preconditioning{Fill: FillReplay, Occupancy: .01, Passes: 1}
	m, err := Prepare(cfg, 1, "ssd", nil)
	if err != nil {
		t.Fatal(err)
	}
	for writes := range int64(3) {
		a := &asker{eng: sim.New()}
		if a.d, err = NewFrom(m, a.eng, a, 1, "ssd"); err != nil {
			t.Fatal(err)
		}
		q := a.open(t, block.QueueConfig{Depth: 8, Weight: 1})
		for i := range writes {
			a.d.Submit(q, block.Request{Op: block.Write, Offset: i * 8192, Length: 8192})
		}
		a.eng.Run(sim.Forever)
		for _, x := range a.d.Checks() {
			if !x.OK {
				t.Errorf("%d pages written: %s: %s", writes, x.Name, x.Detail)
			}
		}
	}
}

// TestMapIsOwners verifies the comparison of map and flash by sums, for an idle drive without a filling: every exchange
// of places or owners changes the sums, and the page-by-page walk then finds the error.
func TestMapIsOwners(t *testing.T) {
	written := func(cmt bool, pages int64) *Drive {
		cfg := round()
		cfg.Geometry.Channels = 4
		if cmt {
			cfg.Mapping.Ideal, cfg.Mapping.CMTCapacity = false, 4096
		}
		a := newAsker(t, cfg)
		q := a.open(t, block.QueueConfig{Depth: 8, Weight: 1})
		for i := range int64(3000) {
			op := block.Write
			if i%7 == 0 {
				op = block.Trim
			}
			a.d.Submit(q, block.Request{Op: op, Offset: i * 7919 % pages * 8192, Length: 8192})
			a.eng.Run(sim.Forever)
		}
		return a.d
	}
	for _, cmt := range []bool{false, true} {
		for _, pages := range []int64{500, 5000} { // in the hash table, in arrays
			d := written(cmt, pages)
			if arrays := d.l2p.chunks != nil; arrays != (pages > 1000) {
				t.Fatalf("%d pages in arrays: %v", pages, arrays)
			}
			var held []uint32
			for l := range d.ns[0].pages {
				if d.l2p.get(l) < trimmed {
					held = append(held, l)
				}
			}
			for l := d.ns[0].mapBase; l < d.ns[0].mapBase+d.ns[0].mapPages; l++ {
				if d.l2p.get(l) < trimmed {
					held = append(held, l)
				}
			}
			a, b := held[0], held[len(held)/2]
			at, bt := d.l2p.get(a), d.l2p.get(b)
			for _, c := range []struct {
				name     string
				do, undo func()
			}{
				{"two places exchanged", func() { d.l2p.set(a, bt); d.l2p.set(b, at) },
					func() { d.l2p.set(a, at); d.l2p.set(b, bt) }},
				{"an owner is another", func() { *d.owners.word(d.split(at)) = b },
					func() { *d.owners.word(d.split(at)) = a }},
				{"a place is lost", func() { d.l2p.set(a, trimmed) }, func() { d.l2p.set(a, at) }},
				{"two pages in one place", func() { d.l2p.set(a, bt) }, func() { d.l2p.set(a, at) }},
			} {
				n, same := d.mapIsOwners()
				if !same || n != d.mapped || n != int64(len(held)) {
					t.Fatalf("at rest: %d pages of %d, %v", n, d.mapped, same)
				}
				c.do()
				if _, same := d.mapIsOwners(); same {
					t.Errorf("%s: not noticed", c.name)
				}
				ok := true
				for _, x := range d.Checks() {
					ok = ok && x.OK
				}
				if ok {
					t.Errorf("%s: the check at the end does not find it", c.name)
				}
				c.undo()
			}
			d.ftl.Invalidate(ftl.PPA(at), 0)
			if _, same := d.mapIsOwners(); same {
				t.Error("a page that holds nothing: not noticed")
			}
		}
	}
}

// TestOwnersOfRecentBlock verifies that the cached run of the block written last is used only while it belongs to the
// block.
func TestOwnersOfRecentBlock(t *testing.T) {
	o := newOwners(2, 4)
	o.set(0, 3, 0, 70)
	o.forget(0, 3) // erased; its run goes to the next allocation
	o.set(1, 5, 0, 80)
	o.set(0, 3, 0, 71)
	if a, b := o.get(0, 3, 0), o.get(1, 5, 0); a != 71 || b != 80 {
		t.Errorf("after an erase: %d and %d, not 71 and 80", a, b)
	}
	c := o.clone()
	o.set(0, 3, 1, 72) // from now on each writes to its own run
	c.set(1, 5, 1, 81)
	o.set(1, 5, 1, 82)
	if a, b := c.get(0, 3, 1), c.get(1, 5, 1); a != 0 || b != 81 {
		t.Errorf("of the copy: %d and %d, not 0 and 81", a, b)
	}
	if a, b := o.get(0, 3, 0), o.get(0, 3, 1); a != 71 || b != 72 {
		t.Errorf("of the original: %d and %d, not 71 and 72", a, b)
	}
}

// TestPreparationCanBeEnded verifies that a preparation reports its progress and ends when the watch returns an error.
func TestPreparationCanBeEnded(t *testing.T) {
	enough := errors.New("enough")
	for _, fill := range []Fill{FillSequential, FillSteady, FillReplay} {
		cfg := round()
		cfg.Geometry.Channels, cfg.Geometry.PlanesPerDie = 8, 4
		cfg.OverProvisioning = .3
		cfg.Preconditioning.Fill, cfg.Preconditioning.Passes = fill, 10
		var told []float64
		watch := func(limit int) Watch {
			told = nil
			return func(share float64) error {
				if told = append(told, share); len(told) == limit {
					return enough
				}
				return nil
			}
		}
		if _, err := Prepare(cfg, 1, "ssd", watch(-1)); err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(told); i++ {
			if told[i] < told[i-1] && told[i] != 0 || told[i] > 1 {
				t.Errorf("%v: %v is done after %v", fill, told[i], told[i-1])
			}
		}
		all := len(told)
		if _, err := Prepare(cfg, 1, "ssd", watch(all/2)); !errors.Is(err, enough) || len(told) != all/2 {
			t.Errorf("%v: told %d times of %d, %v", fill, len(told), all, err)
		}
	}
}
