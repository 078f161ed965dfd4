package ssd

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/policy/ftl"
)

// Reclaim groups. Each has its own pools of planes, and with them its own superblocks, free blocks, spare space and
// collection. A page goes to the pool that its address has in turn among those of the group that its write names. Data
// that the drive places itself (the filling, mapping pages, pages allocated by reads) are striped over the pools of all
// groups.
//
// The data in a pool are limited to the pages it would hold if every address were written in turn over all groups, plus
// one superblock. Of the pools that a page can be in, one a group, at least one therefore always has space, and no pool
// exceeds what its collection can handle. The extra superblock lets data move between groups on a full drive.

// Groups returns the number of a drive's reclaim groups.
func (c *Config) Groups() int {
	if c.FDP == nil {
		return 1
	}
	return max(c.FDP.Groups, 1)
}

// validateGroups checks several reclaim groups against a valid geometry.
func (c *Config) validateGroups(bad *units.Faults) {
	n := c.Groups()
	if n == 1 {
		return
	}
	const at = "fdp.groups"
	bad.Hold(c.Geometry.Dies()%n == 0, at,
		"%d do not divide %d dies, and groups have equal numbers of dies; use a divisor", n, c.Geometry.Dies())
	bad.Hold(c.Quirks == Quirks{}, at, "the peer has no reclaim groups; leave compat out, or use 1")
	for i := range c.Namespaces {
		x := &c.Namespaces[i]
		bad.Hold(len(x.Channels)+len(x.Chips)+len(x.Dies)+len(x.Planes) == 0, fmt.Sprintf("namespaces[%d]", i),
			"a namespace on selected dies cannot be divided into reclaim groups; leave out channels, chips, "+
				"dies and planes, or use 1 group")
	}
}

// mostData returns the largest number of data pages that a pool may hold.
func (c *Config) mostData(ns []namespace, p *pools, pool int32) int64 {
	data, _ := pagesIn(ns, pool, false)
	if c.Groups() > 1 {
		data += int64(p.flash.PagesPerBlock)
	}
	return data
}

// groups is the state of a drive with several reclaim groups.
type groups struct {
	held  []int64 // by pool: pages of data placed there
	most  []int64 // by pool: limit on held
	stats []GroupStats
}

// GroupStats counts the grains of data programmed in a reclaim group: written by the host; those of them that named
// another group, which had no space; and moved by collection, wear levelling and refresh.
type GroupStats struct{ Written, Strayed, Moved uint64 }

func (s *GroupStats) counts() []*uint64 { return []*uint64{&s.Written, &s.Strayed, &s.Moved} }

// makeGroups creates the groups of a drive, if there are several, in the state of its image.
func (d *Drive) makeGroups() {
	n := d.cfg.Groups()
	if n == 1 {
		return
	}
	g := &groups{held: make([]int64, d.pools.count()), most: make([]int64, d.pools.count()),
		stats: make([]GroupStats, n)}
	for pool := range g.held {
		g.most[pool] = d.cfg.mostData(d.ns, &d.pools, int32(pool))
		if f := d.l2p.filled; f != nil {
			g.held[pool] = f.pages(pool)
		}
	}
	d.groups = g
}

// poolIn returns the pool of a reclaim group that logical page l is written to or, if that is full, the pool of the
// group with the most space.
func (d *Drive) poolIn(n *namespace, l uint32, group int) int32 {
	g := d.groups
	_, k := n.inTurn(l - n.base)
	each := len(n.poolOf) / len(g.stats)
	k %= each
	best := n.poolOf[group*each+k]
	room := g.most[best] - g.held[best]
	if page := d.l2p.get(l); room > 0 || page < trimmed && d.poolOf(page) == int(best) {
		// rewriting it in place takes no more space
		return best
	}
	for ; k < len(n.poolOf); k += each {
		if pool := n.poolOf[k]; g.most[pool]-g.held[pool] > room {
			best, room = pool, g.most[pool]-g.held[pool]
		}
	}
	return best
}

// poolInGroupOf is poolIn for the reclaim group of a pool.
//
//go:noinline
func (d *Drive) poolInGroupOf(n *namespace, l uint32, pool int32) int32 {
	return d.poolIn(n, l, d.pools.group(pool))
}

// came records that a page of data was placed in a pool, and that old, if it is a place, is no longer valid.
//
//go:noinline
func (d *Drive) came(pool int32, old uint32) {
	d.groups.held[pool]++
	if old < trimmed {
		d.groups.held[d.poolOf(old)]--
	}
}

// countInGroup counts a grain of data that is to be programmed.
func (d *Drive) countInGroup(x *transaction) {
	group := d.pools.group(int32(d.poolOf(x.page)))
	s := &d.groups.stats[group]
	switch {
	case x.origin == fromMove, x.origin == fromHeld:
		s.Moved++
	case group != int(x.group):
		s.Strayed++
		fallthrough
	default:
		s.Written++
	}
}

// vacate releases the place of a page whose data are gone.
func (d *Drive) vacate(page uint32) {
	d.ftl.Invalidate(ftl.PPA(page), d.tick())
	d.mapped--
	if d.groups != nil {
		d.groups.held[d.poolOf(page)]--
	}
}
