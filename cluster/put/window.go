package put

import (
	"farflash/cluster/internal/queue"
	"farflash/cluster/reserve"
	"farflash/sim"
	"farflash/units"
)

// CommandWindow has each gateway write to a target of its own (model b).
const CommandWindow Scheme = 11

var ownTarget = Traits{Name: "command-window", Number: "b", Build: CompatSURGEHead, Finds: FindsOwn, Chosen: byOwner, Stuck: "a gateway has no other target than its own",
	Times: reserve.UnicastConfig, Messages: []string{writeBegins: "request", written: "ack"}, New: func(b *Bus) Protocol { return newCommandWindow(b) }}

// commandWindow is one target for each gateway and nothing between them (SURGE's model b): gateway i writes to target i, and has as many
// chunks outstanding as its window of commands allows. A request goes first, and the data right behind it; frames of one chunk after the other.
type commandWindow struct {
	b      *Bus
	sender []sender
	got    []units.Bytes // by chunk
	coming []int32       // by target: chunks that have been announced
}

// sender is a gateway's link: what it has to send, in the order it was taken.
type sender struct {
	chunks queue.Queue[int32]
	sent   units.Bytes // of the first chunk
	free   sim.Time    // until when the link is taken
	asleep bool        // no timer is set
}

// Kinds of control messages.
const (
	writeBegins uint8 = iota
	written
)

func newCommandWindow(b *Bus) *commandWindow {
	p := &commandWindow{b: b, sender: make([]sender, b.Gateways), coming: make([]int32, b.Targets)}
	for g := range p.sender {
		p.sender[g].asleep = true
	}
	return p
}

// Begin implements Protocol.
func (p *commandWindow) Begin(i int32) {
	b := p.b
	for int(i) >= len(p.got) {
		p.got = append(p.got, 0)
	}
	p.got[i] = 0
	x := &b.Chunks[i]
	x.Targets[0], x.N = x.Gateway, 1
	s := &p.sender[x.Gateway]
	// A frame waits for the request before it.
	s.free = max(s.free, b.Now()) + b.Times.Control
	b.toTarget(Message{Kind: writeBegins, From: x.Gateway, To: x.Gateway, Chunk: i, ID: x.ID})
	s.chunks.Push(i)
	p.wakeUp(x.Gateway)
}

// wakeUp has a gateway look at its link when it is free.
func (p *commandWindow) wakeUp(gateway int32) {
	if s := &p.sender[gateway]; s.asleep {
		s.asleep = false
		p.b.After(s.free, uint32(gateway))
	}
}

// Message implements Protocol.
func (p *commandWindow) Message(m *Message) {
	switch m.Kind {
	case writeBegins:
		p.coming[m.To]++
	case written:
		p.b.Outcomes.Acknowledged(m.Chunk)
	}
}

// Timer implements Protocol: a gateway's link may be free.
func (p *commandWindow) Timer(arg uint32) {
	b, g := p.b, int32(arg)
	s := &p.sender[g]
	s.asleep = true
	now := b.Now()
	switch {
	case s.chunks.Empty():
		return
	case s.free > now:
		p.wakeUp(g) // a request has come between
		return
	}
	i := s.chunks.All()[0]
	size := min(b.Frame, b.Piece-s.sent)
	takes := b.Times.Send(size, b.Times.Effective)
	b.sendPaced(i, uint32(i), size, takes, b.Chunks[i].Targets[:1])
	s.free = now + takes
	if s.sent += size; s.sent == b.Piece {
		s.sent = 0
		s.chunks.Pop()
	}
	p.wakeUp(g)
}

// Frame implements Protocol.
func (p *commandWindow) Frame(f Frame) {
	b := p.b
	if p.got[f.Arg] += f.Size; p.got[f.Arg] < b.Piece {
		return
	}
	p.coming[f.Target]--
	b.Disks.Write(f.Target, Message{Kind: written, From: f.Target, To: b.Chunks[f.Arg].Gateway, Chunk: int32(f.Arg)})
}

// Floor implements Forecast: the request, the data behind it, the disk and the acknowledgement.
func (p *commandWindow) Floor() sim.Time {
	b, d := p.b, p.b.Times
	return d.Control + b.dataTime() + d.Trip + b.kept() + d.Control + d.Trip
}

// Expects implements Forecast: chunks that have been announced.
func (p *commandWindow) Expects(target int32) (promised, open bool) {
	return p.coming[target] > 0, false
}
