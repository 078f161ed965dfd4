package ctl

import (
	"slices"

	"farflash/flash/ctl/ledger"
	"farflash/flash/ctl/media"
	"farflash/flash/ctl/table"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// storing is the part of a checkpoint that stores leaves and lists them. It uses the checkpoint's buffer.
type storing struct {
	op       device.Op
	next     uint64 // the leaf where the search for changed ones resumes
	batch    []uint64
	pins     []uint64
	taken    []ftl.PPA // places being written
	tags     []uint32
	waits    int // leaves and checksums of the batch that are being read
	leaf     media.Leaf
	attempts int
	strips   []int64   // of checksums that the batch lacks
	upto     uint64    // records that what was stored may have
	held     bool      // the header waits for records to be durable
	lists    bool      // the list is being written
	list     []ftl.PPA // its places
	listed   int       // pages of it written
	at       uint64    // the leaf that comes next in it
	index    indexing
}

const batchLeaves = media.Group

// storesLeaves reports whether leaves are stored at all: the map takes much of its memory, or some are.
func (c *core) storesLeaves() bool {
	return c.cfg.Map > 0 && (c.homes.n > 0 || c.table.Random() > c.cfg.Map/4)
}

// mapDue reports whether a checkpoint pays that stores leaves, so that they can be away: there is too little memory, a
// quarter of it is theirs, and a sixteenth of the log is in use, which bounds how often that happens.
func (c *core) mapDue() bool {
	return c.over() && c.table.Random() > c.cfg.Map/4 && c.inUse() >= uint64(c.shape.LogPages)/16+1
}

// beginStore begins to store leaves for the checkpoint that has begun.
func (c *core) beginStore() {
	x := &c.storing
	x.next, x.upto, x.held, x.lists = 0, 0, false, false
	x.list, x.listed, x.at, x.index = nil, 0, 0, indexing{}
	c.markStale()
	if !c.storesLeaves() {
		c.writeBody()
		return
	}
	c.storeSome()
}

// storeSome stores the next leaves that have changed, once all of them are in memory.
func (c *core) storeSome() {
	x := &c.storing
	if c.readOnly != nil {
		c.unpinAll(&x.pins)
		c.abandonCheckpoint(c.readOnly)
		return
	}
	x.batch = x.batch[:0]
	c.table.Unstored(x.next, c.placeIn, func(leaf uint64) bool {
		x.batch = append(x.batch, leaf)
		return len(x.batch) < batchLeaves
	})
	if len(x.batch) == 0 {
		c.writeBody()
		return
	}
	x.waits = 1
	there := func(err error) {
		if err != nil {
			c.fail(err)
		}
		if x.waits--; x.waits == 0 {
			c.storeSums()
		}
	}
	for _, leaf := range x.batch {
		c.pin(leaf, &x.pins)
		if c.table.IsAway(leaf) {
			x.waits++
			c.whenPresent(leaf, faulting{fn: there})
		}
	}
	there(nil)
}

// mostStrips is the number of strips of checksums that are read to store a leaf. More are missing where pages without
// order were mapped by a program that stored no checksums, or after a repair.
const mostStrips = 16

// storeSums reads the checksums that the leaves of the batch lack. Those that cannot be read are left out, and read
// with each page.
func (c *core) storeSums() {
	x := &c.storing
	x.waits = 1
	for _, leaf := range x.batch {
		strips := 0
		c.table.Lacking(leaf, c.placeIn, func(p ftl.PPA) {
			if _, known := c.ledger.SumAt(p); known || strips == mostStrips || !c.segments[c.segmentOf(p)].settled {
				return
			}
			if s := int64(p) / ledger.Strip; !slices.Contains(x.strips, s) {
				x.strips = append(x.strips, s)
				strips++
				x.waits++
				c.load(p, aLeaf, 0)
			}
		})
	}
	x.strips = x.strips[:0]
	c.storeRead()
}

// storeRead stores the batch once it lacks no checksum.
func (c *core) storeRead() {
	if c.storing.waits--; c.storing.waits == 0 {
		c.storeBatch()
	}
}

// storeBatch writes leaves that are in memory.
func (c *core) storeBatch() {
	x := &c.storing
	if c.readOnly != nil {
		c.unpinAll(&x.pins)
		c.abandonCheckpoint(c.readOnly)
		return
	}
	// Away, leaves with pages in frames pass for changed ones.
	last := x.batch[len(x.batch)-1]
	x.batch = slices.DeleteFunc(x.batch, func(leaf uint64) bool {
		_, _, stored := c.homes.get(leaf)
		same := stored && !c.table.Changed(leaf, c.placeIn)
		if same {
			c.homes.mark(leaf, false)
		}
		return same
	})
	if len(x.batch) == 0 {
		c.unpinAll(&x.pins)
		x.next = last + 1
		c.storeSome()
		return
	}
	first, n := c.takePlaces(len(x.batch))
	if n == 0 {
		c.unpinAll(&x.pins)
		c.writeBody()
		return
	}
	x.taken, x.tags = x.taken[:0], x.tags[:0]
	var kept []uint64
	for i := range n {
		leaf := x.batch[i]
		x.next = leaf + 1
		if !c.table.Store(leaf, (*[table.LeafPages]uint64)(&x.leaf), c.placeIn, c.sumOf) {
			continue // it is in order now, and stays in memory
		}
		x.tags = append(x.tags, x.leaf.Encode(c.body.buf[len(kept)*Page:][:Page], c.shape.UUID, leaf))
		kept = append(kept, leaf)
	}
	for i := len(kept); i < n; i++ {
		c.freePlaces([]ftl.PPA{first + ftl.PPA(i)})
	}
	for i := range kept {
		x.taken = append(x.taken, first+ftl.PPA(i))
	}
	x.batch = append(x.batch[:0], kept...)
	if len(kept) == 0 {
		c.unpinAll(&x.pins)
		c.storeSome()
		return
	}
	c.writePlaces()
}

// writePlaces writes the buffer to the places taken, which are consecutive.
func (c *core) writePlaces() {
	x := &c.storing
	dev, offset := c.at(x.taken[0])
	x.op.Kind, x.op.Offset, x.op.Buf, x.op.Err = device.Write, offset, c.body.buf[:len(x.taken)*Page], nil
	x.attempts = 0
	c.stats.MapWrites += int64(len(x.taken))
	c.submit(dev, &x.op)
}

// storeWritten completes the write of leaves, or of a part of the list or the index.
func (c *core) storeWritten() {
	x := &c.storing
	dev, _ := c.at(x.taken[0])
	switch {
	case x.op.Err != nil && x.attempts < c.cfg.Retries && c.readOnly == nil:
		x.attempts++
		c.submit(dev, &x.op)
		return
	case x.op.Err != nil:
		c.trouble(dev, &x.op, noPage, x.op.Err)
	}
	switch {
	case x.index.on && x.op.Err != nil:
		c.dropIndex()
	case x.index.on:
		x.taken = x.taken[:0]
		c.writeIndex()
	case x.lists && x.op.Err != nil:
		c.dropList()
	case x.lists:
		x.listed += len(x.taken)
		x.taken = x.taken[:0]
		c.writeList()
	default:
		for i, leaf := range x.batch {
			if x.op.Err != nil {
				c.table.Soil(leaf)
				c.freePlaces(x.taken[i:][:1])
				continue
			}
			if at, _, ok := c.homes.get(leaf); ok {
				c.superseded = append(c.superseded, at)
			}
			c.homes.set(leaf, x.taken[i], x.tags[i])
		}
		x.taken = x.taken[:0]
		c.unpinAll(&x.pins)
		x.upto = c.next
		c.storeSome()
	}
}

// markStale records which stored leaves have changed. Until they are stored again, the checkpoint that begins now does
// not list them. It lists those that change from now on, because recovery takes what records change from entries.
func (c *core) markStale() {
	c.homes.from(0, func(leaf uint64) bool {
		c.homes.mark(leaf, c.table.Changed(leaf, c.placeIn))
		return true
	})
}

// listsLeaf reports whether the checkpoint being written lists a stored leaf.
func (c *core) listsLeaf(leaf uint64) bool { return !c.homes.isStale(leaf) }

// beginList takes places for the list of stored leaves, and begins to write it.
func (c *core) beginList() {
	x := &c.storing
	x.lists = true
	c.disown()
	if !c.takeList() {
		c.dropList()
		return
	}
	c.writeList()
}

// disown forgets where leaves were stored that are in order now, or gone.
func (c *core) disown() {
	var gone []uint64
	c.homes.from(0, func(leaf uint64) bool {
		if !c.table.Storable(leaf) {
			gone = append(gone, leaf)
		}
		return true
	})
	for _, leaf := range gone {
		at, _, _ := c.homes.get(leaf)
		c.superseded = append(c.superseded, at)
		c.homes.forget(leaf)
	}
}

// takeList takes the places for the list of stored leaves.
func (c *core) takeList() bool {
	x := &c.storing
	n := 0
	c.homes.from(0, func(leaf uint64) bool {
		if c.listsLeaf(leaf) {
			n++
		}
		return true
	})
	for left := (n + media.LeavesPerPage - 1) / media.LeavesPerPage; left > 0; {
		first, got := c.takePlaces(left)
		if got == 0 {
			return false
		}
		for i := range got {
			x.list = append(x.list, first+ftl.PPA(i))
		}
		left -= got
	}
	if len(x.list) > 0 {
		c.body.header.Leaves = uint64(x.list[0]) + 1
	}
	return true
}

// dropList does without a list: recovery then takes the mapping from the entries alone.
func (c *core) dropList() {
	x := &c.storing
	c.freePlaces(x.list)
	x.list, x.taken = nil, x.taken[:0]
	c.body.header.Leaves = 0
	c.flushBody()
}

// writeList writes the next part of the list.
func (c *core) writeList() {
	x := &c.storing
	if c.readOnly != nil {
		c.abandonCheckpoint(c.readOnly)
		return
	}
	if x.listed == len(x.list) {
		c.beginIndex()
		return
	}
	x.taken = x.taken[:0]
	for i := x.listed; i < len(x.list) && len(x.taken) < bodyChunk; i++ {
		if k := len(x.taken); k > 0 &&
			(x.list[i] != x.taken[k-1]+1 || c.segmentOf(x.list[i]) != c.segmentOf(x.taken[0])) {
			break
		}
		c.encodeList(c.body.buf[len(x.taken)*Page:][:Page], i)
		x.taken = append(x.taken, x.list[i])
	}
	c.writePlaces()
	x.taken = x.taken[:len(x.taken):len(x.taken)]
}

// encodeList encodes a page of the list, with the leaves that come next.
func (c *core) encodeList(page []byte, i int) {
	x := &c.storing
	l := media.Leaves{Generation: c.body.header.Generation}
	if i+1 < len(x.list) {
		l.Next = uint64(x.list[i+1]) + 1
	}
	c.homes.from(x.at, func(leaf uint64) bool {
		if len(l.List) == media.LeavesPerPage {
			return false
		}
		if x.at = leaf + 1; c.listsLeaf(leaf) {
			at, tag, _ := c.homes.get(leaf)
			l.List = append(l.List, media.Stored{Number: leaf, Place: uint64(at), Tag: tag})
		}
		return true
	})
	l.Encode(page, c.shape.UUID)
}

// waitForStored writes the checkpoint's header once the records are durable that stored leaves may have. If the log has
// no space for them before the checkpoint is in force, it does without the list.
func (c *core) waitForStored() {
	x := &c.storing
	if c.body.header.Leaves == 0 || c.durable >= x.upto {
		c.writeHeader()
		return
	}
	x.held = true
	c.awaits(await{inner: true, seq: x.upto, fn: func(err error) {
		if !x.held {
			return
		}
		if x.held = false; err != nil {
			c.abandonCheckpoint(err)
			return
		}
		c.writeHeader()
	}})
}

// unwait ends waitForStored if the log is full.
func (c *core) unwait() {
	x := &c.storing
	if x.held && c.readOnly == nil && len(c.records) > 0 && c.inUse() >= c.logLimit() {
		x.held = false
		c.body.header.Leaves = 0
		c.writeHeader()
	}
}

// settleLeaves frees the places of what the checkpoint that has taken effect has elsewhere, and gives back segments
// that have none left.
func (c *core) settleLeaves() {
	c.freePlaces(c.superseded)
	c.freePlaces(c.list)
	c.superseded, c.list, c.storing.list = c.superseded[:0], c.storing.list, nil
	empty := 0
	for i := 0; i < len(c.stores); i++ {
		if c.stores[i].n > 0 {
			continue
		}
		if empty++; empty == 1 && c.storesLeaves() {
			continue // for the next checkpoint
		}
		c.ftl.Return(ftl.Block(c.stores[i].segment))
		c.stores = append(c.stores[:i], c.stores[i+1:]...)
		i--
	}
}
