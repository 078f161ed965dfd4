package scenario

import (
	"fmt"

	"farflash/cluster"
	"farflash/cluster/reserve"
	"farflash/result/perfetto"
	"farflash/sim"
)

// clusterWatch has those who look at a cluster's probes: the ladder that is being taken down, and the timeline.
type clusterWatch struct {
	c        *cluster.Cluster
	gateways int
	ladder   *ladder // nil: none just now
	timeline *clusterTracks

	ladders []*ladder
	starts  []sim.Time
}

// set has the probes tell those who look.
func (w *clusterWatch) set() {
	w.c.Probes = cluster.Probes{}
	if w.ladder != nil {
		w.c.Probes = w.ladder.probes()
	}
	if w.timeline != nil {
		p, q := w.c.Probes, w.timeline.probes()
		w.c.Probes = cluster.Probes{OnSend: p.OnSend, OnReceive: chain(p.OnReceive, q.OnReceive), OnBid: chain(p.OnBid, q.OnBid), OnDisk: chain(p.OnDisk, q.OnDisk)}
	}
}

// chain tells a, if there is one, and then b.
func chain[T any](a, b sim.Probe[T]) sim.Probe[T] {
	if a == nil {
		return b
	}
	return func(x T) {
		a(x)
		b(x)
	}
}

// slice begins a ladder with a slice of the run, if it is time for one and none is under way, and ends one that is over.
func (w *clusterWatch) slice(k int, now sim.Time) {
	if w.ladder != nil && w.ladder.over() {
		w.ladder = nil
	}
	if w.ladder == nil && k%ladderEvery == 0 {
		w.ladder = newLadder(w.c, w.gateways, now)
		w.ladders, w.starts = append(w.ladders, w.ladder), append(w.starts, now)
	}
	w.set()
}

// done takes a chunk that is done.
func (w *clusterWatch) done(d *cluster.Done) {
	if w.timeline != nil {
		w.timeline.done(d)
	}
	if w.ladder == nil {
		return
	}
	if w.ladder.finished(d); w.ladder.over() {
		w.ladder = nil
		w.set()
	}
}

// clusterTracks show a cluster in a timeline: at each gateway its chunks and the messages that it hears, at each target
// messages, bids, what comes over its link, and its disk.
type clusterTracks struct {
	t        *timeline
	gateways int32
	chunks   []*perfetto.Lanes       // of gateways
	heard    []*perfetto.Lanes       // by node: control messages
	bids     []*perfetto.Lanes       // of targets
	links    []*perfetto.Lanes       // by node: data; nil of gateways that read nothing
	disks    []perfetto.Track        // of targets
	drives   []*perfetto.Lanes       // of targets whose disks do several things at once
	runs     []frames                // by node: frames of one chunk that followed each other
	given    map[passing]*givenBid   // bids that have not ended
	moved    map[uint64]*[2]sim.Time // by chunk: when the first frame was sent, when the last one came
}

// frames are some of a chunk that followed each other on a link.
type frames struct {
	chunk      uint64
	begin, end sim.Time
	n          int64
}

// givenBid is a bid and when it was given, and accepted.
type givenBid struct {
	at, accepted sim.Time
	window       reserve.Window
}

// showCluster shows a cluster.
func (t *timeline) showCluster(cfg *cluster.Config, w *clusterWatch) {
	if t == nil {
		return
	}
	n := &clusterTracks{t: t, gateways: int32(cfg.Gateways), runs: make([]frames, cfg.Gateways+cfg.Targets), given: map[passing]*givenBid{}, moved: map[uint64]*[2]sim.Time{}}
	top := t.w.Track(perfetto.Top, "gateways")
	for i := range cfg.Gateways {
		g := t.w.Track(top, fmt.Sprintf("gateway %d", i))
		n.chunks, n.heard = append(n.chunks, t.w.Lanes(g, "chunks")), append(n.heard, t.w.Lanes(g, "control messages"))
		var link *perfetto.Lanes
		if cfg.Reads > 0 {
			link = t.w.Lanes(g, "link")
		}
		n.links = append(n.links, link)
	}
	top = t.w.Track(perfetto.Top, "targets")
	for i := range cfg.Targets {
		g := t.w.Track(top, fmt.Sprintf("target %d", i))
		n.heard, n.bids, n.links = append(n.heard, t.w.Lanes(g, "control messages")), append(n.bids, t.w.Lanes(g, "bids")), append(n.links, t.w.Lanes(g, "link"))
		if cfg.Disk.Model == cluster.ModelSSD {
			n.drives = append(n.drives, t.w.Lanes(g, "drive"))
		} else {
			n.disks = append(n.disks, t.w.Track(g, "disk"))
		}
	}
	w.timeline = n
	t.restore = append(t.restore, func() {
		w.timeline = nil
		w.set()
	})
	t.flush = append(t.flush, func() {
		for i := range n.runs {
			n.link(int32(i))
		}
	})
}

func (n *clusterTracks) probes() cluster.Probes {
	return cluster.Probes{OnReceive: n.receive, OnBid: n.bid, OnDisk: n.work}
}

