package peer

import (
	"fmt"
	"io"

	"farflash/numeric/units"
)

// ns3MaxNodes is the number of node addresses, which hold 16 bits of the id.
const ns3MaxNodes = 1 << 16

// NS3Topology is a topology file, whose format both programs share: the number of nodes, the ids of the switches, and
// the links. Nodes that are not switches are hosts.
type NS3Topology struct {
	Nodes    int
	Switches []int // in the file's order
	Links    []NS3Link

	file     string
	isSwitch []bool
}

// NS3Link joins two nodes, with the same rate and delay both ways. The reference truncates the delay to whole
// nanoseconds.
type NS3Link struct {
	A, B      int
	Rate      units.BitRate
	Delay     units.Duration
	ErrorRate float64 // of packets; 0 is the configuration's ERROR_RATE_PER_LINK
	Line      int     // of the file
}

// IsSwitch reports whether a node is a switch.
func (t *NS3Topology) IsSwitch(node int) bool {
	return node >= 0 && node < len(t.isSwitch) && t.isSwitch[node]
}

// At returns a link's position, as file:line:column, for errors about it.
func (t *NS3Topology) At(link int) string {
	return position{t.file, t.Links[link].Line, 1}.String()
}

// Ports returns each node's links in the order of its ports: the first is port 1,
// the interface number in traces and in pfc.txt. Values index Links.
func (t *NS3Topology) Ports() [][]int {
	ports := make([][]int, t.Nodes)
	for i, l := range t.Links {
		ports[l.A] = append(ports[l.A], i)
		ports[l.B] = append(ports[l.B], i)
	}
	return ports
}

// Parallel returns the links between nodes that an earlier link already joins. HPCC's ns-3 routes over the last of such
// links only. Values index Links.
func (t *NS3Topology) Parallel() []int {
	seen := map[[2]int]bool{}
	var out []int
	for i, l := range t.Links {
		pair := [2]int{min(l.A, l.B), max(l.A, l.B)}
		if seen[pair] {
			out = append(out, i)
		}
		seen[pair] = true
	}
	return out
}

// ReadNS3Topology reads a topology file. name is used in errors. An [*NS3SurplusError] accompanies a valid topology.
func ReadNS3Topology(name string, r io.Reader) (*NS3Topology, error) {
	w, err := newWords(name, r)
	if err != nil {
		return nil, err
	}
	const top, line = "nodes switches links", "a b rate delay error_rate"
	t := &NS3Topology{file: name}
	v, ok := w.peek()
	if !ok {
		return nil, w.fail(v, "the file is empty; its first line is %q", top)
	}
	var counts [3]uint64
	for i, what := range []string{"number of nodes", "number of switches", "number of links"} {
		if i == 0 {
			w.next()
			if counts[0], err = whole(v.text, ns3MaxNodes); err != nil {
				return nil, w.fail(v, "%s: %w", what, err)
			}
			continue
		}
		if counts[i], err = w.number(what, []uint64{ns3MaxNodes, counts[0], 1<<32 - 1}[i], top); err != nil {
			return nil, err
		}
	}
	if err := w.end(top); err != nil {
		return nil, err
	}
	nodes, links := counts[0], int(counts[2])
	if nodes == 0 {
		return nil, w.fail(v, "no nodes")
	}
	t.Nodes = int(nodes)
	t.isSwitch = make([]bool, nodes)
	for i := range int(counts[1]) {
		s, ok := w.next()
		if !ok {
			return nil, w.fail(s, "the file ends after %d of %d ids of switches", i, counts[1])
		}
		id, err := whole(s.text, nodes-1)
		switch {
		case err != nil:
			return nil, w.fail(s, "id of a switch: %w", err)
		case t.isSwitch[id]:
			return nil, w.fail(s, "switch %d is named twice", id)
		}
		t.isSwitch[id] = true
		t.Switches = append(t.Switches, int(id))
	}
	for i := range links {
		l, err := w.link(i, links, nodes, line)
		if err != nil {
			return nil, err
		}
		t.Links = append(t.Links, l)
	}
	return t, w.close("link", links)
}

func (w *words) link(i, links int, nodes uint64, layout string) (NS3Link, error) {
	var l NS3Link
	first, err := w.begin("link", i, links, layout)
	if err != nil {
		return l, err
	}
	l.Line = first.line
	a, err := whole(first.text, nodes-1)
	if err != nil {
		return l, w.fail(first, "node a: %w", err)
	}
	b, err := w.number("node b", nodes-1, layout)
	if err != nil {
		return l, err
	}
	if l.A, l.B = int(a), int(b); a == b {
		return l, w.fail(w.last, "a link from node %d to itself", a)
	}
	v, err := w.field("rate", layout)
	if err != nil {
		return l, err
	}
	if l.Rate, err = ns3Rate(v.text); err == nil && l.Rate == 0 {
		err = fmt.Errorf("%s is not a possible rate", clip(v.text))
	}
	if err != nil {
		return l, w.fail(v, "rate: %w", err)
	}
	if v, err = w.field("delay", layout); err != nil {
		return l, err
	}
	if l.Delay, err = ns3Time(v.text); err != nil {
		return l, w.fail(v, "delay: %w", err)
	}
	if v, err = w.field("error rate", layout); err != nil {
		return l, err
	}
	if l.ErrorRate, err = decimal(v.text, 1); err != nil {
		return l, w.fail(v, "error rate: %w", err)
	}
	return l, w.end(layout)
}
