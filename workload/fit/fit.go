// Package fit turns the measurements of [characterise] into parameters with which [synth] generates a similar workload.
//
// [Synthetic] is its main function. Mean, squared coefficient of variation, skewness and lag-1 autocorrelation are
// matched as far as a hyperexponential, an MMPP(2) or a gamma distribution can have them; measurements outside the
// feasible range are replaced by the nearest feasible ones, and a note records what was given up. Runs are matched by
// the share of sequential bytes, the address space by the footprint.
//
// The package leaves out trims and flushes, the popularity of addresses (they are uniform), dependence between reads
// and writes, and correlation beyond lag 1.
package fit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/workload/characterise"
	"farflash/workload/synth"
)

// Result is a synthetic workload, with notes on how it differs from the measured one, one sentence each.
type Result struct {
	Config synth.Config
	Notes  []string
}

// fitter collects notes.
type fitter struct {
	notes []string
}

func (f *fitter) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// Synthetic fits a synthetic workload with the same number of requests.
func Synthetic(m characterise.Result) (Result, error) {
	var f fitter
	cfg := synth.Config{Requests: m.Reads.Count + m.Writes.Count, Seed: 1}
	if cfg.Requests == 0 {
		return Result{}, fmt.Errorf("no reads and no writes to fit")
	}
	space := f.space(&m)
	cfg.Reads = f.flow(block.Read, &m.Reads, space)
	cfg.Writes = f.flow(block.Write, &m.Writes, space)
	if m.Span == 0 && cfg.Requests > 1 {
		f.note("all requests arrive at once: the fit is a closed loop of queue depth 1")
		cfg.QueueDepth = 1
		for _, flow := range []*synth.Flow{cfg.Reads, cfg.Writes} {
			if flow != nil {
				flow.Interarrival = synth.Interarrival{}
			}
		}
		if cfg.Reads != nil && cfg.Writes != nil {
			cfg.ReadFraction = units.Fraction(float64(m.Reads.Count) / float64(cfg.Requests))
		}
	}
	if n := m.Trims + m.Flushes; n > 0 {
		f.note("%d trims and flushes are left out", n)
	}
	if m.Volumes > 1 {
		f.note("%d volumes become one", m.Volumes)
	}
	if _, err := synth.New(cfg); err != nil {
		return Result{}, fmt.Errorf("the fit cannot be made: %w", err)
	}
	return Result{cfg, f.notes}, nil
}

// space solves for the space of uniform addresses that reproduces the measured number of distinct bytes: B bytes at
// random places in a space of M touch M(1-exp(-B/M)) of it.
func (f *fitter) space(m *characterise.Result) units.Bytes {
	bytes := float64(m.Reads.Bytes + m.Writes.Bytes)
	distinct := float64(m.Footprint)
	low, high := distinct, max(float64(m.HighestByte), distinct)
	for range 100 {
		middle := low + float64((high-low)/2)
		if -middle*math.Expm1(-bytes/middle) < distinct {
			low = middle
		} else {
			high = middle
		}
	}
	largest := float64(max(m.Reads.SizeMax, m.Writes.SizeMax))
	const step = 1 << 20
	return units.Bytes(math.Ceil(max(high, largest)/step) * step)
}

// flow fits the requests of one kind.
func (f *fitter) flow(op block.Op, side *characterise.Side, space units.Bytes) *synth.Flow {
	if side.Count == 0 {
		return nil
	}
	name := op.String() + "s"
	flow := &synth.Flow{Size: f.size(name, side), Addresses: f.addresses(name, side, space)}
	switch mean := float64(side.Interarrival.Mean); {
	case side.Count == 1:
		f.note("%s: one request has no inter-arrival time; 1 s is used", name)
		flow.Interarrival = synth.Interarrival{Mean: units.Second}
	default:
		flow.Interarrival.Mean = max(units.Microseconds(mean), units.Picosecond)
		flow.Interarrival.Shape = f.shape(name+"' inter-arrival times", &side.Interarrival, side.Count-1)
	}
	return flow
}

