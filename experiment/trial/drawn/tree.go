package drawn

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"farflash/numeric/rng"
	"farflash/scenario/shape"
)

// Tree is a scenario as YAML.
type Tree struct {
	root *node
	kept []*Section // wanted sections, which repair keeps
}

type kind uint8

const (
	scalar kind = iota
	mapping
	sequence
)

// node is a value under a key; list items have no key.
type node struct {
	key  string
	kind kind
	text string
	kids []*node
	line int // in the last Text
}

func (n *node) clone() *node {
	c := *n
	c.kids = nil
	for _, k := range n.kids {
		c.kids = append(c.kids, k.clone())
	}
	return &c
}

// get looks up a key of a mapping; nil if it is missing.
func (n *node) get(key string) *node {
	for _, k := range n.kids {
		if n.kind == mapping && k.key == key {
			return k
		}
	}
	return nil
}

// put sets a key of a mapping, or appends to a list.
func (n *node) put(x *node) {
	if n.kind == scalar { // a short form, replaced by the section
		*n = node{key: n.key, kind: mapping}
	}
	if n.kind == sequence {
		x.key = ""
		n.kids = append(n.kids, x)
		return
	}
	for i, k := range n.kids {
		if k.key == x.key {
			n.kids[i] = x
			return
		}
	}
	n.kids = append(n.kids, x)
}

func (t *Tree) clone() *Tree { return &Tree{t.root.clone(), slices.Clone(t.kept)} }

// parse parses YAML.
func parse(text string) (*Tree, error) {
	top, err := shape.Parse("seed.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	return &Tree{root: convert("", top)}, nil
}

func convert(key string, n *shape.Node) *node {
	out := &node{key: key, text: n.Text}
	if n.Quoted {
		out.text = strconv.Quote(n.Text)
	}
	switch n.Kind {
	case shape.Mapping:
		out.kind = mapping
		for i, k := range n.Keys {
			out.kids = append(out.kids, convert(k.Text, n.Items[i]))
		}
	case shape.Sequence:
		out.kind = sequence
		for _, x := range n.Items {
			out.kids = append(out.kids, convert("", x))
		}
	}
	return out
}

// Text returns the tree as YAML, one key per line.
func (t *Tree) Text() string {
	w := writer{line: 1}
	w.kids(t.root, "")
	return w.b.String()
}

type writer struct {
	b    strings.Builder
	line int
}

func (w *writer) kids(n *node, indent string) {
	for _, k := range n.kids {
		k.line = w.line
		w.b.WriteString(indent)
		if n.kind == sequence {
			w.b.WriteString("-")
		} else {
			w.b.WriteString(k.key + ":")
		}
		switch {
		case k.kind == scalar:
			w.end(" " + k.text)
		case len(k.kids) > 0 && flat(k):
			// Lists of scalars go on one line.
			items := make([]string, len(k.kids))
			for i, x := range k.kids {
				items[i], x.line = x.text, w.line
			}
			w.end(" [" + strings.Join(items, ", ") + "]")
		case len(k.kids) == 0 && k.kind == mapping:
			w.end(" {}")
		case len(k.kids) == 0:
			w.end(" []")
		default:
			w.end("")
			w.kids(k, indent+"  ")
		}
	}
}

func (w *writer) end(s string) {
	w.b.WriteString(s + "\n")
	w.line++
}

// flat reports a list of scalars.
func flat(n *node) bool {
	return n.kind == sequence && !slices.ContainsFunc(n.kids, func(k *node) bool { return k.kind != scalar })
}

// walk visits every node below the root, with its path (without indices) and its parent.
func (t *Tree) walk(f func(path string, n, parent *node)) {
	var down func(path string, n *node)
	down = func(path string, n *node) {
		for _, k := range n.kids {
			at := path
			if k.key != "" {
				at = strings.TrimPrefix(path+"."+k.key, ".")
			}
			f(at, k, n)
			down(at, k)
		}
	}
	down("", t.root)
}

// Sections lists the sections of the tree, each once, the whole scenario first.
func (t *Tree) Sections(l *Language) []*Section {
	out := []*Section{l.Sections[0]}
	t.walk(func(path string, n, _ *node) {
		if s := l.Section(path); s != nil && n.kind != scalar && !slices.Contains(out, s) {
			out = append(out, s)
		}
	})
	return out
}

func (t *Tree) has(l *Language, s *Section) bool { return t.find(l, s) != nil }

// find returns the first node of a section.
func (t *Tree) find(l *Language, s *Section) (found *node) {
	if s.Parent == nil {
		return t.root
	}
	t.walk(func(path string, n, _ *node) {
		if found == nil && n.key != "" && n.kind != scalar && l.Section(path) == s {
			found = n
		}
	})
	return found
}

// place picks a mapping that can hold a section's keys; nil if there is none.
func (t *Tree) place(l *Language, r *rng.Stream, s *Section) *node {
	if s.Parent == nil {
		return t.root
	}
	var all []*node
	t.walk(func(path string, n, _ *node) {
		if l.Section(path) == s && n.kind != sequence && (n.key == "" || !s.List) {
			all = append(all, n)
		}
	})
	if len(all) == 0 {
		return nil
	}
	return all[r.IntN(int64(len(all)))]
}

func (t *Tree) protect(s *Section) { t.kept = append(t.kept, s) }

// remove removes a node.
func (t *Tree) remove(x *node) {
	var down func(n *node) bool
	down = func(n *node) bool {
		if i := slices.Index(n.kids, x); i >= 0 {
			n.kids = slices.Delete(n.kids, i, i+1)
			return true
		}
		return slices.ContainsFunc(n.kids, down)
	}
	down(t.root)
}

// parentOf returns the parent of a node.
func (t *Tree) parentOf(x *node) (found *node) {
	t.walk(func(_ string, n, parent *node) {
		if n == x {
			found = parent
		}
	})
	return found
}

// pathOf is a node's path without indices.
func (t *Tree) pathOf(x *node) (found string) {
	t.walk(func(path string, n, _ *node) {
		if n == x {
			found = path
		}
	})
	return found
}

var pathWord = regexp.MustCompile(`[a-z][a-z0-9_]*(?:\[[0-9*]+\])?(?:\.[a-z][a-z0-9_]*(?:\[[0-9*]+\])?)*`)
var index = regexp.MustCompile(`\[[0-9*]+\]`)
