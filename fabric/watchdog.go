package fabric

import (
	"fmt"
	"strings"

	"farflash/fabric/topo"
	"farflash/sim"
)

// watchdog looks at ports that stay paused, while any port is paused.
type watchdog struct {
	looking bool
}

// Stuck is a port that stayed paused for longer than the watchdog's time.
type Stuck struct {
	At    sim.Time
	Port  int32
	Class uint8 // that is paused
	Since sim.Time
	// Cycle are the ports that wait for each other in a circle, this one first, if it is
	// in one: a deadlock that never ends by itself. All of them have been paused for the
	// watchdog's time.
	Cycle []int32
}

// begin has the watchdog look.
func (d *watchdog) begin(n *Network) {
	if d.looking || n.cfg.Watchdog.After == 0 {
		return
	}
	d.looking = true
	// At multiples of its time, so that when it looks at one port does not depend on others'.
	after := n.cfg.Watchdog.After
	n.eng.Schedule(n.self, n.target, (n.eng.Now()/after+1)*after, look, 0)
}

// looked is the watchdog's turn.
func (n *Network) looked() {
	d := &n.dog
	d.looking = false
	now := n.eng.Now()
	any := false
	var found []Stuck
	for i := range n.ports {
		p := &n.ports[i]
		if n.split != nil && !n.split.has(n, p.node) {
			continue
		}
		for c := range uint8(MaxClasses) {
			if p.paused>>c&1 == 0 {
				continue
			}
			any = true
			at := int32(i)*MaxClasses + int32(c)
			if !n.stays(at) || n.reported[at] == n.since[at]+1 {
				continue
			}
			n.reported[at] = n.since[at] + 1 // 0 is never
			found = append(found, Stuck{At: now, Port: int32(i), Class: c, Since: n.since[at], Cycle: n.circle(at)})
		}
	}
	if n.split != nil && len(found) > 0 {
		// Circles go through other parts, which are not at this time.
		n.split.stuck.Store(true)
		return
	}
	for _, s := range found {
		n.Counters.Storms++
		if s.Cycle != nil {
			n.Counters.Deadlocks++
		}
		if p := &n.ports[s.Port]; n.cfg.Watchdog.Action == WatchdogIgnore && p.paused>>s.Class&1 != 0 {
			n.ignores[int(s.Port)*MaxClasses+int(s.Class)] = now + n.cfg.Watchdog.After
			n.unpause(s.Port, p, s.Class)
		}
		n.OnStuck.Fire(s)
	}
	if any {
		d.begin(n)
	}
}

// stays reports whether a class of a port, port*MaxClasses + class, has been paused for the
// watchdog's time.
func (n *Network) stays(at int32) bool {
	return n.ports[at/MaxClasses].paused>>(at%MaxClasses)&1 != 0 && n.eng.Now()-n.since[at] >= n.cfg.Watchdog.After
}

// circle is a cycle of ports whose classes stay paused, from class from on, in which each waits for
// room that packets take which wait for the next one; nil if there is none through it.
func (n *Network) circle(from int32) []int32 {
	seen := map[int32]bool{}
	var path []int32
	var follow func(at int32) bool
	follow = func(at int32) bool {
		if at == from && len(path) > 0 {
			return true
		}
		if seen[at] || !n.stays(at) {
			return false
		}
		seen[at] = true
		path = append(path, at/MaxClasses)
		in := n.ports[at/MaxClasses].peer
		node := n.ports[in].node
		sw := &n.nodes[node]
		if n.graph.Nodes[node].Kind == topo.Switch {
			account := uint16(in-sw.first)*MaxClasses + uint16(at%MaxClasses)
			for next := sw.first * MaxClasses; next < (sw.first+sw.ports)*MaxClasses; next++ {
				if n.stays(next) && n.holds(next, account) && follow(next) {
					return true
				}
			}
		}
		path = path[:len(path)-1]
		return false
	}
	if !follow(from) {
		return nil
	}
	return path
}

// holds reports whether a class of a port has a packet waiting that is accounted to a class that it
// came in with.
func (n *Network) holds(at int32, account uint16) bool {
	found := false
	n.chunks.each(&n.lanes[at].waiting, func(x *packet) bool {
		found = x.in == account
		return !found
	})
	return found
}

// PortName is a port in words, such as tor0->leaf1.
func (n *Network) PortName(pi int32) string {
	p := &n.ports[pi]
	return n.nodeName(p.node) + "->" + n.nodeName(n.ports[p.peer].node)
}

// NodeName is a node's name, or its number in words if it has none.
func (n *Network) NodeName(node int32) string { return n.nodeName(node) }

func (n *Network) nodeName(node int32) string {
	if name := n.graph.Nodes[node].Name; name != "" {
		return name
	}
	return fmt.Sprintf("node %d", node)
}

// CycleName is a cycle in words.
func (n *Network) CycleName(ports []int32) string {
	var names []string
	for _, pi := range ports {
		names = append(names, n.PortName(pi))
	}
	return strings.Join(names, " waits for ")
}

// Hazard names a circle of links, each with its channel, in which pauses can lock up; it is empty
// if there is none, or no PFC. All paths between all hosts are considered.
func (n *Network) Hazard() string {
	if !n.cfg.PFC.Enabled {
		return ""
	}
	return n.graph.Names(n.graph.Cycle(n.routes))
}
