// Package characterise measures a workload in one pass: counts and mix, moments and correlation of sizes and
// inter-arrival times, sequentiality, footprint, and peak and daily rates.
//
// The main types are [Meter], which takes one record at a time, and its [Result]; [Run] does both for a whole
// [workload.Source]. Result marshals to the JSON that `farflash trace info --json` prints.
//
// Estimators: moments are those of the population (divided by n), skewness is m3/m2^1.5, and the lag-1 autocorrelation
// is the sum of (x[i]-mean)(x[i+1]-mean) over that of (x[i]-mean)^2. All are updated per record about the running mean
// (Welford; Pébay, SAND2008-6212), so long traces lose no precision. Inter-arrival times are between requests of the
// same kind.
//
// Memory is proportional to the footprint: about 80 B per MiB of address space touched, plus 256 B for a MiB touched in
// pieces other than whole 4 KiB blocks. Everything else is constant.
//
// The package leaves out stack distances, and burstiness beyond lag 1.
package characterise

import (
	"cmp"
	"io"
	"math"
	"slices"
	"strconv"

	"farflash/block"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/workload"
)

// Figure holds the moments of a sequence. Undefined ones (of a constant, or of too few values) are NaN, and null in
// JSON.
type Figure struct {
	Mean     Number `json:"mean"`
	SCV      Number `json:"scv"`      // variance over squared mean
	Skewness Number `json:"skewness"` // third central moment over the variance to 3/2
	ACF1     Number `json:"acf1"`     // autocorrelation of successive values
}

// Sequential holds the share of bytes in sequential runs, with 1, 8 and 32 streams followed.
type Sequential struct {
	One       Number `json:"1"`
	Eight     Number `json:"8"`
	ThirtyTwo Number `json:"32"`
}

// Side holds the figures of reads or of writes.
type Side struct {
	Count           int64      `json:"count"`
	Bytes           int64      `json:"bytes"`
	Size            Figure     `json:"size"` // bytes
	SizeMin         int64      `json:"size_min"`
	SizeMax         int64      `json:"size_max"`
	SizeGranule     int64      `json:"size_granule"` // largest power of two that divides every size; 0: no requests
	Alignment       int64      `json:"alignment"`    // the same for the offsets; 0 if all are zero
	Interarrival    Figure     `json:"interarrival"` // us
	SequentialRatio Sequential `json:"sequential_ratio"`
}

// Result is the characterisation of a workload.
type Result struct {
	Format     string  `json:"format"`
	Requests   int64   `json:"requests"`
	Span       float64 `json:"span_s"`       // seconds from the first request to the last
	OutOfOrder int64   `json:"out_of_order"` // requests recorded after a later one
	Reads      Side    `json:"reads"`
	Writes     Side    `json:"writes"`
	Trims      int64   `json:"trims"`
	Flushes    int64   `json:"flushes"`
	Volumes    int64   `json:"volumes"`
	PerVolume  []Share `json:"per_volume,omitempty"` // with more than one volume: each, the busiest first
	// Footprint is the number of distinct bytes read, written or trimmed, in whole 512-byte sectors.
	Footprint       int64  `json:"footprint"`
	WriteFootprint  int64  `json:"write_footprint"`    // distinct bytes written
	HighestByte     int64  `json:"highest_byte"`       // end of the highest request on any volume
	WriteRatePerDay Number `json:"write_rate_per_day"` // bytes written over the span, in bytes per day
	// WriteRateWithin is half the width of its 95 % confidence interval, as a fraction of it, from batches of 1 s or
	// longer.
	WriteRateWithin Number `json:"write_rate_within"`
	PeakIOPS        Number `json:"peak_iops_5min"` // in the busiest 5 minutes, counted from the first request
	Skipped         int64  `json:"skipped"`        // bad records left out
}

// Share is one volume's part of a workload.
type Share struct {
	ID          uint32 `json:"-"`    // the record's volume
	Name        string `json:"name"` // the source's name for it, or else the number
	Requests    int64  `json:"requests"`
	ReadBytes   int64  `json:"read_bytes"`
	WriteBytes  int64  `json:"write_bytes"`
	HighestByte int64  `json:"highest_byte"`
}

// Number is a float64 whose JSON is null where there is no finite value.
type Number float64

// PeakWindow is the window of Result.PeakIOPS.
const PeakWindow = 300 * units.Second

// Meter measures a workload incrementally.
type Meter struct {
	sides    [2]side // by block.Read, block.Write
	trims    int64
	flushes  int64
	requests int64
	first    units.Duration
	last     units.Duration
	disorder int64
	batches  batches // bytes written
	touched  footprint
	written  footprint
	highest  int64
	peak     int64
	window   int64 // index of the current window
	inWindow int64
	volumes  map[uint32]int32 // index in shares
	shares   []Share
	of       int32 // index of the share of the last record
}

// side measures the requests of one operation.
type side struct {
	count   int64
	bytes   int64
	size    stats.Moments
	gap     stats.Moments
	last    units.Duration
	least   int64
	most    int64
	sizeOr  int64 // union of the bits of all sizes
	placeOr int64 // union of the bits of all offsets
	streams [3]streams
}

// New returns an empty Meter.
func New() *Meter {
	m := &Meter{volumes: make(map[uint32]int32), window: -1}
	for i := range m.sides {
		m.sides[i].streams = [3]streams{newStreams(1), newStreams(8), newStreams(32)}
	}
	return m
}

