package timeline

import (
	"fmt"

	"farflash/model/cluster"
	"farflash/model/cluster/reserve"
	"farflash/result/perfetto"
	"farflash/sim"
)

// Cluster shows a cluster in a timeline: for each gateway its chunks and the messages it receives, for each target
// messages, bids, link activity, and its disk.
type Cluster struct {
	t        *Timeline
	gateways int32
	chunks   []*perfetto.Lanes       // of gateways
	heard    []*perfetto.Lanes       // by node: control messages
	bids     []*perfetto.Lanes       // of targets
	links    []*perfetto.Lanes       // by node: data; nil for gateways that have received none
	groups   []perfetto.Track        // by gateway
	disks    []perfetto.Track        // of all targets
	drives   []*perfetto.Lanes       // of targets whose disks work in parallel; nil if none do
	runs     []frames                // by node: successive frames of one chunk
	given    map[passing]*givenBid   // unfinished bids
	moved    map[uint64]*[2]sim.Time // by chunk: when the first frame was sent, and when the last one arrived
}

// passing is a chunk at a target.
type passing struct {
	chunk  uint64
	target int32
}

// frames are successive frames of a chunk on a link.
type frames struct {
	chunk      uint64
	begin, end sim.Time
	n          int64
}

// givenBid is a bid with the times at which it was issued and accepted.
type givenBid struct {
	at, accepted sim.Time
	window       reserve.Window
}

// ShowCluster shows a cluster, whose probes must call those of the returned value, until leave is called. It returns
// nil for a nil timeline.
func (t *Timeline) ShowCluster(cfg *cluster.Config, leave func()) *Cluster {
	if t == nil {
		return nil
	}
	n := &Cluster{t: t, gateways: int32(cfg.Gateways), runs: make([]frames, cfg.Gateways+cfg.Targets),
		given: map[passing]*givenBid{}, moved: map[uint64]*[2]sim.Time{}}
	top := t.w.Track(perfetto.Top, "gateways")
	for i := range cfg.Gateways {
		g := t.w.Track(top, fmt.Sprintf("gateway %d", i))
		n.chunks, n.heard = append(n.chunks, t.w.Lanes(g, "chunks")), append(n.heard, t.w.Lanes(g, "control messages"))
		// Data comes to a gateway that reads, replays reads, or updates a part of a chunk under a code.
		n.links, n.groups = append(n.links, nil), append(n.groups, g)
	}
	top = t.w.Track(perfetto.Top, "targets")
	for i := range cfg.Targets {
		g := t.w.Track(top, fmt.Sprintf("target %d", i))
		n.heard, n.bids, n.links = append(n.heard, t.w.Lanes(g, "control messages")),
			append(n.bids, t.w.Lanes(g, "bids")), append(n.links, t.w.Lanes(g, "link"))
		switch {
		case cfg.Disk.Model == cluster.ModelSSD:
			n.drives = append(n.drives, t.w.Lanes(g, "drive"))
		case cfg.Disk.Count == 1:
			n.disks = append(n.disks, t.w.Track(g, "disk"))
		default:
			for k := range cfg.Disk.Count {
				n.disks = append(n.disks, t.w.Track(g, fmt.Sprintf("disk %d", k)))
			}
		}
	}
	t.restore = append(t.restore, leave)
	t.flush = append(t.flush, func() {
		for i := range n.runs {
			n.link(int32(i))
		}
	})
	return n
}

// Probes returns its probes.
func (n *Cluster) Probes() cluster.Probes {
	return cluster.Probes{OnReceive: n.receive, OnBid: n.bid, OnDisk: n.work}
}

func (n *Cluster) receive(x *cluster.Passage) {
	t, node := n.t, x.To[0]
	if x.Data {
		n.frame(x, node)
		return
	}
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(x.Chunk)), perfetto.Text("from", n.name(x.From)),
		perfetto.Int("bytes", int64(x.Size)))
	t.lane(n.heard[node],
		perfetto.Slice{Name: x.Kind, Begin: x.Sent, End: x.Received, Annotations: t.notes, Flow: flowID(x.Chunk)})
}

