package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// Encode returns result.json. Equal Results give equal bytes. A metric that is not finite is an error; other NaNs are
// null.
func (r *Result) Encode() ([]byte, error) {
	e := encoder{}
	e.raw("{\n")
	e.field(1, "schema", r.Schema)
	e.field(1, "digest", r.Digest)
	e.key(1, "seed").raw(strconv.FormatUint(r.Seed, 10)).raw(",\n")
	e.key(1, "simulated_s").number(r.SimulatedS, "simulated_s").raw(",\n")
	e.field(1, "version", r.Version)
	if r.Name != "" {
		e.field(1, "name", r.Name)
	}
	if r.Summary != "" {
		e.field(1, "summary", r.Summary)
	}
	if r.Interrupted {
		e.key(1, "interrupted").raw("true,\n")
	}
	if r.WarmUp != (WarmUp{}) {
		e.key(1, "warm_up").raw(`{"until_s": `).number(r.WarmUp.UntilS, "warm_up.until_s")
		e.raw(`, "explain": `).text(r.WarmUp.Explain).raw("},\n")
	}
	if r.Steady != nil {
		e.key(1, "steady").raw(`{"reached": ` + strconv.FormatBool(r.Steady.Reached) +
			`, "explain": `).text(r.Steady.Explain).raw("},\n")
	}
	if r.Transient != "" {
		e.field(1, "transient", r.Transient)
	}
	if len(r.Parts) > 0 {
		e.key(1, "parts").raw("{")
		for i, p := range r.Parts {
			e.item(i).key(2, p.Scope).raw("[")
			for k, name := range p.Names {
				if k > 0 {
					e.raw(", ")
				}
				e.text(name)
			}
			e.raw("]")
		}
		e.close(len(r.Parts), "},\n")
	}
	e.key(1, "metrics").raw("{")
	for i, m := range r.Metrics {
		e.item(i).key(2, m.Name).raw(`{"value": `).number(m.Value, m.Name)
		e.raw(`, "unit": `).text(m.Unit).raw(`, "help": `).text(m.Help).raw("}")
	}
	e.close(len(r.Metrics), "},\n")
	e.key(1, "series").raw("{")
	for i, s := range r.Series {
		e.item(i).series(s)
	}
	e.close(len(r.Series), "},\n")
	e.key(1, "histograms").raw("{")
	for i, h := range r.Histograms {
		e.item(i).histogram(h)
	}
	e.close(len(r.Histograms), "},\n")
	if len(r.Matrices) > 0 {
		e.key(1, "matrices").raw("{")
		for i, m := range r.Matrices {
			e.item(i).matrix(m)
		}
		e.close(len(r.Matrices), "},\n")
	}
	e.key(1, "checks").raw("[")
	for i, c := range r.Checks {
		e.item(i).raw("    {").raw(`"name": `).text(c.Name).raw(`, "ok": `).raw(strconv.FormatBool(c.OK)).raw(
			`, "detail": `).text(c.Detail).raw("}")
	}
	e.close(len(r.Checks), "],\n")
	if len(r.Limits) > 0 {
		e.key(1, "limits").texts(r.Limits).raw(",\n")
	}
	e.key(1, "warnings").texts(r.Warnings).raw("\n}\n")
	return e.b.Bytes(), e.err
}

// encoder writes JSON with a fixed layout, one or a few lines for each metric, series or check, so that runs can be
// compared with line-based tools.
type encoder struct {
	b   bytes.Buffer
	err error
}

func (e *encoder) raw(s string) *encoder { e.b.WriteString(s); return e }

func (e *encoder) indent(depth int) *encoder {
	for range depth {
		e.b.WriteString("  ")
	}
	return e
}

func (e *encoder) key(depth int, name string) *encoder {
	return e.indent(depth).text(name).raw(": ")
}

// item starts element i of a list that has its elements on lines of their own.
func (e *encoder) item(i int) *encoder {
	if i > 0 {
		e.raw(",")
	}
	return e.raw("\n")
}

// close ends a list of n such elements at depth 1.
func (e *encoder) close(n int, end string) {
	if n > 0 {
		e.raw("\n  ")
	}
	e.raw(end)
}

func (e *encoder) field(depth int, name, value string) {
	e.key(depth, name).text(value).raw(",\n")
}

func (e *encoder) text(s string) *encoder {
	var b bytes.Buffer
	j := json.NewEncoder(&b)
	j.SetEscapeHTML(false)
	if err := j.Encode(s); err != nil && e.err == nil {
		e.err = err
	}
	e.b.Write(bytes.TrimRight(b.Bytes(), "\n"))
	return e
}

