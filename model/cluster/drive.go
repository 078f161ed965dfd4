package cluster

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/sim"
)

// A target's disk may be a drive: a model with queues, caches and garbage collection of its own, behind block.Device.
// Its target gives it several things to do at once, and reckons how long they will take by what it has done lately,
// as a target of a real cluster would.

// drive is a target's disk that is one.
type drive struct {
	dev    block.Device
	queue  block.QueueID
	inside []int32 // jobs that it has
	extent int64   // bytes that a piece takes
	slots  int64   // pieces that it has room for
	since  sim.Time
	last   sim.Time // that something was done, or that it began to be busy
	bytes  units.Bytes
	moved  float64 // lately
	during float64
}

// memory is over how many pieces a drive's rate is smoothed.
const memory = 64

// Ceiling is what no drive of this cluster can do for long.
type Ceiling struct{ Write, Read units.ByteRate }

// Sink is where a drive reports what it has done.
type Sink struct {
	c  *Cluster
	at int32
}

// Sink returns that of a drive. Drives are numbered target by target: those of target t from t times Disk.Count on.
func (c *Cluster) Sink(number int) Sink { return Sink{c, int32(number)} }

// Attach gives a target one of its drives, which reports to its Sink; it is called before Start.
func (c *Cluster) Attach(number int, dev block.Device, most Ceiling) error {
	d := &c.disks[number]
	const sector = int64(4 * units.KiB)
	v := &drive{dev: dev, extent: (int64(c.piece) + sector - 1) / sector * sector}
	if v.slots = dev.Capacity(0) / v.extent; v.slots == 0 {
		return fmt.Errorf("a drive of %v has no room for a piece of %v", units.Bytes(dev.Capacity(0)), c.piece)
	}
	var err error
	if v.queue, err = dev.Open(block.QueueConfig{Depth: c.cfg.Disk.Depth + 1, Class: block.Medium, Weight: 1}); err !=
		nil {
		return err
	}
	// Until it has done something, disk.rate is what it is taken for.
	v.moved = memory / 4 * float64(c.piece)
	v.during = memory / 4 * float64(d.rate.TimeFor(c.piece))
	d.drive = v
	c.ceiling = most
	return nil
}

// takes is how long it will take for a size, by what it has done lately.
func (d *drive) takes(size units.Bytes) sim.Time {
	return sim.Time(float64(size) * d.during / d.moved)
}

// feed has a drive begin what is next while it may have more at once.
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
		// Where a piece is does not matter to who keeps it: the place of any older one for a write, and for a read any.
		r := block.Request{Tag: uint64(i), Op: op, Offset: c.slots.IntN(v.slots) * v.extent,
			Length: (int64(j.size) + int64(units.Sector) - 1) / int64(units.Sector) * int64(units.Sector)}
		if !v.dev.Submit(v.queue, r) {
			panic("cluster: a drive refuses what its queue has room for")
		}
		if j.read {
			c.get.starts(d.target, i)
		}
	}
}

// Complete is what a drive calls when it has done something.
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

// crash has a drive's target forget what the drive is doing for it.
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

// Err is what went wrong with a drive, if anything.
func (c *Cluster) Err() error { return c.err }

func (c *Config) checkModel(f *units.Faults) {
	k := &c.Disk
	f.Hold(k.Depth >= 1 && k.Depth <= 1024, "disk.depth", "%d is not possible; use 1 to 1024", k.Depth)
	if k.Model != ModelSSD {
		return
	}
	f.Hold(c.Compat == CompatNone, "disk.model", "SURGE has no drives; use rate, or compat: none")
	for _, x := range k.Kinds {
		f.Hold(x.Rate == 0, "disk.kinds", "a drive has no constant rate; leave rate out, or use disk.model: rate")
	}
}
