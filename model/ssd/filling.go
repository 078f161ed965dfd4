package ssd

import (
	"cmp"
	"slices"

	"farflash/model/ssd/fill"
)

// filling is the placement and ownership of the data of a drive that was filled before time 0. It is computed, never
// changes, and is shared by all drives of an image. Each drive's table and owners hold what has changed since, and look
// here for the rest.
type filling struct {
	layout   *fill.Layout
	ns       []namespace
	filled   []uint32   // by namespace: number of logical pages that hold data, from its first on
	first    [][]uint32 // by namespace, by its pools in turn: index of its first datum in the pool
	users    [][]user   // by pool: the namespaces with data in it, by their data's indices
	perPlane uint32     // physical pages
	unit     uint32     // grains written at once: the layout places units of these
	mapped   int64      // pages that hold data
}

// user is a namespace's share of a pool.
type user struct {
	first uint32 // index of its first datum
	ns    int32
	turn  int32 // position of the pool in the namespace's turn
}

// newFilling divides the data among the planes. The layout is still empty.
func newFilling(m *Image, seed uint64, unit int) *filling {
	g := &m.pools.flash
	f := &filling{
		layout: fill.New(g.Planes(), g.PagesPerBlock/unit, seed), ns: m.ns, perPlane: uint32(g.PagesPerPlane()),
		unit:   uint32(unit),
		filled: make([]uint32, len(m.ns)), first: make([][]uint32, len(m.ns)), users: make([][]user, g.Planes()),
	}
	sum := make([]uint32, g.Planes())
	for _, i := range fillOrder(m.ns) {
		n := &m.ns[i]
		f.filled[i] = uint32(float64(n.pages) * float64(m.cfg.Preconditioning.Occupancy))
		if z := n.zones; z != nil {
			f.filled[i] = uint32(float64(z.count)*float64(m.cfg.Preconditioning.Occupancy)) * z.size // whole zones
		}
		if m.cfg.Preconditioning.Fill != FillSequential {
			f.filled[i] -= f.filled[i] % uint32(m.unit()) // random writes cover whole units
		}
		if n.zones != nil {
			f.mapped += n.zones.pages(f.filled[i])
		} else {
			f.mapped += int64(f.filled[i])
		}
		f.first[i] = make([]uint32, len(n.poolOf))
		for k, p := range n.poolOf {
			f.first[i][k] = sum[p]
			if c := f.data(i, k); c > 0 {
				f.users[p] = append(f.users[p], user{sum[p], int32(i), int32(k)})
				sum[p] += c
			}
		}
	}
	return f
}

// fillOrder lists the namespaces in the order in which they are filled: each in its turn, except that those which write
// the same stream follow the first of them, because their data share its blocks.
func fillOrder(ns []namespace) []int {
	first := map[int]int{} // by stream
	order := make([]int, len(ns))
	for i := range ns {
		order[i] = i
		if _, ok := first[ns[i].stream]; !ok {
			first[ns[i].stream] = i
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(first[ns[a].stream], first[ns[b].stream]) })
	return order
}

// data returns the number of pages of a namespace in the k-th of its pools in turn.
func (f *filling) data(ns, k int) uint32 { return f.ns[ns].shareOf(f.filled[ns], k) }

// held returns the number of a user's pages in its pool.
func (f *filling) held(u user) uint32 { return f.data(int(u.ns), int(u.turn)) }

// pages returns the number of pages in a pool.
func (f *filling) pages(pool int) (sum int64) {
	for _, u := range f.users[pool] {
		sum += int64(f.held(u))
	}
	return sum
}

// at returns the page, within its pool, that stores a datum.
func (f *filling) at(pool int, datum uint32) uint32 {
	if f.unit == 1 {
		return f.layout.Place(pool, datum)
	}
	return f.layout.Place(pool, datum/f.unit)*f.unit + datum%f.unit
}

// place returns the physical page of a logical page, or noPage.
func (f *filling) place(l uint32) uint32 {
	i := len(f.ns) - 1
	for i > 0 && l < f.ns[i].base {
		i--
	}
	n := &f.ns[i]
	if l -= n.base; l >= f.filled[i] || n.zones != nil && n.zones.isHole(l) {
		return noPage
	}
	j, k := n.inTurn(l)
	p := n.poolOf[k]
	return uint32(p)*f.perPlane + f.at(int(p), f.first[i][k]+j)
}

// each visits the logical pages that hold data, in order, with their places.
func (f *filling) each(visit func(l, page uint32)) {
	for i := range f.ns {
		n := &f.ns[i]
		for l := range f.filled[i] {
			if n.zones != nil && n.zones.isHole(l) {
				continue
			}
			j, k := n.inTurn(l)
			p := n.poolOf[k]
			visit(n.base+l, uint32(p)*f.perPlane+f.at(int(p), f.first[i][k]+j))
		}
	}
}

// holding returns the number of pages of a block that were written, and the number that hold data.
func (f *filling) holding(plane, block int) (written, holding int) {
	written, holding = f.layout.Holding(plane, block)
	return written * int(f.unit), holding * int(f.unit)
}

// block is holding, and sets a bit in valid, which must be zero, for each page that holds data.
func (f *filling) block(plane, block int, valid []uint64) (written, holding int) {
	if f.unit == 1 {
		return f.layout.Block(plane, block, valid)
	}
	units := make([]uint64, (len(valid)+int(f.unit)-1)/int(f.unit)+1)
	f.layout.Block(plane, block, units)
	spread(valid, units, f.unit)
	return f.holding(plane, block)
}

// spread sets each consecutive bits of to for each bit of units.
func spread(to, units []uint64, each uint32) {
	if each&(each-1) != 0 || each > 8 {
		for i := range uint32(len(to)) * 64 {
			k := i / each
			to[i>>6] |= units[k>>6] >> (k & 63) & 1 << (i & 63)
		}
		return
	}
	var bytes [256]uint64 // expansion of eight bits of units
	for b := range bytes {
		for i := range 8 * each {
			bytes[b] |= uint64(b) >> (i / each) & 1 << i
		}
	}
	per := 8 / each // bytes of units in a word of to
	for w := range to {
		for k := range per {
			at := uint32(w)*per + k
			to[w] |= bytes[units[at>>3]>>(at&7*8)&255] << (k * 8 * each)
		}
	}
}

// owner returns the logical page stored on a page of a plane. It is meaningful only if the page holds data.
func (f *filling) owner(plane int, page uint32) uint32 {
	d, ok := f.layout.Datum(plane, page/f.unit)
	if !ok {
		return 0
	}
	d = d*f.unit + page%f.unit
	users := f.users[plane]
	k := len(users) - 1
	for d < users[k].first {
		k--
	}
	n := &f.ns[users[k].ns]
	return n.base + n.outOfTurn(d-users[k].first, int(users[k].turn))
}
