package ssd

import (
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/sim"
)

// SLCCache is flash written with one bit per cell, which is fast but takes several times the space. The host's data go
// there first and are folded, that is, moved to blocks with all bits, when the drive has time or blocks are short. Any
// block can belong to the cache, which grows up to its capacity as blocks are to spare. Its blocks hold 1/bits of the
// pages of others.
type SLCCache struct {
	Capacity units.Bytes // Capacity is the most host data that the cache can hold.
	// Reserved is the part of the capacity for which collection keeps blocks free, however full the drive is.
	Reserved       units.Bytes
	ReadLatency    units.Duration // ReadLatency is the array time to read a page of the cache.
	ProgramLatency units.Duration // ProgramLatency is the time to program a page of the cache.
	Fold           Folding        // Fold is when data are folded while blocks are not short.
	// IdleAfter is the time without commands after which the drive starts to fold.
	IdleAfter units.Duration
	WhenFull  WhenFull // WhenFull is where new data go when the cache is full.
}

// Folding is when the data of an SLC cache are folded.
type Folding uint8

const (
	FoldIdle   Folding = iota // while no commands are outstanding
	FoldAlways                // as soon as a block is full
	foldings
)

var foldingNames = units.Names[Folding]{"idle", "always"}

func (f Folding) String() string { return foldingNames.Name(f) }

func (f Folding) MarshalText() ([]byte, error) { return foldingNames.Marshal(f) }

func (f *Folding) UnmarshalText(text []byte) error { return foldingNames.Unmarshal(text, f) }

// WhenFull is the treatment of writes for which an SLC cache has no space.
type WhenFull uint8

const (
	Bypass   WhenFull = iota // they go to blocks with all bits
	WaitFold                 // they wait until a block of the cache has been folded
	whenFulls
)

var whenFullNames = units.Names[WhenFull]{"bypass", "wait"}

func (w WhenFull) String() string { return whenFullNames.Name(w) }

func (w WhenFull) MarshalText() ([]byte, error) { return whenFullNames.Marshal(w) }

func (w *WhenFull) UnmarshalText(text []byte) error { return whenFullNames.Unmarshal(text, w) }

// DefaultSLCCache has typical latencies of one bit a cell, and no capacity.
func DefaultSLCCache() SLCCache {
	return SLCCache{ReadLatency: 25 * units.Microsecond, ProgramLatency: 75 * units.Microsecond,
		IdleAfter: 10 * units.Millisecond}
}

// fast returns the translation layer's configuration of the cache, for flash divided into pools and the given number of
// host streams, and the amount of the host's data in a block of the cache.
func (c *Config) fast(p *pools, streams int) (x ftl.Fast, block units.Bytes) {
	s := c.SLCCache
	if s == nil || c.Geometry.PagesPerBlock < c.Timing.Cell.Bits() {
		return x, 0
	}
	x.Pages = c.Geometry.PagesPerBlock / c.Timing.Cell.Bits() * p.size * p.grains
	block = units.Bytes(x.Pages) * p.flash.PageSize
	x.Streams = streams
	x.Most = min(int(s.Capacity/block)/p.count(), p.flash.BlocksPerPlane)
	x.Least = int(s.Reserved/block) / p.count()
	x.Wait = s.WhenFull == WaitFold
	return x, block
}

// validateSLCCache checks all that does not depend on the geometry.
func (c *Config) validateSLCCache(bad *units.Faults) {
	s := c.SLCCache
	if s == nil {
		return
	}
	const at = "slc_cache"
	bad.Hold(c.Timing.Cell.Bits() > 1, at, "the flash already has one bit per cell; leave it out, or set timing.cell")
	bad.Hold(c.Geometry.PagesPerBlock >= c.Timing.Cell.Bits(), at,
		"a block of %d pages is too small for one bit per cell; use at least %d", c.Geometry.PagesPerBlock,
		c.Timing.Cell.Bits())
	bad.Hold(c.Reliability == nil, at, "the errors of cells with one bit are unknown; leave out reliability or slc_cache")
	for _, t := range []struct {
		key string
		d   units.Duration
	}{{"read_latency", s.ReadLatency}, {"program_latency", s.ProgramLatency}} {
		bad.Hold(t.d > 0 && t.d <= units.Second, at+"."+t.key, "%v is not possible; use more than 0s and at most 1s",
			t.d)
	}
	bad.Hold(s.IdleAfter >= 0 && s.IdleAfter <= 100*units.Second, at+".idle_after",
		"%v is not possible; use 0s to 100s", s.IdleAfter)
	bad.Hold(s.Fold < foldings && s.WhenFull < whenFulls, at, "invalid fold or when_full")
	bad.Hold(s.Reserved >= 0 && s.Reserved <= max(s.Capacity, 0), at+".reserved",
		"%v is not possible; use 0B to the capacity, %v", s.Reserved, s.Capacity)
}

