package golden

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Table compares a table with the lines that a test has computed. The table is part of a Markdown page that is
// otherwise written by hand, where it lies between two comments,
//
//	<!-- table NAME: ... -->
//	<!-- end of NAME -->
//
// or of a CSV file, where it begins with the comment
//
//	# NAME: ...
//
// and ends at the next comment or at the end of the file. The comment records how the table was made: from which
// inputs, when, and on which commit. With update, Table rewrites the table and the comment, and appends a table that
// a CSV file does not have; otherwise all lines must be equal. The text made describes the inputs, such as "seeds 1
// to 5".
//
// Head and Row are the lines of a table in a page, Record those of a CSV file.
func Table(t testing.TB, file, name, made string, lines []string, update bool) {
	t.Helper()
	text, from, to := find(t, file, name)
	if update {
		if from == 0 {
			text = slices.DeleteFunc(text, func(l string) bool { return l == "" })
			from = len(text) + 1
			text, to = append(text, ""), from
			text = append(text, "")
		}
		head := Mark(name, made)
		if !isData(file) {
			head = "<!-- table " + strings.TrimPrefix(head, "# ") + " -->"
		}
		text = slices.Concat(text[:from-1], []string{head}, lines, text[to:])
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Join(text, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if from == 0 {
		t.Fatalf("%s has no table %s", file, name)
	}
	if got := text[from:to]; !slices.Equal(got, lines) {
		t.Errorf("%s: table %s is\n%s\nwant\n%s\n(FARFLASH_LONG=1 go generate ./docs writes it)", file,
			name, strings.Join(got, "\n"), strings.Join(lines, "\n"))
	}
}

// Mark returns the comment that begins a table of a CSV file.
func Mark(name, made string) string {
	commit := "of no commit"
	if out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = "on top of commit " + strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("# %s: %s, %s, %s", name, made, time.Now().UTC().Format(time.DateOnly), commit)
}

// Lines returns the lines of a table, for tests that can check only a part of it.
func Lines(t testing.TB, file, name string) []string {
	t.Helper()
	text, from, to := find(t, file, name)
	if from == 0 {
		t.Fatalf("%s has no table %s", file, name)
	}
	return text[from:to]
}

// Rows checks some rows of a table whose other rows take too long to compute in a test that always runs.
func Rows(t testing.TB, file, name string, rows []string) {
	t.Helper()
	there := Lines(t, file, name)
	for _, row := range rows {
		if !slices.Contains(there, row) {
			t.Errorf("%s: table %s lacks the row\n%s", file, name, row)
		}
	}
}

// Records returns the records of all tables of a CSV file.
func Records(t testing.TB, file string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	list, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// isData reports whether a file holds tables as CSV, and not in a page.
func isData(file string) bool { return filepath.Ext(file) == ".csv" }

// find returns the lines of a file, and the range of a table among them. In a CSV file that does not have the table,
// which may not exist yet, the range is empty and at 0.
func find(t testing.TB, file, name string) (text []string, from, to int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !(isData(file) && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	text = strings.Split(string(b), "\n")
	begins, ends := func(l string) bool {
		return strings.HasPrefix(l, "<!-- table "+name+":") || l == "<!-- table "+name+" -->"
	}, func(l string) bool { return l == "<!-- end of "+name+" -->" }
	if isData(file) {
		begins = func(l string) bool { return strings.HasPrefix(l, "# "+name+":") }
		ends = func(l string) bool { return l == "" || strings.HasPrefix(l, "# ") }
	}
	from = 1 + slices.IndexFunc(text, begins)
	to = from + slices.IndexFunc(text[from:], ends)
	if isData(file) && from == 0 {
		return text, 0, 0
	}
	if from == 0 || to < from {
		t.Fatalf("%s has no table %s", file, name)
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

// Record returns a line of a CSV file.
func Record(cells ...string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	if err := w.Write(cells); err != nil {
		panic(err) // a strings.Builder takes everything
	}
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}
