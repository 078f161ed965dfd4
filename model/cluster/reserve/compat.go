package reserve

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Compat selects whether SURGE's faults are reproduced. They are needed only to reproduce the tables of the Replicast
// paper. Each fault has a method below, with its effect and the tables that rest on it. Package cluster has those that
// concern messages and links.
type Compat bool

// wholeNanoseconds: SURGE's clock counts whole nanoseconds, and every duration is truncated to these by integer
// division. All of tables 2 and 3. No duration changes by more than 0.03%, except that of a control message of 100 B,
// which is 1% shorter.
func (c Compat) wholeNanoseconds() bool { return bool(c) }

// skipsLast: Replicast-M's search for a common window leaves out the last r of the bids, so the latest bid is never
// chosen. Replicast-M's columns of tables 2 and 3, by less than 1.3%.
func (c Compat) skipsLast() bool { return bool(c) }

// onlyNeighbours: the search for a common window considers only bids that are adjacent in the order of their left
// edges, and misses windows that require skipping a short bid. Replicast-M's columns: some chunks are given up
// needlessly.
func (c Compat) onlyNeighbours() bool { return bool(c) }

// newestFirst: among bids that begin at the same time, the one that arrived last is first in the order. This decides
// which targets of an idle group are chosen. Replicast-M's and -H's columns; in the paper's build only.
func (c Compat) newestFirst() bool { return bool(c) }

// reusesThePast: a canceled bid that is offered again keeps its left edge even if that has passed, or is too early for
// an acceptance to arrive; the gateway then begins later. Replicast-M's columns: it affects which bids are first in the
// order.
func (c Compat) reusesThePast() bool { return bool(c) }

// takesIdleWhole: a gateway of Replicast-H that chooses the bid of an idle target keeps all of its window, three times
// the time it needs, while the target stays idle. Replicast-H's columns.
func (c Compat) takesIdleWhole() bool { return bool(c) }

// wholeOnly: a gateway takes a window of exactly the accepted width or none, even if a narrower one would fit the
// chunk. Replicast-M's column at 1 MiB, and Replicast-H's if answers were late.
func (c Compat) wholeOnly() bool { return bool(c) }

// beginsUnheard: a gateway of Replicast-H takes a window as offered, even if it begins before the acceptance can have
// been sent. This affects no table, because SURGE's control messages do not queue.
func (c Compat) beginsUnheard() bool { return bool(c) }

// sharesBids: gateway and target share a bid in memory, so the target sees what a gateway of Replicast-H trims before
// the acceptance arrives, even for bids that the gateway will cancel. See Foresee. Replicast-H's columns.
func (c Compat) sharesBids() bool { return bool(c) }

// forgetsReplicas: with unicast delivery of all replicas in one window (SURGE's -transport unicast), the rule that
// widens an accepted window ignores that there are several replicas. No table of the paper.
func (c Compat) forgetsReplicas() bool { return bool(c) }

// losesFractions: each update of a bucket drops the fraction of a bit that has accumulated, so its rate depends on how
// often it is updated. UCH-CCP's columns, where buckets are updated when a frame could be sent, and UCH-AIMD.
func (c Compat) losesFractions() bool { return bool(c) }

// ignoresOptions: AIMD's step and the number of bits between steps are those of a 10 Gb/s link, 9000 B frames and 300 B
// control messages, whatever is configured; all unicast buckets have capacity for a control message of 300 B; and in
// the last build the spacing of dings is that of a full 10 Gb/s. The bucket capacity affects UCH-CCP's columns; the
// rest is UCH-AIMD, which no table of the paper has.
func (c Compat) ignoresOptions() bool { return bool(c) }

// dingsThePast: a ding changes the rate retroactively, from the bucket's last update. UCH-AIMD, as above.
func (c Compat) dingsThePast() bool { return bool(c) }

// discountsTwice: a proxy's estimate of how long a disk queue will be too full subtracts the network's time twice, and
// the estimate is ignored when the window is set; the window may also begin before the gateway can know of it. The
// proxy, which no table of the paper has.
func (c Compat) discountsTwice() bool { return bool(c) }

// SURGE's fixed values where options are ignored.
const (
	surgeLink    = 10 * units.Gbps
	surgeFrame   = 9000 * units.Byte
	surgeControl = 300 * units.Byte
)

// cut truncates a duration as SURGE does.
func (c Compat) cut(t sim.Time) sim.Time {
	if c.wholeNanoseconds() {
		return t - t%units.Nanosecond
	}
	return t
}

// trim sets the windows of chosen offers to those of their picks; see Foresee.
func (o *Offers) trim(picks []Pick) {
	for _, p := range picks {
		for i := range o.list {
			if o.list[i].Server == p.Server {
				o.list[i].Window = p.Window
			}
		}
	}
}

// Foresee sets a tentative bid's window to the one that its gateway intends to use, before the acceptance arrives. In
// SURGE gateway and target share the bid in memory, so Replicast-H's targets see the gateway trim it immediately, even
// if the gateway will cancel it. With Compat the caller calls Foresee at the gateway's choice for each of the Offers,
// for Replicast-H's columns; it is not part of a protocol. It has no effect if there is no such tentative bid.
func (q *Sparse) Foresee(chunk uint64, w Window) {
	if k := q.find(chunk); k >= 0 && q.bids[k].State == Tentative {
		q.bids[k].Window = w
		q.settle(k)
	}
}
