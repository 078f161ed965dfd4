package topo

import (
	"math/bits"
	"slices"
)

// Cycle finds a cycle of links, each with its channel and in order, in which every link waits for the next one, over
// all paths between all hosts: pausing can deadlock there, and without one cannot (Dally and Seitz, 1987). nil: none.
func (g *Graph) Cycle(r *Routes) []Directed {
	if g.upThenDown(r) {
		return nil
	}
	return g.search(r)
}

// search is Cycle without the shortcut for graphs that upThenDown accepts.
func (g *Graph) search(r *Routes) []Directed {
	w := newWaits(g, r)
	for class := range r.members {
		w.add(class)
	}
	return w.cycle()
}

// upThenDown reports whether every link leads up or down, by the distance of its switches from the nearest host, and no
// path that goes down goes up again. Then a wait for a link going up comes only from links below it that go up, so no
// cycle closes (up*/down* routing, Schroeder et al., 1991). This holds in trees and Clos networks that have lost no
// link, and is much faster to check than building the graph of waits.
func (g *Graph) upThenDown(r *Routes) bool {
	level, ok := g.levels(r)
	if !ok {
		return false
	}
	// For each switch: whether any of its hops to the class leads up, and whether any leads down. Mostly the hops are
	// those to the previous class, so the result is reused.
	type way struct {
		first    uint32
		count    uint16
		up, down bool
	}
	ways := make([]way, len(g.Nodes))
	for class := range r.members {
		rows := r.rows[class*r.columns:][:r.columns]
		for i := range ways {
			if level[i] == 0 {
				continue
			}
			x, w := &rows[r.column[i]], &ways[i]
			if x.first == w.first && x.count == w.count {
				continue
			}
			*w = way{first: x.first, count: x.count}
			for _, hop := range r.hopsOf(x) {
				peer := level[r.ports.of(int32(i))[hop.Port].peer]
				w.up = w.up || peer > level[i]
				w.down = w.down || peer != 0 && peer < level[i]
			}
		}
		for i := range ways {
			if !ways[i].down {
				continue
			}
			for _, hop := range r.hopsOf(&rows[r.column[i]]) {
				if p := r.ports.of(int32(i))[hop.Port].peer; level[p] != 0 && level[p] < level[i] && ways[p].up {
					return false
				}
			}
		}
	}
	return true
}

// levels returns each switch's distance from the nearest host in links, 0 for hosts. ok is false if a link connects
// switches of the same distance, or if a switch cannot reach a host.
func (g *Graph) levels(r *Routes) (level []int32, ok bool) {
	const none = -1
	level = make([]int32, len(g.Nodes))
	var queue []int32
	for i := range g.Nodes {
		if g.Nodes[i].Kind == Host {
			queue = append(queue, int32(i))
		} else {
			level[i] = none
		}
	}
	for k := 0; k < len(queue); k++ {
		node := queue[k]
		for _, p := range r.ports.of(node) {
			if r.up(p.link) && level[p.peer] == none {
				level[p.peer] = level[node] + 1
				queue = append(queue, p.peer)
			}
		}
	}
	if len(queue) < len(g.Nodes) {
		return nil, false
	}
	for i, l := range g.Links {
		if r.up(int32(i)) && level[l.A] == level[l.B] && level[l.A] != 0 {
			return nil, false
		}
	}
	return level, true
}

// waits is the graph of which link and channel waits for which. Links of hosts are not in it: no link waits for one
// that leaves a host, and a link that enters a host waits for none.
//
// A lane is a channel of a link that leads from switch to switch. The lanes that enter a switch and those that leave it
// are each numbered from 0, by port and channel.
type waits struct {
	g        *Graph
	r        *Routes
	channels int
	first    []int32 // of each node: its first lane, plus one entry at the end
	// of each port of each node, in the order of Ports: its first lane, from 0 in its node; -1 if the link ends at a
	// host
	slot  []int32
	after [][]uint64 // of each node: a row of bits for each lane that enters it, with a bit for each lane that leaves

	order    []int32 // nodes by decreasing distance
	counts   []int32
	live     []bool     // nodes that forward packets to the current class
	entering [][]uint64 // of each node: lanes over which packets to the current class enter
	mask     []uint64
	fed      []int32 // of each switch: number of its hosts with no other switch
	spread   []int32 // hosts with several links
}

func newWaits(g *Graph, r *Routes) *waits {
	n := len(g.Nodes)
	w := &waits{g: g, r: r, channels: g.channels(), first: make([]int32, n+1), slot: make([]int32, len(r.ports.list)),
		after: make([][]uint64, n), live: make([]bool, n), entering: make([][]uint64, n), fed: make([]int32, n)}
	for i := range g.Nodes {
		node := int32(i)
		lanes := int32(0)
		for k, p := range r.ports.of(node) {
			at := &w.slot[r.ports.first[i]+int32(k)]
			*at = -1
			if g.Nodes[i].Kind == Switch && g.Nodes[p.peer].Kind == Switch && r.up(p.link) {
				*at = lanes
				lanes += int32(w.channels)
			}
		}
		w.first[i+1] = w.first[i] + lanes
		words := w.words(node)
		w.after[i] = make([]uint64, int(lanes)*words)
		w.entering[i] = make([]uint64, words)
		w.mask = slices.Grow(w.mask[:0], words)
		if g.Nodes[i].Kind != Host {
			continue
		}
		if r.alone[i] < 0 {
			w.spread = append(w.spread, node)
			continue
		}
		for _, p := range r.ports.of(node) {
			if r.up(p.link) {
				w.fed[p.peer]++
			}
		}
	}
	return w
}

