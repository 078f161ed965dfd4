// Package traffic models nodes that exchange small events and do no other work: the load that a cluster's control
// messages put on its nodes when they are not scheduled.
//
// The main types are Config, whose Pattern describes who sends how much to whom, and Machine, a state machine on a
// sim.Engine. An exchange is a number of events that two nodes send each other alternately (machine.go): one in a
// storm, two in ping-pong, four in a pipeline of request, acknowledgement, transfer and acknowledgement. A pattern is
// an open loop, where each node begins exchanges at random times, through a leaky bucket if there is one (choose.go),
// or a closed loop, where it keeps a fixed number outstanding. A peer is drawn at random, or is the one of several with
// the fewest events in flight to it or waiting there.
//
// It has SURGE's models 1, 1.1, 2, 2.1, 3 and 4, at build 9872498, as patterns. In SURGE nodes send as fast as its
// goroutines are scheduled, which does not model anything, so an open loop has a mean interval here. The closed forms
// that it is checked against are Little's law, the queue with one server, and for the least loaded of two the
// mean-field limit of Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing" (IEEE TPDS 12, 2001).
//
// It leaves out links and their rates, and loss.
package traffic

import (
	"farflash/numeric/units"
)

// Kind is one of SURGE's patterns.
type Kind uint8

// The patterns.
const (
	// Storm: gateways send to random targets (model 1).
	Storm Kind = iota
	// PowerOfTwo: gateways send to the less loaded of two targets (model 1.1).
	PowerOfTwo
	// Peers: gateways and targets send to each other, to the less loaded of two (model 2).
	Peers
	// PeersBucket: as Peers, each node through a leaky bucket (model 2.1).
	PeersBucket
	// PingPong: each gateway has one event in flight to or from each target (model 3).
	PingPong
	// Pipeline: transactions of four events (model 4).
	Pipeline
)

var kindNames = units.Names[Kind]{"storm", "power-of-two", "peers", "peers-bucket", "ping-pong", "pipeline"}

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Storm, PowerOfTwo, Peers, PeersBucket, PingPong, Pipeline} }

// Number returns SURGE's number of its model.
func (k Kind) Number() string {
	return [...]string{Storm: "1", PowerOfTwo: "1.1", Peers: "2", PeersBucket: "2.1", PingPong: "3", Pipeline: "4"}[k]
}

// String returns the kind's name in scenarios.
func (k Kind) String() string { return kindNames.Name(k) }

// UnmarshalText parses a kind's name.
func (k *Kind) UnmarshalText(text []byte) error { return kindNames.Unmarshal(text, k) }

// Config describes nodes and the events that they send each other.
type Config struct {
	Pattern
	// Gateways and Targets are the two sides; an exchange is between one of each.
	Gateways, Targets int
	// Trip is the minimum latency of an event.
	Trip units.Duration
	// Size is the size of an event.
	Size units.Bytes
}

// Pattern describes who sends how much to whom.
type Pattern struct {
	// Both makes targets start exchanges as well as gateways.
	Both bool
	// Interval is the mean time between the exchanges that a node starts, in an open loop; the times are exponential.
	Interval units.Duration
	// Choices is the number of peers drawn, of which the one with the fewest pending events is chosen.
	Choices int
	// Load is the number of pending events above which a peer is passed over for the next; 0 is no limit.
	Load int
	// Burst is the number of exchanges that a node may start at once, after which it may start one per Refill; 0 is no
	// limit.
	Burst int
	// Refill is the time in which a leaky bucket gains one exchange.
	Refill units.Duration
	// Hops is the number of events in an exchange.
	Hops int
	// Outstanding is each gateway's number of outstanding exchanges, in a closed loop; 0 is an open loop.
	Outstanding int
	// Apart limits each pair of gateway and target to one exchange at a time.
	Apart bool
	// Jitter is the largest delay of an event beyond the trip; delays are uniform up to it.
	Jitter units.Duration
	// Service is the mean time in which a node handles an event, one after the other; the times are exponential. 0 is
	// none.
	Service units.Duration
}

// SURGE's values.
const (
	surgeLoad   = 64 // events pending at a peer
	surgeBurst  = 10
	surgeRefill = units.Microsecond / 2
	surgeDeep   = 10 // transactions in flight of a pipeline, per target
)

// interval is the mean interval of open loops: the rate that SURGE's bucket admits.
const interval = surgeRefill

