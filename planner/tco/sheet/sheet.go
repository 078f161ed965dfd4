// Package sheet reads CSV tables with named columns, and reports mistakes by row and column.
//
// Its main types are Sheet, the rows of a table, and TableErrors, all mistakes found.
//
// It leaves out the meaning of the columns.
package sheet

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"farflash/internal/cells"
	"farflash/internal/spelling"
)

// TableError is a mistake in a CSV file. Rows are numbered as in a spreadsheet, the header being row 1.
type TableError struct {
	File   string
	Row    int
	Column string // "" for the whole row
	Msg    string // the mistake, and the correct form
}

func (e *TableError) Error() string {
	at := fmt.Sprintf("%s: row %d", e.File, e.Row)
	if e.Column != "" {
		at += ", column " + e.Column
	}
	return at + ": " + e.Msg
}

// TableErrors are all mistakes found, in the order of the file.
type TableErrors []*TableError

func (es TableErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Sheet is a CSV file with a header, with access by column name.
type Sheet struct {
	file    string
	columns []string
	at      map[string]int
	Rows    [][]string
	Lines   []int // row number of each
	Errs    TableErrors
}

// MostRows limits the size of a table.
const MostRows = 1_000_000

// Read reads a table whose columns are among the known ones. A line that starts with # is a comment.
func Read(r io.Reader, file string, known, needed []string) (*Sheet, error) {
	c := csv.NewReader(r)
	c.TrimLeadingSpace, c.FieldsPerRecord, c.Comment = true, -1, '#'
	s := &Sheet{file: file, at: map[string]int{}}
	head, err := c.Read()
	if err == io.EOF {
		return nil, TableErrors{{file, 1, "",
			"the table is empty; its first row names the columns: " + strings.Join(known, ",")}}
	}
	if err != nil {
		return nil, csvError(file, err)
	}
	line, _ := c.FieldPos(0)
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
		s.columns = append(s.columns, name)
		if name == "" {
			continue
		}
		found := false
		for _, k := range known {
			found = found || k == name
		}
		_, twice := s.at[name]
		switch {
		case !found:
			hint := "; the columns are " + strings.Join(known, ", ")
			if near := spelling.Nearest(name, known); near != "" {
				hint = fmt.Sprintf("; did you mean %q?", near)
			}
			s.Errs = append(s.Errs, &TableError{file, line, name, "unknown column" + hint})
		case twice:
			s.Errs = append(s.Errs, &TableError{file, line, name, "duplicate column; leave one out"})
		}
		s.at[name] = i
	}
	for _, n := range needed {
		if _, ok := s.at[n]; !ok {
			s.Errs = append(s.Errs, &TableError{file, line, n, "the column is missing; add it"})
		}
	}
	if s.Errs != nil {
		return nil, s.Errs
	}
	for {
		row, err := c.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, csvError(file, err)
		}
		line, _ := c.FieldPos(0)
		empty := true
		for _, v := range row {
			empty = empty && strings.TrimSpace(v) == ""
		}
		if empty {
			continue
		}
		if len(row) != len(head) {
			s.Errs = append(s.Errs,
				&TableError{file, line, "",
					fmt.Sprintf("%d values for %d columns; fill or cut the row", len(row), len(head))})
			continue
		}
		if len(s.Rows) == MostRows {
			return nil, TableErrors{{file, line, "", fmt.Sprintf("a table has at most %d rows", MostRows)}}
		}
		for i := range row {
			if !utf8.ValidString(row[i]) {
				s.Errs = append(s.Errs,
					&TableError{file, line, s.columns[i],
						fmt.Sprintf("%q is not UTF-8; save the table as UTF-8", row[i])})
			}
			row[i] = cells.Plain(row[i])
		}
		s.Rows, s.Lines = append(s.Rows, row), append(s.Lines, line)
	}
	return s, nil
}

func csvError(file string, err error) error {
	var p *csv.ParseError
	if errors.As(err, &p) {
		return TableErrors{{file, p.Line, "", p.Err.Error()}}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// Fail records a mistake in a cell; column is "" for the whole row.
func (s *Sheet) Fail(row int, column, format string, args ...any) {
	s.Errs = append(s.Errs, &TableError{s.file, s.Lines[row], column, fmt.Sprintf(format, args...)})
}

// Text returns a cell, or "" if the column is absent.
func (s *Sheet) Text(row int, column string) string {
	i, ok := s.at[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(s.Rows[row][i])
}

// Number reads a cell that must lie between lo and hi; an empty one yields otherwise, or an error if that is NaN.
func (s *Sheet) Number(row int, column string, otherwise, lo, hi float64) float64 {
	t := s.Text(row, column)
	if t == "" {
		if math.IsNaN(otherwise) {
			s.Fail(row, column, "missing value; write a number")
			return 0
		}
		return otherwise
	}
	scale := 1.0
	if cut, ok := strings.CutSuffix(t, "%"); ok {
		t, scale = strings.TrimSpace(cut), 0.01
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(t, "_", ""), 64)
	switch {
	case err != nil || math.IsNaN(v):
		s.Fail(row, column, "%q is not a number; write one such as 12.5", s.Text(row, column))
		return max(lo, 0)
	case !(v*scale >= lo && v*scale <= hi) || math.IsInf(v, 0):
		right := fmt.Sprintf("%v to %v", lo, hi)
		switch {
		case hi == 1:
			right += " (or 0% to 100%)"
		case math.IsInf(hi, 1):
			right = fmt.Sprintf("%v or more", lo)
			if lo > 0 && lo < 1e-9 {
				right = "more than 0"
			}
		}
		s.Fail(row, column, "%s is out of range; it must be %s", s.Text(row, column), right)
		return max(lo, 0)
	}
	return v * scale
}

// Tiny stands for a limit that must be exceeded.
const Tiny = 1e-300

// Done returns the mistakes, if any.
func (s *Sheet) Done() error {
	if s.Errs == nil {
		return nil
	}
	return s.Errs
}

// Plain formats a number in full, without an exponent, as spreadsheets read it.
func Plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
