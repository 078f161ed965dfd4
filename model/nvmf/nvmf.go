// Package nvmf models NVMe over Fabrics on RDMA and on TCP: initiators that send commands to targets, and targets that
// submit them to their drives and return the results.
//
// The main types are Config, which describes both sides in plain values, and System, which holds all initiators and
// targets of a simulation. A command's life: the initiator (initiator.go) waits for a place in a queue pair and sends a
// command capsule; the target (target.go) puts the command into a drive's submission queue; the completion, preceded by
// a read's data, leaves through the target's transmit queue (txq.go) once there is space in it. A write's data is in
// the capsule if it is small; otherwise the target fetches it with an RDMA Read first. command.go accounts for the time
// of each stage. The stages add up to the command's latency to the picosecond.
//
// With Protocol NVMeTCP (pdu.go) a queue pair is a TCP connection, a stream of bytes each way: a target requests a
// large write's data with an R2T, and the initiator sends it in H2CData behind all it has sent before.
//
// With Protocol Flows there are no capsules: a write is one message to the target and a read one message back, as in
// SNIS (Jia et al., IPCCC 2022) and SRC (Jia et al., 2023).
//
// It follows the NVM Express over Fabrics specification 1.1, sections 2 and 7.3 (RDMA transport), with the sizes of its
// capsules, and the NVM Express TCP Transport specification 1.0. It sees any drive as a block.Device, and the network
// as a Fabric.
//
// An initiator that waits too long for a target ends its connections to it, connects again and repeats its commands, as
// Linux' host does (host.go, lost.go, connect.go).
//
// Not modelled: the first connecting, discovery's own messages, keyed scatter-gather lists, and the content of the
// data. The heads of submission queues, which completions carry, limit nothing that QueueDepth does not: each frees one
// entry. Queue pairs share no receives unless Config.Receives says so: Linux' do not by default, and SPDK's 4096 a core
// bind with 33 full queue pairs of 128 and more. A TCP target has a buffer for each command of a queue, so its window
// never closes.
package nvmf

import (
	"errors"
	"fmt"

	"farflash/block"
	"farflash/internal/slab"
	"farflash/model/fabric"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/sim"
)

// Protocol is the transport of requests.
type Protocol uint8

const (
	// NVMeoF sends capsules over RDMA.
	NVMeoF Protocol = iota
	// Flows sends one message with the data alone for each request.
	Flows
	// NVMeTCP sends capsules over TCP.
	NVMeTCP
)

var protocolNames = units.Names[Protocol]{"nvmeof", "flows", "nvme-tcp"}

// Capsules reports whether commands travel in capsules, on queue pairs of limited depth.
func (p Protocol) Capsules() bool { return p != Flows }

func (p Protocol) String() string { return protocolNames.Name(p) }

func (p Protocol) MarshalText() ([]byte, error) { return protocolNames.Marshal(p) }

func (p *Protocol) UnmarshalText(text []byte) error { return protocolNames.Unmarshal(text, p) }

// Config describes initiators and targets.
type Config struct {
	// QueuePairs is the number of I/O queue pairs from an initiator to each target.
	QueuePairs int
	// QueueDepth is a queue pair's largest number of outstanding commands. Others wait at the initiator.
	QueueDepth int
	// InCapsule is the most write data that a capsule carries. The target fetches larger data.
	InCapsule   units.Bytes
	MaxTransfer units.Bytes // MaxTransfer is the largest command; larger requests are split.
	// TXQ is the size of a target's transmit queue, which holds data until they are acknowledged. A completion that
	// finds no space keeps its place in the drive's queues.
	TXQ units.Bytes
	// WriteBuffers is a target's memory for write data that it fetches, until the response is acknowledged. Writes wait
	// for it in order; one larger than all of it is served alone.
	WriteBuffers units.Bytes
	Buffers      Buffers  // Buffers is memory for reads as well, instead of write_buffers.
	Reads        Reads    // Reads limits the RDMA Reads of a queue pair. It does not apply to TCP.
	Receives     Receives // Receives are those of a target's capsules. They do not apply to TCP.
	TCP          TCP      // TCP has the options that hosts negotiate when they connect by TCP.
	// DriveDepth is the largest number of commands that a target's driver gives a drive at once. Others wait in the
	// target.
	DriveDepth int
	Class      uint8    // Class is the traffic class of all messages.
	Initiator  Software // Initiator is the initiators' software.
	Target     Software // Target is the targets' software.
	Batch      Batch    // Batch is how initiators send commands of a queue pair together.
	Host       Host     // Host is what initiators do about a target that does not answer.
	// KeepAliveTimer is how a target finds that an initiator is gone, and frees what its commands hold.
	KeepAliveTimer KeepAliveTimer
	// Multipath is the paths from an initiator to a target.
	Multipath Multipath
	Limits    Limits // Limits are those of tenants at targets.
	Seed      uint64 // Seed is that of random software times.
}

