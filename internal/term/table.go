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
	keys    int // the columns that every part of a table that is too wide begins with
}

// NewTable returns a table without rows.
func NewTable(columns ...Column) *Table { return &Table{columns: columns, keys: min(1, len(columns))} }

// Indent sets what every line begins with and returns t.
func (t *Table) Indent(text string) *Table {
	t.indent = text
	return t
}

// Keys sets how many columns say what a row is of, and returns t; it is one unless it is said. Where a table is too
// wide they begin each of its parts.
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

// Rows returns how many rows there are.
func (t *Table) Rows() int { return len(t.rows) }

// TableWidth is how wide a terminal is taken to be: no line of a table is longer, unless a single cell is.
const TableWidth = 80

// least is how little room the last column is broken into if it alone is, and leastShared if others are too.
const (
	least       = 24
	leastShared = 18
)

// Write prints the table. Titles are left out if all are empty. A table that is wider than a terminal has its columns
// nearer to each other, then its last column's text broken into lines, then that of all wide columns of text; and if
// that does not do, the columns that have no room follow below, each part behind the key columns.
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

// layout is how columns stand beside each other.
type layout struct {
	gap  int
	caps []int // by column: the width that its text is broken into; 0: it is not. nil: none is
}

// cap is the width that a column's text is broken into, 0 if it is not.
func (l layout) cap(i int) int {
	if l.caps == nil {
		return 0
	}
	return l.caps[i]
}

// widths are those of the columns.
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

// fit finds the end of the part that begins with the key columns and goes on at a column, and its layout.
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
		// one cell is too wide
		caps := make([]int, end)
		caps[from] = widths[from] - over
		return to, layout{2, caps}
	}
	return to, layout{gap: 2}
}

// shared breaks all columns of text that are wide, each into no less than is worth while, so that what is so wide
// fits; nil if that does not do.
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

// width is what a column takes: its text's, or less if that is broken.
func width(text, cap int) int {
	if cap > 0 {
		return cap
	}
	return text
}

// part prints the key columns and those from one up to another.
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

// broken puts ends of lines in the place of spaces, so that no line is wider than that, unless a word is. A number
// stays with its unit.
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

// isUnit reports whether a word is a unit, with what may follow it: "%", "us," or "MB/s".
func isUnit(word string) bool {
	word = strings.TrimRight(word, ",.;)")
	switch word {
	case "%", "ps", "ns", "us", "ms", "s", "min", "h", "d", "y", "B", "KB", "MB", "GB", "TB", "PB", "W", "J":
		return true
	}
	return strings.HasSuffix(word, "/s") || strings.HasSuffix(word, "iB")
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

// Lines breaks a text into lines that are no wider than that, unless a word is. A number stays with its unit.
func Lines(text string, width int) []string { return strings.Split(broken(text, width), "\n") }

// Wrap breaks a text into lines of a terminal's width; all but the first begin with the indent.
func Wrap(text, indent string) string {
	lines := Lines(text, TableWidth-Width(indent))
	return strings.Join(lines, "\n"+indent)
}
