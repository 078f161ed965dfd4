package drives

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/planner/tco/calendar"
	"farflash/policy/ftl/waf"
	"farflash/workload/runs"
)

// The writes of the plan's workloads, as input of the simulated translation layer. A drive has some of the workloads,
// and which ones is known only after planning. The decisive property of a drive is its sequential share, so a drive
// with the share S is assumed to have a part of each workload with share s in proportion to e^(k s), where k makes the
// mean over the written bytes S. Each workload keeps its own space, its own rate, and its own trace or mix within it.
// After planning, each drive is simulated with its own workloads, and the plan is recomputed with the result.

// author is a group of workloads that write alike.
type author struct {
	rate, space, sequential float64 // GB per day, GB, share of the bytes
	trace                   *runs.Runs
}

// mostAuthors is the number of authors distinguished in a simulation; beyond it, the most similar ones are merged.
const mostAuthors = 256

// sweptShares is the initial number of sequential shares, between the minimum and the maximum over all workloads, that
// are simulated; where the result falls steeply, shares in between are added.
const sweptShares = 9

// authors returns the authors of some workloads, by ascending sequential share.
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
		return cmp.Or(cmp.Compare(a.sequential, b.sequential),
			cmp.Compare(a.rate/(a.space+1e-300), b.rate/(b.space+1e-300)), cmp.Compare(a.rate, b.rate))
	})
	return merge(list), nil
}

// merge merges neighbours until they are few enough. An author with a trace is never merged.
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

// tilted returns the part of each author on a drive whose writes have the given sequential share, the largest part
// being 1.
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

