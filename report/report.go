// Package report presents results to people: [WriteText] prints a run as tables for a terminal, [WriteHTML] writes one
// self-contained page for one run or for several side by side.
//
// Its main type is [Run], a result with its context. Everything shown is derived from it; a section of the page appears
// if the result has the metrics, series, histograms or matrices that it draws (their names are in package result). The
// page makes no requests to other sites, works without scripts (which only show the charts' titles sooner and animate a
// network's picture over time), follows the reader's choice of light or dark, and can be printed.
//
// Charts are drawn by report/chart. This package leaves out statistics over replicates and sweeps (package study), and
// anything that needs a server.
package report

import (
	"fmt"
	"strings"

	"farflash/internal/term"
	"farflash/result"
)

// Run is a run to be shown.
type Run struct {
	Label     string // distinguishes several runs; "" uses the scenario's name or the directory
	Path      string // of the run directory; may be empty
	Result    *result.Result
	Scenario  []Line
	Timing    *result.Timing // nil if unknown
	Command   string         // that made the run; "" shows only how to repeat it from the resolved scenario
	Citations string         // BibTeX
}

// Line is a line of the resolved scenario.
type Line struct {
	Text    string
	Default bool // the value is the default
	Set     bool // the value was set on the command line
}

// Indent returns the line's leading spaces.
func (l Line) Indent() string { return l.Text[:len(l.Text)-len(l.Body())] }

// Body returns the line without its leading spaces.
func (l Line) Body() string { return strings.TrimLeft(l.Text, " ") }

// Comments in a resolved scenario that mark where the value of a line comes from.
const (
	defaultMark = "# default"
	setMark     = "# set"
)

// parseScenario splits the text of a resolved scenario into lines. A line that ends with defaultMark or setMark is
// flagged, and the mark is removed.
func parseScenario(text string) []Line {
	var lines []Line
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, " \r\n")
		line := Line{Text: l}
		if cut, ok := strings.CutSuffix(l, defaultMark); ok {
			line = Line{Text: strings.TrimRight(cut, " "), Default: true}
		} else if cut, ok := strings.CutSuffix(l, setMark); ok {
			line = Line{Text: strings.TrimRight(cut, " "), Set: true}
		}
		lines = append(lines, line)
	}
	return lines
}

// FromDirectory converts a loaded run directory to a Run.
func FromDirectory(d *result.Run) Run {
	r := Run{Path: d.Path, Result: d.Result, Scenario: parseScenario(d.Scenario), Timing: d.Timing,
		Citations: d.Citations}
	if d.Timing != nil {
		r.Command = d.Timing.CommandLine
	}
	return r
}

// name returns the display name of a run.
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

// value returns a metric and whether the run has it.
func (r *Run) value(name string) (float64, bool) {
	m, ok := r.Result.Metric(name)
	return m.Value, ok
}

// matrix returns a matrix with at least one row and the given number of columns. A result written by another program
// may have a different shape.
func (r *Run) matrix(name string, columns int) (result.Matrix, bool) {
	m, ok := r.Result.Matrix(name)
	if !ok || len(m.Rows) == 0 || len(m.Cols) < columns {
		return result.Matrix{}, false
	}
	return m, true
}

// written formats a metric, "" if there is none.
func (r *Run) written(name string) string {
	m, ok := r.Result.Metric(name)
	if !ok {
		return r.atLeast(name)
	}
	return term.Quantity(m.Value, m.Unit)
}

// atLeast formats a quantile that has too few samples for an estimate as the lower end of its interval.
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

// shown formats a metric for the page.
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

// operations lists the kinds of requests that have a row of their own, in order.
var operations = []string{"read", "write", "trim", "flush", "all"}

// present returns the operations that the run has completed, with "all" only in addition to others.
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
