package cluster

import (
	"farflash/cluster/tier"
	"farflash/cluster/traffic"
	"farflash/units"
)

// Some of SURGE's models are no protocols by which replicas are put: tiers of one server, which package tier simulates, and events that nodes
// exchange, which package traffic does. A Config describes them with the keys that they share with the others and a section of their own.

// Traffic is the pattern of a protocol whose nodes exchange events and put nothing.
func (s Scheme) Traffic() (traffic.Kind, bool) {
	if s < Storm {
		return 0, false
	}
	return traffic.Kind(s - Storm), true
}

// TrafficConfig is the cluster as package traffic sees it. Its events are as large as control messages of the unicast protocols.
func (c *Config) TrafficConfig() traffic.Config {
	return traffic.Config{Pattern: c.Traffic, Gateways: c.Gateways, Targets: c.Targets, Trip: c.Link.Trip, Size: c.Control.Unicast}
}

// TierConfig is the cluster as package tier sees it: one gateway, and targets that are the SSD and the HDDs behind it.
func (c *Config) TierConfig() tier.Config {
	return tier.Config{Policy: c.Tier, HDDs: c.Targets - 1, Chunk: c.Chunk, Link: c.Link.effective(), Trip: c.Link.Trip, Control: c.Control.Unicast}
}

// validateOther reports what cannot be of a configuration that another package simulates, by this one's keys.
func (c *Config) validateOther() error {
	var f units.Faults
	for _, x := range []struct {
		key  string
		said bool
		what string
	}{
		{"compat", c.Compat != CompatNone, "has no rules of SURGE's to follow"},
		{"acknowledge", c.Acknowledge != WriteThrough, "has no choice of it"},
		{"choosy", c.Choosy, "has no bids to choose from"},
		{"load", c.Load.open(), "has a load of its own"},
		{"reads", c.Reads != 0, "reads nothing"},
		{"code", c.Code != Code{}, "keeps no pieces of chunks"},
		{"placement", c.Placement != PlaceRandom, "places no chunks"},
		{"disk.model", c.Disk.Model != ModelRate, "has no drives that collect garbage"},
		{"disk.kinds", len(c.Disk.Kinds) > 0, "has no disks that are shares of all"},
		{"link.loss", c.Link.Loss != 0, "loses nothing"},
		{"core", c.Core != CoreIdeal, "sends nothing through a network"},
		{"failures", len(c.Failures) > 0, "goes on without any"},
	} {
		f.Hold(!x.said, x.key, "%v %s; leave it out", c.Protocol, x.what)
	}
	if err := f.Err(); err != nil {
		return err
	}
	if _, ok := c.Protocol.Traffic(); ok {
		t := c.TrafficConfig()
		return rekey(t.Validate(), "traffic", map[string]string{"gateways": "gateways", "targets": "targets", "trip": "link.trip", "size": "control.unicast"})
	}
	f.Hold(c.Gateways == 1, "gateways", "%d are not possible: the tiers of one server have one initiator; use 1", c.Gateways)
	f.Hold(c.Targets >= 2, "targets", "%d are too few for an SSD and the HDDs behind it; use at least 2", c.Targets)
	f.Hold(c.Replicas == 1, "replicas", "%d are not possible: a write goes to one device; use 1", c.Replicas)
	f.Hold(c.Link.Overhead >= 0 && c.Link.Overhead < 1 && percent(c.Link.Overhead), "link.overhead", "%v is not possible; use whole per cent from 0%% to 99%%", c.Link.Overhead)
	if err := f.Err(); err != nil {
		return err
	}
	t := c.TierConfig()
	return rekey(t.Validate(), "tier", map[string]string{"hdds": "targets", "chunk": "chunk", "link": "link.rate", "trip": "link.trip", "control": "control.unicast"})
}

// rekey gives another package's errors this one's keys: those of fields that both have, and the others within a section.
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
