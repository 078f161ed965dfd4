package cluster

import (
	"farflash/model/cluster/internal/queue"
	"farflash/numeric/units"
	"farflash/sim"
)

// Processors. A node's processor takes the configured time to send a control message or a frame and to handle one that
// has arrived, and serves these in FIFO order. Data that costs no processor time, as with an adapter that writes to
// memory itself (RDMA), still takes its turn: its arrival is reported through the same completion queue, so no node
// sees data before the message that announces it. With zero times, no processors are simulated.

// Processor is the processing time of a node for messages and frames.
type Processor struct {
	// Message is the time to send a control message, to one node or several, and the time to handle one.
	Message units.Duration
	// Frame is the time to send or handle a frame of data; 0 is a network adapter that does this alone, as with RDMA.
	Frame units.Duration
}

// longestWork is the longest processing time of a message or frame.
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
		"messages need queues on links for queues at processors; use control.queued: true, or leave it out")
}

// work is a parcel to be processed.
type work struct {
	parcel int32
	sends  bool
	fell   int32 // number of failures of the target when it was queued
}

// processor is the processor of a node.
type processor struct {
	queue queue.Queue[work] // the work in service, and the work queued behind it
	used  sim.Time          // service time of all work begun
	ends  sim.Time          // when the current work completes
}

// worksFor queues a parcel at a node's processor. It returns false if the parcel need not wait.
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

// handling returns the processing time of a parcel at a node that sends or has received it. A network without multicast
// costs one send for each receiver.
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

// process starts the next work of a node's processor.
func (c *Cluster) process(node int32) {
	p := &c.processors[node]
	w := &p.queue.All()[0]
	takes := c.handling(w.parcel, w.sends)
	p.used += takes
	p.ends = c.eng.Now() + takes
	c.eng.Schedule(c.self, c.here, p.ends, evProcessed, uint32(node))
}

// processed handles the completion of a processor's work. A send is dropped if its target has failed since.
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

// comesIn handles a parcel that a node has received in full.
func (c *Cluster) comesIn(i, node int32) {
	if !c.worksFor(node, i, false) {
		c.hears(i, node)
	}
}

// hears delivers a parcel to a node, and frees it after the last receiver.
func (c *Cluster) hears(i, node int32) {
	c.deliver(i, node)
	c.looks(node)
	if c.parcels.Items[i].left == 0 {
		c.over(i)
	}
}

// ProcessorTime returns the busy time of processors up to at: the sum over gateways and the sum over targets.
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
