// Package timeline records an experiment for Perfetto: requests with their stages, and the activity of ports, channels
// and dies.
//
// Its main type is Timeline. It observes models through their probes, and removes the probes when it is full. It leaves
// out the file format (package result/perfetto).
package timeline

import (
	"errors"
	"fmt"
	"io"

	"farflash/block/raid"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/fabric/topo"
	"farflash/model/nvmf"
	"farflash/model/ssd"
	"farflash/result"
	"farflash/result/perfetto"
	"farflash/sim"
)

// Limits of a timeline: requests, and the approximate number of slices, parts of slices and counter values. A viewer is
// slow beyond that.
const (
	timelineRequests = 20_000
	timelineSlices   = 1_000_000
)

// Timeline records requests with their stages, and the activity of ports, channels and dies. A nil Timeline is a no-op.
// It observes through probes, which it removes when it is full.
type Timeline struct {
	w        *perfetto.Writer
	eng      *sim.Engine
	requests int // remaining
	slices   int // remaining
	most     int // slices
	why      string
	cut      sim.Time
	ended    bool
	err      error
	restore  []func() // remove the probes
	flush    []func() // write buffered data

	lanes []*perfetto.Lanes // of requests, by initiator; of flows, by node
	flows []string          // names of the workload's items, if there are several
	notes []perfetto.Annotation
	parts []perfetto.Slice
}

// New starts a timeline of at most the given number of slices; 0 is the default. It returns nil if w is nil.
func New(w io.Writer, slices int, eng *sim.Engine) *Timeline {
	if w == nil {
		return nil
	}
	if slices <= 0 {
		slices = timelineSlices
	}
	return &Timeline{w: perfetto.NewWriter(w), eng: eng, requests: timelineRequests, slices: slices, most: slices}
}

// watch adds f to a probe, after the existing listeners.
func watch[T any](t *Timeline, p *sim.Probe[T], f func(T)) {
	before := *p
	*p = func(v T) {
		before.Fire(v)
		f(v)
	}
	t.restore = append(t.restore, func() { *p = before })
}

// slice writes a slice without parts. The timeline ends when the limit is reached.
func (t *Timeline) slice(track perfetto.Track, s perfetto.Slice) {
	t.wrote(t.w.Slice(track, s), 1)
}

// lane writes a slice on a free track of a group.
func (t *Timeline) lane(l *perfetto.Lanes, s perfetto.Slice) {
	_, err := l.Slice(s)
	t.wrote(err, 1+len(s.Parts))
}

// counter writes a counter's value.
func (t *Timeline) counter(track perfetto.Track, at sim.Time, v int64) {
	t.wrote(t.w.Counter(track, at, float64(v)), 1)
}

func (t *Timeline) wrote(err error, n int) {
	if t.err == nil {
		t.err = err
	}
	if t.slices -= n; t.slices <= 0 || t.err != nil {
		t.end(fmt.Sprintf("%d slices", t.most-t.slices))
	}
}

// end ends the timeline before the end of the run.
func (t *Timeline) end(why string) {
	if t.ended {
		return
	}
	t.why, t.cut = why, t.eng.Now()
	t.finish()
	if t.err == nil {
		t.err = t.w.Instant(t.w.Track(perfetto.Top, "end of the timeline"), "it has "+why, t.cut)
	}
}

// finish removes the probes and writes buffered data.
func (t *Timeline) finish() {
	t.ended = true
	for _, f := range t.restore {
		f()
	}
	for _, f := range t.flush {
		f()
	}
}

// Close ends the file and returns remarks on it.
func (t *Timeline) Close() ([]string, error) {
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
	return []string{fmt.Sprintf("%s ends at %v of simulated time, where it has %s; later events are not in it",
		result.TimelineFile, t.cut, t.why)}, nil
}

// flowID links the slices of a request by arrows. In Perfetto 0 means none.
func flowID(request uint64) uint64 { return request + 1 }

// stage appends a part of a request.
func (t *Timeline) stage(k nvmf.Stage, from, to sim.Time) {
	t.parts = append(t.parts, perfetto.Slice{Name: k.String(), Begin: from, End: to})
}

