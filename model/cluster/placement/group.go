package placement

import (
	"cmp"
	"farflash/numeric/rng"
	"fmt"
	"math"
	"slices"
)

// Group hashes a chunk to a negotiating group, within which Replicast's targets bid for
// it. Which members store it is the protocol's business; Place stands for a protocol
// that always takes the same ones.
//
// Groups are as large as asked for and fixed by the targets' numbers: neighbours without
// failure domains, one target from each domain in turn with them. A target out of use
// leaves a hole in its group. Chunks find their groups by rendezvous hashing over the
// groups, by weight, where SURGE takes the chunk's number modulo theirs: so a new group
// takes only its share of the chunks, and the runner-up is a second candidate for
// protocols that ask two groups.
type Group struct {
	view
	size    int
	first   []int32 // of each group: where its members begin; one more at the end
	member  []int32 // those in use, group after group
	seed    []uint64
	weights []float64 // of member[i]
	group   []float64 // weights of groups
	seeds   []uint64  // of groups
	room    int
	score   []float64
}

// NewGroup divides the targets, in use or not, into groups of the size, which must
// divide their number.
func NewGroup(m Map, size int) (*Group, error) {
	v, err := newView(m)
	if err != nil {
		return nil, err
	}
	all := len(v.weight)
	switch {
	case size < 1:
		return nil, fmt.Errorf("a negotiating group of %d targets is none; it takes at least 1", size)
	case all%size != 0:
		return nil, fmt.Errorf("%d targets do not divide into negotiating groups of %d; take %d targets or %d", all,
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

// Groups is how many there are, those without a target in use included.
func (p *Group) Groups() int { return len(p.group) }

// Size is how many targets a group has if all are in use.
func (p *Group) Size() int { return p.size }

// Members are a group's targets in use. They must not be changed.
func (p *Group) Members(group int) []int32 { return p.member[p.first[group]:p.first[group+1]] }

// Candidates are the chunk's group and a second one, -1 if there is no other.
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

// Most implements Placer: what every group has room for.
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
