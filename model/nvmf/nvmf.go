// Package nvmf models NVMe over Fabrics on RDMA and on TCP: initiators that send commands to
// targets, and targets that put them into their drives and send back what comes out.
//
// The main types are Config, which describes both sides in plain values, and System,
// which holds all initiators and targets of a simulation. What happens to a command:
// the initiator (initiator.go) waits for a place in a queue pair and sends a command
// capsule; the target (target.go) puts the command into a drive's submission queue; the
// completion, and a read's data before it, leave through the target's transmit
// queue (txq.go) when there is room in it. A write's data comes in the capsule if it is
// small, or else the target fetches it with an RDMA Read first. command.go keeps the time of
// each stage, whose sum is the command's latency to the picosecond.
//
// With Protocol NVMeTCP (pdu.go) a queue pair is a TCP connection, a stream of bytes each way: a target asks for a
// large write's data with an R2T, and the initiator sends them in H2CData behind whatever it has sent before.
//
// With Protocol Flows there are no capsules: a write is one message to the target and a read
// one message back, as in SNIS (Jia et al., IPCCC 2022) and SRC (Jia et al., 2023).
//
// It follows the NVM Express over Fabrics specification 1.1, sections 2 and 7.3 (RDMA transport), with the sizes of
// its capsules, and the NVM Express TCP Transport specification 1.0. It sees drives as block.Device, whatever they
// are, and the network as Fabric.
//
// What it leaves out: connecting (on TCP with its handshake and the 128 bytes each of ICReq and ICResp) and
// discovery, the admin queue, keep-alive, keyed scatter-gather lists, retries after a lost connection, and the
// content of the data. A read's data has room in the transmit queue only, where SPDK takes a buffer before the drive
// reads.
package nvmf

