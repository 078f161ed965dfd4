package cluster

import (
	"fmt"
	"strings"

	"farflash/model/cluster/put"
	"farflash/numeric/units"
	"farflash/sim"
)

// Targets fail and return empty. Gateways learn of it after Repair.Detect; until then their requests go unanswered and
// time out (retry.go). The pieces that a failed target stored are rebuilt elsewhere (repair.go).

// Failure is the failure of one target.
type Failure struct {
	// Target is the number of the target that fails, from 0.
	Target int
	// At is the time at which it fails.
	At units.Duration
	// Back is the time at which it returns, empty; 0 is never.
	Back units.Duration
}

// fault is an event in the failure of a target.
type fault struct {
	target int32
	what   uint8
}

// Kinds of faults.
const (
	faultDown uint8 = iota
	faultKnown
	faultUp
	faultJoins
)

// planFailures schedules the faults.
func (c *Cluster) planFailures() {
	add := func(at sim.Time, f fault) {
		c.faults = append(c.faults, f)
		c.eng.Schedule(c.self, c.here, at, evFault, uint32(len(c.faults)-1))
	}
	for _, f := range c.cfg.Failures {
		add(f.At, fault{int32(f.Target), faultDown})
		add(f.At+c.cfg.Repair.Detect, fault{int32(f.Target), faultKnown})
		if f.Back > 0 {
			add(f.Back, fault{int32(f.Target), faultUp})
			add(max(f.Back, f.At)+c.cfg.Repair.Detect, fault{int32(f.Target), faultJoins})
		}
	}
}

// applyFault applies a fault to its target.
func (c *Cluster) applyFault(f fault) {
	t := &c.targets[f.target]
	switch f.what {
	case faultDown:
		t.down = true
		t.fell++
		c.crash(f.target)
	case faultUp:
		t.down = false
	case faultKnown:
		// From here on the pieces of earlier incarnations count as lost.
		t.known = t.fell
		c.bus.Away[f.target] = true
		c.remap()
		c.fix.gone(f.target)
	case faultJoins:
		c.bus.Away[f.target] = t.down
		c.remap()
		c.fix.joined()
	}
	c.turns(f.target)
}

// crash has a target lose its jobs and its state.
func (c *Cluster) crash(target int32) {
	now := c.eng.Now()
	for k := range c.disksOf(target) {
		d := &c.disksOf(target)[k]
		if d.current >= 0 {
			d.busy -= d.ends - now
			c.drop(d.current)
			d.current = -1
		}
		for !d.queue.Empty() {
			c.drop(d.queue.Pop())
		}
		for !d.held.Empty() {
			c.drop(d.held.Pop())
		}
		d.waiting, d.free = 0, 0
		if d.drive != nil {
			d.drive.crash(c)
		}
	}
	c.targets[target].reads = c.targets[target].reads[:0]
	// Messages and frames that it has not started to send are lost.
	o := &c.out[c.nodeOfTarget(target)]
	for !o.control.Empty() {
		c.over(o.control.Pop())
	}
	for !o.data.Empty() {
		c.over(o.data.Pop())
	}
	c.fix.crashed(target)
	c.recovery.Restart(target)
	c.emptied(target)
}

// drop frees a job that ends with its target's failure.
func (c *Cluster) drop(i int32) {
	if j := &c.jobs.Items[i]; !j.void && !j.read {
		c.volume(j).Dropped += j.size
	}
	c.jobs.Give(i)
}

// remap rebuilds the placement without the targets that are known to be away.
func (c *Cluster) remap() {
	if c.bus.Places == nil {
		return
	}
	places, err := c.placer()
	if err != nil {
		return // no targets are left; chunks still go to the absent ones, and fail
	}
	// Keep the old placement if the new one has too few targets for a chunk.
	if before := c.bus.Places; c.checkPlacer() == nil {
		c.bus.Places = places
		if c.checkPlacer() != nil {
			c.bus.Places = before
		}
	}
}

func (c *Config) checkFailures(f *units.Faults) {
	down := map[int]units.Duration{}
	for i, x := range c.Failures {
		at := fmt.Sprintf("failures[%d]", i)
		f.Hold(x.Target >= 0 && x.Target < c.Targets, at+".target",
			"no target %d; targets are 0 to %d", x.Target, c.Targets-1)
		f.Hold(x.At >= 0, at+".at", "target %d fails at %v; use a time from 0", x.Target, x.At)
		f.Hold(x.Back == 0 || x.Back >= x.At+c.Repair.Detect, at+".back",
			"target %d fails at %v and returns at %v, before the failure is detected; use a time from %v, or leave "+
				"back out",
			x.Target, x.At, x.Back, x.At+c.Repair.Detect)
		until, before := down[x.Target]
		f.Hold(!before || until > 0 && x.At >= until+c.Repair.Detect, at+".at",
			"target %d fails a second time before its return is detected", x.Target)
		down[x.Target] = x.Back
	}
	f.Hold(c.Repair.Detect >= 0, "repair.detect", "%v is not possible; use a time such as 5ms", c.Repair.Detect)
	f.Hold(c.Repair.Streams <= 64, "repair.streams", "%v is not possible; use at most 64 for each target",
		float64(c.Repair.Streams))
	f.Hold(c.Repair.Disk > 0 && c.Repair.Disk <= 1, "repair.disk", "%v is not possible; use above 0%% to 100%%",
		c.Repair.Disk)
	f.Hold(c.Repair.Link > 0 && c.Repair.Link <= 1, "repair.link", "%v is not possible; use above 0%% to 100%%",
		c.Repair.Link)
	f.Hold(len(c.Failures) == 0 || c.Control.Queued, "failures", "they need control.queued: true")
	f.Hold(c.Link.Loss <= 0.5, "link.loss", "%v is not possible; use 0%% to 50%%", c.Link.Loss)
	f.Hold(c.Link.Loss == 0 || c.Control.Queued, "link.loss", "it needs control.queued: true")
	f.Hold(c.RetryAfter >= 0, "retry_after", "%v is not possible; use a time such as 20ms", c.RetryAfter)
	t := c.Protocol.traits()
	f.Hold(!c.lossy() || t.Stuck == "", "protocol",
		"%v does not tolerate lost messages or failed targets: %s; use one of %s", c.Protocol, t.Stuck,
		strings.Join(names(where(recovers)), ", "))
}

// recovers reports whether a protocol makes progress despite lost messages and failed targets.
func recovers(t *put.Traits) bool { return t.Stuck == "" }
