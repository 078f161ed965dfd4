package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a two-sided confidence interval of a mean.
type Interval struct {
	Mean  float64
	Half  float64 // half width: the interval is Mean-Half to Mean+Half
	Level float64 // such as 0.95
	N     int     // independent values that it is based on: replicates or batches
	Batch int     // observations per batch; 1 for replicates
}

// Low returns the lower end.
func (i Interval) Low() float64 { return i.Mean - i.Half }

// High returns the upper end.
func (i Interval) High() float64 { return i.Mean + i.Half }

// Relative is the half width as a share of the mean; infinite at mean 0.
func (i Interval) Relative() float64 {
	if i.Half == 0 {
		return 0
	}
	return math.Abs(i.Half / i.Mean)
}

// Replicates returns Student's t interval of the mean of independent values.
func Replicates(xs []float64, level float64) (Interval, error) {
	if err := checkLevel(level); err != nil {
		return Interval{}, err
	}
	if len(xs) < 2 {
		return Interval{}, fmt.Errorf("an interval needs at least 2 replicates, got %d", len(xs))
	}
	return interval(xs, level), nil
}

func interval(xs []float64, level float64) Interval {
	var m Moments
	for _, x := range xs {
		m.Add(x)
	}
	if slices.Min(xs) == slices.Max(xs) { // all values are equal: avoid the rounding errors of the moments
		return Interval{Mean: xs[0], Level: level, N: len(xs), Batch: 1}
	}
	n := float64(m.N())
	half := TQuantile((1+level)/2, len(xs)-1) * math.Sqrt(m.sampleVariance()/n)
	return Interval{Mean: m.Mean(), Half: half, Level: level, N: len(xs), Batch: 1}
}

func checkLevel(level float64) error {
	if !(level > 0 && level < 1) {
		return fmt.Errorf("confidence level %v is not between 0 and 1", level)
	}
	return nil
}

// uncorrelated is the lag-1 autocorrelation of batch means below which a batch counts as long enough. longEnough also
// allows for the autocorrelation that independent means show by chance.
const uncorrelated = 0.1

// batches returns the means of successive batches of the given size that end with the last observation.
func batches(xs []float64, size int) []float64 {
	n := len(xs) / size
	xs = xs[len(xs)-n*size:]
	means := make([]float64, n)
	for b := range means {
		sum := 0.0
		for _, x := range xs[b*size : (b+1)*size] {
			sum += x
		}
		means[b] = sum / float64(size)
	}
	return means
}

// longEnough reports whether the means pass as uncorrelated. The lag-1 autocorrelation of independent means is -1/n on
// average, with a standard deviation of 1/sqrt(n). The means fail only if theirs exceeds that average by 1.28
// deviations (one in ten) and also exceeds 0.1.
func longEnough(means []float64) bool {
	var m Moments
	for _, x := range means {
		m.Add(x)
	}
	n := float64(len(means))
	return m.ACF1() <= math.Max(uncorrelated, 1.28/math.Sqrt(n)-1/n)
}

// TQuantile returns the p quantile of Student's t, rounded to 9 significant digits; NaN unless p is between 0 and 1 and
// degrees at least 1.
func TQuantile(p float64, degrees int) float64 {
	// Rounded because the library's last bits can differ between processors, and a result must be byte-identical
	// everywhere.
	if !(p > 0 && p < 1) || degrees < 1 {
		return math.NaN()
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(degrees)}.Quantile(p)
	return rounded(t, 9)
}
