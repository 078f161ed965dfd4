package ssd

import (
	"slices"

	"farflash/ftl"
	"farflash/ftl/waf"
	"farflash/rng"
	"farflash/units"
)

// Preconditioning writes a drive's flash before time 0, without its timing.

func (m *Image) precondition(random *rng.Stream) error {
	p := &m.cfg.Preconditioning
	if p.Fill != FillNone {
		m.l2p.fill()
	}
	switch p.Fill {
	case FillNone:
	case FillSequential:
		if err := m.fillInOrder(); err != nil {
			return err
		}
	case FillSteady:
		if err := m.fillSteady(random); err != nil {
			return err
		}
	case FillReplay:
		if err := m.fillInOrder(); err != nil {
			return err
		}
		if err := m.overwrite(random); err != nil {
			return err
		}
	}
	if m.cfg.Quirks.MappingPagesLaidOut && !m.cfg.Mapping.Ideal {
		return m.layOutMapping()
	}
	return nil
}

// dataOf lists the logical pages of a namespace that hold data in a plane, in
// order of address, in buf.
func (m *Image) dataOf(n *namespace, plane int32, buf []uint32) []uint32 {
	filled := uint32(float64(n.pages) * float64(m.cfg.Preconditioning.Occupancy))
	turn := uint32(len(n.poolOf))
	for k, p := range n.poolOf {
		if p == plane {
			for i := uint32(k); i < filled; i += turn {
				buf = append(buf, n.base+i)
			}
		}
	}
	return buf
}

// install puts logical page l on a page of a block.
func (m *Image) install(plane, blk, page int, l uint32) {
	g := &m.pools.flash
	m.owners.set(plane, blk, page, l)
	m.l2p.set(l, uint32((plane*g.BlocksPerPlane+blk)*g.PagesPerBlock+page))
	m.mapped++
}

// fillInOrder writes every namespace once in order of address.
func (m *Image) fillInOrder() error {
	g := &m.pools.flash
	valid := make([]uint64, (g.PagesPerBlock+63)/64)
	var pages []uint32
	for plane := range g.Planes() {
		blk := 0
		for i := range m.ns {
			n := &m.ns[i]
			pages = m.dataOf(n, int32(plane), pages[:0])
			for len(pages) > 0 {
				count := min(len(pages), g.PagesPerBlock)
				clear(valid)
				for k, l := range pages[:count] {
					m.install(plane, blk, k, l)
					valid[k>>6] |= 1 << (k & 63)
				}
				r := ftl.Restored{Use: ftl.Full, Stream: n.stream, Valid: valid}
				if count < g.PagesPerBlock {
					r.Use, r.Written = ftl.Open, count
				}
				if err := m.ftl.RestoreBlock(m.blockOf(plane, blk), r); err != nil {
					return err
				}
				pages = pages[count:]
				blk++
			}
		}
		if err := m.room(blk); err != nil {
			return err
		}
	}
	return nil
}

func (m *Image) blockOf(plane, blk int) ftl.Block {
	return ftl.Block(plane*m.pools.flash.BlocksPerPlane + blk)
}

// room checks that a plane is left with blocks to work with.
func (m *Image) room(used int) error {
	g := &m.pools.flash
	if left := g.BlocksPerPlane - used; left <= m.cfg.Collection.Reserve {
		return units.Wrong("preconditioning.occupancy", "%v fills %d of a plane's %d blocks; at most %d may hold data",
			m.cfg.Preconditioning.Occupancy, used, g.BlocksPerPlane, g.BlocksPerPlane-m.cfg.Collection.Reserve-1)
	}
	return nil
}

// overwrite writes random pages and lets the translation layer collect as it goes.
func (m *Image) overwrite(random *rng.Stream) error {
	g := &m.pools.flash
	n := &m.ns[0]
	total := int64(0)
	for i := range m.ns {
		total += int64(float64(m.ns[i].pages) * float64(m.cfg.Preconditioning.Occupancy))
	}
	if total == 0 {
		return nil
	}
	for range int64(float64(total) * m.cfg.Preconditioning.Passes) {
		k := random.IntN(total)
		for i := range m.ns {
			n = &m.ns[i]
			if in := int64(float64(n.pages) * float64(m.cfg.Preconditioning.Occupancy)); k < in {
				break
			} else {
				k -= in
			}
		}
		plane := n.pool(uint32(k))
		l := n.base + uint32(k)
		dst, ok := m.ftl.Allocate(int(plane), n.stream, 0)
		for !ok {
			if !m.collectNow(int(plane)) {
				return units.Wrong("preconditioning", "plane %d has no page left to write to; lower preconditioning.occupancy or raise over_provisioning", plane)
			}
			dst, ok = m.ftl.Allocate(int(plane), n.stream, 0)
		}
		old := m.l2p.get(l)
		rest := int(uint32(dst) - uint32(plane)*uint32(g.PagesPerPlane()))
		m.owners.set(int(plane), rest/g.PagesPerBlock, rest%g.PagesPerBlock, l)
		m.l2p.set(l, uint32(dst))
		m.ftl.Programmed(dst)
		m.ftl.Invalidate(ftl.PPA(old), 0)
		m.collectNow(int(plane))
	}
	return nil
}

