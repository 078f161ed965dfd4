package characterise

import (
	"encoding/json"
	"math"

	"farflash/numeric/stats"
)

// figureOf returns the population's moments.
func figureOf(m *stats.Moments) Figure {
	nan := Number(math.NaN())
	f := Figure{nan, nan, nan, nan}
	if m.N() == 0 {
		return f
	}
	f.Mean = Number(m.Mean())
	if f.Mean != 0 {
		f.SCV = Number(m.SCV())
	}
	if m.Variance() > 0 {
		f.Skewness = Number(m.Skewness())
		f.ACF1 = Number(m.ACF1())
	}
	return f
}

// MarshalJSON writes null where the number is not finite.
func (n Number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads null as NaN.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}
