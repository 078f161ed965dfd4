package cosim

import (
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/sim"
)

// Anatomy accounts for the time of requests by stage and latency, in bounded memory.
type Anatomy struct {
	index map[int32]int32 // of rows, by bucket
	rows  []row
	total row
}

// row sums the requests of a latency bucket.
type row struct {
	n      int64
	stage  [mostStages]units.Total
	bucket int32
}

// mostStages is the largest number of stages of a request.
const mostStages = 17

// add records one request in the row.
func (r *row) add(stage []sim.Time) {
	r.n++
	for k, t := range stage {
		r.stage[k].Add(t)
	}
}

func (r *row) merge(o *row) {
	r.n += o.n
	for k, t := range o.stage {
		r.stage[k] = r.stage[k].Plus(t)
	}
}

// Add records a request's latency, not negative, and its time in each of at most 17 stages, as many for all.
func (a *Anatomy) Add(latency sim.Time, stage []sim.Time) {
	if latency < 0 || len(stage) > mostStages {
		panic("cosim: Anatomy.Add of a negative latency, or of more than 17 stages")
	}
	a.row(int32(stats.Bucket(latency))).add(stage)
	a.total.add(stage)
}

func (a *Anatomy) row(bucket int32) *row {
	i, ok := a.index[bucket]
	if !ok {
		if a.index == nil {
			a.index = map[int32]int32{}
		}
		i = int32(len(a.rows))
		a.index[bucket] = i
		a.rows = append(a.rows, row{bucket: bucket})
	}
	return &a.rows[i]
}

// Merge adds the requests recorded by another Anatomy.
func (a *Anatomy) Merge(o *Anatomy) {
	for i := range o.rows {
		x := &o.rows[i]
		a.row(x.bucket).merge(x)
	}
	a.total.merge(&o.total)
}

// Reset empties it and keeps its memory.
func (a *Anatomy) Reset() {
	clear(a.index)
	a.rows = a.rows[:0]
	a.total = row{}
}

// Count returns the number of requests recorded.
func (a *Anatomy) Count() int64 { return a.total.n }

// Mean returns the mean time of each stage, in picoseconds.
func (a *Anatomy) Mean() [mostStages]float64 { return a.total.mean() }

func (r *row) mean() (out [mostStages]float64) {
	for k, t := range r.stage {
		out[k] = t.Picoseconds() / float64(r.n)
	}
	return out
}

// Around returns each stage's mean time, in picoseconds, over the requests whose latencies rank between two shares, as
// exactly as buckets are narrow; false if there are none.
func (a *Anatomy) Around(from, to float64) ([mostStages]float64, bool) {
	// If no rank lies between the shares, the first bucket above from is used.
	var sum row
	first, last := from*float64(a.total.n), to*float64(a.total.n)
	before := int64(0)
	for b := range int32(stats.Buckets) {
		i, ok := a.index[b]
		if !ok {
			continue
		}
		x := &a.rows[i]
		if float64(before+x.n) > first && (float64(before) < last || sum.n == 0) {
			sum.merge(x)
		}
		before += x.n
	}
	if sum.n == 0 {
		return [mostStages]float64{}, false
	}
	return sum.mean(), true
}
