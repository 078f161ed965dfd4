package cluster

import (
	"fmt"

	"farflash/sim"
)

// With the build tag invariants, a cluster verifies its own laws (Check) and those of its parts (walk) every checkEvery
// events and panics at the first violation; without the tag, only tests and the end of a run call Check. The tag also
// lets a test choose which frames and messages are lost. Without the tag both are constants, and the compiler removes
// the code.
//
//	go test -tags invariants ./model/cluster

// holds panics if a law is violated.
func (c *Cluster) holds() {
	err := c.Check()
	if err == nil {
		err = c.walk()
	}
	if err != nil {
		panic(fmt.Sprintf("cluster: %v, at %v, after %d events: %v", c.cfg.Protocol, c.eng.Now(), c.eng.Events(), err))
	}
}

// walk checks links, disks and chunks and returns the first inconsistency.
func (c *Cluster) walk() error {
	for _, look := range []func() error{c.walkLinks, c.walkDisks, c.walkChunks} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// walkLinks verifies that an idle port has an empty queue and that no parcel is queued twice.
func (c *Cluster) walkLinks() error {
	leaves := map[int32]bool{}
	for node := range c.out {
		o, in := &c.out[node], &c.in[node]
		for _, end := range []*port{o, in} {
			if !end.busy && !(end.control.Empty() && (end.data.Empty() || c.rooms != nil)) {
				return fmt.Errorf("node %d has %d messages and %d frames waiting at a link that nothing uses", node,
					end.control.Len(), end.data.Len())
			}
		}
		for _, list := range [][]int32{o.control.All(), o.data.All()} {
			for _, i := range list {
				if leaves[i] {
					return fmt.Errorf("parcel %d waits twice to leave", i)
				}
				leaves[i] = true
			}
		}
		for _, i := range in.data.All() {
			if p := &c.parcels.Items[i]; !p.data || p.left <= 0 {
				return fmt.Errorf("node %d has a frame waiting that nobody sends it: %+v", node, p)
			}
		}
	}
	return nil
}

// walkDisks verifies that each disk's waiting time is that of its queue, and that every job is at exactly one disk.
func (c *Cluster) walkDisks() error {
	now := c.eng.Now()
	jobs := 0
	for i := range c.disks {
		d := &c.disks[i]
		t := d.target
		waiting := sim.Time(0)
		for _, i := range d.queue.All() {
			if j := &c.jobs.Items[i]; !j.void {
				waiting += j.takes
			}
		}
		jobs += d.queue.Len() + d.held.Len()
		if d.drive != nil {
			jobs += len(d.drive.inside)
			continue
		}
		if d.current >= 0 {
			jobs++
		}
		switch {
		case waiting != d.waiting:
			return fmt.Errorf("the disk of target %d has %v waiting and says %v", t, waiting, d.waiting)
		case d.current < 0 && !d.queue.Empty():
			return fmt.Errorf("the disk of target %d is idle with %d things to do", t, d.queue.Len())
		case d.current >= 0 && d.ends < now:
			return fmt.Errorf("the disk of target %d was to be done at %v", t, d.ends)
		}
	}
	if used := c.jobs.Used(); used != jobs {
		return fmt.Errorf("%d jobs are at disks and %d are used", jobs, used)
	}
	return nil
}

// walkChunks verifies that live chunks are accounted to their gateways, that their IDs are unique, and that each
// chunk's targets are distinct.
func (c *Cluster) walkChunks() error {
	under := make([]int32, len(c.gateways))
	seen := map[uint64]bool{}
	for i := range c.tasks.Items {
		x, t := &c.bus.Chunks[i], &c.tasks.Items[i]
		if !t.live {
			if x.ID != 0 {
				return fmt.Errorf("chunk %d is over and has a place", x.ID)
			}
			continue
		}
		if x.ID == 0 || x.ID > c.attempts || seen[x.ID] {
			return fmt.Errorf("chunk %d is not an attempt, of %d, or is under way twice", x.ID, c.attempts)
		}
		seen[x.ID] = true
		if t.mends == 0 {
			under[x.Gateway]++
		}
		if !t.read && int(x.Acked) >= c.copies {
			return fmt.Errorf("chunk %d has all its %d replicas and is not done", x.ID, x.Acked)
		}
		for k, a := range x.Targets[:x.N] {
			if a < 0 || int(a) >= len(c.targets) {
				return fmt.Errorf("chunk %d has target %d", x.ID, a)
			}
			for _, b := range x.Targets[:k] {
				if a == b {
					return fmt.Errorf("chunk %d has target %d twice", x.ID, a)
				}
			}
		}
	}
	for g, n := range under {
		if c.books.under != nil && c.books.under[g] != n {
			return fmt.Errorf("gateway %d has %d chunks under way and says %d", g, n, c.books.under[g])
		}
		if int(n) > c.cfg.Outstanding {
			return fmt.Errorf("gateway %d has %d chunks under way, of %d", g, n, c.cfg.Outstanding)
		}
	}
	return nil
}

// faulted reports whether a test wants the arrival of p at a node to be lost.
func (c *Cluster) faulted(node int32, p *parcel) bool { return c.fault != nil && c.fault(node, p.data) }
