package ssd

import (
	"slices"

	"farflash/model/ssd/fill"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
	"farflash/policy/ftl/waf"
)

// Preconditioning writes a drive's flash before time 0, without simulating its timing.

func (m *Image) precondition(random *rng.Stream, watch Watch) error {
	switch p := &m.cfg.Preconditioning; p.Fill {
	case FillNone:
	case FillSequential, FillReplay:
		if err := m.fillInOrder(random, watch); err != nil {
			return err
		}
		if p.Fill == FillReplay {
			if err := m.overwrite(random, watch); err != nil {
				return err
			}
		}
	case FillSteady:
		if err := m.fillSteady(random, watch); err != nil {
			return err
		}
	}
	if m.cfg.Quirks.MappingPagesLaidOut && !m.cfg.Mapping.Ideal {
		return m.layOutMapping()
	}
	return nil
}

// has makes f the filling of the drive.
func (m *Image) has(f *filling) {
	m.l2p.filled, m.owners.filled, m.mapped = f, f, f.mapped
}

// install places logical page l on a page of a block.
func (m *Image) install(plane, blk, page int, l uint32) {
	g := &m.pools.flash
	m.owners.set(plane, blk, page, l)
	m.l2p.set(l, uint32((plane*g.BlocksPerPlane+blk)*g.PagesPerBlock+page))
	m.mapped++
}

// fillInOrder writes every namespace once in address order. Namespaces that share a handle fill its reclaim units one
// after the other, without a gap: a unit given up for each namespace would take the blocks that collection needs.
func (m *Image) fillInOrder(random *rng.Stream, watch Watch) error {
	f := newFilling(m, random.Uint64(), 1)
	for plane, users := range f.users {
		if err := m.room(plane, f.pages(plane)); err != nil {
			return err
		}
		for len(users) > 0 {
			n, from, pages := &m.ns[users[0].ns], f.layout.Blocks(plane), 0
			for len(users) > 0 && m.ns[users[0].ns].stream == n.stream {
				pages += int(f.held(users[0]))
				users = users[1:]
			}
			f.layout.Append(plane, pages)
			if err := m.restore(f, plane, from, n, watch); err != nil {
				return err
			}
		}
	}
	m.has(f)
	return nil
}

// restore restores a pool's blocks, from the given one on, in the translation layer. A namespace, or several that write
// the same stream, filled them.
func (m *Image) restore(f *filling, plane, from int, n *namespace, watch Watch) error {
	pages := m.pools.flash.PagesPerBlock
	valid := make([]uint64, (pages+63)/64)
	m.ftl.Expect(plane, f.layout.Blocks(plane))
	for blk := from; blk < f.layout.Blocks(plane); blk++ {
		if blk%restoreEvery == 0 {
			if err := watch((float64(plane) + float64(blk)/float64(m.pools.flash.BlocksPerPlane)) /
				float64(m.pools.count())); err != nil {
				return err
			}
		}
		clear(valid)
		written, _ := f.block(plane, blk, valid)
		r := ftl.Restored{Use: ftl.Full, Stream: n.stream, Valid: valid}
		if n.zones != nil { // a zoned namespace's blocks hold full zones
			if err := m.ftl.RestoreBlock(m.blockOf(plane, blk),
				ftl.Restored{Use: ftl.Given, Written: pages, Valid: valid}); err != nil {
				return err
			}
			continue
		}
		// A partly filled page of flash cannot be programmed further.
		if written = (written + m.pools.grains - 1) / m.pools.grains * m.pools.grains; written < pages {
			r.Use, r.Written = ftl.Open, written
		}
		if err := m.ftl.RestoreBlock(m.blockOf(plane, blk), r); err != nil {
			return err
		}
	}
	return nil
}

func (m *Image) blockOf(plane, blk int) ftl.Block {
	return ftl.Block(plane*m.pools.flash.BlocksPerPlane + blk)
}

