package convert

import (
	"fmt"
	"io"
	"slices"

	"farflash/model/fabric"
	"farflash/model/fabric/cc"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/peer"
	"farflash/workload/flows"
)

// Sizes of ns3-rdma's packets: it subtracts 24 B of headers from PACKET_PAYLOAD_SIZE and adds 22 B back (14 B sequence
// number and time, 8 B UDP), so that the payload of IP is 2 B short of it; IP and PPP add 22 B.
const (
	rdmaShort  units.Bytes = 2
	rdmaHeader units.Bytes = 22
	rdmaAnswer units.Bytes = 30
	rdmaFrame  units.Bytes = 31
	rdmaStatic units.Bytes = 20 * 1030 // the static threshold of a class
)

// rdmaGap is the longest gap between two packets that ns3-rdma's senders leave.
const rdmaGap = 55 * 250 * units.Nanosecond / 100

// rdma converts a configuration of ns3-rdma.
func (c *ns3Conversion) rdma() error {
	h, err := peer.ReadFile(c.file, peer.ReadNS3RDMAConfig)
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
	if err := c.rdmaRefused(h); err != nil {
		return err
	}
	from, err := c.rdmaFlows(h)
	if err != nil {
		return err
	}
	if err := c.rdmaStops(h, from); err != nil {
		return err
	}
	x := c.x
	x.Payload = units.Bytes(h.PACKET_PAYLOAD_SIZE) - rdmaShort
	x.Acks.Every = int(h.L2_ACK_INTERVAL)
	c.note("payload is IP's, %v of PACKET_PAYLOAD_SIZE %d, as the reference counts goodput; a packet "+
		"takes %v on the wire", x.Payload, h.PACKET_PAYLOAD_SIZE, x.Payload+rdmaHeader)
	if c.exact() {
		c.own(rdmaHeader, rdmaAnswer, rdmaFrame)
		c.note("buffer and pause thresholds are farflash's own: the reference's are cells of 1030 B in " +
			"service pools")
	} else if !h.USE_DYNAMIC_PFC_THRESHOLD {
		x.PFC.Threshold = fabric.Threshold{Size: rdmaStatic}
	}
	c.rdmaControl(h)
	c.traces(h.Has, "TRACE_FILE", "TRACE_OUTPUT_FILE")
	return nil
}

// rdmaRefused reports settings that are not modelled.
func (c *ns3Conversion) rdmaRefused(h *peer.NS3RDMAConfig) error {
	tree := len(c.topology.Links) < c.topology.Nodes
	switch {
	case h.PACKET_LEVEL_ECMP:
		return refuseKey(h.At("PACKET_LEVEL_ECMP"), "PACKET_LEVEL_ECMP", 1,
			"sends each packet on another path, which is not modelled; use FLOW_LEVEL_ECMP 1")
	case !h.FLOW_LEVEL_ECMP && !tree:
		return refuseKey(h.At("FLOW_LEVEL_ECMP"), "FLOW_LEVEL_ECMP", 0,
			"takes the first of equally short paths for all flows, which is not modelled; use 1")
	case h.SEND_IN_CHUNKS:
		return refuseKey(h.At("SEND_IN_CHUNKS"), "SEND_IN_CHUNKS", 1,
			"is not modelled (the reference calls it deprecated and not tested); write SEND_IN_CHUNKS 0")
	case h.L2_WAIT_FOR_ACK:
		return refuseKey(h.At("L2_WAIT_FOR_ACK"), "L2_WAIT_FOR_ACK", 1,
			"waits for an ACK after each chunk, which is not modelled; use 0")
	case h.L2_BACK_TO_ZERO:
		return refuseKey(h.At("L2_BACK_TO_ZERO"), "L2_BACK_TO_ZERO", 1,
			"returns to the start of a chunk, which is not modelled; use 0, go-back-N")
	case h.L2_ACK_INTERVAL > 1024:
		return refuseKey(h.At("L2_ACK_INTERVAL"), "L2_ACK_INTERVAL", h.L2_ACK_INTERVAL,
			"is not possible; use 1 to 1024 packets")
	case h.PAUSE_TIME != 5*units.Microsecond && !c.exact():
		return refuseKey(h.At("PAUSE_TIME"), "PAUSE_TIME", h.PAUSE_TIME,
			"is not modelled under compat: ns3-rdma; use 5, or convert with --compat none")
	}
	if h.PACKET_PAYLOAD_SIZE > 1500 {
		return refuseKey(h.At("PACKET_PAYLOAD_SIZE"), "PACKET_PAYLOAD_SIZE", h.PACKET_PAYLOAD_SIZE,
			"is above 1500, the reference's maximum")
	}
	if h.Has("L2_CHUNK_SIZE") {
		c.note("%s: L2_CHUNK_SIZE adds an ACK at the end of each chunk in the reference, which is left out",
			h.At("L2_CHUNK_SIZE"))
	}
	if h.Has("PAUSE_TIME") && c.exact() {
		c.note("%s: PAUSE_TIME is not carried over: a pause lasts fabric.pfc.quanta, and is refreshed",
			h.At("PAUSE_TIME"))
	}
	if h.Has("L2_TEST_READ") {
		c.note("%s: L2_TEST_READ has no effect with L2_BACK_TO_ZERO 0", h.At("L2_TEST_READ"))
	}
	if !tree {
		c.note("source ports, which the reference draws at random, are 10000 and up: which of equally short paths a flow " +
			"takes differs from run to run of the reference")
	}
	if c.exact() {
		return nil
	}
	for i, l := range c.topology.Links {
		if c.topology.IsSwitch(l.A) && c.topology.IsSwitch(l.B) {
			continue
		}
		fastest := units.BitRate(int64(h.PACKET_PAYLOAD_SIZE) * 8 * int64(units.Second) / int64(rdmaGap))
		if l.Rate > fastest {
			return fmt.Errorf("%s: a host's link of %v: the reference's senders need up to %v per packet, so "+
				"that a host sends %.3gGbps at most, which is not modelled; use a lower rate, or convert "+
				"with --compat none",
				c.topology.At(i), l.Rate, rdmaGap, float64(fastest)/1e9)
		}
	}
	return nil
}