// request writes a request, whose stages are in t.parts.
func (t *Timeline) request(l *perfetto.Lanes, x *cosim.Sample) {
	t.notes = append(t.notes[:0], perfetto.Int("request", int64(x.ID)), perfetto.Int("offset", x.Offset),
		perfetto.Int("bytes", x.Size))
	if len(t.flows) > 1 {
		t.notes = append(t.notes, perfetto.Text("workload", t.flows[x.Flow]))
	}
	t.lane(l, perfetto.Slice{Name: x.Op.String(), Begin: x.Arrival, End: x.Finished, Annotations: t.notes,
		Parts: t.parts, Flow: flowID(x.ID)})
	t.count("requests")
}

// count ends the timeline when it has enough requests or flows.
func (t *Timeline) count(what string) {
	if t.requests--; t.requests == 0 {
		t.end(fmt.Sprintf("%d %s", timelineRequests, what))
	}
}

// ShowDrive shows a drive and its host with its flows.
func (t *Timeline) ShowDrive(flows []cosim.Flow, d *ssd.Drive, host *cosim.Host) {
	if t == nil {
		return
	}
	t.showHost(flows)
	t.showFlash(t.w.Track(perfetto.Top, "drive"), d, func(tag uint64) (uint64, bool) { return host.ID(tag), true })
}

// ShowVolume draws a host with its flows and the member drives of its volume.
func (t *Timeline) ShowVolume(flows []cosim.Flow, volume *raid.Device, drives []*ssd.Drive, host *cosim.Host) {
	if t == nil {
		return
	}
	t.showHost(flows)
	group := t.w.Track(perfetto.Top, "drives")
	for i, d := range drives {
		t.showFlash(t.w.Track(group, fmt.Sprintf("drive %d", i)), d, func(tag uint64) (uint64, bool) {
			own, known := volume.Tag(tag)
			if !known {
				return 0, false
			}
			return host.ID(own), true
		})
	}
}

// showHost draws the host of local drives.
func (t *Timeline) showHost(flows []cosim.Flow) {
	t.nameFlows(flows)
	t.lanes = []*perfetto.Lanes{t.w.Lanes(t.w.Track(perfetto.Top, "host"), "requests")}
}

// nameFlows records the names of a host's flows.
func (t *Timeline) nameFlows(flows []cosim.Flow) {
	for i := range flows {
		t.flows = append(t.flows, flows[i].Name)
	}
}

// Local shows a request to a drive without a network. The drive's work for others precedes its work for the request,
// although the two alternate.
func (t *Timeline) Local(x *cosim.Sample) {
	if t != nil && !t.ended {
		t.local(x)
	}
}

//go:noinline
func (t *Timeline) local(x *cosim.Sample) {
	t.parts = t.parts[:0]
	at := x.Arrival
	for _, s := range []struct {
		stage nvmf.Stage
		to    sim.Time
	}{{nvmf.AtInitiator, x.Submitted}, {nvmf.DriveWait, x.Submitted + min(max(x.Waited, 0), x.Finished-x.Submitted)},
		{nvmf.Flash, x.Finished}} {
		if s.to > at {
			t.stage(s.stage, at, s.to)
			at = s.to
		}
	}
	t.request(t.lanes[0], x)
}

// System holds the models of a system.
type System struct {
	Flows  []cosim.Flow
	Host   *cosim.Host
	Array  *cosim.Array
	Net    *fabric.Network
	Graph  *topo.Graph
	Remote *nvmf.System
	Drives []*ssd.Drive
	// Ended fires for flows that are not requests, Forgot for messages whose numbers may be reused; nil if there are
	// none.
	Ended, Forgot *sim.Probe[int32]
}

