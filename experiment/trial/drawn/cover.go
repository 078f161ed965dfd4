package drawn

import (
	"fmt"
	"slices"
	"strings"

	"farflash/numeric/rng"
)

// Cover records which pairs of sections were run together.
type Cover struct {
	l     *Language
	order [][2]*Section // all pairs, in the order of the campaign
	index map[*Section]int
	seen  []bool // by pair: see at
}

// Cover starts a campaign in random order.
func (l *Language) Cover(r *rng.Stream) *Cover {
	c := &Cover{l: l, index: map[*Section]int{}}
	all := l.Sections[1:]
	for i, s := range all {
		c.index[s] = i
	}
	c.seen = make([]bool, len(all)*len(all))
	for i, a := range all {
		for _, b := range all[i:] { // the pair (a, a) is section a alone
			c.order = append(c.order, [2]*Section{a, b})
		}
	}
	for i := len(c.order) - 1; i > 0; i-- {
		j := int(r.IntN(int64(i + 1)))
		c.order[i], c.order[j] = c.order[j], c.order[i]
	}
	// Single sections first.
	slices.SortStableFunc(c.order, func(a, b [2]*Section) int { return alone(a) - alone(b) })
	return c
}

func alone(p [2]*Section) int {
	if p[0] == p[1] {
		return 0
	}
	return 1
}

// Pair returns the sections for draw n: each section alone, then each pair, then from the start. It depends on n only,
// so a single draw can be repeated.
func (c *Cover) Pair(n int) []*Section {
	p := c.order[n%len(c.order)]
	if p[0] == p[1] {
		return p[:1]
	}
	return p[:]
}

// Again lists, for a round of 1 and above, the draws of the sections that were never run, each alone, on streams that
// no earlier round used.
func (c *Cover) Again(round int) []int {
	var out []int
	for i, p := range c.order[:len(c.index)] {
		if !c.seen[c.at(p[0], p[0])] {
			out = append(out, round*len(c.order)+i)
		}
	}
	return out
}

func (c *Cover) at(a, b *Section) int {
	i, j := c.index[a], c.index[b]
	return min(i, j)*len(c.index) + max(i, j)
}

// Ran records the sections of a scenario that was run.
func (c *Cover) Ran(t *Tree) {
	have := t.Sections(c.l)[1:]
	for i, a := range have {
		for _, b := range have[i:] {
			c.seen[c.at(a, b)] = true
		}
	}
}

// Missing lists the sections that were never run.
func (c *Cover) Missing() []string {
	var out []string
	for _, s := range c.l.Sections[1:] {
		if !c.seen[c.at(s, s)] {
			out = append(out, s.Path)
		}
	}
	return out
}

// String summarises the coverage.
func (c *Cover) String() string {
	pairs, sections := 0, len(c.index)-len(c.Missing())
	for _, s := range c.seen {
		if s {
			pairs++
		}
	}
	s := fmt.Sprintf("%d of %d sections, %d of %d pairs of sections", sections, len(c.index), pairs-sections,
		len(c.order)-len(c.index))
	if m := c.Missing(); len(m) > 0 {
		s += "; not " + strings.Join(m, ", ")
	}
	return s
}
