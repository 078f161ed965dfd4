package fabric

import (
	"farflash/model/fabric/setting"
	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// HPCC sets the behaviour of the simulator HPCC (Li et al., SIGCOMM 2019; its ns-3 code) that is not a setting of its
// files: whole nanoseconds, a headroom of three bandwidth-delay products, its random numbers, marks echoed on ACKs, a
// queue pair for each message, no retransmission timer, pauses that last until they are resumed, and headers that stand
// for RoCE's.
func HPCC(c Config) Config {
	// Its ACK_HIGH_PRIO affects hosts only: with it their ACKs pass a pause, which is Acks.HostClass 0, but switches
	// queue them among the data, which is Acks.Class.
	c.Header = 48
	c.Rounding, c.Ways, c.Random = WholeNanoseconds, Descending, NS3Random
	c.QueuePairs = setting.QueuePairs{Life: PerMessage, PerPeer: 1}
	c.Acks = setting.Acks{Every: 1, Size: 60, Class: HPCCClass, HostClass: HPCCClass}
	c.CNP.Echo = true
	c.Recovery = setting.Recovery{NackInterval: 500 * units.Microsecond, ShortTimeout: c.Recovery.ShortTimeout,
		ShortCount: c.Recovery.ShortCount}
	c.PFC.Headroom = setting.Headroom{Kind: HeadroomHPCC}
	c.PFC.Alpha, c.PFC.AlphaByRate = 1.0/8, true
	c.PFC.Threshold = Threshold{Dynamic: true}
	c.PFC.Reserve, c.PFC.ResumeOffset = 4*units.KiB, 3*units.KiB
	c.PFC.Frame, c.PFC.Quanta = 43, 0
	c.RoundTrip.PayloadOnly = true
	c.Watchdog.After = 0
	return c
}

// HPCCClass is the class of that simulator's flows, and of ACKs in its switches.
const HPCCClass = 3

// hpccDraws returns the random numbers of that simulator's run number seed. Each marking decision, and each pause
// frame's identification, creates a new random variable and with it a new stream. Before the first one the program has
// created 8 streams, plus 6 for each link. These numbers were found by comparing completion times, which they reproduce
// to the nanosecond.
func hpccDraws(seed uint64, links int) *rng.NS3Draws {
	return rng.NewNS3Draws(seed, 8+6*uint64(links))
}
