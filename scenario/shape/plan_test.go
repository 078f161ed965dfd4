package shape

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"farflash/numeric/units"
)

// paint is an enumeration whose first value has no name.
type paint uint8

var paints = units.Names[paint]{"", "red", "green", "dark-blue"}

func (p paint) MarshalText() ([]byte, error)     { return paints.Marshal(p) }
func (p *paint) UnmarshalText(text []byte) error { return paints.Unmarshal(text, p) }

// spread is a struct that can also be written as a single value, which sets its first key.
type spread struct {
	Mean units.Bytes
	Mix  string
}

func (s *spread) UnmarshalText(text []byte) error { return s.Mean.UnmarshalText(text) }

// bolt has defaults, and can be written as its name alone.
type bolt struct {
	Name  string
	Count int
	Paint paint
	Inner *bolt
}

func (b *bolt) SetDefault()   { b.Count, b.Paint = 1, 1 }
func (bolt) Short() string    { return "name" }
func (b bolt) String() string { return fmt.Sprintf("%s*%d", b.Name, b.Count) }

// Frame is embedded: its keys appear in the embedding struct.
type Frame struct {
	Width  int
	Height int `yaml:"tall,omitempty"`
}

// plan has a key of every kind.
type plan struct {
	Name string
	Frame
	Paint   paint
	Size    units.Bytes
	Latency [3]units.Duration
	Grid    [2]int
	Rate    *units.BitRate
	Bolts   []bolt
	Main    *bolt
	Spread  spread
	Depth   struct{ Top, Low struct{ Level int } }
	Ratio   float64
	Live    bool
	Tiny    int8
	Many    int
	Most    int64
	Short   uint16
	Words   []string
	File    string
	secret  int
	Secret  int `yaml:"-"`
	Kept    int
}

// plans is the language of plans.
var plans = Language{
	Word:  "the plan",
	Keys:  map[string]string{"shape.plan.Kept": "-", "shape.plan.Many": "how_many"},
	Files: []string{"shape.plan.File"},
	Default: func(p any) {
		switch x := p.(type) {
		case *plan:
			*x = plan{Paint: 1, Size: 4 * units.KiB, Latency: [3]units.Duration{1000, 2000, 3000}, secret: 1}
		case *units.BitRate:
			*x = units.Gbps
		}
	},
}

// planned decodes a text with changes applied.
func planned(text string, changes ...Change) (p plan, set Set, err error) {
	top, err := Parse("p.yaml", []byte(text))
	if err != nil {
		return p, nil, err
	}
	if err := plans.Apply(top, reflect.TypeFor[plan](), changes); err != nil {
		return p, nil, err
	}
	d := plans.Decoder()
	d.Decode(top, &p, "")
	if len(d.Errs) > 0 {
		return p, d.Set, d.Errs
	}
	return p, d.Set, nil
}

