package fabric

import (
	"fmt"

	"farflash/model/fabric/cc"
	"farflash/model/fabric/setting"
	"farflash/model/fabric/spread"
	"farflash/numeric/units"
)

// MaxClasses is the number of traffic classes of a port, as in IEEE 802.1Q.
const MaxClasses = 8

// Config describes NICs and switches in plain values. The network's shape is a topo.Graph.
type Config struct {
	Payload units.Bytes // Payload is the largest payload of one packet, the path MTU of RoCE.
	// Header is the size of a data packet on the wire without its payload. The default is RoCEv2 over Ethernet: 14
	// Ethernet + 20 IP + 8 UDP + 12 BTH + 4 ICRC + 4 FCS + 20 preamble and gap.
	Header            units.Bytes
	CongestionControl cc.Config          // CongestionControl sets the rate or window of each queue pair.
	QueuePairs        setting.QueuePairs // QueuePairs sets how messages share queue pairs.
	// RoundTrip sets how congestion control's base round trips are computed.
	RoundTrip setting.RoundTrip
	Acks      setting.Acks     // Acks are the receivers' acknowledgements.
	CNP       setting.CNP      // CNP are the receivers' congestion notification packets.
	Recovery  setting.Recovery // Recovery sets how lost packets are recovered.
	PFC       setting.PFC      // PFC is priority flow control, IEEE 802.1Qbb.
	Buffer    units.Bytes      // Buffer is the packet memory of a switch, shared by its ports.
	// SwitchLatency is a switch's processing time for a packet that has fully arrived, in addition to its time on
	// wires. To use a data sheet's cut-through latency, subtract a packet's time on the wire.
	SwitchLatency units.Duration
	// Convergence is the time from a link's failure or return until all switches route accordingly. Meanwhile, packets
	// sent into a failed link are lost, and a restored link carries the queue pairs that still use it.
	Convergence units.Duration
	ECN         setting.ECN       // ECN marks packets that leave a long queue.
	Scheduler   setting.Scheduler // Scheduler is the order in which a port serves its classes.
	// Weights are the shares of the classes under dwrr, from class 0 on. Missing ones are 1.
	Weights  []int
	Watchdog setting.Watchdog // Watchdog looks for ports that stay paused.
	// Telemetry is the data that switches write into packets for congestion control.
	Telemetry Telemetry
	// Ways is the order in which switches number equally short paths, among which a hash of addresses and ports
	// selects.
	Ways setting.PathOrder
	// Trimming makes switches cut the payload off packets that find their queue full.
	Trimming      Trimming
	LoadBalancing spread.Config    // LoadBalancing sets how switches choose among equally short paths.
	Random        setting.Random   // Random is the source of the random numbers for ECN marking.
	Rounding      setting.Rounding // Rounding sets how a packet's time on a wire is rounded.
	// Pools replaces the shared buffer's dynamic thresholds by the service pools of the simulator ns3-rdma; only its
	// compat mode sets it.
	Pools *Pools
}

// DefaultConfig is RoCEv2 with DCQCN and PFC on shallow-buffered switches.
func DefaultConfig() Config {
	return Config{
		Payload: 1024, Header: 82,
		CongestionControl: cc.DefaultConfig(),
		QueuePairs:        setting.QueuePairs{PerPeer: 1},
		Acks:              setting.Acks{Every: 1, Size: 86, Duplicates: true},
		CNP:               setting.CNP{Interval: 50 * units.Microsecond, Size: 98},
		Recovery: setting.Recovery{Timeout: Timeout{Auto: true}, ShortTimeout: 100 * units.Microsecond, ShortCount: 3,
			NackInterval: 500 * units.Microsecond, Retries: 7},
		PFC: setting.PFC{Enabled: true, Threshold: Threshold{Dynamic: true}, Alpha: 1.0 / 8, AlphaByRate: true,
			Headroom: setting.Headroom{Kind: HeadroomAuto},
			Reserve:  4 * units.KiB, ResumeOffset: 3 * units.KiB, Frame: 84,
			Quanta: 65535},
		Buffer: 16 * units.MiB,
		// Measured in a fat tree of 20 switches after one failure (Mysore et al., PortLand, SIGCOMM 2009). BGP in data
		// centers is meant to stay below a second (RFC 7938, section 7).
		Convergence: 65 * units.Millisecond,
		ECN: setting.ECN{Enabled: true, Kmin: 100 * units.KB, Kmax: 400 * units.KB, Pmax: 0.2,
			Rate: 25 * units.Gbps},
		Watchdog:      setting.Watchdog{After: 10 * units.Millisecond},
		Trimming:      Trimming{Queue: 100 * units.KB, Size: 64},
		LoadBalancing: spread.DefaultConfig(),
	}
}

