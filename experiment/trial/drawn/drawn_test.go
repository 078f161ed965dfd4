package drawn

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"farflash/internal/golden"
	"farflash/numeric/rng"
	"farflash/scenario/shape"
)

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

// orchard returns a small language with every feature that a language can have: a section in a section, a list, a
// section in a list, required keys, and values at the edge of their range.
func orchard(t *testing.T) *Language {
	t.Helper()
	l := &Language{byPath: map[string]*Section{}, holding: map[*Section][]*Tree{}}
	add := func(path string, list bool, parent string, keys ...key) {
		s := &Section{Path: path, List: list, keys: keys}
		if path != "" {
			s.Parent = l.byPath[parent]
			s.Parent.inner = append(s.Parent.inner, s)
		}
		l.Sections, l.byPath[path] = append(l.Sections, s), s
	}
	add("", false, "", key{name: "name", usual: []string{"a", "b"}},
		key{name: "initiators", usual: []string{"1", "2"}, edges: []string{"99"}})
	add("ssd", false, "", key{name: "preset", usual: []string{"p", "q"}},
		key{name: "over", usual: []string{"7%", "28%"}, edges: []string{"0%"}})
	add("ssd.geometry", false, "ssd", key{name: "channels", usual: []string{"1", "2"}, needed: true},
		key{name: "blocks", usual: []string{"20", "40"}, edges: []string{"1"}, needed: true})
	add("workload", true, "",
		key{name: "requests", usual: []string{"1", "7", "60"}, edges: []string{"99"}, needed: true},
		key{name: "closed", usual: []string{"1", "2"}}, key{name: "after", usual: []string{"a", "b"}})
	add("workload.think", false, "workload", key{name: "time", usual: []string{"1us", "5us"}, needed: true},
		key{name: "every", usual: []string{"1", "2"}})
	add("targets", true, "", key{name: "count", usual: []string{"1", "2"}},
		key{name: "ssds", usual: []string{"1", "3"}})
	add("measure", false, "", key{name: "until", usual: []string{"1ms", "end"}},
		key{name: "alone", usual: []string{"true"}})
	for _, text := range []string{"ssd: {preset: p, geometry: {channels: 4, blocks: 30}}\nworkload: [{requests: 5, " +
		"closed: 1}, {requests: 6, think: {time: 9us}}]\n",
		"ssd: q\nworkload: [{requests: 8, queue: [1, 2]}]\nmeasure: {until: 2ms}\n"} {
		tree, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		l.seeds = append(l.seeds, tree)
		for _, s := range tree.Sections(l) {
			l.holding[s] = append(l.holding[s], tree)
		}
	}
	return l
}

// keeper returns the errors in an orchard's text, with their positions. Edge values are rejected, targets need
// initiators, think needs closed, after excludes closed, a measure needs an end, and four channels are too large for a
// test.
func keeper(text string) error {
	top, err := shape.Parse("a.yaml", []byte(text))
	if err != nil {
		return err
	}
	var wrong shape.Errors
	fail := func(n *shape.Node, format string, args ...any) {
		wrong = append(wrong, &shape.Error{At: n.At, Msg: fmt.Sprintf(format, args...)})
	}
	if x := top.Get("initiators"); x != nil && x.Text == "99" {
		fail(x, "initiators: 99 is not possible")
	}
	if x := top.Get("targets"); x != nil && top.Get("initiators") == nil {
		fail(x, "targets: who asks them? add initiators")
	}
	if top.Get("workload") == nil {
		fail(top, "nobody asks; add workload")
	} else {
		for i, w := range top.Get("workload").Items {
			if n := w.Get("requests"); n != nil && n.Text == "99" {
				fail(n, "workload[%d].requests: 99 is not possible", i)
			}
			if x := w.Get("think"); x != nil && w.Get("closed") == nil {
				fail(x, "workload[%d].think: it is for a closed loop; add closed, or leave it out", i)
			}
			if a := w.Get("after"); a != nil && w.Get("closed") != nil {
				fail(a, "workload[%d].after: not beside workload[%d].closed", i, i)
			}
		}
	}
	if x := top.Get("measure"); x != nil && x.Get("until") == nil {
		fail(x, "measure: it has no end; add until")
	}
	if len(wrong) > 0 {
		return wrong
	}
	if g := top.Get("ssd"); g != nil && g.Get("geometry") != nil && g.Get("geometry").Get("channels") != nil &&
		g.Get("geometry").Get("channels").Text == "4" {
		return ErrLarge
	}
	return nil
}

