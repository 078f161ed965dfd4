package reserve

import (
	"math"

	"farflash/numeric/units"
)

// Division selects how a receiver divides its link.
type Division uint8

const (
	// DivideEqually gives each flow the same rate.
	DivideEqually Division = iota
	// DivideByRemaining gives a flow a larger share the less it has left to send.
	DivideByRemaining
)

// Share is a receiver of UCH-CCP: it tracks its flows, and divides its link among them whenever their number changes.
type Share struct {
	d        *Durations
	division Division
	flows    []flow
	divided  int // number of flows when the link was last divided
}

// flow is one transfer to a receiver.
type flow struct {
	id            uint64
	total, offset units.Bytes
	mark          units.Bytes // Dinger's: the offset from which the flow may be dinged again
	rate          units.BitRate
}

// Rate is a rate that a receiver assigns to a flow.
type Rate struct {
	Flow uint64
	Rate units.BitRate
}

// NewShare returns a receiver without flows.
func NewShare(d *Durations, division Division) *Share {
	return &Share{d: d, division: division, flows: make([]flow, 0, firstBids)}
}

// Len returns the number of flows.
func (s *Share) Len() int { return len(s.flows) }

// Admit adds a flow of the given size and returns its initial rate: an equal part of the link.
func (s *Share) Admit(id uint64, total units.Bytes) units.BitRate {
	s.flows = append(s.flows, flow{id: id, total: total})
	rate := s.d.Effective / units.BitRate(len(s.flows))
	s.flows[len(s.flows)-1].rate = rate
	return rate
}

// Received records that a flow's bytes below offset have arrived.
func (s *Share) Received(id uint64, offset units.Bytes) { received(s.flows, id, offset) }

// Remove removes a flow that has ended. It reports whether there was one.
func (s *Share) Remove(id uint64) bool { return remove(&s.flows, id) }

// Divide appends to dst the rates that flows must be sent, if their number has changed since the last call. A flow
// whose end is in flight gets none. A flow that has just been admitted gets its rate again, as in SURGE, because the
// first one waits for the disk and this one does not.
func (s *Share) Divide(dst []Rate) []Rate {
	same := len(s.flows) == s.divided
	s.divided = len(s.flows)
	if same || len(s.flows) == 0 {
		return dst
	}
	if s.division == DivideByRemaining {
		return s.divideByRemaining(dst)
	}
	rate := s.d.Effective / units.BitRate(len(s.flows))
	for i := range s.flows {
		f := &s.flows[i]
		inFlight := units.Bytes(muldiv(s.d.Trip, int64(f.rate), int64(units.Second))) / 8
		if f.total-f.offset <= s.d.FrameSize+inFlight {
			continue
		}
		f.rate = rate
		dst = append(dst, Rate{f.id, rate})
	}
	return dst
}

func (s *Share) divideByRemaining(dst []Rate) []Rate {
	sum := 0.0
	for i := range s.flows {
		if rem := s.flows[i].total - s.flows[i].offset; rem > s.d.FrameSize {
			sum += 1 / float64(rem)
		}
	}
	for i := range s.flows {
		f := &s.flows[i]
		rem := f.total - f.offset
		if rem <= s.d.FrameSize {
			continue
		}
		part := 1 / float64(rem) / sum
		f.rate = units.BitRate(math.Floor(float64(s.d.Effective) * part))
		dst = append(dst, Rate{f.id, f.rate})
	}
	return dst
}

// indexOf returns the index of a flow, or -1.
func indexOf(flows []flow, id uint64) int {
	for k := range flows {
		if flows[k].id == id {
			return k
		}
	}
	return -1
}

// received records that a flow's bytes below offset have arrived.
func received(flows []flow, id uint64, offset units.Bytes) {
	if k := indexOf(flows, id); k >= 0 {
		flows[k].offset = offset
	}
}

// remove removes a flow and reports whether there was one.
func remove(flows *[]flow, id uint64) bool {
	k := indexOf(*flows, id)
	if k < 0 {
		return false
	}
	*flows = append((*flows)[:k], (*flows)[k+1:]...)
	return true
}
