package tco

import (
	"fmt"
	"math"
	"slices"
)

// Traffic is the load that determines a drive's latency: its intensity and the kind of I/Os.
type Traffic struct {
	Load       float64 // share of the drive's IOPS
	Writes     float64 // write share of its I/Os
	Size       float64 // mean I/O size in KiB
	Sequential float64 // sequential share of the written bytes
}

// Tail models a drive's 99th percentile of read and write latency, in us, under a given traffic. It must not decrease
// with the load. It is called for every candidate of every step of a search.
type Tail interface {
	P99(t Traffic) (read, write float64)
	// Measures identify a tail: two tails with the same measures are equal.
	Measures() []float64
}

// TailPoint is a latency at a share of the drive's IOPS.
type TailPoint struct{ Utilisation, P99 float64 }

// TailTable is a Tail of measured points for any mix, the same for reads and writes, with linear interpolation. Beyond
// the last point it is infinite, because there is no measurement.
type TailTable []TailPoint

// NewTailTable checks points: utilisation must increase, and latency must not decrease.
func NewTailTable(points []TailPoint) (TailTable, error) {
	for i, p := range points {
		if !(p.Utilisation >= 0) || !(p.P99 > 0) || math.IsInf(p.P99, 1) || math.IsInf(p.Utilisation, 1) {
			return nil, fmt.Errorf("a p99 of %v us at %v of the IOPS; both must be positive", p.P99, p.Utilisation)
		}
		if i > 0 && (p.Utilisation <= points[i-1].Utilisation || p.P99 < points[i-1].P99) {
			return nil, fmt.Errorf(
				"a p99 of %v us at %v of the IOPS follows %v us at %v; load must rise and latency not fall", p.P99,
				p.Utilisation, points[i-1].P99, points[i-1].Utilisation)
		}
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("a table of latencies has no points")
	}
	return slices.Clone(points), nil
}

// P99 implements Tail.
func (t TailTable) P99(x Traffic) (read, write float64) {
	v := t.At(x.Load)
	return v, v
}

// At returns the latency at a share of the IOPS.
func (t TailTable) At(u float64) float64 {
	if u <= t[0].Utilisation {
		return t[0].P99
	}
	for i := 1; i < len(t); i++ {
		if u <= t[i].Utilisation {
			share := (u - t[i-1].Utilisation) / (t[i].Utilisation - t[i-1].Utilisation)
			return t[i-1].P99 + float64(share*(t[i].P99-t[i-1].P99))
		}
	}
	return math.Inf(1)
}

// Measures implements Tail.
func (t TailTable) Measures() []float64 {
	list := make([]float64, 101)
	for i := range list {
		list[i] = t.At(float64(i) / 100)
	}
	return list
}

// hundredth is the share of a workload's requests below which their latency does not decide its 99th percentile.
const hundredth = 0.01

// Group is the aggregate of the workloads that share a drive, as far as latency depends on it. The zero value has no
// workloads.
type Group struct {
	reads, writes    float64 // I/Os per second of the members
	kib              float64 // KiB per second read and written
	written, ordered float64 // KiB per second written, and the sequential part of it
	read, write      float64 // strictest p99 limit in us, of reads and of writes; 0: none
}

// Join adds a workload with its I/Os scaled by factor, relative to its arrival.
func (c *Group) Join(d *Drive, w *Workload, factor float64) {
	c.count(d, w, factor)
	if w.P99 <= 0 {
		return
	}
	least := func(to *float64) {
		if *to == 0 || w.P99 < *to {
			*to = w.P99
		}
	}
	if 1-w.WriteShare > hundredth {
		least(&c.read)
	}
	if w.WriteShare > hundredth {
		least(&c.write)
	}
}

// leave subtracts a workload's I/Os. Its latency limit remains in force on that drive.
func (c *Group) leave(d *Drive, w *Workload) {
	c.count(d, w, -1)
	c.reads, c.writes, c.kib, c.written, c.ordered = max(0, c.reads), max(0, c.writes), max(0, c.kib),
		max(0, c.written), max(0, c.ordered)
}

func (c *Group) count(d *Drive, w *Workload, factor float64) {
	reads, writes := d.Stripe.ios(w)
	reads, writes = float64(reads*factor), float64(writes*factor)
	size := w.size()
	written := float64(writes * size)
	c.reads, c.writes, c.written = c.reads+reads, c.writes+writes, c.written+written
	c.kib += float64(reads*size) + written
	c.ordered += float64(written * w.Sequential)
}

// Late is the drive's p99 over the limit, for reads or writes, whichever ratio is larger, at the given load; 0: there
// is no limit.
func (c *Group) Late(d *Drive, load float64) float64 {
	if d.Tail == nil || c.read == 0 && c.write == 0 {
		return 0
	}
	t := Traffic{Load: load / d.IOPS, Size: DefaultIOSize}
	if ios := c.reads + c.writes; ios > 0 {
		t.Writes, t.Size = c.writes/ios, c.kib/ios
	}
	if c.written > 0 {
		t.Sequential = min(1, c.ordered/c.written)
	}
	read, write := d.Tail.P99(t)
	late := 0.0
	if c.read > 0 {
		late = read / c.read
	}
	if c.write > 0 {
		late = max(late, write/c.write)
	}
	return late
}

// tooSlow is the excess of a p99 over its limit, at most 1.
func (c *Group) tooSlow(d *Drive, load float64) float64 { return min(1, max(0, c.Late(d, load)-1)) }
