package drives

import (
	"context"
	"fmt"
	"math"
	"slices"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/planner/tco/catalogue"
)

// Uncertainty is the range of each input. Each given input is drawn independently of the others: factors log-uniformly,
// so that half and double are equally likely, and growth uniformly.
type Uncertainty struct {
	// Draws is the number of draws.
	Draws int
	// Prices of drives, Writes, Space, IOPS of the workloads, WAF and Electricity are factors on the plan's values: the
	// least and the most.
	Prices, Writes, Space, IOPS, WAF, Electricity []units.Fraction
	// Growth is added to each workload's yearly growth: the least and the most.
	Growth []units.Change
	// Estimates draws each figure of a drive taken from estimate, between the least and the most of the catalogue's
	// other drives.
	Estimates bool
}

// asked reports whether any input is uncertain.
func (u *Uncertainty) asked() bool {
	return u.Prices != nil || u.Writes != nil || u.Space != nil || u.IOPS != nil || u.WAF != nil ||
		u.Electricity != nil || u.Growth != nil || u.Estimates
}

// mostDraws limits draws.
const mostDraws = 100_000

func (p *Plan) validateUncertainty() error {
	var f units.Faults
	u := &p.Uncertainty
	f.Hold(u.Draws > 0 && u.Draws <= mostDraws, "draws", "%d is not possible; write 1 to %d", u.Draws, mostDraws)
	for _, x := range []struct {
		key  string
		list []units.Fraction
	}{{"prices", u.Prices}, {"writes", u.Writes}, {"space", u.Space}, {"iops", u.IOPS}, {"waf", u.WAF},
		{"electricity", u.Electricity}} {
		f.Hold(x.list == nil || len(x.list) == 2 && x.list[0] > 0 && x.list[0] <= x.list[1], x.key,
			"write the minimum and maximum factor, both above 0, such as [70%%, 150%%]")
	}
	f.Hold(u.Growth == nil ||
		len(u.Growth) == 2 && u.Growth[0] > -1 && u.Growth[0] <= u.Growth[1] && u.Growth[1] <= 10, "growth",
		"write the minimum and maximum added to growth per year, such as [-5%%, 20%%]")
	f.Hold(!u.Estimates || slices.ContainsFunc(p.Drives, func(g Group) bool { return len(g.Estimate) > 0 }),
		"estimates", "no drive has estimated figures; leave it out, or name some (drives[].estimate)")
	f.Hold(u.Growth == nil || p.Calendar() && p.Algorithm.optimal, "growth",
		"%v with objective: paper does not use growth; choose algorithm: optimal and objective: calendar, or leave "+
			"it out", p.Algorithm)
	return f.Err()
}

// Risk is the result of a plan under uncertain inputs.
type Risk struct {
	Draws int `json:"draws"`
	// Holds is the share of draws in which the placement remains feasible; Within is half its 95 % interval.
	Holds  float64 `json:"holds"`
	Within float64 `json:"holds_within"`
	// Low, Median and High are the 5th, 50th and 95th percentile of the plan's objective, over the draws in which it is
	// feasible.
	Low    float64 `json:"p5"`
	Median float64 `json:"p50"`
	High   float64 `json:"p95"`
	// Again is the number of draws in which a new plan was made, and Regret the mean excess cost of the original plan
	// over the new one, as a share.
	Again  int     `json:"planned_again"`
	Regret float64 `json:"regret"`
}

// mostAgain is the largest number of draws with a new plan.
const mostAgain = 40

// risk draws the inputs, with the plan's seed.
func (o *Outcome) risk(ctx context.Context) *Risk {
	u := &o.Plan.Uncertainty
	r := rng.NewStream(o.Plan.Search.Seed, "plan/uncertainty")
	factor := func(list []units.Fraction) float64 {
		v := r.Float64() // drawn in any case, so that adding an input does not change the draws of another
		if list == nil {
			return 1
		}
		low, high := float64(list[0]), float64(list[1])
		return low * rng.Exp(float64(v*rng.Log(high/low)))
	}
	out := &Risk{Draws: u.Draws}
	var money []float64
	for n := range u.Draws {
		if ctx.Err() != nil {
			out.Draws = n
			break
		}
		b := o.Plan.straight()
		b.price, b.writes, b.space, b.iops, b.waf, b.electricity = factor(u.Prices), factor(u.Writes),
			factor(u.Space), factor(u.IOPS), factor(u.WAF), factor(u.Electricity)
		if v := r.Float64(); u.Growth != nil {
			b.growth = float64(u.Growth[0]) + float64(v*float64(u.Growth[1]-u.Growth[0]))
		}
		if u.Estimates {
			b.drawn = o.Plan.drawEstimates(&r)
		}
		held := o.held(ctx, b)
		if held == 0 {
			continue
		}
		money = append(money, held)
		if o.Exact && out.Again < mostAgain {
			if again := o.again(ctx, b); again > 0 {
				out.Again++
				out.Regret += held/again - 1
			}
		}
	}
	out.Regret /= float64(max(out.Again, 1))
	if out.Draws == 0 {
		return nil
	}
	n := float64(out.Draws)
	out.Holds = float64(len(money)) / n
	out.Within = wilson(out.Holds, n)
	if len(money) > 0 {
		slices.Sort(money)
		at := func(q float64) float64 { return money[int(math.Round(q*float64(len(money)-1)))] }
		out.Low, out.Median, out.High = at(0.05), at(0.5), at(0.95)
	}
	return out
}

// drawEstimates returns the plan's groups of drives with drawn figures in place of the estimates, log-uniformly.
func (p *Plan) drawEstimates(r *rng.Stream) []Group {
	groups := slices.Clone(p.Drives)
	for i := range groups {
		g := &groups[i]
		if len(g.Estimate) == 0 {
			continue
		}
		_, estimates, err := p.known(g, i)
		if err != nil {
			continue // the plan would have been rejected
		}
		for _, e := range estimates {
			v := e.Low * rng.Exp(float64(r.Float64()*rng.Log(e.High/e.Low)))
			switch e.Figure {
			case catalogue.PriceFigure:
				price := units.Money(v)
				g.Price = &price
			case catalogue.EnduranceFigure:
				g.TBW = &v
			case catalogue.ReadFigure:
				g.ReadIOPS = &v
			case catalogue.WriteFigure:
				g.WriteIOPS = &v
			case catalogue.ActiveFigure:
				g.ActiveW = &v
			case catalogue.IdleFigure:
				g.IdleW = &v
			}
		}
		g.Estimate = nil
	}
	return groups
}

// wilson is half of Wilson's 95 % interval of a share of n.
func wilson(share, n float64) float64 {
	const z = 1.959964
	return z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
}

// Text describes the inputs that were drawn.
func (u *Uncertainty) Text() string {
	var parts []string
	for _, x := range []struct {
		name string
		list []units.Fraction
	}{{"prices", u.Prices}, {"writes", u.Writes}, {"space", u.Space}, {"IOPS", u.IOPS}, {"WAF", u.WAF},
		{"electricity", u.Electricity}} {
		if x.list != nil {
			parts = append(parts, fmt.Sprintf("%s %v to %v", x.name, x.list[0], x.list[1]))
		}
	}
	if u.Growth != nil {
		parts = append(parts, fmt.Sprintf("growth per year %v to %v more", u.Growth[0], u.Growth[1]))
	}
	if u.Estimates {
		parts = append(parts, "estimates over the range of other drives")
	}
	text := ""
	for i, x := range parts {
		if i > 0 {
			text += ", "
		}
		text += x
	}
	return text
}
