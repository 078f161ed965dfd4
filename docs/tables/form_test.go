package tables

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/internal/golden"
	"farflash/internal/patience"
	"farflash/numeric/stats"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
	"farflash/study/training"
)

var update = flag.Bool("update", false, "write the tables anew; with FARFLASH_LONG all of them")

// run is a scenario with a seed: a preset or, instead, a text, and changes in the syntax of --set.
type run struct {
	preset, text string
	set          []string
	seed         uint64
}

// name returns a unique name of the run.
func (r *run) name() string {
	return fmt.Sprintf("%s%s %q seed %d", r.preset, r.text, r.set, r.seed)
}

// seeds returns n runs of a preset with changes, with consecutive seeds from first on.
func seeds(first uint64, n int, preset string, set ...string) []run {
	list := make([]run, n)
	for i := range list {
		list[i] = run{preset: preset, set: set, seed: first + uint64(i)}
	}
	return list
}

// with concatenates lists of changes.
func with(sets ...[]string) []string { return slices.Concat(sets...) }

// found is the outcome of a run: its result, or the error.
type found struct {
	*result.Result
	err error
}

// value returns a metric, NaN if there is none.
func (f *found) value(name string) float64 {
	if f.Result == nil {
		return math.NaN()
	}
	if m, ok := f.Metric(name); ok {
		return m.Value
	}
	return math.NaN()
}

// series returns the values of a series.
func (f *found) series(name string) []float64 {
	if f.Result == nil {
		return nil
	}
	s, _ := f.SeriesOf(name)
	return s.V
}

// cell is a cell of a table. Its runs are done before write is called, which gets their outcomes in the same order.
type cell struct {
	needs []run
	write func([]found) string
}

// A cell may fill several columns: "|" is between them.

// words returns a cell of fixed text.
func words(text string) cell { return cell{write: func([]found) string { return text }} }

// table is a table of docs/validation.
type table struct {
	page, name string // without a page it is a CSV file of its own
	made       string // the seeds
	gate       []int  // rows that every test run checks; the others need FARFLASH_LONG
	quick      bool   // every test run checks all rows
	fails      bool   // runs may fail: the cells report it
	head       []string
	rows       [][]cell
}

// all returns all tables.
func all() []table { return slices.Concat(snis(), src(), replicast(), drives(), prediction()) }

// TestTables checks the tables or, with -update, writes them.
func TestTables(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	var x runs
	if dir := os.Getenv("FARFLASH_CACHE"); dir != "" {
		var err error
		if x.cache, err = study.OpenCache(dir, "tables"); err != nil {
			t.Fatal(err)
		}
	}
	x.trainer = training.NewTrainer(training.DefaultConfig(), study.Runner{Cache: x.cache})
	for _, tab := range all() {
		t.Run(tab.name, func(t *testing.T) {
			long := patience.Long(t)
			file, row, lines := "../validation/"+tab.page+".md", golden.Row, golden.Head(tab.head...)
			if tab.page == "" {
				file, row = "../validation/data/"+tab.name+".csv", golden.Record
				lines = []string{golden.Record(tab.head...)}
			}
			if !long && !tab.quick {
				for _, i := range tab.gate {
					cells := x.lines(t, &tab, tab.rows[i:i+1])[0]
					golden.Rows(t, file, tab.name, []string{row(cells...)})
				}
				return
			}
			for _, cells := range x.lines(t, &tab, tab.rows) {
				if len(cells) != len(tab.head) {
					t.Errorf("a row of %d cells, and %d columns", len(cells), len(tab.head))
				}
				lines = append(lines, row(cells...))
			}
			golden.Table(t, file, tab.name, tab.made, lines, *update && !t.Failed())
		})
	}
}

// TestShapes verifies, without a run, that the CSV files have the tables' columns and rows, by the cells of fixed
// text at the start of each.
func TestShapes(t *testing.T) {
	for _, tab := range all() {
		if tab.page != "" {
			continue
		}
		records := golden.Records(t, "../validation/data/"+tab.name+".csv")
		if !slices.Equal(records[0], tab.head) || len(records) != 1+len(tab.rows) {
			t.Errorf("%s has the columns %q and %d rows, and it would have %q and %d", tab.name, records[0],
				len(records)-1, tab.head, len(tab.rows))
			continue
		}
		for i, r := range tab.rows {
			var fixed []string
			for _, c := range r {
				if c.needs != nil {
					break
				}
				fixed = append(fixed, strings.Split(c.write(nil), "|")...)
			}
			if got := records[1+i][:len(fixed)]; !slices.Equal(got, fixed) {
				t.Errorf("%s: row %d begins with %q, not %q", tab.name, 1+i, got, fixed)
			}
		}
	}
}

