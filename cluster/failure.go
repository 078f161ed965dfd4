package cluster

import (
	"fmt"
	"strings"

	"farflash/cluster/put"
	"farflash/rng"
	"farflash/sim"
	"farflash/units"
)

// Targets fail and come back empty. Gateways hear of it after a time; until then they ask in vain and begin again (retry.go). What a target
// kept is made again elsewhere: a target that takes its place reads from those that are left, as a gateway would, and writes.

// Failure is a target that fails.
type Failure struct {
	// Target is its number, from 0.
	Target int
	// At is when it fails.
	At units.Duration
	// Back is when it is there again, empty; 0 is never.
	Back units.Duration
}

// Repair is what happens after a failure.
type Repair struct {
	// Detect is how long it takes until gateways and targets know.
	Detect units.Duration
	// Streams is how many chunks are made again at a time for each target that is left; 0 makes none again.
	Streams units.Fraction
}

// fault is a thing to happen to a target.
type fault struct {
	target int32
	what   uint8
}

// What happens to a target.
const (
	faultDown uint8 = iota
	faultKnown
	faultUp
	faultJoins
)

// lost is a piece of a chunk that is to be made again.
type lost struct {
	object int32
	piece  int8
}

// repairer makes pieces again.
type repairer struct {
	queue  []lost
	head   int
	under  int
	rand   rng.Stream
	places []int32
}

// planFailures has targets fail at their times.
func (c *Cluster) planFailures() {
	c.fix.rand = rng.NewStream(c.seed, "cluster/rebuild")
	add := func(at sim.Time, f fault) {
		c.faults = append(c.faults, f)
		c.eng.Schedule(c.self, c.here, at, evFault, uint32(len(c.faults)-1))
	}
	for _, f := range c.cfg.Failures {
		add(f.At, fault{int32(f.Target), faultDown})
		add(f.At+c.cfg.Repair.Detect, fault{int32(f.Target), faultKnown})
		if f.Back > 0 {
			add(f.Back, fault{int32(f.Target), faultUp})
			add(max(f.Back, f.At)+c.cfg.Repair.Detect, fault{int32(f.Target), faultJoins})
		}
	}
}

// mishap has something happen to a target.
func (c *Cluster) mishap(f fault) {
	t := &c.targets[f.target]
	switch f.what {
	case faultDown:
		t.down = true
		t.fell++
		c.crash(f.target)
	case faultUp:
		t.down = false
	case faultKnown:
		c.bus.Away[f.target] = true
		c.remap()
		c.missing(f.target)
	case faultJoins:
		c.bus.Away[f.target] = t.down
		c.remap()
	}
	c.turns(f.target)
}

// crash has a target lose what it is doing and what it knows.
func (c *Cluster) crash(target int32) {
	d := &c.targets[target].disk
	now := c.eng.Now()
	if d.current >= 0 {
		d.busy -= d.ends - now
		c.jobs.Give(d.current)
		d.current = -1
	}
	for !d.queue.Empty() {
		c.jobs.Give(d.queue.Pop())
	}
	d.waiting = 0
	if d.drive != nil {
		d.drive.crash(c)
	}
	c.targets[target].reads = c.targets[target].reads[:0]
	c.recovery.Restart(target)
}

// remap has placements leave out the targets that are known to be away.
func (c *Cluster) remap() {
	if c.bus.Places == nil {
		return
	}
	places, err := c.placer()
	if err != nil {
		return // nobody is left; chunks go on to those who are gone, and fail
	}
	if before := c.bus.Places; c.checkPlacer() == nil {
		c.bus.Places = places
		if c.checkPlacer() != nil {
			c.bus.Places = before
		}
	}
}

// missing notes what a target kept, and has it made again.
func (c *Cluster) missing(target int32) {
	p := &c.kept
	for i, t := range p.targets {
		if t == target {
			p.targets[i] = -1
			c.Counters.PiecesLost++
			if c.cfg.Repair.Streams > 0 {
				c.fix.queue = append(c.fix.queue, lost{int32(i / p.copies), int8(i % p.copies)})
			}
		}
	}
	live := 0
	for t := range c.targets {
		if !c.bus.Away[t] {
			live++
		}
	}
	for most := max(int(float64(c.cfg.Repair.Streams)*float64(live)), 1); c.fix.under < most && c.repair(); {
	}
}

// repair begins with the next piece that is to be made again, if there is one.
func (c *Cluster) repair() bool {
	r, p := &c.fix, &c.kept
	for r.head < len(r.queue) {
		x := r.queue[r.head]
		r.head++
		if p.targets[int(x.object)*p.copies+int(x.piece)] >= 0 {
			continue // put again meanwhile
		}
		t := c.substitute(x.object)
		if t < 0 {
			c.Counters.Unrepaired++
			continue
		}
		r.under++
		c.read(c.nodeOfTarget(t), x)
		return true
	}
	return false
}

