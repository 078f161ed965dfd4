package cluster

import (
	"farflash/cluster/reserve"
	"farflash/units"
)

// What the protocols have in common, so that code that serves several asks for a property and not for names.

// unicast reports whether each replica goes to a target drawn at random, without reservations.
func (s Scheme) unicast() bool { return s == UCH || s == UCHInverse || s == UCHAIMD }

// sequential reports whether a gateway takes windows one after another.
func (s Scheme) sequential() bool { return s == ReplicastH || s == ReplicastHDouble }

// multicasts reports whether all replicas are sent at once.
func (s Scheme) multicasts() bool { return s == ReplicastM || s == ReplicastProxy }

// ofHead reports whether SURGE has the protocol in its last build only.
func (s Scheme) ofHead() bool {
	return s == ReplicastHDouble || s == ReplicastProxy || s == CommandWindow
}

// used is how many targets chunks go to.
func (c *Config) used() int {
	if c.Protocol == CommandWindow {
		return c.Gateways
	}
	return c.Targets
}

// surgeBidWait is SURGE's value for how far away a choosy gateway at first lets the best bid be. It is computed before SURGE knows how long a
// control message takes.
const surgeBidWait = 6 * units.Microsecond

// amend sets what does not follow from the values of a configuration.
func (c *Config) amend(d *reserve.Durations) {
	if c.Compat != CompatNone {
		d.MaxBidWait = surgeBidWait
	}
}
