// Package puttest is for tests of what stands on either side of put.Bus: a cluster in memory, and the test that every
// bus passes.
//
// Its main parts are Memory, which carries each message and frame by itself and whose disks write one piece after the
// other, so that any protocol of package put runs on it and its times can be computed by hand, and Conform, which
// holds the bus of any cluster, the one in memory included, to the contracts of put.Messages, put.Frames, put.Disks
// and put.Outcomes.
//
// What it leaves out: queues on links and reads.
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

// Memory is a cluster in memory. Any number of messages pass at the same time; only the frames that a node sends take
// turns on its link.
type Memory struct {
	Bus      *put.Bus
	Protocol put.Protocol
	// Done counts the chunks whose replicas are all kept, Aborted the attempts for which there was no room, and
	// Dropped the chunks that were not begun again after that, by the rules of SURGE.
	Done, Aborted, Dropped int
	// Lose says whether what arrives at a node is lost; nil loses nothing. What takes something back is never lost.
	Lose func(node int32, data bool) bool
	// Wrong is the first thing that was done that no protocol may do: to send a target of a chunk more than its
	// piece, to send to another, to write what has not come, to be done with fewer targets than there are copies, or
	// to have one of a group that the chunk does not ask.
	Wrong error

	// Crowd is for how long frames would have waited before a target at most, if it took them in turn.
	Crowd sim.Time

	ways   map[way]*moved
	ports  []sim.Time // of targets: until when they would take frames
	fell   []int      // of targets: how often they have failed
	eng    *sim.Engine
	self   sim.Component
	here   sim.Target
	things slab.Slab[thing]
	chunks slab.Slab[struct{}]
	resume map[int32]sim.Time // of chunks whose gateways wait with the next attempt: when it begins
	began  uint64
	free   []sim.Time // of nodes: until when frames are on their links
	busy   []sim.Time // of targets: until when their disks write
}

// thing is something that is to happen.
type thing struct {
	message put.Message
	frame   put.Frame
	node    int32
	chunk   int32 // of a frame
	id      uint64
	data    bool
	sure    bool  // not lost
	from    int32 // the target that holds it back, or -1
	fell    int   // how often that had failed
}

// way is an attempt at a chunk and one of its targets.
type way struct {
	id     uint64
	target int32
}

// moved is what has been done of a piece.
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

// Parts is a plan of a small cluster for a protocol: 4 gateways, two groups of 6 targets, 3 copies of 16 KiB in
// frames of 5 KiB, so that the last is not full.
func Parts(p put.Scheme) (put.Plan, error) { return parts(p, put.CompatNone) }

// Peers is the same by the rules of SURGE, of a protocol that it has: links have no queues.
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

// NewMemory returns a cluster in memory on which a plan's protocol runs.
func NewMemory(p put.Plan, eng *sim.Engine) (*Memory, error) {
	m := &Memory{eng: eng, self: eng.NewComponent(), free: make([]sim.Time, p.Gateways+p.Targets),
		busy: make([]sim.Time, p.Targets), ways: map[way]*moved{}, resume: map[int32]sim.Time{},
		ports: make([]sim.Time, p.Targets), fell: make([]int, p.Targets)}
	m.here = eng.AddHandler(m)
	b := put.NewBus(p)
	b.Clock = put.Clock{Engine: eng, Self: m.self, Handler: m.here, Kind: timer}
	b.Messages, b.Frames, b.Disks, b.Outcomes = messages{m}, frames{m}, disks{m}, outcomes{m}
	b.Rand, b.Tally = rng.NewStream(p.Seed, "cluster"), new(put.Tally)
	var err error
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

// Again has a gateway give up its attempt at a chunk and begin another.
func (m *Memory) Again(i int32) {
	m.Protocol.(put.Recovery).Abandon(i)
	m.renumber(i)
	m.tries(i)
}

// renumber ends an attempt at a chunk.
func (m *Memory) renumber(i int32) {
	x := &m.Bus.Chunks[i]
	m.began++
	x.ID, x.N, x.Acked = m.began, 0, 0
}

// tries begins the next one.
func (m *Memory) tries(i int32) {
	delete(m.resume, i)
	m.Protocol.Begin(i)
}

// Crash has a target lose all that it knows, and what its disk was to write.
func (m *Memory) Crash(target int32) {
	m.fell[target]++
	m.busy[target] = m.eng.Now()
	m.Protocol.(put.Recovery).Restart(target)
	if promised, open := m.Protocol.(put.Forecast).Expects(target); promised || open {
		m.wrong("target %d has lost all that it knew, and expects something", target)
	}
}

// piece is what has been done of a chunk at a target.
func (m *Memory) piece(id uint64, target int32) *moved {
	k := way{id, target}
	if m.ways[k] == nil {
		m.ways[k] = &moved{}
	}
	return m.ways[k]
}

// wrong notes the first thing that is.
func (m *Memory) wrong(format string, args ...any) {
	if m.Wrong == nil {
		m.Wrong = fmt.Errorf("%v, at %v: %s", m.Bus.Traits.Name, m.eng.Now(), fmt.Sprintf(format, args...))
	}
}

// at has something happen.
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

// whole holds that a chunk that is done is kept where it should be.
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
