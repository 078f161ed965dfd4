package cc

import (
	"math"
	"math/bits"

	"farflash/numeric/units"
	"farflash/sim"
)

// Window names how a rate-based algorithm bounds what is in flight.
type Window uint8

// The windows.
const (
	WindowNone Window = iota // no limit
	WindowBDP                // one bandwidth-delay product, whatever the rate (HPCC's ns-3: HAS_WIN 1, VAR_WIN 0)
	// the bandwidth-delay product times rate over line rate, at least one byte (HAS_WIN 1, VAR_WIN 1)
	WindowScaled
	windows
)

var windowNames = units.Names[Window]{"none", "bdp", "scaled"}

// String is the window's name in scenarios.
func (w Window) String() string { return windowNames.Name(w) }

// MarshalText writes the window's name.
func (w Window) MarshalText() ([]byte, error) { return windowNames.Marshal(w) }

// UnmarshalText reads a window's name.
func (w *Window) UnmarshalText(text []byte) error { return windowNames.Unmarshal(text, w) }

// limits are what rates and windows keep to.
type limits struct {
	min    units.BitRate
	window Window
}

// bound puts r between the least rate and the line's, which wins if it is less.
func (l limits) bound(r units.BitRate, s *Sender) units.BitRate {
	return min(max(r, l.min), s.Line)
}

// set makes r, which is in bounds, the rate of s.
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

// start lets s begin at the rate of its line.
func (l limits) start(s *Sender) {
	s.Wake = sim.Forever
	l.set(s, s.Line)
}

// mulDiv is a*b/c rounded down; what is too great is cut.
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

// top is above every rate there is. What exceeds it is cut to it, so that whole
// numbers never overflow.
const top units.BitRate = 1 << 60

// times is r*f in whole bits per second, rounded towards zero: the reference's rates
// are whole numbers too. f is not negative.
func times(r units.BitRate, f float64) units.BitRate {
	v := float64(r) * f
	if !(v < float64(top)) {
		return top
	}
	return units.BitRate(v)
}

// over is r/f in whole bits per second, rounded towards zero; r/0 is top.
func over(r units.BitRate, f float64) units.BitRate {
	v := float64(r) / f
	if !(v < float64(top)) {
		return top
	}
	return units.BitRate(v)
}

// possible says what is wrong with the least rate or with an algorithm's settings, whose key is given.
func possible(key string, minRate units.BitRate, settings interface{ Validate() error }) error {
	var f units.Faults
	f.Hold(minRate > 0 && minRate <= top, "min_rate",
		"%v is not possible; a queue pair must go on sending, so write for example 100Mbps", minRate)
	f.Within(key, settings.Validate())
	return f.Err()
}

// faults are what is wrong with an algorithm's settings, with the kinds of quantity that several have.
type faults struct{ units.Faults }

// share: v is above 0 and at most 1.
func (f *faults) share(key string, v units.Fraction) {
	f.Hold(v > 0 && v <= 1, key, "%v is not possible; it must be above 0 and at most 1", float64(v))
}

// rate: r is a step that a rate can take.
func (f *faults) rate(key string, r units.BitRate) {
	f.Hold(r >= 0 && r <= top, key, "%v is not possible; it must be zero or more", r)
}

// interval: t is a time that can repeat.
func (f *faults) interval(key string, t sim.Time) {
	f.Hold(t >= units.Nanosecond && t <= 1000*units.Second, key, "%v is not possible; it must be 1ns to 1000s", t)
}

// short: t is from nothing to a second.
func (f *faults) short(key string, t sim.Time) {
	f.Hold(t >= 0 && t <= units.Second, key, "%v is not possible; it must be 0s to 1s", t)
}

// count: n is not negative.
func (f *faults) count(key string, n int) {
	f.Hold(n >= 0, key, "%d is not possible; it must be zero or more", n)
}

// window: w is one of them.
func (f *faults) window(w Window) {
	f.Hold(w < windows, "window", "%v is not possible; use none, bdp or scaled", w)
}

// positive: v is above zero.
func positive[T ~int | ~int64 | ~float64](f *faults, key string, v T) {
	f.Hold(v > 0, key, "%v is not possible; it must be above zero", v)
}

// mtu is the payload of a full packet.
func (s *Sender) mtu() int64 {
	if s.MTU <= 0 {
		return 1000
	}
	return int64(s.MTU)
}
