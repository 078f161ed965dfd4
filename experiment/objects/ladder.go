package objects

import (
	"slices"
	"strings"

	"farflash/model/cluster"
	"farflash/model/cluster/reserve"
	"farflash/result"
	"farflash/sim"
)

// A run's result has the message sequence of a few successive chunks at the same targets, for a chart like the
// Replicast paper's figure 2. The end of the warm-up is known only after the run, so several sequences are recorded at
// regular times, and the first one after the warm-up is kept.
const (
	ladderChunks   = 3    // followed per sequence
	ladderTargets  = 12   // shown at most
	ladderAsked    = 64   // recorded at most
	ladderRungs    = 2000 // at most
	ladderEvery    = 10   // slices of the run between starts
	ladderPatience = 40   // multiple of the time of a lone chunk after which it is abandoned
)

// ladder is one message sequence.
type ladder struct {
	after    uint64   // only chunks with a higher number are followed from their start
	until    sim.Time // when it is abandoned
	chunks   []uint64
	targets  []int32
	gateways int32 // nodes with a lower number are gateways
	done     int
	full     bool
	rungs    []rung
	latest   map[hop]int // the latest, still growing rung of data
}

// rung is an element of a sequence. Times are those of the run.
type rung struct {
	kind            string
	chunk           int // counted from 1; 0: any other
	gateway, target int32
	from            int32    // the sending target, for messages between targets and data; -1: none
	begin, end      sim.Time // of a window: its edges
	given, ended    sim.Time // of a window: when the target issued it and when it learned the decision
	id              uint64
}

// hop is a transfer of a chunk's data between two nodes.
type hop struct {
	chunk    uint64
	from, to int32
}

// Kinds of rungs other than messages, whose names have an arrow prefix.
const (
	rungPut      = "put"
	rungGet      = "get"
	rungData     = "data"
	rungGot      = "got" // data that a gateway reads
	rungDisk     = "disk"
	rungRead     = "disk reads"
	rungBid      = "tentative"
	rungTaken    = "accepted"
	rungCanceled = "canceled"
	toTargets    = "> "
	toGateways   = "< "
	aside        = "= " // between targets
)

func newLadder(c *cluster.Cluster, gateways int, now sim.Time) *ladder {
	return &ladder{after: c.LastChunk(), until: now + ladderPatience*c.Floor(), gateways: int32(gateways),
		latest: map[hop]int{}}
}

// over reports whether the recording is complete.
func (l *ladder) over() bool { return l.full || l.done == ladderChunks }

func (l *ladder) probes() cluster.Probes {
	return cluster.Probes{OnSend: l.send, OnReceive: l.receive, OnBid: l.bid, OnDisk: l.work}
}

// number is a chunk's index among the followed ones, from 1; 0 if it is not followed.
func (l *ladder) number(chunk uint64) int { return slices.Index(l.chunks, chunk) + 1 }

func (l *ladder) shows(target int32) bool { return slices.Contains(l.targets, target) }

func (l *ladder) add(r rung) int {
	if len(l.rungs) >= ladderRungs {
		l.full = true
	}
	l.rungs = append(l.rungs, r)
	return len(l.rungs) - 1
}

// send selects the chunks to follow: the first one that asks a target, or sends to one, and the next ones that ask one
// of the same targets.
func (l *ladder) send(x *cluster.Passage) {
	if x.Sent > l.until {
		l.full = true
	}
	if x.Chunk <= l.after {
		return
	}
	followed := l.number(x.Chunk) > 0
	if !followed {
		if x.From >= l.gateways {
			return
		}
		meets := len(l.chunks) == 0
		for _, node := range x.To {
			meets = meets || l.shows(node-l.gateways)
		}
		if !meets || len(l.chunks) == ladderChunks {
			return
		}
		l.chunks = append(l.chunks, x.Chunk)
	}
	for _, node := range x.To {
		if t := node - l.gateways; t >= 0 && !l.shows(t) && len(l.targets) < ladderAsked {
			l.targets = append(l.targets, t)
		}
	}
}

func (l *ladder) receive(x *cluster.Passage) {
	k := l.number(x.Chunk)
	node := x.To[0]
	if x.Data {
		l.frame(x, k, node)
		return
	}
	if k == 0 {
		return
	}
	r := rung{kind: toTargets + x.Kind, chunk: k, gateway: x.From, target: node - l.gateways, from: -1, begin: x.Sent,
		end: x.Received}
	switch {
	case x.From < l.gateways:
	case node < l.gateways:
		r.kind, r.gateway, r.target = toGateways+x.Kind, node, x.From-l.gateways
	default:
		r.kind, r.gateway, r.from = aside+x.Kind, -1, x.From-l.gateways
	}
	if l.shows(r.target) && (r.from < 0 || l.shows(r.from)) {
		l.add(r)
	}
}

