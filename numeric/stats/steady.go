package stats

import (
	"fmt"
	"math"
)

// Cut is the end of a series' warm-up.
type Cut struct {
	Index   int    // the first observation to count; 0 keeps all of them
	Found   bool   // false: the series never settles, or is too short to decide
	Explain string // one sentence for a report
}

// mserBatch is the batch size of MSER-5.
const mserBatch = 5

// WarmUp finds the warm-up of xs by MSER-5: the cut that minimises the standard error of the mean of the rest, over
// batches of five. A minimum in the second half is reported as not found, with an Index of 0. NaNs are skipped.
func WarmUp(xs []float64) Cut {
	batches, starts := fives(xs)
	n := len(batches)
	if n < 4 {
		return Cut{Explain: fmt.Sprintf("%d observations are too few to find a warm-up (MSER-5 needs 20); all are kept", len(xs))}
	}
	best, cut := math.Inf(1), 0
	// Going backwards, update mean and squared deviations of batches[d:] by Welford's method.
	mean, m2 := 0.0, 0.0
	for d := n - 1; d >= 0; d-- {
		k := float64(n - d)
		delta := batches[d] - mean
		mean += delta / k
		m2 += float64(delta * (batches[d] - mean))
		// The last few batches can agree by chance.
		if n-d < min(5, n-1) {
			continue
		}
		if score := m2 / float64(k*k); score <= best {
			best, cut = score, d
		}
	}
	switch {
	case cut > n/2:
		return Cut{Explain: fmt.Sprintf("no steady state within the run: MSER-5 would cut %d of %d observations, "+
			"more than half; all are kept", starts[cut], len(xs))}
	case cut == 0:
		return Cut{Found: true, Explain: fmt.Sprintf("no warm-up: MSER-5 keeps all %d observations", len(xs))}
	}
	return Cut{Index: starts[cut], Found: true,
		Explain: fmt.Sprintf("MSER-5 cuts the first %d of %d observations (%.0f %%)", starts[cut], len(xs),
			100*float64(starts[cut])/float64(len(xs)))}
}

// fives returns the means of successive groups of five numbers and the index at which each group starts. An incomplete
// last group is dropped.
func fives(xs []float64) (means []float64, starts []int) {
	sum, k, start := 0.0, 0, 0
	for i, x := range xs {
		if math.IsNaN(x) {
			continue
		}
		if k == 0 {
			start = i
		}
		sum += x
		if k++; k == mserBatch {
			means = append(means, sum/mserBatch)
			starts = append(starts, start)
			sum, k = 0, 0
		}
	}
	return means, starts
}
