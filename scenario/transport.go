package scenario

import (
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
)

// Transport is the protocol that carries messages across a network.
type Transport uint8

const (
	RoCEv2 Transport = iota // RDMA over UDP
	TCP                     // TCP, with its segments, acknowledgements, recovery and congestion control
)

var transportNames = units.Names[Transport]{"rocev2", "tcp"}

func (t Transport) String() string { return transportNames.Name(t) }

func (t Transport) MarshalText() ([]byte, error) { return transportNames.Marshal(t) }

func (t *Transport) UnmarshalText(text []byte) error { return transportNames.Unmarshal(text, t) }

// config returns the default configuration of a transport's networks.
func (t Transport) config() fabric.Config {
	if t == TCP {
		return fabric.TCP(fabric.DefaultConfig())
	}
	return fabric.DefaultConfig()
}

// checkTransport verifies that a system's protocol runs over its network's transport.
func (s *Scenario) checkTransport(fail func(path, format string, args ...any)) {
	switch t := s.Fabric.Transport; {
	case s.Protocol == nvmf.NVMeTCP && t != TCP:
		fail("protocol", "nvme-tcp needs TCP, and fabric.transport is %v; use fabric.transport: tcp, or "+
			"protocol: nvmeof, which uses RDMA", t)
	case s.Protocol == nvmf.NVMeoF && t == TCP:
		fail("protocol", "nvmeof needs RDMA, and fabric.transport is tcp; use protocol: nvme-tcp")
	case s.Protocol == nvmf.NVMeTCP && s.Fabric.QueuePairs.Life == fabric.PerMessage:
		fail("fabric.queue_pairs.life",
			"per-message opens a connection for each message, where nvme-tcp keeps one; use persistent")
	}
}
