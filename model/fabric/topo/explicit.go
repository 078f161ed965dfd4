package topo

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"farflash/numeric/units"
)

// drawLinks builds an explicit network. Hosts are numbered by name, switches in order of first mention. A switch's tier
// is its distance to the nearest host.
func drawLinks(d *drawing, links []LinkSpec) error {
	if len(links) == 0 {
		return units.Wrong("links", "the list is empty; give at least one link")
	}
	if len(links) > maxLinks {
		return units.Wrong("links", "%d links are too many; use at most %d", len(links), maxLinks)
	}
	hosts := map[int]bool{}
	var switches []string
	seen := map[string]bool{}
	for i, l := range links {
		for _, end := range []struct{ key, name string }{{"a", l.A}, {"b", l.B}} {
			number, host, err := hostNumber(end.name)
			switch {
			case err != nil:
				return units.Within(fmt.Sprintf("links[%d].%s", i, end.key), err)
			case host:
				hosts[number] = true
			case !seen[end.name]:
				seen[end.name] = true
				switches = append(switches, end.name)
			}
		}
		at := fmt.Sprintf("links[%d]", i)
		switch {
		case l.A == l.B:
			return units.Wrong(at+".b", "%s is the other end as well; a link has two ends", l.B)
		case l.Rate < 0:
			return units.Wrong(at+".rate", "%v is not possible; use a rate such as 40Gbps", l.Rate)
		case l.Delay != nil && *l.Delay < 0:
			return units.Wrong(at+".delay", "%v is not possible; use 0s or more", *l.Delay)
		case !(l.Loss >= 0 && l.Loss < 1):
			return units.Wrong(at+".loss", "%v is not possible; use less than 100%%", float64(l.Loss))
		}
	}
	if len(hosts) == 0 {
		return units.Wrong("links", "no end is a host; hosts are named h0, h1 and so on")
	}
	for n := range len(hosts) {
		if !hosts[n] {
			return units.Wrong("links",
				"host h%d has no link, but a later one has; hosts are numbered from h0 without gaps", n)
		}
	}
	if err := fits("links", int64(len(hosts)), int64(len(switches)), int64(len(links))); err != nil {
		return err
	}
	d.add("h", len(hosts), 0, 0)
	for _, name := range switches {
		d.g.Nodes = append(d.g.Nodes, Node{name, Switch, 1, -1})
	}
	number := make(map[string]int32, len(d.g.Nodes))
	for i, n := range d.g.Nodes {
		number[n.Name] = int32(i)
	}
	for _, l := range links {
		link := Link{A: number[l.A], B: number[l.B], Rate: l.Rate, Delay: d.delay, Loss: float64(l.Loss)}
		if l.Delay != nil {
			link.Delay = *l.Delay
		}
		if link.Rate == 0 {
			if d.g.Nodes[link.A].Kind == Host || d.g.Nodes[link.B].Kind == Host {
				link.Rate, d.usesHost = d.hostLink, true
			} else {
				link.Rate, d.usesUp = d.upLink, true
			}
		}
		d.g.Links = append(d.g.Links, link)
	}
	for i, t := range d.g.tiers() {
		d.g.Nodes[i].Tier = t
	}
	return nil
}

// hostNumber parses a node's name: whether it is a host's, and its number.
func hostNumber(name string) (number int, host bool, err error) {
	if name == "" {
		return 0, false, fmt.Errorf("a node needs a name; use h0 for a host, s0 for a switch")
	}
	digits, ok := strings.CutPrefix(name, "h")
	if !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false, nil
	}
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || n >= maxPorts:
		return 0, false, fmt.Errorf("%s is not possible; hosts are numbered from h0 to h%d", name, maxPorts-1)
	case strconv.Itoa(n) != digits:
		return 0, false, fmt.Errorf("%s is not possible; write h%d", name, n)
	}
	return n, true, nil
}

// SetTiers sets each node's tier to its distance from the nearest host.
func (g *Graph) SetTiers() {
	for i, t := range g.tiers() {
		g.Nodes[i].Tier = t
	}
}

// tiers returns each node's distance to the nearest host in links, up to 254; 255 is not connected.
func (g *Graph) tiers() []uint8 {
	ports := g.ports()
	out := slices.Repeat([]uint8{255}, len(g.Nodes))
	var queue []int32
	for i := range g.Nodes {
		if g.Nodes[i].Kind == Host {
			out[i] = 0
			queue = append(queue, int32(i))
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, p := range ports.of(n) {
			if far := min(out[n], 253) + 1; far < out[p.peer] {
				out[p.peer] = far
				queue = append(queue, p.peer)
			}
		}
	}
	return out
}
