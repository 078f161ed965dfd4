package ssd

import (
	"slices"

	"farflash/block"
	"farflash/model/ssd/nand"
	"farflash/policy/ftl"
)

// Zone state machine (NVMe Zoned Namespace Command Set 1.1, section 2.1.1.3), and the superblocks that store zones.
// Commands check and change their zone's state one after the other, as the controller decodes them; only a reset does
// so when it completes.

// zoneState is a state of a zone. Zones are never read-only or offline, because no block of flash fails.
type zoneState uint8

const (
	zoneEmpty zoneState = iota
	zoneImplicit
	zoneExplicit
	zoneClosed
	zoneFull
)

// zone is one of a namespace's zones.
type zone struct {
	pointer   uint32 // write pointer, in grains from the zone's start
	out       uint32 // grains written to it that are not on flash yet
	request   int32  // the reset in progress, or 0
	erasing   int32  // superblocks being erased
	state     zoneState
	resetting bool // a reset has not completed: other commands are rejected
	padding   bool // its last page is programmed partly filled once no more data will follow
	prefilled bool // its data were written before time 0: its superblocks are not listed in blocks
	blocks    []ftl.Block
}

// zoneSet is the state of a namespace's zones.
type zoneSet struct {
	list     []zone
	implicit []uint32 // implicitly opened zones, in that order
	explicit int
	active   int // open or closed zones
}

// ZoneStats counts the operations on zones.
type ZoneStats struct {
	Appends  uint64 // successful commands
	Resets   uint64
	Finishes uint64
	Opened   uint64 // by a write or a command
	Closed   uint64 // by a command, or to allow another to be opened
	Refused  uint64 // commands rejected for a zone's state, its boundary or a limit
}

// ZoneLevels counts the zones in a state.
type ZoneLevels struct {
	Open   int
	Active int // open or closed
	Full   int
}

// returning is a superblock of a zone that is being reset.
type returning struct {
	block ftl.Block
	zone  uint32
	ns    uint8
}

// makeZones creates the zones of a drive's namespaces in the state of its image.
func (d *Drive) makeZones() {
	if !d.cfg.anyZoned() {
		return
	}
	d.zones = make([]zoneSet, len(d.ns))
	for i := range d.ns {
		n := &d.ns[i]
		if n.zones == nil {
			continue
		}
		d.zones[i].list = make([]zone, n.zones.count)
		for k := range d.zones[i].list {
			// A fill writes zones whole.
			if z := &d.zones[i].list[k]; d.l2p.get(n.base+uint32(k)*n.zones.size) < trimmed {
				z.state, z.pointer, z.prefilled = zoneFull, n.zones.capacity, true
			}
		}
	}
}

// checkZoned returns the error status of a request to a zoned namespace as far as it does not depend on zone state, or
// of a zone command to a conventional one.
func (d *Drive) checkZoned(n *namespace, r *block.Request) block.Status {
	z := n.zones
	if z == nil {
		if r.Append || r.Op.OfZone() {
			return block.Invalid
		}
		return block.OK
	}
	grain := d.sectorsPerGrain * nand.SectorSize
	begins := r.Offset%(int64(z.size)*grain) == 0
	switch {
	case r.Op.OfZone():
		if !begins || r.Length != 0 || r.Append {
			return block.Invalid
		}
	case r.Op == block.Trim, r.Append && r.Op != block.Write, r.Op == block.Write && (r.Offset|r.Length)%grain != 0,
		r.Append && (!begins || z.cfg.MaxAppend > 0 && r.Length > int64(z.cfg.MaxAppend)):
		return block.Invalid
	}
	return block.OK
}

// toZone applies a decoded command to its zone's state and returns the status. A write's place in the zone is
// determined here.
func (d *Drive) toZone(r *request) block.Status {
	n := &d.ns[r.ns]
	set := &d.zones[r.ns]
	k, in := n.zones.zone(uint32(d.pageOf(r.offset)))
	z := &set.list[k]
	status := d.inZone(r, n, set, z, k, in)
	if status != block.OK {
		d.zoneStats.Refused++
	}
	return status
}