// PatternOf returns the pattern of a kind, with SURGE's constants, and with intervals, which SURGE does not have. With
// a bucket, nodes attempt twice the rate that it admits.
func PatternOf(k Kind, targets int) Pattern {
	p := Pattern{Interval: interval, Choices: 1, Load: surgeLoad, Hops: 1}
	switch k {
	case PowerOfTwo:
		p.Choices = 2
	case Peers:
		p.Both, p.Choices = true, 2
	case PeersBucket:
		p.Both, p.Choices, p.Burst, p.Refill, p.Interval = true, 2, surgeBurst, surgeRefill, interval/2
	case PingPong:
		p = Pattern{Choices: 1, Hops: 2, Outstanding: targets, Apart: true}
	case Pipeline:
		p = Pattern{Choices: 1, Hops: 4, Outstanding: surgeDeep * targets}
	}
	p.Jitter = k.Trip()
	return p
}

// Trip returns SURGE's trip for a kind. An event takes up to twice as long.
func (k Kind) Trip() units.Duration {
	switch k {
	case PowerOfTwo, PeersBucket:
		return 4 * units.Microsecond
	case Peers:
		return units.Microsecond
	}
	return 2 * units.Microsecond
}

// DefaultConfig is SURGE's storm, with its ten nodes on each side.
func DefaultConfig() Config { return ConfigOf(Storm, 10, 10) }

// ConfigOf returns the configuration of a kind.
func ConfigOf(k Kind, gateways, targets int) Config {
	return Config{Pattern: PatternOf(k, targets), Gateways: gateways, Targets: targets, Trip: k.Trip(), Size: 100}
}

// Validate reports every invalid setting, each with its key.
func (c *Config) Validate() error {
	var f units.Faults
	f.Hold(c.Gateways >= 1 && c.Gateways <= maxNodes, "gateways", "%d is not possible; use 1 to %d", c.Gateways,
		maxNodes)
	f.Hold(c.Targets >= 1 && c.Targets <= maxNodes, "targets", "%d is not possible; use 1 to %d", c.Targets, maxNodes)
	f.Hold(c.Trip >= 0 && c.Trip <= units.Second, "trip", "%v is not possible; use 0s to 1s", c.Trip)
	f.Hold(c.Size >= 1 && c.Size <= units.MiB, "size", "%v is not possible; use 1B to 1MiB", c.Size)
	f.Hold(c.Jitter >= 0 && c.Jitter <= units.Second, "jitter", "%v is not possible; use 0s to 1s", c.Jitter)
	f.Hold(c.Service >= 0 && c.Service <= units.Second, "service", "%v is not possible; use 0s to 1s", c.Service)
	f.Hold(c.Trip+c.Jitter+c.Service > 0, "service",
		"events that take no time would run forever; use a trip, a jitter or a service time above 0s")
	f.Hold(c.Choices >= 1 && c.Choices <= 64, "choices", "%d is not possible; use 1 to 64", c.Choices)
	f.Hold(c.Load >= 0, "load", "%d is not possible; use a number of events, or 0 for any", c.Load)
	f.Hold(c.Hops >= 1 && c.Hops <= 64, "hops", "%d is not possible; use 1 to 64", c.Hops)
	f.Hold(c.Burst >= 0 && c.Burst <= 1<<20, "burst", "%d is not possible; use 0 to 1048576", c.Burst)
	f.Hold(c.Burst == 0 || c.Refill > 0, "refill", "%v is not possible; use a time such as 500ns, or burst: 0",
		c.Refill)
	f.Hold(c.Outstanding >= 0 && c.Outstanding <= 1<<24/max(c.Gateways, 1), "outstanding",
		"%d for each of %d gateways is not possible; use at most %d", c.Outstanding, c.Gateways,
		1<<24/max(c.Gateways, 1))
	if c.Outstanding == 0 {
		f.Hold(c.Interval > 0, "interval",
			"%v is not possible; use a time such as 500ns, or outstanding: 1 for a closed loop", c.Interval)
		f.Hold(!c.Apart, "apart", "apart needs a closed loop; use outstanding: 1 or more")
	} else {
		f.Hold(c.Load == 0, "load", "a closed loop ignores pending events; use 0")
		f.Hold(!c.Both, "both", "in a closed loop only gateways start exchanges; use false")
		f.Hold(c.Burst == 0, "burst", "a closed loop has no bucket; use 0")
		f.Hold(!c.Apart || c.Outstanding <= c.Targets, "outstanding",
			"%d exchanges of a gateway, one at a time with each target, need as many targets, not %d",
			c.Outstanding, c.Targets)
		f.Hold(!c.Apart || c.Gateways*c.Targets <= 1<<26, "apart", "%d pairs of nodes are too many; use fewer nodes",
			c.Gateways*c.Targets)
	}
	return f.Err()
}

// maxNodes is the largest number of nodes on a side.
const maxNodes = 1 << 20