// validateSLCSpace checks that a cache with valid settings gets blocks.
func (c *Config) validateSLCSpace(bad *units.Faults) {
	s := c.SLCCache
	if s == nil {
		return
	}
	const at = "slc_cache"
	ns := c.layOut()
	p := c.planePools(ns)
	p.give(ns)
	t := c.translation(ns, &p)
	_, block := c.fast(&p, 1)
	least := block * units.Bytes(p.count())
	bad.Hold(t.Fast.Most >= 1, at+".capacity", "%v is less than a block of each pool holds; use at least %v",
		s.Capacity, least)
	bad.Hold(s.Reserved == 0 || t.Fast.Least >= 1, at+".reserved",
		"%v is less than a block of each pool holds; use at least %v, or 0B", s.Reserved, least)
	for pool := range p.count() {
		data := c.mostData(ns, &p, int32(pool))
		_, mapped := pagesIn(ns, int32(pool), !c.Mapping.Ideal)
		free := t.BlocksPerPool - int((data+mapped)/int64(t.PagesPerBlock)) - 1 - c.openIn(ns, int32(pool), &t)
		bad.Hold(s.Reserved == 0 || t.Fast.Least+t.GCStart < free, at+".reserved",
			"%v are %d blocks, but a full drive has only %d free blocks in addition to open ones, and collection "+
				"starts at %d; lower it or raise over_provisioning",
			s.Reserved, t.Fast.Least, max(0, free), t.GCStart)
		if bad.Err() != nil {
			return
		}
	}
}

// slc is the state of a drive's SLC cache.
type slc struct {
	on, folding bool
	timer       bool     // an event to check for idleness is scheduled
	since       sim.Time // when the last command completed
	programs    uint64   // host pages programmed in the cache
	folds       uint64   // pages programmed by folding
}

// isFast reports whether a page lies in the cache. Pages of the cache are numbered after all others of a block, and so
// are their times in readArray and programArray.
func (d *Drive) isFast(x *transaction) bool { return uint32(x.pageIndex) >= d.pagesPerBlock }

// begunCommand is called when the drive fetches a command.
func (d *Drive) begunCommand() {
	if d.slc.folding && d.cfg.SLCCache.Fold == FoldIdle {
		d.fold(false)
	}
}

// endedCommands is called when the drive has completed its last command.
func (d *Drive) endedCommands() {
	if !d.slc.on || d.cfg.SLCCache.Fold != FoldIdle {
		return
	}
	d.slc.since = d.eng.Now()
	if !d.slc.timer {
		d.slc.timer = true
		d.schedule(d.slc.since+d.cfg.SLCCache.IdleAfter, evIdle, 0)
	}
}

// idle starts folding if there has been no command for long enough.
func (d *Drive) idle() {
	d.slc.timer = false
	if d.held > 0 || d.slc.folding {
		return
	}
	if at := d.slc.since + d.cfg.SLCCache.IdleAfter; at > d.eng.Now() {
		d.slc.timer = true
		d.schedule(at, evIdle, 0)
		return
	}
	d.fold(true)
	for pool := range d.pools.count() {
		d.collect(pool)
	}
}

// fold sets whether the translation layer has time to fold.
func (d *Drive) fold(on bool) {
	d.slc.folding = on
	for pool := range d.pools.count() {
		d.ftl.Fold(pool, on)
	}
}

// startSLC initialises the cache of a new drive: data written before time 0 have already been folded.
func (d *Drive) startSLC() {
	s := d.cfg.SLCCache
	d.ftl.UseFast(true)
	if s == nil {
		return
	}
	d.slc.on = true
	if s.Fold == FoldAlways {
		d.fold(true)
	}
	for range d.readArray {
		d.readArray = append(d.readArray, s.ReadLatency+d.cfg.Timing.ReadyBusy)
		d.programArray = append(d.programArray, s.ProgramLatency)
	}
}

// SLCBlocks returns the number of blocks in the SLC cache.
func (d *Drive) SLCBlocks() int {
	n := 0
	for pool := range d.pools.count() {
		n += d.ftl.FastBlocks(pool) * d.pools.size
	}
	return n
}
