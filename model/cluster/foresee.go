package cluster

import "farflash/sim"

// A cluster of thousands of nodes does not fit into a processor's cache, and each event reads cache lines that have
// long been evicted. The engine knows the next few events in advance, so foresee touches the lines of all of them
// together, which lets the processor overlap the misses.

// foreseen is the number of nodes from which prefetching pays off; with 1,800 it does not.
const foreseen = 5000

// foresee touches the memory that events are about to read, one level of indirection at a time.
func (c *Cluster) foresee(list []sim.Event) {
	// First the entries that events index directly.
	sum := int64(0)
	for k := range list {
		switch i := list[k].Arg; list[k].Kind {
		case evHead:
			sum += int64(c.parcels.Items[i].cast)
		case evSent:
			sum += int64(c.out[i].parcel)
		case evReceived:
			sum += int64(c.in[i].parcel) + int64(c.out[i].parcel)
		case evDisk:
			sum += int64(c.disks[i].current) + int64(c.books.disks[i].Now)
		}
	}
	for k := range list {
		switch i := list[k].Arg; list[k].Kind {
		case evHead:
			for _, node := range c.to(&c.parcels.Items[i]) {
				sum += int64(c.in[node].parcel)
			}
		case evSent:
			if o := &c.out[i]; !o.control.Empty() {
				sum += c.parcels.Items[o.control.All()[0]].read()
			} else if !o.data.Empty() {
				sum += c.parcels.Items[o.data.All()[0]].read()
			}
		case evReceived:
			sum += c.parcels.Items[c.in[i].parcel].read() + int64(c.bytes[i].Data)
		case evDisk:
			if at := c.disks[i].current; at >= 0 {
				sum += int64(c.jobs.Items[at].takes)
			}
		}
	}
	for k := range list {
		if list[k].Kind != evReceived {
			continue
		}
		node := int32(list[k].Arg)
		sum += int64(c.bus.Chunks[c.parcels.Items[c.in[node].parcel].message.Chunk].ID)
		if t := node - int32(len(c.gateways)); t >= 0 {
			sum += int64(c.disks[t].current) + int64(c.books.disks[t].Now)
			if c.ahead != nil {
				sum += c.ahead.Ahead(t)
			}
		}
	}
	c.read += sum
}

// read touches both cache lines of a parcel.
func (p *parcel) read() int64 { return int64(p.takes) + int64(p.message.A) }
