package put

import (
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
)

// Scheme is the number of a protocol. Each has its own in its file.
type Scheme uint8

// table has all protocols. A new one is a file and a line here.
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

// Count is how many protocols there are; their numbers are below it.
const Count = Scheme(len(table))

// Traits are a protocol's.
func (s Scheme) Traits() *Traits { return table[s] }

// Finds is how a gateway finds the targets of a chunk.
type Finds uint8

// The kinds.
const (
	FindsPlaced  Finds = iota + 1 // a placement says which
	FindsBidders                  // groups of targets offer themselves
	FindsOwn                      // it has one of its own
)

// Traits are what others need to know of a protocol, so that code that serves several asks for a property and not for
// names.
type Traits struct {
	Name   string // in scenarios
	Number string // SURGE's for its model
	Build  Compat // of SURGE, the first that has it
	Finds  Finds
	Chosen string // by whom targets are chosen that no placement finds
	Stuck  string // why it does not go on when messages are lost and targets fail; "": it does

	Multicasts bool // all replicas are sent at once
	Sequential bool // a gateway takes windows one after another
	Chained    bool // data goes from target to target
	Several    bool // a chunk asks as many groups as the configuration says, not one
	Queued     bool // links have to carry one frame at a time
	Marks      bool // frames that find a long queue are marked
	Heedless   bool // targets take what comes, however much waits for their disks
	Offers     bool // targets offer themselves before they are out of work
	Grants     bool // targets grant what they are sent, to several at a time
	SeesPorts  bool // targets look at what waits at their ports

	Reserves bool                  // a share of each link is kept for control messages, which have Replicast's size
	Gathers  bool                  // bids of a group come to their gateway at the same time
	Times    func() reserve.Config // what its durations follow from, but for what a configuration says

	Messages []string // names of its control messages, by kind
	New      func(*Bus) Protocol
}

// Why targets of some are not chosen by a placement.
const (
	byBids  = "the group of a chunk bids for it"
	byProxy = "the proxy of a chunk's group chooses"
	byOwner = "each gateway has a target of its own"
)

// Says is a control message's name.
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

// Compat is whose deviations from a real cluster are reproduced.
type Compat uint8

// The choices.
const (
	CompatNone Compat = iota
	// CompatSURGE is SURGE as the Replicast paper used it, build d92018f.
	CompatSURGE
	// CompatSURGEHead is SURGE's last build, 9872498.
	CompatSURGEHead
)

var compatNames = units.Names[Compat]{"none", "surge-d92018f", "surge-9872498"}

// String is the choice's name in scenarios.
func (c Compat) String() string { return compatNames.Name(c) }

// MarshalText writes the choice's name.
func (c Compat) MarshalText() ([]byte, error) { return compatNames.Marshal(c) }

// UnmarshalText reads a choice's name.
func (c *Compat) UnmarshalText(text []byte) error { return compatNames.Unmarshal(text, c) }
