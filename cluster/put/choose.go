package cluster

import "farflash/sim"

// Where no group bids, a gateway finds a chunk's targets itself: by the placement alone, or by asking more of them than it needs how busy they are and taking the
// least busy ones (the power of d choices: Azar et al. 1999, Mitzenmacher 2001). A target counts what its disk has and what has begun to arrive; of what is on its way it knows
// nothing, which is why asking more of them does not help more.

// maxCandidates is how many targets are asked for a chunk at most.
const maxCandidates = 64

// chooser finds targets for a protocol.
type chooser struct {
	c      *Cluster
	chosen func(chunk int32)      // is called when a chunk's targets are known
	coming func(target int32) int // how many pieces have begun to come to a target
	list   []candidates           // by chunk
	node   [1]int32
}

// candidates are the targets that are asked for a chunk.
type candidates struct {
	targets  [maxCandidates]int32
	busy     [maxCandidates]sim.Time
	n        int8
	answered int8
}

// Kinds of control messages by which targets are asked. A protocol's own are below.
const (
	probe uint8 = firstRead - 2 + iota
	probed
)

// choose finds a chunk's targets, now or after asking.
func (h *chooser) choose(i int32) {
	c := h.c
	x := &c.chunks[i]
	if c.cfg.Choices == 1 {
		x.n = int8(len(c.places.Place(x.id, c.copies, x.targets[:0])))
		h.chosen(i)
		return
	}
	for int(i) >= len(h.list) {
		h.list = append(h.list, candidates{})
	}
	s := &h.list[i]
	s.answered = 0
	s.n = int8(len(c.places.Place(x.id, c.copies*c.cfg.Choices, s.targets[:0])))
	for _, t := range s.targets[:s.n] {
		h.node[0] = c.nodeOfTarget(t)
		c.tell(x.gateway, message{kind: probe, from: x.gateway, chunk: i, id: x.id}, h.node[:])
	}
}

// message handles what is heard of asking, and reports whether it was that.
func (h *chooser) message(m *message) bool {
	c := h.c
	switch m.kind {
	case probe:
		h.node[0] = m.from
		c.tell(c.nodeOfTarget(m.to), message{kind: probed, from: m.to, chunk: m.chunk, id: m.id, a: c.targets[m.to].disk.backlog(c.eng.Now()) + sim.Time(h.coming(m.to))*c.takes(m.to, c.piece)}, h.node[:])
	case probed:
		if x := &c.chunks[m.chunk]; x.id == m.id {
			h.answer(x, m)
		}
	default:
		return false
	}
	return true
}

// answer sorts an answer in. With the last one the least busy targets are taken; of equally busy ones those that answered first.
func (h *chooser) answer(x *chunk, m *message) {
	s := &h.list[m.chunk]
	k := int(s.answered)
	for k > 0 && m.a < s.busy[k-1] {
		s.busy[k], s.targets[k] = s.busy[k-1], s.targets[k-1]
		k--
	}
	s.busy[k], s.targets[k] = m.a, m.from
	if s.answered++; s.answered < s.n {
		return
	}
	x.n = int8(copy(x.targets[:h.c.copies], s.targets[:s.n]))
	h.chosen(m.chunk)
}
