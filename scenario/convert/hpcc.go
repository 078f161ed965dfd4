package convert

import (
	"fmt"
	"slices"
	"strings"

	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/peer"
)

// hpccEpoch is the second that HPCC's own flow files and LINK_DOWN count from.
const hpccEpoch = 2 * units.Second

// Sizes on the wire in HPCC's ns-3.
const (
	hpccHeader, hpccAck, hpccFrame units.Bytes = 48, 60, 43
)

// hpcc converts a configuration of HPCC's ns-3.
func (c *ns3Conversion) hpcc() error {
	h, err := peer.ReadFile(c.file, peer.ReadHPCCConfig)
	if err != nil {
		return err
	}
	for _, n := range h.Ignored() {
		c.note("%s", n)
	}
	if err := c.shape(h.At("TOPOLOGY_FILE"), h.TOPOLOGY_FILE, h.At("ERROR_RATE_PER_LINK"),
		h.ERROR_RATE_PER_LINK); err != nil {
		return err
	}
	path, err := c.find(h.At("FLOW_FILE"), "FLOW_FILE", h.FLOW_FILE)
	if err != nil {
		return err
	}
	list, err := c.flowList(path, peer.ReadHPCCFlows)
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.Port != 100 && !c.exact() {
			c.note("%s:%d: destination ports other than 100 are not carried over; among equally short paths such flows may "+
				"take others than in the reference", path, f.Line)
			break
		}
	}
	from := begin(list, hpccEpoch)
	c.Scenario.Flows = []scenario.FlowLoad{{File: path, From: from}}
	if err := c.until(h.At("SIMULATOR_STOP_TIME"), h.SIMULATOR_STOP_TIME, from); err != nil {
		return err
	}
	x := c.x
	x.Payload = units.Bytes(h.PACKET_PAYLOAD_SIZE)
	x.Buffer = units.Bytes(h.BUFFER_SIZE) * units.MiB
	x.RoundTrip.Longest = h.GLOBAL_T
	if c.exact() {
		c.own(hpccHeader, hpccAck, hpccFrame)
		if h.CC_MODE == 1 {
			x.CNP.Interval = h.RATE_DECREASE_INTERVAL
			c.note("CNPs are packets, at most one per RATE_DECREASE_INTERVAL and queue pair; the reference " +
				"marks ACKs")
		}
	} else {
		class := list[0].Priority
		x.Acks.Class, x.Acks.HostClass = class, class
		if slices.ContainsFunc(list, func(f peer.NS3Flow) bool { return f.Priority != class }) {
			// Its NICs hold all ACKs back while class 3 is paused.
			x.Acks.Class, x.Acks.Follow, x.Acks.HostClass = 0, true, fabric.HPCCClass
		}
		if h.ACK_HIGH_PRIO {
			x.Acks.HostClass = 0
		}
	}
	if err := c.hpccRecovery(h); err != nil {
		return err
	}
	if err := c.hpccMarking(h); err != nil {
		return err
	}
	if err := c.hpccControl(h); err != nil {
		return err
	}
	if err := c.hpccLinkDown(h, from); err != nil {
		return err
	}
	c.traces(h.Has, "ENABLE_TRACE", "TRACE_FILE", "TRACE_OUTPUT_FILE", "FCT_OUTPUT_FILE", "PFC_OUTPUT_FILE",
		"QLEN_MON_FILE", "QLEN_MON_START", "QLEN_MON_END")
	return nil
}

// hpccRecovery rejects settings of pacing, acknowledgement and go-back that are not modelled.
func (c *ns3Conversion) hpccRecovery(h *peer.HPCCConfig) error {
	switch {
	case !h.RATE_BOUND:
		return refuseKey(h.At("RATE_BOUND"), "RATE_BOUND", 0,
			"sends at line rate regardless of the rate, which is not modelled; use 1, or CC_MODE 0 for line rate")
	case h.L2_BACK_TO_ZERO:
		return refuseKey(h.At("L2_BACK_TO_ZERO"), "L2_BACK_TO_ZERO", 1,
			"returns to the start of a chunk, which is not modelled; use 0, go-back-N")
	case h.L2_ACK_INTERVAL > h.PACKET_PAYLOAD_SIZE:
		return refuseKey(h.At("L2_ACK_INTERVAL"), "L2_ACK_INTERVAL", h.L2_ACK_INTERVAL,
			fmt.Sprintf("leaves a flow's first packets without ACKs, which is not modelled; use up to the payload, %d", h.PACKET_PAYLOAD_SIZE))
	}
	if h.Has("L2_CHUNK_SIZE") {
		c.note("%s: L2_CHUNK_SIZE has no effect with L2_BACK_TO_ZERO 0", h.At("L2_CHUNK_SIZE"))
	}
	return nil
}

