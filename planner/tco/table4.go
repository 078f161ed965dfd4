package tco

import (
	"farflash/numeric/rng"
	"fmt"
	"math"
)

// Table4 returns the 16 workloads of minTCO's table 4: sequential ratio of writes, daily writes, peak IOPS in 5
// minutes, write share of the I/Os and working set. They are present from day 0.
func Table4() []Workload {
	rows := []struct {
		name                    string
		s, lambda, peak, rw, ws float64
	}{
		{"mds0", 31.52, 21.04, 207.02, 88.11, 6.43}, {"prn0", 39.13, 131.33, 254.55, 89.21, 32.74},
		{"proj3", 72.06, 7.50, 345.52, 5.18, 14.35},
		{"stg0", 35.92, 43.11, 187.01, 84.81, 13.21}, {"usr0", 28.06, 37.36, 138.28, 59.58, 7.49},
		{"usr2", 46.10, 75.63, 584.50, 18.87, 763.12},
		{"wdv0", 30.78, 20.42, 55.84, 79.92, 3.18}, {"web0", 34.56, 33.35, 249.67, 70.12, 14.91},
		{"hm1", 25.15, 139.40, 298.33, 90.45, 20.16},
		{"hm2", 10.20, 73.12, 77.52, 98.53, 2.28}, {"hm3", 10.21, 86.28, 76.11, 99.86, 1.74},
		{"onl2", 74.41, 15.01, 292.69, 64.25, 3.44},
		{"Fin1", 35.92, 575.94, 218.59, 76.84, 1.08}, {"Fin2", 24.13, 76.60, 159.94, 17.65, 1.11},
		{"Web1", 7.46, 0.95, 355.38, 0.02, 18.37},
		{"Web3", 69.70, 0.18, 245.09, 0.03, 19.21},
	}
	var list []Workload
	for _, r := range rows {
		list = append(list, Workload{Name: r.name, WriteRate: r.lambda, Sequential: r.s / 100, PeakIOPS: r.peak,
			WriteShare: r.rw / 100, WorkingSet: r.ws})
	}
	return list
}

// features is the number of a workload's features. They are on unbounded scales: logarithms of quantities, logits of
// shares.
const features = 5

func featuresOf(w *Workload) [features]float64 {
	logit := func(v float64) float64 { return rng.Log(v / (1 - v)) }
	return [features]float64{logit(w.Sequential), rng.Log(w.WriteRate), rng.Log(w.PeakIOPS), logit(w.WriteShare),
		rng.Log(w.WorkingSet)}
}

// Fit is a joint distribution of workloads' features: normal on the scales of featuresOf, with the sample's means and
// covariances, truncated to the sample's range: a draw with any feature below the sample's minimum or above its maximum
// is repeated. So no draw writes more than the heaviest workload of the sample.
type Fit struct {
	mean      [features]float64
	factor    [features][features]float64 // Cholesky factor of the covariance
	low, high [features]float64
}

// FitWorkloads fits a sample of at least 6 workloads whose shares lie strictly between 0 and 1 and whose quantities
// are positive.
func FitWorkloads(sample []Workload) (*Fit, error) {
	if len(sample) <= features {
		return nil, fmt.Errorf("%d workloads to fit; a fit needs at least %d", len(sample), features+1)
	}
	f := &Fit{}
	var points [][features]float64
	for i := range sample {
		x := featuresOf(&sample[i])
		for k, v := range x {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf(
					"workload %s has a share of 0 or 1, or a quantity of 0; the fit takes logarithms", sample[i].Name)
			}
			if i == 0 {
				f.low[k], f.high[k] = v, v
			}
			f.low[k], f.high[k] = min(f.low[k], v), max(f.high[k], v)
			f.mean[k] += v / float64(len(sample))
		}
		points = append(points, x)
	}
	var c [features][features]float64
	for _, x := range points {
		for a := range features {
			for b := range features {
				c[a][b] += float64((x[a]-f.mean[a])*(x[b]-f.mean[b])) / float64(len(sample)-1)
			}
		}
	}
	for a := range features {
		for b := range a + 1 {
			sum := c[a][b]
			for k := range b {
				sum -= float64(f.factor[a][k] * f.factor[b][k])
			}
			if a == b {
				if !(sum > 0) {
					return nil, fmt.Errorf("the workloads to fit are too alike")
				}
				f.factor[a][a] = math.Sqrt(sum)
			} else {
				f.factor[a][b] = sum / f.factor[b][b]
			}
		}
	}
	return f, nil
}

// Draw returns n workloads that arrive as a Poisson process over the given days, the first on day 0; 0 days: all at
// once.
func (f *Fit) Draw(seed uint64, n int, days float64) []Workload {
	r, at := rng.NewStream(seed, "tco/workloads"), rng.NewStream(seed, "tco/arrivals")
	list := make([]Workload, n)
	now := 0.0
	for i := range list {
		list[i] = f.one(&r)
		list[i].Name = fmt.Sprintf("w%d", i+1)
		list[i].Arrival = now
		now += at.Exp()
	}
	if now = list[n-1].Arrival; now > 0 {
		for i := range list {
			list[i].Arrival *= days / now
		}
	}
	return list
}

func (f *Fit) one(r *rng.Stream) Workload {
	for {
		var z, x [features]float64
		for k := range z {
			z[k] = r.Norm()
		}
		inside := true
		for a := range x {
			x[a] = f.mean[a]
			for k := range a + 1 {
				x[a] += float64(f.factor[a][k] * z[k])
			}
			inside = inside && x[a] >= f.low[a] && x[a] <= f.high[a]
		}
		if inside {
			share := func(v float64) float64 { return 1 / (1 + rng.Exp(-v)) }
			return Workload{Sequential: share(x[0]), WriteRate: rng.Exp(x[1]), PeakIOPS: rng.Exp(x[2]),
				WriteShare: share(x[3]), WorkingSet: rng.Exp(x[4])}
		}
	}
}
