package shape

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"farflash/numeric/units"
)

// Change is one --set: a path and the YAML text of its value.
type Change struct {
	Path, Value string
	Flag        string // replaces the file name in errors; "" is --set and its number
}

// ParseChange parses "path=value", the argument of --set.
func ParseChange(s string) (Change, error) {
	path, value, ok := strings.Cut(s, "=")
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return Change{}, fmt.Errorf("%q is not a path=value, such as ssd.over_provisioning=12%%", s)
	}
	return Change{Path: path, Value: strings.TrimSpace(value)}, nil
}

// step is one element of a path: a key with at most one index. A star selects every item.
type step struct {
	key   string
	index int // -1: none
	every bool
}

func parsePath(path string) ([]step, error) {
	var out []step
	for part := range strings.SplitSeq(path, ".") {
		s := step{index: -1}
		key, rest, indexed := strings.Cut(part, "[")
		s.key = key
		if indexed {
			in, ok := strings.CutSuffix(rest, "]")
			n, err := strconv.Atoi(in)
			switch {
			case ok && in == "*":
				s.every = true
			case ok && err == nil && n >= 0:
				s.index = n
			default:
				return nil, fmt.Errorf("%q is not an index; write [0] or [*]", "["+rest)
			}
		}
		if s.key == "" {
			return nil, fmt.Errorf("%q has an empty part; paths look like ssd.geometry.channels", path)
		}
		out = append(out, s)
	}
	return out, nil
}

// Apply makes the changes of the command line, in their order, on the nodes of a file of type t.
func (l *Language) Apply(top *Node, t reflect.Type, changes []Change) error {
	for i, c := range changes {
		place := c.Flag
		if place == "" {
			place = fmt.Sprintf("--set:%d", i+1)
		}
		if err := l.apply(top, t, place, c); err != nil {
			return err
		}
	}
	return nil
}

// apply sets the value at a path of the nodes of a file of type t. It creates absent sections; [*] and [0] on a value
// that is not a list select the value itself.
func (l *Language) apply(top *Node, t reflect.Type, file string, c Change) error {
	at := Position{file, 1, 1}
	steps, err := parsePath(c.Path)
	if err != nil {
		return Errors{{at, err.Error()}}
	}
	before := 0
	if c.Flag == "" {
		before = len(c.Path) + 1 // columns of the value count from the start of the whole argument
	}
	value, err := parseValue(file, c.Value)
	if wrong, ok := errors.AsType[Errors](err); ok {
		for _, e := range wrong {
			e.At.shift(before)
		}
	}
	if err != nil {
		return err
	}
	value.shift(before)
	if err := l.setAt(top, t, steps, at, value, ""); err != nil {
		return Errors{{at, err.Error()}}
	}
	return nil
}

// parseValue parses a value as it would follow a key.
func parseValue(file, text string) (*Node, error) {
	n, err := Parse(file, []byte("["+text+"]"))
	if err != nil || n.Kind != Sequence || len(n.Items) != 1 {
		if n, err = Parse(file, []byte(text)); err != nil {
			return nil, err
		}
		if n.Kind == Mapping && len(n.Keys) == 0 && blank([]byte(text)) {
			return &Node{At: Position{file, 1, 1}}, nil
		}
		return n, nil
	}
	v := n.Items[0]
	v.shift(-1)
	return v, nil
}

// shift moves a place on the first line.
func (p *Position) shift(by int) {
	if p.Line == 1 {
		p.Column += by
	}
}

// shift moves what of a node stands on the first line.
func (n *Node) shift(by int) {
	n.At.shift(by)
	for _, k := range n.Keys {
		k.shift(by)
	}
	for _, i := range n.Items {
		i.shift(by)
	}
}

// setAt descends from n, which is of type t, along the steps. t is nil where the path leaves the schema; decoding
// reports that.
func (l *Language) setAt(n *Node, t reflect.Type, steps []step, at Position, value *Node, path string) error {
	if n.Kind == Scalar {
		*n = Node{Kind: Mapping, At: n.At, Keys: l.expand(n, t), Items: l.valuesOf(n, t)}
	}
	if n.Kind != Mapping {
		return fmt.Errorf("%s is %v; say which item with [0] or [*]", l.name(path), n.Kind)
	}
	s := steps[0]
	inner := l.typeOfKey(t, s.key)
	path = units.JoinPath(path, s.key)
	child := n.Get(s.key)
	last := len(steps) == 1
	if last && s.index < 0 && !s.every {
		n.Put(&Node{At: at, Text: s.key}, value)
		return nil
	}
	if child == nil {
		child = &Node{Kind: Mapping, At: at}
		if s.index > 0 || inner != nil && inner.Kind() == reflect.Slice {
			return fmt.Errorf("%s has no item to change; give the whole list", path)
		}
		n.Put(&Node{At: at, Text: s.key}, child)
	}
	if child.Kind != Sequence {
		if s.index > 0 {
			return fmt.Errorf("%s has no item %d: it is a single one", path, s.index)
		}
		if last {
			n.Put(&Node{At: at, Text: s.key}, value)
			return nil
		}
		return l.setAt(child, inner, steps[1:], at, value, path)
	}
	if s.index < 0 && !s.every {
		return fmt.Errorf("%s is a list; say which item with %s[0] or %s[*]", path, path, path)
	}
	if s.index >= len(child.Items) {
		return fmt.Errorf("%s has no item %d; it has %d", path, s.index, len(child.Items))
	}
	if inner != nil && inner.Kind() == reflect.Slice {
		inner = inner.Elem()
	}
	for i, item := range child.Items {
		if !s.every && i != s.index {
			continue
		}
		if last {
			child.Items[i] = value
		} else if err := l.setAt(item, inner, steps[1:], at, value, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// typeOfKey returns the type of a struct's key, nil if there is none.
func (l *Language) typeOfKey(t reflect.Type, key string) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range l.fields(t) {
		if f.key == key {
			return f.typ
		}
	}
	return nil
}

// expand and valuesOf convert a section that is written as a single value, such as "ssd: src-ssd-a", to the mapping
// that it stands for.
func (l *Language) expand(n *Node, t reflect.Type) []*Node {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if key, ok := l.short(t); ok && !n.null() {
		return []*Node{{At: n.At, Text: key}}
	}
	return nil
}

func (l *Language) valuesOf(n *Node, t reflect.Type) []*Node {
	if l.expand(n, t) == nil {
		return nil
	}
	return []*Node{{At: n.At, Text: n.Text, Quoted: n.Quoted}}
}
