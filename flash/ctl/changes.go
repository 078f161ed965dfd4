package ctl

import (
	"math/bits"
	"sync/atomic"

	"farflash/flash/ctl/table"
)

// changes finds the frames whose pages are not on the medium as they are in memory, without a look at every frame: a
// flush concerns few of them, and there may be millions. Those that wait for space or are being written are in the
// backlog and in chunks. Those that a holder has changed while others hold them have a bit each.
type changes struct {
	soiled []atomic.Uint64
	visits uint64
}

func (x *changes) init(c *core) { x.soiled = make([]atomic.Uint64, (len(c.frames)+63)/64) }

// soil records that the page in a frame has changed, and is held. It is safe without p.mu.
func (x *changes) soil(at int32) {
	if word, bit := &x.soiled[at>>6], uint64(1)<<(at&63); word.Load()&bit == 0 {
		word.Or(bit)
	}
}

// unwritten calls fn once for each frame that may have changes not written, those in flight included.
func (c *core) unwritten(fn func(at int32)) {
	c.visits++
	visit := func(at int32) {
		if f := &c.frames[at]; f.visit != c.visits {
			f.visit = c.visits
			fn(at)
		}
	}
	for i := range c.soiled {
		for word := c.soiled[i].Load(); word != 0; word &= word - 1 {
			bit := word & -word
			at := int32(i<<6 + bits.TrailingZeros64(word))
			// Cleared before the look at the page: a holder sets it before it puts. While there are holders, one of
			// them may be about to put a change.
			c.soiled[i].And(^bit)
			if _, w, ok := c.inFrame(at); ok && (w.State() != table.Resident || w.Refs() > 0 || w.Dirty()) {
				c.soiled[i].Or(bit)
				visit(at)
			}
		}
	}
	for i := range c.backlog.N {
		visit(*c.backlog.At(i))
	}
	for i := range c.chunks {
		if k := &c.chunks[i]; k.busy {
			for j := range k.pages {
				if at := k.pages[j].frame; at != noFrame {
					visit(at)
				}
			}
		}
	}
}
