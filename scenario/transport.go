package scenario

import (
	"farflash/model/fabric"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/scenario/shape"
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

// Prepare applies the values of the stacks of initiators and targets before those of their sections. Without a stack,
// the protocol decides.
func (s *Scenario) Prepare(_ *shape.Decoder, n *shape.Node, _ string) {
	// Errors in these keys are reported when they are decoded.
	var protocol nvmf.Protocol
	initiators, targets := nvmf.SPDKRDMA, nvmf.SPDKRDMA
	if p := n.Get("protocol"); p != nil && p.Kind == shape.Scalar && protocol.UnmarshalText([]byte(p.Text)) == nil {
		initiators, targets = protocol.Stacks()
	}
	if x := n.Get("nvmf"); x != nil && x.Kind == shape.Mapping {
		chooseStack(&initiators, x.Get("initiator"))
		chooseStack(&targets, x.Get("target"))
	}
	s.NVMf.Initiator, s.NVMf.Target, s.NVMf.Batch = initiators.Initiator(), targets.Target(), initiators.Batch()
}

// chooseStack sets the stack that a section names, if it names one.
func chooseStack(to *nvmf.Stack, n *shape.Node) {
	if n != nil && n.Kind == shape.Mapping {
		n = n.Get("stack")
	}
	var stack nvmf.Stack
	if n != nil && n.Kind == shape.Scalar && stack.UnmarshalText([]byte(n.Text)) == nil {
		*to = stack
	}
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
	case s.NVMf.Buffers.Count > 0 && !s.Protocol.Capsules():
		fail("nvmf.buffers.count", "protocol %v has targets without memory; use 0, or protocol: nvmeof", s.Protocol)
	case s.NVMf.Receives.Shared > 0 && s.Protocol != nvmf.NVMeoF:
		fail("nvmf.receives.shared", "protocol %v has no receives: a target reads sockets, with a buffer for each command "+
			"of a queue pair; use 0, or protocol: nvmeof", s.Protocol)
	case s.NVMf.Receives.Shared > 0 && s.Fabric.QueuePairs.Life == fabric.PerMessage:
		fail("nvmf.receives.shared", "a queue pair per message belongs to no core whose receives it could share; use 0, or "+
			"fabric.queue_pairs.life: persistent")
	case s.NVMf.Receives.Shared > 0 && s.Fabric.Recovery.Kind.Keeps():
		fail("nvmf.receives.shared", "%v keeps packets behind one that found no receive, and no specification has its "+
			"RNR NAKs; use 0, or fabric.recovery.kind: go-back-n", s.Fabric.Recovery.Kind)
	}
	controllers := "nvmf.host.keep_alive"
	if s.NVMf.Host.Rediscovery > 0 {
		controllers = "nvmf.host.rediscovery"
	}
	switch {
	case s.NVMf.Host.KeepAlive+s.NVMf.Host.Rediscovery == 0:
	case !s.Protocol.Capsules():
		fail(controllers, "protocol %v has no controllers that could be lost; use 0s, or protocol: nvmeof", s.Protocol)
	case s.Fabric.QueuePairs.Life == fabric.PerMessage:
		fail(controllers, "a queue pair per message belongs to no controller that could be lost; use 0s, or "+
			"fabric.queue_pairs.life: persistent")
	}
}
