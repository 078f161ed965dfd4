// Package reserve decides who may send when in an object cluster: the bids by which targets reserve time of their
// links and disks, the rules by which a gateway chooses among bids, and the rate policies of the protocols that
// reserve nothing.
//
// The main types are Config and Durations (config.go, durations.go), all times that follow from a cluster's plain
// values, derived once. A target keeps one of three queues of bids: Regular (regular.go) appends and uses canceled
// bids again, Sparse (sparse.go) fills holes, DoubleBooked (double.go) promises a window twice and tells the loser in
// time. A gateway gathers Offers (offers.go) and chooses by Durations.Intersect (intersect.go: one window for all
// replicas), Sequence (sequence.go: windows one after another) or Choosy (choosy.go: which asks again when the best
// is too far). Proxy (proxy.go) chooses for its whole group. Unicast without reservations has Share (share.go: the
// receiver divides its link), Leaky and AIMD buckets (bucket.go), Pacer and Dinger (ding.go). disk.go says how long a
// target holds data back for its disk.
//
// All of them are plain state machines over sim.Time and integer ids: they are given what arrives and when, answer,
// and never wait. They know neither nodes nor networks, so a simulator and a real gateway can drive the same code.
// Nothing allocates once its slices have grown.
//
// It follows Aizman and Bestler, "Scalable Object Storage with Resource Reservations and Dynamic Load Balancing",
// sections II.B (put transaction), III.D to III.F (bandwidth allocation, rendezvous transfers, Replicast-H) and IV
// (the simulated protocols), and the rules of the paper's simulator SURGE at the build that made its tables (d92018f)
// and at its last one. What SURGE does that no cluster could or should do is in compat.go alone.
//
// What it leaves out: messages, their sizes on the wire and their order, which are package cluster's; gets; and lost
// messages, for which Expire gives back what nobody asks for any more.
package reserve

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Window is a span of time that a target keeps for one gateway. Left is the earliest moment at which the first byte
// may be sent, so the target sees it a trip later; at Right the last byte must have been sent.
type Window struct {
	Left, Right sim.Time
}

// Width is how long the window is.
func (w Window) Width() sim.Time { return w.Right - w.Left }

// Within reports whether w lies in o.
func (w Window) Within(o Window) bool { return w.Left >= o.Left && w.Right <= o.Right }

// State is where a bid is between a request and the end of the transfer.
type State uint8

// The states of a bid.
const (
	// Tentative: given to a gateway that has not answered.
	Tentative State = iota
	// Accepted: the gateway will send in the bid's window.
	Accepted
	// Canceled: the gateway has chosen others; a Regular queue keeps the window for who asks next.
	Canceled
	// Rejected: the window was given to two, and the other one has taken it.
	Rejected
)

// String is the state's name.
func (s State) String() string { return stateNames.Name(s) }

var stateNames = units.Names[State]{"tentative", "accepted", "canceled", "rejected"}

// Bid is what a target has promised.
type Bid struct {
	Chunk   uint64 // what is to be put; one bid a chunk at one target
	Gateway int32
	State   State
	Window  Window
	Created sim.Time // when it was given
	Offered sim.Time // the left edge when it was given, before anybody trimmed it
	other   uint64   // the chunk that has been promised the same window, if it is paired
	paired  bool
}

// Verdict is what became of an acceptance.
type Verdict uint8

// The verdicts.
const (
	// Unknown: there is no such bid: it was withdrawn, or has expired.
	Unknown Verdict = iota
	// Taken: the window is the gateway's.
	Taken
	// TakenFrom: the same, and the bid in Acceptance.Loser has lost it: its gateway must hear of it at once.
	TakenFrom
	// Late: the bid had been rejected; the message that says so is under way.
	Late
)

// Acceptance is a target's answer to itself when a gateway accepts: Loser is set with TakenFrom.
type Acceptance struct {
	Verdict Verdict
	Loser   Bid
}

// Tally counts what became of a queue's bids.
//
// Given = Canceled + Done + Expired + Withdrawn + Refused + those that are pending and not canceled.
type Tally struct {
	Given        int64 // windows handed out
	Reused       int64 // of those, canceled bids given again
	Stretched    int64 // of those, windows made wider because the target was idle
	DoubleBooked int64 // of those, second bids for a window
	Accepted     int64
	Canceled     int64 // by their gateways
	Done         int64 // ended by the last byte of the chunk
	Expired      int64 // by Expire
	Withdrawn    int64 // because their gateway asked again for the same chunk
	Refused      int64 // accepted when they had been rejected
}
