package cluster

import "farflash/sim"

// Frames and messages can be lost, by link.loss or because a target has failed. Frames are not acknowledged: a chunk is
// acknowledged as a whole, and one that does not complete in time is retried (the Replicast paper, section III-G). A
// gateway learns its timeout from the completion times of its chunks, as TCP does from round trips (RFC 6298). With a
// protocol whose gateways wait for capacity at targets before they send, a gateway learns the two phases separately,
// because the wait grows with the load. Such targets have predicted when the data will be stored, so for the second
// phase the gateway learns only the error of that prediction. That error is small, and losses are detected soon.

// maxAttempts is the number of attempts after which a chunk fails.
const maxAttempts = 16

// limit returns the timeout of an attempt, or how late it may be once its data is being sent. It doubles with each
// attempt, up to ten times.
func (c *Cluster) limit(node int32, t *task) sim.Time {
	k, least := &c.fix.clock, 2*c.Floor()
	if int(node) < len(c.gateways) {
		if k = &c.gateways[node].clock; t.due > 0 {
			k, least = &c.gateways[node].late, c.Floor()
		}
	}
	most := c.cfg.RetryAfter
	if most == 0 {
		most = k.late(least)
	}
	return most << min(t.attempt, 10)
}

// bound handles the end of a gateway's wait for capacity: it sends the chunk, and the targets predict that it is stored
// after takes.
func (c *Cluster) bound(i int32, takes sim.Time) {
	if !c.lossy || c.cfg.RetryAfter > 0 {
		return
	}
	t, now := &c.tasks.Items[i], c.eng.Now()
	gateway := c.bus.Chunks[i].Gateway
	c.gateways[gateway].clock.learn(now - t.started)
	t.due = now + takes
	c.eng.Arm(c.alarms[i], t.due+c.limit(gateway, t))
}

// watch starts the timeout of an attempt.
func (c *Cluster) watch(i int32) {
	if !c.lossy {
		return
	}
	for int(i) >= len(c.alarms) {
		c.alarms = append(c.alarms, c.eng.NewTimer(c.self, c.here, evRetry, uint32(len(c.alarms))))
	}
	c.eng.Arm(c.alarms[i], c.eng.Now()+c.limit(c.bus.Chunks[i].Gateway, &c.tasks.Items[i]))
}

// unwatch stops the timeout.
func (c *Cluster) unwatch(i int32) {
	if c.lossy && int(i) < len(c.alarms) {
		c.eng.Disarm(c.alarms[i])
	}
}

// retry handles the timeout of an attempt.
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
	case !t.update: // an update rewrites the whole part, which needs no cleanup at targets
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

// fail ends a chunk that could not be put or read.
func (c *Cluster) fail(i int32) {
	if c.tasks.Items[i].mends > 0 {
		c.fix.failed(i)
		return
	}
	c.endsShort(i, &c.Counters.Failed)
}

// loses draws whether a receiver loses a parcel.
func (c *Cluster) loses() bool {
	return c.cfg.Link.Loss > 0 && c.losses.Float64() < float64(c.cfg.Link.Loss)
}