// Reads are the two limits on a queue pair's outstanding RDMA Reads. The smaller one applies (InfiniBand's initiator
// depth and responder resources).
type Reads struct {
	// Target is the most that a target's NIC has outstanding. Further writes wait in the target, without delaying other
	// commands.
	Target int
	// Initiator is the most that an initiator's NIC serves at once.
	Initiator int
}

// limit returns the largest number that may be outstanding.
func (r *Reads) limit() int32 { return int32(min(r.Target, r.Initiator)) }

// DefaultConfig returns the Linux target's and SPDK's protocol with SPDK's software.
func DefaultConfig() Config {
	// Queue pairs of 128 entries, 4 KiB in the capsule, transfers up to 1 MiB: Linux 6 (drivers/nvme/target/rdma.c,
	// include/linux/nvme-rdma.h: NVME_RDMA_DEFAULT_QUEUE_SIZE, NVMET_RDMA_DEFAULT_INLINE_DATA_SIZE,
	// NVMET_RDMA_MAX_MDTS). Transmit queue and write buffers: SPDK's 4095 shared buffers of 8 KiB, here for each
	// direction. RDMA Reads: the 16 per queue pair of NVIDIA's NICs (mlx5's max_qp_rd_atom), which Linux' and SPDK's
	// initiators offer and their targets accept (nvme-rdma's and SPDK's responder_resources; nvmet-rdma's
	// initiator_depth; SPDK's max_read_depth, beyond which its writes wait in software, as they do here).
	return Config{
		QueuePairs: 1, QueueDepth: 128, InCapsule: 4 * units.KiB, MaxTransfer: units.MiB, TXQ: 4095 * 8 * units.KiB,
		WriteBuffers: 4095 * 8 * units.KiB, Buffers: Buffers{Size: 8 * units.KiB},
		Reads: Reads{Target: 16, Initiator: 16}, Receives: defaultReceives(), TCP: defaultTCP(),
		DriveDepth: 1024, Class: 3, Initiator: SPDKRDMA.Initiator(), Target: SPDKRDMA.Target(),
		Batch: SPDKRDMA.Batch(), Host: defaultHost(),
	}
}

// Validate returns an error for each invalid value, with its key.
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
	bad.Within("buffers", c.Buffers.validate())
	bad.Within("receives", c.Receives.validate())
	bad.Within("tcp", c.TCP.validate())
	bad.Within("initiator", c.Initiator.validate())
	bad.Within("target", c.Target.validate())
	bad.Within("batch", c.Batch.validate())
	bad.Within("host", c.Host.validate())
	bad.Within("multipath", c.Multipath.validate())
	bad.Hold(c.KeepAliveTimer == NoTimer || c.Host.KeepAlive > 0, "keep_alive_timer",
		"%v takes its time from initiators, which state none; use host.keep_alive: 5s, or none", c.KeepAliveTimer)
	bad.Within("limits", c.Limits.validate())
	return bad.Err()
}

// Sizes of RDMA's messages without data, in bytes: an NVMe command, an NVMe completion (NVMe over Fabrics 1.1, section
// 2), and an RDMA Read's request, which is only its header (the InfiniBand specification's RETH).
const (
	capsuleSize  units.Bytes = 64
	responseSize units.Bytes = 16
	pullSize     units.Bytes = 16
)

// Sink receives completed commands. It may submit.
type Sink interface {
	// Ended reports a completed command. The argument is valid until the call returns.
	Ended(*Done)
}

