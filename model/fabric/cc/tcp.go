package cc

import (
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// TCP configures TCP's congestion control (RFC 5681) as a window in full packets: slow start, one reduction per round
// of losses, and one of three laws of growth. Only dctcp reacts to marks. Left out: proportional rate reduction (RFC
// 6937), HyStart, pacing, and the restart after idling.
type TCP struct {
	// Growth is the law of growth and reduction: cubic (RFC 9438, Linux' default), newreno (RFC 5681 and 6582), or
	// dctcp (RFC 8257), which grows like newreno and shrinks in proportion to the share of marks.
	Growth Growth
	// InitialWindow is a connection's initial window, in packets. 10 (RFC 6928; Linux).
	InitialWindow float64
	// MaxWindow is the receiver's window, the upper bound of the data in flight. 3MiB (Linux: half of the largest
	// receive buffer, the 6 MiB of tcp_rmem).
	MaxWindow units.Bytes
	// Beta is the share of the window that cubic keeps after a loss. 70% (RFC 9438; Linux 717/1024). The others keep
	// half.
	Beta  units.Fraction
	Scale float64 // Scale is cubic's C, packets per cubed second. 0.4 (RFC 9438; Linux).
	// Gain is dctcp's g, the weight of the newest round trip in alpha. 1/16 (RFC 8257; Linux).
	Gain units.Fraction
}

// Growth is the law of a TCP window's growth and reduction.
type Growth uint8

const (
	GrowthCubic Growth = iota
	GrowthNewReno
	GrowthDCTCP
	growths
)

var growthNames = units.Names[Growth]{"cubic", "newreno", "dctcp"}

func (g Growth) String() string { return growthNames.Name(g) }

func (g Growth) MarshalText() ([]byte, error) { return growthNames.Marshal(g) }

func (g *Growth) UnmarshalText(text []byte) error { return growthNames.Unmarshal(text, g) }

// defaultTCP returns Linux' settings.
func defaultTCP() TCP {
	return TCP{InitialWindow: 10, MaxWindow: 3 * units.MiB, Beta: 0.7, Scale: 0.4, Gain: 1.0 / 16}
}

// validate reports invalid settings.
func (c TCP) validate() error {
	var f faults
	f.Hold(c.Growth < growths, "growth", "%v is not possible; use cubic, newreno or dctcp", c.Growth)
	f.Hold(c.InitialWindow >= 1 && c.InitialWindow <= mostPackets, "initial_window",
		"%v is not possible; it must be 1 to 1000000 packets", c.InitialWindow)
	f.Hold(c.MaxWindow >= units.KiB && c.MaxWindow <= units.GiB, "max_window",
		"%v is not possible; it must be 1KiB to 1GiB", c.MaxWindow)
	f.share("beta", c.Beta)
	f.Hold(c.Beta < 1, "beta", "%v is not possible; it must be below 1; at 1 losses would have no effect",
		float64(c.Beta))
	f.Hold(c.Scale > 0 && c.Scale <= mostPackets, "scale",
		"%v is not possible; it must be above 0 and at most 1000000", c.Scale)
	f.share("gain", c.Gain)
	return f.Err()
}

// tcp is TCP's sender.
type tcp struct {
	c     TCP
	beta  float64 // share of the window kept after a loss
	alpha float64 // cubic's additive increase that grows as fast as NewReno's
	qps   []tcpState
}

type tcpState struct {
	window, threshold float64 // cwnd and ssthresh, packets
	acked             uint64
	recover           uint64 // no reduction until data beyond this is acknowledged
	reduced           bool   // recover is not yet acknowledged

	// cubic
	most   float64  // W_max
	gentle float64  // W_est, the window that NewReno would have
	epoch  sim.Time // start of the window's growth after a reduction; -1 before the first ACK
	k      float64  // seconds from epoch until W_max is reached again

	// dctcp
	round         uint64
	total, marked float64 // packets acknowledged in the round trip, and those with a mark
	share         float64 // alpha
}

// newTCP returns TCP. It has a smallest window instead of a lowest rate.
func newTCP(c TCP) (Algorithm, error) {
	if err := units.Within("tcp", c.validate()); err != nil {
		return nil, err
	}
	t := &tcp{c: c, beta: 0.5}
	if c.Growth == GrowthCubic {
		t.beta = float64(c.Beta)
	}
	t.alpha = 3 * (1 - t.beta) / (1 + t.beta)
	return t, nil
}

// Wants asks for acknowledgements with round trips, and for losses.
func (*tcp) Wants() Wants { return Wants{Acks: true, RTT: true, Losses: true} }

// Start sets the initial window, in slow start.
func (t *tcp) Start(q int32, s *Sender) {
	t.qps = grow(t.qps, q)
	t.qps[q] = tcpState{window: t.c.InitialWindow, threshold: mostPackets, epoch: -1, share: 1}
	s.Rate, s.Wake = s.Line, sim.Forever
	t.steer(&t.qps[q], s)
}

// React handles acknowledgements and losses.
func (t *tcp) React(q int32, s *Sender, x *Signal) {
	st := &t.qps[q]
	switch x.Kind {
	case Ack:
		t.acked(st, s, x)
	case Loss:
		if !st.reduced {
			t.reduce(st, t.beta)
			st.reduced, st.recover = true, x.Next
		}
	case Timeout:
		t.reduce(st, t.beta)
		st.window = 1
		st.reduced, st.recover = true, x.Next
	default:
		return
	}
	t.steer(st, s)
}

// acked handles an acknowledgement.
func (t *tcp) acked(st *tcpState, s *Sender, x *Signal) {
	packets := 0.0
	// in flight before this acknowledgement
	flight := float64(behind(&Signal{Acked: st.acked, Next: x.Next})) / float64(s.mtu())
	if x.Acked > st.acked {
		packets = float64(x.Acked-st.acked) / float64(s.mtu())
		st.acked = x.Acked
	}
	if t.c.Growth == GrowthDCTCP {
		t.marks(st, x, packets)
	}
	if st.reduced {
		// After a timer's reduction slow start fills the window again; after a loss's the window stays until the losses
		// are recovered.
		if x.Acked >= st.recover {
			st.reduced = false
		} else if st.window >= st.threshold {
			return
		}
	}
	switch {
	case packets == 0:
	case st.window < st.threshold:
		// A window that the sender does not fill carries no information about the network (RFC 7661; Linux'
		// tcp_is_cwnd_limited).
		if st.window < 2*flight {
			st.window = min(st.window+packets, st.threshold)
		}
	case flight < st.window-1:
	case t.c.Growth == GrowthCubic:
		t.cubic(st, x, packets)
	default:
		st.window += packets / st.window
	}
}

// reduce shrinks the window after a loss. The window that slow start had reached counts for cubic's W_max.
func (t *tcp) reduce(st *tcpState, keep float64) {
	if st.window < st.most {
		st.most = st.window * (1 + t.beta) / 2 // fast convergence (RFC 9438, 4.7)
	} else {
		st.most = st.window
	}
	st.window = max(2, st.window*keep)
	st.threshold, st.epoch = st.window, -1
}

// cubic grows the window by sections 4.2 to 4.5 of RFC 9438.
func (t *tcp) cubic(st *tcpState, x *Signal, packets float64) {
	if st.epoch < 0 {
		st.epoch, st.gentle, st.k = x.Now, st.window, 0
		if st.most > st.window {
			st.k = rng.Pow((st.most-st.window)/t.c.Scale, 1.0/3)
		} else {
			st.most = st.window
		}
	}
	at := (x.Now - st.epoch + x.RTT).Seconds() - st.k
	target := float64(t.c.Scale*at*at*at) + st.most
	target = min(max(target, st.window), 1.5*st.window)
	alpha := t.alpha
	if st.gentle >= st.most {
		alpha = 1
	}
	st.gentle += alpha * packets / st.window
	if target < st.gentle {
		st.window = max(st.window, st.gentle)
		return
	}
	st.window += float64((target - st.window) / st.window * packets)
}

// marks is section 3.3 of RFC 8257: once a window, a reduction by the share of the round trip's packets that were
// marked.
func (t *tcp) marks(st *tcpState, x *Signal, packets float64) {
	st.total += packets
	if x.Marked {
		st.marked += packets
	}
	if x.Acked <= st.round {
		return
	}
	st.round = x.Next
	if st.total > 0 {
		share := st.marked / st.total
		st.share += float64(float64(t.c.Gain) * (share - st.share))
		if st.marked > 0 && !st.reduced {
			t.reduce(st, 1-float64(st.share/2))
		}
	}
	st.total, st.marked = 0, 0
}

// steer sets the window.
func (t *tcp) steer(st *tcpState, s *Sender) {
	st.window = min(st.window, float64(t.c.MaxWindow)/float64(s.mtu()), mostPackets)
	s.Window = max(1, units.Bytes(st.window*float64(s.mtu())))
}
