package drivemeter

import (
	"farflash/block"
	"farflash/experiment/accounts"
	"farflash/experiment/requests"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/sim"
)

// Meter observes a run in slices of equal length. When their number reaches a bound, neighbours are merged and the
// length doubles, so that space and the number of samplings are bounded for runs of any length.
type Meter struct {
	host   *cosim.Host
	drives []*ssd.Drive

	most  int // slices
	width units.Duration
	marks []mark                  // the state at the end of each slice
	bins  []*[block.Ops]histogram // latencies of each slice, by operation; only for automatic warm-up
	now   *[block.Ops]histogram   // of the present slice
	spare []*[block.Ops]histogram // empty ones for reuse, from merged slices
	skip  int                     // slices of the warm-up, once Fill has determined it
	keep  bool
	s     *scenario.Scenario
	flows *requests.Flows
	parts [2]cosim.Anatomy // of a system's requests, without automatic warm-up
	same  *scenario.Drive  // that all drives are equal to; nil if they differ
	// Book has the measurements by workload, tenant and so on.
	Book  *accounts.Book
	books []*accounts.Slice // by slice, for automatic warm-up
	// Inside is the number of a system's uncompleted requests; nil without a system.
	Inside func() uint64
	// Outage means that links or hosts failed, so that a backlog at the end need not be an overload.
	Outage bool
	// Others counts further rare events for measure.until: steady; nil: none.
	Others func() []stats.Occurrence

	latency [2]*stats.LatencySeries
	spent   [2]units.Total // sum of latencies so far
	steady  *steady        // nil unless the run ends in a steady state
}

// histogram holds the measurements of one operation in a slice.
type histogram struct {
	h     stats.Histogram
	bytes int64
	parts cosim.Anatomy // of a system's requests
}

// join adds another slice.
func (x *histogram) join(o *histogram) {
	x.h.Merge(&o.h)
	x.bytes += o.bytes
	x.parts.Merge(&o.parts)
}

// reset empties it and keeps its memory.
func (x *histogram) reset() {
	x.h.Reset()
	x.bytes = 0
	x.parts.Reset()
}

