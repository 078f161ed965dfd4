package reproduce

import (
	_ "embed" // the verdicts that are held
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/numeric/units"
)

// Verdict is what comes of a row.
type Verdict uint8

// The verdicts, from the worst to the best.
const (
	// NotReproduced: ours does not meet the row's criterion, or is missing.
	NotReproduced Verdict = iota
	// NotStated: the paper prints no number. What is tested, if anything, is what its text says, which holds.
	NotStated
	// OK: ours agrees with the number that the paper prints, as closely as the row's criterion asks.
	OK
)

var verdictNames = units.Names[Verdict]{"not reproduced", "not stated", "ok"}

// String is the verdict's name.
func (v Verdict) String() string { return verdictNames.Name(v) }

// MarshalText writes the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return verdictNames.Marshal(v) }

// UnmarshalText reads a verdict's name.
func (v *Verdict) UnmarshalText(text []byte) error { return verdictNames.Unmarshal(text, v) }

// Criterion is what a figure must be: in an interval whose ends belong to it. No row has the zero value, which asks
// nothing but a number.
type Criterion struct {
	low, high float64
	words     string // "" asks nothing
}

// String is the criterion in words, "" if it asks nothing.
func (c Criterion) String() string { return c.words }

// Holds reports whether a figure meets the criterion. What is no number, or infinite, meets none.
func (c Criterion) Holds(x float64) bool {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	return c.words == "" || x >= c.low && x <= c.high
}

// near is within a share of a figure.
func near(want, share float64) Criterion {
	a, b := want*(1-share), want*(1+share)
	return Criterion{min(a, b), max(a, b), fmt.Sprintf("within %.4g %% of %.4g", 100*share, want)}
}

// exactly is a count.
func exactly(want float64) Criterion { return Criterion{want, want, fmt.Sprintf("%.4g", want)} }

// between has both ends in it.
func between(low, high float64) Criterion {
	return Criterion{low, high, fmt.Sprintf("%.4g to %.4g", low, high)}
}

func above(x float64) Criterion {
	return Criterion{math.Nextafter(x, math.Inf(1)), math.Inf(1), fmt.Sprintf("above %.4g", x)}
}

func below(x float64) Criterion {
	return Criterion{math.Inf(-1), math.Nextafter(x, math.Inf(-1)), fmt.Sprintf("below %.4g", x)}
}

func atLeast(x float64) Criterion {
	return Criterion{x, math.Inf(1), fmt.Sprintf("at least %.4g", x)}
}

func atMost(x float64) Criterion {
	return Criterion{math.Inf(-1), x, fmt.Sprintf("at most %.4g", x)}
}

// Verdict is what comes of the row.
func (r *Row) Verdict() Verdict {
	switch {
	case !r.Meets.Holds(r.Ours):
		return NotReproduced
	case r.Paper == nil:
		return NotStated
	}
	return OK
}

// Reason says why a row is not reproduced; "" for others.
func (r *Row) Reason() string {
	switch {
	case r.Verdict() != NotReproduced:
		return ""
	case r.Because == "":
		return "not explained"
	}
	return r.Because
}

// Words are what a reader is told of the row beside its figures: the sentence that is tested, what is expected, and
// why it is not so.
func (r *Row) Words() string {
	text := r.Expect
	if r.Says != "" {
		text = fmt.Sprintf("%q: %s", r.Says, text)
	}
	if reason := r.Reason(); reason != "" {
		text += ". Not reproduced: " + reason
	}
	return text
}

// MarshalJSON writes the row with its verdict. A figure that is missing is null.
func (r *Row) MarshalJSON() ([]byte, error) {
	v := r.Verdict()
	x := struct {
		Label     string   `json:"label"`
		Metric    string   `json:"metric"`
		Paper     *float64 `json:"paper"`
		Ours      *float64 `json:"ours"`
		Unit      string   `json:"unit"`
		Says      string   `json:"says,omitempty"`
		Criterion string   `json:"criterion,omitempty"`
		Inputs    string   `json:"inputs,omitempty"`
		Turns     string   `json:"turned_by,omitempty"`
		Expect    string   `json:"expect"`
		Verdict   Verdict  `json:"verdict"`
		Reason    string   `json:"reason,omitempty"`
		OK        bool     `json:"ok"`
	}{r.Label, r.Metric, r.Paper, &r.Ours, r.Unit, r.Says, r.Meets.String(), r.Inputs, r.Turns, r.Expect, v,
		r.Reason(), v == OK}
	if math.IsNaN(r.Ours) || math.IsInf(r.Ours, 0) {
		x.Ours = nil
	}
	return json.Marshal(x)
}

