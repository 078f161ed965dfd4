package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"farflash/block"
	"farflash/cosim"
	"farflash/result"
	"farflash/shape"
	"farflash/sim"
	"farflash/ssd"
	"farflash/units"
	"farflash/workload"
	"farflash/workload/synth"
)

// Options say how a scenario is run. They change no result but by the seed.
type Options struct {
	Seed    uint64
	Version string // of the program, for result.json
	// Progress is told now and then how far the run is; nil is nobody.
	Progress func(Progress)
	// Sample is told of every completed request; nil is nobody. An error ends the run.
	Sample func(cosim.Sample) error
	// Flow is told of every flow of a network at the end, Pause of every pause as it takes
	// effect or ends; nil is nobody. An error ends the run.
	Flow  func(Flow) error
	Pause func(Pause) error
	// Chunk is told of every chunk of an object cluster that is done; nil is nobody. An error ends the run.
	Chunk func(Chunk) error
	// Timeline is where what happened when is written to, for Perfetto; nil is nowhere.
	Timeline io.Writer

	timelineSlices int // that it has at most; 0 is the default
}

// Progress is how far a run is.
type Progress struct {
	Requests  uint64 // completed
	Expected  uint64 // in all; 0 if not known
	Simulated units.Duration
	Until     units.Duration // 0 if the run is not ended by time
}

// Outcome is what a run gives beside its result.
type Outcome struct {
	Result *result.Result
	Events uint64
	// Interrupted says that the context ended the run, so that the result is of what
	// was done until then.
	Interrupted bool
	// Remarks are what there is to say of the files that were asked for.
	Remarks []string
}

// interruptEvery is after how many requests the context is looked at.
const interruptEvery = 256

// system is the models of one run.
type system struct {
	eng        *sim.Engine
	host       *cosim.Host
	dev        block.Device // what the host submits to
	drives     []*ssd.Drive
	same       *Drive  // that all drives are like; nil if they differ
	initiators int     // that each run the whole workload; 1 if they share it
	owners     []int32 // of the flows
	flows      []cosim.Flow
	replays    []*replay
	notes      []string // what fio's jobs mean here
}

// build makes the models.
func (s *Scenario) build(seed uint64) (*system, error) {
	y := &system{eng: sim.New()}
	y.host = cosim.NewHost(y.eng)
	drive, err := ssd.New(s.SSD.Config, y.eng, y.host, seed, "ssd[0]")
	if err != nil {
		return nil, fmt.Errorf("ssd: %w", err)
	}
	y.dev, y.drives, y.same, y.initiators = drive, []*ssd.Drive{drive}, s.SSD, 1
	return y, s.addFlows(y, seed)
}

// addFlows makes the host's flows.
func (s *Scenario) addFlows(y *system, seed uint64) error {
	var starts []int64
	next := int64(0)
	for i := range max(len(s.drive(0).Namespaces), 1) {
		starts = append(starts, next)
		next += y.dev.Capacity(i) / int64(units.Sector)
	}
	for k := range y.initiators * len(s.Workload) {
		i, copy := k%len(s.Workload), k/len(s.Workload)
		l := &s.Workload[i]
		flows, err := s.flows(i, copy, y, seed, starts[l.Namespace])
		if err != nil {
			return errors.Join(s.at(i, err), y.close())
		}
		for _, f := range flows {
			if l.Limit > 0 {
				f.Source = workload.Limit(f.Source, l.Limit, 0)
			}
			f.Start, f.Namespace = l.Start, uint8(l.Namespace)
			f.Queue = block.QueueConfig{Depth: l.Queue.Depth, Class: l.Queue.Class, Weight: l.Queue.Weight, InFlight: l.Queue.InFlight}
			f.Fold, f.FromSubmission = l.Addresses == AddressFold, l.LatencyFrom == FromSubmission
			f.Placement, f.ForceUnit = uint8(l.Placement), l.FUA
			if l.Until > 0 && (f.Until == 0 || l.Until < f.Until) {
				f.Until = l.Until
			}
			y.flows = append(y.flows, f)
			y.owners = append(y.owners, int32(copy))
		}
	}
	return nil
}