// packet returns the size of the largest data packet.
func (c *Config) packet() units.Bytes { return c.Payload + c.Header + c.Telemetry.Size }

// leastQuanta returns the shortest pause that can be refreshed in time. The refresh is sent after half of it; the other
// half must cover a packet that is being sent and a frame of each class.
func (c *Config) leastQuanta() int {
	const quantum = 64 // bytes
	return int((2*(max(c.packet(), c.Acks.Size+c.Telemetry.AckSize, c.CNP.Size, c.PFC.Frame)+MaxClasses*c.PFC.Frame)+
		quantum-1)/quantum) + 1
}

// mostRetries fits a sender's count of timeouts.
const mostRetries = 254

// mostReordered keeps the packet numbers of a window apart from earlier ones.
const mostReordered = 1 << 20

// Validate returns an error for each field that is invalid.
func (c *Config) Validate() error {
	var f units.Faults
	f.Hold(c.Payload >= 1 && c.Payload <= 16*units.KiB, "payload", "%v is not possible; use 1B to 16KiB", c.Payload)
	f.Hold(c.Header >= 1 && c.Header <= units.KiB, "header", "%v is not possible; use 1B to 1KiB", c.Header)
	f.Hold(c.QueuePairs.PerPeer >= 1 && c.QueuePairs.PerPeer <= 1024, "queue_pairs.per_peer",
		"%d is not possible; use 1 to 1024", c.QueuePairs.PerPeer)
	f.Hold(c.Acks.Every >= 1 && c.Acks.Every <= 1024, "acks.every", "%d is not possible; use 1 to 1024", c.Acks.Every)
	for _, x := range []struct {
		key  string
		size units.Bytes
	}{{"acks.size", c.Acks.Size}, {"cnp.size", c.CNP.Size}, {"pfc.frame", c.PFC.Frame}} {
		f.Hold(x.size >= 1 && x.size <= units.KiB, x.key, "%v is not possible; use 1B to 1KiB", x.size)
	}
	for _, x := range []struct {
		key   string
		class int
	}{{"acks.class", c.Acks.Class}, {"acks.host_class", c.Acks.HostClass}} {
		f.Hold(x.class >= 0 && x.class < MaxClasses, x.key, "%d is not possible; use 0 to %d", x.class, MaxClasses-1)
	}
	f.Hold(c.Convergence >= 0, "convergence", "%v is not possible; use 0s or more", c.Convergence)
	f.Hold(c.CNP.Interval >= 0, "cnp.interval", "%v is not possible; use 0s or more", c.CNP.Interval)
	f.Hold(!c.CNP.Ticking || c.CNP.Interval > 0, "cnp.interval",
		"%v is not possible where CNPs are sent at its multiples; use a time above zero", c.CNP.Interval)
	f.Hold(c.CNP.Answers == setting.NoticesCNP || c.CongestionControl.Algorithm == cc.SchemeDCQCN, "cnp.answers",
		"%v has no effect with %v, which needs no CNPs; use cnp, or congestion_control: dcqcn", c.CNP.Answers,
		c.CongestionControl.Algorithm)
	f.Hold(c.Recovery.Timeout.Time >= 0, "recovery.timeout",
		"%v is not possible; use a time above zero, auto or none", c.Recovery.Timeout.Time)
	f.Hold(c.Recovery.FirstTimeout >= 0 && c.Recovery.FirstTimeout <= longestTimeout, "recovery.first_timeout",
		"%v is not possible; use 0s to %v", c.Recovery.FirstTimeout, longestTimeout)
	f.Hold(c.Recovery.FirstTimeout <= 0 || c.Recovery.Kind == Sack, "recovery.first_timeout",
		"%v is for TCP; use 0s, or transport: tcp", c.Recovery.FirstTimeout)
	f.Hold(c.Recovery.NackInterval >= 0, "recovery.nack_interval", "%v is not possible; use 0s or more",
		c.Recovery.NackInterval)
	if c.Recovery.Kind.Keeps() {
		f.Hold(c.Recovery.ShortTimeout > 0, "recovery.short_timeout", "%v is not possible; use a time above zero",
			c.Recovery.ShortTimeout)
		f.Hold(c.Recovery.ShortCount >= 0, "recovery.short_count", "%d is not possible; use 0 or more",
			c.Recovery.ShortCount)
	}
	f.Hold(c.Recovery.Reordering >= 0 && c.Recovery.Reordering <= mostReordered, "recovery.reordering",
		"%d is not possible; use 0 to %d packets", c.Recovery.Reordering, mostReordered)
	f.Hold(c.Recovery.Reordering == 0 || c.Recovery.Kind.Keeps(), "recovery.reordering",
		"%d has no effect with go-back-n, whose receivers drop packets out of order; use 0, or recovery.kind: "+
			"selective-repeat", c.Recovery.Reordering)
	f.Hold(c.Recovery.Window >= 0 && c.Recovery.Window <= mostReordered, "recovery.window",
		"%d is not possible; use 0 (any) to %d packets", c.Recovery.Window, mostReordered)
	f.Hold(c.Recovery.Retries >= 0 && c.Recovery.Retries <= mostRetries, "recovery.retries",
		"%d is not possible; use 1 to %d, or 0 for no limit", c.Recovery.Retries, mostRetries)
	f.Within("trimming", c.Trimming.validate(c))
	f.Within("load_balancing", c.LoadBalancing.Validate())
	if c.LoadBalancing.Reorders() {
		choice := c.LoadBalancing.Choice
		f.Hold(c.Recovery.Kind.Keeps(), "load_balancing.choice",
			"%v for each packet reorders packets, which go-back-n treats as losses; use "+
				"recovery.kind: selective-repeat, load_balancing.per: flowlet, or choice: hash", choice)
		f.Hold(!c.Recovery.Kind.Keeps() || c.Recovery.Reordering > 0 || c.Trimming.Enabled, "recovery.reordering",
			"0 counts every overtaken packet as lost, and %v for each packet reorders many; use a bound on how far "+
				"packets are overtaken, for example 256", choice)
		f.Hold(c.CongestionControl.Algorithm != cc.SchemeHPCC, "load_balancing.choice",
			"%v for each packet is not possible with hpcc, which compares telemetry of the switches on one path; use "+
				"hpcc-pint, or per: flowlet", choice)
	}
	f.Hold(c.Buffer >= c.packet() && c.Buffer <= units.TiB, "buffer",
		"%v is not possible; use a packet's size, %v, or more, such as 16MiB", c.Buffer, c.packet())
	f.Hold(c.SwitchLatency >= 0 && c.SwitchLatency <= maxDelay, "switch_latency", "%v is not possible; use 0s to %v",
		c.SwitchLatency, maxDelay)
	if b := c.Pools; b != nil {
		f.Hold(min(b.Limit, b.Minimum, b.ClassLimit) >= 0 && max(b.Limit, b.Minimum, b.ClassLimit) <= units.TiB &&
			b.Alpha >= 0 && b.Alpha <= 1<<16, "pools", "%+v is not possible; use 0B to %v, and an alpha of 0 to 65536",
			*b, units.TiB)
		f.Hold(b.Recheck > 0 && b.Lasts > 0, "pools", "a pause of %v that is looked at after %v is not possible; use "+
			"times above zero", b.Lasts, b.Recheck)
	}
	p := &c.PFC
	if p.Threshold.Dynamic {
		f.Hold(p.Alpha >= 1.0/65536 && p.Alpha <= 64, "pfc.alpha", "%v is not possible; use a share such as 1/8",
			p.Alpha)
	} else {
		f.Hold(p.Threshold.Size > 0, "pfc.threshold", "%v is not possible; use dynamic, or a size", p.Threshold.Size)
	}
	f.Hold(p.Reserve >= 0 && p.Reserve <= units.TiB, "pfc.reserve", "%v is not possible; use 0B or more", p.Reserve)
	f.Hold(p.ResumeOffset >= 0 && p.ResumeOffset <= units.TiB, "pfc.resume_offset",
		"%v is not possible; use 0B or more", p.ResumeOffset)
	f.Hold(p.Headroom.Size >= 0 && p.Headroom.Size <= units.TiB, "pfc.headroom",
		"%v is not possible; use auto, or a size", p.Headroom.Size)
	f.Hold(p.Quanta >= 0 && p.Quanta <= 65535, "pfc.quanta", "%d is not possible; use 0 (until resumed) to 65535",
		p.Quanta)
	if p.Enabled {
		least := c.leastQuanta()
		f.Hold(p.Quanta <= 0 || p.Quanta >= least, "pfc.quanta",
			"%d expires before it can be refreshed behind a packet and a frame of each class; use 0 (until resumed), "+
				"or %d to 65535", p.Quanta, least)
		if p.Headroom.Kind == HeadroomAuto {
			f.Hold(c.Acks.Follow || c.Acks.Class <= 0 || c.Acks.Class >= MaxClasses ||
				c.Acks.HostClass == c.Acks.Class, "acks.host_class",
				"%d lets ACKs ignore a pause of their class in switches, %d, which then loses packets; use %d, or "+
					"acks.class 0", c.Acks.HostClass, c.Acks.Class, c.Acks.Class)
		}
	}
	if c.ECN.Enabled {
		e := &c.ECN
		f.Hold(e.Rate > 0, "ecn.rate", "%v is not possible; use a rate such as 25Gbps", e.Rate)
		marks := func(key string, kmin, kmax units.Bytes, pmax units.Fraction) {
			f.Hold(kmin >= 0, key+".kmin", "%v is not possible; use 0B or more", kmin)
			f.Hold(kmin <= kmax, key+".kmin", "%v is above kmax, %v; marking starts at kmin and is full at kmax",
				kmin, kmax)
			f.Hold(pmax >= 0 && pmax <= 1, key+".pmax", "%v is not possible; use 0%% to 100%%", pmax)
		}
		marks("ecn", e.Kmin, e.Kmax, e.Pmax)
		for i, x := range e.Ports {
			key := fmt.Sprintf("ecn.ports[%d]", i)
			f.Hold(x.Rate > 0, key+".rate", "%v is not possible; use a rate such as 25Gbps", x.Rate)
			marks(key, x.Kmin, x.Kmax, x.Pmax)
		}
	}
	f.Hold(len(c.Weights) <= MaxClasses, "weights", "%d classes are too many; there are %d", len(c.Weights), MaxClasses)
	for i, w := range c.Weights {
		f.Hold(w >= 1 && w <= 1000, fmt.Sprintf("weights[%d]", i), "%d is not possible; use 1 to 1000", w)
	}
	f.Hold(c.Watchdog.After >= 0, "watchdog.after", "%v is not possible; use a time, or 0s for never", c.Watchdog.After)
	f.Hold(c.Telemetry.Size >= 0 && c.Telemetry.Size <= units.KiB, "telemetry.size",
		"%v is not possible; use 0B to 1KiB", c.Telemetry.Size)
	f.Hold(c.Telemetry.AckSize >= 0 && c.Telemetry.AckSize <= units.KiB, "telemetry.ack_size",
		"%v is not possible; use 0B to 1KiB", c.Telemetry.AckSize)
	f.Hold(c.Telemetry.Multiple >= 0, "telemetry.multiple", "%d is not possible; use 0 (exact) or more",
		c.Telemetry.Multiple)
	f.Hold(c.CongestionControl.Algorithm != cc.SchemeNDP || c.Trimming.Enabled, "congestion_control.algorithm",
		"ndp pulls once for each packet that arrives, but never for one that a switch drops; use "+
			"trimming.enabled: true as well")
	f.Within("congestion_control", c.CongestionControl.Validate())
	return f.Err()
}
