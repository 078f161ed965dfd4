// Package puttest supports tests of both sides of put.Bus: an in-memory cluster for protocols, and a conformance test
// for buses.
//
// Its main parts are Memory and Conform. Memory carries each message and frame independently and has disks that write
// one piece after the other, so that any protocol of package put runs on it and its times can be computed by hand.
// Conform tests the bus of any cluster, including Memory, against the contracts of put.Messages, put.Frames, put.Disks
// and put.Outcomes.
//
// It leaves out queues on links, and reads.
package puttest

import (
	"fmt"
	"slices"

	"farflash/model/cluster/internal/slab"
	"farflash/model/cluster/placement"
	"farflash/model/cluster/put"
	"farflash/model/cluster/reserve"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Memory is an in-memory cluster. Any number of messages pass at the same time; only the frames that a node sends queue
// on its link.
type Memory struct {
	Bus      *put.Bus
	Protocol put.Protocol
	// Done counts the chunks with all replicas stored, Aborted the attempts that found no capacity, and Dropped the
	// chunks that were not retried after that, under SURGE's rules.
	Done, Aborted, Dropped int
	// Lose decides whether an arrival at a node is lost; with nil, none is lost. Cancellations are never lost.
	Lose func(node int32, data bool) bool
	// Wrong is the first violation of what protocols may do: sending a target more than its piece, sending to another
	// node, writing data that has not arrived, completing with fewer targets than copies, or choosing a target outside
	// the chunk's groups.
	Wrong error

	// Crowd is the longest time for which frames would have queued in front of a target that received them one by one.
	Crowd sim.Time

	ways   map[way]*moved
	ports  []sim.Time // by target: when its port would be free
	fell   []int      // by target: number of failures
	eng    *sim.Engine
	self   sim.Component
	here   sim.Target
	things slab.Slab[thing]
	chunks slab.Slab[struct{}]
	resume map[int32]sim.Time // by chunk: when an aborted attempt is retried
	began  uint64
	free   []sim.Time // by node: when its link has sent all frames
	busy   []sim.Time // by target: when its disk is idle
}

// thing is a pending event.
type thing struct {
	message put.Message
	frame   put.Frame
	node    int32
	chunk   int32 // of a frame
	id      uint64
	data    bool
	sure    bool  // exempt from loss
	from    int32 // the target that delays it, or -1
	fell    int   // number of failures of that target when it was sent
}

// way identifies an attempt at a chunk and one of its targets.
type way struct {
	id     uint64
	target int32
}

// moved is the progress of a piece.
type moved struct {
	sent, got units.Bytes
	wrote     bool
}

// Kinds of events.
const (
	timer uint16 = iota
	arrives
	resumes
)

// Parts returns a plan of a small cluster for a protocol: 4 gateways, two groups of 6 targets, 3 copies of 16 KiB in
// frames of 5 KiB, so that the last frame is not full.
func Parts(p put.Scheme) (put.Plan, error) { return parts(p, put.CompatNone) }

// Peers is Parts under SURGE's rules, for a protocol that SURGE has: links have no queues.
func Peers(p put.Scheme) (put.Plan, error) { return parts(p, p.Traits().Build) }

func parts(p put.Scheme, compat put.Compat) (put.Plan, error) {
	c := reserve.DefaultConfig()
	if t := p.Traits(); t.Times != nil {
		c = t.Times()
	}
	c.Group, c.ChunkSize, c.FrameSize = 6, 16*units.KiB, 5*units.KiB
	copies := 3
	if p.Traits().Finds == put.FindsOwn {
		copies = 1
	}
	c.Replicas = copies
	c.Compat = reserve.Compat(compat != put.CompatNone)
	d, err := reserve.New(c)
	if err != nil {
		return put.Plan{}, err
	}
	return put.Plan{Traits: p.Traits(), Times: d, Seed: 1, Gateways: 4, Targets: 12, Copies: copies,
		Piece: c.ChunkSize, Frame: c.FrameSize, Trip: c.Trip,
		GroupSize: 6, Candidates: 2, Choices: 1, Overcommit: 2, Ahead: 10 * d.DiskChunk, Alone: d.DiskChunk,
		Queued: compat == put.CompatNone, Compat: compat}, nil
}

// NewMemory returns an in-memory cluster that runs a plan's protocol.
func NewMemory(p put.Plan, eng *sim.Engine) (*Memory, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	m := &Memory{eng: eng, self: eng.NewComponent(), free: make([]sim.Time, p.Gateways+p.Targets),
		busy: make([]sim.Time, p.Targets), ways: map[way]*moved{}, resume: map[int32]sim.Time{},
		ports: make([]sim.Time, p.Targets), fell: make([]int, p.Targets)}
	m.here = eng.AddHandler(m)
	b, err := put.NewBus(p)
	if err != nil {
		return nil, err
	}
	b.Clock = put.Clock{Engine: eng, Self: m.self, Handler: m.here, Kind: timer}
	b.Messages, b.Frames, b.Disks, b.Outcomes = messages{m}, frames{m}, disks{m}, outcomes{m}
	b.Rand, b.Tally = rng.NewStream(p.Seed, "cluster"), new(put.Tally)
	if b.Places, err = placement.NewHRW(placement.Uniform(p.Targets)); err != nil {
		return nil, err
	}
	m.Bus, m.Protocol = b, p.Traits.New(b)
	return m, nil
}

// Begin has a gateway put a chunk, and returns its number.
func (m *Memory) Begin(gateway int32) int32 {
	i := m.chunks.Take()
	if int(i) == len(m.Bus.Chunks) {
		m.Bus.Chunks = append(m.Bus.Chunks, put.Chunk{})
	}
	m.began++
	m.Bus.Chunks[i] = put.Chunk{ID: m.began, Gateway: gateway, Begun: m.eng.Now()}
	m.Protocol.Begin(i)
	return i
}

// Handle implements sim.Handler.
func (m *Memory) Handle(e sim.Event) {
	switch e.Kind {
	case timer:
		m.Protocol.Timer(e.Arg)
		return
	case resumes:
		if m.resume[int32(e.Arg)] == m.eng.Now() {
			m.tries(int32(e.Arg))
		}
		return
	}
	x := m.things.Items[e.Arg]
	m.things.Give(int32(e.Arg))
	target := x.node - int32(m.Bus.Gateways)
	if x.from >= 0 && m.fell[x.from] != x.fell || !x.sure && m.Lose != nil && m.Lose(x.node, x.data) {
		return
	}
	switch {
	case !x.data:
		if target >= 0 {
			x.message.To = target
		}
		m.Protocol.Message(&x.message)
	case m.Bus.Chunks[x.chunk].ID == x.id:
		x.frame.Target = target
		m.piece(x.id, target).got += x.frame.Size
		m.Crowd = max(m.Crowd, m.ports[target]-m.eng.Now())
		m.ports[target] = max(m.ports[target], m.eng.Now()) + m.Bus.FrameTime(x.frame.Size)
		m.Protocol.Frame(x.frame)
	}
}

// Again has a gateway abandon its attempt at a chunk and start another one.
func (m *Memory) Again(i int32) {
	m.Protocol.(put.Recovery).Abandon(i)
	m.renumber(i)
	m.tries(i)
}

// renumber gives a chunk a new attempt ID.
func (m *Memory) renumber(i int32) {
	x := &m.Bus.Chunks[i]
	m.began++
	x.ID, x.N, x.Acked = m.began, 0, 0
}

// tries starts the next attempt.
func (m *Memory) tries(i int32) {
	delete(m.resume, i)
	m.Protocol.Begin(i)
}

// Crash has a target lose all its state, and the pieces that its disk has not written.
func (m *Memory) Crash(target int32) {
	m.fell[target]++
	m.busy[target] = m.eng.Now()
	m.Protocol.(put.Recovery).Restart(target)
	if promised, open := m.Protocol.(put.Forecast).Expects(target); promised || open {
		m.wrong("target %d has lost all that it knew, and expects something", target)
	}
}

// piece returns the progress of a chunk's piece at a target.
func (m *Memory) piece(id uint64, target int32) *moved {
	k := way{id, target}
	if m.ways[k] == nil {
		m.ways[k] = &moved{}
	}
	return m.ways[k]
}

// wrong records the first violation.
func (m *Memory) wrong(format string, args ...any) {
	if m.Wrong == nil {
		m.Wrong = fmt.Errorf("%v, at %v: %s", m.Bus.Traits.Name, m.eng.Now(), fmt.Sprintf(format, args...))
	}
}

// at schedules an event.
func (m *Memory) at(t sim.Time, x thing) {
	i := m.things.Take()
	m.things.Items[i] = x
	m.eng.Schedule(m.self, m.here, t, arrives, uint32(i))
}

type messages struct{ in *Memory }

func (m messages) Send(_ int32, x put.Message, to []int32) { m.post(x, to, false) }

func (m messages) Cancel(_ int32, x put.Message, to []int32) { m.post(x, to, true) }

func (m messages) post(x put.Message, to []int32, sure bool) {
	for _, node := range to {
		m.in.at(m.in.eng.Now()+m.in.Bus.OnLink()+m.in.Bus.Trip, thing{message: x, node: node, sure: sure, from: -1})
	}
}

func (m messages) Hold(x put.Message, after sim.Time) {
	m.in.at(m.in.eng.Now()+after+m.in.Bus.OnLink()+m.in.Bus.Trip,
		thing{message: x, node: x.To, from: x.From, fell: m.in.fell[x.From]})
}

func (m messages) Accept(x put.Message, targets []int32, picks []reserve.Pick) {
	for _, t := range targets {
		y := x
		if k := slices.IndexFunc(picks, func(p reserve.Pick) bool { return p.Server == t }); k >= 0 {
			y.N, y.A, y.B = t, picks[k].Window.Left, picks[k].Window.Right
		}
		m.Send(x.From, y, []int32{m.in.Bus.Node(t)})
	}
}

type frames struct{ in *Memory }

func (f frames) Send(from, chunk int32, x put.Frame, _ sim.Time, to []int32) {
	m := f.in
	m.free[from] = max(m.free[from], m.eng.Now()) + m.Bus.FrameTime(x.Size)
	c := &m.Bus.Chunks[chunk]
	for _, node := range to {
		target := node - int32(m.Bus.Gateways)
		p := m.piece(c.ID, target)
		if p.sent += x.Size; p.sent > m.Bus.Piece || x.Size <= 0 || !c.Keeps(target) {
			m.wrong("chunk %d: %v is sent to target %d of %v, %v in all", c.ID, x.Size, target, c.Targets[:c.N], p.sent)
		}
		m.at(m.free[from]+m.Bus.Trip, thing{frame: x, node: node, chunk: chunk, id: c.ID, data: true, from: -1})
	}
}

func (f frames) Waiting(_ int32, seen []put.WaitingFrame) []put.WaitingFrame { return seen }

type disks struct{ in *Memory }

func (d disks) Backlog(target int32) sim.Time { return max(d.in.busy[target]-d.in.eng.Now(), 0) }
func (d disks) WriteTime(int32) sim.Time      { return d.in.Bus.Times.DiskChunk }
func (d disks) Write(target int32, x put.Message) {
	m := d.in
	c := &m.Bus.Chunks[x.Chunk]
	p := m.piece(c.ID, target)
	if p.got != m.Bus.Piece || p.wrote || x.To != c.Gateway || x.From != target {
		m.wrong("chunk %d: target %d writes, of which %v has come: %+v", c.ID, target, p.got, x)
	}
	p.wrote = true
	m.busy[target] = max(m.busy[target], m.eng.Now()) + d.WriteTime(target)
	takes := m.busy[target] - m.eng.Now()
	if now, late := m.Bus.Acknowledges(takes); now {
		takes = 0
	} else {
		takes += late
	}
	m.Bus.Messages.Hold(x, takes)
}

type outcomes struct{ in *Memory }

func (o outcomes) Bound(int32, sim.Time) {}

func (o outcomes) Acknowledged(chunk int32) {
	m := o.in
	x := &m.Bus.Chunks[chunk]
	if x.Acked++; int(x.Acked) == m.Bus.Copies {
		m.Done++
		m.whole(x)
		m.over(chunk)
	}
}

// whole verifies that a completed chunk is stored where it should be.
func (m *Memory) whole(x *put.Chunk) {
	if int(x.N) != m.Bus.Copies {
		m.wrong("chunk %d is done with targets %v", x.ID, x.Targets[:x.N])
	}
	for k, t := range x.Targets[:x.N] {
		if !m.piece(x.ID, t).wrote || slices.Contains(x.Targets[:k], t) {
			m.wrong("chunk %d is done, and target %d of %v has not written it", x.ID, t, x.Targets[:x.N])
		}
		if m.Bus.Traits.Finds != put.FindsBidders {
			continue
		}
		groups := x.Groups[:1]
		if m.Bus.Traits.Several {
			groups = x.Groups[:m.Bus.Candidates]
		}
		if !slices.Contains(groups, t/int32(m.Bus.GroupSize)) {
			m.wrong("chunk %d of groups %v is kept by target %d", x.ID, groups, t)
		}
	}
}

func (o outcomes) Abort(chunk int32, wait sim.Time) {
	m := o.in
	m.Aborted++
	if m.Bus.Compat != put.CompatNone {
		m.Dropped++
		m.over(chunk)
		return
	}
	m.renumber(chunk)
	m.resume[chunk] = m.eng.Now() + wait
	m.eng.Schedule(m.self, m.here, m.resume[chunk], resumes, uint32(chunk))
}

func (m *Memory) over(chunk int32) {
	m.Bus.Chunks[chunk].ID = 0
	m.chunks.Give(chunk)
}
