package chart

import (
	"math"
	"strconv"
)

// Scale maps numbers to positions on an axis.
type Scale int

// The scales.
const (
	Linear Scale = iota
	Log
	Nines // shares from 0 to below 1, spaced so that 90, 99 and 99.9 % are equally far apart
)

// Axis describes one axis. If Min and Max are both 0, they are chosen from the data.
type Axis struct {
	Label    string
	Unit     Unit
	Scale    Scale
	FromZero bool // a linear axis starts at 0
	Tight    bool // a linear axis ends with the data, not with the next tick
	Min, Max float64
	// Marks are the only ticks, if there are any: the values that were tried, or names in place of numbers. The axis
	// then extends slightly beyond the data and the marks.
	Marks []Mark
	bare  bool // without ticks
}

// Mark is a tick at a chosen position.
type Mark struct {
	At    float64
	Label string
}

// tick is a labelled or (label "") minor line.
type tick struct {
	at    float64
	label string
}

// axis is an Axis with its range and ticks chosen.
type axis struct {
	Axis
	lo, hi float64
	a, b   float64 // pixels of lo and hi
	ticks  []tick
	label  string // with the unit, if the ticks do not carry it
}

// newAxis chooses the range and ticks for values between lo and hi; room is its length in pixels.
func newAxis(c Axis, lo, hi, room float64) axis {
	x := axis{Axis: c, label: c.Label}
	if c.Min != 0 || c.Max != 0 {
		lo, hi = c.Min, c.Max
	}
	switch c.Scale {
	case Log:
		x.log(lo, hi, room)
	case Nines:
		x.nines(hi)
	default:
		x.linear(lo, hi, room)
	}
	switch {
	case x.bare:
		x.ticks = nil
	case len(c.Marks) > 0:
		x.marks(lo, hi)
	}
	return x
}

// marks replaces the ticks by the marks.
func (x *axis) marks(lo, hi float64) {
	x.ticks, x.label = nil, x.Label
	for _, m := range x.Marks {
		x.ticks = append(x.ticks, tick{m.At, m.Label})
		lo, hi = math.Min(lo, m.At), math.Max(hi, m.At)
	}
	switch {
	case x.Scale == Log && lo > 0:
		margin := math.Max(math.Pow(hi/lo, 0.06), 1.05)
		x.lo, x.hi = lo/margin, hi*margin
	case x.Scale == Linear:
		margin := 0.06 * (hi - lo)
		if !(margin > 0) {
			margin = 0.5
		}
		x.lo, x.hi = lo-margin, hi+margin
	}
}

// name formats a value as its mark on the axis, or else with its unit.
func (c Axis) name(v float64) string {
	for _, m := range c.Marks {
		if m.At == v {
			return m.Label
		}
	}
	return c.Unit.Format(v)
}

// place sets the axis' pixels.
func (x *axis) place(a, b float64) { x.a, x.b = a, b }

// at returns the pixel of v. Values below the range of a logarithmic axis are placed at its end.
func (x *axis) at(v float64) float64 {
	share := 0.0
	switch x.Scale {
	case Log:
		if v <= x.lo {
			v = x.lo
		}
		share = math.Log(v/x.lo) / math.Log(x.hi/x.lo)
	case Nines:
		share = nine(v) / x.hi
		share = min(share, 1)
	default:
		share = (v - x.lo) / (x.hi - x.lo)
	}
	return x.a + share*(x.b-x.a)
}

// nine returns the number of nines of a share: 0.9 has one, 0.99 two.
func nine(share float64) float64 {
	if share >= 1 {
		return math.Inf(1)
	}
	return -math.Log10(1 - share)
}

