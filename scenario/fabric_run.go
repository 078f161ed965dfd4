package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"farflash/cosim"
	"farflash/fabric"
	"farflash/fabric/topo"
	"farflash/result"
	"farflash/shape"
	"farflash/sim"
	"farflash/units"
)

// Flow is one flow of a network and what became of it.
type Flow struct {
	ID       int64
	Src, Dst int32 // nodes
	Port     uint16
	Size     units.Bytes
	Start    units.Duration
	FCT      units.Duration // until its sender knew that all had arrived; sim.Forever if it did not
	Ideal    units.Duration // were it alone
}

// Pause is a port that is told to pause, or to go on.
type Pause struct {
	Time units.Duration
	Node int32
	// Switch says that the node is one.
	Switch bool
	// Port counts from 1 within the node.
	Port   int
	Class  int
	Resume bool
}

// network is the models of one run of a network.
type network struct {
	tally
	s      *Scenario
	eng    *sim.Engine
	net    *fabric.Network
	graph  *topo.Graph
	driver driver
	hosts  []int32
	known  int // flows, 0 if that is not known
	stuck  []string
	more   int                      // that are not in stuck
	dead   bool                     // a deadlock was found
	others func(message int32) bool // those that are no flows of the scenario; nil is none
	pauses []fabric.Pause
}

// driver runs a network, in one piece or in parts.
type driver interface {
	// run goes on up to a time, or until nothing is left to happen, and reports the latter.
	run(to sim.Time) (dry bool, err error)
	// progress is how many flows have ended, whether all have that there are, and when the
	// last one did.
	progress() (done uint64, all bool, last sim.Time)
	// now is the time of the last event, events how many there were.
	now() sim.Time
	events() uint64
}

// tally counts flows that have ended.
type tally struct {
	done  uint64
	last  sim.Time
	clock *sim.Engine
	ended sim.Probe[int32] // told of each
}

// Delivered is for the network.
func (t *tally) Delivered(int32) {}

// Acked is for the network: a flow has ended.
func (t *tally) Acked(m int32) {
	t.done++
	t.last = t.clock.Now()
	t.ended.Fire(m)
}

// whole runs a network in one piece.
type whole struct {
	*network
	traffic *cosim.Traffic
}

func (w *whole) run(to sim.Time) (bool, error) {
	w.eng.Run(to)
	return w.dead || w.eng.Pending() == 0, w.traffic.Err()
}

func (w *whole) progress() (uint64, bool, sim.Time) {
	return w.done, w.traffic.Ended() && w.done == w.traffic.Posted(), w.last
}

func (w *whole) now() sim.Time  { return w.eng.Now() }
func (w *whole) events() uint64 { return w.eng.Events() }

// buildNetwork makes the models.
func (s *Scenario) buildNetwork(seed uint64, parts int, keepPauses bool) (*network, error) {
	y := &network{s: s, eng: sim.New()}
	if err := y.make(seed, &y.tally); err != nil {
		return nil, err
	}
	src, classes, known, err := s.openFlows(y.graph, seed)
	if err != nil {
		return nil, err
	}
	y.known = known
	if err := y.use(classes); err != nil {
		return nil, err
	}
	if parts > 1 {
		y.driver, err = y.inParts(src, parts, keepPauses)
		return y, err
	}
	if keepPauses {
		y.net.OnPause = func(p fabric.Pause) { y.pauses = append(y.pauses, p) }
	}
	t := cosim.NewTraffic(y.eng, y.net, src, y.hosts)
	y.driver = &whole{y, t}
	return y, t.Start()
}

// use has the network keep room for classes.
func (y *network) use(classes uint8) error {
	for c := uint8(1); c < fabric.MaxClasses; c++ {
		if classes>>c&1 == 0 {
			continue
		}
		if err := y.net.Use(c); err != nil {
			return &shape.Error{At: y.s.where("fabric"), Msg: fmt.Sprintf("fabric.%v", err)}
		}
	}
	return nil
}

