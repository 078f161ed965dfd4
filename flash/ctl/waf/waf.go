// Package waf measures the write amplification of the controller as shipped, on an in-memory device with writes for a
// clock. It compares it with windowed greedy collection, a frozen baseline, and with streams that know the future.
//
// Its main types are Load (how often each page is written), Baseline (package ftl's windowed greedy with one frontier),
// Controller and Oracle. All share the load, the geometry and the over-provisioning. A test runs Controller on a device
// with many concurrent operations that take virtual time and complete in the order of that time: the same code under
// the clock of a simulator.
//
// It leaves out reads, trims, hints and write absorption in memory: each write is put and written individually.
package waf

import (
	"fmt"
	"sort"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
)

// Load is a sequence of page writes, drawn by Zipf's law over a random permutation of the pages. The permutation is
// redrawn halfway through the measurement.
type Load struct {
	Segments, Pages int
	OP              float64 // all segments' pages over the pages written, minus 1
	Share           float64 // of the writes that go to the hottest fifth of the pages; 0.2 is uniform
	WarmUp, Measure float64 // writes, in multiples of the pages
	Seed            uint64
}

// Default returns 1024 segments of 256 pages at 7 % over-provisioning.
func Default() Load {
	return Load{Segments: 1024, Pages: 256, OP: 0.07, Share: 0.8, WarmUp: 6, Measure: 12, Seed: 1}
}

// logical returns the number of distinct pages written.
func (l Load) logical() int64 { return int64(float64(l.Segments*l.Pages) / (1 + l.OP)) }

// drawn generates a Load's writes.
type drawn struct {
	sums  []float64 // cumulative weight up to each rank
	order []int32   // page by rank
	rank  []int32
	draw  rng.Stream
}

func (l Load) begin() *drawn {
	n := int(l.logical())
	d := &drawn{order: make([]int32, n), rank: make([]int32, n), draw: rng.NewStream(l.Seed, "waf")}
	for i := range d.order {
		d.order[i] = int32(i)
	}
	d.shift()
	if l.Share > 0.2 {
		d.sums = zipf(n, l.Share)
	}
	return d
}

// zipf returns the cumulative Zipf weights, with the exponent for which the first fifth gets the given share.
func zipf(n int, share float64) []float64 {
	sums := make([]float64, n)
	fill := func(s float64) float64 {
		all := 0.0
		for i := range sums {
			all += rng.Pow(float64(i+1), -s)
			sums[i] = all
		}
		return sums[n/5-1] / all
	}
	low, high := 0.0, 4.0
	for range 40 {
		if mid := (low + high) / 2; fill(mid) < share {
			low = mid
		} else {
			high = mid
		}
	}
	return sums
}

// shift redraws the permutation, so that other pages become hot.
func (d *drawn) shift() {
	for i := len(d.order) - 1; i > 0; i-- {
		j := d.draw.IntN(int64(i + 1))
		d.order[i], d.order[j] = d.order[j], d.order[i]
	}
	for r, p := range d.order {
		d.rank[p] = int32(r)
	}
}

func (d *drawn) next() int32 {
	if d.sums == nil {
		return int32(d.draw.IntN(int64(len(d.order))))
	}
	x := d.draw.Float64() * d.sums[len(d.sums)-1]
	return d.order[min(sort.SearchFloat64s(d.sums, x), len(d.order)-1)]
}

// run fills the pages, warms up, calls measure and then runs the measured writes.
func (l Load) run(write func(page int32) error, measure func()) error {
	d := l.begin()
	n := float64(len(d.order))
	for _, page := range d.order {
		if err := write(page); err != nil {
			return err
		}
	}
	d.shift()
	for range int64(l.WarmUp * n) {
		if err := write(d.next()); err != nil {
			return err
		}
	}
	measure()
	all := int64(l.Measure * n)
	for i := range all {
		if i == all/2 {
			d.shift()
		}
		if err := write(d.next()); err != nil {
			return err
		}
	}
	return nil
}