// mark is the state of all counters at a time.
type mark struct {
	at     sim.Time
	drive  ssd.Stats
	count  [block.Ops]int64
	bytes  [block.Ops]int64
	spent  [2]units.Total // sum of latencies
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

// The initial length of slices, and the number kept.
const (
	firstSlice = 100 * units.Microsecond
	maxSlices  = 256
	// A system of many drives has fewer slices, to limit the cost of sampling all drives.
	leastSlices = 32
	driveSlices = 4096
)

// NewMeter starts observing a host with its flows, and drives, which are all equal to same unless that is nil.
func NewMeter(s *scenario.Scenario, host *cosim.Host, flows *requests.Flows, drives []*ssd.Drive,
	same *scenario.Drive) *Meter {
	m := &Meter{s: s, host: host, drives: drives, same: same, flows: flows,
		most: min(maxSlices, max(leastSlices, driveSlices/len(drives))) &^ 1, width: firstSlice,
		keep: !s.Measure.WarmUp.None()}
	initiators := 0
	if len(s.Targets) > 0 {
		initiators = s.Initiators
	}
	m.Book = accounts.New(s, flows, initiators)
	if m.keep {
		m.now = new([block.Ops]histogram)
	}
	if s.Measure.Until.Steady {
		m.steady = newSteady(s.Measure.WarmUp.Time, s.DriveOf(0).Preconditioning.Fill == ssd.FillNone, len(flows.List))
	}
	for i := range m.latency {
		m.latency[i] = stats.NewLatencySeries(stats.DefaultSeriesConfig())
	}
	return m
}

// Sample records a completed request, and its initiator in a system.
func (m *Meter) Sample(x *cosim.Sample, initiator int32) {
	if x.Failed {
		return // drives count it
	}
	d := x.Latency
	m.Book.Add(x, d, initiator)
	if m.keep {
		m.keepIn(x.Op, d, x.Size)
	}
	if x.Op > block.Write {
		return
	}
	m.latency[x.Op].Add(x.Finished, d)
	m.spent[x.Op].Add(d)
	if m.steady != nil {
		m.steady.observe(x)
	}
}

// keepIn records a request in the histograms of the present slice.
//
//go:noinline
func (m *Meter) keepIn(op block.Op, d sim.Time, size int64) {
	k := &m.now[op]
	k.h.Record(d)
	k.bytes += size
}

// both returns the latencies of reads and writes over time.
func (m *Meter) both() *stats.Series { return m.latency[block.Read].Durations(m.latency[block.Write]) }

// Trip records the latency breakdown of a request.
func (m *Meter) Trip(op block.Op, latency sim.Time, stage []sim.Time) {
	switch {
	case op > block.Write:
	case m.keep:
		m.now[op].parts.Add(latency, stage)
	default:
		m.parts[op].Add(latency, stage)
	}
}

// Next implements experiment.Meter.
func (m *Meter) Next() sim.Time {
	n := units.Duration(len(m.marks) + 1)
	if m.width > sim.Forever/n {
		return sim.Forever
	}
	return m.width * n
}

// stats returns the statistics of all drives up to a time.
func (m *Meter) stats(at sim.Time) (sum ssd.Stats, each []driveMark) {
	if m.Inside != nil {
		each = make([]driveMark, min(len(m.drives), mostDriveRows))
	}
	for i, d := range m.drives {
		x := d.StatsAt(at)
		if i < len(each) {
			each[i] = driveMark{finished: [2]uint64{x.Finished[block.Read], x.Finished[block.Write]},
				busy: sim.Time(mean(x.LaneBusy)),
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

// Slice implements experiment.Meter. The measurement has settled if the scenario has a steady-state criterion and the
// mean latency is precise enough.
func (m *Meter) Slice(at sim.Time) (settled bool) {
	m.slice(at)
	return m.steady != nil && m.steady.look(m, &m.marks[len(m.marks)-1].drive)
}

// slice ends the present slice at a time.
func (m *Meter) slice(at sim.Time) {
	k := mark{at: at, spent: m.spent, issued: m.host.Issued(), ended: m.host.Ended()}
	k.drive, k.each = m.stats(at)
	for op := range block.Ops {
		x := m.host.Measured(op)
		k.count[op], k.bytes[op] = x.Latency.Count(), x.Bytes
	}
	m.marks = append(m.marks, k)
	if m.keep {
		m.bins = append(m.bins, m.now)
		if n := len(m.spare); n > 0 {
			m.now, m.spare = m.spare[n-1], m.spare[:n-1]
		} else {
			m.now = new([block.Ops]histogram)
		}
		m.books = append(m.books, m.Book.Cut())
	}
	if len(m.marks) < m.most {
		return
	}
	// Merge pairs of slices: the mark at the end and the sum of both.
	half := len(m.marks) / 2
	for i := range half {
		m.marks[i] = m.marks[2*i+1]
		if m.keep {
			a, b := m.bins[2*i], m.bins[2*i+1]
			for op := range a {
				a[op].join(&b[op])
				b[op].reset()
			}
			m.bins[i] = a
			m.spare = append(m.spare, b)
			m.books[2*i].Join(m.books[2*i+1])
			m.books[i] = m.books[2*i]
		}
	}
	m.marks = m.marks[:half]
	if m.keep {
		m.bins = m.bins[:half]
		clear(m.books[half:])
		m.books = m.books[:half]
	}
	m.width *= 2
}

// End implements experiment.Meter. Slices after the end of the run are not part of it.
func (m *Meter) End(at sim.Time) {
	for n := len(m.marks); n > 0 && m.marks[n-1].at >= at; n = len(m.marks) {
		if m.keep {
			for op := range m.now {
				m.now[op].join(&m.bins[n-1][op])
			}
			m.bins = m.bins[:n-1]
			m.Book.Back(m.books[n-1])
			m.books = m.books[:n-1]
		}
		m.marks = m.marks[:n-1]
	}
	m.slice(at)
}

// cut returns the warm-up to exclude from the figures, as a number of slices, and how it was determined. A warm-up that
// ends within a slice is extended to its end, or cut to the start of the last slice, so that a measurement remains.
func (m *Meter) cut(w scenario.WarmUp) (slices int, explain string, found bool) {
	last := len(m.marks) - 1
	end := m.marks[last].at
	var at units.Duration
	switch {
	case w.None():
		return 0, "", true
	case last < 1:
		return 0, "the run is too short to tell", false
	case w.Auto:
		both := m.both()
		c := stats.WarmUp(both.Means())
		if !c.Found {
			return 0, c.Explain, false
		}
		at, explain = units.Duration(c.Index)*both.Width(), c.Explain
	case w.Time > 0:
		at, explain = w.Time, "as the scenario says"
	default:
		at, explain = units.Duration(float64(end)*float64(w.Share)), "the share of the run that the scenario says"
	}
	for slices < last && (slices == 0 || m.marks[slices-1].at < at) && at > 0 {
		slices++
	}
	return slices, explain, true
}
