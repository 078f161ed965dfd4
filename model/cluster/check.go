package cluster

import (
	"farflash/model/cluster/put"
	"math"

	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
)

// Validation of parts of a configuration, and values derived from it.

// copies returns the number of targets that store a part of each chunk.
func (c *Config) copies() int {
	if c.Code.Data > 0 {
		return c.Code.Data + c.Code.Parity
	}
	return c.Replicas
}

// piece returns the size that each of them stores.
func (c *Config) piece() units.Bytes {
	return c.pieceOf(c.Chunk)
}

// quorum returns the number of acknowledgements that complete a put.
func (c *Cluster) quorum() int {
	if c.cfg.Quorum > 0 {
		return min(c.cfg.Quorum, c.copies)
	}
	return c.copies
}

// pieces returns the number of targets that a chunk is read from.
func (c *Config) pieces() int { return max(c.Code.Data, 1) }

// candidates returns the number of groups that may store a chunk, or 0 for protocols without groups.
func (c *Config) candidates() int {
	switch {
	case c.Protocol.traits().Several:
		return c.Groups
	case c.Protocol.traits().Finds == put.FindsBidders:
		return 1
	}
	return 0
}

// hedgeAfter returns the delay after which a hedged read asks another target.
func (c *Config) hedgeAfter(d *reserve.Durations) units.Duration {
	if c.HedgeAfter > 0 {
		return c.HedgeAfter
	}
	return 2 * (2*(d.Control+d.Trip) + d.DiskChunk + d.Send(c.piece(), d.Effective))
}

func (c *Config) checkCode(f *units.Faults) {
	k := &c.Code
	if k.Data == 0 {
		f.Hold(k.Parity == 0, "code.parity", "%d pieces of parity for no data; give data, such as 4", k.Parity)
		return
	}
	f.Hold(k.Data >= 1 && k.Parity >= 0 && k.Data+k.Parity <= maxReplicas, "code",
		"%d+%d is not possible; use at most %d pieces", k.Data, k.Parity, maxReplicas)
	f.Hold(!c.Protocol.traits().Multicasts, "code",
		"%v sends the same to all targets, and the pieces of a code differ; use replicast-h or pull", c.Protocol)
	f.Hold(c.Protocol.traits().Finds != put.FindsOwn, "code",
		"%v puts a chunk to one target; leave it out, or use another protocol", c.Protocol)
	f.Hold(units.Bytes(k.Data) <= c.Chunk, "code.data", "%d pieces of %v are empty", k.Data, c.Chunk)
}

func (c *Config) checkLoad(f *units.Faults) {
	l := &c.Load
	f.Hold(l.Rate >= 0 && l.Rate <= 1e12 && !math.IsNaN(l.Rate), "load.rate",
		"%v is not possible; use chunks a second, such as 50000", l.Rate)
	f.Hold(l.Rate == 0 || l.Share == 0, "load.share", "the load is given twice; leave out rate or share")
	f.Hold(l.Share <= 10, "load.share", "%v is not possible; use a share of the cluster's limit, such as 90%%",
		l.Share)
	c.checkBursts(f)
	f.Hold(c.Reads <= 1, "reads", "%v is not possible; use 0%% to 100%%", c.Reads)
	f.Hold(c.Objects >= 1 && c.Objects <= 1<<28, "objects", "%d is not possible; use 1 to %d", c.Objects, 1<<28)
	f.Hold(c.HedgeAfter >= 0, "hedge_after", "%v is not possible; use a time such as 2ms", c.HedgeAfter)
	f.Hold(c.Read != ReadHedged && c.Read != ReadTied || c.copies() > c.pieces(), "read",
		"%v needs another target to ask, and a chunk is read from all %d that have it", c.Read, c.pieces())
	f.Hold(c.Reads == 0 || c.Control.Queued, "reads",
		"reads need links that carry one frame at a time; use control.queued: true")
	f.Hold(c.Reads == 0 || c.Protocol.traits().Finds != put.FindsOwn, "reads",
		"the gateways of %v only write, each to its own target; leave it out, or use another protocol", c.Protocol)
	f.Hold(!l.open() || c.Control.Queued || c.Outstanding == 1, "load", "an open loop needs control.queued: true")
	f.Hold(c.Choices >= 1 && c.Choices*c.copies() <= put.MaxCandidates, "choices", "%d are not possible; use 1 to %d",
		c.Choices, put.MaxCandidates/max(c.copies(), 1))
	f.Hold(c.Quorum == 0 || c.Quorum >= c.pieces() && c.Quorum <= c.copies(), "quorum",
		"%d are not possible: a chunk has %d pieces, %d of which restore it; use %d to %d, or 0 for all", c.Quorum,
		c.copies(), c.pieces(), c.pieces(), c.copies())
	f.Hold(c.Quorum == 0 || c.Compat == CompatNone, "quorum",
		"SURGE waits for all replicas; leave it out, or use compat: none")
	f.Hold(c.Choices == 1 || c.Control.Queued, "choices",
		"queries need links that carry one frame at a time; use control.queued: true")
}

