package scenario

import (
	"errors"
	"fmt"

	"farflash/cosim"
	"farflash/nvmf"
	"farflash/result"
	"farflash/result/perfetto"
	"farflash/sim"
)

// A timeline shows so many requests and about so many slices, parts of slices and values of counters: a viewer is slow beyond, and
// nobody looks at more.
const (
	timelineRequests = 20_000
	timelineSlices   = 1_000_000
)

// timeline writes what happened when: requests in their stages, and what ports, channels and dies did. A nil timeline does
// nothing. It watches through probes, which it takes away when it has enough.
type timeline struct {
	w        *perfetto.Writer
	eng      *sim.Engine
	requests int // left
	slices   int // left
	most     int // slices
	why      string
	cut      sim.Time
	ended    bool
	err      error
	restore  []func() // take the probes away
	flush    []func() // write what is held back

	lanes []*perfetto.Lanes // of requests, by initiator; of flows, by node
	flows []string          // names of the workload's items, if there are several
	notes []perfetto.Annotation
	parts []perfetto.Slice
}

// newTimeline begins a timeline, if one is asked for.
func newTimeline(o Options, eng *sim.Engine) *timeline {
	if o.Timeline == nil {
		return nil
	}
	t := &timeline{w: perfetto.NewWriter(o.Timeline), eng: eng, requests: timelineRequests, slices: timelineSlices}
	if o.timelineSlices > 0 {
		t.slices = o.timelineSlices
	}
	t.most = t.slices
	return t
}

// watch has a probe tell f, after whoever listens already.
func watch[T any](t *timeline, p *sim.Probe[T], f func(T)) {
	before := *p
	*p = func(v T) {
		before.Fire(v)
		f(v)
	}
	t.restore = append(t.restore, func() { *p = before })
}

// slice writes a slice. The timeline ends when there are too many.
func (t *timeline) slice(track perfetto.Track, s perfetto.Slice) {
	t.wrote(t.w.Slice(track, s), 1+len(s.Parts))
}

// lane writes a slice on a lane that is free.
func (t *timeline) lane(l *perfetto.Lanes, s perfetto.Slice) {
	_, err := l.Slice(s)
	t.wrote(err, 1+len(s.Parts))
}

// counter writes a counter's value.
func (t *timeline) counter(track perfetto.Track, at sim.Time, v int64) {
	t.wrote(t.w.Counter(track, at, float64(v)), 1)
}

func (t *timeline) wrote(err error, n int) {
	if t.err == nil {
		t.err = err
	}
	if t.slices -= n; t.slices <= 0 || t.err != nil {
		t.end(fmt.Sprintf("%d slices", t.most-t.slices))
	}
}

// end ends the timeline before the run does.
func (t *timeline) end(why string) {
	if t.ended {
		return
	}
	t.why, t.cut = why, t.eng.Now()
	t.finish()
	if t.err == nil {
		t.err = t.w.Instant(t.w.Track(perfetto.Top, "end of the timeline"), "it has "+why, t.cut)
	}
}

// finish takes the probes away and writes what is held back.
func (t *timeline) finish() {
	t.ended = true
	for _, f := range t.restore {
		f()
	}
	for _, f := range t.flush {
		f()
	}
}

// close ends the file and returns what there is to say of it.
func (t *timeline) close() ([]string, error) {
	if t == nil {
		return nil, nil
	}
	if !t.ended {
		t.finish()
	}
	if err := errors.Join(t.err, t.w.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", result.TimelineFile, err)
	}
	if t.why == "" {
		return nil, nil
	}
	return []string{fmt.Sprintf("%s ends at %v of simulated time, where it has %s; what happens later is not in it", result.TimelineFile, t.cut, t.why)}, nil
}

// flowID joins the slices of a request by arrows. Perfetto takes 0 for none.
func flowID(request uint64) uint64 { return request + 1 }

// stage appends a part of a request.
func (t *timeline) stage(k nvmf.Stage, from, to sim.Time) {
	t.parts = append(t.parts, perfetto.Slice{Name: k.String(), Begin: from, End: to})
}

// request writes a request, whose stages are in t.parts.
func (t *timeline) request(l *perfetto.Lanes, x *cosim.Sample) {
	t.notes = append(t.notes[:0], perfetto.Int("request", int64(x.ID)), perfetto.Int("offset", x.Offset), perfetto.Int("bytes", x.Size))
	if len(t.flows) > 1 {
		t.notes = append(t.notes, perfetto.Text("workload", t.flows[x.Flow]))
	}
	t.lane(l, perfetto.Slice{Name: x.Op.String(), Begin: x.Arrival, End: x.Finished, Annotations: t.notes, Parts: t.parts, Flow: flowID(x.ID)})
	t.count("requests")
}

// count ends the timeline when it has enough requests or flows.
func (t *timeline) count(what string) {
	if t.requests--; t.requests == 0 {
		t.end(fmt.Sprintf("%d %s", timelineRequests, what))
	}
}

