package timeline

import (
	"fmt"

	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/result/perfetto"
	"farflash/sim"
)

// networkTracks are a network's ports in a timeline.
type networkTracks struct {
	t        *Timeline
	net      *fabric.Network
	graph    *topo.Graph
	groups   []perfetto.Track // by node
	made     []bool           // the node's ports have tracks
	flows    []*perfetto.Lanes
	ports    []portTracks
	messages []messageLabel
	latest   *portTracks // the port of the last packet
}

// portTracks are the tracks of a port.
type portTracks struct {
	track   perfetto.Track
	run     fabric.Sending // successive packets without gaps; its Size is the sum
	label   messageLabel   // their purpose
	packets int            // in it
	pauses  [fabric.MaxClasses]perfetto.Track
	since   [fabric.MaxClasses]sim.Time
	paused  uint8
}

// messageLabel names the command that a message belongs to.
type messageLabel struct {
	name    string
	request uint64
	known   bool // it serves a request, not a rebuild
}

// otherFlows is added to the numbers of flows that are not requests.
const otherFlows = 1 << 40

func newNetworkTracks(t *Timeline, net *fabric.Network, graph *topo.Graph) *networkTracks {
	nodes := len(graph.Nodes)
	return &networkTracks{t: t, net: net, graph: graph, groups: make([]perfetto.Track, nodes),
		made:  make([]bool, nodes),
		flows: make([]*perfetto.Lanes, nodes), ports: make([]portTracks, net.Ports())}
}

// name returns a node's name.
func (n *networkTracks) name(node int32) string { return n.net.NodeName(node) }

// host puts a host's ports in a group.
func (n *networkTracks) host(node int32, group perfetto.Track) {
	n.groups[node] = group
	n.makePorts(node)
}

// rest creates groups for the switches and for the remaining hosts; ports get their tracks on first activity.
func (n *networkTracks) rest(hosts string) {
	for _, x := range []struct {
		kind topo.Kind
		name string
	}{{topo.Host, hosts}, {topo.Switch, "switches"}} {
		top := perfetto.Top
		for i := range n.graph.Nodes {
			if n.graph.Nodes[i].Kind != x.kind || n.groups[i] != perfetto.Top {
				continue
			}
			if top == perfetto.Top {
				top = n.t.w.Track(perfetto.Top, x.name)
			}
			n.groups[i] = n.t.w.Track(top, n.name(int32(i)))
		}
	}
}

// makePorts creates the tracks of a node's ports.
func (n *networkTracks) makePorts(node int32) {
	n.made[node] = true
	host := n.graph.Nodes[node].Kind == topo.Host
	first, count := n.net.PortsOf(node)
	for k := range count {
		pi := first + k
		name := fmt.Sprintf("port %d to %s", k+1, n.name(n.net.Port(pi).Peer))
		switch {
		case host && count == 1:
			name = "NIC"
		case host:
			name = "NIC " + name
		}
		n.ports[pi].track = n.t.w.Track(n.groups[node], name)
	}
}

// port returns a port with its tracks.
func (n *networkTracks) port(pi int32) *portTracks {
	if p := &n.ports[pi]; p.track != perfetto.Top {
		return p
	}
	n.makePorts(n.net.Node(pi))
	return &n.ports[pi]
}

// watch starts observing the ports.
func (n *networkTracks) watch() {
	watch(n.t, &n.net.OnSend, n.send)
	watch(n.t, &n.net.OnPause, n.pause)
	n.t.flush = append(n.t.flush, func() {
		for pi := range n.ports {
			n.write(&n.ports[pi])
			for c := range uint8(fabric.MaxClasses) {
				n.unpause(&n.ports[pi], c, n.t.eng.Now())
			}
		}
	})
}

// label names the command of a message, and its request if it has one.
func (n *networkTracks) label(m int32, name string, request uint64, known bool) {
	for int(m) >= len(n.messages) {
		n.messages = append(n.messages, messageLabel{})
	}
	n.messages[m] = messageLabel{name, request, known}
	// Its first packet may have been sent while it was being posted.
	if p := n.latest; p != nil && p.run.Message == m && p.run.Begin == n.t.eng.Now() {
		p.label = n.messages[m]
	}
}

