package certify

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"farflash/planner/tco"
)

// mostExhausted is the largest number of workloads for which every plan is enumerated.
const mostExhausted = 14

// checkExhaustive enumerates every plan: none may have a negative cost - rate data.
func checkExhaustive(p *tco.Problem, rate float64) error {
	if len(p.Jobs) > mostExhausted {
		return fmt.Errorf("cannot enumerate the plans of %d workloads; the limit is %d", len(p.Jobs),
			mostExhausted)
	}
	e := &exhaust{p: p, rate: rate, sets: 1 << len(p.Jobs)}
	idle := 0.0 // cost that is independent of the plan
	domains := map[string][]int{}
	var names []string
	for i := range p.Classes {
		c := &p.Classes[i]
		if !c.Optional {
			idle += float64(float64(c.Count) * c.Drive.Buy)
		}
		if d := c.Drive.Domain; d != "" {
			if domains[d] == nil {
				names = append(names, d)
			}
			domains[d] = append(domains[d], i)
		}
	}
	reached := e.nothing()
	for i := range p.Classes {
		if p.Classes[i].Drive.Domain == "" {
			reached = e.drives(reached, i)
		}
	}
	for _, d := range names {
		rack := e.nothing()
		for _, i := range domains[d] {
			rack = e.drives(rack, i)
		}
		for set := range rack {
			if e.together(set) {
				rack[set] = math.Inf(1)
			}
		}
		reached = combine(reached, rack)
	}
	least := reached[e.sets-1] + idle
	if least < -slack*(1+math.Abs(idle)+e.dearest) {
		return fmt.Errorf("a plan reaches %v at that rate; a proof needs 0 or more for every plan", least)
	}
	return nil
}

// exhaust holds the state shared by all plans.
type exhaust struct {
	p       *tco.Problem
	rate    float64
	sets    int
	dearest float64 // highest cost of a drive
}

// nothing is the table for no drives: only the empty set is feasible.
func (e *exhaust) nothing() []float64 {
	list := make([]float64, e.sets)
	for set := 1; set < e.sets; set++ {
		list[set] = math.Inf(1)
	}
	return list
}

// combine divides each set between two groups of drives.
func combine(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for set := range out {
		out[set] = a[set] + b[0]
		for part := set; part > 0; part = (part - 1) & set {
			out[set] = min(out[set], a[set^part]+b[part])
		}
	}
	return out
}

// drives adds the drives of a class one by one.
func (e *exhaust) drives(reached []float64, class int) []float64 {
	c := &e.p.Classes[class]
	one := e.nothing()
	for set := 1; set < e.sets; set++ {
		if cost, data, ok := e.life(&c.Drive, set); ok && !e.together(set) {
			e.dearest = max(e.dearest, cost)
			if !c.Optional {
				cost -= c.Drive.Buy
			}
			one[set] = cost - float64(e.rate*data)
		}
	}
	for range min(c.Count, len(e.p.Jobs)) {
		next := combine(reached, one)
		if slices.Equal(next, reached) {
			break // further drives have no effect
		}
		reached = next
	}
	return reached
}

// together reports whether a set contains two workloads of one group.
func (e *exhaust) together(set int) bool {
	seen := map[string]bool{}
	for s := uint(set); s != 0; s &= s - 1 {
		g := e.p.Jobs[bits.TrailingZeros(s)].Apart
		if g != "" && seen[g] {
			return true
		}
		seen[g] = true
	}
	return false
}