// inZone implements toZone once the zone is known: k is its number, in the offset of the request within it.
func (d *Drive) inZone(r *request, n *namespace, set *zoneSet, z *zone, k, in uint32) block.Status {
	if z.resetting {
		return block.ZoneTransition
	}
	switch r.done.Op {
	case block.Write:
		return d.toWrite(r, n, set, z, k, in)
	case block.Open:
		if z.state == zoneFull {
			return block.ZoneTransition
		}
		if s := d.openZone(n, set, z, k, true); s != block.OK {
			return s
		}
	case block.Close:
		if z.state == zoneEmpty || z.state == zoneFull {
			return block.ZoneTransition
		}
		d.closeZone(set, z, k)
	case block.Finish:
		d.leaveOpen(set, z, k)
		if z.state != zoneEmpty && z.state != zoneFull {
			set.active--
		}
		// A finished zone has its partly filled last page padded.
		z.state, z.padding = zoneFull, z.pointer > 0 && z.pointer < n.zones.capacity
		d.zoneStats.Finishes++
	case block.Reset:
		z.resetting = true
	}
	return block.OK
}

// toWrite assigns a write its place in its zone.
func (d *Drive) toWrite(r *request, n *namespace, set *zoneSet, z *zone, k, in uint32) block.Status {
	grains := uint32((r.end - r.cursor) / d.sectorsPerGrain)
	switch {
	case z.state == zoneFull:
		return block.ZoneFull
	case !r.append && in != z.pointer:
		return block.ZoneInvalidWrite
	case grains > n.zones.capacity-z.pointer:
		return block.ZoneBoundary
	}
	if s := d.openZone(n, set, z, k, false); s != block.OK {
		return s
	}
	if r.append {
		r.offset += int64(z.pointer) * d.sectorsPerGrain
		r.cursor, r.end = r.offset, r.offset+int64(grains)*d.sectorsPerGrain
		r.done.Offset = r.offset * nand.SectorSize
		d.zoneStats.Appends++
	}
	// The write pointer advances when the command is decoded, before its data arrive.
	z.pointer += grains
	z.out += grains
	if z.pointer == n.zones.capacity {
		d.leaveOpen(set, z, k)
		z.state = zoneFull
		set.active--
	}
	return block.OK
}

// openZone opens a zone, by a command or implicitly for a write. An implicit open leaves an open zone unchanged.
func (d *Drive) openZone(n *namespace, set *zoneSet, z *zone, k uint32, explicit bool) block.Status {
	was := z.state
	if was == zoneExplicit || was == zoneImplicit && !explicit {
		return block.OK
	}
	c := &n.zones.cfg
	if was == zoneEmpty && c.MaxActive > 0 && set.active >= c.MaxActive {
		return block.TooManyActive
	}
	// At the limit, close the zone that was implicitly opened first, as the specification allows.
	if was != zoneImplicit && c.MaxOpen > 0 && set.explicit+len(set.implicit) >= c.MaxOpen {
		if len(set.implicit) == 0 {
			return block.TooManyOpen
		}
		first := set.implicit[0]
		d.closeZone(set, &set.list[first], first)
	}
	if was == zoneEmpty {
		set.active++
	}
	d.leaveOpen(set, z, k)
	if explicit {
		z.state = zoneExplicit
		set.explicit++
	} else {
		z.state = zoneImplicit
		set.implicit = append(set.implicit, k)
	}
	if was != zoneImplicit {
		d.zoneStats.Opened++
	}
	return block.OK
}

// leaveOpen removes a zone from the open ones, if it is open.
func (d *Drive) leaveOpen(set *zoneSet, z *zone, k uint32) {
	switch z.state {
	case zoneExplicit:
		set.explicit--
	case zoneImplicit:
		i := slices.Index(set.implicit, k)
		set.implicit = slices.Delete(set.implicit, i, i+1)
	}
}

// closeZone closes a zone that is open or closed.
func (d *Drive) closeZone(set *zoneSet, z *zone, k uint32) {
	if z.state == zoneClosed {
		return
	}
	d.leaveOpen(set, z, k)
	z.state = zoneClosed
	d.zoneStats.Closed++
}

