package drivemeter

import (
	"fmt"

	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/stats"
	"farflash/result"
	"farflash/sim"
)

// steady decides when a run to steady state ends: the mean latency is precise enough, and no change of the drive's
// behaviour is imminent.
type steady struct {
	settling *stats.Settling
	from     sim.Time  // earlier completions are not observed
	fresh    bool      // the drive was empty initially, so garbage collection may start late
	seen     ssd.Stats // at the last evaluation
	most     int64     // largest number of cached pages at evaluations
	verdict  result.Steady
	futile   bool       // the run may end although a rare event has occurred too few times
	requests [][2]int64 // by flow: reads and writes observed
}

// cacheGrowth limits the growth of the cache's contents between evaluations to one part in cacheGrowth of its capacity.
// A filling cache absorbs writes, and will stop doing so.
const cacheGrowth = 10

func newSteady(from sim.Time, fresh bool, flows int) *steady {
	return &steady{settling: stats.NewSettling(stats.DefaultSettlingConfig()), from: from, fresh: fresh,
		requests: make([][2]int64, flows)}
}

// observe records a request's latency.
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

// judge combines the verdict with the drives' state so far.
func (s *steady) judge(v stats.Verdict, now *ssd.Stats) bool {
	grown := now.Cached - s.most
	s.seen, s.most = *now, max(s.most, now.Cached)
	s.verdict = result.Steady{Reached: v.Reached, Explain: v.Explain}
	if (v.Reached || v.Hopeless) && grown > now.CacheRoom/cacheGrowth {
		s.verdict = result.Steady{Explain: fmt.Sprintf("the cache is still filling: %d of %d pages are in use",
			now.Cached, now.CacheRoom)}
		return false
	}
	s.futile = v.Hopeless
	return v.Reached || v.Hopeless
}

// fill records the verdict in a result, whether the run ended by it or otherwise, with the drives' statistics. It
// states if the precision cannot be guaranteed, or only for a drive that will change.
func (s *steady) fill(m *Meter, r *result.Result, now *ssd.Stats, interrupted bool) {
	if !s.verdict.Reached && !s.futile {
		s.judge(s.settling.Judge(s.seldom(m, now)...), now)
	}
	r.Steady = &s.verdict
	switch x := &s.seen; {
	case interrupted:
	case !s.verdict.Reached:
		r.Warn("measure.until: steady was not reached, so the means may not be those of a longer run: %s",
			s.verdict.Explain)
	case s.fresh && x.HostPrograms > 0 && x.Erases == 0:
		r.Warn("the drive is steady only while it has free blocks: %d are free and garbage collection has not started; "+
			"use ssd.preconditioning.fill: steady to start with collection", x.FreeBlocks)
	}
}