// make makes the network itself on its engine.
func (y *network) make(seed uint64, sink fabric.Sink) error {
	s, x := y.s, y.s.Fabric
	y.clock = y.eng
	var err error
	if y.graph, err = x.graph(s); err != nil {
		return &shape.Error{At: s.where("fabric.topology"), Msg: fmt.Sprintf("fabric.%v", err)}
	}
	y.hosts = hostsOf(y.graph)
	if y.net, err = fabric.New(x.settings(), y.graph, y.eng, sink, seed, "fabric"); err != nil {
		return &shape.Error{At: s.where("fabric"), Msg: fmt.Sprintf("fabric: %v", err)}
	}
	for i, f := range x.Failures {
		l, err := link(y.graph, f.A, f.B)
		if err != nil {
			path := fmt.Sprintf("fabric.failures[%d]", i)
			return &shape.Error{At: s.where(path), Msg: fmt.Sprintf("%s: %v", path, err)}
		}
		if err := y.net.Fail(l, f.At, f.Until); err != nil {
			path := fmt.Sprintf("fabric.failures[%d]", i)
			return &shape.Error{At: s.where(path), Msg: fmt.Sprintf("%s: %v", path, err)}
		}
	}
	y.net.OnStuck = func(x fabric.Stuck) {
		const most = 8
		switch {
		case x.Cycle != nil && !y.dead && s.Fabric.Watchdog.Action == fabric.WatchdogReport:
			// It never ends: the run does.
			y.dead = true
			y.stuck = append(y.stuck, fmt.Sprintf("deadlock at %v: %s", x.At, y.net.CycleName(x.Cycle)))
			y.eng.Stop()
		case len(y.stuck) >= most:
			y.more++
		case x.Cycle != nil:
			y.stuck = append(y.stuck, fmt.Sprintf("deadlock at %v: %s", x.At, y.net.CycleName(x.Cycle)))
		default:
			y.stuck = append(y.stuck, fmt.Sprintf("%s has been paused since %v, for longer than fabric.watchdog.after", y.net.PortName(x.Port), x.Since))
		}
	}
	return nil
}

// runNetwork simulates a network alone.
func (s *Scenario) runNetwork(ctx context.Context, o Options, digest string) (*Outcome, error) {
	parts := max(1, s.Fabric.Parts)
	if o.Timeline != nil {
		parts = 1 // the parts' tracks would have to be woven into one file; results do not depend on parts
	}
	y, err := s.buildNetwork(o.Seed, parts, o.Pause != nil)
	if err != nil {
		return nil, err
	}
	t := newTimeline(o, y.eng)
	t.showNetwork(y)
	m := newFabricMeter(y)
	interrupted, err := m.run(ctx, o)
	if errors.Is(err, errOnePiece) {
		// What the watchdog has found is looked into in one piece: the same run, with the same results.
		if y, err = s.buildNetwork(o.Seed, 1, o.Pause != nil); err != nil {
			return nil, err
		}
		m = newFabricMeter(y)
		interrupted, err = m.run(ctx, o)
	}
	if err != nil {
		return nil, err
	}
	remarks, err := t.close()
	if err != nil {
		return nil, err
	}
	if err := y.tellPauses(o.Pause); err != nil {
		return nil, err
	}
	if o.Flow != nil {
		for i := range y.net.Messages() {
			if err := o.Flow(y.flow(int32(i))); err != nil {
				return nil, err
			}
		}
	}
	r := result.New(digest, o.Seed, o.Version)
	r.Name = s.Name
	m.finish(r, interrupted)
	return &Outcome{Result: r, Events: y.driver.events(), Interrupted: interrupted, Remarks: remarks}, nil
}

// flow is a message in the user's terms.
func (y *network) flow(i int32) Flow {
	m := &y.net.Messages()[i]
	f := Flow{ID: int64(i), Size: m.Size, Start: m.Posted, FCT: sim.Forever, Ideal: y.net.Ideal(i), Port: m.Port, Src: m.Src, Dst: m.Dst}
	if m.Acked != sim.Forever {
		f.FCT = m.Acked - m.Posted
	}
	return f
}

