package cluster

import (
	"farflash/model/cluster/internal/queue"
	"farflash/numeric/units"
	"farflash/sim"
)

// Processors. A node's processor takes as long as the configuration says to send a control message or a frame and to
// handle one that has come, and does one thing after the other, in the order in which they ask for it. Data that
// costs nothing, as a network adapter puts it into memory by itself, takes its turn all the same: that it is there is
// told in the order of one completion queue, and so nobody has data before the message that says what it is. Without
// a processor's times there are none, and nothing of this is done.

// Processor is what a node's processor takes for what it sends and hears.
type Processor struct {
	// Message is how long it takes to send a control message, which may go to several nodes, and to handle one that
	// has come.
	Message units.Duration
	// Frame is how long it takes to send or handle a frame of data; 0 is a network adapter that needs no processor
	// for it, as with RDMA.
	Frame units.Duration
}

// longestWork is the most that a processor may take for one thing.
const longestWork = 100 * units.Millisecond

func (c *Config) checkProcessor(f *units.Faults) {
	p := &c.Processor
	for _, x := range []struct {
		key   string
		takes units.Duration
	}{{"processor.message", p.Message}, {"processor.frame", p.Frame}} {
		f.Hold(x.takes >= 0 && x.takes <= longestWork, x.key, "%v is not possible; use 0s to %v", x.takes, longestWork)
	}
	f.Hold(*p == Processor{} || c.Control.Queued, "processor",
		"messages that wait for no link wait for no processor; use control.queued: true, or leave it out")
}

// work is a parcel that a processor has something to do for.
type work struct {
	parcel int32
	sends  bool
	fell   int32 // how often the target had failed by then
}

// processor is a node's.
type processor struct {
	queue queue.Queue[work] // what it does, and what waits
	used  sim.Time          // for what it has begun
	ends  sim.Time          // when it is done with what it does
}

// worksFor has a node's processor begin with a parcel when it is done with all before, and reports false if there is
// nothing to wait for.
func (c *Cluster) worksFor(node, i int32, sends bool) bool {
	if c.processors == nil {
		return false
	}
	p := &c.processors[node]
	if p.queue.Empty() && c.handling(i, sends) == 0 {
		return false
	}
	w := work{parcel: i, sends: sends}
	if t := node - int32(len(c.gateways)); t >= 0 {
		w.fell = c.targets[t].fell
	}
	p.queue.Push(w)
	if p.queue.Len() == 1 {
		c.process(node)
	}
	return true
}

// handling is what a parcel costs a node that sends it or has got it. A network that carries nothing to several nodes
// at once is sent it as often.
func (c *Cluster) handling(i int32, sends bool) sim.Time {
	p := &c.parcels.Items[i]
	takes := c.cfg.Processor.Message
	if p.data {
		takes = c.cfg.Processor.Frame
	}
	if sends && c.net != nil {
		takes *= sim.Time(p.n)
	}
	return takes
}

// process has a node's processor begin with what is next.
func (c *Cluster) process(node int32) {
	p := &c.processors[node]
	w := &p.queue.All()[0]
	takes := c.handling(w.parcel, w.sends)
	p.used += takes
	p.ends = c.eng.Now() + takes
	c.eng.Schedule(c.self, c.here, p.ends, evProcessed, uint32(node))
}

// processed: a node's processor is done with a parcel. What a target was to send is gone if it has failed since.
func (c *Cluster) processed(node int32) {
	p := &c.processors[node]
	w := p.queue.Pop()
	if !p.queue.Empty() {
		c.process(node)
	}
	switch t := node - int32(len(c.gateways)); {
	case !w.sends:
		c.hears(w.parcel, node)
	case t >= 0 && c.targets[t].fell != w.fell:
		c.over(w.parcel)
	default:
		c.leaves(node, w.parcel)
	}
}

// comesIn: a parcel has come to a node as a whole.
func (c *Cluster) comesIn(i, node int32) {
	if !c.worksFor(node, i, false) {
		c.hears(i, node)
	}
}

// hears: a node has got a parcel, and gives it back if it was the last.
func (c *Cluster) hears(i, node int32) {
	c.deliver(i, node)
	c.looks(node)
	if c.parcels.Items[i].left == 0 {
		c.over(i)
	}
}

// ProcessorTime is for how long processors have worked until a time: those of gateways and those of targets, each sum
// over nodes.
func (c *Cluster) ProcessorTime(at sim.Time) (gateways, targets sim.Time) {
	for node := range c.processors {
		p := &c.processors[node]
		used := p.used
		if !p.queue.Empty() {
			used -= max(0, p.ends-at)
		}
		if node < len(c.gateways) {
			gateways += used
		} else {
			targets += used
		}
	}
	return gateways, targets
}
