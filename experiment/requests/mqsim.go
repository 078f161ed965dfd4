package requests

import (
	"fmt"

	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/workload"
	"farflash/workload/mqsimgen"
)

// foreseen limits the requests of a flow that are validated before a run: 16 million take about a second.
const foreseen = 1 << 24

// mqsimSource returns the requests of an MQSim flow, with addresses relative to the namespace. first is the namespace's
// first sector in the drive, to which MQSim scales its random numbers; loose is set for a drive that accepts requests
// outside the namespace. last is the last sector that the flow uses. Invalid requests are found before the run.
func mqsimSource(l *scenario.Load, first, sectors int64, until units.Duration, loose bool) (src workload.Source,
	last int64, err error) {
	m := l.MQSim
	c := mqsimgen.Config{
		ReadFraction: float64(m.Reads), Addresses: mqsimgen.AddressDistribution(m.Addresses),
		HotFraction: float64(m.HotRegion),
		Aligned:     m.Align > 0, Alignment: int64(m.Align / units.Sector), Sizes: mqsimgen.SizeDistribution(m.Sizes),
		MeanSize: int64(m.Size / units.Sector), SizeDeviation: int64(m.SizeDeviation / units.Sector), Seed: m.Seed,
		WorkingSet: float64(m.WorkingSet), Range: mqsimgen.Range{First: first, Last: first + sectors - 1},
		Requests: m.Requests, StopTime: int64(m.Stop / units.Nanosecond), Origin: first, Loose: loose,
	}
	switch {
	case m.Bandwidth > 0:
		c.Mode, c.BytesPerSecond = mqsimgen.Bandwidth, int64(m.Bandwidth)
	case l.Until > 0:
		// A closed loop with a time limit generates requests until the host stops asking.
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
			return fmt.Errorf("request %d is for %v, more than the namespace's %v", n, units.Bytes(r.Size),
				units.Bytes(size))
		case l.Addresses == scenario.AddressFold || r.Offset+r.Size <= size:
			return nil
		}
		return &cosim.RangeError{Request: n, Offset: r.Offset, Length: r.Size, Size: size}
	})
}
