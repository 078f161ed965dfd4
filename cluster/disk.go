package cluster

import "farflash/sim"

// disk is a target's: it writes one chunk after the other, so all that is known of its queue is when it is empty.
type disk struct {
	done sim.Time // of the last write
	busy sim.Time // sum of all writes
}

// write queues a write that takes a time and returns when it is on the disk.
func (d *disk) write(now, takes sim.Time) sim.Time {
	d.done = max(d.done, now) + takes
	d.busy += takes
	return d.done
}

// backlog is how long the disk will be busy with what it has.
func (d *disk) backlog(now sim.Time) sim.Time { return max(d.done-now, 0) }
