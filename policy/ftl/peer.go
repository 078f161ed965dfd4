package ftl

import "slices"

// MQSim's victim selection (Quirks.AnyBlock). MQSim searches for a victim whenever a frontier's block fills while few
// blocks are free, and whenever an erase still leaves the host without a page. It considers every block of the pool,
// including free blocks, write frontiers, and blocks that it believes are still being programmed. Most policies redraw
// such blocks, but only a limited number of times. The block that the search ends with is collected if any of its pages
// is invalid; otherwise nothing happens until the next search.

// peerSeed seeds MQSim's random draws of blocks, whatever seed its input file gives: because the arguments of its
// constructor are shifted, the seed keeps its default.
const peerSeed = 432

// peerPool is the additional state per pool that MQSim's selection needs.
type peerPool struct {
	taken []int32 // FIFO: blocks in the order in which frontiers took them
	lost  int     // blocks whose collection waits forever; they count towards Concurrent
}

func clonePeers(of []peerPool) []peerPool {
	of = slices.Clone(of)
	for i := range of {
		of[i].taken = slices.Clone(of[i].taken)
	}
	return of
}

// noteTaken records that a frontier took a block. Only FIFO uses the record.
func (f *FTL) noteTaken(pool int, b int32) {
	if f.cfg.Victim == FIFO {
		f.peers[pool].taken = append(f.peers[pool].taken, b)
	}
}

// Hold marks a block in which a page was allocated for a read of unwritten data. No program of that page ever
// completes, so MQSim believes that the block is being programmed forever and never collects it.
func (f *FTL) Hold(pool, block int) { f.touch(pool).known(narrow(block)).held = true }

// Erases reports whether a victim is erased once all its pages have been moved.
func (f *FTL) Erases(b Block) bool { return !f.at(f.poolOf(b)).known(int32(b % Block(f.blocks))).held }

// Look searches for a victim as if a block had been filled (Quirks.OnFill), provided that the host still has to wait.
// MQSim does so after it has resumed the writes that were waiting for an erase.
func (f *FTL) Look(pool int) {
	if p := f.touch(pool); p.free < f.hostStop {
		f.look(p, pool)
	}
}

// AllocateRegardless is Allocate without the check of HostStop. MQSim skips the check when it allocates a page for a
// read.
func (f *FTL) AllocateRegardless(pool, stream int, now Tick) (PPA, bool) {
	p := f.touch(pool)
	if uint(stream) >= uint(f.cfg.Streams) || stream >= len(p.frontiers) {
		panic(noStream)
	}
	w := &p.frontiers[stream]
	if w.left == 0 {
		if !f.hostMayOpen(p) {
			return f.allocateSlow(p, pool, stream, now)
		}
		f.openBlock(p, pool, stream)
	}
	w.host++
	return f.take(p, pool, stream, now), true
}

// startAsPeer starts collecting the victim that a search finds, and reports whether there was one. A victim with reads
// in flight is held: its pages are moved once the reads complete, but it is never erased.
func (f *FTL) startAsPeer(p *pool, pool int) bool {
	b := f.pickAsPeer(p, pool)
	if b == none || !f.begin(p, b, GC) {
		return false
	}
	p.blocks[b].held = p.blocks[b].reads > 0
	return true
}

// pickAsPeer returns the victim that MQSim's search finds, or none.
func (f *FTL) pickAsPeer(p *pool, pool int) int32 {
	b := f.found(p, &f.peers[pool])
	switch {
	case b == none || int(b) >= len(p.blocks):
		return none
	case f.isFull(p, b) && !p.blocks[b].held:
		if p.blocks[b].valid == f.pages {
			return none
		}
		return b
	case p.blocks[b].state == open && f.frontierOf(p, b) < 0 && f.yield(p, b) > 0 || p.blocks[b].held && f.isFull(p, b):
		// MQSim waits forever for a program in this block to complete.
		p.blocks[b].held = true
		f.peers[pool].lost++
	}
	return none
}

