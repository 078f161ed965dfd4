package calendar

import (
	"cmp"
	"math"
	"slices"

	"farflash/planner/tco"
)

// Entry is a payment on a given day.
type Entry struct {
	Day            float64
	Drive          int
	What           Item
	Money, Present float64 // at that day's value, and discounted
}

// Account is the account of one drive.
type Account struct {
	// First and Last are the first and last day of its service; both are 0 if no workload uses it.
	First, Last float64
	// Money and Present are sums by item, undiscounted and discounted. Years splits Money by years of the plan.
	Money, Present [items]float64
	Years          [][items]float64
	Entries        []Entry
	Replaced       []float64 // days on which it was worn out and replaced
	Copied         float64   // GB copied to its successors
	// Data is GB written by users; Hosted GB written to its members, Mixed that times the sequential share, NAND GB
	// written to the flash.
	Data, Hosted, Mixed, NAND float64
	MostSpace, MostLoad       float64 // GB, and IOPS as in tco.Drive.Load
	MostIOs                   float64 // members' I/Os per second
	Busy                      float64 // days of activity
	Wear                      float64 // used share of the last drive's budget at the end
	Failures                  float64 // expected

	use  map[int32]float64 // by workload: days times the largest of its shares of the drive
	late bool
	full tco.Obstacle
	who  int32
}

// account is an Account under construction.
type account struct {
	Account
	horizon float64
}

// Total is the sum over all items, discounted.
func (a *Account) Total() float64 { return sum(a.Present[:]) }

func sum(list []float64) float64 {
	s := 0.0
	for _, v := range list {
		s += v
	}
	return s
}

func (a *account) once(what Item, day, money, present float64) {
	a.Entries = append(a.Entries, Entry{Day: day, What: what, Money: money, Present: present})
	a.Money[what] += money
	a.Present[what] += present
	a.Years[a.year(day)][what] += money
}

// year is the year of the plan that contains a day; the plan's last day belongs to its last year.
func (a *account) year(day float64) int { return min(int(day/tco.Year), len(a.Years)-1) }

// flow distributes a daily payment over the years; k is the rate at which it changes, discounted that rate with
// discounting.
func (a *account) flow(what Item, from, to, rate, k, discounted float64) {
	for from < to {
		until := min(to, float64(float64(a.year(from)+1)*tco.Year))
		if a.year(from) == len(a.Years)-1 {
			until = to
		}
		money := float64(rate * integral(k, from, until))
		a.Money[what] += money
		a.Years[a.year(from)][what] += money
		a.Present[what] += float64(rate * integral(discounted, from, until))
		from = until
	}
}

// pass records the writes from one day to another.
func (a *account) pass(w *walk, from, to float64) {
	days := to - from
	a.Last = to
	a.Data += float64(w.rate * days)
	a.Hosted += float64(w.wearing * days)
	a.Mixed += float64(w.mix * days)
	a.NAND += float64(w.nand * days)
	a.Busy += float64(w.busy * days)
	u := &w.d.Upkeep
	a.Failures += float64(float64(float64(max(1, u.Members))*u.AFR)*days) / tco.Year
	amplified := 0.0
	if w.wearing > 0 {
		amplified = w.nand / w.wearing
	}
	for i := range w.guests {
		g := &w.guests[i]
		share := max(g.now.space/w.d.Capacity, g.now.load/w.d.IOPS,
			float64(float64(g.now.wearing*amplified)*a.horizon)/w.d.Budget)
		a.use[g.job] += float64(share * days)
	}
}

// look records the drive's peak use, and the first workload that exceeds its limits.
func (a *account) look(w *walk) {
	a.MostSpace, a.MostLoad, a.MostIOs = w.mostSpace, w.mostLoad, max(a.MostIOs, w.ios)
	if a.full != tco.Fits {
		return
	}
	switch cfg := &w.c.cfg; {
	case w.mostSpace > float64(w.d.Capacity*cfg.FillSpace)*(1+slack):
		a.full = tco.NoSpace
	case w.mostLoad > float64(w.d.IOPS*cfg.FillIOPS)*(1+slack):
		a.full = tco.NoIOPS
	case w.slow > 0:
		a.full = tco.TooSlow
	default:
		return
	}
	a.who = w.guests[len(w.guests)-1].job
}