// System is a simulation's initiators and targets, for its engine's goroutine.
type System struct {
	cfg      Config
	protocol Protocol
	own      bool // connections have their own queue pairs
	eng      *sim.Engine
	self     sim.Component
	target   sim.Target
	net      Fabric
	reader   Reader  // nil if connections have no queue pairs of their own, or with TCP
	chooser  Chooser // nil if connections have their own queue pairs
	pooler   Pooler  // nil unless queue pairs share receives
	sink     Sink
	err      error

	initiators []machine
	targets    []transmitter
	cores      []core
	initiating side
	serving    side
	draws      rng.Stream
	drives     []drive
	conns      []connection // connections, by initiator, target and number
	turns      []uint16     // next connection, by controller
	ctrls      []controller // by initiator, target and path
	paths      int32        // from an initiator to a target
	heads      []head       // by initiator and target; nil with one path whose state does not change
	routes     []route      // by controller; likewise
	access     []PathState  // by target and path; likewise
	current    []int8       // the path chosen last, by initiator and drive; nil unless paths take turns
	chosen     uint64       // commands sent along paths
	vigils     []vigil      // by controller; nil without timers of targets
	ghosts     []remains
	changes    int              // of paths' states that are to come
	owners     []int32          // by queue pair: its controller, plus 1
	abandoner  Abandoner        // nil: initiators wait for ever
	lost       [Stages]sim.Time // time of attempts that ended with their connection
	freed      freed
	gates      []gate // by drive, or initiator and target; nil without limits
	commands   slab.Slab[command]
	posted     []posted // by message
	pace       []pace   // by queue pair
	steers     bool     // some target has a controller
	demands    []ratecontrol.Demanded

	done     Done
	Counters Counters

	// OnMessage is called for each posted message, OnVisit for each command that a drive has completed, OnLevel for
	// each change of the fill level of a drive's queue or a transmit queue.
	OnMessage sim.Probe[Message]
	OnVisit   sim.Probe[Visit]
	OnLevel   sim.Probe[Level]
	// OnSteered is called for each input to a controller and each change that it makes.
	OnSteered sim.Probe[Steered]
	// OnDropped is called for each message that ends with its connection, unless it was acknowledged.
	OnDropped sim.Probe[int32]
	// OnRefused is called for each command that a target refuses because of its path's state.
	OnRefused sim.Probe[int32]
}

// Counters are totals over all commands.
type Counters struct {
	Submitted, Ended, Failed uint64
	// The Held counters count commands that had to wait: for a place in a queue pair, for a place in a drive's queue,
	// and for space in a transmit queue.
	HeldAtInitiator, HeldAtTarget, HeldAtTXQ uint64
	// The Most counters are the greatest lengths of these queues.
	MostAtInitiator, MostAtTarget, MostAtTXQ int32
	// MostTXQ is the highest fill level of a transmit queue, MostBuffers that of a target's memory.
	MostTXQ, MostBuffers units.Bytes
	// HeldForBuffers counts the commands that waited in a target for memory, HeldForReads the writes that waited for
	// one of the queue pair's RDMA Reads.
	HeldForBuffers, HeldForReads uint64
	HeldByLimits                 uint64 // HeldByLimits counts commands that waited for their tenant's limits.
	HeldForPath                  uint64 // HeldForPath counts commands that no path could take.
	// Pulls counts the RDMA Reads requested, MostReads is the most outstanding at once on a queue pair.
	Pulls     uint64
	MostReads int32
	// MostReceives is the most shared receives taken at once of one core.
	MostReceives int32
	Time         [Stages]sim.Time // Time is the total time of completed commands in each stage.
	Latency      sim.Time         // Latency is the sum of their latencies.
	Failures                      // Failures are of hosts that lost their targets.
}

// connection is a queue pair of an initiator to a target.
type connection struct {
	out, back   fabric.QP
	answers     fabric.QP // the stream on which the initiator answers RDMA Reads
	open        bool
	outstanding int32
	reading     int32 // outstanding RDMA Reads
	waiting     list
	unread      list      // writes that wait for one of the RDMA Reads
	batch       list      // commands that are sent together
	timer       sim.Timer // of the batch
	timed       bool      // the timer exists
	sending     bool      // a core hands the batch to the network
	core        int32     // index of its core at the initiator and at the target
	targetCore  int32
	pool        int32     // of its capsules' receives, plus 1; 0 if they are its own
	watch       sim.Timer // of the commands' time limit
	watched     bool      // the timer exists
	watching    bool      // and runs
}

