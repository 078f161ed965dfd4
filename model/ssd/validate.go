package ssd

import (
	"fmt"
	"slices"

	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/policy/ftl"
)

// Validate lists every invalid setting by its key.
func (c *Config) Validate() error {
	var bad units.Faults
	shape := c.Geometry.Validate()
	bad.Within("geometry", shape)
	bad.Within("timing", c.Timing.Validate())
	bad.Hold(c.OverProvisioning > 0 && c.OverProvisioning < 1,
		"over_provisioning", "%v is not possible; use more than 0%% and less than 100%%", c.OverProvisioning)
	bad.Within("host", c.Host.validate())
	d := &c.DRAM
	bad.Hold(d.RowSize >= 1 && d.BurstSize >= 1 && d.TRCD >= 0 && d.TCL >= 0 && d.TRP >= 0,
		"dram", "row_size and burst_size must be positive and the delays not negative")
	bad.Hold(max(d.TRCD, d.TCL, d.TRP) <= nand.MaxTime, "dram", "a delay of %v is not possible; use at most %v",
		max(d.TRCD, d.TCL, d.TRP), nand.MaxTime)
	bad.Hold(d.DataRate >= units.MTPerSecond, "dram.data_rate",
		"%v is not possible; use at least 1MT/s, 1600MT/s to 6400MT/s are usual", d.DataRate)
	bad.Within("cache", c.Cache.validate(c.Geometry.PageSize))
	var s Scheme
	bad.Within("mapping.scheme", s.UnmarshalText(c.Mapping.Scheme[:]))
	bad.Within("collection", c.Collection.validate(c.Geometry.BlocksPerPlane, c.Quirks.CollectOnFill))
	if r := c.Reliability; r != nil {
		bad.Within("reliability", r.validate(c))
	}
	if k := c.Controller; k != nil {
		bad.Within("controller", k.validate())
	}
	c.validatePowerStates(&bad)
	c.validateSLCCache(&bad)
	c.validatePowerLimit(&bad)
	c.validateZones(&bad)
	c.validateFDP(&bad)
	if e := c.Energy; e != nil {
		least, most := min(e.Read, e.Program, e.Erase, e.TransferPerByte, e.LinkPerByte),
			max(e.Read, e.Program, e.Erase, e.TransferPerByte, e.LinkPerByte)
		bad.Hold(least >= 0 && most <= 1000, "energy", "an operation of %v to %v is not possible; use 0J to 1kJ",
			least, most)
		bad.Hold(e.Idle >= 0 && e.Idle <= 1e6, "energy.idle_watts", "%v W are not possible; use 0 to 1000000", e.Idle)
	}
	bad.Hold(c.Mapping.Allocation <= AllocateStatic, "mapping.allocation",
		"%d is not possible; use dynamic or static", c.Mapping.Allocation)
	bad.Hold(!c.Collection.Copyback || c.Mapping.Allocation == AllocateStatic,
		"collection.copyback", "copyback needs static allocation, which keeps pages in their plane; set mapping.allocation: static")
	bad.Hold(!c.Collection.Copyback || c.grainSize() == c.Geometry.PageSize,
		"collection.copyback", "copyback moves whole pages; set mapping.grain: page")
	bad.Hold(!c.Scheduling.IndependentReads || !c.Quirks.MessagesInTurn && !c.Quirks.WholeChip,
		"scheduling.independent_reads", "MQSim's flash reads planes together; leave it out, or the quirks of its flash")
	bad.Hold(!c.Scheduling.ReadsInTurn || c.Scheduling.IndependentReads, "scheduling.reads_in_turn",
		"without scheduling.independent_reads no read starts beside others; set that to true, or this to false")
	bad.Hold(c.Wear.Static >= 0 && c.Wear.Cycles >= 0, "wear", "static and cycles must not be negative")
	p := &c.Preconditioning
	unused := p.Fill == FillNone && c.Collection.Victim != ftl.RandomYield
	bad.Hold(p.Occupancy <= 1 && (p.Occupancy > 0 || unused && p.Occupancy >= 0),
		"preconditioning.occupancy", "%v is not possible", p.Occupancy)
	bad.Hold(p.Passes >= 0 && p.Passes <= 1000, "preconditioning.passes", "%v is not possible; use 0 to 1000", p.Passes)
	bad.Hold(len(c.Namespaces) <= maxNamespaces, "namespaces", "%d are more than %d", len(c.Namespaces), maxNamespaces)
	if shape != nil {
		return bad.Err() // the checks below count pages and planes
	}
	if g := units.Bytes(c.Mapping.Grain); g > 0 && g < c.Geometry.PageSize {
		bad.Hold(g%nand.SectorSize == 0 && c.Geometry.PageSize%g == 0, "mapping.grain",
			"%v does not divide a page of %v into whole sectors; use page or a size such as 4KiB that does", g,
			c.Geometry.PageSize)
		if bad.Err() != nil {
			return bad.Err()
		}
		bad.Hold(c.grains() < 1<<32-1, "mapping.grain",
			"%v makes %d grains, above the map's limit, 4294967294; use a larger grain, or page", g,
			c.grains())
	}
	bad.Hold(c.Mapping.Ideal || c.cmtEntries() >= 16,
		"mapping.cmt_capacity", "%v holds %d entries; it must hold at least 16", c.Mapping.CMTCapacity, c.cmtEntries())
	for i := range c.Namespaces {
		bad.Within(fmt.Sprintf("namespaces[%d]", i), c.Namespaces[i].validate(c.Geometry))
	}
	c.validateGroups(&bad)
	if bad.Err() == nil {
		c.validateZoneSpace(&bad)
	}
	if bad.Err() == nil {
		c.validateSpace(&bad)
	}
	if bad.Err() == nil {
		c.validateSLCSpace(&bad)
	}
	return bad.Err()
}