// hpccMarking converts the ECN thresholds of the link rates in the topology.
func (c *ns3Conversion) hpccMarking(h *peer.HPCCConfig) error {
	x := c.x
	x.ECN.Enabled = h.ENABLE_QCN
	if !h.ENABLE_QCN {
		if h.CC_MODE == 1 || h.CC_MODE == 8 {
			c.note("%s: ENABLE_QCN 0 disables marking, so congestion control has no feedback and all hosts send at line "+
				"rate", h.At("ENABLE_QCN"))
		}
		return nil
	}
	x.ECN.Ports = nil
	for _, l := range c.topology.Links {
		if slices.ContainsFunc(x.ECN.Ports, func(p fabric.ECNPort) bool { return p.Rate == l.Rate }) {
			continue
		}
		kmin, kmax, pmax, err := h.Marking(l.Rate)
		if err != nil {
			return err
		}
		x.ECN.Ports = append(x.ECN.Ports,
			fabric.ECNPort{Rate: l.Rate, Kmin: kmin, Kmax: kmax, Pmax: units.Fraction(pmax)})
	}
	if len(x.ECN.Ports) > 0 {
		p := x.ECN.Ports[0]
		x.ECN.Rate, x.ECN.Kmin, x.ECN.Kmax, x.ECN.Pmax = p.Rate, p.Kmin, p.Kmax, p.Pmax
	}
	return nil
}

// intRates are the rates that HPCC's telemetry header can encode.
var intRates = []units.BitRate{25 * units.Gbps, 50 * units.Gbps, 100 * units.Gbps, 200 * units.Gbps, 400 * units.Gbps}

