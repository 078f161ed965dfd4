package scenario

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"farflash/block"
	"farflash/units"
	"farflash/workload"
	"farflash/workload/synth"
)

// Verify opens what the scenario names and reads the first request of each trace,
// which is as far as a scenario can be checked without running it.
func (s *Scenario) Verify() error {
	for i := range s.Workload {
		t := s.Workload[i].Trace
		if t == nil {
			continue
		}
		p, err := s.openTrace(i, 1)
		if err == nil {
			var rec workload.Record
			if err = p.Next(&rec); errors.Is(err, io.EOF) {
				err = fmt.Errorf("%s: no request to replay", t.File)
			}
			err = errors.Join(err, p.Close())
		}
		if err != nil {
			return s.at(i, err)
		}
	}
	return nil
}

// Requests calls f for every request of the workload in order of time, as it would
// be issued to drives of the scenario's kind. Closed loops have no times of their
// own and are refused.
func (s *Scenario) Requests(seed uint64, f func(*workload.Record) error) (notes []string, err error) {
	y, err := s.build(seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, y.close()) }()
	var sources []workload.Source
	for _, x := range y.flows {
		if x.Outstanding > 0 {
			return nil, fmt.Errorf("%s is a closed loop: when its requests come depends on the drive; record them with measure.requests instead", x.Name)
		}
		src := x.Source
		if x.Start > 0 {
			src = later{src, x.Start}
		}
		if x.Until > 0 {
			src = workload.Limit(src, 0, x.Until)
		}
		sources = append(sources, src)
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
	for _, p := range y.replays {
		notes = append(notes, p.notes...)
	}
	return notes, nil
}

// later is a source whose clock begins at a time.
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

// FromFit is the text of a scenario, without a drive, of a workload that was fitted
// to a trace of that name.
func FromFit(name string, c synth.Config, notes []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# fitted to %s\n", name)
	for _, n := range notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	l := Load{Queue: Queue{Class: block.Medium, Weight: 1}, Closed: c.QueueDepth, Synthetic: &c}
	base := filepath.Base(name)
	s := &Scenario{Name: strings.TrimSuffix(base, filepath.Ext(base)), Workload: []Load{l}}
	b.WriteString(s.Resolved())
	return b.String()
}
