package drives

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"farflash/internal/cells"
	"farflash/planner/tco"
	"farflash/planner/tco/sheet"
	"farflash/policy/ftl/waf"
)

// table opens a file and reads it with read.
func table[T any](file string, read func(io.Reader, string) (T, error)) (T, error) {
	f, err := os.Open(file)
	if err != nil {
		var none T
		return none, err
	}
	defer f.Close()
	return read(f, file)
}

// readMix reads points of write amplification: a CSV with the columns sequential and waf.
func readMix(r io.Reader, file string) (*tco.Table, error) {
	c := csv.NewReader(r)
	c.Comment, c.TrimLeadingSpace, c.FieldsPerRecord = '#', true, 2
	rows, err := c.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w; it has two columns, sequential and waf", file, err)
	}
	var points []waf.MixPoint
	for i, row := range rows {
		s, errS := number(row[0])
		a, errA := number(row[1])
		if i == 0 && errS != nil && errA != nil {
			continue // the header
		}
		if err := errors.Join(errS, errA); err != nil {
			return nil, fmt.Errorf("%s: row %d: %w", file, i+1, err)
		}
		points = append(points, waf.MixPoint{S: s, WAF: a})
	}
	t, err := tco.NewTable(points)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

func number(s string) (float64, error) {
	cut, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(cut), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number; write one such as 0.45", s)
	}
	if percent {
		v /= 100
	}
	return v, nil
}

// WriteDrives writes the table of drives for a spreadsheet.
func (o *Outcome) WriteDrives(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"drive", "model", "domain", "workloads", "write_gb_per_day", "sequential", "waf", "space_gb",
		"space_share", "iops", "iops_share", "lifetime_days", "ends_by",
		"wear_at_end", "cost", "data_gb", "cost_per_gb"}}
	for i := range o.Drives {
		d := &o.Drives[i]
		per := ""
		if d.State.Data > 0 {
			per = sheet.Plain(d.State.Cost / d.State.Data)
		}
		rows = append(rows, []string{cells.Text(d.Name), cells.Text(d.Model), cells.Text(d.Domain),
			strconv.Itoa(d.State.Workloads), sheet.Plain(d.State.WriteRate), sheet.Plain(d.State.Sequential),
			sheet.Plain(d.State.WAF),
			sheet.Plain(d.State.Space), sheet.Plain(d.State.SpaceShare), sheet.Plain(d.State.Load),
			sheet.Plain(d.State.IOPSShare), sheet.Plain(d.State.Lifetime), d.EndsBy, sheet.Plain(d.State.WearAtDeath),
			sheet.Plain(d.State.Cost), sheet.Plain(d.State.Data), per})
	}
	return c.WriteAll(rows)
}

// WritePlacements writes the placement of each workload.
func (o *Outcome) WritePlacements(w io.Writer) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"workload", "drive", "refused_for"}}
	for _, x := range o.Placements {
		rows = append(rows, cells.Row(x.Workload, x.Drive, x.Refused))
	}
	return c.WriteAll(rows)
}
