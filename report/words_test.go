package report

import (
	"bytes"
	"flag"
	"fmt"
	"html"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
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

// Limits on the recorded text of a page: marks of a chart, including the first and the last, and rows of the table of
// all metrics.
const (
	keptMarks   = 6
	keptMetrics = 5
)

// words extracts the text that a reader sees on a page: a line for each place and each row of a table, and one line for
// all labels of a chart, followed by the titles of some of its marks.
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

// plainly is a writer that escapes text for a page.
type plainly struct{ io.Writer }

func (p plainly) Write(text []byte) (int, error) {
	_, err := io.WriteString(p.Writer, strings.ReplaceAll(html.EscapeString(string(text)), "\n", "<br>"))
	return len(text), err
}

// TestWords checks the text of pages and tables: titles, notes, rows, and the titles of some marks of charts. Read any
// changes line by line before recording them.
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
	looks := map[string]string{}
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
		"headroom": func(w io.Writer) error {
			h := looked(t, 2, nil, func(load float64, rep int) float64 { return 100 * load * (1 + 0.1*float64(rep)) })
			if err := WriteHeadroomText(plainly{w}, h, nil, term.Style{}); err != nil {
				return err
			}
			return WriteHeadroom(w, h, Study{Version: "test", Command: "farflash headroom"})
		},
		"protocol": func(w io.Writer) error {
			r := clusterResult()
			r.SetMatrix("cluster.protocol", protocolRows, protocolColumns, protocolOf())
			return WriteHTML(w, Run{Result: r})
		},
		"tenants": func(w io.Writer) error {
			if err := WriteText(plainly{w}, tenants("web", "log"), term.Style{}); err != nil {
				return err
			}
			return WriteHTML(w, tenants("web", "log"))
		},
		"tenants-side-by-side": func(w io.Writer) error {
			return WriteHTML(w, tenants("web", "log"),
				tenants("mail", "log"))
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
		looks[name] = looksOf(b.String())
	}
	var all strings.Builder
	for _, name := range slices.Sorted(maps.Keys(looks)) {
		fmt.Fprintf(&all, "%s\n%s", name, looks[name])
	}
	golden.File(t, filepath.Join("testdata", "looks.txt"), []byte(all.String()), *rewords,
		"go test ./report -run TestWords -words, and read what changes")
}

var (
	frame  = regexp.MustCompile(`<svg\b[^>]*>`)
	drawn  = regexp.MustCompile(`<(rect|path|circle|line|polyline|polygon|g)\b[^>]*?class="([^"]*)"`)
	named  = regexp.MustCompile(`aria-label="([^"]*)"`)
	viewed = regexp.MustCompile(`viewBox="([^"]*)"`)
)

// looksOf describes the charts of a page: a line for each, with its name, its size, and the number of marks of each
// kind.
func looksOf(page string) string {
	var out strings.Builder
	for _, svg := range picture.FindAllString(page, -1) {
		head := frame.FindString(svg)
		count := map[string]int{}
		for _, m := range drawn.FindAllStringSubmatch(svg, -1) {
			count[m[1]+"."+m[2]]++
		}
		fmt.Fprintf(&out, "  %s", append(named.FindStringSubmatch(head), "", "")[1])
		fmt.Fprintf(&out, " [%s]:", append(viewed.FindStringSubmatch(head), "", "")[1])
		for _, k := range slices.Sorted(maps.Keys(count)) {
			fmt.Fprintf(&out, " %d %s", count[k], k)
		}
		out.WriteString("\n")
	}
	return out.String()
}
