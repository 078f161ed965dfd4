package scenario

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strings"

	"farflash/internal/spelling"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/scenario/shape"
	"farflash/workload/synth"
	"farflash/workload/trace"
)

// check validates relations between keys, which no single key can show, and completes the drive. It adds errors to d.
func (s *Scenario) check(d *shape.Decoder) {
	at := func(path string) shape.Position { return s.Where(path) }
	s.checkCite(d)
	if s.HostRAID != nil && (s.ObjectCluster != nil || !s.HasDrives()) {
		d.Fail(at("host_raid"),
			"host_raid: no drives for a volume; add ssd or targets, or leave it out")
	}
	if s.ObjectCluster != nil {
		s.checkCluster(d)
		return
	}
	if len(s.Targets) > 0 {
		s.checkSystem(d)
		if len(d.Errs) == 0 {
			s.checkFabric(d)
			s.checkPlaces(d)
		}
		for i := range s.Workload {
			s.checkRemote(d, i)
		}
	} else {
		s.checkWithoutTargets(d)
	}
	if s.NetworkAlone() {
		if s.SSD != nil || len(s.Workload) > 0 {
			d.Fail(at(""), "a fabric section with a drive or a workload, and no targets; put the drives behind the "+
				"network, such as \"targets: [{count: 2, ssds: 4, ssd: tlc-enterprise}]\", or leave out ssd and "+
				"workload, or fabric")
		}
		s.checkFabric(d)
		s.Measure.check(d, at("measure"))
		s.Measure.checkFiles(d, s.Where, true, false)
		return
	}
	if len(s.Flows) > 0 && s.Fabric == nil {
		d.Fail(at("flows"), "flows need a network; add a fabric section, such as \"fabric: {topology: {star: {hosts: "+
			"9}}}\"")
	}
	if !s.HasDrives() && len(s.Targets) == 0 {
		d.Fail(at(""), "no ssd and no fabric section, so there is nothing to simulate; add one, such as \"ssd: "+
			"mqsim-default\"")
		if len(s.Workload) == 0 {
			return
		}
	}
	if len(s.Workload) == 0 {
		d.Fail(at(""), "no workload; add one, such as \"workload: [{trace: hm_0.csv}]\"")
	}
	if s.SSD != nil && len(s.Targets) == 0 {
		s.SSD.finish(d, "ssd")
		if s.HostRAID != nil {
			s.refuseZones(d, s.SSD, "ssd", "host_raid spreads addresses over drives, which zones do not allow")
		} else if s.RateControl != nil {
			s.refuseZones(d, s.SSD, "ssd",
				"rate_control has separate queues for reads and writes, which reorder commands that change a zone")
		}
	}
	s.checkRAID(d)
	drive := s.HasDrives() && len(d.Errs) == 0
	for i := range s.Workload {
		s.checkLoad(d, i, drive)
	}
	s.Measure.check(d, at("measure"))
	s.Measure.checkFiles(d, s.Where, false, len(s.Targets) > 0)
	if names, _, _ := s.Tenants(); s.Measure.Alone && len(names) < 2 {
		d.Fail(s.Where("measure.alone"),
			"measure.alone: the only tenant is alone already; leave it out, or add an item to workload")
	}
	if s.Measure.Alone && len(s.Targets) > 0 && s.Coupling.Mode != Coupled {
		d.Fail(s.Where("measure.alone"),
			"measure.alone: drives and network in turns have no figures by tenant; leave it out, or use "+
				"coupling.mode: coupled")
	}
	if s.Measure.Timeline && len(s.Targets) > 0 && s.Coupling.Mode == IterativeOnly {
		d.Fail(s.Where("measure.timeline"),
			"measure.timeline: drives and network in turns have separate clocks and no common timeline; "+
				"leave it out, or use coupling.mode coupled or both")
	}
}

// Where returns the position of a path, or of the nearest section in the file.
func (s *Scenario) Where(path string) shape.Position { return s.set.At(path) }

// finish applies compat and validates the drive as a whole.
func (x *Drive) finish(d *shape.Decoder, at string) {
	if x.Compat == CompatMQSim {
		was := x.Config
		x.Config = ssd.MQSim(x.Config)
		language.Differing(&was, &x.Config, at, func(path, now string) {
			if p, ok := d.Set[path]; ok {
				if now == "null" {
					d.Fail(p, "%s: not available with compat: mqsim, since MQSim's flash lacks it; leave "+
						"it out or set compat: none", path)
					return
				}
				d.Fail(p, "%s: compat: mqsim always sets this to %s; leave it out or set compat: none", path, now)
			}
		})
	}
	d.Wrong(at, x.Config.Validate())
}

