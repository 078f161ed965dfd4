package ftl

import "slices"

// counts are what the FTL counts apart from programs.
type counts struct {
	collections [reasons]int64
	raced       int64
	erases      int64
	retired     int64
	restored    int64 // pages of restored blocks
	erasedPages int64 // pages of blocks that were erased or retired
	relocating  int64 // relocated and not yet Moved
}

// Stats says what the FTL has done since New or ResetStats. Counts are of pages
// unless said otherwise.
type Stats struct {
	Programs     []int64 // handed out by Allocate, by host stream
	HostPrograms int64   // their sum
	GCPrograms   int64   // programmed to move data out of blocks collected for space
	WearPrograms int64   // programmed to move data out of the least worn blocks
	Raced        int64   // of these two, moves that the host overtook while they were under way
	Erases       int64   // blocks
	Retired      int64   // blocks
	Collections  int64   // victims started for space
	Relocations  int64   // victims started for wear
}

// WAF is the write amplification: pages programmed for each page the host side
// programmed (mapping pages included there, if the driver writes any). It is 1
// while the host has written nothing.
func (s Stats) WAF() float64 {
	if s.HostPrograms == 0 {
		return 1
	}
	return float64(s.HostPrograms+s.GCPrograms+s.WearPrograms) / float64(s.HostPrograms)
}

// Sub returns what happened between the earlier o and s.
func (s Stats) Sub(o Stats) Stats {
	d := Stats{
		Programs:     slices.Clone(s.Programs),
		HostPrograms: s.HostPrograms - o.HostPrograms,
		GCPrograms:   s.GCPrograms - o.GCPrograms,
		WearPrograms: s.WearPrograms - o.WearPrograms,
		Raced:        s.Raced - o.Raced,
		Erases:       s.Erases - o.Erases,
		Retired:      s.Retired - o.Retired,
		Collections:  s.Collections - o.Collections,
		Relocations:  s.Relocations - o.Relocations,
	}
	for i, n := range o.Programs {
		d.Programs[i] -= n
	}
	return d
}

// Add returns what two translation layers did together. Streams of the same number are added up.
func (s Stats) Add(o Stats) Stats {
	d := Stats{
		Programs:     slices.Clone(s.Programs),
		HostPrograms: s.HostPrograms + o.HostPrograms,
		GCPrograms:   s.GCPrograms + o.GCPrograms,
		WearPrograms: s.WearPrograms + o.WearPrograms,
		Raced:        s.Raced + o.Raced,
		Erases:       s.Erases + o.Erases,
		Retired:      s.Retired + o.Retired,
		Collections:  s.Collections + o.Collections,
		Relocations:  s.Relocations + o.Relocations,
	}
	for i, n := range o.Programs {
		if i == len(d.Programs) {
			d.Programs = append(d.Programs, 0)
		}
		d.Programs[i] += n
	}
	return d
}

// Stats returns what the FTL has done since New.
func (f *FTL) Stats() Stats {
	s := Stats{
		Programs:     slices.Clone(f.programs),
		GCPrograms:   f.moved[GC],
		WearPrograms: f.moved[WearLevelling],
		Raced:        f.counts.raced,
		Erases:       f.counts.erases,
		Retired:      f.counts.retired,
		Collections:  f.counts.collections[GC],
		Relocations:  f.counts.collections[WearLevelling],
	}
	for _, n := range f.programs {
		s.HostPrograms += n
	}
	return s
}
