package cc

import (
	"farflash/numeric/units"
	"farflash/sim"
)

// Clamp names which cuts set the target rate to the rate before the cut.
type Clamp uint8

const (
	ClampAlways Clamp = iota // every cut (SIGCOMM 2015, equation 1; CLAMP_TARGET_RATE 1 in HPCC's ns-3)
	// ClampAfterIncrease: a cut after an increase, so that a series of cuts recovers to its first rate
	// (CLAMP_TARGET_RATE 0 in HPCC's ns-3, CLAMP_TARGET_RATE_AFTER_TIMER 1 in ns3-rdma).
	ClampAfterIncrease
	ClampAfterBytes // a cut after an increase by the byte counter (ns3-rdma with neither clamp set)
	clamps
)

var clampNames = units.Names[Clamp]{"always", "after-increase", "after-bytes"}

func (c Clamp) String() string { return clampNames.Name(c) }

func (c Clamp) MarshalText() ([]byte, error) { return clampNames.Marshal(c) }

func (c *Clamp) UnmarshalText(text []byte) error { return clampNames.Unmarshal(text, c) }

// DCQCN configures DCQCN (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015). Each
// difference between the published variants is an option: the defaults are the paper's, and the values of Mellanox and
// ns3-rdma are named. T counts the timer's increases since the last cut and B the byte counter's; without a byte
// counter B equals T. Fast recovery lasts while max(T, B) < FastRecovery, hyper increase starts once min(T, B) >
// FastRecovery, and increases between them are additive.
type DCQCN struct {
	// Gain is g, the weight of the newest observation in alpha. 1/256 (SIGCOMM 2015);
	// code defaults of both simulators 1/16.
	Gain         units.Fraction
	AlphaInitial units.Fraction // AlphaInitial is alpha at the first CNP. 1 (SIGCOMM 2015); ns3-rdma 0.5.
	// AlphaInterval is how long alpha waits for a CNP before it decays. 55us (SIGCOMM 2015: more than the CNP
	// interval).
	AlphaInterval sim.Time
	// AlphaPerEpoch updates alpha only at the ends of intervals after the first CNP: up if a further CNP arrived in the
	// interval, otherwise down (Mellanox). Without it, each CNP raises alpha and restarts the interval.
	AlphaPerEpoch bool
	// RaiseFirst raises alpha before the cut of the same CNP, not after it (ns3-rdma). No effect with AlphaPerEpoch.
	RaiseFirst bool

	// CutAtOnce cuts the rate at every CNP (SIGCOMM 2015), not at the end of a decrease interval in which a CNP arrived
	// (Mellanox).
	CutAtOnce bool
	// RateDecreaseInterval is the time between the sender's checks for a CNP; the first is one interval and 1 ns after
	// the first CNP. 4us (HPCC's ns-3; rate_reduce_monitor_period of Mellanox firmware). No effect with CutAtOnce.
	RateDecreaseInterval sim.Time
	// RateOnFirstCNP multiplies the rate at the first CNP. 1 (HPCC's ns-3; rate_to_set_on_first_cnp of Mellanox
	// firmware).
	RateOnFirstCNP units.Fraction
	ClampTarget    Clamp // ClampTarget sets which cuts lower the target rate.
	// KeepByteCount keeps the byte count at a cut that does not lower the target (ns3-rdma).
	KeepByteCount bool

	// RateIncreaseTimer is the timer's period. 55us (SIGCOMM 2015); 300us in HPCC's experiments, 1500us in both
	// simulators' code.
	RateIncreaseTimer sim.Time
	// ByteCounter is the number of bytes between two increases. The packet that exceeds it makes the increase, and the
	// excess is dropped. 0 is no byte counter. 10MB (SIGCOMM 2015).
	ByteCounter  units.Bytes
	FastRecovery int // FastRecovery is F, at least 1. 5 (SIGCOMM 2015).
	// StageFromZero counts an increase after making it, so that fast recovery has F increases, not F-1 (Mellanox).
	StageFromZero bool
	// RateAI is added to the target by an additive increase. 40Mbps (SIGCOMM 2015, for 40G links).
	RateAI units.BitRate
	// RateHAI, times min(T, B)-F, is added to the target by a hyper increase. 200Mbps (the configuration shipped with
	// ns3-rdma; the paper gives no number).
	RateHAI units.BitRate
	// HyperFlat adds RateHAI once, regardless of earlier hyper increases (Mellanox).
	HyperFlat bool
	// HyperAtF starts hyper increase when min(T, B) reaches F, and adds RateHAI once more (ns3-rdma).
	HyperAtF bool
	// HyperByTimer starts hyper increase by the timer alone; the byte counter joins later (ns3-rdma).
	HyperByTimer bool
	// HyperHalves halves the timer and the byte counter from the second hyper increase on (ns3-rdma, as in 802.1Qau;
	// ns3-rdma truncates to whole microseconds).
	HyperHalves bool
	// TargetCut divides a target above ten times the rate by eight, instead of increasing it, while T or B is 1
	// (ns3-rdma, as in 802.1Qau).
	TargetCut       bool
	TargetUnbounded bool // TargetUnbounded lets the target exceed the line's rate (ns3-rdma).

	Window Window // Window bounds the data in flight; none in the paper.
}

