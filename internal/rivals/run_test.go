package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"farflash/experiment/trial"
)

// TestRun makes a row from nothing, which must be that of the kept table; a second run leaves it, one after -forget
// measures pull again and not its rivals, and no run begins what there is no time for.
func TestRun(t *testing.T) {
	const only = "^16KiB, 1000 MiB/s, 25G, 3 replicas, 0.1 % lost, open 50 %"
	const start = `16KiB,"1000 MiB/s, 25G",3 replicas,0.1 % lost,open 50 %,`
	kept, err := os.ReadFile(filepath.Join(docs, tableFile))
	if err != nil {
		t.Fatal(err)
	}
	rows := func(text []byte) (out []string) {
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, start) {
				out = append(out, strings.TrimSpace(line))
			}
		}
		return out
	}
	want := rows(kept)
	if len(want) != 1 {
		t.Fatalf("the kept table has %q", want)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, tableFile)
	text := func() string {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := func(want string) {
		t.Helper()
		if text, err := os.ReadFile(filepath.Join(dir, pageFile)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("the page does not say %q (%v)", want, err)
		}
	}
	ctx := t.Context()
	if err := run(ctx, dir, only, time.Nanosecond, 1, false, false); err != nil {
		t.Fatal(err)
	}
	over, stop := context.WithCancel(ctx)
	stop()
	if err := run(over, dir, only, 0, 1, false, false); err != nil {
		t.Errorf("an interrupt: %v", err)
	}
	page("0 of 830 cells have been run")
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Error("a cell has been run")
	}

	if err := run(ctx, dir, only, time.Hour, 1, false, false); err != nil {
		t.Fatal(err)
	}
	if got := rows([]byte(text())); len(got) != 1 || got[0] != want[0] || strings.Count(text(), "\n") != 3 {
		t.Fatalf("the table is\n%swant the row\n%s", text(), want[0])
	}
	if !strings.HasPrefix(text(), "# pull-grid: seeds 101 and 1, ") {
		t.Errorf("the table begins with %s", text())
	}
	page("1 of 830 cells have been run")
	page("pull at its best | 1 | 0 | 0 | 0 |")
	page("The best rival is `replicast-m` in 1 cells.")

	// A table that cannot be written is an error, whatever is to be written.
	if err := os.Mkdir(file+".new", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, forget := range []bool{false, true} {
		if err := run(ctx, dir, only, 0, 1, forget, !forget); err == nil || !strings.Contains(err.Error(), ".new") {
			t.Errorf("a folder is in the way of the table: %v", err)
		}
	}
	if err := os.Remove(file + ".new"); err != nil {
		t.Fatal(err)
	}
	if err := run(ctx, dir, only, 0, 1, false, true); err != nil || rows([]byte(text()))[0] != want[0] {
		t.Errorf("written again, the table is\n%s%v", text(), err)
	}

	// Other figures of the rival show that it does not run again.
	const theirs, others = ",932667,38.4,153.9,", ",932668,38.5,154.0,"
	if err := os.WriteFile(file, []byte(strings.Replace(text(), theirs, others, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	steps := []bool{false, true, false}
	if testing.Short() {
		steps = steps[:2] // without pull's second run
	}
	for _, forget := range steps {
		if err := run(ctx, dir, only, 0, 1, forget, false); err != nil {
			t.Fatal(err)
		}
		if forget {
			page("In 1 cells pull has changed since")
			page("0 of 830 cells have been run")
			if got, want := rows([]byte(text())), start+`"replicast-m, bids of 200%"`+others+",,,,,,,,,1920000"; len(got) != 1 ||
				got[0] != want {
				t.Errorf("forgotten, the row is\n%q, want\n%s", got, want)
			}
			continue
		}
		if got := rows([]byte(text())); len(got) != 1 || got[0] != strings.Replace(want[0], theirs, others, 1) {
			t.Errorf("run again, the row is\n%q", got)
		}
	}
}

// TestRunOnce verifies a single run: that the default and its explicit value give the same figures, that a run of few
// chunks has the longest time for its percentile, and its errors.
func TestRunOnce(t *testing.T) {
	ctx := t.Context()
	x := cell{"16KiB", hardware{400, 10}, code{}, equal, load{outstanding: 1}}
	f, err := x.run(ctx, usual, 1, x.window(1, 1)) // 45 chunks, of at least 13 us on the link and 39 us on a disk
	if err != nil || f.mean < 52 || f.p99 < f.mean || f.p99 > 1000 {
		t.Errorf("a short run finds %v, %v", f, err)
	}
	// 90 gateways have one chunk each in flight (Little's law).
	if f, err = x.run(ctx, usual, 1, x.window(roughly, roughlyDeep)); err != nil || f.rate*f.mean/1e6 < 85 ||
		f.rate*f.mean/1e6 > 95 {
		t.Errorf("%v, %v: %v chunks are in flight", f, err, f.rate*f.mean/1e6)
	}
	ahead, err := x.ahead()
	// Half of a write of 39 us, and the chunk's way to three targets, each 13 us after the one before.
	if err != nil || ahead < 39./2+13 || ahead > 39./2+5*13.5+10 {
		t.Errorf("%v us ahead, %v", ahead, err)
	}
	if _, err = x.run(ctx, rival{"chain", []string{"choices: 91"}, "91"}, 1, 0.001); err == nil ||
		!strings.Contains(err.Error(), "chain, 91:1:") || !strings.Contains(err.Error(), "choices: 91") {
		t.Errorf("91 candidates of 90 targets: %v", err)
	}
	over, stop := context.WithCancel(ctx)
	stop()
	if _, err = x.run(over, usual, 1, 0.001); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupt: %v", err)
	}
}

// TestRead verifies which tables are refused, and where the fault is.
func TestRead(t *testing.T) {
	row := `16KiB,"400 MiB/s, 10G",3 replicas,equal,1 outstanding,"chain, 2",5,2.0,3.0,ahead x 2,6,1.0,2.0,ahead,` +
		"7,1.5,2.5,ahead,768000\n"
	head := "# mark\n" + strings.Join(columns, ",") + "\n"
	for _, x := range []struct{ text, want string }{
		{head + row, ""},
		{head, ""},
		{head + row + strings.Replace(row, "equal", "unequal", 1), tableFile + ":4: the grid has no such cell"},
		{head + strings.Replace(row, "16KiB", "32KiB", 1), tableFile + ":3: the grid has no such cell"},
		{head + strings.Replace(row, "3 replicas", "4 replicas", 1), tableFile + ":3: the grid has no such cell"},
		{head + strings.Replace(row, "10G", "100G", 1), tableFile + ":3: the grid has no such cell"},
		{head + strings.Replace(row, "1 out", "3 out", 1), tableFile + ":3: the grid has no such cell"},
		{head + strings.Replace(row, "768000", "many", 1), tableFile + `:3: strconv.ParseFloat: parsing "many"`},
		{head + strings.Replace(row, "2.0", "two", 1), tableFile + `:3: strconv.ParseFloat: parsing "two"`},
		{head + strings.Replace(row, ",7,", ",seven,", 1), tableFile + `:3: strconv.ParseFloat: parsing "seven"`},
		{"# mark\na,b\n1,2\n", "wrong number of fields"},
	} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, filepath.Dir(tableFile)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tableFile), []byte(x.text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := read(dir)
		if x.want != "" {
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v, want %s", x.text, err, x.want)
			}
			if err := run(t.Context(), dir, "nothing", 0, 1, false, false); err == nil {
				t.Error("a wrong table is used")
			}
			continue
		}
		if err != nil || got.mark != "# mark" || len(got.sorted()) != strings.Count(x.text, "\n")-2 {
			t.Errorf("%s: %+v, %v", x.text, got, err)
		}
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, tableFile), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := read(dir); err == nil {
		t.Error("a folder is read as a table")
	}
	if err := run(t.Context(), dir, "(", 0, 1, false, false); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a wrong expression: %v", err)
	}
	if err := (&table{}).write(dir); err == nil {
		t.Error("a table is written in place of a folder")
	}
}