func (n *Cluster) name(node int32) string {
	if node >= n.gateways {
		return fmt.Sprintf("target %d", node-n.gateways)
	}
	return fmt.Sprintf("gateway %d", node)
}

// frame records a frame that arrived at a node. Successive frames of one chunk form one slice.
func (n *Cluster) frame(x *cluster.Passage, node int32) {
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

// link writes the buffered frames.
func (n *Cluster) link(node int32) {
	r := &n.runs[node]
	if r.n == 0 {
		return
	}
	t := n.t
	if n.links[node] == nil {
		n.links[node] = t.w.Lanes(n.groups[node], "link")
	}
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(r.chunk)), perfetto.Int("frames", r.n))
	r.n = 0
	t.lane(n.links[node],
		perfetto.Slice{Name: "data", Begin: r.begin, End: r.end, Annotations: t.notes, Flow: flowID(r.chunk)})
}

// bid writes a bid when it ends: how long it was tentative, the lead time of its reservation, and the used part of its
// window.
func (n *Cluster) bid(x *cluster.BidChange) {
	t, at := n.t, passing{x.Chunk, x.Target}
	b := n.given[at]
	switch {
	case x.State == reserve.Tentative:
		n.given[at] = &givenBid{at: x.At, window: x.Window}
		return
	case b == nil:
		return // issued before the timeline began, or withdrawn
	case x.State == reserve.Accepted && !x.Done:
		b.accepted, b.window = x.At, x.Window
		return
	}
	delete(n.given, at)
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(x.Chunk)), perfetto.Int("gateway", int64(x.Gateway)),
		perfetto.Float("window begins, us", b.window.Left.Microseconds()),
		perfetto.Float("window ends, us", b.window.Right.Microseconds()))
	name := x.State.String()
	t.parts = t.parts[:0]
	if x.Done {
		opens := min(max(b.window.Left, b.accepted), x.At)
		for _, s := range []perfetto.Slice{{Name: "tentative", Begin: b.at, End: b.accepted},
			{Name: "reserved", Begin: b.accepted, End: opens}, {Name: "window", Begin: opens, End: x.At}} {
			if s.End > s.Begin {
				t.parts = append(t.parts, s)
			}
		}
	}
	t.lane(n.bids[x.Target],
		perfetto.Slice{Name: name, Begin: b.at, End: x.At, Annotations: t.notes, Parts: t.parts, Flow: flowID(x.Chunk)})
}

func (n *Cluster) work(x *cluster.Work) {
	t, name := n.t, "write"
	if x.Read {
		name = "read"
	}
	if x.Repair {
		name = "repair: " + name
	}
	t.notes = append(t.notes[:0], perfetto.Int("chunk", int64(x.Chunk)),
		perfetto.Float("waited, us", (x.From-x.At).Microseconds()))
	slice := perfetto.Slice{Name: name, Begin: x.From, End: x.To, Annotations: t.notes, Flow: flowID(x.Chunk)}
	if n.drives != nil {
		t.lane(n.drives[x.Target], slice)
		return
	}
	t.slice(n.disks[x.Disk], slice)
}

// Done writes a chunk: the time before its data, the data's transfer, and the wait for disks and acknowledgements.
func (n *Cluster) Done(d *cluster.Done) {
	t := n.t
	t.parts = t.parts[:0]
	if m := n.moved[d.Chunk]; m != nil {
		delete(n.moved, d.Chunk)
		at := d.Begun
		before, after := "negotiation", "disks"
		if d.Read {
			before, after = "request and disk", "rest"
		}
		for _, s := range []perfetto.Slice{{Name: before, End: m[0]}, {Name: "data", End: m[1]},
			{Name: after, End: d.Done}} {
			// Data that the chunk need not wait for arrives later.
			if s.Begin, s.End = at, min(s.End, d.Done); s.End > at {
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
	t.lane(n.chunks[d.Gateway],
		perfetto.Slice{Name: name, Begin: d.Begun, End: d.Done, Annotations: t.notes, Parts: t.parts,
			Flow: flowID(d.Chunk)})
	t.count("chunks")
}
