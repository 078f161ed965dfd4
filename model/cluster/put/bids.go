package put

import (
	"farflash/model/cluster/reserve"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Common parts of the protocols whose targets bid: the messages, a target's handling of requests and of gateways'
// answers, and multicast data.

// Kinds of control messages of Replicast.
const (
	askBids uint8 = iota
	bid
	accept
	kept       // a replica is on its disk
	lateReject // a window has been given to another gateway
)

var replicastMessages = []string{askBids: "request", bid: "bid", accept: "accept", kept: "ack",
	lateReject: "late reject"}

// asked is the part of a target's queue of bids that handles requests.
type asked interface {
	// Expire frees the bids whose gateways no longer answer.
	Expire(now, grace sim.Time) int
	// Tentative reports whether a bid waits for its gateway's answer.
	Tentative() bool
	// Request makes a bid.
	Request(now sim.Time, chunk uint64, gateway int32, notBefore, delay sim.Time, ties *rng.Stream) reserve.Window
}

// answered is the part of a target's queue of bids that handles gateways' answers.
type answered interface {
	// Undecided returns for how long a chunk's bid has been tentative, and whether it still is.
	Undecided(now sim.Time, chunk uint64) (sim.Time, bool)
	// Cancel withdraws a tentative bid, if there is one.
	Cancel(now sim.Time, chunk uint64) bool
	// Done ends an accepted bid, if there is one.
	Done(chunk uint64) bool
}

// giveBid has a target answer a request with a bid.
func (b *Bus) giveBid(q asked, m *Message, key uint64) {
	now := b.Now()
	if b.Lossy {
		q.Expire(now, 0)
	}
	b.Tally.Bids.asked(q)
	w := q.Request(now, key, m.From, m.A, b.Times.BidDelay(b.Disks.Backlog(m.To)), &b.Rand)
	b.showBid(m.To, m.From, m.ID, reserve.Tentative, w)
	b.toGateway(Message{Kind: bid, From: m.To, To: m.From, Chunk: m.Chunk, ID: m.ID, N: m.N, A: w.Left, B: w.Right}, 0)
}

// dropBid has a target drop a bid that its gateway declines, or an accepted one of an abandoned attempt.
func (b *Bus) dropBid(q answered, m *Message, key uint64) {
	if q.Cancel(b.Now(), key) || q.Done(key) {
		b.showBid(m.To, m.From, m.ID, reserve.Canceled, reserve.Window{})
	}
}

// multicast is data in flight to all targets of a chunk at once.
type multicast struct {
	sent units.Bytes
	got  [MaxReplicas]units.Bytes // by target
}

// send sends the next frame of a chunk. It returns the time that the frame takes, and whether there are more.
func (m *multicast) send(b *Bus, i int32) (takes sim.Time, more bool) {
	x := &b.Chunks[i]
	piece := b.pieceOf(i)
	size := min(b.Frame, piece-m.sent)
	takes = b.Times.Send(size, b.Times.DataRate)
	b.sendPaced(i, uint32(i), size, takes, x.Targets[:x.N])
	m.sent += size
	return takes, m.sent < piece
}

// whole counts a received frame and reports whether its target now has all of the chunk.
func (m *multicast) whole(b *Bus, f Frame) bool {
	k := b.Chunks[f.Arg].Place(f.Target)
	m.got[k] += f.Size
	return m.got[k] >= b.pieceOf(int32(f.Arg))
}
