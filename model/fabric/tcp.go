package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/numeric/units"
)

// TCP sets what makes of queue pairs TCP connections, a direction each: segments of an MTU of 1500 with timestamps,
// an ACK for every other segment, recovery of what selective acknowledgements show to be missing (RFC 2018, 6675), a
// retransmission timer of Linux' least (TCP_RTO_MIN), the window of cc.TCP, and no flow control by the switches.
// Marks come back on ACKs.
//
// The mechanism is the queue pairs'; what TCP does otherwise is left out. A message begins with a new segment. The
// first selective acknowledgement begins the recovery, where TCP waits for three, for packets of a queue pair keep to
// one path. An ACK that is withheld comes after some packet times or with a message's end and not after 40 ms. The
// retransmission timer does not follow the round trip, which in a data center is a thousandth of its least; it
// doubles up to 64 times.
func TCP(c Config) Config {
	c.Payload, c.Header = 1448, 90 // 1500 - 20 IP - 32 TCP; 14 + 20 IP + 32 TCP + 4 FCS, and 20 for preamble and gap
	c.CongestionControl.Algorithm = cc.SchemeTCP
	c.Acks = Acks{Every: 2, Size: 90, Duplicates: true}
	c.Recovery.Kind = Sack
	c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: 200 * units.Millisecond}, 200*units.Millisecond
	c.PFC.Enabled = false
	return c
}
