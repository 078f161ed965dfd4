package forest

import (
	"fmt"
)

// KNN predicts the mean of the nearest rows, by the distance of standardised inputs; ties go to the first row.
type KNN struct {
	k          int
	s          *Samples
	mean, unit []float64
	x          []float64 // standardised
}

// FitKNN stores the samples; the k nearest ones predict.
func FitKNN(s *Samples, k int) (*KNN, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if k < 1 || k > s.Rows() {
		return nil, fmt.Errorf("%d neighbours are not possible with %d rows; use 1 to %d", k, s.Rows(), s.Rows())
	}
	m := &KNN{k: k, s: s}
	m.mean, m.unit = standard(s)
	for row := range s.Rows() {
		for i, v := range s.X(row) {
			m.x = append(m.x, (v-m.mean[i])/m.unit[i])
		}
	}
	return m, nil
}

// neighbour is a row and its squared distance.
type neighbour struct {
	square float64
	row    int
}

// Predict implements Model.
func (m *KNN) Predict(x, y []float64) {
	n := len(m.mean)
	near := make([]neighbour, 0, m.k+1) // the nearest so far, in ascending order of distance
	for row := range m.s.Rows() {
		square := 0.0
		for i, v := range m.x[row*n : row*n+n] {
			d := (x[i]-m.mean[i])/m.unit[i] - v
			square += float64(d * d)
		}
		if len(near) == m.k && square >= near[m.k-1].square {
			continue
		}
		at := len(near)
		near = append(near, neighbour{})
		for ; at > 0 && near[at-1].square > square; at-- {
			near[at] = near[at-1]
		}
		near[at] = neighbour{square, row}
		near = near[:min(len(near), m.k)]
	}
	clear(y[:len(m.s.Outputs)])
	for _, x := range near {
		for k, v := range m.s.Y(x.row) {
			y[k] += v
		}
	}
	for k := range m.s.Outputs {
		y[k] /= float64(m.k)
	}
}
