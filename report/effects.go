package report

import (
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"farflash/internal/term"
	"farflash/numeric/units"
	"farflash/report/chart"
	"farflash/study"
)

// WriteEffects writes a page about a comparison: for each arm but the first, its effects with their intervals, as a
// figure and as a table of all metrics, and the differences between the scenarios.
func WriteEffects(w io.Writer, x *study.Effects, s Study) error {
	p := newStudyPage(s)
	p.Title = "Comparison: " + x.Name
	p.Summary = fmt.Sprintf("%d designs. %s. Effects are against A.", len(x.Arms), replicatesText(x))
	if text := looksText(x); text != "" {
		p.Summary += " " + capital(text) + "."
	}
	p.Facts = []fact{{"Seeds", strings.TrimPrefix(seedsText(x.Seeds), "seeds ")},
		{"Confidence", units.Fraction(x.Level).String()},
		{"Smallest effect that matters", units.Fraction(x.Relevant).String()}}
	arms := &table{Head: []heading{{"Arm", true}, {"", true}, {"Digest", true}}}
	var runs []Run
	for i, a := range x.Arms {
		arms.Rows = append(arms.Rows,
			[]cell{{Text: ArmLetter(i), Class: "text"}, {Text: a.Label, Class: "text"},
				{Text: shortDigest(a.Digest), Class: "text"}})
		p.failures(a.Label, a.Failed)
		runs = append(runs, Run{Label: ArmLetter(i), Scenario: parseScenario(a.Scenario)})
		if a.Scenario != "" {
			p.Scenarios = append(p.Scenarios, pageRun{Label: ArmLetter(i) + ": " + a.Label, Scenario: runs[i].Scenario})
		}
	}
	p.Sections = append(p.Sections, section{ID: "arms", Title: "Arms", Table: arms})
	if t := differenceTable(runs); t != nil {
		p.Sections = append(p.Sections, section{ID: "scenario", Title: "Differences", Table: t})
	}
	for k := range x.Pairs {
		pair := &x.Pairs[k]
		letter := ArmLetter(pair.Arm)
		p.Sections = append(p.Sections,
			section{ID: fmt.Sprintf("effects-%d", pair.Arm), Title: letter + " against A", Intro: effectsIntro(x, pair),
				Figures: forestFigures(x, pair, letter), Table: effectTable(x, pair.Primary(), letter, "p (Holm)")})
		if pair.Explored > 0 {
			p.Sections = append(p.Sections,
				section{ID: fmt.Sprintf("others-%d", pair.Arm), Title: letter + " against A: exploratory",
					Intro: exploratoryText(x, pair),
					Table: effectTable(x, pair.Exploratory(), letter, "q (Benjamini-Hochberg)")})
		}
	}
	return p.write(w)
}

// effectsIntro summarises the findings of a pair and describes its tests.
func effectsIntro(x *study.Effects, pair *study.Pair) string {
	var text []string
	for _, line := range findings(x, pair) {
		text = append(text, capital(line)+".")
	}
	if pair.Family > 0 {
		text = append(text, primaryNote(x, pair))
	}
	return strings.Join(text, " ")
}

// differenceTable lists the keys that differ, nil if none does.
func differenceTable(runs []Run) *table {
	t := &table{Head: []heading{{"", true}}}
	for _, r := range runs {
		t.Head = append(t.Head, heading{Title: r.Label, Text: true})
	}
	for _, d := range differences(runs) {
		row := []cell{{Text: d.Path, Class: "text"}}
		for _, v := range d.Values {
			if v == "" {
				v = "\u2013"
			}
			row = append(row, cell{Text: v, Class: "text"})
		}
		t.Rows = append(t.Rows, row)
	}
	if t.Rows == nil {
		return nil
	}
	return t
}

// mostEffects limits the rows of a plot, because a pattern may match more metrics.
const mostEffects = 40

// forestFigures draws the primary effects, largest first.
func forestFigures(x *study.Effects, pair *study.Pair, letter string) []figure {
	c, ok := forestChart(x, pair, letter)
	if !ok {
		return nil
	}
	note := "Ratios of B to A minus 1, with intervals. "
	if c.X.Scale == chart.Log {
		note = "Ratios to A with intervals, on a logarithmic axis. "
	}
	return []figure{{Caption: "Primary metrics, sorted by effect", Wide: true, SVG: forest(c),
		Note: strings.Replace(note, "B", letter, 1) +
			"Open circle: not distinguishable from chance. Arrow: the interval continues."}}
}

