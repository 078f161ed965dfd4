package peer

import (
	"fmt"
	"io"
	"reflect"
	"slices"

	"farflash/numeric/units"
)

// HPCCConfig is the configuration of HPCC's ns-3 (Li et al., SIGCOMM 2019; keys and defaults as of commit 9f4be2a).
// Fields have the names of the keys; a key that the file omits keeps the program's default, which is not always the
// documented one. Sizes are in bytes and times are exact unless a comment says otherwise.
type HPCCConfig struct {
	ENABLE_QCN                bool // ECN marking in switches
	USE_DYNAMIC_PFC_THRESHOLD bool // no effect: the threshold is always dynamic
	PACKET_PAYLOAD_SIZE       uint32
	// in a PFC frame; its only effect is that 0 turns a pause into a resume
	PAUSE_TIME units.Duration `in:"us"`
	DATA_RATE  string         // no effect: each link has its own
	LINK_DELAY string         // no effect: each link has its own

	TOPOLOGY_FILE       string
	FLOW_FILE           string
	TRACE_FILE          string // which nodes' packets are traced
	TRACE_OUTPUT_FILE   string
	FCT_OUTPUT_FILE     string
	PFC_OUTPUT_FILE     string
	QLEN_MON_FILE       string
	QLEN_MON_START      units.Duration `in:"ns"`
	QLEN_MON_END        units.Duration `in:"ns"`
	ENABLE_TRACE        bool
	SIMULATOR_STOP_TIME units.Duration `in:"s"`

	CC_MODE                uint32         // 0 none, 1 DCQCN, 3 HPCC, 7 TIMELY, 8 DCTCP, 10 HPCC-PINT
	ALPHA_RESUME_INTERVAL  units.Duration `in:"us"` // DCQCN: between updates of alpha
	RATE_DECREASE_INTERVAL units.Duration `in:"us"` // DCQCN: between checks for a cut
	CLAMP_TARGET_RATE      bool           // DCQCN: every cut lowers the target rate
	RP_TIMER               units.Duration `in:"us"` // DCQCN: between increases
	EWMA_GAIN              float64        // g of DCQCN and DCTCP
	FAST_RECOVERY_TIMES    uint32         // DCQCN: increases before additive increase
	RATE_AI                units.BitRate  // additive increase of all but DCTCP
	RATE_HAI               units.BitRate  // hyper increase of DCQCN and TIMELY
	MIN_RATE               units.BitRate
	DCTCP_RATE_AI          units.BitRate

	ERROR_RATE_PER_LINK float64 // of packets, on links without their own rate
	L2_CHUNK_SIZE       uint32  // bytes; where go-back-0 goes back to
	// bytes, whatever its documentation says; only a flow's first ones are not acknowledged packet by packet
	L2_ACK_INTERVAL uint32
	// 1 goes back to the start of the chunk, 0 is go-back-N; the documentation has it the other way round
	L2_BACK_TO_ZERO bool

	HAS_WIN         bool    // bounds the bytes in flight
	GLOBAL_T        bool    // the bound is that of the longest path for all
	VAR_WIN         bool    // the bound decreases with the rate
	FAST_REACT      bool    // HPCC: reacts to every ACK
	U_TARGET        float64 // HPCC: eta
	MI_THRESH       uint32  // HPCC: maxStage
	INT_MULTI       uint32  // HPCC: multiplies the units of the INT header
	MULTI_RATE      bool    // HPCC: one rate per hop
	SAMPLE_FEEDBACK bool    // HPCC: INT once per RTT or when there is a queue
	PINT_LOG_BASE   float64
	PINT_PROB       float64 // share of packets that carry PINT
	RATE_BOUND      bool    // paces packets; 0 is for tests
	ACK_HIGH_PRIO   bool    // hosts prioritise ACKs; switches are not aware of it

	LINK_DOWN   NS3LinkDown
	KMAX_MAP    []NS3RateBytes       // marks with certainty from here on
	KMIN_MAP    []NS3RateBytes       // marks from here on
	PMAX_MAP    []NS3RateProbability // marks with this probability at KMAX
	BUFFER_SIZE uint32               // MiB, of a switch

	settings
}

