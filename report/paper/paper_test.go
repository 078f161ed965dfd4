package paper_test

import (
	"encoding/csv"
	"math"
	"regexp"
	"strings"
	"testing"

	"farflash/report/chart"
	"farflash/report/paper"
)

// plots returns one plot of each kind, with names that contain special characters of other languages.
func plots() []paper.Plot {
	hostile := `a_b {50%} $x^2$ & #1 ~ \end{axis} <svg>`
	return []paper.Plot{
		{Name: "curves", Chart: chart.LineChart{Frame: chart.Frame{Title: hostile},
			X: chart.Axis{Label: hostile, Scale: chart.Log,
				Marks: []chart.Mark{{At: 1, Label: "1"}, {At: 10, Label: hostile}}},
			Y: chart.Axis{Label: "p99", Unit: chart.Micros, Scale: chart.Log}, Series: []chart.Series{
				{Name: hostile, X: []float64{1, 3, 10}, Y: []float64{10, math.NaN(), 30}, Half: []float64{1, 0, 2}},
				{Style: 3, X: []float64{1, 10}, Y: []float64{5, 5}}}}},
		{Name: "cdf", Chart: chart.CDFChart{X: chart.Axis{Label: "Latency", Unit: chart.Micros, Scale: chart.Log},
			YLabel: "Requests within", Distributions: []chart.Distribution{
				{Name: "read", Value: []float64{10, 20, 90}, Share: []float64{0, 0.9, 1}, Count: 1000}}}},
		{Name: "effects", Chart: chart.ForestChart{X: chart.Axis{Label: "B over A", Scale: chart.Log}, Zero: 1,
			Rows: []chart.ForestRow{
				{Name: hostile, Mean: 2, Low: 1.5, High: 2.5, Text: "x2,\nbetter", Title: "two\nlines"},
				{Name: "b", Mean: 1.01, Low: 0.9, High: 1.12, Faint: true, Style: 7}}}},
	}
}

func write(t *testing.T, p paper.Plot, f paper.Format) string {
	t.Helper()
	var b strings.Builder
	if err := paper.Write(&b, p, f); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// An element's start or end tag, and the permitted content between its name and its end.
var (
	tag        = regexp.MustCompile(`<(/?)([a-z]+)((?:\s+[a-zA-Z:-]+="[^"<>]*")*)\s*(/?)>`)
	attributes = regexp.MustCompile(`^(\s+[a-zA-Z:-]+="[^"<>]*")*$`)
)

// TestSVG verifies that files are standalone: well-formed, in their namespace, with colours and without references to a
// page.
func TestSVG(t *testing.T) {
	for _, p := range plots() {
		text := write(t, p, paper.SVG)
		var open []string
		elements := 0
		for _, m := range tag.FindAllStringSubmatch(text, -1) {
			switch name := m[2]; {
			case m[1] == "/":
				if len(open) == 0 || open[len(open)-1] != name {
					t.Fatalf("%s: </%s> closes %v", p.Name, name, open)
				}
				open = open[:len(open)-1]
			default:
				elements++
				if !attributes.MatchString(m[3]) {
					t.Errorf("%s: <%s%s> has what is not an attribute", p.Name, name, m[3])
				}
				if m[4] == "" {
					open = append(open, name)
				}
			}
		}
		if rest := tag.ReplaceAllString(text, ""); len(open) > 0 || strings.ContainsAny(rest, "<>") ||
			elements < 10 || !strings.HasPrefix(text, `<svg xmlns="http://www.w3.org/2000/svg" `) {
			t.Errorf("%s: %d elements, %v open:\n%s", p.Name, elements, open, text)
		}
		for _, not := range []string{"var(", `class="hit"`, "@media", "width:100%", "url(#"} {
			if strings.Contains(text, not) {
				t.Errorf("%s has %s, which a file of its own has not", p.Name, not)
			}
		}
		if !strings.Contains(text, ".s0{stroke:#0072b2}") {
			t.Errorf("%s has no colours:\n%s", p.Name, text)
		}
	}
}

// balanced reports whether all TeX groups are closed in order, without escaped signs and comments.
func balanced(text string) bool {
	var open []byte
	for line := range strings.Lines(text) {
		for i := 0; i < len(line); i++ {
			switch c := line[i]; c {
			case '\\':
				i++
			case '%':
				i = len(line)
			case '{', '[', '(':
				open = append(open, c)
			case '}', ']', ')':
				pairs := map[byte]byte{'}': '{', ']': '[', ')': '('}
				if len(open) == 0 || open[len(open)-1] != pairs[c] {
					return false
				}
				open = open[:len(open)-1]
			}
		}
	}
	return len(open) == 0
}

// TestPGF verifies the structure of the TeX: environments and brackets that close, plots that end, names that are text.
func TestPGF(t *testing.T) {
	for _, p := range plots() {
		text := write(t, p, paper.PGF)
		if !balanced(text) {
			t.Errorf("%s is not balanced:\n%s", p.Name, text)
		}
		var open []string
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if name, ok := strings.CutPrefix(line, `\begin{`); ok {
				open = append(open, name[:strings.IndexByte(name, '}')])
			}
			if name, ok := strings.CutPrefix(line, `\end{`); ok {
				if len(open) == 0 || open[len(open)-1] != strings.TrimSuffix(name, "}") {
					t.Fatalf("%s: %s closes %v", p.Name, line, open)
				}
				open = open[:len(open)-1]
			}
			if strings.HasPrefix(line, `\addplot`) {
				code, _, _ := strings.Cut(line, " % ")
				if !strings.HasSuffix(code, "};") || !strings.Contains(code, "coordinates {") {
					t.Errorf("%s: a plot without an end: %s", p.Name, line)
				}
			}
		}
		if len(open) > 0 || !strings.Contains(text, `\documentclass`) || strings.Count(text, `\end{axis}`) != 1 {
			t.Errorf("%s: %v is open\n%s", p.Name, open, text)
		}
	}
	text := write(t, plots()[0], paper.PGF)
	for _, want := range []string{"xmode=log", "ymode=log", "(1,10) +- (0,1) (3,nan) (10,30) +- (0,2)",
		`a\_b \{50\%\} \$x\textasciicircum{}2\$ \& \#1 \textasciitilde{} \textbackslash{}end\{axis\} \textless{}svg\textgreater{}`, "ylabel={p99 (us)}"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if text := write(t, plots()[1], paper.PGF); !strings.Contains(text, "(20,1) (90,3)") ||
		!strings.Contains(text, `yticklabels={{0.0 \%}`) {
		t.Errorf("nine of ten are one step up, and the last of a thousand three:\n%s", text)
	}
	if text := write(t, plots()[2], paper.PGF); !strings.Contains(text, "(2,0) += (0.5,0) -= (0.5,0)") {
		t.Errorf("intervals:\n%s", text)
	}
}

// TestCSV verifies that tables are read back unchanged, below a line that describes them.
func TestCSV(t *testing.T) {
	for i, want := range []int{6, 4, 3} {
		p := plots()[i]
		text := write(t, p, paper.CSV)
		how, rest, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(how, "# ") || !strings.Contains(how, "pandas.read_csv('"+p.Name+".csv', comment='#')") {
			t.Errorf("%s: %s", p.Name, how)
		}
		rows, err := csv.NewReader(strings.NewReader(rest)).ReadAll()
		if err != nil || len(rows) != want {
			t.Errorf("%s: %v, %d rows\n%s", p.Name, err, len(rows), text)
		}
	}
}