import (
	"errors"
	"fmt"

	"farflash/block"
	"farflash/internal/slab"
	"farflash/model/fabric"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// Protocol is how requests travel.
type Protocol uint8

// The protocols.
const (
	// NVMeoF sends capsules over RDMA.
	NVMeoF Protocol = iota
	// Flows sends a message of the data alone for each request.
	Flows
	// NVMeTCP sends capsules over TCP.
	NVMeTCP
)

var protocolNames = units.Names[Protocol]{"nvmeof", "flows", "nvme-tcp"}

// Capsules reports whether commands travel in capsules, on queue pairs of a depth.
func (p Protocol) Capsules() bool { return p != Flows }

// String is the protocol's name in scenarios.
func (p Protocol) String() string { return protocolNames.Name(p) }

// MarshalText writes the protocol's name.
func (p Protocol) MarshalText() ([]byte, error) { return protocolNames.Marshal(p) }

// UnmarshalText reads a protocol's name.
func (p *Protocol) UnmarshalText(text []byte) error { return protocolNames.Unmarshal(text, p) }

// Config describes initiators and targets.
type Config struct {
	// QueuePairs is how many I/O queue pairs an initiator has to each target.
	QueuePairs int
	// QueueDepth is how many commands of a queue pair may be outstanding. Others wait at the initiator.
	QueueDepth int
	// InCapsule is how much data of a write its capsule carries. The target fetches larger data.
	InCapsule units.Bytes
	// MaxTransfer is the largest command; larger requests are split.
	MaxTransfer units.Bytes
	// TXQ is the size of a target's transmit queue, which holds data until they are acknowledged. A completion that
	// finds no room waits in the drive's completion queue and keeps its place in the submission queue. A response
	// larger than the queue is sent alone, when the queue is empty.
	TXQ units.Bytes
	// WriteBuffers is a target's memory for the data of writes that it fetches. A write takes its part before its
	// RDMA Read, and keeps it until its response is acknowledged. Others wait in order. A write larger than all of it
	// is served alone.
	WriteBuffers units.Bytes
	// Reads limits the RDMA Reads of a queue pair. TCP has none.
	Reads Reads
	// TCP has the options that hosts negotiate when they connect by TCP.
	TCP TCP
	// DriveDepth is how many commands a target's driver gives a drive at once. Others wait in the target.
	DriveDepth int
	// Class is the traffic class of everything that is sent.
	Class uint8
	// Initiator is the initiators' software.
	Initiator Software
	// Target is the targets' software.
	Target Software
}

// Reads are the two limits on the outstanding RDMA Reads of a queue pair. The smaller one counts: the machines agree
// on it when they connect (InfiniBand's initiator depth and responder resources).
type Reads struct {
	// Target is how many a target's NIC asks for at once on a queue pair. More writes wait in the target, in the
	// order of their queue pair, and hold nothing else back.
	Target int
	// Initiator is how many an initiator's NIC can answer at once on a queue pair.
	Initiator int
}

// limit is how many may be outstanding.
func (r *Reads) limit() int32 { return int32(min(r.Target, r.Initiator)) }

// Software is what the processors of a machine do for each command.
type Software struct {
	// Command is how long a core works on a command, half when it goes and half when it
	// comes back. Commands of one queue pair are worked on by one core, one after
	// the other. The default is RDMA's; TCP takes more of a core, which is to be set where it matters.
	Command units.Duration
	// Cores is how many cores share a machine's queue pairs; 0 is one for each, so that commands
	// never wait for a core.
	Cores int
}

// DefaultConfig is the Linux target's and SPDK's protocol with SPDK's software.
//
// Queue pairs of 128 entries, 4 KiB in the capsule, transfers up to 1 MiB: Linux 6 (drivers/nvme/target/rdma.c,
// include/linux/nvme-rdma.h: NVME_RDMA_DEFAULT_QUEUE_SIZE, NVMET_RDMA_DEFAULT_INLINE_DATA_SIZE, NVMET_RDMA_MAX_MDTS).
// Transmit queue and write buffers: SPDK's 4095 shared buffers of 8 KiB, here as many for each direction. RDMA Reads:
// the 16 a queue pair of NVIDIA's NICs (mlx5's max_qp_rd_atom), which Linux' and SPDK's initiators offer and their
// targets take (nvme-rdma's and SPDK's responder_resources; nvmet-rdma's initiator_depth; SPDK's max_read_depth,
// beyond which its writes wait in software, as they do here). Software: SPDK NVMe-oF RDMA performance report, release
// 24.05: 10.94 M 4 KiB random reads a second on 8 target cores, 5.46 M on 4 initiator cores, which is 0.73 us of a
// core each.
func DefaultConfig() Config {
	cost := 730 * units.Nanosecond
	return Config{
		QueuePairs: 1, QueueDepth: 128, InCapsule: 4 * units.KiB, MaxTransfer: units.MiB, TXQ: 4095 * 8 * units.KiB,
		WriteBuffers: 4095 * 8 * units.KiB, Reads: Reads{Target: 16, Initiator: 16}, TCP: defaultTCP(),
		DriveDepth: 1024, Class: 3,
		Initiator: Software{Command: cost, Cores: 4}, Target: Software{Command: cost, Cores: 8},
	}
}

// Validate reports what cannot be, each with its key.
func (c *Config) Validate() error {
	var bad units.Faults
	bad.Hold(c.QueuePairs >= 1 && c.QueuePairs <= 128, "queue_pairs", "%d is not possible; use 1 to 128", c.QueuePairs)
	bad.Hold(c.QueueDepth >= 1 && c.QueueDepth <= 65536, "queue_depth", "%d is not possible; use 1 to 65536",
		c.QueueDepth)
	bad.Hold(c.InCapsule >= 0 && c.InCapsule <= 16*units.MiB, "in_capsule", "%v is not possible; use 0B to 16MiB",
		c.InCapsule)
	bad.Hold(c.MaxTransfer >= units.Sector && c.MaxTransfer%units.Sector == 0 && c.MaxTransfer <= units.GiB,
		"max_transfer", "%v is not possible; use a multiple of 512B up to 1GiB", c.MaxTransfer)
	bad.Hold(c.TXQ >= 1, "txq", "%v is not possible; use a size such as 16MiB", c.TXQ)
	bad.Hold(c.WriteBuffers >= 1, "write_buffers", "%v is not possible; use a size such as 16MiB", c.WriteBuffers)
	bad.Hold(c.Reads.Target >= 1 && c.Reads.Target <= 65535, "reads.target", "%d is not possible; use 1 to 65535",
		c.Reads.Target)
	bad.Hold(c.Reads.Initiator >= 1 && c.Reads.Initiator <= 65535, "reads.initiator",
		"%d is not possible; use 1 to 65535", c.Reads.Initiator)
	bad.Hold(c.DriveDepth >= 1 && c.DriveDepth <= 65535, "drive_depth", "%d is not possible; use 1 to 65535",
		c.DriveDepth)
	bad.Hold(c.Class >= 1 && c.Class < fabric.MaxClasses, "class",
		"%d is not possible; use 1 to %d (0 is for control traffic)", c.Class, fabric.MaxClasses-1)
	bad.Within("tcp", c.TCP.validate())
	bad.Within("initiator", c.Initiator.validate())
	bad.Within("target", c.Target.validate())
	return bad.Err()
}

func (s *Software) validate() error {
	var bad units.Faults
	bad.Hold(s.Command >= 0 && s.Command <= units.Second, "command", "%v is not possible; use 0s to 1s", s.Command)
	bad.Hold(s.Cores >= 0 && s.Cores <= 4096, "cores", "%d is not possible; use 1 to 4096, or 0 for one a queue pair",
		s.Cores)
	return bad.Err()
}

// Sizes of RDMA's messages beside data, in bytes: an NVMe command, an NVMe completion (NVMe over Fabrics
// 1.1, section 2), and an RDMA Read's request, which is only its header (the InfiniBand
// specification's RETH).
const (
	capsuleSize  units.Bytes = 64
	responseSize units.Bytes = 16
	pullSize     units.Bytes = 16
)

// Sink gets commands that have ended. It may submit.
type Sink interface {
	// Ended: the command's figures hold until the call returns.
	Ended(*Done)
}

// System is all initiators and targets of a simulation. It belongs to the goroutine that runs
// its engine.
type System struct {
	cfg      Config
	protocol Protocol
	own      bool // connections have queue pairs of their own
	eng      *sim.Engine
	self     sim.Component
	target   sim.Target
	net      Fabric
	reader   Reader  // nil if connections have no queue pairs of their own, or are TCP's
	chooser  Chooser // nil if they have
	sink     Sink
	err      error

	initiators []machine
	targets    []transmitter
	drives     []drive
	conns      []connection // by initiator, target and number
	turns      []uint16     // of connections, by initiator and target
	commands   slab.Slab[command]
	posted     []posted // by message
	pace       []pace   // by queue pair
	steers     bool     // some target has a controller
	demands    []ratecontrol.Demanded

	done     Done
	Counters Counters

	// OnMessage gets each message that is posted, OnVisit each command that a drive has ended, OnLevel
	// what drives' and transmit queues hold whenever that changes.
	OnMessage sim.Probe[Message]
	OnVisit   sim.Probe[Visit]
	OnLevel   sim.Probe[Level]
	// OnSteered gets what controllers are told and what they change.
	OnSteered sim.Probe[Steered]
}

// Counters are sums over all commands.
type Counters struct {
	Submitted, Ended, Failed uint64
	// Held is how many commands waited for a place in a queue pair, for one in a
	// drive's queue, and for room in a transmit queue.
	HeldAtInitiator, HeldAtTarget, HeldAtTXQ uint64
	// Most are the longest of these queues.
	MostAtInitiator, MostAtTarget, MostAtTXQ int32
	// MostTXQ is the most that a transmit queue has held, and MostBuffers a target's memory for writes.
	MostTXQ, MostBuffers units.Bytes
	// HeldForBuffers and HeldForReads are how many writes waited in a target for memory, and for one of the queue
	// pair's RDMA Reads.
	HeldForBuffers, HeldForReads uint64
	// Pulls are RDMA Reads that were asked for, MostReads the most of a queue pair at once.
	Pulls     uint64
	MostReads int32
	// Time is what ended commands spent in each stage.
	Time [Stages]sim.Time
	// Latency is the sum of their latencies.
	Latency sim.Time
}

// machine is a node with processors.
type machine struct {
	node  int32
	cores []sim.Time // until when each is busy
}

// connection is a queue pair of an initiator to a target.
type connection struct {
	out, back   fabric.QP
	answers     fabric.QP // the initiator's answers to RDMA Reads
	open        bool
	outstanding int32
	reading     int32 // RDMA Reads
	waiting     list
	unread      list  // writes whose RDMA Reads must wait for others
	core        int32 // its number at the initiator and at the target
	targetCore  int32
}

// list is a queue of commands.
type list struct{ head, tail, n int32 }

// posted is what a message is for.
type posted struct {
	command int32 // 0: not one of ours
	bytes   int32 // of the transmit queue
	held    int32 // of the memory for writes
	target  int32
	kind    Kind
	read    bool     // it answers a read
	ended   sim.Time // when the drive had ended that
}

// Events of the system; arg is a command.
const (
	evSent      uint16 = iota // the initiator's software has prepared the command
	evReceived                // the target's software has
	evFinished                // the target's software has the drive's completion
	evEnded                   // the initiator's software has the response
	evSteer                   // a controller wants to be called; arg is its target
	evDemand                  // a given demand is due; arg is its number
	evSendsDue                // reads that their pace held may be handed to the network; arg is their target
	evWritesDue               // the data of writes that their pace held may be asked for
)

// New makes a system without machines. own says that each connection has queue pairs of
// its own, which needs a network whose queue pairs persist; without it the network chooses for each message.
func New(cfg Config, protocol Protocol, own bool, eng *sim.Engine) (*System, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &System{cfg: cfg, protocol: protocol, own: own, eng: eng, self: eng.NewComponent()}
	s.target = eng.AddHandler(s)
	return s, nil
}

// Connect sets the network, which needs the system as its sink and so is made after it, and who gets the
// commands that have ended. Unless connections have queue pairs of their own the network must be a Chooser.
func (s *System) Connect(net Fabric, sink Sink) {
	s.net, s.sink = net, sink
	var ok bool
	if s.protocol == NVMeTCP && !s.own {
		s.fail(errors.New("connections of TCP last, and the network's queue pairs do not"))
	}
	if s.own && s.protocol == NVMeTCP {
		return
	}
	if s.own {
		if s.reader, ok = net.(Reader); !ok {
			s.fail(errors.New("the network answers no RDMA Reads"))
		}
		return
	}
	if s.chooser, ok = net.(Chooser); !ok {
		s.fail(errors.New("the network chooses no queue pairs"))
	}
}

// AddInitiator adds an initiator at a node of the network and returns its number. All initiators and targets
// are added before the first command.
func (s *System) AddInitiator(node int32) int32 {
	s.initiators = append(s.initiators, machine{node: node})
	return int32(len(s.initiators) - 1)
}

// AddTarget adds a target at a node and returns its number.
func (s *System) AddTarget(node int32) int32 {
	s.targets = append(s.targets, transmitter{machine: machine{node: node}})
	return int32(len(s.targets) - 1)
}

// Drives is how many drives there are.
func (s *System) Drives() int { return len(s.drives) }

// Initiators is how many initiators there are.
func (s *System) Initiators() int { return len(s.initiators) }

// Targets is how many targets there are.
func (s *System) Targets() int { return len(s.targets) }

// InitiatorNode is where an initiator is in the network.
func (s *System) InitiatorNode(i int32) int32 { return s.initiators[i].node }

// TargetNode is where a target is.
func (s *System) TargetNode(i int32) int32 { return s.targets[i].node }

// Device is a drive.
func (s *System) Device(drive int32) block.Device { return s.drives[drive].dev }

// DrivesOf are a target's drives.
func (s *System) DrivesOf(target int32) []int32 { return s.targets[target].drives }

// Err is what stopped the system, if anything did.
func (s *System) Err() error { return s.err }

func (s *System) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.eng.Stop()
}

