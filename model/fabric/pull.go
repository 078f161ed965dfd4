package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/sim"
)

// Receivers that pull (cc.NDP). A host keeps the queue pairs that it owes pulls to in turn, whichever of its ports
// their packets came through, and sends one pull in the time in which its link takes in a full packet. Pulls are
// numbered, so that one that comes makes good all before it that were lost. Nobody is pulled from who has nothing to
// send: when all has come of a queue pair that had nothing behind it, it is told at once of all pulls that it is
// owed, as credit for what it sends next, and takes no turns of others. NDP has a new queue pair for each message,
// whose receiver forgets them, and EQDS such credit (Olteanu et al., NSDI 2022).

// pulling is what is known of a queue pair's pulls.
type pulling struct {
	owed    int32  // of packets that have come, by the receiver
	asked   uint32 // for so many the receiver has asked
	drained uint32 // behind the last packet behind which the sender had nothing, for the receiver
	heard   uint32 // for so many the sender knows that it was asked
}

// pulls is what a NIC has to pull for.
type pulls struct {
	turns ring[uint32] // queue pairs, by tag
	free  sim.Time     // when the next pull may go
	armed bool
}

// owe is for a packet that has come: another is to be pulled for.
func (n *Network) owe(r *receiver, x *packet) {
	p := &n.ports[r.port]
	k, w := &n.nics[p.nic].pulls, &n.pulling[x.qp&slotMask]
	if w.owed++; w.owed == 1 {
		k.turns.Push(x.qp)
	}
	if x.flags&drains != 0 {
		w.drained = x.psn + 1
	}
	if !k.armed {
		k.armed = true
		n.eng.Schedule(n.inPort(p), n.target, max(k.free, n.eng.Now()), pull, uint32(p.nic))
	}
}

// pull sends a NIC's next pull.
func (n *Network) pull(nic int32) {
	k := &n.nics[nic].pulls
	k.armed = false
	for k.turns.N > 0 {
		qp := k.turns.Pop()
		r, w := &n.receive[qp&slotMask], &n.pulling[qp&slotMask]
		if r.tag != qp || w.owed == 0 {
			continue
		}
		if r.done || n.buried(r) { // all has come
			w.owed = 0
			continue
		}
		if w.owed > 1 {
			k.turns.Push(qp)
		}
		n.ask(r, qp, 1)
		p := &n.ports[r.port]
		k.free = n.eng.Now() + n.time(p, uint16(n.cfg.Payload+n.cfg.Header+n.cfg.Telemetry.Size))
		if k.turns.N > 0 {
			k.armed = true
			n.eng.Schedule(n.inPort(p), n.target, k.free, pull, uint32(nic))
		}
		return
	}
}

// refund gives a queue pair that has nothing to send all that it is owed.
func (n *Network) refund(r *receiver, qp uint32) {
	if w := &n.pulling[qp&slotMask]; w.owed > 0 && n.cfg.QueuePairs.Life != PerMessage {
		n.ask(r, qp, w.owed)
	}
}

// ask sends a pull for so many packets.
func (n *Network) ask(r *receiver, qp uint32, packets int32) {
	w := &n.pulling[qp&slotMask]
	w.owed -= packets
	w.asked += uint32(packets)
	n.Counters.Pulls++
	n.answer(r, packet{qp: qp, psn: w.asked, kind: pullPacket, size: uint16(n.cfg.Acks.Size), flags: answers,
		class: n.ackClass(&n.senders[qp&slotMask])})
}

// pulled is for a pull that has come to its sender.
func (n *Network) pulled(x *packet) {
	q := int32(x.qp & slotMask)
	s, w := &n.senders[q], &n.pulling[q]
	if !before(w.heard, x.psn) {
		return // one that was sent later has overtaken it
	}
	n.signal = cc.Signal{Kind: cc.Pull, Now: n.eng.Now(), Pulls: int32(x.psn - w.heard)}
	w.heard = x.psn
	if s.timing {
		n.await(s) // the receiver is at work, though others may have its turns
	}
	lead, l := n.lead(q, s)
	if l.standing == finished {
		return
	}
	n.react(lead, l, &n.control[lead])
	if l.standing == blocked || l.standing == idle && n.more(l) {
		n.offer(lead, l)
	}
}
