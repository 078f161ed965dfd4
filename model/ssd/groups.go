package ssd

import (
	"fmt"

	"farflash/numeric/units"
	"farflash/policy/ftl"
)

// Reclaim groups: pools of planes of their own, so that each has its superblocks, its free ones, its spare space and
// its collection. The pool of a page is that which its address has in turn among those of the group that its write
// names. What the drive places by itself (its filling, pages of the map, pages allocated by reads) goes round the
// pools of all groups.
//
// A pool may hold as many pages of data as it would if every address were written in turn over all groups, and a
// superblock more. Of the pools that a page may be in, one a group, some one always has room therefore, and a pool
// never holds what its collection could not cope with. The superblock lets data change places on a drive that is
// full.

// Groups is how many reclaim groups a drive of this configuration has.
func (c *Config) Groups() int {
	if c.FDP == nil {
		return 1
	}
	return max(c.FDP.Groups, 1)
}

// validateGroups checks several reclaim groups of a possible geometry.
func (c *Config) validateGroups(bad *units.Faults) {
	n := c.Groups()
	if n == 1 {
		return
	}
	const at = "fdp.groups"
	bad.Hold(c.Geometry.Dies()%n == 0, at,
		"%d do not divide %d dies, and each has as many of its own; use a number that does", n, c.Geometry.Dies())
	bad.Hold(c.Quirks == Quirks{}, at, "the peer knows no reclaim groups; leave compat out, or use 1")
	for i := range c.Namespaces {
		x := &c.Namespaces[i]
		bad.Hold(len(x.Channels)+len(x.Chips)+len(x.Dies)+len(x.Planes) == 0, fmt.Sprintf("namespaces[%d]", i),
			"a namespace with flash of its own cannot be divided into reclaim groups; leave out channels, chips, "+
				"dies and planes, or use 1 group")
	}
}

// mostData is how many pages of data a pool may hold.
func (c *Config) mostData(ns []namespace, p *pools, pool int32) int64 {
	data, _ := pagesIn(ns, pool, false)
	if c.Groups() > 1 {
		data += int64(p.flash.PagesPerBlock)
	}
	return data
}

// groups is what a drive with several reclaim groups knows of them.
type groups struct {
	held  []int64 // by pool: pages of data that have their place there
	most  []int64 // by pool: how many may
	stats []GroupStats
}

// GroupStats is what flash was programmed with in a reclaim group: grains of data that the host wrote, of these those
// that named another group, which had no room, and grains that collection, wear levelling and refresh moved.
type GroupStats struct{ Written, Strayed, Moved uint64 }

func (s *GroupStats) counts() []*uint64 { return []*uint64{&s.Written, &s.Strayed, &s.Moved} }

// makeGroups makes the groups of a drive, if there are several, as its image left them.
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

// poolIn is the pool of a reclaim group that logical page l is written to, or, if that is full, that of the group
// with the most room.
func (d *Drive) poolIn(n *namespace, l uint32, group int) int32 {
	g := d.groups
	_, k := n.inTurn(l - n.base)
	each := len(n.poolOf) / len(g.stats)
	k %= each
	best := n.poolOf[group*each+k]
	room := g.most[best] - g.held[best]
	if page := d.l2p.get(l); room > 0 || page < trimmed && d.poolOf(page) == int(best) {
		// where it is already it takes no more room
		return best
	}
	for ; k < len(n.poolOf); k += each {
		if pool := n.poolOf[k]; g.most[pool]-g.held[pool] > room {
			best, room = pool, g.most[pool]-g.held[pool]
		}
	}
	return best
}

// poolInGroupOf is poolIn of the reclaim group that a pool is part of.
//
//go:noinline
func (d *Drive) poolInGroupOf(n *namespace, l uint32, pool int32) int32 {
	return d.poolIn(n, l, d.pools.group(pool))
}

// came notes that a page of data got a place in a pool, and that old, if that is a place, is no longer its own.
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

// vacate gives the place of a page up whose data are gone.
func (d *Drive) vacate(page uint32) {
	d.ftl.Invalidate(ftl.PPA(page), d.tick())
	d.mapped--
	if d.groups != nil {
		d.groups.held[d.poolOf(page)]--
	}
}
