package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"farflash/stats"
	"farflash/units"
)

// Decode reads result.json. Fields and names that this version does not know are kept if they are metrics, series, matrices
// or checks, and passed over otherwise, so that it reads what later versions add.
func Decode(text []byte) (*Result, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&f); err != nil {
		return nil, at(text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more text after the result")
	}
	if f.Schema != Schema {
		if f.Schema == "" {
			return nil, fmt.Errorf(`this is not a result: there is no "schema": %q`, Schema)
		}
		return nil, fmt.Errorf("schema is %q, this program reads %q", f.Schema, Schema)
	}
	r := &Result{Schema: f.Schema, Digest: f.Digest, Seed: f.Seed, SimulatedS: f.SimulatedS, Version: f.Version, Name: f.Name,
		Summary: f.Summary, Interrupted: f.Interrupted, Checks: f.Checks, Limits: f.Limits, Warnings: f.Warnings, WarmUp: WarmUp{f.WarmUp.UntilS, f.WarmUp.Explain}, Steady: f.Steady}
	for scope, names := range f.Parts.all {
		r.Parts = append(r.Parts, Parts{scope, names})
	}
	for name, m := range f.Metrics.all {
		if m.Value == nil {
			return nil, fmt.Errorf("metrics: %s has no value", name)
		}
		r.Metrics = append(r.Metrics, Metric{name, *m.Value, m.Unit, m.Help})
	}
	for name, s := range f.Series.all {
		if len(s.T) != len(s.V) {
			return nil, fmt.Errorf("series: %s has %d times and %d values", name, len(s.T), len(s.V))
		}
		r.Series = append(r.Series, Series{name, s.Unit, s.TimeUnit, s.Width, s.T, s.V})
	}
	for name, h := range f.Histograms.all {
		decoded, err := h.decode()
		if err != nil {
			return nil, fmt.Errorf("histograms: %s: %w", name, err)
		}
		r.Histograms = append(r.Histograms, Histogram{name, decoded})
	}
	for name, m := range f.Matrices.all {
		v := make([][]float64, len(m.V))
		for i := range v {
			v[i] = m.V[i]
		}
		matrix := Matrix{name, m.Unit, m.Rows, m.Cols, v}
		if err := matrix.valid(); err != nil {
			return nil, err
		}
		r.Matrices = append(r.Matrices, matrix)
	}
	return r, nil
}

// file mirrors result.json.
type file struct {
	Schema      string  `json:"schema"`
	Digest      string  `json:"digest"`
	Seed        uint64  `json:"seed"`
	SimulatedS  float64 `json:"simulated_s"`
	Version     string  `json:"version"`
	Name        string  `json:"name"`
	Summary     string  `json:"summary"`
	Interrupted bool    `json:"interrupted"`
	WarmUp      struct {
		UntilS  float64 `json:"until_s"`
		Explain string  `json:"explain"`
	} `json:"warm_up"`
	Steady  *Steady         `json:"steady"`
	Parts   named[[]string] `json:"parts"`
	Metrics named[struct {
		Value *float64 `json:"value"`
		Unit  string   `json:"unit"`
		Help  string   `json:"help"`
	}] `json:"metrics"`
	Series named[struct {
		Unit     string  `json:"unit"`
		TimeUnit string  `json:"t_unit"`
		Width    float64 `json:"width"`
		T        numbers `json:"t"`
		V        numbers `json:"v"`
	}] `json:"series"`
	Histograms named[histogramFile] `json:"histograms"`
	Matrices   named[struct {
		Unit string    `json:"unit"`
		Rows []string  `json:"rows"`
		Cols []string  `json:"cols"`
		V    []numbers `json:"v"`
	}] `json:"matrices"`
	Checks   []Check  `json:"checks"`
	Limits   []string `json:"limits"`
	Warnings []string `json:"warnings"`
}

// named is a JSON object whose keys keep their order.
type named[T any] struct {
	names []string
	of    map[string]T
}

// all goes through them in order.
func (n *named[T]) all(yield func(string, T) bool) {
	for _, name := range n.names {
		if !yield(name, n.of[name]) {
			return
		}
	}
}

// UnmarshalJSON reads an object. Of a key that is there twice the last value counts.
func (n *named[T]) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	first, err := d.Token()
	if err != nil || first == nil {
		return err // null is none
	}
	if first != json.Delim('{') {
		return &json.UnmarshalTypeError{Value: fmt.Sprint(first), Type: reflect.TypeFor[map[string]T]()}
	}
	n.of = map[string]T{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // an object's keys are
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		if _, twice := n.of[name]; !twice {
			n.names = append(n.names, name)
		}
		n.of[name] = v
	}
	return nil
}

// numbers is a list in which null stands for NaN.
type numbers []float64

// UnmarshalJSON reads a list of numbers and nulls.
func (n *numbers) UnmarshalJSON(text []byte) error {
	var list []*float64
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*n = make([]float64, len(list))
	for i, v := range list {
		(*n)[i] = math.NaN()
		if v != nil {
			(*n)[i] = *v
		}
	}
	return nil
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
			return nil, fmt.Errorf("exact.%s is %q, must be a whole number", field.name, field.text)
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

// at adds the line and column to an error that knows its offset.
func at(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		err = fmt.Errorf("%s cannot be a %s", kind.Field, kind.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the file ends in the middle; it is truncated or empty")
	}
	if offset < 0 || offset > int64(len(text)) {
		return err
	}
	before := text[:offset]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Errorf("%s:%s: %w", strconv.Itoa(line), strconv.Itoa(max(column, 1)), err)
}
