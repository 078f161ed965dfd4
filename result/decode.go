package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// Decode parses result.json, also of later versions: unknown names are kept and unknown fields ignored. Its errors are
// DecodeErrors.
func Decode(text []byte) (*Result, error) {
	// Check the syntax of the whole text first, so that decode meets only values of the wrong type and never malformed
	// ones.
	if err := decodeJSON(text, new(json.RawMessage)); err != nil {
		return nil, err
	}
	r, err := decode(text)
	if err != nil {
		return nil, located(text, err)
	}
	return r, nil
}

func decode(text []byte) (*Result, error) {
	r := &Result{}
	in := &reader{json.NewDecoder(bytes.NewReader(text)), text}
	if err := in.members("a result", func(name string) error { return r.take(in, name) }); err != nil {
		return nil, err
	}
	if r.Schema != Schema {
		if r.Schema == "" {
			return nil, fmt.Errorf(`not a result: no "schema": %q`, Schema)
		}
		return nil, fmt.Errorf("schema is %q, this program reads %q", r.Schema, Schema)
	}
	return r, nil
}

// take reads one member of result.json. If a member occurs twice, the last occurrence counts.
func (r *Result) take(in *reader, name string) (err error) {
	switch name {
	case "schema":
		return in.value(name, &r.Schema)
	case "digest":
		return in.value(name, &r.Digest)
	case "seed":
		return in.value(name, &r.Seed)
	case "simulated_s":
		return in.value(name, &r.SimulatedS)
	case "version":
		return in.value(name, &r.Version)
	case "name":
		return in.value(name, &r.Name)
	case "summary":
		return in.value(name, &r.Summary)
	case "interrupted":
		return in.value(name, &r.Interrupted)
	case "warm_up":
		return in.value(name, &r.WarmUp)
	case "steady":
		return in.value(name, &r.Steady)
	case "transient":
		return in.value(name, &r.Transient)
	case "checks":
		return in.value(name, &r.Checks)
	case "limits":
		return in.value(name, &r.Limits)
	case "warnings":
		return in.value(name, &r.Warnings)
	case "parts":
		r.Parts, err = list(in, name,
			func(scope string, names *[]string) (Parts, error) { return Parts{scope, *names}, nil })
	case "metrics":
		r.Metrics, err = list(in, name, func(name string, x *metricFile) (Metric, error) { return x.metric(name) })
	case "series":
		r.Series, err = list(in, name, func(name string, x *seriesFile) (Series, error) { return x.series(name) })
	case "histograms":
		r.Histograms, err = list(in, name,
			func(name string, x *histogramFile) (Histogram, error) { return x.histogram(name) })
	case "matrices":
		r.Matrices, err = list(in, name, func(name string, x *matrixFile) (Matrix, error) { return x.matrix(name) })
	default:
		return in.value(name, new(json.RawMessage))
	}
	return err
}

// misplaced is an error about the text that ends at an offset.
type misplaced struct {
	at  int64
	err error
}

func (m *misplaced) Error() string { return m.err.Error() }
func (m *misplaced) Unwrap() error { return m.err }

// reader reads a text once, in order, and so knows the offset of each error.
type reader struct {
	*json.Decoder
	text []byte
}

// value decodes the value of the member whose key was read last; where names the member in errors.
func (in *reader) value(where string, v any) error {
	from := in.InputOffset()
	err := in.Decode(v)
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return err
	}
	if kind.Field != "" {
		where += "." + kind.Field
	}
	from += int64(bytes.IndexByte(in.text[from:], ':')) + 1 // the decoder's offset is relative to the value
	return &misplaced{from + kind.Offset, fmt.Errorf("%s cannot be a %s", where, kind.Value)}
}

// members iterates over an object's members in order; each decodes the value of one. null has no members.
func (in *reader) members(where string, each func(name string) error) error {
	first, err := in.Token()
	if err != nil || first == nil {
		return err
	}
	if first != json.Delim('{') {
		return &misplaced{in.InputOffset(), fmt.Errorf("%s must be an object, {...}", where)}
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // an object's keys are strings
		if err := each(name); err != nil {
			return err
		}
	}
	_, err = in.Token()
	return err
}

// list decodes the members of an object in order and converts each with of. If a name occurs twice, the last value
// counts.
func list[F, T any](in *reader, where string, of func(name string, x *F) (T, error)) ([]T, error) {
	var out []T
	index := map[string]int{}
	err := in.members(where, func(name string) error {
		at := in.InputOffset()
		var x F
		if err := in.value(where+": "+name, &x); err != nil {
			return err
		}
		one, err := of(name, &x)
		if err != nil {
			return &misplaced{at, fmt.Errorf("%s: %s: %w", where, name, err)}
		}
		if i, twice := index[name]; twice {
			out[i] = one
			return nil
		}
		index[name] = len(out)
		out = append(out, one)
		return nil
	})
	return out, err
}

// metricFile and the types below mirror the members of result.json's objects.

type metricFile struct {
	Value *float64 `json:"value"`
	Unit  string   `json:"unit"`
	Help  string   `json:"help"`
}

func (m *metricFile) metric(name string) (Metric, error) {
	if m.Value == nil {
		return Metric{}, errors.New("no value")
	}
	return Metric{name, *m.Value, m.Unit, m.Help}, nil
}

