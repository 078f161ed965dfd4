package scenario

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/scenario/shape"
	"farflash/workload/synth"
)

// Zones is how an item's writes use the zones of a zoned namespace. They cycle through the zones in their address
// range, in order, and reset a zone before rewriting it. Initiators that each run the whole workload share the zones
// out among them.
type Zones struct {
	// Append makes each write a Zone Append, for which the drive chooses the address within the zone; a system's
	// initiators then share zones. Otherwise a zone has one initiator and at most one write in flight.
	Append bool
	// AtOnce is the number of zones that are written at the same time, one request to each in turn.
	AtOnce int
}

// checkZones validates the items against the zones of a drive.
func (s *Scenario) checkZones(i int, fail func(key, format string, args ...any)) {
	l := &s.Workload[i]
	z := s.zonesOf(l.Namespace)
	if z.Count == 0 {
		if l.Zones != nil {
			fail("zones", "namespace %d is not zoned; add ssd.zones, or leave it out", l.Namespace)
		}
		return
	}
	switch {
	case l.Fio != nil, l.MQSim != nil:
		fail("", "namespace %d is zoned, and its writes must follow zones; use synthetic with zones, or a trace",
			l.Namespace)
		return
	case l.Addresses == AddressFold:
		fail("addresses", "writes to zones must be in order, which folding would change; use addresses: error")
	case l.Trace != nil && len(s.Targets) > 0:
		fail("trace", "behind a network its volumes could share a zone, and its requests would be split; use "+
			"synthetic with zones, or leave out ssd.zones")
	case l.Trace != nil && l.Zones != nil:
		fail("zones", "a trace determines which zones it writes; leave it out")
	case l.Synthetic == nil || l.Synthetic.Writes == nil:
		if l.Zones != nil && l.Trace == nil {
			fail("zones", "no writes; leave it out")
		}
		return
	case l.Zones == nil:
		fail("", "namespace %d is zoned, and its writes must follow zones; add zones, such as \"zones: {append: "+
			"true}\"", l.Namespace)
	}
	if l.Zones == nil || l.Synthetic == nil || l.Synthetic.Writes == nil {
		return
	}
	w, grain := l.Synthetic.Writes, s.grain()
	a := &w.Addresses
	if size, whole := wholeBlocks(&w.Size, grain); !whole {
		fail("synthetic.writes.size",
			"%v is not possible: a zoned namespace has blocks of %v; use a multiple, or a granule that is one", size,
			grain)
	} else if most := units.Bytes(z.MaxAppend); most > 0 && l.Zones.Append && size > most {
		fail("synthetic.writes.size",
			"%v is not possible: an append is at most %v (ssd.zones.max_append); use less, or set its max", size,
			most)
	} else if most := s.NVMf.MaxTransfer; len(s.Targets) > 0 && size > most {
		fail("synthetic.writes.size",
			"%v is not possible: a write to a zone is one command, of at most %v (nvmf.max_transfer); use less, or "+
				"set its max", size, most)
	}
	if a.Start%units.Bytes(z.Size) != 0 ||
		a.Space != 0 && (a.Space < units.Bytes(z.Size) || a.Space%units.Bytes(z.Size) != 0) {
		fail("synthetic.writes.addresses", "%v from %v on is not a whole number of zones of %v", a.Space, a.Start,
			units.Bytes(z.Size))
		return
	}
	count := z.Count - int(a.Start/units.Bytes(z.Size))
	if a.Space != 0 {
		count = min(count, int(a.Space/units.Bytes(z.Size)))
	}
	if j := s.meetsInZones(i); j == i {
		fail("zones", "its copies write the same zones in different orders; use append: true, or a "+
			"copies.stride of at least its address range")
		return
	} else if j >= 0 {
		fail("zones", "it and %s write the same zones in different orders; give them separate "+
			"addresses, use append: true in both, or after to have one follow the other", s.LoadName(j))
		return
	}
	if n := s.ownWorkloads(); n > 1 && l.Zones.AtOnce > count/n {
		fail("zones.at_once",
			"%d is not possible: %d initiators share the %d zones in its addresses; use fewer, more addresses, or "+
				"another route.initiator than each", l.Zones.AtOnce, n, count)
		return
	}
	if l.Zones.AtOnce > block.MostOpenZones {
		fail("zones.at_once", "%d is not possible; use 1 to %d", l.Zones.AtOnce, block.MostOpenZones)
		return
	}
	if l.Zones.AtOnce < 1 || l.Zones.AtOnce > max(count, 1) {
		fail("zones.at_once", "%d is not possible; use 1 to the number of zones in its addresses, %d",
			l.Zones.AtOnce, count)
		return
	}
	if all := s.zonesAtOnce(l.Namespace); z.MaxActive > 0 && 2*all > z.MaxActive {
		fail("zones.at_once",
			"the items of namespace %d write %d zones at once, each of which may still be active when the next one "+
				"starts, and %d may be active; lower at_once or raise ssd.zones.max_active", l.Namespace, all,
			z.MaxActive)
	}
}

