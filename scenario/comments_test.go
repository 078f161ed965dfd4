package scenario

import (
	"bytes"
	"encoding"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"farflash/internal/golden"
	"farflash/scenario/shape"
)

var update = flag.Bool("update", false, "write comments.txt and docs/reference/scenario.md anew")

// gather reads the comments of the structs from their packages' sources.
func gather(t *testing.T) string {
	wanted := map[string]map[string]bool{}
	for _, s := range language.Structs(new(Scenario)) {
		dir := filepath.Join("..", strings.TrimPrefix(s.PkgPath(), "farflash/"))
		if wanted[dir] == nil {
			wanted[dir] = map[string]bool{}
		}
		wanted[dir][s.Name()] = true
	}
	words := map[string]enumeration{}
	for _, e := range language.Enumerations(new(Scenario)) {
		dir := filepath.Join("..", strings.TrimPrefix(e.PkgPath(), "farflash/"))
		if wanted[dir] == nil {
			wanted[dir] = map[string]bool{}
		}
		wanted[dir][e.Name()] = true
		words[e.String()] = enumeration{e}
	}
	var lines []string
	for dir, names := range wanted {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				g, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				if g.Tok == token.CONST {
					lines = append(lines, ofValues(f.Name.Name, g, words)...)
				}
				for _, s := range g.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if !ok || !names[ts.Name.Name] {
						continue
					}
					doc := ts.Doc
					if doc == nil {
						doc = g.Doc
					}
					lines = append(lines, ofType(f.Name.Name, ts, doc)...)
				}
			}
		}
	}
	slices.Sort(lines)
	return "Written by go test ./scenario -run TestComments -update from the structs' comments.\n" +
		strings.Join(lines, "\n") + "\n"
}

var exported = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)

// enumeration is a type whose values are words.
type enumeration struct{ reflect.Type }

// value returns the word of one of its values.
func (e enumeration) value(i int) (string, error) {
	v := reflect.New(e.Type).Elem()
	v.SetUint(uint64(i))
	text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	return string(text), err
}

// ofValues lists the comments of a group of constants that number the words of a type: "= iota", or "= iota + 1".
func ofValues(pkg string, g *ast.GenDecl, words map[string]enumeration) []string {
	first, ok := g.Specs[0].(*ast.ValueSpec)
	if !ok || len(first.Values) != 1 {
		return nil
	}
	of, ok := first.Type.(*ast.Ident)
	if !ok || words[pkg+"."+of.Name].Type == nil {
		return nil
	}
	from := 0
	if _, ok := first.Values[0].(*ast.BinaryExpr); ok {
		from = 1
	}
	var lines []string
	word := map[string]string{} // by constant
	for i, s := range g.Specs {
		if text, err := words[pkg+"."+of.Name].value(from + i); err == nil {
			word[s.(*ast.ValueSpec).Names[0].Name] = text
		}
	}
	for i, s := range g.Specs {
		v, ok := s.(*ast.ValueSpec)
		if !ok || !v.Names[0].IsExported() {
			continue
		}
		text := flat(v.Comment.Text())
		if text == "" {
			text = flat(v.Doc.Text())
		}
		if rest, ok := strings.CutPrefix(text, v.Names[0].Name); ok && strings.IndexAny(rest, " :") == 0 {
			text = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(rest), ": "), "is ")
		}
		text = strings.TrimPrefix(strings.TrimSuffix(text, "."), ": ")
		text = exported.ReplaceAllStringFunc(text, func(name string) string {
			if w := word[name]; w != "" && strings.ContainsFunc(name[1:], unicode.IsUpper) {
				// "Random" is a word, "WriteThrough" a name
				return w
			}
			return name
		})
		if text != "" && !strings.HasPrefix(text, "see ") {
			lines = append(lines, fmt.Sprintf("%s.%s=%d\t%s", pkg, of.Name, from+i, text))
		}
	}
	return lines
}

// ofType lists a struct's comments. A field without one shares that of an earlier field whose subject names it: "A and
// B let".
func ofType(pkg string, ts *ast.TypeSpec, doc *ast.CommentGroup) []string {
	st, ok := ts.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	name := pkg + "." + ts.Name.Name
	lines := []string{name + "\t" + flat(doc.Text())}
	before := ""
	for _, f := range st.Fields.List {
		text := flat(f.Doc.Text())
		if text == "" {
			text = flat(f.Comment.Text())
		}
		for _, n := range f.Names {
			if !n.IsExported() {
				continue
			}
			use := text
			if use == "" && slices.Contains(subjects(before), n.Name) {
				use = before
			}
			if use != "" {
				lines = append(lines, name+"."+n.Name+"\t"+use)
			}
		}
		if text != "" {
			before = text
		}
	}
	return lines
}

