package calendar

import (
	"math"

	"farflash/numeric/rng"
	"farflash/planner/tco"
)

// Item is the purpose of a payment.
type Item uint8

// The items.
const (
	Purchases    Item = iota // drives, when needed
	Setup                    // with purchases
	Replacements             // drives that replace worn-out ones, and the labour
	Failures                 // expected: drives after the warranty, and the labour
	Power                    // and cooling
	Places                   // space in racks, floor and ports
	Labour
	Moves    // copies
	Residual // proceeds of used drives, negative
	items
)

var itemNames = [items]string{"Drives", "Setup", "Replacements, worn out", "Failures, expected", "Power and cooling",
	"Space", "Labour", "Moves", "Residual value"}

// String returns the item's name.
func (i Item) String() string { return itemNames[i] }

var itemKeys = [items]string{"drives", "setup", "replacements", "failures", "power", "space", "labour", "moves",
	"residual"}

// Key returns its name in documents.
func (i Item) Key() string { return itemKeys[i] }

// Items returns all items.
func Items() []Item {
	list := make([]Item, items)
	for i := range list {
		list[i] = Item(i)
	}
	return list
}

// guest is a workload on the drive, with its demand.
type guest struct {
	job        int32
	end        float64
	rise       *rise // nil: it does not grow
	factor     float64
	now, first takes // first is the demand on the day of its arrival
}

// rise holds the precomputed growth of a workload.
type rise struct {
	growth, arrival, end float64 // identify the workload
	rate                 float64 // per day
	step, mean           float64 // growth per quarter, and the mean over a quarter, relative to its start
	// In the quarter of its arrival: the mean and the peak, and the factor at the end of the quarter.
	mean0, peak0, factor0 float64
}

// takes is the demand of workloads on a drive: GB per day written by users and to the members, the latter times the
// sequential share, GB of space, I/Os as in tco.Drive.Load, and I/Os of the members.
type takes struct{ rate, wearing, mix, space, load, ios float64 }

// walk simulates a drive day by day.
type walk struct {
	c       *Calendar
	d       *tco.Drive
	guests  []guest
	account *account // nil: no breakdown is needed

	takes              // sums over guests
	nand       float64 // GB per day written to the flash
	jobs       []tco.Workload
	busy       float64 // share of time that the drive is active
	cost       float64 // discounted
	mostSpace  float64
	mostLoad   float64
	slow       float64
	bought     float64 // day of purchase of the present drive
	paid       float64 // its price
	worn       float64 // GB used of its budget
	leaves     float64 // day on which the next guest leaves
	successors int
	hopeless   bool // successors wear out too soon
}

// walk follows a drive with the listed workloads, in order of arrival.
func (c *Calendar) walk(d *tco.Drive, there bool, jobs []tco.Workload, list []int32) (cost, over float64) {
	w := &c.w
	*w = walk{c: c, d: d, guests: w.guests[:0], account: w.account, jobs: jobs, leaves: math.Inf(1), worn: d.Worn}
	t := 0.0
	if len(list) > 0 {
		t = jobs[list[0]].Arrival
	}
	if !there {
		w.bought = t
	}
	w.paid = float64((d.Buy - d.Upkeep.Setup) * power(c.dearer, w.bought))
	w.once(Purchases, w.bought, w.paid)
	w.once(Setup, w.bought, d.Upkeep.Setup)
	if len(list) == 0 {
		w.sell(c.cfg.Horizon)
		return w.cost, 0
	}
	if w.account != nil {
		w.account.First, w.account.Last = t, t
	}
	next, late := 0, 0.0
	quarter := math.Inf(1) // the day on which growing workloads are next updated
	for {
		changed := w.leaves <= t
		if changed {
			w.leave(t)
		}
		larger := quarter <= t
		if larger {
			w.grow(t)
			quarter = t + stepLength
		}
		if changed || larger {
			w.add()
		}
		for next < len(list) && jobs[list[next]].Arrival <= t {
			j := list[next]
			next++
			if t >= c.cfg.Horizon {
				late++
				continue
			}
			if jobs[j].Growth != 0 && math.IsInf(quarter, 1) {
				quarter = after(t)
			}
			w.arrive(jobs, j, list[:next-1])
			changed, larger = true, true
		}
		if t >= c.cfg.Horizon || len(w.guests) == 0 && next == len(list) {
			break
		}
		if changed || larger {
			w.nand = 0
			if w.wearing > 0 {
				w.nand = float64(w.wearing * d.WAF.At(min(1, w.mix/w.wearing)))
			}
		}
		if larger {
			w.look()
		}
		until := min(c.cfg.Horizon, w.leaves, quarter)
		if next < len(list) {
			until = min(until, jobs[list[next]].Arrival)
		}
		if w.epoch(t, until); w.hopeless {
			late += float64(len(list))
			break
		}
		t = until
	}
	w.sell(t)
	spaceMost, ioMost := float64(d.Capacity*c.cfg.FillSpace)*(1+slack), float64(d.IOPS*c.cfg.FillIOPS)*(1+slack)
	late += float64(len(list) - next)
	if w.account != nil {
		w.account.Wear = min(1, w.worn/d.Budget)
		w.account.late = late > 0
	}
	return w.cost, late + w.slow + max(0, w.mostSpace/spaceMost-1) + max(0, w.mostLoad/ioMost-1)
}