// shape returns the simplest distribution with the measured moments of n values.
func (f *fitter) shape(what string, m *characterise.Figure, n int64) synth.Shape {
	scv, skewness, acf1 := float64(m.SCV), float64(m.Skewness), float64(m.ACF1)
	noise := 2 / math.Sqrt(float64(n)) // two standard errors of the autocorrelation of independent values
	if math.IsNaN(scv) || scv < 1e-9 {
		return synth.Shape{Kind: synth.Constant}
	}
	if math.Abs(scv-1) <= noise*math.Sqrt2 && math.Abs(acf1) <= noise {
		// The SCV of n exponential values has a standard error of at least sqrt(2/n).
		f.note("%s: an SCV of %.4g is 1 within its error: exponential", what, scv)
		return synth.Shape{Kind: synth.Exponential}
	}
	if scv <= 1 {
		if math.Abs(acf1) > noise {
			f.note("%s: a lag-1 autocorrelation of %.3g is not matched; with an SCV of %.4g the fit has none", what,
				acf1, scv)
		}
		if own := 2 * math.Sqrt(scv); math.Abs(skewness-own) > 0.1*own {
			f.note("%s: skewness is %.3g instead of %.3g", what, own, skewness)
		}
		return synth.Shape{Kind: synth.Gamma, SCV: scv}
	}
	shape := synth.Shape{Kind: synth.Hyper, SCV: scv}
	if bound := synth.SkewnessBound(scv); skewness > bound*(1+1e-9) {
		shape.Skewness = skewness
	} else {
		f.note("%s: skewness %.3g is out of reach at an SCV of %.4g (it must exceed %.4g); balanced means are used",
			what, skewness, scv, bound)
	}
	if _, err := shape.Process(1); err != nil {
		f.note("%s: %v; balanced means are used", what, err)
		shape.Skewness = 0
	}
	switch most := (1 - 1/scv) / 2; {
	case acf1 < -noise:
		f.note("%s: a negative lag-1 autocorrelation of %.3g is not matched", what, acf1)
	case acf1 <= noise:
	case acf1 >= 0.99*most:
		f.note("%s: a lag-1 autocorrelation of %.3g is lowered to %.3g, near the maximum at an SCV of %.4g",
			what, acf1, 0.99*most, scv)
		shape.Kind, shape.ACF1 = synth.Modulated, 0.99*most
	default:
		shape.Kind, shape.ACF1 = synth.Modulated, acf1
	}
	return shape
}

// size fits sizes between the measured minimum and maximum.
func (f *fitter) size(name string, side *characterise.Side) synth.Size {
	sector := units.Sector
	noted := len(f.notes)
	size := synth.Size{
		Mean:    units.Bytes(math.Round(float64(side.Size.Mean))),
		Granule: max(units.Bytes(side.SizeGranule), sector),
		Shape:   f.shape(name+"' sizes", &side.Size, side.Count),
	}
	size.Granule = min(size.Granule, units.MiB)
	size.Min = max(units.Bytes(side.SizeMin)/size.Granule*size.Granule, size.Granule)
	size.Max = max((units.Bytes(side.SizeMax)+size.Granule-1)/size.Granule*size.Granule, size.Min)
	if size.Mean < size.Min {
		f.note("%s: sizes below 512 B become 512 B", name)
		size.Mean = size.Min
	}
	if size.Kind == synth.Constant || size.Min == size.Max {
		size.Shape = synth.Shape{Kind: synth.Constant}
		return size
	}
	fitted, scv := widen(size, float64(side.Size.SCV))
	if fitted.Shape != size.Shape {
		// Notes about the shape that clamping spoils no longer apply, except those about correlation.
		own := slices.DeleteFunc(slices.Clone(f.notes[noted:]),
			func(n string) bool { return !strings.Contains(n, "autocorrelation") })
		f.notes = append(f.notes[:noted], own...)
		f.note("%s' sizes: an SCV of %.4g becomes %.4g within %v..%v; skewness "+
			"is not matched", name, fitted.SCV, scv, size.Min, size.Max)
	}
	if want := float64(side.Size.SCV); math.Abs(scv-want) > 0.05*want {
		f.note("%s: sizes have an SCV of %.4g instead of %.4g, because they are clamped to %v..%v", name, scv, want,
			size.Min, size.Max)
	}
	return fitted
}

