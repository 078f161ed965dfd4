package waf

import (
	"fmt"
	"math"
	"slices"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
)

// Layout is how classes of data share blocks.
type Layout uint8

// The layouts.
const (
	// OneFrontier writes all classes and all survivors through one frontier, as the closed forms assume.
	OneFrontier Layout = iota
	// SurvivorsApart writes all classes through one frontier and survivors through others, one for each of
	// Experiment.Generations.
	SurvivorsApart
	// StreamsApart gives each class a frontier and its survivors another. Free blocks and victims are shared.
	StreamsApart
	// Partitions gives each class blocks of its own, in the proportions of SeparatedFIFO: every class is a separate
	// drive.
	Partitions
)

// Experiment is a write load on a drive of one pool.
type Experiment struct {
	Policy Policy
	Alpha  float64 // closed physical blocks over logical space
	Blocks int     // logical space in blocks
	Pages  int     // of a block

	Classes []Class // who is written how often; nil is uniform
	Layout  Layout
	// Generations is the number of frontiers that survivors pass through with SurvivorsApart; a page moves to the next
	// one each time it survives. 0 is 1.
	Generations int

	// Sequential is the share of page writes that overwrite the logical space in order, again and again, among the
	// random ones of Classes. With Run above 0 they arrive in runs of Run pages, each starting at a random multiple of
	// it.
	Sequential float64
	Run        int

	// Runs, if not empty, replaces Classes and Sequential: one run is drawn, its pages are written in order, then the
	// next is drawn. Each run is its first page and its number of pages.
	Runs [][2]int32

	// Writers, if not empty, replaces Classes, Sequential and Runs.
	Writers []Writer

	// Precondition is the number of uniform random writes after the fill and before the load, in multiples of the
	// logical space.
	Precondition float64

	WarmUp  float64 // writes before measuring, in multiples of the logical space
	Measure float64 // writes while measuring, likewise
	Seed    uint64
}

// DefaultExperiment is greedy collection at 7 % over-provisioning under uniform writes, on 2000 blocks of 64 pages.
func DefaultExperiment() Experiment {
	return Experiment{
		Policy: Policy{Victim: ftl.Greedy}, Alpha: 1.07, Blocks: 2000, Pages: 64,
		WarmUp: 5, Measure: 5, Seed: 1,
	}
}

// Result is the measurement of an experiment.
type Result struct {
	WAF      float64   // pages programmed over pages written by the host
	Host     int64     // pages written by the host while measuring
	Programs int64     // pages programmed while measuring
	Total    int64     // pages programmed in all, filling and warm-up included
	Erases   int64     // while measuring
	Alphas   []float64 // Partitions: each class's alpha
	// Closed is the share of closed blocks that hold i valid pages, at the end. With Partitions, it covers all
	// partitions together.
	Closed []float64
}

// Simulate fills a drive in order, writes to it at random until it is warm, and then measures. It drives ftl.FTL page
// by page, with an array as the map. The number of blocks is chosen so that Alpha times Blocks are closed whenever a
// victim is chosen; frontiers and the reserve come on top.
func Simulate(e Experiment) (Result, error) {
	if e.Classes == nil {
		e.Classes = uniform()
	}
	if err := e.check(); err != nil {
		return Result{}, err
	}
	if e.Layout == Partitions {
		return e.partitions()
	}
	return e.drive()
}