// TestDraws verifies that scenarios drawn for wanted sections are nearly always accepted and contain these sections.
// The same stream draws the same scenarios, which testdata records: a change that should not affect draws must not
// change the file.
func TestDraws(t *testing.T) {
	l := orchard(t)
	c := l.Cover(ptr(rng.NewStream(3, "cover")))
	var b strings.Builder
	kept, made := 0, 0
	for n := range 150 {
		r := rng.NewStream(uint64(n), "draw")
		want := c.Pair(n)
		tree, err := l.Make(&r, keeper, want...)
		fmt.Fprintf(&b, "# %d:", n)
		all := true
		for _, s := range want {
			fmt.Fprintf(&b, " %s", s.Path)
			all = all && tree.has(l, s)
		}
		fmt.Fprintf(&b, "\n%s", tree.Text())
		if err != nil {
			fmt.Fprintf(&b, "# %v\n", err)
			continue
		}
		made++
		if err := keeper(tree.Text()); err != nil {
			t.Errorf("draw %d is said to be accepted, and is not: %v\n%s", n, err, tree.Text())
		}
		if all {
			kept++
		}
		c.Ran(tree)
	}
	if made < 148 || kept < 135 {
		t.Errorf("of 150 draws %d are accepted, and %d have what was wanted", made, kept)
	}
	fmt.Fprintln(&b, "#", c)
	golden.File(t, filepath.Join("testdata", "draws.txt"), []byte(b.String()), *rewrite,
		"go test ./experiment/trial/drawn -run TestDraws -rewrite, and read what changes")
}

func ptr(r rng.Stream) *rng.Stream { return &r }

// TestGivesUp verifies that the last draw is returned with its error if no text is accepted, and that an error without
// a position leads to no repairs.
func TestGivesUp(t *testing.T) {
	l := orchard(t)
	r := rng.NewStream(1, "draw")
	asked := 0
	never := errors.New("never")
	if _, err := l.Make(&r, func(string) error { asked++; return never }); err != never || asked != 5 {
		t.Errorf("%v, asked %d times", err, asked)
	}
	asked = 0
	_, err := l.Make(&r, func(string) error {
		asked++
		return shape.Errors{{At: shape.Position{File: "a.yaml", Line: 1, Column: 1}, Msg: "no"}}
	})
	if err == nil || asked != 5*repairs {
		t.Errorf("%v, asked %d times", err, asked)
	}
	if _, err := l.Make(&r, func(string) error { return shape.Errors{} }); err == nil {
		t.Error("an empty list of mistakes is taken for none")
	}
	if tree, err := l.Make(&r, func(string) error { return nil }); err != nil || tree == nil {
		t.Errorf("%v", err)
	}
}

// TestCover verifies that a campaign draws each section alone, then each pair once, then repeats; that sections and
// pairs that have run are counted; and that missing sections are named.
func TestCover(t *testing.T) {
	l := orchard(t)
	c := l.Cover(ptr(rng.NewStream(1, "cover")))
	seen := map[string]int{}
	for n := range 21 {
		p := c.Pair(n)
		if len(p) != 1 && n < 6 || len(p) != 2 && n >= 6 {
			t.Errorf("draw %d is of %d sections", n, len(p))
		}
		var names []string
		for _, s := range p {
			names = append(names, s.Path)
		}
		slices.Sort(names)
		seen[strings.Join(names, " ")]++
	}
	if len(seen) != 21 || !slices.Equal(c.Pair(0), c.Pair(21)) {
		t.Errorf("%v", seen)
	}
	other := l.Cover(ptr(rng.NewStream(2, "cover")))
	same := 0
	for n := range 21 {
		if slices.Equal(c.Pair(n), other.Pair(n)) {
			same++
		}
	}
	if same > 10 {
		t.Errorf("another stream has %d of 21 in the same places", same)
	}
	if got := c.String(); got !=
		"0 of 6 sections, 0 of 15 pairs of sections; not ssd, ssd.geometry, workload, workload.think, targets, measure" {
		t.Error(got)
	}
	c.Ran(l.seeds[0])
	if got := c.String(); got != "4 of 6 sections, 6 of 15 pairs of sections; not targets, measure" {
		t.Error(got)
	}
	all, err := parse("ssd: {geometry: {blocks: 1}}\ntargets: [{count: 1}]\nworkload: [{think: {time: " +
		"1us}}]\nmeasure: {until: end}\n")
	if err != nil {
		t.Fatal(err)
	}
	c.Ran(all)
	if got := c.String(); got != "6 of 6 sections, 15 of 15 pairs of sections" {
		t.Error(got)
	}
}

