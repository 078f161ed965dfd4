package drive

import (
	"errors"
	"fmt"
	"io"

	"farflash/experiment"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/workload"
)

// Requests calls f for every request of the workload in order of time, as it would be issued to drives of the
// scenario's kind. Closed loops, and items that start when others have ended, have no times of their own and are
// rejected. Volumes of several namespaces are renumbered, in order of appearance.
func Requests(s *scenario.Scenario, seed uint64, f func(*workload.Record) error) (notes []string, err error) {
	y, err := models(s, &experiment.Options{Seed: seed})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, y.Close()) }()
	var sources []workload.Source
	several := false // namespaces
	for _, x := range y.flows.List {
		if x.Outstanding > 0 {
			return nil, fmt.Errorf(
				"%s is a closed loop: its arrivals depend on the drive; record them with measure.requests "+
					"instead", x.Name)
		}
		if x.Wave > 0 {
			return nil, fmt.Errorf(
				"%s starts when others have ended: its arrivals depend on the drive; record them with "+
					"measure.requests instead", x.Name)
		}
		src := x.Source
		if x.Start > 0 {
			src = later{src, x.Start}
		}
		if x.Until > 0 {
			src = workload.Limit(src, 0, x.Until)
		}
		sources = append(sources, src)
		several = several || x.Namespace != y.flows.List[0].Namespace
	}
	if several {
		numbers := map[[2]uint32]uint32{}
		for i, src := range sources {
			sources[i] = numbered{src, uint32(y.flows.List[i].Namespace), numbers}
		}
	}
	all := workload.Merge(sources...)
	var rec workload.Record
	for {
		if err := all.Next(&rec); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return nil, err
		}
		if err := f(&rec); err != nil {
			return nil, err
		}
	}
	for _, p := range y.flows.Replays {
		notes = append(notes, p.Notes...)
	}
	return notes, nil
}

// later is a source whose clock starts at a given time.
type later struct {
	workload.Source
	by units.Duration
}

// Next implements workload.Source.
func (l later) Next(r *workload.Record) error {
	err := l.Source.Next(r)
	r.Time += l.by
	return err
}

// numbered is a source whose volumes are distinguished by namespace, because other namespaces may use the same volume
// numbers.
type numbered struct {
	workload.Source
	namespace uint32
	numbers   map[[2]uint32]uint32 // by namespace and volume there, of all sources
}

// Next implements workload.Source.
func (n numbered) Next(r *workload.Record) error {
	if err := n.Source.Next(r); err != nil {
		return err
	}
	of := [2]uint32{n.namespace, r.Volume}
	number, ok := n.numbers[of]
	if !ok {
		number = uint32(len(n.numbers))
		n.numbers[of] = number
	}
	r.Volume = number
	return nil
}
