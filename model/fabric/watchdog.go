package fabric

import (
	"fmt"
	"strings"

	"farflash/model/fabric/topo"
	"farflash/sim"
)

// watchdog looks for ports that stay paused. It runs while any port is paused.
type watchdog struct {
	looking bool
	when    sim.Time
}

// Stuck is a port that stayed paused longer than the watchdog's time.
type Stuck struct {
	At    sim.Time
	Port  int32
	Class uint8 // the paused class
	Since sim.Time
	// Cycle lists the ports that wait for each other in a cycle, this one first: a deadlock, which never resolves. All
	// of them have been paused for the watchdog's time. It is set only for the first port found in the cycle.
	Cycle []int32
}

// begin schedules the next look, at a multiple of the watchdog's time, so that when a port is examined does not depend
// on other ports.
func (d *watchdog) begin(n *Network) {
	after := n.cfg.Watchdog.After
	if d.looking || after == 0 {
		return
	}
	if k := n.eng.Now() / after; k < sim.Forever/after {
		d.at(n, (k+1)*after)
	}
}

// at schedules a look. A part of a network only records it, for the whole network to do.
func (d *watchdog) at(n *Network, when sim.Time) {
	if d.looking {
		return
	}
	d.looking, d.when = true, when
	if n.out == nil {
		n.eng.Schedule(n.self, n.target, when, look, 0)
	}
}

// looked examines all ports and reports those that stay paused.
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
			n.reported[at] = n.since[at] + 1 // plus 1, because 0 means never
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

// ring returns the ports of the cycle of waits that a port's class is in, nil if there is none or if it was found
// before: that is, if all of its classes were in a reported cycle during their present pauses.
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

// stays reports whether class queue at, port*MaxClasses + class, has been paused for the watchdog's time.
func (n *Network) stays(at int32) bool {
	return n.ports[at/MaxClasses].paused>>(at%MaxClasses)&1 != 0 && n.eng.Now()-n.since[at] >= n.cfg.Watchdog.After
}

// circle returns a cycle of waits through class queue from, as port*MaxClasses + class: all of its members stay paused,
// and each waits for buffer space that packets queued in the next one occupy. It is nil if there is none.
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
			// The switch's input port and class to which packets from at are charged: it is their space that at waits
			// for.
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

// holds reports whether class queue at has a packet waiting that is charged to account, an input port and class as in
// packet.in.
func (n *Network) holds(at int32, account uint16) bool {
	found := false
	n.pool(n.ports[at/MaxClasses].node).Each(&n.lanes[at].waiting, func(x *packet) bool {
		found = x.in == account
		return !found
	})
	return found
}

// PortName returns a port in words, such as tor0->leaf1.
func (n *Network) PortName(pi int32) string {
	exists("port", pi, len(n.ports))
	p := &n.ports[pi]
	return n.nodeName(p.node) + "->" + n.nodeName(n.ports[p.peer].node)
}

// NodeName returns a node's name, or its number in words if it has none.
func (n *Network) NodeName(node int32) string {
	exists("node", node, len(n.nodes))
	return n.nodeName(node)
}

func (n *Network) nodeName(node int32) string {
	if name := n.graph.Nodes[node].Name; name != "" {
		return name
	}
	return fmt.Sprintf("node %d", node)
}

// CycleName returns a cycle in words.
func (n *Network) CycleName(ports []int32) string {
	var names []string
	for _, pi := range ports {
		names = append(names, n.PortName(pi))
	}
	return strings.Join(names, " waits for ")
}

// Hazard names a cycle of links in which pauses can deadlock, over all paths with all links up; empty if there is none.
func (n *Network) Hazard() string {
	if !n.cfg.PFC.Enabled {
		return ""
	}
	return n.graph.Names(n.graph.Cycle(n.intact))
}
