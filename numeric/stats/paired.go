package stats

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat/distuv"

	"farflash/numeric/rng"
)

// Paired compares one figure of two designs under common random numbers.
type Paired struct {
	A, B      float64  // means of the two designs; geometric ones if Ratio
	Ratio     bool     // Effect is of logarithms: exp(Effect.Mean) is the ratio of B to A
	Effect    Interval // of the mean of b[i]-a[i], or of ln(b[i]/a[i])
	Deviation float64  // sample standard deviation of the differences or log ratios, as used by the interval
	Degrees   int      // of freedom of Deviation
	Tests     int      // tests that share the error: 1, or 2 for CompareDesigns
	P         float64  // two-sided p value for a mean of 0: Student's t test, combined with signFlips for small counts
}

// CompareDesigns compares two designs by values paired by seed or independent: logarithms if all are positive,
// otherwise differences. It makes a paired test and a t test with Welch's degrees of freedom (Biometrika 34, 1947),
// each at half the error; P and the interval are those of the smaller p value.
func CompareDesigns(a, b []float64, level float64) (Paired, error) {
	// Logarithms, because simulated metrics spread by factors and cannot fall by more than 100 %. One is pairedT, which
	// is stronger when the seeds affect both designs alike. The other is a t test of the difference of means with
	// Welch's degrees of freedom (Biometrika 34, 1947), about twice as many, which matters with few replicates; it uses
	// the deviation of the differences where that is larger, and so is valid unless the seeds affect the designs in
	// opposite ways.
	scale := func(x float64) float64 { return x }
	ratio := len(a) == len(b) && positive(a) && positive(b)
	if ratio {
		scale = rng.Log
	}
	p, err := paired(a, b, level, scale)
	if err != nil {
		return p, err
	}
	if p.Ratio = ratio; ratio {
		p.A, p.B = geometric(a, p.A), geometric(b, p.B)
	}
	p.Tests = 2
	if p.Deviation > 0 {
		deviation, degrees := within(a, b, scale)
		if deviation = math.Max(deviation, p.Deviation); p.test(deviation, degrees) < p.test(p.Deviation, p.Degrees) {
			p.Deviation, p.Degrees = deviation, degrees
		}
		p.P = math.Min(1, 2*p.test(p.Deviation, p.Degrees))
		p.P = math.Max(p.P, counted(a, b))
	}
	p.Effect = p.At(level)
	return p, nil
}

// within returns the standard deviation of the difference of independent values of the two designs, and Welch's degrees
// of freedom.
func within(a, b []float64, scale func(float64) float64) (deviation float64, degrees int) {
	var first, second Moments
	for i := range a {
		first.Add(scale(a[i]))
		second.Add(scale(b[i]))
	}
	v, w := first.sampleVariance(), second.sampleVariance()
	sum := v + w
	if !(sum > 0) {
		return 0, len(a) - 1
	}
	v, w = v/sum, w/sum
	// the factor keeps integers from being rounded down
	return math.Sqrt(sum), int(float64(len(a)-1) / (float64(v*v) + float64(w*w)) * (1 + 1e-9))
}

// test returns the two-sided p value of the mean effect for a given deviation.
func (p *Paired) test(deviation float64, degrees int) float64 {
	return twoSidedT(p.Effect.Mean/(deviation/math.Sqrt(float64(p.Effect.N))), degrees)
}

// counted returns the p value of signFlips for differences of small counts, and 0 for others.
func counted(a, b []float64) float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = b[i] - a[i]
	}
	if !stepped(d) {
		return 0
	}
	return signFlips(d)
}

func positive(xs []float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return !(x > 0) || math.IsInf(x, 0) })
}

// pairedT compares two designs by the differences of paired values: a[i] and b[i] are from the same seed. Pairs without
// any difference have a p value of 1. If all differences are equal and not 0, there is no spread to test the mean
// against, which happens with small counts by chance. Only their sign is then informative, and the p value is that of
// the signs: AllAlike(n).
func pairedT(a, b []float64, level float64) (Paired, error) {
	p, err := paired(a, b, level, func(x float64) float64 { return x })
	if err == nil && p.Deviation > 0 {
		p.P = math.Max(p.test(p.Deviation, p.Degrees), counted(a, b))
	}
	return p, err
}

// paired computes the differences of a and b on a scale; it sets P only if they have no spread.
func paired(a, b []float64, level float64, scale func(float64) float64) (Paired, error) {
	if err := checkLevel(level); err != nil {
		return Paired{}, err
	}
	switch {
	case len(a) != len(b):
		return Paired{}, fmt.Errorf(
			"a paired test needs equally many values of both designs, got %d and %d", len(a), len(b))
	case len(a) < 2:
		return Paired{}, fmt.Errorf("a paired test needs at least 2 replicates, got %d", len(a))
	}
	var first, second, diff Moments
	low, high := math.Inf(1), math.Inf(-1)
	for i := range a {
		x, y := scale(a[i]), scale(b[i])
		d := y - x
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return Paired{}, fmt.Errorf("replicate %d: the difference of %v and %v is not a finite number", i+1, a[i], b[i])
		}
		first.Add(x)
		second.Add(y)
		diff.Add(d)
		low, high = math.Min(low, d), math.Max(high, d)
	}
	p := Paired{A: first.Mean(), B: second.Mean(), Deviation: math.Sqrt(diff.sampleVariance()), Degrees: len(a) - 1,
		Tests: 1}
	p.Effect = Interval{Mean: diff.Mean(), N: len(a), Batch: 1}
	if high-low <= 1e-12*math.Max(math.Abs(low), math.Abs(high)) {
		p.Deviation, p.Effect.Mean = 0, low // the spread is rounding error only
		if p.P = AllAlike(len(a)); low == 0 {
			p.P = 1
		}
	}
	p.Effect = p.At(level)
	return p, nil
}

