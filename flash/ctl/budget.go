package ctl

import (
	"fmt"

	"farflash/flash/ctl/media"
)

// Budget is the memory of a pool and of those who use it: frames, the map, buffers, what each segment takes, and what
// the garbage collector needs beside them. Open divides it; the program's own code and stacks are not part of it.
type Budget struct {
	Memory int64 // of all; 0: Config.Frames and Config.Map are as they are
	Map    int64 // the map's part; 0: up to half of what else leaves
	Users  int64 // what those who use the pool take besides frames
	// Least is the frames that they need, and Most those that are of use to them; 0: as many as there are.
	Least, Most int
	// Divided, if set, is called before the pool is read.
	Divided func(Division)
}

// Division is how a budget is divided, in bytes but for Frames.
type Division struct {
	Frames int
	Pages  int64 // of the frames
	Map    int64
	Fixed  int64 // for segments, checkpoints, writes in flight, and users
	Spare  int64 // for the garbage collector
	Heap   int64 // the limit of Go's heap: all of the budget but for memory that is not part of it
}

// What a part of a pool takes on the heap, in bytes. TestBudget measures it.
const (
	ofSegment   = 360     // its states here, in the translation layer, the ledger and the checkpoint being written
	ofFrame     = 352     // a frame and its read
	ofSlots     = 704     // slots of a page in a frame whose leaf has no others; part of the map
	ofCore      = 3 << 20 // lanes, operations
	ofCollector = 8 << 20 // that its part is at least
	ofEntry     = 16      // of a place in memory: a media.Entry
	leastLeaves = 4 << 20 // parts of the map, beside what each place takes
	usefulPage  = 40      // of the map, at most, for a page
	leastFrames = 1024
	usualFrames = 16384 // that a pool has even if it has fewer pages
)

// leastMap returns the memory of the map that cannot be on the devices: a bit for each place, and 17 bytes for each
// part of 512 pages.
func leastMap(shape *media.Shape) int64 {
	places := shape.AllSegments() * int64(shape.Pages)
	return places/8 + places/media.LeafPages*17 + 12*8*int64(shape.Pages) + leastLeaves
}

// fixed returns the memory of a pool that depends neither on its frames nor on its map.
func fixed(shape *media.Shape, c *Config) (heap, arena int64) {
	segments := shape.AllSegments()
	// The entries of the segments that a group of a checkpoint has, one more, and those of a segment that is examined.
	entries := (media.Group*media.EntriesPerPage/int64(shape.Pages) + 4) * int64(shape.Pages) * ofEntry
	log := shape.LogPages * 56 // its outline, while the pool is opened
	heap = ofCore + segments*ofSegment + entries + log + int64(c.Writes*c.Chunk)*64
	arena = int64(c.Writes*c.Chunk+c.Moves+logPages+2*bodyChunk+mostLoads) * Page
	return heap, arena
}

// collected returns the memory of a heap with the garbage collector's part.
func collected(heap int64) int64 { return heap + max(heap/4, ofCollector) }

// Divide divides a budget for a pool and sets the configuration's Frames and Map. The error says how much the pool
// needs.
func (b *Budget) Divide(shape media.Shape, c *Config) (Division, error) {
	heap, arena := fixed(&shape, c)
	heap += b.Users
	least := max(leastFrames, b.Least)
	if b.Most > 0 {
		least = min(least, b.Most)
	}
	need := func(frames, of int64) int64 {
		return collected(heap+of+frames*(ofFrame+ofSlots)) + arena + frames*Page
	}
	ofMap := max(leastMap(&shape), b.Map)
	if n := need(int64(least), ofMap); n > b.Memory {
		return Division{}, &Scarce{Memory: b.Memory, Need: (n + 1<<20 - 1) &^ (1<<20 - 1)}
	}
	free := b.Memory - need(int64(least), ofMap)
	if b.Map == 0 { // half of the rest, as far as it is of use
		useful := shape.Capacity*usefulPage + leastLeaves
		ofMap += max(0, min(free/2*4/5, useful-ofMap))
		free = b.Memory - need(int64(least), ofMap)
	}
	most := max(int64(least), usualFrames, shape.Capacity)
	if b.Most > 0 {
		most = int64(b.Most)
	}
	each := collected(1<<40+ofFrame+ofSlots) - collected(1<<40) + Page
	frames := min(int64(least)+free/each, most, mostFrames)
	for frames > int64(least) && need(frames, ofMap) > b.Memory {
		frames--
	}
	c.Frames, c.Map = int(frames), ofMap+frames*ofSlots
	heap += frames * ofFrame
	d := Division{Frames: c.Frames, Pages: frames * Page, Map: c.Map, Fixed: heap + arena,
		Heap: b.Memory - arena - frames*Page}
	d.Spare = d.Heap - heap - c.Map
	return d, nil
}

// Scarce is the error for a budget that a pool does not fit into.
type Scarce struct{ Memory, Need int64 }

func (e *Scarce) Error() string {
	return fmt.Sprintf("%d MiB of memory are too few for this pool; it needs at least %d MiB", e.Memory>>20, e.Need>>20)
}

// divided returns the configuration with its budget divided.
func (c Config) divided(shape media.Shape) (Config, error) {
	if c.Budget.Memory == 0 {
		return c, nil
	}
	d, err := c.Budget.Divide(shape, &c)
	if err != nil {
		return c, err
	}
	if c.Budget.Divided != nil {
		c.Budget.Divided(d)
	}
	return c, c.Validate()
}
