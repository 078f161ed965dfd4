package reproduce

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"farflash/result"
	"farflash/scenario/shape"
)

func snisFig6() Experiment {
	return Experiment{ID: "snis-fig6", Title: "Pauses of spine switches against sending rates, F_t_h",
		Paper: snisPaper + "figure 6", inputs: snisInputs, run: runSnisFig6}
}

// runSnisFig6 runs three variants, because the paper states neither when its switches send PAUSE frames nor how bursty
// its arrivals are, and both decide whether any PAUSE reaches a spine: the preset, with the fixed threshold of
// ns3-rdma's switches, 20 cells of 1030 B; the dynamic threshold of ns3-rdma's sample; and the preset with a write
// every 5 us, twice table II's rate.
func runSnisFig6(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	heavy := &snisRows[snisHeavy]
	dynamic := append(heavy.changes(), shape.Change{Path: "fabric.pfc.threshold", Value: "dynamic"})
	faster := append(heavy.changes(),
		shape.Change{Path: "workload[0].synthetic.writes.interarrival.mean", Value: "5us"})
	trials := []variant{
		{label: "as the preset", changes: heavy.changes()},
		{label: "dynamic PFC threshold", changes: dynamic},
		{label: "a write every 5 us", changes: faster},
	}
	if err := runTrials(ctx, o, r, "snis-system", trials); err != nil {
		return nil, err
	}
	for _, t := range trials {
		f := fig6Of(t.result)
		for _, c := range []struct {
			name, unit string
			y          []float64
		}{{"pauses of spines", "time paused, us", f.paused}, {"writes", "sending rate, Gbit/s", f.writes},
			{"reads", "sending rate, Gbit/s", f.reads}} {
			r.Curves = append(r.Curves,
				Curve{Panel: t.label + ": " + c.unit, Name: c.name, XLabel: "time, ms", YLabel: c.unit, X: f.at,
					Y: c.y})
		}
		// The reads demand 18.7 Gbit/s of a link of 10 Gbit/s, so that they fill it is an input.
		r.tell(t.label, "reads' rate while the target sends", f.steady, "Gbit/s", "the link's capacity in the paper")
		r.Rows = append(r.Rows,
			Row{Label: t.label, Metric: "pauses of spine ports", Ours: f.pauses, Unit: "count", Meets: above(0),
				Quote:  "massive PAUSE packets are generated",
				Expect: "any; the paper plots hundreds per interval and prints no number",
				Because: "at table II's load writes fill 88 % of the target's link, and their bursts end before a " +
					"dynamic threshold of 3.9 MB"},
			Row{Label: t.label, Metric: "writes' rate against pauses", Ours: f.correlation, Unit: "correlation",
				Meets: above(0.5),
				Quote: "the trend of the sending rate for write requests matches the spikes of the number of PAUSE " +
					"packets",
				Expect:  "Pearson's coefficient above 0.5",
				Because: "no pauses, or pauses in other slices of time than the writes' peaks"})
	}
	return r, nil
}

// fig6 is the data of the figure, over slices of time.
type fig6 struct {
	at            []float64 // ms, ends of slices
	paused        []float64 // us for which spine ports were paused, summed over ports
	reads, writes []float64 // Gbit/s sent by the target and by the initiators
	pauses        float64   // PAUSE frames that spines received
	correlation   float64   // Pearson's, of writes and paused, while there are writes
	steady        float64   // median of reads, Gbit/s
}

func fig6Of(x *result.Result) fig6 {
	var f fig6
	use, _ := x.Matrix("fabric.link.utilisation")
	paused, _ := x.Matrix("fabric.link.paused")
	totals, _ := x.Matrix("fabric.link.totals")
	n := len(use.Cols)
	width := make([]float64, n) // s
	from := 0.0
	for i, c := range use.Cols {
		// Columns are named by the run itself, so parsing cannot fail.
		end, _ := strconv.ParseFloat(c, 64)
		f.at = append(f.at, end*1e3)
		width[i], from = end-from, end
	}
	f.paused, f.reads, f.writes = make([]float64, n), make([]float64, n), make([]float64, n)
	for k, port := range use.Rows {
		switch {
		case strings.HasPrefix(port, "spine"):
			f.pauses += totals.V[k][1]
			for i := range n {
				f.paused[i] += float64(paused.V[k][i] * width[i] * 1e6)
			}
		case strings.HasPrefix(port, "h255->"):
			for i := range n {
				f.reads[i] = 10 * use.V[k][i]
			}
		case strings.HasPrefix(port, "h"):
			for i := range n {
				f.writes[i] += float64(10 * use.V[k][i])
			}
		}
	}
	// Restrict to the period with writes: after it only the backlog of reads remains.
	until := n
	for until > 1 && f.writes[until-1] < 0.01 {
		until--
	}
	f.correlation = pearson(f.writes[:until], f.paused[:until])
	f.steady = median(f.reads[:until])
	return f
}

// median returns the median of values without reordering them.
func median(x []float64) float64 {
	s := append([]float64(nil), x...)
	slices.Sort(s)
	return s[len(s)/2]
}

// pearson is the correlation coefficient, NaN if either is constant.
func pearson(x, y []float64) float64 {
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	var xy, xx, yy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xy, xx, yy = xy+float64(dx*dy), xx+float64(dx*dx), yy+float64(dy*dy)
	}
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	return xy / math.Sqrt(xx*yy)
}