// name is what a flow is called in messages.
func (s *Scenario) name(i int) string {
	if n := s.Workload[i].Name; n != "" {
		return n
	}
	return fmt.Sprintf("workload[%d]", i)
}

// at is an error about a flow, with where it stands.
func (s *Scenario) at(i int, err error) error {
	return &shape.Error{At: s.where(fmt.Sprintf("workload[%d]", i)), Msg: fmt.Sprintf("%s: %v", s.name(i), err)}
}

// flows makes the flows of a workload's item: one, or one for each copy of each
// fio job. first is where its namespace lies among the drive's sectors; copy is the initiator's number
// if each has a workload of its own.
func (s *Scenario) flows(i, copy int, y *system, seed uint64, first int64) ([]cosim.Flow, error) {
	l := &s.Workload[i]
	f := cosim.Flow{Name: s.name(i), Outstanding: l.Closed}
	capacity := y.dev.Capacity(l.Namespace)
	var err error
	switch {
	case l.Trace != nil:
		p, failed := s.openTrace(i, seed)
		if p != nil {
			y.replays = append(y.replays, p)
		}
		f.Source, err = p, failed
	case l.Synthetic != nil:
		f, err = generated(f, s.synthetic(i, copy, seed, units.Bytes(capacity)))
	case l.MQSim != nil:
		f.Source, err = l.MQSim.source(first, capacity/int64(units.Sector), l.Until)
	case l.Fio != nil:
		return s.fioFlows(i, copy, y, seed)
	}
	return []cosim.Flow{f}, err
}