// tellPauses hands the pauses on, in an order that does not depend on how the network was divided.
func (y *network) tellPauses(f func(Pause) error) error {
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

func (y *network) pause(p fabric.Pause) Pause {
	r := y.net.Port(p.Port)
	return Pause{Time: p.At, Node: r.Node, Switch: y.graph.Nodes[r.Node].Kind == topo.Switch, Port: y.net.PortNumber(p.Port) + 1, Class: int(p.Class), Resume: p.Resume}
}

// fabricMeter follows a run of a network in slices, of which it keeps a bounded number by joining
// neighbours.
type fabricMeter struct {
	*network
	width  units.Duration
	most   int
	slices []fabricSlice
	follow []int       // queue pairs
	before fabricState // at the end of the last slice
	from   fabricState // the end of the warm-up
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
	paused              sim.Time
}

// fabricSlice is what happened in a slice.
type fabricSlice struct {
	end                 sim.Time
	taken, marks, queue float64 // payload bytes received, packets marked, largest queue at the end
	paused              float64 // seconds, over all ports
	ports               []portSlice
	rates               []units.BitRate // of the queue pairs that are followed, at the end, 0 if not yet open
}

// portSlice is what a port did in a slice. A picture needs no more digits.
type portSlice struct {
	bytes, paused, queue float32 // paused in seconds
}

// A meter's bounds: slices of all ports together, and how many queue pairs' rates are
// followed if the scenario does not say which.
const (
	portSlices = 1 << 17
	firstPairs = 8
)

func newFabricMeter(y *network) *fabricMeter {
	m := &fabricMeter{network: y, width: 10 * units.Microsecond, most: min(256, max(32, portSlices/y.net.Ports())) &^ 1}
	m.before.ports = make([]portState, y.net.Ports())
	m.follow = y.s.Measure.QueuePairs
	if len(m.follow) == 0 {
		for q := range firstPairs {
			m.follow = append(m.follow, q)
		}
	}
	return m
}

// state takes down the state.
func (m *fabricMeter) state(at sim.Time) fabricState {
	k := fabricState{at: at, counters: m.net.Counters, ports: make([]portState, m.net.Ports())}
	for i := range k.ports {
		k.ports[i] = portStateOf(m.net.Port(int32(i)))
	}
	return k
}

func portStateOf(p fabric.PortReport) portState {
	return portState{p.Bytes, p.Taken, p.Marks, p.Pauses, p.Paused}
}

// run drives the network until every flow has ended, or the run is to end. It reports whether the
// context ended it. What happens after the last flow's end until the end of the slice still counts,
// pause frames for example, and takes no time.
func (m *fabricMeter) run(ctx context.Context, o Options) (interrupted bool, err error) {
	end := sim.Forever
	if t := m.s.Measure.Until.Time; t > 0 {
		end = t
	}
	warm := m.s.Measure.WarmUp.Time
	if share := m.s.Measure.WarmUp.Share; share > 0 && end != sim.Forever {
		warm = units.Duration(float64(end) * float64(share))
	}
	for {
		to := min(m.next(), end)
		warming := warm > m.from.at && warm < to
		if warming {
			to = warm
		}
		dry, err := m.driver.run(to)
		if err != nil {
			return false, err
		}
		done, all, last := m.driver.progress()
		stop := ctx.Err() != nil
		if dry && !all {
			to = m.driver.now()
		}
		m.net.Look(to)
		if warming && !all && !dry && !stop {
			m.from = m.state(to)
			continue
		}
		if all && end == sim.Forever {
			to = last
		}
		m.slice(to)
		if o.Progress != nil {
			o.Progress(Progress{Requests: done, Expected: uint64(m.known), Simulated: to, Until: m.s.Measure.Until.Time})
		}
		if all || dry || stop || to == end {
			return stop && !all, nil
		}
	}
}

// next is when the present slice ends.
func (m *fabricMeter) next() sim.Time {
	n := units.Duration(len(m.slices) + 1)
	if m.width > sim.Forever/n {
		return sim.Forever
	}
	return m.width * n
}

// slice ends a slice, joining slices in pairs when there are too many.
func (m *fabricMeter) slice(at sim.Time) {
	x := fabricSlice{end: at, ports: make([]portSlice, len(m.before.ports))}
	for i := range x.ports {
		p := m.net.Port(int32(i))
		now, was := portStateOf(p), &m.before.ports[i]
		x.taken += float64(now.taken - was.taken)
		x.marks += float64(now.marks - was.marks)
		x.paused += (now.paused - was.paused).Seconds()
		x.queue = max(x.queue, float64(p.Queue))
		x.ports[i] = portSlice{float32(now.bytes - was.bytes), float32((now.paused - was.paused).Seconds()), float32(p.Queue)}
		*was = now
	}
	for _, q := range m.follow {
		rate := units.BitRate(0)
		if q < m.net.Pairs() {
			rate = m.net.Rate(fabric.QP(q))
		}
		x.rates = append(x.rates, rate)
	}
	m.before.at, m.before.counters = at, m.net.Counters
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

// joined is a slice and the one behind it as one.
func joined(a, b *fabricSlice) fabricSlice {
	x := *b
	x.taken += a.taken
	x.marks += a.marks
	x.paused += a.paused
	for i := range x.ports {
		x.ports[i].bytes += a.ports[i].bytes
		x.ports[i].paused += a.ports[i].paused
	}
	return x
}
