package nvmf

import (
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/sim"
)

// Fabric is the network as initiators and targets see it: reliable, and in order within a queue pair.
//
// Open makes a queue pair from one node to another; it is an error if there is no such node, if they are one, or if
// the traffic class is not possible. Post gives a queue pair a message of one byte at least, and returns its number.
// The network says of each message first that it was Delivered, as a whole, and then that it was Acked, once each and
// never inside Post; Delivered in the order in which a queue pair's messages were posted. Whoever it says that to may
// post.
//
// Begun is when the message's first packet was sent; it may be asked for from Delivered on until Forget. A message's
// number is not another's before its owner, to whom Acked has been said, calls Forget.
type Fabric interface {
	Open(src, dst int32, class uint8) (fabric.QP, error)
	Post(q fabric.QP, size units.Bytes) (int32, error)
	Begun(m int32) sim.Time
	Forget(m int32)
}

// Reader is a network whose queue pairs answer RDMA Reads, as InfiniBand's do: on a stream of the responder's own
// that waits for nothing in the send queue, and beside it shares the queue pair's rate.
//
// Respond opens the stream on which the sender of out answers what is asked for on back, its other direction; a queue
// pair has one at most. Ask posts a request, which may have no ACK of its own: then it is Acked with the first of its
// answer. Answer posts the answer and is called once, from inside the request's Delivered. What Fabric says of Post
// holds for both.
type Reader interface {
	Respond(out, back fabric.QP) (fabric.QP, error)
	Ask(q fabric.QP, size units.Bytes) (int32, error)
	Answer(q fabric.QP, size units.Bytes, request int32) (int32, error)
}

// Chooser is a network that chooses the queue pair of each message itself. What Fabric says of Post holds for Send,
// but that messages arrive in the order in which they were posted.
type Chooser interface {
	Send(src, dst int32, class uint8, size units.Bytes) (int32, error)
}
