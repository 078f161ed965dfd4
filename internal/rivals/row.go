package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// row is the result of a cell.
type row struct {
	cell
	rival, form         string // the best forms
	theirs, best, usual found  // of the best rival, of pull's best form, and of pull with its defaults
	open                bool   // pull has not been run since it changed
}

// asItIs is the name of pull with its defaults.
const asItIs = "as it is"

// settle replaces pull's best form with its default form where the default is better.
func (r *row) settle() {
	if r.form == "" || r.better([]found{r.usual, r.best}, ofRate)[0] == 0 {
		r.form, r.best = asItIs, r.usual
	}
}

// Verdicts.
const (
	ahead  = "ahead"
	even   = "even"
	behind = "behind"
	fails  = "does not keep up"
)

// verdict returns pull's verdict. Pull is behind if its rate is lower by more than ofRate or its tail is longer by more
// than ofP99, and ahead if it is not behind and better by as much in one of the two. In an open loop, pull fails if it
// does not sustain the load and its rival does; if the rates are equal within keepsUp, the tail alone decides.
func (r *row) verdict(f found) string {
	rate, tail := r.counted(f)/r.counted(r.theirs)-1, f.p99/r.theirs.p99-1
	if r.load.open() {
		switch k := r.load.keepsUp(); {
		case rate < -k && r.counted(r.theirs) >= r.allowed()*(1-k):
			return fails
		case math.Abs(rate) <= k:
			rate = 0
		}
	}
	switch {
	case rate < -ofRate || tail > ofP99:
		return behind
	case rate > ofRate || tail < -ofP99:
		return ahead
	}
	return even
}

// columns are the table's columns.
var columns = []string{"chunk", "disks and links", "kept as", "condition", "load", "best rival", "its chunks/s",
	"its mean us", "its p99 us", "best pull", "chunks/s", "mean us", "p99 us", "is",
	"pull as it is: chunks/s", "mean us", "p99 us", "is", "disks allow chunks/s"}

func (f found) cells() []string {
	return []string{fmt.Sprintf("%.0f", f.rate), fmt.Sprintf("%.1f", f.mean), fmt.Sprintf("%.1f", f.p99)}
}

// kept rounds figures to the precision of the table, so that a row is unchanged when it is read back.
func (f found) kept() found {
	return found{math.Round(f.rate), math.Round(f.mean*10) / 10, math.Round(f.p99*10) / 10}
}

// record returns a row as CSV, with empty cells if pull has not been run. Verdicts are those of the rounded figures.
func (r *row) record() []string {
	out := append(append(r.key(), r.rival), r.theirs.cells()...)
	if r.open {
		out = append(out, make([]string, len(columns)-len(out)-1)...)
	} else {
		out = append(out, r.form)
		out = append(append(out, r.best.cells()...), r.verdict(r.best))
		out = append(append(out, r.usual.cells()...), r.verdict(r.usual))
	}
	return append(out, fmt.Sprintf("%.0f", r.capacity()))
}

// table holds all rows, by cell, and the file's comment on how the latest were made.
type table struct {
	rows map[string]row
	mark string
}

const (
	tableFile = "data/pull-grid.csv"
	tableName = "pull-grid"
)

// read reads the existing rows.
func read(dir string) (*table, error) {
	t := &table{rows: map[string]row{}}
	text, err := os.ReadFile(filepath.Join(dir, tableFile))
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	mark, rest, _ := strings.Cut(string(text), "\n")
	t.mark = mark
	c := csv.NewReader(strings.NewReader(rest))
	c.FieldsPerRecord = len(columns)
	lines, err := c.ReadAll()
	if err != nil {
		return nil, err
	}
	known := map[string]cell{}
	for _, x := range cells() {
		known[x.String()] = x
	}
	for k, line := range lines {
		if k == 0 {
			continue
		}
		r := row{rival: line[5], form: line[9], open: line[9] == ""}
		name := cell{}.String()
		for _, x := range known {
			if key := x.key(); key[0] == line[0] && key[1] == line[1] && key[2] == line[2] && key[3] == line[3] &&
				key[4] == line[4] {
				r.cell, name = x, x.String()
			}
		}
		if r.chunk == "" {
			return nil, fmt.Errorf("%s:%d: the grid has no such cell", tableFile, k+2)
		}
		allowed, err := strconv.ParseFloat(line[len(columns)-1], 64)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", tableFile, k+2, err)
		}
		r.does(allowed)
		for _, x := range []struct {
			f  *found
			at int
		}{{&r.theirs, 6}, {&r.best, 10}, {&r.usual, 14}} {
			if r.open && x.f != &r.theirs {
				continue
			}
			for j, v := range []*float64{&x.f.rate, &x.f.mean, &x.f.p99} {
				if *v, err = strconv.ParseFloat(line[x.at+j], 64); err != nil {
					return nil, fmt.Errorf("%s:%d: %w", tableFile, k+2, err)
				}
			}
		}
		if !r.open {
			r.settle()
		}
		t.rows[name] = r
	}
	return t, nil
}

// sorted returns the rows in the order of the grid.
func (t *table) sorted() []row {
	var list []row
	for _, x := range cells() {
		if r, ok := t.rows[x.String()]; ok {
			list = append(list, r)
		}
	}
	return list
}

// compared returns the rows in which pull has been run.
func (t *table) compared() []row {
	return slices.DeleteFunc(t.sorted(), func(r row) bool { return r.open })
}

// forget drops pull's figures, for use after a change to pull, and keeps those of its rivals.
func (t *table) forget() {
	for name, r := range t.rows {
		t.rows[name] = row{cell: r.cell, rival: r.rival, theirs: r.theirs, open: true}
	}
}

// write writes the rows to a file that replaces the previous one atomically.
func (t *table) write(dir string) error {
	path := filepath.Join(dir, tableFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, t.mark)
	w := csv.NewWriter(f)
	err = errors.Join(err, w.Write(columns))
	for _, r := range t.sorted() {
		err = errors.Join(err, w.Write(r.record()))
	}
	w.Flush()
	if err := errors.Join(err, w.Error(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
