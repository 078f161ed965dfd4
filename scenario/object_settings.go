package scenario

import (
	"slices"
	"strings"

	"farflash/model/cluster"
	"farflash/model/cluster/durability"
	"farflash/model/cluster/tier"
	"farflash/model/cluster/traffic"
	"farflash/numeric/units"
)

// ObjectCluster describes a cluster and the work of its gateways.
type ObjectCluster struct {
	Protocol ObjectProtocol // Protocol is how chunks are put.
	// Config is the configuration of clusters that put chunks; the others use part of it. Its own Protocol follows that
	// of the scenario.
	cluster.Config
	Tier tier.Policy // Tier is the SSD and the HDDs behind it, for protocol tiering only.
	// Traffic is the events that nodes exchange, for storm, power-of-two, peers, peers-bucket, ping-pong and pipeline
	// only. The defaults are those of SURGE's model.
	Traffic    traffic.Pattern
	Durability Durability // Durability estimates for how many years chunks last.
}

// Durability describes the drives' failures and the repair of lost pieces.
type Durability struct {
	AFR      units.Fraction // AFR is the share of drives that fail in a year; 0 disables the estimate.
	Capacity units.Bytes    // Capacity is the amount of data that each target keeps.
	// Bandwidth is each target's rate for rebuilding lost pieces, reads and writes together.
	Bandwidth units.ByteRate
	Detect    units.Duration // Detect is the time from a failure to the start of the rebuild.
}

// defaultDurability disables the estimate.
var defaultDurability = Durability{Capacity: 8 * units.TB, Bandwidth: 50 * units.ByteRate(units.MB),
	Detect: 10 * 60 * units.Second}

// defaultObjectCluster returns the cluster of cluster.DefaultConfig, with the defaults of SURGE's other models.
func defaultObjectCluster() ObjectCluster {
	c := cluster.DefaultConfig()
	return ObjectCluster{
		Protocol: ObjectProtocol(c.Protocol), Config: c, Tier: tier.DefaultPolicy(),
		Traffic:    traffic.PatternOf(traffic.Storm, c.Targets),
		Durability: defaultDurability,
	}
}

// Puts reports whether chunks are put.
func (c *ObjectCluster) Puts() bool {
	_, ok := c.Protocol.put()
	return ok
}

// TrafficConfig returns the cluster as package traffic models it.
func (c *ObjectCluster) TrafficConfig() traffic.Config {
	return traffic.Config{Pattern: c.Traffic, Gateways: c.Gateways, Targets: c.Targets, Trip: c.Link.Trip,
		Size: c.Control.Unicast}
}

// TierConfig returns the cluster as package tier models it.
func (c *ObjectCluster) TierConfig() tier.Config {
	return tier.Config{Policy: c.Tier, HDDs: c.Targets - 1, Chunk: c.Chunk, Link: c.Link.Effective(),
		Trip: c.Link.Trip, Control: c.Control.Unicast}
}

// Fleet returns the drives for a chunk's pieces, for package durability, and the number of such fleets.
func (c *ObjectCluster) Fleet() (f durability.Fleet, fleets int) {
	d, k := &c.Durability, c.Keeping()
	f = durability.Fleet{Scheme: durability.Scheme{Data: k.Data, Parity: k.Parity}, Nodes: k.Nodes, AFR: d.AFR,
		Spread:  durability.Everywhere,
		Rebuild: durability.Rebuild{Capacity: d.Capacity, Bandwidth: d.Bandwidth, Detection: d.Detect}}
	if k.Scatter > 0 {
		f.Spread, f.Scatter = durability.Copysets, k.Scatter
	}
	f.Chunks = max(1, float64(d.Capacity)*float64(k.Nodes)/float64(k.Piece)/float64(k.Data+k.Parity))
	return f, max(k.Groups, 1)
}

// Validate reports invalid values, each with its key.
func (c *ObjectCluster) Validate() error {
	var f units.Faults
	if c.Puts() {
		f.Within("", c.Config.Validate())
		c.checkDurability(&f)
		return f.Err()
	}
	c.checkUnused(&f)
	if err := f.Err(); err != nil {
		return err
	}
	if c.Protocol != Tiering {
		t := c.TrafficConfig()
		return rekey(t.Validate(), "traffic",
			map[string]string{"gateways": "gateways", "targets": "targets", "trip": "link.trip",
				"size": "control.unicast"})
	}
	f.Hold(c.Gateways == 1, "gateways", "%d are not possible: the tiers of one server have one initiator; use 1",
		c.Gateways)
	f.Hold(c.Targets >= 2, "targets", "%d are too few for an SSD and the HDDs behind it; use at least 2", c.Targets)
	f.Hold(c.Replicas == 1, "replicas", "%d are not possible: a write goes to one device; use 1", c.Replicas)
	f.Within("link", c.Link.CheckOverhead())
	if err := f.Err(); err != nil {
		return err
	}
	t := c.TierConfig()
	return rekey(t.Validate(), "tier",
		map[string]string{"hdds": "targets", "chunk": "chunk", "link": "link.rate", "trip": "link.trip",
			"control": "control.unicast"})
}

