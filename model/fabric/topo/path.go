package topo

import (
	"fmt"
	"math/bits"

	"farflash/numeric/units"
	"farflash/sim"
)

// Directed is a link in one direction.
type Directed struct {
	Link, From, To int32
	Channel        uint8 // Channel is the virtual channel used on it.
}

// Path is the cost of a path that carries no other traffic.
type Path struct {
	Hops  int           // Hops is the number of its links.
	Delay sim.Time      // Delay is the sum of the links' propagation delays.
	Rate  units.BitRate // Rate is the rate of the slowest link.
}

// Walk appends the links of a path between hosts to buf, none without a path. pick chooses among n equal next hops, 0
// to n-1; nil takes the first.
func (r *Routes) Walk(buf []Directed, src, dst int32, pick func(n int) int) []Directed {
	for node := src; node != dst; {
		next := r.Next(node, dst)
		if len(next) == 0 {
			return buf
		}
		k := 0
		if pick != nil && len(next) > 1 {
			k = pick(len(next))
		}
		p := r.ports.of(node)[next[k].Port]
		buf = append(buf, Directed{p.link, node, p.peer, next[k].Channel})
		node = p.peer
	}
	return buf
}

// Path returns the cost of the first shortest path; to the host itself it is empty and Rate 0.
func (r *Routes) Path(src, dst int32) (Path, bool) {
	var out Path
	if !r.Reachable(src, dst) {
		return out, false
	}
	for node := src; node != dst; out.Hops++ {
		p := r.ports.of(node)[r.Next(node, dst)[0].Port]
		l := &r.graph.Links[p.link]
		out.Delay += l.Delay
		if out.Hops == 0 || l.Rate < out.Rate {
			out.Rate = l.Rate
		}
		node = p.peer
	}
	return out, true
}

// Serialisation returns how long b bytes take over each link in turn of the first shortest path, each rounded down to a
// multiple of step: 1 ps in the simulation, 1 ns in ns-3. Without a path, or on overflow, it is sim.Forever.
func (r *Routes) Serialisation(src, dst int32, b units.Bytes, step sim.Time) sim.Time {
	if !r.Reachable(src, dst) {
		return sim.Forever
	}
	var sum sim.Time
	for node := src; node != dst; {
		p := r.ports.of(node)[r.Next(node, dst)[0].Port]
		t := onWire(b, r.graph.Links[p.link].Rate, step)
		if t > sim.Forever-sum {
			return sim.Forever
		}
		sum += t
		node = p.peer
	}
	return sum
}

// onWire returns the time of b bytes at a rate, rounded down to a multiple of step.
func onWire(b units.Bytes, rate units.BitRate, step sim.Time) sim.Time {
	if b <= 0 {
		return 0
	}
	high, low := bits.Mul64(uint64(b), 8*uint64(units.Second))
	if rate <= 0 || high >= uint64(rate) {
		return sim.Forever
	}
	t, _ := bits.Div64(high, low, uint64(rate))
	if t >= uint64(sim.Forever) {
		return sim.Forever
	}
	// Rounding down twice equals rounding down once.
	return sim.Time(t) - sim.Time(t)%max(step, 1)
}

// Names writes consecutive links as their nodes: "s0 > s1 > s2".
func (g *Graph) Names(links []Directed) string {
	if len(links) == 0 {
		return ""
	}
	out := g.name(links[0].From)
	for _, l := range links {
		out += fmt.Sprintf(" > %s", g.name(l.To))
	}
	return out
}
