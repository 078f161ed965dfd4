package scenario

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// ParseChange reads "path=value", as --set takes it.
func ParseChange(s string) (Change, error) {
	path, value, ok := strings.Cut(s, "=")
	path = strings.TrimSpace(path)
	if !ok || path == "" {
		return Change{}, fmt.Errorf("%q is no path=value, such as ssd.over_provisioning=12%%", s)
	}
	return Change{Path: path, Value: strings.TrimSpace(value)}, nil
}

// step is a part of a path: a key with at most one index. A star is every item.
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
				return nil, fmt.Errorf("%q is no index; write [0] or [*]", "["+rest)
			}
		}
		if s.key == "" {
			return nil, fmt.Errorf("%q has an empty part; paths look like ssd.geometry.channels", path)
		}
		out = append(out, s)
	}
	return out, nil
}

// applyChange sets the value at a path of the nodes of a scenario or document of type t. Sections that are not
// there yet are made; [*] and [0] on what is not a list are the thing itself.
func applyChange(top *node, t reflect.Type, file string, c Change) error {
	at := Position{file, 1, 1}
	steps, err := parsePath(c.Path)
	if err != nil {
		return Errors{{at, err.Error()}}
	}
	value, err := parseYAMLValue(file, c.Value)
	if err != nil {
		return err
	}
	if c.Flag == "" {
		// Columns of the value count from the start of the whole argument.
		value.shift(len(c.Path) + 1)
	}
	if err := setAt(top, t, steps, at, value, ""); err != nil {
		return Errors{{at, err.Error()}}
	}
	return nil
}

// parseYAMLValue reads a value as it would stand behind a key.
func parseYAMLValue(file, text string) (*node, error) {
	n, err := parseYAML(file, []byte("["+text+"]"))
	if err != nil || n.kind != sequenceNode || len(n.items) != 1 {
		if n, err = parseYAML(file, []byte(text)); err != nil {
			return nil, err
		}
		if n.kind == mappingNode && len(n.keys) == 0 && blank([]byte(text)) {
			return &node{at: Position{file, 1, 1}}, nil
		}
		return n, nil
	}
	v := n.items[0]
	v.shift(-1)
	return v, nil
}

// shift moves the columns of a node on the first line.
func (n *node) shift(by int) {
	if n.at.Line == 1 {
		n.at.Column += by
	}
	for _, k := range n.keys {
		k.shift(by)
	}
	for _, i := range n.items {
		i.shift(by)
	}
}

// setAt goes from n, which is of type t, along the steps. t is nil where the path
// leads out of the schema; decoding will say so.
func setAt(n *node, t reflect.Type, steps []step, at Position, value *node, path string) error {
	if n.kind == scalarNode {
		*n = node{kind: mappingNode, at: n.at, keys: expand(n, t), items: valuesOf(n, t)}
	}
	if n.kind != mappingNode {
		return fmt.Errorf("%s is %v; say which item with [0] or [*]", name(path), n.kind)
	}
	s := steps[0]
	inner := typeOfKey(t, s.key)
	path = joinPath(path, s.key)
	child := n.get(s.key)
	last := len(steps) == 1
	if last && s.index < 0 && !s.every {
		n.put(&node{at: at, text: s.key}, value)
		return nil
	}
	if child == nil {
		child = &node{kind: mappingNode, at: at}
		if s.index > 0 || inner != nil && inner.Kind() == reflect.Slice {
			return fmt.Errorf("%s has no item to change; give the whole list", path)
		}
		n.put(&node{at: at, text: s.key}, child)
	}
	if child.kind != sequenceNode {
		if s.index > 0 {
			return fmt.Errorf("%s has no item %d: it is a single one", path, s.index)
		}
		if last {
			n.put(&node{at: at, text: s.key}, value)
			return nil
		}
		return setAt(child, inner, steps[1:], at, value, path)
	}
	if s.index < 0 && !s.every {
		return fmt.Errorf("%s is a list; say which item with %s[0] or %s[*]", path, path, path)
	}
	if s.index >= len(child.items) {
		return fmt.Errorf("%s has no item %d; it has %d", path, s.index, len(child.items))
	}
	if inner != nil && inner.Kind() == reflect.Slice {
		inner = inner.Elem()
	}
	for i, item := range child.items {
		if !s.every && i != s.index {
			continue
		}
		if last {
			child.items[i] = value
		} else if err := setAt(item, inner, steps[1:], at, value, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// typeOfKey is the type of a struct's key, nil if there is none.
func typeOfKey(t reflect.Type, key string) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for _, f := range fieldsOf(t) {
		if f.key == key {
			return f.typ
		}
	}
	return nil
}

// expand and valuesOf turn a section that is written as a single value, such as
// "ssd: src-ssd-a", into the mapping it stands for.
func expand(n *node, t reflect.Type) []*node {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if key, ok := shorthand[t]; ok && !n.null() {
		return []*node{{at: n.at, text: key}}
	}
	return nil
}

func valuesOf(n *node, t reflect.Type) []*node {
	if expand(n, t) == nil {
		return nil
	}
	return []*node{{at: n.at, text: n.text, quoted: n.quoted}}
}
