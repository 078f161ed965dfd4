package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"

	"farflash/numeric/stats"
)

// The Replicast paper's figures 8 and 11: latencies of individual puts, in order of completion and sorted.

// latencies returns a run's latencies in us, in order of completion, without those of the warm-up. If a run has no
// warm-up and steady is set, its first tenth is cut.
func (t *variant) latencies(steady bool) []float64 {
	from := t.result.WarmUp.UntilS
	if from == 0 && steady {
		from = t.result.SimulatedS / 10
	}
	var out []float64
	for k := range t.chunks {
		if d := &t.chunks[k]; d.Done.Seconds() >= from {
			out = append(out, (d.Done - d.Begun).Microseconds())
		}
	}
	return out
}

// byGateway returns the same, steady, separately for each of the given number of gateways.
func (t *variant) byGateway(gateways int) [][]float64 {
	out := make([][]float64, gateways)
	from := max(t.result.WarmUp.UntilS, t.result.SimulatedS/10)
	for k := range t.chunks {
		if d := &t.chunks[k]; d.Done.Seconds() >= from {
			out[d.Gateway] = append(out[d.Gateway], (d.Done - d.Begun).Microseconds())
		}
	}
	return out
}

func replicastFig8() Experiment {
	return Experiment{ID: "replicast-fig8",
		Title: "Latencies of successive chunks: 30 gateways, 90 targets, 16 KiB, disks of 400 MiB/s",
		Paper: replicastPaper + "figure 8", inputs: replicastInputs, run: runReplicastFig8}
}

// shownLags is the largest lag in the chart of autocorrelations.
const shownLags = 120

func runReplicastFig8(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	p := puts{keep: true}
	for _, protocol := range []string{"replicast-m", "uch-ccp"} {
		p.cases = append(p.cases, putCase{30, "16KiB", "400", protocol, "40ms", "60ms"})
	}
	if err := p.run(ctx, o, r); err != nil {
		return nil, err
	}
	var lags []Curve
	for i := range p.cases {
		name := p.cases[i].protocol
		for w := range ways {
			t := &p.of(i, w)[0]
			all, x := t.latencies(false), t.latencies(true)
			dots := Curve{Panel: "puts with " + name + ", " + w.String(), Name: name, XLabel: "chunk",
				YLabel: "put latency", YUnit: "us", Y: all, Dots: true}
			for k := range all {
				dots.X = append(dots.X, float64(k+1))
			}
			r.Curves = append(r.Curves, dots)
			a := stats.Autocorrelation(x, len(x)/4)
			c := Curve{Panel: "autocorrelation of successive latencies, " + w.String(), Name: name,
				XLabel: "lag, chunks", YLabel: "autocorrelation"}
			for k := 1; k <= shownLags && k < len(a); k++ {
				c.X, c.Y = append(c.X, float64(k)), append(c.Y, a[k])
			}
			lags = append(lags, c)
			r.Rows = append(r.Rows, r.patterns(name+", "+w.String(), x, a, t.byGateway(p.cases[i].gateways))...)
		}
	}
	r.Curves = append(r.Curves, lags...)
	return r, nil
}

// patterns are the rows that test whether latencies repeat. The limits are far above the values of independent samples
// and far below those of a sawtooth.
func (r *Report) patterns(label string, x, a []float64, gateways [][]float64) []Row {
	peak, at := 0.0, 0
	for k := 1; k < len(a); k++ {
		if math.Abs(a[k]) > peak {
			peak, at = math.Abs(a[k]), k
		}
	}
	period, share := stats.Strongest(x)
	own := make([]float64, 60)
	for _, g := range gateways {
		for k, v := range stats.Autocorrelation(g, len(own)-1) {
			own[k] += v / float64(len(gateways))
		}
	}
	largest := 0.0
	for _, v := range own[1:] {
		largest = max(largest, math.Abs(v))
	}
	half := len(x) / 2
	r.tell(label, "second half over first", 100*(mean(x[half:])/mean(x[:half])-1), "%",
		"a closed loop has no other trend")
	m := float64(half)
	return []Row{
		{Label: label, Metric: "largest autocorrelation", Ours: peak, Unit: "", Meets: below(0.1), Quote: fig8Says,
			Expect: fmt.Sprintf(
				"below 0.1 at all lags to a quarter of the %d chunks (this one: lag %d; independent values reach "+
					"%.2g, a sawtooth 1)", len(x), at, math.Sqrt(2*math.Log(m/2)/float64(len(x))))},
		{Label: label, Metric: "variance at the strongest period", Ours: 100 * share, Unit: "%", Meets: below(1),
			Quote: fig8Says,
			Expect: fmt.Sprintf(
				"below 1 %% (this one: every %.3g chunks; independent values have %.2g %%, a sawtooth 61 %%)", period,
				100*math.Log(m)/m)},
		{Label: label, Metric: "autocorrelation at a gateway", Ours: largest, Unit: "", Meets: below(0.1),
			Quote: fig8Says,
			Expect: "of each gateway's own successive chunks, as a connection's sawtooth would be: mean over " +
				"gateways, lags to 59, below 0.1"},
	}
}

