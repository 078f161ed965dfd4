package calibrate

import (
	"context"
	"math"
	"slices"
)

// A figure depends on a parameter if it changes by the share sensitive when the parameter is doubled or halved. Two
// parameters are a pair if the cosine between the directions in which they move the figures is at least pair.
const (
	sensitive = 0.02
	pair      = 0.995
)

// identify determines the state of each parameter, and resets those that affect no figure to the preset's value.
func (c *Calibration) identify(ctx context.Context, x []float64, best *valued, limit float64) error {
	moves := func(i int, by float64) (float64, error) {
		y := slices.Clone(x)
		y[i] += by
		v, err := c.at(ctx, y)
		if err != nil {
			return 0, err
		}
		largest := 0.0
		for k, f := range v.figures {
			if c.Measured.Figures[k].weight < 1 {
				continue // for tail percentiles, any change may be chance
			}
			switch b := best.figures[k]; {
			case math.IsNaN(f) && math.IsNaN(b):
			case math.IsNaN(f) || math.IsNaN(b):
				largest = missing
			default:
				largest = math.Max(largest, math.Abs(math.Log(f/b)))
			}
		}
		return largest, nil
	}
	for i := range c.Parameters {
		p := &c.Parameters[i]
		up, err := moves(i, 1)
		if err != nil {
			return err
		}
		down, err := moves(i, -1)
		if err != nil {
			return err
		}
		switch {
		case up < sensitive && down < sensitive:
			p.State = Unidentified
			y := slices.Clone(x)
			y[i] = 0
			v, err := c.at(ctx, y)
			if err != nil {
				return err
			}
			if v.loss <= best.loss+sensitive*sensitive {
				copy(x, y)
				*best = v
			}
		case up < sensitive:
			p.State = AtLeast
		case down < sensitive:
			p.State = AtMost
		case math.Abs(x[i]) > limit-0.1:
			p.State = AtBound
		default:
			p.State = Fitted
		}
	}
	return c.errors(ctx, x, best)
}

// errors computes the standard errors of the fitted parameters, and finds pairs that move all figures alike.
func (c *Calibration) errors(ctx context.Context, x []float64, best *valued) error {
	var of []int
	for i := range c.Parameters {
		if c.Parameters[i].State == Fitted {
			of = append(of, i)
		}
	}
	columns, err := c.slopes(ctx, x, of)
	if err != nil {
		return err
	}
	for k, f := range c.Measured.Figures {
		for i := range columns {
			columns[i][k] *= math.Sqrt(f.weight)
		}
	}
	for a := range of {
		for b := range of {
			if a != b && math.Abs(dot(columns[a], columns[b])) > pair*
				math.Sqrt(dot(columns[a], columns[a])*dot(columns[b], columns[b])) {
				c.Parameters[of[a]].With = c.Parameters[of[b]].Path
			}
		}
	}
	left, n := 0.0, 0
	for k, f := range c.Measured.Figures {
		if !math.IsNaN(best.figures[k]) {
			r := math.Log(best.figures[k] / f.Measured)
			left += float64(f.weight * float64(r*r))
			n++
		}
	}
	if n <= len(of) || len(of) == 0 {
		return nil // as many parameters as figures: no degrees of freedom are left
	}
	for a, v := range inverseDiagonal(columns) {
		c.Parameters[of[a]].Error = math.Sqrt(v * left / float64(n-len(of)))
	}
	return nil
}

// slopes are the derivatives of the figures' logarithms with respect to those of parameters.
func (c *Calibration) slopes(ctx context.Context, x []float64, of []int) ([][]float64, error) {
	const h = 0.1
	var columns [][]float64
	for _, i := range of {
		y := slices.Clone(x)
		y[i] += h
		high, err := c.at(ctx, y)
		if err != nil {
			return nil, err
		}
		y[i] -= 2 * h
		low, err := c.at(ctx, y)
		if err != nil {
			return nil, err
		}
		column := make([]float64, len(c.Measured.Figures))
		for k := range column {
			if d := math.Log(high.figures[k]/low.figures[k]) / (2 * h * math.Ln2); !math.IsNaN(d) {
				column[k] = d
			}
		}
		columns = append(columns, column)
	}
	return columns, nil
}

