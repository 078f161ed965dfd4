// Package networks has the parts shared by all experiments with a network: Network, its models, and Meter, which
// observes it in slices and fills in its results. Alone is the experiment with nothing else.
//
// It leaves out the models behind the hosts (packages system and objects).
package networks

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"farflash/experiment"
	"farflash/experiment/timeline"
	"farflash/model/cosim"
	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/sim"
	"farflash/workload/flows"
)

// Network holds the models of one run of a network.
type Network struct {
	Tally
	Eng   *sim.Engine
	Net   *fabric.Network
	Graph *topo.Graph
	Hosts []int32 // nodes
	// Others reports whether a message is not a flow of the scenario; nil: all are.
	Others func(message int32) bool
	// Pairs calls f for the nodes between which such messages are sent, in one of the directions; nil: there are none.
	Pairs func(f func(src, dst int32))
	// Dead means that a deadlock was found, which ends the run.
	Dead bool

	s       *scenario.Scenario
	ctx     context.Context // of the present Advance
	driver  driver
	known   int // number of flows, 0 if unknown
	stuck   []string
	more    int // number of further ones
	pauses  []fabric.Pause
	forgets bool     // completed flows are forgotten
	tallied []*Tally // where they are recorded
	// reactive are the sources with flows that wait for others, by group; see scenario.Offer.
	reactive []flows.Reactive
	group    []uint16         // of each message, if there are several groups of flows
	watch    experiment.Watch // over a network alone
	comes    func() bool      // open-loop flows are still due
	moved    uint64           // see Moves
	then     fabric.Counters  // at the last change of moved
	// remarks concern the execution; results do not depend on it.
	remarks []string
}

// driver runs a network, as a whole or in parts.
type driver interface {
	// run advances to a time, or until no events are left, and reports the latter.
	run(to sim.Time) (dry bool, err error)
	// progress returns the number of completed flows, whether all flows have completed, and the last completion time.
	progress() (done uint64, all bool, last sim.Time)
	// now is the time of the last event, events the number of events.
	now() sim.Time
	events() uint64
}

// Tally counts completed flows and records their results.
type Tally struct {
	done  uint64
	last  sim.Time
	clock *sim.Engine
	net   *fabric.Network
	// forget, if not nil, releases the network's state of a flow.
	forget func(int32)
	ended  []ledger // by group
	group  *[]uint16
	pairs  map[ends]bool // of flows that have completed, for warnTarget; nil without it
	// Ended fires for each completed flow.
	Ended sim.Probe[int32]
	// traffic has flows that wait for others; nil: none.
	traffic *cosim.Traffic
}

// Delivered implements fabric.Sink.
func (t *Tally) Delivered(m int32) {
	if t.traffic != nil {
		t.traffic.Delivered(m)
	}
}

// Acked implements fabric.Sink: a flow has completed.
func (t *Tally) Acked(m int32) {
	t.done++
	t.last = t.clock.Now()
	t.Ended.Fire(m)
	if t.net == nil {
		return
	}
	x := &t.net.Messages()[m]
	if t.pairs != nil {
		t.pairs[ends{x.Src, x.Dst}] = true
	}
	fct := x.Acked - x.Posted
	g := uint16(0)
	if len(t.ended) > 1 {
		g = (*t.group)[m]
	}
	t.ended[g].add(x.Posted, fct, x.Size, float64(fct)/float64(t.net.Ideal(m)))
	if t.forget != nil {
		t.forget(m)
	}
	if t.traffic != nil {
		t.traffic.Acked(m)
	}
}

// inOne runs a network as a whole.
type inOne struct {
	*Network
	traffic *cosim.Traffic
}

func (w *inOne) run(to sim.Time) (bool, error) {
	w.Eng.Run(to)
	return w.Dead || w.Eng.Pending() == 0, w.traffic.Err()
}

