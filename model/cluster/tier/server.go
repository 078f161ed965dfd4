package tier

import (
	"fmt"

	"farflash/model/cluster/internal/queue"
	"farflash/model/cluster/reserve"
	"farflash/numeric/units"
	"farflash/sim"
)

// Server is a server and the initiator that writes to it. It belongs to the goroutine that runs its engine.
type Server struct {
	cfg  Config
	eng  *sim.Engine
	self sim.Component
	here sim.Target

	devices  []device // the SSD, then the HDDs
	commands []command
	control  sim.Time // transmission time of a command
	transfer sim.Time // transmission time of a chunk

	used    units.Bytes        // bytes on the SSD
	waiting queue.Queue[int32] // writes that the SSD has not accepted
	cycle   cycle

	Counters Counters
	// OnDone is called with each completed write.
	OnDone sim.Probe[*Done]
	// OnCycle is called at the start of each cycle.
	OnCycle sim.Probe[*Cycle]
}

// Counters are totals since the start.
type Counters struct {
	Begun         uint64 // writes
	FastDone      uint64 // writes completed by the SSD
	SlowDone      uint64 // writes completed by HDDs
	Taken         uint64 // chunks accepted by the SSD
	Moved         uint64 // of Taken: chunks that have left it
	Arrived       uint64 // of Moved: chunks that HDDs have written
	Held          uint64 // writes that waited for the SSD to accept them
	Cycles        uint64
	HighReached   uint64 // times that the SSD reached its high watermark
	MostWaiting   int
	ControlBytes  uint64
	TransferBytes uint64 // of writes and of chunks moved
}

// Done is a completed write.
type Done struct {
	Device      int32 // 0 is the SSD
	Begun, Done sim.Time
}

// device is an SSD or an HDD and its link.
type device struct {
	chunk  sim.Time // time to write a chunk
	moved  sim.Time // time to write a chunk that comes from the SSD
	done   sim.Time // when the last write completes
	busy   sim.Time // total time of all writes
	free   sim.Time // when its link can take the next write
	bridge sim.Time // when the link from the SSD can take the next chunk
	awake  bool     // an evSend is scheduled
	window int
	spare  []int32 // idle commands
}

// command is a write.
type command struct {
	device int32
	begun  sim.Time
}

// Kinds of events. The argument is a device or a command.
const (
	evSend  uint16 = iota // the initiator's link to a device is free
	evWrite               // a write has arrived
	evAck                 // the acknowledgement of a write has arrived
	evMove                // a chunk from the SSD has arrived at an HDD
	evMoved               // the HDD's acknowledgement of a chunk has arrived
	evCycle               // the SSD's link to an HDD is free
)

// New returns a server that is idle until Start.
func New(cfg Config, eng *sim.Engine) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, eng: eng, self: eng.NewComponent()}
	s.here = eng.AddHandler(s)
	s.control, s.transfer = cfg.Link.TimeFor(cfg.Control), cfg.Link.TimeFor(cfg.Chunk)
	s.devices = make([]device, 1+cfg.HDDs)
	for i := range s.devices {
		d := &s.devices[i]
		d.window, d.chunk = cfg.HDD.Window, cfg.HDD.Rate.TimeFor(cfg.Chunk)
		d.moved = d.chunk / sim.Time(cfg.HDD.Sequential)
		if i == 0 {
			d.window, d.chunk = cfg.SSD.Window, cfg.SSD.Rate.TimeFor(cfg.Chunk)
		}
		for range d.window {
			d.spare = append(d.spare, int32(len(s.commands)))
			s.commands = append(s.commands, command{device: int32(i)})
		}
	}
	s.cycle.next(s)
	return s, nil
}

// Start has the initiator send its first writes.
func (s *Server) Start() {
	for i := range s.devices {
		s.wake(int32(i))
	}
}

// Handle implements sim.Handler.
func (s *Server) Handle(e sim.Event) {
	i := int32(e.Arg)
	switch e.Kind {
	case evSend:
		s.devices[i].awake = false
		s.send(i)
	case evWrite:
		s.arrive(i)
	case evAck:
		s.ack(i)
	case evMove:
		d := &s.devices[i]
		at := s.write(d, d.moved)
		s.after(at-s.eng.Now()+s.control+s.cfg.Trip, evMoved, i)
	case evMoved:
		s.Counters.Arrived++
		s.cycle.moving--
		s.step()
	case evCycle:
		s.cycle.awake = false
		s.step()
	}
}

func (s *Server) after(d sim.Time, kind uint16, arg int32) {
	s.eng.Schedule(s.self, s.here, s.eng.Now()+d, kind, uint32(arg))
}

// wake schedules a send on the initiator's link to a device for when the link is free.
func (s *Server) wake(i int32) {
	d := &s.devices[i]
	if d.awake || len(d.spare) == 0 {
		return
	}
	d.awake = true
	s.after(max(d.free-s.eng.Now(), 0), evSend, i)
}