// defaultHPCC returns the defaults of HPCC's program for keys that a file omits.
func defaultHPCC() *HPCCConfig {
	return &HPCCConfig{
		ENABLE_QCN: true, USE_DYNAMIC_PFC_THRESHOLD: true, PACKET_PAYLOAD_SIZE: 1000, PAUSE_TIME: 5 * units.Microsecond,
		FCT_OUTPUT_FILE: "fct.txt", PFC_OUTPUT_FILE: "pfc.txt",
		QLEN_MON_START: 2 * units.Second, QLEN_MON_END: 2100 * units.Millisecond, ENABLE_TRACE: true,
		SIMULATOR_STOP_TIME: 3010 * units.Millisecond,
		CC_MODE:             1, ALPHA_RESUME_INTERVAL: 55 * units.Microsecond,
		RATE_DECREASE_INTERVAL: 4 * units.Microsecond,
		FAST_RECOVERY_TIMES:    5, MIN_RATE: 100 * units.Mbps, DCTCP_RATE_AI: 1000 * units.Mbps,
		HAS_WIN: true, GLOBAL_T: true, FAST_REACT: true, U_TARGET: 0.95, MI_THRESH: 5, INT_MULTI: 1, MULTI_RATE: true,
		PINT_LOG_BASE: 1.05, PINT_PROB: 1, RATE_BOUND: true, BUFFER_SIZE: 16,
	}
}