// showDrive shows a drive and its host.
func (t *timeline) showDrive(y *system) {
	if t == nil {
		return
	}
	t.nameFlows(y.flows)
	t.lanes = []*perfetto.Lanes{t.w.Lanes(t.w.Track(perfetto.Top, "host"), "requests")}
	t.showFlash(t.w.Track(perfetto.Top, "drive"), y.drives[0], y.host.ID)
}

// nameFlows takes down the names of a host's flows.
func (t *timeline) nameFlows(flows []cosim.Flow) {
	for i := range flows {
		t.flows = append(t.flows, flows[i].Name)
	}
}

// local shows a request to a drive without a network. What the drive worked for others stands in front of what it worked for
// the request, although the two take turns.
func (t *timeline) local(x *cosim.Sample) {
	if t == nil || t.ended {
		return
	}
	t.parts = t.parts[:0]
	at := x.Arrival
	for _, s := range []struct {
		stage nvmf.Stage
		to    sim.Time
	}{{nvmf.AtInitiator, x.Submitted}, {nvmf.DriveWait, x.Submitted + min(max(x.Waited, 0), x.Finished-x.Submitted)}, {nvmf.Flash, x.Finished}} {
		if s.to > at {
			t.stage(s.stage, at, s.to)
			at = s.to
		}
	}
	t.request(t.lanes[0], x)
}

// showSystem shows initiators, network and targets.
func (t *timeline) showSystem(y *remote) {
	if t == nil {
		return
	}
	t.nameFlows(y.flows)
	n := newNetworkTracks(t, y.net.net, y.net.graph)
	id := func(command uint64) uint64 { return y.host.ID(y.array.Tag(command)) }

	group := t.w.Track(perfetto.Top, "initiators")
	for i := range y.sys.Initiators() {
		node := y.sys.InitiatorNode(int32(i))
		g := t.w.Track(group, fmt.Sprintf("initiator %d (%s)", i, n.name(node)))
		t.lanes = append(t.lanes, t.w.Lanes(g, "requests"))
		n.host(node, g)
	}
	var txq, queues []perfetto.Track
	visits := make([]*perfetto.Lanes, y.sys.Drives())
	queues = make([]perfetto.Track, y.sys.Drives())
	group = t.w.Track(perfetto.Top, "targets")
	for i := range y.sys.Targets() {
		node := y.sys.TargetNode(int32(i))
		g := t.w.Track(group, fmt.Sprintf("target %d (%s)", i, n.name(node)))
		n.host(node, g)
		txq = append(txq, t.w.CounterTrack(g, "transmit queue", "B"))
		for _, d := range y.sys.DrivesOf(int32(i)) {
			own := t.w.Track(g, fmt.Sprintf("drive %d", d))
			visits[d] = t.w.Lanes(own, "commands")
			queues[d] = t.w.CounterTrack(own, "commands in the drive", "commands")
			t.showFlash(own, y.drives[d], func(tag uint64) uint64 { return id(y.sys.Tag(tag)) })
		}
	}
	n.rest("other hosts")

	watch(t, &y.sys.OnMessage, func(m nvmf.Message) { n.label(m.Number, m.Kind.String(), id(m.Tag)) })
	watch(t, &y.sys.OnLevel, func(x nvmf.Level) {
		if x.Drive < 0 {
			t.counter(txq[x.Target], x.At, x.Value)
		} else {
			t.counter(queues[x.Drive], x.At, x.Value)
		}
	})
	watch(t, &y.sys.OnVisit, func(x nvmf.Visit) {
		request := id(x.Tag)
		t.notes = append(t.notes[:0], perfetto.Int("request", int64(request)), perfetto.Int("bytes", int64(x.Size)), perfetto.Int("initiator", int64(x.Initiator)))
		t.parts = t.parts[:0]
		if x.Waited > 0 {
			t.stage(nvmf.DriveWait, x.In, x.In+x.Waited)
		}
		if x.In+x.Waited < x.Out {
			t.stage(nvmf.Flash, x.In+x.Waited, x.Out)
		}
		t.lane(visits[x.Drive], perfetto.Slice{Name: x.Op.String(), Begin: x.In, End: x.Out, Annotations: t.notes, Parts: t.parts, Flow: flowID(request)})
	})
	n.watch()
	if y.tap != nil {
		watch(t, &y.tap.ended, n.flow)
	}
}

// remote shows a request over a network, as its initiator sees it.
func (t *timeline) remote(x *cosim.Sample, trip *cosim.Trip) {
	if t == nil || t.ended {
		return
	}
	t.parts = t.parts[:0]
	trip.Steps(t.stage)
	t.request(t.lanes[trip.Initiator], x)
}

// showNetwork shows a network alone.
func (t *timeline) showNetwork(y *network) {
	if t == nil {
		return
	}
	n := newNetworkTracks(t, y.net, y.graph)
	n.rest("hosts")
	n.watch()
	watch(t, &y.ended, n.flow)
}