// forestChart draws the primary effects that are ratios, as ratio - 1, or as the ratio on a logarithmic axis if they
// reach beyond a factor of three. It returns false if there are none.
func forestChart(x *study.Effects, pair *study.Pair, letter string) (chart.ForestChart, bool) {
	var list []*study.Effect
	lo, hi := 1.0, 1.0
	primary := pair.Primary()
	for i := range primary {
		e := &primary[i]
		mean, low, high, ok := e.Relative()
		if !ok || e.Verdict == study.Identical || len(list) == mostEffects || math.IsInf(low, 0) ||
			math.IsInf(high, 0) {
			continue
		}
		lo, hi = math.Min(lo, 1+mean), math.Max(hi, 1+mean)
		if e.Differs() {
			lo, hi = math.Min(lo, 1+low), math.Max(hi, 1+high)
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return chart.ForestChart{}, false
	}
	c := chart.ForestChart{Frame: chart.Frame{Title: "effects of " + letter + " against A, with intervals",
		Height: chart.ForestHeight(len(list))},
		X: chart.Axis{Label: "Difference from A", Unit: chart.Fractions}}
	ratios := hi > 3 || lo < 1.0/3
	if ratios {
		c.X, c.Zero = chart.Axis{Label: letter + " over A", Scale: chart.Log}, 1
	}
	// Wide intervals would squeeze the others, so they are cut slightly beyond the range of the rest.
	room := math.Max(math.Pow(hi/lo, 0.5), 1.1)
	lo, hi = lo/room, hi*room
	for _, e := range list {
		mean, low, high, _ := e.Relative()
		cutLow, cutHigh := 1+low < lo, 1+high > hi
		low, high = math.Max(low, lo-1), math.Min(high, hi-1)
		if ratios {
			mean, low, high = 1+mean, 1+low, 1+high
		}
		effect, interval := effectText(e)
		r := chart.ForestRow{Name: e.Name, Mean: mean, Low: low, High: high, CutLow: cutLow, CutHigh: cutHigh,
			Style: verdictStyle(e.Verdict), Faint: !e.Differs(),
			Text: effect + ", " + verdictText(e, x.Relevant),
			Title: fmt.Sprintf("%s\nA: %s\n%s: %s\neffect %s (%s)\np %s\n%s", e.Name, term.Quantity(e.A, e.Unit),
				letter, term.Quantity(e.B, e.Unit), effect, interval, probability(e.Adjusted),
				verdictText(e, x.Relevant))}
		c.Rows = append(c.Rows, r)
	}
	return c, true
}

// forest draws the effects next to their names, or below them in the narrow version.
func forest(c chart.ForestChart) template.HTML {
	return broad(func(width float64) string {
		if c.Width, c.Height = width, 0; width < broadWidth {
			c.Below = true
		}
		return chart.Forest(c)
	})
}

// verdictStyle returns the style of a verdict. The marker and the words carry the same information as the colour.
func verdictStyle(v study.Verdict) int {
	switch v {
	case study.Better:
		return 0
	case study.Worse:
		return 1
	case study.Higher, study.Lower:
		return 3
	}
	return 7
}

// effectTable lists effects.
func effectTable(x *study.Effects, effects []study.Effect, letter, p string) *table {
	t := &table{Full: true,
		Head: []heading{{"Metric", true}, {Title: "A"}, {Title: letter}, {Title: "Effect"}, {Title: "Interval"},
			{"Verdict", true}, {Title: p}, {Title: "p (t)"}, {Title: "p (ranks)"}}}
	for i := range effects {
		e := &effects[i]
		name := e.Name
		if len(e.Aliases) > 0 {
			name += " (as " + shortList(e.Aliases) + ")"
		}
		row := []cell{{Text: name, Class: "text name"}, {Text: term.Quantity(e.A, e.Unit)},
			{Text: term.Quantity(e.B, e.Unit)}}
		if e.Verdict == study.Identical {
			row = append(row, cell{Text: "="}, cell{}, cell{Text: verdictText(e, x.Relevant), Class: "text"})
			row = append(row, make([]cell, len(t.Head)-len(row))...)
		} else {
			effect, interval := effectText(e)
			class := "text"
			switch {
			case e.Within:
			case e.Verdict == study.Better:
				class = "text ok"
			case e.Verdict == study.Worse:
				class = "text failed"
			}
			row = append(row, cell{Text: effect}, cell{Text: interval},
				cell{Text: verdictText(e, x.Relevant), Class: class},
				cell{Text: probability(e.Adjusted)}, cell{Text: probability(e.P)}, cell{Text: probability(e.Wilcoxon)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
