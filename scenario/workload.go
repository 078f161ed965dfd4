package scenario

import (
	"errors"
	"fmt"

	"farflash/shape"
	"farflash/units"
	"farflash/workload/synth"
)

// CopyName is what the streams of an initiator's own copy of a workload are told apart by; the first
// has the workload's own.
func CopyName(copy int) string {
	if copy == 0 {
		return ""
	}
	return fmt.Sprintf("/initiator[%d]", copy)
}

// SyntheticConfig is a flow's generator with what the scenario around it decides: the
// trial's seed, whether it is a closed loop, and the namespace's size for requests
// that may go anywhere.
func (s *Scenario) SyntheticConfig(i, copy int, seed uint64, capacity units.Bytes) synth.Config {
	l := &s.Workload[i]
	c := *l.Synthetic
	c.Seed, c.Name, c.QueueDepth = seed, fmt.Sprintf("workload[%d]", i)+CopyName(copy), l.Closed
	anywhere := func(f *synth.Flow) *synth.Flow {
		if f == nil {
			return nil
		}
		x := *f
		if x.Addresses.Space == 0 {
			x.Addresses.Space = capacity - x.Addresses.Start
		}
		return &x
	}
	c.Reads, c.Writes = anywhere(c.Reads), anywhere(c.Writes)
	return c
}

// Located are an error's mistakes, each where it was written. Those that have a place already keep it.
func (s *Scenario) Located(err error) error {
	var list shape.Errors
	var one *shape.Error
	switch {
	case err == nil || errors.As(err, &list):
		return err
	case errors.As(err, &one):
		return shape.Errors{one}
	}
	d := shape.Decoder{Set: s.set}
	d.Wrong("", err)
	return d.Errs.InOrder()
}

// LoadName is what a flow is called in messages.
func (s *Scenario) LoadName(i int) string {
	if n := s.Workload[i].Name; n != "" {
		return n
	}
	return fmt.Sprintf("workload[%d]", i)
}

// LoadError is an error about a flow, with where it stands.
func (s *Scenario) LoadError(i int, err error) error {
	return &shape.Error{At: s.Where(fmt.Sprintf("workload[%d]", i)), Msg: fmt.Sprintf("%s: %v", s.LoadName(i), err)}
}
