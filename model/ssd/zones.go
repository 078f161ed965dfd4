package ssd

import (
	"fmt"

	"farflash/block"
	"farflash/internal/divide"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
)

// Zones divide namespaces into zones, as in the NVMe Zoned Namespace Command Set: each zone is written in order from
// its start, and reset as a whole. Its data fill separate superblocks, which only its reset erases, so a zoned
// namespace is never collected and its write amplification is 1.
type Zones struct {
	// Capacity is the data that can be written to a zone: a whole number of superblocks; 0 is one.
	Capacity units.Bytes
	// Size is the distance between the starts of zones; 0 is their capacity. A gap is for hosts that need powers of
	// two.
	Size units.Bytes
	// MaxOpen is the largest number of zones open at once; 0 is no limit. For a write that would exceed it, the drive
	// closes the zone that was implicitly opened first.
	MaxOpen int
	// MaxActive is the largest number of zones open or closed at once; 0 is no limit.
	MaxActive int
	MaxAppend units.Bytes // MaxAppend is the largest size of a Zone Append; 0 is no limit.
}

// DefaultZones has the limits of the Western Digital ZN540 (2021), in zones of one superblock.
func DefaultZones() Zones { return Zones{MaxOpen: 14, MaxActive: 14} }

// zoning is the division of a namespace into zones; nil: conventional.
type zoning struct {
	size, capacity uint32 // of a zone, in grains
	blocks         int    // superblocks of a zone
	count          uint32
	bySize         divide.By
	byCapacity     divide.By
	cfg            Zones
}

// zone returns the number of the zone of a logical page, counted from the namespace's first, and the offset within the
// zone.
func (z *zoning) zone(i uint32) (zone, in uint32) {
	q, r := z.bySize.Split(uint64(i))
	return uint32(q), uint32(r)
}

// isHole reports whether such a page lies beyond the writable capacity of its zone.
func (z *zoning) isHole(i uint32) bool {
	_, in := z.zone(i)
	return in >= z.capacity
}

// pages returns how many of the namespace's first pages can be written.
func (z *zoning) pages(first uint32) int64 {
	whole, rest := z.zone(first)
	return int64(whole)*int64(z.capacity) + int64(min(rest, z.capacity))
}

// isZoned reports whether a namespace is divided into zones.
func (c *Config) isZoned(ns int) bool {
	return c.Zones != nil && !c.namespaces()[ns].Conventional
}

// anyZoned reports whether any namespace is zoned.
func (c *Config) anyZoned() bool {
	for i := range c.namespaces() {
		if c.isZoned(i) {
			return true
		}
	}
	return false
}

// superblockSize returns the size of a superblock of pools with the given number of planes.
func (c *Config) superblockSize(planes int) units.Bytes {
	return units.Bytes(planes) * units.Bytes(c.Geometry.PagesPerBlock) * c.Geometry.PageSize
}

// divideZones divides a namespace with space for the given number of sectors into zones, and returns the number of
// sectors in its address range. Invalid sizes, which validateZones reports, are replaced by the nearest valid ones.
func (c *Config) divideZones(n *namespace, planes int, room int64) int64 {
	s := c.superblockSize(planes)
	spp := int64(c.sectorsPerGrain())
	perBlock := int64(s / c.grainSize())
	z := &zoning{cfg: *c.Zones, blocks: int(min(max(1, int64(c.Zones.Capacity/s)), mostLogical/perBlock))}
	z.capacity = uint32(int64(z.blocks) * perBlock)
	z.size = max(z.capacity, uint32(min(max(0, int64(c.Zones.Size/c.grainSize())), mostLogical)))
	z.count = uint32(room / (int64(z.capacity) * spp))
	z.bySize, z.byCapacity = divide.New(uint64(z.size)), divide.New(uint64(z.capacity))
	n.zones = z
	return int64(z.count) * int64(z.size) * spp
}

// validateZones checks all that does not depend on the geometry.
func (c *Config) validateZones(bad *units.Faults) {
	z := c.Zones
	if z == nil {
		for i := range c.Namespaces {
			bad.Hold(!c.Namespaces[i].Conventional, fmt.Sprintf("namespaces[%d].conventional", i),
				"every namespace is conventional without zones; leave it out, or add zones")
		}
		return
	}
	const at = "zones"
	bad.Hold(c.anyZoned(), at, "every namespace is conventional; leave zones out, or conventional")
	for _, x := range []struct {
		key string
		n   units.Bytes
	}{{"capacity", z.Capacity}, {"size", z.Size}, {"max_append", z.MaxAppend}} {
		bad.Hold(x.n >= 0, at+"."+x.key, "%v is not possible; it must not be negative", x.n)
	}
	bad.Hold(z.MaxOpen >= 0 && z.MaxActive >= 0, at, "max_open and max_active must not be negative; 0 is no limit")
	bad.Hold(z.MaxActive == 0 || z.MaxOpen > 0 && z.MaxOpen <= z.MaxActive, at+".max_open",
		"%d is not possible: open zones are active, and %d may be active; use 1 to %d", z.MaxOpen, z.MaxActive, z.MaxActive)
	bad.Hold(c.Mapping.Ideal, at, "the map of a zoned drive is in DRAM; set mapping.ideal: true")
	bad.Hold(c.Mapping.Allocation == AllocateDynamic, at,
		"zones consist of superblocks; set mapping.allocation: dynamic")
	bad.Hold(c.SLCCache == nil, at,
		"zones cannot have an SLC cache: their data goes directly to its superblock; leave out slc_cache or zones")
	bad.Hold(c.Reliability == nil || c.Reliability.Refresh == nil, at,
		"a zone's data stays in place until the zone is reset, so it cannot be refreshed; leave out "+
			"reliability.refresh or zones")
	bad.Hold(c.Cache.Destage == DestageOldest, at, "zones are written in order; set cache.destage: oldest")
	for i, n := range c.namespaces() {
		if !c.isZoned(i) {
			continue
		}
		mode, key := c.Cache.Mode, "cache.mode"
		if n.Cache != nil {
			mode, key = *n.Cache, fmt.Sprintf("namespaces[%d].cache", i)
		}
		bad.Hold(mode == CacheWrite || mode == CacheReadWrite, key,
			"%v is not possible with zones: data that do not fill a page of flash wait in the cache; use write or "+
				"read-write", mode)
		bad.Hold(n.Streams <= 1, fmt.Sprintf("namespaces[%d].streams", i),
			"a zoned namespace has no streams, since each zone is one; leave it out")
	}
	p := &c.Preconditioning
	bad.Hold(p.Fill == FillNone || p.Fill == FillSequential, "preconditioning.fill",
		"%v is not possible: zones are written in order; use none or sequential", p.Fill)
}