type seriesFile struct {
	Unit     string  `json:"unit"`
	TimeUnit string  `json:"t_unit"`
	Width    float64 `json:"width"`
	T        numbers `json:"t"`
	V        numbers `json:"v"`
}

func (s *seriesFile) series(name string) (Series, error) {
	if len(s.T) != len(s.V) {
		return Series{}, fmt.Errorf("%d times and %d values", len(s.T), len(s.V))
	}
	return Series{name, s.Unit, s.TimeUnit, s.Width, s.T.floats(), s.V.floats()}, nil
}

type matrixFile struct {
	Unit string    `json:"unit"`
	Rows []string  `json:"rows"`
	Cols []string  `json:"cols"`
	V    []numbers `json:"v"`
}

func (m *matrixFile) matrix(name string) (Matrix, error) {
	out := Matrix{name, m.Unit, m.Rows, m.Cols, make([][]float64, len(m.V))}
	for i := range m.V {
		out.V[i] = m.V[i].floats()
	}
	return out, out.valid()
}

// numbers is a list in which null represents NaN.
type numbers []*float64

func (n numbers) floats() []float64 {
	out := make([]float64, len(n))
	for i, v := range n {
		out[i] = math.NaN()
		if v != nil {
			out[i] = *v
		}
	}
	return out
}

type histogramFile struct {
	Count int64 `json:"count"`
	Exact struct {
		Sum     string `json:"sum_ps"`
		Squares string `json:"squares_ps2"`
		Min     string `json:"min_ps"`
		Max     string `json:"max_ps"`
	} `json:"exact"`
	Low    []int64 `json:"low_ns"`
	High   []int64 `json:"high_ns"`
	Counts []int64 `json:"counts"`
}

func (h *histogramFile) histogram(name string) (Histogram, error) {
	x, err := h.decode()
	return Histogram{name, x}, err
}

func (h *histogramFile) decode() (*stats.Histogram, error) {
	if len(h.Low) != len(h.High) || len(h.Low) != len(h.Counts) {
		return nil, fmt.Errorf("%d lower bounds, %d upper bounds and %d counts", len(h.Low), len(h.High), len(h.Counts))
	}
	s := stats.State{Count: h.Count}
	for _, field := range []struct {
		name, text string
		to         func(*big.Int)
	}{
		{"sum_ps", h.Exact.Sum, func(v *big.Int) { s.Sum = v }},
		{"squares_ps2", h.Exact.Squares, func(v *big.Int) { s.Squares = v }},
		{"min_ps", h.Exact.Min, func(v *big.Int) { s.Min = units.Duration(v.Int64()) }},
		{"max_ps", h.Exact.Max, func(v *big.Int) { s.Max = units.Duration(v.Int64()) }},
	} {
		v, ok := new(big.Int), len(field.text) <= 60
		if ok {
			v, ok = v.SetString(field.text, 10)
		}
		if !ok || strings.HasSuffix(field.name, "_ps") && field.name != "sum_ps" && !v.IsInt64() {
			return nil, fmt.Errorf("exact.%s is %q; it must be a whole number", field.name, field.text)
		}
		field.to(v)
	}
	const most = math.MaxInt64 / int64(units.Nanosecond)
	for i := range h.Low {
		if h.Low[i] < 0 || h.Low[i] > most || h.High[i] < 0 || h.High[i] > most {
			return nil, fmt.Errorf("bucket %d is out of range", i)
		}
		s.Bins = append(s.Bins, stats.Bin{Low: units.Duration(h.Low[i]) * units.Nanosecond,
			High: units.Duration(h.High[i]) * units.Nanosecond, Count: h.Counts[i]})
	}
	return stats.Restore(s)
}

// DecodeError is an error in a text, with its position.
type DecodeError struct {
	Line, Column int // from 1; 0 if the error concerns the whole text
	Err          error
}

// Error puts line and column in front of the error, if they are known.
func (d *DecodeError) Error() string {
	if d.Line == 0 {
		return d.Err.Error()
	}
	return fmt.Sprintf("%d:%d: %v", d.Line, d.Column, d.Err)
}

func (d *DecodeError) Unwrap() error { return d.Err }

// inFile puts a file's name in front of an error in its text.
func inFile(name string, err error) error {
	var d *DecodeError
	if errors.As(err, &d) && d.Line > 0 {
		return fmt.Errorf("%s:%w", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// DecodeFile decodes a file's JSON into v; errors have file, line and column.
func DecodeFile(name string, text []byte, v any) error {
	if err := decodeJSON(text, v); err != nil {
		return inFile(name, err)
	}
	return nil
}

// decodeJSON decodes a text that must be exactly one value. Its errors are DecodeErrors.
func decodeJSON(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	err := d.Decode(v)
	if err == nil {
		if _, end := d.Token(); errors.Is(end, io.EOF) {
			return nil
		}
		err = &misplaced{d.InputOffset(), errors.New("trailing text after the end")}
	}
	return located(text, err)
}

// located adds line and column to an error that knows its offset.
func located(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var place *misplaced
	offset := int64(-1)
	switch {
	case errors.As(err, &place):
		offset = place.at
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		offset, err = int64(len(text)), errors.New("the file ends in the middle; it is truncated or empty")
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		err = fmt.Errorf("%s cannot be a %s", cmp.Or(kind.Field, "it"), kind.Value)
	}
	if offset < 0 || offset > int64(len(text)) {
		return &DecodeError{Err: err}
	}
	before := text[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return &DecodeError{line, max(column, 1), err}
}
