package blocktest

import (
	"fmt"

	"farflash/block"
	"farflash/internal/slab"
	"farflash/sim"
)

// Config describes a Device.
type Config struct {
	Capacity []int64             // bytes, by namespace; multiples of 512
	Latency  [block.Ops]sim.Time // time from the fetch of a command until its completion reaches the host
	Waited   [block.Ops]sim.Time // reported as Completion.Waited
	// Refuse returns the status of a request that is well formed and in range; nil: all succeed. A failed request takes
	// as long as a successful one.
	Refuse func(block.Request) block.Status
	// Torn returns how much of a write reaches the medium. If it is less than all, it is rounded down to whole sectors
	// and the request fails with WriteFault after that part is written. Nil: everything is written.
	Torn func(block.Request) int64
	// Content keeps written data in memory; otherwise buffers are ignored.
	Content bool
}

// DefaultConfig returns one namespace of 1 GiB with the latencies of a fast drive.
func DefaultConfig() Config {
	const us = 1_000_000
	return Config{
		Capacity: []int64{1 << 30},
		Latency: [block.Ops]sim.Time{block.Read: 80 * us, block.Write: 20 * us, block.Trim: 5 * us,
			block.Flush: 10 * us},
	}
}

// Device is a block.Device with a fixed latency for each kind of request. It keeps written data if configured to; reads
// and writes take effect when they complete. A queue has one usable entry less than its depth, as NVMe's rings do; an
// entry is released with its request's completion. Commands are fetched in order as soon as the queue's in-flight limit
// allows; queues do not compete.
type Device struct {
	cfg    Config
	eng    *sim.Engine
	self   sim.Component
	target sim.Target
	sink   Sink
	queues []queue
	live   slab.Slab[command]
	inside int // commands
	closed bool
	stored map[sector][]byte // written sectors
}

// sector identifies 512 bytes of a namespace.
type sector struct {
	namespace uint8
	number    int64
}

type queue struct {
	entries  int // in use, of depth-1
	depth    int
	inFlight int
	limit    int   // 0: none
	head     int32 // list of the commands not yet fetched, in order
	tail     int32
}

// command is one request from Submit to its completion. Commands are identified by index; 0 is none.
type command struct {
	done   block.Completion
	req    block.Request
	status block.Status
	next   int32
}

// Kinds of events.
const (
	evSubmitted uint16 = iota // on queue Arg
	evDone                    // command Arg
	evRefused                 // command Arg, which names no open queue
)

// New returns a device on an engine. Completions go to sink.
func New(cfg Config, eng *sim.Engine, sink Sink) (*Device, error) {
	if len(cfg.Capacity) == 0 {
		return nil, fmt.Errorf("blocktest: no namespaces")
	}
	for i, c := range cfg.Capacity {
		if c <= 0 || c%512 != 0 {
			return nil, fmt.Errorf("blocktest: namespace %d of %d bytes; use a multiple of 512", i, c)
		}
	}
	for op, l := range cfg.Latency {
		if l < 0 {
			return nil, fmt.Errorf("blocktest: latency of %v is %v; it cannot be negative", block.Op(op), l)
		}
	}
	d := &Device{cfg: cfg, eng: eng, self: eng.NewComponent(), sink: sink}
	d.target = eng.AddHandler(d)
	return d, nil
}

// Open implements block.Device.
func (d *Device) Open(c block.QueueConfig) (block.QueueID, error) {
	if d.closed {
		return 0, fmt.Errorf("blocktest: the device is closed")
	}
	if c.Depth < 2 {
		return 0, fmt.Errorf("blocktest: submission queue of %d entries; use at least 2", c.Depth)
	}
	if c.Class >= block.Classes {
		return 0, fmt.Errorf("blocktest: unknown priority class %d", c.Class)
	}
	d.queues = append(d.queues, queue{depth: c.Depth, limit: c.InFlight})
	return block.QueueID(len(d.queues) - 1), nil
}

// Tune implements block.Tuner. Weights have no effect here. The queue must be open.
func (d *Device) Tune(q block.QueueID, _, inFlight int) {
	if uint(q) >= uint(len(d.queues)) {
		panic(fmt.Sprintf("blocktest: Tune of queue %d, which Open has not returned", q))
	}
	d.queues[q].limit = inFlight
	d.eng.Schedule(d.self, d.target, d.eng.Now(), evSubmitted, uint32(q))
}

// Capacity implements block.Device.
func (d *Device) Capacity(namespace int) int64 {
	if uint(namespace) >= uint(len(d.cfg.Capacity)) {
		return 0
	}
	return d.cfg.Capacity[namespace]
}

// Close implements block.Device.
func (d *Device) Close() error {
	if d.inside > 0 {
		return fmt.Errorf("blocktest: %d requests are outstanding", d.inside)
	}
	d.closed = true
	return nil
}

