package reserve

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Compat says whether SURGE's faults are inherited. They are needed to reproduce the tables of the Replicast paper
// and for nothing else; each is named by a method below, with what it does and which table rests on it. Package
// cluster has those that are about messages and links.
type Compat bool

// wholeNanoseconds: SURGE's clock is in whole nanoseconds, and every duration is cut to them by integer division.
// All of tables 2 and 3; no duration changes by more than 0.03 %, but for a control message of 100 B, which is 1 %
// shorter.
func (c Compat) wholeNanoseconds() bool { return bool(c) }

// skipsLast: Replicast-M's search for a common window leaves out the last r of the bids, so that the latest bid is
// never taken. Replicast-M's columns of tables 2 and 3, by less than 1.3 %.
func (c Compat) skipsLast() bool { return bool(c) }

// onlyNeighbours: the search for a common window looks only at bids that are neighbours in the order of their left
// edges, and misses a window that needs a short bid left out. Replicast-M's columns: chunks are given up that need
// not be.
func (c Compat) onlyNeighbours() bool { return bool(c) }

// newestFirst: of bids that begin at the same moment, the one that came last is first in the order. Which targets of
// an idle group are taken depends on it. Replicast-M's and -H's columns; in the paper's build only.
func (c Compat) newestFirst() bool { return bool(c) }

// reusesThePast: a canceled bid that is given again keeps a left edge that has passed, or is too early for an
// acceptance to come back; the gateway then begins later. Replicast-M's columns: which bids are first in the order
// depends on it.
func (c Compat) reusesThePast() bool { return bool(c) }

// takesIdleWhole: a gateway of Replicast-H that takes the bid of an idle target keeps all of its window, three times
// what it needs, and the target stands idle. Replicast-H's columns.
func (c Compat) takesIdleWhole() bool { return bool(c) }

// wholeOnly: a gateway takes a window of exactly the accepted width or none, where a narrower one would hold the
// chunk. Replicast-M's column at 1 MiB, and Replicast-H's if answers were late.
func (c Compat) wholeOnly() bool { return bool(c) }

// beginsUnheard: a gateway of Replicast-H takes a window as it was given, also when it begins before the acceptance
// can have been sent. It makes no difference to any table, because in SURGE control messages do not wait.
func (c Compat) beginsUnheard() bool { return bool(c) }

// sharesBids: gateway and target share a bid in memory, so that what a gateway of Replicast-H trims is seen by the
// target before the acceptance arrives, for bids that it will cancel as well. See Foresee. Replicast-H's columns.
func (c Compat) sharesBids() bool { return bool(c) }

// forgetsReplicas: with unicast delivery of all replicas in one window (SURGE's -transport unicast) the rule that
// widens an accepted window forgets that there are several replicas. No table of the paper.
func (c Compat) forgetsReplicas() bool { return bool(c) }

// losesFractions: a bucket forgets, each time that it is looked at, the part of a bit that has come in, so its rate
// depends on how often that is. UCH-CCP's columns, where a bucket is looked at when a frame could be sent, and UCH-
// AIMD.
func (c Compat) losesFractions() bool { return bool(c) }

// ignoresOptions: AIMD's step and the bits between two steps are those of a 10 Gb/s link, 9000 B frames and 300 B
// control messages, whatever is configured; all unicast buckets have room for a control message of 300 B; and in the
// last build the spacing of dings is that of a full 10 Gb/s. The room is in UCH-CCP's columns; the rest is UCH-AIMD,
// which no table of the paper has.
func (c Compat) ignoresOptions() bool { return bool(c) }

// dingsThePast: a ding changes the rate at which the bucket has filled since it was last looked at. UCH-AIMD, as
// above.
func (c Compat) dingsThePast() bool { return bool(c) }

// discountsTwice: a proxy that estimates how long a disk will be too full takes the network's time off twice, and
// takes no account of the result when it sets the window; the window may also begin before the gateway can know of
// it. The proxy, which no table of the paper has.
func (c Compat) discountsTwice() bool { return bool(c) }

// SURGE's values where options are ignored.
const (
	surgeLink    = 10 * units.Gbps
	surgeFrame   = 9000 * units.Byte
	surgeControl = 300 * units.Byte
)

// cut is the duration as SURGE has it.
func (c Compat) cut(t sim.Time) sim.Time {
	if c.wholeNanoseconds() {
		return t - t%units.Nanosecond
	}
	return t
}

// trim gives offers the windows that are taken of them; see Foresee.
func (o *Offers) trim(picks []Pick) {
	for _, p := range picks {
		for i := range o.list {
			if o.list[i].Server == p.Server {
				o.list[i].Window = p.Window
			}
		}
	}
}

// Foresee sets a tentative bid's window to what its gateway has in mind before the acceptance arrives. In SURGE
// gateway and target share the bid in memory, so Replicast-H's targets see what the gateway trims at the moment that
// it does, for bids that it will cancel as well. With Compat the caller calls it at the gateway's choice for each of
// the Offers, for Replicast-H's columns; it is no part of a protocol. Nothing happens when there is no such tentative
// bid.
func (q *Sparse) Foresee(chunk uint64, w Window) {
	if k := q.find(chunk); k >= 0 && q.bids[k].State == Tentative {
		q.bids[k].Window = w
		q.settle(k)
	}
}
