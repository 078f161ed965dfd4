package put

import (
	"farflash/model/cluster/internal/queue"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// CommandWindow has each gateway write to a target of its own (model b).
const CommandWindow Scheme = 11

var ownTarget = Traits{Name: "command-window", Number: "b", Build: CompatSURGEHead, Finds: FindsOwn, Chosen: byOwner,
	NoBackPressure: true, Stuck: "a gateway has no other target than its own",
	Times: reserve.UnicastConfig, Messages: []string{writeBegins: "request", written: "ack"},
	New: func(b *Bus) Protocol { return newCommandWindow(b) }}

// commandWindow pairs each gateway with a target, without any protocol between them (SURGE's model b): gateway i writes
// to target i, and has as many chunks outstanding as its command window allows. The request is sent first and the data
// directly behind it; frames are sent chunk by chunk.
type commandWindow struct {
	b      *Bus
	sender []sender
	got    []units.Bytes // by chunk
	coming []int32       // by target: announced chunks
}

// sender is a gateway's transmit queue, in FIFO order.
type sender struct {
	chunks queue.Queue[int32]
	sent   units.Bytes // of the first chunk
	free   sim.Time    // when the link is free
	asleep bool        // no timer is set
}

// Kinds of control messages.
const (
	writeBegins uint8 = iota
	written
)

func newCommandWindow(b *Bus) *commandWindow {
	w := &commandWindow{b: b, sender: make([]sender, b.Gateways), coming: make([]int32, b.Targets)}
	for g := range w.sender {
		w.sender[g].asleep = true
	}
	return w
}

// Begin implements Protocol.
func (w *commandWindow) Begin(i int32) {
	b := w.b
	for int(i) >= len(w.got) {
		w.got = append(w.got, 0)
	}
	w.got[i] = 0
	x := &b.Chunks[i]
	x.Targets[0], x.N = x.Gateway, 1
	s := &w.sender[x.Gateway]
	// The data follows its request on the link.
	s.free = max(s.free, b.Now()) + b.Times.Control
	b.toTarget(Message{Kind: writeBegins, From: x.Gateway, To: x.Gateway, Chunk: i, ID: x.ID})
	s.chunks.Push(i)
	w.wakeUp(x.Gateway)
}

// wakeUp schedules the gateway's next transmission for when its link is free.
func (w *commandWindow) wakeUp(gateway int32) {
	if s := &w.sender[gateway]; s.asleep {
		s.asleep = false
		w.b.After(s.free, uint32(gateway))
	}
}

// Message implements Protocol.
func (w *commandWindow) Message(m *Message) {
	switch m.Kind {
	case writeBegins:
		w.coming[m.To]++
	case written:
		w.b.Outcomes.Acknowledged(m.Chunk)
	}
}

// Timer implements Protocol: a gateway's link may be free.
func (w *commandWindow) Timer(arg uint32) {
	b, g := w.b, int32(arg)
	s := &w.sender[g]
	s.asleep = true
	now := b.Now()
	switch {
	case s.chunks.Empty():
		return
	case s.free > now:
		w.wakeUp(g) // another request has taken the link
		return
	}
	i := s.chunks.All()[0]
	piece := b.pieceOf(i)
	size := min(b.Frame, piece-s.sent)
	takes := b.Times.Send(size, b.Times.Effective)
	b.sendPaced(i, uint32(i), size, takes, b.Chunks[i].Targets[:1])
	s.free = now + takes
	if s.sent += size; s.sent == piece {
		s.sent = 0
		s.chunks.Pop()
	}
	w.wakeUp(g)
}

// Frame implements Protocol.
func (w *commandWindow) Frame(f Frame) {
	b := w.b
	if w.got[f.Arg] += f.Size; w.got[f.Arg] < b.pieceOf(int32(f.Arg)) {
		return
	}
	w.coming[f.Target]--
	b.Disks.Write(f.Target, Message{Kind: written, From: f.Target, To: b.Chunks[f.Arg].Gateway, Chunk: int32(f.Arg)})
}

// Floor implements Forecast: the request, the data behind it, the disk and the acknowledgement.
func (w *commandWindow) Floor(p *Plan) sim.Time {
	d := p.Times
	return d.Control + p.dataTime() + d.Trip + p.kept() + d.Control + d.Trip
}

// Expects implements Forecast: announced chunks.
func (w *commandWindow) Expects(target int32) (promised, open bool) {
	return w.coming[target] > 0, false
}