func (w *inOne) progress() (uint64, bool, sim.Time) {
	return w.done, w.traffic.Ended() && w.done == w.traffic.Posted(), w.last
}

func (w *inOne) now() sim.Time  { return w.Eng.Now() }
func (w *inOne) events() uint64 { return w.Eng.Events() }

// New returns a network on an engine; Make builds its models.
func New(s *scenario.Scenario, eng *sim.Engine) *Network { return &Network{s: s, Eng: eng} }

// build builds the models and their flows; with whole, as a single part regardless of the scenario.
func build(s *scenario.Scenario, seed uint64, whole, keepPauses, keepFlows bool) (*Network, error) {
	y := New(s, sim.New())
	y.forgets = !keepFlows
	if err := y.Make(seed, &y.Tally); err != nil {
		return nil, err
	}
	offer, err := s.OpenFlows(y.Graph, seed)
	if err != nil {
		return nil, err
	}
	y.known, y.reactive = offer.Count, offer.Reactive
	y.net = y.Net
	y.Net.Reserve(y.known)
	if y.forgets {
		y.forget = y.Net.Forget
	}
	if err := y.Use(offer.Classes); err != nil {
		return nil, err
	}
	return y, y.drive(offer.Source, keepPauses, whole)
}

// tally lets tallies record completed flows.
func (y *Network) tally(of []*Tally) {
	y.tallied = of
	shared := &shelf{limit: exactFlows}
	for _, t := range of {
		t.group = &y.group
		t.ended = make([]ledger, y.groups())
		if y.s.Fabric.CongestionControl.Algorithm == cc.SchemeSwift {
			t.pairs = map[ends]bool{}
		}
		for g := range t.ended {
			t.ended[g].shared = shared
		}
	}
}

// Use reserves buffer space for classes.
func (y *Network) Use(classes uint8) error {
	for c := uint8(1); c < fabric.MaxClasses; c++ {
		if classes>>c&1 == 0 {
			continue
		}
		if err := y.Net.Use(c); err != nil {
			return &shape.Error{At: y.s.Where("fabric"), Msg: fmt.Sprintf("fabric.%v", err)}
		}
	}
	return nil
}

// Make builds the network on its engine.
func (y *Network) Make(seed uint64, sink fabric.Sink) error {
	s, x := y.s, y.s.Fabric
	y.clock = y.Eng
	var err error
	if y.Graph, err = s.Graph(); err != nil {
		return &shape.Error{At: s.Where("fabric.topology"), Msg: fmt.Sprintf("fabric.%v", err)}
	}
	y.Hosts = scenario.HostsOf(y.Graph)
	if y.Net, err = fabric.New(x.Settings(), y.Graph, y.Eng, sink, seed, "fabric"); err != nil {
		return &shape.Error{At: s.Where("fabric"), Msg: fmt.Sprintf("fabric: %v", err)}
	}
	for i, f := range x.Failures {
		l, err := scenario.FindLink(y.Graph, f.A, f.B)
		if err != nil {
			path := fmt.Sprintf("fabric.failures[%d]", i)
			return &shape.Error{At: s.Where(path), Msg: fmt.Sprintf("%s: %v", path, err)}
		}
		if err := y.Net.Fail(l, f.At, f.Until); err != nil {
			path := fmt.Sprintf("fabric.failures[%d]", i)
			return &shape.Error{At: s.Where(path), Msg: fmt.Sprintf("%s: %v", path, err)}
		}
	}
	y.Net.OnStuck = func(x fabric.Stuck) {
		const most = 8
		switch {
		case x.Cycle != nil && !y.Dead && s.Fabric.Watchdog.Action == fabric.WatchdogReport:
			// A deadlock never resolves, so the run ends.
			y.Dead = true
			y.stuck = append(y.stuck, fmt.Sprintf("deadlock at %v: %s", x.At, y.Net.CycleName(x.Cycle)))
			y.Eng.Stop()
		case len(y.stuck) >= most:
			y.more++
		case x.Cycle != nil:
			y.stuck = append(y.stuck, fmt.Sprintf("deadlock at %v: %s", x.At, y.Net.CycleName(x.Cycle)))
		default:
			y.stuck = append(y.stuck,
				fmt.Sprintf("%s has been paused since %v, for longer than fabric.watchdog.after",
					y.Net.PortName(x.Port), x.Since))
		}
	}
	return nil
}

