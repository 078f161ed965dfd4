package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"farflash/block"
	"farflash/cosim"
	"farflash/result"
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
}

// interruptEvery is after how many requests the context is looked at.
const interruptEvery = 256

// system is the models of one run.
type system struct {
	eng     *sim.Engine
	host    *cosim.Host
	drive   *ssd.Drive
	flows   []cosim.Flow
	replays []*replay
}

// build makes the models.
func (s *Scenario) build(seed uint64) (*system, error) {
	y := &system{eng: sim.New()}
	y.host = cosim.NewHost(y.eng)
	drive, err := ssd.New(s.SSD.Config, y.eng, y.host, seed, "ssd[0]")
	if err != nil {
		return nil, fmt.Errorf("ssd: %w", err)
	}
	y.drive = drive
	var starts []int64
	next := int64(0)
	for i := range max(len(s.SSD.Namespaces), 1) {
		starts = append(starts, next)
		next += drive.Capacity(i) / int64(units.Sector)
	}
	for i := range s.Workload {
		l := &s.Workload[i]
		name := fmt.Sprintf("workload[%d]", i)
		if l.Name != "" {
			name = l.Name
		}
		src, err := s.source(i, y, seed, starts[l.Namespace])
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%v: %s: %w", s.where(fmt.Sprintf("workload[%d]", i)), name, err), y.close())
		}
		if l.Limit > 0 {
			src = workload.Limit(src, l.Limit, 0)
		}
		y.flows = append(y.flows, cosim.Flow{
			Name: name, Source: src, Outstanding: l.Closed, Start: l.Start, Until: l.Until, Namespace: uint8(l.Namespace),
			Queue: block.QueueConfig{Depth: l.Queue.Depth, Class: l.Queue.Class, Weight: l.Queue.Weight, InFlight: l.Queue.InFlight},
			Fold:  l.Addresses == AddressFold, FromSubmission: l.LatencyFrom == FromSubmission, Placement: uint8(l.Placement), ForceUnit: l.FUA,
		})
	}
	return y, nil
}

// source makes a flow's source of requests. first is where its namespace lies
// among the drive's sectors.
func (s *Scenario) source(i int, y *system, seed uint64, first int64) (workload.Source, error) {
	l := &s.Workload[i]
	switch {
	case l.Trace != nil:
		p, err := s.openTrace(l.Trace, seed)
		if p != nil {
			y.replays = append(y.replays, p)
		}
		return p, err
	case l.Synthetic != nil:
		return synth.New(s.synthetic(i, seed, units.Bytes(y.drive.Capacity(l.Namespace))))
	case l.MQSim != nil:
		return l.MQSim.source(first, y.drive.Capacity(l.Namespace)/int64(units.Sector), l.Until)
	}
	return nil, errors.New("no source of requests")
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
	y, err := s.build(o.Seed)
	if err != nil {
		return nil, err
	}
	defer y.close()
	m := newMeter(s, y)
	var failed error
	y.host.OnSample = func(x cosim.Sample) {
		m.sample(&x)
		if o.Sample != nil && failed == nil {
			if failed = o.Sample(x); failed != nil {
				y.eng.Stop()
			}
		}
	}
	y.host.OnProgress = func(n uint64) {
		if n%interruptEvery == 0 && ctx.Err() != nil {
			y.eng.Stop()
		}
	}
	if err := y.host.Attach(y.drive, y.flows); err != nil {
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
	r := result.New(digest, o.Seed, o.Version)
	r.Name = s.Name
	m.events = y.eng.Events()
	m.finish(s, r, interrupted)
	return &Outcome{Result: r, Events: y.eng.Events(), Interrupted: interrupted}, nil
}

// run drives the engine slice by slice, until everything has happened or the run
// is to end. It reports whether the context ended it.
func (y *system) run(ctx context.Context, s *Scenario, m *meter, o Options) bool {
	end := sim.Forever
	if s.Measure.Until.Time > 0 {
		end = s.Measure.Until.Time
	}
	expected := s.expected()
	for {
		to := min(m.next(), end)
		y.eng.Run(to)
		if ctx.Err() != nil {
			m.slice(y.eng.Now())
			return true
		}
		if y.host.Err() != nil {
			return false
		}
		// An engine that was stopped by a listener's error has events left; the caller
		// knows of the error.
		done := y.eng.Pending() == 0 || to == end
		if done && end == sim.Forever {
			to = y.eng.Now()
		}
		m.slice(to)
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
		path := fmt.Sprintf("workload[%d]", i)
		names := []string{path, s.Workload[i].Name}
		if slices.ContainsFunc(names, func(n string) bool { return n != "" && len(err.Error()) > len(n) && err.Error()[:len(n)+1] == n+":" }) {
			return fmt.Errorf("%v: %w", s.where(path), err)
		}
	}
	return err
}
