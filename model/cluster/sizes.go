package cluster

import (
	"fmt"
	"math"

	"farflash/numeric/units"
)

// Chunks of several sizes: what is put is drawn from shares of sizes, of which chunk is the largest; what is read is
// as large as it was put. Protocols send and write what a chunk has. Windows that targets bid, and what else is
// reckoned in advance, are those of the largest, as a group's rules are made once.

// Size is a size of chunks.
type Size struct {
	// Chunk is the size.
	Chunk units.Bytes
	// Share of the chunks that are put, drawn at random, that have it.
	Share units.Fraction
}

// mostSizes is how many sizes there may be.
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

// MeanChunk is the mean size of a chunk.
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

// pieceOf is what each target keeps of a chunk of a size.
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

// piece is what each target keeps of a chunk under way.
func (c *Cluster) pieceAt(i int32) units.Bytes { return c.bus.Chunks[i].Piece }

// sizeOf is the size of a chunk that is kept.
func (p *population) sizeOf(object int32, all units.Bytes) units.Bytes {
	if p.sizes == nil {
		return all
	}
	return p.sizes[object]
}

// mean is the mean over sizes of what is reckoned for a piece.
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
