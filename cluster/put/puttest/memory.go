// Package puttest is for tests of what stands on either side of put.Bus: a cluster in memory, and the test that every bus passes.
//
// Its main parts are Memory, which carries each message and frame by itself and whose disks write one piece after the other, so that any protocol of package
// put runs on it and its times can be computed by hand, and Conform, which holds the bus of any cluster, the one in memory included, to the
// contracts of put.Messages, put.Frames, put.Disks and put.Outcomes.
//
// What it leaves out: queues on links, reads, retries and failures.
package puttest

import (
	"slices"

	"farflash/cluster/internal/slab"
	"farflash/cluster/placement"
	"farflash/cluster/put"
	"farflash/cluster/reserve"
	"farflash/rng"
	"farflash/sim"
	"farflash/units"
)

// Memory is a cluster in memory. Any number of messages pass at the same time; only the frames that a node sends take turns on its link.
type Memory struct {
	Bus      *put.Bus
	Protocol put.Protocol
	// Done counts the chunks whose replicas are all kept, Aborted those that are given up.
	Done, Aborted int

	eng    *sim.Engine
	self   sim.Component
	here   sim.Target
	things slab.Slab[thing]
	chunks slab.Slab[struct{}]
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
}

// Kinds of events.
const (
	timer uint16 = iota
	arrives
)

// Parts is a plan of a small cluster for a protocol: 4 gateways, two groups of 6 targets, 3 copies of 16 KiB in frames of 4 KiB.
func Parts(p put.Scheme) (put.Plan, error) {
	c := reserve.DefaultConfig()
	if t := p.Traits(); t.Times != nil {
		c = t.Times()
	}
	c.Group, c.ChunkSize, c.FrameSize = 6, 16*units.KiB, 4*units.KiB
	copies := 3
	if p.Traits().Finds == put.FindsOwn {
		copies = 1
	}
	c.Replicas = copies
	d, err := reserve.New(c)
	if err != nil {
		return put.Plan{}, err
	}
	return put.Plan{Traits: p.Traits(), Times: d, Seed: 1, Gateways: 4, Targets: 12, Copies: copies, Piece: c.ChunkSize, Frame: c.FrameSize, Trip: c.Trip,
		GroupSize: 6, Candidates: 2, Choices: 1, Overcommit: 2, Ahead: 10 * d.DiskChunk, Queued: true}, nil
}

// NewMemory returns a cluster in memory on which a plan's protocol runs.
func NewMemory(p put.Plan, eng *sim.Engine) (*Memory, error) {
	m := &Memory{eng: eng, self: eng.NewComponent(), free: make([]sim.Time, p.Gateways+p.Targets), busy: make([]sim.Time, p.Targets)}
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
	if e.Kind == timer {
		m.Protocol.Timer(e.Arg)
		return
	}
	x := m.things.Items[e.Arg]
	m.things.Give(int32(e.Arg))
	target := x.node - int32(m.Bus.Gateways)
	switch {
	case !x.data:
		if target >= 0 {
			x.message.To = target
		}
		m.Protocol.Message(&x.message)
	case m.Bus.Chunks[x.chunk].ID == x.id:
		x.frame.Target = target
		m.Protocol.Frame(x.frame)
	}
}

// at has something happen.
func (m *Memory) at(t sim.Time, x thing) {
	i := m.things.Take()
	m.things.Items[i] = x
	m.eng.Schedule(m.self, m.here, t, arrives, uint32(i))
}

type messages struct{ in *Memory }

func (m messages) Send(_ int32, x put.Message, to []int32) {
	for _, node := range to {
		m.in.at(m.in.eng.Now()+m.in.Bus.OnLink()+m.in.Bus.Trip, thing{message: x, node: node})
	}
}

func (m messages) Cancel(from int32, x put.Message, to []int32) { m.Send(from, x, to) }

func (m messages) Hold(x put.Message, after sim.Time) {
	m.in.at(m.in.eng.Now()+after+m.in.Bus.OnLink()+m.in.Bus.Trip, thing{message: x, node: x.To})
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
	for _, node := range to {
		m.at(m.free[from]+m.Bus.Trip, thing{frame: x, node: node, chunk: chunk, id: m.Bus.Chunks[chunk].ID, data: true})
	}
}

func (f frames) Waiting(_ int32, seen []put.WaitingFrame) []put.WaitingFrame { return seen }

type disks struct{ in *Memory }

func (d disks) Backlog(target int32) sim.Time { return max(d.in.busy[target]-d.in.eng.Now(), 0) }
func (d disks) WriteTime(int32) sim.Time      { return d.in.Bus.Times.DiskChunk }
func (d disks) Write(target int32, x put.Message) {
	m := d.in
	m.busy[target] = max(m.busy[target], m.eng.Now()) + d.WriteTime(target)
	m.Bus.Messages.Hold(x, m.busy[target]-m.eng.Now())
}

type outcomes struct{ in *Memory }

func (o outcomes) Acknowledged(chunk int32) {
	m := o.in
	x := &m.Bus.Chunks[chunk]
	if x.Acked++; int(x.Acked) == m.Bus.Copies {
		m.Done++
		m.over(chunk)
	}
}

func (o outcomes) Abort(chunk int32) {
	o.in.Aborted++
	o.in.over(chunk)
}

func (m *Memory) over(chunk int32) {
	m.Bus.Chunks[chunk].ID = 0
	m.chunks.Give(chunk)
}
