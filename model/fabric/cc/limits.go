package cc

import (
	"math"
	"math/bits"

	"farflash/numeric/units"
	"farflash/sim"
)

// Window names how a rate-based algorithm bounds the data in flight.
type Window uint8

const (
	WindowNone Window = iota // no limit
	WindowBDP                // one bandwidth-delay product (HPCC's ns-3: HAS_WIN 1, VAR_WIN 0)
	// the bandwidth-delay product times rate over line rate, at least one byte (HAS_WIN 1, VAR_WIN 1)
	WindowScaled
	windows
)

var windowNames = units.Names[Window]{"none", "bdp", "scaled"}

func (w Window) String() string { return windowNames.Name(w) }

func (w Window) MarshalText() ([]byte, error) { return windowNames.Marshal(w) }

func (w *Window) UnmarshalText(text []byte) error { return windowNames.Unmarshal(text, w) }

// limits bounds rates and windows.
type limits struct {
	min    units.BitRate
	window Window
}

// bound limits r to the range from the lowest rate to the line rate; the line rate takes precedence.
func (l limits) bound(r units.BitRate, s *Sender) units.BitRate {
	return min(max(r, l.min), s.Line)
}

// set makes r, which must be in bounds, the rate of s, and sets the window accordingly.
func (l limits) set(s *Sender, r units.BitRate) {
	s.Rate = r
	switch l.window {
	case WindowNone:
		s.Window = 0
	case WindowBDP:
		s.Window = s.BDP
	case WindowScaled:
		s.Window = max(1, units.Bytes(mulDiv(int64(s.BDP), int64(r), int64(s.Line))))
	}
}

// start sets s to line rate.
func (l limits) start(s *Sender) {
	s.Wake = sim.Forever
	l.set(s, s.Line)
}

// mulDiv returns a*b/c rounded down, saturated at the greatest int64.
func mulDiv(a, b, c int64) int64 {
	if c <= 0 {
		return a
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64))
}

// top exceeds every rate. Greater values are cut to it, so that integers never overflow.
const top units.BitRate = 1 << 60

// times returns r*f in whole bits per second, rounded towards zero: the reference's rates are integers too. f must not
// be negative.
func times(r units.BitRate, f float64) units.BitRate {
	v := float64(r) * f
	if !(v < float64(top)) {
		return top
	}
	return units.BitRate(v)
}

// over returns r/f in whole bits per second, rounded towards zero; r/0 is top.
func over(r units.BitRate, f float64) units.BitRate {
	v := float64(r) / f
	if !(v < float64(top)) {
		return top
	}
	return units.BitRate(v)
}

// possible reports an invalid lowest rate or invalid settings of the algorithm with the given key.
func possible(key string, minRate units.BitRate, settings interface{ validate() error }) error {
	var f units.Faults
	f.Hold(minRate > 0 && minRate <= top, "min_rate",
		"%v is not possible; a queue pair must continue to send, so use a rate such as 100Mbps", minRate)
	f.Within(key, settings.validate())
	return f.Err()
}

// faults collects errors in an algorithm's settings, with checks for the kinds of quantity that several have.
type faults struct{ units.Faults }

// share checks that v is above 0 and at most 1.
func (f *faults) share(key string, v units.Fraction) {
	f.Hold(v > 0 && v <= 1, key, "%v is not possible; it must be above 0 and at most 1", float64(v))
}

// rate checks that r can be a step of a rate.
func (f *faults) rate(key string, r units.BitRate) {
	f.Hold(r >= 0 && r <= top, key, "%v is not possible; it must be zero or more", r)
}

// interval checks that t can be the period of a repetition.
func (f *faults) interval(key string, t sim.Time) {
	f.Hold(t >= units.Nanosecond && t <= 1000*units.Second, key, "%v is not possible; it must be 1ns to 1000s", t)
}

// short checks that t is between zero and a second.
func (f *faults) short(key string, t sim.Time) {
	f.Hold(t >= 0 && t <= units.Second, key, "%v is not possible; it must be 0s to 1s", t)
}

// count checks that n is not negative.
func (f *faults) count(key string, n int) {
	f.Hold(n >= 0, key, "%d is not possible; it must be zero or more", n)
}

// window checks that w is a known window.
func (f *faults) window(w Window) {
	f.Hold(w < windows, "window", "%v is not possible; use none, bdp or scaled", w)
}

// positive checks that v is above zero.
func positive[T ~int | ~int64 | ~float64](f *faults, key string, v T) {
	f.Hold(v > 0, key, "%v is not possible; it must be above zero", v)
}

// mtu returns the payload of a full packet.
func (s *Sender) mtu() int64 {
	if s.MTU <= 0 {
		return 1000
	}
	return int64(s.MTU)
}
