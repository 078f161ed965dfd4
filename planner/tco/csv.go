package tco

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"

	"farflash/internal/cells"
	"farflash/planner/tco/sheet"
)

// workloadColumns returns the columns of a table of workloads. The first six are mandatory; count repeats a row.
func workloadColumns() []string {
	return []string{"name", "write_gb_per_day", "sequential", "peak_iops", "write_share", "working_set_gb",
		"arrival_day", "end_day", "full_stripe", "p99_us", "apart", "growth", "io_kib", "trace", "count"}
}

// ReadWorkloads reads a table of workloads. A share is written as 0.31 or 31%.
func ReadWorkloads(r io.Reader, file string) ([]Workload, error) {
	columns := workloadColumns()
	s, err := sheet.Read(r, file, columns, columns[:6])
	if err != nil {
		return nil, err
	}
	inf := math.Inf(1)
	var list []Workload
	names := map[string]int{}
	for i := range s.Rows {
		w := Workload{
			Name:       s.Text(i, "name"),
			WriteRate:  s.Number(i, "write_gb_per_day", math.NaN(), 0, inf),
			Sequential: s.Number(i, "sequential", math.NaN(), 0, 1),
			PeakIOPS:   s.Number(i, "peak_iops", math.NaN(), 0, inf),
			WriteShare: s.Number(i, "write_share", math.NaN(), 0, 1),
			WorkingSet: s.Number(i, "working_set_gb", math.NaN(), 0, inf),
			Arrival:    s.Number(i, "arrival_day", 0, 0, inf), End: s.Number(i, "end_day", 0, 0, inf),
			FullStripe: s.Number(i, "full_stripe", 0, 0, 1), P99: s.Number(i, "p99_us", 0, 0, inf),
			Apart:  s.Text(i, "apart"),
			Growth: s.Number(i, "growth", 0, -1+1e-9, mostGrowth), IOSize: s.Number(i, "io_kib", 0, 0.5, mostIOSize),
			Trace: s.Text(i, "trace"),
		}
		count := s.Number(i, "count", 1, 1, sheet.MostRows)
		if w.End > 0 && w.End <= w.Arrival {
			s.Fail(i, "end_day",
				"day %v is not after the arrival on day %v; leave it empty for a workload without an end", w.End,
				w.Arrival)
		}
		switch other, twice := names[w.Name]; {
		case w.Name == "":
			s.Fail(i, "name", "the workload has no name; give it one")
		case twice:
			s.Fail(i, "name", "%q is already the name of row %d; give each workload its own", w.Name, other)
		case count != math.Trunc(count):
			s.Fail(i, "count", "%v is not a whole number", count)
		case len(list)+int(count) > sheet.MostRows:
			s.Fail(i, "count", "the table has more than %d workloads", sheet.MostRows)
			return nil, s.Done()
		default:
			for n := range int(count) {
				x := w
				if count > 1 {
					x.Name = fmt.Sprintf("%s-%d", w.Name, n+1)
				}
				list = append(list, x)
			}
		}
		names[w.Name] = s.Lines[i]
	}
	if len(s.Rows) == 0 && s.Errs == nil {
		return nil, sheet.TableErrors{{File: file, Row: 2, Msg: "no workloads; write one per row"}}
	}
	return list, s.Done()
}

// WriteWorkloads writes a table that ReadWorkloads can read.
func WriteWorkloads(w io.Writer, jobs []Workload) error {
	c := csv.NewWriter(w)
	columns := workloadColumns()
	rows := [][]string{columns[:len(columns)-1]}
	for i := range jobs {
		x := &jobs[i]
		rows = append(rows, []string{cells.Text(x.Name), sheet.Plain(x.WriteRate), sheet.Plain(x.Sequential),
			sheet.Plain(x.PeakIOPS), sheet.Plain(x.WriteShare), sheet.Plain(x.WorkingSet), sheet.Plain(x.Arrival),
			some(x.End), sheet.Plain(x.FullStripe), some(x.P99), cells.Text(x.Apart), some(x.Growth), some(x.IOSize),
			cells.Text(x.Trace)})
	}
	return c.WriteAll(rows)
}

// some formats a value, with 0 as the empty string.
func some(v float64) string {
	if v == 0 {
		return ""
	}
	return sheet.Plain(v)
}
