package raid

import (
	"errors"
	"fmt"

	"farflash/block"
	"farflash/internal/slab"
	"farflash/numeric/units"
)

// Device is a volume as a block.Device on top of its members. Each of its queues corresponds to one queue of the same
// configuration on every member; commands that find a member's queue full wait here. Requests complete in the members'
// time and on the goroutine that reports the members' completions, so all members must share one clock. It keeps no
// content.
type Device struct {
	raid    *Raid
	members []block.Device
	sink    block.Sink
	queues  []queue
	live    slab.Slab[pending]
	waiting []backlog // by member
	closed  bool
}

// mostEntries is the depth of a queue whose configuration names none: NVMe's maximum.
const mostEntries = 1 << 16

// queue is a queue of the volume with its queues on the members.
type queue struct {
	depth, used int
	own         []block.QueueID
}

// pending is an outstanding request.
type pending struct {
	done    block.Completion
	touched bool
}

// NewDevice returns a volume without members. Make member i with Member(i) as its sink, and pass all members to Attach
// before any other call.
func NewDevice(sink block.Sink) *Device { return &Device{sink: sink} }

// member forwards a member's completions to the volume.
type member struct {
	device *Device
	number int
}

// Complete implements block.Sink.
func (m member) Complete(c block.Completion) { m.device.complete(m.number, c) }

// Member returns the sink for member i.
func (d *Device) Member(i int) block.Sink { return member{d, i} }

// Attach builds the volume from the first namespaces of the members.
func (d *Device) Attach(cfg Config, members []block.Device) error {
	if len(members) == 0 {
		return errors.New("raid: no members")
	}
	each := members[0].Capacity(0)
	for _, m := range members {
		each = min(each, m.Capacity(0))
	}
	d.members, d.waiting = members, make([]backlog, len(members))
	var err error
	d.raid, err = New(cfg, len(members), each, d.issue, d.end)
	return err
}

// Tag returns the host's tag of the outstanding request that a member's command belongs to. Rebuild commands have none.
func (d *Device) Tag(command uint64) (tag uint64, known bool) {
	owner, known := d.raid.Owner(command)
	if !known {
		return 0, false
	}
	return d.live.At(int32(owner)).done.Tag, true
}

// Raid returns the volume's state machine, for its counters and its rebuild.
func (d *Device) Raid() *Raid { return d.raid }

// Open implements block.Device.
func (d *Device) Open(c block.QueueConfig) (block.QueueID, error) {
	if d.closed {
		return 0, errors.New("raid: the volume is closed")
	}
	q := queue{depth: c.Depth}
	if c.Depth == 0 { // the members use their default depth; excess commands wait here
		q.depth = mostEntries
	}
	for i, m := range d.members {
		own, err := m.Open(c)
		if err != nil {
			return 0, fmt.Errorf("member %d: %w", i, err)
		}
		q.own = append(q.own, own)
	}
	d.queues = append(d.queues, q)
	return block.QueueID(len(d.queues) - 1), nil
}

// Capacity implements block.Device.
func (d *Device) Capacity(namespace int) int64 {
	if namespace != 0 {
		return 0
	}
	return d.raid.Capacity()
}

// Close implements block.Device. It closes the members.
func (d *Device) Close() error {
	if n := d.live.Len(); n > 0 {
		return fmt.Errorf("raid: %d requests are outstanding", n)
	}
	d.closed = true
	var all error
	for _, m := range d.members {
		all = errors.Join(all, m.Close())
	}
	return all
}

// Submit implements block.Device.
func (d *Device) Submit(q block.QueueID, r block.Request) bool {
	if uint(q) >= uint(len(d.queues)) {
		return false // only members have a clock, and they have no queue for it
	}
	x := &d.queues[q]
	if d.closed || x.used >= x.depth-1 {
		return false
	}
	x.used++
	n := d.live.Take()
	*d.live.At(n) = pending{done: block.Completion{Tag: r.Tag, Queue: q, Op: r.Op, Length: r.Length}}
	r.Tag = uint64(n)
	d.raid.Begin(r)
	return true
}

// issue submits a command to a member, on the queue of its request; commands of the rebuild use the first queue.
func (d *Device) issue(member int, part block.Request) {
	q := block.QueueID(0)
	if owner, ok := d.raid.Owner(part.Tag); ok {
		q = d.live.At(int32(owner)).done.Queue
	}
	w := waiting{d.queues[q].own[member], part}
	if d.waiting[member].N > 0 || !d.members[member].Submit(w.queue, part) {
		d.waiting[member].Push(w)
	}
}

// complete handles the completion of a member's command.
func (d *Device) complete(number int, c block.Completion) {
	if owner, ok := d.raid.Owner(c.Tag); ok {
		p := d.live.At(int32(owner))
		if !p.touched || c.Submitted < p.done.Submitted {
			p.done.Submitted = c.Submitted
		}
		if !p.touched || c.Fetched < p.done.Fetched {
			p.done.Fetched = c.Fetched
		}
		p.done.Finished = max(p.done.Finished, c.Finished)
		p.touched = true
	}
	d.raid.Ended(c.Tag, c.Status)
	for w := &d.waiting[number]; w.N > 0 && d.members[number].Submit(w.First().queue, w.First().part); {
		w.Pop()
	}
}

// end reports the completion of a request.
func (d *Device) end(tag uint64, status block.Status) {
	done := d.live.At(int32(tag)).done
	done.Status = status
	d.live.Give(int32(tag))
	d.queues[done.Queue].used--
	d.sink.Complete(done)
}

// Rebuild advances the rebuild; see [Raid.Rebuild]. A queue must be open.
func (d *Device) Rebuild(since units.Duration) (next units.Duration, more bool) {
	if len(d.queues) == 0 && d.raid.Rebuilding() {
		return since + units.Millisecond, true
	}
	return d.raid.Rebuild(since)
}
