package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/numeric/units"
)

// Trimming cuts the payload off packets that find their queue full, as NDP's switches do (Handley et al., SIGCOMM 2017)
// and Ultra Ethernet's may. The header is forwarded ahead of all data; the receiver reports it, and the sender
// retransmits the packet at once. NDP's switches trim the queue's last packet instead in half of the cases; this model
// always trims the arriving one.
type Trimming struct {
	Enabled bool // Enabled turns trimming on. It excludes PFC.
	// Queue is the number of bytes that may wait in a port's class. A packet that would exceed it is trimmed.
	Queue units.Bytes
	Size  units.Bytes // Size is the size of a trimmed packet on the wire.
}

func (c *Trimming) validate(all *Config) error {
	var f units.Faults
	if !c.Enabled {
		return nil
	}
	// A queue shorter than a packet would trim every packet, and every retransmission.
	f.Hold(c.Queue >= all.packet() && c.Queue <= all.Buffer, "queue",
		"%v is not possible; use a packet's size, %v, up to the buffer's, %v", c.Queue, all.packet(), all.Buffer)
	f.Hold(c.Size >= 1 && c.Size <= units.KiB, "size", "%v is not possible; use 1B to 1KiB", c.Size)
	f.Hold(!all.PFC.Enabled, "enabled",
		"switches that pause their senders never trim; use pfc.enabled: false as well")
	f.Hold(all.Recovery.Kind == SelectiveRepeat, "enabled",
		"%v cannot retransmit a single trimmed packet; use recovery.kind: selective-repeat", all.Recovery.Kind)
	return f.Err()
}

// fits reports whether a packet fits into its queue untrimmed.
func (n *Network) fits(x *packet, to *classQueue) bool {
	return !n.cfg.Trimming.Enabled || x.kind != dataPacket || to.out+int64(x.size) <= int64(n.cfg.Trimming.Queue)
}

// trim cuts a packet to its header.
func (n *Network) trim(x *packet) {
	n.Counters.Trimmed++
	n.Counters.Lost += uint64(n.payload(x))
	x.size = min(x.size, uint16(n.cfg.Trimming.Size))
	x.flags |= trimmed
	x.class = 0
}

// headless handles a packet whose payload was cut off: it reports the loss to the sender, and the congestion.
func (n *Network) headless(r *receiver, x *packet) {
	r.marked = true
	if n.wants.CNPs && !n.cfg.CNP.Echo {
		n.congested(r, x.qp)
	}
	if before(x.psn, r.expected) || r.arrived.Has(x.psn) {
		n.Counters.Duplicates++
		n.acknowledge(r, x, ackPacket)
		return
	}
	n.Counters.Nacks++
	n.acknowledge(r, x, nackPacket)
}

// cutOff handles the report that a packet was trimmed. Its telemetry is discarded, because it is that of a header that
// waited in no queue.
func (n *Network) cutOff(s *sender, lead int32, l *sender, x *packet) {
	s.repair.Acked(s.una)
	s.repair.Missing(x.sack, s.una)
	n.notes.Give(x.note)
	x.note = 0
	if n.wants.Losses {
		acked, next := n.progress(l)
		n.signal = cc.Signal{Kind: cc.Trim, Now: n.eng.Now(), Acked: acked, Next: next}
		n.react(lead, l, &n.control[lead])
	}
}

// patience returns how many packets may overtake one before it counts as lost. With trimming, switches report the
// packets that they drop, and a packet corrupted on a link is left to the timer: a retransmission arrives behind all
// packets in flight, so counting would take it for lost.
func (n *Network) patience() int {
	if n.cfg.Trimming.Enabled {
		return mostReordered
	}
	return n.cfg.Recovery.Reordering
}
