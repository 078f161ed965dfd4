// Package drawn draws scenarios from the language itself, for tests: every section and every pair of sections comes up, with values at their edges
// as well as in the middle, in scenarios that are small enough to be run by the thousand.
//
// Its main type is Language, the sections and keys that scenario.Describe tells of; Make draws a Tree of a stream of random numbers, with given sections in it. What is drawn is
// seldom right at once: keys contradict each other in ways that only check knows. So Make listens to the errors of check, each of which has a place, and
// draws anew, adds or takes out what stands there, as a person would, until nothing is wrong or too much was tried. Shrink looks for the
// smallest scenario that fails as a given one does; Cover counts which pairs of sections have come up.
//
// This is property-based testing by a grammar, as in QuickCheck (Claessen and Hughes, ICFP 2000) and in Zeller's "Simplifying and Isolating Failure-Inducing Input" (TSE 2002).
// What it leaves out: running scenarios and judging what comes of them (the tests of package trial).
package drawn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"farflash/rng"
	"farflash/scenario"
)

// Language is what can be written in a scenario.
type Language struct {
	Sections []*Section // in the order of the language; the first is the whole scenario
	byPath   map[string]*Section
	seeds    []*Tree
	holding  map[*Section][]*Tree // the seeds that have a section
}

// Section is a mapping with keys, or a list of such.
type Section struct {
	Path   string // without indices; a target's drive is as the drive alone
	List   bool
	Parent *Section
	keys   []key
	inner  []*Section
}

// key is one whose value is no section.
type key struct {
	name   string
	usual  []string // values as they may be in a study
	edges  []string // values at the edge of what can be written
	needed bool     // without it the section says nothing
}

// WriteFiles writes what drawn scenarios and Seeds replay to a folder.
func WriteFiles(dir string) error {
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// Load reads the language.
func Load() (*Language, error) {
	l := &Language{byPath: map[string]*Section{}, holding: map[*Section][]*Tree{}}
	if err := l.read("", nil, false); err != nil {
		return nil, err
	}
	for i, text := range Seeds {
		t, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", i, err)
		}
		l.seeds = append(l.seeds, t)
		for _, s := range t.Sections(l) {
			l.holding[s] = append(l.holding[s], t)
		}
	}
	return l, nil
}

// same is the path under which a section is known: a target's drive is one.
func same(path string) string {
	if rest, ok := strings.CutPrefix(path, "targets.ssd"); ok {
		return "ssd" + rest
	}
	return path
}

// read takes a section and those within it from what explain says.
func (l *Language) read(path string, parent *Section, list bool) error {
	d, err := scenario.Describe(path)
	if err != nil {
		return err
	}
	s := &Section{Path: path, List: list, Parent: parent}
	l.Sections, l.byPath[path] = append(l.Sections, s), s
	if parent != nil {
		parent.inner = append(parent.inner, s)
	}
	for _, k := range d.Keys {
		list := strings.HasPrefix(k.Value, "a list of mappings")
		switch {
		case k.Path == "targets.ssd": // read as ssd
		case list || strings.HasPrefix(k.Value, "a mapping"):
			if err := l.read(k.Path, s, list); err != nil {
				return err
			}
		default:
			name := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
			x := key{name: name}
			x.usual, x.edges, x.needed = valuesOf(k.Path, k.Value)
			if len(x.usual) > 0 {
				s.keys = append(s.keys, x)
			}
		}
	}
	return nil
}

// Section is the one at a path, nil if there is none; indices are ignored.
func (l *Language) Section(path string) *Section { return l.byPath[same(path)] }

// Draw makes a scenario that has the given sections, if they go together at all, and some others.
func (l *Language) Draw(r *rng.Stream, want ...*Section) *Tree {
	t := l.base(r, want)
	for _, s := range want {
		l.bring(r, t, s)
	}
	for range r.IntN(3) {
		if s := l.beside(r, t); s != nil {
			l.bring(r, t, s)
		}
	}
	for range r.IntN(5) {
		l.change(r, t)
	}
	for _, s := range want {
		t.protect(s)
	}
	return t
}

// base is a copy of a seed that has one of the sections that are wanted, if there is one, or at least its topmost section.
func (l *Language) base(r *rng.Stream, want []*Section) *Tree {
	var of []*Tree
	if len(want) > 0 {
		s := want[r.IntN(int64(len(want)))]
		for ; len(of) == 0 && s != nil; s = s.Parent {
			of = l.holding[s]
		}
	}
	if len(of) == 0 || r.IntN(8) == 0 {
		of = l.seeds
	}
	return of[r.IntN(int64(len(of)))].clone()
}

// beside is a section whose topmost section the tree has already, or now and then any.
func (l *Language) beside(r *rng.Stream, t *Tree) *Section {
	for range 20 {
		s := l.Sections[1+r.IntN(int64(len(l.Sections)-1))]
		top, _, _ := strings.Cut(s.Path, ".")
		if t.root.get(top) != nil || r.IntN(40) == 0 {
			return s
		}
	}
	return nil
}

// bring puts a section into a tree that lacks it: a copy of what a seed has there, or drawn key by key.
func (l *Language) bring(r *rng.Stream, t *Tree, s *Section) {
	if t.has(l, s) {
		return
	}
	at := t.place(l, r, s.Parent)
	if at == nil {
		l.bring(r, t, s.Parent)
		if at = t.place(l, r, s.Parent); at == nil {
			return
		}
	}
	if of := l.holding[s]; len(of) > 0 && r.IntN(2) == 0 {
		from := of[r.IntN(int64(len(of)))]
		if x := from.find(l, s); x != nil {
			x = x.clone()
			at.put(x)
			return
		}
	}
	at.put(l.section(r, s))
}

// section draws one: what it needs, and some of its keys.
func (l *Language) section(r *rng.Stream, s *Section) *node {
	name := s.Path[strings.LastIndexByte(s.Path, '.')+1:]
	m := &node{key: name, kind: mapping}
	for _, k := range s.keys {
		if k.needed || r.IntN(int64(len(s.keys)+2)) < 2 {
			m.put(&node{key: k.name, text: k.draw(r)})
		}
	}
	if !s.List {
		return m
	}
	m.key = ""
	list := &node{key: name, kind: sequence, kids: []*node{m}}
	return list
}

// change draws one key anew, or adds it, in a section that the tree has.
func (l *Language) change(r *rng.Stream, t *Tree) {
	all := t.Sections(l)
	for range 20 {
		s := all[r.IntN(int64(len(all)))]
		if len(s.keys) == 0 {
			continue
		}
		at := t.place(l, r, s)
		if at == nil || at.kind != mapping {
			continue
		}
		k := s.keys[r.IntN(int64(len(s.keys)))]
		at.put(&node{key: k.name, text: k.draw(r)})
		return
	}
}

// draw is a value: a usual one, or now and then one at an edge.
func (k *key) draw(r *rng.Stream) string {
	if len(k.edges) > 0 && r.IntN(5) == 0 {
		return k.edges[r.IntN(int64(len(k.edges)))]
	}
	return k.usual[r.IntN(int64(len(k.usual)))]
}

// keyAt is what is known of the key at a path.
func (l *Language) keyAt(path string) (key, bool) {
	path = same(path)
	i := strings.LastIndexByte(path, '.')
	s := l.byPath[path[:max(i, 0)]]
	if s == nil {
		return key{}, false
	}
	j := slices.IndexFunc(s.keys, func(k key) bool { return k.name == path[i+1:] })
	if j < 0 {
		return key{}, false
	}
	return s.keys[j], true
}
