package cosim

import (
	"math"

	"farflash/block"
	"farflash/sim"
)

// mixture is an iteration's arrivals of writes at drives, and their residuals: the network's arrivals minus these. Both
// are in picoseconds, one entry a write in order of jobs.
type mixture struct{ x, residual []float64 }

// update sets the arrivals of writes at drives for the next iteration, from their values x and the network's result
// G(x). SNIS takes G(x).
func (it *Iterative) update(n int) {
	t := &it.Turns[n]
	t.Settled = sim.Forever
	var x, residual []float64
	keep := it.cfg.Acceleration != NoAcceleration
	for i := range it.jobs {
		if it.jobs[i].Command.Op != block.Write {
			continue
		}
		// was is this iteration's SA; is, its ND, is SNIS' SA of the next (section III-C).
		was, is := it.sa[i], it.nd[i]
		// After an iteration without writes at drives, the arrival of every write is new.
		if was != is || it.withoutWrites() {
			t.Changed++
			t.Settled = min(t.Settled, was, is)
		}
		if keep {
			x = append(x, float64(was))
			residual = append(residual, float64(is-was))
		}
	}
	if t.Changed == 0 && it.Fixed < 0 {
		it.Fixed = n
	}
	var next []float64
	switch it.cfg.Acceleration {
	case Relax:
		next = along(x, residual, it.cfg.Relaxation)
	case Aitken:
		next = it.aitken(x, residual)
	case Anderson:
		next = it.anderson(x, residual)
	}
	k := 0
	for i := range it.jobs {
		j := &it.jobs[i]
		if j.Command.Op != block.Write {
			continue
		}
		it.sa[i] = it.nd[i]
		if keep {
			// No write arrives before it was sent. A mix without a usable value is ignored.
			if v := next[k]; math.Abs(v) < 1<<62 {
				it.sa[i] = max(sim.Time(math.Round(v)), j.Arrival)
			}
			k++
		}
	}
}

// along returns x + omega r. Products are converted to float64, here and below, because the compiler could otherwise
// fuse them with the sum and make results depend on the architecture.
func along(x, r []float64, omega float64) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = x[i] + float64(omega*r[i])
	}
	return out
}

// dot returns the inner product.
func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i])
	}
	return sum
}

// aitken relaxes by a share computed from the last two residuals (Irons and Tuck, 1969), limited to the range from 0.1
// to 1. With d = r_n - r_(n-1), omega_n = -omega_(n-1) (r_(n-1) . d) / (d . d).
func (it *Iterative) aitken(x, r []float64) []float64 {
	if len(it.past) > 0 {
		before := it.past[0].residual
		d := make([]float64, len(r))
		for i := range r {
			d[i] = r[i] - before[i]
		}
		if q := dot(d, d); q > 0 {
			it.omega = min(max(-it.omega*dot(before, d)/q, 0.1), 1)
		}
	}
	it.past = []mixture{{x, r}}
	return along(x, r, it.omega)
}

// mixed is the number of earlier iterations that anderson combines with the present one: M in Anderson's paper, which
// leaves it open. More would help a smooth map, which arrivals through a queue are not, and each costs two numbers a
// write.
const mixed = 3

// anderson takes the combination of the last iterations with the smallest residual (Anderson, J. ACM 12(4), 1965):
// least squares over the differences of residuals, by their normal equations. gamma minimises |r - sum gamma_k dr_k|,
// and the result is x + r - sum gamma_k (dx_k + dr_k).
func (it *Iterative) anderson(x, r []float64) []float64 {
	it.past = append(it.past, mixture{x, r})
	if len(it.past) > mixed+1 {
		it.past = it.past[1:]
	}
	m := len(it.past) - 1
	dr, dx := make([][]float64, m), make([][]float64, m)
	for k := range m {
		a, b := &it.past[k], &it.past[k+1]
		dr[k], dx[k] = make([]float64, len(r)), make([]float64, len(r))
		for i := range r {
			dr[k][i] = b.residual[i] - a.residual[i]
			dx[k][i] = b.x[i] - a.x[i]
		}
	}
	var a [mixed][mixed + 1]float64
	for k := range m {
		for l := range m {
			a[k][l] = dot(dr[k], dr[l])
		}
		a[k][k] *= 1 + 1e-10 // so that equal iterations do not divide by zero
		a[k][mixed] = dot(dr[k], r)
	}
	gamma := solve(&a, m)
	out := along(x, r, 1)
	for k := range m {
		for i := range out {
			out[i] -= float64(gamma[k] * (dx[k][i] + dr[k][i]))
		}
	}
	return out
}

// solve solves a system of m equations by elimination; an unknown with a zero pivot is 0.
func solve(a *[mixed][mixed + 1]float64, m int) (x [mixed]float64) {
	for k := range m {
		// The largest pivot of the column limits rounding errors.
		p := k
		for i := k + 1; i < m; i++ {
			if math.Abs(a[i][k]) > math.Abs(a[p][k]) {
				p = i
			}
		}
		a[k], a[p] = a[p], a[k]
		if a[k][k] == 0 {
			continue
		}
		for i := k + 1; i < m; i++ {
			f := a[i][k] / a[k][k]
			for l := k; l <= mixed; l++ {
				a[i][l] -= float64(f * a[k][l])
			}
		}
	}
	for k := m - 1; k >= 0; k-- {
		if a[k][k] == 0 {
			continue
		}
		sum := a[k][mixed]
		for l := k + 1; l < m; l++ {
			sum -= float64(a[k][l] * x[l])
		}
		x[k] = sum / a[k][k]
	}
	return x
}