// ShowSystem shows initiators, network and targets.
func (t *Timeline) ShowSystem(y *System) {
	if t == nil {
		return
	}
	t.nameFlows(y.Flows)
	n := newNetworkTracks(t, y.Net, y.Graph)
	id := func(command uint64) (uint64, bool) {
		own, known := y.Array.Tag(command)
		if !known {
			return 0, false
		}
		return y.Host.ID(own), true
	}

	group := t.w.Track(perfetto.Top, "initiators")
	for i := range y.Remote.Initiators() {
		node := y.Remote.InitiatorNode(int32(i))
		g := t.w.Track(group, fmt.Sprintf("initiator %d (%s)", i, n.name(node)))
		t.lanes = append(t.lanes, t.w.Lanes(g, "requests"))
		for _, card := range y.Remote.InitiatorNICs(int32(i)) {
			n.host(card, g)
		}
	}
	var txq, queues, demands, ratios []perfetto.Track
	visits := make([]*perfetto.Lanes, y.Remote.Drives())
	queues = make([]perfetto.Track, y.Remote.Drives())
	group = t.w.Track(perfetto.Top, "targets")
	for i := range y.Remote.Targets() {
		node := y.Remote.TargetNode(int32(i))
		g := t.w.Track(group, fmt.Sprintf("target %d (%s)", i, n.name(node)))
		for _, card := range y.Remote.TargetNICs(int32(i)) {
			n.host(card, g)
		}
		txq = append(txq, t.w.CounterTrack(g, "transmit queue", "B"))
		steering, _ := y.Remote.Steering(int32(i))
		if steering != nil {
			demands = append(demands, t.w.CounterTrack(g, "demanded of the rate controller", "B/s"))
		}
		for _, d := range y.Remote.DrivesOf(int32(i)) {
			own := t.w.Track(g, fmt.Sprintf("drive %d", d))
			visits[d] = t.w.Lanes(own, "commands")
			queues[d] = t.w.CounterTrack(own, "commands in the drive", "commands")
			if steering != nil {
				ratios = append(ratios, t.w.CounterTrack(own, "weight ratio", "writes to reads"))
			}
			t.showFlash(own, y.Drives[d], func(tag uint64) (uint64, bool) { return id(y.Remote.Tag(tag)) })
		}
	}
	n.rest("other hosts")

	watch(t, &y.Remote.OnMessage, func(m nvmf.Message) {
		request, known := id(m.Tag)
		n.label(m.Number, m.Kind.String(), request, known)
	})
	watch(t, &y.Remote.OnLevel, func(x nvmf.Level) {
		if x.Drive < 0 {
			t.counter(txq[x.Target], x.At, x.Value)
		} else {
			t.counter(queues[x.Drive], x.At, x.Value)
		}
	})
	watch(t, &y.Remote.OnSteered, func(x nvmf.Steered) { // either every target has a controller, or none
		if x.Drive < 0 {
			t.counter(demands[x.Target], x.At, int64(x.Value))
		} else {
			t.counter(ratios[x.Drive], x.At, int64(x.Value))
		}
	})
	watch(t, &y.Remote.OnVisit, func(x nvmf.Visit) {
		request, known := id(x.Tag)
		flow := uint64(0)
		t.notes = t.notes[:0]
		if known {
			t.notes = append(t.notes, perfetto.Int("request", int64(request)))
			flow = flowID(request)
		}
		t.notes = append(t.notes, perfetto.Int("bytes", int64(x.Size)), perfetto.Int("initiator", int64(x.Initiator)))
		t.parts = t.parts[:0]
		if x.Waited > 0 {
			t.stage(nvmf.DriveWait, x.In, x.In+x.Waited)
		}
		if x.In+x.Waited < x.Out {
			t.stage(nvmf.Flash, x.In+x.Waited, x.Out)
		}
		t.lane(visits[x.Drive],
			perfetto.Slice{Name: x.Op.String(), Begin: x.In, End: x.Out, Annotations: t.notes, Parts: t.parts,
				Flow: flow})
	})
	n.watch()
	if y.Ended != nil {
		watch(t, y.Ended, n.flow)
		watch(t, y.Forgot, func(m int32) { n.label(m, "", 0, false) })
	}
}

// Remote shows a request over a network, from its initiator's perspective.
func (t *Timeline) Remote(x *cosim.Sample, trip *cosim.Trip) {
	if t == nil || t.ended {
		return
	}
	t.parts = t.parts[:0]
	trip.Steps(t.stage)
	t.request(t.lanes[trip.Initiator], x)
}

// ShowNetwork shows a network alone; ended fires for each completed flow.
func (t *Timeline) ShowNetwork(net *fabric.Network, graph *topo.Graph, ended *sim.Probe[int32]) {
	if t == nil {
		return
	}
	n := newNetworkTracks(t, net, graph)
	n.rest("hosts")
	n.watch()
	watch(t, ended, n.flow)
}