// Count is how many rows there are of each verdict.
type Count struct {
	OK            int `json:"ok"`
	NotReproduced int `json:"not_reproduced"`
	NotStated     int `json:"not_stated"`
}

// Add adds another's.
func (c *Count) Add(x Count) {
	c.OK, c.NotReproduced, c.NotStated = c.OK+x.OK, c.NotReproduced+x.NotReproduced, c.NotStated+x.NotStated
}

// String writes all three.
func (c Count) String() string {
	return fmt.Sprintf("%d ok, %d not reproduced, %d not stated", c.OK, c.NotReproduced, c.NotStated)
}

func (c *Count) tell(v Verdict) {
	switch v {
	case OK:
		c.OK++
	case NotReproduced:
		c.NotReproduced++
	case NotStated:
		c.NotStated++
	}
}

// heldText has the verdict of each row of each experiment with seed 1, as TestVerdicts writes it: a line for an
// experiment's id, then one for each row, with the verdict, the label, the metric and the mutation that turns it
// between tabs. Of a row that is measured there is no verdict to hold: the word stands for it.
//
//go:embed verdicts.txt
var heldText string

// measured is what is held of a row whose figure is of the machine and the moment: that there is such a row.
const measured = "measured"

// heldRow is a row as it is held.
type heldRow struct {
	verdict       Verdict
	measured      bool // there is no verdict
	label, metric string
	turns         string // the mutation that turns it, "" if it is measured
}

// heldRows are those of an experiment, by its id.
func heldRows(id string) []heldRow {
	var out []heldRow
	inside := false
	for line := range strings.Lines(heldText) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case len(f) == 1:
			inside = f[0] == id
		case inside && len(f) >= 3:
			r := heldRow{measured: f[0] == measured, label: f[1], metric: f[2]}
			if len(f) > 3 {
				r.turns = f[3]
			}
			if r.measured {
				out = append(out, r)
				continue
			}
			if err := r.verdict.UnmarshalText([]byte(f[0])); err != nil {
				panic(fmt.Sprintf("reproduce: verdicts.txt: %v", err))
			}
			out = append(out, r)
		}
	}
	return out
}

// Held counts the verdicts of an experiment that are held, those of its run with seed 1; and rows that are measured,
// of which none is.
func Held(id string) (c Count, measured int) {
	for _, r := range heldRows(id) {
		if r.measured {
			measured++
			continue
		}
		c.tell(r.verdict)
	}
	return c, measured
}

// Fallen is a row that is worse than it is held to be.
type Fallen struct{ Label, Metric, What string }

// String is the row and what became of it.
func (f Fallen) String() string { return f.Label + ", " + f.Metric + ": " + f.What }

// Fell are the rows that are worse than they are held to be: what was ok or not stated and is not reproduced, and
// what was ok and is gone. A row that is not held is to be reproduced. A row that is measured falls only if it is
// gone.
func (r *Report) Fell() []Fallen {
	type name struct{ label, metric string }
	var out []Fallen
	if r.Measured {
		for _, h := range heldRows(r.ID) {
			if !slices.ContainsFunc(r.Rows, func(x Row) bool { return x.Label == h.label && x.Metric == h.metric }) {
				out = append(out, Fallen{h.label, h.metric, "was measured and is gone"})
			}
		}
		return out
	}
	held, now := map[name]Verdict{}, map[name]bool{}
	rows := heldRows(r.ID)
	for _, h := range rows {
		held[name{h.label, h.metric}] = h.verdict
	}
	for i := range r.Rows {
		x := &r.Rows[i]
		key := name{x.Label, x.Metric}
		now[key] = true
		v := x.Verdict()
		was, known := held[key]
		switch {
		case v == NotReproduced && !known:
			out = append(out, Fallen{x.Label, x.Metric, x.Words()})
		case v < was && (v == NotReproduced || was == OK):
			out = append(out, Fallen{x.Label, x.Metric, fmt.Sprintf("%v, and was %v: %s", v, was, x.Words())})
		}
	}
	for _, h := range rows {
		if h.verdict == OK && !now[name{h.label, h.metric}] {
			out = append(out, Fallen{h.label, h.metric, "was ok and is gone"})
		}
	}
	return out
}