// TestTree verifies that a parsed text is written back line by line, that nodes are found by section, and that a copy
// shares no memory with the original.
func TestTree(t *testing.T) {
	l := orchard(t)
	const text = "name: \"x y\"\nempty: {}\nnone: []\nssd: q\nworkload:\n  -\n    requests: 5\n    list: [1, 2]\n  " +
		"-\n    think:\n      time: 1us\nnested:\n  - [1]\n"
	tree, err := parse("name: 'x y'\nempty: {}\nnone: []\nssd: q\nworkload: [{requests: 5, list: [1, 2]}, {think: " +
		"{time: 1us}}]\nnested: [[1]]\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := tree.Text(); got != text {
		t.Errorf("%s", got)
	}
	var walked []string
	tree.walk(func(path string, n, parent *node) {
		walked = append(walked, fmt.Sprintf("%s:%d", path, n.line))
		if tree.parentOf(n) != parent || tree.pathOf(n) != path {
			t.Errorf("%s is in another place", path)
		}
	})
	if got := strings.Join(walked, " "); got !=
		"name:1 empty:2 none:3 ssd:4 workload:5 workload:6 workload.requests:7 workload.list:8 workload.list:8 "+
			"workload.list:8 workload:9 workload.think:10 workload.think.time:11 nested:12 nested:13 nested:13" {
		t.Error(got)
	}
	var sections []string
	for _, s := range tree.Sections(l) {
		sections = append(sections, s.Path)
	}
	if got := strings.Join(sections, " "); got != " workload workload.think" { // ssd is in its short form
		t.Errorf("%q", got)
	}
	for path, there := range map[string]bool{"ssd": false, "workload": true, "workload.think": true, "measure": false,
		"": true} {
		if got := tree.has(l, l.byPath[path]); got != there {
			t.Errorf("%s is there: %v", path, got)
		}
	}
	if tree.find(l, l.byPath["workload"]).kind != sequence || tree.find(l, l.byPath[""]) != tree.root {
		t.Error("a list is found by an item")
	}
	r := rng.NewStream(1, "place")
	items := map[*node]bool{}
	for range 40 {
		items[tree.place(l, &r, l.byPath["workload"])] = true
	}
	if len(items) != 2 || items[tree.find(l, l.byPath["workload"])] ||
		tree.place(l, &r, l.byPath["measure"]) != nil || tree.place(l, &r, l.byPath[""]) != tree.root ||
		tree.place(l, &r, l.byPath["ssd"]) != tree.root.get("ssd") {
		t.Errorf("%d places for an item's keys", len(items))
	}
	copied := tree.clone()
	copied.root.get("ssd").put(&node{key: "over", text: "7%"})
	copied.root.get("ssd").put(&node{key: "over", text: "8%"})
	copied.root.get("workload").put(&node{key: "gone", kind: mapping})
	copied.remove(copied.root.get("workload").kids[0])
	copied.remove(copied.root.get("name"))
	copied.remove(&node{})
	if got := copied.Text(); got !=
		"empty: {}\nnone: []\nssd:\n  over: 8%\nworkload:\n  -\n    think:\n      time: 1us\n  - {}\nnested:\n  - [1]\n" {
		t.Errorf("%s", got)
	}
	if tree.Text() != text {
		t.Errorf("a copy's change is in\n%s", tree.Text())
	}
	if tree.root.get("nothing") != nil || tree.root.get("workload").get("") != nil || tree.pathOf(&node{}) != "" ||
		tree.parentOf(tree.root) != nil {
		t.Error("something is found that is not there")
	}
	if _, err := parse("a: ["); err == nil {
		t.Error("what is no YAML is parsed")
	}
}

