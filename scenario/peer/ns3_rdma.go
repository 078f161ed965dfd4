package peer

import (
	"fmt"
	"io"
	"reflect"

	"farflash/numeric/units"
)

// NS3RDMAConfig is the configuration of ns3-rdma (Zhu et al., CoNEXT 2016; keys and defaults as of commit e8a27d0,
// examples/tutorial/third.cc). Fields have the names of the keys; a key that the file omits keeps the program's
// default.
type NS3RDMAConfig struct {
	ENABLE_QCN                bool // DCQCN in hosts, ECN marking in switches
	USE_DYNAMIC_PFC_THRESHOLD bool
	PACKET_LEVEL_ECMP         bool           // a random path for each packet
	FLOW_LEVEL_ECMP           bool           // a path for each flow by its hash
	PAUSE_TIME                units.Duration `in:"us"` // duration of a PFC pause; it is renewed after every half of it
	PACKET_PAYLOAD_SIZE       uint32         // bytes of a packet of a flow
	DATA_RATE                 string         // no effect: each link has its own
	LINK_DELAY                string         // no effect: each link has its own

	TOPOLOGY_FILE     string
	FLOW_FILE         string
	TCP_FLOW_FILE     string
	TRACE_FILE        string // which nodes' packets are traced
	TRACE_OUTPUT_FILE string

	SEND_IN_CHUNKS      bool           // each chunk waits for a reply from the receiver
	APP_START_TIME      units.Duration `in:"s"` // of the receivers
	APP_STOP_TIME       units.Duration `in:"s"` // of the receivers
	SIMULATOR_STOP_TIME units.Duration `in:"s"`

	CNP_INTERVAL                  units.Duration `in:"us"` // between two CNPs of a flow
	ALPHA_RESUME_INTERVAL         units.Duration `in:"us"` // without a CNP, after which alpha decays
	NP_SAMPLING_INTERVAL          units.Duration `in:"us"` // no effect
	CLAMP_TARGET_RATE             bool           // every cut lowers the target rate
	CLAMP_TARGET_RATE_AFTER_TIMER bool           // a cut after an increase by the timer lowers the target rate
	RP_TIMER                      units.Duration `in:"us"` // between increases
	BYTE_COUNTER                  uint32         // bytes between increases
	DCTCP_GAIN                    float64        // g of DCQCN
	KMAX                          uint32         // in cells of 1030 bytes
	KMIN                          uint32         // in cells of 1030 bytes
	PMAX                          float64
	FAST_RECOVERY_TIMES           uint32
	RATE_AI                       units.BitRate
	RATE_HAI                      units.BitRate

	ERROR_RATE_PER_LINK float64 // of packets, on links without their own rate
	L2_CHUNK_SIZE       uint32  // packets
	L2_WAIT_FOR_ACK     bool    // each chunk waits for its ACK
	L2_ACK_INTERVAL     uint32  // packets between ACKs
	L2_BACK_TO_ZERO     bool    // 1 goes back to the start of the chunk, 0 is go-back-N
	L2_TEST_READ        bool    // the receiver does not go back with the sender

	settings
}

// defaultNS3RDMA returns ns3-rdma's defaults for keys that a file omits.
func defaultNS3RDMA() *NS3RDMAConfig {
	return &NS3RDMAConfig{
		ENABLE_QCN: true, USE_DYNAMIC_PFC_THRESHOLD: true, PAUSE_TIME: 5 * units.Microsecond, PACKET_PAYLOAD_SIZE: 1000,
		SEND_IN_CHUNKS: true, APP_START_TIME: units.Second, APP_STOP_TIME: 9 * units.Second,
		SIMULATOR_STOP_TIME: 3010 * units.Millisecond,
		CNP_INTERVAL:        50 * units.Microsecond, ALPHA_RESUME_INTERVAL: 55 * units.Microsecond,
		KMAX: 60, KMIN: 60, PMAX: 1, FAST_RECOVERY_TIMES: 5,
	}
}

