package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// views are the ways to view a page: on a phone, on a screen, on a screen in dark mode, and on paper (A4 with margins
// of 14 mm).
var views = []struct {
	name          string
	width, height int
	as            func(string) string
}{{"420", 420, 6000, asItIs}, {"1280", 1280, 4000, asItIs}, {"dark", 1280, 4000, inDark}, {"print", 688, 4000, onPaper}}

func asItIs(page string) string { return page }

// inDark forces the dark colours of a page.
func inDark(page string) string {
	return strings.ReplaceAll(page, "@media (prefers-color-scheme:dark)", "@media all")
}

// onPaper forces the print style of a page, which a browser without a printer does not show.
func onPaper(page string) string {
	return strings.NewReplacer("@media print", "@media all", "@media screen", "@media speech", "@media (max-width",
		"@media not all and (max-width", "@media (prefers-color-scheme:dark)", "@media not all").Replace(page)
}

// audit checks a page in a browser: whether any element is wider than the window, and whether texts of charts are cut
// or overlap.
const audit = `
function audit(view, d) {
  var out = [], width = d.documentElement.clientWidth;
  function say(what, e) { out.push(view + ": " + what + ": " + (e ? (e.textContent || "").trim().slice(0, 60) : "")); }
  if (d.documentElement.scrollWidth > width + 1) say("the page is " + d.documentElement.scrollWidth + " wide", null);
  d.querySelectorAll(".scroll,figure").forEach(function (e) {
    if (!e.clientWidth || e.closest("details:not([open])") || e.scrollWidth <= e.clientWidth + 2) return;
    if (view !== "420") say("one must scroll", e.querySelector("caption,figcaption,thead") || e);
    else if (!e.classList.contains("more")) say("nothing says that one may scroll", e);
  });
  d.querySelectorAll("h1,h2,h3,p,li,summary,figcaption,.tile div").forEach(function (e) {
    if (e.clientWidth && e.scrollWidth > e.clientWidth + 1 && !e.closest(".scroll")) say("text is cut", e);
  });
  d.querySelectorAll("svg.chart").forEach(function (s) {
    var box = s.getBoundingClientRect(), seen = [];
    if (!box.width) return;
    s.querySelectorAll("text").forEach(function (t) {
      var r = t.getBoundingClientRect();
      if (!r.width) return;
      if (r.left < box.left - 3 || r.right > box.right + 3 || r.top < box.top - 3 || r.bottom > box.bottom + 3) say("text of a chart is cut: " + (s.getAttribute("aria-label") || ""), t);
      if (s.classList.contains("network")) return;
      seen.forEach(function (o) {
        var w = Math.min(o.r.right, r.right) - Math.max(o.r.left, r.left), h = Math.min(o.r.bottom, r.bottom) - Math.max(o.r.top, r.top);
        if (w > 3 && h > r.height / 2) say("texts lie on each other: " + (s.getAttribute("aria-label") || "") + ": " + o.t.textContent.trim(), t);
      });
      seen.push({r: r, t: t});
    });
  });
  return out;
}
addEventListener("load", function () {
  var out = [];
  document.querySelectorAll("iframe").forEach(function (f) { out = out.concat(audit(f.id, f.contentDocument)); });
  document.getElementById("found").textContent = JSON.stringify(out);
});`

// TestPages verifies in a browser that no page is wider than its window, that no text is cut, and that content that
// continues to the right is marked. FARFLASH_BROWSER names the browser, FARFLASH_PAGES a pattern of further pages, and
// FARFLASH_SHOTS a folder for a screenshot of each page, with its views side by side.
func TestPages(t *testing.T) {
	browser := os.Getenv("FARFLASH_BROWSER")
	if browser == "" {
		t.Skip("FARFLASH_BROWSER names no browser, such as chromium")
	}
	var effects bytes.Buffer
	if err := WriteEffects(&effects, comparison3(t, 8, everyVerdict), Study{Version: "test"}); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{"one": page1(t, toyA.run(1)), "three": page1(t, toyA.run(1), toyB.run(1), toyC.run(1)),
		"system":  page1(t, systemA.run()),
		"systems": page1(t, systemA.run(), systemB.run()), "even": page1(t, systemC.run()), "effects": effects.String()}
	files, err := filepath.Glob(os.Getenv("FARFLASH_PAGES"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(filepath.Dir(name))] = string(text)
	}
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, found := range look(t, browser, name, page) {
				t.Error(found)
			}
		})
	}
}

// frames returns a page that shows another one in all views, each at its width, from left to right.
func frames(page string) string {
	var b strings.Builder
	b.WriteString(`<!doctype html><body style="margin:0;display:flex;align-items:start">`)
	for _, v := range views {
		fmt.Fprintf(&b, `<iframe id="%s" style="border:0;flex:none;width:%dpx;height:%dpx" srcdoc="%s"></iframe>`,
			v.name, v.width, v.height, html.EscapeString(v.as(page)))
	}
	return b.String() + `<pre id="found" hidden></pre><script>` + audit + "</script>"
}

var answer = regexp.MustCompile(`<pre id="found" hidden="">([^<]*)</pre>`)

// look audits a page in the browser, and takes a screenshot of all views if a folder for them is set.
func look(t *testing.T, browser, name, page string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(frames(page)), 0o600); err != nil {
		t.Fatal(err)
	}
	width, height := 0, 0
	for _, v := range views {
		width, height = width+v.width, max(height, v.height)
	}
	args := []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
		fmt.Sprintf("--window-size=%d,%d", width, height), "--dump-dom"}
	if folder := os.Getenv("FARFLASH_SHOTS"); folder != "" {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--screenshot="+filepath.Join(folder, name+".png"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	// #nosec G204 -- the browser is named by FARFLASH_BROWSER
	out, err := exec.CommandContext(ctx, browser, append(args, "file://"+file)...).Output()
	if err != nil {
		t.Fatalf("%s: %v", browser, err)
	}
	m := answer.FindSubmatch(out)
	if m == nil || len(m[1]) == 0 {
		t.Fatal("the browser gave no answer")
	}
	var found []string
	if err := json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), &found); err != nil {
		t.Fatal(err)
	}
	return found
}
