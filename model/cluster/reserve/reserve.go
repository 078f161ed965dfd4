// Package reserve decides who may send when in an object cluster: the bids by which targets reserve time of their links
// and disks, the rules by which a gateway chooses among bids, and the rate policies of the protocols without
// reservations.
//
// The main types are Config and Durations (config.go, durations.go), all times that follow from a cluster's plain
// values, derived once. A target keeps one of three queues of bids: Regular (regular.go) appends and reuses canceled
// bids, Sparse (sparse.go) fills holes, DoubleBooked (double.go) offers a window twice and rejects the loser in time. A
// gateway gathers Offers (offers.go) and chooses by Durations.Intersect (intersect.go: one window for all replicas),
// Sequence (sequence.go: consecutive windows) or Choosy (choosy.go: asks again if the best is too far away). Proxy
// (proxy.go) chooses for its whole group. Unicast without reservations has Share (share.go: the receiver divides its
// link), Leaky and AIMD buckets (bucket.go), Pacer and Dinger (ding.go). Puller (pull.go) is a target's side of late
// binding. disk.go computes how long a target delays data for its disk.
//
// All of them are plain state machines over sim.Time and integer ids: they are given arrivals with their times, answer,
// and never wait. They know neither nodes nor networks, so a simulator and a real gateway can drive the same code. They
// do not allocate once their slices have grown.
//
// It follows Aizman and Bestler, "Scalable Object Storage with Resource Reservations and Dynamic Load Balancing",
// sections II.B (put transaction), III.D to III.F (bandwidth allocation, rendezvous transfers, Replicast-H) and IV (the
// simulated protocols), and the rules of the paper's simulator SURGE at the build that made its tables (d92018f) and at
// its last one. SURGE's faults, which no cluster could or should have, are in compat.go alone.
//
// It leaves out messages, their sizes on the wire and their order, which package cluster models; gets; and lost
// messages, after which Expire removes the bids that are left behind.
package reserve

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Window is a span of time that a target reserves for one gateway. Left is the earliest time at which the first byte
// may be sent, so the target sees it a trip later; by Right the last byte must have been sent.
type Window struct {
	Left, Right sim.Time
}

// Width returns the duration of the window.
func (w Window) Width() sim.Time { return w.Right - w.Left }

// within reports whether w lies in o.
func (w Window) within(o Window) bool { return w.Left >= o.Left && w.Right <= o.Right }

// State is the state of a bid between a request and the end of the transfer.
type State uint8

// The states of a bid.
const (
	// Tentative: offered to a gateway that has not answered.
	Tentative State = iota
	// Accepted: the gateway will send in the bid's window.
	Accepted
	// Canceled: the gateway has chosen others; a Regular queue keeps the window for the next request.
	Canceled
	// Rejected: the window was offered twice, and the other gateway has it.
	Rejected
)

// String returns the name of the state.
func (s State) String() string { return stateNames.Name(s) }

var stateNames = units.Names[State]{"tentative", "accepted", "canceled", "rejected"}

// Bid is a window that a target has offered.
type Bid struct {
	Chunk   uint64 // the attempt at a chunk; a target has at most one bid for it
	Gateway int32
	State   State
	Window  Window
	Created sim.Time // when it was made
	Offered sim.Time // the left edge when it was made, before any trimming
	other   uint64   // the chunk that has been offered the same window, if paired
	paired  bool
}

// Verdict is the outcome of an acceptance.
type Verdict uint8

// The verdicts.
const (
	// Unknown: there is no such bid; it was withdrawn or has expired.
	Unknown Verdict = iota
	// Taken: the gateway has the window.
	Taken
	// TakenFrom: the gateway has the window, and the bid in Acceptance.Loser has lost it. The loser's gateway must be
	// notified at once.
	TakenFrom
	// Late: the bid had been rejected, and the rejection is in flight.
	Late
)

// Acceptance is the outcome of an acceptance at a target. Loser is set with TakenFrom.
type Acceptance struct {
	Verdict Verdict
	Loser   Bid
}

// Tally counts the outcomes of a queue's bids.
//
// Given = Canceled + Done + Expired + Withdrawn + Refused + the bids that are pending and not canceled.
type Tally struct {
	Given        int64 // bids made
	Reused       int64 // of Given: canceled bids offered again
	Stretched    int64 // of Given: windows widened because the target was idle
	DoubleBooked int64 // of Given: second bids for a window
	Accepted     int64
	Canceled     int64 // by their gateways
	Done         int64 // ended by the last byte of the chunk
	Expired      int64 // by Expire
	Withdrawn    int64 // because their gateway asked again for the same chunk
	Refused      int64 // accepted after they had been rejected
}
