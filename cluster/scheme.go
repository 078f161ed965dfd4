package cluster

import (
	"slices"

	"farflash/cluster/reserve"
	"farflash/units"
)

// Scheme is how chunks are put.
type Scheme uint8

// The protocols.
const (
	// UCH is SURGE's UCH-CCP (model 5): targets at random, unicast, the receiver divides its link.
	UCH Scheme = iota
	// UCHInverse is the same, but a flow gets the more of the link the less it has to send.
	UCHInverse
	// ReplicastM is Replicast with multicast of control and data (model 7).
	ReplicastM
	// ReplicastH is Replicast with multicast control and unicast data (model 8).
	ReplicastH
	// Pull is receiver pull with late binding over two groups, our own (docs/adr/0006-pull.md).
	Pull
	// Chain is chain replication over hashed placement.
	Chain
	// Grants is receiver-driven transport over hashed placement, in the manner of Homa and NDP.
	Grants
	// DCTCP is window-based unicast over hashed placement.
	DCTCP
	// UCHAIMD is SURGE's UCH-AIMD (model 6): as UCH, but senders go faster until a target dings them.
	UCHAIMD
	// ReplicastHDouble is ReplicastH with windows that are promised twice (model 9).
	ReplicastHDouble
	// ReplicastProxy is Replicast with a target that chooses for its whole group (model a).
	ReplicastProxy
	// CommandWindow has each gateway write to a target of its own (model b).
	CommandWindow
	// Tiering is an SSD and the HDDs behind it, which package tier simulates (model c).
	Tiering
	// Storm and those after it are patterns of events that nodes exchange, which package traffic simulates, in the order of its kinds (models 1,
	// 1.1, 2, 2.1, 3 and 4).
	Storm
	PowerOfTwo
	Peers
	PeersBucket
	PingPong
	Pipeline
)

// finds is how a gateway finds the targets of a chunk.
type finds uint8

const (
	findsNone    finds = iota // it puts none
	findsPlaced               // a placement says which
	findsBidders              // groups of targets offer themselves
	findsOwn                  // it has one of its own
)

// traits are what protocols have in common, so that code that serves several asks for a property and not for names.
type traits struct {
	name       string
	number     string // SURGE's for its model
	build      Compat // of SURGE, the first that has it
	finds      finds
	multicasts bool   // all replicas are sent at once
	sequential bool   // a gateway takes windows one after another
	queued     bool   // links have to carry one frame at a time
	stuck      string // why it does not go on when messages are lost and targets fail
}

// Why two of SURGE's protocols cannot go on without one of their targets.
const (
	oneProxy = "what a group has promised only its proxy knows"
	ownOnly  = "a gateway has no other target than its own"
)

var traitsOf = [...]traits{
	UCH:              {name: "uch-ccp", number: "5", build: CompatSURGE, finds: findsPlaced},
	UCHInverse:       {name: "uch-ccp-inverse", build: CompatSURGE, finds: findsPlaced},
	ReplicastM:       {name: "replicast-m", number: "7", build: CompatSURGE, finds: findsBidders, multicasts: true},
	ReplicastH:       {name: "replicast-h", number: "8", build: CompatSURGE, finds: findsBidders, sequential: true},
	Pull:             {name: "pull", finds: findsBidders, queued: true},
	Chain:            {name: "chain", finds: findsPlaced, queued: true},
	Grants:           {name: "grants", finds: findsPlaced, queued: true},
	DCTCP:            {name: "dctcp", finds: findsPlaced, queued: true},
	UCHAIMD:          {name: "uch-aimd", number: "6", build: CompatSURGE, finds: findsPlaced},
	ReplicastHDouble: {name: "replicast-h-double", number: "9", build: CompatSURGEHead, finds: findsBidders, sequential: true},
	ReplicastProxy:   {name: "replicast-proxy", number: "a", build: CompatSURGEHead, finds: findsBidders, multicasts: true, stuck: oneProxy},
	CommandWindow:    {name: "command-window", number: "b", build: CompatSURGEHead, finds: findsOwn, stuck: ownOnly},
	Tiering:          {name: "tiering", number: "c"},
	Storm:            {name: "storm", number: "1"},
	PowerOfTwo:       {name: "power-of-two", number: "1.1"},
	Peers:            {name: "peers", number: "2"},
	PeersBucket:      {name: "peers-bucket", number: "2.1"},
	PingPong:         {name: "ping-pong", number: "3"},
	Pipeline:         {name: "pipeline", number: "4"},
}

func (s Scheme) traits() *traits { return &traitsOf[s] }

var schemeNames = units.Names[Scheme](namesWhere(func(*traits) bool { return true }))

// namesWhere are the names of those protocols that a function chooses.
func namesWhere(choose func(*traits) bool) []string {
	var list []string
	for k := range traitsOf {
		if t := &traitsOf[k]; choose(t) {
			list = append(list, t.name)
		}
	}
	return list
}

// SharedSchemes lists the protocols by which any gateway puts chunks on any target.
func SharedSchemes() []Scheme {
	var list []Scheme
	for k := range traitsOf {
		if f := traitsOf[k].finds; f == findsPlaced || f == findsBidders {
			list = append(list, Scheme(k))
		}
	}
	return list
}

// String is the protocol's name in scenarios.
func (s Scheme) String() string { return schemeNames.Name(s) }

// MarshalText writes the protocol's name.
func (s Scheme) MarshalText() ([]byte, error) { return schemeNames.Marshal(s) }

// UnmarshalText reads a protocol's name, or SURGE's number for it.
func (s *Scheme) UnmarshalText(text []byte) error {
	if k := slices.IndexFunc(traitsOf[:], func(t traits) bool { return t.number == string(text) && t.number != "" }); k >= 0 {
		*s = Scheme(k)
		return nil
	}
	return schemeNames.Unmarshal(text, s)
}

// Grouped reports whether negotiating groups bid for chunks.
func (s Scheme) Grouped() bool { return s.traits().finds == findsBidders }

// Multicasts reports whether all replicas are sent at once.
func (s Scheme) Multicasts() bool { return s.traits().multicasts }

// putsReplicas reports whether this package simulates the protocol.
func (s Scheme) putsReplicas() bool { return s.traits().finds != findsNone }

// ofHead reports whether SURGE has the protocol in its last build only.
func (s Scheme) ofHead() bool { return s.traits().build == CompatSURGEHead }

// division is how a target of the unicast protocols divides its link.
func (s Scheme) division() reserve.Division {
	if s == UCHInverse {
		return reserve.DivideByRemaining
	}
	return reserve.DivideEqually
}

// used is how many targets chunks go to.
func (c *Config) used() int {
	if c.Protocol.traits().finds == findsOwn {
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
