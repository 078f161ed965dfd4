package tco

import (
	"math"
	"slices"
)

// Pool is a set of drives with their workloads: wear, lifetime, cost and data by equations 1 to 3. Each quantity has
// its own array, because an arrival examines one or two quantities of every drive.
//
// Workloads must be placed in order of arrival. A pool allocates when it is created and when a workload that ends is
// placed.
type Pool struct {
	cfg    Config
	drives []Drive

	// The fields of Drive that an arrival reads, as arrays too.
	buy, run, budget  []float64
	spaceMost, ioMost []float64 // usable part
	waf               []WAF
	plain             []bool // no array, no tail, and a single rating for reads and writes

	started []bool
	first   []float64 // T_I: arrival of the first workload
	recent  []float64 // T_R: the time up to which worn and written are counted
	rate    []float64 // lambda_L: GB per day written by users
	wearing []float64 // GB per day written to the members by the host
	mix     []float64 // sum of wearing times S
	nand    []float64 // GB per day written to the NAND
	worn    []float64 // w: GB written to the NAND until recent
	written []float64 // GB written by users until recent
	death   []float64 // T_D: when the flash is worn out, the horizon is reached or the last workload ends
	cost    []float64 // C_I + c_M T_Lf
	data    []float64 // GB written by users at death
	space   []float64 // GB in use
	load    []float64 // of IOPS, see Drive.Load
	ios     []float64 // I/Os per second of the members
	count   []int32
	spent   []float64 // GB written to the NAND at death
	limited []bool    // the flash wears out before anything else ends its service
	taken   []int32   // workloads ever placed there; count is the present ones

	crowds  []Group     // of drives with a Tail; nil: there are none
	ends    [][]leaving // of workloads that end, earliest first
	groups  map[string][]int32
	domains []int32 // by drive
}

// leaving is the load that a drive loses when a workload ends.
type leaving struct {
	at, rate, wearing, mix, space, load, ios float64
	who                                      *Workload // if the drive has a Tail
}

// NewPool returns a pool of drives without workloads.
func NewPool(cfg Config, drives []Drive) (*Pool, error) {
	if err := checkInput(cfg, drives, nil); err != nil {
		return nil, err
	}
	n := len(drives)
	p := &Pool{cfg: cfg, drives: drives, started: make([]bool, n), count: make([]int32, n), limited: make([]bool, n),
		taken: make([]int32, n), ends: make([][]leaving, n), domains: make([]int32, n)}
	// One allocation, for locality: an arrival walks several of the arrays in parallel.
	block := make([]float64, 20*n)
	for i, a := range []*[]float64{&p.first, &p.recent, &p.rate, &p.wearing, &p.mix, &p.nand, &p.worn, &p.written,
		&p.death, &p.cost, &p.data, &p.space, &p.load, &p.ios, &p.spent,
		&p.buy, &p.run, &p.budget, &p.spaceMost, &p.ioMost} {
		*a = block[i*n : (i+1)*n : (i+1)*n]
	}
	p.waf, p.plain = make([]WAF, n), make([]bool, n)
	ids := map[string]int32{"": -1}
	for i := range drives {
		p.worn[i], p.spent[i], p.cost[i] = drives[i].Worn, drives[i].Worn, drives[i].Buy
		d := &drives[i]
		if d.Tail != nil && p.crowds == nil {
			p.crowds = make([]Group, n)
		}
		p.buy[i], p.run[i], p.budget[i], p.waf[i], p.plain[i] = d.Buy, d.Run, d.Budget, d.WAF,
			d.Stripe == (Stripe{}) && d.Tail == nil && d.WriteCost == 0
		p.spaceMost[i], p.ioMost[i] = float64(d.Capacity*cfg.FillSpace)*(1+roundOff),
			float64(d.IOPS*cfg.FillIOPS)*(1+roundOff)
		id, ok := ids[drives[i].Domain]
		if !ok {
			id = int32(len(ids) - 1)
			ids[drives[i].Domain] = id
		}
		p.domains[i] = id
	}
	return p, nil
}

// outcome is the result of adding a workload to a drive.
type outcome struct {
	worn, written  float64 // at the arrival
	rate, wearing  float64
	mix, nand, waf float64
	death          float64
	cost, data     float64
	spent          float64 // GB written to the NAND at death
	limited        bool
}