// collectNow does all that collection wants done in a plane and reports whether it
// did anything.
func (m *Image) collectNow(plane int) bool {
	g := &m.pools.flash
	did := false
	for a, ok := m.ftl.Next(plane); ok; a, ok = m.ftl.Next(plane) {
		did = true
		if a.Kind == ftl.Erase {
			m.owners.forget(plane, int(a.Block)-plane*g.BlocksPerPlane)
			m.ftl.Erased(a.Block)
			continue
		}
		dst, ok := m.ftl.Relocate(a.Source, 0)
		if !ok {
			continue
		}
		rest := int(uint32(dst) - uint32(plane)*uint32(g.PagesPerPlane()))
		m.owners.set(plane, rest/g.PagesPerBlock, rest%g.PagesPerBlock, uint32(a.LPA))
		m.ftl.Moved(a.Source, dst, 0)
	}
	return did
}

// fillSteady lays down what uniform random overwriting leaves behind in the long
// run: the closed blocks' valid pages follow the mean-field steady state of the
// victim policy (Van Houdt, SIGMETRICS 2013), the older a block the fewer; which
// pages are valid and whose they are is random.
func (m *Image) fillSteady(random *rng.Stream) error {
	g := &m.pools.flash
	var data, places []uint32
	valid := make([]uint64, (g.PagesPerBlock+63)/64)
	f := m.ftl.Config()
	policy := waf.Policy{Victim: f.Victim, Choices: f.Choices, Window: float64(f.Window)}
	last := 0
	var counts []int
	for plane := range g.Planes() {
		data = data[:0]
		for i := range m.ns {
			data = m.dataOf(&m.ns[i], int32(plane), data)
		}
		if len(data) == 0 {
			continue
		}
		// Collection starts with the first block that the host opens: what it wrote before that would cost nothing, and a superblock is much.
		// Other namespaces' open blocks are taken from what is free.
		closed := g.BlocksPerPlane - f.GCStart - 2*(len(m.ns)-1)
		if err := m.room((len(data) + g.PagesPerBlock - 1) / g.PagesPerBlock); err != nil {
			return err
		}
		if closed*g.PagesPerBlock <= len(data) {
			return units.Wrong("preconditioning.occupancy", "%v leaves plane %d no spare pages beside open blocks and the reserve; lower it or raise over_provisioning",
				m.cfg.Preconditioning.Occupancy, plane)
		}
		if len(data) != last {
			last = len(data)
			var err error
			if counts, err = validCounts(policy, closed, g.PagesPerBlock, len(data)); err != nil {
				return units.Wrong("preconditioning", "%v", err)
			}
		}
		places = places[:0]
		for blk, count := range counts {
			clear(valid)
			left := count
			for page := 0; left > 0; page++ {
				if random.IntN(int64(g.PagesPerBlock-page)) < int64(left) {
					places = append(places, uint32(blk*g.PagesPerBlock+page))
					valid[page>>6] |= 1 << (page & 63)
					left--
				}
			}
			if err := m.ftl.RestoreBlock(m.blockOf(plane, blk), ftl.Restored{Use: ftl.Full, Stream: m.streamOf(plane), Valid: valid}); err != nil {
				return err
			}
		}
		// The places are shuffled, not the data, so that the map is filled in order: it
		// is far larger than the processor's caches, a plane is not.
		for i := len(places) - 1; i > 0; i-- {
			j := random.IntN(int64(i) + 1)
			places[i], places[j] = places[j], places[i]
		}
		for i, l := range data {
			p := int(places[i])
			m.install(plane, p/g.PagesPerBlock, p%g.PagesPerBlock, l)
		}
	}
	return nil
}

// streamOf is a write stream that uses a plane.
func (m *Image) streamOf(plane int) int {
	for i := range m.ns {
		if slices.Contains(m.ns[i].poolOf, int32(plane)) {
			return m.ns[i].stream
		}
	}
	return 0
}

// mostLevels is how many numbers of valid pages the steady state is worked out for.
const mostLevels = 4096

// validCounts turns the steady distribution into a number of valid pages for each
// block, ascending, that add up to the data there are.
func validCounts(p waf.Policy, blocks, pages, data int) ([]int, error) {
	// Of large blocks the distribution depends no more on their size.
	levels := min(pages, mostLevels)
	dist, err := waf.SteadyState(p, float64(blocks)*float64(pages)/float64(data), levels)
	if err != nil {
		return nil, err
	}
	counts := make([]int, blocks)
	sum, level, below := 0, 0, 0.0
	for b := range counts {
		at := (float64(b) + 0.5) / float64(blocks)
		for level < levels && below+dist[level] < at {
			below += dist[level]
			level++
		}
		counts[b] = level * pages / levels
		sum += counts[b]
	}
	// Rounding left a few pages over or short: spread them evenly.
	for step := max(1, blocks/max(1, data-sum, sum-data)); sum != data; step = 1 {
		each := max(1, max(data-sum, sum-data)/blocks)
		for b := 0; b < blocks && sum != data; b += step {
			n := min(data-sum, each, pages-counts[b])
			if data < sum {
				n = -min(sum-data, each, counts[b])
			}
			counts[b] += n
			sum += n
		}
	}
	slices.Sort(counts)
	return counts, nil
}

// layOutMapping puts all mapping pages on flash but a last, partial one.
func (m *Image) layOutMapping() error {
	g := &m.pools.flash
	for i := range m.ns {
		n := &m.ns[i]
		for k := range n.stored {
			plane := n.pool(k)
			dst, ok := m.ftl.Allocate(int(plane), n.mapping, 0)
			if !ok {
				return units.Wrong("mapping", "plane %d has no room for mapping pages", plane)
			}
			rest := int(uint32(dst) - uint32(plane)*uint32(g.PagesPerPlane()))
			m.install(int(plane), rest/g.PagesPerBlock, rest%g.PagesPerBlock, n.mapBase+k)
		}
	}
	return nil
}