// Handle implements sim.Handler.
func (s *System) Handle(e sim.Event) {
	c := int32(e.Arg)
	switch e.Kind {
	case evSent:
		s.sendCapsule(c)
	case evReceived:
		s.received(c)
	case evFinished:
		s.finished(c)
	case evEnded:
		s.end(c)
	case evSteer:
		s.woken(c)
	case evDemand:
		s.demanded(c)
	case evSendsDue:
		s.answerAll(&s.targets[c])
	case evWritesDue:
		s.fetchAll(&s.targets[c])
	}
}

// work has a core work for a command, or goes on at once if that takes no time.
func (s *System) work(core *sim.Time, cost sim.Time, kind uint16, c int32) {
	now := s.eng.Now()
	if cost == 0 && *core <= now {
		s.Handle(sim.Event{At: now, Kind: kind, Arg: uint32(c)})
		return
	}
	*core = max(*core, now) + cost
	s.eng.Schedule(s.self, s.target, *core, kind, uint32(c))
}

// Delivered implements fabric.Sink: a message has arrived as a whole.
func (s *System) Delivered(m int32) {
	if int(m) >= len(s.posted) || s.posted[m].command == 0 {
		return
	}
	p := &s.posted[m]
	switch c := p.command; p.kind {
	case Capsule:
		s.capsuleArrived(c)
	case Pull:
		s.pullArrived(c, m)
	case Pulled:
		s.dataArrived(c)
	default:
		s.answerArrived(c, p.kind)
	}
}

