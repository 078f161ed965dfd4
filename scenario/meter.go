package scenario

import (
	"farflash/block"
	"farflash/cosim"
	"farflash/nvmf"
	"farflash/sim"
	"farflash/ssd"
	"farflash/stats"
	"farflash/units"
)

// meter follows a run in slices of equal length. When there are more than a bound,
// neighbours are joined and the length doubles, so that it takes bounded space and
// the samplings of a run of any length are few.
type meter struct {
	host   *cosim.Host
	drives []*ssd.Drive

	most    int // slices
	width   units.Duration
	marks   []mark          // the state at the end of each slice
	bins    []*[2]histogram // latencies of each slice, reads and writes; only if a warm-up is to be found
	now     *[2]histogram   // of the present slice
	keep    bool
	flows   []cosim.Flow
	replays []*replay
	notes   []string
	events  uint64
	ways    [2]cosim.Anatomy // of a system's requests, if no warm-up is to be found
	same    *Drive           // that all drives are like; nil if they differ
	inside  func() uint64    // requests of a system that have not ended; nil without one

	latency [2]*stats.LatencySeries
	both    *stats.Series // latencies of reads and writes
	settled bool
	failed  bool // a listener ended the run
}

// histogram is what was measured of one operation in a slice.
type histogram struct {
	h     stats.Histogram
	bytes int64
	way   cosim.Anatomy // of a system's requests
}

// mark is the state of everything that is counted at a time.
type mark struct {
	at     sim.Time
	drive  ssd.Stats
	count  [block.Ops]int64
	bytes  [block.Ops]int64
	issued uint64
	ended  uint64
	each   []driveMark // of a system's drives, up to mostDriveRows
}

// driveMark is the state of one of several drives.
type driveMark struct {
	finished       [2]uint64 // reads, writes
	busy           sim.Time  // mean over its dies
	host, programs uint64    // pages programmed for the host, and in all
}

// Slices: how long they are at first, and how many are kept.
const (
	firstSlice = 100 * units.Microsecond
	maxSlices  = 256
	// A system of many drives has fewer slices, so that asking all drives each time takes little.
	leastSlices = 32
	driveSlices = 4096
)

func newMeter(s *Scenario, y *system) *meter {
	m := &meter{host: y.host, drives: y.drives, same: y.same, most: min(maxSlices, max(leastSlices, driveSlices/len(y.drives))) &^ 1, width: firstSlice, flows: y.flows, replays: y.replays, notes: y.notes, keep: !s.Measure.WarmUp.none()}
	if m.keep {
		m.now = new([2]histogram)
	}
	m.both = stats.NewSeries(stats.DefaultSeriesConfig())
	for i := range m.latency {
		m.latency[i] = stats.NewLatencySeries(stats.DefaultSeriesConfig())
	}
	return m
}

// sample notes a completed request.
func (m *meter) sample(x *cosim.Sample) {
	if x.Op > block.Write {
		return
	}
	from := x.Arrival
	if m.flows[x.Flow].FromSubmission {
		from = x.Submitted
	}
	d := x.Finished - from
	m.latency[x.Op].Add(x.Finished, d)
	m.both.Add(x.Finished, int64(d))
	if m.keep {
		m.now[x.Op].h.Record(d)
		m.now[x.Op].bytes += x.Size
	}
}

// trip notes where the time of a system's request went.
func (m *meter) trip(op block.Op, latency sim.Time, stage *[nvmf.Stages]sim.Time) {
	switch {
	case op > block.Write:
	case m.keep:
		m.now[op].way.Add(latency, stage)
	default:
		m.ways[op].Add(latency, stage)
	}
}

// next is when the present slice ends.
func (m *meter) next() sim.Time {
	n := units.Duration(len(m.marks) + 1)
	if m.width > sim.Forever/n {
		return sim.Forever
	}
	return m.width * n
}

// stats is what all drives did.
func (m *meter) stats() (sum ssd.Stats, each []driveMark) {
	if m.inside != nil {
		each = make([]driveMark, min(len(m.drives), mostDriveRows))
	}
	for i, d := range m.drives {
		x := d.Stats()
		if i < len(each) {
			each[i] = driveMark{finished: [2]uint64{x.Finished[block.Read], x.Finished[block.Write]}, busy: sim.Time(mean(x.LaneBusy)),
				host: x.HostPrograms, programs: x.HostPrograms + x.MovePrograms + x.MappingPrograms}
		}
		if i == 0 {
			sum = x
		} else {
			sum.Add(&x)
		}
	}
	return sum, each
}

// slice ends the present slice at a time.
func (m *meter) slice(at sim.Time) {
	k := mark{at: at, issued: m.host.Issued(), ended: m.host.Ended()}
	k.drive, k.each = m.stats()
	for op := range block.Ops {
		x := m.host.Measured(op)
		k.count[op], k.bytes[op] = x.Latency.Count(), x.Bytes
	}
	m.marks = append(m.marks, k)
	if m.keep {
		m.bins = append(m.bins, m.now)
		m.now = new([2]histogram)
	}
	if len(m.marks) < m.most {
		return
	}
	// Two slices become one: the mark at its end and the sum of both.
	half := len(m.marks) / 2
	for i := range half {
		m.marks[i] = m.marks[2*i+1]
		if m.keep {
			a, b := m.bins[2*i], m.bins[2*i+1]
			for op := range a {
				a[op].h.Merge(&b[op].h)
				a[op].bytes += b[op].bytes
				a[op].way.Merge(&b[op].way)
			}
			m.bins[i] = a
		}
	}
	m.marks = m.marks[:half]
	if m.keep {
		m.bins = m.bins[:half]
	}
	m.width *= 2
}

// end ends the last slice. Slices in which nothing happened any more are not part of
// the run: their ends lie behind it.
func (m *meter) end(at sim.Time) {
	for n := len(m.marks); n > 0 && m.marks[n-1].at >= at; n = len(m.marks) {
		if m.keep {
			for op := range m.now {
				m.now[op].h.Merge(&m.bins[n-1][op].h)
				m.now[op].bytes += m.bins[n-1][op].bytes
				m.now[op].way.Merge(&m.bins[n-1][op].way)
			}
			m.bins = m.bins[:n-1]
		}
		m.marks = m.marks[:n-1]
	}
	m.slice(at)
}

// steady reports whether the mean latency is known well enough to end the run. It
// is worth asking only now and then.
func (m *meter) steady() bool {
	if n := len(m.marks); n < 40 || n%8 != 0 {
		return false
	}
	m.settled = stats.Steady(m.both.Means(), stats.DefaultSteadyConfig()).Reached
	return m.settled
}

// cut is the warm-up that the figures leave out: after how many slices they begin,
// and how that was found.
func (m *meter) cut(w WarmUp) (slices int, explain string, found bool) {
	last := len(m.marks) - 1
	if last < 1 {
		return 0, "the run is too short to tell", w.none()
	}
	var at units.Duration
	switch {
	case w.Auto:
		c := stats.WarmUp(m.both.Means())
		if !c.Found {
			return 0, c.Explain, false
		}
		at, explain = units.Duration(c.Index)*m.both.Width(), c.Explain
	case w.Time > 0:
		at, explain = w.Time, "as the scenario says"
	case w.Share > 0:
		at, explain = units.Duration(float64(m.marks[last].at)*float64(w.Share)), "the share of the run that the scenario says"
	default:
		return 0, "", true
	}
	for i, k := range m.marks[:last] {
		if at <= 0 {
			break
		}
		if k.at >= at {
			return i + 1, explain, true
		}
	}
	return 0, explain, at <= 0
}
