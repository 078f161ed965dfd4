package chart

import (
	"regexp"
	"strings"
)

var (
	hits     = regexp.MustCompile(`(?s)<rect class="hit".*?</rect>\n`)
	fallback = regexp.MustCompile(`var\(--[a-z]+,(#[0-9a-f]+)\)`)
	named    = regexp.MustCompile(`--(c[0-9]):(#[0-9a-f]+)`)
)

// Standalone converts a chart that was drawn for a page to a file: with its namespace, with the colours for light paper
// written out, because few programs other than browsers support CSS variables, with the hatchings that it uses, and
// without the invisible areas for the pointer.
func Standalone(svg string) string {
	svg = hits.ReplaceAllString(svg, "")
	head, rest, _ := strings.Cut(svg, ">\n")
	head = strings.Replace(head, "<svg ", `<svg xmlns="http://www.w3.org/2000/svg" `, 1)
	if strings.Contains(rest, "url(#hatch") {
		_, defs, _ := strings.Cut(Patterns, ">")
		rest = strings.TrimSuffix(defs, "</svg>") + "\n" + rest
	}
	rest = fallback.ReplaceAllString(rest, "$1")
	return head + ">\n<style>\nsvg.chart{font:12px Helvetica,Arial,\"DejaVu Sans\",sans-serif;background:#fff}\n" +
		plainCSS() + "</style>\n" + rest
}

// plainCSS returns the style of charts on light paper without variables.
func plainCSS() string {
	var b strings.Builder
	colours := map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(CSS, "\n")) {
		if strings.HasPrefix(line, "svg.chart{") {
			for _, m := range named.FindAllStringSubmatch(line, -1) {
				colours["var(--"+m[1]+")"] = m[2]
			}
			continue
		}
		if strings.HasPrefix(line, "@media") || strings.Contains(line, ".hit") {
			continue
		}
		line = fallback.ReplaceAllString(line, "$1")
		for name, colour := range colours {
			line = strings.ReplaceAll(line, name, colour)
		}
		b.WriteString(line)
	}
	return b.String()
}
