package ctl

import (
	"fmt"
	"math/bits"
	"slices"

	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/internal/fifo"
	"farflash/policy/ftl"
)

// paging keeps leaves of the table on the medium. A checkpoint stores those that have changed, each at a new place, and
// lists where all are. From then on a leaf can be away. Requests for its pages wait until it is read.
//
// A leaf is stored after its checkpoint began, so it may have changes that the checkpoint has not. That does no harm,
// because recovery takes a page that a record after the checkpoint names from the checkpoint's entries. So the
// checkpoint takes effect only once those records are durable.
type paging struct {
	homes      homes             // where leaves are stored
	faults     map[uint64]*fault // leaves being read, by number
	faultOps   []*fault          // by the token of their operation
	idleF      []int32
	unread     fifo.Ring[*fault]
	keep       map[uint64]int32 // leaves that must stay in memory
	stores     []store
	wanting    bool      // another one, as soon as there is space
	superseded []ftl.PPA // where leaves were stored that the checkpoint being written has elsewhere
	list       []ftl.PPA // of the checkpoint in force
	storing    storing
}

// fault is the read of a leaf.
type fault struct {
	op       device.Op
	buf      []byte
	leaf     uint64
	then     []faulting // in order
	attempts int
	index    int32 // of the operation; -1: it waits for one
	mending  *mending
}

// faulting is what waits for a leaf: a request, which has a frame, or a function.
type faulting struct {
	request
	frame int32
	fn    func(error)
}

// store is a segment for leaves and lists. The translation layer has given it away, and the ledger has no live place
// in it.
type store struct {
	segment int64
	used    []uint64
	n       int // places used
}

const mostFaults = 64

func (x *paging) init(c *core) {
	x.faults, x.keep = map[uint64]*fault{}, map[uint64]int32{}
	x.homes = newHomes(c.ledger.Places())
	x.faultOps = make([]*fault, mostFaults)
	for i := range mostFaults {
		x.idleF = append(x.idleF, int32(i))
	}
	c.own(&x.storing.op, tokenStore)
}

// homes is the place and the tag of each stored leaf, by number, and whether it had changed since when the checkpoint
// being written began. Place and tag share a word as place and checksum do in a leaf.
type homes struct {
	bits   uint
	chunks map[uint64]*homeChunk
	keys   []uint64 // of chunks, in order
	n      int
}

type homeChunk struct {
	at    [512]uint64
	stale [512 / 64]uint64
}

func newHomes(places int64) homes {
	return homes{bits: media.PlaceBits(places), chunks: map[uint64]*homeChunk{}}
}

func (h *homes) get(leaf uint64) (at ftl.PPA, tag uint32, ok bool) {
	if c := h.chunks[leaf>>9]; c != nil {
		v := c.at[leaf&511]
		return ftl.PPA(v&(1<<h.bits-1)) - 1, uint32(v >> h.bits), v != 0
	}
	return ftl.NoPPA, 0, false
}

func (h *homes) set(leaf uint64, at ftl.PPA, tag uint32) {
	c := h.chunks[leaf>>9]
	if c == nil {
		c = new(homeChunk)
		h.chunks[leaf>>9] = c
		i, _ := slices.BinarySearch(h.keys, leaf>>9)
		h.keys = slices.Insert(h.keys, i, leaf>>9)
	}
	if c.at[leaf&511] == 0 {
		h.n++
	}
	c.at[leaf&511] = uint64(at) + 1 | uint64(tag)<<h.bits
	h.mark(leaf, false)
}

func (h *homes) forget(leaf uint64) {
	h.chunks[leaf>>9].at[leaf&511] = 0
	h.n--
}

// mark records whether a leaf is stale.
func (h *homes) mark(leaf uint64, stale bool) {
	word, bit := &h.chunks[leaf>>9].stale[leaf&511>>6], uint64(1)<<(leaf&63)
	if *word &^= bit; stale {
		*word |= bit
	}
}

func (h *homes) isStale(leaf uint64) bool {
	return h.chunks[leaf>>9].stale[leaf&511>>6]>>(leaf&63)&1 != 0
}

// bytes returns the memory of the homes.
func (h *homes) bytes() int64 { return int64(len(h.chunks)) * (512*8 + 128) }

// from calls fn for each stored leaf from one on, in order, until it returns false.
func (h *homes) from(leaf uint64, fn func(leaf uint64) bool) {
	first, _ := slices.BinarySearch(h.keys, leaf>>9)
	for _, k := range h.keys[first:] {
		for i, v := range h.chunks[k].at {
			if n := k<<9 | uint64(i); n >= leaf && v != 0 && !fn(n) {
				return
			}
		}
	}
}

// whenPresent calls or serves w once a leaf is in memory, after all that asked for it before. The leaf is away.
func (c *core) whenPresent(leaf uint64, w faulting) {
	x := c.faults[leaf]
	if x == nil {
		x = &fault{leaf: leaf, index: -1}
		c.faults[leaf] = x
		c.readLeaf(x)
	}
	x.then = append(x.then, w)
}