// with computes the outcome of adding w to drive k at time t; it ignores space and load. ok is false if the drive is
// worn out or past its horizon by then.
func (p *Pool) with(k int, w *Workload, t float64, o *outcome) (ok bool) {
	first := t
	if p.started[k] {
		first = p.first[k]
		past := t - p.recent[k]
		o.worn, o.written = p.worn[k]+float64(p.nand[k]*past), p.written[k]+float64(p.rate[k]*past)
	} else {
		o.worn, o.written = p.worn[k], 0
	}
	if o.worn >= p.budget[k] || p.cfg.Horizon > 0 && t >= first+p.cfg.Horizon {
		return false
	}
	wearing := w.WriteRate
	if !p.plain[k] || w.Wears != 0 {
		wearing = p.drives[k].Wearing(w)
	}
	o.rate, o.wearing = p.rate[k]+w.WriteRate, p.wearing[k]+wearing
	o.mix = p.mix[k] + float64(wearing*w.Sequential)
	o.waf = 1
	if o.wearing > 0 {
		o.waf = p.waf[k].At(o.mix / o.wearing)
	}
	o.nand = float64(o.wearing * o.waf)
	if w.End == 0 && len(p.ends[k]) == 0 {
		left := math.Inf(1)
		if o.nand > 0 {
			left = (p.budget[k] - o.worn) / o.nand // T_E
		}
		o.death, o.limited = t+left, true
		if end := first + p.cfg.Horizon; p.cfg.Horizon > 0 && end < o.death {
			o.death, o.limited = end, false
			left = end - t
		}
		o.spent = o.worn
		if o.nand > 0 {
			o.spent += float64(o.nand * left)
		}
		o.data = o.written + float64(o.rate*left)
	} else {
		p.foresee(k, w, t, first, o)
	}
	o.cost = p.buy[k] + float64(p.run[k]*(o.death-first))
	return true
}

// foresee computes the death and the data of a drive whose workloads end one after another.
func (p *Pool) foresee(k int, w *Workload, t, first float64, o *outcome) {
	d := &p.drives[k]
	end := math.Inf(1)
	if p.cfg.Horizon > 0 {
		end = first + p.cfg.Horizon
	}
	own := leaving{at: math.Inf(1)}
	stays := int(p.count[k]) - len(p.ends[k])
	if w.End > 0 {
		wearing := d.Wearing(w)
		own = leaving{at: w.End, rate: w.WriteRate, wearing: wearing, mix: float64(wearing * w.Sequential)}
	} else {
		stays++
	}
	rate, wearing, mix, nand := o.rate, o.wearing, o.mix, o.nand
	now, worn := t, o.worn
	o.data = o.written
	gone := false // w itself has left
	for next := 0; ; {
		// The epoch lasts until the next workload ends, the horizon is reached or the flash is worn out.
		var l leaving
		until := end
		if next < len(p.ends[k]) {
			l = p.ends[k][next]
		} else {
			l.at = math.Inf(1)
		}
		mine := !gone && own.at <= l.at
		if mine {
			l = own
		}
		until = min(until, l.at)
		left := math.Inf(1)
		if nand > 0 {
			left = (d.Budget - worn) / nand
		}
		if now+left <= until {
			o.data += float64(rate * left)
			o.death, o.limited, o.spent = now+left, true, d.Budget
			return
		}
		o.data += float64(rate * (until - now))
		worn += float64(nand * (until - now))
		now = until
		if until == end {
			o.death, o.limited, o.spent = end, false, worn
			return
		}
		if mine {
			gone = true
		} else {
			next++
		}
		if (gone || w.End == 0) && next == len(p.ends[k]) && stays == 0 {
			o.death, o.limited, o.spent = now, false, worn
			return
		}
		rate, wearing, mix = max(0, rate-l.rate), max(0, wearing-l.wearing), max(0, mix-l.mix)
		nand = 0
		if wearing > 0 {
			nand = float64(wearing * d.WAF.At(min(1, mix/wearing)))
		}
	}
}

// advance closes the epochs of workloads that ended by time t.
func (p *Pool) advance(t float64) {
	for k := range p.ends {
		if len(p.ends[k]) > 0 {
			p.advanceDrive(k, t)
		}
	}
}

func (p *Pool) advanceDrive(k int, t float64) {
	list, done := p.ends[k], 0
	for done < len(list) && list[done].at <= t {
		l := list[done]
		past := l.at - p.recent[k]
		p.worn[k] += float64(p.nand[k] * past)
		p.written[k] += float64(p.rate[k] * past)
		p.recent[k] = l.at
		p.rate[k], p.wearing[k], p.mix[k] = max(0, p.rate[k]-l.rate), max(0, p.wearing[k]-l.wearing),
			max(0, p.mix[k]-l.mix)
		p.space[k], p.load[k] = max(0, p.space[k]-l.space), max(0, p.load[k]-l.load)
		p.ios[k] = max(0, p.ios[k]-l.ios)
		if l.who != nil {
			p.crowds[k].leave(&p.drives[k], l.who)
		}
		p.count[k]--
		p.nand[k] = 0
		if p.wearing[k] > 0 {
			p.nand[k] = float64(p.wearing[k] * p.waf[k].At(min(1, p.mix[k]/p.wearing[k])))
		}
		done++
	}
	if done > 0 {
		p.ends[k] = slices.Delete(list, 0, done)
	}
}

// put places w on drive k at its arrival.
func (p *Pool) put(k int, w *Workload) {
	var o outcome
	if !p.with(k, w, w.Arrival, &o) {
		panic("tco: a workload was placed on a worn-out drive")
	}
	p.place(k, w, &o)
}

