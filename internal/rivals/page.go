package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// dimension is a dimension of the grid.
type dimension struct {
	name string
	at   int // index in a cell's key
}

var dimensions = []dimension{{"chunk", 0}, {"disks and links", 1}, {"kept as", 2}, {"condition", 3}, {"load", 4}}

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
	for _, r := range list {
		best[r.verdict(r.best)]++
		usual[r.verdict(r.usual)]++
	}
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# Pull and its rivals, cell by cell\n\n")
	p("This page compares `pull` with its best rivals in %d of the %d cells of a grid, as measured by `go run "+
		"./internal/rivals`. [The table](%s) has a row for each cell, and [the section on "+
		"pull](replicast.md#pull-and-its-rivals) describes the comparison. ", len(list), len(cells()), tableFile)
	if len(list) < len(cells()) {
		p("The missing cells did not fit into the time limit of the command. It runs settings in an order drawn once, " +
			"with those of 1 MiB chunks and those with drives last. ")
	}
	if n := len(t.rows) - len(list); n > 0 {
		p("In %d of them only the rivals have been run since the last change of pull; their rows do not have figures "+
			"of pull. ", n)
	}
	p("The command writes this page from the table.\n\n")
	p("Cells are {%s} x {%s} x {%s} x {%s} x {%s}; with drives there are fewer. A burst is 1 to 64 chunks at one "+
		"gateway (`load.burst`). A slow disk has a quarter of the rate. [The "+
		"command](../../internal/rivals/cells.go) has the scenarios with all keys.\n\n",
		strings.Join(chunks, ", "), join(hardwares), join(codes), strings.Join(conditions, ", "), join(loads))
	p("With seed %d, the command tries these forms:\n\n- `chain`, `dctcp` and `grants` with one to six candidates for each "+
		"piece\n- `replicast-h` with bids of 110 %%, and `replicast-m` with bids of 110, 140 and 200 %%, both with "+
		"messages of 100 B and 3 %% of the links\n- `replicast-proxy` with groups of 9, 18 and 45\n"+
		"- pull with two groups of 5, 9, 18 and 30, and with targets whose offers reach one, two and four times as far "+
		"ahead as by default\n\n"+
		"It selects forms for closed loops with four chunks outstanding, for open loops at 90 %% and for bursts, with "+
		"short runs of all forms and longer runs of the best ones of each protocol. Each cell compares the three best "+
		"protocols with seed %d; the best of them is the rival. "+
		"The better of pull's selected form and its default form counts as its best.\n\n", tuneSeed, gridSeed)
	p("Two figures count: the rate, with a margin of %.1f %%, and the 99th percentile, with a margin of %.0f %%. "+
		"Pull is ahead if it is better in one of them by more than the margin and worse in neither. It is behind if "+
		"it is worse in one of them by more than the margin. In an open loop the rate is given, so the tail decides. "+
		"Open loops that a rival sustains and pull does not are in a separate column. "+
		"There the runs are repeated with %d times the length, and the longer runs count. Each cell has one run of "+
		"each protocol, so verdicts near the margins may be due to chance.\n\n", 100*ofRate, 100*ofP99, inDoubt)
	head := "| | " + strings.Join(verdicts, " | ") + " |\n|---|" + strings.Repeat("---:|", len(verdicts)) + "\n"
	p("%s| pull at its best | %s |\n| pull by default | %s |\n\n", head, best.cells(), usual.cells())
	p("![the grid, cell by cell](%s)\n\n## By dimension\n\nPull at its best and, in brackets, by default.\n",
		pictureFile)
	for _, d := range dimensions {
		var names []string
		byBest, byUsual := map[string]count{}, map[string]count{}
		for _, r := range list {
			k := r.key()[d.at]
			if byBest[k] == nil {
				byBest[k], byUsual[k] = count{}, count{}
				names = append(names, k)
			}
			byBest[k][r.verdict(r.best)]++
			byUsual[k][r.verdict(r.usual)]++
		}
		if d.at == 4 {
			slices.SortFunc(names, func(a, b string) int { return place(a) - place(b) })
		}
		p("\n| %s | %s |\n|---|%s\n", d.name, strings.Join(verdicts, " | "), strings.Repeat("---:|", len(verdicts)))
		for _, k := range names {
			p("| %s |", k)
			for _, v := range verdicts {
				p(" %d (%d) |", byBest[k][v], byUsual[k][v])
			}
			p("\n")
		}
	}
	p("\n## Best rivals\n\n| rival | cells | pull is ahead | even | behind | does not keep up " +
		"|\n|---|---:|---:|---:|---:|---:|\n")
	protocols := map[string]count{}
	var names []string
	for _, r := range list {
		name, _, _ := strings.Cut(r.rival, ",")
		if protocols[name] == nil {
			protocols[name] = count{}
			names = append(names, name)
		}
		protocols[name][r.verdict(r.best)]++
	}
	slices.SortFunc(names, func(a, b string) int { return protocols[b].all() - protocols[a].all() })
	for _, k := range names {
		p("| %s | %d | %s |\n", k, protocols[k].all(), protocols[k].cells())
	}
	p("\n## Where pull is behind at its best\n\n")
	if best[behind]+best[fails] == 0 {
		p("Nowhere.\n")
		return b.String()
	}
	p("| cell | rival | thousand chunks/s: pull, rival | mean, us | p99, us | rate, p99 against the rival | pull's " +
		"best form |\n|---|---|---:|---:|---:|---:|---|\n")
	for _, r := range list {
		if v := r.verdict(r.best); v != behind && v != fails {
			continue
		}
		p("| %v | %s | %.1f, %.1f | %.0f, %.0f | %.0f, %.0f | %+.1f %%, %+.0f %% | %s |\n", r.cell, r.rival,
			r.best.rate/1000, r.theirs.rate/1000, r.best.mean, r.theirs.mean, r.best.p99, r.theirs.p99,
			100*(r.counted(r.best)/r.counted(r.theirs)-1), 100*(r.best.p99/r.theirs.p99-1), r.form)
	}
	return b.String()
}

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

