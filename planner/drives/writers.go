package drives

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"farflash/ftl/waf"
	"farflash/rng"
	"farflash/tco"
	"farflash/units"
	"farflash/workload/runs"
)

// What the plan's workloads write, as the simulated translation layer is asked for it. A drive has some of them: which, is known when the plan is. What matters
// of a drive's is their sequential share, so that a drive with the share S is taken to have of each workload with the share s a part in proportion to
// e^(k s), where k makes the mean of the written bytes S. Each keeps its own space, its own rate, and its own trace or mix in there. When the plan is made, each
// drive is simulated with what is on it; where a group of drives is amplified otherwise than the plan has it, the plan is made again with that.

// author is workloads that write alike.
type author struct {
	rate, space, sequential float64 // GB a day, GB, share of the bytes
	trace                   *runs.Runs
}

// mostAuthors is how many are told apart in a simulation: of more, those are put together that are most alike.
const mostAuthors = 256

// sweptShares is at how many shares of sequential writes between the least and the most of any workload's the simulator is asked first; where it falls steeply it is
// asked between them.
const sweptShares = 9

// authors are who writes of some workloads, by rising sequential share.
func (p *Plan) authors(jobs []tco.Workload) ([]author, error) {
	var list []author
	traces := map[string]*runs.Runs{}
	for j := range jobs {
		w := &jobs[j]
		there := 1.0
		if h := float64(p.Horizon); h > 0 {
			end := h
			if w.End > 0 {
				end = min(end, w.End)
			}
			there = max(0, end-w.Arrival) / h
		}
		x := author{rate: float64(w.WriteRate * there), space: float64(w.WorkingSet * there), sequential: w.Sequential}
		if w.Trace != "" {
			file := p.path(w.Trace)
			if traces[file] == nil {
				r, err := runs.Open(file)
				if err != nil {
					return nil, fmt.Errorf("workload %s: %w", w.Name, units.Within("trace", err))
				}
				traces[file] = r
			}
			x.trace = traces[file]
		}
		if x.rate > 0 || x.space > 0 {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b author) int {
		return cmp.Or(cmp.Compare(a.sequential, b.sequential), cmp.Compare(a.rate/(a.space+1e-300), b.rate/(b.space+1e-300)), cmp.Compare(a.rate, b.rate))
	})
	return merge(list), nil
}

// merge puts neighbours together until there are few enough. Who has a trace stays alone.
func merge(list []author) []author {
	each := (len(list) + mostAuthors - 1) / mostAuthors
	if each <= 1 {
		return list
	}
	var out []author
	n := 0
	for _, x := range list {
		last := len(out) - 1
		if n++; last < 0 || n > each || x.trace != nil || out[last].trace != nil {
			out, n = append(out, x), 1
			continue
		}
		y := &out[last]
		if rate := y.rate + x.rate; rate > 0 {
			y.sequential = (float64(y.rate*y.sequential) + float64(x.rate*x.sequential)) / rate
		}
		y.rate, y.space = y.rate+x.rate, y.space+x.space
	}
	return out
}

// tilted is what part of each author a drive has whose writes have a sequential share, the most being 1.
func tilted(list []author, share float64) []float64 {
	parts := make([]float64, len(list))
	mean := func(k float64) float64 {
		rate, mix, most := 0.0, 0.0, math.Inf(-1)
		for i := range list {
			if list[i].rate > 0 {
				most = max(most, k*list[i].sequential)
			}
		}
		for i := range list {
			parts[i] = rng.Exp(min(0, float64(k*list[i].sequential)-most))
			bytes := float64(parts[i] * list[i].rate)
			rate, mix = rate+bytes, mix+float64(bytes*list[i].sequential)
		}
		return mix / rate
	}
	low, high := -500.0, 500.0
	for range 60 {
		if mid := (low + high) / 2; mean(mid) < share {
			low = mid
		} else {
			high = mid
		}
	}
	mean((low + high) / 2)
	return parts
}

// writers is a drive that has such parts of the authors, of so many pages.
func writersOf(list []author, parts []float64, pages int) []waf.Writer {
	rate, space := 0.0, 0.0
	for i := range list {
		rate, space = rate+float64(parts[i]*list[i].rate), space+float64(parts[i]*list[i].space)
	}
	if space == 0 { // nobody says how much it takes
		space = 1
	}
	var out []waf.Writer
	for i := range list {
		x := &list[i]
		w := waf.Writer{Space: float64(parts[i]*x.space) / space, Writes: float64(parts[i]*x.rate) / rate, Sequential: x.sequential}
		if w.Writes < 1e-9 && w.Space < 1e-6 {
			continue
		}
		if x.trace != nil {
			w.Sequential = 0
			written := min(1, float64(x.trace.Pages)*float64(x.trace.Page)/max(1, x.space*1e9))
			w.Runs = x.trace.Fit(max(1, int32(w.Space*float64(pages)*written)))
		}
		out = append(out, w)
	}
	// Shares add up to 1, also without those that are left out.
	rate, space = 0, 0
	for i := range out {
		rate, space = rate+out[i].Writes, space+out[i].Space
	}
	for i := range out {
		out[i].Writes /= rate
		if out[i].Space /= space; space == 0 {
			out[i].Space = 1 / float64(len(out))
		}
	}
	return out
}

