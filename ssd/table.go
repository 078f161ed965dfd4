package ssd

// table is the logical-to-physical map: two levels, of which the lower comes
// into being where something is written. A drive nobody has written to has an
// upper level of zeros, which the operating system does not even back with memory.
//
// Entries are physical page numbers plus one; 0 is "never written". Four bytes an
// entry, plus 1/8 byte for the upper level.
type table struct {
	top    []uint32 // leaf number plus one, 0: no leaf
	leaves arena
	shared uint32 // leaves up to this number belong to a snapshot and are copied before they are written
}

const (
	leafBits = 5
	leafSize = 1 << leafBits
)

func newTable(pages int64) table {
	return table{
		top:    make([]uint32, (pages+leafSize-1)>>leafBits),
		leaves: newArena(leafSize),
	}
}

// get returns the physical page of logical page l, or noPage.
func (t *table) get(l uint32) uint32 {
	n := t.top[l>>leafBits]
	if n == 0 {
		return noPage
	}
	return t.leaves.at(n - 1)[l&(leafSize-1)] - 1
}

// set makes p the physical page of logical page l; noPage forgets it.
func (t *table) set(l, p uint32) {
	n := t.top[l>>leafBits]
	if n == 0 || n <= t.shared {
		n = t.own(l>>leafBits, n)
	}
	t.leaves.at(n - 1)[l&(leafSize-1)] = p + 1
}

// own gives the drive a leaf of its own, copied from the one it had.
func (t *table) own(slot, old uint32) uint32 {
	n := t.leaves.grow() + 1
	if old != 0 {
		copy(t.leaves.at(n-1), t.leaves.at(old-1))
	}
	t.top[slot] = n
	return n
}

// mapped counts the pages that have a place on flash.
func (t *table) mapped() int64 {
	count := int64(0)
	for _, n := range t.top {
		if n == 0 {
			continue
		}
		for _, v := range t.leaves.at(n - 1) {
			if v-1 < trimmed {
				count++
			}
		}
	}
	return count
}

// clone returns a table with the same content that shares the leaves. Both copy
// a leaf before they write to it from now on.
func (t *table) clone() table {
	c := table{top: append([]uint32(nil), t.top...), leaves: t.leaves.clone()}
	c.shared, t.shared = c.leaves.used, t.leaves.used
	return c
}

// noPage stands for no physical page. It wraps to 0 when one is added.
const noPage = ^uint32(0)

// arena hands out equal runs of 32-bit words without moving those it has handed
// out. Runs can be given back.
type arena struct {
	run    uint32 // words in a run
	chunks [][]uint32
	used   uint32
	free   []uint32
	shift  uint32
}

const arenaChunkWords = 1 << 14 // 64 KiB

func newArena(run int) arena {
	a := arena{run: uint32(run)}
	for a.run<<(a.shift+1) <= arenaChunkWords {
		a.shift++
	}
	return a
}

func (a *arena) at(n uint32) []uint32 {
	i := (n & (1<<a.shift - 1)) * a.run
	return a.chunks[n>>a.shift][i : i+a.run : i+a.run]
}

// grow returns the number of a run of zeros.
func (a *arena) grow() uint32 {
	if k := len(a.free); k > 0 {
		n := a.free[k-1]
		a.free = a.free[:k-1]
		clear(a.at(n))
		return n
	}
	if a.used>>a.shift == uint32(len(a.chunks)) {
		a.chunks = append(a.chunks, make([]uint32, a.run<<a.shift))
	}
	a.used++
	return a.used - 1
}

// release gives a run back.
func (a *arena) release(n uint32) { a.free = append(a.free, n) }

// clone returns an arena over the same chunks. Runs handed out before must no
// longer be written through either, nor released.
func (a *arena) clone() arena {
	c := *a
	// New runs go into chunks of their own, so the last, partly used chunk is closed.
	c.used = uint32(len(a.chunks)) << a.shift
	a.used = c.used
	c.chunks = append([][]uint32(nil), a.chunks...)
	c.free = nil
	a.free = nil
	return c
}

// owners is the physical-to-logical map: for each block that was ever written, a
// run of logical page numbers, as a real drive keeps them in the spare area.
type owners struct {
	runs   arena
	block  [][]uint32 // by plane, by block: run number plus one, 0: none
	shared uint32     // runs up to this number belong to a snapshot
}

func newOwners(planes, pagesPerBlock int) owners {
	return owners{runs: newArena(pagesPerBlock), block: make([][]uint32, planes)}
}

// get is the logical page last written to a page of a block.
func (o *owners) get(plane, block, page int) uint32 {
	return o.runs.at(o.block[plane][block] - 1)[page]
}

func (o *owners) set(plane, block, page int, l uint32) {
	b := o.block[plane]
	if block >= len(b) {
		b = append(b, make([]uint32, block+1-len(b))...)
		o.block[plane] = b
	}
	n := b[block]
	if n == 0 || n <= o.shared {
		m := o.runs.grow() + 1
		if n != 0 {
			copy(o.runs.at(m-1), o.runs.at(n-1))
		}
		b[block], n = m, m
	}
	o.runs.at(n - 1)[page] = l
}

// forget drops an erased block's run.
func (o *owners) forget(plane, block int) {
	if n := o.block[plane][block]; n != 0 {
		if n > o.shared {
			o.runs.release(n - 1)
		}
		o.block[plane][block] = 0
	}
}

func (o *owners) clone() owners {
	c := owners{block: make([][]uint32, len(o.block)), runs: o.runs.clone()}
	for i, b := range o.block {
		c.block[i] = append([]uint32(nil), b...)
	}
	c.shared, o.shared = c.runs.used, o.runs.used
	return c
}