func (h *Host) validate() error {
	var bad units.Faults
	bad.Hold(h.LaneRate >= units.MBPerSecond && h.Lanes >= 1 && h.Lanes <= 32, "", "%d lanes of %v are not possible",
		h.Lanes, h.LaneRate)
	bad.Hold(h.PacketBytes >= 0 && h.PacketBytes <= 4096 && h.MaxPayload >= 1, "max_payload",
		"%d bytes with %d bytes of overhead is not possible", h.MaxPayload, h.PacketBytes)
	bad.Hold(h.FetchSize >= 1 && h.FetchSize <= 65536, "fetch_size",
		"%d is not possible; use 1 to 65536, the largest submission queue", h.FetchSize)
	bad.Hold(h.Commands >= 0 && h.Commands <= 1<<30, "commands",
		"%d is not possible; use 1 to 1073741824, or 0 for no limit", h.Commands)
	bad.Hold(h.Burst >= 1 && h.Burst <= 65536, "burst", "%d is not possible; use 1 to 65536", h.Burst)
	bad.Hold(min(h.Weights[0], h.Weights[1], h.Weights[2]) >= 1 &&
		max(h.Weights[0], h.Weights[1], h.Weights[2]) <= 256, "weights", "%v: every weight must be 1 to 256", h.Weights)
	bad.Hold(h.SubmissionDepth >= 2 && h.SubmissionDepth <= 65536, "submission_depth",
		"%d is not possible; use 2 to 65536", h.SubmissionDepth)
	return bad.Err()
}

func (c *Cache) validate(page units.Bytes) error {
	var bad units.Faults
	bad.Hold(c.Capacity >= 0 && (c.Mode == CacheOff || c.Capacity >= page),
		"capacity", "%v holds no page of %v; raise it or set cache.mode: off", c.Capacity, page)
	bad.Hold(c.DestageAt >= 0 && c.DestageAt < 1, "destage_at", "%v is not possible; use 0%% up to less than 100%%",
		c.DestageAt)
	bad.Hold(c.DestageDepth >= 0, "destage_depth", "%d is not possible", c.DestageDepth)
	return bad.Err()
}

func (k *Collection) validate(blocks int, loose bool) error {
	var bad units.Faults
	bad.Hold(k.Start > 0 && k.Start < 1, "start", "%v is not possible", k.Start)
	bad.Hold(k.Hard >= 0 && k.Hard < 1 && (k.Hard <= k.Start || loose), "hard",
		"%v must be between 0%% and collection.start, %v", k.Hard, k.Start)
	bad.Hold(k.Concurrent >= 1 && k.Concurrent <= 64, "concurrent", "%d is not possible; use 1 to 64", k.Concurrent)
	bad.Hold(k.MovesPerPlane > 0 && k.MovesPerPlane <= 1000, "moves_per_plane",
		"%v is not possible; use above 0 up to 1000, 4 is usual", k.MovesPerPlane)
	bad.Hold(k.Reserve >= 1 && k.Reserve < blocks, "reserve", "%d of a plane's %d blocks is not possible", k.Reserve,
		blocks)
	bad.Hold(k.Choices >= 0 && k.Choices <= blocks, "choices", "%d of a plane's %d blocks is not possible", k.Choices,
		blocks)
	bad.Hold(k.Window >= 0 && k.Window <= 1, "window", "%v is not possible", k.Window)
	return bad.Err()
}