// subjects returns the fields that a comment starts with: "A, B and C".
func subjects(comment string) []string {
	var list []string
	for _, w := range strings.Fields(comment) {
		if w == "and" {
			continue
		}
		w = strings.TrimSuffix(w, ",")
		if !token.IsExported(w) {
			break
		}
		list = append(list, w)
	}
	return list
}

func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// TestComments verifies that the embedded comments equal those in the sources.
func TestComments(t *testing.T) {
	got := gather(t)
	golden.File(t, "comments.txt", []byte(got), *update,
		"go test ./scenario -run 'TestComments|TestReference' -update, twice")
}

// reference is where the pages of the reference are: scenario.md, and a page for each of pages.
const reference = "../docs/reference/"

// pages divides the top-level sections among the pages of the reference.
var pages = []struct {
	file, title string
	sections    []string
}{
	{"scenario-workload.md", "Workloads", []string{"workload"}},
	{"scenario-ssd.md", "Drives", []string{"ssd", "host_raid"}},
	{"scenario-system.md", "Systems: targets, NVMe over Fabrics, rate control, coupling",
		[]string{"targets", "route", "place", "nvmf", "rate_control", "coupling"}},
	{"scenario-fabric.md", "Networks", []string{"fabric"}},
	{"scenario-flows.md", "Flows of a network", []string{"flows"}},
	{"scenario-object-cluster.md", "Object clusters", []string{"object_cluster"}},
	{"scenario-measure.md", "What is measured", []string{"measure"}},
}

// keysOf is the table of a section's keys, and those of its sections, by their names within it.
func keysOf(t *testing.T, path string, defaults bool) string {
	var b strings.Builder
	d := described(t, path)
	for _, k := range d.Keys {
		fmt.Fprintln(&b, strings.TrimPrefix(k.Path, path), k.Value, k.Doc, ofWords(k.Values))
		if defaults {
			fmt.Fprintln(&b, k.Default)
		}
		if inner, err := Describe(k.Path); err == nil && len(inner.Keys) > 0 {
			b.WriteString(keysOf(t, k.Path, true))
		}
	}
	return b.String()
}

// others lists the defaults of keys that are not those of another section with the same keys.
func others(keys, same []shape.Description) (out []string) {
	for i, k := range keys {
		if k.Default != same[i].Default {
			_, name := filepath.Split(strings.ReplaceAll(k.Path, ".", "/"))
			out = append(out, fmt.Sprintf("the default of `%s` is %s", name, k.Default))
		}
	}
	return out
}

