package term

import (
	"io"
	"strings"
)

// Column is a column of a table.
type Column struct {
	Title string
	Right bool // numbers are right-aligned
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
	keys    int // number of columns repeated at the start of each part of a table that is too wide
}

// NewTable returns a table without rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns, keys: min(1, len(columns))} }

// Indent sets the prefix of every line and returns t.
func (t *Table) Indent(text string) *Table {
	t.indent = text
	return t
}

// Keys sets the number of columns that identify a row, and returns t; the default is one. If a table is too wide, each
// of its parts starts with them.
func (t *Table) Keys(n int) *Table {
	t.keys = min(n, len(t.columns))
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

// Rows returns the number of rows.
func (t *Table) Rows() int { return len(t.rows) }

// TableWidth is the assumed width of a terminal: no line of a table is longer, unless a single cell is.
const TableWidth = 80

// least is the smallest width to which the last column is wrapped alone, leastShared the smallest if other columns are
// wrapped too.
const (
	least       = 24
	leastShared = 18
)

// Write prints the table. Titles are omitted if all are empty. If a table is wider than a terminal, Write narrows the
// gaps between columns, then wraps the text of the last column, then that of all wide text columns. If that does not
// suffice, the columns that do not fit follow below in parts, each after the key columns.
func (t *Table) Write(w io.Writer, style Style) error {
	var b strings.Builder
	widths := t.widths()
	for from := t.keys; ; {
		to, layout := t.fit(widths, from)
		if from > t.keys {
			b.WriteByte('\n')
		}
		t.part(&b, style, widths, from, to, layout)
		if from = to; from >= len(t.columns) {
			break
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// layout is the arrangement of columns in a line.
type layout struct {
	gap  int
	caps []int // by column: the width to which its text is wrapped, or 0 if it is not; nil if none is
}

// cap returns the width to which a column's text is wrapped, or 0 if it is not.
func (l layout) cap(i int) int {
	if l.caps == nil {
		return 0
	}
	return l.caps[i]
}

// widths returns the widths of the columns.
func (t *Table) widths() []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		widths[i] = Width(c.Title)
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
	}
	return widths
}

// fit returns the end of the part that consists of the key columns and those starting at from, and its layout.
func (t *Table) fit(widths []int, from int) (to int, how layout) {
	width := func(to, gap int) int {
		n := Width(t.indent)
		for i := range t.keys {
			n += widths[i] + gap*min(i, 1)
		}
		for i := from; i < to; i++ {
			n += gap + widths[i]
		}
		return n
	}
	end := len(t.columns)
	for _, gap := range []int{2, 1} {
		if width(end, gap) <= TableWidth {
			return end, layout{gap: gap}
		}
	}
	if last := end - 1; last >= from && !t.columns[last].Right {
		for _, gap := range []int{2, 1} {
			if room := TableWidth - width(last, gap) - gap; room >= least {
				caps := make([]int, end)
				caps[last] = room
				return end, layout{gap, caps}
			}
		}
	}
	if caps := t.shared(widths, from, width(end, 2)); caps != nil {
		return end, layout{2, caps}
	}
	for to = from + 1; to < end && width(to+1, 2) <= TableWidth; {
		to++
	}
	if over := width(to, 2) - TableWidth; over > 0 && !t.columns[from].Right && to == from+1 &&
		widths[from]-over >= leastShared {
		// a single cell is too wide
		caps := make([]int, end)
		caps[from] = widths[from] - over
		return to, layout{2, caps}
	}
	return to, layout{gap: 2}
}

// shared wraps all wide text columns, none to less than leastShared, until a table of total width all fits. It returns
// nil if that does not suffice.
func (t *Table) shared(widths []int, from, all int) []int {
	caps := make([]int, len(widths))
	for all > TableWidth {
		widest := -1
		for i := from; i < len(widths); i++ {
			if w := width(widths[i], caps[i]); !t.columns[i].Right && w > leastShared &&
				(widest < 0 || w > width(widths[widest], caps[widest])) {
				widest = i
			}
		}
		if widest < 0 {
			return nil
		}
		caps[widest] = width(widths[widest], caps[widest]) - 1
		all--
	}
	return caps
}

// width returns the width of a column: that of its text, or of the wrapped text.
func width(text, cap int) int {
	if cap > 0 {
		return cap
	}
	return text
}

// part prints the key columns and those in the range [from, to).
func (t *Table) part(b *strings.Builder, style Style, widths []int, from, to int, how layout) {
	var list []int
	for i := range t.keys {
		list = append(list, i)
	}
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	line := func(cell func(int) string) {
		cells := make([][]string, len(list))
		lines := 1
		for k, i := range list {
			text := cell(i)
			if c := how.cap(i); c > 0 {
				text = broken(text, c)
			}
			cells[k] = strings.Split(text, "\n")
			lines = max(lines, len(cells[k]))
		}
		for n := range lines {
			var l strings.Builder
			l.WriteString(t.indent)
			for k, i := range list {
				if k > 0 {
					l.WriteString(strings.Repeat(" ", how.gap))
				}
				text := ""
				if n < len(cells[k]) {
					text = cells[k][n]
				}
				l.WriteString(pad(text, width(widths[i], how.cap(i)), t.columns[i].Right))
			}
			b.WriteString(strings.TrimRight(l.String(), " "))
			b.WriteByte('\n')
		}
	}
	titled := false
	for _, i := range list {
		titled = titled || t.columns[i].Title != ""
	}
	if titled {
		line(func(i int) string { return style.Dim(t.columns[i].Title) })
	}
	for _, row := range t.rows {
		line(func(i int) string { return row[i] })
	}
}

// broken replaces spaces by line ends, so that no line is wider than width unless a word is. A number stays with its
// unit.
func broken(text string, width int) string {
	var words []string
	for word := range strings.SplitSeq(text, " ") {
		if n := len(words); n > 0 && words[n-1] != "" &&
			strings.ContainsRune("0123456789", rune(words[n-1][len(words[n-1])-1])) && isUnit(word) {
			words[n-1] += " " + word
			continue
		}
		words = append(words, word)
	}
	var b strings.Builder
	at := 0
	for k, word := range words {
		n := Width(word)
		switch {
		case k == 0:
		case at+1+n > width && n > 0:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String()
}

// isUnit reports whether a word is a unit, which punctuation may follow: "%", "us," or "MB/s".
func isUnit(word string) bool {
	word = strings.TrimRight(word, ",.;)")
	switch word {
	case "%", "ps", "ns", "us", "ms", "s", "min", "h", "d", "y", "B", "KB", "MB", "GB", "TB", "PB", "W", "J":
		return true
	}
	return strings.HasSuffix(word, "/s") || strings.HasSuffix(word, "iB")
}

// Bar returns a bar of the given width, filled to a share from 0 to 1, in steps of an eighth of a character.
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

// Lines breaks a text into lines no wider than width, unless a word is. A number stays with its unit.
func Lines(text string, width int) []string { return strings.Split(broken(text, width), "\n") }

// Wrap wraps a text to a terminal's width; all lines but the first start with the indent.
func Wrap(text, indent string) string {
	lines := Lines(text, TableWidth-Width(indent))
	return strings.Join(lines, "\n"+indent)
}
