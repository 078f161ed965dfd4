package term

import (
	"io"
	"strings"
)

// Column is a column of a table.
type Column struct {
	Title string
	Right bool // numbers stand right
}

// Left returns a column of text.
func Left(title string) Column { return Column{Title: title} }

// Right returns a column of numbers.
func Right(title string) Column { return Column{Title: title, Right: true} }

// Table is rows of cells under titles, printed with every column as wide as its widest cell.
type Table struct {
	columns []Column
	rows    [][]string
	indent  string
}

// NewTable returns a table without rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Indent sets what every line begins with and returns t.
func (t *Table) Indent(text string) *Table {
	t.indent = text
	return t
}

// Row adds a row. Missing cells are empty; more cells than columns are a programming error and panic.
func (t *Table) Row(cells ...string) {
	if len(cells) > len(t.columns) {
		panic("term: a row has more cells than the table has columns")
	}
	row := make([]string, len(t.columns))
	copy(row, cells)
	t.rows = append(t.rows, row)
}

// Rows returns how many rows there are.
func (t *Table) Rows() int { return len(t.rows) }

// Write prints the table. Titles are left out if all are empty.
func (t *Table) Write(w io.Writer, style Style) error {
	widths := make([]int, len(t.columns))
	titled := false
	for i, c := range t.columns {
		widths[i] = Width(c.Title)
		titled = titled || c.Title != ""
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
	}
	var b strings.Builder
	line := func(cell func(int) string) {
		var l strings.Builder
		l.WriteString(t.indent)
		for i, c := range t.columns {
			if i > 0 {
				l.WriteString("  ")
			}
			l.WriteString(pad(cell(i), widths[i], c.Right))
		}
		b.WriteString(strings.TrimRight(l.String(), " "))
		b.WriteByte('\n')
	}
	if titled {
		line(func(i int) string { return style.Dim(t.columns[i].Title) })
	}
	for _, row := range t.rows {
		line(func(i int) string { return row[i] })
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Bar returns a bar of the given width of which the share from 0 to 1 is filled, to an eighth of a character.
func Bar(share float64, width int) string {
	eighths := []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}
	n := int(min(max(share, 0), 1)*float64(8*width) + 0.5)
	s := strings.Repeat("█", n/8) + eighths[n%8]
	return s + strings.Repeat("·", width-Width(s))
}

// Sparks returns one character per share, from a low block at 0 to a full one at 1.
func Sparks(shares []float64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, s := range shares {
		if s != s {
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(levels[int(min(max(s, 0), 1)*float64(len(levels)-1)+0.5)])
	}
	return b.String()
}
