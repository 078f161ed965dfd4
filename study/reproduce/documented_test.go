package reproduce

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"farflash/internal/golden"
)

// The pages' tables that are generated from experiments: docs/validation/rows.md has every row of each, other pages a
// selection.

const validation = "../../docs/validation/"

// inRows are the experiments whose rows are on that page. minTCO's page is written by hand, and SRC's has its own
// tables.
var inRows = []string{"snis-fig2", "snis-table2", "snis-fig4", "snis-fig5", "snis-fig6", "snis-fig7",
	"replicast-table2", "replicast-table3", "replicast-table4", "replicast-table5",
	"replicast-fig8", "replicast-fig9", "replicast-fig10", "replicast-fig11", "replicast-fig12", "replicast-fig13"}

// claimed are the experiments whose rows are also on their paper's page, with the tested sentences.
var claimed = map[string]string{
	"snis-fig2": "snis", "snis-fig4": "snis", "snis-fig5": "snis", "snis-fig6": "snis", "snis-fig7": "snis",
	"replicast-table4": "replicast", "replicast-table5": "replicast", "replicast-fig9": "replicast",
	"replicast-fig10": "replicast", "replicast-fig12": "replicast", "replicast-fig13": "replicast",
	"src-fig2": "src", "src-fig7": "src", "src-fig8": "src", "src-fig9": "src", "src-fig10": "src", "src-table4": "src",
	"mintco-table4": "mintco", "mintco-fig6": "mintco", "mintco-fig7": "mintco", "mintco-fig8": "mintco",
	"mintco-fig9": "mintco", "mintco-fig10": "mintco",
}

// claims returns an experiment's rows with the sentence that each tests; a shared sentence appears once.
func claims(r *Report) []string {
	lines := golden.Head("the text says", "figure", ">paper", ">ours", "expected", "verdict")
	var order []string // of sentences
	for i := range r.Rows {
		if !slices.Contains(order, r.Rows[i].Says) {
			order = append(order, r.Rows[i].Says)
		}
	}
	rows := slices.Clone(r.Rows)
	slices.SortStableFunc(rows, func(a, b Row) int { return slices.Index(order, a.Says) - slices.Index(order, b.Says) })
	said := ""
	for i := range rows {
		x := &rows[i]
		says, paper := "", ""
		if x.Says != said && x.Says != "" {
			says = "“" + escaped(x.Says) + "”"
		}
		said = x.Says
		if x.Paper != nil {
			paper = figure(*x.Paper)
		}
		verdict := x.Verdict().String()
		if x.Verdict() == NotReproduced {
			verdict = "**" + verdict + "**"
		}
		lines = append(lines,
			golden.Row(says, escaped(x.Label+": "+x.Metric), paper, figure(x.Ours)+unitOf(x.Unit), escaped(x.Expect),
				verdict))
	}
	return lines
}

// unjudged returns an experiment's figures without a verdict: a line for each, and a column for each mode at the
// start of labels.
func unjudged(r *Report) []string {
	var modes, names []string
	cells := map[[2]string]string{}
	for _, x := range r.Told {
		mode, label, both := strings.Cut(x.Label, ": ")
		if !both {
			mode, label = "ours", x.Label
		}
		name := escaped(label + ": " + x.Metric)
		if !slices.Contains(modes, mode) {
			modes = append(modes, mode)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		cells[[2]string{name, mode}] = strings.TrimSuffix(fmt.Sprintf("%.4g%s; %s", x.Ours, unitOf(x.Unit), x.Note),
			"; ")
	}
	head := []string{"figure"}
	for _, m := range modes {
		head = append(head, ">"+m)
	}
	lines := golden.Head(head...)
	for _, n := range names {
		row := []string{n}
		for _, m := range modes {
			row = append(row, cells[[2]string{n, m}])
		}
		lines = append(lines, golden.Row(row...))
	}
	return lines
}

// unitOf formats a unit after a number; counts and ratios have none.
func unitOf(unit string) string {
	switch unit {
	case "", "count", "ratio", "correlation":
		return ""
	}
	return " " + unit
}

// documented compares the tables of an experiment with its report, or writes them.
func documented(t *testing.T, r *Report, update bool) {
	t.Helper()
	if page, ok := claimed[r.ID]; ok {
		golden.Table(t, validation+page+".md", r.ID+"-claims", "seed 1 and what follows it", claims(r), update)
		if len(r.Told) > 0 {
			golden.Table(t, validation+page+".md", r.ID+"-told", "seed 1 and what follows it", unjudged(r), update)
		}
	}
	if !slices.Contains(inRows, r.ID) {
		return
	}
	lines := golden.Head("row", "figure", ">paper", ">ours", "unit", "to be", "verdict")
	for i := range r.Rows {
		x := &r.Rows[i]
		paper := ""
		if x.Paper != nil {
			paper = figure(*x.Paper)
		}
		lines = append(lines,
			golden.Row(escaped(x.Label), escaped(x.Metric), paper, figure(x.Ours), x.Unit, x.Meets.String(),
				x.Verdict().String()))
	}
	golden.Table(t, validation+"rows.md", r.ID, "seed 1", lines, update)
	if r.clusters != nil {
		clusterTables(t, r, update)
	}
}

// figure formats a number for a table, with five digits.
func figure(x float64) string {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "missing"
	case math.Abs(x) >= 1000:
		return thousands(x)
	}
	return fmt.Sprintf("%.5g", x)
}

