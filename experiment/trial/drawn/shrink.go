package drawn

import (
	"slices"
	"strconv"
)

// Shrink minimises a failing tree: it removes nodes, largest first, and halves numbers, until no change helps or fails
// has been called most times.
func Shrink(t *Tree, most int, fails func(text string) bool) *Tree {
	asked := 0
	try := func(change func(*Tree) bool) bool {
		if asked >= most {
			return false
		}
		c := t.clone()
		if !change(c) {
			return false
		}
		asked++
		if !fails(c.Text()) {
			return false
		}
		t = c
		return true
	}
	for again := true; again && asked < most; {
		again = false
		// Large subtrees first.
		for i := 0; i < len(bySize(t)); {
			if try(func(c *Tree) bool { c.remove(bySize(c)[i]); return true }) {
				again = true
			} else {
				i++
			}
		}
		for i := range bySize(t) {
			if try(func(c *Tree) bool { return smaller(bySize(c)[i]) }) {
				again = true
			}
		}
	}
	return t
}

// bySize lists the nodes, largest subtree first.
func bySize(t *Tree) []*node {
	var all []*node
	t.walk(func(_ string, n, _ *node) { all = append(all, n) })
	slices.SortStableFunc(all, func(a, b *node) int { return weight(b) - weight(a) })
	return all
}

func weight(n *node) int {
	w := 1
	for _, k := range n.kids {
		w += weight(k)
	}
	return w
}

// smaller halves a whole number.
func smaller(n *node) bool {
	v, err := strconv.ParseInt(n.text, 10, 64)
	if n.kind != scalar || err != nil || v < 2 {
		return false
	}
	n.text = strconv.FormatInt(v/2, 10)
	return true
}