// life follows a drive with a set of workloads from the first arrival to its death, from one arrival or end to the
// next.
func (e *exhaust) life(d *tco.Drive, set int) (cost, data float64, ok bool) {
	var jobs []*tco.Workload
	var days []float64
	for s := uint(set); s != 0; s &= s - 1 {
		w := &e.p.Jobs[bits.TrailingZeros(s)]
		jobs = append(jobs, w)
		days = append(days, w.Arrival)
		if w.End > 0 {
			days = append(days, w.End)
		}
	}
	slices.Sort(days)
	days = slices.Compact(days)
	first := days[0]
	last := math.Inf(1)
	if e.p.Config.Horizon > 0 {
		last = first + e.p.Config.Horizon
	}
	late := first // the last arrival
	for _, w := range jobs {
		late = max(late, w.Arrival)
	}
	if late >= last {
		return 0, 0, false
	}
	one := d.Stripe == tco.Stripe{}
	worn, asked := d.Worn, latency{math.Inf(1), math.Inf(1)}
	for n, day := range days {
		until := math.Inf(1)
		if n+1 < len(days) {
			until = days[n+1]
		}
		rate, wears, sequential, space, load, there := 0.0, 0.0, 0.0, 0.0, 0.0, 0
		var seen ios
		for _, w := range jobs {
			if w.Arrival > day || w.End > 0 && w.End <= day {
				continue
			}
			there++
			bytes, io, writes, reads := w.WriteRate, w.PeakIOPS, 1.0, 0.0 // that a write issues
			if !one {
				bytes *= float64(w.FullStripe*d.Stripe.FullBytes) + float64((1-w.FullStripe)*d.Stripe.SmallBytes)
				reads = float64((1 - w.FullStripe) * d.Stripe.SmallReads)
				writes = float64(w.FullStripe*d.Stripe.FullIOs) +
					float64((1-w.FullStripe)*(d.Stripe.SmallIOs-d.Stripe.SmallReads))
			}
			if w.Wears > 0 {
				bytes *= w.Wears
			}
			seen.add(w, reads, writes)
			if d.WriteCost > 0 {
				writes = float64(writes * d.WriteCost)
			}
			io = float64(io * (float64(w.WriteShare*float64(writes+reads)) + 1 - w.WriteShare))
			rate, wears, sequential, space, load = rate+w.WriteRate, wears+bytes,
				sequential+float64(bytes*w.Sequential), space+w.WorkingSet, load+io
		}
		arrived := false
		for _, w := range jobs {
			if w.Arrival == day {
				arrived = true
				asked.ask(w)
			}
		}
		if arrived {
			if worn >= d.Budget || space > d.Capacity*e.p.Config.FillSpace*(1+slack) ||
				load > d.IOPS*e.p.Config.FillIOPS*(1+slack) {
				return 0, 0, false
			}
			if d.Tail != nil && asked.passed(d.Tail.P99(seen.traffic(load/d.IOPS))) {
				return 0, 0, false
			}
		}
		if there == 0 && day >= late {
			return d.Buy + float64(d.Run*(day-first)), data, true // all have left, and none will arrive
		}
		nand := 0.0
		if wears > 0 {
			nand = float64(wears * d.WAF.At(min(1, sequential/wears)))
		}
		left := math.Inf(1)
		if nand > 0 {
			left = (d.Budget - worn) / nand
		}
		end := min(until, last, day+left)
		if math.IsInf(end, 1) {
			return 0, 0, false // unlimited: it has no price
		}
		data += float64(rate * (end - day))
		worn += float64(nand * (end - day))
		if end < until || end == last {
			if end < late {
				return 0, 0, false // worn out before a later arrival
			}
			return d.Buy + float64(d.Run*(end-first)), data, true
		}
	}
	return 0, 0, false
}

// latency is the strictest p99 limit of the workloads, for reads and for writes, in us.
type latency struct{ read, write float64 }

// ask applies a workload's limit to the directions that make up more than a hundredth of its requests; the p99 does not
// constrain the rest.
func (l *latency) ask(w *tco.Workload) {
	if w.P99 == 0 {
		return
	}
	if w.WriteShare < 0.99 {
		l.read = min(l.read, w.P99)
	}
	if w.WriteShare > 0.01 {
		l.write = min(l.write, w.P99)
	}
}

// passed reports whether a drive is slower than that. A limit that no workload sets is infinite and always met.
func (l *latency) passed(read, write float64) bool {
	return !math.IsInf(l.read, 1) && read > l.read*(1+slack) || !math.IsInf(l.write, 1) && write > l.write*(1+slack)
}

// ios is the traffic of the workloads on one drive: reads and writes per second, KiB per second, KiB written, and KiB
// written sequentially.
type ios struct{ reads, writes, kib, written, ordered float64 }

// add adds a workload, each of whose writes causes the given numbers of reads and writes on the members.
func (s *ios) add(w *tco.Workload, reads, writes float64) {
	size := w.IOSize
	if size == 0 {
		size = tco.DefaultIOSize
	}
	r := float64(w.PeakIOPS*(1-w.WriteShare)) + float64(w.PeakIOPS*w.WriteShare*reads)
	n := float64(w.PeakIOPS * w.WriteShare * writes)
	s.reads, s.writes, s.kib, s.written, s.ordered = s.reads+r, s.writes+n, s.kib+float64((r+n)*size),
		s.written+float64(n*size), s.ordered+float64(n*size*w.Sequential)
}

// traffic returns the mix, at a share of the drive's IOPS.
func (s *ios) traffic(load float64) tco.Traffic {
	t := tco.Traffic{Load: load, Size: tco.DefaultIOSize}
	if all := s.reads + s.writes; all > 0 {
		t.Writes, t.Size = s.writes/all, s.kib/all
	}
	if s.written > 0 {
		t.Sequential = min(1, s.ordered/s.written)
	}
	return t
}
