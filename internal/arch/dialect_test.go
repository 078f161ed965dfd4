package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dialect lists idioms that a native systems engineer does not use, or seldom, with how many a hundred thousand words
// may have: twice the rate in the comments of pebble, gVisor and raft, or 3 where these have none. The limits apply to
// comments, messages and pages separately.
var dialect = []struct {
	idiom *regexp.Regexp
	most  float64
}{
	{regexp.MustCompile(`(?i)\bwhat is\b`), 10},
	{regexp.MustCompile(`(?i)\bnothing\b`), 64},
	{regexp.MustCompile(`(?i)\bwhat (it|they)\b`), 3},
	{regexp.MustCompile(`(?i)\b(told|tells)\b`), 10},
	{regexp.MustCompile(`(?i)\bso many\b`), 3},
	{regexp.MustCompile(`(?i)\bnobody\b`), 3},
}

// worst is the number of files that a failure of TestDialect lists.
const worst = 8

// TestDialect counts the idioms over all comments, over the string literals of all files except tests, and over all
// Markdown pages.
func TestDialect(t *testing.T) {
	comments, messages := map[string]string{}, map[string]string{}
	for _, f := range tree(t) {
		comments[f.path] = commentsOf(f.syntax)
		if !f.test {
			messages[f.path] = messagesOf(f.syntax)
		}
	}
	for _, x := range []struct {
		kind  string
		files map[string]string
	}{{"comments", comments}, {"messages", messages}, {"pages", pages(t)}} {
		words := 0
		for _, text := range x.files {
			words += len(strings.Fields(text))
		}
		for _, d := range dialect {
			found, at := 0, map[string]int{}
			for path, text := range x.files {
				if n := len(d.idiom.FindAllString(text, -1)); n > 0 {
					found += n
					at[path] = n
				}
			}
			rate := float64(found) / float64(words) * 1e5
			t.Logf("%s: %q %d times in %d words, %.1f in 100,000 of %v", x.kind, d.idiom, found, words, rate, d.most)
			if rate <= d.most {
				continue
			}
			var list []string
			byCount := func(a, b string) int { return cmp.Or(at[b]-at[a], strings.Compare(a, b)) }
			for _, path := range slices.SortedFunc(maps.Keys(at), byCount)[:min(worst, len(at))] {
				list = append(list, fmt.Sprintf("%s (%d)", path, at[path]))
			}
			t.Errorf("%s have %q %d times, %.1f in 100,000 words; the limit is %v; most are in %s", x.kind, d.idiom,
				found, rate, d.most, strings.Join(list, ", "))
		}
	}
}

// unwrapped joins the lines of a paragraph.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// commentsOf returns the comments of a file, one a line.
func commentsOf(f *ast.File) string {
	var all []string
	for _, group := range f.Comments {
		all = append(all, unwrapped(group.Text()))
	}
	return strings.Join(all, "\n")
}

// messagesOf returns the string literals of a file, one a line. Literals joined by + are one.
func messagesOf(f *ast.File) string {
	var all []string
	tags := map[ast.Node]bool{} // a field is visited before its tag
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			tags[x.Tag] = true
		case *ast.BasicLit, *ast.BinaryExpr:
			if tags[n] {
				return false
			}
			if text, ok := joinedLiteral(x.(ast.Expr)); ok {
				all = append(all, unwrapped(text))
				return false
			}
		}
		return true
	})
	return strings.Join(all, "\n")
}

// joinedLiteral returns the value of a string literal, or of literals that are joined by +.
func joinedLiteral(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			text, err := strconv.Unquote(x.Value)
			return text, err == nil
		}
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			left, ok := joinedLiteral(x.X)
			right, too := joinedLiteral(x.Y)
			return left + right, ok && too
		}
	}
	return "", false
}

// pages returns the prose of every Markdown page by its path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := walk(".md", func(path string, text []byte) error {
		out[path] = pageProse(string(text))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("no pages found; the test does not run inside the repository")
	}
	return out
}

var span = regexp.MustCompile("`[^`]*`")

// pageProse returns the paragraphs of a Markdown page, one a line, without its code.
func pageProse(page string) string {
	var all []string
	var paragraph strings.Builder
	end := func() {
		if text := unwrapped(span.ReplaceAllString(paragraph.String(), "`")); text != "" {
			all = append(all, text)
		}
		paragraph.Reset()
	}
	fenced := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			fenced = !fenced
		case fenced:
		case line == "":
			end()
		default:
			paragraph.WriteString(line + "\n")
		}
	}
	end()
	return strings.Join(all, "\n")
}

// TestProse verifies which words of a file and of a page count.
func TestProse(t *testing.T) {
	const source = "package p\n\nimport \"nobody/told\"\n\n// So\n// many.\n\n// Lines.\nvar a, b = \"so \" +\n\t" +
		"\"many %d\", f(\"x\" + c, `y\nz`)\n\ntype s struct {\n\tn int `json:\"nothing\"`\n}\n"
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ what, got, want string }{
		{"comments", commentsOf(f), "So many.\nLines."},
		{"messages", messagesOf(f), "so many %d\nx\ny z"},
		{"page", pageProse("# A\n\nso\nmany `told` words\n\n```console\nnobody\n\n```\n| b |\n"), "# A\nso many ` words\n| b |"},
	} {
		if x.got != x.want {
			t.Errorf("%s: %q, want %q", x.what, x.got, x.want)
		}
	}
}
