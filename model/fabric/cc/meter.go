package cc

import (
	"math"
	"math/bits"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Meter is PINT's part in a switch: a port's average utilisation, computed with the
// approximate logarithms that a switch's tables offer, as HPCC's ns-3 does
// (switch-node.cc). The zero Meter is a port that has sent nothing.
//
// Of every packet that leaves the port the network calls either Update, if the packet
// carries telemetry, or Pass, if not.
type Meter struct {
	at   sim.Time // when the last packet left
	size units.Bytes
	u    float64

	// Logarithms of what does not change from packet to packet, and what they are of.
	rate       units.BitRate
	maxRTT     sim.Time
	logB, logT float64
}

const (
	// logBits is the precision of the logarithm table: 16 significant bits go in.
	logBits = 16
	// logUnit: logarithms are in units of 2^-15, what 20-bit keys in a table of 20-bit
	// results leave.
	logUnit = 1 << 15
	// logGiga is log2(1e9) in these units.
	logGiga = 29.897352853986263 * logUnit
)

// Utilisation is the average as of the last Update.
func (m *Meter) Utilisation() float64 { return m.u }

// Pass takes note of a packet without telemetry that leaves the port.
func (m *Meter) Pass(now sim.Time, size units.Bytes) { m.at, m.size = now, size }

// Update takes note of a packet of the given size that leaves the port at now, behind
// which queue bytes wait, and returns the port's utilisation, encoded. The average is
// over maxRTT, the longest round trip there is, in whole nanoseconds. What counts as
// sent in the time since the packet before is that packet, of whatever kind. It draws
// up to five numbers.
func (m *Meter) Update(now sim.Time, size, queue units.Bytes, rate units.BitRate, maxRTT sim.Time, c *Codec,
	r *rng.Stream) uint16 {
	if rate != m.rate || maxRTT != m.maxRTT {
		m.rate, m.maxRTT = rate, maxRTT
		m.logB = log2(float64(rate/8)) * logUnit
		m.logT = log2(float64(maxRTT/units.Nanosecond)) * logUnit
	}
	t := int64(maxRTT / units.Nanosecond)
	dt := min(int64(now/units.Nanosecond)-int64(m.at/units.Nanosecond), t)
	var u float64
	// Queue, bytes and the old average, each with its weight; the bytes per second in
	// logB make nanoseconds of logGiga necessary.
	if q := int64(queue >> 8); q > 0 && dt > 0 {
		x := float64(approximateLog(dt, r)+approximateLog(q, r)) + logGiga - m.logB - float64(2*m.logT)
		u += float64(pow2(x/logUnit) * 256)
	}
	if m.size > 0 {
		u += pow2((float64(approximateLog(int64(m.size), r)) + logGiga - m.logB - m.logT) / logUnit)
	}
	if old := int64(math.Round(m.u * 8192)); t > dt && old > 0 {
		u += float64(pow2((float64(approximateLog(t-dt, r)+approximateLog(old, r))-m.logT)/logUnit) / 8192)
	}
	m.u = u
	m.Pass(now, size)
	return c.Encode(u, r)
}

func log2(x float64) float64 { return rng.Log(x) * (1 / math.Ln2) }

func pow2(x float64) float64 { return rng.Exp(x * math.Ln2) }

// approximateLog is log2 of x > 0 in units of 2^-15, rounded down, of x's 16 leading
// bits; whether those are rounded up is left to chance.
func approximateLog(x int64, r *rng.Stream) int64 {
	if n := bits.Len64(uint64(x)); n > logBits {
		mask := int64(1)<<(n-logBits) - 1
		rest := x & mask
		x -= rest
		if rest > int64(r.Uint64()>>33)&mask {
			x += mask + 1
		}
	}
	if x&(x-1) == 0 { // a logarithm a bit below a whole number must not lose a unit
		return int64(bits.Len64(uint64(x))-1) * logUnit
	}
	return int64(log2(float64(x)) * logUnit)
}