// TestShrink verifies that a failing text is reduced to a minimal one that still fails, that the number of tries is
// bounded, and that the original is not modified.
func TestShrink(t *testing.T) {
	const text = "a: 9\nb: {c: 40, d: [1, 2, 3]}\ne: [{f: 17, g: x}, {h: 5}]\n"
	tree, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	before := tree.Text()
	asked := 0
	least := Shrink(tree, 1000, func(text string) bool {
		asked++
		f, err := strconv.Atoi(strings.TrimSpace(regexp.MustCompile(`f: (\d+)|$`).FindStringSubmatch(text)[1] + ""))
		return err == nil && f >= 3 && strings.Contains(text, "c:")
	})
	if got := least.Text(); got != "b:\n  c: 1\ne:\n  -\n    f: 4\n" || asked > 60 || tree.Text() != before {
		t.Errorf("after %d tries:\n%s", asked, got)
	}
	// What can only go once something behind it is gone takes another pass, with nothing else to shrink.
	pair, err := parse("a: x\nb: y\nc: z\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := Shrink(pair, 100, func(text string) bool {
		return strings.Contains(text, "c:") && (strings.Contains(text, "a:") || !strings.Contains(text, "b:"))
	}).Text(); got != "c: z\n" {
		t.Errorf("%s", got)
	}
	var weights []int
	for _, n := range bySize(tree) {
		weights = append(weights, weight(n))
	}
	if !slices.IsSortedFunc(weights, func(a, b int) int { return b - a }) || weights[0] == weights[len(weights)-1] {
		t.Errorf("in the order of %v", weights)
	}
	for most := range 8 {
		asked = 0
		Shrink(tree, most, func(string) bool { asked++; return true })
		if asked > most {
			t.Errorf("%d tries, of %d", asked, most)
		}
	}
	if got := Shrink(tree, 9, func(string) bool { return false }).Text(); got != before {
		t.Errorf("%s", got)
	}
	for text, want := range map[string]string{"2": "1", "9": "4", "1": "", "0": "", "-8": "", "x": "", "1us": ""} {
		n := &node{text: text}
		if ok := smaller(n); ok != (want != "") || ok && n.text != want {
			t.Errorf("half of %s is %s, %v", text, n.text, ok)
		}
	}
	if smaller(&node{kind: mapping, text: "8"}) {
		t.Error("half of a mapping")
	}
}

// TestLacking verifies that a section which an error names is one that the tree lacks, of those at the top.
func TestLacking(t *testing.T) {
	l := orchard(t)
	r := rng.NewStream(1, "lacking")
	names := map[string]bool{}
	for range 40 {
		s := l.lacking(&r, l.seeds[0], &shape.Error{Msg: "ssd needs measure or targets, with ssd.geometry, not fabric"})
		names[s.Path] = true
	}
	if len(names) != 2 || !names["measure"] || !names["targets"] {
		t.Errorf("%v", names)
	}
	if s := l.lacking(&r, l.seeds[0], &shape.Error{Msg: "nothing that there is: ssd"}); s != nil {
		t.Errorf("%s is there", s.Path)
	}
}

// TestChange verifies that a key is changed also where a list without items, or with an item that is no mapping, is
// drawn before a section that can take one.
func TestChange(t *testing.T) {
	l := orchard(t)
	for seed := range uint64(60) {
		tree, err := parse("workload: []\ntargets: [1]\nmeasure: {until: 2ms}\n")
		if err != nil {
			t.Fatal(err)
		}
		before := tree.Text()
		l.change(ptr(rng.NewStream(seed, "change")), tree)
		if got := tree.Text(); got == before || !strings.Contains(got, "workload: []") ||
			!strings.Contains(got, "targets: [1]") {
			t.Errorf("seed %d:\n%s", seed, got)
		}
	}
}