// alone is an experiment with a network alone.
type alone struct {
	*Network
	o        *experiment.Options
	meter    *Meter
	timeline *timeline.Timeline
}

// Alone returns the experiment with a network alone.
func Alone(s *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	// A timeline would need the parts' tracks merged into one file; results do not depend on parts.
	y, err := build(s, o.Seed, o.Timeline != nil, o.Pause != nil, o.Timeline != nil || o.Flow != nil)
	if err != nil {
		return nil, err
	}
	x := &alone{Network: y, o: o, meter: meterOf(y), timeline: timeline.New(o.Timeline, o.TimelineSlices, y.Eng)}
	x.timeline.ShowNetwork(y.Net, y.Graph, &y.Ended)
	return x, nil
}

// meterOf returns the meter of a network alone, whose warm-up may be a share of a run with a time limit.
func meterOf(y *Network) *Meter {
	m := NewMeter(y)
	m.warm = y.s.WarmUpUntil()
	for _, t := range y.tallied {
		for g := range t.ended {
			t.ended[g].warm = m.warm
		}
	}
	return m
}

// Meters implements experiment.Experiment.
func (x *alone) Meters() []experiment.Meter { return []experiment.Meter{x.meter} }

// Close implements experiment.Experiment.
func (*alone) Close() error { return nil }

// Advance implements experiment.Experiment.
func (x *alone) Advance(ctx context.Context, to sim.Time) (experiment.RunState, error) {
	return x.Network.Advance(ctx, to)
}

// Advance advances a network until every flow has completed; its time is then the last completion, although events
// after it in the same slice, such as pause frames, still count.
func (y *Network) Advance(ctx context.Context, to sim.Time) (experiment.RunState, error) {
	y.ctx = ctx
	y.watch.Attend(ctx, y.Eng)
	dry, err := y.driver.run(to)
	if err != nil {
		return experiment.RunState{}, err
	}
	done, all, last := y.driver.progress()
	now := experiment.RunState{At: to, Over: all || dry, Done: done, Expected: uint64(y.known),
		Stalled: y.watch.Stalled()}
	if dry && !all || ctx.Err() != nil {
		now.At = y.driver.now()
	}
	y.Net.Look(now.At)
	if all {
		now.At = last
	}
	return now, nil
}

// Now returns the time of the last event, for any number of parts.
func (y *Network) Now() sim.Time { return y.driver.now() }

// Events returns the number of events.
func (y *Network) Events() uint64 { return y.driver.events() }

// Fill implements experiment.Experiment.
func (x *alone) Fill(_ context.Context, out *experiment.Outcome) (err error) {
	if out.Remarks, err = x.timeline.Close(); err != nil {
		return err
	}
	out.Remarks = append(out.Remarks, x.remarks...)
	if err := x.TellPauses(x.o.Pause); err != nil {
		return err
	}
	if x.o.Flow != nil {
		for i := range x.Net.Messages() {
			if err := x.o.Flow(x.flow(int32(i))); err != nil {
				return err
			}
		}
	}
	out.Events = x.Events()
	x.meter.finish(out.Result, out.Interrupted)
	if !out.Interrupted && !x.Dead {
		x.endless(out.Result)
	}
	return nil
}

// Lone is the delivery time of a message in an otherwise idle network.
func (y *Network) Lone(src, dst int32, class uint8, size units.Bytes) sim.Time {
	from := y.Eng.Now()
	m, err := y.Net.Send(y.Hosts[src], y.Hosts[dst], class, size)
	if err != nil {
		return 0 // the network itself will report why
	}
	y.Eng.Run(sim.Forever)
	if at := y.Net.Messages()[m].Delivered; at != sim.Forever {
		return at - from
	}
	return 0
}