// writersOf returns the authors on a drive of the given number of pages that has the given parts of them.
func writersOf(list []author, parts []float64, pages int) []waf.Writer {
	rate, space := 0.0, 0.0
	for i := range list {
		rate, space = rate+float64(parts[i]*list[i].rate), space+float64(parts[i]*list[i].space)
	}
	if space == 0 { // no workload states its space
		space = 1
	}
	var out []waf.Writer
	for i := range list {
		x := &list[i]
		w := waf.Writer{Space: float64(parts[i]*x.space) / space, Writes: float64(parts[i]*x.rate) / rate,
			Sequential: x.sequential}
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
	// Shares add up to 1, excluding the omitted ones.
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

// simulatedWAF is the write amplification of a drive with the given number of blocks under the plan's own workloads, by
// the sequential share of the writes.
func (p *Plan) simulatedWAF(blocks int, alpha float64) (tco.WAF, error) {
	knots, err := p.sweptWAF(blocks, alpha)
	if err != nil {
		return nil, err
	}
	knots = slices.Clone(knots)
	for i := range knots {
		knots[i].WAF = max(1, knots[i].WAF)
	}
	if len(knots) == 1 {
		return tco.Constant(knots[0].WAF), nil
	}
	return tco.NewTable(knots)
}

// sweptWAF returns the same as points; a single one if all writes have the same sequential share.
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
		return []waf.MixPoint{{WAF: 1}}, nil // no workload writes
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

// mostRounds is the largest number of plans until the drives' write amplification agrees with the plan's input, and
// mostAlone the number of drives of a group that are simulated in each.
const (
	mostRounds = 8
	mostAlone  = 48
)

// settledWithin is the tolerated relative difference between a drive's write amplification and the plan's input.
const settledWithin = 0.01

// settle makes the plan. If write amplification is simulated, each drive is simulated with the workloads placed on it,
// their wear is adjusted to the result, and the plan is recomputed; of all plans, each evaluated with its own drives'
// simulation, the best is returned.
func (p *Plan) settle(ctx context.Context, proof bool) (*Outcome, map[int]tco.Refusal, error) {
	simulates := slices.ContainsFunc(p.Drives, func(g Group) bool { return g.WAF != nil && g.WAF.Simulate != 0 })
	for j := range p.jobs {
		p.jobs[j].Wears = 0
	}
	if !simulates {
		return p.round(ctx, proof)
	}
	var best *Outcome
	var refused map[int]tco.Refusal
	var jobs []tco.Workload
	for range mostRounds {
		o, none, err := p.round(ctx, false)
		if err != nil {
			return nil, nil, err
		}
		searched := make([]float64, len(p.jobs))
		for j := range p.jobs {
			searched[j] = wearOf(&p.jobs[j])
		}
		settled, err := o.ownWear()
		if err != nil {
			return nil, nil, err
		}
		x, err := o.judgedAgain(none)
		if err != nil {
			return nil, nil, err
		}
		if best == nil || len(none) < len(refused) ||
			len(none) == len(refused) && x.Objective() < float64(best.Objective()*(1-1e-9)) {
			best, refused, jobs = x, none, slices.Clone(p.jobs)
		}
		if settled || o.Interrupted {
			break
		}
		// Go half of the way, because full steps make workloads swap places repeatedly.
		for j := range p.jobs {
			p.jobs[j].Wears = math.Sqrt(float64(p.jobs[j].Wears * searched[j]))
		}
	}
	copy(p.jobs, jobs)
	best.noteWear()
	return best, refused, nil
}

// judgedAgain re-evaluates the placement with the updated wear of workloads.
func (o *Outcome) judgedAgain(refused map[int]tco.Refusal) (*Outcome, error) {
	x := &Outcome{Plan: o.Plan, fleet: o.fleet, host: o.host, Interrupted: o.Interrupted, ownWAF: o.ownWAF}
	if p := o.Plan; p.Review > 0 {
		x.stays = stays{host: o.stays.host}
		x.stays.jobs, x.stays.of = calendar.Stays(p.jobs, float64(p.Review), float64(p.Horizon))
	}
	return x, x.judge(refused)
}

// ownWear simulates drives with their own workloads and sets the workloads' wear accordingly; on a group's further
// drives it uses the average of those. settled reports whether the wear was already in agreement.
func (o *Outcome) ownWear() (settled bool, err error) {
	p := o.Plan
	on := make([][]tco.Workload, len(o.fleet.drives))
	for j, k := range o.host {
		if k >= 0 {
			on[k] = append(on[k], p.jobs[j])
		}
	}
	factor := make([]float64, len(o.fleet.drives))
	o.ownWAF = make([]float64, len(o.fleet.drives))
	type group struct {
		drives       int
		planned, own float64
	}
	groups := make([]group, len(p.Drives))
	for i, k := range o.kept {
		n, s := o.fleet.parts[k].group, &o.Drives[i].State
		g, sum := &p.Drives[n], &groups[n]
		if g.WAF == nil || g.WAF.Simulate == 0 || s.WriteRate == 0 {
			continue
		}
		rate, mix := 0.0, 0.0
		for j := range on[k] {
			w := on[k][j]
			w.Wears = 0
			bytes := o.fleet.drives[k].Wearing(&w)
			rate, mix = rate+bytes, mix+float64(bytes*w.Sequential)
		}
		planned := o.fleet.drives[k].WAF.At(min(1, mix/max(rate, 1e-300)))
		if sum.drives == mostAlone {
			factor[k] = sum.own / sum.planned
		} else {
			spared := o.fleet.parts[k].model.Spared(float64(g.Spare))
			own, err := p.aloneWAF(on[k], g.WAF.Simulate, spared.Alpha())
			if err != nil {
				return false, err
			}
			factor[k] = own / planned
			sum.drives, sum.planned, sum.own = sum.drives+1, sum.planned+float64(rate*planned),
				sum.own+float64(rate*own)
		}
		o.ownWAF[k] = float64(factor[k] * planned)
	}
	settled = true
	for j, k := range o.host {
		if k < 0 || factor[k] == 0 {
			continue
		}
		w := &p.jobs[j]
		settled = settled && math.Abs(factor[k]/wearOf(w)-1) <= settledWithin
		w.Wears = factor[k]
	}
	return settled, nil
}

// wearOf is the workload's factor of wear.
func wearOf(w *tco.Workload) float64 {
	if w.Wears == 0 {
		return 1
	}
	return w.Wears
}

// aloneWAF is the write amplification of a drive with the given workloads only.
func (p *Plan) aloneWAF(jobs []tco.Workload, blocks int, alpha float64) (float64, error) {
	list, err := p.authors(jobs)
	if err != nil {
		return 0, err
	}
	parts := make([]float64, len(list))
	for n := range parts {
		parts[n] = 1
	}
	e := waf.DefaultExperiment()
	e.Alpha, e.Blocks, e.Seed = alpha, blocks, p.Search.Seed
	e.Writers = writersOf(list, parts, e.Blocks*e.Pages)
	found, err := waf.Simulate(e)
	return max(1, found.WAF), err
}

// noteWear records the simulated write amplification of each drive and group.
func (o *Outcome) noteWear() {
	p := o.Plan
	clear(p.simulated.alone)
	for i, k := range o.kept {
		if own := o.ownWAF[k]; own > 0 {
			o.Drives[i].State.WAF = own
			n := o.fleet.parts[k].group
			c, ok := p.simulated.alone[n]
			if !ok {
				c = [2]float64{own, own}
			}
			p.simulated.alone[n] = [2]float64{min(c[0], own), max(c[1], own)}
		}
	}
}