func (x *axis) linear(lo, hi, room float64) {
	if x.FromZero && lo > 0 {
		lo = 0
	}
	// A range below the precision of the numbers would have no ticks.
	if !(hi-lo > 1e-9*math.Max(math.Abs(lo), math.Abs(hi))) {
		switch {
		case lo == 0:
			hi = 1
		case lo > 0:
			lo, hi = 0, lo*1.25
		default:
			lo, hi = lo*1.25, 0
		}
	}
	name, factor := x.Unit.choose(math.Max(math.Abs(lo), math.Abs(hi)))
	if x.Unit == Dollars {
		name += "$"
	} else if x.Unit == PerSecond && name == "" {
		name = "1/s"
	} else if x.Unit == PerSecond {
		name += "/s"
	}
	if name != "" {
		x.label += " (" + name + ")"
	}
	step := niceStep((hi-lo)*factor, room, x.Unit == BinaryByte) / factor
	if x.Unit == Counts {
		step = math.Max(step, 1)
	}
	x.lo, x.hi = math.Floor(lo/step+1e-9)*step, math.Ceil(hi/step-1e-9)*step
	if !(x.hi > x.lo) {
		x.hi = x.lo + step // the range is tiny compared with a step, which is at least 1 for counts
	}
	if x.Tight || x.Min != 0 || x.Max != 0 {
		x.lo, x.hi = lo, hi
	}
	decimals := max(0, int(math.Ceil(-math.Log10(step*factor)-1e-9)))
	for i := math.Ceil(x.lo/step - 1e-9); i*step <= x.hi*(1+1e-12)+step*1e-9; i++ {
		v := i * step
		text := strconv.FormatFloat(v*factor, 'f', decimals, 64)
		if v == 0 {
			text = "0"
		}
		x.ticks = append(x.ticks, tick{v, text})
	}
}

// niceStep returns 1, 2 or 5 times a power of ten (a power of two for binary) that divides span about every 55 pixels.
func niceStep(span, room float64, binary bool) float64 {
	want := span / math.Max(2, room/55)
	if binary {
		return math.Exp2(math.Ceil(math.Log2(want)))
	}
	power := math.Pow(10, math.Floor(math.Log10(want)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*power >= want*0.999 {
			return m * power
		}
	}
	return 10 * power
}

func (x *axis) log(lo, hi, room float64) {
	if !(lo > 0) {
		lo = 1e-3
		if hi > 0 {
			lo = math.Min(lo, hi/10)
		}
	}
	if !(hi > lo) {
		hi = lo * 10
		lo /= 1.5
	}
	if x.Min == 0 && x.Max == 0 {
		// Ends at 1, 2 or 5 times a power of ten, slightly beyond the data.
		lo, hi = roundLog(lo*0.97, false), roundLog(hi*1.03, true)
	}
	x.lo, x.hi = lo, hi
	decades := math.Log10(hi / lo)
	perDecade := room / decades
	for e := math.Floor(math.Log10(lo)) - 1; e <= math.Ceil(math.Log10(hi)); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			label := ""
			switch {
			case m == 1 && perDecade > 45, m == 1 && int(e)%2 == 0,
				(m == 2 || m == 5) && perDecade > 190:
				label = x.Unit.Format(v)
			}
			x.ticks = append(x.ticks, tick{v, label})
		}
	}
}

// roundLog rounds to 1, 2 or 5 times a power of ten.
func roundLog(v float64, up bool) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	steps := []float64{1, 2, 5, 10}
	if up {
		for _, m := range steps {
			if m*power >= v {
				return m * power
			}
		}
		return 10 * power
	}
	best := power
	for _, m := range steps {
		if m*power <= v {
			best = m * power
		}
	}
	return best
}

// nines configures an axis of shares up to hi.
func (x *axis) nines(hi float64) {
	x.hi = math.Min(math.Max(nine(hi), 2), 9)
	x.ticks = append(x.ticks, tick{0, "0 %"}, tick{0.5, "50 %"})
	text := "9"
	for n := 1; float64(n) <= x.hi+1e-9; n++ {
		label := text + "0 %"
		switch {
		case n == 2:
			label = "99 %"
		case n > 2:
			label = "99." + text[2:] + " %"
		}
		for m := 9.0; m > 1; m-- {
			if share := 1 - m*math.Pow(10, float64(-n)); n > 1 && m < 9 && nine(share) < x.hi {
				x.ticks = append(x.ticks, tick{share, ""})
			}
		}
		x.ticks = append(x.ticks, tick{1 - math.Pow(10, float64(-n)), label})
		text += "9"
	}
}

// FormatShare formats a share with as many nines as it needs: "99.95 %".
func FormatShare(share float64) string {
	if share >= 1 {
		return "100 %"
	}
	digits := max(1, int(math.Ceil(nine(share)))-1)
	return strconv.FormatFloat(share*100, 'f', min(digits, 8), 64) + " %"
}
