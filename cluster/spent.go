package cluster

import (
	"farflash/cluster/reserve"
	"farflash/sim"
)

// Spent is what a target's time went to. Whenever the disk writes, the time is the disk's; what is left of the bound of the disks is in the
// other four, in this order: whatever comes first takes the time.
type Spent struct {
	Disk      sim.Time // it writes
	Receiving sim.Time // data come in
	Reserved  sim.Time // somebody has a reservation, or a flow, and sends nothing just now
	Tentative sim.Time // somebody has a bid and has not answered
	Nothing   sim.Time // nobody wants anything
}

// All is the sum.
func (s *Spent) All() sim.Time { return s.Disk + s.Receiving + s.Reserved + s.Tentative + s.Nothing }

// use is what is known of a target's time so far.
type use struct {
	spent     Spent
	at        sim.Time // until when it is accounted for
	from, to  sim.Time // when its link receives data
	reserved  int32
	tentative int32
}

// account adds the time since the last change to what it went to. The disk is busy until a time.
func (u *use) account(now, disk sim.Time) {
	at := u.at
	if now <= at {
		return
	}
	u.at = now
	if d := min(max(disk, at), now); d > at {
		u.spent.Disk += d - at
		at = d
	}
	if at == now {
		return
	}
	left := now - at
	if got := min(u.to, now) - max(u.from, at); got > 0 {
		u.spent.Receiving += got
		left -= got
	}
	switch {
	case u.reserved > 0:
		u.spent.Reserved += left
	case u.tentative > 0:
		u.spent.Tentative += left
	default:
		u.spent.Nothing += left
	}
}

// changes accounts for a target's time until now, before something changes.
func (c *Cluster) changes(target int32) *use {
	u := &c.used[target]
	u.account(c.eng.Now(), c.targets[target].disk.done)
	return u
}

// receives: a target's link receives data from one time, which is at most a trip away, to another. Frames that are less than that apart are
// taken as one.
func (c *Cluster) receives(node int32, from, to sim.Time) {
	t := node - int32(len(c.gateways))
	if t < 0 {
		return // data that a gateway reads
	}
	u := c.changes(t)
	if u.to <= c.eng.Now() {
		u.from = from
	}
	u.to = max(u.to, to)
}

// claims: a flow to a target begins (1) or has brought all of its data (-1).
func (c *Cluster) claims(target, n int32) {
	u := c.changes(target)
	u.reserved = max(u.reserved+n, 0)
}

// decides: a target's bid has come to a state.
func (c *Cluster) decides(target int32, s reserve.State) {
	u := c.changes(target)
	if s == reserve.Tentative {
		u.tentative++
		return
	}
	u.tentative = max(u.tentative-1, 0)
	if s == reserve.Accepted {
		u.reserved++
	}
}

// Spent is what each target's time until a time went to, up to which the cluster has run.
func (c *Cluster) Spent(at sim.Time) []Spent {
	out := make([]Spent, len(c.used))
	for t := range c.used {
		u := c.used[t]
		u.account(at, c.targets[t].disk.done)
		out[t] = u.spent
	}
	return out
}