// list is a queue of commands.
type list struct{ head, tail, n int32 }

// posted is a message's purpose.
type posted struct {
	command int32 // 0: not one of the system's messages; negative: a controller's, less 1
	bytes   int32 // bytes that it occupies in the transmit queue
	held    int32 // bytes that it holds of the target's memory
	target  int32
	kind    Kind
	read    bool     // it answers a read
	ended   sim.Time // when the drive completed that read
}

// The kinds of the system's events. The argument is a command unless noted.
const (
	evSent           uint16 = iota // the initiator's software has prepared the command
	evReceived                     // the target's software has received the command
	evFinished                     // the target's software has processed the drive's completion
	evEnded                        // the initiator's software has processed the response
	evSteer                        // a controller's timer; the argument is its target
	evDemand                       // a given demand is due; the argument is its number
	evSendsDue                     // reads held by their pace may be sent; the argument is their target
	evWritesDue                    // data of writes held by their pace may be requested; likewise
	evAsked                        // TCP: the initiator's software has prepared a write's data
	evFilled                       // TCP: the target's software has received a write's data
	evInterrupt                    // an interrupt is due; the argument is its core
	evBatchDue                     // a batch is complete or has waited long enough; the argument is its connection
	evBatchSent                    // the initiator's software has prepared a batch; likewise
	evOverdue                      // a command may have taken too long; the argument is its connection
	evReconnect                    // a controller is to be connected again; the argument is its number
	evLate                         // what a controller was asked for has taken too long; likewise
	evKeepAlive                    // a controller is due to be asked whether it is there; likewise
	evFailFast                     // commands wait for a controller no longer; likewise
	evAskSent                      // the initiator's software has prepared a controller's message; see mark
	evAskTaken                     // the target's software has received it; likewise
	evReplyTaken                   // the initiator's software has received the answer; likewise
	evFailed                       // the initiator's software has failed the command
	evSlice                        // a tenant's limits let more commands pass; the argument is its gate
	evExpired                      // a target's timer; the argument is its controller
	evRemainsExpired               // a target's timer; the argument is the number of the remains
	evClosing                      // an initiator's closing message has arrived; likewise
	evClosed                       // a target's has; the argument is its controller
	evANA                          // a path's state changes; the argument is the change's number
	evKick                         // commands may find a path; the argument is their initiator and target
	evLogLate                      // a controller's log has not come in time; the argument is its number
	evEventSent                    // the target's software has prepared a controller's event; see mark
	evEventTaken                   // the initiator's software has received it; likewise
	evLogAsked                     // the initiator's software has prepared the request for the log; likewise
	evLogRead                      // the target's software has received it; likewise
	evLogTaken                     // the initiator's software has received the log; likewise
)

// New returns a system without machines. own gives each connection queue pairs of its own, which must be persistent.
func New(cfg Config, protocol Protocol, own bool, eng *sim.Engine) (*System, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if eng == nil || protocol > NVMeTCP {
		return nil, fmt.Errorf("nvmf: the engine is nil, or protocol %d does not exist", protocol)
	}
	if shared := cfg.Receives.Shared > 0; shared && !(own && protocol == NVMeoF) ||
		cfg.Buffers.Count > 0 && !protocol.Capsules() {
		return nil, fmt.Errorf("nvmf: %v shares no receives without queue pairs of its own, and flows need no buffers",
			protocol)
	}
	s := &System{cfg: cfg, protocol: protocol, own: own, eng: eng, self: eng.NewComponent(),
		draws: rng.NewStream(cfg.Seed, "nvmf.software")}
	s.target = eng.AddHandler(s)
	return s, nil
}

