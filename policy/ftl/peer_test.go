package ftl_test

import (
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// peers returns a pool of 128 blocks that collects as MQSim does. Collection starts below 11 free blocks, and host
// writes stop below 10. There are frontiers for data, for the map and for survivors.
func peers(t *testing.T, victim ftl.Victim, change func(c *ftl.Config)) (*ftl.FTL, *oneMap) {
	t.Helper()
	cfg := ftl.Config{
		Pools: 1, BlocksPerPool: 128, PagesPerBlock: 2, Streams: 2, Survivors: []int{2, 2, 2}, Victim: victim,
		Choices: 7,
		GCStart: 11, GCHard: 1, HostReserve: 1, Concurrent: 10, DynamicWear: true,
		Quirks: ftl.Quirks{OnFill: true, HostStop: 10, OpenAtOnce: true, AnyBlock: true},
	}
	if change != nil {
		change(&cfg)
	}
	m := &oneMap{owner: map[ftl.PPA]ftl.LPA{}, at: map[ftl.LPA]ftl.PPA{}}
	random := rng.NewStream(1, "victims")
	f, err := ftl.New(cfg, m, &random)
	if err != nil {
		t.Fatal(err)
	}
	m.f = f
	return f, m
}

type oneMap struct {
	f     *ftl.FTL
	at    map[ftl.LPA]ftl.PPA
	owner map[ftl.PPA]ftl.LPA
}

func (m *oneMap) Lookup(l ftl.LPA) ftl.PPA { return m.at[l] }
func (m *oneMap) Owner(p ftl.PPA) ftl.LPA  { return m.owner[p] }
func (m *oneMap) CompareAndSwap(l ftl.LPA, old, to ftl.PPA) bool {
	if m.at[l] != old {
		return false
	}
	m.at[l] = to
	return true
}

// write writes a page and reports whether there was space for it.
func (m *oneMap) write(l ftl.LPA) bool {
	ppa, ok := m.f.Allocate(0, 0, 0)
	if !ok {
		return false
	}
	if old, was := m.at[l]; was {
		m.f.Invalidate(old, 0)
	}
	m.at[l], m.owner[ppa] = ppa, l
	m.f.Programmed(ppa)
	return true
}

// collect performs all collection that is due, and returns the blocks that were erased.
func (m *oneMap) collect() (erased []int) {
	for {
		a, ok := m.f.Next(0)
		switch {
		case !ok:
			return erased
		case a.Kind == ftl.Erase:
			erased = append(erased, int(a.Block))
			m.f.Erased(a.Block)
			continue
		}
		if to, ok := m.f.Relocate(a.Source, 0); ok {
			m.owner[to] = a.LPA
			m.f.Moved(a.Source, to, 0)
		}
	}
}

// TestPeerDraws compares the victims with the blocks that MQSim erases when a single page is overwritten repeatedly on
// such a plane. The fourth search of its random policy ends at a free block.
func TestPeerDraws(t *testing.T) {
	_, m := peers(t, ftl.Random, nil)
	var got []int
	for len(got) < 11 {
		if !m.write(0) {
			t.Fatalf("the host has to wait after %v", got)
		}
		got = append(got, m.collect()...)
	}
	if want := []int{62, 89, 57, 84, 8, 80, 114, 41, 115, 103, 44}; !slices.Equal(got, want) {
		t.Errorf("%v were erased; by MQSim %v", got, want)
	}
}

// TestPeerVictims verifies which block each policy picks in a pool where only blocks 20 to 29 have invalid pages, one
// page each, and both pages of block 25.
func TestPeerVictims(t *testing.T) {
	for _, c := range []struct {
		victim ftl.Victim
		change func(c *ftl.Config)
		may    func(b int) bool
	}{
		{ftl.Greedy, nil, func(b int) bool { return b == 25 }},
		{ftl.FIFO, nil, func(b int) bool { return b >= 20 && b < 30 }},
		{ftl.DChoices, nil, func(b int) bool { return b >= 20 && b < 30 }},
		{ftl.Random, nil, func(b int) bool { return b >= 20 && b < 30 }},
		{ftl.RandomFull, nil, func(b int) bool { return b >= 20 && b < 30 }},
		{ftl.RandomYield, func(c *ftl.Config) { c.Yield = 2 }, func(b int) bool { return b == 25 }},
	} {
		t.Run(c.victim.String(), func(t *testing.T) {
			f, m := peers(t, c.victim, func(k *ftl.Config) {
				k.GCStart = 40
				if c.change != nil {
					c.change(k)
				}
			})
			next := ftl.LPA(0)
			fill := func(to int) { // until this many blocks are free
				for f.Free(0) > to {
					m.write(next)
					next++
				}
			}
			fill(40)
			for l, ppa := range m.at {
				if b := int(ppa) / 2; b >= 20 && b < 30 && (b == 25 || ppa%2 == 0) {
					f.Invalidate(ppa, 0)
					delete(m.at, l)
				}
			}
			var got []int
			for range 25 {
				free := f.Free(0)
				if free <= 12 {
					break
				}
				fill(free - 1)
				got = append(got, m.collect()...)
				if len(got) > 0 {
					break
				}
			}
			if len(got) == 0 && c.victim != ftl.Random || len(got) > 0 && !c.may(got[0]) {
				t.Errorf("%v were erased", got)
			}
		})
	}
}

// TestPeerHolds verifies that the pages of a victim found while the host reads it are moved once the read completes,
// that the block is erased only by Rescue, and that a block with a page allocated for a read is never picked.
func TestPeerHolds(t *testing.T) {
	f, m := peers(t, ftl.Greedy, nil)
	next := ftl.LPA(0)
	for f.Free(0) > 11 {
		m.write(next)
		next++
	}
	victim, other := m.at[50], m.at[60]
	f.Invalidate(victim, 0) // leaves one valid page in its block; the block of other loses both
	delete(m.at, 50)
	for l, ppa := range m.at {
		if int(ppa)/2 == int(other)/2 {
			f.Invalidate(ppa, 0)
			delete(m.at, l)
		}
	}
	f.Hold(0, int(other)/2)
	f.ReadStarted(victim)
	for f.Free(0) > 10 {
		m.write(next)
		next++
	}
	if a, ok := f.Next(0); ok {
		t.Fatalf("%+v while the victim is read", a)
	}
	if !f.Collecting(0) {
		t.Fatal("no victim is waited for")
	}
	f.ReadDone(victim)
	if erased := m.collect(); erased != nil || f.Collecting(0) {
		t.Fatalf("%v were erased; still collecting: %v", erased, f.Collecting(0))
	}
	if f.Yield(ftl.Block(victim/2)) != 2 {
		t.Error("the victim's page was not moved")
	}
	f.Rescue(0)
	if erased := m.collect(); !slices.Equal(erased, []int{int(victim) / 2}) {
		t.Errorf("%v were erased in the end", erased)
	}
	if err := f.Check(); err != nil {
		t.Error(err)
	}
}