func (n *clusterTracks) receive(x *cluster.Passage) {
	t, node := n.t, x.To[0]
	if x.Data {
		n.frame(x, node)
		return
	}
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(x.Chunk)), perfetto.Text("from", n.name(x.From)), perfetto.Int("bytes", int64(x.Size)))
	t.lane(n.heard[node], perfetto.Slice{Name: x.Kind, Begin: x.Sent, End: x.Received, Annotations: t.notes, Flow: flowID(x.Chunk)})
}

func (n *clusterTracks) name(node int32) string {
	if node >= n.gateways {
		return fmt.Sprintf("target %d", node-n.gateways)
	}
	return fmt.Sprintf("gateway %d", node)
}

// frame takes one that has come to a node. Those of one chunk that follow each other are one slice.
func (n *clusterTracks) frame(x *cluster.Passage, node int32) {
	m := n.moved[x.Chunk]
	if m == nil {
		m = &[2]sim.Time{x.Sent}
		n.moved[x.Chunk] = m
	}
	m[1] = x.Received
	r := &n.runs[node]
	if r.n > 0 && r.chunk != x.Chunk {
		n.link(node)
	}
	if r.n == 0 {
		*r = frames{chunk: x.Chunk, begin: x.Received - x.Takes}
	}
	r.n++
	r.end = x.Received
}

// link writes the frames that are held back.
func (n *clusterTracks) link(node int32) {
	r := &n.runs[node]
	if r.n == 0 {
		return
	}
	t := n.t
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(r.chunk)), perfetto.Int("frames", r.n))
	r.n = 0
	t.lane(n.links[node], perfetto.Slice{Name: "data", Begin: r.begin, End: r.end, Annotations: t.notes, Flow: flowID(r.chunk)})
}

// bid writes a bid when it ends: how long it was tentative, how long its reservation lay ahead, and its window as far as it was used.
func (n *clusterTracks) bid(x *cluster.BidChange) {
	t, at := n.t, passing{x.Chunk, x.Target}
	b := n.given[at]
	switch {
	case x.State == reserve.Tentative:
		n.given[at] = &givenBid{at: x.At, window: x.Window}
		return
	case b == nil:
		return // given before the timeline began, or taken back
	case x.State == reserve.Accepted && !x.Done:
		b.accepted, b.window = x.At, x.Window
		return
	}
	delete(n.given, at)
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(x.Chunk)), perfetto.Int("gateway", int64(x.Gateway)),
		perfetto.Float("window begins, us", b.window.Left.Microseconds()), perfetto.Float("window ends, us", b.window.Right.Microseconds()))
	name := x.State.String()
	t.parts = t.parts[:0]
	if x.Done {
		opens := min(max(b.window.Left, b.accepted), x.At)
		for _, s := range []perfetto.Slice{{Name: "tentative", Begin: b.at, End: b.accepted}, {Name: "reserved", Begin: b.accepted, End: opens}, {Name: "window", Begin: opens, End: x.At}} {
			if s.End > s.Begin {
				t.parts = append(t.parts, s)
			}
		}
	}
	t.lane(n.bids[x.Target], perfetto.Slice{Name: name, Begin: b.at, End: x.At, Annotations: t.notes, Parts: t.parts, Flow: flowID(x.Chunk)})
}

func (n *clusterTracks) work(x *cluster.Work) {
	t, name := n.t, "write"
	if x.Read {
		name = "read"
	}
	if x.Repair {
		name = "repair: " + name
	}
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(x.Chunk)), perfetto.Float("waited, us", (x.From-x.At).Microseconds()))
	slice := perfetto.Slice{Name: name, Begin: x.From, End: x.To, Annotations: t.notes, Flow: flowID(x.Chunk)}
	if n.drives != nil {
		t.lane(n.drives[x.Target], slice)
		return
	}
	t.slice(n.disks[x.Target], slice)
}

// done writes a chunk: the time before its data, the data's way, and the wait for disks and acknowledgements.
func (n *clusterTracks) done(d *cluster.Done) {
	t := n.t
	t.parts = t.parts[:0]
	if m := n.moved[d.Chunk]; m != nil {
		delete(n.moved, d.Chunk)
		at := d.Begun
		before, after := "negotiation", "disks"
		if d.Read {
			before, after = "request and disk", "rest"
		}
		for _, s := range []perfetto.Slice{{Name: before, End: m[0]}, {Name: "data", End: m[1]}, {Name: after, End: d.Done}} {
			if s.Begin = at; s.End > at && s.End <= d.Done {
				t.parts = append(t.parts, s)
				at = s.End
			}
		}
	}
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(d.Chunk)), perfetto.Int("bytes", int64(d.Size)))
	name := "put"
	if d.Read {
		name = "get"
	}
	t.lane(n.chunks[d.Gateway], perfetto.Slice{Name: name, Begin: d.Begun, End: d.Done, Annotations: t.notes, Parts: t.parts, Flow: flowID(d.Chunk)})
	t.count("chunks")
}
