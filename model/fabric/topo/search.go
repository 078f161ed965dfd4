package topo

import (
	"cmp"
	"slices"
)

// search is the state of Route while it computes.
type search struct {
	r     *Routes
	first []int32 // of each node in arcs, plus one entry at the end
	arcs  []arc   // by node, then by peer and port

	cost   []uint64 // of each node, to the current class
	order  []int32  // the nodes in the order in which the search visited them
	near   []item   // queue of nodes reached over a link; in order of cost, as the visited nodes are
	far    []item   // queue of nodes reached over a global link, likewise
	counts []int32
	found  []Hop
	list   []Hop
	key    []byte
	seen   map[string]uint32 // index in Routes.hops of each list of hops
	before []row             // of each node: its hops to the previous class, which are mostly those to the next
}

func (s *search) of(node int32) []arc { return s.arcs[s.first[node]:s.first[node+1]] }

// link builds the arcs of the links that are up.
func (s *search) link() {
	g := s.r.graph
	s.first = make([]int32, len(g.Nodes)+1)
	s.arcs = make([]arc, 0, 2*len(g.Links))
	for i := range g.Nodes {
		from := len(s.arcs)
		for _, p := range s.r.ports.of(int32(i)) {
			if !s.r.up(p.link) {
				continue
			}
			l := &g.Links[p.link]
			a := arc{p.peer, s.r.ports.Number(p.link, l.A == p.peer), perHop}
			if l.Global {
				a.cost = perGlobal
			}
			s.arcs = append(s.arcs, a)
		}
		slices.SortFunc(s.arcs[from:], func(a, b arc) int {
			if c := cmp.Compare(a.peer, b.peer); c != 0 {
				return c
			}
			return cmp.Compare(a.port, b.port)
		})
		s.first[i+1] = int32(len(s.arcs))
	}
}

// drop removes the arcs to hosts with a single link: no path leads through those.
func (s *search) drop() {
	kept := s.arcs[:0]
	from := int32(0)
	for i := range s.r.graph.Nodes {
		to := s.first[i+1]
		for _, a := range s.arcs[from:to] {
			// The arcs of such hosts themselves are kept too: they show where a class starts.
			if s.r.alone[a.peer] < 0 {
				kept = append(kept, a)
			}
		}
		from = to
		s.first[i+1] = int32(len(kept))
	}
	s.arcs = kept
}

// run fills the rows of a class. All members have the same neighbours, so it searches from one node that stands for all
// of them.
func (s *search) run(class int) {
	r := s.r
	for i := range s.cost {
		s.cost[i] = noPath
	}
	clear(s.counts)
	s.order = s.order[:0]
	origin := r.members[class][0]
	for _, l := range r.last[r.lastFirst[origin]:r.lastFirst[origin+1]] {
		s.reach(l.neighbour, perHop, false)
	}
	for i, j := 0, 0; i < len(s.near) || j < len(s.far); {
		var it item
		if j == len(s.far) || i < len(s.near) && s.near[i].before(&s.far[j]) {
			it = s.near[i]
			i++
		} else {
			it = s.far[j]
			j++
		}
		if it.cost != s.cost[it.node] {
			continue // a better path was found since
		}
		s.order = append(s.order, it.node)
		for _, a := range s.of(it.node) {
			if to := it.cost + a.cost; to < s.cost[a.peer] {
				s.reach(a.peer, to, a.cost != perHop)
			}
		}
	}
	s.near, s.far = s.near[:0], s.far[:0]
	s.fill(class)
}

// reach records a better path to a node, and queues the node unless it is a host.
func (s *search) reach(node int32, cost uint64, global bool) {
	s.cost[node] = cost
	if s.r.graph.Nodes[node].Kind != Switch {
		return
	}
	it := item{cost, uint32(len(s.near) + len(s.far)), node}
	if global {
		s.far = append(s.far, it)
	} else {
		s.near = append(s.near, it)
	}
}

// fill collects and stores every node's next hops, in the order of the search.
func (s *search) fill(class int) {
	r := s.r
	for _, now := range s.order {
		for _, a := range s.of(now) {
			if s.cost[a.peer] == s.cost[now]+a.cost {
				s.counts[a.peer+1]++
			}
		}
	}
	for i := range r.graph.Nodes {
		s.counts[i+1] += s.counts[i]
	}
	s.found = slices.Grow(s.found[:0], int(s.counts[len(r.graph.Nodes)]))[:s.counts[len(r.graph.Nodes)]]
	channels := r.graph.channels()
	for _, now := range s.order {
		for _, a := range s.of(now) {
			if cost := s.cost[now] + a.cost; s.cost[a.peer] == cost {
				ahead := int(min(cost>>32, uint64(channels-1)))
				s.found[s.counts[a.peer]] = Hop{a.port, uint8(channels - 1 - ahead)}
				s.counts[a.peer]++
			}
		}
	}
	from := int32(0)
	rows := r.rows[class*r.columns:][:r.columns]
	for i := range r.graph.Nodes {
		if r.alone[i] >= 0 {
			continue
		}
		w := &rows[r.column[i]]
		w.distance = far
		if s.cost[i] == noPath {
			continue
		}
		w.distance = uint16(s.cost[i])
		list := s.found[from:s.counts[i]]
		from = s.counts[i]
		if b := &s.before[i]; slices.Equal(r.hopsOf(b), list) {
			w.first, w.count = b.first, b.count
		} else {
			w.first, w.count = s.intern(list)
			*b = *w
		}
	}
}

// intern stores each distinct list of hops once.
func (s *search) intern(list []Hop) (first uint32, count uint16) {
	s.key = s.key[:0]
	for _, h := range list {
		s.key = append(s.key, byte(h.Port), byte(h.Port>>8), h.Channel)
	}
	first, ok := s.seen[string(s.key)]
	if !ok {
		first = uint32(len(s.r.hops))
		s.r.hops = append(s.r.hops, list...)
		s.seen[string(s.key)] = first
	}
	return first, uint16(len(list))
}

// item is a node that can be reached at a cost. Nodes are ordered by cost, and then by when they were reached. A FIFO
// queue for each cost that a link can have is in that order without sorting.
type item struct {
	cost  uint64
	order uint32
	node  int32
}

func (a *item) before(b *item) bool { return a.cost < b.cost || a.cost == b.cost && a.order < b.order }
