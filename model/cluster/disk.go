package cluster

import (
	"farflash/model/cluster/internal/queue"
	"farflash/model/cluster/put"
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// A target has one or more disks, each of which serves one job at a time. The queue is explicit so that a read which
// another target has begun can be canceled. A write goes to the target's disk with the shortest backlog; the disk that
// a stored piece is read from follows from the chunk and the target. Protocols see the disks of a target as a single
// one with their combined rate.

// disk is one disk of a target.
type disk struct {
	rate    units.ByteRate
	queue   queue.Queue[int32] // jobs
	current int32              // the job being done, -1 if none
	ends    sim.Time           // when it completes
	waiting sim.Time           // service time of the jobs in the queue
	busy    sim.Time           // service time of all jobs completed or in service
	drive   *drive             // the drive model, if the disk has no constant rate
	target  int32              // the target it belongs to
	held    queue.Queue[int32] // rebuild jobs that are throttled by repair.disk
	free    sim.Time           // earliest time at which the next rebuild job may be queued
}

// job is one read or write at a disk.
type job struct {
	takes   sim.Time
	size    units.Bytes
	disk    int32 // index into Cluster.disks
	read    bool
	repairs bool // it rebuilds a piece
	updates bool // it overwrites a part
	since   sim.Time
	begun   bool
	void    bool        // canceled before it began, or lost with its target
	acked   bool        // the write has been acknowledged
	held    bool        // it is throttled by repair.disk
	late    sim.Time    // delay from completion to acknowledgement
	of      uint64      // the attempt whose memory the completion frees
	message put.Message // sent when a write completes; for a read, the request
}

// equip gives each target its disks. The targets that have each kind are drawn at random.
func (c *Cluster) equip() {
	c.disks = make([]disk, len(c.targets)*c.cfg.Disk.Count)
	for t := range c.targets {
		c.targets[t].weight = 1
		for k := range c.disksOf(int32(t)) {
			c.disksOf(int32(t))[k] = disk{rate: c.cfg.Disk.Rate, current: -1, target: int32(t)}
		}
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
				for n := range c.disksOf(t) {
					c.disksOf(t)[n].rate = k.Rate
				}
			}
			if k.Weight > 0 {
				c.targets[t].weight = k.Weight
			}
		}
		order = order[n:]
	}
}

// disksOf returns the disks of a target.
func (c *Cluster) disksOf(target int32) []disk {
	n := c.cfg.Disk.Count
	return c.disks[int(target)*n : (int(target)+1)*n]
}

// takes returns the service time of a disk for a size.
func (c *Cluster) takes(i int32, size units.Bytes) sim.Time {
	d := &c.disks[i]
	switch {
	case d.drive != nil:
		return d.drive.takes(size)
	case d.rate != c.cfg.Disk.Rate || c.cfg.Disk.Count > 1:
		return d.rate.TimeFor(size)
	}
	return c.d.Write(size)
}

// writeTime returns the time in which all disks of a target together write a piece, as if each wrote a part of it.
func (c *Cluster) writeTime(target int32) sim.Time {
	n := int32(c.cfg.Disk.Count)
	if n == 1 {
		return c.takes(target, c.piece)
	}
	sum := sim.Time(0)
	for k := range n {
		sum += c.takes(target*n+k, c.piece)
	}
	// The mean time of a disk over n, because n disks write in parallel.
	return sum / sim.Time(n*n)
}

// backlogOf returns the mean time for which a target's disks stay busy with their backlog.
func (c *Cluster) backlogOf(target int32) sim.Time {
	now := c.eng.Now()
	list := c.disksOf(target)
	if len(list) == 1 {
		return list[0].backlog(now)
	}
	sum := sim.Time(0)
	for k := range list {
		sum += list[k].backlog(now)
	}
	return sum / sim.Time(len(list))
}

// idlest returns the disk of a target with the shortest backlog.
func (c *Cluster) idlest(target int32) int32 {
	n := int32(c.cfg.Disk.Count)
	best, least := target*n, sim.Forever
	for k := target * n; k < (target+1)*n; k++ {
		if n == 1 {
			break
		}
		if busy := c.disks[k].backlog(c.eng.Now()); busy < least {
			best, least = k, busy
		}
	}
	return best
}

// lies returns the disk on which a target stores its piece of an object.
func (c *Cluster) lies(object, target int32) int32 {
	n := int32(c.cfg.Disk.Count)
	if n == 1 {
		return target
	}
	return target*n + int32(rng.Mix(uint64(uint32(object))<<32|uint64(uint32(target)))%uint64(n))
}

// backlog returns the time until the disk has completed its current jobs.
func (d *disk) backlog(now sim.Time) sim.Time {
	switch {
	case d.drive != nil:
		return d.drive.takes(d.drive.bytes)
	case d.current < 0:
		return 0
	}
	return d.ends - now + d.waiting
}

