package put

import (
	"farflash/model/cluster/internal/queue"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// ReplicastProxy is Replicast with a target that chooses for its whole group (model a).
const ReplicastProxy Scheme = 10

var replicastProxy = Traits{Name: "replicast-proxy", Number: "a", Build: CompatSURGEHead, Finds: FindsBidders,
	Chosen:     byProxy,
	Stuck:      "only a group's proxy knows what the group has promised",
	Multicasts: true, Reserves: true, Times: reserve.ProxyConfig,
	Messages: []string{askProxy: "request", proxyAnswer: "window", proxyTakes: "reserve", proxyKept: "ack",
		memberDone: "done"},
	New: func(b *Bus) Protocol { return newProxied(b) }}

// proxied is Replicast with a proxy for each group (SURGE's model a). A gateway asks the group's first target, the
// proxy, which knows all reservations of the members. It chooses the members whose disks can begin to write first,
// notifies them, and answers with one window for all. The gateway multicasts the data in that window. A member reports
// to the proxy when it has received the chunk, together with the time at which its disk will have completed its
// backlog.
type proxied struct {
	b       *Bus
	proxies []*reserve.Proxy       // by group
	pacer   []reserve.Pacer        // by group: limits a proxy's answers, where messages do not queue on the link
	waiting []queue.Queue[Message] // by group: requests held back by the pacer
	wake    []sim.Timer            // by group
	bids    []*reserve.Sparse      // by target
	puts    []promised             // by chunk
	picks   []reserve.Pick
}

// promised is a gateway's state of a chunk that it puts.
type promised struct {
	multicast
	group int32
}

// Kinds of control messages.
const (
	askProxy uint8 = iota
	proxyAnswer
	proxyTakes // to a member: a window has been reserved at it
	proxyKept
	memberDone // to the proxy
)

func newProxied(b *Bus) *proxied {
	p := &proxied{b: b, waiting: make([]queue.Queue[Message], b.GroupCount())}
	for g := range b.GroupCount() {
		p.proxies = append(p.proxies, reserve.NewProxy(b.Times))
		p.pacer = append(p.pacer, reserve.NewPacer(b.Times, b.Times.ControlRate))
		p.wake = append(p.wake, b.NewTimer(wakeKind|uint32(g)))
	}
	for range b.Targets {
		p.bids = append(p.bids, reserve.NewSparse(b.Times))
	}
	return p
}

// wakeKind flags a timer's argument as a proxy's.
const wakeKind = 1 << 31

// leader returns the proxy of a group.
func (p *proxied) leader(group int32) int32 { return group * int32(p.b.GroupSize) }

// Begin implements Protocol.
func (p *proxied) Begin(i int32) {
	b := p.b
	for int(i) >= len(p.puts) {
		p.puts = append(p.puts, promised{})
	}
	x := &b.Chunks[i]
	p.puts[i] = promised{group: b.chooseGroup(x)}
	x.Groups[0] = p.puts[i].group
	b.toTarget(Message{Kind: askProxy, From: x.Gateway, To: p.leader(p.puts[i].group), Chunk: i, ID: x.ID})
}

// Message implements Protocol.
func (p *proxied) Message(m *Message) {
	b := p.b
	switch m.Kind {
	case askProxy:
		group := m.To / int32(b.GroupSize)
		w := &p.waiting[group]
		if w.Empty() && p.mayAnswer(group) {
			p.answer(m)
			return
		}
		w.Push(*m)
		b.Arm(p.wake[group], max(p.pacer[group].Next(), b.Now()))
	case proxyAnswer:
		b.After(m.A, uint32(m.Chunk))
	case proxyTakes:
		p.bids[m.To].Reserve(b.Now(), m.ID, m.N, reserve.Window{Left: m.A, Right: m.B})
	case proxyKept:
		b.Outcomes.Acknowledged(m.Chunk)
	case memberDone:
		p.proxies[m.To/int32(b.GroupSize)].Done(m.N, m.ID, m.A)
	}
}

// mayAnswer reports whether a proxy's share of the link for control messages has capacity for an answer, and uses it.
func (p *proxied) mayAnswer(group int32) bool {
	b := p.b
	if b.Queued {
		return true // messages queue on the proxy's link
	}
	size := units.Bytes(b.Copies+1) * b.Times.ControlSize
	if b.Compat != CompatNone {
		size /= 8 // SURGE counts these bytes as bits
	}
	return p.pacer[group].Use(b.Now(), size)
}

// answer has a proxy choose for a gateway and notify everyone involved.
func (p *proxied) answer(m *Message) {
	b := p.b
	now, group := b.Now(), m.To/int32(b.GroupSize)
	p.picks = p.proxies[group].Assign(now, m.ID, &b.Rand, p.picks[:0])
	x := &b.Chunks[m.Chunk]
	x.N = int8(len(p.picks))
	w := p.picks[0].Window
	// The gateway reads its targets when the answer arrives. The answer is sent first, because its path is longer.
	b.toGateway(Message{Kind: proxyAnswer, From: m.To, To: m.From, Chunk: m.Chunk, ID: m.ID, A: w.Left, B: w.Right}, 0)
	for k, pick := range p.picks {
		t := p.leader(group) + pick.Server
		x.Targets[k] = t
		p.between(Message{Kind: proxyTakes, From: m.To, To: t, Chunk: m.Chunk, ID: m.ID, N: m.From, A: w.Left,
			B: w.Right})
	}
}

// between sends a control message from a target to another. One to the target itself is delivered at once.
func (p *proxied) between(m Message) {
	if m.From == m.To {
		p.Message(&m)
		return
	}
	p.b.toNode(p.b.Node(m.From), m, p.b.Node(m.To))
}

// Timer implements Protocol: the next frame of a chunk is due, or a proxy may answer the next request.
func (p *proxied) Timer(arg uint32) {
	if arg&wakeKind != 0 {
		p.next(int32(arg &^ wakeKind))
		return
	}
	if takes, more := p.puts[arg].send(p.b, int32(arg)); more {
		p.b.After(p.b.Now()+takes, arg)
	}
}

// next has a proxy answer the oldest requests while its share of the link allows it.
func (p *proxied) next(group int32) {
	w := &p.waiting[group]
	for !w.Empty() && p.mayAnswer(group) {
		m := w.Pop()
		p.answer(&m)
	}
	if !w.Empty() {
		p.b.Arm(p.wake[group], p.pacer[group].Next())
	}
}

// Frame implements Protocol.
func (p *proxied) Frame(f Frame) {
	b, s := p.b, &p.puts[f.Arg]
	if !s.whole(b, f) {
		return
	}
	x := &b.Chunks[f.Arg]
	p.bids[f.Target].Done(x.ID)
	leader := p.leader(s.group)
	b.Disks.Write(f.Target, Message{Kind: proxyKept, From: f.Target, To: x.Gateway, Chunk: int32(f.Arg)})
	written := b.Now() + b.Disks.Backlog(f.Target)
	p.between(Message{Kind: memberDone, From: f.Target, To: leader, Chunk: int32(f.Arg), ID: x.ID,
		N: f.Target - leader, A: written})
}

// Floor implements Forecast: request and answer, the window, which begins when the members can know of it, the data,
// the disk and the acknowledgement.
func (p *proxied) Floor(plan *Plan) sim.Time {
	d, ctl := plan.Times, plan.OnLink()
	return ctl + d.Trip + max(ctl, d.Control) + d.Trip + d.Lead + plan.dataTime() + d.Trip + plan.kept() + ctl + d.Trip
}

// Expects implements Forecast: windows that the proxy has reserved at the target.
func (p *proxied) Expects(target int32) (promised, open bool) { return p.bids[target].Expects() }