// TestDecode verifies the value that each kind of key is decoded into, for each way of writing it.
func TestDecode(t *testing.T) {
	rate := func(p *plan) any {
		if p.Rate == nil {
			return nil
		}
		return *p.Rate
	}
	main := func(p *plan) any {
		if p.Main == nil {
			return nil
		}
		return fmt.Sprintf("%s*%d %d", p.Main.Name, p.Main.Count, p.Main.Paint)
	}
	for _, c := range []struct {
		text string
		of   func(*plan) any
		want any
	}{
		{"", func(p *plan) any { return p.Size }, 4 * units.KiB},
		{"name: 7", func(p *plan) any { return p.Name }, "7"},
		{"name: null", func(p *plan) any { return p.Name }, "null"},
		{"name:", func(p *plan) any { return p.Name }, ""},
		{"width: 3", func(p *plan) any { return p.Width }, 3},
		{"tall: 4", func(p *plan) any { return p.Height }, 4},
		{"paint: green", func(p *plan) any { return p.Paint }, paint(2)},
		{"size: 16KiB", func(p *plan) any { return p.Size }, 16 * units.KiB},
		{"size: 128PiB", func(p *plan) any { return p.Size }, 128 * units.PiB},
		{"latency: 5ns", func(p *plan) any { return p.Latency }, [3]units.Duration{5000, 5000, 5000}},
		{"latency: [5ns]", func(p *plan) any { return p.Latency }, [3]units.Duration{5000, 5000, 5000}},
		{"latency: [5ns, 6ns]", func(p *plan) any { return p.Latency }, [3]units.Duration{5000, 6000, 6000}},
		{"latency: [5ns, 6ns, 7ns]", func(p *plan) any { return p.Latency }, [3]units.Duration{5000, 6000, 7000}},
		{"grid: [1, 2]", func(p *plan) any { return p.Grid }, [2]int{1, 2}},
		{"", rate, nil},
		{"rate: 25Gbps", rate, 25 * units.Gbps},
		{"rate: 1000000000Gbps", rate, 1000000000 * units.Gbps},
		{"rate: null", rate, nil},
		{"rate: ~", rate, nil},
		{"bolts: [a, {name: b, count: 3}]", func(p *plan) any { return fmt.Sprint(p.Bolts) }, "[a*1 b*3]"},
		{"bolts: []", func(p *plan) any { return p.Bolts == nil }, true},
		{"bolts: null", func(p *plan) any { return p.Bolts == nil }, true},
		{"main: {paint: green}", main, "*1 2"},
		{"main: big", main, "big*1 1"},
		{"main: {inner: {name: x}}", func(p *plan) any { return p.Main.Inner.String() }, "x*1"},
		{"spread: 4KiB", func(p *plan) any { return p.Spread }, spread{Mean: 4 * units.KiB}},
		{"spread: {mean: 8KiB, mix: even}", func(p *plan) any { return p.Spread }, spread{8 * units.KiB, "even"}},
		{"depth: {top: {level: 2}, low: {level: 1}}",
			func(p *plan) any { return p.Depth.Top.Level*10 + p.Depth.Low.Level }, 21},
		{"ratio: -1.5e3", func(p *plan) any { return p.Ratio }, -1500.0},
		{"live: true", func(p *plan) any { return p.Live }, true},
		{"live: false", func(p *plan) any { return p.Live }, false},
		{"tiny: -128", func(p *plan) any { return p.Tiny }, int8(-128)},
		{"how_many: 2_000_000", func(p *plan) any { return p.Many }, 2000000},
		{"how_many: 2147483647", func(p *plan) any { return p.Many }, 2147483647},
		{"most: 9223372036854775807", func(p *plan) any { return p.Most }, int64(9223372036854775807)},
		{"short: 65_535", func(p *plan) any { return p.Short }, uint16(65535)},
		{"words: [a, 'null', \"\"]", func(p *plan) any { return fmt.Sprintf("%q", p.Words) }, `["a" "null" ""]`},
	} {
		p, _, err := planned(c.text)
		if err != nil || c.of(&p) != c.want {
			t.Errorf("%s: %v, %v", c.text, c.of(&p), err)
		}
	}
}