// fioFlows makes a flow for each copy of each job. The trial's seed counts from the
// job file's own, so that seed 1 is what the file says.
func (s *Scenario) fioFlows(i, copy int, y *system, seed uint64) ([]cosim.Flow, error) {
	l := &s.Workload[i]
	copies, err := readFio(s.path(l.Fio.File), l.Fio.Job, units.Bytes(y.dev.Capacity(l.Namespace)))
	if err != nil {
		return nil, err
	}
	var out []cosim.Flow
	for _, c := range copies {
		c.config.Seed += seed - 1
		c.config.Name += copyName(copy)
		f, err := generated(cosim.Flow{Name: s.name(i) + "/" + c.name, Outstanding: c.config.QueueDepth}, c.config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if copy == 0 {
			y.notes = append(y.notes, c.notes...)
		}
		out = append(out, f)
	}
	return out, nil
}

// generated gives a flow a synthetic source. A closed loop's source has no times,
// so its duration is when the flow stops.
func generated(f cosim.Flow, c synth.Config) (cosim.Flow, error) {
	if c.QueueDepth > 0 {
		f.Until, c.Duration = c.Duration, 0
	}
	g, err := synth.New(c)
	f.Source = g
	return f, err
}

// close closes the traces.
func (y *system) close() error {
	var err error
	for _, p := range y.replays {
		err = errors.Join(err, p.Close())
	}
	return err
}

// Run simulates the scenario. When the context ends, what was done until then is
// the result and Outcome.Interrupted is set. The same scenario and seed give the
// same result, to the byte.
func (s *Scenario) Run(ctx context.Context, o Options) (*Outcome, error) {
	digest, err := s.Digest()
	if err != nil {
		return nil, err
	}
	switch {
	case s.ObjectCluster != nil:
		return s.runCluster(ctx, o, digest)
	case len(s.Targets) > 0:
		return s.runSystem(ctx, o, digest)
	case s.Fabric != nil:
		return s.runNetwork(ctx, o, digest)
	}
	y, err := s.build(o.Seed)
	if err != nil {
		return nil, err
	}
	defer y.close()
	m := newMeter(s, y)
	timeline := newTimeline(o, y.eng)
	timeline.showDrive(y)
	var failed error
	y.host.OnSample = func(x *cosim.Sample) {
		m.sample(x)
		timeline.local(x)
		if o.Sample != nil && failed == nil {
			if failed = o.Sample(*x); failed != nil {
				m.failed = true
				y.eng.Stop()
			}
		}
	}
	y.host.OnProgress = func(n uint64) {
		if n%interruptEvery == 0 && ctx.Err() != nil {
			y.eng.Stop()
		}
	}
	if err := y.host.Attach(y.dev, y.flows); err != nil {
		return nil, err
	}
	if err := y.host.Start(); err != nil {
		return nil, s.located(err)
	}
	interrupted := y.run(ctx, s, m, o)
	switch {
	case failed != nil:
		return nil, failed
	case y.host.Err() != nil:
		return nil, s.located(y.host.Err())
	}
	if n := y.host.Issued() - y.host.Ended(); n > 0 && !interrupted && s.Measure.Until.Time == 0 && !m.settled {
		return nil, fmt.Errorf("stuck at %v: %d of %d requests have not completed and nothing is left to happen; this is a fault in the model, please report it with the scenario",
			y.eng.Now(), n, y.host.Issued())
	}
	remarks, err := timeline.close()
	if err != nil {
		return nil, err
	}
	r := result.New(digest, o.Seed, o.Version)
	r.Name = s.Name
	m.events = y.eng.Events()
	m.finish(s, r, interrupted)
	return &Outcome{Result: r, Events: y.eng.Events(), Interrupted: interrupted, Remarks: remarks}, nil
}

// run drives the engine slice by slice, until everything has happened or the run
// is to end. It reports whether the context ended it.
func (y *system) run(ctx context.Context, s *Scenario, m *meter, o Options) bool {
	end := sim.Forever
	if s.Measure.Until.Time > 0 {
		end = s.Measure.Until.Time
	}
	expected := s.expected()
	// What the drive goes on doing when the host has everything back is no part of the
	// run: rates would be thinned by it.
	idle := false
	y.host.OnIdle = func(sim.Time) {
		idle = true
		y.eng.Stop()
	}
	for {
		to := min(m.next(), end)
		y.eng.Run(to)
		switch {
		case ctx.Err() != nil:
			m.end(y.eng.Now())
			return true
		case y.host.Err() != nil || m.failed:
			return false
		}
		dry := idle || y.eng.Pending() == 0
		done := dry || to == end
		switch {
		case dry:
			to = y.eng.Now()
			m.end(to)
		case done:
			m.end(to)
		default:
			m.slice(to)
		}
		if o.Progress != nil {
			o.Progress(Progress{Requests: y.host.Ended(), Expected: expected, Simulated: to, Until: s.Measure.Until.Time})
		}
		if done || s.Measure.Until.Steady && m.steady() {
			return false
		}
	}
}

// expected is how many requests the workload has, 0 if that is not known.
func (s *Scenario) expected() uint64 {
	n := uint64(0)
	for i := range s.Workload {
		k := s.Workload[i].expected()
		if k == 0 {
			return 0
		}
		n += k
	}
	return n
}

func (l *Load) expected() uint64 {
	n := uint64(0)
	if l.Synthetic != nil && l.Synthetic.Duration == 0 && l.Until == 0 {
		n = uint64(l.Synthetic.Requests)
	}
	if l.MQSim != nil && l.MQSim.Stop == 0 && l.Until == 0 {
		n = uint64(l.MQSim.Requests)
	}
	if l.Limit > 0 && (n == 0 || uint64(l.Limit) < n) {
		n = uint64(l.Limit)
	}
	return n
}

// located puts the place of a flow before an error that begins with its name.
func (s *Scenario) located(err error) error {
	for i := range s.Workload {
		if strings.HasPrefix(err.Error(), s.name(i)+":") || strings.HasPrefix(err.Error(), s.name(i)+"/") {
			msg := err.Error()
			var beyond *cosim.RangeError
			if errors.As(err, &beyond) && len(s.Targets) > 0 && s.Route.Target.By != ByStripe {
				msg += ", or route.target: stripe, which spreads the addresses over all drives"
			}
			return &shape.Error{At: s.where(fmt.Sprintf("workload[%d]", i)), Msg: msg}
		}
	}
	return err
}
