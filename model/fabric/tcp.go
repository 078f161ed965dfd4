package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
)

// TCP makes queue pairs into TCP connections, one per direction: segments for an MTU of 1500 with timestamps, an ACK
// for every other segment, selective acknowledgements (RFC 2018, 6675), a retransmission timer of Linux' minimum
// (TCP_RTO_MIN), the window of cc.TCP, and no flow control by the switches. Marks are echoed on ACKs.
// docs/models/fabric.md has the differences from TCP.
func TCP(c Config) Config {
	// The mechanism is that of the queue pairs; other aspects of TCP are left out. A message begins with a new segment.
	// The first selective acknowledgement starts the recovery, where TCP waits for three, because packets of a queue
	// pair keep to one path. A withheld ACK is sent after some packet times or at a message's end rather than after 40
	// ms. The retransmission timer does not follow the round trip, which in a data center is a thousandth of the
	// timer's minimum; it doubles up to two minutes (TCP_RTO_MAX), and a connection ends with the sixteenth in a row,
	// after 924.6 s (tcp_retries2 in Linux' ip-sysctl).
	c.Payload, c.Header = 1448, 90 // 1500 - 20 IP - 32 TCP; 14 + 20 IP + 32 TCP + 4 FCS, and 20 for preamble and gap
	c.CongestionControl.Algorithm = cc.SchemeTCP
	c.Acks = setting.Acks{Every: 2, Size: 90, Duplicates: true}
	c.Recovery.Kind = Sack
	c.Recovery.Timeout, c.Recovery.ShortTimeout = Timeout{Time: 200 * units.Millisecond}, 200*units.Millisecond
	c.Recovery.Retries = 15
	c.PFC.Enabled = false
	return c
}