// used returns the time for which the disk has been busy until at. at is not before the disk's last event.
func (d *disk) used(at sim.Time) sim.Time {
	switch {
	case d.drive != nil && len(d.drive.inside) > 0:
		return d.busy + at - d.drive.since
	case d.drive != nil || d.current < 0:
		return d.busy
	}
	return d.busy - (d.ends - at)
}

// work submits a job to its disk and returns its number.
func (c *Cluster) work(j job) int32 {
	i := c.jobs.Take()
	d := &c.disks[j.disk]
	j.takes, j.since = c.takes(j.disk, j.size), c.eng.Now()
	if !j.read {
		c.volume(&j).Handed += j.size
	}
	// A rebuild job reserves its service time over repair.disk, so that rebuilding never exceeds that share.
	if j.repairs && c.cfg.Repair.Disk < 1 {
		j.since = max(j.since, d.free)
		d.free = j.since + share(j.takes, c.cfg.Repair.Disk)
		if j.held = j.since > c.eng.Now(); j.held {
			c.jobs.Items[i] = j
			d.held.Push(i)
			c.eng.Schedule(c.self, c.here, j.since, evShare, uint32(j.disk))
			return i
		}
	}
	c.jobs.Items[i] = j
	c.queues(i)
	return i
}

// queues appends a job to its disk's queue.
func (c *Cluster) queues(i int32) {
	j := &c.jobs.Items[i]
	at, d := j.disk, &c.disks[j.disk]
	d.queue.Push(i)
	if d.drive != nil {
		d.drive.bytes += j.size
		c.feed(at)
		return
	}
	d.waiting += j.takes
	if d.current < 0 {
		c.next(at)
	}
}

// shares moves the throttled rebuild jobs whose time has come to the disk's queue.
func (c *Cluster) shares(at int32) {
	d := &c.disks[at]
	for !d.held.Empty() && c.jobs.Items[d.held.All()[0]].since <= c.eng.Now() {
		i := d.held.Pop()
		if j := &c.jobs.Items[i]; j.void {
			c.jobs.Give(i)
		} else {
			j.held = false
			c.queues(i)
			c.turnsDisk(at)
		}
	}
}

// volume returns the counters of a job: of puts, of rebuilt pieces, or of overwritten parts.
func (c *Cluster) volume(j *job) *Volume {
	switch {
	case j.repairs:
		return &c.Counters.Mended
	case j.updates:
		return &c.Counters.Renewed
	}
	return &c.Counters.Put
}

// next starts the next job of a disk.
func (c *Cluster) next(at int32) {
	d := &c.disks[at]
	for !d.queue.Empty() {
		// Canceled jobs stay in the queue until they reach its head; waiting excludes them.
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
		c.eng.Schedule(c.self, c.here, d.ends, evDisk, uint32(at))
		c.showWork(d.target, j, c.eng.Now(), d.ends)
		if j.read {
			c.get.starts(d.target, i)
		}
		return
	}
	d.current = -1
}

// worked completes the current job of a disk.
func (c *Cluster) worked(at int32) {
	d := &c.disks[at]
	i := d.current
	if i < 0 || d.ends != c.eng.Now() {
		return // the target has failed in between
	}
	j := c.jobs.Items[i]
	c.jobs.Give(i)
	c.next(at)
	c.turnsDisk(at)
	c.finished(d.target, &j)
}

// finished notifies whoever waits for a job that it is done.
func (c *Cluster) finished(target int32, j *job) {
	if j.read {
		c.get.read(target, &j.message)
		return
	}
	c.volume(j).Written += j.size
	if j.repairs {
		c.fix.written(j.message.Chunk)
		return
	}
	c.Counters.Written++
	if !j.updates {
		c.leavesMemory(target, j.of)
	}
	if !j.acked {
		c.toGateway(j.message, j.late)
	}
}

// takeBack cancels a read that its disk has not begun.
func (c *Cluster) takeBack(i int32) {
	if j := &c.jobs.Items[i]; !j.void && !j.begun {
		d := &c.disks[j.disk]
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

// keep has a target write a piece that has arrived. The acknowledgement goes to the gateway when the piece is on the
// disk, or at once if the target acknowledges early.
func (c *Cluster) keep(target int32, m put.Message) {
	at := c.idlest(target)
	piece := c.pieceAt(m.Chunk)
	now, late := c.bus.Acknowledges(c.disks[at].backlog(c.eng.Now()) + c.takes(at, piece))
	c.stamps(target, &m, piece)
	c.work(job{disk: at, size: piece, acked: now, late: late, of: c.fills(target, m.Chunk), message: m})
	if now {
		c.toGateway(m, 0)
	}
}
