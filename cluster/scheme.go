package cluster

import (
	"farflash/cluster/put"
	"farflash/units"
)

// Scheme is how chunks are put: a protocol of package put, or what a cluster does in place of putting.
type Scheme uint8

// The protocols, which package put has.
const (
	UCH              = Scheme(put.UCH)
	UCHInverse       = Scheme(put.UCHInverse)
	ReplicastM       = Scheme(put.ReplicastM)
	ReplicastH       = Scheme(put.ReplicastH)
	Pull             = Scheme(put.Pull)
	Chain            = Scheme(put.Chain)
	Grants           = Scheme(put.Grants)
	DCTCP            = Scheme(put.DCTCP)
	UCHAIMD          = Scheme(put.UCHAIMD)
	ReplicastHDouble = Scheme(put.ReplicastHDouble)
	ReplicastProxy   = Scheme(put.ReplicastProxy)
	CommandWindow    = Scheme(put.CommandWindow)
)

// What puts no chunks.
const (
	// Tiering is an SSD and the HDDs behind it, which package tier simulates (model c).
	Tiering = Scheme(put.Count) + iota
	// Storm and those after it are patterns of events that nodes exchange, which package traffic simulates, in the order of its kinds (models 1,
	// 1.1, 2, 2.1, 3 and 4).
	Storm
	PowerOfTwo
	Peers
	PeersBucket
	PingPong
	Pipeline
)

// others are the traits of those that put no chunks.
var others = [...]put.Traits{
	{Name: "tiering", Number: "c"},
	{Name: "storm", Number: "1"},
	{Name: "power-of-two", Number: "1.1"},
	{Name: "peers", Number: "2"},
	{Name: "peers-bucket", Number: "2.1"},
	{Name: "ping-pong", Number: "3"},
	{Name: "pipeline", Number: "4"},
}

// schemeCount is how many schemes there are.
const schemeCount = int(put.Count) + len(others)

func (s Scheme) traits() *put.Traits {
	if p := put.Scheme(s); p < put.Count {
		return p.Traits()
	}
	return &others[s-Tiering]
}

// where are the schemes whose traits a function chooses.
func where(choose func(*put.Traits) bool) []Scheme {
	var list []Scheme
	for k := range schemeCount {
		if s := Scheme(k); choose(s.traits()) {
			list = append(list, s)
		}
	}
	return list
}

// SharedSchemes lists the protocols by which any gateway puts chunks on any target.
func SharedSchemes() []Scheme {
	return where(func(t *put.Traits) bool { return t.Finds == put.FindsPlaced || t.Finds == put.FindsBidders })
}

// names are those of schemes.
func names(list []Scheme) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.traits().Name)
	}
	return out
}

var schemeNames = units.Names[Scheme](names(where(func(*put.Traits) bool { return true })))

// String is the protocol's name in scenarios.
func (s Scheme) String() string { return schemeNames.Name(s) }

// MarshalText writes the protocol's name.
func (s Scheme) MarshalText() ([]byte, error) { return schemeNames.Marshal(s) }

// UnmarshalText reads a protocol's name, or SURGE's number for it.
func (s *Scheme) UnmarshalText(text []byte) error {
	if numbered := where(func(t *put.Traits) bool { return t.Number != "" && t.Number == string(text) }); len(numbered) > 0 {
		*s = numbered[0]
		return nil
	}
	return schemeNames.Unmarshal(text, s)
}

// Grouped reports whether negotiating groups bid for chunks.
func (s Scheme) Grouped() bool { return s.traits().Finds == put.FindsBidders }

// Multicasts reports whether all replicas are sent at once.
func (s Scheme) Multicasts() bool { return s.traits().Multicasts }

// putsReplicas reports whether this package simulates the protocol.
func (s Scheme) putsReplicas() bool { return s.traits().Finds != put.FindsNone }

// used is how many targets chunks go to.
func (c *Config) used() int {
	if c.Protocol.traits().Finds == put.FindsOwn {
		return c.Gateways
	}
	return c.Targets
}

// Compat is whose deviations from a real cluster are reproduced.
type Compat = put.Compat

// The choices.
const (
	CompatNone      = put.CompatNone
	CompatSURGE     = put.CompatSURGE
	CompatSURGEHead = put.CompatSURGEHead
)
