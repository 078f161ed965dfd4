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

// mostHints limits the differing exploratory metrics on a terminal.
const mostHints = 8

// WriteEffectsText prints tables for each arm but the first: the primary family and, with hints, the exploratory
// metrics that differ; with all, every metric.
func WriteEffectsText(w io.Writer, x *study.Effects, hints, all bool, style term.Style) error {
	var b strings.Builder
	for i, a := range x.Arms {
		fmt.Fprintf(&b, "%s  %s\n", style.Bold(ArmLetter(i)), a.Label)
	}
	fmt.Fprintln(&b, replicatesText(x))
	if text := looksText(x); text != "" {
		fmt.Fprintln(&b, term.Wrap(text, "  "))
	}
	for k := range x.Pairs {
		if err := writePair(&b, x, &x.Pairs[k], hints, all, style); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writePair(b *strings.Builder, x *study.Effects, pair *study.Pair, hints, all bool, style term.Style) error {
	letter := ArmLetter(pair.Arm)
	fmt.Fprintf(b, "\n%s\n", style.Bold(letter+" against A"))
	for _, line := range findings(x, pair) {
		fmt.Fprintln(b, term.Wrap(line, "  "))
	}
	primary, others := pair.Primary(), pair.Exploratory()
	if len(primary) > 0 && pair.Family+pair.Explored > 0 {
		b.WriteByte('\n')
		if err := effectsText(x, primary, letter, style).Write(b, style); err != nil {
			return err
		}
	}
	if pair.Family > 0 {
		fmt.Fprintf(b, "\n%s\n", term.Wrap(primaryNote(x, pair), "  "))
	}
	if pair.Explored > 0 && (hints || all) {
		if err := writeHints(b, x, pair, others, all, style); err != nil {
			return err
		}
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

// writeHints prints the exploratory metrics.
func writeHints(b *strings.Builder, x *study.Effects, pair *study.Pair, others []study.Effect, all bool,
	style term.Style) error {
	differ := study.Differing(others) // they come first
	shown := others[:min(differ, mostHints)]
	if all {
		shown = others
	}
	fmt.Fprintf(b, "\n%s\n", term.Wrap("Exploratory: "+exploratoryText(x, pair), "  "))
	if len(shown) > 0 {
		b.WriteByte('\n')
		if err := effectsText(x, shown, ArmLetter(pair.Arm), style).Write(b, style); err != nil {
			return err
		}
	}
	if n := differ - len(shown); n > 0 {
		fmt.Fprintf(b, "%d more differ; --all shows them\n", n)
	}
	return nil
}

// effectsText returns a table of effects.
func effectsText(x *study.Effects, effects []study.Effect, letter string, style term.Style) *term.Table {
	t := term.NewTable(term.Left("metric"), term.Right("effect"), term.Left("verdict"), term.Right("interval"),
		term.Right("A"), term.Right(letter))
	for i := range effects {
		e := &effects[i]
		if e.Verdict == study.Identical {
			t.Row(e.Name, "=", style.Dim(verdictText(e, x.Relevant)), "", term.Quantity(e.A, e.Unit),
				term.Quantity(e.B, e.Unit))
			continue
		}
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
		t.Row(e.Name, effect, verdict, interval, term.Quantity(e.A, e.Unit), term.Quantity(e.B, e.Unit))
	}
	return t
}

// primaryNote explains the error rate of the primary verdicts.
func primaryNote(x *study.Effects, pair *study.Pair) string {
	looks := ""
	if n := len(x.Looks); n > 1 {
		looks = fmt.Sprintf(" at any of the %d looks", n)
	}
	text := fmt.Sprintf(
		"Chance alone produces a difference in any of these %s%s in less than %.3g %% of comparisons (t tests, Holm); "+
			"an interval that excludes 0 is a difference.", countMetrics(pair.Family), looks, 100*(1-x.Level))
	if slices.ContainsFunc(pair.Primary(), func(e study.Effect) bool { return e.Verdict == study.TooFew }) {
		text += fmt.Sprintf(" More: replicates beyond the %d that detect an effect of this size with a power of %g %%.",
			len(x.Seeds), 100*x.Power)
	}
	return text
}

// exploratoryText counts the exploratory differences and their false discovery rate.
func exploratoryText(x *study.Effects, pair *study.Pair) string {
	differ := study.Differing(pair.Exploratory())
	text := fmt.Sprintf("%d of %s differ.", differ, countOthers(pair.Explored))
	if differ > 0 {
		text += fmt.Sprintf(
			" These are hints: about %.3g %% of such differences are due to chance (Benjamini-Hochberg), and each "+
				"interval covers its metric alone.", 100*(1-x.Level))
	}
	return text
}

func countOthers(n int) string {
	if n == 1 {
		return "1 other metric"
	}
	return fmt.Sprintf("%d other metrics", n)
}

// countMetrics formats a number of metrics.
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

// mostColumns limits the metrics of a table whose metrics were not requested.
const mostColumns = 4

// WriteCurvesText prints a sweep as a table with a row for each point. Patterns select the metrics; without any, the
// default ones are shown.
func WriteCurvesText(w io.Writer, c *study.Curves, patterns []string, style term.Style) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", style.Bold(c.Name), term.Wrap(c.Describe(), "  "), style.Dim(curvesFacts(c)))
	names := c.Main(patterns)
	if len(patterns) == 0 {
		names = names[:min(len(names), mostColumns)]
	}
	var columns []term.Column
	for _, a := range c.Axes {
		// The line above has the full paths; with several axes there is only space for the last word of each.
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

// transientMark marks the values of points whose figures rest on a transient.
const transientMark = " *"

// transients lists the points whose figures rest on a transient.
func transients(c *study.Curves) (list []string) {
	for i := range c.Points {
		if x := &c.Points[i]; x.Transient != "" {
			list = append(list, fmt.Sprintf("%s: the figures rest on a transient: %s", x.Label, x.Transient))
		}
	}
	return list
}

// curvesFacts describes in one line how a sweep was run.
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

// pointCell formats a point's metric, or the reason why it is missing.
func pointCell(x *study.PointSummary, name string) string {
	e, ok := x.Metric(name)
	switch {
	case ok && e.N > 1 && e.Mean != 0:
		// One decimal is enough for the width of an interval.
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
