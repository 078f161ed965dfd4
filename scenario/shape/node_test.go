package shape

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParse verifies the nodes that YAML is parsed into. Aliases and merge keys are resolved; a mapping's own keys
// precede merged ones and override them.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"":                                      "",
		"# nothing\n---\n":                      "",
		"~":                                     "",
		"a: 1\nb: [x, y]":                       "a=1 b=[x, y]",
		"a: {b: {c: 1}}":                        "a.b.c=1",
		"a: &x {b: 1}\nc: *x":                   "a.b=1 c.b=1",
		"a: &x [p, q]\nc: {d: *x}":              "a=[p, q] c.d=[p, q]",
		"a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}": "a.b=1 a.c=2 d.c=3 d.b=1",
		"d: {<<: [{b: 1}, {b: 2, c: 3}]}":       "d.b=1 d.c=3",
		"<<: {a: 1}\na: 2":                      "a=2",
		"a: &x 1\nb: &y 2\nc: *x\nd: *y":        "a=1 b=2 c=1 d=2",
		"a: &x {b: &y {c: 1}}\nd: *x\ne: *y\n":  "a.b.c=1 d.b.c=1 e.c=1",
		"a: &x {}\nb: [*x, *x]":                 "",
	} {
		n, err := Parse("a.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := flat(n, ""); strings.TrimSpace(got) != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}

// TestParseErrors verifies that invalid and unsupported YAML is rejected at its position, with a hint at the correct
// form.
func TestParseErrors(t *testing.T) {
	deep := strings.Repeat("a: {", maxDepth+1) + strings.Repeat("}", maxDepth+1)
	var bombs strings.Builder // each line repeats the previous one ten times
	bombs.WriteString("a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c < 'g'; c++ {
		before := "*" + string(c-1)
		bombs.WriteString(string(c) + ": &" + string(c) + " [" + strings.Repeat(before+", ", 9) + before + "]\n")
	}
	for text, want := range map[string]string{
		"a: 1\n---\nb: 2": "a.yaml: more than one YAML document; write a single one, without ---",
		"...\n":           "a.yaml: not valid YAML: no documents in stream",
		"a: b: c": "a.yaml:1:5: not valid YAML: mapping values are not allowed in this context; quote " +
			"text that contains a colon, and put nested keys on lines of their own",
		"a:\n\tb: 1":         "a.yaml:2:1: not valid YAML: ",
		"a: @x":              "a.yaml:1:4: not valid YAML: ",
		"a: [1":              "a.yaml:",
		"a: !!str 1":         "a.yaml:1:4: the tag !!str is not supported; write the value alone",
		"a: !x [1]":          "a.yaml:1:4: the tag !x is not supported; write the value alone",
		"a: &x [*x]":         "a.yaml:1:8: the alias *x refers to itself",
		"a: &x {b: {c: *x}}": "a.yaml:1:15: the alias *x refers to itself",
		"a: 1\nb: 2\na: 3":   `a.yaml:3:1: key "a" is given twice; first on line 1`,
		"[1, 2]: 3":          "a.yaml:1:1: a key must be a single word",
		"<<: 3":              "a.yaml:1:1: << merges a mapping or a list of mappings, not a single value",
		"<<: [{a: 1}, 3]":    "a.yaml:1:14: << merges a mapping or a list of mappings, not a single value",
		"a: 1\nb: \xff":      "a.yaml:2:4: invalid UTF-8; save the file as UTF-8",
		"ä: \xff":            "a.yaml:1:4: invalid UTF-8; save the file as UTF-8",
		"a: \ufffd\nb: \xff": "a.yaml:2:4: invalid UTF-8; save the file as UTF-8",
		deep: "the file is nested too deep or too long once its aliases are resolved; at most 64 " +
			"levels and 200000 values are read",
		bombs.String(): "the file is nested too deep or too long once its aliases are resolved; at most 64 " +
			"levels and 200000 values are read",
	} {
		n, err := Parse("a.yaml", []byte(text))
		if err == nil {
			t.Errorf("%.40s: %s", text, flat(n, ""))
			continue
		}
		if got := err.Error(); got != want && !(strings.HasSuffix(want, ": ") || strings.HasSuffix(want, ":")) &&
			!strings.HasSuffix(got, ": "+want) || !strings.Contains(got, want) {
			t.Errorf("%.40s:\n%s\nnot\n%s", text, got, want)
		}
	}
	if _, err := Parse("a.yaml", []byte("a:\n\tb: 1")); err == nil ||
		!strings.HasSuffix(err.Error(), "; indent with spaces, not tabs, and quote text that starts with a punctuation mark") {
		t.Error(err)
	}
	// A file of the greatest permitted depth is accepted.
	if _, err := Parse("a.yaml", []byte(strings.Repeat("a: {", maxDepth)+strings.Repeat("}", maxDepth))); err != nil {
		t.Error(err)
	}
	// The limit on values is reported once, however often it is exceeded.
	if _, err := Parse("a.yaml", []byte(bombs.String())); strings.Count(err.Error(), "\n") > 0 {
		t.Error(err)
	}
}

// TestNull verifies that a missing or null value is treated as absent, unless it is quoted.
func TestNull(t *testing.T) {
	for text, want := range map[string]bool{
		"a:": true, "a: ~": true, "a: null": true, "a: ''": false, `a: ""`: false, `a: "null"`: false,
		"a: 'null'": false, "a: |\n  null": false, "a: >-\n  null": false, "a: nul": false, "a: []": false,
		"a: {}": false,
	} {
		n, err := Parse("a.yaml", []byte(text))
		if err != nil || n.Get("a").null() != want {
			t.Errorf("%s: %v, %v", text, !want, err)
		}
	}
}

// TestGetPut verifies that Put replaces a key in place or appends it.
func TestGetPut(t *testing.T) {
	n, err := Parse("a.yaml", []byte("a: 1\nb: 2"))
	if err != nil {
		t.Fatal(err)
	}
	at := Position{"b.yaml", 3, 4}
	n.Put(&Node{Text: "a", At: at}, &Node{Text: "x"})
	n.Put(&Node{Text: "c"}, &Node{Text: "y"})
	if got := flat(n, ""); got != "a=x b=2 c=y" || n.Keys[0].At != at {
		t.Errorf("%s, a at %v", got, n.Keys[0].At)
	}
	if n.Get("d") != nil || n.Get("b").Text != "2" || n.Get("b").Get("b") != nil {
		t.Error("a key is found that is not there")
	}
	if list := (&Node{Kind: Sequence, Keys: []*Node{{Text: "a"}}, Items: []*Node{{}}}); list.Get("a") != nil {
		t.Error("a list has a key")
	}
}

// TestErrors verifies that errors are sorted by position within a file, that at most maxShown are listed, and that long
// messages are shortened.
func TestErrors(t *testing.T) {
	at := func(line, column int, msg string) *Error { return &Error{Position{"a", line, column}, msg} }
	es := Errors{at(2, 1, "c"), at(1, 9, "b"), at(1, 2, "a"), at(2, 1, "d"), {Msg: "nowhere"},
		{At: Position{File: "z"}, Msg: "somewhere"}}
	es[:4].InOrder()
	if got := es.Error(); got != "a:1:2: a\na:1:9: b\na:2:1: c\na:2:1: d\nnowhere\nz: somewhere" {
		t.Error(got)
	}
	if other := (Errors{{Position{"b", 5, 1}, "x"}, {Position{"a", 1, 1}, "y"}}).InOrder(); other[0].Msg != "x" {
		t.Error("mistakes of two files change places")
	}
	many := func(n int) (es Errors) {
		for range n {
			es = append(es, at(1, 1, "a"))
		}
		return es
	}
	for n, want := range map[int]string{1: "a:1:1: a", maxShown: "a:1:1: a", maxShown + 1: "1 more errors",
		maxShown + 7: "7 more errors"} {
		lines := strings.Split(many(n).Error(), "\n")
		if len(lines) != min(n, maxShown+1) || lines[len(lines)-1] != want {
			t.Errorf("of %d there are %d lines, the last %q", n, len(lines), lines[len(lines)-1])
		}
	}
	long := strings.Repeat("x", maxMessage)
	if brief(long) != long {
		t.Error("a message of the greatest length is cut")
	}
	if got := brief("ab" + strings.Repeat("x", maxMessage-3) + "yz"); len(got) != maxMessage+len(" ... ") ||
		!strings.HasPrefix(got, "abx") || !strings.HasSuffix(got, "xyz") || !strings.Contains(got, "x ... x") {
		t.Errorf("%d bytes: %.10s", len(got), got)
	}
	if got := brief(strings.Repeat("ä", maxMessage)); strings.ToValidUTF8(got, "?") != got {
		t.Error("a character is cut in two")
	}
}

// TestReadFile verifies that reading stops one byte beyond the size limit, which is enough to detect an oversized file.
func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.yaml")
	if _, err := ReadFile(name); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := os.WriteFile(name, make([]byte, maxBytes+5), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := ReadFile(name)
	if err != nil || len(text) != maxBytes+1 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if _, err := Parse("a.yaml", text); err == nil ||
		err.Error() != "a.yaml: the file is larger than 16 MiB" {
		t.Error(err)
	}
	for text, want := range map[string]int{"": 0, "a\n": 1, "a\n\n  \n# b, c\n": 2, "a, b\n  #\nc": 3} {
		if got := pieces([]byte(text)); got != want {
			t.Errorf("%q has %d pieces, not %d", text, got, want)
		}
	}
}

// TestDifferences verifies that texts are compared key by key, whatever their order and style. A list of scalars is one
// value; the items of other lists are compared one by one.
func TestDifferences(t *testing.T) {
	a := Source{File: "a.yaml",
		Text: []byte("name: a\nsize: 8KiB\nlist: [1, 2]\nbolts: [{name: x}, {name: y}]\nempty: []\nonly: {a: " +
			"1}\nsame: z\n")}
	b := Source{File: "b.yaml",
		Text: []byte("same: 'z'\nsize: 4KiB\nlist: [1, 3]\nbolts: [{name: x}, {name: w}, {name: v}]\nempty: " +
			"[]\nmore: {b: 2, c: []}\n")}
	got, err := Differences(a, b)
	want := []KeyChange{
		{"name", "a", ""}, {"size", "8KiB", "4KiB"}, {"list", "[1, 2]", "[1, 3]"}, {"bolts[1].name", "y", "w"},
		{"only.a", "1", ""}, {"bolts[2].name", "", "v"}, {"more.b", "", "2"}, {"more.c", "", "[]"},
	}
	if err != nil || len(got) != len(want) {
		t.Fatalf("%v, %v", got, err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, not %+v", got[i], want[i])
		}
	}
	if got, err := Differences(a, a); len(got) > 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	wrong := Source{File: "w.yaml", Text: []byte("a: [")}
	for _, pair := range [][2]Source{{wrong, a}, {a, wrong}} {
		if _, err := Differences(pair[0], pair[1]); err == nil || !strings.HasPrefix(err.Error(), "w.yaml:") {
			t.Errorf("%v", err)
		}
	}
	if got, err := Flatten("a", "a: [1, [2, 3], {b: 4}]"); err != nil || len(got) != 3 ||
		got[0] != (Value{"a[0]", "1"}) || got[1] != (Value{"a[1]", "[2, 3]"}) || got[2] != (Value{"a[2].b", "4"}) {
		t.Errorf("%v, %v", got, err)
	}
}
