package put

import "farflash/sim"

// Where no group bids, a gateway finds a chunk's targets itself: by the placement alone, or by asking more targets than
// it needs for their load and choosing the least loaded ones (the power of d choices: Azar et al. 1999, Mitzenmacher
// 2001). A target counts the backlog of its disk and the pieces that have begun to arrive. It does not see data in
// flight, which is why asking more targets does not help further.

// MaxCandidates is the largest number of targets asked for a chunk.
const MaxCandidates = 64

// chooser finds targets for a protocol.
type chooser struct {
	b      *Bus
	chosen func(chunk int32)      // called when a chunk's targets are known
	coming func(target int32) int // number of pieces that a target is receiving
	list   []candidates           // by chunk
}

// candidates are the targets asked for a chunk.
type candidates struct {
	targets  [MaxCandidates]int32
	busy     [MaxCandidates]sim.Time
	n        int8
	answered int8
}

// Kinds of control messages of the chooser. A protocol's own kinds are below.
const (
	probe uint8 = FirstRead - 2 + iota
	probed
)

// choose finds a chunk's targets, at once or after asking.
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

// message handles the chooser's messages, and reports whether m was one.
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

// answer inserts an answer in order of load. After the last answer the least loaded targets are chosen; ties go to
// those that answered first.
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
