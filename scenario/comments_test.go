package scenario

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"farflash/internal/golden"
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
	return "Written by go test ./scenario -run TestComments -update from the structs' comments.\n" + strings.Join(lines, "\n") + "\n"
}

// ofType lists a struct's comments. A field without one shares that of a field before it if whose subject it is part of: "A and B
// let".
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

// subjects are the fields that a comment begins with: "A, B and C".
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

// TestComments checks that the embedded comments are those in the sources.
func TestComments(t *testing.T) {
	got := gather(t)
	golden.File(t, "comments.txt", []byte(got), *update, "go test ./scenario -run 'TestComments|TestReference' -update, twice")
}

const reference = "../docs/reference/scenario.md"

// TestReference checks that the reference in docs is what Describe says.
func TestReference(t *testing.T) {
	var b bytes.Buffer
	fmt.Fprint(&b, `# A scenario, key by key

Generated from the structs' comments by `+"`go test ./scenario -run TestReference -update`"+`; `+"`farflash explain PATH`"+` prints the same.
Keys that are not listed are errors. Quantities carry units; 1KB is 1000 bytes and 1KiB is 1024.
`)
	var walk func(path string)
	walk = func(path string) {
		d, err := Describe(path)
		if err != nil {
			t.Fatal(err)
		}
		title := "The scenario"
		if path != "" {
			title = "`" + path + "`"
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\nWrite %s.\n\n| key | write | default | meaning |\n|---|---|---|---|\n", title, d.Doc, d.Value)
		for _, k := range d.Keys {
			_, key := filepath.Split(strings.ReplaceAll(k.Path, ".", "/"))
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", key, cell(k.Value), cell(k.Default), cell(k.Doc))
		}
		for _, k := range d.Keys {
			if inner, err := Describe(k.Path); err == nil && len(inner.Keys) > 0 {
				walk(k.Path)
			}
		}
	}
	walk("")
	golden.File(t, reference, b.Bytes(), *update, "go test ./scenario -run TestReference -update")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }

// goName is a name as Go has it, such as FillReplay.
var goName = regexp.MustCompile(`\b[A-Za-z]*[a-z][A-Z][a-z]+[A-Za-z]*\b`)

// TestExplained holds that every key of a scenario is explained, in words that are not the code's: what is to be written is no explanation.
func TestExplained(t *testing.T) {
	text, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
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