// geometric returns the geometric mean of values with the given mean logarithm; exact if all values are equal.
func geometric(xs []float64, logs float64) float64 {
	if slices.Min(xs) == slices.Max(xs) {
		return xs[0]
	}
	return rng.Exp(logs)
}

// At returns the interval of the effect at another level.
func (p *Paired) At(level float64) Interval {
	i := p.Effect
	i.Level, i.Half = level, 0
	if p.Deviation > 0 {
		i.Half = TQuantile(1-(1-level)/float64(2*p.Tests), p.Degrees) * p.Deviation / math.Sqrt(float64(i.N))
	}
	return i
}

// AllAlike returns 2^(1-n), the probability that n differences up or down at random have one sign.
func AllAlike(n int) float64 { return math.Ldexp(1, 1-n) }

// mostSteps is the largest difference, in steps, that counts as a small count.
const mostSteps = 3

// stepped reports whether the differences are small multiples of one step, with ties, as differences of small counts
// are. Those are often nearly all equal by chance, which a t test would mistake for certainty. Values rounded to a few
// digits have many more steps.
func stepped(d []float64) bool {
	var sizes []float64
	for _, x := range d {
		if x != 0 {
			sizes = append(sizes, math.Abs(x))
		}
	}
	if len(sizes) < 2 {
		return false
	}
	slices.Sort(sizes)
	largest := sizes[len(sizes)-1]
	step, tied, before := sizes[0], false, sizes[0]
	for _, x := range sizes[1:] {
		if gap := x - before; gap > 1e-9*largest {
			step = math.Min(step, gap)
		} else {
			tied = true
		}
		before = x
	}
	return tied && largest <= float64(mostSteps*step)*(1+1e-9)
}

// mostFlips bounds the exact enumeration; with more differences the steps no longer matter.
const mostFlips = 20

// signFlips returns the two-sided p value of differences under random signs (Fisher, "The Design of Experiments",
// section 21): the share of sign assignments whose sum is at least as far from 0. It is exact if both signs are equally
// likely. With more than 20 differences it returns 0.
func signFlips(d []float64) float64 {
	if len(d) > mostFlips {
		return 0
	}
	sum, all := 0.0, 0.0
	for _, x := range d {
		sum += x
		all += math.Abs(x)
	}
	least := math.Abs(sum) - float64(1e-9*all)
	signs := slices.Clone(d)
	count := 0
	for k := 1; ; k++ {
		if math.Abs(sum) >= least {
			count++
		}
		if k == 1<<len(d) {
			break
		}
		i := bits.TrailingZeros(uint(k)) // Gray code: the next assignment differs in one sign
		sum -= 2 * signs[i]
		signs[i] = -signs[i]
	}
	return math.Ldexp(float64(count), -len(d))
}

// twoSidedT returns the probability that Student's t with the given degrees of freedom is at least as far from 0 as t:
// I_x(v/2, 1/2) with x = v/(v + t^2), the regularised incomplete beta function. Like TQuantile it is rounded, to 6
// significant digits. It is NaN if t is, or degrees is below 1.
func twoSidedT(t float64, degrees int) float64 {
	if math.IsNaN(t) || degrees < 1 {
		return math.NaN()
	}
	v := float64(degrees)
	square := float64(t * t)
	if math.IsInf(square, 1) {
		return 0
	}
	return rounded(mathext.RegIncBeta(v/2, 0.5, v/(v+square)), 6)
}

// rounded keeps the given number of significant digits, because the last bits of library functions can differ between
// processors, and a result must be byte-identical everywhere.
func rounded(v float64, digits int) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(v, 'e', digits-1, 64), 64)
	if err != nil {
		panic("stats: cannot parse a formatted number: " + err.Error())
	}
	return r
}

// mostReplicates is the largest number that ReplicatesToDetect returns.
const mostReplicates = 1_000_000

// ErrTooSmall is ReplicatesToDetect's error for effects that no reasonable number would detect.
var ErrTooSmall = errors.New("the effect is too small for the spread of the differences")

// ReplicatesToDetect returns the least number of replicates for which a two-sided paired t test at significance alpha
// detects an effect with probability power, if the differences have the given standard deviation (Zar, "Biostatistical
// Analysis", 5th ed., equation 7.10); 2 without spread.
func ReplicatesToDetect(effect, deviation, alpha, power float64) (int, error) {
	// The least n with n >= ((t(1-alpha/2, n-1) + t(power, n-1)) deviation / effect)^2. This approximates the
	// noncentral t distribution by a shifted one.
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
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) || !enough(mostReplicates) {
		return 0, ErrTooSmall
	}
	low, high := 1, 2 // low is too small
	for !enough(high) {
		low, high = high, min(2*high, mostReplicates)
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

// DeviationBound returns the upper confidence bound of the true standard deviation of n values, at a one-sided level:
// deviation sqrt((n-1) / chi2(1-level, n-1)) (Browne, Statistics in Medicine 14(17), 1995), to 9 significant digits. It
// is NaN unless n is at least 2 and level between 0 and 1.
func DeviationBound(deviation float64, n int, level float64) float64 {
	// A number of replicates computed from the 80 % bound has the requested power with a probability of 80 %; computed
	// from the deviation of a small pilot itself, it falls short more often than not.
	if n < 2 || !(level > 0 && level < 1) {
		return math.NaN()
	}
	v := float64(n - 1)
	return rounded(deviation*math.Sqrt(v/distuv.ChiSquared{K: v}.Quantile(1-level)), 9)
}