// checkUnused rejects keys that apply only to clusters that put chunks.
func (c *ObjectCluster) checkUnused(f *units.Faults) {
	var told []string
	for _, x := range []struct {
		key  string
		said bool
		what string
	}{
		{"compat", c.Compat != cluster.CompatNone, "has no rules of SURGE to follow"},
		{"acknowledge", c.Acknowledge != cluster.WriteThrough, "does not acknowledge replicas"},
		{"choosy", c.Choosy, "has no bids to choose from"},
		{"load", c.Load != cluster.Load{}, "has a load of its own"},
		{"reads", c.Reads != 0, "has no reads"},
		{"code", c.Code != cluster.Code{}, "keeps no pieces of chunks"},
		{"placement", c.Placement != cluster.PlaceRandom, "places no chunks"},
		{"disk.model", c.Disk.Model != cluster.ModelRate, "has no simulated drives"},
		{"disk.kinds", len(c.Disk.Kinds) > 0, "has no kinds of disks"},
		{"processor", c.Processor != cluster.Processor{}, "models no processors"},
		{"link.loss", c.Link.Loss != 0, "models no losses"},
		{"core", c.Core != cluster.CoreIdeal, "uses no network"},
		{"failures", len(c.Failures) > 0, "models no failures"},
	} {
		f.Hold(!x.said, x.key, "%v %s; leave it out", c.Protocol, x.what)
		told = append(told, x.key)
	}
	// They use few of the other keys.
	used := []string{"gateways", "targets", "link.trip", "control.unicast"}
	if c.Protocol == Tiering {
		used = append(used, "replicas", "chunk", "link.rate", "link.overhead")
	}
	d := cluster.DefaultConfig()
	for _, key := range language.Differs(&c.Config, &d) {
		known := slices.ContainsFunc(told, func(k string) bool { return key == k || strings.HasPrefix(key, k+".") })
		if !known && !slices.Contains(used, key) && (key != "control.queued" || c.Compat == cluster.CompatNone) {
			f.Hold(false, key, "%v does not use it; leave it out", c.Protocol)
		}
	}
	f.Hold(c.Durability == defaultDurability, "durability", "%v keeps no chunks; leave it out", c.Protocol)
}

// rekey maps another package's errors to this package's keys: those of shared fields to their keys here, the others
// into a section.
func rekey(err error, section string, shared map[string]string) error {
	var f units.Faults
	for _, e := range units.FieldErrors(err) {
		path, ok := shared[e.Path]
		if !ok {
			path = units.JoinPath(section, e.Path)
		}
		f.Hold(false, path, "%s", e.Msg)
	}
	return f.Err()
}

func (c *ObjectCluster) checkDurability(f *units.Faults) {
	d := &c.Durability
	if d.AFR == 0 {
		for _, key := range language.Differs(d, &defaultDurability) {
			f.Hold(false, "durability."+key, "no estimate without durability.afr; give it, or leave this out")
		}
		return
	}
	f.Hold(d.AFR > 0 && d.AFR < 1, "durability.afr", "%v is not possible; use a share such as 1.5%%", d.AFR)
	f.Hold(d.Capacity > 0, "durability.capacity", "%v is not possible; use a size such as 8TB", d.Capacity)
	f.Hold(d.Bandwidth > 0, "durability.bandwidth", "%v is not possible; use a rate such as 50MB/s", d.Bandwidth)
	f.Hold(d.Detect >= 0, "durability.detect", "%v is not possible; use a time such as 10m", d.Detect)
	if k := c.Keeping(); k.Data+k.Parity > 0 {
		f.Hold(k.Groups == 0 || k.Nodes > k.Data+k.Parity, "durability",
			"a group of %d has no target to replace one of the %d that store a chunk; use larger "+
				"groups", k.Nodes, k.Data+k.Parity)
	}
}
