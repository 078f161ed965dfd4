package ctl

import "farflash/flash/ctl/media"

// A checkpoint writes only the groups of entries that have changed since the one before it in the same slot. Each slot
// is complete in itself all the same. A group is written if one of the segments that it has entries of has changed, and
// the states of segments say how long ago that was (media.Segment.Age), so that every grain is known by its generation.

// versions is when the entries of segments changed, and when they were written, by generations of checkpoints.
type versions struct {
	changed []uint64    // the first that has the newest change
	wrote   [2][]uint64 // by slot; 0: what the slot has is not known
}

func newVersions(segments int) versions {
	v := versions{changed: make([]uint64, segments)}
	for slot := range v.wrote {
		v.wrote[slot] = make([]uint64, segments)
	}
	return v
}

// change records that entries of a segment change.
func (c *core) change(segment int64) {
	next := c.coming
	if c.body.active {
		next++
	}
	c.body.changed[segment] = next
}

// refresh is the number of checkpoints in a slot in which each group is written at least once, so that damage is not
// left to add up.
const refresh = 1024

// setAges decides which segments have changed since the slot of a generation was written, and sets the ages of all. A
// checkpoint that is written in full has all ages 0.
func (c *core) setAges(generation uint64, segments []media.Segment) {
	wrote, turn, n := c.body.wrote[generation&1], int(generation/2%refresh), len(segments)
	for i := range segments {
		if c.body.changed[i]+2 > generation || wrote[i] == 0 || i >= turn*n/refresh && i < (turn+1)*n/refresh ||
			generation-wrote[i] > 4*refresh {
			wrote[i] = generation
		}
		segments[i].Age, segments[i].Still = uint16((generation-wrote[i])/2), c.body.changed[i] < generation
	}
}

// wroteAll records that a checkpoint was written in full.
func (c *core) wroteAll(generation uint64) {
	for i := range c.body.changed {
		c.body.changed[i], c.body.wrote[generation&1][i] = generation, generation
	}
}

// read records the ages in a checkpoint that was read.
func (v *versions) read(generation uint64, segments []media.Segment) {
	for i := range segments {
		v.wrote[generation&1][i] = generation - 2*uint64(segments[i].Age)
	}
}

// unchanged records which segments have not changed since the checkpoint before one that was read.
func (v *versions) unchanged(generation uint64, segments []media.Segment) {
	for i := range segments {
		v.changed[i] = generation
		if segments[i].Still {
			v.changed[i]--
		}
	}
}

// generationOf returns the generation of a grain of the body of a checkpoint, which is that of its group.
func (c *core) generationOf(checkpoint uint64, grain int64) uint64 {
	segments := int64(len(c.segments))
	group := grain / media.Group * media.Group
	if group < media.EntriesGrain(0, segments) {
		return checkpoint
	}
	from, to := media.Span(group, segments, c.shape.Pages)
	newest := uint64(0)
	for _, g := range c.body.wrote[checkpoint&1][from:to] {
		newest = max(newest, g)
	}
	return newest
}

// generations returns generationOf for the grains with entries of a segment, as of now.
func (c *core) generations(checkpoint uint64, segment int64) func(grain int64) uint64 {
	pages := int64(c.shape.Pages)
	first := c.stripGrain(segment*pages/media.EntriesPerPage) / media.Group
	last := c.stripGrain(((segment+1)*pages-1)/media.EntriesPerPage) / media.Group
	of := make([]uint64, last-first+1)
	for i := range of {
		of[i] = c.generationOf(checkpoint, (first+int64(i))*media.Group)
	}
	return func(grain int64) uint64 { return of[grain/media.Group-first] }
}
