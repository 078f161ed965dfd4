package forest

import (
	"fmt"
	"math"
)

// Linear is a linear regression, or one on all products of inputs up to a degree.
type Linear struct {
	terms  [][]int32 // of each column except the constant: the inputs that are multiplied
	mean   []float64 // of each input, which is subtracted from it
	unit   []float64 // of each input, by which it is divided
	weight [][]float64
}

// FitLinear fits a least-squares regression on the inputs and a constant.
func FitLinear(s *Samples) (*Linear, error) { return FitPolynomial(s, 1) }

// mostTerms limits a polynomial's columns.
const mostTerms = 2000

// FitPolynomial fits a least-squares regression on all products of up to degree inputs, including powers of an input.
// Inputs are standardised first. Of linearly dependent columns, within rounding, one has no weight.
func FitPolynomial(s *Samples, degree int) (*Linear, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if degree < 1 {
		return nil, fmt.Errorf("degree %d is not possible; use 1 or more", degree)
	}
	m := new(Linear)
	m.mean, m.unit = standard(s)
	last := [][]int32{nil}
	for range degree {
		var longer [][]int32
		for _, term := range last {
			first := int32(0)
			if len(term) > 0 {
				first = term[len(term)-1]
			}
			for i := first; i < int32(len(s.Inputs)); i++ {
				longer = append(longer, append(append([]int32(nil), term...), i))
			}
		}
		m.terms = append(m.terms, longer...)
		if last = longer; len(m.terms) > mostTerms {
			return nil, fmt.Errorf("a polynomial of degree %d of %d inputs has more than %d terms", degree,
				len(s.Inputs), mostTerms)
		}
	}
	rows, columns := s.Rows(), len(m.terms)+1
	a := make([][]float64, columns) // by column
	for j := range a {
		a[j] = make([]float64, rows)
	}
	line := make([]float64, columns)
	for row := range rows {
		m.line(s.X(row), line)
		for j, v := range line {
			a[j][row] = v
		}
	}
	b := make([][]float64, len(s.Outputs))
	for k := range b {
		b[k] = make([]float64, rows)
		for row := range rows {
			b[k][row] = s.Y(row)[k]
		}
	}
	m.weight = leastSquares(a, b)
	return m, nil
}

// standard returns the mean of each input and its deviation, which is 1 for a constant input.
func standard(s *Samples) (mean, unit []float64) {
	mean, unit = make([]float64, len(s.Inputs)), make([]float64, len(s.Inputs))
	n := float64(s.Rows())
	for i := range mean {
		for row := range s.Rows() {
			mean[i] += s.X(row)[i]
		}
		mean[i] /= n
		for row := range s.Rows() {
			d := s.X(row)[i] - mean[i]
			unit[i] += float64(d * d)
		}
		if unit[i] = math.Sqrt(unit[i] / n); unit[i] == 0 {
			unit[i] = 1
		}
	}
	return mean, unit
}

// line computes a row of the columns.
func (m *Linear) line(x, to []float64) {
	to[0] = 1
	for j, term := range m.terms {
		v := 1.0
		for _, i := range term {
			v *= (x[i] - m.mean[i]) / m.unit[i]
		}
		to[j+1] = v
	}
}

// Predict implements Model.
func (m *Linear) Predict(x, y []float64) {
	line := make([]float64, len(m.terms)+1)
	m.line(x, line)
	for k, weight := range m.weight {
		sum := 0.0
		for j, v := range line {
			sum += float64(v * weight[j])
		}
		y[k] = sum
	}
}

// leastSquares finds, for each b, the weights of a's columns with the least squared error, by Householder reflections
// with column pivoting (Golub and Van Loan, "Matrix Computations", section 5.4.2). A column whose remainder is below
// 1e-10 of the first has no weight.
func leastSquares(a, b [][]float64) [][]float64 {
	columns, rows := len(a), len(a[0])
	order, diagonal := make([]int, columns), make([]float64, columns)
	for j := range order {
		order[j] = j
	}
	rank := 0
	for ; rank < min(columns, rows); rank++ {
		pick, most := rank, -1.0
		for j := rank; j < columns; j++ {
			if v := dot(a[j][rank:], a[j][rank:]); v > most {
				pick, most = j, v
			}
		}
		a[rank], a[pick] = a[pick], a[rank]
		order[rank], order[pick] = order[pick], order[rank]
		norm := math.Sqrt(most)
		if norm == 0 || rank > 0 && norm < 1e-10*math.Abs(diagonal[0]) {
			break
		}
		v := a[rank][rank:]
		if v[0] > 0 {
			norm = -norm
		}
		diagonal[rank] = norm
		v[0] -= norm
		half := dot(v, v) / 2
		for _, list := range [][][]float64{a[rank+1:], b} {
			for _, c := range list {
				scale := dot(v, c[rank:]) / half
				for i, x := range v {
					c[rank+i] -= float64(scale * x)
				}
			}
		}
	}
	out := make([][]float64, len(b))
	for k := range b {
		out[k] = make([]float64, columns)
		solved := make([]float64, rank)
		for i := rank - 1; i >= 0; i-- {
			sum := b[k][i]
			for j := i + 1; j < rank; j++ {
				sum -= float64(a[j][i] * solved[j])
			}
			solved[i] = sum / diagonal[i]
			out[k][order[i]] = solved[i]
		}
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += float64(v * b[i])
	}
	return sum
}
