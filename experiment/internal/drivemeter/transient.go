package drivemeter

import (
	"fmt"
	"math"

	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/workload/synth"
)

// Detection of transients: a write amplification that is still moving towards its long-run value, and with it every
// figure that depends on it.

// turnover counts pages over a span: written, and found by collection.
type turnover struct {
	written float64 // for the host and the map
	moved   float64
	victims float64 // all pages of the victims whose collection started
	found   float64 // those with valid data at that time
	none    bool    // no block was erased
}

// amplified returns the write amplification over the span, and the one at which collection gains as many pages as are
// written, from victims equally full.
func (x turnover) amplified() (was, balanced float64) {
	return (x.written + x.moved) / x.written, x.victims / (x.victims - x.found)
}

// gained is the number of free pages that collection gained, with victims in progress in proportion.
func (x turnover) gained() float64 { return x.moved * (x.victims - x.found) / x.found }

// conclusive reports whether there were victims, neither all empty nor all full.
func (x turnover) conclusive() bool { return x.found > 0 && x.found < x.victims }

const (
	// mostOff limits the deviation of a write amplification from the balanced one, and between the halves of a run.
	mostOff = 0.1
	// leastHalf is the least number of blocks collected per plane in each half for a comparison.
	leastHalf = 8
)

// within counts the turnover of equal drives between two marks.
func within(from, to *ssd.Stats, c *ssd.Config) turnover {
	x := to.Since(from)
	block := float64(int64(c.Geometry.PagesPerBlock))
	grains := float64(c.Geometry.PageSize / max(1, min(c.Geometry.PageSize, units.Bytes(c.Mapping.Grain))))
	if c.Mapping.Grain == 0 {
		grains = 1
	}
	return turnover{
		written: float64(x.HostPrograms + x.MappingPrograms),
		moved:   float64(x.MovePrograms),
		victims: float64(x.FTL.Collections+x.FTL.Relocations+x.FTL.Renewals) * block,
		found:   float64(x.FTL.Found) / grains,
		none:    x.Erases == 0,
	}
}

// transient describes the transient in the measured span; "" if there is none or the counters are inconclusive. Drives
// with zones, which the host erases, or an SLC cache, whose blocks differ in size, are not judged.
func (m *Meter) transient() string {
	if m.same == nil || m.same.Zones != nil || m.same.SLCCache != nil {
		return ""
	}
	c := &m.same.Config
	from, last, _ := m.measured()
	x := within(&from.drive, &last.drive, c)
	planes := float64(c.Geometry.Planes() * len(m.drives))
	block := float64(c.Geometry.PagesPerBlock) * planes // of each plane
	const longer = "run for longer, or use a longer warm-up"
	switch {
	case x.written == 0, x.none && c.Preconditioning.Fill == ssd.FillNone: // a fresh drive is reported as such
		return ""
	case x.none:
		return fmt.Sprintf("%.0f pages were written and no block was erased, so write amplification holds only "+
			"while there are free blocks; %s", x.written, longer)
	case !x.conclusive():
		return ""
	}
	if was, balanced := x.amplified(); math.Abs(balanced/was-1) > mostOff {
		gained, way, will, advice := x.gained(), "fell", "rise", longer
		if gained > x.written {
			way, will = "rose", "fall"
		}
		if c.Preconditioning.Fill == ssd.FillSteady {
			switch free := Preconditioned(m.s, 0).Preconditioning.Free; {
			case free == ssd.FreeStart && gained < x.written:
				advice += ", or start with ssd.preconditioning.free: hard"
			case free == ssd.FreeHard && gained > x.written:
				advice += ", or start with ssd.preconditioning.free: start"
			}
		}
		return fmt.Sprintf("%.0f pages were written and collection freed %.0f, so free space %s by %.1f "+
			"blocks per plane; write amplification was %.2f and will %s until both are equal; %s",
			x.written, gained, way, math.Abs(x.written-gained)/block, was, will, advice)
	}
	if text := m.changes(from, last, c, block); text != "" {
		return text + "; " + longer
	}
	if turned := float64(last.drive.Erases) / (float64(c.Geometry.BlocksPerPlane) * planes); turned < 1 &&
		!m.settles(c) {
		return fmt.Sprintf("collection has turned over %.2g %% of the flash, and still finds blocks from before "+
			"this workload, which affect its write amplification; %s", 100*turned, longer)
	}
	return ""
}

// changes compares the two halves of the measured span; "" if they agree or are too short.
func (m *Meter) changes(from, last *mark, c *ssd.Config, block float64) string {
	mid := m.middle(from, last)
	if mid == nil {
		return ""
	}
	a, b := within(&from.drive, &mid.drive, c), within(&mid.drive, &last.drive, c)
	if min(a.victims, b.victims) < leastHalf*block || !a.conclusive() || !b.conclusive() {
		return ""
	}
	_, first := a.amplified()
	_, second := b.amplified()
	if math.Abs(second/first-1) <= mostOff {
		return ""
	}
	return fmt.Sprintf("write amplification is still changing: it was %.2f in the first half of the measured time "+
		"and %.2f in the second", first, second)
}

// middle is the mark at which half of the pages were written; nil if there is none.
func (m *Meter) middle(from, last *mark) *mark {
	half := from.drive.HostPrograms + (last.drive.HostPrograms-from.drive.HostPrograms)/2
	for i := m.skip; i < len(m.marks)-1; i++ {
		if m.marks[i].drive.HostPrograms >= half {
			return &m.marks[i]
		}
	}
	return nil
}

// settles reports whether preconditioning wrote like the workload, so that collection is in steady state from the
// start: uniform random writes over the whole drive, and enough of them.
func (m *Meter) settles(c *ssd.Config) bool {
	const passes = 2 // of random writes: within a few per cent of steady state
	switch p := &c.Preconditioning; {
	case p.Fill == ssd.FillReplay && p.Passes < passes, p.Fill == ssd.FillNone, p.Fill == ssd.FillSequential:
		return false
	}
	return evenly(m.s)
}

// evenly reports whether all writes are uniform over the whole of one namespace.
func evenly(s *scenario.Scenario) bool {
	written := -1
	for i := range s.Workload {
		l := &s.Workload[i]
		if l.Synthetic == nil {
			return false
		}
		f := l.Synthetic.Writes
		if f == nil {
			continue
		}
		a := &f.Addresses
		if a.Pattern != synth.Uniform || a.Start > 0 || a.Space > 0 || a.RunLength > 1 || l.Zones != nil {
			return false
		}
		if written >= 0 && written != l.Namespace {
			return false
		}
		written = l.Namespace
	}
	return true
}