// colours are those of the verdicts, distinguishable without red and green, and that of a cell that has not been run.
var colours = map[string]string{ahead: "#2166ac", even: "#92c5de", behind: "#f4a582", fails: "#b2182b", "": "#eeeeee"}

// picture returns the grid as SVG: a row for each setting and a column for each load. A cell shows pull's verdict at
// its best in the upper half and with its defaults in the lower half.
func (t *table) picture() string {
	const left, top, wide, high = 330, 64, 62, 14
	var b strings.Builder
	var order []cell
	for _, x := range cells() {
		if len(order) == 0 || order[len(order)-1] != x.setting() {
			order = append(order, x.setting())
		}
	}
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="10">`+"\n",
		left+wide*len(loads)+10, top+high*len(order)+40)
	p(`<title>Pull against the best rival: %d cells</title>`+"\n", len(t.compared()))
	for k, v := range verdicts {
		p(`<rect x="%d" y="8" width="12" height="12" fill="%s"/><text x="%d" y="18">%s</text>`+"\n", left+130*k,
			colours[v], left+130*k+16, v)
	}
	for k, l := range loads {
		p(`<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", left+wide*k+wide/2, top-6, l)
	}
	for n, x := range order {
		y := top + high*n
		p(`<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", left-6, y+high-4, strings.Join(x.key()[:4], ", "))
		for k, l := range loads {
			x.load = l
			if x.condition == ssds && !x.withDrives() {
				continue
			}
			upper, lower := "", ""
			if r, there := t.rows[x.String()]; there && !r.open {
				upper, lower = r.verdict(r.best), r.verdict(r.usual)
			}
			p(`<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n",
				left+wide*k+1, y+1, wide-2, high/2-1, colours[upper], left+wide*k+1, y+high/2, wide-2, high/2-1,
				colours[lower])
		}
	}
	p(`<text x="%d" y="%d">upper half: pull at its best; lower half: pull by default; grey: not run</text>`+
		"\n</svg>\n", left, top+high*len(order)+20)
	return b.String()
}
