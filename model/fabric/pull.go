package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/sim"
)

// Receivers that pull (cc.NDP). A host serves the queue pairs that it owes pulls to in turn, regardless of the port
// their packets arrived on, and sends one pull per full packet time of its link. Pulls are numbered cumulatively, so
// each makes up for lost earlier ones. A sender with no more data is not pulled from: when a queue pair has received
// everything up to the sender's last packet, it sends all the pulls that it owes at once, as credit for later data, and
// takes no turns from others. NDP has a new queue pair for each message, whose receiver forgets them, and EQDS has such
// credit (Olteanu et al., NSDI 2022).

// pulling is the pull state of a queue pair, both sides.
type pulling struct {
	owed    int32  // receiver: packets that have arrived and are not yet pulled for
	asked   uint32 // receiver: packets requested so far
	drained uint32 // receiver: just past the last packet that emptied the sender
	heard   uint32 // sender: packets requested so far, as far as it knows
}

// pulls is the pull queue of a NIC.
type pulls struct {
	turns ring[uint32] // queue pairs in turn, by tag
	free  sim.Time     // when the next pull may be sent
	armed bool
}

// owe records an arrived packet, for which another is to be pulled.
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
		if r.done || n.buried(r) { // fully received
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

// refund sends a queue pair whose sender has no more data all the pulls that it is owed.
func (n *Network) refund(r *receiver, qp uint32) {
	if w := &n.pulling[qp&slotMask]; w.owed > 0 && n.cfg.QueuePairs.Life != PerMessage {
		n.ask(r, qp, w.owed)
	}
}

// ask sends a pull for a number of packets.
func (n *Network) ask(r *receiver, qp uint32, packets int32) {
	w := &n.pulling[qp&slotMask]
	w.owed -= packets
	w.asked += uint32(packets)
	n.Counters.Pulls++
	n.answer(r, packet{qp: qp, psn: w.asked, kind: pullPacket, size: uint16(n.cfg.Acks.Size), flags: answers,
		class: n.ackClass(&n.senders[qp&slotMask])})
}

// pulled handles a pull that arrived at its sender.
func (n *Network) pulled(x *packet) {
	q := int32(x.qp & slotMask)
	s, w := &n.senders[q], &n.pulling[q]
	if !before(w.heard, x.psn) {
		return // a later pull has overtaken it
	}
	n.signal = cc.Signal{Kind: cc.Pull, Now: n.eng.Now(), Pulls: int32(x.psn - w.heard)}
	w.heard = x.psn
	if s.timing {
		n.await(s) // the receiver is alive, though its turns may go to others
	}
	lead, l := n.lead(q, s)
	if l.standing == finished || l.broken {
		return
	}
	n.react(lead, l, &n.control[lead])
	if l.standing == blocked || l.standing == idle && n.more(l) {
		n.offer(lead, l)
	}
}