// checkLoad validates a flow; drive reports whether there is a drive to check it against.
func (s *Scenario) checkLoad(d *shape.Decoder, i int, drive bool) {
	l := &s.Workload[i]
	path := fmt.Sprintf("workload[%d]", i)
	fail := func(key, format string, args ...any) {
		p := path
		if key != "" {
			p = units.JoinPath(path, key)
		}
		d.Fail(s.Where(p), p+": "+format, args...)
	}
	sources := l.sources(false)
	switch len(sources) {
	case 0:
		fail("", "no source of requests; add one of %s", spelling.OrList(l.sources(true)))
	case 1:
	default:
		fail("", "%s exclude each other; make each an item of the list", strings.Join(sources, " and "))
	}
	if l.Closed < 0 || l.Closed > 1<<20 {
		fail("closed", "%d outstanding requests are not possible; use 1 to 1048576, or 0 for an open loop", l.Closed)
	}
	if l.Until > 0 && l.Until <= l.Start {
		fail("until", "the item starts at %v and stops at %v; use a later until, or an earlier start",
			l.Start, l.Until)
	}
	if l.Limit < 0 {
		fail("limit", "%d is not possible; 0 is no limit", l.Limit)
	}
	if drive {
		if n := max(len(s.DriveOf(0).Namespaces), 1); l.Namespace < 0 || l.Namespace >= n {
			fail("namespace", "the drive has no namespace %d; it has 0 to %d", l.Namespace, n-1)
		} else if most := s.streams(l.Namespace); l.Placement < 0 || l.Placement >= most {
			fail("placement", "%d is not possible: namespace %d distinguishes 0 to %d; raise "+
				"ssd.namespaces[%d].streams, or ssd.fdp.handles", l.Placement, l.Namespace, most-1, l.Namespace)
		} else if most := s.DriveOf(0).Groups(); l.Group < 0 || l.Group >= most {
			fail("group", "%d is not possible: the drive has reclaim groups 0 to %d; raise ssd.fdp.groups", l.Group,
				most-1)
		}
	}
	there := drive && l.Namespace >= 0 && l.Namespace < max(len(s.DriveOf(0).Namespaces), 1)
	if there {
		s.checkZones(i, fail)
	}
	q := &l.Queue
	if q.Depth != 0 && (q.Depth < 2 || q.Depth > 65536) {
		fail("queue.depth", "%d entries are not possible; use 2 to 65536, or 0 for the drive's own", q.Depth)
	}
	if q.Weight < 1 || q.Weight > 256 {
		fail("queue.weight", "%d is not possible; use 1 to 256", q.Weight)
	}
	if q.InFlight < 0 || q.InFlight > 65536 {
		fail("queue.in_flight", "%d is not possible; use 1 to 65536, or 0 for the drive's fetch_size", q.InFlight)
	}
	if l.Trace != nil {
		s.checkTrace(l.Trace, fail)
	}
	s.checkOrder(i, fail)
	s.checkBound(i, fail)
	if l.Synthetic != nil && len(sources) == 1 {
		if l.Synthetic.Requests == 0 && l.Synthetic.Duration == 0 && l.Limit == 0 && l.Until == 0 &&
			s.Measure.Until.Time == 0 && !s.Measure.Until.Steady {
			fail("synthetic", "it never ends; set synthetic.requests, synthetic.duration, limit, until, or "+
				"measure.until")
		}
		if x := l.Synthetic; x.Reads != nil && x.Writes != nil && (l.Closed > 0 || x.Interarrival.Mean != 0) {
			if _, said := d.Set[path+".synthetic.read_fraction"]; !said {
				fail("synthetic", "the share of reads is missing; add "+
					"read_fraction, such as \"read_fraction: 70%%\"")
			}
		}
		s.checkPatterns(path, fail)
		if there {
			if _, err := synth.New(s.SyntheticConfig(i, 0, 0, 1, s.Addressable(l.Namespace))); err != nil {
				fail("synthetic", "%v", err)
			}
		}
	}
	if l.Fio != nil && there {
		s.checkFio(d, l, fail)
	}
	if l.MQSim != nil {
		l.MQSim.check(l, fail)
	}
}

// ofPattern lists the address keys that apply to a single pattern.
var ofPattern = []struct {
	key     string
	pattern synth.Pattern
}{{"theta", synth.Zipf}, {"h", synth.Pareto}, {"hot_requests", synth.HotCold}, {"hot_space", synth.HotCold}}

// checkPatterns rejects pattern parameters without a pattern, because addresses would be uniform regardless. Parameters
// that belong to another pattern than the one given are accepted: a file whose pattern is changed on the command line
// serves for comparisons.
func (s *Scenario) checkPatterns(path string, fail func(key, format string, args ...any)) {
	for _, kind := range []string{"reads", "writes"} {
		addresses := "synthetic." + kind + ".addresses"
		if _, said := s.set[units.JoinPath(path, addresses+".pattern")]; said {
			continue
		}
		for _, x := range ofPattern {
			key := addresses + "." + x.key
			if _, said := s.set[units.JoinPath(path, key)]; said {
				fail(key, "only pattern %v uses it, and the default is uniform; add "+
					"\"pattern: %v\"", x.pattern, x.pattern)
			}
		}
	}
}

