package placement

import (
	"cmp"
	"farflash/numeric/rng"
	"fmt"
	"math"
	"slices"
)

// Group hashes a chunk to a negotiating group, within which Replicast's targets bid for it. The protocol decides which
// members store it; Place stands for a protocol that always chooses the same ones.
//
// Groups have the requested size and are fixed by the targets' numbers: without failure domains they are consecutive
// targets, with domains they take one target from each domain in turn. A target out of use leaves a hole in its group.
// Chunks find their groups by weighted rendezvous hashing over the groups, where SURGE takes the chunk's number modulo
// the number of groups: so a new group takes only its share of the chunks, and the runner-up is a second candidate for
// protocols that ask two groups.
type Group struct {
	view
	size    int
	first   []int32 // index of each group's first member, and the number of members at the end
	member  []int32 // targets in use, group by group
	seed    []uint64
	weights []float64 // parallel to member
	group   []float64 // weights of groups
	seeds   []uint64  // seeds of groups
	room    int
	score   []float64
}

// NewGroup divides the targets, in use or not, into groups of the given size, which must divide their number.
func NewGroup(m Map, size int) (*Group, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	all := len(v.weight)
	switch {
	case size < 1:
		return nil, fmt.Errorf("a negotiating group of %d targets is not possible; use at least 1", size)
	case all%size != 0:
		return nil, fmt.Errorf("%d targets do not divide into negotiating groups of %d; use %d targets or %d", all,
			size, all-all%size, all-all%size+size)
	}
	order, rank, seen := make([]int32, all), make([]int32, all), map[int32]int32{}
	for i := range order {
		order[i] = int32(i)
		rank[i] = seen[v.domain[i]]
		seen[v.domain[i]]++
	}
	if !v.flat {
		slices.SortFunc(order, func(a, b int32) int {
			return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(v.domain[a], v.domain[b]))
		})
	}
	p := &Group{view: v, size: size, room: math.MaxInt}
	for g := range all / size {
		p.first = append(p.first, int32(len(p.member)))
		weight, domains := 0.0, map[int32]bool{}
		for _, t := range order[g*size : (g+1)*size] {
			if w := v.weight[t]; w > 0 {
				p.member, p.seed, p.weights = append(p.member, t), append(p.seed, rng.Mix(uint64(t)+1)),
					append(p.weights, w)
				weight += w
				domains[v.domain[t]] = true
			}
		}
		p.group, p.seeds = append(p.group, weight), append(p.seeds, rng.Mix(^uint64(g)))
		if weight > 0 {
			p.room = min(p.room, len(domains))
		}
	}
	p.first = append(p.first, int32(len(p.member)))
	return p, nil
}

// Groups returns the number of groups, including those without a target in use.
func (p *Group) Groups() int { return len(p.group) }

// Size returns the number of targets in a group if all are in use.
func (p *Group) Size() int { return p.size }

// Members returns a group's targets in use. The caller must not modify them.
func (p *Group) Members(group int) []int32 { return p.member[p.first[group]:p.first[group+1]] }

// Candidates returns the chunk's group and the runner-up, -1 if there is none.
func (p *Group) Candidates(chunk uint64) (first, second int) {
	first, second = -1, -1
	key := attempt(chunk, 0)
	least, next := math.Inf(1), math.Inf(1)
	for g, w := range p.group {
		u := open(rng.Mix(key ^ p.seeds[g]))
		// As in HRW. A group of weight 0 never has a finite score.
		if w == 0 || 1-u >= next*w {
			continue
		}
		switch s := -rng.Log(u) / w; {
		case s < least:
			second, next, first, least = first, least, g, s
		case s < next:
			second, next = g, s
		}
	}
	return first, second
}

// Most implements Placer: the number of copies that every group has space for.
func (p *Group) Most() int { return p.room }

// Place implements Placer: rendezvous hashing within the chunk's group.
func (p *Group) Place(chunk uint64, n int, out []int32) []int32 {
	demand(n, p.room)
	g, _ := p.Candidates(chunk)
	from, to := p.first[g], p.first[g+1]
	out, p.score = p.rendezvous(attempt(chunk, 1), p.member[from:to], p.seed[from:to], p.weights[from:to], n, out,
		p.score[:0])
	return out
}