// rdmaFlows converts the flow files and returns the second that times count from.
func (c *ns3Conversion) rdmaFlows(h *peer.NS3RDMAConfig) (units.Duration, error) {
	if h.TCP_FLOW_FILE != "" {
		path, err := c.find(h.At("TCP_FLOW_FILE"), "TCP_FLOW_FILE", h.TCP_FLOW_FILE)
		if err != nil {
			return 0, err
		}
		tcp, err := peer.ReadFile(path, func(name string, r io.Reader) ([]peer.NS3Flow, error) {
			return peer.ReadNS3RDMATCPFlows(name, r, c.topology)
		})
		if c.surplus(err) != nil {
			return 0, err
		}
		if len(tcp) > 0 {
			return 0, refuseKey(h.At("TCP_FLOW_FILE"), "TCP_FLOW_FILE", h.TCP_FLOW_FILE,
				fmt.Sprintf("has %d flows, and TCP is not modelled; use a file of 0 flows, or leave the key out",
					len(tcp)))
		}
	}
	path, err := c.find(h.At("FLOW_FILE"), "FLOW_FILE", h.FLOW_FILE)
	if err != nil {
		return 0, err
	}
	list, err := c.flowList(path, peer.ReadNS3RDMAFlows)
	if err != nil {
		return 0, err
	}
	from := begin(list, units.Forever-units.Forever%units.Second)
	end := h.SIMULATOR_STOP_TIME
	hosts := map[int]int{}
	for i := range c.topology.Nodes {
		if !c.topology.IsSwitch(i) {
			hosts[i] = len(hosts)
		}
	}
	earliest := end
	for _, f := range list {
		earliest = min(earliest, f.Stop)
	}
	load := scenario.FlowLoad{From: 0, Config: flows.Config{Class: uint8(list[0].Priority)}}
	per := units.Bytes(h.PACKET_PAYLOAD_SIZE) - rdmaShort
	for _, f := range list {
		at := fmt.Sprintf("%s:%d", path, f.Line)
		switch {
		case f.Priority == 1 || f.Priority == 7:
			return 0, fmt.Errorf(
				"%s: priority group %d is reserved by the reference for TCP (1) or control (7); use 2 to 6, such as 3", at,
				f.Priority)
		case f.Stop < end && f.Stop != earliest:
			return 0, fmt.Errorf(
				"%s: the flow stops at %v, others at %v: individual stop times are not "+
					"modelled; stop all at the same time, or not before SIMULATOR_STOP_TIME, %v", at, f.Stop,
				earliest, end)
		case f.Stop >= end && earliest < end:
			return 0, fmt.Errorf(
				"%s: the flow continues when others stop at %v: individual stop times are "+
					"not modelled; stop all at the same time, or not before SIMULATOR_STOP_TIME, %v", at,
				earliest, end)
		case f.Start >= end:
			continue // never starts
		}
		size := per * units.Bytes(f.Packets)
		if size > units.TiB {
			size = units.TiB
			c.note("%s: %d packets exceed the largest message, 1TiB, which replaces them", at,
				f.Packets)
		}
		load.List = append(load.List,
			flows.Entry{Src: hosts[f.Src], Dst: hosts[f.Dst], Class: uint8(f.Priority), Size: size,
				Start: f.Start - from})
	}
	if len(load.List) == 0 {
		return 0, refuseKey(h.At("SIMULATOR_STOP_TIME"), "SIMULATOR_STOP_TIME", end.Seconds(),
			"is before the first flow starts")
	}
	if earliest < end {
		c.note("the flows stop at %v, and the simulation with them, not at SIMULATOR_STOP_TIME, %v", earliest, end)
	}
	c.Scenario.Flows = []scenario.FlowLoad{load}
	return from, c.until(h.At("SIMULATOR_STOP_TIME"), earliest, from)
}

