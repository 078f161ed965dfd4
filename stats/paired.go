package stats

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/mathext"
)

// Paired is what replicates on common random numbers say of two designs' difference in one figure.
type Paired struct {
	A, B      float64  // means of the two designs
	Effect    Interval // of the mean of b[i]-a[i]
	Deviation float64  // sample standard deviation of the differences
	P         float64  // two-sided p value of Student's t test that the mean difference is 0
}

// PairedT compares two designs by the differences of values that belong together: a[i] and b[i] are from the same seed. Pairs
// that do not differ at all have a p value of 1. Differences that are all the same, and not 0, have no spread to hold the mean
// against; small counts are often so by accident. What is known of them is their sign, and they have the p value of that: AllAlike(n).
func PairedT(a, b []float64, level float64) (Paired, error) {
	if err := checkLevel(level); err != nil {
		return Paired{}, err
	}
	switch {
	case len(a) != len(b):
		return Paired{}, fmt.Errorf("a paired test needs as many values of one design as of the other, there are %d and %d", len(a), len(b))
	case len(a) < 2:
		return Paired{}, fmt.Errorf("a paired test needs at least 2 replicates, there are %d", len(a))
	}
	var first, second, diff Moments
	same := true
	for i := range a {
		d := b[i] - a[i]
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return Paired{}, fmt.Errorf("replicate %d has no difference: the values are %v and %v", i+1, a[i], b[i])
		}
		first.Add(a[i])
		second.Add(b[i])
		diff.Add(d)
		same = same && d == b[0]-a[0]
	}
	n := float64(len(a))
	p := Paired{A: first.Mean(), B: second.Mean(), Deviation: math.Sqrt(diff.SampleVariance())}
	if same {
		p.Deviation = 0 // not what rounding leaves of it
	}
	standardError := p.Deviation / math.Sqrt(n)
	p.Effect = Interval{Mean: diff.Mean(), Half: TQuantile((1+level)/2, len(a)-1) * standardError, Level: level, N: len(a), Batch: 1}
	switch {
	case same && a[0] == b[0]:
		p.Effect.Mean, p.P = 0, 1
	case standardError > 0:
		p.P = TwoSidedT(p.Effect.Mean/standardError, len(a)-1)
	default:
		p.P = AllAlike(len(a))
	}
	return p, nil
}

// AllAlike is the probability that n differences which are as likely up as down all go the same way, 2^(1-n).
func AllAlike(n int) float64 { return math.Ldexp(1, 1-n) }

// TwoSidedT returns the probability that Student's t with so many degrees of freedom is as far from 0 as t or farther:
// I_x(v/2, 1/2) with x = v/(v + t^2), the regularised incomplete beta function. It is rounded to 6 significant digits, for the
// reason that TQuantile is.
func TwoSidedT(t float64, degrees int) float64 {
	v := float64(degrees)
	square := float64(t * t)
	if math.IsInf(square, 1) {
		return 0
	}
	return rounded(mathext.RegIncBeta(v/2, 0.5, v/(v+square)), 6)
}

// rounded keeps so many significant digits: libraries may differ in the last bits from one processor to another, and a
// result's bytes must not.
func rounded(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil {
		panic("stats: a printed number does not parse: " + err.Error())
	}
	return r
}

// MostReplicates is the largest number that ReplicatesToDetect returns.
const MostReplicates = 1_000_000

// ErrTooSmall is what ReplicatesToDetect returns for an effect that MostReplicates would not show.
var ErrTooSmall = errors.New("the effect is too small beside the spread of the differences")

// ReplicatesToDetect returns the smallest number of replicates with which a two-sided paired t test at significance alpha finds
// a true effect of that size with probability power, if the differences have the given standard deviation:
//
//	the least n with  n >= ((t(1-alpha/2, n-1) + t(power, n-1)) deviation / effect)^2
//
// which replaces the noncentral t distribution by a shifted one (Zar, "Biostatistical Analysis", 5th ed., equation 7.10). Two
// are enough for differences without spread.
func ReplicatesToDetect(effect, deviation, alpha, power float64) (int, error) {
	if !(alpha > 0 && alpha < 1 && power > 0 && power < 1) {
		return 0, fmt.Errorf("significance %v and power %v are not both between 0 and 1", alpha, power)
	}
	if deviation == 0 {
		return 2, nil
	}
	ratio := deviation / math.Abs(effect)
	enough := func(n int) bool {
		t := (TQuantile(1-float64(alpha/2), n-1) + TQuantile(power, n-1)) * ratio
		return float64(n) >= float64(t*t)
	}
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) || !enough(MostReplicates) {
		return 0, ErrTooSmall
	}
	low, high := 1, 2 // low is not enough
	for !enough(high) {
		low, high = high, min(2*high, MostReplicates)
	}
	for high-low > 1 {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}
