package term

import (
	"strings"
	"testing"
)

// TestTableWidth verifies that no table is wider than a terminal: gaps are narrowed, then the last column is wrapped,
// then columns follow below.
func TestTableWidth(t *testing.T) {
	write := func(x *Table) []string {
		var b strings.Builder
		if err := x.Write(&b, Style{}); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for _, l := range lines {
			if Width(l) > TableWidth || strings.HasSuffix(l, " ") {
				t.Errorf("%d columns: %q", Width(l), l)
			}
		}
		return lines
	}
	numbers := func(n int) *Table {
		columns, row := []Column{Left("")}, []string{"name"}
		for range n {
			columns, row = append(columns, Right("figure")), append(row, "1234567")
		}
		x := NewTable(columns...)
		x.Row(row...)
		return x
	}
	if got := write(numbers(8)); len(got) != 2 || !strings.Contains(got[1], "name  1234567  1234567") {
		t.Errorf("%q", got)
	}
	if got := write(numbers(9)); len(got) != 2 || !strings.Contains(got[1], "name 1234567 1234567") {
		t.Errorf("nearer: %q", got)
	}
	got := write(numbers(12))
	if len(got) != 5 || got[2] != "" || !strings.HasPrefix(got[4], "name  1234567") ||
		strings.Count(got[1], "1234567")+strings.Count(got[4], "1234567") != 12 {
		t.Errorf("in two parts: %q", got)
	}
	x := NewTable(Left(""), Right("value"), Left("says")).Indent("  ")
	x.Row("first", "12", strings.Repeat("word ", 30)+"end")
	x.Row("second", "3", "short")
	if got := write(x); len(got) != 5 || !strings.HasPrefix(got[2], strings.Repeat(" ", 17)+"word") ||
		got[4] != "  second      3  short" {
		t.Errorf("broken: %q", got)
	}
	// Two wide text columns share the width left.
	y := NewTable(Left(""), Left(""), Left("")).Indent("  ")
	y.Row(strings.Repeat("n", 33), strings.Repeat("figure ", 10)+"end", strings.Repeat("source ", 6)+"end")
	y.Row("second", "one", "two")
	if got := write(y); len(got) < 4 || !strings.HasPrefix(got[1], strings.Repeat(" ", 37)+"figure") ||
		!strings.HasSuffix(got[1], "source") ||
		got[len(got)-1] != "  second"+strings.Repeat(" ", 29)+"one"+
			strings.Repeat(" ", strings.Index(got[0], "source")-40)+"two" {
		t.Errorf("shared: %q", got)
	}
	long := NewTable(Left("a"), Left("b"))
	long.Row(strings.Repeat("x", 70), "one two")
	var b strings.Builder
	if err := long.Write(&b, Style{}); err != nil || !strings.Contains(b.String(), "one two") {
		t.Errorf("%q, %v", b.String(), err)
	}
}
