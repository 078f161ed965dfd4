package reproduce

import (
	"context"
	"strconv"
	"strings"
)

func snisFig5() Experiment {
	return Experiment{ID: "snis-fig5", Title: "Throughput of requests in each iteration, F_t_h", Paper: snisPaper + "figure 5", run: runSnisFig5}
}

func runSnisFig5(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	heavy := &snisRows[snisHeavy]
	trials := []variant{{label: heavy.tag, changes: heavy.changes()}}
	if err := runTrials(ctx, o, r, "snis-system", trials); err != nil {
		return nil, err
	}
	m, _ := trials[0].result.Matrix("snis.throughput")
	share := make([]float64, len(m.Rows))
	for i, row := range m.Rows {
		var err error
		if share[i], err = strconv.ParseFloat(strings.TrimPrefix(row, "p"), 64); err != nil {
			return nil, err
		}
	}
	for k, name := range m.Cols {
		c := Curve{Panel: heavy.tag, Name: "iteration " + name, XLabel: "throughput, MB/s", YLabel: "share of requests, %", Y: share}
		for i := range m.Rows {
			c.X = append(c.X, m.V[i][k]/1e6)
		}
		r.Curves = append(r.Curves, c)
	}
	for i, row := range m.Rows {
		change := 0.0
		for k := 2; k < len(m.Cols); k++ {
			change = max(change, 100*distance(m.V[i][k], m.V[i][k-1]))
		}
		r.Rows = append(r.Rows, Row{Label: "throughput " + row, Metric: "largest change after iteration 1", Ours: change, Unit: "%", OK: change < 10,
			Expect: "footnote: the curves of all iterations overlap"})
	}
	return r, nil
}

// distance is the paper's relative distance RD(x, y).
func distance(x, y float64) float64 { return max(x-y, y-x) / max(x, y, 1e-300) }
