// Package report presents results: [WriteText] prints a run's results as tables for a terminal, [WriteHTML] writes one
// self-contained page for one run or for several side by side.
//
// Its main type is [Run], a result with its context. Everything shown comes from there; a part of the page appears when
// the result has the metrics, series, histograms or matrices that it draws (their names are in package result). The
// page loads no external resources, works without scripts (those it carries only show the charts' titles sooner and
// animate a network's picture), follows the reader's choice of light or dark, and prints.
//
// Charts are drawn by report/chart. It leaves out statistics over replicates and sweeps (package study), and everything
// that needs a server (package web).
package report

import (
	"fmt"
	"strings"

	"farflash/internal/term"
	"farflash/result"
)

// Run is one run to be shown.
type Run struct {
	Label     string // distinguishes it from others; "" uses the scenario's name or the directory
	Path      string // of the run directory; may be empty
	Result    *result.Result
	Scenario  []Line
	Timing    *result.Timing // nil if not known
	Command   string         // that produced the run; "" shows how to repeat it from the resolved scenario alone
	Citations string         // BibTeX
}

// Line is a line of the resolved scenario.
type Line struct {
	Text    string
	Default bool // a default, not set by the user
	Set     bool // set on the command line
}

// Indent returns the line's leading spaces.
func (l Line) Indent() string { return l.Text[:len(l.Text)-len(l.Body())] }

// Body returns the line without its leading spaces.
func (l Line) Body() string { return strings.TrimLeft(l.Text, " ") }

// The comments in a resolved scenario that mark the origin of a line's value.
const (
	DefaultMark = "# default"
	SetMark     = "# set"
)

// ParseScenario splits the text of a resolved scenario into lines. A line that ends with DefaultMark or SetMark is
// flagged, and the mark is removed.
func ParseScenario(text string) []Line {
	var lines []Line
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, " \r\n")
		line := Line{Text: l}
		if cut, ok := strings.CutSuffix(l, DefaultMark); ok {
			line = Line{Text: strings.TrimRight(cut, " "), Default: true}
		} else if cut, ok := strings.CutSuffix(l, SetMark); ok {
			line = Line{Text: strings.TrimRight(cut, " "), Set: true}
		}
		lines = append(lines, line)
	}
	return lines
}

// FromDirectory converts a loaded run directory to a Run.
func FromDirectory(d *result.Run) Run {
	r := Run{Path: d.Path, Result: d.Result, Scenario: ParseScenario(d.Scenario), Timing: d.Timing,
		Citations: d.Citations}
	if d.Timing != nil {
		r.Command = d.Timing.CommandLine
	}
	return r
}

// name returns a run's name.
func (r *Run) name() string {
	switch {
	case r.Label != "":
		return r.Label
	case r.Result.Name != "":
		return r.Result.Name
	case r.Path != "":
		return r.Path
	}
	return "run"
}

// value returns a metric and whether the result has it.
func (r *Run) value(name string) (float64, bool) {
	m, ok := r.Result.Metric(name)
	return m.Value, ok
}

// matrix returns a matrix that has a row and at least columns columns: a result from another program may have another
// shape.
func (r *Run) matrix(name string, columns int) (result.Matrix, bool) {
	m, ok := r.Result.Matrix(name)
	if !ok || len(m.Rows) == 0 || len(m.Cols) < columns {
		return result.Matrix{}, false
	}
	return m, true
}

// written returns a metric as text, "" if the result does not have it.
func (r *Run) written(name string) string {
	m, ok := r.Result.Metric(name)
	if !ok {
		return r.atLeast(name)
	}
	return term.Quantity(m.Value, m.Unit)
}

// atLeast returns the lower end of the interval of a quantile for which there are too few values.
func (r *Run) atLeast(name string) string {
	for _, q := range result.Quantiles {
		prefix, ok := strings.CutSuffix(name, "."+q.Name)
		if h := r.Result.Histogram(prefix); ok && h != nil {
			low, _, _ := q.Interval(h)
			return "> " + term.Latency(low.Microseconds())
		}
	}
	return ""
}

// shown returns a metric as text for a page; it equals written.
func (r *Run) shown(name string) string {
	return r.written(name)
}

// shortDigest returns the first digits of a digest, without the algorithm's name.
func shortDigest(digest string) string {
	if _, rest, ok := strings.Cut(digest, ":"); ok {
		digest = rest
	}
	if len(digest) > 12 {
		return digest[:12]
	}
	return digest
}

// repeat returns the command that repeats the run from its resolved scenario.
func (r *Run) repeat() string {
	file := result.ScenarioFile
	if r.Path != "" {
		file = r.Path + "/" + file
	}
	return fmt.Sprintf("farflash run %s --seed %d", quoteArgument(file), r.Result.Seed)
}

// quoteArgument quotes s as one word for a shell.
func quoteArgument(s string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_./=:,+@%", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// operations are the kinds of requests with a row of their own, in order.
var operations = []string{"read", "write", "trim", "flush", "all"}

// present returns the operations that the run has completed, "all" only if there are others.
func (r *Run) present() []string {
	var list []string
	for _, op := range operations {
		if v, ok := r.value(op + ".count"); ok && v > 0 {
			list = append(list, op)
		}
	}
	if len(list) == 2 && list[1] == "all" {
		return list[:1]
	}
	return list
}
