// Package drive is the experiment with one drive and its host.
//
// It leaves out networks between host and drive (package system).
package drive

import (
	"context"
	"errors"
	"fmt"

	"farflash/block"
	"farflash/block/raid"
	"farflash/experiment"
	"farflash/experiment/internal/drivemeter"
	"farflash/experiment/requests"
	"farflash/experiment/timeline"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/model/ssd/blame"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/sim"
)

// Kind is a drive with its host, without a network.
type Kind struct{}

func (Kind) Is(s *scenario.Scenario) bool {
	return s.ObjectCluster == nil && len(s.Targets) == 0 && s.Fabric == nil
}

// alone holds the models.
type alone struct {
	s        *scenario.Scenario
	o        *experiment.Options
	eng      *sim.Engine
	host     *cosim.Host
	drives   []*ssd.Drive   // one, or the members of volume
	volume   *raid.Device   // nil: a single drive
	divided  *cosim.Divided // nil: the drive's own queues
	flows    *requests.Flows
	meter    *drivemeter.Meter
	timeline *timeline.Timeline
	watch    *blame.Watch    // nil: no breakdown of latencies is requested
	ctx      context.Context // of the present Advance
	failed   error           // error of the receiver of samples
	vain     drivemeter.Livelock
	stall    experiment.Watch
	idle     bool
	expected uint64
}

// models builds the drive, its host and its flows.
func models(s *scenario.Scenario, o *experiment.Options) (*alone, error) {
	x := &alone{s: s, o: o, eng: sim.New()}
	x.host = cosim.NewHost(x.eng)
	m, err := ssd.Prepare(drivemeter.Preconditioned(s, 0), o.Seed, "ssd[0]", o.Preparing)
	if err != nil {
		return nil, units.Within("ssd", err)
	}
	var sink block.Sink = x.host
	if s.Controlled() {
		// With more commands than the drive fetches from a queue, the rest would wait where weights have no effect.
		x.divided = cosim.NewDivided(x.eng, s.SSD.Host.FetchSize, x.host)
		x.divided.Queues().SetWeights(1, s.RateControl.WeightRatio)
		x.divided.Queues().SetPartition(s.RateControl.Partition)
		sink = x.divided
	}
	if s.HostRAID == nil {
		d, err := ssd.NewOnly(m, x.eng, sink, o.Seed, "ssd[0]")
		if err != nil {
			return nil, units.Within("ssd", err)
		}
		x.drives = []*ssd.Drive{d}
	} else if err := x.stripe(m, sink); err != nil {
		return nil, units.Within("host_raid", err)
	}
	x.flows, err = requests.Open(s, o.Seed, drivemeter.Capacities(s, x.device().Capacity), 1)
	return x, err
}

// stripe builds a volume of several drives.
func (x *alone) stripe(m *ssd.Image, sink block.Sink) error {
	x.volume = raid.NewDevice(sink)
	var members []block.Device
	for i := range x.s.HostRAID.Drives {
		d, err := drivemeter.New(m, x.eng, x.volume.Member(i), x.o.Seed, i)
		if err != nil {
			return err
		}
		x.drives, members = append(x.drives, d), append(members, d)
	}
	return x.volume.Attach(x.s.RAID(), members)
}

// device returns the host's device.
func (x *alone) device() block.Device {
	if x.volume != nil {
		return x.volume
	}
	return x.drives[0]
}

// noteStages attaches the latency breakdown to a completed request, if that is requested.
//
//go:noinline
func (x *alone) noteStages(r *cosim.Sample) {
	if r.Op > block.Write || r.Failed {
		return
	}
	x.watch.Last[blame.Host] = r.Submitted - r.Arrival
	if x.divided != nil { // the wait in its queues is in none of the drive's stages
		x.watch.Last[blame.Host] += max(0, r.Finished-r.Submitted-x.watch.Whole)
	}
	x.meter.Trip(r.Op, r.Finished-r.Arrival, x.watch.Last[:])
	r.Blame, r.Stages = &x.watch.Blame, &x.watch.Last
}

// handOut passes a completed request to its receiver.
//
//go:noinline
func (x *alone) handOut(r *cosim.Sample, to func(cosim.Sample) error) {
	if x.failed != nil {
		return
	}
	x.meter.Book.Sign(r)
	if x.failed = to(*r); x.failed != nil {
		x.eng.Stop()
	}
}