// fig8Says is the text's statement about figure 8.
const fig8Says = "Neither protocol creates any notable steady-state patterns (such as the TCP sawtooth)"

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func replicastFig11() Experiment {
	return Experiment{ID: "replicast-fig11", Title: "Sorted put latencies: 90 gateways, 90 targets, 16 KiB",
		Paper: replicastPaper + "figure 11", inputs: replicastInputs, run: runReplicastFig11}
}

// runReplicastFig11 uses both kinds of disks, because the paper does not state which one its figure shows.
func runReplicastFig11(ctx context.Context, o Options) (*Report, error) {
	r := &Report{}
	p := puts{keep: true}
	for _, disk := range replicastDisks {
		for _, protocol := range []string{"replicast-m", "uch-ccp"} {
			p.cases = append(p.cases, putCase{90, "16KiB", disk, protocol, "10ms", "50ms"})
		}
	}
	if err := p.run(ctx, o, r); err != nil {
		return nil, err
	}
	for _, disk := range replicastDisks {
		for w := range ways {
			var sorted [2][]float64
			for k, protocol := range []string{"replicast-m", "uch-ccp"} {
				var x []float64
				of := p.of(p.find(90, "16KiB", disk, protocol), w)
				for s := range of {
					x = append(x, of[s].latencies(false)...)
				}
				slices.Sort(x)
				sorted[k] = x
				c := Curve{Panel: fmt.Sprintf("%v, disks of %s MiB/s", w, disk), Name: protocol,
					XLabel: "share of chunks", YLabel: "put latency", YUnit: "us", Shares: true}
				for n := range 1000 {
					share := (float64(n) + 0.5) / 1000
					c.X, c.Y = append(c.X, share), append(c.Y, quantile(x, share))
				}
				r.Curves = append(r.Curves, c)
			}
			r.sortedRows(disk, w, sorted[0], sorted[1])
		}
	}
	return r, nil
}

// sortedRows adds the share of percentiles at which Replicast-M is below UCH-CCP.
func (r *Report) sortedRows(disk string, w way, m, u []float64) {
	below, n := 0, 999
	var not []float64 // percentiles where it is not
	for k := 1; k <= n; k++ {
		share := float64(k) / 1000
		if quantile(m, share) < quantile(u, share) {
			below++
		} else {
			not = append(not, share)
		}
	}
	label := fmt.Sprintf("disks %s, %v", disk, w)
	where := "at all"
	if len(not) > 0 {
		where = fmt.Sprintf("not from p%.4g to p%.4g", 100*not[0], 100*not[len(not)-1])
		if len(not) != int(math.Round(1000*(not[len(not)-1]-not[0])))+1 {
			where += ", with gaps"
		}
	}
	r.Rows = append(r.Rows,
		Row{Label: label, Metric: "percentiles where Replicast-M is below UCH-CCP",
			Ours: 100 * float64(below) / float64(n), Unit: "%", Meets: atLeast(99),
			Quote:  "even for smaller chunks, we see that Replicast-M has consistently lower latency than UCH-CCP",
			Expect: "at least 99 of 100: " + where,
			Because: "the figure's disks are not named; table 3 has a longer mean for Replicast-M with disks of 1000 " +
				"MiB/s, too, 97.0 us against 96.0"})
}

// quantile returns a quantile of sorted values.
func quantile(sorted []float64, share float64) float64 {
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