// runs holds the outcomes of the completed runs.
type runs struct {
	cache   *study.Cache
	trainer *training.Trainer
	done    map[string]found
}

// lines does the runs that rows need and that are not done yet, and formats their cells.
func (x *runs) lines(t *testing.T, tab *table, rows [][]cell) [][]string {
	t.Helper()
	if x.done == nil {
		x.done = map[string]found{}
	}
	var todo []run
	for _, r := range rows {
		for _, c := range r {
			for _, n := range c.needs {
				if _, ok := x.done[n.name()]; !ok {
					x.done[n.name()] = found{}
					todo = append(todo, n)
				}
			}
		}
	}
	var mu sync.Mutex
	trial.Parallel(context.Background(), len(todo), 0, func(i int) error {
		r, err := x.do(&todo[i])
		mu.Lock()
		defer mu.Unlock()
		x.done[todo[i].name()] = found{r, err}
		return nil
	})
	for i := range todo {
		if err := x.done[todo[i].name()].err; err != nil && !tab.fails {
			t.Errorf("%s: %v", todo[i].name(), err)
		}
	}
	lines := make([][]string, len(rows))
	for i, r := range rows {
		for _, c := range r {
			var list []found
			for _, n := range c.needs {
				list = append(list, x.done[n.name()])
			}
			lines[i] = append(lines[i], strings.Split(c.write(list), "|")...)
		}
	}
	return lines
}

// do performs a run, or reads its result from the cache. A violated conservation law is an error.
func (x *runs) do(r *run) (*result.Result, error) {
	src := shape.Source{File: "table.yaml", Text: []byte(r.text)}
	if r.preset != "" {
		var err error
		if src, err = scenario.Find(r.preset); err != nil {
			return nil, err
		}
	}
	var changes []shape.Change
	for _, s := range r.set {
		c, err := shape.ParseChange(s)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	s, err := scenario.Parse(src, changes)
	if err != nil {
		return nil, err
	}
	tr := trial.Trial{Scenario: s, Seed: r.seed}
	if tr.Digest, err = s.Digest(); err != nil {
		return nil, err
	}
	if x.cache != nil {
		if kept, err := x.cache.Get(tr); kept != nil || err != nil {
			return kept, err
		}
	}
	out, err := trial.Run(context.Background(), s,
		experiment.Options{Seed: r.seed, Version: "test", Predict: x.trainer.Predict(context.Background())})
	if err != nil {
		return nil, err
	}
	for _, c := range out.Result.Checks {
		if !c.OK {
			return nil, errors.New(c.Name + ": " + c.Detail)
		}
	}
	if x.cache != nil {
		return out.Result, x.cache.Put(tr, out.Result)
	}
	return out.Result, nil
}

// mean returns a cell with the mean of a metric over runs, times a factor.
func mean(format, metric string, factor float64, needs []run) cell {
	return cell{needs, func(list []found) string { return fmt.Sprintf(format, factor*meanOf(list, metric)) }}
}

// meanOf returns the mean of a metric over runs.
func meanOf(list []found, metric string) float64 {
	sum := 0.0
	for i := range list {
		sum += list[i].value(metric) / float64(len(list))
	}
	return sum
}

// over returns the mean ratio of a metric in the first half of the runs to that in the second half, run by run, with
// its interval.
func over(list []found, metric string) stats.Interval {
	n := len(list) / 2
	x := make([]float64, n)
	for i := range x {
		x[i] = list[i].value(metric) / list[n+i].value(metric)
	}
	in, err := stats.Replicates(x, 0.95)
	if err != nil {
		return stats.Interval{Mean: math.NaN(), Half: math.NaN()}
	}
	return in
}

// list formats figures, separated by spaces.
func list(format string, v []float64) string {
	out := make([]string, len(v))
	for i := range v {
		out[i] = fmt.Sprintf(format, v[i])
	}
	return strings.Join(out, " ")
}

// columns repeats the names of columns for each prefix.
func columns(prefixes []string, names ...string) []string {
	var out []string
	for _, p := range prefixes {
		for _, n := range names {
			out = append(out, strings.TrimSpace(p+" "+n))
		}
	}
	return out
}
