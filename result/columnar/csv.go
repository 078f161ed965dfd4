package columnar

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"

	"farflash/internal/cells"

	"github.com/parquet-go/parquet-go"
)

// WriteCSV writes a Parquet file of this package as CSV: a header line with the names of its columns, then one line per
// row, with nulls as empty cells. Its memory does not grow with the length of the file.
func WriteCSV(w io.Writer, r io.ReaderAt, size int64) (err error) {
	// The library panics on some kinds of damage.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged file: %v", p)
		}
	}()
	file, err := open(r, size)
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	var line []string
	for _, c := range file.Schema().Columns() {
		line = append(line, cells.Text(c[0]))
	}
	if err := out.Write(line); err != nil {
		return err
	}
	rows := make([]parquet.Row, chunk)
	for _, group := range file.RowGroups() {
		if err := writeGroup(out, group, rows, line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func writeGroup(out *csv.Writer, group parquet.RowGroup, rows []parquet.Row, line []string) error {
	reader := group.Rows()
	defer reader.Close()
	for {
		n, err := reader.ReadRows(rows)
		for _, row := range rows[:n] {
			for i := range line {
				line[i] = ""
			}
			for _, v := range row {
				if k := v.Column(); k >= 0 && k < len(line) && !v.IsNull() {
					line[k] = v.String()
					if v.Kind() == parquet.ByteArray {
						line[k] = cells.Text(line[k])
					}
				}
			}
			if err := out.Write(line); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == 0:
			return errors.New("damaged file: fewer rows than its footer states")
		}
	}
}
