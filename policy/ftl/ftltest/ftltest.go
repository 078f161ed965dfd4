// Package ftltest supports tests on both sides of ftl.Map: an in-memory map, and the conformance test that every Map
// must pass.
//
// Its main parts are Map, which is two arrays, and Conform, which verifies that a Map of any kind, Map included, meets
// the contract stated in package ftl.
//
// It leaves out maps that are cached or stored on flash (the same contract applies to them) and concurrent use.
package ftltest

import (
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// Map is an in-memory ftl.Map, with the driver's side of it.
type Map struct {
	to []ftl.PPA // by logical page
	of []ftl.LPA // by physical page
}

// NewMap returns an empty map of the given numbers of logical and physical pages.
func NewMap(logical ftl.LPA, physical ftl.PPA) *Map {
	m := &Map{to: make([]ftl.PPA, logical), of: make([]ftl.LPA, physical)}
	for i := range m.to {
		m.to[i] = ftl.NoPPA
	}
	return m
}

// Lookup implements ftl.Map.
func (m *Map) Lookup(lpa ftl.LPA) ftl.PPA { return m.to[lpa] }

// Owner implements ftl.Map.
func (m *Map) Owner(ppa ftl.PPA) ftl.LPA { return m.of[ppa] }

// CompareAndSwap implements ftl.Map.
func (m *Map) CompareAndSwap(lpa ftl.LPA, old, new ftl.PPA) bool {
	if m.to[lpa] != old {
		return false
	}
	m.to[lpa] = new
	return true
}

// Set maps a logical page to a physical page, or to NoPPA, and returns the previous entry.
func (m *Map) Set(lpa ftl.LPA, ppa ftl.PPA) ftl.PPA {
	old := m.to[lpa]
	m.to[lpa] = ppa
	return old
}

// Program records the logical page whose data a page is programmed with.
func (m *Map) Program(ppa ftl.PPA, lpa ftl.LPA) { m.of[ppa] = lpa }

// Subject is a map under test, with the operations of its driver.
type Subject struct {
	Map      ftl.Map
	Logical  ftl.LPA // pages
	Physical ftl.PPA // pages; more than Logical
	// Set maps a logical page, or trims it (NoPPA). Program records the logical page whose data a page is programmed
	// with.
	Set     func(ftl.LPA, ftl.PPA)
	Program func(ftl.PPA, ftl.LPA)
}

// Conform tests that the maps returned by fresh meet the contract of ftl.Map. Each call of fresh must return the map of
// an unwritten drive.
func Conform(t *testing.T, fresh func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Subject)
	}{
		{"empty", empty},
		{"compare and swap", swap},
		{"owners", owners},
		{"random operations", random},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, fresh(t)) })
	}
}

// sample returns the first and last pages and some in between.
func sample[N ~int64](n N) []N {
	out := []N{0, 1, n - 2, n - 1}
	for i := N(1); i < 8; i++ {
		out = append(out, n/8*i)
	}
	return out
}

func empty(t *testing.T, s Subject) {
	for _, l := range sample(s.Logical) {
		if at := s.Map.Lookup(l); at != ftl.NoPPA {
			t.Errorf("Lookup(%d) = %d in an empty map", l, at)
		}
		if s.Map.CompareAndSwap(l, 3, 4) {
			t.Errorf("CompareAndSwap(%d, 3, 4) succeeds in an empty map", l)
		}
		if at := s.Map.Lookup(l); at != ftl.NoPPA {
			t.Errorf("Lookup(%d) = %d after a failed CompareAndSwap", l, at)
		}
	}
}

func swap(t *testing.T, s Subject) {
	last := s.Physical - 1
	for _, l := range sample(s.Logical) {
		s.Set(l, 0)
		for _, c := range []struct {
			old, new ftl.PPA
			ok       bool
			at       ftl.PPA
		}{
			{1, last, false, 0}, {0, last, true, last}, {0, 1, false, last}, {last, last, true, last},
			{last, 1, true, 1},
		} {
			if ok := s.Map.CompareAndSwap(l, c.old, c.new); ok != c.ok {
				t.Errorf("CompareAndSwap(%d, %d, %d) = %v", l, c.old, c.new, ok)
			}
			if at := s.Map.Lookup(l); at != c.at {
				t.Errorf("after CompareAndSwap(%d, %d, %d): Lookup = %d, want %d", l, c.old, c.new, at, c.at)
			}
		}
		s.Set(l, ftl.NoPPA)
		if at := s.Map.Lookup(l); at != ftl.NoPPA || s.Map.CompareAndSwap(l, 1, 2) {
			t.Errorf("trimmed logical page %d is at %d, or can be swapped", l, at)
		}
	}
}

func owners(t *testing.T, s Subject) {
	pages := sample(s.Physical)
	for round := range ftl.LPA(3) {
		for i, p := range pages {
			s.Program(p, (ftl.LPA(i)*7+round)%s.Logical)
		}
		for i, p := range pages {
			if l, want := s.Map.Owner(p), (ftl.LPA(i)*7+round)%s.Logical; l != want {
				t.Errorf("page %d was programmed for logical page %d, but Owner = %d", p, want, l)
			}
		}
	}
	s.Set(0, pages[5])
	s.Set(0, ftl.NoPPA)
	if l, want := s.Map.Owner(pages[5]), (ftl.LPA(5)*7+2)%s.Logical; l != want {
		t.Errorf("Owner(%d) = %d after a trim; the page was programmed for %d", pages[5], l, want)
	}
}

// random compares the map with a Go map under random operations.
func random(t *testing.T, s Subject) {
	draw := rng.NewStream(1, "map")
	to, of := map[ftl.LPA]ftl.PPA{}, map[ftl.PPA]ftl.LPA{}
	at := func(l ftl.LPA) ftl.PPA {
		if p, ok := to[l]; ok {
			return p
		}
		return ftl.NoPPA
	}
	for i := range 20000 {
		l, p := ftl.LPA(draw.IntN(int64(s.Logical))), ftl.PPA(draw.IntN(int64(s.Physical)))
		switch draw.IntN(5) {
		case 0:
			s.Set(l, p)
			to[l] = p
		case 1:
			s.Set(l, ftl.NoPPA)
			delete(to, l)
		case 2:
			s.Program(p, l)
			of[p] = l
		case 3:
			old, has := to[l], false
			if _, has = to[l]; !has || draw.IntN(2) == 0 {
				old = ftl.PPA(draw.IntN(int64(s.Physical)))
			}
			want := has && old == to[l]
			if got := s.Map.CompareAndSwap(l, old, p); got != want {
				t.Fatalf("step %d: logical page %d is at %d; CompareAndSwap from %d: %v", i, l, at(l), old, got)
			}
			if want {
				to[l] = p
			}
		case 4:
			if got := s.Map.Lookup(l); got != at(l) {
				t.Fatalf("step %d: Lookup(%d) = %d, want %d", i, l, got, at(l))
			}
			if want, ok := of[p]; ok && s.Map.Owner(p) != want {
				t.Fatalf("step %d: Owner(%d) = %d, want %d", i, p, s.Map.Owner(p), want)
			}
		}
	}
	for l, p := range to {
		if got := s.Map.Lookup(l); got != p {
			t.Fatalf("Lookup(%d) = %d, want %d", l, got, p)
		}
	}
}
