package report

import (
	"farflash/report/paper"
	"farflash/study"
)

// The figures of reports in the forms that papers print.

// RunPlots returns the distributions of latencies, or of flow completion times, of one run or of several side by side.
func RunPlots(runs []Run) []paper.Plot {
	runs = labelled(runs)
	var out []paper.Plot
	add := func(suffix, what, things string) {
		for _, g := range groups(runs, []string{suffix}, hasHistogram) {
			name := "latency"
			if g.op != "" {
				name = g.op + "-" + name
			}
			out = append(out, paper.Plot{Name: name, Chart: g.cumulative(what, things)})
		}
	}
	add(".latency", "latency", "requests")
	if g := flowTimes(runs); len(g.curves) > 0 {
		out = append(out, paper.Plot{Name: "fct", Chart: g.cumulative(flowTime, "flows")})
	}
	return out
}

// CurvePlots returns the curves of a sweep for the metrics that patterns select, or for the default ones. Limits are
// drawn across the charts of their metrics.
func CurvePlots(c *study.Curves, patterns []string, limits map[string]float64) []paper.Plot {
	var out []paper.Plot
	for _, name := range c.Main(patterns) {
		if x, _, help := curveChart(c, name, limits); help != "" {
			out = append(out, paper.Plot{Name: name, Chart: x})
		}
	}
	return out
}

// EffectPlots returns the forest plots of a comparison, one for each arm but the first.
func EffectPlots(x *study.Effects) []paper.Plot {
	var out []paper.Plot
	for i := range x.Pairs {
		letter := ArmLetter(x.Pairs[i].Arm)
		if c, ok := forestChart(x, &x.Pairs[i], letter); ok {
			name := "effects"
			if len(x.Pairs) > 1 {
				name += "-" + letter
			}
			out = append(out, paper.Plot{Name: name, Chart: c})
		}
	}
	return out
}
