package stats

import (
	"fmt"
	"math"
)

// SettlingConfig is the accuracy of a mean at which a run may end.
type SettlingConfig struct {
	precision float64 // the mean must be within this share of the true one, such as 0.05,
	level     float64 // with this probability, such as 0.95
	least     int     // observations before the first look
	growth    float64 // each look has this many times the observations of the previous one
	patience  int     // observations after which the run no longer waits for rare events
}

// DefaultSettlingConfig is 5 % of the mean at 95 %, with looks from 4096 observations on.
func DefaultSettlingConfig() SettlingConfig {
	return SettlingConfig{precision: 0.05, level: 0.95, least: 4096, growth: 1.5, patience: 1 << 20}
}

// Occurrence counts a costly event.
type Occurrence struct {
	What  string // in the plural, such as "reads repeated"
	Times int64
	Last  bool // it cannot happen again
}

// leastOccurrences is the number of times that each event must have happened: the observed spread carries no
// information about events seen a few times or never. With 320 independent events, each of 32 batches has ten, and
// their rate is known to 6 %.
const leastOccurrences = 320

// Settling decides during a run whether the mean of its observations is known accurately enough to end it, following
// Skart (Tafazzoli, Wilson, Lada and Steiger, INFORMS J. on Computing 23(2), 2011). It takes bounded memory, and Add
// does not allocate.
type Settling struct {
	c     SettlingConfig
	means []float64 // of batches of equal size, in order
	size  int       // observations per batch
	sum   float64   // of the current batch
	k     int       // observations in the current batch
	next  int       // observations at the next look
	n     int
	total float64
}

// The most batches kept, and the fewest that an interval is based on.
const (
	keptBatches   = 512
	fewestBatches = 32
)

// A run that ends as soon as an interval looks narrow ends too early: it selects the moment at which its variance is
// underestimated, which in a queue is also when its mean is. The countermeasures, following Skart (Tafazzoli, Wilson,
// Lada and Steiger, INFORMS J. on Computing 23(2), 2011):
//
//   - observations are counted individually, so that the mean is over requests and not over bins of time;
//   - looks are rare, at numbers of observations that grow geometrically, so that only two or three fall near the end;
//     the coverage lost to repeated looks is less than the widening below adds (docs/validation/stats.md lists the
//     shares of runs within the precision);
//   - the interval is based on 32 to 64 batch means that pass as uncorrelated; it is widened for the remaining
//     correlation, as for an autoregression of order one (factor (1+r)/(1-r) on the variance), and for skewness
//     (Johnson's modified t as inverted by Willink, Communications in Statistics 34(3), 2005);
//   - the caller counts costly rare events: until each has happened often enough, the interval is not trusted;
//   - the observations before MSER-5's cut may not shift the overall mean by more than the precision leaves, so that
//     the guarantee applies to the mean that is printed.

// NewSettling panics if the configuration is invalid.
func NewSettling(c SettlingConfig) *Settling {
	if !(c.precision > 0 && c.level > 0 && c.level < 1 && c.growth > 1 && c.least >= 2*fewestBatches) {
		panic(fmt.Sprintf("stats: invalid SettlingConfig: %+v", c))
	}
	return &Settling{c: c, means: make([]float64, 0, keptBatches), size: 1, next: c.least}
}

// Add observes x.
func (s *Settling) Add(x float64) {
	s.n++
	s.total += x
	s.sum += x
	if s.k++; s.k < s.size {
		return
	}
	s.means = append(s.means, s.sum/float64(s.size))
	s.sum, s.k = 0, 0
	if len(s.means) < keptBatches {
		return
	}
	for i := range keptBatches / 2 {
		s.means[i] = (s.means[2*i] + s.means[2*i+1]) / 2
	}
	s.means = s.means[:keptBatches/2]
	s.size *= 2
}

// Due reports whether the next look is due.
func (s *Settling) Due() bool { return s.n >= s.next }

// Verdict is the result of a look.
type Verdict struct {
	Reached  bool
	Hopeless bool // not reached, and waiting is pointless: an event is too rare
	Cut      Cut  // of the warm-up; its Index counts batches
	// of the mean after the cut, at the level of a single look; its N is 0 if there are too few observations
	Interval Interval
	Explain  string // one sentence
}

// Look evaluates the stop rule, when it is due, and schedules the next look.
func (s *Settling) Look(happened ...Occurrence) Verdict {
	s.next = max(int(math.Ceil(float64(s.n)*s.c.growth)), s.n+1)
	return s.Judge(happened...)
}

// Judge is Look for a run that has ended: it does not schedule another look.
func (s *Settling) Judge(happened ...Occurrence) Verdict {
	if s.n < s.c.least {
		return Verdict{Explain: fmt.Sprintf("%d observations are too few; at least %d are needed", s.n, s.c.least)}
	}
	v := Verdict{Cut: WarmUp(s.means)}
	if !v.Cut.Found {
		v.Explain = "no steady state within the run: the mean still changes in its second half"
		return v
	}
	after := s.means[v.Cut.Index:]
	size := len(after) / fewestBatches // leaves 32 to 63 batches
	if size == 0 {
		v.Explain = "too little is left after the warm-up"
		return v
	}
	var correlated bool
	v.Interval, correlated = adjusted(batches(after, size), s.c.level)
	v.Interval.Batch = size * s.size
	off := math.Abs(s.total/float64(s.n) - v.Interval.Mean)
	width := (v.Interval.Half + off) / math.Abs(v.Interval.Mean)
	switch {
	case correlated:
		v.Explain = "the observations are still correlated over the longest batches that fit"
	case v.Interval.Half == 0 && off == 0:
		v.Reached, v.Explain = true, "nothing varies"
	case !(width <= s.c.precision):
		v.Explain = fmt.Sprintf("the mean is known to %.2g %%; %.2g %% is required", 100*width, 100*s.c.precision)
	default:
		v.Reached = true
		v.Explain = fmt.Sprintf("the mean is known to %.2g %% after %d observations", 100*width, s.n)
	}
	for _, x := range happened {
		if v.Reached && x.Times < leastOccurrences {
			v.Reached, v.Hopeless = false, x.Last || s.n >= s.c.patience
			v.Explain = fmt.Sprintf(
				"%s: only %d in %d observations; at least %d are needed to know their part of the mean", x.What,
				x.Times, s.n, leastOccurrences)
		}
	}
	return v
}

// adjusted returns Student's t interval of the mean of batch means, widened for their remaining correlation and
// skewness, and whether they are too correlated for that.
func adjusted(means []float64, level float64) (i Interval, correlated bool) {
	i = interval(means, level)
	var m Moments
	for _, x := range means {
		m.Add(x)
	}
	n := float64(len(means))
	// The correlation of independent means is -1/n on average.
	r := math.Max(0, m.ACF1()+1/n)
	i.Half *= math.Sqrt((1 + r) / (1 - r))
	t := TQuantile((1+level)/2, len(means)-1)
	i.Half = rounded(i.Half*skewed(t, m.Skewness(), n)/t, 9)
	return i, !longEnough(means)
}

// skewed returns the distance of the interval's farther end, on the side of the longer tail, in standard errors, for n
// values with a given skewness and Student's quantile t. It exceeds t, because the cube root is concave.
func skewed(t, skewness, n float64) float64 {
	b := math.Abs(skewness) / (6 * math.Sqrt(n))
	if b < 1e-6 {
		return t
	}
	return math.Abs(math.Cbrt(1-float64(6*b*(t+b)))-1) / (2 * b)
}
