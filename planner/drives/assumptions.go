package drives

import (
	"fmt"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/planner/tco/catalogue"
)

// Assumption is an input figure of a plan with its source.
type Assumption struct {
	Of     string `json:"of"` // a group of drives; "" for the plan
	Name   string `json:"name"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// Assumptions lists the figures behind the plan's answer other than its workloads: those stated in the plan, those of
// the catalogue, and those assumed.
func (p *Plan) Assumptions() []Assumption {
	var list []Assumption
	add := func(key, name, value, otherwise string) {
		source := otherwise
		if _, given := p.given(key); given {
			source = "stated in the plan"
		}
		list = append(list, Assumption{Name: name, Value: value, Source: source})
	}
	const none = "default, without a source"
	c := &p.Costs
	horizon := "until worn out"
	if p.Horizon > 0 {
		horizon = p.Horizon.String()
	}
	add("horizon", "horizon", horizon, "default: the usual warranty")
	add("fill", "fill", fmt.Sprintf("%v of the space, %v of the IOPS", p.Fill.Space, p.Fill.IOPS), "default: all")
	add("costs.electricity", "electricity", term.Money(float64(c.Electricity))+" per kWh", "assumed")
	add("costs.pue", "PUE", term.Significant(c.PUE, 4), "mean in Uptime's 2025 survey")
	add("costs.setup", "setup", term.Money(float64(c.Setup))+" per drive", none)
	add("costs.labour", "labour", term.Money(float64(c.Labour))+" per drive and day", none)
	add("costs.replacing", "labour per replacement", term.Money(float64(c.Replacing)), none)
	add("costs.warranty", "warranty", c.Warranty.String(), "default: none")
	if p.Calendar() {
		add("costs.discount", "discount", c.Discount.String()+" per year", none)
		add("costs.price_trend", "drive price trend", c.PriceTrend.String()+" per year", none)
		add("costs.space", "rack space per drive", term.Money(float64(c.Space))+" per month", none)
		residual := c.Residual.String()
		if c.Residual > 0 {
			residual += ", 0 after " + c.ResidualOver.String()
		}
		add("costs.residual", "residual value", residual, none)
		if p.Review > 0 {
			add("costs.moving", "copying in moves", term.Money(float64(c.Moving))+" per TB", none)
		}
	}
	add("costs.embodied", "embodied carbon", term.Significant(c.Embodied, 3)+" kg CO2e per GB of flash",
		"Tannu and Nair, arXiv 2207.10793")
	add("costs.grid", "grid carbon", term.Significant(c.Grid, 3)+" kg CO2e per kWh", "assumed")
	for i := range p.Drives {
		list = append(list, p.groupAssumptions(i)...)
	}
	return list
}

// groupAssumptions returns the assumptions of a group of drives.
func (p *Plan) groupAssumptions(i int) (list []Assumption) {
	g := &p.Drives[i]
	m, estimates, err := p.known(g, i)
	if err != nil {
		return nil
	}
	of := g.Name
	if of == "" {
		of = m.Name
	}
	const listed, stated, estimated = "the catalogue", "stated in the plan", "an estimate"
	guessed := func(figures ...catalogue.Figure) bool {
		return slices.ContainsFunc(estimates,
			func(e catalogue.Estimate) bool { return slices.Contains(figures, e.Figure) })
	}
	from := func(figures ...catalogue.Figure) string {
		if guessed(figures...) {
			return estimated
		}
		return listed
	}
	add := func(name, value string, given bool, otherwise string) {
		if given {
			otherwise = stated
		}
		list = append(list, Assumption{Of: of, Name: name, Value: value, Source: otherwise})
	}
	dated := from(catalogue.PriceFigure)
	if m.PriceWhen != "" {
		dated += ", " + m.PriceWhen
	}
	add("price", term.Money(m.Price), g.Price != nil, dated)
	add("power", fmt.Sprintf("%s W active, %s W idle", term.Significant(m.ActiveW, 3), term.Significant(m.IdleW, 3)),
		g.ActiveW != nil && g.IdleW != nil, from(catalogue.ActiveFigure, catalogue.IdleFigure))
	for _, e := range estimates {
		show := func(v float64) string { return term.Significant(v, 3) }
		if e.Figure == catalogue.PriceFigure {
			show = term.Money
		}
		list = append(list, Assumption{Of: of, Name: e.Figure.String() + ", estimated", Value: show(e.Value),
			Source: fmt.Sprintf("estimate: median of %d other drives in the catalogue; their range gives %s to %s",
				e.Drives, show(e.Low), show(e.High))})
	}
	switch {
	case g.Duty != nil:
		add("active", fmt.Sprintf("%v of the time", *g.Duty), true, "")
	case p.Calendar():
		add("active", fmt.Sprintf("%v of the share of IOPS in use", units.Fraction(tco.DefaultDuty)), false, "assumed")
	default:
		add("active", fmt.Sprintf("%v of the time", units.Fraction(tco.DefaultDuty)), false, "assumed")
	}
	afr, failing := m.FailureRate(), "2 million hours MTBF, as in data sheets"
	if m.AFR > 0 {
		failing = listed
	}
	if g.AFR != nil {
		afr = float64(*g.AFR)
	}
	add("failures", term.Significant(100*afr, 3)+" % a year", g.AFR != nil, failing)
	if m.Disk {
		return list
	}
	rated, source := m.Amplification().At(0), "closed form for random writes at the drive's spare space"
	if m.RandomWAF > 0 {
		source = listed
	}
	if g.RatedWAF != 0 {
		rated, source = g.RatedWAF, stated
	}
	if p.Mode == tco.Paper {
		add("endurance", term.Significant(m.TBW, 4)+" TB written to flash", g.TBW != nil,
			from(catalogue.EnduranceFigure))
	} else {
		list = append(list, Assumption{Of: of, Name: "endurance",
			Value: fmt.Sprintf("%s TB, rated at a WAF of %.2f", term.Significant(m.TBW, 4), rated),
			Source: strings.Join(
				unique(map[bool]string{true: stated, false: from(catalogue.EnduranceFigure)}[g.TBW != nil], source),
				"; ")})
	}
	list = append(list, Assumption{Of: of, Name: "write amplification", Value: p.amplificationText(i, &m),
		Source: amplificationSource(g)})
	if g.Latency != nil {
		value, source := fmt.Sprintf("%d points", len(g.Latency.Points)), stated
		if g.Latency.Simulate != "" {
			value, source = g.Latency.Simulate+" under the workloads' mix", "simulated"
		}
		add("p99 under load", value, false, source)
	} else {
		add("p99 under load", "not needed", false, "no workload has a p99")
	}
	return list
}

func unique(list ...string) []string {
	if len(list) == 2 && list[0] == list[1] {
		return list[:1]
	}
	return list
}

// amplificationText describes a group's write amplification under its workloads.
func (p *Plan) amplificationText(i int, m *catalogue.Model) string {
	g := &p.Drives[i]
	x := m.Spared(float64(g.Spare))
	spare := fmt.Sprintf("at %s spare space", term.Percent(x.Alpha()-1))
	a := g.WAF
	switch {
	case a == nil:
		return fmt.Sprintf("%.2f for random to 1 for sequential writes, %s", x.Amplification().At(0), spare)
	case a.Constant != 0:
		return term.Significant(a.Constant, 4)
	case a.Table != "":
		return "the table " + a.Table
	case a.Points != nil:
		return fmt.Sprintf("%d points", len(a.Points))
	case a.Trace != "":
		return fmt.Sprintf("simulated with the writes of %s, %s", a.Trace, spare)
	case a.Simulate != 0:
		text := fmt.Sprintf("simulated with %d blocks and the workloads' own writes, %s", a.Simulate, spare)
		if c, ok := p.simulated.alone[i]; ok {
			text += fmt.Sprintf("; %.2f to %.2f with each drive's workloads", c[0], c[1])
		}
		return text
	}
	return fmt.Sprintf("%s for random to %s for sequential writes", term.Significant(a.Random, 4),
		term.Significant(max(1, a.Sequential), 4))
}

func amplificationSource(g *Group) string {
	switch a := g.WAF; {
	case a == nil:
		return "minTCO's equation 7 with the closed form for greedy collection"
	case a.Simulate != 0, a.Trace != "":
		return "the FTL simulator"
	}
	return "stated in the plan"
}