// hpccControl converts the congestion control.
func (c *ns3Conversion) hpccControl(h *peer.HPCCConfig) error {
	win := cc.WindowNone
	if h.HAS_WIN {
		win = cc.WindowBDP
		if h.VAR_WIN {
			win = cc.WindowScaled
		}
	} else if h.VAR_WIN {
		c.note("%s: VAR_WIN has no effect without HAS_WIN", h.At("VAR_WIN"))
	}
	g := &c.x.CongestionControl
	g.MinRate = h.MIN_RATE
	unused := map[string][]uint32{
		"ALPHA_RESUME_INTERVAL": {1}, "RATE_DECREASE_INTERVAL": {1}, "CLAMP_TARGET_RATE": {1}, "RP_TIMER": {1},
		"FAST_RECOVERY_TIMES": {1},
		"EWMA_GAIN":           {1, 8}, "RATE_AI": {1, 3, 7, 10}, "RATE_HAI": {1, 7}, "MIN_RATE": {1, 3, 7, 8, 10},
		"DCTCP_RATE_AI": {8},
		"FAST_REACT":    {3}, "U_TARGET": {3, 10}, "MI_THRESH": {3, 10}, "INT_MULTI": {3}, "MULTI_RATE": {3},
		"SAMPLE_FEEDBACK": {3},
		"PINT_LOG_BASE":   {10}, "PINT_PROB": {10},
	}
	var idle []string
	for k, modes := range unused {
		if h.Has(k) && !slices.Contains(modes, h.CC_MODE) {
			idle = append(idle, k)
		}
	}
	slices.Sort(idle)
	if len(idle) > 0 {
		c.note("without effect under CC_MODE %d: %s", h.CC_MODE, strings.Join(idle, ", "))
	}
	switch h.CC_MODE {
	case 0:
		g.Algorithm = cc.SchemeNone
		g.None.Window = win
	case 1:
		g.Algorithm = cc.SchemeDCQCN
		d := cc.MellanoxDCQCN(40 * units.Gbps)
		d.Gain, d.AlphaInterval, d.RateDecreaseInterval = units.Fraction(h.EWMA_GAIN), h.ALPHA_RESUME_INTERVAL,
			h.RATE_DECREASE_INTERVAL
		d.RateIncreaseTimer, d.FastRecovery, d.RateAI, d.RateHAI = h.RP_TIMER, int(h.FAST_RECOVERY_TIMES), h.RATE_AI,
			h.RATE_HAI
		d.ClampTarget = cc.ClampAfterIncrease
		if h.CLAMP_TARGET_RATE {
			d.ClampTarget = cc.ClampAlways
		}
		d.Window = win
		g.DCQCN = d
	case 3:
		if err := c.telemetry(h); err != nil {
			return err
		}
		g.Algorithm = cc.SchemeHPCC
		g.HPCC = cc.HPCC{TargetUtilisation: units.Fraction(h.U_TARGET), MaxStage: int(h.MI_THRESH), RateAI: h.RATE_AI,
			FastReact: h.FAST_REACT,
			MultiRate: h.MULTI_RATE, SampleFeedback: h.SAMPLE_FEEDBACK, Window: win}
	case 7:
		g.Algorithm = cc.SchemeTimely
		t := cc.DefaultTimely()
		t.RateAI, t.RateHAI, t.Window = h.RATE_AI, h.RATE_HAI, win
		g.Timely = t
		c.x.Telemetry = fabric.Telemetry{Size: 8}
	case 8:
		g.Algorithm = cc.SchemeDCTCP
		g.DCTCP = cc.DCTCP{Gain: units.Fraction(h.EWMA_GAIN), RateAI: h.DCTCP_RATE_AI, Window: win}
	case 10:
		g.Algorithm = cc.SchemeHPCCPINT
		codec, err := cc.NewCodec(h.PINT_LOG_BASE)
		if err != nil {
			return refuseKey(h.At("PINT_LOG_BASE"), "PINT_LOG_BASE", h.PINT_LOG_BASE,
				"is not possible; use 1.0002 to 2")
		}
		g.PINT = cc.PINT{TargetUtilisation: units.Fraction(h.U_TARGET), MaxStage: int(h.MI_THRESH), RateAI: h.RATE_AI,
			LogBase: h.PINT_LOG_BASE, Probability: units.Fraction(h.PINT_PROB), Window: win}
		c.x.Telemetry = fabric.Telemetry{Size: codec.Bytes()}
	}
	return nil
}

// telemetry sets the size that HPCC's header adds to packets.
func (c *ns3Conversion) telemetry(h *peer.HPCCConfig) error {
	c.x.Telemetry = fabric.Telemetry{Size: 42, AckSize: 28}
	if c.exact() {
		c.note("telemetry is exact; the reference rounds it to 80 B and 128 B times INT_MULTI")
		return nil
	}
	c.x.Telemetry.Multiple = int(h.INT_MULTI)
	for i, l := range c.topology.Links {
		if !slices.Contains(intRates, l.Rate) {
			return fmt.Errorf("%s: CC_MODE 3 over a link of %v (%s): the reference's telemetry header has no code "+
				"for the rate, only for 25, 50, 100, 200 and 400Gbps; use one of these, or convert with --compat "+
				"none, which has no such limit",
				h.At("CC_MODE"), l.Rate, c.topology.At(i))
		}
	}
	return nil
}

// hpccLinkDown converts the failing link.
func (c *ns3Conversion) hpccLinkDown(h *peer.HPCCConfig, from units.Duration) error {
	d := h.LINK_DOWN
	if d.Time == 0 {
		return nil
	}
	there := slices.ContainsFunc(c.topology.Links,
		func(l peer.NS3Link) bool { return l.A == d.A && l.B == d.B || l.A == d.B && l.B == d.A })
	if !there {
		return refuseKey(h.At("LINK_DOWN"), "LINK_DOWN", fmt.Sprintf("%d %d", d.A, d.B),
			"no link between these nodes in "+h.TOPOLOGY_FILE)
	}
	c.x.Convergence = 0 // the reference computes all routes anew at once
	c.x.Failures = []scenario.Failure{{A: scenario.NodeName(c.topology, d.A), B: scenario.NodeName(c.topology, d.B),
		At: hpccEpoch - from + d.Time}}
	return nil
}
