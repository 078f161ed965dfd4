package fabric

import "farflash/units"

// HPCC sets what is like the simulator HPCC (Li et al., SIGCOMM 2019; the ns-3 code published
// with it) and is not a setting of its configuration files: whole nanoseconds, a headroom of three
// bandwidth-delay products, marks echoed on ACKs, a queue pair for each message, no
// retransmission timer, pauses that last until they are taken back, and headers that
// stand for RoCE's.
//
// Its ACK_HIGH_PRIO reaches the hosts only: their ACKs pass a pause, which is Acks.HostClass 0, but
// switches hold them among the data, which is Acks.Class.
func HPCC(c Config) Config {
	c.Header = 48
	c.Rounding, c.Ways = WholeNanoseconds, Descending
	c.QueuePairs = QueuePairs{Life: PerMessage, PerPeer: 1}
	c.Acks = Acks{Every: 1, Size: 60, Class: HPCCClass, HostClass: HPCCClass}
	c.CNP.Echo = true
	c.Recovery = Recovery{NackInterval: 500 * units.Microsecond, ShortTimeout: c.Recovery.ShortTimeout, ShortCount: c.Recovery.ShortCount}
	c.PFC.Headroom = Headroom{Kind: HeadroomHPCC}
	c.PFC.Alpha, c.PFC.AlphaByRate = 1.0/8, true
	c.PFC.Threshold = Threshold{Dynamic: true}
	c.PFC.Reserve, c.PFC.ResumeOffset = 4*units.KiB, 3*units.KiB
	c.PFC.Frame, c.PFC.Quanta = 43, 0
	c.RoundTrip.PayloadOnly = true
	c.Watchdog.After = 0
	return c
}

// HPCCClass is the traffic class of ACKs in that simulator's switches, which must be
// that of its flows.
const HPCCClass = 3
