package report

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"farflash/internal/golden"
	"farflash/internal/term"
	"farflash/result"
)

var rewords = flag.Bool("words", false, "write testdata/words anew")

var (
	wordless = regexp.MustCompile(
		`(?s)<(style|script|defs)\b.*?</(style|script|defs)>|<div class="slim">.*?</svg>\s*</div>`)
	picture = regexp.MustCompile(`(?s)<svg\b.*?</svg>`)
	marked  = regexp.MustCompile(`(?s)<title>.*?</title>`)
	inline  = regexp.MustCompile(
		`</?(b|i|em|strong|code|span|small|wbr|a|tspan)\b[^>]*>|<t[dh]\b[^>]*>|</?t(able|head|body|foot)>`)
	tag = regexp.MustCompile(`<[^>]*>`)
)

// Limits for repetitive content of a page: words of a chart's marks, including the first and the last, and rows of the
// table of all metrics.
const (
	keptMarks   = 6
	keptMetrics = 5
)

// words returns the text that a reader finds in a page: a line for each position and for each row of a table, and one
// for all labels of a chart, before the titles of some of its marks.
func words(page string) string {
	page = wordless.ReplaceAllString(page, "")
	page = picture.ReplaceAllStringFunc(page, func(svg string) string {
		marks := marked.FindAllString(svg, -1)
		var labels, told []string
		for _, text := range strings.Split(tag.ReplaceAllString(marked.ReplaceAllString(svg, ""), "\n"), "\n") {
			if text = strings.TrimSpace(text); text != "" {
				labels = append(labels, text)
			}
		}
		for _, k := range evenly(len(marks), keptMarks) {
			told = append(told, "  * "+strings.ReplaceAll(tag.ReplaceAllString(marks[k], ""), "\n", "; "))
		}
		return "\n" + fmt.Sprintf("[chart: %s]", strings.Join(labels, " · ")) + "\n" + strings.Join(told, "\n") + "\n"
	})
	page = strings.NewReplacer("</tr>", "\n", "</td>", " | ", "</th>", " | ").Replace(page)
	page = tag.ReplaceAllString(inline.ReplaceAllString(page, ""), "\n")
	var out []string
	metrics := -1
	for line := range strings.Lines(html.UnescapeString(page)) {
		line = strings.TrimRight(strings.Join(strings.Fields(line), " "), " |")
		if metrics >= 0 {
			metrics++
		}
		if strings.HasSuffix(line, " metrics, exact values") {
			metrics = 0
		}
		if line != "" && metrics <= keptMetrics {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n") + "\n"
}

// plainly writes text into a page.
type plainly struct{ io.Writer }

func (p plainly) Write(text []byte) (int, error) {
	_, err := io.WriteString(p.Writer, strings.ReplaceAll(html.EscapeString(string(text)), "\n", "<br>"))
	return len(text), err
}

// TestWords verifies the text of pages and tables: titles, notes, rows, and the titles of some of the charts' marks.
// Changes must be reviewed line by line before they are accepted.
func TestWords(t *testing.T) {
	cluster := func(label string) Run { return Run{Result: clusterResult(), Label: label} }
	sweep := func(axes ...string) func(io.Writer) error {
		return func(w io.Writer) error {
			c := curvesOf(t, 3, func(r *result.Result, point, rep int) error {
				if point == 1 && rep == 2 {
					return fmt.Errorf("no room on the %dth point", point)
				}
				r.Set("read.latency.mean", 10+float64(point*point)+float64(rep)/10)
				r.Set("ssd.waf", 2+float64(point))
				return nil
			}, axes...)
			if err := WriteCurvesText(plainly{w}, c, nil, term.Style{}); err != nil {
				return err
			}
			return WriteCurves(w, c, Study{Version: "test", Scenario: studied, Command: "farflash sweep"})
		}
	}
	for name, write := range map[string]func(io.Writer) error{
		"drive":    func(w io.Writer) error { return WriteHTML(w, toyA.run(1)) },
		"drives":   func(w io.Writer) error { return WriteHTML(w, toyA.run(1), toyB.run(1), toyC.run(1)) },
		"system":   func(w io.Writer) error { return WriteHTML(w, systemA.run()) },
		"networks": func(w io.Writer) error { return WriteHTML(w, netA.run(), netB.run()) },
		"clusters": func(w io.Writer) error { return WriteHTML(w, cluster("a"), cluster("b")) },
		"cluster": func(w io.Writer) error {
			if err := WriteText(plainly{w}, cluster(""), term.Style{}); err != nil {
				return err
			}
			return WriteHTML(w, cluster(""))
		},
		"effects": func(w io.Writer) error {
			x := comparison3(t, 8, everyVerdict)
			if err := WriteEffectsText(plainly{w}, x, true, true, term.Style{}); err != nil {
				return err
			}
			return WriteEffects(w, x, Study{Version: "test"})
		},
		"sweep": sweep("ssd.over_provisioning=5%..30%:+5%"),
		"grid": sweep("ssd.over_provisioning=7%,14%", "ssd.collection.victim=greedy,random",
			"ssd.cache.capacity=4MiB,8MiB"),
		"shades": sweep("ssd.over_provisioning=7%,14%", "ssd.timing.read_latency=10us..80us:+10us"),
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		golden.File(t, filepath.Join("testdata", "words", name+".txt"), []byte(words(b.String())), *rewords,
			"go test ./report -run TestWords -words, and read what changes")
	}
}
