package nvmf

import (
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/sim"
)

// Fabric is the network as initiators and targets see it: reliable, and in order within a queue pair.
//
// Open opens a queue pair from one node to another; it fails if a node does not exist, if both are the same, or if the
// traffic class is invalid. Post gives a queue pair a message of at least one byte, and returns its number. The network
// reports for each message first Delivered, when it has fully arrived, and then Acked, once each and never from inside
// Post. Delivered is called in the order in which a queue pair's messages were posted. The sink may post from these
// calls.
//
// Begun returns when the message's first packet was sent; it may be called from Delivered on until Forget. A message's
// number is not reused before its owner has been notified with Acked and has called Forget.
type Fabric interface {
	Open(src, dst int32, class uint8) (fabric.QP, error)
	Post(q fabric.QP, size units.Bytes) (int32, error)
	Begun(m int32) sim.Time
	Forget(m int32)
}

// Reader is a network whose queue pairs answer RDMA Reads as InfiniBand's do: on a separate stream of the responder,
// which does not wait for the send queue and shares the queue pair's rate.
//
// Respond opens the stream on which the sender of out answers the requests that arrive on back, its other direction; a
// queue pair has at most one. Ask posts a request, which may have no ACK of its own: it is then Acked with the first
// packet of its answer. Answer posts the answer and must be called once, from inside the request's Delivered; the
// answer may have no ACK either, and is then Acked right behind its Delivered. The contract of Post applies to both.
type Reader interface {
	Respond(out, back fabric.QP) (fabric.QP, error)
	Ask(q fabric.QP, size units.Bytes) (int32, error)
	Answer(q fabric.QP, size units.Bytes, request int32) (int32, error)
}

// Abandoner is a network whose queue pairs can end before their messages do. Abandon ends one: the network reports
// nothing about the messages that are not acknowledged, and their numbers are free once dropped has been called with
// each, from inside Abandon. It may call Broken of its sink for a queue pair that has given up.
type Abandoner interface {
	Abandon(q fabric.QP, dropped func(m int32)) error
}

// Pooler is a network whose queue pairs can share receives. Pool makes a pool of some, with the time that a sender
// waits whose message found none. Receives makes the messages posted later on a queue pair take one each, when they
// arrive. Repost gives one back that was taken, at any time; the network itself gives back that of a message whose
// queue pair is abandoned before the message is delivered. Posted returns how many of a pool are not taken.
type Pooler interface {
	Pool(count int, timer sim.Time) (int32, error)
	Receives(q fabric.QP, pool int32) error
	Repost(pool int32)
	Posted(pool int32) int
}

// Chooser chooses the queue pair of each message. Post's contract applies to Send, but messages may arrive in any
// order.
type Chooser interface {
	Send(src, dst int32, class uint8, size units.Bytes) (int32, error)
}