func (c *Config) checkKinds(f *units.Faults) {
	sum := units.Fraction(0)
	for _, k := range c.Disk.Kinds {
		f.Hold(k.Share > 0 && k.Share <= 1, "disk.kinds", "a share of %v is not possible; use above 0%% to 100%%",
			k.Share)
		f.Hold(k.Rate >= 0, "disk.kinds", "a rate of %v is not possible; use a rate such as 200MiB/s", k.Rate)
		f.Hold(k.Weight >= 0 && k.Weight <= 1e6 && !math.IsNaN(k.Weight), "disk.kinds",
			"a weight of %v is not possible; use a number such as 2", k.Weight)
		f.Hold(k.Weight == 0 || k.Weight == 1 || c.Placement != PlaceJump, "placement",
			"jump has no weights, and disk.kinds sets some; use hrw, ring or straw2")
		sum += k.Share
	}
	f.Hold(sum <= 1+1e-9, "disk.kinds", "the shares add up to %v; use at most 100%%", sum)
}

// lossy reports whether messages can be lost.
func (c *Config) lossy() bool { return c.Link.Loss > 0 || len(c.Failures) > 0 }

func (c *Config) checkCompat(f *units.Faults) {
	if c.Compat == CompatNone {
		return
	}
	build := c.Protocol.traits().Build
	f.Hold(build != CompatNone, "compat", "SURGE has no %v; leave it out", c.Protocol)
	f.Hold(c.Compat >= build, "compat", "%v has no %v; use %v", c.Compat, c.Protocol, build)
	f.Hold(!c.Control.Queued, "control.queued",
		"SURGE's control messages never queue; use false, or compat: none")
}

// checkRacks verifies that the pieces of a chunk fit into distinct racks.
func (c *Config) checkRacks(f *units.Faults) {
	t := c.Protocol.traits()
	f.Hold(c.Racks >= 0 && c.Racks <= c.Targets, "racks", "%d are not possible for %d targets; use 0 for none, to %d",
		c.Racks, c.Targets, c.Targets)
	if c.Racks <= 0 {
		return
	}
	f.Hold(t.Finds != put.FindsOwn, "racks", "the gateways of %v write to one target each; leave it out", c.Protocol)
	f.Hold(c.Compat == CompatNone, "racks", "SURGE has none; leave it out, or use compat: none")
	f.Hold(c.Racks >= c.copies(), "racks", "%d are too few for %d pieces in different ones; use at least %d", c.Racks,
		c.copies(), c.copies())
	if t.Finds == put.FindsPlaced {
		f.Hold(c.Placement != PlaceRandom || t.Build == CompatNone || c.Targets >= 2*c.Racks ||
			c.Racks >= 2*c.copies(), "racks",
			"the next chunk goes to other targets than the last, for which racks of one target each are too few; use at "+
				"least %d racks, or %d targets", 2*c.copies(), 2*c.Racks)
		return
	}
	f.Hold(t.Several || c.Group <= c.Racks, "racks",
		"a group of %d has two targets in one of %d racks; use at least %d racks, or smaller groups", c.Group,
		c.Racks, c.Group)
	f.Hold(!t.Several || min(c.Group, c.Racks) >= c.copies(), "racks",
		"a group of %d spans %d racks, too few for %d pieces; use groups of at least %d", c.Group,
		min(c.Group, c.Racks), c.copies(), c.copies())
}