func (e Experiment) check() error {
	if err := checkAlpha(e.Alpha, e.Pages); err != nil {
		return err
	}
	if err := checkClasses(e.Classes); err != nil {
		return err
	}
	if e.Writers != nil {
		if err := checkWriters(e.Writers); err != nil {
			return err
		}
	}
	switch {
	case e.Blocks < 8:
		return fmt.Errorf("waf: %d logical blocks; a simulation needs at least 8", e.Blocks)
	case float64(e.Blocks)*float64(e.Pages)*e.Alpha > 1<<30:
		return fmt.Errorf("waf: %d blocks of %d pages; the maximum is 2^30 pages", e.Blocks, e.Pages)
	case math.Round(float64(e.Blocks)*e.Alpha) < float64(e.Blocks)+1:
		return fmt.Errorf("waf: alpha %v leaves no spare block for %d logical blocks", e.Alpha, e.Blocks)
	case !(e.Precondition >= 0 && e.Precondition <= 1e6):
		return fmt.Errorf("waf: preconditioning with %v drive writes; use 0 or more", e.Precondition)
	case !(e.WarmUp >= 0) || !(e.Measure > 0) || e.WarmUp+e.Measure > 1e6:
		return fmt.Errorf("waf: %v warm-up and %v measured drive writes; use 0 or more, and more than 0", e.WarmUp,
			e.Measure)
	case !(e.Sequential >= 0 && e.Sequential <= 1):
		return fmt.Errorf("waf: sequential share %v; use 0 to 1", e.Sequential)
	case e.Run < 0 || e.Run > e.Blocks*e.Pages:
		return fmt.Errorf("waf: sequential runs of %d pages on a drive of %d", e.Run, e.Blocks*e.Pages)
	case e.Runs != nil && (len(e.Classes) > 1 || e.Sequential > 0 || e.Layout > SurvivorsApart):
		return fmt.Errorf("waf: runs replace classes and the sequential share; omit these")
	case e.Writers != nil && (e.Runs != nil || len(e.Classes) > 1 || e.Sequential > 0 || e.Layout > SurvivorsApart):
		return fmt.Errorf("waf: writers replace classes, runs and the sequential share; omit these")
	case e.Generations < 0 || e.Generations > 100 || e.Generations > 0 && e.Layout != SurvivorsApart:
		return fmt.Errorf("waf: %d generations; use 0 to 100, and 0 unless survivors have separate frontiers",
			e.Generations)
	case e.Layout > Partitions:
		return fmt.Errorf("waf: unknown layout %d", e.Layout)
	case e.Layout == Partitions && e.Sequential > 0:
		return fmt.Errorf("waf: sequential writes cross partitions; use another layout")
	case slices.ContainsFunc(e.Runs, func(r [2]int32) bool {
		return r[0] < 0 || r[1] < 1 || int64(r[0])+int64(r[1]) > int64(e.Blocks)*int64(e.Pages)
	}):
		return fmt.Errorf("waf: a run lies outside the %d pages of the drive", e.Blocks*e.Pages)
	case e.Layout == StreamsApart && len(e.Classes) > 100:
		return fmt.Errorf("waf: %d classes cannot have separate streams; the maximum is 100", len(e.Classes))
	}
	return nil
}

// partitions simulates each class on blocks of its own.
func (e Experiment) partitions() (Result, error) {
	_, alphas, err := SeparatedFIFO(e.Alpha, e.Classes)
	if err != nil {
		return Result{}, err
	}
	sum := Result{Alphas: alphas}
	closed := 0.0
	for i, c := range e.Classes {
		part := e
		part.Classes, part.Layout, part.Alpha = uniform(), OneFrontier, alphas[i]
		part.Blocks = int(math.Round(float64(e.Blocks) * c.Space))
		part.Seed += uint64(i) << 32
		if err := part.check(); err != nil {
			return Result{}, fmt.Errorf("class %d: %w", i, err)
		}
		r, err := part.drive()
		if err != nil {
			return Result{}, fmt.Errorf("class %d: %w", i, err)
		}
		sum.WAF += float64(c.Writes * r.WAF)
		sum.Host += r.Host
		sum.Programs += r.Programs
		sum.Total += r.Total
		sum.Erases += r.Erases
		weight := float64(float64(part.Blocks) * alphas[i])
		closed += weight
		if sum.Closed == nil {
			sum.Closed = make([]float64, e.Pages+1)
		}
		for v, x := range r.Closed {
			sum.Closed[v] += float64(weight * x)
		}
	}
	for v := range sum.Closed {
		sum.Closed[v] /= closed
	}
	return sum, nil
}

// config returns the pool for the experiment. A victim is chosen when a frontier has just opened the second-last free
// block, so one is free at that point and each stream has one open.
func (e Experiment) config() ftl.Config {
	c := ftl.DefaultConfig()
	c.PagesPerBlock = e.Pages
	c.Victim, c.Choices, c.Window = e.Policy.Victim, e.Policy.Choices, units.Fraction(e.Policy.Window)
	c.DynamicWear = false
	switch e.Layout {
	case OneFrontier:
		c.Survivors = ftl.Mixed(1)
	case SurvivorsApart:
		c.Survivors = ftl.Generations(1, max(1, e.Generations))
	case StreamsApart:
		c.Streams = len(e.Classes)
		c.Survivors = ftl.Separate(len(e.Classes))
	}
	c.BlocksPerPool = int(math.Round(float64(e.Blocks)*e.Alpha)) + len(c.Survivors) + 1
	return c
}

