package setting

import "farflash/numeric/units"

// QueuePairs sets how messages share queue pairs.
type QueuePairs struct {
	// Life sets how long a queue pair lives.
	Life Life
	// PerPeer is the number of persistent queue pairs from a host to each other host and class, used in turn.
	PerPeer int
}

// RoundTrip sets how base round trips are computed.
type RoundTrip struct {
	// Longest uses the longest round trip in the network instead of the pair's own.
	Longest bool
	// PayloadOnly excludes headers and the ACK's time on the wire from round trips.
	PayloadOnly bool
}

// Acks are the receivers' acknowledgements.
type Acks struct {
	// Every is the number of packets per ACK. A message's last packet is acknowledged at once.
	Every int
	// Size is the size of an ACK on the wire.
	Size units.Bytes
	// Class is the traffic class of ACKs in switches. Class 0 is served first, is never paused, and does not use the
	// shared buffer.
	Class int
	// Follow sends ACKs in the traffic class of the acknowledged data, instead of class.
	Follow bool
	// HostClass is the class whose pause stops ACKs in the NIC.
	HostClass int
	// Duplicates acknowledges duplicate packets too, in case their ACK was lost.
	Duplicates bool
	// Answers sets which packets of the answers to RDMA Reads are acknowledged.
	Answers Answers
}

// CNP are the receivers' congestion notification packets.
type CNP struct {
	// Interval is the shortest time between two CNPs of a queue pair.
	Interval units.Duration
	// Size is the size of a CNP on the wire.
	Size units.Bytes
	// Ticking sends CNPs only at multiples of the interval after the first packet, as ns3-rdma does, instead of at the
	// first mark.
	Ticking bool
	// Echo copies each mark to the packet's ACK instead of sending CNPs.
	Echo bool
	// Answers is what marks on answers to RDMA Reads cause, with dcqcn.
	Answers Notices
}

// Recovery sets how lost packets are recovered.
type Recovery struct {
	// Kind sets which packets are retransmitted after a loss.
	Kind RecoveryKind
	// Timeout is the time without progress after which a queue pair retransmits unacknowledged packets: a time, none,
	// or auto. It doubles with each failure, up to 64 times, with TCP up to 120 s. auto is 67.1 ms with PFC
	// (InfiniBand's local ACK timeout 14), 4 ms without PFC or with a watchdog that ends pauses, and for selective
	// repeat 320 us, on links below 40Gbps as much more; and never less than the queue pair's round trips make likely
	// (RFC 6298).
	Timeout Timeout
	// FirstTimeout is the least timeout of a TCP connection without a round trip measured, which doubles as well: 1s if
	// it begins with its first message (RFC 6298, section 2). 0s: it has been established.
	FirstTimeout units.Duration
	// ShortTimeout is the timeout of selective repeat with at most short_count packets in flight (RTO_low and N in
	// IRN).
	ShortTimeout units.Duration
	// ShortCount is the largest number of packets in flight for short_timeout.
	ShortCount int
	// NackInterval is the shortest time between two NACKs for the same packet.
	NackInterval units.Duration
	// Reordering is how many packets may overtake one before it counts as lost, where receivers keep packets out of
	// order. 0 is none. No effect with trimming, where switches report losses.
	Reordering int
	// Window is how far a sender may run ahead of the first unacknowledged packet, in packets: the size of the
	// receiver's bitmap. 0 is no limit.
	Window int
	// Retries is how often a queue pair retransmits without progress before it gives up: 7, the most of InfiniBand's
	// retry count; over TCP 15 (Linux' tcp_retries2). 0 is no limit.
	Retries int
}

// PFC is priority flow control.
type PFC struct {
	// Enabled makes switches lossless: they pause senders before their buffers overflow.
	Enabled bool
	// Threshold is the shared buffer that one port and class may occupy before it pauses the sender: dynamic (alpha
	// times the free space), or a size.
	Threshold Threshold
	// Alpha is the share of the free space that the dynamic threshold allows.
	Alpha units.Fraction
	// AlphaByRate doubles alpha for each doubling of a port's rate over the hosts', up to 1.
	AlphaByRate bool
	// Headroom is reserved for each lossless port and class, for packets that arrive after a pause: auto (from rate,
	// delay and packet size, so that none is lost), a size, or hpcc (three bandwidth-delay products, which is too
	// little).
	Headroom Headroom
	// Reserve is the buffer of each port and class alone.
	Reserve units.Bytes
	// ResumeOffset is how far below the threshold a class must fall before the sender is resumed.
	ResumeOffset units.Bytes
	// Frame is the size of a pause frame on the wire.
	Frame units.Bytes
	// Quanta is the duration of a pause that is not refreshed, in units of 512 bit times, at most 65535. With 0 it
	// lasts until resumed.
	Quanta int
}

// ECN marks packets that leave a long queue, by RED on the instantaneous queue length.
type ECN struct {
	// Enabled turns marking on.
	Enabled bool
	// Kmin is the queue length below which no packet is marked, at a port of the rate in key rate. For other ports it
	// scales with their rate.
	Kmin units.Bytes
	// Kmax is the queue length above which every packet is marked, at a port of the rate in key rate.
	Kmax units.Bytes
	// Pmax is the share of packets marked at kmax.
	Pmax units.Fraction
	// Rate is the port rate that kmin and kmax refer to.
	Rate units.BitRate
	// Ports are exceptions for ports of given rates.
	Ports []ECNPort
}

// ECNPort sets the marking at ports of one rate.
type ECNPort struct {
	// Rate is the rate of these ports.
	Rate units.BitRate
	// Kmin is the queue length below which no packet is marked.
	Kmin units.Bytes
	// Kmax is the queue length above which every packet is marked.
	Kmax units.Bytes
	// Pmax is the share of packets marked at kmax.
	Pmax units.Fraction
}

// Watchdog looks for ports that stay paused.
type Watchdog struct {
	// After is how long a port may stay paused before it is reported. 0 turns the watchdog off.
	After units.Duration
	// Action is the watchdog's response.
	Action WatchdogAction
}

// Telemetry is the data that switches write into packets.
type Telemetry struct {
	// Size is added to each data packet for telemetry.
	Size units.Bytes
	// AckSize is added to each ACK for telemetry.
	AckSize units.Bytes
	// Multiple is INT_MULTI of HPCC's ns-3: values are multiples of 128 B and of 80 B times this number. 0 is exact
	// values.
	Multiple int
}
