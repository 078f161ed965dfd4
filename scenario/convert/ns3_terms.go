package convert

import (
	"errors"
	"fmt"
	"math/bits"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// NS3Terms expresses the results of a network's run in the terms of HPCC's ns-3.
type NS3Terms struct {
	// From is the flow files' time at the start of the simulation.
	From    units.Duration
	payload units.Bytes
	header  units.Bytes
	routes  *topo.Routes
}

// NewNS3Terms derives them from a resolved scenario. It reads the topology file that it names.
func NewNS3Terms(resolved string) (*NS3Terms, error) {
	s, err := scenario.Parse(shape.Source{File: "scenario.yaml", Text: []byte(resolved)}, nil)
	switch {
	case err != nil:
		return nil, err
	case s.Fabric == nil:
		return nil, errors.New("it has no network")
	}
	t := &NS3Terms{From: s.Flows[0].From, payload: s.Fabric.Payload, header: s.Fabric.Header}
	for i := range s.Flows {
		if s.Flows[i].From != t.From {
			return nil, fmt.Errorf("flows[%d].from: %v, where flows[0] has %v; a file has one clock",
				i, s.Flows[i].From, t.From)
		}
	}
	g, err := s.Graph()
	if err != nil {
		return nil, err
	}
	t.routes = g.Route(nil)
	return t, nil
}

// Ideal is the completion time in fct.txt of a flow that is alone, in whole nanoseconds: the base round trip, which
// counts one payload without headers and no ACK, plus all packets with their headers at the rate of the slowest link.
// Flow.Ideal is the time that such a flow would actually take.
func (t *NS3Terms) Ideal(src, dst int32, size units.Bytes) units.Duration {
	p, ok := t.routes.Path(src, dst)
	if !ok || p.Rate <= 0 || size <= 0 {
		return 0
	}
	packets := (size + t.payload - 1) / t.payload
	hi, lo := bits.Mul64(uint64(size+packets*t.header), 8*uint64(units.Second/units.Nanosecond))
	ns, _ := bits.Div64(hi, lo, uint64(p.Rate))
	rtt := 2*p.Delay + t.routes.Serialisation(src, dst, t.payload, units.Nanosecond)
	return rtt - rtt%units.Nanosecond + units.Duration(ns)*units.Nanosecond
}
