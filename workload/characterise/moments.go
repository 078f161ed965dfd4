package characterise

import (
	"encoding/json"
	"math"
)

// moments accumulates the central moments of a sequence up to the third, and the co-moment of neighbours, about running means.
// Products are rounded before they are added, so that the figures are the same on every machine.
type moments struct {
	n          int64
	mean       float64
	m2, m3     float64
	first      float64
	last       float64
	headMean   float64 // of all values but the last
	tailMean   float64 // of all values but the first
	comoment   float64 // of neighbours about those two
	neighbours int64
}

func (m *moments) add(x float64) {
	if m.n == 0 {
		m.first = x
	} else {
		m.neighbours++
		k := float64(m.neighbours)
		dHead := m.last - m.headMean
		m.headMean += dHead / k
		m.tailMean += (x - m.tailMean) / k
		m.comoment += float64(dHead * (x - m.tailMean))
	}
	m.last = x
	before := float64(m.n)
	m.n++
	n := float64(m.n)
	d := x - m.mean
	dn := d / n
	t := float64(float64(d*dn) * before)
	m.mean += dn
	m.m3 += float64(float64(t*dn)*(n-2)) - float64(3*float64(dn*m.m2))
	m.m2 += t
}

// figure returns the population's figures.
func (m *moments) figure() Figure {
	nan := Number(math.NaN())
	f := Figure{nan, nan, nan, nan}
	if m.n == 0 {
		return f
	}
	n := float64(m.n)
	f.Mean = Number(m.mean)
	if m.mean != 0 {
		f.SCV = Number(m.m2 / n / float64(m.mean*m.mean))
	}
	if m.m2 > 0 {
		sigma := math.Sqrt(m.m2 / n)
		f.Skewness = Number(m.m3 / n / float64(float64(sigma*sigma)*sigma))
		// The co-moment was taken about the means of the two overlapping halves; move it to the common mean.
		shift := float64(float64(m.neighbours) * float64((m.headMean-m.mean)*(m.tailMean-m.mean)))
		f.ACF1 = Number((m.comoment + shift) / m.m2)
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
