package fabric

import (
	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/numeric/units"
)

// Pools is the buffer of ns3-rdma's switches (Zhu et al., SIGCOMM 2015; the ns-3 code published with it), which differs
// from the shared buffer of buffer.go: it has one service pool, beyond whose limit every packet is charged to headroom,
// minimums that thresholds add to, and a static or dynamic limit for each class.
type Pools struct {
	Limit   units.Bytes // Limit is the limit of the service pool; beyond it packets are headroom.
	Minimum units.Bytes // Minimum is guaranteed to a class of a port; thresholds come on top of it.
	// Alpha is the factor of the dynamic limit: alpha times the space left in the pool. 0 makes the limit static.
	Alpha       int
	ClassLimit  units.Bytes // ClassLimit is the static limit of a class.
	ClassResume units.Bytes // ClassResume is the level below which a paused class is resumed.
	// Recheck is how long after a pause the switch decides whether to refresh or resume it; a pause lasts Lasts.
	Recheck, Lasts units.Duration
}

// NS3RDMA sets the behaviour of ns3-rdma that its files do not set.
func NS3RDMA(c Config) Config {
	const cell = 1030
	c.Header = 22 // 20 IP, 2 PPP; UDP and sequence numbers are payload, as its goodput counts them
	c.Acks.Size, c.Acks.Duplicates = 30, false
	c.Acks.Class, c.Acks.HostClass = 0, 0
	c.CNP.Size, c.CNP.Ticking, c.CNP.Echo = 30, true, false
	c.PFC.Frame, c.PFC.Quanta = 31, 0
	c.PFC.Headroom = setting.Headroom{Kind: HeadroomFixed, Size: 100 * cell}
	c.Buffer = 9 * units.MB
	c.CongestionControl.DCQCN = cc.NS3RDMADCQCN()
	c.Rounding = WholeNanoseconds
	c.QueuePairs.Life = PerMessage
	c.Recovery.Timeout = Timeout{}
	c.Watchdog.After = 0
	return c
}

// NS3RDMAPools returns ns3-rdma's buffer, with static limits for a static threshold.
func NS3RDMAPools(c Config) *Pools {
	const cell = 1030
	p := Pools{Limit: 4000 * cell, Minimum: 2 * cell, Recheck: 2 * units.Microsecond, Lasts: 5 * units.Microsecond}
	if c.PFC.Threshold.Dynamic {
		p.Alpha = 16
	} else {
		p.ClassLimit = c.PFC.Threshold.Size
		p.ClassResume = p.ClassLimit - 2*cell
	}
	return &p
}

// admitPools charges a packet as ns3-rdma does.
func (n *Network) admitPools(in int32, q *port, sw *node, l *classQueue, class uint8, size int64) bool {
	p := n.cfg.Pools
	over := sw.shared > int64(p.Limit)
	if sw.shared+size > int64(n.cfg.Buffer) || over && l.in+size > int64(p.Minimum) && l.head+size > q.head {
		return false
	}
	sw.shared += size
	l.in += size
	if sw.shared > int64(p.Limit) {
		l.head += size
	}
	if !l.off && p.pauses(sw, l) {
		n.pause(in, q, l, class)
		n.lookAgain(in, q, class)
	}
	return true
}

func (n *Network) releasePools(sw *node, l *classQueue, size int64) {
	sw.shared -= size
	l.in -= size
	l.head = max(0, l.head-size)
}

// pauses reports whether a class has exceeded its limit.
func (p *Pools) pauses(sw *node, l *classQueue) bool {
	if p.Alpha == 0 {
		return l.in > int64(p.ClassLimit)
	}
	return l.in > int64(p.Minimum) && l.in-int64(p.Minimum) > int64(p.Alpha)*(int64(p.Limit)-sw.shared)
}

// resumes reports whether a class can be resumed.
func (p *Pools) resumes(sw *node, l *classQueue) bool {
	if p.Alpha == 0 {
		return l.in < int64(p.ClassResume)
	}
	return l.in-int64(p.Minimum) < int64(p.Alpha)*(int64(p.Limit)-sw.shared-16)
}

// recheck is ns3-rdma's periodic decision about a class that it has paused.
func (n *Network) recheck(pi int32, p *port, l *classQueue, class uint8) {
	sw := &n.nodes[p.node]
	if n.cfg.Pools.resumes(sw, l) {
		n.resume(pi, p, l, class)
		return
	}
	if n.cfg.Pools.pauses(sw, l) {
		n.Counters.Refreshes++
		n.frame(pi, p, class, pauseFrame)
	}
	n.lookAgain(pi, p, class)
}

// lookAgain schedules the next recheck.
func (n *Network) lookAgain(pi int32, p *port, class uint8) {
	i := uint32(pi)*MaxClasses + uint32(class)
	n.looks[i] = n.eng.Now() + n.cfg.Pools.Recheck
	n.eng.Schedule(n.inPort(p), n.target, n.looks[i], refresh, i)
}
