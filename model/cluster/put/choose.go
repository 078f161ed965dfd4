package put

import "farflash/sim"

// Where no group bids, a gateway finds a chunk's targets itself: by the placement alone, or by asking more of them
// than it needs how busy they are and taking the least busy ones (the power of d choices: Azar et al. 1999,
// Mitzenmacher 2001). A target counts what its disk has and what has begun to arrive; of what is in flight it knows
// nothing, which is why asking more of them does not help more.

// MaxCandidates is how many targets are asked for a chunk at most.
const MaxCandidates = 64

// chooser finds targets for a protocol.
type chooser struct {
	b      *Bus
	chosen func(chunk int32)      // is called when a chunk's targets are known
	coming func(target int32) int // how many pieces have begun to come to a target
	list   []candidates           // by chunk
}

// candidates are the targets that are asked for a chunk.
type candidates struct {
	targets  [MaxCandidates]int32
	busy     [MaxCandidates]sim.Time
	n        int8
	answered int8
}

// Kinds of control messages by which targets are asked. A protocol's own are below.
const (
	probe uint8 = FirstRead - 2 + iota
	probed
)

// choose finds a chunk's targets, now or after asking.
func (c *chooser) choose(i int32) {
	b := c.b
	x := &b.Chunks[i]
	if b.Choices == 1 {
		x.N = int8(len(b.Places.Place(x.ID, b.Copies, x.Targets[:0])))
		c.chosen(i)
		return
	}
	for int(i) >= len(c.list) {
		c.list = append(c.list, candidates{})
	}
	s := &c.list[i]
	s.answered = 0
	s.n = int8(len(b.Places.Place(x.ID, b.Copies*b.Choices, s.targets[:0])))
	for _, t := range s.targets[:s.n] {
		b.toNode(x.Gateway, Message{Kind: probe, From: x.Gateway, Chunk: i, ID: x.ID}, b.Node(t))
	}
}

// message handles what is heard of asking, and reports whether it was that.
func (c *chooser) message(m *Message) bool {
	b := c.b
	switch m.Kind {
	case probe:
		busy := b.Disks.Backlog(m.To) + sim.Time(c.coming(m.To))*b.Disks.WriteTime(m.To)
		b.toNode(b.Node(m.To), Message{Kind: probed, From: m.To, Chunk: m.Chunk, ID: m.ID, A: busy}, m.From)
	case probed:
		if x := &b.Chunks[m.Chunk]; x.ID == m.ID {
			c.answer(x, m)
		}
	default:
		return false
	}
	return true
}

// answer sorts an answer in. With the last one the least busy targets are taken; of equally busy ones those that
// answered first.
func (c *chooser) answer(x *Chunk, m *Message) {
	s := &c.list[m.Chunk]
	k := int(s.answered)
	for k > 0 && m.A < s.busy[k-1] {
		s.busy[k], s.targets[k] = s.busy[k-1], s.targets[k-1]
		k--
	}
	s.busy[k], s.targets[k] = m.A, m.From
	if s.answered++; s.answered < s.n {
		return
	}
	x.N = int8(copy(x.Targets[:c.b.Copies], s.targets[:s.n]))
	c.chosen(m.Chunk)
}
