package ftl_test

import (
	"fmt"
	"slices"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// flash is a driver for tests: an array of pages with their last programmed content, a map, and operations that
// complete on request, in any order.
type flash struct {
	*ftl.FTL
	to    []ftl.PPA // by logical page
	pages []content // by physical page
	now   ftl.Tick

	writes []write   // programs of the host in flight
	moves  []move    // actions in progress
	held   []ftl.PPA // moved to pages that are not programmed yet
	reads  []ftl.PPA // pinned
	latest []uint64  // what a read of each logical page must return; 0: no data
	serial uint64
	trace  []string // log of operations, when tracing
	tracer bool

	stray *rng.Stream // moved pages go to any stream

	bad map[ftl.Block]bool // blocks that must not be written again
}

type content struct {
	lpa     ftl.LPA
	version uint64 // 0: erased or being programmed
}

type write struct {
	lpa ftl.LPA
	ppa ftl.PPA
}

type move struct {
	ftl.Action
	read content
	dst  ftl.PPA // NoPPA until relocated
}

func newFlash(cfg ftl.Config, logical int, random *rng.Stream) (*flash, error) {
	d := &flash{
		to: make([]ftl.PPA, logical), latest: make([]uint64, logical),
		pages: make([]content, cfg.Pools*cfg.BlocksPerPool*cfg.PagesPerBlock),
	}
	for i := range d.to {
		d.to[i] = ftl.NoPPA
	}
	var err error
	d.FTL, err = ftl.New(cfg, d, random)
	return d, err
}

func (d *flash) Lookup(lpa ftl.LPA) ftl.PPA { return d.to[lpa] }
func (d *flash) Owner(ppa ftl.PPA) ftl.LPA  { return d.pages[ppa].lpa }

func (d *flash) CompareAndSwap(lpa ftl.LPA, old, new ftl.PPA) bool {
	if d.to[lpa] != old {
		return false
	}
	d.to[lpa] = new
	return true
}

// NextValid implements ftl.Validity.
func (d *flash) NextValid(b ftl.Block, page int) int {
	n := d.Config().PagesPerBlock
	for ; page < n; page++ {
		at := d.PPA(b, page)
		if c := d.pages[at]; c.version != 0 && d.to[c.lpa] == at {
			break
		}
	}
	return page
}

func (d *flash) note(format string, args ...any) {
	if d.tracer {
		d.trace = append(d.trace, fmt.Sprintf(format, args...))
	}
}

// begin allocates a page for a write and reports whether it got one.
func (d *flash) begin(pool, stream int, lpa ftl.LPA) bool {
	d.now++
	ppa, ok := d.Allocate(pool, stream, d.now)
	d.note("allocate %d %v", ppa, ok)
	if !ok {
		return false
	}
	if d.PoolOf(ppa) != pool || d.pages[ppa].version != 0 || d.bad[d.BlockOf(ppa)] {
		panic(fmt.Sprintf("page %d was handed out for pool %d, it holds %v", ppa, pool, d.pages[ppa]))
	}
	d.writes = append(d.writes, write{lpa, ppa})
	return true
}

// finish completes the i-th program in flight.
func (d *flash) finish(i int) {
	d.now++
	w := d.writes[i]
	d.writes = slices.Delete(d.writes, i, i+1)
	d.serial++ // of two writes in flight, the last to complete wins
	d.pages[w.ppa] = content{w.lpa, d.serial}
	old := d.to[w.lpa]
	d.to[w.lpa], d.latest[w.lpa] = w.ppa, d.serial
	d.Programmed(w.ppa)
	if old != ftl.NoPPA {
		d.Invalidate(old, d.now)
	}
}

// abandon gives up the i-th program in flight.
func (d *flash) abandon(i int) {
	d.now++
	w := d.writes[i]
	d.writes = slices.Delete(d.writes, i, i+1)
	d.pages[w.ppa].lpa = w.lpa
	d.Invalidate(w.ppa, d.now)
	d.Programmed(w.ppa)
}

// failBlock records that a block fails.
func (d *flash) failBlock(b ftl.Block) {
	if d.bad == nil {
		d.bad = map[ftl.Block]bool{}
	}
	d.bad[b] = true
}

// failProgram fails the i-th program in flight: the page keeps its previous data. If the driver sets the map early, the
// map already points to the new page.
func (d *flash) failProgram(i int) {
	d.now++
	w := d.writes[i]
	d.writes = slices.Delete(d.writes, i, i+1)
	d.pages[w.ppa].lpa = w.lpa
	d.failBlock(d.BlockOf(w.ppa))
	d.ProgramFailed(w.ppa, d.now)
	d.note("program of %d failed", w.ppa)
}

// failStep advances the i-th action one step, and fails the step if it is a program or an erase.
func (d *flash) failStep(i int) {
	d.now++
	m := &d.moves[i]
	switch {
	case m.Kind == ftl.Erase:
		d.failBlock(m.Block)
		d.wipe(m.Block)
		d.Retire(m.Block)
		d.moves = slices.Delete(d.moves, i, i+1)
	case m.dst == ftl.NoPPA:
		d.step(i)
	default:
		d.failBlock(d.BlockOf(m.dst))
		d.pages[m.dst].lpa = m.LPA
		dst := m.dst
		m.dst = ftl.NoPPA
		d.MoveFailed(m.Source, dst, d.now)
		d.note("move of %d to %d failed", m.Source, dst)
	}
}

func (d *flash) trim(lpa ftl.LPA) {
	d.now++
	if old := d.to[lpa]; old != ftl.NoPPA {
		d.to[lpa], d.latest[lpa] = ftl.NoPPA, 0
		d.Invalidate(old, d.now)
	}
}

// pull pulls one action.
func (d *flash) pull(pool int) bool {
	a, ok := d.Next(pool)
	if ok {
		d.note("%+v", a)
		d.moves = append(d.moves, move{Action: a, dst: ftl.NoPPA})
	}
	return ok
}

// step advances the i-th action one step.
func (d *flash) step(i int) {
	d.now++
	m := &d.moves[i]
	done := true
	switch {
	case m.Kind == ftl.Erase:
		d.erase(m.Block)
	case m.dst == ftl.NoPPA:
		// The block cannot have been erased, so the page still holds the data written to it.
		m.read = d.pages[m.Source]
		if m.read.version == 0 || m.read.lpa != m.LPA {
			panic(fmt.Sprintf("moving page %d of %d, which holds %v", m.Source, m.LPA, m.read))
		}
		if m.dst, done = d.relocate(m.Source); done {
			done = false
			if d.pages[m.dst].version != 0 || d.bad[d.BlockOf(m.dst)] {
				panic(fmt.Sprintf("page %d is programmed twice, or fails (%v)", m.dst, d.bad[d.BlockOf(m.dst)]))
			}
		} else {
			done = true
		}
		d.note("relocate %d to %d", m.Source, m.dst)
	default:
		d.pages[m.dst] = m.read
		ok := d.Moved(m.Source, m.dst, d.now)
		d.note("moved %d to %d %v", m.Source, m.dst, ok)
	}
	if done {
		d.moves = slices.Delete(d.moves, i, i+1)
	}
}

// hold has the i-th action's source released while its destination is still to be programmed.
func (d *flash) hold(i int) {
	d.now++
	m := d.moves[i]
	if m.Kind == ftl.Erase || m.dst == ftl.NoPPA {
		return
	}
	d.moves = slices.Delete(d.moves, i, i+1)
	d.pages[m.dst] = m.read
	d.Held(m.Source, m.dst, d.now)
	d.held = append(d.held, m.dst)
}

// programHeld completes the programs of held pages.
func (d *flash) programHeld() {
	for _, ppa := range d.held {
		d.Programmed(ppa)
	}
	d.held = d.held[:0]
}

// skip gives up at most the given number of pages behind the i-th program in flight in its block.
func (d *flash) skip(i, pages int) {
	d.now++
	ppa := d.writes[i].ppa
	d.Skip(min(ppa+1+ftl.PPA(pages), d.PPA(d.BlockOf(ppa)+1, 0)), d.now)
}

func (d *flash) erase(b ftl.Block) {
	if d.bad[b] && d.Failing(int(b)/d.Config().BlocksPerPool) == 0 {
		panic(fmt.Sprintf("block %d is erased, but it is retired", b))
	}
	d.wipe(b)
	d.Erased(b)
}

func (d *flash) wipe(b ftl.Block) {
	first := d.PPA(b, 0)
	for i := range ftl.PPA(d.Config().PagesPerBlock) {
		d.pages[first+i] = content{}
		if slices.Contains(d.reads, first+i) {
			panic(fmt.Sprintf("block %d is erased under a read of page %d", b, first+i))
		}
	}
}

// settle pulls and completes all outstanding work.
func (d *flash) settle() {
	for len(d.reads) > 0 {
		d.ReadDone(d.reads[0])
		d.reads = d.reads[1:]
	}
	for len(d.writes) > 0 {
		d.finish(0)
	}
	d.programHeld()
	for again := true; again; {
		again = len(d.moves) > 0
		for pool := range d.Config().Pools {
			for d.pull(pool) {
				again = true
			}
		}
		for len(d.moves) > 0 {
			d.step(0)
		}
	}
}

// put writes a page and completes all the work that this causes.
func (d *flash) put(pool, stream int, lpa ftl.LPA) bool {
	for tries := 0; !d.begin(pool, stream, lpa); tries++ {
		// OnFill starts one victim per failure, which may have gained no space.
		d.settle()
		if d.Exhausted(pool) || tries == 100_000 {
			return false
		}
	}
	d.finish(len(d.writes) - 1)
	d.settle()
	return true
}

// verify compares the result of reads with the latest writes.
func (d *flash) verify() error {
	for lpa, want := range d.latest {
		got := uint64(0)
		if at := d.to[lpa]; at != ftl.NoPPA {
			if got = d.pages[at].version; d.pages[at].lpa != ftl.LPA(lpa) {
				return fmt.Errorf("logical page %d is mapped to page %d, which holds %v", lpa, at, d.pages[at])
			}
		}
		if got != want {
			return fmt.Errorf("logical page %d reads as version %d, not %d", lpa, got, want)
		}
	}
	return d.Check()
}

func (d *flash) mapped() int64 {
	n := int64(0)
	for _, at := range d.to {
		if at != ftl.NoPPA {
			n++
		}
	}
	return n
}

func (d *flash) relocate(src ftl.PPA) (ftl.PPA, bool) {
	if d.stray == nil || d.stray.IntN(3) == 0 {
		return d.Relocate(src, d.now)
	}
	streams := max(len(d.Config().Survivors), d.Config().Streams)
	return d.RelocateTo(src, int(d.stray.IntN(int64(streams))), d.now)
}
