package scenario

import (
	"farflash/numeric/units"
	"farflash/workload/mqsimgen"
)

// MQSim is a synthetic flow of the simulator MQSim: the same requests, in the same order, from the same random numbers,
// whatever the trial's seed.
type MQSim struct {
	Reads         units.Fraction // Reads is the share of requests that are reads.
	Addresses     MQSimAddresses // Addresses is how addresses are drawn.
	HotRegion     units.Fraction // HotRegion is the hot share of the working set; hot-cold only.
	WorkingSet    units.Fraction // WorkingSet is the share of the namespace that is used, from its start.
	Align         units.Bytes    // Align is the alignment to which addresses are rounded down. 0 is none.
	Sizes         MQSimSizes     // Sizes is how sizes are drawn.
	Size          units.Bytes    // Size is the mean size.
	SizeDeviation units.Bytes    // SizeDeviation is the standard deviation of sizes; normal only.
	Seed          int32          // Seed is the seed of the flow's random numbers.
	Requests      int64          // Requests is the number of requests, if stop is 0.
	Stop          units.Duration // Stop is when the flow stops issuing requests. 0 is never.
	// Bandwidth is the mean rate of an open loop with exponential times between requests. 0 is a closed loop, whose
	// depth is the item's closed.
	Bandwidth units.ByteRate
}

// MQSimAddresses is one of MQSim's address distributions.
type MQSimAddresses uint8

var mqsimAddresses = units.Names[MQSimAddresses]{"uniform", "streaming", "hot-cold"}

func (a MQSimAddresses) String() string { return mqsimAddresses.Name(a) }

func (a MQSimAddresses) MarshalText() ([]byte, error) { return mqsimAddresses.Marshal(a) }

func (a *MQSimAddresses) UnmarshalText(text []byte) error { return mqsimAddresses.Unmarshal(text, a) }

// MQSimSizes is one of MQSim's size distributions.
type MQSimSizes uint8

var mqsimSizes = units.Names[MQSimSizes]{"fixed", "normal"}

func (s MQSimSizes) String() string { return mqsimSizes.Name(s) }

func (s MQSimSizes) MarshalText() ([]byte, error) { return mqsimSizes.Marshal(s) }

func (s *MQSimSizes) UnmarshalText(text []byte) error { return mqsimSizes.Unmarshal(text, s) }

// defaultMQSim returns a flow of 4 KiB reads over the whole namespace.
func defaultMQSim() MQSim {
	c := mqsimgen.DefaultConfig()
	return MQSim{
		Reads: units.Fraction(c.ReadFraction), WorkingSet: units.Fraction(c.WorkingSet),
		Align: units.Bytes(c.Alignment) * units.Sector,
		Size:  units.Bytes(c.MeanSize) * units.Sector, Seed: c.Seed, Requests: c.Requests,
	}
}

func (m *MQSim) check(l *Load, fail func(key, format string, args ...any)) {
	for _, x := range []struct {
		key  string
		size units.Bytes
	}{{"align", m.Align}, {"size", m.Size}, {"size_deviation", m.SizeDeviation}} {
		if x.size%units.Sector != 0 {
			fail("mqsim."+x.key, "%v is not a multiple of 512B", x.size)
		}
	}
	if m.Bandwidth == 0 && l.Closed == 0 {
		fail("closed", "an MQSim flow without a bandwidth is a closed loop; set the number of requests "+
			"outstanding, such as closed: 16")
	}
	if m.Bandwidth != 0 && l.Closed != 0 {
		fail("mqsim.bandwidth", "a closed loop ignores it; leave out either it or closed")
	}
	if m.Bandwidth == 0 && m.Stop != 0 {
		fail("mqsim.stop", "a closed loop ends at until; leave stop out and set until")
	}
	if m.Stop%units.Nanosecond != 0 {
		fail("mqsim.stop", "%v is not a whole number of nanoseconds", m.Stop)
	}
}
