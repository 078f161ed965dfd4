package ftl

import "slices"

// counts are a pool's counters, except the host's programs, which its frontiers count.
type counts struct {
	moved       [Returned]int64 // pages relocated, by Reason; a returned block has none
	collections [Returned]int64
	found       int64 // valid pages of victims for space, wear and renewal, when started
	raced       int64
	erases      int64
	failed      int64 // programs that failed
	retired     int32
	failures    int32 // blocks that failed; like retired, at most the number of blocks
	restored    int64 // pages of restored blocks
	abandoned   int64 // pages of failing and returned blocks that were never handed out
	skipped     int64 // pages given up by Skip
	filled      int64 // pages of given blocks that were taken
	erasedPages int64 // pages of blocks that were erased or retired
	relocating  int64 // relocated and not yet Moved
}

// Stats counts the work of the FTL since New, in pages unless stated otherwise.
type Stats struct {
	Programs        []int64 // handed out by Allocate, by host stream
	HostPrograms    int64   // sum of Programs, plus the pages of given blocks
	GCPrograms      int64   // programmed to move data out of blocks collected for space
	WearPrograms    int64   // programmed to move data out of the least worn blocks
	FailurePrograms int64   // programmed to move data out of failing blocks
	RenewalPrograms int64   // programmed to move data out of blocks that Renew named
	FoldPrograms    int64   // programmed to move data out of fast blocks
	FailedPrograms  int64   // of all of the above, those that failed
	Raced           int64   // moves that a host write overtook while in flight
	Skipped         int64   // pages given up by Skip; in none of the other counters
	Erases          int64   // blocks
	Failures        int64   // blocks that failed early, failed erases excluded
	Retired         int64   // blocks
	Renewals        int64   // victims started because Renew named them
	Folds           int64   // victims started because they are fast
	Collections     int64   // victims started for space
	Relocations     int64   // victims started for wear
	Found           int64   // valid pages of victims for space, wear and renewal, when started
}

// WAF returns the write amplification: pages programmed for each page that the host side programmed (including mapping
// pages, if the driver writes any). It is 1 before the first host write.
func (s Stats) WAF() float64 {
	if s.HostPrograms == 0 {
		return 1
	}
	return float64(s.HostPrograms+s.GCPrograms+s.WearPrograms+s.FailurePrograms+s.RenewalPrograms+s.FoldPrograms) /
		float64(s.HostPrograms)
}

// counters returns pointers to all scalar counters of s, always in the same order.
func (s *Stats) counters() []*int64 {
	return []*int64{
		&s.HostPrograms, &s.GCPrograms, &s.WearPrograms, &s.FailurePrograms, &s.RenewalPrograms, &s.FailedPrograms,
		&s.Raced, &s.Skipped,
		&s.Erases, &s.Failures, &s.Retired, &s.Collections, &s.Relocations, &s.Renewals,
		&s.FoldPrograms, &s.Folds, &s.Found,
	}
}

// Sub returns the work done between the earlier o and s.
func (s Stats) Sub(o Stats) Stats { return s.plus(o, -1) }

// Add returns the sum of the work of two translation layers. Streams with the same number are summed.
func (s Stats) Add(o Stats) Stats { return s.plus(o, 1) }

func (s Stats) plus(o Stats, sign int64) Stats {
	s.Programs = slices.Clone(s.Programs)
	for len(s.Programs) < len(o.Programs) {
		s.Programs = append(s.Programs, 0)
	}
	for i, n := range o.Programs {
		s.Programs[i] += sign * n
	}
	to := s.counters()
	for i, n := range o.counters() {
		*to[i] += sign * *n
	}
	return s
}

// Stats returns the counters since New.
func (f *FTL) Stats() Stats {
	s := Stats{Programs: make([]int64, f.cfg.Streams)}
	for _, p := range f.pools {
		for i := range s.Programs {
			n := p.frontiers[i].host
			s.Programs[i] += n
			s.HostPrograms += n
		}
		c := &p.counts
		s.HostPrograms += c.filled
		s.GCPrograms += c.moved[GC]
		s.WearPrograms += c.moved[WearLevelling]
		s.FailurePrograms += c.moved[Failure]
		s.RenewalPrograms += c.moved[Renewal]
		s.FoldPrograms += c.moved[Folding]
		s.FailedPrograms += c.failed
		s.Raced += c.raced
		s.Skipped += c.skipped
		s.Erases += c.erases
		s.Failures += int64(c.failures)
		s.Retired += int64(c.retired)
		s.Collections += c.collections[GC]
		s.Relocations += c.collections[WearLevelling]
		s.Renewals += c.collections[Renewal]
		s.Folds += c.collections[Folding]
		s.Found += c.found
	}
	return s
}