// ReadNS3RDMAConfig reads a configuration of ns3-rdma. name is used in errors. It is as strict as ReadHPCCConfig.
func ReadNS3RDMAConfig(name string, r io.Reader) (*NS3RDMAConfig, error) {
	c := defaultNS3RDMA()
	var err error
	if c.settings, err = readSettings(name, r, reflect.ValueOf(c).Elem(), hpccType, "ns3-rdma", "HPCC's ns-3"); err !=
		nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *NS3RDMAConfig) check() error {
	const garbage = "ns3-rdma would use uninitialised memory; DCQCN (ENABLE_QCN 1) needs it"
	needs := []struct {
		key  string
		when bool
		why  string
	}{
		{"TOPOLOGY_FILE", true, "without a topology there is nothing to simulate"},
		{"FLOW_FILE", true, "without flows there is nothing to simulate"},
		{"L2_CHUNK_SIZE", true, "ns3-rdma would use 0 and divide by it; write for example L2_CHUNK_SIZE 4000"},
		{"L2_ACK_INTERVAL", true,
			"ns3-rdma would use 0, with which senders ignore ACKs; write for example L2_ACK_INTERVAL 256"},
		{"DCTCP_GAIN", c.ENABLE_QCN,
			"ns3-rdma would use 0, the integer quotient 1/16, with which the rate's cuts never change; write " +
				"DCTCP_GAIN 0.00390625, or 0.0625 if a sixteenth is meant"},
		{"RATE_AI", c.ENABLE_QCN, garbage},
		{"RATE_HAI", c.ENABLE_QCN, garbage},
		{"RP_TIMER", c.ENABLE_QCN,
			"ns3-rdma would use 0, with which simulated time stops at the first rate cut; write for example RP_TIMER 60"},
		{"BYTE_COUNTER", c.ENABLE_QCN,
			"ns3-rdma would use 0, with which every packet is an increase; write for example BYTE_COUNTER 300000000"},
	}
	for _, n := range needs {
		if n.when {
			if err := c.need(n.key, "ENABLE_QCN", n.why); err != nil {
				return err
			}
		}
	}
	limits := []struct {
		key  string
		bad  bool
		want string
	}{
		{"PACKET_LEVEL_ECMP", c.PACKET_LEVEL_ECMP && c.FLOW_LEVEL_ECMP,
			"excludes FLOW_LEVEL_ECMP; set one of them to 0"},
		{"PACKET_PAYLOAD_SIZE", c.PACKET_PAYLOAD_SIZE <= 24, "must be above 24, the size of the headers that ns3-rdma includes"},
		{"PAUSE_TIME", c.PAUSE_TIME < 2*units.Microsecond,
			"must be 2 or more; ns3-rdma renews a pause every half of it, in whole us"},
		{"SIMULATOR_STOP_TIME", c.SIMULATOR_STOP_TIME == 0, "must be positive"},
		{"APP_STOP_TIME", c.APP_STOP_TIME < c.APP_START_TIME, "is before APP_START_TIME"},
		{"L2_CHUNK_SIZE", c.L2_CHUNK_SIZE == 0, "must be positive; ns3-rdma divides by it"},
		{"L2_ACK_INTERVAL", c.L2_ACK_INTERVAL == 0, "must be positive; with 0, senders ignore ACKs"},
		{"CNP_INTERVAL", c.CNP_INTERVAL == 0 && c.ENABLE_QCN, "must be positive; with 0, simulated time stops"},
		{"ALPHA_RESUME_INTERVAL", c.ALPHA_RESUME_INTERVAL == 0 && c.ENABLE_QCN,
			"must be positive; with 0, simulated time stops"},
		{"RP_TIMER", c.RP_TIMER == 0 && c.ENABLE_QCN, "must be positive; with 0, simulated time stops"},
		{"BYTE_COUNTER", c.BYTE_COUNTER == 0 && c.ENABLE_QCN, "must be positive; with 0, every packet is an increase"},
		{"DCTCP_GAIN", c.DCTCP_GAIN > 1, "must be from 0 to 1"},
		{"ERROR_RATE_PER_LINK", c.ERROR_RATE_PER_LINK > 1, "must be from 0 to 1"},
		{"PMAX", c.PMAX > 1, "must be from 0 to 1"},
		{"KMIN", c.KMIN > c.KMAX, fmt.Sprintf("%d is above KMAX, %d", c.KMIN, c.KMAX)},
		{"KMAX", uint64(c.KMAX)*ns3Cell > 1<<32-1,
			fmt.Sprintf("must be at most %d, to fit in 32 bits of bytes", (1<<32-1)/ns3Cell)},
	}
	for _, l := range limits {
		if l.bad {
			return c.wrong(l.key, "%s", l.want)
		}
	}
	return nil
}

// ns3Cell is the unit of ns3-rdma's switch buffers, in bytes.
const ns3Cell = 1030

// Marking returns the ECN thresholds of every switch's ports.
func (c *NS3RDMAConfig) Marking() (kmin, kmax units.Bytes, pmax float64) {
	return units.Bytes(c.KMIN) * ns3Cell, units.Bytes(c.KMAX) * ns3Cell, c.PMAX
}

// Ignored describes the file's keys without effect in ns3-rdma.
func (c *NS3RDMAConfig) Ignored() []string {
	var out []string
	notes := []struct{ key, why string }{
		{"DATA_RATE", "has no effect: each link of the topology has its own"},
		{"LINK_DELAY", "has no effect: each link of the topology has its own"},
		{"NP_SAMPLING_INTERVAL", "has no effect: ns3-rdma stores it and never reads it"},
	}
	for _, n := range notes {
		if c.Has(n.key) {
			out = append(out, fmt.Sprintf("%s: %s %s", c.At(n.key), n.key, n.why))
		}
	}
	return out
}
