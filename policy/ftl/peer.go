package ftl

import "slices"

// How MQSim picks victims (Quirks.AnyBlock). It looks once each time that a frontier's block is full and few are
// free, or an erase leaves the host without a page, at all blocks of the pool: free ones, write frontiers and those
// that it thinks are still programmed too, which most policies draw again, though not for ever. What it finds in the
// end is collected if it holds a page that is not valid; if not, nothing happens until the next look.

// peerSeed seeds what MQSim draws blocks with, whatever its file says: its constructor's arguments are shifted, so
// the seed has its default.
const peerSeed = 432

// peerPool is what it takes of a pool besides.
type peerPool struct {
	taken []int32 // FIFO: blocks in the order in which frontiers took them
	lost  int     // blocks that it waits for ever to collect
}

func clonePeers(of []peerPool) []peerPool {
	of = slices.Clone(of)
	for i := range of {
		of[i].taken = slices.Clone(of[i].taken)
	}
	return of
}

// noteTaken notes that a frontier took a block.
func (f *FTL) noteTaken(pool int, b int32) {
	if f.cfg.Victim == FIFO {
		f.peers[pool].taken = append(f.peers[pool].taken, b)
	}
}

// Hold says that MQSim thinks that a program of an open block never ends, because it gave a page to a read: it picks
// the block for no victim.
func (f *FTL) Hold(pool, block int) { f.touch(pool).blocks[block].held = true }

// Erases reports whether a victim is to be erased when it has been emptied.
func (f *FTL) Erases(b Block) bool { return !f.pools[f.poolOf(b)].blocks[int(b)%int(f.blocks)].held }

// Look is a look for a victim as if a block had been filled (Quirks.OnFill), which MQSim has after it has let writes
// go on that waited for an erase, if the host still has to wait.
func (f *FTL) Look(pool int) {
	if p := f.touch(pool); p.free < f.hostStop {
		f.look(p, pool)
	}
}

// AllocateRegardless is Allocate that does not heed HostStop, as MQSim's for reads does not.
func (f *FTL) AllocateRegardless(pool, stream int, now Tick) (PPA, bool) {
	p := f.touch(pool)
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

// startAsPeer begins the victim that a look finds.
func (f *FTL) startAsPeer(p *pool, pool int) bool {
	b := f.pickAsPeer(p, pool)
	if b == none || !f.begin(p, b, GC) {
		return false
	}
	p.blocks[b].held = p.blocks[b].reads > 0
	return true
}

// pickAsPeer is MQSim's look, or none.
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
		// It waits for ever for a program of it to end.
		p.blocks[b].held = true
		f.peers[pool].lost++
	}
	return none
}

// found is the block that the policy comes to.
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
	return f.pick(p) // it has no such policy
}

// drawn draws a block that will do, or the last of as many others as there are blocks.
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

// leastOfSet draws blocks until it has as many as the policy has choices, and returns the one with the fewest valid
// pages, of equals the one with the least number. Where there are not as many, MQSim hangs.
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

// isFull reports whether every page of a block was programmed.
func (f *FTL) isFull(p *pool, b int32) bool {
	return int(b) < len(p.blocks) && (p.blocks[b].state == closed || p.blocks[b].state == ranked)
}

// isSafe reports whether a block is no frontier, and nothing of it is programmed or collected.
func (f *FTL) isSafe(p *pool, b int32) bool {
	return int(b) >= len(p.blocks) || p.blocks[b].state == free || f.isFull(p, b) && !p.blocks[b].held
}

// isVictim reports whether a block is being collected.
func (p *pool) isVictim(b int32) bool {
	return p.blocks[b].state == victim || p.blocks[b].state == erasing
}

// invalid is how many of the pages handed out of a block, of any state, hold nothing.
func (f *FTL) invalid(p *pool, b int32) int32 {
	if int(b) >= len(p.blocks) || p.blocks[b].state == free {
		return 0
	}
	return f.yield(p, b) // a page that was not handed out counts as valid
}

// forsaken reports whether a victim's pages have been moved, and MQSim will not erase it.
func (m *block) forsaken() bool { return m.held && m.valid == 0 && m.pending == 0 }

// collecting reports whether something is yet to be done for a victim.
func (p *pool) collecting() bool {
	for _, s := range p.victims {
		if !p.blocks[s.block].forsaken() {
			return true
		}
	}
	return false
}

// Rescue has a victim picked as without the quirk, or those erased that MQSim would not erase, because the host waits
// for space and nothing is under way. MQSim never serves it.
func (f *FTL) Rescue(pool int) {
	p := f.touch(pool)
	p.due, p.must, p.wake = 1, true, true
	for _, s := range p.victims {
		if m := &p.blocks[s.block]; m.held {
			m.held, p.due, p.must = false, 0, false
		}
	}
}