// Connect sets the network, whose sink is the system, and the sink of commands. Without queue pairs of their own it
// must be a Chooser. Err reports invalid arguments.
func (s *System) Connect(net Fabric, sink Sink) {
	if net == nil || sink == nil || s.net != nil {
		s.fail(errors.New("nvmf: the network or the sink is nil, or the system is connected already"))
		return
	}
	s.net, s.sink = net, sink
	s.planChanges()
	var ok bool
	if s.own && s.protocol.Capsules() {
		s.abandoner, _ = net.(Abandoner)
	}
	if s.protocol == NVMeTCP && !s.own {
		s.fail(errors.New("TCP connections persist, and the network's queue pairs do not"))
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
		s.fail(errors.New("the network does not choose queue pairs"))
	}
}

// AddInitiator adds an initiator at a node, or at one for each of its network cards, before the first command, and
// returns its number; a later one is -1, and Err reports it.
func (s *System) AddInitiator(node int32, more ...int32) int32 {
	if s.late() {
		return -1
	}
	s.initiators = append(s.initiators, machine{node: node, more: more})
	return int32(len(s.initiators) - 1)
}

// AddTarget adds a target, as AddInitiator does.
func (s *System) AddTarget(node int32, more ...int32) int32 {
	if s.late() {
		return -1
	}
	s.targets = append(s.targets, transmitter{machine: machine{node: node, more: more}})
	return int32(len(s.targets) - 1)
}

// Drives returns the number of drives.
func (s *System) Drives() int { return len(s.drives) }

// Initiators returns the number of initiators.
func (s *System) Initiators() int { return len(s.initiators) }

// Targets returns the number of targets.
func (s *System) Targets() int { return len(s.targets) }

// InitiatorNode returns the node of an initiator, or of its first network card.
func (s *System) InitiatorNode(i int32) int32 {
	exists("initiator", i, len(s.initiators))
	return s.initiators[i].node
}

// TargetNode returns a target's node, or that of its first network card. The target must exist.
func (s *System) TargetNode(i int32) int32 {
	exists("target", i, len(s.targets))
	return s.targets[i].node
}

// Device returns a drive's device. The drive must exist.
func (s *System) Device(drive int32) block.Device {
	exists("drive", drive, len(s.drives))
	return s.drives[drive].dev
}

// DrivesOf returns a target's drives. The target must exist.
func (s *System) DrivesOf(target int32) []int32 {
	exists("target", target, len(s.targets))
	return s.targets[target].drives
}

// Err returns the error that stopped the system, if any.
func (s *System) Err() error { return s.err }

func (s *System) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.eng.Stop()
}

func (s *System) Handle(e sim.Event) {
	c := int32(e.Arg)
	switch e.Kind {
	case evSent:
		if s.orphaned(c) {
			return
		}
		if s.cfg.Batch.Commands > 1 {
			s.gather(c)
		} else {
			s.sendCapsule(c)
		}
	case evAsked:
		if !s.orphaned(c) {
			s.supply(c)
		}
	case evFilled:
		s.drive(c)
	case evInterrupt:
		s.interrupt(c)
	case evBatchDue:
		s.sendBatch(c)
	case evBatchSent:
		s.batchSent(c)
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
	default:
		s.handleLoss(e)
	}
}

// Delivered implements fabric.Sink: a message has fully arrived.
func (s *System) Delivered(m int32) {
	if uint(m) >= uint(len(s.posted)) || s.posted[m].command == 0 {
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
	case Admin:
		s.askArrived(-c - 1)
	case AdminReply:
		s.replyArrived(-c - 1)
	case Closing, Closed:
		s.closingArrived(-c-1, p.kind)
	case Event, LogRequest, LogReply:
		s.logArrived(-c-1, p.kind)
	default:
		s.answerArrived(c, p.kind)
	}
}

// Acked implements fabric.Sink.
func (s *System) Acked(m int32) {
	if !s.Carries(m) {
		return
	}
	p := s.posted[m]
	if p.command > 0 {
		if x := s.commands.At(p.command); x.first == m {
			x.begun, x.first = s.net.Begun(m), -1
		}
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

// Carries reports whether a message belongs to the system.
func (s *System) Carries(m int32) bool {
	return uint(m) < uint(len(s.posted)) && s.posted[m].command != 0
}

// post sends a message for a command and returns its number. request is the number of the request that an answer to an
// RDMA Read belongs to; -1 for other messages.
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
	case k == Pulled && s.reader != nil && request >= 0:
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