// TestMistakes verifies the message and the position of each kind of error.
func TestMistakes(t *testing.T) {
	const keys = "name, width, tall, paint, size, latency, grid, rate, bolts, main, spread, depth, ratio, live, " +
		"tiny, how_many, most, short, words, file"
	for text, want := range map[string]string{
		"[a]":                   "p.yaml:1:1: the plan is a list; a mapping is expected, with the keys " + keys,
		"a":                     `p.yaml:1:1: the plan: "a" where a mapping is expected; its keys are ` + keys,
		"naem: a":               `p.yaml:1:1: unknown key "naem" in the plan; did you mean "name"?`,
		"main: {cuont: 1}":      `p.yaml:1:8: unknown key "cuont" in main; did you mean "count"?`,
		"mean: 1":               `p.yaml:1:1: unknown key "mean" in the plan; did you mean "spread.mean"?`,
		"level: 1":              `p.yaml:1:1: unknown key "level" in the plan; did you mean "depth.top.level"?`,
		"word: [a]":             `p.yaml:1:1: unknown key "word" in the plan; did you mean "words"?`,
		"zzzzzzz: 1":            `p.yaml:1:1: unknown key "zzzzzzz" in the plan; its keys are ` + keys,
		"secret: 1":             `p.yaml:1:1: unknown key "secret" in the plan; its keys are ` + keys,
		"many: 1":               `p.yaml:1:1: unknown key "many" in the plan; did you mean "main"?`,
		"size:":                 "p.yaml:1:6: size has no value; write a size such as 16KiB",
		"live: null":            "p.yaml:1:7: live has no value; write true or false",
		"grid: ~":               "p.yaml:1:7: grid has no value; write a list such as [a, b]",
		"depth:":                "p.yaml:1:7: depth has no value; its keys are top, low",
		"paint:":                "p.yaml:1:7: paint has no value; write a single word",
		"how_many:":             "p.yaml:1:10: how_many has no value; write a whole number such as 4",
		"ratio:":                "p.yaml:1:7: ratio has no value; write a number such as 1.5",
		"words: [~]\nname: [a]": "p.yaml:2:7: name is a list; write text",
		"size: [1]":             "p.yaml:1:7: size is a list; write a size such as 16KiB",
		"rate: {a: 1}":          "p.yaml:1:7: rate is a mapping; write a rate such as 40Gbps",
		"live: [true]":          "p.yaml:1:7: live is a list; write true or false",
		"size: large":           `p.yaml:1:7: size: "large" is not`,
		"size: 129PiB":          "p.yaml:1:7: size: 129PiB is not possible; use at most 128PiB",
		"rate: 1000000001Gbps":  "p.yaml:1:7: rate: 1000000.001Tbps is not possible; use at most 1000000Tbps",
		"paint: gren":           `p.yaml:1:8: paint: "gren" is not possible; use red, green or dark-blue (did you mean green?)`,
		"live: yes":             `p.yaml:1:7: live: "yes" is neither true nor false`,
		"tiny: 128":             "p.yaml:1:7: tiny: 128 is not possible; use at most 127",
		"how_many: 2147483648":  "p.yaml:1:11: how_many: 2147483648 is not possible; use at most 2147483647",
		"how_many: 1.5":         `p.yaml:1:11: how_many: "1.5" is not a whole number; write a whole number such as 4`,
		"short: 65536":          `p.yaml:1:8: short: "65536" is not a whole number from 0 to 65535`,
		"short: -1":             `p.yaml:1:8: short: "-1" is not a whole number from 0 to 65535`,
		"ratio: x":              `p.yaml:1:8: ratio: "x" is not a number; write one such as 1.5`,
		"ratio: .nan":           `p.yaml:1:8: ratio: ".nan" is not a number; write one such as 1.5`,
		"ratio: nan":            `p.yaml:1:8: ratio: "nan" is not a number; write one such as 1.5`,
		"ratio: inf":            `p.yaml:1:8: ratio: "inf" is not a number; write one such as 1.5`,
		"bolts: a": "p.yaml:1:8: bolts is a single value; a list is expected: write [...] or a " +
			"line with a dash for each item",
		"bolts: [a, {count: x}]":    `p.yaml:1:20: bolts[1].count: "x" is not a whole number; write a whole number such as 4`,
		"depth: 3":                  `p.yaml:1:8: depth: "3" where a mapping is expected; its keys are top, low`,
		"depth: [3]":                "p.yaml:1:8: depth is a list; a mapping is expected, with the keys top, low",
		"spread: [4KiB]":            "p.yaml:1:9: spread is a list; a mapping is expected, with the keys mean, mix",
		"spread: x":                 `p.yaml:1:9: spread: "x" is not`,
		"grid: 1":                   "p.yaml:1:7: grid is a single value; a list of 2 values is expected",
		"grid: [1]":                 "p.yaml:1:7: grid has 1 values; 2 are expected",
		"grid: [1, 2, 3]":           "p.yaml:1:7: grid has 3 values; 2 are expected",
		"grid: []":                  "p.yaml:1:7: grid has 0 values; 2 are expected",
		"latency: []":               "p.yaml:1:10: latency has 0 values; 1 to 3 are expected",
		"latency: [1s, 1s, 1s, 1s]": "p.yaml:1:10: latency has 4 values; 1 to 3 are expected",
		"latency: {a: 1}":           "p.yaml:1:10: latency is a mapping; a list of 3 values is expected",
		"latency: [1s, x]":          `p.yaml:1:15: latency[1]: "x" is not`,
		"tiny: x\nlive: y\nratio: z\n": "p.yaml:1:7: tiny: \"x\" is not a whole number; write a whole number such as " +
			"4\np.yaml:2:7: live: \"y\" is neither true nor false\np.yaml:3:8: ratio: \"z\" is not a number; write " +
			"one such as 1.5",
	} {
		_, _, err := planned(text)
		if err == nil || err.Error() != want &&
			!(strings.HasSuffix(want, "is not") && strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s:\n%v\nnot\n%s", text, err, want)
		}
	}
}

