package shape

import (
	"fmt"
	"strings"

	"farflash/numeric/units"
)

// KeyChange is a key whose value differs between two texts. A value is "" where the key is absent.
type KeyChange struct{ Path, A, B string }

// Differences lists the keys that differ between two texts.
func Differences(a, b Source) ([]KeyChange, error) {
	first, err := Flatten(a.File, string(a.Text))
	if err != nil {
		return nil, err
	}
	second, err := Flatten(b.File, string(b.Text))
	if err != nil {
		return nil, err
	}
	index := map[string]string{}
	for _, x := range second {
		index[x.Path] = x.Text
	}
	var out []KeyChange
	seen := map[string]bool{}
	for _, x := range first {
		seen[x.Path] = true
		if index[x.Path] != x.Text {
			out = append(out, KeyChange{x.Path, x.Text, index[x.Path]})
		}
	}
	for _, x := range second {
		if !seen[x.Path] {
			out = append(out, KeyChange{x.Path, "", x.Text})
		}
	}
	return out, nil
}

// Value is a value in a text, and its path: "ssd.over_provisioning" and "7%". A list of scalars is one value, "[a, b]".
type Value struct{ Path, Text string }

// Flatten lists the values of a YAML text in order. file names it in errors.
func Flatten(file, text string) ([]Value, error) {
	n, err := Parse(file, []byte(text))
	if err != nil {
		return nil, err
	}
	var out []Value
	var walk func(n *Node, path string)
	walk = func(n *Node, path string) {
		switch n.Kind {
		case Mapping:
			for i, k := range n.Keys {
				walk(n.Items[i], units.JoinPath(path, k.Text))
			}
		case Sequence:
			scalars := []string{}
			for _, item := range n.Items {
				if item.Kind == Scalar {
					scalars = append(scalars, item.Text)
				}
			}
			if len(scalars) == len(n.Items) {
				out = append(out, Value{path, "[" + strings.Join(scalars, ", ") + "]"})
				return
			}
			for i, item := range n.Items {
				walk(item, fmt.Sprintf("%s[%d]", path, i))
			}
		default:
			out = append(out, Value{path, n.Text})
		}
	}
	walk(n, "")
	return out, nil
}