// thousands formats an integer with thousands separators.
func thousands(x float64) string {
	s := fmt.Sprintf("%.0f", x)
	from := len(s) - len(strings.TrimLeft(s, "-"))
	for i := len(s) - 3; i > from; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func escaped(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// surgeAnswers are the results of SURGE's own model code without its clock, by chunk, disks and protocol: recorded with
// build d92018f, means of one to five seeds. model/cluster/testdata/surge.txt has the same.
var surgeAnswers = map[[2]string][3]string{
	{"16KiB", "400"}: {"541,200", "645,500", "522,900"}, {"128KiB", "400"}: {"58,700", "80,033", "75,160"},
	{"1MiB", "400"}:   {"6,633", "8,208", "8,093"},
	{"16KiB", "1000"}: {"927,400", "919,200", "640,100"}, {"128KiB", "1000"}: {"107,600", "175,475", "130,000"},
	{"1MiB", "1000"}: {"12,650 to 13,275", "19,642", "15,417"},
}

// clusterTables are those of the Replicast paper's tables 2 and 3: by SURGE's rules, and in steady state.
func clusterTables(t *testing.T, r *Report, update bool) {
	t.Helper()
	p := r.clusters
	disk := p.cases[0].disk
	surge := golden.Head("chunk", ">UCH-CCP: paper, ours", ">Replicast-M: paper, ours", ">Replicast-H: paper, ours")
	steady := golden.Head("chunk", ">UCH-CCP", ">Replicast-M", ">Replicast-H")
	for _, chunk := range replicastChunks {
		a, b := []string{chunk}, []string{chunk}
		for k, protocol := range []string{"uch-ccp", "replicast-m", "replicast-h"} {
			i := p.find(90, chunk, disk, protocol)
			var row *Row
			for j := range r.Rows {
				if x := &r.Rows[j]; x.Label == chunk+", "+protocol+", as SURGE" && x.Metric == "chunks a second" {
					row = x
				}
			}
			off := fmt.Sprintf("%+.1f %%", 100*(row.Ours / *row.Paper - 1))
			if row.Verdict() != OK {
				off = "**" + off + "**"
			}
			a = append(a, fmt.Sprintf("%s, %s (%s): %s", thousands(*row.Paper), thousands(row.Ours),
				surgeAnswers[[2]string{chunk, disk}][k], off))
			b = append(b, fmt.Sprintf("%s, %.0f %%", thousands(p.mean(i, inSteadyState, "cluster.put.iops")),
				100*p.mean(i, inSteadyState, "cluster.bound.reached")))
		}
		surge, steady = append(surge, golden.Row(a...)), append(steady, golden.Row(b...))
	}
	golden.Table(t, validation+"replicast.md", "surge-"+disk, "seeds 1 to 5", surge, update)
	golden.Table(t, validation+"replicast.md", "steady-"+disk, "seeds 1 to 5", steady, update)
}

// TestDocumentedCounts compares the table of counts with the recorded verdicts.
func TestDocumentedCounts(t *testing.T) {
	rewritten(t)
	lines := golden.Head("experiment", ">ok", ">not reproduced", ">not stated")
	var sum Count
	for _, e := range All() {
		if strings.HasPrefix(e.ID, "replicast-") {
			c, _ := Held(e.ID)
			sum.Add(c)
			lines = append(lines,
				golden.Row("`"+e.ID+"`", fmt.Sprint(c.OK), fmt.Sprint(c.NotReproduced), fmt.Sprint(c.NotStated)))
		}
	}
	lines = append(lines,
		golden.Row("all", fmt.Sprint(sum.OK), fmt.Sprint(sum.NotReproduced), fmt.Sprint(sum.NotStated)))
	golden.Table(t, validation+"replicast.md", "counts", "seed 1", lines, *update)
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

// TestDocumentedOK compares the list of rows that are ok with the recorded verdicts.
func TestDocumentedOK(t *testing.T) {
	rewritten(t)
	lines := golden.Head("experiment", "row", "figure", "is not ok if")
	for _, e := range All() {
		for _, h := range heldRows(e.ID) {
			if h.verdict == OK && !h.measured {
				lines = append(lines, golden.Row("`"+e.ID+"`", escaped(h.label), escaped(h.metric), escaped(h.turns)))
			}
		}
	}
	golden.Table(t, validation+"rows.md", "ok", "seed 1", lines, *update)
}

// TestDocumentedMutations generates the table of inputs and mutations by verdict.
func TestDocumentedMutations(t *testing.T) {
	rewritten(t)
	lines := golden.Head("experiment", "rests on", "mutation", ">ok", ">not reproduced", ">not stated")
	for _, e := range All() {
		name, inputs := "`"+e.ID+"`", e.inputs
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
			lines = append(lines,
				golden.Row(name, escaped(inputs), escaped(m.name), fmt.Sprint(c.OK), fmt.Sprint(c.NotReproduced),
					fmt.Sprint(c.NotStated)))
			name, inputs = "", ""
		}
		none := Count{}
		for _, h := range heldRows(e.ID) {
			if h.turns == "" && !h.measured {
				none.tell(h.verdict)
			}
		}
		if none != (Count{}) {
			lines = append(lines,
				golden.Row(name, escaped(inputs), "nothing that was tried", fmt.Sprint(none.OK),
					fmt.Sprint(none.NotReproduced), fmt.Sprint(none.NotStated)))
		}
	}
	golden.Table(t, validation+"rows.md", "mutations", "seed 1", lines, *update)
}
