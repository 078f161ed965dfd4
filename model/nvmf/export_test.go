package nvmf

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// ReadAndWrite has a queue for reads and one for writes and other commands that change data, of the same class, so that
// their weights (Tune) determine how a drive divides itself between them.
func (c *Config) ReadAndWrite() queueSet {
	q := c.oneQueue()
	q.open = append(q.open, q.open[0])
	q.use = [block.Ops]uint8{block.Write: 1, block.Trim: 1, block.Flush: 1, block.Reset: 1, block.Finish: 1,
		block.Open: 1, block.Close: 1}
	return q
}

// Tune changes the weight and limit of a drive's queue, by its index in Queues.open. It reports false if the drive
// cannot be tuned.
func (s *System) Tune(drive int32, queue, weight, inFlight int) bool {
	exists("drive", drive, len(s.drives))
	d := &s.drives[drive]
	exists("queue", int32(min(max(queue, -1), 1<<30)), len(d.queues))
	t, ok := d.dev.(block.Tuner)
	if ok {
		t.Tune(d.queues[queue].id, weight, inFlight)
	}
	return ok
}

// OneQueue is the set of queues that AddDrive opens.
func (c *Config) OneQueue() queueSet { return c.oneQueue() }

// Use makes the commands of an operation use a queue.
func (q *queueSet) Use(op block.Op, queue uint8) { q.use[op] = queue }

// AddDriveQueues is AddDrive with the given queues.
func (s *System) AddDriveQueues(target int32, dev block.Device, queues queueSet) (int32, error) {
	return s.addDriveQueues(target, dev, queues)
}

// Held returns the data that a target's transmit queue and its memory for writes hold.
func (s *System) Held(target int32) (queued, memory units.Bytes) {
	return s.targets[target].used, s.targets[target].memory.used
}

// Receiving returns how many commands with a shared receive are in a target, which has one pool, and how many are
// taken.
func (s *System) Receiving(target int32) (inside, taken int) {
	pool := int32(0)
	if t := &s.targets[target]; t.pools != nil {
		pool = t.pools[0]
	}
	if pool == 0 {
		return 0, 0
	}
	s.commands.Each(func(_ int32, x *command) {
		if x.at > outward && x.at < answering {
			inside++
		}
	})
	return inside, s.cfg.Receives.Shared - s.pooler.Posted(pool-1)
}

// Settle is what the first command does before all else.
func (s *System) Settle() { s.settle() }

// Idle reports resources that are held although no command is outstanding.
func (s *System) Idle() error {
	if n := s.commands.Len(); n > 0 {
		return fmt.Errorf("%d commands have places", n)
	}
	for m := range s.posted {
		if s.posted[m] != (posted{}) {
			return fmt.Errorf("message %d has a place", m)
		}
	}
	for i := range s.targets {
		if t := &s.targets[i]; t.used != 0 || t.memory.used != 0 || t.waiting.n+t.replies.n+t.memory.waiting.n != 0 ||
			t.steered != nil && t.steered.steering.Reading != 0 {
			return fmt.Errorf("target %d holds %v and %v", i, t.used, t.memory.used)
		}
		for _, pool := range s.targets[i].pools {
			if pool > 0 && s.pooler.Posted(pool-1) != s.cfg.Receives.Shared {
				return fmt.Errorf("target %d holds %d receives", i, s.cfg.Receives.Shared-s.pooler.Posted(pool-1))
			}
		}
	}
	for i := range s.gates {
		if n := s.gates[i].waiting.n; n != 0 {
			return fmt.Errorf("%d commands wait at gate %d", n, i)
		}
	}
	for i := range s.drives {
		if d := &s.drives[i]; d.inside != 0 {
			return fmt.Errorf("%d commands in drive %d", d.inside, i)
		}
	}
	for i := range s.ghosts {
		if s.ghosts[i].active {
			return fmt.Errorf("remains of controller %d", s.ghosts[i].ctrl)
		}
	}
	for i := range s.heads {
		if n := s.heads[i].waiting.n; n != 0 {
			return fmt.Errorf("%d commands wait for a path", n)
		}
	}
	for i := range s.routes {
		if r := &s.routes[i]; r.active != 0 || r.bytes != 0 {
			return fmt.Errorf("path %d carries %d commands of %d bytes", i, r.active, r.bytes)
		}
	}
	for i := range s.conns {
		if q := &s.conns[i]; q.outstanding != 0 || q.reading != 0 || q.waiting.n+q.unread.n+q.batch.n != 0 {
			return fmt.Errorf("connection %d: %+v", i, q)
		}
	}
	return nil
}
