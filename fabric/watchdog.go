package fabric

import (
	"fmt"
	"strings"

	"farflash/sim"
)

// watchdog looks at ports that stay paused, while any port is paused.
type watchdog struct {
	looking bool
	// stuck are the ports that were found paused for too long, each once a pause.
	stuck map[int32]sim.Time
}

// Stuck is a port that stayed paused for longer than the watchdog's time.
type Stuck struct {
	At    sim.Time
	Port  int32
	Since sim.Time
	// Cycle are the ports that wait for each other in a circle, this one first, if it is
	// in one: a deadlock that never ends by itself.
	Cycle []int32
}

// begin has the watchdog look.
func (d *watchdog) begin(n *Network) {
	if d.looking || n.cfg.Watchdog.After == 0 {
		return
	}
	d.looking = true
	n.eng.Schedule(n.self, n.target, n.eng.Now()+n.cfg.Watchdog.After, look, 0)
}

// looked is the watchdog's turn.
func (n *Network) looked() {
	d := &n.dog
	d.looking = false
	now := n.eng.Now()
	any := false
	for i := range n.ports {
		p := &n.ports[i]
		if p.paused == 0 {
			continue
		}
		any = true
		if now-p.stats.since < n.cfg.Watchdog.After || d.stuck[int32(i)] == p.stats.since && d.stuck != nil {
			continue
		}
		if d.stuck == nil {
			d.stuck = map[int32]sim.Time{}
		}
		since := p.stats.since
		d.stuck[int32(i)] = since
		n.Counters.Storms++
		s := Stuck{At: now, Port: int32(i), Since: since, Cycle: n.circle(int32(i))}
		if s.Cycle != nil {
			n.Counters.Deadlocks++
		}
		if n.cfg.Watchdog.Action == WatchdogIgnore {
			for c := range uint8(MaxClasses) {
				if p.paused>>c&1 != 0 {
					n.unpause(int32(i), p, c)
				}
			}
		}
		n.OnStuck.Fire(s)
	}
	if any {
		d.begin(n)
	}
}

// circle is a cycle of paused ports, from pi on, in which each waits for room that packets
// take which wait for the next one; nil if there is none through pi.
func (n *Network) circle(pi int32) []int32 {
	seen := map[int32]bool{}
	var path []int32
	var follow func(at int32) bool
	follow = func(at int32) bool {
		if at == pi && len(path) > 0 {
			return true
		}
		p := &n.ports[at]
		if seen[at] || p.paused == 0 {
			return false
		}
		seen[at] = true
		path = append(path, at)
		in := p.peer
		sw := &n.nodes[n.ports[in].node]
		local := uint16(in - sw.first)
		for e := sw.first; e < sw.first+sw.ports; e++ {
			if n.ports[e].host {
				break // the peer is a host
			}
			if n.ports[e].paused != 0 && n.holds(e, local) && follow(e) {
				return true
			}
		}
		path = path[:len(path)-1]
		return false
	}
	if !follow(pi) {
		return nil
	}
	return path
}

// holds reports whether a paused class of a port has a packet that came in through a port of
// its switch.
func (n *Network) holds(e int32, in uint16) bool {
	for c := range uint8(MaxClasses) {
		if n.ports[e].paused>>c&1 == 0 {
			continue
		}
		q := &n.lane(e, c).waiting
		for k := range q.n {
			if q.items[(q.head+k)&uint32(len(q.items)-1)].in/MaxClasses == in {
				return true
			}
		}
	}
	return false
}

// PortName is a port in words, such as tor0->leaf1.
func (n *Network) PortName(pi int32) string {
	p := &n.ports[pi]
	return fmt.Sprintf("%s->%s", n.graph.Nodes[p.node].Name, n.graph.Nodes[n.ports[p.peer].node].Name)
}

// CycleName is a cycle in words.
func (n *Network) CycleName(ports []int32) string {
	var names []string
	for _, pi := range ports {
		names = append(names, n.PortName(pi))
	}
	return strings.Join(names, " waits for ")
}
