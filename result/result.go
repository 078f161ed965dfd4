// Package result holds the findings of a run, writes them to files and reads them back.
//
// Its main types are [Result] (the contents of result.json), [Run] and [Directory] (the files of one run), [Timing]
// (timing.json: everything that may differ between two runs of one digest) and [Condition] (a --fail-if expression).
// Exports for other tools are WriteFio, WriteCSV and WriteGobench here, Parquet in result/columnar and timelines in
// result/perfetto.
//
// # How an experiment fills a Result
//
// Names are fixed: each kind of experiment defines its metrics, series, histograms and matrices once (Words), with a
// unit and a help text for each. Setting a name that is not in the result's Vocabulary is a programming error. The name
// of a component that a system may have several of takes an index, "ssd[2].waf"; without the index it is the figure
// over all of them. Figures that do not apply are left out: a run without reads has no "read.latency.p99".
//
//   - [Result.SetLatencies] fills PREFIX.latency.* and the histogram from a [stats.Histogram].
//   - Series are bins of simulated time: T is the start of each bin, Width its length, and NaN marks a bin without a
//     value.
//   - Matrices are tables of numbers with labels.
//   - WarmUp gives the part of the run that the metrics leave out.
//
// Equal Results give equal bytes: names are in the order of the vocabulary, whatever the order they were set in, and
// numbers have the shortest form that parses back to the same value.
//
// The package leaves out the words of any kind of experiment, the meaning of the resolved scenario (only its text
// passes through here), drawing (package report) and comparisons between runs (package study).
package result

