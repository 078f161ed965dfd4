package cc

import (
	"fmt"
	"math"
	"math/bits"

	"farflash/internal/spelling"
	"farflash/sim"
	"farflash/units"
)

// Window names how a rate-based algorithm bounds what is in flight.
type Window uint8

// The windows.
const (
	// WindowNone bounds nothing.
	WindowNone Window = iota
	// WindowBDP is Sender.BDP, whatever the rate (HPCC's ns-3: HAS_WIN 1, VAR_WIN 0).
	WindowBDP
	// WindowScaled is Sender.BDP times rate over line rate, at least one byte
	// (HAS_WIN 1, VAR_WIN 1).
	WindowScaled
	windows
)

var windowNames = []string{"none", "bdp", "scaled"}

// String is the window's name in scenarios.
func (w Window) String() string { return nameOf("window", windowNames, uint8(w)) }

// MarshalText writes the window's name.
func (w Window) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads a window's name.
func (w *Window) UnmarshalText(text []byte) error {
	i, err := indexOf("window", windowNames, text)
	if err == nil {
		*w = Window(i)
	}
	return err
}

// nameOf is names[i], or something readable if there is none.
func nameOf(noun string, names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", noun, i)
}

// indexOf finds a name.
func indexOf(noun string, names []string, text []byte) (int, error) {
	list := ""
	for i, n := range names {
		if n == string(text) {
			return i, nil
		}
		switch {
		case i == 0:
		case i == len(names)-1:
			list += " or "
		default:
			list += ", "
		}
		list += n
	}
	if near := spelling.Nearest(string(text), names); near != "" {
		return 0, fmt.Errorf("%q is no %s; did you mean %q?", text, noun, near)
	}
	return 0, fmt.Errorf("%q is no %s; use %s", text, noun, list)
}

// limits are what rates and windows keep to.
type limits struct {
	min    units.BitRate
	window Window
}

// newLimits checks them; key is the algorithm's, for errors.
func newLimits(key string, min units.BitRate, w Window) (limits, error) {
	if min <= 0 || min > top {
		return limits{}, fmt.Errorf("min_rate: %v is not possible; a queue pair must go on sending, so write for example 100Mbps", min)
	}
	if w >= windows {
		return limits{}, fmt.Errorf("%s.window: %v is not possible; use none, bdp or scaled", key, w)
	}
	return limits{min, w}, nil
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

// positive complains about a quantity that is not above zero.
func positive[T ~int | ~int64 | ~float64](key string, v T) error {
	if !(v > 0) {
		return fmt.Errorf("%s: %v is not possible; it must be above zero", key, v)
	}
	return nil
}

// rate complains about a step that no rate can take.
func rate(key string, r units.BitRate) error {
	if r < 0 || r > top {
		return fmt.Errorf("%s: %v is not possible; it must be zero or more", key, r)
	}
	return nil
}

// part complains about a number that is not above 0 and at most 1.
func part(key string, f units.Fraction) error {
	if !(f > 0 && f <= 1) {
		return fmt.Errorf("%s: %v is not possible; it must be above 0 and at most 1", key, float64(f))
	}
	return nil
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// mtu is the payload of a full packet.
func (s *Sender) mtu() int64 {
	if s.MTU <= 0 {
		return 1000
	}
	return int64(s.MTU)
}