// checkTargets validates the settings of target selection and of sending.
func (c *Config) checkTargets(f *units.Faults) {
	t := c.Protocol.traits()
	f.Hold(!c.Choosy || t.Sequential, "choosy",
		"%v does not choose among consecutive windows; leave it out, or use replicast-h", c.Protocol)
	f.Hold(!t.Queued || c.Control.Queued, "control.queued", "%v needs links that carry one frame at a time; use true",
		c.Protocol)
	f.Hold(c.Overcommit >= 1 && c.Overcommit <= 1024, "overcommit", "%d is not possible; use 1 to 1024", c.Overcommit)
	f.Hold(c.Link.Mark >= 0, "link.mark", "%v is not possible; use a size such as 90KB", c.Link.Mark)
	if t.Finds == put.FindsPlaced {
		f.Hold(c.Placement != PlaceRandom || t.Build == CompatNone || c.Targets >= 2*c.copies(), "targets",
			"%d are too few: the next chunk goes to %d targets other than the last; use at least %d", c.Targets, c.copies(),
			2*c.copies())
		return
	}
	f.Hold(c.Placement == PlaceRandom, "placement", "%v has no effect: %s; leave it out, or use another protocol",
		c.Placement, t.Chosen)
	f.Hold(c.Choices == 1, "choices", "%d have no effect: %s; leave it out, or use another protocol", c.Choices,
		t.Chosen)
	if t.Finds == put.FindsOwn {
		f.Hold(c.Replicas == 1, "replicas", "%d are not possible with %v, whose gateways have one target each; use 1",
			c.Replicas, c.Protocol)
		f.Hold(c.Targets >= c.Gateways, "targets", "%d are too few: each of the %d gateways needs its own",
			c.Targets, c.Gateways)
		return
	}
	f.Hold(max(c.candidates(), 1)*c.Group >= c.copies(), "group", "%d targets cannot store %d replicas",
		max(c.candidates(), 1)*c.Group, c.copies())
	f.Hold(c.Group >= 1 && c.Targets%c.Group == 0, "group",
		"%d does not divide the %d targets; the nearest number of targets that it divides is %d", c.Group, c.Targets,
		put.Nearest(c.Targets, c.Group))
	f.Hold(c.Targets > c.Group, "targets", "%d form one group; Replicast needs at least two, %d targets", c.Targets,
		2*c.Group)
	f.Hold(!t.Several || c.Groups >= 1 && c.Groups <= put.MaxGroups, "groups", "%d are not possible; use 1 to %d",
		c.Groups, put.MaxGroups)
	f.Hold(!t.Several || c.Groups*c.Group <= c.Targets, "groups", "%d groups of %d are more than the %d targets",
		c.Groups, c.Group, c.Targets)
	f.Hold(c.candidates()*c.Group <= put.MaxHeard, "group",
		"%d targets exceed the reach of a multicast; use at most %d", c.candidates()*c.Group, put.MaxHeard)
	f.Hold(c.Control.Share > 0 && c.Control.Share < 1 && c.Control.Share.WholePercent(), "control.share",
		"%v is not possible; use whole per cent from 1%% to 99%%", c.Control.Share)
}
