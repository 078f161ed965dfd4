package result

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"

	"farflash/internal/cells"
	"farflash/numeric/units"
)

// CSVTables lists the tables that WriteCSV can write.
var CSVTables = []string{"metrics", "series", "histograms", "matrices"}

// WriteCSV writes one table of a result, with a header line and a row per value:
//
//	metrics:    metric, value, unit, help
//	series:     series, unit, t, t_unit, value           (empty value: none in that bin)
//	histograms: histogram, low_ns, high_ns, count, cumulative
//	matrices:   matrix, unit, row, column, value
func WriteCSV(w io.Writer, r *Result, table string) error {
	c := csv.NewWriter(w)
	number := func(v float64) string {
		if math.IsNaN(v) {
			return ""
		}
		return string(appendFloat(nil, v))
	}
	var rows [][]string
	switch table {
	case "metrics":
		rows = append(rows, []string{"metric", "value", "unit", "help"})
		for _, m := range r.Metrics {
			rows = append(rows, []string{cells.Text(m.Name), number(m.Value), cells.Text(m.Unit), cells.Text(m.Help)})
		}
	case "series":
		rows = append(rows, []string{"series", "unit", "t", "t_unit", "value"})
		for _, s := range r.Series {
			for i, t := range s.T {
				rows = append(rows, []string{cells.Text(s.Name), cells.Text(s.Unit), number(t),
					cells.Text(s.TimeUnit), number(s.V[i])})
			}
		}
	case "histograms":
		rows = append(rows, []string{"histogram", "low_ns", "high_ns", "count", "cumulative"})
		for _, h := range r.Histograms {
			var sum int64
			for _, b := range h.H.Bins() {
				sum += b.Count
				rows = append(rows, []string{cells.Text(h.Name), strconv.FormatInt(int64(b.Low/units.Nanosecond), 10),
					strconv.FormatInt(int64(b.High/units.Nanosecond), 10), strconv.FormatInt(b.Count, 10),
					strconv.FormatInt(sum, 10)})
			}
		}
	case "matrices":
		rows = append(rows, []string{"matrix", "unit", "row", "column", "value"})
		for _, m := range r.Matrices {
			for i, row := range m.V {
				for k, v := range row {
					rows = append(rows, append(cells.Row(m.Name, m.Unit, m.Rows[i], m.Cols[k]), number(v)))
				}
			}
		}
	default:
		return fmt.Errorf("no table %q; the tables are %s, and, if the run wrote them as Parquet, requests, chunks, "+
			"flows and pauses", table, quoted(CSVTables))
	}
	return c.WriteAll(rows)
}

func quoted(list []string) string {
	text := ""
	for i, s := range list {
		if i > 0 {
			text += ", "
		}
		text += s
	}
	return text
}
