package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// commandWindow is one target for each gateway and nothing between them (SURGE's model b): gateway i writes to target i, and has as many
// chunks outstanding as its window of commands allows. A request goes first, and the data right behind it; frames of one chunk after the other.
type commandWindow struct {
	c      *Cluster
	d      *reserve.Durations
	sender []sender
	got    []units.Bytes // by chunk
	coming []int32       // by target: chunks that have been announced
}

// sender is a gateway's link: what it has to send, in the order it was taken.
type sender struct {
	chunks ring
	sent   units.Bytes // of the first chunk
	free   sim.Time    // until when the link is taken
	asleep bool        // no timer is set
}

// Kinds of control messages.
const (
	writeBegins uint8 = iota
	written
)

func newCommandWindow(c *Cluster, d *reserve.Durations) *commandWindow {
	p := &commandWindow{c: c, d: d, sender: make([]sender, len(c.gateways)), coming: make([]int32, len(c.targets))}
	for g := range p.sender {
		p.sender[g].asleep = true
	}
	return p
}

// begin implements protocol.
func (p *commandWindow) begin(i int32) {
	c := p.c
	for int(i) >= len(p.got) {
		p.got = append(p.got, 0)
	}
	p.got[i] = 0
	x := &c.chunks[i]
	x.targets[0], x.n = x.gateway, 1
	s := &p.sender[x.gateway]
	// A frame waits for the request before it.
	s.free = max(s.free, c.eng.Now()) + p.d.Control
	c.toTarget(message{kind: writeBegins, from: x.gateway, to: x.gateway, chunk: i, id: x.id}, p.d.Control)
	s.chunks.push(i)
	p.wakeUp(x.gateway)
}

// wakeUp has a gateway look at its link when it is free.
func (p *commandWindow) wakeUp(gateway int32) {
	if s := &p.sender[gateway]; s.asleep {
		s.asleep = false
		p.c.after(s.free, uint32(gateway))
	}
}

// message implements protocol.
func (p *commandWindow) message(m *message) {
	switch m.kind {
	case writeBegins:
		p.coming[m.to]++
	case written:
		p.c.acknowledged(m.chunk)
	}
}

// timer implements protocol: a gateway's link may be free.
func (p *commandWindow) timer(arg uint32) {
	c, g := p.c, int32(arg)
	s := &p.sender[g]
	s.asleep = true
	now := c.eng.Now()
	switch {
	case s.chunks.empty():
		return
	case s.free > now:
		p.wakeUp(g) // a request has come between
		return
	}
	i := s.chunks.items[s.chunks.head]
	size := min(c.cfg.Link.Frame, c.piece-s.sent)
	takes := p.d.Send(size, p.d.Effective)
	c.sendFrame(g, i, uint32(i), size, takes, c.chunks[i].targets[:1])
	s.free = now + takes
	if s.sent += size; s.sent == c.piece {
		s.sent = 0
		s.chunks.pop()
	}
	p.wakeUp(g)
}

// frame implements protocol.
func (p *commandWindow) frame(arg uint32, target int32, size units.Bytes) {
	c := p.c
	if p.got[arg] += size; p.got[arg] < c.piece {
		return
	}
	p.coming[target]--
	c.keep(target, message{kind: written, from: target, to: c.chunks[arg].gateway, chunk: int32(arg)})
}

// floor implements protocol: the request, the data behind it, the disk and the acknowledgement.
func (p *commandWindow) floor() sim.Time {
	c, d := p.c, p.d
	return d.Control + c.dataTime(d) + d.Trip + c.keepTime(d.DiskChunk) + d.Control + d.Trip
}
