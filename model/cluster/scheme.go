package cluster

import (
	"farflash/model/cluster/put"
	"farflash/numeric/units"
)

// Scheme is a put protocol of package put.
type Scheme uint8

// The protocols.
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

// SchemeCount is the number of protocols; their numbers are below it.
const SchemeCount = int(put.Count)

func (s Scheme) traits() *put.Traits { return put.Scheme(s).Traits() }

// where returns the schemes whose traits satisfy choose.
func where(choose func(*put.Traits) bool) []Scheme {
	var list []Scheme
	for k := range SchemeCount {
		if s := Scheme(k); choose(s.traits()) {
			list = append(list, s)
		}
	}
	return list
}

// Schemes lists all protocols.
func Schemes() []Scheme { return where(func(*put.Traits) bool { return true }) }

// SharedSchemes lists the protocols by which any gateway can put chunks on any target.
func SharedSchemes() []Scheme {
	return where(func(t *put.Traits) bool { return t.Finds == put.FindsPlaced || t.Finds == put.FindsBidders })
}

// names returns the schemes' names.
func names(list []Scheme) []string {
	var out []string
	for _, s := range list {
		out = append(out, s.traits().Name)
	}
	return out
}

var schemeNames = units.Names[Scheme](names(Schemes()))

// String returns the protocol's name in scenarios.
func (s Scheme) String() string { return schemeNames.Name(s) }

// MarshalText returns the protocol's name.
func (s Scheme) MarshalText() ([]byte, error) { return schemeNames.Marshal(s) }

// UnmarshalText parses a protocol's name, or SURGE's number for it.
func (s *Scheme) UnmarshalText(text []byte) error {
	if numbered := where(func(t *put.Traits) bool {
		return t.Number != "" &&
			t.Number == string(text)
	}); len(numbered) > 0 {
		*s = numbered[0]
		return nil
	}
	return schemeNames.Unmarshal(text, s)
}

// Number returns SURGE's number for its model of the protocol, or "" if it has none.
func (s Scheme) Number() string { return s.traits().Number }

// Grouped reports whether negotiating groups bid for chunks.
func (s Scheme) Grouped() bool { return s.traits().Finds == put.FindsBidders }

// Several reports whether a chunk asks Config.Groups groups instead of one.
func (s Scheme) Several() bool { return s.traits().Several }

// Multicasts reports whether one multicast sends all replicas.
func (s Scheme) Multicasts() bool { return s.traits().Multicasts }

// used returns the number of targets that chunks go to.
func (c *Config) used() int {
	if c.Protocol.traits().Finds == put.FindsOwn {
		return c.Gateways
	}
	return c.Targets
}

// Compat selects whose deviations from a real cluster are reproduced.
type Compat = put.Compat

// The peers.
const (
	CompatNone      = put.CompatNone
	CompatSURGE     = put.CompatSURGE
	CompatSURGEHead = put.CompatSURGEHead
)
