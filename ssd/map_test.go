package ssd

import (
	"testing"

	"farflash/ftl"
	"farflash/ftl/ftltest"
	"farflash/sim"
)

// The map of a drive, and that of an image, keep ftl's contract: while few pages are mapped, and when the map holds all.
func TestMap(t *testing.T) {
	for _, c := range []struct {
		name string
		full bool
	}{{"sparse", false}, {"whole", true}} {
		t.Run(c.name, func(t *testing.T) {
			cfg := round()
			cfg.Geometry.PlanesPerDie, cfg.Geometry.PagesPerBlock = 2, 70
			m, err := Prepare(cfg, 1, "ssd")
			if err != nil {
				t.Fatal(err)
			}
			perPlane, perBlock := int(m.pools.flash.PagesPerPlane()), m.pools.flash.PagesPerBlock
			subject := func(to ftl.Map, l2p *table, own *owners) ftltest.Subject {
				if c.full {
					l2p.fill()
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
				ftltest.Conform(t, func(*testing.T) ftltest.Subject {
					d := NewFrom(m, sim.New(), nil, 1, "ssd")
					return subject(d, &d.l2p, &d.owners)
				})
			})
			t.Run("image", func(t *testing.T) {
				ftltest.Conform(t, func(t *testing.T) ftltest.Subject {
					m, err := Prepare(cfg, 1, "ssd")
					if err != nil {
						t.Fatal(err)
					}
					return subject(m, &m.l2p, &m.owners)
				})
			})
		})
	}
}
