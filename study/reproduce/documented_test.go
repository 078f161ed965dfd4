package reproduce

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"farflash/internal/golden"
)

// The generated parts of docs/validation: data has the rows of each paper's experiments as CSV, rows.md counts them,
// and a picture for each paper shows them.

const (
	validation = "../../docs/validation/"
	rowData    = validation + "data/"
)

// paperOf returns the paper of an experiment, which its rows' file is named after; "" for an experiment whose figures
// are of the machine at hand, or whose tables another package writes.
func paperOf(e *Experiment) string {
	if e.Measured || slices.Contains([]string{"src-fig5", "src-table1", "src-table3", "flashnet-waf"}, e.ID) {
		return ""
	}
	paper, _, _ := strings.Cut(e.ID, "-")
	return paper
}

// The columns of a file of rows. A figure that no sentence of the paper states has neither a criterion nor a verdict.
var rowColumns = []string{"experiment", "row", "figure", "unit", "paper", "ours", "wanted", "verdict", "turned by",
	"says", "because"}

const (
	atExperiment = iota
	atRow
	atFigure
	_
	atPaper
	atOurs
	atWanted
	atVerdict
	atTurns
)

// rowLines returns an experiment's lines of its paper's file: its rows in their order, and then, by name, its figures
// without a verdict. Those of the first experiment begin with the names of the columns.
func rowLines(r *Report, first bool) []string {
	var lines []string
	if first {
		lines = append(lines, golden.Record(rowColumns...))
	}
	for i := range r.Rows {
		x := &r.Rows[i]
		paper := ""
		if x.Paper != nil {
			paper = figure(*x.Paper)
		}
		turns := ""
		if m := turnedBy(r.ID, x.Label, x.Metric); m != nil {
			turns = m.name
		}
		lines = append(lines, golden.Record(r.ID, x.Label, x.Metric, unitOf(x.Unit), paper, figure(x.Ours),
			x.Meets.String(), x.Verdict().String(), turns, x.Quote, x.reason()))
	}
	told := slices.Clone(r.Unjudged)
	slices.SortStableFunc(told, func(a, b Figure) int {
		return cmp.Or(strings.Compare(a.Label, b.Label), strings.Compare(a.Metric, b.Metric))
	})
	for _, x := range told {
		lines = append(lines, golden.Record(r.ID, x.Label, x.Metric, unitOf(x.Unit), "", fmt.Sprintf("%.4g", x.Ours),
			"", "", "", "", x.Note))
	}
	return lines
}

// unitOf returns a unit for the file; counts and ratios have none.
func unitOf(unit string) string {
	switch unit {
	case "count", "ratio", "correlation":
		return ""
	}
	return unit
}

// documented compares the data of an experiment with its report, or writes them.
func documented(t *testing.T, e *Experiment, r *Report, update bool) {
	t.Helper()
	paper := paperOf(e)
	if paper == "" {
		return
	}
	golden.Table(t, rowData+paper+".csv", e.ID, "seed 1", rowLines(r, isFirst(e)), update)
	if r.clusters != nil {
		clusterTable(t, r, update)
	}
	if paper == "reality" {
		realityTable(t, r, update)
	}
}

// realityTable compares the table of measurements of an experiment with its report, or writes it.
func realityTable(t *testing.T, r *Report, update bool) {
	t.Helper()
	lines := golden.Head("machines", "figure", ">measured", ">ours", ">off", "parameter")
	for i := range r.Rows {
		x := &r.Rows[i]
		unit := unitOf(x.Unit)
		if unit != "" {
			unit = " " + unit
		}
		_, parameter, _ := strings.Cut(x.Expect, "it sets ")
		lines = append(lines, golden.Row(x.Label, x.Metric, figure(*x.Paper)+unit, figure(x.Ours)+unit,
			fmt.Sprintf("%+.0f %%", 100*(x.Ours-*x.Paper) / *x.Paper), parameter))
	}
	golden.Table(t, validation+"reality.md", r.ID, "seed 1", lines, update)
}

// isFirst reports whether an experiment is the first of its paper.
func isFirst(e *Experiment) bool {
	for _, x := range All() {
		if paperOf(&x) == paperOf(e) {
			return x.ID == e.ID
		}
	}
	return false
}

// figure formats a number with five digits, and one that is missing as "".
func figure(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return ""
	case math.Abs(x) >= 1000:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.5g", x)
}

// surgeAnswers are the results of SURGE's own model code without its clock, by chunk, disks and protocol: recorded with
// build d92018f, means of one to five seeds. model/cluster/testdata/surge.txt has the same.
var surgeAnswers = map[[2]string][3]string{
	{"16KiB", "400"}: {"541200", "645500", "522900"}, {"128KiB", "400"}: {"58700", "80033", "75160"},
	{"1MiB", "400"}:   {"6633", "8208", "8093"},
	{"16KiB", "1000"}: {"927400", "919200", "640100"}, {"128KiB", "1000"}: {"107600", "175475", "130000"},
	{"1MiB", "1000"}: {"12650 to 13275", "19642", "15417"},
}