// room checks that a pool has blocks left to work with in addition to its data. For a native drive validateSpace
// guarantees that. MQSim, which can promise more than the drive holds, opens all streams' blocks at once, and its host
// may write only while a number of other blocks are free, which collection can gain only from invalid pages.
func (m *Image) room(pool int, data int64) error {
	if !m.cfg.Quirks.FrontiersAtOnce {
		return nil
	}
	t := m.ftl.Config()
	if !m.cfg.Mapping.Ideal && m.cfg.Quirks.MappingPagesLaidOut {
		_, mapped := pagesIn(m.ns, int32(pool), true)
		data += mapped
	}
	fills := int(data / int64(t.PagesPerBlock))
	open, free := len(t.Survivors), max(t.Quirks.HostStop, t.HostReserve+1)
	if fills <= t.BlocksPerPool-open-free {
		return nil
	}
	return units.Wrong("preconditioning.occupancy",
		"%v fills %d of a plane's %d blocks; with %d open blocks and %d that must be free for the host to write "+
			"at most %d may hold data; lower it or raise blocks_per_plane",
		m.cfg.Preconditioning.Occupancy, fills, t.BlocksPerPool, open, free, max(0, t.BlocksPerPool-open-free))
}

// unit returns the size in grains of the random writes of preconditioning.
func (m *Image) unit() int {
	if m.cfg.Preconditioning.SmallWrites {
		return 1
	}
	return m.pools.grains
}

// restoreEvery is the interval in blocks between calls of the watch during a fill.
const restoreEvery = 64

// watchEvery is the interval in writes between calls of the watch during a replay.
const watchEvery = 1 << 14

// overwrite writes random pages and lets the translation layer collect as needed.
func (m *Image) overwrite(random *rng.Stream, watch Watch) error {
	n := &m.ns[0]
	unit := uint32(m.unit())
	in := make([]int64, len(m.ns)) // pages that hold data, in whole units
	total := int64(0)
	for i := range m.ns {
		in[i] = int64(float64(m.ns[i].pages) * float64(m.cfg.Preconditioning.Occupancy))
		in[i] -= in[i] % int64(unit)
		total += in[i]
	}
	if total == 0 {
		return nil
	}
	writes := int64(float64(total)*m.cfg.Preconditioning.Passes) / int64(unit)
	for i := range writes {
		if i%watchEvery == 0 {
			if err := watch(float64(i) / float64(writes)); err != nil {
				return err
			}
		}
		k := random.IntN(total)
		for i := range m.ns {
			if n = &m.ns[i]; k < in[i] {
				break
			}
			k -= in[i]
		}
		// Writes cover whole, aligned units.
		first := uint32(k) - uint32(k)%unit
		for i := range unit {
			if err := m.put(n, first+i); err != nil {
				return err
			}
		}
		m.collectNow(int(n.pool(first)))
	}
	for pool := range m.pools.count() {
		m.ftl.Align(pool, m.pools.grains, 0)
	}
	return nil
}

// put rewrites a namespace's page i.
func (m *Image) put(n *namespace, i uint32) error {
	g := &m.pools.flash
	plane := n.pool(i)
	l := n.base + i
	dst, ok := m.ftl.Allocate(int(plane), n.stream, 0)
	// Collect until the host gets a page. A round without work means that there is none to gain.
	for !ok {
		if !m.collectNow(int(plane)) {
			return units.Wrong("preconditioning",
				"plane %d has no free pages left; lower preconditioning.occupancy or raise over_provisioning",
				plane)
		}
		dst, ok = m.ftl.Allocate(int(plane), n.stream, 0)
	}
	old := m.l2p.get(l)
	rest := int(uint32(dst) - uint32(plane)*uint32(g.PagesPerPlane()))
	m.owners.set(int(plane), rest/g.PagesPerBlock, rest%g.PagesPerBlock, l)
	m.l2p.set(l, uint32(dst))
	m.ftl.Programmed(dst)
	m.ftl.Invalidate(ftl.PPA(old), 0)
	return nil
}

// collectNow executes all actions of collection in a plane and reports whether there were any.
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

