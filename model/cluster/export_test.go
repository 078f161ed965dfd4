package cluster

import (
	"farflash/model/cluster/put"
	"farflash/sim"
)

// Accessors for tests.

// Build returns the first build of SURGE that has the protocol, if any does.
func (s Scheme) Build() Compat { return s.traits().Build }

// Placed reports whether a placement chooses the targets of chunks.
func (s Scheme) Placed() bool { return s.traits().Finds == put.FindsPlaced }

// Sequential reports whether gateways reserve windows one after another.
func (s Scheme) Sequential() bool { return s.traits().Sequential }

// Recovers reports whether the protocol makes progress despite lost messages and failed targets.
func (s Scheme) Recovers() bool { return s.traits().Stuck == "" }

// NeedsQueues reports whether a protocol needs links that carry one frame at a time.
func (s Scheme) NeedsQueues() bool { return s.traits().Queued }

// NewOn returns a cluster that runs another protocol than the configured one, with the traits of the latter.
func NewOn(cfg Config, eng *sim.Engine, protocol func(*put.Bus) put.Protocol) (*Cluster, *put.Bus, error) {
	c, err := newCluster(cfg, eng, 1, protocol)
	if err != nil {
		return nil, nil, err
	}
	return c, c.bus, nil
}

// Used returns the numbers of jobs, parcels, casts and chunks in use, of repairs in flight, and of pieces that wait for
// one.
func (c *Cluster) Used() (jobs, parcels, casts, tasks, repairs, queued int) {
	for i := range c.tasks.Items {
		if c.tasks.Items[i].live {
			tasks++
		}
	}
	return c.jobs.Used(), c.parcels.Used(), c.casts.Used(), tasks, c.fix.active.Used(), c.fix.queue.Len()
}

// Holders returns the locations of the stored chunks' pieces; negative: at no target.
func (c *Cluster) Holders() (targets []int32, copies int) { return c.kept.targets, c.copies }

// Walks reports whether laws are checked while a cluster runs.
const Walks = checkEvery > 0

// Lose sets the function that decides which arrivals are lost, in a cluster whose messages can be lost.
func (c *Cluster) Lose(f func(node int32, data bool) bool) { c.fault = f }

// Expects returns the number of targets that wait for data, and of those that wait for an answer.
func (c *Cluster) Expects() (promised, open int) {
	for t := range int32(len(c.targets)) {
		p, o := c.forecast.Expects(t)
		if p {
			promised++
		}
		if o {
			open++
		}
	}
	return promised, open
}
