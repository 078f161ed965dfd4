package report

import (
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"farflash/internal/term"
	"farflash/report/chart"
	"farflash/study"
	"farflash/units"
)

//go:embed page/study.tmpl
var studyTemplate string

// Study is what belongs to a page about a study beside its results.
type Study struct {
	Metrics  []string // patterns of the metrics to show; empty is the usual ones
	Scenario string   // resolved, of a sweep's first point
	Version  string   // of the program
	Command  string   // that ran the study; may be empty
}

// studyPage is what the template shows.
type studyPage struct {
	Title, Summary string
	Facts          []fact
	Failed         []remark
	Warnings       []remark
	Sections       []section
	Scenarios      []pageRun
	Command        string
	Version        string
	Style          template.CSS
	Script         template.JS
	Patterns       template.HTML
}

func newStudyPage(s Study) *studyPage {
	return &studyPage{Command: s.Command, Version: s.Version,
		Style: template.CSS(pageStyle + chart.CSS), Script: template.JS(pageScript), Patterns: template.HTML(chart.Patterns)} // #nosec G203 -- constants
}

// write fills the template of studies.
func (p *studyPage) write(w io.Writer) error { return p.fill(w, studyTemplate) }

// fill fills a template. Tables are those of runs' pages.
func (p *studyPage) fill(w io.Writer, text string) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err == nil {
		t, err = t.New("study").Parse(text)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return t.Execute(w, p)
}

// failures lists trials that failed.
func (p *studyPage) failures(label string, failed []study.Failure) {
	for _, f := range failed {
		p.Failed = append(p.Failed, remark{label, fmt.Sprintf("seed %d", f.Seed), f.Err})
	}
}

// asRatio is the share of the first arm's mean from which effects are written as ratios: nobody reads +1664890 %.
const asRatio = 9

// effectText writes an effect and its interval as shares of the first arm's mean, as ratios if they are large, or in the
// metric's unit if that mean is 0.
func effectText(e *study.Effect) (effect, interval string) {
	mean, low, high, ok := e.Relative()
	if !ok {
		q := func(v float64) string { return sign(v) + term.Quantity(math.Abs(v), e.Unit) }
		return q(e.Effect.Mean), q(e.Effect.Low()) + " to " + q(e.Effect.High())
	}
	if mean >= asRatio {
		return ratio(1 + mean), ratio(1+low) + " to " + ratio(1+high)
	}
	return signedPercent(mean) + " %", signedPercent(low) + " to " + signedPercent(high) + " %"
}

// ratio writes how many times something is. The end of a wide interval may be below 0, where no ratio is.
func ratio(v float64) string {
	if v >= 1000 {
		return "x" + term.Rate(v)
	}
	return "x" + term.Significant(math.Max(v, 0), 3)
}

// ranksText says how far the signed-rank test agrees with the t test, "" if nothing differs.
func ranksText(x *study.Effects, pair *study.Pair) string {
	n := pair.Differing()
	switch {
	case n == 0:
		return ""
	case math.Ldexp(1, 1-len(x.Seeds)) >= 1-x.Level:
		return "too few replicates for Wilcoxon's signed-rank test"
	}
	return fmt.Sprintf("Wilcoxon's signed-rank test, without correction, confirms %d of the %d", pair.Agreed, n)
}

func sign(v float64) string {
	switch {
	case v < 0:
		return "-"
	case v > 0:
		return "+"
	}
	return ""
}

// signedPercent writes a share with its sign to three digits, or to two after the point if it is below 1 %.
func signedPercent(v float64) string {
	a := 100 * math.Abs(v)
	if a < 0.005 {
		return "0.00"
	}
	if a < 1 {
		return sign(v) + fmt.Sprintf("%.2f", a)
	}
	return sign(v) + term.Significant(a, 3)
}

// probability writes a p value.
func probability(p float64) string {
	if p < 0.0001 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}

// verdictText is what tables say of a metric.
func verdictText(e *study.Effect, relevant float64) string {
	none := e.Verdict == study.NoEvidence
	switch {
	case e.Within && none:
		return fmt.Sprintf("%s, less than %s", e.Verdict, units.Fraction(relevant))
	case e.Within:
		return fmt.Sprintf("%s, by less than %s", e.Verdict, units.Fraction(relevant))
	case none && e.Alone:
		return "no evidence once corrected"
	case e.Doubtful:
		return string(e.Verdict) + ", but Wilcoxon's test does not confirm it"
	}
	return string(e.Verdict)
}

// moreText is how many more replicates would settle a metric.
func moreText(e *study.Effect) string {
	switch {
	case e.More < 0:
		return ">1M"
	case e.More > 0:
		return "+" + term.Count(float64(e.More))
	}
	return ""
}

// ArmLetter is what an arm is called in tables: A, B and so on.
func ArmLetter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprintf("arm %d", i+1)
}

// seedsText says which seeds a study has.
func seedsText(seeds []uint64) string {
	switch n := len(seeds); {
	case n == 0:
		return "no seed"
	case n == 1:
		return fmt.Sprintf("seed %d", seeds[0])
	case seeds[n-1]-seeds[0] == uint64(n-1):
		return fmt.Sprintf("seeds %d to %d", seeds[0], seeds[n-1])
	default:
		return "seeds " + strings.Trim(fmt.Sprint(seeds), "[]")
	}
}

// firstSeeds lists n seeds from the first on.
func firstSeeds(first uint64, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = first + uint64(i)
	}
	return out
}
