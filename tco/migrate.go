package tco

import "math"

// Move is a workload that leaves a drive that is worn out.
type Move struct {
	Day      float64
	Workload int
	From     int
	To       int     // -1: nobody takes it
	Refused  Refusal // then
	Copied   float64 // GB: its working set
	Wear     float64 // GB that the copy writes to the NAND of its new drive
}

// Migrate follows a placement through its days. When a drive is worn out before its horizon, each workload on it that goes on moves to
// the drive where the pool's gigabyte then costs least, its working set being copied there in order; that wears the new drive, which may
// be worn out the sooner, and so on. A workload that was to arrive on a drive that has died meanwhile goes elsewhere as well. It
// returns the moves in the order of time, and what the drives come to with them. Without a horizon nothing is moved: every drive is worn
// out some day.
func Migrate(cfg Config, drives []Drive, jobs []Workload, host []int) ([]Move, *Assessment, error) {
	before, err := Assess(cfg, drives, jobs, host)
	if err != nil || cfg.Horizon == 0 {
		return nil, before, err
	}
	cfg.WarmUp = false
	a, err := NewAllocator(AllocatorConfig{Config: cfg}, drives)
	if err != nil {
		return nil, nil, err
	}
	p := a.pool
	on := make([][]int, len(drives))
	dead := make([]bool, len(drives))
	var moves []Move
	elsewhere := func(j, from int, day float64) error {
		w := jobs[j]
		w.Arrival = day
		m := Move{Day: day, Workload: j, From: from, To: -1}
		k, refusal, err := a.choose(&w, nil)
		if err != nil {
			return err
		}
		if m.Refused = refusal; k >= 0 {
			m.To, m.Copied = k, w.WorkingSet
			m.Wear = float64(float64(w.WorkingSet*p.drives[k].Stripe.Bytes(1)) * p.waf[k].At(1))
			p.put(k, &w)
			// The copy is written on the day of the move, which brings the day of death nearer.
			p.worn[k] += m.Wear
			if p.worn[k] < p.budget[k] {
				p.again(k)
			} else {
				p.death[k] = day
			}
			on[k] = append(on[k], j)
		}
		moves = append(moves, m)
		return nil
	}
	next, order := 0, ByArrival(jobs)
	for {
		day, k := math.Inf(1), -1
		for i := range drives {
			if !dead[i] && p.started[i] && p.limited[i] && p.death[i] < day {
				day, k = p.death[i], i
			}
		}
		if next < len(order) && jobs[order[next]].Arrival <= day {
			j := order[next]
			next++
			to := host[j]
			if to < 0 {
				continue
			}
			p.advance(jobs[j].Arrival)
			var o outcome
			if dead[to] || !p.with(to, &jobs[j], jobs[j].Arrival, &o) {
				if err := elsewhere(j, to, jobs[j].Arrival); err != nil {
					return nil, nil, err
				}
				continue
			}
			p.put(to, &jobs[j])
			on[to] = append(on[to], j)
			continue
		}
		if k < 0 {
			return moves, p.Assess(len(jobs)), nil
		}
		dead[k] = true
		p.advance(day)
		p.worn[k], p.nand[k], p.rate[k], p.recent[k] = p.budget[k], 0, 0, day
		for _, j := range on[k] {
			if end := jobs[j].End; end == 0 || end > day {
				if err := elsewhere(j, k, day); err != nil {
					return nil, nil, err
				}
			}
		}
	}
}

// again forms a drive's death, cost and data anew after its wear has changed.
func (p *Pool) again(k int) {
	var o outcome
	none := Workload{Sequential: 0}
	if !p.with(k, &none, p.recent[k], &o) {
		return
	}
	p.death[k], p.cost[k], p.data[k], p.limited[k], p.spent[k] = o.death, o.cost, o.data, o.limited, o.spent
}