func (e Experiment) drive() (Result, error) {
	cfg := e.config()
	d := &drive{
		to: make([]int32, e.Blocks*e.Pages),
		of: make([]int32, cfg.BlocksPerPool*cfg.PagesPerBlock),
	}
	for i := range d.to {
		d.to[i] = -1
	}
	victims := rng.NewStream(e.Seed, "victims")
	var err error
	if d.ftl, err = ftl.New(cfg, d, &victims); err != nil {
		return Result{}, err
	}
	load := e.load()
	for i := range d.to {
		if err := d.write(int32(i), load.streamOf(int32(i))); err != nil {
			return Result{}, err
		}
	}
	if e.Precondition > 0 {
		before := e
		before.Classes, before.Sequential, before.Runs, before.Writers = uniform(), 0, nil, nil
		if err := d.run(before.load(), int64(e.Precondition*float64(len(d.to)))); err != nil {
			return Result{}, err
		}
	}
	if err := d.run(load, int64(e.WarmUp*float64(len(d.to)))); err != nil {
		return Result{}, err
	}
	before := d.ftl.Stats()
	if err := d.run(load, max(1, int64(e.Measure*float64(len(d.to))))); err != nil {
		return Result{}, err
	}
	if err := d.ftl.Check(); err != nil {
		return Result{}, err
	}
	after := d.ftl.Stats()
	s := after.Sub(before)
	return Result{
		WAF: s.WAF(), Host: s.HostPrograms, Programs: s.HostPrograms + s.GCPrograms,
		Total: after.HostPrograms + after.GCPrograms, Erases: s.Erases, Closed: d.closed(e.Pages),
	}, nil
}

// drive is the array map and a synchronous driver.
type drive struct {
	ftl *ftl.FTL
	to  []int32 // physical page by logical, -1: none
	of  []int32 // logical page by physical
	now ftl.Tick
}

// Lookup implements ftl.Map.
func (d *drive) Lookup(lpa ftl.LPA) ftl.PPA { return ftl.PPA(d.to[lpa]) }

// Owner implements ftl.Map.
func (d *drive) Owner(ppa ftl.PPA) ftl.LPA { return ftl.LPA(d.of[ppa]) }

// CompareAndSwap implements ftl.Map.
func (d *drive) CompareAndSwap(lpa ftl.LPA, old, new ftl.PPA) bool {
	if d.to[lpa] != int32(old) {
		return false
	}
	d.to[lpa] = int32(new)
	return true
}

func (d *drive) run(l *load, writes int64) error {
	for range writes {
		lpa := l.next()
		if err := d.write(lpa, l.streamOf(lpa)); err != nil {
			return err
		}
	}
	return nil
}

// write writes one page and does all the collection that this triggers.
func (d *drive) write(lpa int32, stream int) error {
	d.now++
	ppa, ok := d.ftl.Allocate(0, stream, d.now)
	if !ok {
		d.collect()
		if ppa, ok = d.ftl.Allocate(0, stream, d.now); !ok {
			return fmt.Errorf("waf: the pool has no free page; its frontiers need more spare space")
		}
	}
	old := d.to[lpa]
	d.to[lpa], d.of[ppa] = int32(ppa), lpa
	d.ftl.Programmed(ppa)
	if old >= 0 {
		d.ftl.Invalidate(ftl.PPA(old), d.now)
	}
	d.collect()
	return nil
}

func (d *drive) collect() {
	for {
		a, ok := d.ftl.Next(0)
		if !ok {
			return
		}
		if a.Kind == ftl.Erase {
			d.ftl.Erased(a.Block)
			continue
		}
		if dst, ok := d.ftl.Relocate(a.Source, d.now); ok {
			d.of[dst] = int32(a.LPA)
			d.ftl.Moved(a.Source, dst, d.now)
		}
	}
}

// closed returns the distribution of valid pages over full blocks.
func (d *drive) closed(pages int) []float64 {
	x := make([]float64, pages+1)
	n := 0
	d.ftl.Blocks(0, func(_ ftl.Block, r ftl.Restored) bool {
		if r.Use == ftl.Full {
			x[count(r.Valid)]++
			n++
		}
		return true
	})
	for i := range x {
		x[i] /= float64(n)
	}
	return x
}
