package objects

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"farflash/model/cluster"
	"farflash/numeric/units"
)

// Evaluator simulates designs.
type Evaluator interface {
	// Evaluate runs a design with the given number of nodes down once for each seed, and returns the results in the
	// order of the seeds. It is called for one design at a time, and its answer must depend only on its arguments. An
	// error ends the search.
	Evaluate(ctx context.Context, d Design, down int, seeds []uint64) ([]Sample, error)
}

// State is the result of an option.
type State string

// The states.
const (
	Open       State = "open"       // undecided: the search was interrupted
	Impossible State = "impossible" // ruled out by the configuration
	Costlier   State = "dearer"     // it costs more than another option, so its minimum was not searched for
	Short      State = "short"      // no number of nodes that was tried meets the need
	Meets      State = "meets"
)

// Candidate is an option with its result.
type Candidate struct {
	Option
	State  State
	Why    string      // why it does not meet the need
	Advice Advice      // a change that would help
	Least  int         // least number of nodes by the bounds; 0 if no number suffices
	From   units.Money // cost of those nodes
	Bound  Bound       // at that number of nodes
	Fewer  string      // why fewer nodes are not possible
	// For an option that meets the need:
	Nodes   int
	Cost    units.Money
	Point   *Point
	Remarks []string
}

// Plan is the result of a search.
type Plan struct {
	Need       *Need
	Seeds      []uint64
	Candidates []*Candidate // in the order of the need's drives, NICs, protocols and sizes
	Points     []*Point     // all simulated designs, in order of simulation
	Best       *Candidate   // nil: no design meets the need
}

// Step is the progress of a search.
type Step struct {
	Design  Design
	Down    int
	Decided int // options
	Of      int
	Best    *Candidate // so far
}

// search is one call of Search.
type search struct {
	*Plan
	ctx    context.Context
	eval   Evaluator
	report func(Step)
	points map[Design]*Point
	best   map[string]*Candidate // by scope
}

// Search finds the cheapest design that meets a need, with one run of each design per seed. On an error it also returns
// the results so far. tell, if not nil, is called with each design before it is simulated.
//
// Options are processed in ascending order of the cost of their bounds. For each, bisection finds the smallest number
// of nodes that meets the need, below the cost of the best design so far. Bisection assumes that more nodes than enough
// are enough; this is checked next to the result, and where it fails the number is raised until it holds.
func Search(ctx context.Context, n *Need, eval Evaluator, seeds []uint64, tell func(Step)) (*Plan, error) {
	s := &search{Plan: &Plan{Need: n, Seeds: seeds}, ctx: ctx, eval: eval, report: tell, points: map[Design]*Point{},
		best: map[string]*Candidate{}}
	for drive := range n.Drives {
		for nic := range n.NICs {
			for _, scheme := range n.schemes() {
				for _, group := range n.groups(scheme) {
					s.Candidates = append(s.Candidates, s.candidate(Option{drive, nic, scheme, group}))
				}
			}
		}
	}
	order := slices.Clone(s.Candidates)
	slices.SortStableFunc(order, func(a, b *Candidate) int { return cmp.Compare(a.From, b.From) })
	for _, c := range order {
		if c.State != Open {
			continue
		}
		if err := s.decide(c); err != nil {
			s.choose()
			return s.Plan, err
		}
	}
	s.choose()
	return s.Plan, nil
}

// candidate returns an option before any simulation.
func (s *search) candidate(o Option) *Candidate {
	x := s.Need.least(o)
	c := &Candidate{Option: o, State: Open, Least: x.nodes, Bound: x.bound, Fewer: x.fewer, Why: x.why,
		Advice: x.advice}
	if x.nodes == 0 {
		c.State = Impossible
		return c
	}
	c.From = s.Need.Cost(c.with(x.nodes))
	return c
}

// with returns the option's design with the given number of nodes.
func (c *Candidate) with(nodes int) Design { return Design{c.Option, nodes} }

// scope is the set of options within which only the cheapest is searched for.
func (s *search) scope(o Option) string {
	if s.Need.Search.Others {
		return o.Protocol.String()
	}
	return ""
}

