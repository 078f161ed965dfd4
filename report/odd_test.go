package report

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/patience"
	"farflash/internal/term"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/report/paper"
	"farflash/result"
	"farflash/study"
)

// odd returns a result with random names of the vocabulary in random order, with values that no run produces: a file
// written by another program, or by a later version.
func odd(seed uint64) *result.Result {
	g := rand.New(rand.NewPCG(seed, 1))
	v := trial.Vocabulary()
	r := &result.Result{Schema: result.Schema, Digest: "d", Seed: seed,
		SimulatedS: []float64{0, 1, -1, 1e-12, 1e12}[g.IntN(5)], Name: []string{"", "é", "x"}[g.IntN(3)]}
	if g.IntN(2) == 0 {
		r.WarmUp = result.WarmUp{UntilS: g.Float64(), Explain: "it"}
	}
	value := func() float64 {
		return []float64{0, 0, 1, -1, 0.5, 3, 1e-300, 1e300, -1e300, 1e9, g.NormFloat64() * 1000}[g.IntN(11)]
	}
	some := func() float64 {
		if g.IntN(4) == 0 {
			return math.NaN()
		}
		return value()
	}
	keep := g.IntN(4) // of four
	for _, d := range v.Metrics.All() {
		if g.IntN(4) <= keep {
			r.Metrics = append(r.Metrics, result.Metric{Name: d.Name, Value: value(), Unit: d.Unit, Help: d.Help})
		}
	}
	for _, s := range v.Scopes {
		for i := range g.IntN(4) {
			for _, d := range s.Metrics {
				if g.IntN(3) <= keep {
					r.Metrics = append(r.Metrics,
						result.Metric{Name: fmt.Sprintf("%s[%d].%s", s.Name, i*g.IntN(40), d.Name), Value: value(),
							Unit: d.Unit, Help: d.Help})
				}
			}
		}
		if g.IntN(2) == 0 {
			r.Parts = append(r.Parts,
				result.Parts{Scope: s.Name,
					Names: []string{"", "é", "a rather long name of a part that goes on and on"}[:g.IntN(4)]})
		}
	}
	for _, name := range []string{"ssd[2].waf", "ssd[0].waf", "ssd[0].utilisation.die", "ssd[2].utilisation.die",
		"ssd[1].waf", "ssd[1].utilisation.die", "flow[1].x", "nothing", "ssd[x].waf", "[3].waf"} {
		r.Metrics = append(r.Metrics,
			result.Metric{Name: name, Value: value(), Unit: []string{"ratio", "parsec", ""}[g.IntN(3)]})
	}
	g.Shuffle(len(r.Metrics), func(i, k int) { r.Metrics[i], r.Metrics[k] = r.Metrics[k], r.Metrics[i] })
	for _, d := range v.Series.All() {
		if g.IntN(4) > keep {
			continue
		}
		s := result.Series{Name: d.Name, Unit: d.Unit, TimeUnit: []string{"s", "iteration", ""}[g.IntN(3)],
			Width: []float64{0, 1, -1, 1e-3}[g.IntN(4)]}
		for i := range g.IntN(5) {
			s.T, s.V = append(s.T, float64(i)*s.Width), append(s.V, some())
		}
		r.Series = append(r.Series, s)
	}
	for _, d := range v.Histograms.All() {
		if g.IntN(4) > keep {
			continue
		}
		h := &stats.Histogram{}
		for range []int{0, 1, 2, 500}[g.IntN(4)] {
			h.Record(units.Duration(math.Exp(g.Float64() * []float64{0, 1, 40}[g.IntN(3)])))
		}
		r.Histograms = append(r.Histograms, result.Histogram{Name: d.Name, H: h})
	}
	for _, d := range v.Matrices.All() {
		if g.IntN(4) > keep {
			continue
		}
		m := result.Matrix{Name: d.Name, Unit: d.Unit}
		labels := []string{"read", "write", "mean", "p99", "0", "8-15", "", "x -> y", "iterative", "flash", "work"}
		for range g.IntN(4) {
			m.Cols = append(m.Cols, labels[g.IntN(len(labels))])
		}
		for range g.IntN(4) {
			m.Rows = append(m.Rows, labels[g.IntN(len(labels))])
			row := make([]float64, len(m.Cols))
			for k := range row {
				row[k] = some()
			}
			m.V = append(m.V, row)
		}
		r.Matrices = append(r.Matrices, m)
	}
	return r
}

// TestOdd verifies that pages and tables can be drawn from any readable result, for one run and for several, without a
// panic.
func TestOdd(t *testing.T) {
	n := uint64(30)
	if patience.Long(t) {
		n = 2000
	}
	for seed := range n {
		text, err := odd(seed).Encode()
		if err != nil {
			t.Fatal(err)
		}
		r, err := result.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		one := Run{Result: r, Scenario: parseScenario("a: 1\n"), Path: "p"}
		other := Run{Result: odd(seed + 1), Scenario: parseScenario("a: [\n")}
		for what, draw := range map[string]func() error{
			"page":    func() error { return WriteHTML(new(bytes.Buffer), one) },
			"pages":   func() error { return WriteHTML(new(bytes.Buffer), one, other, one) },
			"table":   func() error { return WriteText(new(bytes.Buffer), one, term.Style{}) },
			"figures": func() error { RunPlots([]Run{one, other}); return nil },
		} {
			if err := survived(draw); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, what, err)
			}
		}
	}
}

