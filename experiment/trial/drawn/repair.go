package drawn

import (
	"errors"
	"slices"
	"strings"

	"farflash/numeric/rng"
	"farflash/scenario/shape"
)

// Make generates a scenario with the wanted sections that check accepts. If it fails, the last draw and its error are
// returned.
func (l *Language) Make(r *rng.Stream, check func(text string) error, want ...*Section) (t *Tree, err error) {
	for range 5 {
		t = l.draw(r, want...)
		if err = l.repair(r, t, check); err == nil {
			break
		}
	}
	return t, err
}

// ErrLarge is the error of check for a scenario that is too large for a test.
var ErrLarge = errors.New("too large for a test")

// repairs limits the repair steps of one draw.
const repairs = 30

// repair edits a tree until check accepts it, and returns the last error. Wanted sections are kept for most of the
// steps.
func (l *Language) repair(r *rng.Stream, t *Tree, check func(text string) error) (err error) {
	for try := range repairs {
		if err = check(t.Text()); err == nil {
			return nil
		}
		if errors.Is(err, ErrLarge) {
			l.reduce(r, t)
			continue
		}
		var wrong shape.Errors
		if !errors.As(err, &wrong) || len(wrong) == 0 {
			return err // no position to work from
		}
		// A few at a time: one edit may resolve several errors.
		for i, e := range wrong {
			if i < 3 || r.IntN(4) == 0 {
				l.mend(r, t, e, try < repairs*3/4)
			}
		}
	}
	return err
}

// reduce gives every drive a small geometry, and a system few drives.
func (l *Language) reduce(r *rng.Stream, t *Tree) {
	drive := l.Section("ssd")
	t.walk(func(path string, n, _ *node) {
		switch {
		case l.Section(path) == drive:
			if n.kind == scalar { // a preset's name
				*n = node{key: n.key, kind: mapping, kids: []*node{{key: "preset", text: n.text}}}
			}
			n.put(l.section(r, l.Section("ssd.geometry")))
		case n.key == "initiators" || path == "targets.count" || path == "targets.ssds" ||
			path == "object_cluster.targets":
			if k, ok := l.keyAt(path); ok {
				n.text = k.usual[0]
			}
		}
	})
}

// mend edits the tree at one error.
func (l *Language) mend(r *rng.Stream, t *Tree, e *shape.Error, keep bool) {
	about := l.about(t, e)
	// The error may ask for a missing key.
	if missing := l.missing(t, e, about); len(missing) > 0 && r.IntN(2) == 0 {
		m := missing[r.IntN(int64(len(missing)))]
		m.at.put(&node{key: m.key.name, text: m.key.draw(r)})
		return
	}
	if s := l.lacking(r, t, e); s != nil && r.IntN(2) == 0 {
		l.bring(r, t, s)
		return
	}
	if len(about) == 0 {
		return
	}
	x := about[r.IntN(int64(len(about)))]
	if k, known := l.keyAt(t.pathOf(x)); known && x.kind != mapping && r.IntN(2) == 0 {
		*x = node{key: x.key, text: k.draw(r)}
		return
	}
	if keep && l.protected(t, x) {
		return
	}
	if parent := t.parentOf(x); parent != nil && parent != t.root && r.IntN(6) == 0 &&
		(!keep || !l.protected(t, parent)) {
		x = parent
	}
	if t.parentOf(x) == t.root && slices.Contains(subjects, x.key) && r.IntN(12) > 0 {
		return
	}
	t.remove(x)
}

// subjects are the sections that define the kind of experiment; removing one rarely helps.
var subjects = []string{"ssd", "fabric", "workload", "targets", "flows", "object_cluster", "measure"}

// lacking picks a missing top-level section that the error names; nil if there is none.
func (l *Language) lacking(r *rng.Stream, t *Tree, e *shape.Error) *Section {
	var out []*Section
	for _, w := range pathWord.FindAllString(e.Msg, -1) {
		if s := l.byPath[w]; s != nil && s.Parent == l.Sections[0] && t.root.get(w) == nil {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[r.IntN(int64(len(out)))]
}

// protected reports whether a node contains a wanted section.
func (l *Language) protected(t *Tree, x *node) bool {
	for _, s := range t.kept {
		inside := false
		t.walk(func(path string, n, _ *node) {
			if n == x {
				at := l.Section(path)
				for p := s; p != nil; p = p.Parent {
					inside = inside || p == at
				}
			}
		})
		if inside {
			return true
		}
	}
	return false
}

// about lists the nodes at the error's position, and those that its text names.
func (l *Language) about(t *Tree, e *shape.Error) []*node {
	var out []*node
	t.walk(func(_ string, n, _ *node) {
		if n.line == e.At.Line {
			out = append(out, n)
		}
	})
	named := pathWord.FindAllString(index.ReplaceAllString(e.Msg, ""), -1)
	t.walk(func(path string, n, _ *node) {
		if n.key == "" || slices.Contains(out, n) {
			return
		}
		for _, w := range named {
			if w == path || strings.Contains(w, ".") && strings.HasSuffix(path, "."+w) ||
				w == n.key && len(w) > 3 && strings.Contains(w, "_") {
				out = append(out, n)
				return
			}
		}
	})
	return out
}

// gap is a missing key.
type gap struct {
	at  *node
	key key
}

// missing lists the keys that the error names and that the sections around it lack.
func (l *Language) missing(t *Tree, e *shape.Error, about []*node) []gap {
	words := map[string]bool{}
	for _, w := range pathWord.FindAllString(e.Msg, -1) {
		words[w[strings.LastIndexByte(w, '.')+1:]] = true
	}
	var out []gap
	seen := map[*node]bool{}
	for _, x := range about {
		for at := x; at != nil; at = t.parentOf(at) {
			if at.kind != mapping || seen[at] {
				continue
			}
			seen[at] = true
			s := l.Section(t.pathOf(at))
			if at == t.root {
				s = l.Sections[0]
			}
			if s == nil {
				continue
			}
			for _, k := range s.keys {
				if words[k.name] && at.get(k.name) == nil {
					out = append(out, gap{at, k})
				}
			}
		}
	}
	return out
}
