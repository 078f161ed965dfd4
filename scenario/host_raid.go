package scenario

import (
	"fmt"

	"farflash/block/raid"
	"farflash/scenario/shape"
)

// HostRAID is a volume that a host makes of several drives, in software.
type HostRAID struct {
	// Drives is the number of local drives. Leave it out in a system: all drives of all targets are members.
	Drives int
	raid.Config
}

// members returns the number of drives in the volume.
func (s *Scenario) members() int {
	if len(s.Targets) > 0 {
		_, n := s.CountTargets()
		return n
	}
	if s.HostRAID != nil {
		return s.HostRAID.Drives
	}
	return 1
}

// RAID returns the volume's configuration, within the protocol's largest command.
func (s *Scenario) RAID() raid.Config {
	c := s.HostRAID.Config
	if len(s.Targets) > 0 && s.Protocol.Capsules() {
		c.MaxTransfer = s.NVMf.MaxTransfer
	}
	return c
}

// checkRAID validates the volume of several drives, and the sections that cannot be combined with one.
func (s *Scenario) checkRAID(d *shape.Decoder) {
	x := s.HostRAID
	if x == nil {
		return
	}
	fail := func(path, format string, args ...any) { d.Fail(s.Where(path), path+": "+format, args...) }
	system := len(s.Targets) > 0
	switch {
	case system && x.Drives != 0:
		fail("host_raid.drives", "the members are all drives of the targets; leave it out")
	case !system && (x.Drives < 1 || x.Drives > 255):
		fail("host_raid.drives", "%d is not possible; use 1 to 255, such as 4", x.Drives)
	}
	if len(d.Errs) > 0 {
		return
	}
	c := s.RAID()
	d.Wrong("host_raid", c.Validate(s.members()))
	if system {
		if s.Initiators != 1 {
			fail("host_raid", "one host must order all writes of a volume, and there are "+
				"%d initiators; use initiators: 1", s.Initiators)
		}
		if _, said := d.Set["route.target"]; said {
			fail("route.target", "host_raid determines where data are stored; leave it out")
		}
		if s.Coupling.Mode != Coupled {
			fail("host_raid", "drives and network in turns do not see when commands complete, and some commands follow "+
				"from others; use coupling.mode: coupled")
		}
	}
	for i := range max(len(s.Targets), 1) {
		if x := s.DriveOf(i); x != nil && len(x.Namespaces) > 0 {
			fail("host_raid", "its members are whole drives; leave out the drive's namespaces")
			break
		}
	}
	if s.RateControl != nil && !system {
		fail("rate_control", "it divides one local drive; leave it out with host_raid")
	}
	if s.Measure.Timeline {
		fail("measure.timeline", "it follows a request to one drive; leave it out with host_raid")
	}
	if s.Measure.Anatomy {
		fail("measure.anatomy", "it describes one drive; leave it out with host_raid")
	}
}

// String describes the volume.
func (x *HostRAID) String() string {
	name := fmt.Sprintf("RAID %d", x.Level)
	if x.Level == 1 && x.Copies > 2 {
		name += fmt.Sprintf(" of %d copies", x.Copies)
	}
	if n := len(x.Failed); n > 0 {
		name += fmt.Sprintf(", %d failed", n)
	}
	return name + ", chunks of " + x.Chunk.String()
}
