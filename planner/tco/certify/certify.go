// Package certify checks the proof that no plan costs less per gigabyte than a bound.
//
// Its function is Check. If the proof is by enumeration, it enumerates every plan; otherwise it evaluates the prices.
// It was written from the statement of the proof in docs/adr/0007-planner.md and shares no code with the optimiser in
// package tco, only the types of a problem and of a certificate: it has its own arithmetic for drives, arrays and write
// amplification. It does not trust the certificate: a wrong price makes a weaker bound or none, never a wrong one.
//
// It leaves out the quality of the bound, and rounding in the last digits of float64 (sums of several thousand terms).
package certify

import (
	"fmt"
	"math"

	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// slack is the relative excess of a limit that is attributed to rounding.
const slack = 1e-9

// Check returns nil if the certificate proves its rate for the problem.
func Check(p *tco.Problem, c *tco.Certificate) error {
	if err := p.Check(); err != nil {
		return err
	}
	if !(c.Rate >= 0) || math.IsInf(c.Rate, 1) {
		return fmt.Errorf("invalid rate %v", c.Rate)
	}
	if c.Rate == 0 {
		return nil // no plan has a negative cost
	}
	if c.Exhaustive {
		return checkExhaustive(p, c.Rate)
	}
	all := 0
	for _, x := range p.Classes {
		all += x.Count
	}
	countable := len(p.Classes) == 1 && p.Classes[0].Optional
	if len(c.Cases) != 1 && !countable {
		return fmt.Errorf("%d cases by number of drives; only plans that choose drives of one class have such "+
			"cases", len(c.Cases))
	}
	next := 0
	for i := range c.Cases {
		x := &c.Cases[i]
		if x.Least != next || x.Most < x.Least-1 {
			return fmt.Errorf("case %d covers %d to %d drives; it must start with %d", i, x.Least, x.Most, next)
		}
		next = x.Most + 1
		var err error
		if x.Impossible {
			err = checkImpossible(p, x)
		} else {
			err = checkCase(p, c.Rate, x, countable && len(c.Cases) > 1)
		}
		if err != nil {
			return fmt.Errorf("case %d, %d to %d drives: %w", i, x.Least, x.Most, err)
		}
	}
	if next != all+1 {
		return fmt.Errorf("the cases end with %d drives; there may be %d", next-1, all)
	}
	return nil
}

// ask is the demand of one workload on drives of one class.
type ask struct {
	from, until float64 // day; +Inf: never ends
	written     float64 // GB per day by users
	worn        float64 // GB per day to the NAND, a lower bound
	space, io   float64 // only if it never ends
}

// asks returns the demands of all workloads, with the least possible wear per GB of each.
func asks(p *tco.Problem, d *tco.Drive, knots []waf.MixPoint) []ask {
	list := make([]ask, len(p.Jobs))
	for j := range p.Jobs {
		w := &p.Jobs[j]
		full, small, fullIO, smallIO := d.Stripe.FullBytes, d.Stripe.SmallBytes, d.Stripe.FullIOs, d.Stripe.SmallIOs
		if d.Stripe == (tco.Stripe{}) {
			full, small, fullIO, smallIO = 1, 1, 1, 1
		}
		a := ask{from: w.Arrival, until: math.Inf(1), written: w.WriteRate, space: w.WorkingSet}
		a.worn = w.WriteRate * (float64(w.FullStripe*full) + float64((1-w.FullStripe)*small)) *
			height(knots, w.Sequential)
		if w.Wears > 0 {
			a.worn *= w.Wears
		}
		write := d.WriteCost // in reads
		if write == 0 {
			write = 1
		}
		a.io = w.PeakIOPS * (float64(w.WriteShare*
			(float64(w.FullStripe*fullIO)+float64((1-w.FullStripe)*(smallIO-d.Stripe.SmallReads)))*write) +
			float64(w.WriteShare*float64((1-w.FullStripe)*d.Stripe.SmallReads)) + 1 - w.WriteShare)
		if w.End > 0 {
			// It leaves its capacity to others, so it may share a drive with more workloads than fit at once.
			a.until, a.space, a.io = w.End, 0, 0
		}
		list[j] = a
	}
	return list
}

func height(knots []waf.MixPoint, s float64) float64 {
	k := 1
	for k < len(knots)-1 && knots[k].S < s {
		k++
	}
	a, b := knots[k-1], knots[k]
	return (float64(a.WAF*(b.S-s)) + float64(b.WAF*(s-a.S))) / (b.S - a.S)
}

func checkImpossible(p *tco.Problem, c *tco.Case) error {
	d := &p.Classes[0].Drive
	space, io := 0.0, 0.0
	for _, a := range asks(p, d, []waf.MixPoint{{S: 0, WAF: 1}, {S: 1, WAF: 1}}) {
		space += a.space
		io += a.io
	}
	n := float64(c.Most)
	if c.Most == 0 || space > n*d.Capacity*p.Config.FillSpace*(1+slack) || io > n*d.IOPS*p.Config.FillIOPS*(1+slack) {
		return nil
	}
	return fmt.Errorf("that many drives could hold %v GB and %v I/Os a second", space, io)
}

func checkCase(p *tco.Problem, rate float64, c *tco.Case, used bool) error {
	if len(c.Value) != len(p.Jobs) || len(c.Classes) != len(p.Classes) {
		return fmt.Errorf("prices of %d workloads and %d classes, for %d and %d", len(c.Value), len(c.Classes),
			len(p.Jobs), len(p.Classes))
	}
	sum := 0.0
	for _, u := range c.Value {
		if math.IsNaN(u) || math.IsInf(u, 0) {
			return fmt.Errorf("invalid price %v", u)
		}
		sum += u
	}
	each := make([]float64, len(p.Classes))
	for i := range p.Classes {
		x := &p.Classes[i]
		least, err := reach(p, rate, c, i)
		if err != nil {
			return fmt.Errorf("class %s: %w", x.Drive.Name, err)
		}
		if c.Whole && !x.Optional {
			return fmt.Errorf("the drives of class %s exist already and are not counted", x.Drive.Name)
		}
		each[i] = max(0, least)
		switch {
		case used: // between Least and Most of them have workloads
			least = min(float64(c.Least)*least, float64(c.Most)*least)
		case x.Optional: // unused ones are not bought
			least = float64(x.Count) * min(least, 0)
		default: // unused ones are bought in any case
			least = float64(x.Count) * min(least, x.Drive.Buy)
		}
		sum += least
	}
	if c.Whole {
		if err := checkWholes(p, each, -sum); err != nil {
			return err
		}
		return nil
	}
	if !(sum >= 0) {
		return fmt.Errorf("prices and drives sum to %v; a proof needs 0 or more", sum)
	}
	return nil
}

// reach is the minimum of cost - rate data - prices of its workloads, for a drive of class i.
func reach(p *tco.Problem, rate float64, c *tco.Case, i int) (float64, error) {
	d, proof := &p.Classes[i].Drive, &c.Classes[i]
	if err := checkMinorant(d.WAF, proof.Minorant); err != nil {
		return 0, err
	}
	list := asks(p, d, proof.Minorant)
	least := math.Inf(1)
	after := math.Inf(-1) // first arrivals up to this day are covered
	for n := range proof.Blocks {
		b := &proof.Blocks[n]
		if !(b.From <= b.To) {
			return 0, fmt.Errorf("block %d is of days %v to %v", n, b.From, b.To)
		}
		// No workload arrives between blocks.
		for _, a := range list {
			if a.from > after && a.from < b.From {
				return 0, fmt.Errorf("no block has a first arrival on day %v", a.from)
			}
		}
		after = b.To
		v, err := reachBlock(p, rate, c.Value, d, list, b)
		if err != nil {
			return 0, fmt.Errorf("block %d: %w", n, err)
		}
		least = min(least, v)
	}
	for _, a := range list {
		if a.from > after {
			return 0, fmt.Errorf("no block has a first arrival on day %v", a.from)
		}
	}
	return least, nil
}

// reachBlock examines the days of death. A drive's first workload arrives within the block, so it costs at least its
// purchase and the running cost from the block's end to its death; all its workloads arrive at the block's start or
// later, and before its death.
func reachBlock(p *tco.Problem, rate float64, value []float64, d *tco.Drive, list []ask, b *tco.Block) (float64,
	error) {
	last := math.Inf(1)
	if p.Config.Horizon > 0 {
		last = b.To + p.Config.Horizon
	}
	budget, space, io := d.Budget-d.Worn, d.Capacity*p.Config.FillSpace*(1+slack), d.IOPS*p.Config.FillIOPS*(1+slack)
	// at is a lower bound on the value of a drive that dies on day t, at these prices. The gain of a workload that ends
	// within the piece is linear until then and constant afterwards: its maximum is at one of the piece's ends, and it
	// counts with that maximum throughout the piece.
	at := func(q *tco.Piece, t float64) float64 {
		sum := d.Buy + float64(d.Run*(t-b.To)) - float64(q.Wear*budget) - float64(q.Space*space) - float64(q.IOPS*io)
		for j, a := range list {
			if a.from < b.From || a.from >= q.To {
				continue
			}
			gain := func(t float64) float64 {
				days := min(t, a.until) - a.from
				return value[j] + float64(rate*a.written*days) - float64(q.Wear*a.worn*days) -
					float64(q.Space*a.space) - float64(q.IOPS*a.io)
			}
			most := gain(t)
			if a.until > q.From && a.until < q.To {
				most = max(gain(q.From), gain(a.until))
			}
			if most > 0 {
				sum -= most
			}
		}
		return sum
	}
	least := math.Inf(1)
	reached := b.From // deaths up to this day are covered: no drive dies before its first workload arrives
	for n := range b.Pieces {
		q := &b.Pieces[n]
		switch {
		case q.From > reached || !(q.To >= q.From):
			return 0, fmt.Errorf("piece %d is of deaths on days %v to %v; the one before ends on day %v", n, q.From,
				q.To, reached)
		case !(q.Wear >= 0 && q.Space >= 0 && q.IOPS >= 0) || math.IsInf(q.Wear+q.Space+q.IOPS, 1):
			return 0, fmt.Errorf("piece %d has prices %v, %v and %v", n, q.Wear, q.Space, q.IOPS)
		}
		reached = q.To
		if q.To <= b.From {
			continue
		}
		// The other gains are linear in the day of death, the positive part of each is convex, and the whole is
		// concave: its minimum is at one of the ends.
		least = min(least, at(q, q.From))
		if !math.IsInf(q.To, 1) {
			least = min(least, at(q, q.To))
			continue
		}
		// Unbounded: it must not fall any further.
		for _, a := range list {
			if math.IsInf(a.until, 1) && q.Wear*a.worn < rate*a.written*(1-1e-13) {
				return 0, fmt.Errorf("piece %d has no end, and a gigabyte pays for its wear there", n)
			}
		}
	}
	if reached < last {
		return 0, fmt.Errorf("the pieces end with deaths on day %v; the last is on day %v", reached, last)
	}
	return least, nil
}

// checkMinorant checks a piecewise-linear function: it must cover [0, 1], be concave and positive, and lie nowhere
// above the write amplification.
func checkMinorant(w tco.WAF, knots []waf.MixPoint) error {
	n := len(knots)
	if n < 2 || knots[0].S > 0 || knots[n-1].S < 1 {
		return fmt.Errorf("a minorant of %d knots that does not reach from 0 to 1", n)
	}
	steepest := math.Inf(1)
	for i := 1; i < n; i++ {
		a, b := knots[i-1], knots[i]
		if !(b.S > a.S) || !(a.WAF > 0 && b.WAF > 0) {
			return fmt.Errorf("a minorant with knots %v and %v", a, b)
		}
		slope := (b.WAF - a.WAF) / (b.S - a.S)
		if slope > steepest+slack {
			return fmt.Errorf("a minorant that bends upwards at %v", a.S)
		}
		steepest = slope
	}
	switch w := w.(type) {
	case tco.Constant:
		return below(knots, func(float64) float64 { return max(1, float64(w)) }, nil)
	case *tco.Table:
		// Linear between its own points, constant outside of them: lines that do not cross at the knots of either do
		// not cross anywhere.
		points := w.Points()
		var bends []float64
		for _, x := range points {
			bends = append(bends, x.S)
		}
		return below(knots, func(s float64) float64 {
			if s <= points[0].S {
				return points[0].WAF
			}
			for i := 1; i < len(points); i++ {
				if s <= points[i].S {
					return points[i-1].WAF +
						(points[i].WAF-points[i-1].WAF)*(s-points[i-1].S)/(points[i].S-points[i-1].S)
				}
			}
			return points[len(points)-1].WAF
		}, bends)
	case waf.SequentialMix:
		return belowMix(w, knots)
	}
	return fmt.Errorf("unknown shape of a write amplification of type %T", w)
}

// below checks at knots and bends; both functions are linear in between.
func below(knots []waf.MixPoint, f func(float64) float64, bends []float64) error {
	for _, k := range knots {
		if k.S <= 1 && k.S >= 0 && k.WAF > f(k.S) {
			return fmt.Errorf("a minorant of %v at %v, where the write amplification is %v", k.WAF, k.S, f(k.S))
		}
	}
	for _, s := range bends {
		if height(knots, s) > f(s) {
			return fmt.Errorf("a minorant of %v at %v, where the write amplification is %v", height(knots, s), s, f(s))
		}
	}
	return nil
}

// belowMix checks against equation 7: linear up to the turning point, a parabola beyond, at least 1 everywhere. Between
// the points where its form changes, a chord is below it if its ends are, unless the parabola is convex: then its
// minimum over the chord is checked as well.
func belowMix(m waf.SequentialMix, knots []waf.MixPoint) error {
	knee := float64(m.Slope*m.Turn) + m.Random
	bend := 0.0
	if m.Turn < 1 {
		bend = (m.Sequential - knee - float64(m.Slope*(1-m.Turn))) / ((1 - m.Turn) * (1 - m.Turn))
	}
	raw := func(s float64) float64 {
		v := float64(m.Slope*s) + m.Random
		if s > m.Turn {
			v += float64(bend * (s - m.Turn) * (s - m.Turn))
		}
		return v
	}
	f := func(s float64) float64 { return max(1, raw(s)) }
	// Its form changes at the turning point and where it meets the floor of 1.
	bends := []float64{m.Turn}
	if m.Slope != 0 {
		if s := (1 - m.Random) / m.Slope; s > 0 && s <= m.Turn {
			bends = append(bends, s)
		}
	}
	if inner := float64(m.Slope*m.Slope) - float64(4*bend*(knee-1)); bend != 0 && inner >= 0 {
		for _, root := range []float64{(-m.Slope - math.Sqrt(inner)) / (2 * bend),
			(-m.Slope + math.Sqrt(inner)) / (2 * bend)} {
			if s := m.Turn + root; root > 0 && s < 1 {
				bends = append(bends, s)
			}
		}
	} else if bend == 0 && m.Slope != 0 {
		if s := (1 - m.Random) / m.Slope; s > m.Turn && s < 1 {
			bends = append(bends, s)
		}
	}
	if err := below(knots, f, bends); err != nil {
		return err
	}
	if bend <= 0 {
		return nil
	}
	// Convex: raw - chord is least where the slopes are equal.
	for i := 1; i < len(knots); i++ {
		a, b := knots[i-1], knots[i]
		lo, hi := max(a.S, m.Turn), min(b.S, 1)
		if lo >= hi {
			continue
		}
		slope := (b.WAF - a.WAF) / (b.S - a.S)
		s := min(max(m.Turn+(slope-m.Slope)/(2*bend), lo), hi)
		if line := a.WAF + float64(slope*(s-a.S)); line > f(s) {
			return fmt.Errorf("a minorant of %v at %v, where the write amplification is %v", line, s, f(s))
		}
	}
	return nil
}