// DefaultDCQCN is the paper's (SIGCOMM 2015), as deployed on 40G links.
func DefaultDCQCN() DCQCN {
	return DCQCN{
		Gain: 1.0 / 256, AlphaInitial: 1, AlphaInterval: 55 * units.Microsecond,
		CutAtOnce: true, RateDecreaseInterval: 4 * units.Microsecond, RateOnFirstCNP: 1, ClampTarget: ClampAlways,
		RateIncreaseTimer: 55 * units.Microsecond, ByteCounter: 10 * units.MB, FastRecovery: 5,
		RateAI: 40 * units.Mbps, RateHAI: 200 * units.Mbps,
	}
}

// MellanoxDCQCN is that of HPCC's ns-3 (CC_MODE 1) with its experiments' parameters for hosts of the rate (run.py
// "dcqcn").
func MellanoxDCQCN(line units.BitRate) DCQCN {
	return DCQCN{
		Gain: 1.0 / 256, AlphaInitial: 1, AlphaInterval: units.Microsecond, AlphaPerEpoch: true,
		RateDecreaseInterval: 4 * units.Microsecond, RateOnFirstCNP: 1, ClampTarget: ClampAfterIncrease,
		RateIncreaseTimer: 300 * units.Microsecond, FastRecovery: 1, StageFromZero: true,
		RateAI: line / units.Gbps * 5 / 25 * units.Mbps, RateHAI: line / units.Gbps * 50 / 25 * units.Mbps,
		HyperFlat: true,
	}
}

// NS3RDMADCQCN is that of ns3-rdma (Zhu et al., CoNEXT 2016) with the parameters shipped with it.
func NS3RDMADCQCN() DCQCN {
	return DCQCN{
		Gain: 1.0 / 256, AlphaInitial: 0.5, AlphaInterval: 55 * units.Microsecond, RaiseFirst: true,
		CutAtOnce: true, RateDecreaseInterval: 4 * units.Microsecond, RateOnFirstCNP: 1, ClampTarget: ClampAlways,
		KeepByteCount:     true,
		RateIncreaseTimer: 60 * units.Microsecond, ByteCounter: 300 * units.MB, FastRecovery: 5,
		RateAI: 40 * units.Mbps, RateHAI: 200 * units.Mbps,
		HyperAtF: true, HyperByTimer: true, HyperHalves: true, TargetCut: true, TargetUnbounded: true,
	}
}

// maxStages bounds F, because stages are counted in 16 bits.
const maxStages = 1000

// validate reports invalid settings.
func (c DCQCN) validate() error {
	var f faults
	f.share("gain", c.Gain)
	f.share("alpha_initial", c.AlphaInitial)
	f.interval("alpha_interval", c.AlphaInterval)
	f.share("rate_on_first_cnp", c.RateOnFirstCNP)
	f.interval("rate_increase_timer", c.RateIncreaseTimer)
	f.rate("rate_ai", c.RateAI)
	f.rate("rate_hai", c.RateHAI)
	if !c.CutAtOnce {
		f.interval("rate_decrease_interval", c.RateDecreaseInterval)
	}
	f.Hold(c.FastRecovery >= 1 && c.FastRecovery <= maxStages, "fast_recovery",
		"%d is not possible; it must be 1 to %d", c.FastRecovery, maxStages)
	f.Hold(c.ByteCounter >= 0, "byte_counter", "%v is not possible; write 0B for none", c.ByteCounter)
	f.Hold(c.ByteCounter != 0 || c.ClampTarget != ClampAfterBytes, "clamp_target",
		"after-bytes is not possible without a byte counter; set dcqcn.byte_counter, or use always or after-increase")
	f.Hold(c.ClampTarget < clamps, "clamp_target", "%v is not possible; use always, after-increase or after-bytes",
		c.ClampTarget)
	f.window(c.Window)
	return f.Err()
}