// ReadHPCCConfig reads a configuration of HPCC's ns-3. name is used in errors. Input that the program silently ignores
// is an error here: unknown keys, words after a value, and the absence of keys without which it computes nonsense.
func ReadHPCCConfig(name string, r io.Reader) (*HPCCConfig, error) {
	c := defaultHPCC()
	var err error
	if c.settings, err = readSettings(name, r, reflect.ValueOf(c).Elem(), rdmaType, "HPCC's ns-3", "ns3-rdma"); err !=
		nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// uses reports whether the congestion control is one of the given modes.
func (c *HPCCConfig) uses(modes ...uint32) bool { return slices.Contains(modes, c.CC_MODE) }

func (c *HPCCConfig) check() error {
	const garbage = "HPCC's ns-3 would use uninitialised memory; CC_MODE %d needs it"
	if !c.uses(0, 1, 3, 7, 8, 10) {
		return c.wrong("CC_MODE",
			"%d is not one of 0 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP), 10 (HPCC-PINT); HPCC's ns-3 would "+
				"run it as 0", c.CC_MODE)
	}
	needs := []struct {
		key   string
		modes []uint32
		why   string
	}{
		{"TOPOLOGY_FILE", []uint32{0, 1, 3, 7, 8, 10}, "without a topology there is nothing to simulate"},
		{"FLOW_FILE", []uint32{0, 1, 3, 7, 8, 10}, "without flows there is nothing to simulate"},
		{"L2_ACK_INTERVAL", []uint32{0, 1, 3, 7, 8, 10},
			"HPCC's ns-3 would use 0, with which senders ignore ACKs and no flow ends; write L2_ACK_INTERVAL 1"},
		{"EWMA_GAIN", []uint32{1, 8},
			"HPCC's ns-3 would use 0, the integer quotient 1/16, with which the rate's cuts never change; write " +
				"EWMA_GAIN 0.00390625, or 0.0625 if a sixteenth is meant"},
		{"RATE_AI", []uint32{1, 3, 7, 10}, fmt.Sprintf(garbage, c.CC_MODE)},
		{"RATE_HAI", []uint32{1, 7}, fmt.Sprintf(garbage, c.CC_MODE)},
		{"RP_TIMER", []uint32{1},
			"HPCC's ns-3 would use 0, with which simulated time stops at the first rate cut; write for example RP_TIMER 300"},
	}
	for _, n := range needs {
		if c.uses(n.modes...) {
			if err := c.need(n.key, "CC_MODE", n.why); err != nil {
				return err
			}
		}
	}
	limits := []struct {
		key  string
		bad  bool
		want string
	}{
		{"PACKET_PAYLOAD_SIZE", c.PACKET_PAYLOAD_SIZE == 0, "must be positive"},
		{"SIMULATOR_STOP_TIME", c.SIMULATOR_STOP_TIME == 0, "must be positive"},
		{"PAUSE_TIME", c.PAUSE_TIME == 0, "must be positive; with 0, HPCC's ns-3 takes a pause for a resume"},
		{"L2_ACK_INTERVAL", c.L2_ACK_INTERVAL == 0,
			"must be positive; with 0, senders of HPCC's ns-3 ignore ACKs and no flow ends"},
		{"L2_CHUNK_SIZE", c.L2_CHUNK_SIZE == 0 && (c.L2_BACK_TO_ZERO || c.L2_ACK_INTERVAL > c.PACKET_PAYLOAD_SIZE),
			"must be positive with L2_BACK_TO_ZERO 1 or with an L2_ACK_INTERVAL above PACKET_PAYLOAD_SIZE; HPCC's " +
				"ns-3 divides by it"},
		{"ALPHA_RESUME_INTERVAL", c.ALPHA_RESUME_INTERVAL == 0 && c.uses(1),
			"must be positive; with 0, simulated time stops"},
		{"RATE_DECREASE_INTERVAL", c.RATE_DECREASE_INTERVAL == 0 && c.uses(1),
			"must be positive; with 0, simulated time stops"},
		{"RP_TIMER", c.RP_TIMER == 0 && c.uses(1), "must be positive; with 0, simulated time stops"},
		{"EWMA_GAIN", c.EWMA_GAIN > 1, "must be from 0 to 1"},
		{"ERROR_RATE_PER_LINK", c.ERROR_RATE_PER_LINK > 1, "must be from 0 to 1"},
		{"PINT_PROB", c.PINT_PROB > 1, "must be from 0 to 1"},
		{"U_TARGET", c.U_TARGET == 0 && c.uses(3, 10), "must be positive; HPCC divides by it"},
		{"INT_MULTI", c.INT_MULTI == 0 && c.uses(3, 10), "must be positive; HPCC divides by it"},
		{"PINT_LOG_BASE", c.PINT_LOG_BASE <= 1 && c.uses(10), "must be above 1, the base of a logarithm"},
		{"MIN_RATE", c.MIN_RATE == 0 && !c.uses(0), "must be positive; at rate 0 a flow never ends"},
		{"BUFFER_SIZE", c.BUFFER_SIZE == 0 || c.BUFFER_SIZE >= 4096, "must be from 1 to 4095 MiB, to fit in 32 bits"},
		{"QLEN_MON_END", c.QLEN_MON_END < c.QLEN_MON_START && c.Has("QLEN_MON_END"), "is before QLEN_MON_START"},
		{"LINK_DOWN", c.LINK_DOWN.Time > 0 && c.LINK_DOWN.A == c.LINK_DOWN.B, "names a node twice"},
	}
	for _, l := range limits {
		if l.bad {
			return c.wrong(l.key, "%s", l.want)
		}
	}
	for _, low := range c.KMIN_MAP {
		for _, high := range c.KMAX_MAP {
			if low.Rate == high.Rate && low.KB > high.KB {
				return c.wrong("KMIN_MAP", "%d for %v is above its KMAX_MAP, %d", low.KB, low.Rate, high.KB)
			}
		}
	}
	return nil
}

// Marking returns the ECN thresholds of a switch's ports of a rate. Without an
// entry for it the program stops, or uses 0 if it was built without assertions.
func (c *HPCCConfig) Marking(rate units.BitRate) (kmin, kmax units.Bytes, pmax float64, err error) {
	kb := func(key string, entries []NS3RateBytes) units.Bytes {
		i := slices.IndexFunc(entries, func(e NS3RateBytes) bool { return e.Rate == rate })
		if i < 0 {
			if err == nil {
				err = c.wrong(key, "no entry for links of %v; add the pair %d and a threshold in units of 1000 bytes",
					rate, int64(rate))
			}
			return 0
		}
		return units.Bytes(entries[i].KB) * units.KB
	}
	kmin, kmax = kb("KMIN_MAP", c.KMIN_MAP), kb("KMAX_MAP", c.KMAX_MAP)
	i := slices.IndexFunc(c.PMAX_MAP, func(e NS3RateProbability) bool { return e.Rate == rate })
	switch {
	case i >= 0:
		pmax = c.PMAX_MAP[i].Probability
	case err == nil:
		err = c.wrong("PMAX_MAP", "no entry for links of %v; add the pair %d and a probability", rate, int64(rate))
	}
	return kmin, kmax, pmax, err
}

// Ignored describes the file's keys without effect in HPCC's program, and those whose effect differs from their names.
func (c *HPCCConfig) Ignored() []string {
	var out []string
	notes := []struct {
		key  string
		when bool
		why  string
	}{
		{"DATA_RATE", true, "has no effect: each link of the topology has its own"},
		{"LINK_DELAY", true, "has no effect: each link of the topology has its own"},
		{"USE_DYNAMIC_PFC_THRESHOLD", !c.USE_DYNAMIC_PFC_THRESHOLD, "0 has no effect: the threshold stays dynamic"},
		{"PAUSE_TIME", true, "has no effect: a pause lasts until it is resumed"},
		{"ACK_HIGH_PRIO", c.ACK_HIGH_PRIO, "1 changes only hosts: switches queue and account ACKs with the data"},
	}
	for _, n := range notes {
		if n.when && c.Has(n.key) {
			out = append(out, fmt.Sprintf("%s: %s %s", c.At(n.key), n.key, n.why))
		}
	}
	return out
}
