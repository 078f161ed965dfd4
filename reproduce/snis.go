package reproduce

import (
	"context"
	"fmt"

	"farflash/result"
	"farflash/shape"
)

// The experiments of SNIS' section IV: storage and network in turns. All run the preset
// snis-system, whose comments say what the paper leaves open and what stands in for it, with the sizes and
// times of table II. docs/validation/snis.md has how far each open point moves the answers.

const snisPaper = "Jia et al., SNIS: Storage-Network Iterative Simulation for Disaggregated Storage Systems, IPCCC 2022, "

// snisRow is a row of table II: KB are 1000 B, times in us, loads in Gbit/s.
type snisRow struct {
	tag                                string
	readSize, writeSize, readGap, wGap float64
	readLoad, writeLoad, iterations    float64
}

var snisRows = []snisRow{
	{"F_t_l", 28, 11, 57, 54, 3.93, 1.63, 2},
	{"F_t_m", 27, 12, 17, 17, 12.71, 5.65, 7},
	{"F_t_h", 28, 11, 12, 10, 18.67, 8.80, 3},
	{"F_s_m", 80, 34, 60, 53, 10.67, 5.06, 5},
	{"F_s_h", 110, 46, 60, 52, 14.67, 7.08, 3},
}

// snisHeavy is F_t_h, which overloads its target's link.
const snisHeavy = 2

// changes are what makes the preset a row.
func (r *snisRow) changes() []shape.Change {
	const at = "workload[0].synthetic."
	return []shape.Change{
		{Path: "name", Value: "snis-" + r.tag},
		{Path: at + "reads.size.mean", Value: fmt.Sprintf("%gKB", r.readSize)}, {Path: at + "reads.interarrival.mean", Value: fmt.Sprintf("%gus", r.readGap)},
		{Path: at + "writes.size.mean", Value: fmt.Sprintf("%gKB", r.writeSize)}, {Path: at + "writes.interarrival.mean", Value: fmt.Sprintf("%gus", r.wGap)},
	}
}

func value(r *result.Result, name string) float64 {
	m, _ := r.Metric(name)
	return m.Value
}

func number(x float64) *float64 { return &x }

// load is the mean size over the mean time between requests, in Gbit/s, as table II has it: of what was sent, not
// of what got through.
func load(r *result.Result, op string, gap float64) float64 {
	return value(r, op+".bytes") / value(r, op+".count") * 8 / gap / 1e3
}

func snisTable2() Experiment {
	return Experiment{ID: "snis-table2", Title: "Synthetic traces and the iterations until storage and network agree", Paper: snisPaper + "table II", run: runSnisTable2}
}

// Lengths of F_t_h beside the table's: its target's link is overloaded, so what it comes to depends on
// how long it runs.
var snisLengths = []int{5000, 20000, 100000}

func runSnisTable2(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	var trials []variant
	for i := range snisRows {
		trials = append(trials, variant{label: snisRows[i].tag, changes: snisRows[i].changes()})
	}
	heavy := &snisRows[snisHeavy]
	for _, n := range snisLengths {
		// To convergence only: what is asked is the number of iterations.
		trials = append(trials, variant{label: fmt.Sprintf("%s, %d requests", heavy.tag, n), changes: append(heavy.changes(),
			shape.Change{Path: "workload[0].synthetic.requests", Value: fmt.Sprint(n)}, shape.Change{Path: "coupling.iterative.full", Value: "false"})})
	}
	if err := runTrials(ctx, o, r, "snis-system", trials); err != nil {
		return nil, err
	}
	for i := range snisRows {
		row, x := &snisRows[i], trials[i].result
		for _, l := range []struct {
			op    string
			paper float64
			gap   float64
		}{{"read", row.readLoad, row.readGap}, {"write", row.writeLoad, row.wGap}} {
			ours := load(x, l.op, l.gap)
			r.Rows = append(r.Rows, Row{Label: row.tag, Metric: l.op + " load", Paper: number(l.paper), Ours: ours, Unit: "Gbit/s",
				Expect: "within 8 %: sizes are drawn", OK: within(ours, l.paper, 0.08)})
		}
		r.Rows = append(r.Rows, iterationsRow(row.tag, number(row.iterations), x))
	}
	for i, n := range snisLengths {
		r.Rows = append(r.Rows, iterationsRow(fmt.Sprintf("%s, %d requests", heavy.tag, n), nil, trials[len(snisRows)+i].result))
	}
	return r, nil
}

func iterationsRow(label string, paper *float64, x *result.Result) Row {
	return Row{Label: label, Metric: "iterations", Paper: paper, Ours: value(x, "snis.iterations"), Unit: "count", OK: value(x, "snis.converged") == 1,
		Expect: "text: all converge; how soon rests on what is not printed: docs/validation/snis.md"}
}

func within(x, want, share float64) bool { return x >= want*(1-share) && x <= want*(1+share) }

// convergence is figure 4 or 7: the distances between iterations.
func convergence(id, figure, title string, rows []int) Experiment {
	return Experiment{ID: id, Title: title, Paper: snisPaper + figure, run: func(ctx context.Context, o Options) (*Report, error) {
		r := &Report{}
		var trials []variant
		for _, i := range rows {
			trials = append(trials, variant{label: snisRows[i].tag, changes: snisRows[i].changes()})
		}
		if err := runTrials(ctx, o, r, "snis-system", trials); err != nil {
			return nil, err
		}
		for k, t := range trials {
			var conv []float64
			for _, c := range []struct{ name, label string }{{"snis.conv_c", "Conv_C"}, {"snis.rd_mean", "mean"}, {"snis.rd_median", "median"}, {"snis.rd_p90", "90th percentile"}} {
				s, ok := t.result.SeriesOf(c.name)
				if !ok {
					return nil, fmt.Errorf("%s: a run in turns has no series %s", t.label, c.name)
				}
				y := make([]float64, len(s.V))
				for i, v := range s.V {
					y[i] = 100 * v
				}
				r.Curves = append(r.Curves, Curve{Panel: fmt.Sprintf("(%c) %s", 'a'+k, t.label), Name: c.label, XLabel: "iteration", YLabel: "relative distance, %", X: s.T, Y: y})
				if c.name == "snis.conv_c" {
					conv = y
				}
			}
			for i, v := range conv {
				row := Row{Label: fmt.Sprintf("%s, iteration %d", t.label, i+1), Metric: "Conv_C", Ours: v, Unit: "%", OK: true, Expect: "plotted, not printed"}
				switch {
				case rows[k] == 0 && i == 1:
					row.Paper, row.OK, row.Expect = number(4.5), v < 10, "text: around 4.5 %, converged; so below 10 %"
				case i == len(conv)-1:
					row.OK, row.Expect = v < 10, "text: all converge, below 10 %"
				}
				r.Rows = append(r.Rows, row)
			}
		}
		return r, nil
	}}
}

func snisFig4() Experiment {
	return convergence("snis-fig4", "figure 4", "Convergence under light, moderate and heavy arrivals", []int{0, 1, 2})
}

func snisFig7() Experiment {
	return convergence("snis-fig7", "figure 7", "Convergence under moderate and large sizes", []int{3, 4})
}