func (n *Namespace) validate(g nand.Geometry) error {
	var bad units.Faults
	for _, l := range []struct {
		name string
		ids  []int
		most int
	}{{"channels", n.Channels, g.Channels}, {"chips", n.Chips, g.ChipsPerChannel}, {"dies", n.Dies, g.DiesPerChip},
		{"planes", n.Planes, g.PlanesPerDie}} {
		seen := make([]bool, l.most)
		for _, id := range l.ids {
			if id < 0 || id >= l.most {
				bad.Hold(false, l.name, "no number %d; the drive has 0 to %d", id, l.most-1)
				continue
			}
			bad.Hold(!seen[id], l.name, "number %d is listed twice", id)
			seen[id] = true
		}
	}
	bad.Hold(n.Streams >= 0 && n.Streams <= maxStreams, "streams", "%d is not possible; use 1 to %d", n.Streams,
		maxStreams)
	return bad.Err()
}

// validateSpace checks that each plane has blocks to spare for open blocks, collection and the reserve, in addition to
// all data that the host may write. A host that waits for a block waits forever if all blocks that are not open hold
// only valid pages. In the worst case all other streams' blocks are open and empty, so the remaining blocks must exceed
// the valid pages by more than the reserve and a block.
func (c *Config) validateSpace(bad *units.Faults) {
	if c.Quirks.FrontiersAtOnce {
		return // MQSim runs such drives as long as their working set is small
	}
	ns := c.layOut()
	p := c.planePools(ns)
	p.give(ns)
	t := c.translation(ns, &p)
	per := int64(p.flash.PagesPerBlock)
	for pool := range p.count() {
		data := c.mostData(ns, &p, int32(pool))
		_, mapped := pagesIn(ns, int32(pool), !c.Mapping.Ideal)
		open := c.openIn(ns, int32(pool), &t)
		spare := int64(t.BlocksPerPool)*per - data
		need := int64(open-1+t.HostReserve)*per + mapped
		if spare > need {
			continue
		}
		bad.Hold(false, "over_provisioning",
			"%v of %d blocks leaves %.2f blocks per plane, but open blocks, the map's pages and the reserve need more "+
				"than %.2f; raise over_provisioning or blocks_per_plane",
			c.OverProvisioning, t.BlocksPerPool, float64(spare)/float64(per), float64(need)/float64(per))
		return
	}
}

// pagesIn returns the largest numbers of data pages and of mapping pages in a pool.
func pagesIn(ns []namespace, pool int32, maps bool) (data, mapped int64) {
	for i := range ns {
		n := &ns[i]
		k := slices.Index(n.poolOf, pool)
		if k < 0 {
			continue
		}
		data += int64(n.shareOf(n.pages, k))
		if maps {
			mapped += int64(n.shareOf(n.mapPages, k))
		}
	}
	return data, mapped
}

// openIn returns the largest number of blocks of a pool that can be open at once: one for each stream written there and
// one for each stream of their survivors, which wear levelling doubles.
func (c *Config) openIn(ns []namespace, pool int32, t *ftl.Config) int {
	open := 0
	survivors := map[int]bool{}
	written := map[int]bool{} // namespaces may share handles
	writes := func(stream int) {
		if written[stream] {
			return
		}
		written[stream] = true
		open++
		survivors[t.Survivors[stream]] = true
	}
	for i := range ns {
		n := &ns[i]
		if !slices.Contains(n.poolOf, pool) {
			continue
		}
		for _, p := range n.placements {
			if n.zones == nil { // else zones have their own blocks, never more than their data fill
				writes(int(p.stream))
			}
		}
		if !c.Mapping.Ideal {
			writes(n.mapping)
		}
	}
	if t.StaticWear > 0 {
		return open + 2*len(survivors)
	}
	return open + len(survivors)
}
