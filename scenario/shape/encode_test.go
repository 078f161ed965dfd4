package shape

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/units"
)

// TestEncode verifies the text of each kind of key, with comments that name the origin of its value, and that it reads
// back unchanged.
func TestEncode(t *testing.T) {
	p, set, err := planned(`name: "two: words"
paint: dark-blue
latency: [1us, 2us, 2us]
grid: [3, 4]
bolts: [nut, {name: b, count: 3, inner: {count: 2}}, {}]
main: {}
spread: {mean: 4KiB, mix: even}
depth: {low: {level: 1}}
ratio: 0.0625
words: [a, "null", "x: y", ~, 3 4]
file: a.csv
`, Change{Path: "tiny", Value: "-7"}, Change{Path: "rate", Value: "10Gbps", Flag: "--rate"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `name: "two: words"
width: 0  # default
tall: 0  # default
paint: dark-blue
size: 4KiB  # default
latency: [1us, 2us, 2us]
grid: [3, 4]
rate: 10Gbps  # set
bolts:
  - name: nut
    count: 1  # default
    paint: red  # default
  - name: b
    count: 3
    paint: red  # default
    inner:
      count: 2
      paint: red  # default
  - count: 1  # default
    paint: red  # default
main:
  count: 1  # default
  paint: red  # default
spread:
  mean: 4KiB
  mix: even
depth:
  top:
    level: 0  # default
  low:
    level: 1
ratio: 0.0625
live: false  # default
tiny: -7  # set
how_many: 0  # default
most: 0  # default
short: 0  # default
words: [a, "null", "x: y", "~", 3 4]
file: a.csv
`
	got := plans.Encode(&p, Encoding{Marks: set})
	if got != want {
		t.Errorf("%s", differing(got, want))
	}
	again, _, err := planned(got)
	if err != nil || !reflect.DeepEqual(again, p) {
		t.Errorf("%v: %+v\nbecomes\n%+v", err, p, again)
	}
	for what, x := range map[string]struct {
		how        Encoding
		with, gone string
	}{
		"no marks": {Encoding{}, "tiny: -7\n", "#"},
		"a key less": {Encoding{Skip: []string{"tiny", "depth.low", "bolts[1].inner"}},
			"depth:\n  top:\n    level: 0\nratio", "-7"},
		"a file's name": {Encoding{File: func(name string) string { return "/data/" + name }}, "file: /data/a.csv\n",
			"name: /data"},
		"nothing inside": {Encoding{Skip: []string{"main.count", "main.paint", "bolts[2].count", "bolts[2].paint"}},
			"main: {}\n", "main:\n"},
		"an empty item": {Encoding{Skip: []string{"bolts[2].count", "bolts[2].paint"}}, "  - {}\n", "- count"},
	} {
		got := plans.Encode(&p, x.how)
		if !strings.Contains(got, x.with) || strings.Contains(got, x.gone) {
			t.Errorf("%s:\n%s", what, got)
		}
	}
	p.Latency, p.Bolts, p.Words = [3]units.Duration{5000, 5000, 5000}, nil, []string{}
	if got := plans.Encode(&p, Encoding{}); !strings.Contains(got, "latency: 5ns\n") ||
		strings.Contains(got, "\nbolts") || strings.Contains(got, "\nwords") {
		t.Errorf("%s", got)
	}
}

// differing shows the first line that differs.
func differing(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\nnot\n" + b[i] + "\nin\n" + got
		}
	}
	return got
}

// TestEncodeDifferences verifies that, given the initial values of sections, only differences from them are written,
// and that the text reads back unchanged.
func TestEncodeDifferences(t *testing.T) {
	const text = `name: a
rate: 10Gbps
bolts:
  - name: x
  - {}
  - name: y
    count: 2
main:
  inner:
    count: 3
depth:
  low:
    level: 1
`
	p, _, err := planned(text)
	if err != nil {
		t.Fatal(err)
	}
	if got := plans.Encode(&p, Encoding{Base: plans.Blank}); got != text {
		t.Errorf("%s", differing(got, text))
	}
	q := p
	q.Name, q.Live, q.Depth.Top.Level, q.Main = "b", true, 4, nil
	var changes []string
	plans.Differing(&p, &q, "plan", func(path, text string) { changes = append(changes, path+"="+text) })
	if want := []string{"plan.name=b", "plan.main=null", "plan.depth.top.level=4",
		"plan.live=true"}; !slices.Equal(changes, want) {
		t.Errorf("%v, not %v", changes, want)
	}
}

// TestPlain verifies that text is quoted if and only if YAML would read it as something else.
func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"": `""`, "a": "a", "a b": "a b", "a/b.csv": "a/b.csv", "4KiB:50% x": `"4KiB:50% x"`, "~": `"~"`,
		"null": `"null"`, "NULL": `"NULL"`, "-a": `"-a"`, "a: b": `"a: b"`, "a, b": `"a, b"`, "a (b)": "a (b)",
		"a\n": `"a\n"`,
		"[a]": `"[a]"`, "nulls": "nulls", "a  b": `"a  b"`, "#": `"#"`,
	} {
		if got := plain(in); got != want {
			t.Errorf("%q is written as %s, not %s", in, got, want)
		}
		n, err := Parse("a.yaml", []byte("a: ["+plain(in)+"]"))
		if err != nil || n.Get("a").Items[0].Text != in || n.Get("a").Items[0].null() {
			t.Errorf("%q reads back otherwise: %v", in, err)
		}
	}
}

// TestStructs verifies that the structs and enumerations of a file are listed once each, outermost first, without those
// that have no key.
func TestStructs(t *testing.T) {
	var names []string
	for _, s := range plans.Structs(&plan{}) {
		names = append(names, s.String())
	}
	want := []string{"shape.plan", "shape.Frame", "shape.bolt", "shape.spread",
		"struct { Top struct { Level int }; Low struct { Level int } }", "struct { Level int }"}
	if !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	if got := plans.Enumerations(&plan{}); len(got) != 1 || got[0] != reflect.TypeFor[paint]() {
		t.Errorf("%v", got)
	}
	if got := (&Language{Keys: map[string]string{"shape.plan.Bolts": "-", "shape.plan.Main": "-",
		"shape.plan.Paint": "-"}}).Structs(&plan{}); len(got) != 5 {
		t.Errorf("%v", got)
	}
	if got := wordsOf(reflect.TypeFor[paint]()); !slices.Equal(got, []string{"", "red", "green", "dark-blue"}) {
		t.Errorf("%q", got)
	}
	for _, x := range []reflect.Type{reflect.TypeFor[uint8](), reflect.TypeFor[units.Bytes](),
		reflect.TypeFor[spread]()} {
		if got := wordsOf(x); got != nil {
			t.Errorf("%v: %q", x, got)
		}
	}
	for key, want := range map[string]string{"mean": "spread.mean", "level": "depth.top.level", "count": "main.count",
		"name": "main.name", "low": "depth.low", "nothing": "", "tiny": ""} {
		if got := plans.findKey(reflect.TypeFor[plan](), key); got != want {
			t.Errorf("%s is found at %q, not %q", key, got, want)
		}
	}
	if got := (&Language{Short: map[reflect.Type]string{reflect.TypeFor[spread](): "mix"}}); got.word() !=
		"the file" || got.name("") != "the file" || got.name("a") != "a" {
		t.Errorf("%q", got.word())
	}
}