// decide finds the smallest number of nodes of an option that meets the need, if that costs less than the best in its
// scope.
func (s *search) decide(c *Candidate) error {
	n := s.Need
	best := s.best[s.scope(c.Option)]
	top := n.Search.Most / c.step() * c.step()
	if best != nil {
		if c.From >= best.Cost {
			c.State, c.Why = Costlier, fmt.Sprintf("needs at least %s, for %v", plural(c.Least, "node"), c.From)
			return nil
		}
		// Costs increase with the number of nodes.
		for low, high := c.Least, top+c.step(); ; {
			if high-low <= c.step() {
				top = low
				break
			}
			if middle := low + (high-low)/c.step()/2*c.step(); n.Cost(c.with(middle)) < best.Cost {
				low = middle
			} else {
				high = middle
			}
		}
	}
	low, high := c.Least-c.step(), 0 // too few, by the bounds; enough
	if best != nil {
		p, err := s.point(c.with(top))
		if err != nil {
			return err
		}
		if !p.Meets {
			c.State, c.Why = Costlier,
				fmt.Sprintf("%s, the most for less than %v: %s", plural(top, "node"), best.Cost, p.Why)
			return nil
		}
		high = top
	}
	for {
		if high == 0 {
			p, err := s.rise(c, &low, &high, top)
			if err != nil {
				return err
			}
			if high == 0 {
				c.State, c.Why = Short, fmt.Sprintf("%s: %s", plural(p.Nodes, "node"), p.Why)
				c.Advice = n.advice(p)
				return nil
			}
		}
		if err := s.bisect(c, &low, &high); err != nil {
			return err
		}
		above := high + c.step()
		if above > n.Search.Most {
			break
		}
		p, err := s.point(c.with(above))
		if err != nil {
			return err
		}
		if p.Meets {
			break
		}
		c.Remarks = append(c.Remarks,
			fmt.Sprintf("%d nodes are enough, but %d are not (%s): the number was raised", high, above, p.Why))
		low, high = above, 0
		if best != nil && above >= top {
			c.State, c.Why = Costlier, fmt.Sprintf("%s: %s", plural(above, "node"), p.Why)
			return nil
		}
	}
	if err := s.below(c, high); err != nil {
		return err
	}
	c.State, c.Nodes, c.Cost, c.Point = Meets, high, n.Cost(c.with(high)), s.points[c.with(high)]
	s.best[s.scope(c.Option)] = c
	return nil
}

// furthest limits the search to this multiple of the least number of nodes: beyond it, more nodes do not help.
const furthest = 8

// rise searches upwards for a sufficient number: first the largest, because most options that fail there fail
// everywhere, then in doubling steps. It returns the last design that it tried.
func (s *search) rise(c *Candidate, low, high *int, top int) (*Point, error) {
	from := *low
	top = min(top, max(furthest*c.Least, from+furthest*c.step())) / c.step() * c.step()
	last, err := s.point(c.with(top))
	if err != nil || !last.Meets {
		return last, err
	}
	for k := 1; ; k *= 2 {
		nodes := min(from+k*c.step(), top)
		p, err := s.point(c.with(nodes))
		if err != nil {
			return nil, err
		}
		if p.Meets {
			*high = nodes
			return p, nil
		}
		*low = nodes
	}
}

// bisect narrows too few and enough to adjacent numbers.
func (s *search) bisect(c *Candidate, low, high *int) error {
	for *high-*low > c.step() {
		middle := *low + (*high-*low)/c.step()/2*c.step()
		p, err := s.point(c.with(middle))
		if err != nil {
			return err
		}
		if p.Meets {
			*high = middle
		} else {
			*low = middle
		}
	}
	return nil
}

// below checks one step further below the largest insufficient number: if that one suffices, the limit is not sharp.
func (s *search) below(c *Candidate, nodes int) error {
	if nodes-2*c.step() < c.Least {
		return nil
	}
	p, err := s.point(c.with(nodes - 2*c.step()))
	if err != nil {
		return err
	}
	if p.Meets {
		c.Remarks = append(c.Remarks,
			fmt.Sprintf("%d nodes are enough in these runs, but %d are not: the limit is within the noise; use more "+
				"--reps", p.Nodes, nodes-c.step()))
	}
	return nil
}

