// Package drawn generates random scenarios from the scenario language, for tests: every section and every pair of
// sections, with typical and boundary values, small enough to run by the thousand.
//
// Its main type is Language, the sections and keys that scenario.Describe lists. Make generates a Tree with given
// sections. A raw draw rarely passes check, since keys contradict each other in ways that only check knows; so Make
// follows check's errors, which have positions, and redraws, adds or removes the keys there until check accepts the
// scenario or it gives up. Shrink minimises a failing scenario; Cover counts the pairs of sections that were run.
//
// This is grammar-based property testing as in QuickCheck (Claessen and Hughes, ICFP 2000), with the minimisation of
// Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (TSE 2002). It leaves out running
// scenarios and judging their results (the tests of package trial).
package drawn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"farflash/numeric/rng"
	"farflash/scenario"
)

// Language is the grammar of scenarios.
type Language struct {
	Sections []*Section // in language order; the first is the whole scenario
	byPath   map[string]*Section
	seeds    []*Tree
	holding  map[*Section][]*Tree // seeds with a section
}

// Section is a mapping or a list of mappings.
type Section struct {
	Path   string // without indices; targets.ssd counts as ssd
	List   bool
	Parent *Section
	keys   []key
	inner  []*Section
}

// key is a key with a plain value.
type key struct {
	name   string
	usual  []string // typical values
	edges  []string // boundary values
	needed bool     // the section is pointless without it
}

// WriteFiles writes the traces, jobs and topologies that Seeds and drawn scenarios refer to.
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

// same maps the path of a target's drive to that of a local drive.
func same(path string) string {
	if rest, ok := strings.CutPrefix(path, "targets.ssd"); ok {
		return "ssd" + rest
	}
	return path
}

// read adds a section and its subsections, as scenario.Describe lists them.
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

// Section looks up a section by path, ignoring indices; nil if there is none.
func (l *Language) Section(path string) *Section { return l.byPath[same(path)] }

// draw generates a scenario with the wanted sections, as far as they fit together, and a few others.
func (l *Language) draw(r *rng.Stream, want ...*Section) *Tree {
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

// base clones a seed that has a wanted section or its nearest ancestor.
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

// beside picks another section below a top-level key that the tree has; rarely, any section.
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

// bring adds a missing section: copied from a seed, or drawn key by key.
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

// section draws the needed keys and some others.
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

// change sets one key of a section in the tree.
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

// draw picks a value, at times a boundary.
func (k *key) draw(r *rng.Stream) string {
	if len(k.edges) > 0 && r.IntN(5) == 0 {
		return k.edges[r.IntN(int64(len(k.edges)))]
	}
	return k.usual[r.IntN(int64(len(k.usual)))]
}

// keyAt looks up a key by path.
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
