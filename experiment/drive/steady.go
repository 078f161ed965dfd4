package drive

import (
	"fmt"

	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/stats"
	"farflash/result"
	"farflash/sim"
)

// steady decides when a run ends that is to end in a steady state: the mean latency is known well enough, and the
// drive is not about to behave otherwise.
type steady struct {
	settling *stats.Settling
	from     sim.Time  // what ends before is not observed
	fresh    bool      // the drive was empty at first, so that it may be long until it collects garbage
	seen     ssd.Stats // at the last look
	most     int64     // pages that the caches had at most, at looks
	verdict  result.Steady
	vain     bool       // the run may end although a rare event has occurred too few times
	requests [][2]int64 // by flow: reads and writes observed
}

// cacheGrowth bounds how much the cache may still fill between looks: one part in cacheGrowth of its capacity. A
// filling cache absorbs writes, and will not go on to.
const cacheGrowth = 10

func newSteady(from sim.Time, fresh bool, flows int) *steady {
	return &steady{settling: stats.NewSettling(stats.DefaultSettlingConfig()), from: from, fresh: fresh,
		requests: make([][2]int64, flows)}
}

// observe notes a request's latency.
func (s *steady) observe(x *cosim.Sample) {
	if x.Finished >= s.from {
		s.settling.Add(float64(x.Latency))
		s.requests[x.Flow][x.Op]++
	}
}

// look evaluates the stop rule if it is due, with the drives' counters, and reports whether the run may end.
func (s *steady) look(m *Meter, now *ssd.Stats) bool {
	return s.settling.Due() && s.judge(s.settling.Look(s.seldom(m, now)...), now)
}

// judge takes into account what the drives have done so far.
func (s *steady) judge(v stats.Verdict, now *ssd.Stats) bool {
	grown := now.Cached - s.most
	s.seen, s.most = *now, max(s.most, now.Cached)
	s.verdict = result.Steady{Reached: v.Reached, Explain: v.Explain}
	if (v.Reached || v.Vain) && grown > now.CacheRoom/cacheGrowth {
		s.verdict = result.Steady{Explain: fmt.Sprintf("the cache is still filling: %d of %d pages are in use",
			now.Cached, now.CacheRoom)}
		return false
	}
	s.vain = v.Vain
	return v.Reached || v.Vain
}

// fill says in a result what came of it, if the run ended by itself or otherwise, with what the drives have done.
// Where the promise cannot be given, or only of a drive that will change, it says so.
func (s *steady) fill(m *Meter, r *result.Result, now *ssd.Stats, interrupted bool) {
	if !s.verdict.Reached && !s.vain {
		s.judge(s.settling.Judge(s.seldom(m, now)...), now)
	}
	r.Steady = &s.verdict
	switch x := &s.seen; {
	case interrupted:
	case !s.verdict.Reached:
		r.Warn("measure.until: steady was not reached, so the means may not be those of a longer run: %s",
			s.verdict.Explain)
	case s.fresh && x.HostPrograms > 0 && x.Erases == 0:
		r.Warn("the drive is steady only while it has room: %d blocks are free and garbage collection has not begun; "+
			"use ssd.preconditioning.fill: steady to begin with collection", x.FreeBlocks)
	}
}