// simulatedWAF is the write amplification of a drive with so many blocks of the plan's own workloads, by the sequential share of what is written, times what
// their drives have been corrected by.
func (p *Plan) simulatedWAF(blocks int, alpha, scale float64) (tco.WAF, error) {
	knots, err := p.sweptWAF(blocks, alpha)
	if err != nil {
		return nil, err
	}
	knots = slices.Clone(knots)
	for i := range knots {
		knots[i].WAF = max(1, float64(knots[i].WAF*scale))
	}
	if len(knots) == 1 {
		return tco.Constant(knots[0].WAF), nil
	}
	return tco.NewTable(knots)
}

// sweptWAF is that as points: one if there is one share of sequential writes.
func (p *Plan) sweptWAF(blocks int, alpha float64) ([]waf.MixPoint, error) {
	key := fmt.Sprint(blocks, alpha)
	if w := p.simulated.waf[key]; w != nil {
		return w, nil
	}
	list, err := p.authors(p.jobs)
	if err != nil {
		return nil, err
	}
	least, most := 1.0, 0.0
	for i := range list {
		if list[i].rate > 0 {
			least, most = min(least, list[i].sequential), max(most, list[i].sequential)
		}
	}
	if least > most {
		return []waf.MixPoint{{WAF: 1}}, nil // nobody writes
	}
	e := waf.DefaultExperiment()
	e.Alpha, e.Blocks, e.Seed = alpha, blocks, p.Search.Seed
	of := func(s float64) (waf.Experiment, error) {
		x := e
		x.Writers = writersOf(list, tilted(list, s), blocks*e.Pages)
		return x, nil
	}
	if most-least < 1e-3 {
		x, _ := of(most)
		found, err := waf.Simulate(x)
		if err != nil {
			return nil, err
		}
		p.simulated.waf[key] = []waf.MixPoint{{S: most, WAF: found.WAF}}
		return p.simulated.waf[key], nil
	}
	var shares []float64
	for i := range sweptShares {
		shares = append(shares, least+float64((most-least)*float64(i)/(sweptShares-1)))
	}
	points, err := waf.SweepOf(of, shares, waf.SweepWithin)
	if err != nil {
		return nil, err
	}
	p.simulated.waf[key], _ = waf.FitLines(points, waf.KnotsWithin)
	return p.simulated.waf[key], nil
}

// mostChecked is how many drives of a group are simulated again with what the plan puts on them.
const mostChecked = 24

// checked is what drives of a group have come to, simulated each with its own workloads.
type checked struct {
	drives    int
	low, high float64 // shares of the amplification that the plan was made with
	planned   float64 // GB a day that their flash is written, by the plan and by themselves
	own       float64
}

// checkWAF simulates the first drives of each group with what the plan puts on each.
func (o *Outcome) checkWAF() (map[int]checked, error) {
	p := o.Plan
	clear(p.simulated.checked)
	on := make([][]tco.Workload, len(o.fleet.drives))
	for j, k := range o.host {
		if k >= 0 {
			on[k] = append(on[k], p.jobs[j])
		}
	}
	for i, k := range o.kept {
		group, s := o.fleet.parts[k].group, &o.Drives[i].State
		g, c := &p.Drives[group], p.simulated.checked[group]
		if g.WAF == nil || g.WAF.Simulate == 0 || s.WriteRate == 0 || c.drives == mostChecked {
			continue
		}
		list, err := p.authors(on[k])
		if err != nil {
			return nil, err
		}
		parts := make([]float64, len(list))
		for n := range parts {
			parts[n] = 1
		}
		spared := o.fleet.parts[k].model.Spared(float64(g.Spare))
		e := waf.DefaultExperiment()
		e.Alpha, e.Blocks, e.Seed = spared.Alpha(), g.WAF.Simulate, p.Search.Seed
		e.Writers = writersOf(list, parts, e.Blocks*e.Pages)
		found, err := waf.Simulate(e)
		if err != nil {
			return nil, err
		}
		own := max(1, found.WAF)
		o.Drives[i].OwnWAF = own
		off := own / s.WAF
		if c.drives == 0 {
			c.low, c.high = off, off
		}
		c.drives, c.low, c.high = c.drives+1, min(c.low, off), max(c.high, off)
		c.planned, c.own = c.planned+float64(s.WriteRate*s.WAF), c.own+float64(s.WriteRate*own)
		p.simulated.checked[group] = c
	}
	return p.simulated.checked, nil
}

// rescaleWithin is by what share the plan's amplification may be off that of its drives together.
const rescaleWithin = 0.02

// rescale corrects the amplification of each group by what its drives have come to, and reports whether a plan must be made again for it.
func (s *simulations) rescale(found map[int]checked) (again bool) {
	for group, c := range found {
		if off := c.own / c.planned; math.Abs(off-1) > rescaleWithin {
			s.scale[group], again = s.scaleOf(group)*off, true
		}
	}
	return again
}

// scaleOf is by what the amplification of a group is corrected.
func (s *simulations) scaleOf(group int) float64 {
	if v, ok := s.scale[group]; ok {
		return v
	}
	return 1
}
