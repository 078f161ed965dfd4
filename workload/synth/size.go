package synth

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Size is the distribution of request sizes. A quantity alone, such as "44KB", is a constant size.
type Size struct {
	Mean  units.Bytes `yaml:"mean"` // Mean is the mean size of a request.
	Shape `yaml:",inline"`
	// Granule is the unit of which every size is a multiple; 0 is 512 B.
	Granule units.Bytes `yaml:"granule,omitempty"`
	Min     units.Bytes `yaml:"min,omitempty"` // Min is the smallest size; 0 is a granule.
	// Max is the largest size; 0 is 1024 times the mean, at most 1 GiB and the space that is addressed.
	Max units.Bytes `yaml:"max,omitempty"`
	// Mix are sizes and their shares, as fio writes them: "4KiB/60:64KiB/40"; or a range, "4KiB-64KiB", in which all
	// multiples of its lower end are equally likely. It replaces mean, shape and bounds.
	Mix Mix `yaml:"mix,omitempty"`
}

// UnmarshalText parses a constant size.
func (s *Size) UnmarshalText(text []byte) error {
	v, err := units.ParseBytes(string(text))
	if err == nil {
		*s = Size{Mean: v}
	}
	return err
}

// Largest is the largest possible size. It does not cover mixtures.
func (s *Size) Largest() units.Bytes {
	d := s.withDefaults(units.GiB)
	return d.Max
}

// Average is the mean size in bytes, also of a mixture.
func (s *Size) Average() float64 {
	if s.Mix == "" {
		return float64(s.Mean)
	}
	mean, err := s.Mix.Mean()
	if err != nil {
		return 0 // New reports the error
	}
	return mean
}

// sizes draws sizes. A draw is rounded randomly to one of the two neighbouring granules, so that rounding does not
// change the mean, and then clamped; scale compensates for the clamping.
type sizes struct {
	sequence
	rounding rng.Stream
	scale    float64 // bytes
	granule  float64
	min, max float64
	achieved Achieved
	mix      *mixture // nil: a sequence
}

// Achieved are the moments of sizes or times after rounding and clamping.
type Achieved struct {
	Mean float64 // bytes; always as requested
	SCV  float64
}

// withDefaults fills in omitted fields, for requests to a space of that size.
func (s *Size) withDefaults(space units.Bytes) Size {
	d := *s
	if d.Mix != "" {
		return d
	}
	if d.Granule == 0 {
		d.Granule = units.Sector
	}
	if d.Min == 0 {
		d.Min = d.Granule
	}
	if d.Max == 0 && d.Granule > 0 {
		d.Max = min(units.GiB, 1024*min(d.Mean, units.GiB))
		d.Max = max(d.Min, min((d.Max+d.Granule-1)/d.Granule, space/d.Granule)*d.Granule)
	}
	return d
}

func newSizes(cfg Size, seed uint64, name string) (sizes, error) {
	if cfg.Mix != "" {
		return mixedSizes(cfg, seed, name)
	}
	switch {
	case cfg.Mean <= 0:
		return sizes{}, fmt.Errorf("mean size is %v; it must be positive", cfg.Mean)
	case cfg.Granule <= 0 || cfg.Granule%units.Sector != 0:
		return sizes{}, fmt.Errorf("granule is %v; it must be a multiple of 512B", cfg.Granule)
	case cfg.Min < 0 || cfg.Min%cfg.Granule != 0 || cfg.Max%cfg.Granule != 0 || cfg.Min == 0:
		return sizes{}, fmt.Errorf("sizes from %v to %v are not multiples of the granule %v", cfg.Min, cfg.Max,
			cfg.Granule)
	case cfg.Mean < cfg.Min || cfg.Mean > cfg.Max:
		return sizes{}, fmt.Errorf("a mean of %v is not possible with sizes from %v to %v", cfg.Mean, cfg.Min, cfg.Max)
	}
	fitted, err := cfg.fit()
	if err != nil {
		return sizes{}, err
	}
	s := sizes{
		sequence: newSequence(fitted, seed, name+"/size"),
		rounding: rng.NewStream(seed, name+"/size/rounding"),
		granule:  float64(cfg.Granule), min: float64(cfg.Min), max: float64(cfg.Max),
	}
	return s, s.calibrate(float64(cfg.Mean), cfg.Shape)
}

// calibrate finds the scale at which the clamped draws have the requested mean. Random rounding to a neighbouring
// granule does not change the mean, so the mean of a clamped, rounded draw is that of a clamped one: min + E(X-min)+ -
// E(X-max)+, which increases with the scale.
func (s *sizes) calibrate(mean float64, shape Shape) error {
	s.scale = mean
	if s.kind == Constant {
		down := float64(math.Floor(mean/s.granule) * s.granule)
		s.achieved = Achieved{mean, (mean - down) * (down + s.granule - mean) / (mean * mean)}
		return nil
	}
	at := func(scale float64) float64 {
		low, _ := s.beyond(s.min / scale)
		high, _ := s.beyond(s.max / scale)
		return s.min + float64(scale*(low-high))
	}
	low, high := 0.0, mean
	for at(high) < mean {
		if high > mean*1e9 {
			return fmt.Errorf("a mean of %v B with an scv of %v is not possible with sizes clamped to %v..%v B", mean,
				shape.SCV, s.min, s.max)
		}
		high *= 2
	}
	for range 200 {
		middle := low + float64((high-low)/2)
		if middle <= low || middle >= high {
			break
		}
		if at(middle) < mean {
			low = middle
		} else {
			high = middle
		}
	}
	if high <= s.min*1e-6 {
		return fmt.Errorf("a mean of %v B with an scv of %v is not possible with sizes of at least %v B", mean, shape.SCV,
			s.min)
	}
	s.scale = high
	s.achieved = Achieved{mean, s.meanSquare()/(mean*mean) - 1}
	return nil
}

// meanSquare is the mean of the squares of the clamped and rounded draws. With random rounding to the two granules next
// to a draw, the expected square lies on the chord between the two granules' squares. The slope of the chords changes
// by two granules at each granule, so the mean square is a sum of expected excesses over granules. If there are many,
// the last ones, where the excess hardly changes from one to the next, are approximated by an integral.
func (s *sizes) meanSquare() float64 {
	if s.min == s.max {
		return s.min * s.min
	}
	const most = 256
	excess := func(x float64) float64 {
		e, _ := s.beyond(x / s.scale)
		return s.scale * e
	}
	area := func(x float64) float64 { // under the excess, from x on
		e, weighted := s.beyond(x / s.scale)
		return float64(s.scale * s.scale * (weighted - float64(x/s.scale*e)))
	}
	sum := float64(s.min*s.min) + float64((2*s.min+s.granule)*excess(s.min))
	x := s.min + s.granule
	for n := 0; x < s.max && n < most; n++ {
		sum += float64(2 * s.granule * excess(x))
		x += s.granule
	}
	if x < s.max {
		sum += float64(2 * (area(x-float64(s.granule/2)) - area(s.max-float64(s.granule/2))))
	}
	return sum - float64((2*s.max-s.granule)*excess(s.max))
}

// next draws a size in bytes.
func (s *sizes) next() int64 {
	if s.mix != nil {
		return s.mix.draw(s.rounding.Float64())
	}
	granules := math.Floor(float64(s.scale*s.sequence.next())/s.granule + s.rounding.Float64())
	return int64(min(max(granules*s.granule, s.min), s.max))
}