// Submit implements block.Device. A request that names no open queue completes as Invalid.
func (d *Device) Submit(q block.QueueID, r block.Request) bool {
	if uint(q) >= uint(len(d.queues)) {
		return d.refuse(q, r)
	}
	p := &d.queues[q]
	if p.entries == p.depth-1 || d.closed {
		return false
	}
	p.entries++
	d.inside++
	n := d.live.Take()
	now := d.eng.Now()
	*d.live.At(n) = command{
		done:   block.Completion{Tag: r.Tag, Submitted: now, Length: r.Length, Queue: q, Op: r.Op},
		req:    r,
		status: d.check(r),
	}
	if p.head == 0 {
		p.head = n
	} else {
		d.live.At(p.tail).next = n
	}
	p.tail = n
	d.eng.Schedule(d.self, d.target, now, evSubmitted, uint32(q))
	return true
}

// refuse completes a request that names no open queue.
func (d *Device) refuse(q block.QueueID, r block.Request) bool {
	if d.closed {
		return false
	}
	d.inside++
	n := d.live.Take()
	now := d.eng.Now()
	*d.live.At(n) = command{done: block.Completion{Tag: r.Tag, Submitted: now, Fetched: now, Finished: now,
		Length: r.Length, Queue: q, Op: r.Op, Status: block.Invalid}}
	d.eng.Schedule(d.self, d.target, now, evRefused, uint32(n))
	return true
}

func (d *Device) check(r block.Request) block.Status {
	switch {
	case r.Op >= block.Ops:
		return block.Invalid
	case int(r.Namespace) >= len(d.cfg.Capacity):
		return block.Invalid
	case r.Op == block.Flush:
	case r.Append || r.Op.OfZone(): // it has no zones
		return block.Invalid
	case r.Offset < 0 || r.Length <= 0 || r.Offset%512 != 0 || r.Length%512 != 0:
		return block.Invalid
	case r.Offset > d.cfg.Capacity[r.Namespace]-r.Length:
		return block.OutOfRange
	}
	if d.cfg.Content && r.Op <= block.Write && !sized(&r) {
		return block.Invalid
	}
	if d.cfg.Refuse != nil {
		return d.cfg.Refuse(r)
	}
	return block.OK
}

// Handle implements sim.Handler.
func (d *Device) Handle(ev sim.Event) {
	if ev.Kind == evSubmitted {
		d.fetch(&d.queues[ev.Arg])
		return
	}
	n := int32(ev.Arg)
	x := d.live.At(n)
	done := x.done
	if ev.Kind == evRefused {
		d.live.Give(n)
		d.inside--
		d.sink(done)
		return
	}
	done.Status = x.status
	done.Finished = ev.At
	if done.Op < block.Ops {
		done.Waited = d.cfg.Waited[done.Op]
	}
	if done.Status == block.OK {
		took := x.req.Length
		if d.cfg.Torn != nil && done.Op == block.Write {
			if took = d.cfg.Torn(x.req) / 512 * 512; took < x.req.Length {
				done.Status = block.WriteFault
			}
		}
		if d.cfg.Content {
			d.carryOut(&x.req, took)
		}
	}
	x.req.Data = nil
	d.live.Give(n)
	p := &d.queues[done.Queue]
	p.entries--
	p.inFlight--
	d.inside--
	d.fetch(p)
	d.sink(done)
}

// fetch starts as many commands as the queue's limit allows.
func (d *Device) fetch(p *queue) {
	for p.head != 0 && (p.limit <= 0 || p.inFlight < p.limit) {
		n := p.head
		x := d.live.At(n)
		p.head = x.next
		x.next = 0
		p.inFlight++
		x.done.Fetched = d.eng.Now()
		took := sim.Time(0)
		if x.done.Op < block.Ops {
			took = d.cfg.Latency[x.done.Op]
		}
		d.eng.Schedule(d.self, d.target, d.eng.Now()+took, evDone, uint32(n))
	}
}

// sized reports whether a request's buffers total its length.
func sized(r *block.Request) bool {
	n := int64(0)
	for _, b := range r.Data {
		n += int64(len(b))
	}
	return n == r.Length
}

// carryOut applies a request to the content, up to the given length.
func (d *Device) carryOut(r *block.Request, length int64) {
	if d.stored == nil {
		d.stored = map[sector][]byte{}
	}
	at := sector{r.Namespace, r.Offset / 512}
	if r.Op == block.Trim {
		for n := range r.Length / 512 {
			delete(d.stored, sector{at.namespace, at.number + n})
		}
		return
	}
	done := int64(0)
	for _, b := range r.Data {
		for len(b) > 0 && done < length {
			// A buffer can end within a sector.
			s, within := sector{at.namespace, at.number + done/512}, done%512
			n := min(512-within, int64(len(b)))
			switch have := d.stored[s]; {
			case r.Op == block.Write && have == nil:
				d.stored[s] = make([]byte, 512)
				fallthrough
			case r.Op == block.Write:
				copy(d.stored[s][within:], b[:n])
			case have == nil:
				clear(b[:n])
			default:
				copy(b[:n], have[within:])
			}
			b = b[n:]
			done += n
		}
	}
}