func (Kind) Build(s *scenario.Scenario, o *experiment.Options) (experiment.Experiment, error) {
	x, err := models(s, o)
	if err != nil {
		return nil, err
	}
	x.expected = requests.Expected(s)
	x.stall = experiment.Watch{Until: s.Measure.Until.Time, Pending: x.host.Expects,
		Moves: func() uint64 { return drivemeter.Moves(x.host, x.drives) },
		Waits: func() string { return drivemeter.Waits(x.host, x.drives) }}
	x.meter = drivemeter.NewMeter(s, x.host, x.flows, x.drives, s.SSD)
	x.timeline = timeline.New(o.Timeline, o.TimelineSlices, x.eng)
	if x.volume == nil {
		x.timeline.ShowDrive(x.flows.List, x.drives[0], x.host)
	} else {
		x.timeline.ShowVolume(x.flows.List, x.volume, x.drives, x.host)
		x.meter.Inside = func() uint64 { return uint64(x.volume.Raid().Inside()) + x.host.Waiting() }
	}
	if s.Measure.Anatomy {
		x.watch = blame.New(x.drives[0])
	}
	x.host.OnSample = func(r *cosim.Sample) {
		x.meter.Sample(r, 0)
		if x.watch != nil {
			x.noteStages(r)
		}
		x.timeline.Local(r)
		if o.Sample != nil {
			x.handOut(r, o.Sample)
		}
		if x.host.Ended()%drivemeter.InterruptEvery == 0 && x.ctx.Err() != nil {
			x.eng.Stop()
		}
	}
	// Work of the drive after the host's last completion is not part of the run, because it would dilute the rates.
	x.host.OnIdle = func(sim.Time) {
		x.idle = true
		x.eng.Stop()
	}
	dev := x.device()
	if x.divided != nil {
		if err := x.divided.Behind(dev); err != nil {
			return nil, errors.Join(err, x.Close())
		}
		dev = x.divided
	}
	if err := x.host.Attach(dev, x.flows.List); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	if x.volume != nil {
		cosim.Rebuild(x.eng, x.volume.Rebuild)
	}
	if err := x.host.Start(); err != nil {
		return nil, errors.Join(x.flows.Located(err), x.Close())
	}
	return x, nil
}

// Meters implements experiment.Experiment.
func (x *alone) Meters() []experiment.Meter { return []experiment.Meter{x.meter} }

// Close implements experiment.Experiment.
func (x *alone) Close() error { return x.flows.Close() }

// Advance implements experiment.Experiment.
func (x *alone) Advance(ctx context.Context, to sim.Time) (experiment.RunState, error) {
	x.ctx = ctx
	x.stall.Attend(ctx, x.eng)
	x.eng.Run(to)
	now := experiment.RunState{At: to, Over: x.idle || x.eng.Pending() == 0, Done: x.host.Ended(),
		Expected: x.expected, Begun: x.host.Issued(), Stalled: x.stall.Stalled()}
	switch {
	case x.failed != nil:
		return now, x.failed
	case x.host.Err() != nil:
		return now, x.flows.Located(x.host.Err())
	}
	if now.Over || ctx.Err() != nil {
		now.At = x.eng.Now()
	}
	if now.Over {
		now.Stuck = now.Begun - now.Done
	}
	if err := drivemeter.Full(x.s, x.drives, &now); err != nil {
		return now, err
	}
	return now, x.vain.Look(x.s, x.drives, &now)
}

// Fill implements experiment.Experiment.
func (x *alone) Fill(_ context.Context, out *experiment.Outcome) (err error) {
	if out.Remarks, err = x.timeline.Close(); err != nil {
		return err
	}
	out.Events = x.eng.Events()
	x.meter.Fill(out)
	if x.volume != nil {
		x.meter.FillEach(out.Result)
		drivemeter.FillRAID(out.Result, x.volume.Raid())
	}
	if x.watch != nil {
		for op := block.Read; op <= block.Write; op++ {
			drivemeter.FillAnatomy(out.Result, op.String(), x.meter.Anatomy(op), x.stages())
		}
	}
	if x.divided != nil {
		err := x.divided.Check()
		out.Result.Check("separate queues are sound", err == nil,
			fmt.Sprintf("%d commands wait for a place in the drive", x.divided.Waiting()))
	}
	return nil
}

// stages returns the names of the stages of the drive's requests.
func (x *alone) stages() []string {
	if x.drives[0].Config().Controller == nil {
		return blame.Names[:blame.Controller]
	}
	return blame.Names[:]
}
