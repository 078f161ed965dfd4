package reserve

import "farflash/sim"

// Sequence chooses for a gateway that sends to one replica after another: the first offer and those that follow it
// without much of a gap, or else the offer of an idle server. The gateway asks again for the missing replicas, from the
// end of the windows that it has.
//
// The state is one chunk's: Start begins the chunk, Choose chooses among the offers, More returns when to ask again.
type Sequence struct {
	d        *Durations
	previous sim.Time // where the last request's windows end, or never
}

// never is the value of an unset time.
const never = -1

// Start begins a chunk. Its first request asks for windows from now on.
func (s *Sequence) Start() { s.previous = never }

// reach returns the largest gap between consecutive windows in a sequence.
func (s *Sequence) reach() sim.Time {
	if s.d.Rules == RulesHead {
		return s.d.Control + s.d.Trip
	}
	return max(3*s.d.Control, s.d.Frame)
}

// Choose appends to dst the servers that the gateway accepts, at most missing, in the order of their windows, which do
// not overlap. It appends none if no offer is usable any more. The caller must cancel all other offers.
//
// With Compat it changes the offers' windows where SURGE does; see Foresee.
func (s *Sequence) Choose(now sim.Time, o *Offers, missing int, dst []Pick) []Pick {
	soonest := now + s.d.Control
	if s.d.Compat.beginsUnheard() {
		soonest = 0
	}
	for i := range o.list {
		o.list[i].taken = false
	}
	first, w := -1, Window{}
	for i := range o.list {
		if fit, ok := s.fit(&o.list[i], soonest); ok {
			first, w = i, fit
			break
		}
	}
	if first < 0 || missing <= 0 {
		return dst
	}
	if s.d.Compat.sharesBids() && s.d.Rules == RulesPaper {
		o.list[first].Window = w
	}
	o.list[first].taken = true
	begin := len(dst)
	dst = append(dst, Pick{o.list[first].Server, w})
	for n := 1; n < missing; n++ {
		k, next := s.adjacent(o, w.Right)
		if k < 0 {
			break
		}
		w = next
		o.list[k].taken = true
		dst = append(dst, Pick{o.list[k].Server, w})
	}
	if len(dst) == begin+1 {
		dst[begin] = s.idle(o, first, soonest, dst[begin])
	}
	if s.d.Compat.sharesBids() {
		o.trim(dst[begin:])
	}
	return dst
}

// fit returns the part of an offer that a gateway would take if it began at a time or later, and whether it suffices.
func (s *Sequence) fit(f *Offer, from sim.Time) (Window, bool) {
	left := max(f.Window.Left, from)
	w := Window{left, min(left+s.d.Accepted, f.Window.Right)}
	return w, !f.Rejected && !f.taken && w.Width() >= s.d.Needed
}

// adjacent returns the first offer that can follow the end of a window, and the part of it that the gateway takes.
func (s *Sequence) adjacent(o *Offers, end sim.Time) (int, Window) {
	for k := range o.list {
		f := &o.list[k]
		if f.Rejected || f.taken {
			continue
		}
		if f.Window.Left-end > s.reach() {
			break
		}
		if w, ok := s.fit(f, end); ok {
			return k, w
		}
	}
	return -1, Window{}
}

// idle looks for a server that has widened its bid, to use instead of the first one: it is idle, and its bid begins not
// much later.
func (s *Sequence) idle(o *Offers, first int, soonest sim.Time, pick Pick) Pick {
	if s.d.Compat.takesIdleWhole() && s.d.Rules == RulesPaper {
		return s.idleWhole(o, pick)
	}
	f := &o.list[first]
	within := s.d.Frame
	if s.d.Rules == RulesHead {
		within = 2 * s.reach()
	}
	for k := first + 1; k < len(o.list); k++ {
		g := &o.list[k]
		if g.Window.Width() <= f.Window.Width() || g.Window.Left-f.Window.Left >= within {
			continue
		}
		if w, ok := s.fit(g, soonest); ok {
			return Pick{g.Server, w}
		}
	}
	return pick
}

// idleWhole is idle as in SURGE's paper build: it considers only the second and the third offer, compares them with the
// remainder of the first after trimming, and takes the window as it is.
func (s *Sequence) idleWhole(o *Offers, pick Pick) Pick {
	if len(o.list) <= 2 {
		return pick
	}
	wide := pick.Window.Width() + s.d.Frame
	for _, g := range o.list[1:3] {
		if g.Window.Left-pick.Window.Left < s.d.Frame && g.Window.Width() > wide {
			pick = Pick{g.Server, g.Window}
		}
	}
	return pick
}

// More returns when to send the next request for the missing replicas, and from when on windows are wanted. picks is
// the result of the last Choose; the gateway sends their acceptance now.
func (s *Sequence) More(now sim.Time, picks []Pick) (at, notBefore sim.Time) {
	if len(picks) == 0 {
		at = s.settled(now)
		return at, at
	}
	head, last := picks[0].Window, picks[len(picks)-1].Window
	previous := s.previous
	s.previous = last.Right
	switch {
	case s.d.Rules == RulesHead:
		return max(last.Left, s.settled(now)), last.Right
	case previous != never && head.Left-previous > s.d.Control && previous-now > s.d.Control+s.d.Trip:
		at = previous // there is a hole before these windows
	case len(picks) > 1 && picks[1].Window.Left-head.Right > s.d.Control:
		at = head.Right // or between them
	default:
		at = max(last.Left, last.Right-2*s.d.Control)
	}
	return at, last.Right
}

// settled returns when all servers will have received an acceptance that is sent now.
func (s *Sequence) settled(now sim.Time) sim.Time {
	return s.d.Compat.cut(now + s.d.Control + s.d.Trip + s.d.Control/2)
}
