package cluster

import (
	"farflash/model/cluster/put"
	"farflash/sim"
)

// What tests ask of protocols.

// Build is the first build of SURGE that has a protocol, if one has.
func (s Scheme) Build() Compat { return s.traits().Build }

// Placed reports whether a placement says where chunks go.
func (s Scheme) Placed() bool { return s.traits().Finds == put.FindsPlaced }

// Sequential reports whether gateways take windows one after another.
func (s Scheme) Sequential() bool { return s.traits().Sequential }

// Recovers reports whether a protocol goes on when messages are lost and targets fail.
func (s Scheme) Recovers() bool { return s.traits().Stuck == "" }

// NeedsQueues reports whether a protocol needs links that carry one frame at a time.
func (s Scheme) NeedsQueues() bool { return s.traits().Queued }

// NewOn makes a cluster on which another protocol runs than the configuration's, whose traits it has.
func NewOn(cfg Config, eng *sim.Engine, protocol func(*put.Bus) put.Protocol) (*Cluster, *put.Bus, error) {
	c, err := newCluster(cfg, eng, 1, protocol)
	if err != nil {
		return nil, nil, err
	}
	return c, c.bus, nil
}

// Used is how many jobs, parcels, casts and chunks are in use, how many repairs are under way, and how many pieces
// wait for one.
func (c *Cluster) Used() (jobs, parcels, casts, tasks, repairs, queued int) {
	for i := range c.tasks.Items {
		if c.tasks.Items[i].live {
			tasks++
		}
	}
	return c.jobs.Used(), c.parcels.Used(), c.casts.Used(), tasks, c.fix.active.Used(), c.fix.queue.Len()
}

// Holders are where the pieces of the chunks are that are kept; below 0 nowhere.
func (c *Cluster) Holders() (targets []int32, copies int) { return c.kept.targets, c.copies }

// Walks reports whether laws are looked at while a cluster runs.
const Walks = checkEvery > 0

// Lose has what arrives at nodes be lost as a function says, of a cluster on which messages may be lost.
func (c *Cluster) Lose(f func(node int32, data bool) bool) { c.fault = f }

// Expects counts the targets that wait for data, and those that wait for an answer.
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
