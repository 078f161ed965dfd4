package cluster

import (
	"farflash/cluster/internal/queue"
	"farflash/cluster/put"
	"math"

	"farflash/rng"
	"farflash/sim"
	"farflash/units"
)

// A target has one disk, which does one thing after the other. Its queue is explicit, so that a read that another target has begun can be
// taken back.

// disk is a target's.
type disk struct {
	rate    units.ByteRate
	queue   queue.Queue[int32] // jobs
	current int32              // the job being done, -1 if none
	ends    sim.Time           // when it is done
	waiting sim.Time           // that the queue will take
	busy    sim.Time           // sum of all that is done or being done
	drive   *drive             // what it is, if it has no constant rate
	held    queue.Queue[int32] // jobs that make pieces again and are not its turn yet, by repair.disk
	free    sim.Time           // from when the next such job may be queued
}

// job is one thing for a disk to do.
type job struct {
	takes   sim.Time
	size    units.Bytes
	read    bool
	repairs bool // it makes a piece again
	since   sim.Time
	begun   bool
	void    bool        // taken back before it began, or lost with its target
	acked   bool        // the write has been acknowledged
	held    bool        // it waits for its share of the disk
	late    sim.Time    // by how much its acknowledgement comes later than it is done
	message put.Message // what is sent when a write is done; what was asked for by a read
}

// equip gives each target its disk: the kinds' shares of them are drawn at random.
func (c *Cluster) equip() {
	for t := range c.targets {
		c.targets[t].disk = disk{rate: c.cfg.Disk.Rate, current: -1}
		c.targets[t].weight = 1
	}
	if len(c.cfg.Disk.Kinds) == 0 {
		return
	}
	s := rng.NewStream(c.seed, "cluster/disks")
	order := make([]int32, len(c.targets))
	for t := range order {
		k := int(s.IntN(int64(t + 1)))
		order[t], order[k] = order[k], int32(t)
	}
	for _, k := range c.cfg.Disk.Kinds {
		n := min(int(math.Round(float64(k.Share)*float64(len(c.targets)))), len(order))
		for _, t := range order[:n] {
			if k.Rate > 0 {
				c.targets[t].disk.rate = k.Rate
			}
			if k.Weight > 0 {
				c.targets[t].weight = k.Weight
			}
		}
		order = order[n:]
	}
}

// takes is how long a target's disk takes for a size.
func (c *Cluster) takes(target int32, size units.Bytes) sim.Time {
	d := &c.targets[target].disk
	switch {
	case d.drive != nil:
		return d.drive.takes(size)
	case d.rate != c.cfg.Disk.Rate:
		return d.rate.TimeFor(size)
	}
	return c.d.Write(size)
}

// backlog is how long the disk will be busy with what it has.
func (d *disk) backlog(now sim.Time) sim.Time {
	switch {
	case d.drive != nil:
		return d.drive.takes(d.drive.bytes)
	case d.current < 0:
		return 0
	}
	return d.ends - now + d.waiting
}

// used is how long the disk has been busy until a time, which is not before its last event.
func (d *disk) used(at sim.Time) sim.Time {
	switch {
	case d.drive != nil && len(d.drive.inside) > 0:
		return d.busy + at - d.drive.since
	case d.drive != nil || d.current < 0:
		return d.busy
	}
	return d.busy - (d.ends - at)
}

// work gives a target's disk something to do and returns its number.
func (c *Cluster) work(target int32, j job) int32 {
	i := c.jobs.Take()
	d := &c.targets[target].disk
	j.takes, j.since = c.takes(target, j.size), c.eng.Now()
	if !j.read {
		c.volume(j.repairs).Handed += j.size
	}
	if j.repairs && c.cfg.Repair.Disk < 1 {
		j.since = max(j.since, d.free)
		d.free = j.since + share(j.takes, c.cfg.Repair.Disk)
		if j.held = j.since > c.eng.Now(); j.held {
			c.jobs.Items[i] = j
			d.held.Push(i)
			c.eng.Schedule(c.self, c.here, j.since, evShare, uint32(target))
			return i
		}
	}
	c.jobs.Items[i] = j
	c.queues(target, i)
	return i
}

// queues puts a job into a disk's queue.
func (c *Cluster) queues(target, i int32) {
	d, j := &c.targets[target].disk, &c.jobs.Items[i]
	d.queue.Push(i)
	if d.drive != nil {
		d.drive.bytes += j.size
		c.feed(target)
		return
	}
	d.waiting += j.takes
	if d.current < 0 {
		c.next(target)
	}
}

// shares queues what makes pieces again and is its turn.
func (c *Cluster) shares(target int32) {
	d := &c.targets[target].disk
	for !d.held.Empty() && c.jobs.Items[d.held.All()[0]].since <= c.eng.Now() {
		i := d.held.Pop()
		if j := &c.jobs.Items[i]; j.void {
			c.jobs.Give(i)
		} else {
			j.held = false
			c.queues(target, i)
			c.turns(target)
		}
	}
}

// volume is what has become of what was written for gateways, or to make pieces again.
func (c *Cluster) volume(repairs bool) *Volume {
	if repairs {
		return &c.Counters.Mended
	}
	return &c.Counters.Put
}

// next has a disk begin what is next.
func (c *Cluster) next(target int32) {
	d := &c.targets[target].disk
	for !d.queue.Empty() {
		i := d.queue.Pop()
		j := &c.jobs.Items[i]
		if j.void {
			c.jobs.Give(i)
			continue
		}
		d.current, d.ends = i, c.eng.Now()+j.takes
		j.begun = true
		d.waiting -= j.takes
		d.busy += j.takes
		c.eng.Schedule(c.self, c.here, d.ends, evDisk, uint32(target))
		c.showWork(target, j, c.eng.Now(), d.ends)
		if j.read {
			c.get.starts(target, i)
		}
		return
	}
	d.current = -1
}

// worked: a disk is done with what it did.
func (c *Cluster) worked(target int32) {
	d := &c.targets[target].disk
	i := d.current
	if i < 0 || d.ends != c.eng.Now() {
		return // the target failed meanwhile
	}
	j := c.jobs.Items[i]
	c.jobs.Give(i)
	c.next(target)
	c.turns(target)
	c.finished(target, &j)
}

// finished tells who waits for it that something is done.
func (c *Cluster) finished(target int32, j *job) {
	if j.read {
		c.get.read(target, &j.message)
		return
	}
	c.volume(j.repairs).Written += j.size
	if j.repairs {
		c.fix.written(j.message.Chunk)
		return
	}
	c.Counters.Written++
	if !j.acked {
		c.toGateway(j.message, j.late)
	}
}

// takeBack removes a read from a disk's queue if it has not begun.
func (c *Cluster) takeBack(target, i int32) {
	d := &c.targets[target].disk
	if j := &c.jobs.Items[i]; !j.void && !j.begun {
		j.void = true
		if j.held {
			return
		}
		if d.drive != nil {
			d.drive.bytes -= j.size
			return
		}
		d.waiting -= j.takes
	}
}

// keep has a target write a piece that has arrived and tell its gateway when it is on the disk, or earlier if it acknowledges so.
func (c *Cluster) keep(target int32, m put.Message) {
	now, late := c.bus.Acknowledges(c.targets[target].disk.backlog(c.eng.Now()) + c.takes(target, c.piece))
	c.stamps(target, &m)
	c.work(target, job{size: c.piece, acked: now, late: late, message: m})
	if now {
		c.toGateway(m, 0)
	}
}