func (e *encoder) texts(list []string) *encoder {
	e.raw("[")
	for i, s := range list {
		e.item(i).indent(2).text(s)
	}
	if len(list) > 0 {
		e.raw("\n  ")
	}
	return e.raw("]")
}

// number writes v, which must be finite; where names it in the error.
func (e *encoder) number(v float64, where string) *encoder {
	if (math.IsNaN(v) || math.IsInf(v, 0)) && e.err == nil {
		e.err = fmt.Errorf("result: %s is %v, which is not a finite value; leave it out", where, v)
	}
	e.b.Write(appendFloat(e.b.AvailableBuffer(), v))
	return e
}

// appendFloat appends the shortest decimal that parses back to v, in the format of JavaScript and encoding/json.
func appendFloat(b []byte, v float64) []byte {
	if v == 0 {
		return append(b, '0') // never "-0"
	}
	if a := math.Abs(v); a < 1e-6 || a >= 1e21 {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// numbers writes a list on one line, with null for NaN.
func (e *encoder) numbers(vs []float64, where string) *encoder {
	e.raw("[")
	for i, v := range vs {
		if i > 0 {
			e.raw(", ")
		}
		if math.IsNaN(v) {
			e.raw("null")
			continue
		}
		e.number(v, where)
	}
	return e.raw("]")
}

func (e *encoder) series(s Series) {
	e.key(2, s.Name).raw(`{"unit": `).text(s.Unit).raw(`, "t_unit": `).text(s.TimeUnit)
	if s.Width != 0 {
		e.raw(`, "width": `).number(s.Width, s.Name+" width")
	}
	e.raw(",\n      \"t\": ").numbers(s.T, s.Name+" t")
	e.raw(",\n      \"v\": ").numbers(s.V, s.Name+" v").raw("}")
}

func (e *encoder) histogram(h Histogram) {
	s := h.H.State()
	e.key(2, h.Name).raw(`{"unit": "us", "count": `).raw(strconv.FormatInt(s.Count, 10))
	e.raw(`, "mean": `).number(h.H.Mean()/1e6, h.Name).raw(`, "stddev": `).number(h.H.StdDev()/1e6, h.Name)
	e.raw(`, "min": `).number(s.Min.Microseconds(), h.Name).raw(`, "max": `).number(s.Max.Microseconds(), h.Name)
	e.raw(",\n      \"exact\": {\"sum_ps\": \"").raw(s.Sum.String()).raw(`", "squares_ps2": "`).raw(s.Squares.String())
	e.raw(`", "min_ps": "`).raw(strconv.FormatInt(int64(s.Min),
		10)).raw(`", "max_ps": "`).raw(strconv.FormatInt(int64(s.Max), 10)).raw("\"}")
	e.raw(",\n      \"intervals\": {")
	for i, q := range Quantiles {
		if i > 0 {
			e.raw(", ")
		}
		low, high, bounded := q.Interval(h.H)
		e.text(q.Name).raw(": [").number(low.Microseconds(), h.Name)
		if bounded {
			e.raw(", ").number(high.Microseconds(), h.Name).raw("]")
		} else {
			e.raw(", null]")
		}
	}
	e.raw("}")
	e.integers(",\n      \"low_ns\": [", s.Bins, func(b stats.Bin) int64 { return int64(b.Low / units.Nanosecond) })
	e.integers("],\n      \"high_ns\": [", s.Bins, func(b stats.Bin) int64 { return int64(b.High / units.Nanosecond) })
	e.integers("],\n      \"counts\": [", s.Bins, func(b stats.Bin) int64 { return b.Count })
	e.raw("]}")
}

func (e *encoder) integers(before string, bins []stats.Bin, of func(stats.Bin) int64) {
	e.raw(before)
	for i, b := range bins {
		if i > 0 {
			e.raw(", ")
		}
		e.raw(strconv.FormatInt(of(b), 10))
	}
}

func (e *encoder) matrix(m Matrix) {
	e.key(2, m.Name).raw(`{"unit": `).text(m.Unit)
	e.labels(",\n      \"rows\": [", m.Rows)
	e.labels("],\n      \"cols\": [", m.Cols)
	e.raw("],\n      \"v\": [")
	for i, row := range m.V {
		if i > 0 {
			e.raw(",\n            ")
		}
		e.numbers(row, m.Name)
	}
	e.raw("]}")
}

func (e *encoder) labels(before string, list []string) {
	e.raw(before)
	for i, s := range list {
		if i > 0 {
			e.raw(", ")
		}
		e.text(s)
	}
}