// TestLanguage verifies that the whole scenario language is loaded: each section once and after its parent, keys with
// values, and the drives of targets as the section of local ones.
func TestLanguage(t *testing.T) {
	l, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, s := range l.Sections {
		if seen[s.Path] || (s.Parent == nil) != (i == 0) ||
			s.Parent != nil && (!seen[s.Parent.Path] || !slices.Contains(s.Parent.inner, s)) ||
			strings.HasPrefix(s.Path, "targets.ssd") {
			t.Errorf("section %q", s.Path)
		}
		seen[s.Path] = true
		for _, k := range s.keys {
			if len(k.usual) == 0 || k.name == "" || strings.Contains(k.name, ".") {
				t.Errorf("%s.%s: %v", s.Path, k.name, k.usual)
			}
		}
	}
	for path, list := range map[string]bool{"ssd": false, "ssd.geometry": false, "workload": true,
		"workload.synthetic.reads": false, "flows": true, "flows.list": true, "targets": true} {
		if s := l.Section(path); s == nil || s.List != list {
			t.Errorf("%s: %+v", path, s)
		}
	}
	if l.Section("targets.ssd.geometry") != l.Section("ssd.geometry") || l.Section("nothing") != nil {
		t.Error("the drive of a target is another section than a local one")
	}
	if k, ok := l.keyAt("targets.ssd.geometry.channels"); !ok || !k.needed ||
		!slices.Equal(k.usual, []string{"1", "2", "3"}) || k.edges != nil {
		t.Errorf("%+v", k)
	}
	if k, ok := l.keyAt("initiators"); !ok || k.name != "initiators" {
		t.Errorf("%+v", k)
	}
	for _, path := range []string{"ssd.nothing", "nothing.channels", ""} {
		if _, ok := l.keyAt(path); ok {
			t.Errorf("%q is a key", path)
		}
	}
	if len(l.seeds) != len(Seeds) || len(l.holding[l.Section("ssd")]) == 0 ||
		len(l.holding[l.Sections[0]]) != len(Seeds) {
		t.Errorf("%d seeds", len(l.seeds))
	}
	dir := t.TempDir()
	if err := WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "j.fio")); err != nil || string(text) != files["j.fio"] {
		t.Error(err)
	}
	if err := WriteFiles(filepath.Join(dir, "none")); err == nil {
		t.Error("files are written where there is no folder")
	}
}

// TestValuesOf verifies that a key's values are those listed for its path, or else follow from its description.
func TestValuesOf(t *testing.T) {
	for _, c := range []struct {
		path, wanted string
		usual        string
		edges        int
		needed       bool
	}{
		{"ssd.geometry.channels", "a whole number", "1 2 3", 0, true},
		{"targets.ssd.geometry.channels", "a whole number", "1 2 3", 0, true},
		{"x.y", "true or false", "true false", 0, false},
		{"x.y", "text", "", 0, false},
		{"x.y", "red, green or blue", "red green blue", 0, false},
		{"x.y", "none, auto, or a time such as 50ms", "0s 1ns 100ns 1us 10us 100us 1ms none auto", 5, false},
		{"x.y", "a whole number", "0 1 2 3 4 8 16", 4, false},
		{"x.y", "a list of 3: a whole number", "[4, 2, 1] [1, 1, 1] [1, 0, 7]", 0, false},
		{"x.y", "a list of 3: a share such as 7%", "[100%, 0%, 0%] [20%, 30%, 50%]", 0, false},
		{"x.y", "a list: a whole number", "[] [0] [1] [0, 1] [1, 0, 2] [0, 0]", 0, false},
		{"x.y", "a list: text", "", 0, false},
	} {
		usual, edges, needed := valuesOf(c.path, c.wanted)
		if strings.Join(usual, " ") != c.usual || len(edges) != c.edges || needed != c.needed {
			t.Errorf("%s, %s: %v, %v, needed %v", c.path, c.wanted, usual, edges, needed)
		}
	}
	k := key{usual: []string{"a", "b"}, edges: []string{"x"}}
	r := rng.NewStream(1, "key")
	seen := map[string]int{}
	for range 1000 {
		seen[k.draw(&r)]++
	}
	if seen["x"] < 150 || seen["x"] > 250 || seen["a"] < 300 || seen["b"] < 300 {
		t.Errorf("%v", seen)
	}
}
