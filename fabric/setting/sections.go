package setting

import "farflash/units"

// QueuePairs says how messages share queue pairs.
type QueuePairs struct {
	// Life is persistent (a pair's messages share queue pairs, whose rates outlive each
	// message) or per-message (each has a new one that begins at line rate).
	Life Life
	// PerPeer is how many persistent queue pairs a host has to each other host and class;
	// messages take turns.
	PerPeer int
}

// RoundTrip says how round trips are counted.
type RoundTrip struct {
	// Longest takes the longest round trip in the network and not the pair's own.
	Longest bool
	// PayloadOnly counts a round trip without headers and without the ACK's own time.
	PayloadOnly bool
}

// Acks are the receivers' acknowledgements.
type Acks struct {
	// Every is how many packets one ACK answers; the last of a message is answered at
	// once.
	Every int
	// Size on the wire.
	Size units.Bytes
	// Class is the traffic class in switches. Class 0 is served first, cannot be paused
	// and takes no part in the shared buffer.
	Class int
	// Follow puts ACKs in the traffic class of the data that they answer, in place of class.
	Follow bool
	// HostClass is the class whose pause holds ACKs back in the NIC.
	HostClass int
	// Duplicates answers packets that come again as well, so that a lost ACK is made good.
	Duplicates bool
}

// CNP are the receivers' congestion notification packets.
type CNP struct {
	// Interval is the shortest time between two of a queue pair's.
	Interval units.Duration
	// Size on the wire.
	Size units.Bytes
	// Ticking sends CNPs only at multiples of the interval after the first packet, as
	// ns3-rdma does, and not with the first mark.
	Ticking bool
	// Echo puts each mark on the packet's ACK instead; no CNP is sent.
	Echo bool
}

// Recovery is what happens when packets are lost.
type Recovery struct {
	// Kind is go-back-n, as RoCE NICs do it, or selective-repeat, as in IRN (Mittal et
	// al., SIGCOMM 2018): only what is lost is sent again; or sack, as TCP does it: also only what is lost. Packets known
	// to have come or to be lost take no room in the window (RFC 6675). A repetition counts as lost when a packet sent
	// after it has come first (RFC 8985).
	Kind RecoveryKind
	// Timeout is how long a queue pair waits for progress before it sends again what is
	// not acknowledged, and twice as long after each time that was of no use, up to 64 times:
	// a time, auto (67.1 ms, InfiniBand's local ACK timeout 14, with
	// PFC; 4 ms without, and with a watchdog that ends pauses; for selective repeat 320 us), or none.
	Timeout Timeout
	// ShortTimeout is selective repeat's timeout while at most ShortCount packets are in
	// flight (IRN's RTO_low and N).
	ShortTimeout units.Duration
	// ShortCount is explained at short_timeout.
	ShortCount int
	// NackInterval is the shortest time between two NACKs for the same packet.
	NackInterval units.Duration
	// Reordering is how many packets may overtake one before it counts as lost, where receivers keep what comes out of order; 0 is none, as on one way. Where switches trim it is of no matter: they
	// say what is lost.
	Reordering int
	// Window is how many packets a sender goes beyond the first that is not acknowledged at most: what a receiver has bits for; 0 is any number.
	Window int
}

// PFC is priority flow control.
type PFC struct {
	// Enabled makes switches lossless: they pause who sends to them in time.
	Enabled bool
	// Threshold is what one port and class may take of the shared buffer before it
	// pauses: dynamic (alpha times what is free), or a size.
	Threshold Threshold
	// Alpha is the dynamic threshold's share of what is free.
	Alpha units.Fraction
	// AlphaByRate doubles alpha for each doubling of a port's rate over the hosts', up to
	// 1.
	AlphaByRate bool
	// Headroom is kept for each lossless port and class, for what still comes after it
	// pauses: auto (computed from rate, delay and packet size so that nothing is ever
	// lost), a size, or hpcc (three bandwidth-delay products, which is too little).
	Headroom Headroom
	// Reserve is each port and class's own part of the buffer.
	Reserve units.Bytes
	// ResumeOffset is how far below the threshold a paused port must be to go on.
	ResumeOffset units.Bytes
	// Frame is a pause frame's size on the wire.
	Frame units.Bytes
	// Quanta is how long a pause lasts unless it is refreshed, in units of 512 bit times
	// (65535 at most); 0 is until resumed.
	Quanta int
}

// ECN marks packets that leave a long queue, by RED on the queue's present length.
type ECN struct {
	// Enabled marks.
	Enabled bool
	// Kmin is the queue below which nothing is marked, for a port of Rate; other ports
	// have it in proportion to theirs.
	Kmin units.Bytes
	// Kmax is the queue above which everything is marked, likewise.
	Kmax units.Bytes
	// Pmax is the share that is marked at Kmax.
	Pmax units.Fraction
	// Rate is explained at kmin.
	Rate units.BitRate
	// Ports have their own, by rate.
	Ports []ECNPort
}

// ECNPort is marking for ports of one rate.
type ECNPort struct {
	// Rate of the ports.
	Rate units.BitRate
	// Kmin is the queue below which nothing is marked.
	Kmin units.Bytes
	// Kmax is the queue above which everything is marked.
	Kmax units.Bytes
	// Pmax is the share that is marked at Kmax.
	Pmax units.Fraction
}

// Watchdog looks for ports that stay paused.
type Watchdog struct {
	// After is how long a port may stay paused before it is reported; 0 is for ever.
	After units.Duration
	// Action is report, or ignore: the pause is also ended and others of its class are
	// ignored for as long again, as switches' watchdogs do, and what then finds no room is lost.
	Action WatchdogAction
}

// Telemetry is what switches write into packets.
type Telemetry struct {
	// Size is what it adds to each data packet and ACK.
	Size units.Bytes
	// AckSize is what it adds to each ACK.
	AckSize units.Bytes
	// Multiple is INT_MULTI of the simulator HPCC: values are kept in multiples of 128 B
	// and 80 B times this. 0 keeps them exactly.
	Multiple int
}
