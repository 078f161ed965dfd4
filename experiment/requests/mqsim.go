package requests

import (
	"farflash/scenario"
	"farflash/units"
	"farflash/workload"
	"farflash/workload/mqsimgen"
)

// mqsimSource returns the requests of a flow of MQSim's, with addresses from the namespace's start.
// first is where the namespace lies among all of the drive's sectors, to which
// MQSim's random numbers are scaled; loose says that its drive takes requests that begin before it.
// last is the last sector of the namespace that the flow is to use.
func mqsimSource(m *scenario.MQSim, first, sectors int64, until units.Duration, loose bool) (src workload.Source, last int64, err error) {
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
	case until > 0:
		// A closed loop that ends by time makes requests until the host asks for no more.
		c.StopTime = 1
	}
	g, err := mqsimgen.New(c)
	if err != nil {
		return nil, 0, err
	}
	return g, g.Last() - first, nil
}
