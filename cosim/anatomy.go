package cosim

import (
	"farflash/nvmf"
	"farflash/sim"
	"farflash/stats"
)

// Anatomy is where the time of requests went, kept for each latency apart so that it can be told of a
// tail as well as of the mean. Its memory is bounded by the number of a histogram's buckets.
type Anatomy struct {
	index map[int32]int32 // of rows, by bucket
	rows  []row
	total row
}

// row is what is known of the requests of a bucket.
type row struct {
	n     int64
	stage [nvmf.Stages]sim.Time
}

func (r *row) add(o *row) {
	r.n += o.n
	for k, t := range o.stage {
		r.stage[k] += t
	}
}

// Add notes a request.
func (a *Anatomy) Add(latency sim.Time, stage *[nvmf.Stages]sim.Time) {
	x := row{n: 1, stage: *stage}
	a.row(int32(stats.Bucket(latency))).add(&x)
	a.total.add(&x)
}

func (a *Anatomy) row(bucket int32) *row {
	i, ok := a.index[bucket]
	if !ok {
		if a.index == nil {
			a.index = map[int32]int32{}
		}
		i = int32(len(a.rows))
		a.index[bucket] = i
		a.rows = append(a.rows, row{})
	}
	return &a.rows[i]
}

// Merge adds what another has noted.
func (a *Anatomy) Merge(o *Anatomy) {
	for b := range int32(stats.Buckets) {
		if i, ok := o.index[b]; ok {
			a.row(b).add(&o.rows[i])
		}
	}
	a.total.add(&o.total)
}

// Count is how many requests were noted.
func (a *Anatomy) Count() int64 { return a.total.n }

// Mean is the mean time of each stage, in picoseconds.
func (a *Anatomy) Mean() [nvmf.Stages]float64 { return a.total.mean() }

func (r *row) mean() (out [nvmf.Stages]float64) {
	for k, t := range r.stage {
		out[k] = float64(t) / float64(r.n)
	}
	return out
}

// Around is the mean time of each stage, in picoseconds, over the requests whose latencies have ranks from a share
// of all requests to another: those of the buckets that hold such ranks. It reports false if there are
// none.
func (a *Anatomy) Around(from, to float64) ([nvmf.Stages]float64, bool) {
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
			sum.add(x)
		}
		before += x.n
	}
	if sum.n == 0 {
		return [nvmf.Stages]float64{}, false
	}
	return sum.mean(), true
}
