package fabric

import (
	"fmt"
	"strings"

	"farflash/model/fabric/topo"
	"farflash/sim"
)

// watchdog looks at ports that stay paused, while any port is paused.
type watchdog struct {
	looking bool
	when    sim.Time
}

// Stuck is a port that stayed paused for longer than the watchdog's time.
type Stuck struct {
	At    sim.Time
	Port  int32
	Class uint8 // that is paused
	Since sim.Time
	// Cycle are the ports that wait for each other in a circle, this one first, if it is the first that was found
	// in one: a deadlock that never ends by itself. All of them have been paused for the
	// watchdog's time.
	Cycle []int32
}

// begin has the watchdog look at a multiple of its time, so that when it looks at one port does not depend on others'.
func (d *watchdog) begin(n *Network) {
	after := n.cfg.Watchdog.After
	if d.looking || after == 0 {
		return
	}
	if k := n.eng.Now() / after; k < sim.Forever/after {
		d.at(n, (k+1)*after)
	}
}

// at has it look at a time. A part of a network has the whole do so.
func (d *watchdog) at(n *Network, when sim.Time) {
	if d.looking {
		return
	}
	d.looking, d.when = true, when
	if n.out == nil {
		n.eng.Schedule(n.self, n.target, when, look, 0)
	}
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
			found = append(found, Stuck{At: now, Port: int32(i), Class: c, Since: n.since[at], Cycle: n.ring(at)})
		}
	}
	for _, s := range found {
		n.Counters.Storms++
		if s.Cycle != nil {
			n.Counters.Deadlocks++
		}
		if p := &n.ports[s.Port]; n.cfg.Watchdog.Action == WatchdogIgnore && p.paused>>s.Class&1 != 0 {
			n.ignores[int(s.Port)*MaxClasses+int(s.Class)] = now + n.cfg.Watchdog.After
			n.of(p.node).unpause(s.Port, p, s.Class)
		}
		n.OnStuck.Fire(s)
	}
	if any {
		d.begin(n)
	}
}

// ring is the circle of waits that a class of a port is in, unless it was found before: all of its classes were since
// they have been paused.
func (n *Network) ring(at int32) []int32 {
	lanes := n.circle(at)
	fresh := false
	ports := make([]int32, len(lanes))
	for i, l := range lanes {
		fresh = fresh || n.ringed[l] != n.since[l]+1
		n.ringed[l] = n.since[l] + 1
		ports[i] = l / MaxClasses
	}
	if !fresh {
		return nil
	}
	return ports
}

// stays reports whether a class of a port, port*MaxClasses + class, has been paused for the
// watchdog's time.
func (n *Network) stays(at int32) bool {
	return n.ports[at/MaxClasses].paused>>(at%MaxClasses)&1 != 0 && n.eng.Now()-n.since[at] >= n.cfg.Watchdog.After
}

// circle is a cycle of classes of ports, port*MaxClasses + class, that stay paused, from one on, in which each waits
// for room that packets take which wait for the next one; nil if there is none through it.
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
		path = append(path, at)
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
	n.pool(n.ports[at/MaxClasses].node).Each(&n.lanes[at].waiting, func(x *packet) bool {
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
// if there is none, or no PFC. All paths between all hosts are considered, with all links up.
func (n *Network) Hazard() string {
	if !n.cfg.PFC.Enabled {
		return ""
	}
	return n.graph.Names(n.graph.Cycle(n.intact))
}
