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
	c.jobs.Items[i] = j
	d.queue.Push(i)
	if d.drive != nil {
		d.drive.bytes += j.size
		c.feed(target)
		return i
	}
	d.waiting += j.takes
	if d.current < 0 {
		c.next(target)
	}
	return i
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
	if j.repairs {
		c.repaired(target, &j.message)
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
	c.work(target, job{size: c.piece, acked: now, late: late, message: m})
	if now {
		c.toGateway(m, 0)
	}
}