// Add measures one record. Times that run backwards are counted; the span extends to the latest time.
func (m *Meter) Add(r *workload.Record) {
	switch {
	case m.requests == 0:
		m.first, m.last = r.Time, r.Time
	case r.Time < m.last:
		m.disorder++
	}
	m.requests++
	m.last = max(m.last, r.Time)
	m.countPeak(r.Time)
	share := m.share(r.Volume)
	share.Requests++
	share.HighestByte = max(share.HighestByte, r.End())
	switch r.Op {
	case block.Flush:
		m.flushes++
		return
	case block.Reset, block.Finish, block.Open, block.Close: // these move no data
		return
	case block.Trim:
		m.trims++
	case block.Read:
		m.sides[0].add(r)
		share.ReadBytes += r.Size
	case block.Write:
		m.sides[1].add(r)
		share.WriteBytes += r.Size
		m.batches.add(r.Time-m.first, r.Size)
		m.written.add(r.Volume, r.Offset, r.Size)
	}
	m.highest = max(m.highest, r.End())
	m.touched.add(r.Volume, r.Offset, r.Size)
}

// share returns the figures of a volume so far.
func (m *Meter) share(volume uint32) *Share {
	if len(m.shares) > 0 && m.shares[m.of].ID == volume {
		return &m.shares[m.of]
	}
	i, known := m.volumes[volume]
	if !known {
		i = int32(len(m.shares))
		m.volumes[volume] = i
		m.shares = append(m.shares, Share{ID: volume, Name: strconv.FormatUint(uint64(volume), 10)})
	}
	m.of = i
	return &m.shares[i]
}

func (m *Meter) countPeak(t units.Duration) {
	if n := int64((t - m.first) / PeakWindow); n != m.window {
		m.window, m.inWindow = n, 0
	}
	m.inWindow++
	m.peak = max(m.peak, m.inWindow)
}

func (s *side) add(r *workload.Record) {
	if s.count > 0 {
		s.gap.Add((r.Time - s.last).Microseconds())
	}
	if s.count == 0 || r.Size < s.least {
		s.least = r.Size
	}
	s.most = max(s.most, r.Size)
	s.sizeOr |= r.Size
	s.placeOr |= r.Offset
	s.last = r.Time
	s.count++
	s.bytes += r.Size
	s.size.Add(float64(r.Size))
	for i := range s.streams {
		s.streams[i].add(r.Offset, r.Size)
	}
}

// Result returns the figures so far.
func (m *Meter) Result() Result {
	span := m.last - m.first
	res := Result{
		Requests:        m.requests,
		Span:            span.Seconds(),
		OutOfOrder:      m.disorder,
		Reads:           m.sides[0].result(),
		Writes:          m.sides[1].result(),
		Trims:           m.trims,
		Flushes:         m.flushes,
		Volumes:         int64(len(m.shares)),
		Footprint:       m.touched.bytes(),
		WriteFootprint:  m.written.bytes(),
		HighestByte:     m.highest,
		WriteRatePerDay: Number(math.NaN()),
		WriteRateWithin: Number(m.batches.within(span)),
		PeakIOPS:        Number(math.NaN()),
	}
	if len(m.shares) > 1 {
		res.PerVolume = slices.Clone(m.shares)
		slices.SortStableFunc(res.PerVolume, func(a, b Share) int { return cmp.Compare(b.Requests, a.Requests) })
	}
	if span > 0 {
		res.WriteRatePerDay = Number(float64(m.sides[1].bytes) / span.Seconds() * units.Day.Seconds())
		// The peak of a workload shorter than the window is its mean rate.
		res.PeakIOPS = Number(float64(m.peak) / min(span, PeakWindow).Seconds())
	}
	return res
}

func (s *side) result() Side {
	return Side{
		Count:        s.count,
		Bytes:        s.bytes,
		Size:         figureOf(&s.size),
		SizeMin:      s.least,
		SizeMax:      s.most,
		SizeGranule:  s.sizeOr & -s.sizeOr,
		Alignment:    s.placeOr & -s.placeOr,
		Interarrival: figureOf(&s.gap),
		SequentialRatio: Sequential{
			One:       s.streams[0].ratio(s.bytes),
			Eight:     s.streams[1].ratio(s.bytes),
			ThirtyTwo: s.streams[2].ratio(s.bytes),
		},
	}
}

// disordered and skipping are implemented by sources that know facts about their file which sorting and skipping hide.
type disordered interface{ OutOfOrder() int64 }
type skipping interface{ Skipped() int64 }

// naming is implemented by sources that have names for their volumes.
type naming interface{ VolumeName(uint32) string }

// Run measures src to its end.
func Run(src workload.Source) (Result, error) {
	m := New()
	var r workload.Record
	for {
		err := src.Next(&r)
		if err == io.EOF {
			break
		}
		if err != nil {
			return m.Result(), err
		}
		m.Add(&r)
	}
	res := m.Result()
	if d, ok := src.(disordered); ok {
		res.OutOfOrder = d.OutOfOrder()
	}
	if s, ok := src.(skipping); ok {
		res.Skipped = s.Skipped()
	}
	if n, ok := src.(naming); ok {
		for i := range res.PerVolume {
			res.PerVolume[i].Name = n.VolumeName(res.PerVolume[i].ID)
		}
	}
	return res, nil
}
