package drive

import (
	"fmt"

	"farflash/result"
	"farflash/sim"
	"farflash/ssd"
	"farflash/stats"
)

// steady decides when a run ends that is to end in a steady state: the mean latency is known well enough, and the drive is not about to behave otherwise.
type steady struct {
	settling *stats.Settling
	from     sim.Time  // what ends before is not observed
	fresh    bool      // the drive was empty at first, so that it may be long until it collects garbage
	seen     ssd.Stats // at the last look
	most     int64     // pages that the caches had at most, at looks
	verdict  result.Steady
}

// What a drive must have behind it. A cache that is filling takes writes at once and will not go on to; rounds of collection come in bursts, and each batch that
// the interval rests on is to have some of them.
const (
	cacheGrowth = 10  // of a cache's room one part in so many may be in use beyond what was at the looks before
	leastRounds = 320 // blocks erased while writes go on, if any are or the drive was full from the beginning
)

func newSteady(from sim.Time, fresh bool) *steady {
	return &steady{settling: stats.NewSettling(stats.DefaultSettlingConfig()), from: from, fresh: fresh}
}

// observe notes a request's latency.
func (s *steady) observe(at, latency sim.Time) {
	if at >= s.from {
		s.settling.Add(float64(latency))
	}
}

// look judges, if it is time to, with what the drives have done so far.
func (s *steady) look(now *ssd.Stats) bool {
	return s.settling.Due() && s.judge(s.settling.Look(), now)
}

// judge takes into account what the drives have done so far.
func (s *steady) judge(v stats.Verdict, now *ssd.Stats) bool {
	grown, writes := now.Cached-s.most, now.HostPrograms > s.seen.HostPrograms
	s.seen, s.most = *now, max(s.most, now.Cached)
	s.verdict = result.Steady{Reached: v.Reached, Explain: v.Explain}
	switch {
	case !v.Reached:
	case grown > now.CacheRoom/cacheGrowth:
		s.verdict = result.Steady{Explain: fmt.Sprintf("the cache is still filling: %d of %d pages are in use", now.Cached, now.CacheRoom)}
	case writes && now.Erases < leastRounds && (now.Erases > 0 || !s.fresh):
		s.verdict = result.Steady{Explain: fmt.Sprintf("garbage collection has erased only %d blocks; at least %d are needed", now.Erases, leastRounds)}
	}
	return s.verdict.Reached
}

// fill says in a result what came of it, if the run ended by itself or otherwise, with what the drives have done. Where the promise cannot be given, or only of a
// drive that will change, it says so.
func (s *steady) fill(r *result.Result, now *ssd.Stats, interrupted bool) {
	if !s.verdict.Reached {
		s.judge(s.settling.Judge(), now)
	}
	r.Steady = &s.verdict
	switch x := &s.seen; {
	case interrupted:
	case !s.verdict.Reached:
		r.Warn("measure.until: steady was not reached, so the means may not be those of a longer run: %s", s.verdict.Explain)
	case s.fresh && x.HostPrograms > 0 && x.Erases == 0:
		r.Warn("the drive is steady only while it has room: %d blocks are free and garbage collection has not begun; use ssd.preconditioning.fill: steady to begin with collection", x.FreeBlocks)
	}
}