// readLeaf begins to read a leaf, if an operation is idle.
func (c *core) readLeaf(x *fault) {
	if len(c.idleF) == 0 {
		c.unread.Push(x)
		return
	}
	x.index = c.idleF[len(c.idleF)-1]
	c.idleF = c.idleF[:len(c.idleF)-1]
	if was := c.faultOps[x.index]; was != nil {
		x.buf = was.buf
	} else {
		x.buf = device.Aligned(Page)
	}
	c.faultOps[x.index] = x
	c.own(&x.op, tokenFault|uint64(x.index))
	at, _, ok := c.homes.get(x.leaf)
	if !ok {
		panic(fmt.Sprintf("ctl: leaf %d is neither in memory nor on the medium", x.leaf))
	}
	dev, offset := c.at(at)
	x.op.Kind, x.op.Buf, x.op.Offset, x.op.Loop = device.Read, x.buf, offset, c.lane
	c.stats.MapReads++
	c.submit(dev, &x.op)
}

// faultDone completes the read of a leaf.
func (c *core) faultDone(i int32) {
	x := c.faultOps[i]
	if x.mending != nil {
		c.mendRead(x)
		return
	}
	at, tag, _ := c.homes.get(x.leaf)
	err := x.op.Err
	var l media.Leaf
	if err == nil {
		err = media.DecodeLeaf(x.buf, c.shape.UUID, x.leaf, tag, c.ledger.Places(), &l)
	}
	if err != nil && x.attempts < c.cfg.Retries {
		x.attempts++
		dev, _ := c.at(at)
		x.op.Err = nil
		c.submit(dev, &x.op)
		return
	}
	if err != nil {
		dev, _ := c.at(at)
		c.trouble(dev, &x.op, noPage, err)
		c.stats.Damaged++
		x.mending = &mending{cause: fmt.Errorf("part %d of the map: %w", x.leaf, err)}
		c.mendLeaf(x)
		return
	}
	c.table.Arrive(x.leaf, (*[table.LeafPages]uint64)(&l))
	c.faultOver(x, nil)
}

// faultOver ends the read of a leaf, which is there unless there is an error.
func (c *core) faultOver(x *fault, err error) {
	c.idleF = append(c.idleF, x.index)
	c.present(x, err)
	if c.unread.N > 0 && len(c.idleF) > 0 {
		c.readLeaf(c.unread.Pop())
	}
	c.feed()
	c.advance()
}

// present serves what waits for a leaf.
func (c *core) present(x *fault, err error) {
	delete(c.faults, x.leaf)
	for _, w := range x.then {
		if w.fn != nil {
			w.fn(err)
			continue
		}
		c.free = append(c.free, w.frame) // tryGet takes it again, unless another has brought the page
		switch {
		case err != nil:
			c.stats.Damaged++
			c.give(w.request.fn, Ref{Page: w.asked}, fmt.Errorf("page %d: %w: %w", w.page, ErrDamaged, err))
		default:
			if !w.write && !c.table.Away(w.page) && w.page != noPage {
				c.table.Make(w.page).CountRead()
			}
			if !c.tryGet(w.request) {
				c.queue.Push(w.request)
			}
		}
	}
}

// pin keeps a leaf in memory until unpinAll, and appends it to a list.
func (c *core) pin(leaf uint64, to *[]uint64) {
	c.keep[leaf]++
	*to = append(*to, leaf)
}

// unpinAll undoes pin for a list, which it empties.
func (c *core) unpinAll(list *[]uint64) {
	for _, leaf := range *list {
		if c.keep[leaf]--; c.keep[leaf] == 0 {
			delete(c.keep, leaf)
		}
	}
	*list = (*list)[:0]
}

// leavesOf reports whether the leaves of all pages that collection has moved with a chunk are in memory. Otherwise
// chunkDone is called again once they are.
func (c *core) leavesOf(k *chunk, at int32) bool {
	if c.homes.n == 0 {
		return true
	}
	var pins []uint64
	for i := range k.pages {
		w := &k.pages[i]
		if w.frame != noFrame || !c.ledger.IsLive(c.moves[w.move].from) {
			continue
		}
		page := c.owner(c.moves[w.move].from)
		c.pin(table.LeafOf(page), &pins)
		if !c.table.Away(page) || c.readOnly != nil {
			continue
		}
		k.waits++
		c.whenPresent(table.LeafOf(page), faulting{fn: func(err error) {
			if err != nil {
				c.fail(err)
			}
			if k.waits--; k.waits == 0 {
				c.chunkDone(at)
			}
		}})
	}
	c.unpinAll(&k.pins)
	k.pins = pins
	return k.waits == 0
}