// TestInterrupted verifies that no figure comes from a run that was interrupted.
func TestInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	x := cell{"16KiB", hardware{400, 10}, code{}, equal, load{outstanding: 1}}
	drives := x
	drives.condition = ssds
	chosen := &tuned{theirs: []rival{usual}, ours: &usual}
	for name, f := range map[string]func() error{
		"measure": func() error { return drives.measure(ctx) },
		"choose":  func() error { _, err := x.choose(ctx, []rival{usual}, 1); return err },
		"rival, not chosen": func() error {
			r, err := x.rival(ctx, &tuned{})
			return errors.Join(err, complete(r))
		},
		"rival": func() error {
			r, err := x.rival(ctx, chosen)
			return errors.Join(err, complete(r))
		},
		"pull, not chosen": func() error {
			r := row{cell: x, open: true}
			return errors.Join(r.pull(ctx, &tuned{}), complete(r))
		},
		"pull": func() error {
			r := row{cell: x, open: true}
			return errors.Join(r.pull(ctx, chosen), complete(r))
		},
		"again": func() error {
			r := row{cell: x, open: true, rival: "chain, 1"}
			return errors.Join(r.again(ctx, usual), complete(r))
		},
	} {
		err := f()
		if !errors.Is(err, context.Canceled) && !errors.Is(err, trial.ErrInterrupted) || errors.Is(err, errComplete) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := x.measure(ctx); err != nil {
		t.Errorf("disks of a constant rate are measured: %v", err)
	}
	if rate := drives.capacity(); rate != x.capacity() {
		t.Errorf("the SSDs of an interrupted run have the rate %v", rate)
	}
}

