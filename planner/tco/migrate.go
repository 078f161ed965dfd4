package tco

import "math"

// Move is a workload that leaves a worn-out drive.
type Move struct {
	Day      float64
	Workload int
	From     int
	To       int     // -1: no drive takes it
	Refused  Refusal // the obstacles, if To is -1
	Copied   float64 // GB: its working set
	Wear     float64 // GB written to the NAND of the new drive by the copy
}

// Migrate follows a placement day by day. When a drive wears out before its horizon, each workload on it that continues
// moves to the drive with which the pool's gigabyte is then cheapest. Its working set is copied there sequentially;
// that wears the new drive, which may wear out earlier in turn. A move leaves space for the workloads that the
// placement assigns to that drive later. A workload due to arrive on a drive that has since died, or has no space left,
// goes elsewhere as well. A moved workload is served until the original drive would have reached its horizon. Migrate
// returns the moves in order of time and the resulting outcome of the drives. Without a horizon no workload moves,
// because every drive wears out eventually.
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
	moved := make([]bool, len(jobs))
	until := make([]float64, len(jobs)) // end of service of a moved workload; 0: its own end
	for j := range jobs {
		until[j] = jobs[j].End
	}
	next, order := 0, ByArrival(jobs)
	a.later = func(k int, w *Workload) Obstacle {
		if dead[k] {
			return NoLife
		}
		return p.roomLater(k, w, jobs, until, on[k], host, order[next:])
	}
	elsewhere := func(j, from int, day float64) error {
		w := jobs[j]
		w.Arrival = day
		if !moved[j] {
			end := cfg.Horizon + day
			if p.started[from] {
				end = cfg.Horizon + p.first[from]
			}
			if until[j] == 0 || end < until[j] {
				until[j] = end
			}
		}
		moved[j] = true
		if w.End = until[j]; w.End <= day {
			return nil
		}
		m := Move{Day: day, Workload: j, From: from, To: -1}
		k, refusal, err := a.choose(&w, nil)
		if err != nil {
			return err
		}
		if m.Refused = refusal; k >= 0 {
			m.To, m.Copied = k, w.WorkingSet
			m.Wear = float64(float64(w.WorkingSet*p.drives[k].Stripe.Bytes(1)) * p.waf[k].At(1))
			p.put(k, &w)
			// The copy is written on the day of the move, which brings the drive's death forward.
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
			if dead[to] || p.fits(to, &jobs[j]) != Fits || !p.with(to, &jobs[j], jobs[j].Arrival, &o) {
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
			return moves, p.assess(len(jobs)), nil
		}
		dead[k] = true
		p.advance(day)
		p.worn[k], p.nand[k], p.rate[k], p.recent[k] = p.budget[k], 0, 0, day
		for _, j := range on[k] {
			if until[j] == 0 || until[j] > day {
				if err := elsewhere(j, k, day); err != nil {
					return nil, nil, err
				}
			}
		}
	}
}

// again recomputes a drive's death, cost and data after a change of its wear.
func (p *Pool) again(k int) {
	var o outcome
	none := Workload{}
	if len(p.ends[k]) > 0 {
		none.End = p.recent[k] // it leaves at once, so that it does not keep the drive in service
	}
	if !p.with(k, &none, p.recent[k], &o) {
		return
	}
	p.death[k], p.cost[k], p.data[k], p.limited[k], p.spent[k] = o.death, o.cost, o.data, o.limited, o.spent
}

// roomLater reports whether drive k, with w from its arrival on, has space for the future workloads placed on it as
// each of them arrives; there lists its current workloads.
func (p *Pool) roomLater(k int, w *Workload, jobs []Workload, until []float64, there, host, toCome []int) Obstacle {
	d := &p.drives[k]
	for n, j := range toCome {
		x := &jobs[j]
		if host[j] < 0 || w.End > 0 && x.Arrival >= w.End {
			continue
		}
		if w.Apart != "" && x.Apart == w.Apart && p.domains[host[j]] >= 0 && p.domains[host[j]] == p.domains[k] {
			return SameDomain
		}
		if host[j] != k {
			continue
		}
		space, load, crowd := w.WorkingSet, d.Load(w), p.asked(k)
		add := func(i int) {
			if y := &jobs[i]; until[i] == 0 || until[i] > x.Arrival {
				space += y.WorkingSet
				load += d.Load(y)
				crowd.Join(d, y, 1)
			}
		}
		crowd.Join(d, w, 1)
		for _, i := range there {
			add(i)
		}
		for _, i := range toCome[:n+1] {
			if host[i] == k {
				add(i)
			}
		}
		switch {
		case space > p.spaceMost[k]:
			return NoSpace
		case load > p.ioMost[k]:
			return NoIOPS
		case crowd.Late(d, load) > 1:
			return TooSlow
		}
	}
	return Fits
}
