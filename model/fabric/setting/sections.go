package setting

import "farflash/numeric/units"

// QueuePairs says how messages share queue pairs.
type QueuePairs struct {
	// Life says how long a queue pair lives.
	Life Life
	// PerPeer is the number of persistent queue pairs from a host to each other host and class. Messages take turns
	// on them.
	PerPeer int
}

// RoundTrip says how round trips are counted.
type RoundTrip struct {
	// Longest takes the longest round trip in the network instead of the pair's own.
	Longest bool
	// PayloadOnly counts a round trip without headers and without the ACK's own time.
	PayloadOnly bool
}

// Acks are the receivers' acknowledgements.
type Acks struct {
	// Every is the number of packets that one ACK answers. The last packet of a message is answered at once.
	Every int
	// Size is the size of an ACK on the wire.
	Size units.Bytes
	// Class is the traffic class of ACKs in switches. Class 0 is served first, cannot be paused, and does not use the
	// shared buffer.
	Class int
	// Follow sends ACKs in the traffic class of the data that they answer, instead of class.
	Follow bool
	// HostClass is the class whose pause stops ACKs in the NIC.
	HostClass int
	// Duplicates answers also packets that have come before, in case their ACK was lost.
	Duplicates bool
}

// CNP are the receivers' congestion notification packets.
type CNP struct {
	// Interval is the shortest time between two CNPs of a queue pair.
	Interval units.Duration
	// Size is the size of a CNP on the wire.
	Size units.Bytes
	// Ticking sends CNPs only at multiples of the interval after the first packet, as ns3-rdma does, instead of with
	// the first mark.
	Ticking bool
	// Echo copies each mark to the packet's ACK. No CNP is sent.
	Echo bool
}

// Recovery is what happens when packets are lost.
type Recovery struct {
	// Kind says what is sent again after a loss.
	Kind RecoveryKind
	// Timeout is how long a queue pair waits for progress before it sends unacknowledged packets again: a time, none,
	// or auto. It doubles with each failure, up to 64 times. auto is 67.1 ms with PFC (InfiniBand's local ACK timeout
	// 14), 4 ms without PFC or with a watchdog that ends pauses, and 320 us for selective repeat.
	Timeout Timeout
	// ShortTimeout is selective repeat's timeout while at most short_count packets are in flight (RTO_low and N in
	// IRN).
	ShortTimeout units.Duration
	// ShortCount is the number of packets up to which short_timeout applies.
	ShortCount int
	// NackInterval is the shortest time between two NACKs for the same packet.
	NackInterval units.Duration
	// Reordering is how many packets may overtake one before it counts as lost, where receivers keep packets out of
	// order. 0 is none. With trimming it has no effect: switches then report losses.
	Reordering int
	// Window is how many packets a sender may go beyond the first unacknowledged one: the size of the receiver's
	// bitmap. 0 is no limit.
	Window int
}

// PFC is priority flow control.
type PFC struct {
	// Enabled makes switches lossless: they pause senders before their buffers overflow.
	Enabled bool
	// Threshold is how much of the shared buffer one port and class may take before it pauses: dynamic (alpha times
	// what is free), or a size.
	Threshold Threshold
	// Alpha is the dynamic threshold's share of what is free.
	Alpha units.Fraction
	// AlphaByRate doubles alpha for each doubling of a port's rate over the hosts', up to
	// 1.
	AlphaByRate bool
	// Headroom is kept for each lossless port and class, for packets that arrive after a pause: auto (computed from
	// rate, delay and packet size, so that nothing is lost), a size, or hpcc (three bandwidth-delay products, which
	// is too little).
	Headroom Headroom
	// Reserve is the part of the buffer that each port and class has for itself.
	Reserve units.Bytes
	// ResumeOffset is how far below the threshold a paused port must fall to resume.
	ResumeOffset units.Bytes
	// Frame is the size of a pause frame on the wire.
	Frame units.Bytes
	// Quanta is how long a pause lasts unless it is refreshed, in units of 512 bit times, at most 65535. 0 is until
	// resumed.
	Quanta int
}

// ECN marks packets that leave a long queue, by RED on the queue's present length.
type ECN struct {
	// Enabled turns marking on.
	Enabled bool
	// Kmin is the queue below which nothing is marked, at a port of the rate in key rate. Other ports have it in
	// proportion to their rate.
	Kmin units.Bytes
	// Kmax is the queue above which every packet is marked, at a port of that rate.
	Kmax units.Bytes
	// Pmax is the share of packets that is marked at kmax.
	Pmax units.Fraction
	// Rate is the port rate that kmin and kmax are for.
	Rate units.BitRate
	// Ports are exceptions for ports of given rates.
	Ports []ECNPort
}

// ECNPort is marking for ports of one rate.
type ECNPort struct {
	// Rate is the rate of these ports.
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
	// After is how long a port may stay paused before it is reported. 0 turns the watchdog off.
	After units.Duration
	// Action says what the watchdog does.
	Action WatchdogAction
}

// Telemetry is what switches write into packets.
type Telemetry struct {
	// Size is what it adds to each data packet and each ACK.
	Size units.Bytes
	// AckSize is what it adds to each ACK.
	AckSize units.Bytes
	// Multiple is INT_MULTI of HPCC's ns-3: values are kept in multiples of 128 B and of 80 B times this number. 0
	// keeps them exactly.
	Multiple int
}