func described(t *testing.T, path string) shape.Description {
	d, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestReference verifies that the reference in docs equals the output of Describe.
func TestReference(t *testing.T) {
	type place struct{ file, path string }
	seen := map[string]place{} // a section by its keys: one with the same keys refers to it
	section := func(b *bytes.Buffer, file, path, title string, inner func(path string)) {
		d := described(t, path)
		doc := d.Doc
		if _, own, ok := strings.Cut(doc, "\n"); ok && strings.Contains(path, ".") {
			doc = own // the table of the section above has the first line
		}
		fmt.Fprintf(b, "\n## %s\n", title)
		if !strings.Contains(path, ".") || doc != summary(d.Doc) { // otherwise the table of the section above has it
			fmt.Fprintf(b, "\n%s\n", doc)
		}
		if d.Value != "a mapping" {
			fmt.Fprintf(b, "\nWrite %s.\n", d.Value)
		}
		if path != "" {
			keys := keysOf(t, path, false)
			if same, ok := seen[keys]; ok {
				if list := others(d.Keys, described(t, same.path).Keys); len(list) <= 2 {
					fmt.Fprintf(b, "\nIts keys are those of [`%s`](%s#%s)%s.\n", same.path, same.file,
						strings.ReplaceAll(same.path, ".", ""), strings.Join(append([]string{""}, list...), "; "))
					return
				}
			}
			seen[keys] = place{file, path}
		}
		b.WriteString("\n| key | value | default | meaning |\n|---|---|---|---|\n")
		for _, k := range d.Keys {
			_, key := filepath.Split(strings.ReplaceAll(k.Path, ".", "/"))
			meaning := k.Doc + ofWords(k.Values)
			if x, err := Describe(k.Path); err == nil && len(x.Keys) > 0 && strings.Contains(k.Path, ".") &&
				!strings.Contains(x.Doc, "\n") {
				meaning = summary(k.Doc) // its section has all of it
			}
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", key, cell(kind(k.Value)), cell(k.Default), cell(bare(meaning)))
		}
		for _, k := range d.Keys {
			if x, err := Describe(k.Path); err == nil && len(x.Keys) > 0 {
				inner(k.Path)
			}
		}
	}
	generated := "Generated from the structs' comments by `go test ./scenario -run TestReference -update`"
	var top bytes.Buffer
	fmt.Fprintf(&top, "# A scenario, key by key\n\n%s; `farflash explain PATH` prints the same.\n"+
		"A section is a mapping unless it says otherwise; unknown keys are errors. Quantities have units: 75us is a "+
		"time, 16KiB a size (1KB is 1000 bytes), 7%% a share, 42uJ an energy.\n\nPages:\n", generated)
	where := map[string]int{}
	for i, p := range pages {
		fmt.Fprintf(&top, "\n- [%s](%s): `%s`", p.title, p.file, strings.Join(p.sections, "`, `"))
		for _, name := range p.sections {
			where[name] = i
		}
	}
	top.WriteString("\n")
	text := make([]bytes.Buffer, len(pages))
	for i, p := range pages {
		fmt.Fprintf(&text[i], "# %s\n\n%s. The other sections are [here](scenario.md).\n", p.title, generated)
	}
	section(&top, "scenario.md", "", "The scenario", func(path string) {
		i, ok := where[path]
		if !ok {
			t.Errorf("%s has no page of the reference; add it to pages", path)
			return
		}
		var walk func(path string)
		walk = func(path string) { section(&text[i], pages[i].file, path, "`"+path+"`", walk) }
		walk(path)
	})
	const how = "go test ./scenario -run TestReference -update"
	golden.File(t, reference+"scenario.md", top.Bytes(), *update, how)
	for i, p := range pages {
		golden.File(t, reference+p.file, text[i].Bytes(), *update, how)
	}
}

// sentence matches the end of a sentence that another follows.
var sentence = regexp.MustCompile(`[^.][a-z)0-9]\. [A-Z]`)

// bracketed matches a source in brackets, such as (Zhu et al., "Congestion Control", SIGCOMM 2015).
var bracketed = regexp.MustCompile(` \([A-Z][a-z]+ (et al\.|and)[^()]*\)`)

// bare is a text without the article it begins with.
func bare(text string) string {
	rest, ok := strings.CutPrefix(text, "The ")
	if !ok || rest == "" {
		return text
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// summary is the first sentence of a text, without a source.
func summary(text string) string {
	text = bracketed.ReplaceAllString(text, "")
	if at := sentence.FindStringIndex(text); at != nil {
		return text[:at[1]-2]
	}
	return text
}

func pageFiles() []string {
	var out []string
	for _, p := range pages {
		out = append(out, p.file)
	}
	return out
}

// ofWords explains each word, one line each.
func ofWords(values []shape.ValueDescription) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "<br>`%s`: %s", v.Word, v.Doc)
	}
	return b.String()
}

// example matches the example of a quantity, which the first page has for all.
var example = regexp.MustCompile(`\b(time|size|share|energy) such as [^ ,]+`)

// kind shortens the description of a value for a table.
func kind(value string) string {
	value = example.ReplaceAllString(value, "$1")
	return strings.TrimPrefix(strings.TrimPrefix(value, "a "), "an ")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// goName matches a Go identifier such as FillReplay.
var goName = regexp.MustCompile(`\b[A-Za-z]*[a-z][A-Z][a-z]+[A-Za-z]*\b`)

// TestExplained verifies that every key of a scenario has an explanation that uses no Go identifiers and does more than
// repeat the valid values.
func TestExplained(t *testing.T) {
	var text []byte
	for _, file := range append([]string{"scenario.md"}, pageFiles()...) {
		page, err := os.ReadFile(reference + file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, page...)
	}
	keys := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		keys++
		if strings.HasSuffix(strings.ReplaceAll(line, " ", ""), "||") {
			t.Errorf("no explanation: %s", line)
		}
		for _, word := range goName.FindAllString(line, -1) {
			if !slices.Contains([]string{"InfiniBand", "HyStart", "ToRs"}, word) {
				t.Errorf("%s is a name of the code: %s", word, line)
			}
		}
	}
	if keys < 300 {
		t.Errorf("the reference has %d keys", keys)
	}
}