// TestPlaces verifies that a path has the position of its own value, or else of the innermost enclosing value that was
// written. The key that a short form sets has the position of the short form.
func TestPlaces(t *testing.T) {
	_, set, err := planned("name: a\nbolts:\n  - nut\n  - {name: b, count: 2}\nspread: 4KiB\nmain: x\n")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"name": "p.yaml:1:7", "bolts[0]": "p.yaml:3:5", "bolts[0].name": "p.yaml:3:5", "bolts[0].count": "p.yaml:3:5",
		"bolts[1].count": "p.yaml:4:22", "bolts[1].paint": "p.yaml:4:5", "bolts[7].name": "p.yaml:3:3",
		"spread.mean": "p.yaml:5:9", "spread.mix": "p.yaml:5:9", "main.name": "p.yaml:6:7", "size": "p.yaml:1:1",
		"depth.top.level": "p.yaml:1:1",
	} {
		if got := set.At(path).String(); got != want {
			t.Errorf("%s stands at %s, not %s", path, got, want)
		}
	}
	if _, ok := set["spread.mean"]; !ok {
		t.Error("a single value is not noted as its first key's")
	}
	d := Decoder{Set: set}
	d.Wrong("bolts[1]", units.Wrong("count", "it is too few"))
	d.Wrong("", nil)
	if len(d.Errs) != 1 || d.Errs[0].Error() != "p.yaml:4:22: bolts[1].count: it is too few" {
		t.Errorf("%v", d.Errs)
	}
}

// TestApply verifies that a change sets the value at its path as if the file contained it, adding sections and
// expanding short forms as needed, and that a path that does not exist is reported.
func TestApply(t *testing.T) {
	const text = "name: a\nsize: 8KiB\nbolts: [x, {name: y, count: 2}]\nmain: big\n"
	for _, c := range []struct{ path, value, want string }{
		{"name", "b", "name=b size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main=big"},
		{"width", "3", "name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main=big width=3"},
		{"main.count", "7", "name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main.name=big main.count=7"},
		{"main[0].count", "7",
			"name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main.name=big main.count=7"},
		{"main[*].count", "7",
			"name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main.name=big main.count=7"},
		{"main[0]", "tall", "name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main=tall"},
		{"main.inner.count", "7",
			"name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main.name=big main.inner.count=7"},
		{"bolts[0].count", "7",
			"name=a size=8KiB bolts[0].name=x bolts[0].count=7 bolts[1].name=y bolts[1].count=2 main=big"},
		{"bolts[1].count", "7", "name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=7 main=big"},
		{"bolts[*].count", "7",
			"name=a size=8KiB bolts[0].name=x bolts[0].count=7 bolts[1].name=y bolts[1].count=7 main=big"},
		{"bolts[1]", "z", "name=a size=8KiB bolts=[x, z] main=big"},
		{"bolts[*]", "z", "name=a size=8KiB bolts=[z, z] main=big"},
		{"bolts", "[p, q]", "name=a size=8KiB bolts=[p, q] main=big"},
		{"depth.top.level", "4",
			"name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main=big depth.top.level=4"},
		{"name", "", "name= size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main=big"},
		{"name", "x, y", "name=x, y size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main=big"},
		{"main", "{name: n, count: 5}",
			"name=a size=8KiB bolts[0]=x bolts[1].name=y bolts[1].count=2 main.name=n main.count=5"},

		{"name", "a: b: c", "--set:1:1:10: not valid YAML"},
		{"bolts.count", "7", "--set:1:1:1: bolts is a list; say which item with bolts[0] or bolts[*]"},
		{"bolts[2].count", "7", "--set:1:1:1: bolts has no item 2; it has 2"},
		{"words[0]", "7", "--set:1:1:1: words has no item to change; give the whole list"},
		{"size[1]", "7", "--set:1:1:1: size has no item 1: it is a single one"},
		{"rate[1]", "7", "--set:1:1:1: rate has no item to change; give the whole list"},
		{"bolts[0].words[1].x", "7", "--set:1:1:1: bolts[0].words has no item to change; give the whole list"},
		{"bolts[-1]", "7", `--set:1:1:1: "[-1]" is not an index; write [0] or [*]`},
		{"bolts[0", "7", `--set:1:1:1: "[0" is not an index; write [0] or [*]`},
		{"bolts[x]", "7", `--set:1:1:1: "[x]" is not an index; write [0] or [*]`},
		{"main..count", "7", `--set:1:1:1: "main..count" has an empty part; paths look like ssd.geometry.channels`},
		{"[0]", "7", `--set:1:1:1: "[0]" has an empty part; paths look like ssd.geometry.channels`},
	} {
		top, err := Parse("p.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := plans.Apply(top, reflect.TypeFor[plan](), []Change{{Path: c.path, Value: c.value}}); err != nil {
			got = err.Error()
		} else {
			got = flat(top, "")
		}
		if got != c.want && !(strings.HasSuffix(c.want, "not valid YAML") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s=%s:\n%s\nnot\n%s", c.path, c.value, got, c.want)
		}
	}
	for s, want := range map[string]Change{
		"a.b=c":     {Path: "a.b", Value: "c"},
		" a = b=c ": {Path: "a", Value: "b=c"},
		"a=":        {Path: "a"},
		"a":         {},
		"=b":        {},
		" =b":       {},
	} {
		got, err := ParseChange(s)
		if got != want || (err != nil) != (want == Change{}) ||
			err != nil && !strings.Contains(err.Error(), "is not a path=value, such as") {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
	}
}

// flat returns the contents of a node as paths and values.
func flat(n *Node, path string) string {
	var out []string
	switch n.Kind {
	case Mapping:
		for i, k := range n.Keys {
			out = append(out, flat(n.Items[i], units.JoinPath(path, k.Text)))
		}
	case Sequence:
		plain, list := true, []string{}
		for i, x := range n.Items {
			plain = plain && x.Kind == Scalar
			list = append(list, x.Text)
			out = append(out, flat(x, fmt.Sprintf("%s[%d]", path, i)))
		}
		if plain {
			return path + "=[" + strings.Join(list, ", ") + "]"
		}
	default:
		return path + "=" + n.Text
	}
	return strings.Join(out, " ")
}

// TestChangesHavePlaces verifies that a value set by a change is positioned in its command-line argument: under the
// name of its flag, if it has one, and under --set otherwise.
func TestChangesHavePlaces(t *testing.T) {
	_, set, err := planned("name: a\nbolts: [x]\n", Change{Path: "size", Value: "8KiB"},
		Change{Path: "bolts[0].count", Value: "3"}, Change{Path: "main", Value: "{name: y, count: 2}"},
		Change{Path: "width", Value: "7", Flag: "--width"})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"name": "p.yaml:1:7", "size": "--set:1:1:6", "bolts[0].count": "--set:2:1:16", "bolts[0].name": "p.yaml:2:9",
		"main.count": "--set:3:1:23", "width": "--width:1:1",
	} {
		if got := set[path]; got.String() != want || got.Flagged() != strings.HasPrefix(want, "--") {
			t.Errorf("%s stands at %v, not %s", path, got, want)
		}
	}
	if _, _, err := planned("", Change{Path: "width", Value: "x"}, Change{Path: "tiny", Value: "y"}); err == nil ||
		err.Error() != "--set:1:1:7: width: \"x\" is not a whole number; write a whole number such as "+
			"4\n--set:2:1:6: tiny: \"y\" is not a whole number; write a whole number such as 4" {
		t.Error(err)
	}
}