// leavesFor pins the leaves of the pages of steps, and reports whether some are away. Then fn is called once those are
// there.
func (c *core) leavesFor(steps []Step, pins *[]uint64, fn func(error)) bool {
	left, failed := 1, error(nil)
	one := func(err error) {
		if err != nil {
			failed = err
		}
		if left--; left == 0 {
			c.notify(fn, failed)
		}
	}
	each := func(first, count uint64) {
		for leaf := range c.table.AwayLeaves(first, first+count-1) {
			left++
			c.pin(leaf, pins)
			c.whenPresent(leaf, faulting{fn: one})
		}
	}
	for _, s := range steps {
		if s.Count == 0 {
			continue
		}
		if each(s.From, s.Count); !s.Drop {
			each(s.To, s.Count)
		}
	}
	if left == 1 {
		return false
	}
	one(nil)
	return true
}

// awayLeaves returns the number of leaves of pages first to last that are away, up to most.
func (c *core) awayLeaves(first, last uint64, most int) (n int) {
	for range c.table.AwayLeaves(first, last) {
		if n++; n == most {
			break
		}
	}
	return n
}

// placeIn returns the place of the page in a frame.
func (c *core) placeIn(frame int32) ftl.PPA { return c.frames[frame].place }

// takePlaces returns up to n consecutive places for leaves or a list, none if the medium has no space for them.
func (c *core) takePlaces(n int) (first ftl.PPA, got int) {
	pages := c.shape.Pages
	for round := range 2 {
		for i := range c.stores {
			s := &c.stores[i]
			for k := 0; s.n < pages && k < pages; k++ {
				if s.used[k>>6]>>(k&63)&1 != 0 {
					if s.used[k>>6] == ^uint64(0) {
						k |= 63
					}
					continue
				}
				for got < n && k < pages && s.used[k>>6]>>(k&63)&1 == 0 {
					s.used[k>>6] |= 1 << (k & 63)
					k, got, s.n = k+1, got+1, s.n+1
				}
				return ftl.PPA(s.segment*int64(pages) + int64(k-got)), got
			}
		}
		if round == 0 && !c.addStore() {
			break
		}
	}
	return ftl.NoPPA, 0
}

// addStore takes a segment for leaves. Of the spare segments, at most half are taken.
func (c *core) addStore() bool {
	spare := (c.shape.MostCapacity() - c.shape.Capacity) / int64(c.shape.Pages)
	if int64(len(c.stores)) >= (spare+1)/2 {
		return false
	}
	b, ok := c.ftl.Give(0)
	if c.wanting = !ok; ok {
		c.stores = append(c.stores, store{segment: int64(b), used: make([]uint64, (c.shape.Pages+63)/64)})
	}
	return ok
}

// storeOf returns the segment for leaves that a place is in.
func (c *core) storeOf(segment int64) *store {
	for i := range c.stores {
		if c.stores[i].segment == segment {
			return &c.stores[i]
		}
	}
	return nil
}

// freePlaces makes places for leaves free.
func (c *core) freePlaces(places []ftl.PPA) {
	for _, p := range places {
		s := c.storeOf(c.segmentOf(p))
		k := int64(p) - s.segment*int64(c.shape.Pages)
		if s.used[k>>6]>>(k&63)&1 == 0 {
			panic(fmt.Sprintf("ctl: place %d is free already", p))
		}
		s.used[k>>6] &^= 1 << (k & 63)
		s.n--
	}
}

// checkStores verifies that each place of a segment for leaves is used by exactly one leaf or list.
func (c *core) checkStores(r *Report) {
	used, n := map[ftl.PPA]bool{}, 0
	use := func(p ftl.PPA) {
		if s := c.storeOf(c.segmentOf(p)); s == nil || used[p] {
			r.addf(fmt.Sprintf("place %d", p), "is used twice by the map, or is not its own")
		}
		used[p] = true
	}
	c.homes.from(0, func(leaf uint64) bool {
		at, _, _ := c.homes.get(leaf)
		use(at)
		return true
	})
	lists := [][]ftl.PPA{c.superseded, c.list, c.storing.list}
	if !c.storing.lists {
		lists = append(lists, c.storing.taken)
	}
	for _, list := range lists {
		for _, p := range list {
			use(p)
		}
	}
	for i := range c.stores {
		own := 0
		for _, w := range c.stores[i].used {
			own += bits.OnesCount64(w)
		}
		if n += own; own != c.stores[i].n {
			r.addf(fmt.Sprintf("segment %d", c.stores[i].segment), "has %d places of the map; the count is %d", own,
				c.stores[i].n)
		}
		if c.ledger.LivesOf(c.stores[i].segment) > 0 {
			r.addf(fmt.Sprintf("segment %d", c.stores[i].segment), "has pages beside the map")
		}
	}
	if n != len(used) {
		r.addf("pool", "the map uses %d places; %d are known", n, len(used))
	}
}