// descend moves all parameters together in the direction that brings the figures closer to the measurements, as long as
// that helps.
func (c *Calibration) descend(ctx context.Context, x []float64, best *valued,
	better func([]float64) (bool, error)) error {
	all := make([]int, len(x))
	for i := range all {
		all[i] = i
	}
	for range 6 {
		columns, err := c.slopes(ctx, x, all)
		if err != nil {
			return err
		}
		// Huber's weights: beyond the threshold a figure pulls no harder.
		weighted := make([][]float64, len(columns)+1)
		for k, f := range c.Measured.Figures {
			r := math.Log(f.Measured / best.figures[k])
			w := 0.0
			if !math.IsNaN(r) {
				w = math.Sqrt(f.weight * math.Min(1, threshold/math.Max(math.Abs(r), 1e-12)))
			} else {
				r = 0
			}
			for i := range columns {
				weighted[i] = append(weighted[i], w*columns[i][k])
			}
			weighted[len(columns)] = append(weighted[len(columns)], w*r)
		}
		whole := 0.0
		for _, f := range c.Measured.Figures {
			whole += f.weight
		}
		root := math.Sqrt(2*ridge*whole) / math.Ln2
		for i := range columns {
			for j := range columns {
				weighted[j] = append(weighted[j], 0)
			}
			weighted[i][len(weighted[i])-1] = root
			weighted[len(columns)] = append(weighted[len(columns)], -root*x[i]*math.Ln2)
		}
		moved := false
		for _, damping := range []float64{1e-7, 1e-3, 0.1} {
			d := solve(weighted[:len(columns)], weighted[len(columns)], damping)
			y := slices.Clone(x)
			for i := range y {
				y[i] += d[i] / math.Ln2
			}
			if moved, err = better(y); err != nil {
				return err
			}
			if moved {
				break
			}
		}
		if !moved {
			return nil
		}
	}
	return nil
}

// solve returns the damped least-squares solution x, for which columns times x is closest to target.
func solve(columns [][]float64, target []float64, damping float64) []float64 {
	n := len(columns)
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n+1)
		for j := range n {
			m[i][j] = dot(columns[i], columns[j])
		}
		m[i][i] += damping
		m[i][n] = dot(columns[i], target)
	}
	eliminate(m)
	out := make([]float64, n)
	for i := range out {
		out[i] = m[i][n] / m[i][i]
	}
	return out
}

// eliminate diagonalises the left part of m (Gauss-Jordan elimination with partial pivoting); it returns false if the
// matrix is singular.
func eliminate(m [][]float64) bool {
	for k := range m {
		p := k
		for i := k; i < len(m); i++ {
			if math.Abs(m[i][k]) > math.Abs(m[p][k]) {
				p = i
			}
		}
		m[k], m[p] = m[p], m[k]
		if math.Abs(m[k][k]) < 1e-12 {
			return false
		}
		for i := range m {
			if i == k {
				continue
			}
			f := m[i][k] / m[k][k]
			for j := range m[i] {
				m[i][j] -= float64(f * m[k][j])
			}
		}
	}
	return true
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += float64(a[i] * b[i])
	}
	return s
}

// inverseDiagonal is the diagonal of the inverse of the columns' Gram matrix, infinite if that is singular.
func inverseDiagonal(columns [][]float64) []float64 {
	n := len(columns)
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, 2*n)
		for j := range n {
			m[i][j] = dot(columns[i], columns[j])
		}
		m[i][n+i] = 1
	}
	out := make([]float64, n)
	if !eliminate(m) {
		for i := range out {
			out[i] = math.Inf(1)
		}
		return out
	}
	for i := range n {
		out[i] = m[i][n+i] / m[i][i]
	}
	return out
}