// WithFlows builds a network with known flows of some traffic classes, a bit each, in as many parts as the scenario
// sets.
func WithFlows(s *scenario.Scenario, seed uint64, list []flows.Flow, classes uint8) (*Network, error) {
	n := New(s, sim.New())
	n.known = len(list)
	if err := n.Make(seed, &n.Tally); err != nil {
		return nil, err
	}
	if err := n.Use(classes); err != nil {
		return nil, err
	}
	n.Net.Reserve(len(list))
	return n, n.drive(flows.Slice(list), false, false)
}

// flow returns a message in the user's terms.
func (y *Network) flow(i int32) experiment.Flow {
	m := &y.Net.Messages()[i]
	f := experiment.Flow{ID: int64(i), Group: int32(y.groupOf(i)), Size: m.Size, Start: m.Posted, FCT: sim.Forever,
		Ideal: y.Net.Ideal(i), Port: m.Port, Src: m.Src, Dst: m.Dst}
	if m.Acked != sim.Forever {
		f.FCT = m.Acked - m.Posted
	}
	return f
}

// KeepPauses records pauses for TellPauses.
func (y *Network) KeepPauses() {
	y.Net.OnPause = func(p fabric.Pause) { y.pauses = append(y.pauses, p) }
}

// TellPauses passes on the pauses, in an order that does not depend on the division of the network.
func (y *Network) TellPauses(f func(experiment.Pause) error) error {
	if f == nil {
		return nil
	}
	slices.SortStableFunc(y.pauses, func(a, b fabric.Pause) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Class, b.Class))
	})
	for _, p := range y.pauses {
		if err := f(y.pause(p)); err != nil {
			return err
		}
	}
	return nil
}

func (y *Network) pause(p fabric.Pause) experiment.Pause {
	r := y.Net.Port(p.Port)
	return experiment.Pause{Time: p.At, Node: r.Node, Switch: y.Graph.Nodes[r.Node].Kind == topo.Switch,
		Port: y.Net.PortNumber(p.Port) + 1, Class: int(p.Class), Resume: p.Resume}
}

// Meter observes a network in slices, whose number it bounds by merging neighbours.
type Meter struct {
	*Network
	width  units.Duration
	most   int
	slices []fabricSlice
	follow []int       // queue pairs
	before fabricState // at the end of the last slice
	from   fabricState // the end of the warm-up
	warm   sim.Time    // its length, 0 if unknown

	unfinished []float64 // flows by group
	own        []*ledger // of a system's flows, by group
}

// fabricState is the state of the network at a time.
type fabricState struct {
	at       sim.Time
	counters fabric.Counters
	ports    []portState
}

type portState struct {
	bytes, taken, marks uint64
	pauses              uint64
	paused, busy        sim.Time
}

// fabricSlice is the activity in a slice.
type fabricSlice struct {
	end                 sim.Time
	taken, marks, queue float64 // payload bytes received, packets marked, largest queue at the end
	paused              float64 // seconds, over all ports
	ports               []portSlice
	rates               []units.BitRate // of the followed queue pairs, at the end; 0 if not yet open
	acked, flight       []uint64        // of the same, at the end, if their progress is followed
}

// portSlice is the activity of a port in a slice. float32 is precise enough for a picture.
type portSlice struct {
	busy, paused, queue float32 // busy and paused in seconds
}

// Limits of a meter: total slices of all ports, and the number of queue pairs whose rates are followed by default.
const (
	portSlices = 1 << 17
	firstPairs = 8
)