// point simulates a design, once. The first seed runs alone, because the others would not change the verdict on a
// growing queue.
func (s *search) point(d Design) (*Point, error) {
	if p, ok := s.points[d]; ok {
		return p, nil
	}
	n := s.Need
	bound, err := n.bound(d)
	if err != nil {
		return nil, err
	}
	p := &Point{Design: d, Bound: bound}
	states := []int{0}
	if n.Survive > 0 {
		states = []int{n.Survive, 0}
	}
	for _, down := range states {
		m, why, err := s.measured(d, down)
		if err != nil {
			return nil, err
		}
		if down > 0 {
			p.Down = m
		} else {
			p.Intact = m
		}
		if why != "" {
			if down > 0 {
				why = fmt.Sprintf("with %d down, %s", down, why)
			}
			p.Why = why
			break
		}
	}
	p.Meets = p.Why == ""
	s.points[d] = p
	s.Points = append(s.Points, p)
	return p, nil
}

// measured runs a design in one state and returns the reason if it does not meet the need.
func (s *search) measured(d Design, down int) (*Measured, string, error) {
	if err := s.ctx.Err(); err != nil {
		return nil, "", err
	}
	if s.report != nil {
		decided := 0
		var best *Candidate
		for _, c := range s.Candidates {
			if c.State != Open {
				decided++
			}
			if c.State == Meets && (best == nil || c.Cost < best.Cost) {
				best = c
			}
		}
		s.report(Step{d, down, decided, len(s.Candidates), best})
	}
	first, err := s.eval.Evaluate(s.ctx, d, down, s.Seeds[:1])
	if err != nil {
		return nil, "", err
	}
	if why := s.Need.hopeless(first[0], len(s.Seeds)); why != "" {
		return measure(down, first), why, nil
	}
	rest, err := s.eval.Evaluate(s.ctx, d, down, s.Seeds[1:])
	if err != nil {
		return nil, "", err
	}
	m := measure(down, append(slices.Clone(first), rest...))
	return m, s.Need.fails(m), nil
}

// choose picks the cheapest design; ties go to the lowest percentile.
func (s *search) choose() {
	for _, c := range s.Candidates {
		if c.State != Meets {
			continue
		}
		b := s.Best
		if b == nil || c.Cost < b.Cost ||
			c.Cost == b.Cost && c.Point.Worst().P99().High() < b.Point.Worst().P99().High() {
			s.Best = c
		}
	}
}

// advice returns a change that would make a design with enough nodes meet the need.
func (n *Need) advice(p *Point) Advice {
	m := p.Worst()
	for _, x := range m.Samples {
		if x.Failed > 0 || x.Growth > mostGrown {
			return Advice{"rate", -n.Rate, "a lower rate, or another protocol"}
		}
	}
	if n.Reads < 1 && m.Put.High() >= n.PutP99.Microseconds() {
		return longer("put_p99", m.Put.High())
	}
	if n.GetP99 > 0 && m.Get.High() >= n.GetP99.Microseconds() {
		return longer("get_p99", m.Get.High())
	}
	return Advice{"rate", -n.Rate, "a lower rate, or another protocol"}
}

// Cheapest returns the cheapest candidate of a protocol, or nil if none meets the need.
func (p *Plan) Cheapest(scheme cluster.Scheme) *Candidate {
	var best *Candidate
	for _, c := range p.Candidates {
		if c.Protocol != scheme || c.State != Meets {
			continue
		}
		if best == nil || c.Cost < best.Cost ||
			c.Cost == best.Cost && c.Point.Worst().P99().High() < best.Point.Worst().P99().High() {
			best = c
		}
	}
	return best
}

// Schemes returns the protocols that were considered.
func (p *Plan) Schemes() []cluster.Scheme { return p.Need.schemes() }

// Advice returns changes that would help if no design meets the need: for each key the smallest change.
func (p *Plan) Advice() []Advice {
	var out []Advice
	for _, c := range p.Candidates {
		a := c.Advice
		if a.Key == "" {
			continue
		}
		k := slices.IndexFunc(out, func(x Advice) bool { return x.Key == a.Key })
		switch {
		case k < 0:
			out = append(out, a)
		case a.Value < out[k].Value:
			out[k] = a
		}
	}
	return out
}

// Near returns the simulated designs of the chosen option, by number of nodes.
func (p *Plan) Near(o Option) []*Point {
	var out []*Point
	for _, x := range p.Points {
		if x.Option == o {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b *Point) int { return a.Nodes - b.Nodes })
	return out
}
