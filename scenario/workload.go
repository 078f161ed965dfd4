package scenario

import (
	"errors"
	"fmt"
	"strconv"

	"farflash/internal/spelling"
	"farflash/numeric/units"
	"farflash/scenario/shape"
	"farflash/workload/synth"
)

// Bound is a host by its number, or any.
type Bound int // 0: any; otherwise the number plus 1

// Number returns the number of the host; bound is false for any.
func (b Bound) Number() (n int, bound bool) { return int(b) - 1, b > 0 }

// Wanted describes the accepted text.
func (Bound) Wanted() string { return "any or a whole number" }

func (b Bound) String() string {
	if n, bound := b.Number(); bound {
		return strconv.Itoa(n)
	}
	return "any"
}

func (b Bound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

func (b *Bound) UnmarshalText(text []byte) error {
	if string(text) == "any" {
		*b = 0
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil {
		return &units.TextError{Text: string(text), Is: "is no host", Use: b.Wanted()}
	}
	*b = Bound(n + 1)
	return nil
}

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

// checkBound validates an item's initiator.
func (s *Scenario) checkBound(i int, fail func(key, format string, args ...any)) {
	n, bound := s.Workload[i].Initiator.Number()
	switch {
	case !bound:
	case len(s.Targets) == 0:
		fail("initiator", "a drive without a network has one host; leave it out, or add targets")
	case s.Route.Initiator == InitiatorEach:
		fail("initiator", "each initiator runs all items (route.initiator: each); leave it out, or use another route")
	case n >= max(s.Initiators, 1):
		fail("initiator", "there is no initiator %d; there are 0 to %d", n, max(s.Initiators, 1)-1)
	}
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
