package ssd

import (
	"testing"

	"farflash/block"
	"farflash/policy/ftl"
	"farflash/policy/ftl/ftltest"
	"farflash/sim"
)

// TestMap verifies that the maps of a drive and of an image meet ftl's contract, both while few pages are mapped and
// when the map is full.
func TestMap(t *testing.T) {
	for _, c := range []struct {
		name string
		full bool
	}{{"sparse", false}, {"whole", true}} {
		t.Run(c.name, func(t *testing.T) {
			cfg := round()
			cfg.Geometry.PlanesPerDie, cfg.Geometry.PagesPerBlock = 2, 70
			m, err := Prepare(cfg, 1, "ssd", nil)
			if err != nil {
				t.Fatal(err)
			}
			perPlane, perBlock := int(m.pools.flash.PagesPerPlane()), m.pools.flash.PagesPerBlock
			subject := func(to ftl.Map, l2p *table, own *owners) ftltest.Subject {
				if c.full {
					l2p.toArrays()
				}
				return ftltest.Subject{
					Map: to, Logical: ftl.LPA(m.ns[0].pages), Physical: ftl.PPA(cfg.Geometry.Pages()),
					Set: func(l ftl.LPA, p ftl.PPA) {
						if p == ftl.NoPPA {
							l2p.set(uint32(l), trimmed)
						} else {
							l2p.set(uint32(l), uint32(p))
						}
					},
					Program: func(p ftl.PPA, l ftl.LPA) {
						own.set(int(p)/perPlane, int(p)%perPlane/perBlock, int(p)%perBlock, uint32(l))
					},
				}
			}
			t.Run("drive", func(t *testing.T) {
				ftltest.Conform(t, func(t *testing.T) ftltest.Subject {
					d, err := NewFrom(m, sim.New(), &asker{}, 1, "ssd")
					if err != nil {
						t.Fatal(err)
					}
					return subject(d, &d.l2p, &d.owners)
				})
			})
			t.Run("image", func(t *testing.T) {
				ftltest.Conform(t, func(t *testing.T) ftltest.Subject {
					m, err := Prepare(cfg, 1, "ssd", nil)
					if err != nil {
						t.Fatal(err)
					}
					return subject(m, &m.l2p, &m.owners)
				})
			})
		})
	}
}

// TestMapCacheGrowsForWaitingOnly: entries that are waited for are not in the order of use, so finding one to evict
// costs the same however many wait. The table, which grows for them, returns to its capacity once they have been read.
func TestMapCacheGrowsForWaitingOnly(t *testing.T) {
	cfg := round()
	cfg.Mapping.Ideal = false
	cfg.Geometry.BlocksPerPlane = 1024
	a := newAsker(t, cfg)
	c := &a.d.tables[0]
	c.most = 16
	q := a.open(t, block.QueueConfig{Depth: 8, Weight: 1})
	// Entries of mapping page 0, whose read takes far longer than submitting requests for the next page.
	a.d.Submit(q, block.Request{Op: block.Read, Length: 1024 * 8192})
	for c.n < 1024 && a.eng.Pending() > 0 {
		a.eng.Run(a.eng.Next())
	}
	if c.front != 0 || c.back != 0 {
		t.Errorf("entries %d to %d are in order of use, but all are waited for", c.front, c.back)
	}
	a.eng.Run(sim.Forever)
	a.d.Submit(q, block.Request{Op: block.Read, Offset: 1024 * 8192, Length: 8192})
	a.eng.Run(sim.Forever)
	if c.n != c.most {
		t.Errorf("the table keeps %d entries; it has room for %d", c.n, c.most)
	}
}

// TestArenasApart verifies that runs allocated by an arena and its clone after cloning are independent, whatever their
// number of chunks, and that earlier runs are unchanged.
func TestArenasApart(t *testing.T) {
	for before := range 8 { // in chunks; for some values the list of chunks has spare capacity
		a := newArena(arenaChunkWords / 2)
		for n := range uint32(2 * before) {
			a.at(a.grow())[0] = n + 1
		}
		c := a.clone()
		var mine, its []uint32
		for k := range uint32(6) {
			n, m := a.grow(), c.grow()
			mine, its = append(mine, n), append(its, m)
			a.at(n)[0], c.at(m)[0] = 100+k, 200+k
		}
		for k := range mine {
			if x, y := a.at(mine[k])[0], c.at(its[k])[0]; x != uint32(100+k) || y != uint32(200+k) {
				t.Fatalf("%d chunks: run %d holds %d in one and %d in the other", before, k, x, y)
			}
		}
		for n := range uint32(2 * before) {
			if a.at(n)[0] != n+1 || c.at(n)[0] != n+1 {
				t.Fatalf("%d chunks: run %d of before is %d and %d", before, n, a.at(n)[0], c.at(n)[0])
			}
		}
	}
}