// fillSteady creates the state that uniform random overwriting reaches in the long run. The valid pages of closed
// blocks follow the mean-field steady state of the victim policy (Van Houdt, SIGMETRICS 2013), fewer the older a block;
// which pages are valid, and their owners, are random.
func (m *Image) fillSteady(random *rng.Stream, watch Watch) error {
	g := &m.pools.flash
	t := m.ftl.Config()
	policy := waf.Policy{Victim: t.Victim, Choices: t.Choices, Window: float64(t.Window)}
	unit := m.unit()
	f := newFilling(m, random.Uint64(), unit)
	seed := random.Uint64()
	last := 0
	var spread *fill.Spread
	for plane, users := range f.users {
		if len(users) == 0 {
			continue
		}
		data := int(f.pages(plane))
		closed := g.BlocksPerPlane - m.free(&t, len(users)) // blocks with data at time 0
		if err := m.room(plane, int64(data)); err != nil {
			return err
		}
		// Without spare pages there is no steady state.
		if closed*g.PagesPerBlock <= data {
			return units.Wrong("preconditioning.occupancy",
				"%v leaves plane %d no spare pages in addition to open blocks and the reserve; lower it or raise "+
					"over_provisioning",
				m.cfg.Preconditioning.Occupancy, plane)
		}
		// Planes with equally many data share one spread.
		if data != last {
			last = data
			counts, err := validCounts(policy, closed, g.PagesPerBlock/unit, data/unit)
			if err != nil {
				return units.Wrong("preconditioning", "%v", err)
			}
			spread = fill.NewSpread(counts, seed)
		}
		f.layout.AppendSpread(plane, spread)
		if err := m.restore(f, plane, 0, m.userOf(plane), watch); err != nil {
			return err
		}
	}
	m.has(f)
	return nil
}

// free returns the number of free blocks per plane left by steady writes of the given number of namespaces, plus those
// that will be opened: at the threshold of collection, or at the urgent one. Filling the host's first block costs no
// collection, and the first block of survivors costs one in return, so starting with one block less than will be opened
// gives neither a head start. If the host is throttled while collection is urgent there is no head start to offset,
// because its first block makes collection urgent.
func (m *Image) free(t *ftl.Config, namespaces int) int {
	least, open := t.GCStart, 2*namespaces-1
	if m.cfg.Preconditioning.Free == FreeHard && m.cfg.Collection.Preemptible {
		// The host stops at the reserve, regardless of urgency.
		least = min(least, max(t.GCHard, t.HostReserve+1))
		if m.pools.size > 1 {
			open--
		}
	}
	return least + t.Fast.Least + open
}

// userOf returns a namespace that uses a plane.
func (m *Image) userOf(plane int) *namespace {
	for i := range m.ns {
		if slices.Contains(m.ns[i].poolOf, int32(plane)) {
			return &m.ns[i]
		}
	}
	return &m.ns[0]
}

// mostLevels is the largest number of valid-page levels for which the steady state is computed.
const mostLevels = 4096

// validCounts turns the steady-state distribution into a number of valid pages for each block, ascending, whose sum is
// the given amount of data.
func validCounts(p waf.Policy, blocks, pages, data int) ([]int, error) {
	// For large blocks the distribution no longer depends on their size.
	levels := min(pages, mostLevels)
	dist, err := waf.SteadyState(p, float64(blocks)*float64(pages)/float64(data), levels)
	if err != nil {
		return nil, err
	}
	counts := make([]int, blocks)
	sum, level, below := 0, 0, 0.0
	for b := range counts {
		// Each block takes the quantile at the middle of its share.
		at := (float64(b) + 0.5) / float64(blocks)
		for level < levels && below+dist[level] < at {
			below += dist[level]
			level++
		}
		counts[b] = level * pages / levels
		sum += counts[b]
	}
	// Rounding left the sum a few pages off: spread the difference evenly.
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

// layOutMapping puts all mapping pages on flash, except a last, partial one.
func (m *Image) layOutMapping() error {
	g := &m.pools.flash
	for i := range m.ns {
		n := &m.ns[i]
		for k := range n.stored {
			plane := n.pool(k)
			dst, ok := m.ftl.Allocate(int(plane), n.mapping, 0)
			if !ok {
				return units.Wrong("mapping", "plane %d has no space for mapping pages", plane)
			}
			rest := int(uint32(dst) - uint32(plane)*uint32(g.PagesPerPlane()))
			m.install(int(plane), rest/g.PagesPerBlock, rest%g.PagesPerBlock, n.mapBase+k)
		}
	}
	return nil
}