// frame merges successive frames of a chunk between two nodes into one rung. given is the time at which the first one
// was sent.
func (l *ladder) frame(x *cluster.Passage, k int, node int32) {
	r := rung{kind: rungData, chunk: k, gateway: x.Gateway, target: node - l.gateways, from: -1,
		begin: x.Received - x.Takes, given: x.Sent}
	if r.from = x.From - l.gateways; r.from < 0 {
		r.from = -1
	}
	if node < l.gateways {
		if k == 0 {
			return
		}
		r.kind, r.target = rungGot, r.from
	}
	if !l.shows(r.target) {
		return
	}
	at := hop{x.Chunk, x.From, node}
	i, ok := l.latest[at]
	if !ok {
		i = l.add(r)
		l.latest[at] = i
	}
	l.rungs[i].end = x.Received
}

func (l *ladder) bid(x *cluster.BidChange) {
	k := l.number(x.Chunk)
	if k == 0 || !l.shows(x.Target) {
		return
	}
	r := rung{chunk: k, gateway: x.Gateway, target: x.Target, from: -1, begin: x.Window.Left, end: x.Window.Right,
		given: x.At, id: x.Chunk}
	switch {
	case x.Done:
		l.decide(rungTaken, rungTaken, x)
	case x.State == reserve.Tentative:
		r.kind = rungBid
		l.add(r)
	case x.State == reserve.Accepted:
		l.decide(rungBid, rungBid, x)
		r.kind = rungTaken
		l.add(r)
	default:
		l.decide(rungBid, rungCanceled, x)
		l.decide(rungTaken, rungTaken, x) // accepted before, and released
	}
}

// decide ends a chunk's window at a target.
func (l *ladder) decide(from, to string, x *cluster.BidChange) {
	for i := len(l.rungs) - 1; i >= 0; i-- {
		if r := &l.rungs[i]; r.kind == from && r.id == x.Chunk && r.target == x.Target && r.ended == 0 {
			r.kind, r.ended = to, x.At
			return
		}
	}
}

func (l *ladder) work(x *cluster.Work) {
	r := rung{kind: rungDisk, chunk: l.number(x.Chunk), gateway: -1, target: x.Target, from: -1, begin: x.From,
		end: x.To}
	if x.Read {
		r.kind = rungRead
	}
	if l.shows(x.Target) {
		l.add(r)
	}
}

// finished records the completion of a chunk.
func (l *ladder) finished(d *cluster.Done) {
	if k := l.number(d.Chunk); k > 0 {
		l.done++
		r := rung{kind: rungPut, chunk: k, gateway: d.Gateway, target: -1, from: -1, begin: d.Begun, end: d.Done}
		if d.Read {
			r.kind = rungGet
		}
		l.add(r)
	}
}

func (x *rung) arrow() bool { return strings.HasPrefix(x.kind, aside) }

// most returns the targets to show: those that receive or send data of the followed chunks, then those that send
// messages, then those that are asked.
func (l *ladder) most() []int32 {
	worth := map[int32]int{}
	for i := range l.rungs {
		x := &l.rungs[i]
		if x.chunk == 0 || x.target < 0 {
			continue
		}
		v := 1
		switch {
		case x.kind == rungData || x.kind == rungGot || x.kind == rungDisk || x.kind == rungRead:
			v = 3
		case strings.HasPrefix(x.kind, toGateways):
			v = 2
		}
		worth[x.target] = max(worth[x.target], v)
	}
	list := slices.Clone(l.targets)
	slices.SortStableFunc(list, func(a, b int32) int { return worth[b] - worth[a] })
	return list[:min(len(list), ladderTargets)]
}

// fillLadder fills in the first sequence that started after the warm-up and has a completed chunk, excluding the start
// of the run, when all gateways ask at once; if there is none, the last one before.
func fillLadder(r *result.Result, list []*ladder, starts []sim.Time, warm sim.Time) {
	var best *ladder
	for i, l := range list {
		if l.done == 0 {
			continue
		}
		best = l
		if starts[i] >= warm && starts[i] > 0 {
			break
		}
	}
	if best == nil {
		return
	}
	var rows []string
	var v [][]float64
	shown := best.most()
	for _, x := range best.rungs {
		if x.target >= 0 && !slices.Contains(shown, x.target) ||
			x.from >= 0 && x.arrow() && !slices.Contains(shown, x.from) {
			continue
		}
		rows = append(rows, x.kind)
		row := []float64{float64(x.chunk), float64(x.gateway), float64(x.target), float64(x.from)}
		for _, at := range []sim.Time{x.begin, x.end, x.given, x.ended} {
			row = append(row, at.Microseconds())
		}
		v = append(v, row)
	}
	r.SetMatrix("cluster.protocol", rows,
		[]string{"chunk", "gateway", "target", "from", "begin", "end", "given", "ended"}, v)
}
