// Package requests generates the requests of a scenario's workload: for each of its items the sources (traces,
// generators and job files), and the flows of the host that issues them.
//
// Its main types are Flows, those of one run, and Replay, a trace being replayed. It leaves out the language of
// workloads (package scenario) and the devices that serve requests (the kinds of experiment).
package requests

import (
	"errors"
	"fmt"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/workload"
	"farflash/workload/synth"
)

// Flows are the flows of a run's host.
type Flows struct {
	List    []cosim.Flow
	Owners  []int32 // the initiator of each flow; -1: route.initiator decides for each request
	copies  []int32 // the initiator of each flow, if each has a workload of its own; otherwise 0
	Replays []*Replay
	Items   []int    // the workload's item of each flow
	Notes   []string // interpretation of fio's jobs

	replayOf   []*Replay // by flow; nil without a trace
	s          *scenario.Scenario
	capacities []int64 // of namespaces, in bytes
	initiators int     // number that run the whole workload each
	seed       uint64
}

// Open creates the flows of a scenario for a device with namespaces of these capacities in bytes. The caller must close
// them. initiators is the number that run the whole workload each; 1 if they share it.
func Open(s *scenario.Scenario, seed uint64, capacities []int64, initiators int) (*Flows, error) {
	f := &Flows{s: s, capacities: capacities, initiators: initiators, seed: seed}
	var starts []int64
	next := int64(0)
	for _, c := range capacities {
		starts = append(starts, next)
		next += c / int64(units.Sector)
	}
	for k := range initiators * len(s.Workload) {
		i, copy := k%len(s.Workload), k/len(s.Workload)
		if s.AsMQSim() {
			i = len(s.Workload) - 1 - i
		}
		if !s.Runs(i) {
			continue
		}
		if err := f.add(i, copy, starts[s.Workload[i].Namespace]); err != nil {
			var placed shape.Errors
			if !errors.As(err, &placed) {
				err = s.LoadError(i, err)
			}
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// add creates the flows of an item for an initiator.
func (f *Flows) add(i, copy int, first int64) error {
	l := &f.s.Workload[i]
	list, err := f.of(i, copy, first)
	if err != nil {
		return err
	}
	wave := f.s.Wave(i)
	for _, x := range list {
		replay, _ := x.Source.(*Replay)
		f.replayOf = append(f.replayOf, replay)
		if l.Limit > 0 {
			x.Source = workload.Limit(x.Source, l.Limit, 0)
		}
		if l.Flush != nil {
			x.Source = workload.Flushed(x.Source, l.Flush.Every)
		}
		if l.Think != nil {
			x.Think, x.ThinkEvery = l.Think.Time, l.Think.Every
		}
		x.Wave += wave
		x.Start, x.Namespace = l.Start, uint8(l.Namespace)
		x.Queue = block.QueueConfig{Depth: l.Queue.Depth, Class: l.Queue.Class, Weight: l.Queue.Weight,
			InFlight: l.Queue.InFlight}
		x.Fold, x.FromSubmission = l.Addresses == scenario.AddressFold, l.LatencyFrom == scenario.FromSubmission
		x.Loose = f.s.AsMQSim()
		// In NVMe's placement identifier the reclaim group precedes the handle.
		x.Placement, x.ForceUnit = uint8(l.Group*f.s.DriveOf(0).Placements(l.Namespace)+l.Placement), l.FUA
		if l.Until > 0 && (x.Until == 0 || l.Until < x.Until) {
			x.Until = l.Until
		}
		f.List = append(f.List, x)
		owner := int32(-1)
		if n, bound := l.Initiator.Number(); bound {
			owner = int32(n)
		} else if f.s.Route.Initiator == scenario.InitiatorEach {
			owner = int32(copy)
		}
		f.Owners, f.copies, f.Items = append(f.Owners, owner), append(f.copies, int32(copy)), append(f.Items, i)
	}
	return nil
}

// of creates the flows of a workload's item: one, or one for each copy of each fio job. first is the position of its
// namespace in the drive's sectors; copy is the initiator's number if each has a workload of its own.
func (f *Flows) of(i, copy int, first int64) ([]cosim.Flow, error) {
	s, l := f.s, &f.s.Workload[i]
	x := cosim.Flow{Name: s.LoadName(i), Outstanding: l.Closed}
	capacity := f.capacities[l.Namespace]
	var err error
	switch {
	case l.Trace != nil:
		p, failed := OpenTrace(s, i, f.seed)
		if p != nil {
			room := capacity
			if l.Addresses == scenario.AddressFold {
				room = 0
			}
			p.stack(l.Trace.Volumes, room)
			f.Replays = append(f.Replays, p)
		}
		x.Source, err = p, failed
	case l.Synthetic != nil:
		if err := f.fits(i); err != nil {
			return nil, err
		}
		return f.synthetic(x, i, copy)
	case l.MQSim != nil:
		until := s.Measure.Until.Time // on the item's clock
		if until = max(0, until-l.Start); l.Until > 0 && (until == 0 || l.Until-l.Start < until) {
			until = l.Until - l.Start
		}
		x.Source, x.Last, err = mqsimSource(l, first, capacity/int64(units.Sector), until, s.AsMQSim())
	case l.Fio != nil:
		return f.fio(i, copy)
	}
	return []cosim.Flow{x}, err
}

// synthetic creates the flows of an item of synthetic requests.
func (f *Flows) synthetic(x cosim.Flow, i, copy int) (out []cosim.Flow, err error) {
	l := &f.s.Workload[i]
	n := l.Count()
	for k := range n {
		y := x
		if n > 1 {
			y.Name = fmt.Sprintf("%s.%d", x.Name, k)
		}
		if y, err = generated(y,
			f.s.SyntheticConfig(i, copy, k, f.seed, units.Bytes(f.capacities[l.Namespace]))); err != nil {
			return nil, err
		}
		if l.Zones != nil {
			c := f.s.SyntheticConfig(i, copy, k, f.seed, units.Bytes(f.capacities[l.Namespace]))
			if y.Source, err = f.zoned(y.Source, i, copy, &c); err != nil {
				return nil, err
			}
		}
		out = append(out, y)
	}
	return out, nil
}

// zoned restricts writes to the zones within their addresses, or to an initiator's part of them if each has a workload
// of its own, because initiators do not know each other's writes.
func (f *Flows) zoned(src workload.Source, i, copy int, c *synth.Config) (workload.Source, error) {
	l := &f.s.Workload[i]
	z := f.s.DriveOf(0).Config.ZonesOf(l.Namespace)
	z.Count = int(f.capacities[l.Namespace] / z.Size) // of all drives of a system
	a := &c.Writes.Addresses
	first, count := int(int64(a.Start)/z.Size), int(int64(a.Space)/z.Size)
	if least := l.Zones.AtOnce * f.initiators; int64(a.Start)%z.Size != 0 || count < least {
		return nil, f.s.Located(&units.FieldError{Path: fmt.Sprintf("workload[%d].synthetic.writes.addresses", i),
			Msg: fmt.Sprintf("%v from %v on are not %d whole zones of %v", a.Space, a.Start, least,
				units.Bytes(z.Size))})
	}
	from, to := copy*count/f.initiators, (copy+1)*count/f.initiators
	return workload.Zoned(src, z, first+from, to-from, l.Zones.AtOnce, l.Zones.Append), nil
}

// fio creates a flow for each copy of each job. The trial's seed is added to the job file's own, so that seed 1 is the
// file's.
func (f *Flows) fio(i, copy int) ([]cosim.Flow, error) {
	s, l := f.s, &f.s.Workload[i]
	copies, err := scenario.ReadFio(s.Path(l.Fio.File), l.Fio.Job, units.Bytes(f.capacities[l.Namespace]))
	if err != nil {
		return nil, err
	}
	var out []cosim.Flow
	for _, c := range copies {
		c.Config.Seed += f.seed - 1
		c.Config.Name += scenario.CopyName(copy)
		x, err := generated(cosim.Flow{Name: s.LoadName(i) + "/" + c.Name, Outstanding: c.Config.QueueDepth,
			Think: c.Think, ThinkEvery: c.ThinkEvery, Wave: c.Wave}, c.Config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if c.FlushEvery > 0 {
			x.Source = workload.Flushed(x.Source, c.FlushEvery)
		}
		if copy == 0 {
			f.Notes = append(f.Notes, c.Notes...)
		}
		out = append(out, x)
	}
	return out, nil
}

// orStripe is an alternative remedy for addresses beyond a drive of a system.
func (f *Flows) orStripe() string {
	if len(f.s.Targets) > 0 && f.s.Route.Target.By != scenario.ByStripe {
		return ", or route.target: stripe, which spreads the addresses over all drives"
	}
	return ""
}

// fits checks that a synthetic workload's addresses are within its namespace, unless they are folded into it.
func (f *Flows) fits(i int) error {
	l := &f.s.Workload[i]
	room := units.Bytes(f.capacities[l.Namespace])
	for _, x := range []struct {
		key  string
		flow *synth.Flow
	}{{"reads", l.Synthetic.Reads}, {"writes", l.Synthetic.Writes}} {
		if x.flow == nil || l.Addresses == scenario.AddressFold {
			continue
		}
		last := units.Bytes(0)
		if l.Copies != nil {
			last = units.Bytes(l.Copies.Count-1) * l.Copies.Stride
		}
		if a := &x.flow.Addresses; a.Start > room-last || a.Space > room-last-a.Start {
			return f.s.Located(&units.FieldError{Path: fmt.Sprintf("workload[%d].synthetic.%s.addresses", i, x.key),
				Msg: fmt.Sprintf("%v from %v on are beyond the namespace, which has %v; use less, addresses: fold, "+
					"or a larger drive%s", a.Space, a.Start, room, f.orStripe())})
		}
	}
	return nil
}

// generated adds a synthetic source to a flow. A closed loop's source has no times, so its duration limits the flow
// instead.
func generated(f cosim.Flow, c synth.Config) (cosim.Flow, error) {
	if c.QueueDepth > 0 {
		f.Until, c.Duration = c.Duration, 0
	}
	g, err := synth.New(c)
	f.Source = g
	return f, err
}

// Copies returns how many initiators have a workload of their own; 1 if they share one.
func (f *Flows) Copies() int { return f.initiators }

// VolumeName returns the name of a volume in the trace of a workload's item.
func (f *Flows) VolumeName(item int, number uint32) string {
	traces, name := 0, ""
	for i, p := range f.replayOf {
		if f.copies[i] > 0 || p == nil {
			continue
		}
		traces++
		if f.Items[i] == item {
			name = p.r.VolumeName(number)
		}
	}
	switch {
	case name == "": // synthetic requests have no volumes
		return f.s.LoadName(item)
	case traces > 1:
		return f.s.LoadName(item) + "/" + name
	}
	return name
}

// Close closes the traces.
func (f *Flows) Close() error {
	var err error
	for _, p := range f.Replays {
		err = errors.Join(err, p.Close())
	}
	return err
}

// Expected is the number of requests of the workload, 0 if unknown.
func Expected(s *scenario.Scenario) uint64 {
	n := uint64(0)
	for i := range s.Workload {
		if !s.Runs(i) {
			continue
		}
		k := expected(&s.Workload[i])
		if k == 0 {
			return 0
		}
		n += k
	}
	return n
}

func expected(l *scenario.Load) uint64 {
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
	return n * uint64(l.Count())
}

// Located adds to an error of one of the host's flows the position of its item in the scenario.
func (f *Flows) Located(err error) error {
	var of *cosim.FlowError
	if !errors.As(err, &of) {
		return err
	}
	msg := err.Error()
	var beyond *cosim.RangeError
	outside := errors.As(err, &beyond)
	if p := f.replayOf[of.Flow]; p != nil && outside {
		msg = of.Name + ": " + p.r.Locate(beyond).Error()
	}
	var refused *cosim.RefusedError
	if p := f.replayOf[of.Flow]; p != nil && f.s.Workload[f.Items[of.Flow]].Flush == nil && errors.As(err, &refused) {
		msg = of.Name + ": " + p.locate(refused.Number, refused).Error()
	}
	if outside {
		msg += f.orStripe()
	}
	return &shape.Error{At: f.s.Where(fmt.Sprintf("workload[%d]", f.Items[of.Flow])), Msg: msg}
}
