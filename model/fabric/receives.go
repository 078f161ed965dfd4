package fabric

import (
	"fmt"

	"farflash/sim"
)

// Shared receives. A SEND takes a receive that the software of its destination has posted. The network leaves out
// receives where a queue pair has one for each message that its owner may send. Where queue pairs share fewer, a SEND
// that finds none is refused: the responder answers its first packet with an RNR NAK and drops the rest, and the
// requester sends again from that packet on once the NAK's timer has ended (InfiniBand specification, volume 1, chapter
// 9.7.5.2.8). Its count of these retries is 7, which never ends, as the stacks of Linux and SPDK set it, and they do
// not count as Recovery.Retries. Until the timer has ended the responder drops packets without a NACK. After that a
// gap is a loss, or packets took longer than the timer; the requester ignores NACKs while it waits.

// Pool makes a pool of receives and returns its number. timer must be one of receives.Timers.
func (n *Network) Pool(count int, timer sim.Time) (int32, error) { return n.receives.Add(count, timer) }

// Receives makes each further message on a persistent queue pair take a receive of a pool, all of whose queue pairs
// must lead to one host. While parts of the network run, only that host's may call Repost, and none Receives.
func (n *Network) Receives(q QP, pool int32) error {
	b := &n.receives
	switch {
	case q < 0 || int(q) >= len(n.senders) || pool < 0 || int(pool) >= b.Pools():
		return fmt.Errorf("no queue pair %d or no pool %d; there are %d and %d", q, pool, len(n.senders), b.Pools())
	case n.cfg.QueuePairs.Life == PerMessage:
		return fmt.Errorf("queue pair %d is for one message; shared receives need persistent queue pairs", q)
	case n.cfg.Recovery.Kind.Keeps():
		return fmt.Errorf("%v keeps packets behind one that found no receive; use go-back-n", n.cfg.Recovery.Kind)
	case n.receive[q].expected != n.senders[q].end || b.Of(int32(q)) >= 0:
		return fmt.Errorf("queue pair %d has messages that have not arrived, or a pool", q)
	}
	return b.Assign(int32(q), pool, n.senders[q].dst)
}

// Repost posts a receive of a pool again.
func (n *Network) Repost(pool int32) {
	exists("pool", pool, n.receives.Pools())
	n.receives.Post(pool)
}

// Posted returns how many receives of a pool are posted.
func (n *Network) Posted(pool int32) int {
	exists("pool", pool, n.receives.Pools())
	return n.receives.Posted(pool)
}

// begins reports whether a receiver's expected packet begins a message.
func (n *Network) begins(r *receiver) bool {
	m := r.opening
	if r.message >= 0 {
		m = n.messages[r.message].next
	}
	return m < 0 || n.messages[m].first == r.expected
}

// refuses takes a receive for the expected packet if it begins a message, and refuses it if there is none.
func (n *Network) refuses(r *receiver, x *packet) bool {
	pool := n.receives.Of(int32(x.qp & slotMask))
	if pool < 0 || !n.begins(r) || n.receives.Take(pool) {
		return false
	}
	n.Counters.Wasted += uint64(n.payload(x))
	n.Counters.RNRs++
	r.quiet, r.nacked = n.eng.Now()+n.receives.Timer(pool), r.expected
	n.acknowledge(r, x, rnrPacket)
	return true
}

// goBack handles a NACK or RNR NAK at a sender that repeats every packet behind a missing one. It reports a loss.
func (n *Network) goBack(q int32, s *sender, x *packet) bool {
	if before(x.psn, s.una) || s.top == s.una {
		return false
	}
	lost := x.kind == nackPacket && s.next != s.una // while it waits, next is una
	if lost {
		n.rewind(s)
	} else if x.kind == rnrPacket {
		n.rewind(s)
		s.waits, s.timing, s.stop = true, false, s.next
		n.makeTimer(n, QP(q), s)
		n.eng.Arm(s.expire, n.eng.Now()+n.receives.Timer(n.receives.Of(q)))
	}
	return lost
}

// goAgain ends the wait of a sender whose message found no receive.
func (n *Network) goAgain(q int32, s *sender) {
	s.waits = false
	n.bound(s)
	n.goOn(n.lead(q, s))
}

// leave returns the receive that a message of an abandoned queue pair has taken which has arrived in part.
func (n *Network) leave(q int32, r *receiver) {
	if pool := n.receives.Of(q); pool >= 0 {
		if !n.begins(r) {
			n.receives.Post(pool)
		}
		n.receives.Drop(q)
	}
}