// NewMeter starts observing a network.
func NewMeter(y *Network) *Meter {
	m := &Meter{Network: y, width: 10 * units.Microsecond, most: min(256, max(32, portSlices/y.Net.Ports())) &^ 1}
	m.before.ports = make([]portState, y.Net.Ports())
	m.warm = y.s.Measure.WarmUp.Time
	m.follow = y.s.Measure.QueuePairs
	if len(m.follow) == 0 {
		for q := range firstPairs {
			m.follow = append(m.follow, q)
		}
	}
	return m
}

// state samples the state.
func (m *Meter) state(at sim.Time) fabricState {
	k := fabricState{at: at, counters: m.Net.Counters, ports: make([]portState, m.Net.Ports())}
	for i := range k.ports {
		k.ports[i] = m.portState(i, m.Net.Port(int32(i)), at)
	}
	return k
}

func (m *Meter) portState(i int, p fabric.PortReport, at sim.Time) portState {
	return portState{p.Bytes, p.Taken, p.Marks, p.Pauses, p.Paused, m.Net.Busy(int32(i), at)}
}

// Next implements experiment.Meter. The end of the warm-up also counts as an edge.
func (m *Meter) Next() sim.Time {
	next := m.edge()
	if m.warm > m.from.at && m.warm < next {
		return m.warm
	}
	return next
}

// edge is the end of the present slice.
func (m *Meter) edge() sim.Time {
	n := units.Duration(len(m.slices) + 1)
	if m.width > sim.Forever/n {
		return sim.Forever
	}
	return m.width * n
}

// Slice implements experiment.Meter.
func (m *Meter) Slice(at sim.Time) (settled bool) {
	if at == m.warm && m.warm > m.from.at {
		m.from = m.state(at)
	}
	if at == m.edge() {
		m.slice(at)
	}
	return false
}

// Look brings the network's accounts up to date.
func (m *Meter) Look(at sim.Time) { m.Net.Look(at) }

// End implements experiment.Meter.
func (m *Meter) End(at sim.Time) { m.slice(at) }

// slice ends a slice, merging slices in pairs when there are too many.
func (m *Meter) slice(at sim.Time) {
	x := fabricSlice{end: at, ports: make([]portSlice, len(m.before.ports))}
	for i := range x.ports {
		p := m.Net.Port(int32(i))
		now, was := m.portState(i, p, at), &m.before.ports[i]
		x.taken += float64(now.taken - was.taken)
		x.marks += float64(now.marks - was.marks)
		x.paused += (now.paused - was.paused).Seconds()
		x.queue = max(x.queue, float64(p.Queue))
		x.ports[i] = portSlice{float32((now.busy - was.busy).Seconds()), float32((now.paused - was.paused).Seconds()),
			float32(p.Queue)}
		*was = now
	}
	for _, q := range m.follow {
		rate := units.BitRate(0)
		if q < m.Net.Pairs() {
			rate = m.Net.Rate(fabric.QP(q))
		}
		x.rates = append(x.rates, rate)
		if !m.s.Measure.Progress {
			continue
		}
		acked, flight := uint64(0), uint64(0)
		if q < m.Net.Pairs() {
			acked, flight = m.Net.Progress(fabric.QP(q))
		}
		x.acked, x.flight = append(x.acked, acked), append(x.flight, flight)
	}
	m.before.at, m.before.counters = at, m.Net.Counters
	m.slices = append(m.slices, x)
	if len(m.slices) < m.most || at < m.width*units.Duration(len(m.slices)) {
		return
	}
	for i := range m.most / 2 {
		m.slices[i] = joined(&m.slices[2*i], &m.slices[2*i+1])
	}
	clear(m.slices[m.most/2:])
	m.slices = m.slices[:m.most/2]
	m.width *= 2
}

// joined merges two adjacent slices.
func joined(a, b *fabricSlice) fabricSlice {
	x := *b
	x.taken += a.taken
	x.marks += a.marks
	x.paused += a.paused
	for i := range x.ports {
		x.ports[i].busy += a.ports[i].busy
		x.ports[i].paused += a.ports[i].paused
	}
	return x
}
