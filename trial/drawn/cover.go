package drawn

import (
	"fmt"
	"slices"
	"strings"

	"farflash/rng"
)

// Cover is which pairs of sections have come up together in scenarios that were run.
type Cover struct {
	l     *Language
	order [][2]*Section // all pairs, as they are to be tried
	index map[*Section]int
	seen  []bool // of a pair, at the number of one section times all sections and the number of the other
}

// Cover begins to count; the order in which pairs are asked for is drawn.
func (l *Language) Cover(r *rng.Stream) *Cover {
	c := &Cover{l: l, index: map[*Section]int{}}
	all := l.Sections[1:]
	for i, s := range all {
		c.index[s] = i
	}
	c.seen = make([]bool, len(all)*len(all))
	for i, a := range all {
		for _, b := range all[i:] { // a section beside itself is the section alone
			c.order = append(c.order, [2]*Section{a, b})
		}
	}
	for i := len(c.order) - 1; i > 0; i-- {
		j := int(r.IntN(int64(i + 1)))
		c.order[i], c.order[j] = c.order[j], c.order[i]
	}
	// Every section comes before every pair.
	slices.SortStableFunc(c.order, func(a, b [2]*Section) int { return alone(a) - alone(b) })
	return c
}

func alone(p [2]*Section) int {
	if p[0] == p[1] {
		return 0
	}
	return 1
}

// Pair is what draw number n is to have: first each section alone, then each pair, then from the beginning. It depends on n alone, so that a draw can be made again by itself.
func (c *Cover) Pair(n int) []*Section {
	p := c.order[n%len(c.order)]
	if p[0] == p[1] {
		return p[:1]
	}
	return p[:]
}

func (c *Cover) at(a, b *Section) int {
	i, j := c.index[a], c.index[b]
	return min(i, j)*len(c.index) + max(i, j)
}

// Ran counts the sections of a tree that was run.
func (c *Cover) Ran(t *Tree) {
	have := t.Sections(c.l)[1:]
	for i, a := range have {
		for _, b := range have[i:] {
			c.seen[c.at(a, b)] = true
		}
	}
}

// Missing lists the sections that never came up.
func (c *Cover) Missing() []string {
	var out []string
	for _, s := range c.l.Sections[1:] {
		if !c.seen[c.at(s, s)] {
			out = append(out, s.Path)
		}
	}
	return out
}

// String says how much came up.
func (c *Cover) String() string {
	pairs, sections := 0, len(c.index)-len(c.Missing())
	for _, s := range c.seen {
		if s {
			pairs++
		}
	}
	s := fmt.Sprintf("%d of %d sections, %d of %d pairs of sections", sections, len(c.index), pairs-sections, len(c.order)-len(c.index))
	if m := c.Missing(); len(m) > 0 {
		s += "; not " + strings.Join(m, ", ")
	}
	return s
}