// zoneCommand executes a zone management command. The zone's state has already changed, except for a reset.
func (d *Drive) zoneCommand(i int32, r *request) {
	r.cursor = r.end
	n := &d.ns[r.ns]
	k, _ := n.zones.zone(uint32(d.pageOf(r.offset)))
	z := &d.zones[r.ns].list[k]
	d.openBatch()
	if r.done.Op == block.Reset {
		// The request completes when the zone's superblocks have been erased.
		r.left++
		z.request = i
		d.forgetCached(n, z, k)
	}
	if z.padding || z.resetting {
		d.settleZone(int(r.ns), k)
	}
	d.closeBatch()
	d.partDone(i, r)
}

// forgetCached drops cached data of a zone that is being reset. Data in flight to flash, or waiting for cache space,
// are left to complete.
func (d *Drive) forgetCached(n *namespace, z *zone, k uint32) {
	c := &d.caches[n.cacheSet]
	base := n.base + k*n.zones.size
	for in := range z.pointer {
		s, ok := c.index.get(base + in)
		if !ok {
			continue
		}
		// A dirty slot has not left yet, so its data will never reach flash.
		if x := &c.slots[s]; x.state == dirty {
			z.out--
			c.drop(base + in)
		} else if x.state == clean {
			c.drop(base + in)
		}
	}
	d.admit(c)
}

// beingReset returns the zone of a logical page if the zone is being reset, so that data still to be written to it can
// be discarded; otherwise nil.
func (d *Drive) beingReset(ns uint8, l uint32) *zone {
	n := &d.ns[ns]
	k, _ := n.zones.zone(l - n.base)
	if z := &d.zones[ns].list[k]; z.resetting {
		return z
	}
	return nil
}

// settleIfReset advances the reset of a sector's zone, if there is one.
func (d *Drive) settleIfReset(ns uint8, sector int64) {
	k, _ := d.ns[ns].zones.zone(uint32(d.pageOf(sector)))
	if d.zones[ns].list[k].resetting {
		d.settleZone(int(ns), k)
	}
}

// settleZone advances a zone that is being finished or reset: the rest of its last page is given up once all of its
// data have their places, and its superblocks are erased once all data are on flash.
func (d *Drive) settleZone(ns int, k uint32) {
	n := &d.ns[ns]
	z := &d.zones[ns].list[k]
	// Data are still being written: make sure that their last page does not wait for more.
	if z.out > 0 {
		d.padZone(z)
		return
	}
	if z.erasing > 0 {
		return
	}
	z.padding = false
	if !z.resetting {
		return
	}
	base := n.base + k*n.zones.size
	for in := range z.pointer {
		if p := d.l2p.get(base + in); p < trimmed {
			// The superblocks of a prefilled zone are found through the map.
			if z.prefilled {
				if b := d.ftl.BlockOf(ftl.PPA(p)); len(z.blocks) == 0 || z.blocks[len(z.blocks)-1] != b {
					z.blocks = append(z.blocks, b)
				}
			}
			d.vacate(p)
		}
		d.l2p.put(base+in, trimmed, 0)
		d.caches[n.cacheSet].drop(base + in)
		if d.errs != nil {
			d.found(base + in)
		}
	}
	z.prefilled = false
	if len(z.blocks) == 0 {
		d.resetDone(ns, k)
		return
	}
	z.erasing = int32(len(z.blocks))
	for _, b := range z.blocks {
		d.returning = append(d.returning, returning{b, k, uint8(ns)})
		d.ftl.Return(b)
	}
	z.blocks = z.blocks[:0]
	pool := int(n.pool(k * n.zones.size))
	d.collect(pool)
	d.noteCollecting(pool)
}

// padZone programs the page with a zone's last grains partly filled, if no more grains will follow.
func (d *Drive) padZone(z *zone) {
	if len(z.blocks) == 0 {
		return
	}
	b := z.blocks[len(z.blocks)-1]
	pool := int(b) / d.cfg.Geometry.BlocksPerPlane
	// next is the grain that the zone fills next, q its page of flash.
	next := uint32(d.ftl.PPA(b, 0)) + d.perBlockPages() - uint32(d.ftl.Left(b))
	q, in := d.perPage.Split(uint64(next))
	g := d.packing.Find(pool, uint32(q))
	if g == nil || in == 0 || uint32(g.Grains) < z.out {
		return // the rest is still to arrive, or already programmed
	}
	if !g.Queued {
		d.queuePage(pool, g)
	}
}