// validateZoneSpace checks the settings that need a valid geometry. It precedes validateSpace.
func (c *Config) validateZoneSpace(bad *units.Faults) {
	z := c.Zones
	if z == nil {
		return
	}
	ns := c.layOut()
	p := c.planePools(ns)
	s := c.superblockSize(p.size)
	bad.Hold(z.Capacity%s == 0, "zones.capacity",
		"%v is not possible: a superblock holds %v; use a multiple of that, or 0B for one", z.Capacity, s)
	capacity := max(z.Capacity, s)
	bad.Hold(z.Size == 0 || z.Size >= capacity && z.Size%c.grainSize() == 0, "zones.size",
		"%v is not possible: zones have a capacity of %v; use 0B for the same, or a larger multiple of %v", z.Size,
		capacity, c.grainSize())
	bad.Hold(int64(z.Size/c.grainSize()) <= mostLogical, "zones.size",
		"%v exceed the addresses of the map; use a smaller size", z.Size)
	bad.Hold(z.MaxAppend == 0 || z.MaxAppend >= c.grainSize(), "zones.max_append", "%v is less than a block of %v",
		z.MaxAppend, c.grainSize())
	if bad.Err() != nil {
		return
	}
	all := int64(0)
	for i := range ns {
		n := &ns[i]
		all += int64(n.pages) + int64(n.mapPages)
		if n.zones == nil {
			continue
		}
		bad.Hold(n.zones.count > 0, "zones.capacity",
			"namespace %d is smaller than a zone of %v; use smaller zones, or a larger drive", i, capacity)
		bad.Hold(int64(n.zones.count)*int64(n.zones.size) <= mostLogical, "zones.size",
			"%d zones of %v exceed the addresses of the map; use a smaller size", n.zones.count,
			max(z.Size, capacity))
	}
	bad.Hold(all <= mostLogical, "zones.size",
		"%d grains exceed the addresses of the map; use a smaller size", all)
	// Grains that wait for others to fill a page of flash must not take up the whole cache.
	slots := int64(c.Cache.Capacity / c.grainSize())
	if c.Cache.Partitioned {
		slots /= int64(len(ns))
	}
	need := int64(1)
	for i := range ns {
		if n := &ns[i]; n.zones == nil {
			need += int64(len(n.placements)) * int64(c.grainsPerPage()-1)
		} else if most := int64(z.MaxActive); most > 0 {
			need += most * int64(c.grainsPerPage()-1)
		} else {
			need += int64(n.zones.count) * int64(c.grainsPerPage()-1)
		}
	}
	bad.Hold(slots >= need, "cache.capacity",
		"%v holds %d blocks of %v, but up to %d may wait for others of their zones to fill a page of flash; "+
			"raise it, or lower zones.max_active",
		c.Cache.Capacity, slots, c.grainSize(), need)
}

// mostLogical is the largest number of logical pages that the map can number.
const mostLogical = 1<<32 - 4

// Zones implements block.Zoned.
func (d *Drive) Zones(namespace int) block.Zones {
	if uint(namespace) >= uint(len(d.ns)) {
		return block.Zones{}
	}
	return d.ns[namespace].blockZones()
}

// ZonesOf returns the zones of a namespace of a valid configuration, if any.
func (c *Config) ZonesOf(namespace int) block.Zones {
	if uint(namespace) >= uint(len(c.namespaces())) || !c.isZoned(namespace) {
		return block.Zones{}
	}
	return c.layOut()[namespace].blockZones()
}

func (n *namespace) blockZones() block.Zones {
	z := n.zones
	if z == nil {
		return block.Zones{}
	}
	grain := n.sectors / int64(z.count) / int64(z.size) * nand.SectorSize
	return block.Zones{
		Size: int64(z.size) * grain, Capacity: int64(z.capacity) * grain, Count: int(z.count),
		MaxOpen: z.cfg.MaxOpen, MaxActive: z.cfg.MaxActive, MaxAppend: int64(z.cfg.MaxAppend),
	}
}
