package reproduce

import (
	_ "embed" // the recorded verdicts
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/numeric/units"
)

// Verdict is the result of a row.
type Verdict uint8

// The verdicts, from the worst to the best.
const (
	// NotReproduced: our figure does not meet the row's criterion, or is missing.
	NotReproduced Verdict = iota
	// NotStated: the paper prints no number. The tested statement of its text, if any, holds.
	NotStated
	// OK: our figure agrees with the number printed in the paper, as closely as the row's criterion requires.
	OK
)

var verdictNames = units.Names[Verdict]{"not reproduced", "not stated", "ok"}

// String returns the verdict's name.
func (v Verdict) String() string { return verdictNames.Name(v) }

// MarshalText writes the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return verdictNames.Marshal(v) }

// UnmarshalText reads a verdict's name.
func (v *Verdict) UnmarshalText(text []byte) error { return verdictNames.Unmarshal(text, v) }

// Criterion is a closed interval for a figure. No row has the zero value, which only requires a finite number.
type Criterion struct {
	low, high float64
	words     string // "": any finite number
}

// String describes the criterion; "" if it is the zero value.
func (c Criterion) String() string { return c.words }

// holds reports whether a figure meets the criterion. NaN and infinities meet none.
func (c Criterion) holds(x float64) bool {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	return c.words == "" || x >= c.low && x <= c.high
}

// near requires a figure within a relative tolerance.
func near(want, share float64) Criterion {
	a, b := want*(1-share), want*(1+share)
	return Criterion{min(a, b), max(a, b), fmt.Sprintf("within %.4g %% of %.4g", 100*share, want)}
}

// exactly requires a count.
func exactly(want float64) Criterion { return Criterion{want, want, fmt.Sprintf("%.4g", want)} }

// between includes both ends.
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

// Verdict returns the row's verdict.
func (r *Row) Verdict() Verdict {
	switch {
	case !r.Meets.holds(r.Ours):
		return NotReproduced
	case r.Paper == nil:
		return NotStated
	}
	return OK
}

// reason explains why a row is not reproduced; "" for others.
func (r *Row) reason() string {
	switch {
	case r.Verdict() != NotReproduced:
		return ""
	case r.Because == "":
		return "not explained"
	}
	return r.Because
}

// Words is the text for a row besides its figures: the tested sentence, the expectation, and the reason for a failure.
func (r *Row) Words() string {
	text := r.Expect
	if r.Quote != "" {
		text = fmt.Sprintf("%q: %s", r.Quote, text)
	}
	if reason := r.reason(); reason != "" {
		text += ". Not reproduced: " + reason
	}
	return text
}

// MarshalJSON writes the row with its verdict. A missing figure is null.
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
	}{r.Label, r.Metric, r.Paper, &r.Ours, r.Unit, r.Quote, r.Meets.String(), r.Inputs, r.Turns, r.Expect, v,
		r.reason(), v == OK}
	if math.IsNaN(r.Ours) || math.IsInf(r.Ours, 0) {
		x.Ours = nil
	}
	return json.Marshal(x)
}

// Count is the number of rows by verdict.
type Count struct {
	OK            int `json:"ok"`
	NotReproduced int `json:"not_reproduced"`
	NotStated     int `json:"not_stated"`
}

// Add adds another count.
func (c *Count) Add(x Count) {
	c.OK, c.NotReproduced, c.NotStated = c.OK+x.OK, c.NotReproduced+x.NotReproduced, c.NotStated+x.NotStated
}

// String formats all three numbers.
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

// heldText has the verdict of each row of each experiment with seed 1, as TestVerdicts writes it: a line with an
// experiment's id, followed by one for each row, with the verdict, the label, the metric and the mutation that flips
// it, separated by tabs. A measured row has that word instead of a verdict.
//
//go:embed verdicts.txt
var heldText string

// measured is the entry of a row whose figure depends on the machine and the moment: only its existence is recorded.
const measured = "measured"

// heldRow is a recorded row.
type heldRow struct {
	verdict       Verdict
	measured      bool // there is no verdict
	label, metric string
	turns         string // the mutation that flips it, "" if it is measured
}

// heldRows returns the recorded rows of an experiment, by its id.
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

// Held counts the recorded verdicts of an experiment, those of its run with seed 1, and the measured rows, which have
// none.
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

// Regression is a row that is worse than recorded.
type Regression struct{ Label, Metric, What string }

// String returns the row and its change.
func (f Regression) String() string { return f.Label + ", " + f.Metric + ": " + f.What }

// Fell returns the rows that are worse than recorded: rows that were ok or not stated and are not reproduced, and rows
// that were ok and are missing. A row that is not recorded must be reproduced. A measured row falls only if it is
// missing.
func (r *Report) Fell() []Regression {
	type name struct{ label, metric string }
	var out []Regression
	if r.Measured {
		for _, h := range heldRows(r.ID) {
			if !slices.ContainsFunc(r.Rows, func(x Row) bool { return x.Label == h.label && x.Metric == h.metric }) {
				out = append(out, Regression{h.label, h.metric, "was measured and is missing"})
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
			out = append(out, Regression{x.Label, x.Metric, x.Words()})
		case v < was && (v == NotReproduced || was == OK):
			out = append(out, Regression{x.Label, x.Metric, fmt.Sprintf("%v, recorded as %v: %s", v, was, x.Words())})
		}
	}
	for _, h := range rows {
		if h.verdict == OK && !now[name{h.label, h.metric}] {
			out = append(out, Regression{h.label, h.metric, "was ok and is missing"})
		}
	}
	return out
}