// perBlockPages returns the number of grains in a superblock.
func (d *Drive) perBlockPages() uint32 { return uint32(d.pools.flash.PagesPerBlock) }

// zonePage allocates the next page of a logical page's zone. It reports false while there is no superblock for it.
func (d *Drive) zonePage(ns uint8, l uint32, pool int) (ftl.PPA, bool) {
	n := &d.ns[ns]
	k, _ := n.zones.zone(l - n.base)
	z := &d.zones[ns].list[k]
	if len(z.blocks) == 0 || d.ftl.Left(z.blocks[len(z.blocks)-1]) == 0 {
		b, ok := d.ftl.Give(pool)
		if !ok {
			return ftl.NoPPA, false
		}
		z.blocks = append(z.blocks, b)
	}
	return d.ftl.Fill(z.blocks[len(z.blocks)-1]), true
}

// zonePlaced advances a zone that waits for its data to have their places.
func (d *Drive) zonePlaced(ns uint8, l uint32) {
	n := &d.ns[ns]
	k, _ := n.zones.zone(l - n.base)
	if z := &d.zones[ns].list[k]; z.padding || z.resetting {
		d.padZone(z)
	}
}

// zoneProgrammed records that a grain is on flash, if it belongs to a zone.
//
//go:noinline
func (d *Drive) zoneProgrammed(x *transaction) {
	n := &d.ns[x.ns]
	if n.zones == nil {
		return
	}
	k, _ := n.zones.zone(x.logical - n.base)
	z := &d.zones[x.ns].list[k]
	z.out--
	if z.padding || z.resetting {
		d.settleZone(int(x.ns), k)
	}
}

// zoneErased advances the zone whose superblock was erased, if it belonged to one.
func (d *Drive) zoneErased(b ftl.Block) {
	for i := range d.returning {
		x := d.returning[i]
		if x.block != b {
			continue
		}
		d.returning = slices.Delete(d.returning, i, i+1)
		z := &d.zones[x.ns].list[x.zone]
		if z.erasing--; z.erasing == 0 {
			d.resetDone(int(x.ns), x.zone)
		}
		return
	}
}

// isReturning reports whether a superblock belongs to a zone that is being reset.
func (d *Drive) isReturning(b ftl.Block) bool {
	return slices.ContainsFunc(d.returning, func(x returning) bool { return x.block == b })
}

// resetIsDue reports whether the next erase of a lane belongs to a zone reset and was queued before the host's programs
// that wait there. Collection's erases, in contrast, wait until there are no host programs.
func (d *Drive) resetIsDue(l *lane) bool {
	if l.mask&(1<<queueErase) == 0 {
		return false
	}
	x := d.txns.At(l.queues[queueErase].at(0).txn)
	if !x.resets {
		return false
	}
	for q := queueHostWrite; q < queueHostWrite+classes; q++ {
		if l.queues[q].n > 0 && d.txns.At(l.queues[q].at(0).txn).queued < x.queued {
			return false
		}
	}
	return true
}

// resetDone completes a reset.
func (d *Drive) resetDone(ns int, k uint32) {
	set := &d.zones[ns]
	z := &set.list[k]
	d.leaveOpen(set, z, k)
	if z.state != zoneEmpty && z.state != zoneFull {
		set.active--
	}
	z.state, z.pointer, z.resetting, z.padding = zoneEmpty, 0, false, false
	d.zoneStats.Resets++
	i := z.request
	z.request = 0
	d.partDone(i, d.requests.At(i))
}

// zonesNow returns the current numbers of zones by state.
func (d *Drive) zonesNow() (s ZoneLevels) {
	for i := range d.zones {
		set := &d.zones[i]
		s.Open += set.explicit + len(set.implicit)
		s.Active += set.active
		for k := range set.list {
			if set.list[k].state == zoneFull {
				s.Full++
			}
		}
	}
	return s
}
