package scenario

import (
	"fmt"

	"farflash/internal/spelling"
	"farflash/units"
	"farflash/workload"
	"farflash/workload/mqsimgen"
)

// MQSim is a synthetic flow of the simulator MQSim: the same requests, in the same
// order, from the same random numbers. The trial's seed does not change them.
type MQSim struct {
	// Reads is the share of requests that are reads.
	Reads units.Fraction
	// Addresses is how addresses are drawn.
	Addresses MQSimAddresses
	// HotRegion is the hot share of the working set; hot-cold only.
	HotRegion units.Fraction
	// WorkingSet is the share of the namespace that is used, from its beginning on.
	WorkingSet units.Fraction
	// Align rounds addresses down to a multiple of itself; 0 is no alignment.
	Align units.Bytes
	// Sizes is how sizes are drawn.
	Sizes MQSimSizes
	// Size is the mean size.
	Size units.Bytes
	// SizeDeviation is the standard deviation of sizes; normal only.
	SizeDeviation units.Bytes
	// Seed is where the flow's random numbers start.
	Seed int32
	// Requests is how many requests are made; used when stop is 0.
	Requests int64
	// Stop is when no more requests are made; 0 is never.
	Stop units.Duration
	// Bandwidth makes an open loop of exponential inter-arrival times with that mean
	// rate. 0 is a closed loop, whose outstanding requests closed says.
	Bandwidth units.ByteRate
}

// MQSimAddresses is one of MQSim's address distributions.
type MQSimAddresses uint8

var mqsimAddresses = []string{"uniform", "streaming", "hot-cold"}

// MarshalText writes the distribution's name.
func (a MQSimAddresses) MarshalText() ([]byte, error) { return []byte(mqsimAddresses[a]), nil }

// UnmarshalText reads a distribution's name.
func (a *MQSimAddresses) UnmarshalText(text []byte) error {
	return spelling.OneOf(text, mqsimAddresses, a)
}

// MQSimSizes is one of MQSim's size distributions.
type MQSimSizes uint8

var mqsimSizes = []string{"fixed", "normal"}

// MarshalText writes the distribution's name.
func (s MQSimSizes) MarshalText() ([]byte, error) { return []byte(mqsimSizes[s]), nil }

// UnmarshalText reads a distribution's name.
func (s *MQSimSizes) UnmarshalText(text []byte) error { return spelling.OneOf(text, mqsimSizes, s) }

// defaultMQSim is a flow of 4 KiB reads of the whole namespace.
func defaultMQSim() MQSim {
	c := mqsimgen.DefaultConfig()
	return MQSim{
		Reads: units.Fraction(c.ReadFraction), WorkingSet: units.Fraction(c.WorkingSet), Align: units.Bytes(c.Alignment) * units.Sector,
		Size: units.Bytes(c.MeanSize) * units.Sector, Seed: c.Seed, Requests: c.Requests,
	}
}

func (m *MQSim) check(l *Load, fail func(key, format string, args ...any)) {
	for _, x := range []struct {
		key  string
		size units.Bytes
	}{{"align", m.Align}, {"size", m.Size}, {"size_deviation", m.SizeDeviation}} {
		if x.size%units.Sector != 0 {
			fail("mqsim."+x.key, "%v is no multiple of 512B", x.size)
		}
	}
	if m.Bandwidth == 0 && l.Closed == 0 {
		fail("closed", "a flow of MQSim's without a bandwidth is a closed loop; say how many requests are outstanding, such as closed: 16")
	}
	if m.Bandwidth != 0 && l.Closed != 0 {
		fail("mqsim.bandwidth", "a closed loop ignores it; leave out either it or closed")
	}
	if m.Bandwidth == 0 && m.Stop != 0 {
		fail("mqsim.stop", "a closed loop is ended by until; leave stop out and set until")
	}
	if m.Stop%units.Nanosecond != 0 {
		fail("mqsim.stop", "%v is no whole number of nanoseconds", m.Stop)
	}
}

// source returns the flow's requests, with addresses from the namespace's start.
// first is where the namespace lies among all of the drive's sectors, to which
// MQSim's random numbers are scaled.
func (m *MQSim) source(first, sectors int64, until units.Duration) (workload.Source, error) {
	c := mqsimgen.Config{
		ReadFraction: float64(m.Reads), Addresses: mqsimgen.AddressDistribution(m.Addresses), HotFraction: float64(m.HotRegion),
		Aligned: m.Align > 0, Alignment: int64(m.Align / units.Sector), Sizes: mqsimgen.SizeDistribution(m.Sizes),
		MeanSize: int64(m.Size / units.Sector), SizeDeviation: int64(m.SizeDeviation / units.Sector), Seed: m.Seed,
		WorkingSet: float64(m.WorkingSet), Range: mqsimgen.Range{First: first, Last: first + sectors - 1},
		Requests: m.Requests, StopTime: int64(m.Stop / units.Nanosecond),
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
		return nil, err
	}
	return &fromStart{g, first * int64(units.Sector)}, nil
}

// fromStart makes addresses count from a namespace's start.
type fromStart struct {
	src   workload.Source
	start int64
}

// Next implements workload.Source.
func (f *fromStart) Next(r *workload.Record) error {
	if err := f.src.Next(r); err != nil {
		return err
	}
	r.Offset -= f.start
	if r.Offset < 0 {
		return fmt.Errorf("MQSim's alignment moves a request to %d bytes before its flow's first sector, where MQSim fails; use an alignment that divides %d", -r.Offset, f.start)
	}
	return nil
}
