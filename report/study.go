package report

import (
	_ "embed" // the page's template
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

//go:embed page/study.tmpl
var studyTemplate string

// Study holds the context of a page about a study.
type Study struct {
	Metrics  []string // patterns of the metrics to show; empty selects the default ones
	Scenario string   // resolved scenario of a sweep's first point
	Version  string   // of the program
	Command  string   // that ran the study; may be empty
}

// studyPage holds the data of the template.
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
		// #nosec G203 -- constants
		Style: template.CSS(pageStyle + chart.CSS), Script: template.JS(pageScript),
		Patterns: template.HTML(chart.Patterns)}
}

// write executes the template of studies.
func (p *studyPage) write(w io.Writer) error { return p.fill(w, studyTemplate) }

// fill executes a template. Its tables are those of the pages of runs.
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

// failures adds the trials that failed.
func (p *studyPage) failures(label string, failed []study.Failure) {
	for _, f := range failed {
		p.Failed = append(p.Failed, remark{label, fmt.Sprintf("seed %d", f.Seed), f.Err})
	}
}

// asRatio is the relative change from which effects and intervals are written as ratios: x16.6k is easier to read than
// +1664890 %.
const asRatio = 9

// effectText formats an effect and its interval as percentages of A's value, as ratios if they are large, or in the
// metric's unit if they are differences.
func effectText(e *study.Effect) (effect, interval string) {
	mean, low, high, ok := e.Relative()
	if !ok {
		q := func(v float64) string { return sign(v) + term.Quantity(math.Abs(v), e.Unit) }
		return q(e.Effect.Mean), q(e.Effect.Low()) + " to " + q(e.Effect.High())
	}
	if high >= asRatio || 1/(1+low) >= 1+asRatio {
		return ratio(1 + mean), ratio(1+low) + " to " + ratio(1+high)
	}
	return signedPercent(mean) + " %", signedPercent(low) + " to " + signedPercent(high) + " %"
}

// ratio formats a factor.
func ratio(v float64) string {
	if v >= 1000 {
		return "x" + term.Rate(v)
	}
	return "x" + term.Significant(v, 3)
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

// signedPercent formats a share as a signed percentage with three digits, or with two decimals below 1 %.
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

// probability formats a p value.
func probability(p float64) string {
	if p < 0.0001 {
		return "<0.0001"
	}
	return fmt.Sprintf("%.4f", p)
}

// verdictText formats a metric's verdict for tables.
func verdictText(e *study.Effect, relevant float64) string {
	if e.Verdict == study.Identical {
		return "identical"
	}
	less := fmt.Sprintf("less than %s", units.Fraction(relevant))
	switch {
	case e.Verdict == study.NoEvidence && e.Within:
		return "differs by " + less
	case e.Within && e.Differs():
		return fmt.Sprintf("%s, by %s", e.Verdict, less)
	case e.Verdict == study.TooFew && e.More != 0:
		return string(e.Verdict) + ": " + moreText(e)
	case e.Doubtful:
		return string(e.Verdict) + ", but Wilcoxon's test does not confirm it"
	}
	return string(e.Verdict)
}

// moreText formats the number of further replicates that would decide a metric.
func moreText(e *study.Effect) string {
	switch {
	case e.More < 0:
		return "over 1,000,000 more"
	case e.More > 0:
		return term.Count(float64(e.More)) + " more"
	}
	return ""
}

// replicatesText describes the pairing of replicates.
func replicatesText(x *study.Effects) string {
	how, seeds := "on common random numbers", seedsText(x.Seeds)
	if x.Apart {
		how, seeds = "on separate seeds", "A's "+seeds
	}
	return fmt.Sprintf("%d replicates of each %s, %s", len(x.Seeds), how, seeds)
}

// looksText describes the looks and why the comparison ended; "" without interim looks.
func looksText(x *study.Effects) string {
	if len(x.Looks) < 2 {
		return ""
	}
	n := len(x.Seeds)
	ended := fmt.Sprintf("It ended at the limit of %d", x.Looks[len(x.Looks)-1])
	if x.Decided() {
		ended = fmt.Sprintf("It ended after %d: every primary metric is decided", n)
	}
	return fmt.Sprintf("looks planned after %s replicates. %s", strings.Join(texts(x.Looks), ", "), ended)
}

func texts(list []int) []string {
	var out []string
	for _, n := range list {
		out = append(out, fmt.Sprint(n))
	}
	return out
}

// erraticText lists the ranges of erratic metrics; "" if there are none.
func erraticText(pair *study.Pair) string {
	var out []string
	primary := pair.Primary()
	for i := range primary {
		if e := &primary[i]; e.Erratic() {
			of := func(r [2]float64) string {
				return term.Quantity(r[0], e.Unit) + " to " +
					term.Quantity(r[1], e.Unit)
			}
			out = append(out, fmt.Sprintf("%s A %s, %s %s", e.Name, of(e.RangeA), ArmLetter(pair.Arm), of(e.RangeB)))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "single runs vary widely: " + strings.Join(out, "; ")
}

// findings summarises the primary family: better, worse and too few runs, each sorted by size.
func findings(x *study.Effects, pair *study.Pair) []string {
	primary := pair.Primary()
	switch {
	case x.Arms[pair.Arm].Digest == x.Arms[0].Digest && !x.Apart:
		return []string{fmt.Sprintf("no evidence of a difference: %s is the same scenario as A", ArmLetter(pair.Arm))}
	case pair.Family == 0 && pair.Explored == 0:
		out := []string{fmt.Sprintf("no evidence of a difference: %s, identical in every replicate",
			countMetrics(len(pair.Effects)))}
		for _, w := range pair.Remarks {
			out = append(out, ArmLetter(pair.Arm)+" warns: "+w)
		}
		return out
	}
	if len(primary) == 0 {
		return []string{"no evidence of a difference: the arms have no primary metric of this kind of experiment; " +
			"name others with --metric"}
	}
	var out []string
	for _, v := range []study.Verdict{study.Better, study.Worse, study.Higher, study.Lower, study.TooFew} {
		var names []string
		more := 0
		for i := range primary {
			e := &primary[i]
			if e.Verdict != v {
				continue
			}
			effect, _ := effectText(e)
			names = append(names, e.Name+" "+effect)
			if more >= 0 && (e.More < 0 || e.More > more) {
				more = e.More
			}
		}
		if len(names) == 0 {
			continue
		}
		line := string(v) + ": " + strings.Join(names, ", ")
		if v == study.TooFew && more != 0 {
			line += "; " + moreText(&study.Effect{More: more}) + " for all of them"
		}
		out = append(out, line)
	}
	if text := erraticText(pair); text != "" {
		out = append(out, text)
	}
	if study.Differing(primary) == 0 {
		out = append([]string{fmt.Sprintf("no evidence of a difference in any of %s", countMetrics(len(primary)))},
			out...)
	}
	return out
}

// ArmLetter returns the name of an arm in tables: A, B and so on.
func ArmLetter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprintf("arm %d", i+1)
}

// seedsText formats the seeds of a study.
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

// firstSeeds returns n consecutive seeds from first on.
func firstSeeds(first uint64, n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = first + uint64(i)
	}
	return out
}
