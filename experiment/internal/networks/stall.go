package networks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"farflash/experiment"
	"farflash/internal/spelling"
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/sim"
)

// watchOver installs stall detection on a network without drives.
func (y *Network) watchOver() {
	y.watch = experiment.Watch{Moves: y.Moves, Waits: y.Waits, Patience: y.Patience, Until: y.s.Measure.Until.Time,
		Pending: func() bool { return y.comes() || y.Mends(y.driver.now()) }}
}

// Moves is a progress counter: messages posted and completed, and payload received.
func (y *Network) Moves() uint64 {
	c := &y.Net.Counters
	m := c.Posted + c.Completed + c.Received
	if m != y.moved {
		y.moved, y.then = m, *c
	}
	return m
}

// Mends reports whether a link failure or repair is still scheduled.
func (y *Network) Mends(now sim.Time) bool {
	for _, f := range y.s.Fabric.Failures {
		if f.At > now || f.Until > now {
			return true
		}
	}
	return false
}

// rounds is the number of the longest waits (timer, packet time, propagation) without progress that constitute a stall.
const rounds = 64

// Patience is the longest time without progress that is not a stall: rounds of the longest timer, packet time at the
// slowest link or least rate, or propagation, and at least twice the time to drain the longest queue.
func (y *Network) Patience() sim.Time {
	x := y.s.Fabric
	longest := max(units.Millisecond, x.Recovery.Timeout.Time, x.Recovery.ShortTimeout, x.Watchdog.After)
	packet := float64(8 * (x.Payload + x.Header))
	slowest := float64(x.CongestionControl.MinRate)
	queued := sim.Time(0)
	for i := range y.Net.Ports() {
		p := y.Net.Port(int32(i))
		if rate := float64(p.Rate); slowest == 0 || rate < slowest {
			slowest = rate
		}
		queued = max(queued, p.Rate.TimeFor(p.Queue))
	}
	for _, l := range y.Graph.Links {
		longest = max(longest, 16*l.Delay)
	}
	if slowest > 0 {
		longest = max(longest, sim.Time(min(packet/slowest*1e12, 1e15)))
	}
	return max(rounds*longest, 2*queued)
}

// left describes the outstanding messages, and lists the end points without a path to each other.
func (y *Network) left() (text string, apart []int32) {
	const most = 3
	var left []fabric.Message
	for i := range y.Net.Messages() {
		if m := &y.Net.Messages()[i]; y.Net.Known(int32(i)) && m.Posted != sim.Forever && m.Acked == sim.Forever {
			left = append(left, *m)
		}
	}
	// Their numbers depend on the division of the network.
	slices.SortFunc(left, func(a, b fabric.Message) int {
		return cmp.Or(cmp.Compare(a.Posted, b.Posted), cmp.Compare(a.Src, b.Src), cmp.Compare(a.Dst, b.Dst),
			cmp.Compare(a.Size, b.Size))
	})
	var list []string
	for i, m := range left {
		if i < most {
			list = append(list, fmt.Sprintf("%v from %s to %s since %v", m.Size, y.Net.NodeName(m.Src),
				y.Net.NodeName(m.Dst), m.Posted))
		}
		if !y.Net.Linked(m.Src, m.Dst) {
			apart = append(apart, m.Src, m.Dst)
		}
	}
	if len(left) > most {
		list = append(list, "...")
	}
	if len(left) > 0 {
		text = fmt.Sprintf("%s did not end (%s)", spelling.Plural(len(left), "message"), strings.Join(list, "; "))
	}
	return text, apart
}

// Waits describes the outstanding messages and the state of the network; "" if there are none.
func (y *Network) Waits() string {
	text, apart := y.left()
	if text == "" {
		return ""
	}
	if text += y.vain(); len(apart) > 0 {
		text += "; " + y.Severed(apart)
	}
	port, longest := int32(-1), units.Bytes(0)
	for i := range int32(y.Net.Ports()) {
		if q := y.Net.Port(i).Queue; q > longest {
			port, longest = i, q
		}
	}
	if port >= 0 {
		text += fmt.Sprintf("; the longest queue is that of %s, %v", y.Net.PortName(port), longest)
	}
	return text
}

// vain lists retransmissions, trims, timeouts, pauses and drops since the last progress.
func (y *Network) vain() (text string) {
	c, was := &y.Net.Counters, &y.then
	for _, k := range []struct {
		n    uint64
		what string
	}{
		{c.Retransmits - was.Retransmits, "packets were retransmitted"},
		{c.Trimmed - was.Trimmed, "packets were trimmed at a full queue (fabric.trimming.queue)"},
		{c.Timeouts - was.Timeouts, "timers expired"}, {c.Paused - was.Paused, "pauses started"},
	} {
		if k.n > 0 {
			text += fmt.Sprintf("; %d %s", k.n, k.what)
		}
	}
	for reason, n := range c.Drops {
		if n -= was.Drops[reason]; n > 0 {
			text += fmt.Sprintf("; %d packets were lost (%v)", n, fabric.DropReason(reason))
		}
	}
	if n := y.Net.PausedNow(); n > 0 {
		text += fmt.Sprintf("; %d classes of ports are paused", n)
	}
	return text
}

// endless fails the run of a network if flows cannot complete: their hosts are unreachable, or their senders gave up.
func (x *alone) endless(r *result.Result) {
	text, apart := x.left()
	switch {
	case len(apart) > 0 && !x.Mends(x.driver.now()) && x.s.Measure.Until.Time == 0:
		r.Check("every flow ends", false, x.Severed(apart)+": "+text)
	case x.Net.Endless().Broken > 0:
		r.Check("every flow ends", false, x.GaveUp()+": "+text)
	}
}

// GaveUp describes the queue pairs that gave up; "" if there are none.
func (y *Network) GaveUp() string {
	n := int(y.Net.Counters.Broken)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s gave up after %d retransmissions in a row (fabric.recovery.retries)",
		spelling.Plural(n, "queue pair"), y.s.Fabric.Recovery.Retries)
}

// Severed names the hosts that have lost every path, and the links that stay down.
func (y *Network) Severed(hosts []int32) string {
	ends := map[int32]bool{} // of links that stay down
	links := ""
	for _, f := range y.s.Fabric.Failures {
		l, err := scenario.FindLink(y.Graph, f.A, f.B)
		if err != nil || f.Until > f.At {
			continue
		}
		x := &y.Graph.Links[l]
		ends[x.A], ends[x.B] = true, true
		links += fmt.Sprintf("; the link between %s and %s is down for good since %v", y.Net.NodeName(x.A),
			y.Net.NodeName(x.B), f.At)
	}
	var names []string
	for _, h := range hosts {
		alone := ends[h] // if two hosts have no path to each other, only one may be at fault
		for _, other := range y.Hosts {
			alone = alone && (other == h || !y.Net.Linked(h, other))
		}
		if name := y.Net.NodeName(h); alone && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "they have no way to each other" + links
	}
	return strings.Join(names, ", ") + " cannot be reached" + links
}