var errComplete = errors.New("the row has figures of pull")

// complete returns errComplete if a row has been run.
func complete(r row) error {
	if r.open {
		return nil
	}
	return errComplete
}

// TestPicture verifies that the loads are in the order of the grid in the picture, whichever cells have been run.
func TestPicture(t *testing.T) {
	tab := &table{rows: map[string]row{}}
	for _, x := range []cell{
		{"16KiB", hardware{400, 10}, code{}, equal, load{share: 50}},
		{"16KiB", hardware{1000, 10}, code{}, equal, load{outstanding: 4}},
		{"16KiB", hardware{1000, 25}, code{}, equal, load{outstanding: 1}},
	} {
		f := found{1000, 1, 1}
		tab.rows[x.String()] = row{cell: x, rival: "chain, 1", form: asItIs, theirs: f, best: f, usual: f}
	}
	at := 0
	for _, label := range []string{"all cells (3)", "16KiB (3)", "1000 MiB/s, 25G (1)", "3 replicas (3)", "equal (3)",
		"1 outstanding (1)", "4 outstanding (1)", "open 50 % (1)"} {
		k := strings.Index(tab.picture()[at:], ">"+label+"<")
		if k < 0 {
			t.Fatalf("there is no %q after the others", label)
		}
		at += k
	}
}

// TestImpossible verifies that a fault names the cell that it is in.
func TestImpossible(t *testing.T) {
	const ssd = "128KiB, 1000 MiB/s, 10G, 3 replicas, SSDs with GC"
	was, rate := drives[1000], hardwares[0]
	defer func() { drives[1000], hardwares[0] = was, rate }()
	drives[1000], hardwares[0] = "ssd: {preset: drum}\n", hardware{0, 10}
	for only, want := range map[string]string{
		"^" + ssd: ssd + ", 1 outstanding: ",
		"^16KiB, 0 MiB/s, 10G, 3 replicas, equal, 2 out": "16KiB, 0 MiB/s, 10G, 3 replicas, equal, 2 outstanding: ",
	} {
		err := run(t.Context(), t.TempDir(), only, 0, 1, false, false)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", only, err)
		}
	}
}
