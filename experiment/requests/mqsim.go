package requests

import (
	"fmt"

	"farflash/cosim"
	"farflash/scenario"
	"farflash/units"
	"farflash/workload"
	"farflash/workload/mqsimgen"
)

// foreseen is how many requests of a flow of MQSim's are looked at before a run: more take longer than a second.
const foreseen = 1 << 24

// mqsimSource returns the requests of a flow of MQSim's, with addresses from the namespace's start.
// first is where the namespace lies among all of the drive's sectors, to which
// MQSim's random numbers are scaled; loose says that its drive takes requests that begin before it or end behind it.
// last is the last sector of the namespace that the flow is to use. What is wrong with a request is found before anything is run.
func mqsimSource(l *scenario.Load, first, sectors int64, until units.Duration, loose bool) (src workload.Source, last int64, err error) {
	m := l.MQSim
	c := mqsimgen.Config{
		ReadFraction: float64(m.Reads), Addresses: mqsimgen.AddressDistribution(m.Addresses), HotFraction: float64(m.HotRegion),
		Aligned: m.Align > 0, Alignment: int64(m.Align / units.Sector), Sizes: mqsimgen.SizeDistribution(m.Sizes),
		MeanSize: int64(m.Size / units.Sector), SizeDeviation: int64(m.SizeDeviation / units.Sector), Seed: m.Seed,
		WorkingSet: float64(m.WorkingSet), Range: mqsimgen.Range{First: first, Last: first + sectors - 1},
		Requests: m.Requests, StopTime: int64(m.Stop / units.Nanosecond), Origin: first, Loose: loose,
	}
	switch {
	case m.Bandwidth > 0:
		c.Mode, c.BytesPerSecond = mqsimgen.Bandwidth, int64(m.Bandwidth)
	case l.Until > 0:
		// A closed loop that ends by time makes requests until the host asks for no more.
		c.StopTime = 1
	}
	g, err := mqsimgen.New(c)
	if err != nil {
		return nil, 0, err
	}
	if last = g.Last() - first; loose || g.Plain() {
		return g, last, nil
	}
	most, n, size := int64(foreseen), uint64(0), sectors*int64(units.Sector)
	if l.Limit > 0 {
		most = min(most, l.Limit)
	}
	return g, last, g.Foresee(most, until, func(r *workload.Record) error {
		switch n++; {
		case r.Size > size:
			return fmt.Errorf("request %d is for %v, more than the namespace's %v", n, units.Bytes(r.Size), units.Bytes(size))
		case l.Addresses == scenario.AddressFold || r.Offset+r.Size <= size:
			return nil
		}
		return &cosim.RangeError{Request: n, Offset: r.Offset, Length: r.Size, Size: size}
	})
}