// survived converts a panic to an error.
func survived(draw func() error) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("%v\n%s", x, debug.Stack())
		}
	}()
	return draw()
}

// TestOddStudies does the same for the contents of study folders.
func TestOddStudies(t *testing.T) {
	for seed := range uint64(40) {
		g := rand.New(rand.NewPCG(seed, 2))
		value := func() float64 {
			return []float64{0, 0, 1, -1, 1e-320, 1e300, -1e300, g.NormFloat64()}[g.IntN(8)]
		}
		d := study.CurvesDocument{Name: []string{"", "é"}[g.IntN(2)], Level: g.Float64(), Reps: g.IntN(3)}
		n := 1
		for range 1 + g.IntN(3) {
			a := study.Axis{Path: []string{"", "a.b", "c", "é"}[g.IntN(4)] + fmt.Sprint(len(d.Axes)),
				Geometric: g.IntN(2) == 0}
			for range 1 + g.IntN(9) {
				a.Values = append(a.Values,
					[]string{"1", "2", "-1", "0", "1e30", "greedy", "5%", "", "10us"}[g.IntN(9)])
			}
			d.Axes = append(d.Axes, a)
			n *= len(a.Values)
		}
		for i := range n {
			p := study.PointDocument{Values: map[string]string{}, Done: g.IntN(3), Pending: g.IntN(2),
				Metrics: map[string]study.IntervalDocument{}}
			rest := i
			for k := len(d.Axes) - 1; k >= 0; k-- {
				p.Values[d.Axes[k].Path] = d.Axes[k].Values[rest%len(d.Axes[k].Values)]
				rest /= len(d.Axes[k].Values)
			}
			for _, name := range []string{"read.latency.p99", "ssd.waf", "x", ""} {
				if g.IntN(5) > 0 {
					m := study.IntervalDocument{Mean: value(), N: g.IntN(4),
						Unit: []string{"us", "ratio", "parsec"}[g.IntN(3)]}
					if g.IntN(2) == 0 {
						h := value()
						m.Half = &h
					}
					p.Metrics[name] = m
				}
			}
			if g.IntN(9) == 0 {
				p.Failed = append(p.Failed, study.Failure{Err: "out of paper"})
			}
			d.Points = append(d.Points, p)
		}
		x := &study.Effects{Test: study.DefaultTest(), Seeds: []uint64{1, 2, 5}[:g.IntN(4)]}
		for i := range 1 + g.IntN(30) {
			x.Arms = append(x.Arms,
				study.ArmSummary{Label: fmt.Sprint(i), Scenario: []string{"", "a: 1", "a: ["}[g.IntN(3)]})
			if i == 0 {
				continue
			}
			pair := study.Pair{Arm: i, Family: g.IntN(4), Explored: g.IntN(3), OnlyA: []string{"a"}}
			for _, name := range []string{"read.latency.p99", "ssd.waf", "é"} {
				e := study.Effect{Name: name, Unit: []string{"us", "parsec"}[g.IntN(2)],
					Verdict: []study.Verdict{study.Identical, study.NoEvidence, study.TooFew, study.Better,
						study.Worse, study.Higher, "odd"}[g.IntN(7)],
					Adjusted: value(), More: g.IntN(3) - 1, Primary: name != "é" || g.IntN(2) == 0,
					Within: g.IntN(2) == 0, Doubtful: g.IntN(2) == 0}
				e.A, e.B, e.Effect.Mean, e.Effect.Half, e.Ratio = value(), value(), value(), math.Abs(value()),
					g.IntN(2) == 0
				pair.Effects = append(pair.Effects, e)
			}
			x.Pairs = append(x.Pairs, pair)
		}
		for what, draw := range map[string]func() error{
			"curves": func() error {
				c, err := d.Curves()
				if err != nil {
					return err
				}
				var all []string
				if g.IntN(2) == 0 {
					all = []string{"*"}
				}
				for _, p := range CurvePlots(c, all, nil) {
					for _, f := range paper.Formats() {
						if err := paper.Write(new(bytes.Buffer), p, paper.Format(f)); err != nil {
							return err
						}
					}
				}
				return errors.Join(WriteCurves(new(bytes.Buffer), c, Study{Metrics: all}),
					WriteCurvesText(new(bytes.Buffer), c, all, term.Style{}))
			},
			"effects": func() error {
				for _, p := range EffectPlots(x) {
					for _, f := range paper.Formats() {
						if err := paper.Write(new(bytes.Buffer), p, paper.Format(f)); err != nil {
							return err
						}
					}
				}
				return errors.Join(WriteEffects(new(bytes.Buffer), x, Study{}),
					WriteEffectsText(new(bytes.Buffer), x, true, g.IntN(2) == 0, term.Style{}))
			},
		} {
			if err := survived(draw); err != nil {
				t.Fatalf("seed %d, %s: %v", seed, what, err)
			}
		}
	}
}
