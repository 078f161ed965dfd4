package nvmf

import (
	"errors"
	"fmt"
	"slices"

	"farflash/model/fabric/receives"
	"farflash/numeric/units"
)

// Receives are the receives that a target posts for command capsules over RDMA.
type Receives struct {
	// Shared is how many the queue pairs of a target's core and network card share. A capsule takes one until its
	// response is handed to the NIC; one that finds none is sent again after rnr_timer. SPDK's default is 4096
	// (max_srq_depth); Linux shares 1024 (nvmet-rdma's srq_size) with use_srq, which is off. 0: each queue pair has as
	// many as its depth.
	Shared int
	// RNRTimer is how long an initiator waits: one of InfiniBand's 32 times. Linux' connection manager sets 655.36ms,
	// for SPDK too.
	RNRTimer units.Duration
}

// defaultReceives returns receives that are not shared, and the timer of Linux' connection manager (cm.c,
// cm_init_qp_rtr_attr: min_rnr_timer 0).
func defaultReceives() Receives { return Receives{RNRTimer: receives.Timers[len(receives.Timers)-1]} }

func (r *Receives) validate() error {
	var bad units.Faults
	bad.Hold(r.Shared >= 0 && r.Shared <= 65535, "shared", "%d is not possible; use 1 to 65535, or 0 for none", r.Shared)
	bad.Hold(receives.Nearest(r.RNRTimer) == r.RNRTimer, "rnr_timer", "%v is none of InfiniBand's times, 10us to "+
		"655.36ms; use the nearest, %v", r.RNRTimer, receives.Nearest(r.RNRTimer))
	return bad.Err()
}

// share makes the capsules of a connection take the receives of its core at the target. The messages that connect a
// queue take none: a controller has one of them outstanding.
func (s *System) share(n int32) {
	q := &s.conns[n]
	if s.cfg.Receives.Shared == 0 || q.pool > 0 {
		return
	}
	p, ok := s.net.(Pooler)
	if !ok {
		s.fail(errors.New("the network has no receives that queue pairs share"))
		return
	}
	s.pooler = p
	ctrl := n / int32(s.cfg.QueuePairs)
	_, target := s.ends(ctrl)
	_, to := s.nodes(ctrl)
	t := &s.targets[target]
	nics := append([]int32{t.node}, t.more...)
	if t.pools == nil {
		t.pools = make([]int32, int(t.many)*len(nics))
	}
	k := int(q.targetCore%t.many)*len(nics) + slices.Index(nics, to)
	var err error
	if t.pools[k] == 0 {
		var pool int32
		pool, err = p.Pool(s.cfg.Receives.Shared, s.cfg.Receives.RNRTimer)
		t.pools[k] = pool + 1
	}
	if err == nil {
		q.pool = t.pools[k]
		err = p.Receives(q.out, q.pool-1)
	}
	if err != nil {
		s.fail(fmt.Errorf("target %d: %w", target, err))
	}
}

// took notes that a command's capsule has taken a receive.
func (s *System) took(x *command) {
	if q := &s.conns[x.conn]; q.pool > 0 {
		x.receive = q.pool
		s.Counters.MostReceives = max(s.Counters.MostReceives,
			int32(s.cfg.Receives.Shared-s.pooler.Posted(x.receive-1)))
	}
}

// repost posts the receive of a command's capsule again.
func (s *System) repost(x *command) {
	if x.receive > 0 {
		s.pooler.Repost(x.receive - 1)
		x.receive = 0
	}
}

// keepReceive leaves the receive of a command that is about to be forgotten to what its connection has freed.
func (s *System) keepReceive(x *command, f *freed) {
	if x.receive > 0 {
		f.receives = append(f.receives, x.receive)
		x.receive = 0
	}
}

// checkReceives verifies that no more receives are held than are taken; messages that have arrived in part hold others.
func (s *System) checkReceives() error {
	if s.pooler == nil {
		return nil
	}
	held := map[int32]int{}
	s.commands.Each(func(_ int32, x *command) { held[x.receive]++ })
	for i := range s.ghosts {
		for _, pool := range s.ghosts[i].receives {
			held[pool]++
		}
	}
	for i := range s.targets {
		for _, pool := range s.targets[i].pools {
			if pool == 0 {
				continue
			}
			if taken := s.cfg.Receives.Shared - s.pooler.Posted(pool-1); taken < held[pool] {
				return fmt.Errorf("target %d: %d receives are held, and %d of %d are taken", i, held[pool], taken,
					s.cfg.Receives.Shared)
			}
		}
	}
	return nil
}
