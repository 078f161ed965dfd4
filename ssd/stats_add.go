package ssd

import "farflash/sim"

// Add adds what another drive did. Dies and channels are added one by one if both drives have as
// many, so that they are those of a drive that is the sum of both; otherwise none are known. The fewest free blocks are those
// of the drive that has fewer.
func (s *Stats) Add(o *Stats) {
	for i := range s.Bytes {
		s.Submitted[i] += o.Submitted[i]
		s.Finished[i] += o.Finished[i]
		s.Bytes[i] += o.Bytes[i]
	}
	for _, x := range [][2]*uint64{
		{&s.Failed, &o.Failed}, {&s.HostPrograms, &o.HostPrograms}, {&s.MovePrograms, &o.MovePrograms}, {&s.MappingPrograms, &o.MappingPrograms},
		{&s.Reads, &o.Reads}, {&s.Programs, &o.Programs}, {&s.Erases, &o.Erases}, {&s.MappingReads, &o.MappingReads},
		{&s.ProgramsSuspended, &o.ProgramsSuspended}, {&s.ErasesSuspended, &o.ErasesSuspended},
		{&s.MapHits, &o.MapHits}, {&s.MapMisses, &o.MapMisses}, {&s.CacheHits, &o.CacheHits}, {&s.CacheMisses, &o.CacheMisses},
		{&s.ZeroReads, &o.ZeroReads}, {&s.WritesHeld, &o.WritesHeld},
	} {
		*x[0] += *x[1]
	}
	for op, n := range o.Commands {
		sum := s.Commands[op]
		for i := range n {
			sum[i] += n[i]
		}
		s.Commands[op] = sum
	}
	for i := range 2 {
		s.Transactions[i] += o.Transactions[i]
		s.Array[i] += o.Array[i]
		s.Transfer[i] += o.Transfer[i]
		s.Wait[i] += o.Wait[i]
		s.Breakdown[i].add(&o.Breakdown[i])
	}
	for _, q := range o.Queues {
		found := false
		for i := range s.Queues {
			if x := &s.Queues[i]; x.Name == q.Name {
				x.Entered += q.Entered
				x.Left += q.Left
				x.Wait += q.Wait
				x.MaxWait = max(x.MaxWait, q.MaxWait)
				x.MaxLength = max(x.MaxLength, q.MaxLength)
				found = true
			}
		}
		if !found {
			s.Queues = append(s.Queues, q)
		}
	}
	s.LaneBusy, s.ChannelBusy = together(s.LaneBusy, o.LaneBusy), together(s.ChannelBusy, o.ChannelBusy)
	s.LinkBusy += o.LinkBusy
	s.DRAMBusy += o.DRAMBusy
	s.FTL = s.FTL.Add(o.FTL)
	s.Energy += o.Energy
	s.FreeBlocks += o.FreeBlocks
	s.FewestFree = min(s.FewestFree, o.FewestFree)
	s.ValidPages += o.ValidPages
}

// together adds times one by one, or knows none.
func together(a, b []sim.Time) []sim.Time {
	if len(a) != len(b) {
		return nil
	}
	for i := range a {
		a[i] += b[i]
	}
	return a
}

func (b *Breakdown) add(o *Breakdown) {
	b.Requests += o.Requests
	for _, x := range [][2]*sim.Time{
		{&b.Queue, &o.Queue}, {&b.Link, &o.Link}, {&b.DRAM, &o.DRAM}, {&b.Mapping, &o.Mapping}, {&b.Backlog, &o.Backlog},
		{&b.Wait, &o.Wait}, {&b.Array, &o.Array}, {&b.Transfer, &o.Transfer}, {&b.All, &o.All},
	} {
		*x[0] += *x[1]
	}
}