import (
	"fmt"
	"slices"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// Schema names the format of result.json.
const Schema = "farflash/result/1"

// Result is the findings of one trial.
type Result struct {
	Schema     string
	Digest     string // of the resolved scenario and the model's version
	Seed       uint64
	SimulatedS float64 // simulated time in seconds
	Version    string  // of the program
	Name       string  // of the scenario; may be empty
	Summary    string  // the configuration in one line; may be empty
	WarmUp     WarmUp
	// Interrupted is set if the run was stopped early, in which case the figures cover the part that was run.
	Interrupted bool
	Steady      *Steady // nil unless the run was to stop once its mean latency was known
	Transient   string  // the transient that the measured interval lies in; "" if none was found
	Metrics     []Metric
	Series      []Series
	Histograms  []Histogram
	Matrices    []Matrix
	Parts       []Parts // the parts that the indices of names refer to
	Checks      []Check
	Warnings    []string
	Limits      []string // effects that the models used leave out

	words *Vocabulary // nil in a result that was decoded: no name can be set in it
}

// WarmUp is the initial part of a run that its metrics leave out.
type WarmUp struct {
	UntilS  float64 `json:"until_s"` // seconds; 0 if no part is left out
	Explain string  `json:"explain"` // how it was found; may be empty
}

// Steady is the outcome of a run that stops once its mean latency is known.
type Steady struct {
	Reached bool   `json:"reached"`
	Explain string `json:"explain"` // how precisely it is known, or what prevents that
}

// Metric is one figure.
type Metric struct {
	Name  string
	Value float64
	Unit  string
	Help  string
}

// Series is a figure over time, or over another increasing ordinate.
type Series struct {
	Name     string
	Unit     string
	TimeUnit string    // of T and Width
	Width    float64   // of a bin; 0 if the values are points
	T        []float64 // starts of the bins, increasing
	V        []float64 // same length as T; NaN where there is no value
}

// Histogram is the distribution of one latency.
type Histogram struct {
	Name string
	H    *stats.Histogram
}

// Matrix is a table of numbers with a label for each row and column.
type Matrix struct {
	Name       string
	Unit       string
	Rows, Cols []string
	V          [][]float64 // V[row][column]; NaN where there is no value
}

// Parts names the parts of a scope: Names[2] for "tenant[2].read.latency.p99".
type Parts struct {
	Scope string
	Names []string
}

// Check is the outcome of a law that must hold at the end of every run.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// New returns an empty result whose names are those of a vocabulary.
func New(words *Vocabulary, digest string, seed uint64, version string) *Result {
	return &Result{Schema: Schema, Digest: digest, Seed: seed, Version: version, words: words}
}

// Set sets a metric of the vocabulary; it panics at any other name.
func (r *Result) Set(name string, value float64) {
	d := must(r.words.Metrics, name)
	m := Metric{Name: name, Value: value, Unit: d.Unit, Help: d.Help}
	i, found := slices.BinarySearchFunc(r.Metrics, name,
		func(m Metric, name string) int { return r.words.Metrics.compare(m.Name, name) })
	if found {
		r.Metrics[i] = m
		return
	}
	r.Metrics = slices.Insert(r.Metrics, i, m)
}

// SetLatencies sets prefix.latency.{mean,stddev,min,p50,...,max} in microseconds and the histogram, which is kept, not
// copied. An empty one sets no names; quantiles with too few values are left out. It panics at an undefined name.
func (r *Result) SetLatencies(prefix string, h *stats.Histogram) {
	if h.Count() == 0 {
		return
	}
	us := func(d units.Duration) float64 { return d.Microseconds() }
	r.Set(prefix+".latency.mean", h.Mean()/1e6)
	r.Set(prefix+".latency.stddev", h.StdDev()/1e6)
	r.Set(prefix+".latency.min", us(h.Min()))
	for _, q := range Quantiles {
		if q.Known(h.Count()) {
			r.Set(prefix+".latency."+q.Name, us(h.Quantile(q.Share)))
		}
	}
	r.Set(prefix+".latency.max", us(h.Max()))
	r.SetHistogram(prefix+".latency", h)
}

// Quantile is a quantile that is reported by name.
type Quantile struct {
	Name  string
	Share float64
}

// Known reports whether n independent values suffice for a bounded interval of the quantile.
func (q Quantile) Known(n int64) bool { return stats.QuantileKnown(n, q.Share, quantileLevel) }

// Interval returns the 95 % interval of the quantile that h samples, if values are independent; bounded: it has an
// upper end.
func (q Quantile) Interval(h *stats.Histogram) (low, high units.Duration, bounded bool) {
	a, b := stats.QuantileRanks(h.Count(), q.Share, quantileLevel)
	if a > 0 {
		low = h.Smallest(a)
	}
	if b > h.Count() {
		return low, 0, false
	}
	return low, h.Smallest(b), true
}

// quantileLevel is the confidence level of the intervals of quantiles.
const quantileLevel = 0.95

// Quantiles lists the quantiles of a latency that have a metric.
var Quantiles = []Quantile{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99_9", 0.999},
	{"p99_99", 0.9999}}

// FlowQuantiles lists the quantiles of a flow's figures that have a metric.
var FlowQuantiles = []Quantile{{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p99_9", 0.999}}

// SetSeries sets a series of equal bins from 0, of width simulated seconds. It panics at an undefined name.
func (r *Result) SetSeries(name string, width units.Duration, values []float64) {
	t := make([]float64, len(values))
	for i := range t {
		t[i] = (units.Duration(i) * width).Seconds()
	}
	r.PutSeries(Series{Name: name, TimeUnit: "s", Width: width.Seconds(), T: t, V: values})
}

// PutSeries sets a series. It panics at an undefined name or if T and V differ in length.
func (r *Result) PutSeries(s Series) {
	s.Unit = must(r.words.Series, s.Name).Unit
	if len(s.T) != len(s.V) {
		panic(fmt.Sprintf("result: series %s has %d times and %d values", s.Name, len(s.T), len(s.V)))
	}
	i, found := slices.BinarySearchFunc(r.Series, s.Name,
		func(s Series, name string) int { return r.words.Series.compare(s.Name, name) })
	if found {
		r.Series[i] = s
		return
	}
	r.Series = slices.Insert(r.Series, i, s)
}

// SetHistogram sets a histogram. It panics at an undefined name.
func (r *Result) SetHistogram(name string, h *stats.Histogram) {
	must(r.words.Histograms, name)
	i, found := slices.BinarySearchFunc(r.Histograms, name,
		func(h Histogram, name string) int { return r.words.Histograms.compare(h.Name, name) })
	if found {
		r.Histograms[i].H = h
		return
	}
	r.Histograms = slices.Insert(r.Histograms, i, Histogram{name, h})
}

// DropHistogram removes a histogram whose figures suffice.
func (r *Result) DropHistogram(name string) {
	r.Histograms = slices.DeleteFunc(r.Histograms, func(h Histogram) bool { return h.Name == name })
}

// PartName returns the name of part i of a scope, or scope[i] if it has none.
func (r *Result) PartName(scope string, i int) string {
	for _, p := range r.Parts {
		if p.Scope == scope && i < len(p.Names) && p.Names[i] != "" {
			return p.Names[i]
		}
	}
	return fmt.Sprintf("%s[%d]", scope, i)
}

// SetMatrix sets a matrix. It panics at an undefined name or if values and labels differ in shape.
func (r *Result) SetMatrix(name string, rows, cols []string, v [][]float64) {
	m := Matrix{Name: name, Unit: must(r.words.Matrices, name).Unit, Rows: rows, Cols: cols, V: v}
	if err := m.valid(); err != nil {
		panic("result: matrix " + name + ": " + err.Error())
	}
	i, found := slices.BinarySearchFunc(r.Matrices, name,
		func(m Matrix, name string) int { return r.words.Matrices.compare(m.Name, name) })
	if found {
		r.Matrices[i] = m
		return
	}
	r.Matrices = slices.Insert(r.Matrices, i, m)
}

func (m *Matrix) valid() error {
	if len(m.V) != len(m.Rows) {
		return fmt.Errorf("%d rows of values and %d row labels", len(m.V), len(m.Rows))
	}
	for i, row := range m.V {
		if len(row) != len(m.Cols) {
			return fmt.Errorf("row %d has %d values, there are %d columns", i, len(row), len(m.Cols))
		}
	}
	return nil
}

// Check records whether a law held.
func (r *Result) Check(name string, ok bool, detail string) {
	r.Checks = append(r.Checks, Check{name, ok, detail})
}

// OK reports whether every check held.
func (r *Result) OK() bool {
	return !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.OK })
}

// Warn records a warning.
func (r *Result) Warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// Metric returns the metric of that name.
func (r *Result) Metric(name string) (Metric, bool) {
	for _, m := range r.Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// SeriesOf returns the series of that name.
func (r *Result) SeriesOf(name string) (Series, bool) {
	for _, s := range r.Series {
		if s.Name == name {
			return s, true
		}
	}
	return Series{}, false
}

// Histogram returns the histogram of that name, nil if there is none.
func (r *Result) Histogram(name string) *stats.Histogram {
	for _, h := range r.Histograms {
		if h.Name == name {
			return h.H
		}
	}
	return nil
}

// Matrix returns the matrix of that name.
func (r *Result) Matrix(name string) (Matrix, bool) {
	for _, m := range r.Matrices {
		if m.Name == name {
			return m, true
		}
	}
	return Matrix{}, false
}
