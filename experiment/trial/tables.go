package trial

import (
	"errors"
	"os"

	"farflash/experiment"
	"farflash/model/cosim"
	"farflash/model/ssd/blame"
	"farflash/result"
	"farflash/result/columnar"
	"farflash/scenario"
	"farflash/sim"
)

// tables are a run's Parquet files, which are written during the run.
type tables struct {
	ends []func() error // functions that close them, in order
}

// open creates the requested files and connects them to the run.
func (t *tables) open(s *scenario.Scenario, d *result.Directory, o *experiment.Options) error {
	m := &s.Measure
	switch {
	case m.Requests && s.ObjectCluster != nil:
		file, err := d.Open(result.ChunksFile)
		if err != nil {
			return err
		}
		w := columnar.NewChunkWriter(file)
		t.end(w.Close, file)
		o.Chunk = func(x experiment.Chunk) error {
			return w.Add(columnar.Chunk{ID: int64(x.ID), Op: x.Op, Gateway: x.Gateway, Target: x.Target,
				Size: int64(x.Size), Begun: x.Begun, Done: x.Done})
		}
	case m.Requests:
		file, err := d.Open(result.RequestsFile)
		if err != nil {
			return err
		}
		w := columnar.NewRequestWriter(file)
		t.end(w.Close, file)
		tenants, _, _ := s.Tenants()
		o.Sample = func(x cosim.Sample) error {
			q := requestOf(&x)
			q.Tenant = tenants[x.Tenant]
			return w.Add(q)
		}
	}
	if m.Flows {
		file, err := d.Open(result.FlowsFile)
		if err != nil {
			return err
		}
		w := columnar.NewFlowWriter(file)
		t.end(w.Close, file)
		o.Flow = func(x experiment.Flow) error {
			f := columnar.Flow{ID: x.ID, Group: x.Group, Src: x.Src, Dst: x.Dst, SrcPort: x.Port, Size: int64(x.Size),
				Start: x.Start, FCT: x.FCT, Ideal: x.Ideal}
			if x.FCT == sim.Forever {
				f.FCT = columnar.Absent
			}
			return w.Add(f)
		}
	}
	if m.Pauses {
		file, err := d.Open(result.PausesFile)
		if err != nil {
			return err
		}
		w := columnar.NewPauseWriter(file)
		t.end(w.Close, file)
		o.Pause = func(x experiment.Pause) error {
			return w.Add(columnar.Pause{Time: x.Time, Node: x.Node, Switch: x.Switch, Port: int32(x.Port),
				Class: int32(x.Class), Resume: x.Resume})
		}
	}
	if m.Timeline {
		file, err := d.Open(result.TimelineFile)
		if err != nil {
			return err
		}
		t.end(func() error { return nil }, file)
		o.Timeline = file
	}
	return nil
}

// requestOf converts a completed request to a row.
func requestOf(x *cosim.Sample) columnar.Request {
	q := columnar.Request{
		ID: int64(x.ID), Workload: x.Workload, Volume: int64(x.Volume), Initiator: x.Job, Op: x.Op.String(),
		Offset: x.Offset, Size: x.Size, Arrival: x.Arrival,
		StorageArrival: x.Submitted, StorageDeparture: x.Finished, NetworkArrival: columnar.Absent,
		NetworkDeparture: columnar.Absent, Completion: x.Finished,
	}
	for k := range q.Stage {
		q.Stage[k] = columnar.Absent
	}
	q.BlockedByStream = -1
	for k := range q.Local {
		q.Local[k] = columnar.Absent
	}
	if x.Stages != nil {
		copy(q.Local[:], x.Stages[:])
		if by := x.Blame.By; by < blame.Stages {
			q.BlockedBy, q.BlockedByStream = blame.Names[by], int32(x.Blame.Stream)
		}
	}
	t := x.Trip
	if t == nil {
		return q
	}
	q.Initiator, q.Target, q.Drive = t.Initiator, t.Target, t.Drive
	q.StorageArrival, q.StorageDeparture = t.DriveIn, t.DriveOut
	if t.NetOut > 0 { // a flush or trim has no data on the network
		q.NetworkArrival, q.NetworkDeparture = t.NetIn, t.NetOut
	}
	copy(q.Stage[:], t.Stage[:])
	return q
}

func (t *tables) end(written func() error, file *os.File) {
	t.ends = append(t.ends, func() error { return errors.Join(written(), file.Close()) })
}

// close writes the remaining rows.
func (t *tables) close() error {
	var err error
	for _, end := range t.ends {
		err = errors.Join(err, end())
	}
	return err
}
