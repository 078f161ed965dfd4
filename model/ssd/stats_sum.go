package ssd

import (
	"slices"

	"farflash/numeric/units"
	"farflash/sim"
)

// counts, sizes and times return pointers to all figures that can be summed over drives and subtracted over time,
// always in the same order.
func (s *Stats) counts() []*uint64 {
	out := []*uint64{
		&s.Failed, &s.HostPrograms, &s.MovePrograms, &s.MappingPrograms, &s.WearPrograms, &s.Reads, &s.Programs,
		&s.Erases, &s.MappingReads,
		&s.ProgramsSuspended, &s.ErasesSuspended, &s.MapHits, &s.MapMisses, &s.CacheHits, &s.CacheMisses,
		&s.ZeroReads, &s.WritesHeld, &s.Wakes,
		&s.RenewPrograms, &s.Errors.Sensed, &s.Errors.Retried, &s.Errors.Retries, &s.Errors.Uncorrectable,
		&s.Errors.Lost,
		&s.PowerAsked, &s.PowerHeld, &s.SLCPrograms, &s.FoldPrograms,
		&s.Zones.Appends, &s.Zones.Resets, &s.Zones.Finishes, &s.Zones.Opened, &s.Zones.Closed, &s.Zones.Refused,
	}
	for op := range s.Submitted {
		out = append(out, &s.Submitted[op], &s.Finished[op])
	}
	for i := range s.Transactions {
		out = append(out, &s.Transactions[i], &s.Breakdown[i].Requests)
	}
	return out
}

func (s *Stats) sizes() []*int64 {
	out := []*int64{&s.Programmed}
	for op := range s.Bytes {
		out = append(out, &s.Bytes[op])
	}
	return out
}

func (s *Stats) times() []*sim.Time {
	return []*sim.Time{&s.LinkBusy[0], &s.LinkBusy[1], &s.DRAMBusy, &s.ControllerBusy}
}

func (s *Stats) totals() []*units.Total {
	var out []*units.Total
	for i := range s.Array {
		b := &s.Breakdown[i]
		out = append(out, &s.Array[i], &s.Transfer[i], &s.Wait[i],
			&b.Queue, &b.Link, &b.DRAM, &b.Cache, &b.Mapping, &b.Backlog, &b.Wait, &b.Array, &b.Transfer,
			&b.Controller, &b.All)
	}
	return out
}

// plus adds o's figures, or subtracts them.
func plus[T ~int64 | uint64](to, o []*T, away bool) {
	for i, x := range o {
		if away {
			*to[i] -= *x
		} else {
			*to[i] += *x
		}
	}
}

func (s *Stats) sum(o *Stats, away bool) {
	plus(s.counts(), o.counts(), away)
	plus(s.sizes(), o.sizes(), away)
	plus(s.times(), o.times(), away)
	theirs := o.totals()
	for i, x := range s.totals() {
		if away {
			*x = x.Minus(*theirs[i])
		} else {
			*x = x.Plus(*theirs[i])
		}
	}
}

// Since returns the statistics since an earlier time, with the levels, maxima and Commands of s.
func (s *Stats) Since(earlier *Stats) Stats {
	d := *s
	d.sum(earlier, true)
	d.LaneBusy, d.ChannelBusy = less(s.LaneBusy, earlier.LaneBusy), less(s.ChannelBusy, earlier.ChannelBusy)
	d.Namespaces = slices.Clone(s.Namespaces)
	for i, n := range earlier.Namespaces {
		d.Namespaces[i].Written -= n.Written
		d.Namespaces[i].Moved -= n.Moved
	}
	d.Groups = slices.Clone(s.Groups)
	for i := range earlier.Groups {
		plus(d.Groups[i].counts(), earlier.Groups[i].counts(), true)
	}
	d.Rested = less(s.Rested, earlier.Rested)
	d.FTL = s.FTL.Sub(earlier.FTL)
	d.Energy -= earlier.Energy
	d.Errors.RateSum -= earlier.Errors.RateSum
	d.Queues = append([]QueueStats(nil), s.Queues...)
	for i := range d.Queues {
		x := &d.Queues[i]
		for _, q := range earlier.Queues {
			if q.Name == x.Name {
				x.Entered -= q.Entered
				x.Left -= q.Left
				x.Wait = x.Wait.Minus(q.Wait)
			}
		}
	}
	return d
}

func less(b, a []sim.Time) []sim.Time {
	out := append([]sim.Time(nil), b...)
	for i, t := range a {
		out[i] -= t
	}
	return out
}

// Add adds another drive's statistics, element by element where both have as many. FewestFree becomes the smaller.
func (s *Stats) Add(o *Stats) {
	s.sum(o, false)
	for op, n := range o.Commands {
		sum := s.Commands[op]
		for i := range n {
			sum[i] += n[i]
		}
		s.Commands[op] = sum
	}
	for _, q := range o.Queues {
		s.addQueue(q)
	}
	s.LaneBusy, s.ChannelBusy = together(s.LaneBusy, o.LaneBusy), together(s.ChannelBusy, o.ChannelBusy)
	s.addNamespaces(o)
	s.addGroups(o)
	s.Rested = together(s.Rested, o.Rested)
	s.FTL = s.FTL.Add(o.FTL)
	s.Energy += o.Energy
	s.Errors.RateSum += o.Errors.RateSum
	s.ZoneLevels.Open += o.ZoneLevels.Open
	s.ZoneLevels.Active += o.ZoneLevels.Active
	s.ZoneLevels.Full += o.ZoneLevels.Full
	s.FreeBlocks += o.FreeBlocks
	s.FewestFree = min(s.FewestFree, o.FewestFree)
	s.ValidPages += o.ValidPages
	s.Cached += o.Cached
	s.CacheRoom += o.CacheRoom
}

// addNamespaces adds namespaces of the same number, or drops them if the drives differ in their number.
func (s *Stats) addNamespaces(o *Stats) {
	if len(s.Namespaces) != len(o.Namespaces) {
		s.Namespaces = nil
		return
	}
	for i, n := range o.Namespaces {
		s.Namespaces[i].Written += n.Written
		s.Namespaces[i].Moved += n.Moved
	}
}

// addGroups does the same for reclaim groups.
func (s *Stats) addGroups(o *Stats) {
	if len(s.Groups) != len(o.Groups) {
		s.Groups = nil
		return
	}
	for i := range o.Groups {
		plus(s.Groups[i].counts(), o.Groups[i].counts(), false)
	}
}

// addQueue adds the statistics of one of another drive's queues.
func (s *Stats) addQueue(q QueueStats) {
	for i := range s.Queues {
		if x := &s.Queues[i]; x.Name == q.Name {
			x.Entered += q.Entered
			x.Left += q.Left
			x.Wait = x.Wait.Plus(q.Wait)
			x.MaxWait = max(x.MaxWait, q.MaxWait)
			x.MaxLength = max(x.MaxLength, q.MaxLength)
			return
		}
	}
	s.Queues = append(s.Queues, q)
}

// together adds times element by element, or returns nil if the lengths differ.
func together(a, b []sim.Time) []sim.Time {
	if len(a) != len(b) {
		return nil
	}
	for i := range a {
		a[i] += b[i]
	}
	return a
}
