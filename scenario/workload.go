package scenario

import (
	"errors"
	"fmt"

	"farflash/internal/spelling"
	"farflash/numeric/units"
	"farflash/scenario/shape"
	"farflash/workload/synth"
)

// CopyName distinguishes the random streams of initiators' copies of a workload.
func CopyName(copy int) string {
	if copy == 0 {
		return ""
	}
	return fmt.Sprintf("/initiator[%d]", copy)
}

// SyntheticConfig returns a flow's generator with the surrounding scenario's values. copy is the initiator's number if
// each has its own workload, number is the index among the item's equal flows.
func (s *Scenario) SyntheticConfig(i, copy, number int, seed uint64, capacity units.Bytes) synth.Config {
	l := &s.Workload[i]
	c := *l.Synthetic
	c.Seed, c.Name, c.QueueDepth = seed, fmt.Sprintf("workload[%d]", i)+CopyName(copy), l.Closed
	stride := units.Bytes(0)
	if number > 0 {
		c.Name += fmt.Sprintf("/copy[%d]", number)
		stride = units.Bytes(number) * l.Copies.Stride
	}
	anywhere := func(f *synth.Flow) *synth.Flow {
		if f == nil {
			return nil
		}
		x := *f
		x.Addresses.Start += stride
		if x.Addresses.Space == 0 {
			x.Addresses.Space = capacity - x.Addresses.Start
		}
		return &x
	}
	c.Reads, c.Writes = anywhere(c.Reads), anywhere(c.Writes)
	return c
}

// Count returns the number of equal flows of the item.
func (l *Load) Count() int {
	if l.Copies == nil {
		return 1
	}
	return l.Copies.Count
}

// Wave returns the number of items that must end before an item starts.
func (s *Scenario) Wave(i int) int {
	n := 0
	for s.Workload[i].After != "" {
		j := s.named(s.Workload[i].After, i)
		if j < 0 {
			return n // check rejects it
		}
		i, n = j, n+1
	}
	return n
}

// named returns the number of an item before another, by name; -1 if there is none.
func (s *Scenario) named(name string, before int) int {
	for j := range before {
		if s.LoadName(j) == name {
			return j
		}
	}
	return -1
}

// checkOrder validates an item's copies, pauses, flushes and dependency.
func (s *Scenario) checkOrder(i int, fail func(key, format string, args ...any)) {
	l := &s.Workload[i]
	if c := l.Copies; c != nil {
		switch {
		case c.Count < 1 || c.Count > maxCopies:
			fail("copies.count", "%d is not possible; use 1 to %d", c.Count, maxCopies)
		case c.Count > 1 && l.Synthetic == nil:
			fail("copies", "only synthetic requests can be copied; make each an item of the list")
		case c.Stride < 0 || c.Stride%units.Sector != 0 || c.Stride > units.PiB/units.Bytes(c.Count):
			fail("copies.stride", "%v is not possible; use a multiple of 512B, or 0B for the same addresses", c.Stride)
		}
	}
	if t := l.Think; t != nil {
		switch {
		case l.Closed == 0:
			fail("think", "an open loop never pauses; add closed, or leave it out")
		case t.Time <= 0:
			fail("think.time", "%v is not possible; use more than 0s", t.Time)
		case t.Every < 1 || t.Every > 1<<30:
			fail("think.every", "%d is not possible; use 1 or more", t.Every)
		}
	}
	if f := l.Flush; f != nil && f.Every < 1 {
		fail("flush.every", "%d is not possible; use 1 or more", f.Every)
	}
	if l.After != "" && s.named(l.After, i) < 0 {
		var names []string
		for j := range i {
			names = append(names, s.LoadName(j))
		}
		switch near := spelling.Nearest(l.After, names); {
		case near != "":
			fail("after", "no earlier item is named %q; did you mean %q?", l.After, near)
		case i == 0:
			fail("after", "the first item has no earlier item to follow; leave it out")
		default:
			fail("after", "no earlier item is named %q; there are %s", l.After, spelling.OrList(names))
		}
	}
	if j := s.named(l.After, i); l.After != "" && j >= 0 && s.Workload[j].Fio != nil {
		fail("after", "%q is a job file; put this item before it, or write its jobs with stonewall", l.After)
	}
	if l.After != "" && len(s.Targets) > 0 && s.Coupling.Mode != Coupled {
		fail("after", "drives and network in turns do not see when requests complete; use coupling.mode: coupled")
	}
}

// Located returns an error's mistakes, each with its position in the file.
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

// LoadName returns a flow's name in messages.
func (s *Scenario) LoadName(i int) string {
	if n := s.Workload[i].Name; n != "" {
		return n
	}
	return fmt.Sprintf("workload[%d]", i)
}

// LoadError returns an error about a flow, with its position.
func (s *Scenario) LoadError(i int, err error) error {
	return &shape.Error{At: s.Where(fmt.Sprintf("workload[%d]", i)), Msg: fmt.Sprintf("%s: %v", s.LoadName(i), err)}
}
