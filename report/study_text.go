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
	var shown []*study.Effect
	var hidden []string // though they differ
	alone, more := false, false
	for i := range pair.Effects {
		e := &pair.Effects[i]
		if !show(e.Name) || e.A == 0 && e.B == 0 && e.Verdict == study.Identical {
			if e.Differs() {
				hidden = append(hidden, e.Name)
			}
			continue
		}
		shown = append(shown, e)
		alone, more = alone || !e.Within && e.Alone, more || e.More != 0
	}
	columns := []term.Column{term.Left("metric"), term.Right("A"), term.Right(letter), term.Right("effect"), term.Right("interval"), term.Right("p"), term.Left("verdict")}
	if more {
		columns = append(columns, term.Right("more runs"))
	}
	t := term.NewTable(columns...)
	for _, e := range shown {
		row := []string{e.Name, term.Quantity(e.A, e.Unit), term.Quantity(e.B, e.Unit), "=", "", "", style.Dim(string(e.Verdict))}
		if e.Verdict != study.Identical {
			effect, interval := effectText(e)
			verdict := verdictText(e, x.Relevant)
			switch {
			case e.Within || e.Verdict == study.NoEvidence:
				verdict = style.Dim(verdict)
			case e.Verdict == study.Better:
				verdict = style.Good(verdict)
			case e.Verdict == study.Worse:
				verdict = style.Bad(verdict)
			}
			row = append(row[:3], effect, interval, probability(e.Holm), verdict)
			if more {
				row = append(row, moreText(e))
			}
		}
		t.Row(row...)
	}
	if err := t.Write(b, style); err != nil {
		return err
	}
	b.WriteString("\n" + term.Wrap(pairSummary(x, pair), "  ") + "\n")
	if len(hidden) > 0 {
		fmt.Fprintln(b, term.Wrap("different and not shown: "+shortList(hidden)+"; --all shows them", "  "))
	}
	if pair.Family > 0 {
		fmt.Fprintf(b, "p: paired t test, corrected for %s (Holm); intervals are not\n", countMetrics(pair.Family))
	}
	if text := ranksText(x, pair); text != "" {
		fmt.Fprintln(b, term.Wrap(text, "  "))
	}
	if alone {
		fmt.Fprintln(b, term.Wrap("once corrected: it differs without the correction; --metric selects fewer metrics, which are corrected less", "  "))
	}
	if more {
		fmt.Fprintf(b, "more runs: replicates beyond the %d that would settle it, with a power of %g %%\n", len(x.Seeds), 100*x.Power)
	}
	for _, only := range []struct {
		arm   string
		names []string
	}{{"A", pair.OnlyA}, {letter, pair.OnlyB}} {
		if len(only.names) > 0 {
			fmt.Fprintln(b, term.Wrap("only "+only.arm+" has "+shortList(only.names), "  "))
		}
	}
	return nil
}

// pairSummary counts the verdicts.
func pairSummary(x *study.Effects, pair *study.Pair) string {
	all, differ := len(pair.Effects), pair.Differing()
	switch {
	case x.Arms[pair.Arm].Digest == x.Arms[0].Digest:
		return fmt.Sprintf("no evidence of a difference: %s is the same scenario as A", ArmLetter(pair.Arm))
	case pair.Family == 0:
		return fmt.Sprintf("no evidence of a difference: %s, identical in every replicate", countMetrics(all))
	case differ == 0:
		text := "no evidence of a difference"
		if all > 1 {
			text += " in any of " + countMetrics(all)
		}
		if same := all - pair.Family; same > 0 {
			text += fmt.Sprintf(", %d of them identical", same)
		}
		return text
	}
	return fmt.Sprintf("%s: %d different beyond chance, %d without evidence of a difference, %d identical", countMetrics(all), differ, pair.Family-differ, all-pair.Family)
}

// countMetrics writes how many metrics.
func countMetrics(n int) string {
	if n == 1 {
		return "1 metric"
	}
	return fmt.Sprintf("%d metrics", n)
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
	fmt.Fprintf(&b, "%s\n%s\n%s\n", style.Bold(c.Name), term.Wrap(c.Describe(), "  "), style.Dim(curvesFacts(c)))
	names := c.Main(patterns)
	if len(patterns) == 0 {
		names = names[:min(len(names), mostColumns)]
	}
	var columns []term.Column
	for _, a := range c.Axes {
		// The line above has the whole path; of several there is room for their last words only.
		title := a.Path
		if i := strings.LastIndexByte(title, '.'); len(c.Axes) > 1 && i > 0 {
			title = title[i+1:]
		}
		columns = append(columns, term.Left(title))
	}
	for _, n := range names {
		columns = append(columns, term.Right(n))
	}
	if len(names) == 0 {
		columns = append(columns, term.Left(""))
	}
	t := term.NewTable(columns...).Keys(len(c.Axes))
	for i := range c.Points {
		x := &c.Points[i]
		row := slices.Clone(x.Values)
		if x.Transient != "" {
			row[len(row)-1] += transientMark
		}
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
	for i, text := range transients(c) {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintln(&b, term.Wrap(style.Warning("warning:")+" "+text, "  "))
	}
	for i, k := range c.Knees(names) {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "knee of %s: %s\n", k.Metric, k.At)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// transientMark stands behind the values of a point whose figures rest on a transient.
const transientMark = " *"

// transients says of the points whose figures rest on a transient what was changing.
func transients(c *study.Curves) (list []string) {
	for i := range c.Points {
		if x := &c.Points[i]; x.Transient != "" {
			list = append(list, fmt.Sprintf("%s: the figures rest on a transient: %s", x.Label, x.Transient))
		}
	}
	return list
}

// curvesFacts says in a line how a sweep was run.
func curvesFacts(c *study.Curves) string {
	points := "1 point"
	if n := len(c.Points); n != 1 {
		points = fmt.Sprintf("%d points", n)
	}
	line := points + ", " + seedsText(firstSeeds(c.Seed, c.Reps))
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
		// One digit after the point is enough: nobody asks how narrow a narrow one is.
		return fmt.Sprintf("%s +- %.1f %%", term.Quantity(e.Mean, e.Unit), 100*math.Abs(e.Half/e.Mean))
	case ok:
		return term.Quantity(e.Mean, e.Unit)
	case len(x.Failed) > 0:
		return "failed"
	case x.Done == 0:
		return "not run"
	}
	return "-"
}
