package ftl

import (
	"cmp"
	"slices"
)

// order is the data structure in which a pool keeps its candidates, so that its policy finds a victim quickly.
type order uint8

const (
	byAge   order = iota // one list, first filled first
	byArray              // an array to draw from
	byValid              // a list for each number of valid pages
)

func orderOf(v Victim) order {
	switch v {
	case FIFO, CostAge:
		return byAge
	case DChoices, Random, RandomFull, RandomYield:
		return byArray
	}
	return byValid
}

// addCandidate makes block b a candidate.
//
// In byValid order there are no buckets until the pool first collects (rank builds them), so a drive that only fills up
// does not pay for them. Afterwards the f.window oldest candidates are in buckets and the younger ones wait in p.young.
// f.window is the whole pool except for WindowedGreedy.
func (p *pool) addCandidate(f *FTL, b int32) {
	m := &p.blocks[b]
	m.state = closed
	m.pending = int32(p.erases)
	p.candidates++
	p.validSum += int64(m.valid)
	switch {
	case f.order == byArray:
		m.next = int32(len(p.array))
		p.array = append(p.array, b)
	case f.order == byValid && p.buckets != nil && p.inBuckets < f.window:
		// The window has space only if no younger candidate is waiting.
		p.bucket(b, m)
	default:
		p.append(&p.young, b, m)
	}
}

// remove takes block b out of the candidates.
func (p *pool) remove(f *FTL, b int32) {
	m := &p.blocks[b]
	p.candidates--
	p.validSum -= int64(m.valid)
	switch {
	case m.state == ranked:
		p.unlink(&p.buckets[m.valid], m)
		p.inBuckets--
		if p.young.head != none && p.inBuckets < f.window {
			old := p.young.head
			q := &p.blocks[old]
			p.unlink(&p.young, q)
			p.bucket(old, q)
		}
	case f.order == byArray:
		// Fill the gap with the last block, to keep the array dense.
		last := p.array[len(p.array)-1]
		p.array[m.next] = last
		p.blocks[last].next = m.next
		p.array = p.array[:len(p.array)-1]
	default:
		p.unlink(&p.young, m)
	}
}

// pick returns the policy's victim among the candidates, or none if no candidate would yield space.
func (f *FTL) pick(p *pool) int32 {
	if p.validSum == int64(p.candidates)*int64(f.pages) {
		p.starved = true
		return none
	}
	p.starved = false
	switch f.cfg.Victim {
	case FIFO:
		if f.picker != nil {
			return f.picked(p)
		}
		return p.young.head
	case CostAge:
		return f.oldestBenefit(p)
	case Random, RandomFull:
		return p.array[f.random.IntN(int64(len(p.array)))]
	case RandomYield:
		b := p.array[f.random.IntN(int64(len(p.array)))]
		for range f.blocks {
			if f.yield(p, b) >= int32(f.cfg.Yield) {
				break
			}
			b = p.array[f.random.IntN(int64(len(p.array)))]
		}
		return b
	case DChoices:
		best := p.array[f.random.IntN(int64(len(p.array)))]
		for range f.cfg.Choices - 1 {
			if b := p.array[f.random.IntN(int64(len(p.array)))]; p.blocks[b].valid < p.blocks[best].valid {
				best = b
			}
		}
		return best
	}
	if p.buckets == nil {
		p.rank(f, p.byEvent(f.oldest(p)))
	}
	for p.buckets[p.least].head == none {
		p.least++
	}
	if f.cfg.Victim == CostBenefit {
		return f.mostBeneficial(p)
	}
	return p.buckets[p.least].head
}

// mostBeneficial returns the candidate with the greatest (1-u)*age/(2u). Within a bucket u is the same and the head has
// waited longest (except for programs that completed late, which may have put an older block behind it). Age is counted
// from the most recent event in any bucket, plus one so that equal ages still compare by u.
func (f *FTL) mostBeneficial(p *pool) int32 {
	if p.least == 0 {
		return p.buckets[0].head // no page to move: always the best
	}
	now := p.blocks[p.buckets[p.least].tail].stamp
	for v := p.least + 1; v <= f.pages; v++ {
		if b := p.buckets[v].tail; b != none {
			now = max(now, p.blocks[b].stamp)
		}
	}
	best, most := none, 0.0
	for v := p.least; v < f.pages; v++ {
		b := p.buckets[v].head
		if b == none {
			continue
		}
		age := float64(max(0, now-p.blocks[b].stamp)) + 1
		if benefit := float64(f.pages-v) / float64(2*v) * age; benefit > most {
			best, most = b, benefit
		}
	}
	return best
}

// oldestBenefit returns the candidate with the greatest (1-u)*age/u. Pages still valid in a block that was filled long
// ago are cold, so waiting will not free its space; a recently filled block may still lose more pages. (CostBenefit
// counts age from the last invalidation, which makes a block that is losing pages young again.) Every candidate is
// scanned, because no order by benefit is stable over time.
func (f *FTL) oldestBenefit(p *pool) int32 {
	best, most := none, 0.0
	for b := p.young.head; b != none; b = p.blocks[b].next {
		m := &p.blocks[b]
		if m.valid == 0 {
			return b // no page to move: always the best
		}
		age := float64(p.erases-uint32(m.pending)) + 1
		if benefit := float64(f.pages-m.valid) / float64(m.valid) * age; benefit > most {
			best, most = b, benefit
		}
	}
	return best
}

// oldest returns the candidates that the first collection considers, first filled first.
func (f *FTL) oldest(p *pool) []int32 {
	var window []int32
	for b := p.young.head; b != none && int32(len(window)) < f.window; b = p.blocks[b].next {
		window = append(window, b)
	}
	return window
}

// byEvent sorts blocks by their last event, the order in which buckets would hold them had they existed all along.
func (p *pool) byEvent(blocks []int32) []int32 {
	slices.SortStableFunc(blocks, func(a, b int32) int { return cmp.Compare(p.blocks[a].stamp, p.blocks[b].stamp) })
	return blocks
}

// rank creates the buckets and moves young candidates into them in the given order.
func (p *pool) rank(f *FTL, window []int32) {
	p.buckets = make([]list, f.pages+1)
	for i := range p.buckets {
		p.buckets[i] = list{none, none}
	}
	p.least = f.pages
	for _, b := range window {
		p.unlink(&p.young, &p.blocks[b])
		p.bucket(b, &p.blocks[b])
	}
}

// bucket adds a block to the bucket of its valid pages.
func (p *pool) bucket(b int32, m *block) {
	m.state = ranked
	p.inBuckets++
	p.append(&p.buckets[m.valid], b, m)
	p.least = min(p.least, m.valid)
}

// rerank moves a block that lost a page to the bucket below.
func (p *pool) rerank(b int32, m *block) {
	p.unlink(&p.buckets[m.valid+1], m)
	p.append(&p.buckets[m.valid], b, m)
	p.least = min(p.least, m.valid)
}

// yield returns the number of invalid pages of a full block.
func (f *FTL) yield(p *pool, b int32) int32 { return f.pages - p.blocks[b].valid }

// append adds block b at the tail of a list.
func (p *pool) append(l *list, b int32, m *block) {
	m.prev, m.next = l.tail, none
	if l.tail == none {
		l.head = b
	} else {
		p.blocks[l.tail].next = b
	}
	l.tail = b
}

func (p *pool) unlink(l *list, m *block) {
	if m.prev == none {
		l.head = m.next
	} else {
		p.blocks[m.prev].next = m.next
	}
	if m.next == none {
		l.tail = m.prev
	} else {
		p.blocks[m.next].prev = m.prev
	}
}