// meetsInZones returns the number of the first item, up to and including i, that writes to i's zones at the same time
// where the order of writes would be lost; -1 if there is none.
func (s *Scenario) meetsInZones(i int) int {
	l := &s.Workload[i]
	start, end, apart := s.written(i)
	if !apart && !l.Zones.Append {
		return i
	}
	for j := range i {
		x := &s.Workload[j]
		if x.Zones == nil || x.Synthetic == nil || x.Synthetic.Writes == nil || x.Namespace != l.Namespace ||
			x.Zones.Append && l.Zones.Append || s.Wave(j) != s.Wave(i) {
			continue
		}
		if from, to, _ := s.written(j); from < end && start < to {
			return j
		}
	}
	return -1
}

// written returns the address range that an item writes, and whether its copies write disjoint ranges.
func (s *Scenario) written(i int) (start, end units.Bytes, apart bool) {
	l := &s.Workload[i]
	z := s.zonesOf(l.Namespace)
	a := &l.Synthetic.Writes.Addresses
	start, end = a.Start, units.Bytes(z.Size)*units.Bytes(z.Count)
	if a.Space != 0 {
		end = a.Start + a.Space
	}
	if l.Copies == nil || l.Copies.Count < 2 {
		return start, end, true
	}
	apart = l.Copies.Stride >= end-start
	return start, end + units.Bytes(l.Copies.Count-1)*l.Copies.Stride, apart
}

// wholeBlocks reports whether all sizes are multiples of a block, and returns the largest given size, or one that is
// not a multiple.
func wholeBlocks(s *synth.Size, grain units.Bytes) (size units.Bytes, whole bool) {
	if s.Mix != "" {
		sizes, _, _ := s.Mix.Parts() // the generator reports an invalid mixture
		for _, n := range sizes {
			if n%grain != 0 {
				return n, false
			}
			size = max(size, n)
		}
		return size, true
	}
	if s.Shape == (synth.Shape{}) || s.Kind == synth.Constant {
		return s.Mean, s.Mean%grain == 0
	}
	if s.Granule == 0 || s.Granule%grain != 0 {
		return max(s.Granule, units.Sector), false
	}
	return s.Largest(), true
}

// grain is the size that writes to zones must be multiples of.
func (s *Scenario) grain() units.Bytes {
	x := s.DriveOf(0)
	if g := units.Bytes(x.Mapping.Grain); g > 0 && g < x.Geometry.PageSize {
		return g
	}
	return x.Geometry.PageSize
}

// zonesOf returns the zones of the addressable part of a namespace: those of a drive, or those over all drives behind a
// network if stripes of whole zones span them.
func (s *Scenario) zonesOf(namespace int) block.Zones {
	z := s.DriveOf(0).ZonesOf(namespace)
	if _, drives := s.CountTargets(); drives > 0 && s.Route.Target.By == ByStripe && z.Count > 0 {
		z.Count -= z.Count % int(int64(s.Route.Target.Stripe)/z.Size)
		z.Count *= drives
	}
	return z
}

// ownWorkloads returns how many times the workload runs: once, or once for each initiator.
func (s *Scenario) ownWorkloads() int {
	if len(s.Targets) > 0 && s.Route.Initiator == InitiatorEach {
		return s.Initiators
	}
	return 1
}

// checkZonesBehind validates zones on a system's drives: each zone must lie in one drive, and its hosts must receive
// each write's completion.
func (s *Scenario) checkZonesBehind(fail func(path, format string, args ...any)) {
	at := ""
	for i := range s.Targets {
		if s.DriveOf(i).ZonesOf(0).Count > 0 {
			at = fmt.Sprintf("targets[%d]", i)
			break
		}
	}
	if at == "" {
		return
	}
	if s.SameDrive() == nil {
		fail(at, "its zones would span the drives of all targets; use one ssd for all, or leave out "+
			"ssd.zones")
		return
	}
	if s.HostRAID != nil {
		fail("host_raid", "it spreads addresses over drives, which ssd.zones does not allow; leave out one of them")
	}
	if s.Coupling.Mode != Coupled {
		fail("coupling.mode",
			"%v is not possible with ssd.zones: writes to a zone wait for others to complete, which drives and "+
				"network in turns do not see while they run; use coupled", s.Coupling.Mode)
	}
	if !s.Protocol.Capsules() {
		fail("protocol", "%v is not possible with ssd.zones: its writes have no response to report the address of an append "+
			"or to release the next write; use nvmeof or nvme-tcp", s.Protocol)
	}
	if z, r := s.DriveOf(0).ZonesOf(0), &s.Route.Target; r.By == ByStripe && int64(r.Stripe)%z.Size != 0 {
		fail("route.target.stripe",
			"%v is not possible: a zone is stored on one drive; use %v, the size of a zone, or a multiple", r.Stripe,
			units.Bytes(z.Size))
	}
}

// zonesAtOnce returns the number of zones of a namespace that all items write at once.
func (s *Scenario) zonesAtOnce(namespace int) (n int) {
	for i := range s.Workload {
		if l := &s.Workload[i]; l.Namespace == namespace && l.Zones != nil {
			n += l.Zones.AtOnce * max(1, l.Count()) * s.ownWorkloads()
		}
	}
	return n
}

// refuseZones rejects zones where a drive cannot have them.
func (s *Scenario) refuseZones(d *shape.Decoder, x *Drive, path, why string) {
	if x != nil && x.Zones != nil {
		d.Fail(s.Where(path+".zones"), "%s.zones: %s; leave it out", path, why)
	}
}
