package cluster

import "farflash/sim"

// Frames and messages are lost, by link.loss or because a target has failed. There is no acknowledgement of a frame:
// a chunk is acknowledged as a whole, and one that is not done in time is put or got again (the Replicast paper,
// section III-G). What in time means a gateway learns from what its chunks take, as TCP does from round trips (RFC
// 6298). With a protocol whose gateways wait for targets to have room before they send, it learns both apart: the
// wait grows with what is outstanding. Such targets have said how long what they have will take, so of what is sent a
// gateway learns by how much that is wrong, which is little, and what is lost is soon known to be.

// maxAttempts is after how many attempts a chunk has failed.
const maxAttempts = 16

// limit is how long an attempt may take, or how late it may be once its data are sent; each further one twice as long.
func (c *Cluster) limit(node int32, t *task) sim.Time {
	k, least := &c.fix.clock, 2*c.Floor()
	if int(node) < len(c.gateways) {
		if k = &c.gateways[node].clock; t.due > 0 {
			k, least = &c.gateways[node].late, c.Floor()
		}
	}
	most := c.cfg.RetryAfter
	if most == 0 {
		most = k.Late(least)
	}
	return most << min(t.attempt, 10)
}

// bound: a gateway has waited for targets to have room for a chunk, and sends it; they say that it takes so long.
func (c *Cluster) bound(i int32, takes sim.Time) {
	if !c.lossy || c.cfg.RetryAfter > 0 {
		return
	}
	t, now := &c.tasks.Items[i], c.eng.Now()
	gateway := c.bus.Chunks[i].Gateway
	c.gateways[gateway].clock.Learn(now - t.started)
	t.due = now + takes
	c.eng.Arm(c.alarms[i], t.due+c.limit(gateway, t))
}

// watch begins to watch over an attempt.
func (c *Cluster) watch(i int32) {
	if !c.lossy {
		return
	}
	for int(i) >= len(c.alarms) {
		c.alarms = append(c.alarms, c.eng.NewTimer(c.self, c.here, evRetry, uint32(len(c.alarms))))
	}
	c.eng.Arm(c.alarms[i], c.eng.Now()+c.limit(c.bus.Chunks[i].Gateway, &c.tasks.Items[i]))
}

// unwatch ends it.
func (c *Cluster) unwatch(i int32) {
	if c.lossy && int(i) < len(c.alarms) {
		c.eng.Disarm(c.alarms[i])
	}
}

// retry begins again with a chunk that is not done in time.
func (c *Cluster) retry(i int32) {
	t := &c.tasks.Items[i]
	if t.mends > 0 {
		c.Counters.RepairRetried++
	} else {
		c.Counters.Retried++
	}
	switch {
	case t.read:
		c.get.abandon(i)
	case !t.update: // of a part everything is written again
		c.recovery.Abandon(i)
	}
	c.looksAgain(i)
	if t.attempt++; t.attempt == maxAttempts || c.hopeless(t) {
		c.fail(i)
		return
	}
	c.renumber(i)
	c.tries(i)
}

// hopeless reports whether too few targets are left to complete a chunk, or to reach its quorum.
func (c *Cluster) hopeless(t *task) bool {
	need := c.quorum()
	if t.told {
		need = c.copies
	}
	return !t.read && !t.update && t.mends == 0 && c.bus.Holders() < need
}

// fail ends a chunk that could not be put or got.
func (c *Cluster) fail(i int32) {
	if c.tasks.Items[i].mends > 0 {
		c.fix.failed(i)
		return
	}
	c.endsShort(i, &c.Counters.Failed)
}

// loses draws whether a receiver misses something.
func (c *Cluster) loses() bool {
	return c.cfg.Link.Loss > 0 && c.losses.Float64() < float64(c.cfg.Link.Loss)
}
