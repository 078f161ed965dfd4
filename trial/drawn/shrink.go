package drawn

import (
	"slices"
	"strconv"
)

// Shrink looks for a smaller tree that still fails: it takes out what can go, from large to small, and makes numbers smaller, until nothing helps or fails was asked so many
// times.
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
		// Nodes in the order of their size: a section that can go takes all that is in it along.
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

// bySize lists the nodes, those with the most below them first.
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