// TestMostOfQuantities verifies the largest rates and sizes that are accepted: those that models can multiply.
func TestMostOfQuantities(t *testing.T) {
	type rates struct {
		Bits      units.BitRate
		Bytes     units.ByteRate
		Transfers units.TransferRate
		Size      units.Bytes
	}
	l := Language{}
	for text, wrong := range map[string]bool{
		"bits: 1000000000Gbps": false, "bits: 1000000001Gbps": true, "bytes: 1000000GB/s": false,
		"bytes: 1000001GB/s": true, "transfers: 1000000MT/s": false, "transfers: 1000001MT/s": true,
		"size: 128PiB": false, "size: 131073TiB": true,
	} {
		top, err := Parse("a.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		d := l.Decoder()
		d.Decode(top, new(rates), "")
		if (len(d.Errs) > 0) != wrong || wrong && !strings.Contains(d.Errs.Error(), " is not possible; use at most ") {
			t.Errorf("%s: %v", text, d.Errs)
		}
	}
}

// TestNothingSet verifies that an empty value on the command line has a position, and that errors beyond maxShown get
// no suggestions, because they are never shown.
func TestNothingSet(t *testing.T) {
	_, set, err := planned("name: a", Change{Path: "name"})
	if err != nil || set["name"].String() != "--set:1:1:6" {
		t.Errorf("%v, %v", set["name"], err)
	}
	top, err := Parse("a.yaml", []byte("naem: 1"))
	if err != nil {
		t.Fatal(err)
	}
	for before, guess := range map[int]bool{0: true, maxShown - 1: true, maxShown: false} {
		d := plans.Decoder()
		for range before {
			d.Fail(Position{}, "another")
		}
		d.Decode(top, new(plan), "")
		if got := strings.Contains(d.Errs[before].Msg, "did you mean"); got != guess {
			t.Errorf("behind %d mistakes one is puzzled over: %v", before, got)
		}
	}
}