// flat is an array mapping and a synchronous driver of package ftl.
type flat struct {
	ftl *ftl.FTL
	to  []ftl.PPA
	of  []ftl.LPA
	now ftl.Tick
	// stream returns the stream of a page; nil means stream 0.
	stream func(page int32) int
}

func (f *flat) Lookup(l ftl.LPA) ftl.PPA { return f.to[l] }
func (f *flat) Owner(p ftl.PPA) ftl.LPA  { return f.of[p] }
func (f *flat) CompareAndSwap(l ftl.LPA, from, to ftl.PPA) bool {
	if f.to[l] != from {
		return false
	}
	f.to[l] = to
	return true
}

func (l Load) flat(cfg ftl.Config) (*flat, error) {
	cfg.BlocksPerPool, cfg.PagesPerBlock, cfg.DynamicWear = l.Segments, l.Pages, false
	f := &flat{to: make([]ftl.PPA, l.logical()), of: make([]ftl.LPA, l.Segments*l.Pages)}
	for i := range f.to {
		f.to[i] = ftl.NoPPA
	}
	var err error
	f.ftl, err = ftl.New(cfg, f, nil)
	return f, err
}

func (f *flat) write(page int32) error {
	f.now++
	stream := 0
	if f.stream != nil {
		stream = f.stream(page)
	}
	to, ok := f.ftl.Allocate(0, stream, f.now)
	if !ok {
		return fmt.Errorf("waf: no free page")
	}
	was := f.to[page]
	f.to[page], f.of[to] = to, ftl.LPA(page)
	f.ftl.Programmed(to)
	if was != ftl.NoPPA {
		f.ftl.Invalidate(was, f.now)
	}
	for {
		a, ok := f.ftl.Next(0)
		switch {
		case !ok:
			return nil
		case a.Kind == ftl.Erase:
			f.ftl.Erased(a.Block)
			continue
		}
		dst, ok := f.relocate(a)
		if ok {
			f.of[dst] = a.LPA
			f.ftl.Moved(a.Source, dst, f.now)
		}
	}
}

func (f *flat) relocate(a ftl.Action) (ftl.PPA, bool) {
	if f.stream == nil {
		return f.ftl.Relocate(a.Source, f.now)
	}
	return f.ftl.RelocateTo(a.Source, f.stream(int32(a.LPA)), f.now)
}

// Baseline returns the WAF of greedy collection among the oldest tenth of the segments, with a single frontier. It has
// no log or checkpoints to count.
func Baseline(l Load) (float64, error) {
	cfg := ftl.DefaultConfig()
	cfg.Survivors, cfg.Victim, cfg.Window = ftl.Mixed(1), ftl.WindowedGreedy, units.Fraction(0.1)
	f, err := l.flat(cfg)
	if err != nil {
		return 0, err
	}
	var before ftl.Stats
	err = l.run(f.write, func() { before = f.ftl.Stats() })
	return f.ftl.Stats().Sub(before).WAF(), err
}

// Oracle returns the WAF of three streams by a page's true rank, divided at the bounds that the controller applies to
// its estimates. It is the result of perfect knowledge of the load with the same segments and victim policy.
func Oracle(l Load, hot, warm float64) (float64, error) {
	cfg := ftl.DefaultConfig()
	cfg.Streams, cfg.Survivors, cfg.Victim = 3, []int{0, 1, 2}, ftl.CostAge
	f, err := l.flat(cfg)
	if err != nil {
		return 0, err
	}
	d := l.begin()
	n := float64(len(d.order))
	write := func(page int32) error { return f.write(page) }
	bound := func(share float64) int32 { // the first rank whose interval is at least share times the pages
		if d.sums == nil {
			return 0
		}
		all := d.sums[len(d.sums)-1]
		return int32(sort.Search(len(d.sums), func(i int) bool {
			weight := d.sums[i]
			if i > 0 {
				weight -= d.sums[i-1]
			}
			return all/weight >= share*n
		}))
	}
	hotEnd, warmEnd := bound(hot), bound(warm)
	f.stream = func(page int32) int {
		switch r := d.rank[page]; {
		case r < hotEnd:
			return 0
		case r < warmEnd:
			return 1
		}
		return 2
	}
	for _, page := range d.order {
		if err := write(page); err != nil {
			return 0, err
		}
	}
	d.shift()
	for range int64(l.WarmUp * n) {
		if err := write(d.next()); err != nil {
			return 0, err
		}
	}
	before := f.ftl.Stats()
	all := int64(l.Measure * n)
	for i := range all {
		if i == all/2 {
			d.shift()
		}
		if err := write(d.next()); err != nil {
			return 0, err
		}
	}
	return f.ftl.Stats().Sub(before).WAF(), nil
}

