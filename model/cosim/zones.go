package cosim

import (
	"fmt"

	"farflash/block"
	"farflash/numeric/units"
)

// A host keeps commands that change a zone in order, as Linux does with its zone write plugs (6.10): only one write to
// a zone is outstanding, and later ones wait for its completion. Appends need no order among each other and are sent at
// once, but do not pass a command on the zone as a whole. Reads are sent at once. Because the order is enforced by
// completions, it holds whatever is between host and drive. Where a host stands for several initiators, each zone that
// is written without appends belongs to one of them (Router), and so does its plug.

// plugs are the plugs of a namespace's zones.
type plugs struct {
	zones block.Zones
	list  []plug
}

// plug holds a zone's outstanding and waiting commands.
type plug struct {
	waiting list
	shared  int32 // outstanding appends
	alone   bool  // a write, or a command on the zone, is outstanding
}

// plug records whether a flow's namespace is zoned, and allocates its plugs.
func (h *Host) plug(f *flow) {
	dev, ok := h.dev.(block.Zoned)
	if !ok {
		return
	}
	z := dev.Zones(int(f.Namespace))
	if f.zoned = z.Count > 0; !f.zoned {
		return
	}
	for len(h.zones) <= int(f.Namespace) {
		h.zones = append(h.zones, plugs{})
	}
	if p := &h.zones[f.Namespace]; p.list == nil {
		*p = plugs{z, make([]plug, z.Count)}
	}
}

// zonesOf returns the zones of a flow's namespace.
func (h *Host) zonesOf(f *flow) block.Zones {
	if !f.zoned {
		return block.Zones{}
	}
	return h.zones[f.Namespace].zones
}

// plugOf returns the plug that a request must pass, or nil.
func (h *Host) plugOf(x *issued) *plug {
	if x.op != block.Write && !x.op.OfZone() {
		return nil
	}
	p := &h.zones[x.namespace]
	return &p.list[x.offset/p.zones.Size]
}

// mayPass reports whether a request can be sent now: appends alongside other appends, all others alone.
func (p *plug) mayPass(x *issued) bool { return !p.alone && (x.append || p.shared == 0) }

// pass counts a request as outstanding, until leaves.
func (p *plug) pass(x *issued) {
	if x.append {
		p.shared++
	} else {
		p.alone = true
	}
}

// enters lets a request pass its zone's plug, or queues it there and reports false. A request queues behind others even
// if it could pass, so that none is overtaken.
func (h *Host) enters(n int32) bool {
	x := h.live.At(n)
	p := h.plugOf(x)
	if p == nil {
		return true
	}
	if p.waiting.head != 0 || !p.mayPass(x) {
		h.queue(&p.waiting, n)
		return false
	}
	p.pass(x)
	return true
}

// leaves sends the requests at a zone that were waiting for a request that has completed. Several appends can follow at
// once, other commands one by one.
func (h *Host) leaves(x *issued) {
	p := h.plugOf(x)
	if p == nil {
		return
	}
	if x.append {
		p.shared--
	} else {
		p.alone = false
	}
	for p.waiting.head != 0 {
		n := p.waiting.head
		x := h.live.At(n)
		if !p.mayPass(x) {
			return
		}
		p.waiting.head = x.next
		p.pass(x)
		h.send(&h.flows[x.flow], n, x)
	}
}

// plugged returns the number of requests that wait at zones.
func (h *Host) plugged() (n uint64) {
	for i := range h.zones {
		for k := range h.zones[i].list {
			for r := h.zones[i].list[k].waiting.head; r != 0; r = h.live.At(r).next {
				n++
			}
		}
	}
	return n
}

// RefusedError reports a request that the device refused.
type RefusedError struct {
	request        uint64 // counted from 1
	Number         uint64 // its number within its flow, counted from 1
	op             block.Op
	append         bool
	offset, length int64
	status         block.Status
	zones          block.Zones // those of its namespace, if that is zoned
}

func (e *RefusedError) Error() string {
	what := e.op.String()
	if e.append {
		what = "append"
	}
	if e.op.OfZone() {
		what += " of a zone"
	} else {
		what += fmt.Sprintf(" of %v", units.Bytes(e.length))
	}
	text := fmt.Sprintf("request %d (%s at %d): %v", e.request, what, e.offset, e.status)
	z := &e.zones
	if z.Count == 0 {
		return text
	}
	k := e.offset / z.Size
	text += fmt.Sprintf("; zone %d starts at %d and has %v", k, k*z.Size, units.Bytes(z.Capacity))
	switch e.status {
	case block.ZoneInvalidWrite:
		text += ", which are written in order from its start: write at its write pointer, or append"
	case block.ZoneFull, block.ZoneBoundary:
		text += "; reset it, or use another"
	case block.TooManyActive, block.TooManyOpen:
		text += fmt.Sprintf(", and %d zones may be open, %d open or closed: finish or reset one first", z.MaxOpen,
			z.MaxActive)
	case block.Invalid:
		text += ": writes are of whole blocks, appends and zone commands address the start of a zone, and there are " +
			"no trims"
	}
	return text
}

// measures holds the Measure of each operation. Those of zone operations are rarely used, and a Measure is large.
type measures struct {
	all   [block.Flush + 1]Measure
	zoned *[block.Ops - block.Flush - 1]Measure
}

// in returns the Measure in which an operation is recorded.
func (m *measures) in(op block.Op) *Measure {
	if op <= block.Flush {
		return &m.all[op]
	}
	return m.ofZone(op)
}

//go:noinline
func (m *measures) ofZone(op block.Op) *Measure {
	if op >= block.Ops {
		panic(fmt.Sprintf("cosim: Complete of a request of operation %v, which does not exist", op))
	}
	if m.zoned == nil {
		m.zoned = new([block.Ops - block.Flush - 1]Measure)
	}
	return &m.zoned[op-block.Flush-1]
}

// of returns the Measure of an operation for reading: an empty one if the operation did not occur or does not exist.
func (m *measures) of(op block.Op) *Measure {
	if op > block.Flush && (m.zoned == nil || op >= block.Ops) {
		return new(Measure)
	}
	return m.in(op)
}
