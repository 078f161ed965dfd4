package golden

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// Table compares a table of a Markdown page with the lines that a test has computed. The table lies between two
// comments,
//
//	<!-- table NAME ... -->
//	<!-- end of NAME -->
//
// the first of which records how it was made: from which inputs, when, and on which commit. With update, Table rewrites
// the table and the comment; otherwise all lines must be equal. The text made describes the inputs, such as "seeds 1 to
// 5".
func Table(t testing.TB, page, name, made string, lines []string, update bool) {
	t.Helper()
	text, from, to := find(t, page, name)
	if update {
		commit := "of no commit"
		if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
			commit = "on top of commit " + strings.TrimSpace(string(out))
		}
		head := fmt.Sprintf("<!-- table %s: %s, %s, %s -->", name, made, time.Now().UTC().Format(time.DateOnly), commit)
		text = slices.Concat(text[:from-1], []string{head}, lines, text[to:])
		if err := os.WriteFile(page, []byte(strings.Join(text, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := text[from:to]; !slices.Equal(got, lines) {
		t.Errorf("%s: table %s is\n%s\nwant\n%s\n(FARFLASH_LONG=1 go generate ./docs writes it)", page,
			name, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// Lines returns the lines of a table, for tests that can check only a part of it.
func Lines(t testing.TB, page, name string) []string {
	t.Helper()
	text, from, to := find(t, page, name)
	return text[from:to]
}

// Rows checks some rows of a table whose other rows take too long to compute in a test that always runs.
func Rows(t testing.TB, page, name string, rows []string) {
	t.Helper()
	there := Lines(t, page, name)
	for _, row := range rows {
		if !slices.Contains(there, row) {
			t.Errorf("%s: table %s lacks the row\n%s", page, name, row)
		}
	}
}

// find returns the lines of a page, and the range of a table among them.
func find(t testing.TB, page, name string) (text []string, from, to int) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.Split(string(b), "\n")
	from = 1 + slices.IndexFunc(text, func(l string) bool {
		return strings.HasPrefix(l, "<!-- table "+name+":") || l == "<!-- table "+name+" -->"
	})
	to = slices.Index(text, "<!-- end of "+name+" -->")
	if from == 0 || to < from {
		t.Fatalf("%s has no table %s", page, name)
	}
	return text, from, to
}

// Head returns a table's first two lines; a column whose name begins with ">" is right-aligned.
func Head(columns ...string) []string {
	var names, rule strings.Builder
	for _, c := range columns {
		name, right := strings.CutPrefix(c, ">")
		names.WriteString("| " + name + " ")
		if rule.WriteString("|---"); right {
			rule.WriteString(":")
		}
	}
	return []string{names.String() + "|", rule.String() + "|"}
}

// Row returns a line of a table.
func Row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |" }
