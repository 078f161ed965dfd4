package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"farflash/report/chart"
)

// Files next to the table.
const (
	pageFile    = "pull-grid.md"
	pictureFile = "pull-grid.svg"
)

// verdicts lists all verdicts, the best first.
var verdicts = []string{ahead, even, behind, fails}

// count is a number of cells by verdict.
type count map[string]int

func (c count) all() (n int) {
	for _, v := range verdicts {
		n += c[v]
	}
	return n
}

// cells returns a count as columns of a table.
func (c count) cells() string {
	var out []string
	for _, v := range verdicts {
		out = append(out, fmt.Sprint(c[v]))
	}
	return strings.Join(out, " | ")
}

// dimensions is the number of dimensions of the grid, the values of a cell's key.
const dimensions = 5

// page writes the page and the picture.
func (t *table) page(dir string) error {
	return errors.Join(os.WriteFile(filepath.Join(dir, pageFile), []byte(t.text()), 0o644),
		os.WriteFile(filepath.Join(dir, pictureFile), []byte(t.picture()), 0o644))
}

// text returns the page.
func (t *table) text() string {
	var b strings.Builder
	list := t.compared()
	best, usual := count{}, count{}
	protocols, where := map[string]int{}, map[string]count{}
	for _, r := range list {
		v := r.verdict(r.best)
		best[v]++
		usual[r.verdict(r.usual)]++
		name, _, _ := strings.Cut(r.rival, ",")
		protocols[name]++
		if where[r.condition] == nil {
			where[r.condition] = count{}
		}
		where[r.condition][v]++
	}
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# Pull and its rivals\n\n"+
		"`go run ./internal/rivals` compares [pull](../adr/0006-pull.md) with the best form of each other protocol in "+
		"the cells of a grid, {%s} x {%s} x {%s} x {%s} x {%s}, and writes this page; %d of %d cells have been run. "+
		"SSDs are in %d cells only. Slow disks have a quarter of the rate, and bursts have 1 to 64 chunks at one "+
		"gateway.\n\n", strings.Join(chunks, ", "), join(hardwares), join(codes), strings.Join(conditions, ", "),
		join(loads), len(list), len(cells()), where[ssds].all())
	if n := len(t.rows) - len(list); n > 0 {
		p("In %d cells pull has changed since, and only its rivals have figures.\n\n", n)
	}
	p("Every protocol is tuned: `chain`, `dctcp` and `grants` have one to six candidates for each piece, "+
		"`replicast-h` bids of 110 %%, `replicast-m` bids of 110, 140 and 200 %%, `replicast-proxy` groups of 9, 18 "+
		"and "+
		"45, and pull two groups of 5, 9, 18 and 30 with offers once, twice and four times as far ahead as by default. "+
		"Short runs with seed %d choose the forms, once for closed loops, once for open loops and once for bursts. In "+
		"each cell the three best protocols then run with seed %d, and the best of these is the rival. Pull at its "+
		"best is the better of its chosen form and its default. [The scenarios](../../internal/rivals/cells.go) have "+
		"all keys.\n\n", tuneSeed, gridSeed)
	p("Pull is ahead if its rate is more than %.1f %% higher or its 99th percentile more than %.0f %% shorter, and "+
		"neither is worse by as much; it is behind if one is worse by as much. In an open loop the rate is given, and "+
		"the tail decides. Where a rival sustains an open loop and pull does not, all run again %d times as long, and "+
		"cells in which that remains are counted as not keeping up. Each cell is one run of each protocol, so "+
		"verdicts near the limits are chance.\n\n", 100*ofRate, 100*ofP99, inDoubt)
	p("| | %s |\n|---|%s\n| pull by default | %s |\n| pull at its best | %s |\n", strings.Join(verdicts, " | "),
		strings.Repeat("---:|", len(verdicts)), usual.cells(), best.cells())
	for _, c := range conditions {
		p("| of these, %s | %s |\n", c, where[c].cells())
	}
	p("\n![Shares of cells by verdict, for each value of each dimension](%s)\n\n", pictureFile)
	var names []string
	for name := range protocols {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(protocols[b]-protocols[a], strings.Compare(a, b))
	})
	p("## Findings\n\n- The best rival is")
	for k, name := range names {
		p("%s `%s` in %d", map[bool]string{true: ",", false: ""}[k > 0], name, protocols[name])
	}
	p(" cells.\n")
	p("%s\nThe data are [data/pull-grid.csv](%s), a row for each cell. `go run ./internal/rivals -forget` drops pull's "+
		"figures after a change to pull, and the command without flags runs the missing cells.\n", findings, tableFile)
	return b.String()
}

// findings are about cells in which pull is behind. TestProse verifies them.
const findings = `- With equal disks and three replicas pull is behind with chunks of 16 KiB or 1 MiB only, and the rival is a proxy
  for 45 of the 90 targets: a scheduler of half the cluster on one node, whose data are multicast to sets of targets for
  which a switch needs rules. At 500 ns of processor time a message
  [such a proxy is full](replicast.md#what-a-processor-takes).
- With a tenth of the disks slow pull is behind in rate, and its tail is 40 to 60 % shorter.
- With losses pull is behind in rate in 17 cells, most of them with codes and 8 or 16 chunks outstanding, where the
  rivals' pieces do not wait for targets; in 16 of the 17 its tail is shorter.
- With SSDs that collect garbage pull's tail is up to 2.1 times the rival's. The reason is not known.
- In no cell does a rival sustain an open loop that pull does not sustain.
`

// join lists values by their names.
func join[T fmt.Stringer](list []T) string {
	var out []string
	for _, x := range list {
		out = append(out, x.String())
	}
	return strings.Join(out, "; ")
}

// place returns a load's position among all loads.
func place(name string) int {
	return slices.IndexFunc(loads, func(l load) bool { return l.String() == name })
}

// picture returns the shares of cells by verdict, at pull's best, for each value of each dimension.
func (t *table) picture() string {
	list := t.compared()
	c := chart.BarChart{X: chart.Axis{Label: "cells", Unit: chart.Fractions, Tight: true},
		Frame: chart.Frame{Title: "Pull at its best against the best rival, by dimension", Width: 700}}
	for k, v := range verdicts {
		c.Parts = append(c.Parts, chart.Part{Name: v, Style: []int{0, 5, 1, 7}[k]})
	}
	add := func(name string, n count) {
		c.Rows = append(c.Rows, fmt.Sprintf("%s (%d)", name, n.all()))
		for k, v := range verdicts {
			c.Parts[k].V = append(c.Parts[k].V, float64(n[v])/float64(n.all()))
		}
	}
	all, usual := count{}, count{}
	for _, r := range list {
		all[r.verdict(r.best)]++
		usual[r.verdict(r.usual)]++
	}
	add("all cells", all)
	add("all cells, pull by default", usual)
	for d := range dimensions {
		var names []string
		of := map[string]count{}
		for _, r := range list {
			k := r.key()[d]
			if of[k] == nil {
				of[k] = count{}
				names = append(names, k)
			}
			of[k][r.verdict(r.best)]++
		}
		if d == dimensions-1 {
			slices.SortFunc(names, func(a, b string) int { return place(a) - place(b) })
		}
		for _, k := range names {
			add(k, of[k])
		}
	}
	c.Height = float64(80 + 26*len(c.Rows))
	return chart.Standalone(chart.Bars(c))
}
