package ftl

import (
	"fmt"
	"unsafe"
)

// Watching reports whether the build tag invariants is set. Pools then carry a counter, which moves each into the next
// size class.
const Watching = unsafe.Sizeof(watch{}) > 0

// Books recomputes from their definitions the results that a pool derives from its victims and candidates: the number
// of free blocks that pending moves may need, whether a page may stray to another frontier, and the best candidate.
func (f *FTL) Books(pool int) error {
	p := f.pools[pool]
	if p == f.blank || p.restoring != nil {
		return nil
	}
	pages := map[int]int32{} // still to be moved, by target frontier
	for _, s := range p.victims {
		m := &p.blocks[s.block]
		pages[f.target(m, Reason(m.prev))] += m.next
	}
	total := func() (blocks int32) {
		for to, n := range pages {
			for n -= p.frontiers[to].left; n > 0; n -= f.pages {
				blocks++
			}
		}
		return blocks
	}
	if got, want := f.reservedFor(p, nil, GC), total(); got != want {
		return fmt.Errorf("pool %d: %d victims owe %d blocks, counted %d", pool, len(p.victims), want, got)
	}
	for i := range p.blocks {
		m := &p.blocks[i]
		if m.state != closed && m.state != ranked {
			continue
		}
		for _, why := range []Reason{GC, WearLevelling} {
			to := f.target(m, why)
			if to >= len(p.frontiers) {
				continue // no wear levelling
			}
			pages[to] += m.valid
			got, want := f.reservedFor(p, m, why), total()
			pages[to] -= m.valid
			if got != want {
				return fmt.Errorf("pool %d: with block %d %d blocks are owed, counted %d", pool, i, want, got)
			}
		}
	}
	for to := range p.frontiers {
		w := &p.frontiers[to]
		left, free := w.left, p.free
		if w.left == 0 {
			w.left = f.pages
			free--
		}
		w.left--
		want := !p.short && free >= 0 && total() <= free && to >= f.cfg.Fast.Streams
		w.left = left
		if got := f.mayStray(p, to); got != want {
			return fmt.Errorf("pool %d: a page may stray to frontier %d: %v; %v is right", pool, to, got, want)
		}
	}
	return f.booksOfBenefit(p)
}

// booksOfBenefit checks the cost-benefit choice, the greatest (1-u) age / 2u: of the blocks that have waited longest
// among those with as many valid pages, none has a greater benefit.
func (f *FTL) booksOfBenefit(p *pool) error {
	if f.cfg.Victim != CostBenefit || p.buckets == nil || p.candidates == 0 {
		return nil
	}
	for p.buckets[p.least].head == none {
		p.least++
	}
	now, empty := Tick(0), false
	for i := range p.blocks {
		if m := &p.blocks[i]; m.state == ranked {
			now, empty = max(now, m.stamp), empty || m.valid == 0
		}
	}
	benefit := func(m *block) float64 {
		u := float64(m.valid) / float64(f.pages)
		return (1 - u) * (float64(max(0, now-m.stamp)) + 1) / (2 * u)
	}
	b := f.mostBeneficial(p)
	if empty || b == none {
		if empty && (b == none || p.blocks[b].valid != 0) {
			return fmt.Errorf("block %d is chosen, and another has no valid page", b)
		}
		return nil
	}
	for v := range p.buckets {
		if h := p.buckets[v].head; h != none && benefit(&p.blocks[h]) > benefit(&p.blocks[b])*(1+1e-9) {
			return fmt.Errorf("block %d with benefit %v is chosen, %d has %v", b, benefit(&p.blocks[b]), h,
				benefit(&p.blocks[h]))
		}
	}
	return nil
}