// clusterTable is the Replicast paper's table 2 or 3, by SURGE's rules and in steady state.
func clusterTable(t *testing.T, r *Report, update bool) {
	t.Helper()
	p := r.clusters
	disk := p.cases[0].disk
	var lines []string
	if disk == "400" {
		lines = append(lines, golden.Record("disks MiB/s", "chunk", "protocol", "paper chunks/s", "as SURGE chunks/s",
			"SURGE's code chunks/s", "steady chunks/s", "of what disks and links allow %"))
	}
	for _, chunk := range replicastChunks {
		for k, protocol := range replicastProtocols {
			i := p.find(90, chunk, disk, protocol)
			j := slices.IndexFunc(r.Rows, func(x Row) bool {
				return x.Label == chunk+", "+protocol+", as SURGE" && x.Metric == "chunks a second"
			})
			row := &r.Rows[j]
			lines = append(lines, golden.Record(disk, chunk, protocol, figure(*row.Paper), figure(row.Ours),
				surgeAnswers[[2]string{chunk, disk}][k], figure(p.mean(i, inSteadyState, "cluster.put.iops")),
				fmt.Sprintf("%.0f", 100*p.mean(i, inSteadyState, "cluster.bound.reached"))))
		}
	}
	golden.Table(t, rowData+"replicast-cells.csv", r.ID, "seeds 2 to 6", lines, update)
}

// TestDocumentedVerdicts verifies that the data have the rows of verdicts.txt, with the same verdicts and mutations.
// TestVerdicts verifies the figures of the experiments that it runs.
func TestDocumentedVerdicts(t *testing.T) {
	rewritten(t)
	files := map[string][][]string{}
	for _, e := range All() {
		paper := paperOf(&e)
		if paper == "" {
			continue
		}
		if files[paper] == nil {
			files[paper] = golden.Records(t, rowData+paper+".csv")
			if !slices.Equal(files[paper][0], rowColumns) {
				t.Errorf("%s has the columns %q", paper, files[paper][0])
			}
		}
		var got, want []string
		for _, x := range files[paper] {
			if x[atExperiment] == e.ID && x[atVerdict] != "" {
				got = append(got, strings.Join([]string{x[atVerdict], x[atRow], x[atFigure], x[atTurns]}, "\t"))
			}
		}
		for _, h := range heldRows(e.ID) {
			want = append(want, strings.Join([]string{h.verdict.String(), h.label, h.metric, h.turns}, "\t"))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the data have\n%s\nand verdicts.txt\n%s", e.ID, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// TestDocumentedCounts compares the table of counts with the recorded verdicts.
func TestDocumentedCounts(t *testing.T) {
	rewritten(t)
	lines := golden.Head("experiment", ">ok", ">not reproduced", ">not stated")
	var sum Count
	add := func(name string, c Count) {
		lines = append(lines, golden.Row(name, fmt.Sprint(c.OK), fmt.Sprint(c.NotReproduced), fmt.Sprint(c.NotStated)))
	}
	for _, e := range All() {
		if c, _ := Held(e.ID); !e.Measured {
			sum.Add(c)
			add("`"+e.ID+"`", c)
		}
	}
	add("all", sum)
	golden.Table(t, validation+"rows.md", "counts", "seed 1", lines, *update)
}

// rewritten uses the verdicts that TestVerdicts has just written.
func rewritten(t *testing.T) {
	t.Helper()
	if !*update {
		return
	}
	text, err := os.ReadFile("verdicts.txt")
	if err != nil {
		t.Fatal(err)
	}
	heldText = string(text)
}

// TestDocumentedMutations compares the inputs and mutations of experiments, with the verdicts that they turn.
func TestDocumentedMutations(t *testing.T) {
	rewritten(t)
	lines := []string{golden.Record("experiment", "rests on", "mutation", "ok", "not reproduced", "not stated")}
	for _, e := range All() {
		add := func(mutation string, c Count) {
			lines = append(lines, golden.Record(e.ID, e.inputs, mutation, fmt.Sprint(c.OK),
				fmt.Sprint(c.NotReproduced), fmt.Sprint(c.NotStated)))
		}
		var none Count
		for _, h := range heldRows(e.ID) {
			if h.turns == "" && !h.measured {
				none.tell(h.verdict)
			}
		}
		for i := range mutations[e.ID] {
			m, c := &mutations[e.ID][i], Count{}
			if m.name == "" {
				continue
			}
			for _, h := range heldRows(e.ID) {
				if h.turns == m.name {
					c.tell(h.verdict)
				}
			}
			add(m.name, c)
		}
		if none != (Count{}) {
			add("none found", none)
		}
	}
	golden.Table(t, rowData+"mutations.csv", "mutations", "seed 1", lines, *update)
}