// rdmaStops verifies that the receivers run for as long as the flows.
func (c *ns3Conversion) rdmaStops(h *peer.NS3RDMAConfig, from units.Duration) error {
	first := units.Forever
	for _, f := range c.Scenario.Flows[0].List {
		first = min(first, from+f.Start)
	}
	end := from + c.Scenario.Measure.Until.Time
	switch {
	case h.APP_START_TIME > first:
		return refuseKey(h.At("APP_START_TIME"), "APP_START_TIME", h.APP_START_TIME.Seconds(),
			fmt.Sprintf("is after the first flow, %v: absent receivers are not modelled; use at most that", first))
	case h.APP_STOP_TIME < end:
		return refuseKey(h.At("APP_STOP_TIME"), "APP_STOP_TIME", h.APP_STOP_TIME.Seconds(),
			fmt.Sprintf("is before the end, %v: absent receivers are not modelled; use at least that", end))
	}
	return nil
}

// rdmaControl converts marking and congestion control.
func (c *ns3Conversion) rdmaControl(h *peer.NS3RDMAConfig) {
	x := c.x
	x.ECN.Enabled = h.ENABLE_QCN
	if !h.ENABLE_QCN {
		x.CongestionControl.Algorithm = cc.SchemeNone
		c.note("ENABLE_QCN 0: a host's queue pairs take turns, where the reference has one queue per priority " +
			"group")
		return
	}
	kmin, kmax, pmax := h.Marking()
	x.ECN.Ports = nil
	for _, l := range c.topology.Links {
		if !slices.ContainsFunc(x.ECN.Ports, func(p fabric.ECNPort) bool { return p.Rate == l.Rate }) {
			x.ECN.Ports = append(x.ECN.Ports,
				fabric.ECNPort{Rate: l.Rate, Kmin: kmin, Kmax: kmax, Pmax: units.Fraction(pmax)})
		}
	}
	x.ECN.Rate, x.ECN.Kmin, x.ECN.Kmax, x.ECN.Pmax = x.ECN.Ports[0].Rate, kmin, kmax, units.Fraction(pmax)
	x.CNP.Interval = h.CNP_INTERVAL
	d := cc.NS3RDMADCQCN()
	d.Gain, d.AlphaInterval, d.RateIncreaseTimer = units.Fraction(h.DCTCP_GAIN), h.ALPHA_RESUME_INTERVAL, h.RP_TIMER
	d.ByteCounter, d.FastRecovery, d.RateAI, d.RateHAI = units.Bytes(h.BYTE_COUNTER), int(h.FAST_RECOVERY_TIMES),
		h.RATE_AI, h.RATE_HAI
	switch {
	case h.CLAMP_TARGET_RATE:
		d.ClampTarget = cc.ClampAlways
	case h.CLAMP_TARGET_RATE_AFTER_TIMER:
		d.ClampTarget = cc.ClampAfterIncrease
	default:
		d.ClampTarget = cc.ClampAfterBytes
	}
	x.CongestionControl.Algorithm, x.CongestionControl.DCQCN = cc.SchemeDCQCN, d
}