// send sends a write: the command and, directly behind it, the chunk.
func (s *Server) send(i int32) {
	d := &s.devices[i]
	k := d.spare[len(d.spare)-1]
	d.spare = d.spare[:len(d.spare)-1]
	s.commands[k].begun = s.eng.Now()
	s.Counters.Begun++
	s.Counters.ControlBytes += uint64(s.cfg.Control)
	s.Counters.TransferBytes += uint64(s.cfg.Chunk)
	d.free = s.eng.Now() + s.control + s.transfer
	s.after(s.control+s.transfer+s.cfg.Trip, evWrite, k)
	s.wake(i)
}

// arrive handles a write that has arrived at its device in full.
func (s *Server) arrive(k int32) {
	i := s.commands[k].device
	if i > 0 {
		s.take(k)
		return
	}
	s.waiting.Push(k)
	s.Counters.MostWaiting = max(s.Counters.MostWaiting, s.waiting.Len())
	held := s.waiting.Len()
	s.step()
	if s.waiting.Len() >= held {
		s.Counters.Held++
	}
}

// take has a device write a chunk and acknowledge it.
func (s *Server) take(k int32) {
	d := &s.devices[s.commands[k].device]
	at := s.write(d, d.chunk) - s.eng.Now()
	s.after(at+s.control+s.cfg.Trip, evAck, k)
}

// write queues a write and returns when it is acknowledged. The delay after its completion grows with the queue.
func (s *Server) write(d *device, takes sim.Time) sim.Time {
	now := s.eng.Now()
	d.done = max(d.done, now) + takes
	d.busy += takes
	waiting := int((d.done - now + d.chunk/2) / d.chunk)
	return d.done + sim.Time(reserve.ExtraLatency(waiting))*d.chunk
}

// ack handles an acknowledgement at the initiator, which sends the next write.
func (s *Server) ack(k int32) {
	x := &s.commands[k]
	s.Counters.ControlBytes += uint64(s.cfg.Control)
	if x.device == 0 {
		s.Counters.FastDone++
	} else {
		s.Counters.SlowDone++
	}
	if s.OnDone != nil {
		s.OnDone(&Done{Device: x.device, Begun: x.begun, Done: s.eng.Now()})
	}
	d := &s.devices[x.device]
	d.spare = append(d.spare, k)
	s.wake(x.device)
}

// Used returns the number of bytes on the SSD.
func (s *Server) Used() units.Bytes { return s.used }

// Waiting returns the number of writes that the SSD has not accepted yet.
func (s *Server) Waiting() int { return s.waiting.Len() }

// Busy returns how long each device has been busy up to at, the SSD first.
func (s *Server) Busy(at sim.Time) []sim.Time {
	list := make([]sim.Time, len(s.devices))
	for i := range s.devices {
		d := &s.devices[i]
		list[i] = d.busy - max(d.done-at, 0)
	}
	return list
}

// Floor returns the time of a lone write: the command, the chunk, the device and the acknowledgement.
func (s *Server) Floor(device int) sim.Time {
	return 2*(s.control+s.cfg.Trip) + s.transfer + s.devices[device].chunk
}

// Bound returns the maximum sustained throughput of all devices in bytes per second. Everything that the SSD accepts
// must move, and a chunk from the SSD takes an HDD less time than one from the initiator.
func (s *Server) Bound() float64 {
	fast, slow := float64(s.cfg.SSD.Rate), float64(float64(s.cfg.HDDs)*float64(s.cfg.HDD.Rate))
	fast = min(fast, slow*float64(s.cfg.HDD.Sequential))
	if s.cfg.HDD.Window == 0 {
		return fast
	}
	return fast + slow - float64(fast/float64(s.cfg.HDD.Sequential))
}

// Check verifies the conservation laws and returns the first violation.
func (s *Server) Check() error {
	k := &s.Counters
	out := 0
	for i := range s.devices {
		out += s.devices[i].window - len(s.devices[i].spare)
	}
	switch {
	case k.Begun != k.FastDone+k.SlowDone+uint64(out):
		return fmt.Errorf("%d writes begun, but %d and %d done and %d under way", k.Begun, k.FastDone, k.SlowDone, out)
	case uint64(s.used) != (k.Taken-k.Moved)*uint64(s.cfg.Chunk):
		return fmt.Errorf("the SSD holds %v, but has taken %d chunks and let %d go", s.used, k.Taken, k.Moved)
	case s.used < 0 || s.used > s.cfg.SSD.Capacity:
		return fmt.Errorf("the SSD holds %v of %v", s.used, s.cfg.SSD.Capacity)
	case k.Moved != k.Arrived+uint64(s.cycle.moving):
		return fmt.Errorf("%d chunks have left the SSD, but %d have arrived and %d are in flight", k.Moved, k.Arrived,
			s.cycle.moving)
	}
	return nil
}
