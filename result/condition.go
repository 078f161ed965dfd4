package result

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"farflash/numeric/stats"

	"farflash/internal/spelling"
	"farflash/numeric/units"
)

// unitParsers maps each unit of a metric to the parser of a threshold in it. The parser reads text that carries its
// own unit and returns the value in the metric's unit.
var unitParsers = map[string]func(text string) (float64, error){
	"us": func(s string) (float64, error) {
		d, err := units.ParseDuration(s)
		return d.Microseconds(), err
	},
	"s": func(s string) (float64, error) {
		d, err := units.ParseDuration(s)
		return d.Seconds(), err
	},
	"B": func(s string) (float64, error) {
		b, err := units.ParseBytes(s)
		return float64(b), err
	},
	"B/s": func(s string) (float64, error) {
		r, err := units.ParseByteRate(s)
		return float64(r), err
	},
	"bit/s": func(s string) (float64, error) {
		r, err := units.ParseBitRate(s)
		return float64(r), err
	},
	"J": func(s string) (float64, error) {
		e, err := units.ParseEnergy(s)
		return float64(e), err
	},
	"W":     withSuffix("power", "W"),
	"years": withSuffix("time in years", "years"),
	"count": withSuffix("count"),
	"ratio": withSuffix("ratio"),
	"1/s":   withSuffix("rate", "/s", "IOPS", "iops"),
	"fraction": func(s string) (float64, error) {
		f, err := units.ParseFraction(s)
		return float64(f), err
	},
}

// withSuffix returns a parser of plain numbers that may be followed by one of the suffixes, or by k, M or G before it
// (1000, 10^6, 10^9).
func withSuffix(noun string, suffixes ...string) func(string) (float64, error) {
	return func(s string) (float64, error) {
		number := strings.TrimSpace(s)
		for _, x := range suffixes {
			if cut, ok := strings.CutSuffix(number, x); ok {
				number = strings.TrimSpace(cut)
				break
			}
		}
		scale := 1.0
		for _, p := range []struct {
			letter string
			scale  float64
		}{{"k", 1e3}, {"K", 1e3}, {"M", 1e6}, {"G", 1e9}} {
			if cut, ok := strings.CutSuffix(number, p.letter); ok {
				number, scale = strings.TrimSpace(cut), p.scale
				break
			}
		}
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || v != v || v-v != 0 {
			with := ""
			if len(suffixes) > 0 {
				with = " (a number, optionally with " + suffixes[0] + ")"
			}
			return 0, fmt.Errorf("%q is not a %s%s", s, noun, with)
		}
		return v * scale, nil
	}
}

// Condition compares a metric with a threshold: read.latency.p99>500us.
type Condition struct {
	Metric    string
	Operator  string  // >, >=, <, <=, == or !=
	Threshold float64 // in the metric's unit
	Unit      string
	Text      string // as written
}

var operators = []string{">=", "<=", "==", "!=", ">", "<"}

// ParseCondition parses "metric operator value". A bare number is refused where the metric has a unit.
func ParseCondition(metrics *Table, text string) (Condition, error) {
	c := Condition{Text: strings.TrimSpace(text)}
	at := strings.IndexAny(c.Text, "<>=!")
	if at < 0 {
		return c, fmt.Errorf("condition %q has no comparison; write for example read.latency.p99>500us", text)
	}
	c.Metric = strings.TrimSpace(c.Text[:at])
	rest := c.Text[at:]
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			c.Operator = o
			break
		}
	}
	if c.Operator == "" {
		return c, fmt.Errorf("condition %q: %q is not a comparison; use one of > >= < <= == !=", text, rest[:1])
	}
	value := strings.TrimSpace(rest[len(c.Operator):])
	d, known := metrics.Lookup(withNumber(c.Metric))
	if !known {
		return c, fmt.Errorf("condition %q: unknown metric %q%s", text, c.Metric, suggest(c.Metric, metrics.names()))
	}
	if value == "" {
		return c, fmt.Errorf("condition %q has no value after %s; write for example %s%s%s", text, c.Operator,
			c.Metric, c.Operator, example(d.Unit))
	}
	c.Unit = d.Unit
	var err error
	if c.Threshold, err = unitParsers[d.Unit](value); err != nil {
		return c, fmt.Errorf("condition %q: %s is in %s: %w", text, c.Metric, unitNoun(d.Unit), err)
	}
	return c, nil
}

func example(unit string) string {
	for _, e := range []struct{ unit, text string }{{"us", "500us"}, {"s", "2s"}, {"B", "16KiB"}, {"B/s", "500MB/s"},
		{"bit/s", "40Gbps"},
		{"J", "3J"}, {"W", "12W"}, {"years", "1000years"}, {"1/s", "100k"}, {"fraction", "95%"}, {"ratio", "1.5"}} {
		if e.unit == unit {
			return e.text
		}
	}
	return "1000"
}

// unitNoun names a unit in words where its symbol alone would be unclear.
func unitNoun(unit string) string {
	switch unit {
	case "count":
		return "plain numbers"
	case "ratio":
		return "plain numbers (a ratio)"
	case "fraction":
		return "fractions"
	case "1/s":
		return "operations per second"
	}
	return unit
}

