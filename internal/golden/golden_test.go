package golden

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// caught records failures in place of the test that it belongs to.
type caught struct {
	testing.TB
	failed bool
}

func (c *caught) Errorf(string, ...any) { c.failed = true }

// TestTable verifies that tables of a page and of a CSV file are rewritten in place, that a CSV file gains tables
// that it does not have, and that differences are errors.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	page, data := filepath.Join(dir, "a.md"), filepath.Join(dir, "data", "a.csv")
	text := "# A\n\n<!-- table one -->\n<!-- end of one -->\n\nmore\n"
	if err := os.WriteFile(page, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	head := Head("x", ">y")
	one, two := append(head, Row("a", "1")), []string{Record("b, c", "2")}
	Table(t, page, "one", "seed 1", one, true)
	Table(t, data, "one", "seed 1", []string{Record("x", "y"), Record("a", "1")}, true)
	Table(t, data, "two", "seed 1", two, true)
	Table(t, data, "one", "seed 2", []string{Record("x", "y"), Record("a", "0")}, true)
	Table(t, page, "one", "", one, false)
	Table(t, data, "two", "", two, false)
	Rows(t, data, "one", []string{"a,0"})
	want := [][]string{{"x", "y"}, {"a", "0"}, {"b, c", "2"}}
	if got := Records(t, data); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%q", got)
	}
	for _, name := range []string{page, data} {
		got, err := os.ReadFile(name)
		if err != nil || !strings.HasSuffix(string(got), "\n") || strings.HasSuffix(string(got), "\n\n") {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	for _, x := range []struct{ file, name string }{{page, "one"}, {data, "one"}, {data, "two"}} {
		c := &caught{TB: t}
		if Table(c, x.file, x.name, "", []string{"z"}, false); !c.failed {
			t.Errorf("%s: another table %s is no error", x.file, x.name)
		}
	}
}