// after is the first start of a quarter after day t.
func after(t float64) float64 { return float64((math.Floor(t/stepLength+1e-9) + 1) * stepLength) }

// leave removes the guests that end by day t.
func (w *walk) leave(t float64) {
	n := 0
	w.leaves = math.Inf(1)
	for i := range w.guests {
		if g := &w.guests[i]; g.end > t {
			w.leaves = min(w.leaves, g.end)
			w.guests[n] = *g
			n++
		}
	}
	w.guests = w.guests[:n]
}

// arrive puts a workload on the drive; before are the earlier arrivals.
func (w *walk) arrive(jobs []tco.Workload, j int32, before []int32) {
	x, d := &jobs[j], w.d
	bytes := d.Wearing(x)
	g := guest{job: j, end: w.c.end(x),
		first: takes{rate: x.WriteRate, wearing: bytes, mix: float64(bytes * x.Sequential), space: x.WorkingSet,
			load: d.Load(x), ios: d.Stripe.Load(x)}}
	g.now = g.first
	if x.Growth != 0 {
		g.rise = w.c.rise(x, j)
		g.now.scale(&g.first, g.rise.mean0, g.rise.peak0)
		g.factor = g.rise.factor0
	}
	w.guests = append(w.guests, g)
	w.leaves = min(w.leaves, g.end)
	w.takes.join(&g.now)
	if x.Stay.At == 0 {
		return
	}
	for _, i := range before {
		if y := jobs[i].Stay; y.Of == x.Stay.Of && y.At == x.Stay.At-1 {
			return // the stay before was on this drive
		}
	}
	w.worn += w.copied(x.WorkingSet)
	w.once(Moves, x.Arrival, float64(w.c.cfg.Moving*x.WorkingSet/1000))
}

// rise returns the precomputed growth of the j-th workload. The entry is reused as long as the workload is the same.
func (c *Calendar) rise(x *tco.Workload, j int32) *rise {
	for int(j) >= len(c.rises) {
		c.rises = append(c.rises, &rise{})
	}
	r := c.rises[j]
	if r.growth == x.Growth && r.arrival == x.Arrival && r.end == x.End {
		return r
	}
	k := growth(x)
	*r = rise{growth: x.Growth, arrival: x.Arrival, end: x.End, rate: k, step: rng.Exp(k * stepLength),
		mean: integral(k, 0, stepLength) / stepLength}
	quarter := after(x.Arrival)
	days := min(quarter, c.end(x)) - x.Arrival
	r.mean0, r.peak0, r.factor0 = integral(k, 0, days)/days, max(1, rng.Exp(k*days)), rng.Exp(k*(quarter-x.Arrival))
	return r
}

// scale sets t to first, with its bytes multiplied by one factor and its space and I/Os by another.
func (t *takes) scale(first *takes, bytes, peak float64) {
	t.rate, t.wearing, t.mix = float64(first.rate*bytes), float64(first.wearing*bytes), float64(first.mix*bytes)
	t.space, t.load, t.ios = float64(first.space*peak), float64(first.load*peak), float64(first.ios*peak)
}

// join adds another demand.
func (t *takes) join(o *takes) {
	t.rate += o.rate
	t.wearing += o.wearing
	t.mix += o.mix
	t.space += o.space
	t.load += o.load
	t.ios += o.ios
}

// copied is the number of GB that a copy of the given GB writes to the flash.
func (w *walk) copied(space float64) float64 {
	return float64(float64(space*w.d.Stripe.Bytes(1)) * w.d.WAF.At(1))
}

