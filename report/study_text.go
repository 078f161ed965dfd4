package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"farflash/internal/term"
	"farflash/study"
)

// WriteEffectsText prints a comparison as a table for each arm but the first, of the metrics that show picks.
func WriteEffectsText(w io.Writer, x *study.Effects, show func(name string) bool, style term.Style) error {
	var b strings.Builder
	for i, a := range x.Arms {
		fmt.Fprintf(&b, "%s  %s\n", style.Bold(ArmLetter(i)), a.Label)
	}
	fmt.Fprintf(&b, "%d replicates of each on common random numbers, %s\n", len(x.Seeds), seedsText(x.Seeds))
	for k := range x.Pairs {
		if err := writePair(&b, x, &x.Pairs[k], show, style); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writePair(b *strings.Builder, x *study.Effects, pair *study.Pair, show func(string) bool, style term.Style) error {
	letter := ArmLetter(pair.Arm)
	fmt.Fprintf(b, "\n%s against A, with %g %% intervals of the paired differences\n\n", letter, 100*x.Level)
	t := term.NewTable(term.Left("metric"), term.Right("A"), term.Right(letter), term.Right("effect"), term.Right("interval"), term.Right("p"), term.Left("verdict"), term.Right("more runs"))
	for i := range pair.Effects {
		e := &pair.Effects[i]
		if !show(e.Name) || e.A == 0 && e.B == 0 && e.Verdict == study.Identical {
			continue
		}
		row := []string{e.Name, term.Quantity(e.A, e.Unit), term.Quantity(e.B, e.Unit), "=", "", "", style.Dim(string(e.Verdict))}
		if e.Verdict != study.Identical {
			effect, interval := effectText(e)
			verdict := verdictText(e, x.Relevant)
			switch e.Verdict {
			case study.Better:
				verdict = style.Good(verdict)
			case study.Worse:
				verdict = style.Bad(verdict)
			case study.NoEvidence:
				verdict = style.Dim(verdict)
			}
			row = append(row[:3], effect, interval, probability(e.Holm), verdict, moreText(e))
		}
		t.Row(row...)
	}
	if err := t.Write(b, style); err != nil {
		return err
	}
	b.WriteString("\n" + pairSummary(pair) + "\n")
	fmt.Fprintf(b, "p: paired t test, corrected for %d metrics (Holm)\n", pair.Family)
	for _, only := range []struct {
		arm   string
		names []string
	}{{"A", pair.OnlyA}, {letter, pair.OnlyB}} {
		if len(only.names) > 0 {
			fmt.Fprintf(b, "only %s has %s\n", only.arm, shortList(only.names))
		}
	}
	return nil
}

// pairSummary counts the verdicts.
func pairSummary(pair *study.Pair) string {
	same, unsure := 0, 0
	for i := range pair.Effects {
		switch pair.Effects[i].Verdict {
		case study.Identical:
			same++
		case study.NoEvidence:
			unsure++
		}
	}
	all := len(pair.Effects)
	return fmt.Sprintf("of %d metrics %d differ beyond chance, %d show no evidence of a difference, %d are identical", all, all-same-unsure, unsure, same)
}

func shortList(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// mostColumns bounds the metrics of a table that nobody chose.
const mostColumns = 4

// WriteCurvesText prints a sweep as a table with a row for each point. Patterns choose the metrics; none are the usual ones.
func WriteCurvesText(w io.Writer, c *study.Curves, patterns []string, style term.Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", style.Bold(c.Name), c.Describe(), style.Dim(curvesFacts(c)))
	names := c.Main(patterns)
	if len(patterns) == 0 {
		names = names[:min(len(names), mostColumns)]
	}
	var columns []term.Column
	for _, a := range c.Axes {
		columns = append(columns, term.Left(a.Path))
	}
	for _, n := range names {
		columns = append(columns, term.Right(n))
	}
	if len(names) == 0 {
		columns = append(columns, term.Left(""))
	}
	t := term.NewTable(columns...)
	for i := range c.Points {
		x := &c.Points[i]
		row := slices.Clone(x.Values)
		for _, n := range names {
			row = append(row, pointCell(x, n))
		}
		if len(names) == 0 {
			row = append(row, pointCell(x, ""))
		}
		t.Row(row...)
	}
	b.WriteByte('\n')
	if err := t.Write(&b, style); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// curvesFacts says in a line how a sweep was run.
func curvesFacts(c *study.Curves) string {
	line := fmt.Sprintf("%d points, %s", len(c.Points), seedsText(firstSeeds(c.Seed, c.Reps)))
	if c.Reps > 1 {
		line += fmt.Sprintf(", means with %g %% intervals", 100*c.Level)
	}
	if s := c.Shard.String(); s != "" {
		line += ", shard " + s
	}
	return line
}

// pointCell writes a point's metric, or why there is none.
func pointCell(x *study.PointSummary, name string) string {
	e, ok := x.Metric(name)
	switch {
	case ok && e.N > 1 && e.Mean != 0:
		return fmt.Sprintf("%s +- %s", term.Quantity(e.Mean, e.Unit), term.Percent(math.Abs(e.Half/e.Mean)))
	case ok:
		return term.Quantity(e.Mean, e.Unit)
	case len(x.Failed) > 0:
		return "failed"
	case x.Done == 0:
		return "not run"
	}
	return "-"
}