// substitute chooses who takes the place of a target that is gone: one that may keep the chunk and does not.
func (c *Cluster) substitute(object int32) int32 {
	r, p := &c.fix, &c.kept
	r.places = r.places[:0]
	if p.each > 0 {
		for _, g := range p.groupsOf(object) {
			r.places = c.bus.GroupOf(g, r.places)
		}
	} else {
		for t := range c.targets {
			if !c.bus.Away[t] {
				r.places = append(r.places, int32(t))
			}
		}
	}
	n := 0
	for _, t := range r.places {
		has := false
		for _, k := range p.find(object) {
			has = has || k == t
		}
		if !has {
			r.places[n] = t
			n++
		}
	}
	if n == 0 {
		return -1
	}
	return r.places[r.rand.IntN(int64(n))]
}

// read has a target read a chunk to make a piece of it again.
func (c *Cluster) read(node int32, x lost) {
	i := c.slot()
	c.attempts++
	c.bus.Chunks[i] = put.Chunk{ID: c.attempts, Gateway: node, Begun: c.eng.Now()}
	c.tasks.Items[i] = task{live: true, read: true, repairs: x.piece + 1, object: x.object}
	c.get.begin(i)
}

// fetched: a target has read what it needs to make a piece again. It writes it.
func (c *Cluster) fetched(i int32) {
	t, target := &c.tasks.Items[i], c.bus.Chunks[i].Gateway-int32(len(c.gateways))
	c.work(target, job{size: c.piece, repairs: true, message: put.Message{Chunk: t.object, N: int32(t.repairs - 1)}})
	c.release(i)
}

// repaired: a target has made a piece again.
func (c *Cluster) repaired(target int32, m *put.Message) {
	p := &c.kept
	if at := int(m.Chunk)*p.copies + int(m.N); p.targets[at] < 0 {
		p.targets[at] = target
		c.Counters.Repaired++
		c.RepairedAt = c.eng.Now()
	}
	c.repairDone()
}

// repairDone: a stream can go on with the next piece.
func (c *Cluster) repairDone() {
	c.fix.under--
	c.repair()
}

func (c *Config) checkFailures(f *units.Faults) {
	down := map[int]units.Duration{}
	for i, x := range c.Failures {
		at := fmt.Sprintf("failures[%d]", i)
		f.Hold(x.Target >= 0 && x.Target < c.Targets, at+".target", "there is no target %d; they are numbered from 0 to %d", x.Target, c.Targets-1)
		f.Hold(x.At >= 0, at+".at", "target %d fails at %v; use a time from 0", x.Target, x.At)
		f.Hold(x.Back == 0 || x.Back >= x.At+c.Repair.Detect, at+".back", "target %d fails at %v and is back at %v, before that is known; use a time from %v, or leave back out", x.Target, x.At, x.Back, x.At+c.Repair.Detect)
		until, before := down[x.Target]
		f.Hold(!before || until > 0 && x.At >= until+c.Repair.Detect, at+".at", "target %d fails twice, the second time before it is known to be back", x.Target)
		down[x.Target] = x.Back
	}
	f.Hold(c.Repair.Detect >= 0, "repair.detect", "%v is not possible; use a time such as 5ms", c.Repair.Detect)
	f.Hold(c.Repair.Streams <= 64, "repair.streams", "%v is not possible; use at most 64 for each target", float64(c.Repair.Streams))
	f.Hold(len(c.Failures) == 0 || c.Control.Queued, "failures", "they need control.queued: true")
	f.Hold(c.Link.Loss <= 0.5, "link.loss", "%v is not possible; use 0%% to 50%%", c.Link.Loss)
	f.Hold(c.Link.Loss == 0 || c.Control.Queued, "link.loss", "it needs control.queued: true")
	f.Hold(c.RetryAfter >= 0, "retry_after", "%v is not possible; use a time such as 20ms", c.RetryAfter)
	t := c.Protocol.traits()
	f.Hold(!c.lossy() || t.Stuck == "", "protocol", "%v does not go on when messages are lost or targets fail: %s; use one of %s", c.Protocol, t.Stuck, strings.Join(names(where(recovers)), ", "))
}

// recovers reports whether a protocol goes on when messages are lost and targets fail.
func recovers(t *put.Traits) bool { return t.Stuck == "" }

// Missing is how many pieces of chunks that are kept are with no target that is known to be there.
func (c *Cluster) Missing() int {
	n := 0
	for _, t := range c.kept.targets {
		if t < 0 {
			n++
		}
	}
	return n
}