// Move is a workload that moves at a review.
type Move struct {
	Day      float64
	Stay     int // index into the problem's workloads: the stay that starts
	From, To int
	Copied   float64 // GB
}

// Book is the cost of a placement by payee, item and day.
type Book struct {
	Drives []Account
	// Total is all money, discounted to day 0; Present is that by item. Money is undiscounted by item, and Years splits
	// it by year.
	Total          float64
	Money, Present [items]float64
	Years          [][items]float64
	// Workloads is Total divided: each drive's money among its workloads, by days times the largest of their shares of
	// its space, its IOPS and its budget over the plan. The cost of unused drives is not included.
	Workloads []float64
	Data      float64 // GB
	Moves     []Move  // in order of days
}

// Keep prices a placement: host maps each workload, or stay, to its drive; -1: none. there marks the drives that are
// bought on day 0 in any case; the others are bought if a workload uses them. A placement that exceeds a limit is a
// *tco.Misfit.
func (c *Calendar) Keep(drives []tco.Drive, there []bool, jobs []tco.Workload, host []int) (*Book, error) {
	years := max(1, int(math.Ceil(c.cfg.Horizon/tco.Year-1e-9)))
	b := &Book{Drives: make([]Account, len(drives)), Workloads: make([]float64, len(jobs)),
		Years: make([][items]float64, years)}
	on := make([][]int32, len(drives))
	at := map[tco.Stay]int{}
	fates := map[[2]string]bool{}
	for _, j := range tco.ByArrival(jobs) {
		k := host[j]
		if k < 0 {
			continue
		}
		on[k] = append(on[k], int32(j))
		if x := &jobs[j]; x.Apart != "" && drives[k].Domain != "" {
			fate := [2]string{x.Apart, drives[k].Domain}
			if fates[fate] {
				return nil, &tco.Misfit{Workload: x.Name, Drive: drives[k].Name, Obstacle: tco.SameDomain}
			}
			fates[fate] = true
		}
		if s := jobs[j].Stay; s.Of > 0 {
			at[s] = k
			if from, ok := at[tco.Stay{Of: s.Of, At: s.At - 1}]; ok && from != k {
				b.Moves = append(b.Moves,
					Move{Day: jobs[j].Arrival, Stay: j, From: from, To: k, Copied: jobs[j].WorkingSet})
			}
		}
	}
	for k := range drives {
		if len(on[k]) == 0 && !there[k] {
			continue
		}
		a := &account{Account: Account{Years: make([][items]float64, years), use: map[int32]float64{}},
			horizon: c.cfg.Horizon}
		c.w.account = a
		cost, over := c.walk(&drives[k], there[k], jobs, on[k])
		c.w.account = nil
		if over > 0 {
			m := &tco.Misfit{Workload: jobs[on[k][len(on[k])-1]].Name, Drive: drives[k].Name, Obstacle: a.full}
			if a.full == tco.Fits {
				m.Obstacle = tco.NoLife
			} else {
				m.Workload = jobs[a.who].Name
			}
			return nil, m
		}
		b.add(&a.Account, k, cost, on[k])
	}
	return b, nil
}

// add adds a drive's account.
func (b *Book) add(a *Account, k int, cost float64, on []int32) {
	for i := range a.Entries {
		a.Entries[i].Drive = k
	}
	slices.SortStableFunc(a.Entries,
		func(x, y Entry) int { return cmp.Or(cmp.Compare(x.Day, y.Day), cmp.Compare(x.What, y.What)) })
	b.Drives[k] = *a
	b.Total += cost
	b.Data += a.Data
	for i := range items {
		b.Money[i] += a.Money[i]
		b.Present[i] += a.Present[i]
	}
	for y := range a.Years {
		for i := range items {
			b.Years[y][i] += a.Years[y][i]
		}
	}
	all := 0.0
	for _, j := range on {
		all += a.use[j]
	}
	for _, j := range on {
		share := 1 / float64(len(on))
		if all > 0 {
			share = a.use[j] / all
		}
		b.Workloads[j] = float64(cost * share)
	}
}

// Entries returns the entries of all drives, in order of days.
func (b *Book) Entries() []Entry {
	var list []Entry
	for k := range b.Drives {
		list = append(list, b.Drives[k].Entries...)
	}
	slices.SortStableFunc(list, func(x, y Entry) int { return cmp.Compare(x.Day, y.Day) })
	return list
}