// Addressable returns a namespace's bytes for the host, over all drives that it is spread over.
func (s *Scenario) Addressable(namespace int) units.Bytes {
	each := s.DriveOf(0).Addressable(namespace)
	for i := range s.Targets {
		each = min(each, s.DriveOf(i).Addressable(namespace))
	}
	part, times := units.Sector, 1
	switch _, drives := s.CountTargets(); {
	case s.HostRAID != nil:
		part, times = s.HostRAID.Chunk, s.HostRAID.Data(s.members())
	case drives > 0 && s.Route.Target.By == ByStripe:
		part, times = s.Route.Target.Stripe, drives
	}
	if part > 0 { // check reports other values
		each -= each % part
	}
	return each * units.Bytes(times)
}

// Addressable returns the bytes of a namespace for a host.
func (x *Drive) Addressable(namespace int) units.Bytes {
	c := x.Config
	if x.Compat == CompatMQSim {
		c = ssd.MQSim(c)
	}
	return c.CapacityOf(namespace)
}

// sources lists the keys that name a request source: those that are present, or all.
func (l *Load) sources(all bool) []string {
	var keys []string
	for _, x := range []struct {
		key   string
		there bool
	}{{"trace", l.Trace != nil}, {"synthetic", l.Synthetic != nil}, {"fio", l.Fio != nil}, {"mqsim", l.MQSim != nil}} {
		if all || x.there {
			keys = append(keys, x.key)
		}
	}
	return keys
}

// streams is the number of placement hints that a namespace distinguishes.
func (s *Scenario) streams(namespace int) int {
	return s.DriveOf(0).Placements(namespace)
}

// checkFio reads the job file and uses its ramp time as the warm-up, unless the scenario has one.
func (s *Scenario) checkFio(d *shape.Decoder, l *Load, fail func(key, format string, args ...any)) {
	if l.Fio.File == "" {
		fail("fio.file", "no job file; give its path")
		return
	}
	if l.Closed != 0 {
		fail("closed", "the job file's iodepth sets the number of outstanding requests; leave closed out")
	}
	flows, err := ReadFio(s.Path(l.Fio.File), l.Fio.Job, s.Addressable(l.Namespace))
	if err != nil {
		fail("fio", "%v", err)
		return
	}
	if _, ok := d.Set["measure.warm_up"]; ok {
		return
	}
	for _, f := range flows {
		if f.Ramp > s.Measure.WarmUp.Time {
			s.Measure.WarmUp = WarmUp{Time: f.Ramp}
		}
	}
}

func (s *Scenario) checkTrace(t *Trace, fail func(key, format string, args ...any)) {
	if t.File == "" {
		fail("trace.file", "no trace; give its path")
	} else if parts, err := trace.Parts(s.Path(t.File)); err != nil {
		fail("trace.file", "%v", err)
	} else {
		for _, p := range parts {
			st, err := os.Stat(p)
			switch {
			case err != nil && t.File == "-":
				fail("trace.file", "standard input can be read once, and a run reads its trace more than once; write "+
					"it to a file first, as in: blkparse -i sda > sda.txt")
			case err != nil:
				fail("trace.file", "%v", err)
			case st.IsDir():
				fail("trace.file", "%s is a folder; give the path of a trace", t.File)
			case !st.Mode().IsRegular():
				fail("trace.file", "%s is a pipe or a device: it can be read once, and a run reads its trace more "+
					"than once; write it to a file first", t.File)
			}
		}
	}
	if o := t.Options(1); o.CSV != (trace.CSV{}) || t.Format == trace.CSVTable {
		if t.Format != trace.Auto && t.Format != trace.CSVTable {
			fail("trace.columns",
				"columns are for tables, and format %v has its own; leave out one of the two", t.Format)
		} else if err := o.CSV.Validate(); err != nil {
			var at *units.FieldError
			if errors.As(err, &at) {
				fail("trace."+at.Path, "%s", at.Msg)
			} else {
				fail("trace", "%v", err)
			}
		}
	}
	if !(t.Scale > 0 && t.Scale <= 1e6) {
		fail("trace.scale", "%v is not possible; use more than 0: 0.5 replays twice as fast", t.Scale)
	}
	if !(t.Part > 0 && t.Part <= 1) {
		fail("trace.part", "%v is not possible; use more than 0%% up to 100%%", t.Part)
	}
	if t.Loop < 1 {
		fail("trace.loop", "%d is not possible; use 1 or more", t.Loop)
	}
	if t.Window < 0 {
		fail("trace.window", "%d is not possible; 0 is the format's own", t.Window)
	}
	if t.SkipBad < 0 {
		fail("trace.skip_bad", "%d is not possible; use the number of bad records that may be skipped", t.SkipBad)
	}
}

// Choices is d of the d-choices policy, as the drive uses it.
func (x *Drive) Choices() int {
	if c := x.Collection.Choices; c > 0 {
		return c
	}
	return max(bits.Len(uint(x.Geometry.BlocksPerPlane))-1, 1)
}