// place is put with the outcome that with computed.
func (p *Pool) place(k int, w *Workload, o *outcome) {
	d := &p.drives[k]
	if !p.started[k] {
		p.started[k], p.first[k] = true, w.Arrival
	}
	p.recent[k] = w.Arrival
	p.rate[k], p.wearing[k], p.mix[k], p.nand[k] = o.rate, o.wearing, o.mix, o.nand
	p.worn[k], p.written[k] = o.worn, o.written
	p.death[k], p.cost[k], p.data[k], p.limited[k], p.spent[k] = o.death, o.cost, o.data, o.limited, o.spent
	load, ios := d.Load(w), d.Stripe.Load(w)
	p.space[k] += w.WorkingSet
	p.load[k] += load
	p.ios[k] += ios
	p.count[k]++
	p.taken[k]++
	if d.Tail != nil {
		p.crowds[k].Join(d, w, 1)
	}
	if w.End > 0 {
		wearing := d.Wearing(w)
		l := leaving{w.End, w.WriteRate, wearing, float64(wearing * w.Sequential), w.WorkingSet, load, ios, nil}
		if d.Tail != nil {
			x := *w
			l.who = &x
		}
		at, _ := slices.BinarySearchFunc(p.ends[k], l, func(a, b leaving) int {
			if a.at <= b.at {
				return -1
			}
			return 1
		})
		p.ends[k] = slices.Insert(p.ends[k], at, l)
	}
	if w.Apart != "" && p.domains[k] >= 0 {
		if p.groups == nil {
			p.groups = map[string][]int32{}
		}
		p.groups[w.Apart] = append(p.groups[w.Apart], p.domains[k])
	}
}

// Obstacle is the reason why a drive cannot take a workload.
type Obstacle uint8

// The obstacles.
const (
	Fits       Obstacle = iota
	NoSpace             // the working set does not fit
	NoIOPS              // the peak I/Os do not fit
	NoLife              // the drive is worn out or past its horizon
	TooSlow             // its p99 latency, or that of a neighbour, would be missed
	SameDomain          // a workload of its group is in the same failure domain
	TooCostly           // the drive's cost per gigabyte would exceed the threshold
	obstacles
)

var obstacleNames = [obstacles]string{"fits", "space", "IOPS", "endurance", "p99 latency", "failure domain",
	"cost threshold"}

// String returns the name of the constraint.
func (o Obstacle) String() string { return obstacleNames[o] }

// roundOff is the relative excess of a limit that is attributed to rounding of a sum of shares.
const roundOff = 1e-9

// fits checks space, I/O, latency and failure domain.
func (p *Pool) fits(k int, w *Workload) Obstacle {
	if p.space[k]+w.WorkingSet > p.spaceMost[k] {
		return NoSpace
	}
	if p.plain[k] {
		if p.load[k]+w.PeakIOPS > p.ioMost[k] {
			return NoIOPS
		}
	} else if why := p.withinLoad(k, w); why != Fits {
		return why
	}
	if w.Apart != "" && p.domains[k] >= 0 && slices.Contains(p.groups[w.Apart], p.domains[k]) {
		return SameDomain
	}
	return Fits
}

// withinLoad checks I/O and latency.
func (p *Pool) withinLoad(k int, w *Workload) Obstacle {
	d := &p.drives[k]
	load := p.load[k] + d.Load(w)
	if load > p.ioMost[k] {
		return NoIOPS
	}
	if d.Tail == nil {
		return Fits
	}
	crowd := p.crowds[k]
	if crowd.Join(d, w, 1); crowd.Late(d, load) > 1 {
		return TooSlow
	}
	return Fits
}

// asked returns an empty crowd on drive k with the latency limits of every workload that was ever there.
func (p *Pool) asked(k int) Group {
	if p.crowds == nil {
		return Group{}
	}
	return Group{read: p.crowds[k].read, write: p.crowds[k].write}
}

// totals sums cost, data and lifetime over all drives, in their order.
func (p *Pool) totals() (cost, data, life float64) {
	for k := range p.drives {
		cost += p.cost[k]
		data += p.data[k]
		life += p.death[k] - p.first[k]
	}
	return cost, data, life
}

// clear removes all workloads from a drive of the pool.
func (p *Pool) clear(k int) {
	p.started[k], p.limited[k], p.count[k], p.taken[k] = false, false, 0, 0
	for _, a := range [...][]float64{p.first, p.recent, p.rate, p.wearing, p.mix, p.nand, p.written, p.death, p.data,
		p.space, p.load, p.ios} {
		a[k] = 0
	}
	p.worn[k], p.spent[k], p.cost[k] = p.drives[k].Worn, p.drives[k].Worn, p.buy[k]
	if p.crowds != nil {
		p.crowds[k] = Group{}
	}
	p.ends[k] = p.ends[k][:0]
}