// grow updates the guests' demand for the quarter that starts on day t.
func (w *walk) grow(t float64) {
	for i := range w.guests {
		g := &w.guests[i]
		r := g.rise
		if r == nil {
			continue
		}
		mean, peak := r.mean, r.step
		if days := g.end - t; days < stepLength {
			mean, peak = integral(r.rate, 0, days)/days, rng.Exp(r.rate*days)
		}
		g.now.scale(&g.first, float64(g.factor*mean), float64(g.factor*max(1, peak)))
		g.factor = float64(g.factor * r.step)
	}
}

// add computes the sums over guests.
func (w *walk) add() {
	w.takes = takes{}
	for i := range w.guests {
		w.join(&w.guests[i].now)
	}
}

// look records how full and how slow the drive is.
func (w *walk) look() {
	w.mostSpace, w.mostLoad = max(w.mostSpace, w.space), max(w.mostLoad, w.load)
	if w.d.Tail != nil {
		var crowd tco.Group
		for i := range w.guests {
			g := &w.guests[i]
			factor := 1.0
			if g.first.load > 0 {
				factor = g.now.load / g.first.load
			}
			crowd.Join(w.d, &w.jobs[g.job], factor)
		}
		w.slow = max(w.slow, min(1, max(0, crowd.Late(w.d, w.load)-1)))
	}
	if w.account != nil {
		w.account.look(w)
	}
}

// epoch advances over days without arrivals or departures; the drive is replaced each time it is worn out.
func (w *walk) epoch(t, until float64) {
	for t < until {
		end := until
		if w.nand > 0 {
			end = min(until, t+max(0, (w.d.Budget-w.worn)/w.nand))
		} else if w.worn >= w.d.Budget {
			end = t
		}
		w.run(t, end)
		w.worn += float64(w.nand * (end - t))
		if t = end; t >= until {
			return // a drive worn out now is replaced in the next epoch, if there is one
		}
		if w.successors > 0 && t-w.bought < leastLife {
			w.hopeless = true
			return
		}
		// Worn out: a drive of the same model takes its place, and its contents are copied.
		w.bought, w.successors = t, w.successors+1
		members := float64(max(1, w.d.Upkeep.Members))
		w.paid = float64(float64(w.d.Upkeep.Next*members) * power(w.c.dearer, t))
		w.once(Replacements, t, w.paid+float64(w.c.cfg.Replacing*members))
		w.worn = w.copied(w.space)
		if w.account != nil {
			w.account.Replaced = append(w.account.Replaced, t)
			w.account.Copied += w.space
		}
	}
}

// run pays for the days from one to another.
func (w *walk) run(from, to float64) {
	if !(to > from) {
		return
	}
	u := &w.d.Upkeep
	if w.busy = u.Duty; u.ByLoad {
		w.busy = float64(w.busy * min(1, w.load/w.d.IOPS))
	}
	w.flow(Power, from, to, u.Idle+float64((u.Active-u.Idle)*w.busy), w.c.fade)
	w.flow(Places, from, to, u.Place, w.c.fade)
	w.flow(Labour, from, to, u.Labour, w.c.fade)
	if fail := float64(float64(max(1, u.Members))*u.AFR) / tco.Year; fail > 0 {
		w.flow(Failures, from, to, float64(fail*w.c.cfg.Replacing), w.c.fade)
		if old := max(from, w.bought+w.c.cfg.Warranty); old < to {
			w.flow(Failures, old, to, float64(fail*u.Next), w.c.fadeAndDearer)
		}
	}
	if w.account != nil {
		w.account.pass(w, from, to)
	}
}

// sell adds the proceeds of the drive on day t.
func (w *walk) sell(t float64) {
	cfg := &w.c.cfg
	if cfg.Residual == 0 {
		return
	}
	left := max(0, min(1-(t-w.bought)/cfg.Over, 1-w.worn/w.d.Budget))
	w.once(Residual, t, -float64(float64(w.paid*cfg.Residual)*left))
}

// once pays on a single day.
func (w *walk) once(what Item, day, money float64) {
	if money == 0 {
		return
	}
	present := float64(money * power(w.c.fade, day))
	w.cost += present
	if w.account != nil {
		w.account.once(what, day, money, present)
	}
}

// flow pays a daily rate that changes at rate k: fade, or fade plus dearer.
func (w *walk) flow(what Item, from, to, rate, k float64) {
	if rate == 0 {
		return
	}
	w.cost += float64(rate * integral(k, from, to))
	if w.account != nil {
		w.account.flow(what, from, to, rate, k-w.c.fade, k)
	}
}
