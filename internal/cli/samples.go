package cli

import (
	"errors"
	"os"

	"farflash/cosim"
	"farflash/result"
	"farflash/result/columnar"
	"farflash/scenario"
	"farflash/sim"
)

// samples are a run's Parquet files, which grow while it goes.
type samples struct {
	ends []func() error // what closes them, in order
}

// open begins the files that are wanted and has the run fill them.
func (t *samples) open(m scenario.Measure, d *result.Directory, o *scenario.Options) error {
	if m.Requests {
		file, err := d.Open(result.RequestsFile)
		if err != nil {
			return err
		}
		w := columnar.NewRequestWriter(file)
		t.end(w.Close, file)
		o.Sample = func(x cosim.Sample) error {
			return w.Add(columnar.Request{
				ID: int64(x.ID), Initiator: int32(x.Flow), Op: x.Op.String(), Offset: x.Offset, Size: x.Size, Arrival: x.Arrival,
				StorageArrival: x.Submitted, StorageDeparture: x.Finished, NetworkArrival: columnar.Absent, NetworkDeparture: columnar.Absent, Completion: x.Finished,
			})
		}
	}
	if m.Flows {
		file, err := d.Open(result.FlowsFile)
		if err != nil {
			return err
		}
		w := columnar.NewFlowWriter(file)
		t.end(w.Close, file)
		o.Flow = func(x scenario.Flow) error {
			f := columnar.Flow{ID: x.ID, Src: x.Src, Dst: x.Dst, SrcPort: x.Port, Size: int64(x.Size), Start: x.Start, FCT: x.FCT, Ideal: x.Ideal}
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
		o.Pause = func(x scenario.Pause) error {
			return w.Add(columnar.Pause{Time: x.Time, Node: x.Node, Switch: x.Switch, Port: int32(x.Port), Class: int32(x.Class), Resume: x.Resume})
		}
	}
	return nil
}

func (t *samples) end(written func() error, file *os.File) {
	t.ends = append(t.ends, func() error { return errors.Join(written(), file.Close()) })
}

// close writes what is left of the files.
func (t *samples) close() error {
	var err error
	for _, end := range t.ends {
		err = errors.Join(err, end())
	}
	return err
}