// words returns the number of words that hold a bit for each lane of a node.
func (w *waits) words(node int32) int { return int(w.first[node+1]-w.first[node]+63) / 64 }

// lane returns the number of a port's channel within its node.
func (w *waits) lane(node int32, port uint16, channel uint8) int32 {
	return w.slot[w.r.ports.first[node]+int32(port)] + int32(channel)
}

// add adds the waits of packets to a class's hosts, which are all reached over the same paths.
func (w *waits) add(class int) {
	r := w.r
	rows := r.rows[class*r.columns:][:r.columns]
	clear(w.live)
	for i := range w.entering {
		clear(w.entering[i])
	}
	// The members count as senders to themselves too. That adds no wait: their switches deliver to them directly.
	for i, n := range w.fed {
		w.live[i] = n > 0
	}
	for _, h := range w.spread {
		for _, hop := range r.hopsOf(&rows[r.column[h]]) {
			w.live[r.ports.of(h)[hop.Port].peer] = true
		}
	}
	w.sort(rows)
	for _, node := range w.order {
		if !w.live[node] {
			continue
		}
		mask := w.mask[:w.words(node)]
		clear(mask)
		for _, hop := range r.hopsOf(&rows[r.column[node]]) {
			out := w.lane(node, hop.Port, hop.Channel)
			mask[out/64] |= 1 << (out % 64)
			p := r.ports.of(node)[hop.Port]
			w.live[p.peer] = true
			in := w.lane(p.peer, r.ports.Number(p.link, w.g.Links[p.link].A == p.peer), hop.Channel)
			w.entering[p.peer][in/64] |= 1 << (in % 64)
		}
		for i, word := range w.entering[node] {
			for ; word != 0; word &= word - 1 {
				row := w.after[node][(i*64+bits.TrailingZeros64(word))*len(mask):][:len(mask)]
				for k, m := range mask {
					row[k] |= m
				}
			}
		}
	}
}

// hopsOf returns the next hops of a row, none where the destination is next.
func (r *Routes) hopsOf(w *row) []Hop { return r.hops[w.first : w.first+uint32(w.count)] }

// sort orders the switches that have a path by decreasing distance, so that each is visited after all switches that
// send to it.
func (w *waits) sort(rows []row) {
	most := 0
	for i := range w.g.Nodes {
		if d := rows[w.r.column[i]].distance; w.g.Nodes[i].Kind == Switch && d != far {
			most = max(most, int(d))
		}
	}
	w.counts = slices.Grow(w.counts[:0], most+2)[:most+2]
	clear(w.counts)
	each := func(do func(node int32, behind int)) {
		for i := range w.g.Nodes {
			if d := rows[w.r.column[i]].distance; w.g.Nodes[i].Kind == Switch && d != far {
				do(int32(i), most-int(d))
			}
		}
	}
	each(func(_ int32, behind int) { w.counts[behind+1]++ })
	for i := range most + 1 {
		w.counts[i+1] += w.counts[i]
	}
	w.order = slices.Grow(w.order[:0], int(w.counts[most+1]))[:w.counts[most+1]]
	each(func(node int32, behind int) {
		w.order[w.counts[behind]] = node
		w.counts[behind]++
	})
}

// cycle searches depth first for a lane that waits for itself.
func (w *waits) cycle() []Directed {
	const (
		untouched = iota
		open
		done
	)
	type visit struct {
		lane Directed
		in   []uint64 // the lanes that follow and have not been visited yet
	}
	state := make([]uint8, w.first[len(w.g.Nodes)])
	var stack []visit
	number := func(d Directed) int32 {
		return w.first[d.From] + w.lane(d.From, w.r.ports.Number(d.Link, w.g.Links[d.Link].A == d.From), d.Channel)
	}
	enter := func(d Directed) {
		state[number(d)] = open
		in := int(w.lane(d.To, w.r.ports.Number(d.Link, w.g.Links[d.Link].A == d.To), d.Channel))
		words := w.words(d.To)
		stack = append(stack, visit{d, slices.Clone(w.after[d.To][in*words:][:words])})
	}
	for i := range w.g.Nodes {
		for k, p := range w.r.ports.of(int32(i)) {
			if w.slot[int(w.r.ports.first[i])+k] < 0 {
				continue
			}
			for c := range w.channels {
				if root := (Directed{p.link, int32(i), p.peer, uint8(c)}); state[number(root)] == untouched {
					enter(root)
				}
				for len(stack) > 0 {
					top := &stack[len(stack)-1]
					next, ok := w.take(top.lane.To, top.in)
					if !ok {
						state[number(top.lane)] = done
						stack = stack[:len(stack)-1]
						continue
					}
					switch state[number(next)] {
					case untouched:
						enter(next)
					case open:
						var out []Directed
						for _, v := range stack {
							if v.lane == next || len(out) > 0 {
								out = append(out, v.lane)
							}
						}
						return out
					}
				}
			}
		}
	}
	return nil
}

// take removes and returns the first lane of a set of lanes that leave a node.
func (w *waits) take(node int32, set []uint64) (Directed, bool) {
	for i, word := range set {
		if word == 0 {
			continue
		}
		set[i] = word & (word - 1)
		lane := int32(i*64 + bits.TrailingZeros64(word))
		for k, p := range w.r.ports.of(node) {
			if at := w.slot[int(w.r.ports.first[node])+k]; at >= 0 && lane >= at && lane < at+int32(w.channels) {
				return Directed{p.link, node, p.peer, uint8(lane - at)}, true
			}
		}
	}
	return Directed{}, false
}