// found returns the block that MQSim's search ends with. It need not be a valid victim.
func (f *FTL) found(p *pool, of *peerPool) int32 {
	switch f.cfg.Victim {
	case Greedy:
		best := int32(0)
		if len(p.blocks) > 0 && p.isVictim(0) {
			best = 1
		}
		for b := int32(1); int(b) < len(p.blocks); b++ {
			if f.isFull(p, b) && f.isSafe(p, b) && f.yield(p, b) > f.invalid(p, best) {
				best = b
			}
		}
		return best
	case DChoices:
		return f.leastOfSet(p)
	case FIFO:
		if len(of.taken) == 0 {
			return none
		}
		b := of.taken[0]
		of.taken = of.taken[1:]
		return b
	case Random:
		return f.drawn(func(b int32) bool { return f.isSafe(p, b) })
	case RandomFull, RandomYield:
		least := int32(0)
		if f.cfg.Victim == RandomYield {
			least = int32(f.cfg.Yield)
		}
		return f.drawn(func(b int32) bool { return f.isFull(p, b) && f.isSafe(p, b) && f.yield(p, b) >= least })
	}
	if p.validSum == int64(p.candidates)*int64(f.pages) {
		return none
	}
	return f.pick(p) // MQSim has no such policy
}

// drawn draws blocks until one satisfies willDo. After one draw more than the pool has blocks it gives up and returns
// the last one drawn.
func (f *FTL) drawn(willDo func(b int32) bool) int32 {
	b := f.anyBlock()
	for range f.blocks {
		if willDo(b) {
			break
		}
		b = f.anyBlock()
	}
	return b
}

func (f *FTL) anyBlock() int32 { return int32(f.peer.Between(0, uint64(f.blocks-1))) }

// leastOfSet draws distinct safe blocks until it has Choices of them, and returns the one with the fewest valid pages,
// the lowest numbered among equals. If the pool has fewer safe blocks, MQSim hangs; leastOfSet returns none.
func (f *FTL) leastOfSet(p *pool) int32 {
	safe := int(f.blocks) - len(p.blocks)
	for b := range p.blocks {
		if f.isSafe(p, int32(b)) {
			safe++
		}
	}
	if safe < f.cfg.Choices {
		return none
	}
	var set []int32
	for len(set) < f.cfg.Choices {
		if b := f.anyBlock(); f.isSafe(p, b) {
			if i, there := slices.BinarySearch(set, b); !there {
				set = slices.Insert(set, i, b)
			}
		}
	}
	best := set[0]
	for _, b := range set {
		if f.isFull(p, b) && f.yield(p, b) > f.invalid(p, best) {
			best = b
		}
	}
	return best
}

// isFull reports whether every page of a block has been programmed.
func (f *FTL) isFull(p *pool, b int32) bool {
	return int(b) < len(p.blocks) && (p.blocks[b].state == closed || p.blocks[b].state == ranked)
}

// isSafe reports whether a block is free, or full and neither held nor being collected: not a frontier, and without
// programs in flight.
func (f *FTL) isSafe(p *pool, b int32) bool {
	return int(b) >= len(p.blocks) || p.blocks[b].state == free || f.isFull(p, b) && !p.blocks[b].held
}

// isVictim reports whether a block is being collected.
func (p *pool) isVictim(b int32) bool {
	return p.blocks[b].state == victim || p.blocks[b].state == erasing
}

// invalid returns the number of a block's allocated pages without valid data, whatever the block's state.
func (f *FTL) invalid(p *pool, b int32) int32 {
	if int(b) >= len(p.blocks) || p.blocks[b].state == free {
		return 0
	}
	return f.yield(p, b) // pages not yet handed out count as valid
}

// forsaken reports whether all pages of a victim have been moved but MQSim will never erase it.
func (m *block) forsaken() bool { return m.held && m.valid == 0 && m.pending == 0 }

// collecting reports whether any victim of the pool still has work to do.
func (p *pool) collecting() bool {
	for _, s := range p.victims {
		if !p.blocks[s.block].forsaken() {
			return true
		}
	}
	return false
}

// Rescue resolves a deadlock that MQSim never leaves: the host waits for space and no collection is in progress. Held
// victims are released, so that they are erased; if there are none, the next victim is picked as without the quirk.
func (f *FTL) Rescue(pool int) {
	p := f.touch(pool)
	p.due, p.must, p.wake = 1, true, true
	for _, s := range p.victims {
		if m := &p.blocks[s.block]; m.held {
			m.held, p.due, p.must = false, 0, false
		}
	}
}
