package put

import (
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
)

// Scheme is the number of a protocol. Each protocol's file defines its own.
type Scheme uint8

// table has all protocols. A new protocol is a file and a line here.
var table = [...]*Traits{
	UCH:              &uchEqual,
	UCHInverse:       &uchInverse,
	ReplicastM:       &replicastM,
	ReplicastH:       &replicastH,
	Pull:             &receiverPull,
	Chain:            &chain,
	Grants:           &receiverGrants,
	DCTCP:            &windowed,
	UCHAIMD:          &uchAIMD,
	ReplicastHDouble: &replicastDouble,
	ReplicastProxy:   &replicastProxy,
	CommandWindow:    &ownTarget,
}

// Count is the number of protocols; their numbers are below it.
const Count = Scheme(len(table))

// Traits returns the traits of a protocol; nil if there is no such protocol.
func (s Scheme) Traits() *Traits {
	if s >= Count {
		return nil
	}
	return table[s]
}

// Finds is how a gateway finds the targets of a chunk.
type Finds uint8

// Ways of finding targets.
const (
	FindsPlaced  Finds = iota + 1 // a placement determines them
	FindsBidders                  // groups of targets bid or offer
	FindsOwn                      // the gateway has a fixed target
)

// Traits are the properties of a protocol that other code depends on, so that this code tests for a property and not
// for names.
type Traits struct {
	Name   string // in scenarios
	Number string // SURGE's number of its model
	Build  Compat // the first build of SURGE that has it
	Finds  Finds
	Chosen string // who chooses the targets, if no placement does
	Stuck  string // why it makes no progress when messages are lost and targets fail; "": it does

	Multicasts     bool // all replicas are sent in one multicast
	Sequential     bool // a gateway reserves windows one after another
	Chained        bool // targets forward data to each other
	Several        bool // a chunk asks the configured number of groups, not one
	Queued         bool // requires links that carry one frame at a time
	Marks          bool // frames that find a long queue are marked
	NoBackPressure bool // targets exert no back-pressure, however long their disk queue
	Offers         bool // targets send offers before they are out of work
	Grants         bool // targets grant data to several senders at a time
	SeesPorts      bool // targets observe the frames waiting at their ports

	Reserves bool                  // a share of each link is reserved for control messages, which have Replicast's size
	Gathers  bool                  // bids of a group arrive at their gateway simultaneously
	Times    func() reserve.Config // parameters of its durations, apart from the configuration

	Messages []string // names of its control messages, by kind
	New      func(*Bus) Protocol
}

// Reasons why no placement chooses the targets.
const (
	byBids  = "the group of a chunk bids for it"
	byProxy = "the proxy of a chunk's group chooses"
	byOwner = "each gateway has a target of its own"
)

// Says returns the name of a control message.
func (t *Traits) Says(kind uint8) string {
	switch {
	case kind == probe:
		return "probe"
	case kind == probed:
		return "load"
	case int(kind) < len(t.Messages):
		return t.Messages[kind]
	}
	return "message"
}

// Compat selects whose deviations from a real cluster are reproduced.
type Compat uint8

// The peers.
const (
	CompatNone Compat = iota
	// CompatSURGE is SURGE as the Replicast paper used it, build d92018f.
	CompatSURGE
	// CompatSURGEHead is SURGE's last build, 9872498.
	CompatSURGEHead
)

var compatNames = units.Names[Compat]{"none", "surge-d92018f", "surge-9872498"}

// String returns the peer's name in scenarios.
func (c Compat) String() string { return compatNames.Name(c) }

// MarshalText returns the peer's name.
func (c Compat) MarshalText() ([]byte, error) { return compatNames.Marshal(c) }

// UnmarshalText parses a peer's name.
func (c *Compat) UnmarshalText(text []byte) error { return compatNames.Unmarshal(text, c) }
