package peer

import (
	"fmt"
	"io"

	"farflash/numeric/units"
)

// NS3Flow is a flow of either program's flow file. Times are the file's decimal seconds to the nearest picosecond,
// halves up. The reference holds seconds as float64 and truncates them to whole nanoseconds, which may be one less than
// the file says.
type NS3Flow struct {
	Src, Dst  int
	Priority  int    // priority group, 0 to 7
	Port      uint16 // destination port; ns3-rdma draws ports at random, and this is 0
	Bytes     units.Bytes
	Packets   uint32 // ns3-rdma's files count packets of PACKET_PAYLOAD_SIZE; Bytes is then 0
	Start     units.Duration
	Stop      units.Duration // of ns3-rdma's flows: when the sender stops even if packets remain; else 0
	Unlimited bool           // ns3-rdma's TCP flows send until they stop, whatever their number of packets
	Line      int            // of the file
}

// ReadHPCCFlows reads a flow file of HPCC's ns-3: the number of flows, and for each "src dst pg dport bytes start".
// name is used in errors. Nodes are checked against the topology, which may be nil. Start times must not decrease: the
// program starts the flows in file order. An [*NS3SurplusError] accompanies valid flows.
func ReadHPCCFlows(name string, r io.Reader, topology *NS3Topology) ([]NS3Flow, error) {
	const layout = "src dst pg dport bytes start"
	before := units.Duration(0)
	return readFlows(name, r, topology, layout, func(w *words, f *NS3Flow) error {
		port, err := w.number("destination port", 1<<16-1, layout)
		if err != nil {
			return err
		}
		f.Port = uint16(port)
		size, err := w.number("size", 1<<32-1, layout)
		if err != nil {
			return err
		}
		if size == 0 {
			return w.fail(w.last, "size: a flow of 0 bytes never ends")
		}
		f.Bytes = units.Bytes(size)
		if f.Start, err = w.moment("start", units.Second, layout); err != nil {
			return err
		}
		if f.Start < before {
			return w.fail(w.last,
				"start: %v is before the flow above, %v; HPCC's ns-3 needs flows in order of their starts", f.Start,
				before)
		}
		before = f.Start
		return nil
	})
}

// ReadNS3RDMAFlows reads a flow file of ns3-rdma: the number of flows, and for each "src dst pg packets start stop", in
// any order. name is used in errors. Nodes are checked against the topology, which may be nil. An [*NS3SurplusError]
// accompanies valid flows.
func ReadNS3RDMAFlows(name string, r io.Reader, topology *NS3Topology) ([]NS3Flow, error) {
	return readRDMAFlows(name, r, topology, false)
}

// ReadNS3RDMATCPFlows reads a TCP flow file of ns3-rdma. Its lines are like those of a flow file, but the program
// ignores the number of packets and sends until the flow stops.
func ReadNS3RDMATCPFlows(name string, r io.Reader, topology *NS3Topology) ([]NS3Flow, error) {
	return readRDMAFlows(name, r, topology, true)
}

func readRDMAFlows(name string, r io.Reader, topology *NS3Topology, tcp bool) ([]NS3Flow, error) {
	const layout = "src dst pg packets start stop"
	return readFlows(name, r, topology, layout, func(w *words, f *NS3Flow) error {
		n, err := w.number("packets", 1<<32-1, layout)
		if err != nil {
			return err
		}
		if n == 0 && !tcp {
			return w.fail(w.last, "packets: a flow of 0 packets sends nothing")
		}
		f.Packets, f.Unlimited = uint32(n), tcp
		if f.Start, err = w.moment("start", units.Second, layout); err != nil {
			return err
		}
		if f.Stop, err = w.moment("stop", units.Second, layout); err != nil {
			return err
		}
		if f.Stop <= f.Start {
			return w.fail(w.last, "stop: %v is not after the start, %v", f.Stop, f.Start)
		}
		return nil
	})
}

// readFlows reads the part that the layouts share; rest reads the fields after the priority.
func readFlows(name string, r io.Reader, topology *NS3Topology, layout string,
	rest func(*words, *NS3Flow) error) ([]NS3Flow, error) {
	w, err := newWords(name, r)
	if err != nil {
		return nil, err
	}
	n, err := w.count("flow")
	if err != nil {
		return nil, err
	}
	flows := make([]NS3Flow, 0, min(n, 1<<16)) // the count is not validated yet
	for i := range n {
		var f NS3Flow
		v, err := w.begin("flow", i, n, layout)
		if err != nil {
			return nil, err
		}
		f.Line = v.line
		if f.Src, err = host(v.text, topology); err != nil {
			return nil, w.fail(v, "src: %w", err)
		}
		if v, err = w.field("dst", layout); err != nil {
			return nil, err
		}
		if f.Dst, err = host(v.text, topology); err == nil && f.Dst == f.Src {
			err = fmt.Errorf("a flow from host %d to itself", f.Src)
		}
		if err != nil {
			return nil, w.fail(v, "dst: %w", err)
		}
		pg, err := w.number("priority group", 7, layout)
		if err != nil {
			return nil, err
		}
		f.Priority = int(pg)
		if err := rest(w, &f); err != nil {
			return nil, err
		}
		if err := w.end(layout); err != nil {
			return nil, err
		}
		flows = append(flows, f)
	}
	return flows, w.close("flow", n)
}

// host parses the id of a node that a flow can start or end at.
func host(text string, t *NS3Topology) (int, error) {
	most := uint64(ns3MaxNodes - 1)
	if t != nil {
		most = uint64(t.Nodes) - 1
	}
	id, err := whole(text, most)
	if err == nil && t != nil && t.isSwitch[id] {
		err = fmt.Errorf("node %d is a switch; flows are between hosts", id)
	}
	return int(id), err
}
