package tco

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

// TableError is a mistake in a CSV file. Rows are counted as a spreadsheet does, the header being row 1.
type TableError struct {
	File   string
	Row    int
	Column string // "" if it is the whole row
	Msg    string // what is wrong; what would be right
}

func (e *TableError) Error() string {
	at := fmt.Sprintf("%s: row %d", e.File, e.Row)
	if e.Column != "" {
		at += ", column " + e.Column
	}
	return at + ": " + e.Msg
}

// TableErrors are all mistakes that were found, in the order of the file.
type TableErrors []*TableError

func (es TableErrors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// sheet reads a CSV file with a header, column by name.
type sheet struct {
	file    string
	columns []string
	at      map[string]int
	rows    [][]string
	lines   []int // row number of each
	errs    TableErrors
}

// mostRows bounds a table.
const mostRows = 1_000_000

// readSheet reads a table whose columns are among those known. A line that begins with # is a comment.
func readSheet(r io.Reader, file string, known, needed []string) (*sheet, error) {
	c := csv.NewReader(r)
	c.TrimLeadingSpace, c.FieldsPerRecord, c.Comment = true, -1, '#'
	s := &sheet{file: file, at: map[string]int{}}
	head, err := c.Read()
	if err == io.EOF {
		return nil, TableErrors{{file, 1, "", "the table is empty; its first row names the columns: " + strings.Join(known, ",")}}
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
			s.errs = append(s.errs, &TableError{file, line, name, "there is no such column" + hint})
		case twice:
			s.errs = append(s.errs, &TableError{file, line, name, "the column is there twice; leave one"})
		}
		s.at[name] = i
	}
	for _, n := range needed {
		if _, ok := s.at[n]; !ok {
			s.errs = append(s.errs, &TableError{file, line, n, "the column is missing; add it"})
		}
	}
	if s.errs != nil {
		return nil, s.errs
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
			s.errs = append(s.errs, &TableError{file, line, "", fmt.Sprintf("there are %d values under %d columns; fill or cut the row", len(row), len(head))})
			continue
		}
		if len(s.rows) == mostRows {
			return nil, TableErrors{{file, line, "", fmt.Sprintf("a table has at most %d rows", mostRows)}}
		}
		for i := range row {
			if !utf8.ValidString(row[i]) {
				s.errs = append(s.errs, &TableError{file, line, s.columns[i], fmt.Sprintf("%q is not UTF-8; save the table as UTF-8", row[i])})
			}
			row[i] = cells.Plain(row[i])
		}
		s.rows, s.lines = append(s.rows, row), append(s.lines, line)
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

func (s *sheet) fail(row int, column, format string, args ...any) {
	s.errs = append(s.errs, &TableError{s.file, s.lines[row], column, fmt.Sprintf(format, args...)})
}

// text returns a cell, "" if the column is not there.
func (s *sheet) text(row int, column string) string {
	i, ok := s.at[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(s.rows[row][i])
}

// number reads a cell that must lie between lo and hi; an empty one is the default, which is NaN if a value must be there.
func (s *sheet) number(row int, column string, otherwise, lo, hi float64) float64 {
	t := s.text(row, column)
	if t == "" {
		if math.IsNaN(otherwise) {
			s.fail(row, column, "there is no value; write a number")
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
		s.fail(row, column, "%q is not a number; write one such as 12.5", s.text(row, column))
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
		s.fail(row, column, "%s is out of range; it must be %s", s.text(row, column), right)
		return max(lo, 0)
	}
	return v * scale
}

// tiny stands for a limit that must be exceeded.
const tiny = 1e-300

// done returns the mistakes.
func (s *sheet) done() error {
	if s.errs == nil {
		return nil
	}
	return s.errs
}

// WorkloadColumns are the columns of a table of workloads. The first six must be there; count repeats a row.
func WorkloadColumns() []string {
	return []string{"name", "write_gb_per_day", "sequential", "peak_iops", "write_share", "working_set_gb", "arrival_day", "end_day", "full_stripe", "p99_us", "apart", "growth", "count"}
}

// ReadWorkloads reads a table of workloads. Shares may be written 0.31 or 31%.
func ReadWorkloads(r io.Reader, file string) ([]Workload, error) {
	columns := WorkloadColumns()
	s, err := readSheet(r, file, columns, columns[:6])
	if err != nil {
		return nil, err
	}
	inf := math.Inf(1)
	var list []Workload
	names := map[string]int{}
	for i := range s.rows {
		w := Workload{
			Name:      s.text(i, "name"),
			WriteRate: s.number(i, "write_gb_per_day", math.NaN(), 0, inf), Sequential: s.number(i, "sequential", math.NaN(), 0, 1),
			PeakIOPS: s.number(i, "peak_iops", math.NaN(), 0, inf), WriteShare: s.number(i, "write_share", math.NaN(), 0, 1),
			WorkingSet: s.number(i, "working_set_gb", math.NaN(), 0, inf), Arrival: s.number(i, "arrival_day", 0, 0, inf), End: s.number(i, "end_day", 0, 0, inf),
			FullStripe: s.number(i, "full_stripe", 0, 0, 1), P99: s.number(i, "p99_us", 0, 0, inf), Apart: s.text(i, "apart"),
			Growth: s.number(i, "growth", 0, -1+1e-9, mostGrowth),
		}
		count := s.number(i, "count", 1, 1, mostRows)
		if w.End > 0 && w.End <= w.Arrival {
			s.fail(i, "end_day", "day %v is not after the arrival on day %v; leave it empty for a workload without an end", w.End, w.Arrival)
		}
		switch other, twice := names[w.Name]; {
		case w.Name == "":
			s.fail(i, "name", "the workload has no name; give it one")
		case twice:
			s.fail(i, "name", "%q is the name of row %d already; give each workload its own", w.Name, other)
		case count != math.Trunc(count):
			s.fail(i, "count", "%v is not a whole number", count)
		case len(list)+int(count) > mostRows:
			s.fail(i, "count", "that makes more than %d workloads", mostRows)
			return nil, s.done()
		default:
			for n := range int(count) {
				x := w
				if count > 1 {
					x.Name = fmt.Sprintf("%s-%d", w.Name, n+1)
				}
				list = append(list, x)
			}
		}
		names[w.Name] = s.lines[i]
	}
	if len(s.rows) == 0 && s.errs == nil {
		return nil, TableErrors{{file, 2, "", "there are no workloads; write one a row"}}
	}
	return list, s.done()
}

// WriteWorkloads writes a table that ReadWorkloads reads.
func WriteWorkloads(w io.Writer, jobs []Workload) error {
	c := csv.NewWriter(w)
	columns := WorkloadColumns()
	rows := [][]string{columns[:len(columns)-1]}
	for i := range jobs {
		x := &jobs[i]
		rows = append(rows, []string{cells.Text(x.Name), Plain(x.WriteRate), Plain(x.Sequential), Plain(x.PeakIOPS), Plain(x.WriteShare), Plain(x.WorkingSet), Plain(x.Arrival),
			some(x.End), Plain(x.FullStripe), some(x.P99), cells.Text(x.Apart), some(x.Growth)})
	}
	return c.WriteAll(rows)
}

// Plain writes a number in full, without an exponent, as spreadsheets read it.
func Plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// some writes nothing for 0.
func some(v float64) string {
	if v == 0 {
		return ""
	}
	return Plain(v)
}
