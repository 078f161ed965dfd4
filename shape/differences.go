package shape

import (
	"fmt"
	"strings"

	"farflash/units"
)

// KeyChange is a key whose value differs between two texts. A value is
// "" where the key is absent.
type KeyChange struct{ Path, A, B string }

// Differences lists the keys that differ between two texts.
func Differences(a, b string) ([]KeyChange, error) {
	first, err := flatten("a.yaml", a)
	if err != nil {
		return nil, err
	}
	second, err := flatten("b.yaml", b)
	if err != nil {
		return nil, err
	}
	index := map[string]string{}
	for _, x := range second {
		index[x[0]] = x[1]
	}
	var out []KeyChange
	seen := map[string]bool{}
	for _, x := range first {
		seen[x[0]] = true
		if index[x[0]] != x[1] {
			out = append(out, KeyChange{x[0], x[1], index[x[0]]})
		}
	}
	for _, x := range second {
		if !seen[x[0]] {
			out = append(out, KeyChange{x[0], "", x[1]})
		}
	}
	return out, nil
}

// flatten lists the paths and values of a YAML text in order.
func flatten(file, text string) ([][2]string, error) {
	n, err := Parse(file, []byte(text))
	if err != nil {
		return nil, err
	}
	var out [][2]string
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
				out = append(out, [2]string{path, "[" + strings.Join(scalars, ", ") + "]"})
				return
			}
			for i, item := range n.Items {
				walk(item, fmt.Sprintf("%s[%d]", path, i))
			}
		default:
			out = append(out, [2]string{path, n.Text})
		}
	}
	walk(n, "")
	return out, nil
}