// widen compensates for the variance lost to clamping: it raises the requested SCV until the clamped sizes have the
// measured one. Raising it without bound does not help, because the variance of a very skewed distribution lies in a
// few huge values, which clamping removes. So it searches for the smallest sufficient SCV, first with balanced means,
// then with low skewness, whose variance lies in many small sizes.
func widen(size synth.Size, want float64) (fitted synth.Size, scv float64) {
	fitted, scv = size, clampedSCV(size)
	for _, skewness := range []float64{0, 1.1} { // multiples of the minimum skewness; 0: balanced means
		if math.Abs(scv-want) <= 0.01*want {
			break
		}
		if trial, got := leastSCV(size, want, skewness); math.Abs(got-want) < math.Abs(scv-want) {
			fitted, scv = trial, got
		}
	}
	return fitted, scv
}

// clampedSCV is the SCV of the drawn sizes, NaN if they are infeasible.
func clampedSCV(s synth.Size) float64 {
	g, err := synth.New(synth.Config{Reads: &synth.Flow{Size: s, Addresses: synth.Addresses{Space: units.TiB * 64}},
		QueueDepth: 1})
	if err != nil {
		return math.NaN()
	}
	return g.Sizes(block.Read).SCV
}

// leastSCV finds the smallest requested SCV for which the drawn sizes have the wanted one, or come nearest to it.
func leastSCV(size synth.Size, want, skewness float64) (best synth.Size, got float64) {
	got = math.Inf(1)
	try := func(scv float64) float64 {
		trial := size
		trial.Shape = synth.Shape{SCV: scv, ACF1: size.ACF1}
		if scv > 1 {
			trial.Skewness = skewness * synth.SkewnessBound(scv)
		}
		v := clampedSCV(trial)
		if math.Abs(v-want) < math.Abs(got-want) {
			best, got = trial, v
		}
		return v
	}
	const step = 1.2
	least := 1e-4
	if size.ACF1 != 0 {
		least = (1 + 1e-6) / (1 - 2*size.ACF1) // the minimum for an MMPP(2) with that correlation
	}
	for scv, before := least, math.NaN(); scv < 1e4; scv *= step {
		v := try(scv)
		if v >= want {
			if before < want {
				for low, high := scv/step, scv; high/low > 1+1e-9; {
					middle := math.Sqrt(low * high)
					if try(middle) < want {
						low = middle
					} else {
						high = middle
					}
				}
			}
			break
		}
		before = v
	}
	return best, got
}

// addresses fits the runs.
func (f *fitter) addresses(name string, side *characterise.Side, space units.Bytes) synth.Addresses {
	align := min(max(units.Bytes(side.Alignment), units.Sector), 64*units.KiB)
	if side.Alignment == 0 {
		align = 4 * units.KiB
	}
	a := synth.Addresses{Space: space, Align: min(align, space)}
	ratios := []struct {
		streams int
		ratio   float64
	}{{1, float64(side.SequentialRatio.One)}, {4, float64(side.SequentialRatio.Eight)},
		{16, float64(side.SequentialRatio.ThirtyTwo)}}
	// Half as many concurrent runs as were followed, so that finished runs do not displace active ones.
	for _, r := range ratios {
		if r.ratio >= 0.95*ratios[2].ratio {
			if r.ratio > 0 {
				a.Streams = r.streams
				a.RunLength = min(1/math.Sqrt(max(1-r.ratio, 1e-12)), float64(side.Count))
			}
			break
		}
	}
	if a.RunLength > 1.05 && a.Streams > 1 {
		f.note("%s: runs of %.3g requests, %d at once", name, a.RunLength, a.Streams)
	}
	return a
}