// Holds reports whether the condition is true of r, with a line that describes the outcome. A metric that r lacks is an
// error. A percentile with too few values is above a threshold if the lower end of its interval is.
func (c Condition) Holds(r *Result) (held bool, detail string, err error) {
	if c.Metric, err = r.numbered(c.Metric); err != nil {
		return false, "", fmt.Errorf("condition %q: %w", c.Text, err)
	}
	_, ok := r.Metric(c.Metric)
	if q, h := c.unknown(r); !ok && h != nil {
		low, _, _ := q.Interval(h)
		if us := low.Microseconds(); us > c.Threshold && strings.HasPrefix(c.Operator, ">") {
			return true, fmt.Sprintf("%s holds: %s is at least %s us", c.Text, c.Metric, appendFloat(nil, us)), nil
		}
		return false, "", fmt.Errorf(
			"condition %q: %s cannot be determined from %d values, it needs %d; it is at least %v",
			c.Text, c.Metric, h.Count(), stats.QuantileNeeds(q.Share, quantileLevel), low)
	}
	v, err := c.value(r)
	if err != nil {
		return false, "", err
	}
	held = c.Of(v)
	word := "does not hold"
	if held {
		word = "holds"
	}
	return held, fmt.Sprintf("%s %s: %s is %s %s", c.Text, word, c.Metric, appendFloat(nil, v), c.Unit), nil
}

// Value returns the figure compared, in the condition's unit, or an error if r lacks it.
func (c Condition) Value(r *Result) (float64, error) {
	var err error
	if c.Metric, err = r.numbered(c.Metric); err != nil {
		return 0, fmt.Errorf("condition %q: %w", c.Text, err)
	}
	return c.value(r)
}

// value is Value for a metric whose parts are given by number.
func (c Condition) value(r *Result) (float64, error) {
	m, ok := r.Metric(c.Metric)
	if !ok {
		names := make([]string, len(r.Metrics))
		for i, m := range r.Metrics {
			names[i] = m.Name
		}
		return 0, fmt.Errorf("condition %q: this run has no metric %s%s", c.Text, c.Metric, suggest(c.Metric, names))
	}
	if m.Unit != c.Unit {
		return 0, fmt.Errorf("condition %q: %s is in %q in this result, %q was expected", c.Text, c.Metric, m.Unit,
			c.Unit)
	}
	return m.Value, nil
}

// Of reports whether the condition is true of v, in the condition's unit.
func (c Condition) Of(v float64) bool {
	switch c.Operator {
	case ">":
		return v > c.Threshold
	case ">=":
		return v >= c.Threshold
	case "<":
		return v < c.Threshold
	case "<=":
		return v <= c.Threshold
	case "==":
		return v == c.Threshold
	}
	return v != c.Threshold
}

// withNumber replaces the name of a scope's part with a number: "tenant[web].read.iops" becomes "tenant[0].read.iops".
func withNumber(name string) string {
	scope, rest, found := strings.Cut(name, "[")
	part, rest, closed := strings.Cut(rest, "]")
	if _, err := strconv.Atoi(part); !found || !closed || err == nil || part == "" {
		return name
	}
	return scope + "[0]" + rest
}

// numbered returns a metric's name with the part's number in place of its name, if it has one.
func (r *Result) numbered(name string) (string, error) {
	scope, rest, _ := strings.Cut(name, "[")
	part, rest, _ := strings.Cut(rest, "]")
	if withNumber(name) == name {
		return name, nil
	}
	var names []string
	for _, p := range r.Parts {
		if p.Scope == scope {
			names = p.Names
		}
	}
	i := slices.Index(names, part)
	switch {
	case names == nil:
		return "", fmt.Errorf("this run has no %s names", scope)
	case i < 0:
		return "", fmt.Errorf("no %s %q; use one of %s", scope, part, quoted(names))
	case slices.Contains(names[i+1:], part):
		return "", fmt.Errorf("several have the name %q; give the index, such as %s[%d]", part, scope, i)
	}
	return fmt.Sprintf("%s[%d]%s", scope, i, rest), nil
}

// names lists the names of the table's definitions.
func (t *Table) names() []string {
	names := make([]string, 0, len(t.list))
	for _, d := range t.list {
		names = append(names, d.Name)
	}
	return names
}

// suggest lists the names closest to an unknown one, as the end of an error message.
func suggest(wrong string, names []string) string {
	type scored struct {
		name  string
		score int
	}
	plain, _, _ := cutIndex(wrong)
	if plain == "" {
		plain = wrong
	}
	var near []scored
	for _, n := range names {
		d := min(spelling.Distance(wrong, n), spelling.Distance(plain, n)+1)
		// Another name of the same family is worth showing even if it is spelt differently.
		if d <= 3 || d <= len(n)/4 || strings.HasPrefix(n, wrong+".") || strings.HasSuffix(n, "."+wrong) {
			near = append(near, scored{n, d})
		}
	}
	slices.SortStableFunc(near, func(a, b scored) int { return a.score - b.score })
	if len(near) == 0 {
		return "; see the metric names in any result.json"
	}
	list := make([]string, 0, 5)
	for _, s := range near[:min(len(near), 5)] {
		list = append(list, s.name)
	}
	return "; similar names: " + strings.Join(list, ", ")
}

// unknown returns the percentile that the condition compares and the histogram it is taken from. The histogram is nil
// if the condition is not about a percentile.
func (c Condition) unknown(r *Result) (Quantile, *stats.Histogram) {
	for _, q := range Quantiles {
		if prefix, ok := strings.CutSuffix(c.Metric, "."+q.Name); ok {
			return q, r.Histogram(prefix)
		}
	}
	return Quantile{}, nil
}