// send records a packet. Successive packets of one message without gaps form one slice.
func (n *networkTracks) send(s fabric.Sending) {
	p := n.port(s.Port)
	n.latest = p
	r := &p.run
	if p.packets > 0 && s.Begin == r.End && s.QP == r.QP && s.Message == r.Message && s.Carries == r.Carries &&
		s.Class == r.Class {
		r.End = s.End
		r.Size += s.Size
		p.packets++
		return
	}
	n.write(p)
	if !n.t.ended { // otherwise they would never be written
		p.run, p.packets, p.label = s, 1, messageLabel{}
		if m := s.Message; m >= 0 && int(m) < len(n.messages) {
			p.label = n.messages[m]
		}
	}
}

// write writes the buffered packets.
func (n *networkTracks) write(p *portTracks) {
	if p.packets == 0 {
		return
	}
	t, r := n.t, &p.run
	name, flow := r.Carries.String(), uint64(0)
	t.notes = append(t.notes[:0], perfetto.Int("packets", int64(p.packets)), perfetto.Int("bytes", int64(r.Size)),
		perfetto.Int("class", int64(r.Class)))
	p.packets = 0
	if r.QP >= 0 {
		t.notes = append(t.notes, perfetto.Int("queue pair", int64(r.QP)))
	}
	if m := r.Message; m >= 0 {
		switch x := &p.label; {
		case x.known:
			name, flow = x.name, flowID(x.request)
			t.notes = append(t.notes, perfetto.Int("request", int64(x.request)))
		case x.name != "":
			name = x.name
		default:
			flow = otherFlows + flowID(uint64(m))
			t.notes = append(t.notes, perfetto.Int("flow", int64(m)))
		}
	}
	t.slice(p.track, perfetto.Slice{Name: name, Begin: r.Begin, End: r.End, Annotations: t.notes, Flow: flow})
}

func (n *networkTracks) pause(x fabric.Pause) {
	p := n.port(x.Port)
	if x.Resume {
		n.unpause(p, x.Class, x.At)
		return
	}
	p.paused |= 1 << x.Class
	p.since[x.Class] = x.At
	if p.pauses[x.Class] == perfetto.Top {
		p.pauses[x.Class] = n.t.w.Track(p.track, fmt.Sprintf("paused, class %d", x.Class))
	}
}

// unpause writes a pause that has ended.
func (n *networkTracks) unpause(p *portTracks, class uint8, at sim.Time) {
	if p.paused>>class&1 == 0 {
		return
	}
	p.paused &^= 1 << class
	n.t.slice(p.pauses[class], perfetto.Slice{Name: "paused", Begin: p.since[class], End: at})
}

// flow shows a completed flow that is not a request, at its source host.
func (n *networkTracks) flow(m int32) {
	t := n.t
	x := &n.net.Messages()[m]
	if n.flows[x.Src] == nil {
		n.flows[x.Src] = t.w.Lanes(n.groups[x.Src], "flows")
	}
	t.parts = t.parts[:0]
	at := x.Posted
	for _, s := range []struct {
		name string
		to   sim.Time
	}{{"waiting", x.Begun}, {"transfer", x.Delivered}, {"acknowledgement", x.Acked}} {
		if s.to > at {
			t.parts = append(t.parts, perfetto.Slice{Name: s.name, Begin: at, End: s.to})
			at = s.to
		}
	}
	t.notes = append(t.notes[:0], perfetto.Int("flow", int64(m)), perfetto.Int("bytes", int64(x.Size)),
		perfetto.Text("to", n.name(x.Dst)))
	t.lane(n.flows[x.Src],
		perfetto.Slice{Name: "flow", Begin: x.Posted, End: x.Acked, Annotations: t.notes, Parts: t.parts,
			Flow: otherFlows + flowID(uint64(m))})
	t.count("flows")
}
