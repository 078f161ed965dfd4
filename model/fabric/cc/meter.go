package cc

import (
	"math"
	"math/bits"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// Meter is PINT's average utilisation of a port, with the approximate logarithms of a switch's tables, as in HPCC's
// ns-3 (switch-node.cc). The zero Meter has not sent. Each packet that leaves needs Update, with telemetry, or Pass.
type Meter struct {
	at   sim.Time // when the last packet left
	size units.Bytes
	u    float64

	// Cached logarithms of rate and maxRTT.
	rate       units.BitRate
	maxRTT     sim.Time
	logB, logT float64
}

const (
	// logBits is the precision of the logarithm table's input: 16 significant bits.
	logBits = 16
	// logUnit: logarithms are in units of 2^-15, the resolution of a table with 20-bit keys and 20-bit results.
	logUnit = 1 << 15
	// logGiga is log2(1e9) in these units.
	logGiga = 29.897352853986263 * logUnit
)

// utilisation returns the average as of the last Update.
func (m *Meter) utilisation() float64 { return m.u }

// Pass records a packet without telemetry that leaves the port.
func (m *Meter) Pass(now sim.Time, size units.Bytes) { m.at, m.size = now, size }

// Update records a packet that leaves the port at now with queue bytes behind it and returns the port's utilisation,
// averaged over maxRTT whole nanoseconds and encoded. It draws up to five random numbers.
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
	// Queue, bytes and the old average, each with its weight. logB is of bytes per second, so logGiga converts the
	// nanoseconds.
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
	return c.encode(u, r)
}

func log2(x float64) float64 { return rng.Log(x) * (1 / math.Ln2) }

func pow2(x float64) float64 { return rng.Exp(x * math.Ln2) }

// approximateLog returns log2 of x > 0 in units of 2^-15, rounded down. It uses the 16 leading bits of x, rounded up or
// down at random.
func approximateLog(x int64, r *rng.Stream) int64 {
	if n := bits.Len64(uint64(x)); n > logBits {
		mask := int64(1)<<(n-logBits) - 1
		rest := x & mask
		x -= rest
		if rest > int64(r.Uint64()>>33)&mask {
			x += mask + 1
		}
	}
	if x&(x-1) == 0 { // a logarithm just below a whole number must not lose a unit
		return int64(bits.Len64(uint64(x))-1) * logUnit
	}
	return int64(log2(float64(x)) * logUnit)
}
