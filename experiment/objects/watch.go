package objects

import (
	"farflash/experiment/timeline"
	"farflash/model/cluster"
	"farflash/sim"
)

// clusterWatch manages the observers of a cluster's probes: the present ladder, and the timeline.
type clusterWatch struct {
	c        *cluster.Cluster
	gateways int
	ladder   *ladder // nil: none at present
	timeline *timeline.Cluster

	ladders []*ladder
	starts  []sim.Time
}

// set installs the observers' probes.
func (w *clusterWatch) set() {
	w.c.Probes = cluster.Probes{}
	if w.ladder != nil {
		w.c.Probes = w.ladder.probes()
	}
	if w.timeline != nil {
		p, q := w.c.Probes, w.timeline.Probes()
		w.c.Probes = cluster.Probes{OnSend: p.OnSend, OnReceive: chain(p.OnReceive, q.OnReceive),
			OnBid: chain(p.OnBid, q.OnBid), OnDisk: chain(p.OnDisk, q.OnDisk)}
	}
}

// chain calls a, if it is not nil, and then b.
func chain[T any](a, b sim.Probe[T]) sim.Probe[T] {
	if a == nil {
		return b
	}
	return func(x T) {
		a(x)
		b(x)
	}
}

// slice starts a ladder with a slice of the run, if one is due and none is active, and removes a complete one.
func (w *clusterWatch) slice(k int, now sim.Time) {
	if w.ladder != nil && w.ladder.over() {
		w.ladder = nil
	}
	if w.ladder == nil && k%ladderEvery == 0 {
		w.ladder = newLadder(w.c, w.gateways, now)
		w.ladders, w.starts = append(w.ladders, w.ladder), append(w.starts, now)
	}
	w.set()
}

// done records a completed chunk.
func (w *clusterWatch) done(d *cluster.Done) {
	if w.timeline != nil {
		w.timeline.Done(d)
	}
	if w.ladder == nil {
		return
	}
	if w.ladder.finished(d); w.ladder.over() {
		w.ladder = nil
		w.set()
	}
}