// Acked implements fabric.Sink: what a target has sent leaves its transmit queue, and nobody asks for the message any
// more.
func (s *System) Acked(m int32) {
	if !s.Carries(m) {
		return
	}
	p := s.posted[m]
	if x := s.commands.At(p.command); x.first == m {
		x.begun, x.first = s.net.Begun(m), -1
	}
	s.posted[m] = posted{}
	s.net.Forget(m)
	if p.bytes > 0 {
		s.release(p.target, units.Bytes(p.bytes))
		if t := &s.targets[p.target]; p.read && t.steered != nil {
			s.noteSent(t, int64(p.bytes), p.ended)
		}
	}
	if p.held > 0 {
		s.giveBack(p.target, units.Bytes(p.held))
	}
}

// Carries reports whether a message is one of the system's.
func (s *System) Carries(m int32) bool { return int(m) < len(s.posted) && s.posted[m].command != 0 }

// post sends a message for a command and returns its number. The answer to an RDMA Read has the number of its request.
func (s *System) post(c int32, k Kind, size units.Bytes, request int32) int32 {
	x := s.commands.At(c)
	n := &s.conns[x.conn]
	var m int32
	var err error
	switch {
	case !s.own && k.toTarget():
		m, err = s.chooser.Send(s.initiators[x.initiator].node, s.targets[x.target].node, s.cfg.Class, size)
	case !s.own:
		m, err = s.chooser.Send(s.targets[x.target].node, s.initiators[x.initiator].node, s.cfg.Class, size)
	case k == Pull && s.reader != nil:
		m, err = s.reader.Ask(n.back, size)
	case k == Pulled && s.reader != nil:
		m, err = s.reader.Answer(n.answers, size, request)
	case k.toTarget():
		m, err = s.net.Post(n.out, size)
	default:
		m, err = s.net.Post(n.back, size)
	}
	if err != nil {
		s.fail(fmt.Errorf("initiator %d to target %d: %w", x.initiator, x.target, err))
		return -1
	}
	for int(m) >= len(s.posted) {
		s.posted = append(s.posted, posted{})
	}
	s.posted[m] = posted{command: c, kind: k, target: x.target}
	if s.OnMessage != nil {
		s.OnMessage(Message{m, k, x.tag})
	}
	return m
}