// Controller runs the controller itself on an in-memory device whose operations complete immediately, and returns its
// counters over the measured writes.
func Controller(l Load, policy heat.Policy) (ctl.Stats, error) {
	return controller(l, policy, func(m *device.Mem) (device.Device, func(bool) bool) { return m, nil })
}

// controller runs the controller on the device that on returns for an in-memory device. If on also returns a function,
// it is called before each write until it returns false; its argument is true while an earlier page is still
// outstanding.
func controller(l Load, policy heat.Policy, on func(*device.Mem) (device.Device, func(asked bool) bool)) (ctl.Stats,
	error) {
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Heat = 256, policy
	layout := ctl.Layout{UUID: media.UUID{0: 7}, Segment: l.Pages, OverProvision: l.OP}
	mem, shape, err := sized(l, layout)
	if err != nil {
		return ctl.Stats{}, err
	}
	if err := ctl.Format(shape, mem); err != nil {
		return ctl.Stats{}, err
	}
	dev, more := on(mem)
	pool, err := ctl.Open(cfg, dev)
	if err != nil {
		return ctl.Stats{}, err
	}
	var failed error
	var version uint64
	waiting := false
	done := func(err error) {
		if err != nil {
			failed = err
		}
	}
	given := func(r ctl.Ref, err error) {
		waiting = false
		if err != nil {
			failed = err
			return
		}
		clear(r.Data[:16])
		version++
		r.Data[0], r.Data[1], r.Data[2], r.Data[3] = byte(version), byte(version>>8), byte(version>>16),
			byte(version>>24)
		if r.Fill {
			clear(r.Data[16:])
		}
		pool.Put(r, ctl.Changed, heat.Auto, done)
	}
	var before ctl.Stats
	err = l.run(func(page int32) error {
		// A dirty page still in memory would absorb its next write, so the next write waits until there is none.
		// version counts the puts.
		for more != nil && more(pool.Stats().Puts < int64(version)) {
		}
		waiting = true
		pool.Get(uint64(page), ctl.Whole, given)
		for waiting {
			if more == nil || !more(true) {
				return fmt.Errorf("waf: Get of page %d never completes", page)
			}
		}
		return failed
	}, func() { before = pool.Stats() })
	if err != nil {
		return ctl.Stats{}, err
	}
	s := pool.Stats().Sub(before)
	if more != nil {
		for more(true) { // drain the operations in flight
		}
	}
	if v := pool.Check(false).Violations; len(v) > 0 {
		return s, fmt.Errorf("waf: %v and %d more", v[0], len(v)-1)
	}
	if d, ok := dev.(*timed); ok {
		d.over = true
	}
	return s, pool.Close()
}

// sized returns a device with exactly the number of segments of the load.
func sized(l Load, layout ctl.Layout) (*device.Mem, media.Shape, error) {
	layout.LogPages = int64(l.Segments*l.Pages) / 64
	grains := int64(l.Segments*(l.Pages+1)) + layout.LogPages
	for ; ; grains++ {
		shape, err := layout.Shape(grains * ctl.Page)
		if err == nil && shape.AllSegments() == int64(l.Segments) {
			return device.NewMem(grains * ctl.Page), shape, nil
		}
		if err == nil && shape.AllSegments() > int64(l.Segments) {
			return nil, shape, fmt.Errorf("waf: %d segments, want %d", shape.AllSegments(), l.Segments)
		}
	}
}
