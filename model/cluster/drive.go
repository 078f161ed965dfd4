package cluster

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/sim"
)

// A target's disk may be a drive: a full model with queues, caches and garbage collection, behind block.Device. The
// target keeps several commands outstanding and predicts service times from the drive's recent throughput, as a target
// of a real cluster would.

// drive is a disk of a target that is a block.Device.
type drive struct {
	dev    block.Device
	queue  block.QueueID
	inside []int32 // jobs outstanding at the device
	extent int64   // bytes that a piece occupies
	slots  int64   // pieces that fit
	since  sim.Time
	last   sim.Time // time of the last completion, or of the start of the busy period
	bytes  units.Bytes
	moved  float64 // bytes completed, exponentially decayed
	during float64
}

// memory is the number of pieces over which a drive's rate is smoothed.
const memory = 64

// Ceiling is the sustained rate that no drive of this cluster exceeds.
type Ceiling struct{ Write, Read units.ByteRate }

// Sink receives a drive's completions.
type Sink struct {
	c  *Cluster
	at int32
}

// Sink returns the sink of a drive. Drives are numbered target by target: those of target t start at t times
// Disk.Count.
func (c *Cluster) Sink(number int) Sink { return Sink{c, int32(number)} }

// Attach gives a target one of its drives, which reports completions to its Sink. It must be called before Start.
func (c *Cluster) Attach(number int, dev block.Device, most Ceiling) error {
	d := &c.disks[number]
	const sector = int64(4 * units.KiB)
	v := &drive{dev: dev, extent: (int64(c.piece) + sector - 1) / sector * sector}
	if v.slots = dev.Capacity(0) / v.extent; v.slots == 0 {
		return fmt.Errorf("a drive of %v cannot hold a piece of %v", units.Bytes(dev.Capacity(0)), c.piece)
	}
	var err error
	if v.queue, err = dev.Open(block.QueueConfig{Depth: c.cfg.Disk.Depth + 1, Class: block.Medium, Weight: 1}); err !=
		nil {
		return err
	}
	// Until the first completion, the drive is assumed to have disk.rate.
	v.moved = memory / 4 * float64(c.piece)
	v.during = memory / 4 * float64(d.rate.TimeFor(c.piece))
	d.drive = v
	c.ceiling = most
	return nil
}

// takes predicts the service time of a size from the recent throughput.
func (d *drive) takes(size units.Bytes) sim.Time {
	return sim.Time(float64(size) * d.during / d.moved)
}

// feed submits queued jobs while the drive has fewer than Disk.Depth outstanding.
func (c *Cluster) feed(at int32) {
	d := &c.disks[at]
	v := d.drive
	now := c.eng.Now()
	for len(v.inside) < c.cfg.Disk.Depth && !d.queue.Empty() {
		i := d.queue.Pop()
		j := &c.jobs.Items[i]
		if j.void {
			c.jobs.Give(i)
			continue
		}
		j.begun = true
		if len(v.inside) == 0 {
			v.since, v.last = now, now
		}
		v.inside = append(v.inside, i)
		op := block.Write
		if j.read {
			op = block.Read
		}
		// The location of a piece does not matter to the target: a write replaces any older piece, and a read may be of
		// any.
		r := block.Request{Tag: uint64(i), Op: op, Offset: c.slots.IntN(v.slots) * v.extent,
			Length: (int64(j.size) + int64(units.Sector) - 1) / int64(units.Sector) * int64(units.Sector)}
		if !v.dev.Submit(v.queue, r) {
			panic("cluster: a drive refuses a command although its queue has a free entry")
		}
		if j.read {
			c.get.starts(d.target, i)
		}
	}
}

// Complete handles a completion of the drive.
func (s Sink) Complete(x block.Completion) {
	c := s.c
	d := &c.disks[s.at]
	v := d.drive
	i := int32(x.Tag)
	now := c.eng.Now()
	for k := range v.inside {
		if v.inside[k] == i {
			v.inside = append(v.inside[:k], v.inside[k+1:]...)
			break
		}
	}
	j := c.jobs.Items[i]
	c.jobs.Give(i)
	v.moved = float64(v.moved*(1-1.0/memory)) + float64(j.size)
	v.during = float64(v.during*(1-1.0/memory)) + float64(now-v.last)
	v.last = now
	if len(v.inside) == 0 {
		d.busy += now - v.since
	}
	if x.Status != block.OK && c.err == nil {
		c.err = fmt.Errorf("the drive of target %d reports: %v", d.target, x.Status)
	}
	if !j.void {
		v.bytes -= j.size
		c.finished(d.target, &j)
	}
	c.feed(s.at)
	c.turnsDisk(s.at)
	c.showWork(d.target, &j, x.Submitted, now)
}

// crash voids the jobs that the drive is doing for its failed target.
func (d *drive) crash(c *Cluster) {
	d.bytes = 0
	for _, i := range d.inside {
		j := &c.jobs.Items[i]
		if !j.void && !j.read {
			c.volume(j).Dropped += j.size
		}
		j.void = true
	}
}

// Err returns the first error that a drive has reported.
func (c *Cluster) Err() error { return c.err }

func (c *Config) checkModel(f *units.Faults) {
	k := &c.Disk
	f.Hold(k.Depth >= 1 && k.Depth <= 1024, "disk.depth", "%d is not possible; use 1 to 1024", k.Depth)
	if k.Model != ModelSSD {
		return
	}
	f.Hold(c.Compat == CompatNone, "disk.model", "SURGE has no drives; use rate, or compat: none")
	for _, x := range k.Kinds {
		f.Hold(x.Rate == 0, "disk.kinds", "an ssd has no constant rate; leave rate out, or use disk.model: rate")
	}
}
