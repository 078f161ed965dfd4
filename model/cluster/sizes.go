package cluster

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// Chunks of several sizes: the size of a put is drawn from the configured shares, the largest of which is chunk; a read
// has the size of its stored chunk. Protocols send and write the actual size. Bid windows and other durations that are
// computed in advance are those of the largest size, because a group's rules are fixed at the start.

// Size is one of several chunk sizes.
type Size struct {
	// Chunk is the size.
	Chunk units.Bytes
	// Share is the share of puts, drawn at random, that have this size.
	Share units.Fraction
}

// mostSizes is the largest number of sizes.
const mostSizes = 64

func (c *Config) checkSizes(f *units.Faults) {
	if len(c.Sizes) == 0 {
		return
	}
	sum, largest := 0.0, units.Bytes(0)
	for i, s := range c.Sizes {
		at := fmt.Sprintf("sizes[%d]", i)
		f.Hold(s.Chunk >= units.Bytes(max(c.Code.Data, 1)) && s.Chunk <= c.Chunk, at+".chunk",
			"%v is not possible; use a size up to chunk, %v", s.Chunk, c.Chunk)
		f.Hold(s.Share > 0 && s.Share <= 1, at+".share", "%v is not possible; use above 0%% to 100%%", s.Share)
		sum += float64(s.Share)
		largest = max(largest, s.Chunk)
	}
	f.Hold(len(c.Sizes) <= mostSizes, "sizes", "%d are too many; use at most %d", len(c.Sizes), mostSizes)
	f.Hold(math.Abs(sum-1) < 1e-6, "sizes", "the shares add up to %v; they must be 100%%", units.Fraction(sum))
	f.Hold(largest == c.Chunk, "sizes", "the largest is %v, and chunk is %v; they must be the same", largest, c.Chunk)
	f.Hold(c.Compat == CompatNone, "sizes", "SURGE's chunks are all of one size; leave it out, or use compat: none")
}

// MeanChunk returns the mean size of a chunk.
func (c *Config) MeanChunk() float64 {
	if len(c.Sizes) == 0 {
		return float64(c.Chunk)
	}
	sum := 0.0
	for _, s := range c.Sizes {
		sum += float64(float64(s.Chunk) * float64(s.Share))
	}
	return sum
}

// pieceOf returns the size that each target stores of a chunk.
func (c *Config) pieceOf(chunk units.Bytes) units.Bytes {
	if k := units.Bytes(c.Code.Data); k > 0 {
		return (chunk + k - 1) / k
	}
	return chunk
}

// drawn draws the size of a chunk.
func (c *Cluster) drawn() units.Bytes {
	if len(c.cfg.Sizes) == 0 {
		return c.cfg.Chunk
	}
	u := c.sizes.Float64()
	for _, s := range c.cfg.Sizes {
		if u -= float64(s.Share); u < 0 {
			return s.Chunk
		}
	}
	return c.cfg.Chunk
}

// pieceAt returns the size that each target stores of a chunk in flight.
func (c *Cluster) pieceAt(i int32) units.Bytes { return c.bus.Chunks[i].Piece }

// sizeOf returns the size of a stored chunk.
func (p *population) sizeOf(object int32, all units.Bytes) units.Bytes {
	if p.sizes == nil {
		return all
	}
	return p.sizes[object]
}

// mean returns the mean of a function of the piece size over the distribution of sizes.
func (c *Cluster) mean(of func(piece units.Bytes) float64) float64 {
	if len(c.cfg.Sizes) == 0 {
		return of(c.piece)
	}
	sum := 0.0
	for _, s := range c.cfg.Sizes {
		sum += float64(float64(s.Share) * of(c.cfg.pieceOf(s.Chunk)))
	}
	return sum
}
