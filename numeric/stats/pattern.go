package stats

import "math"

// Measures of a pattern in a sequence. A sawtooth, such as the window of a TCP connection, repeats: its values resemble
// those of a period before (autocorrelation), and most of its variance is at one frequency (6/pi^2, 61 %).

// Autocorrelation is the sample autocorrelation of x at lags from 0 to most; 0 everywhere if x is constant.
func Autocorrelation(x []float64, most int) []float64 {
	n := len(x)
	out := make([]float64, min(most+1, n))
	mean := 0.0
	for _, v := range x {
		mean += v / float64(n)
	}
	all := 0.0
	for _, v := range x {
		all += float64((v - mean) * (v - mean))
	}
	if all == 0 {
		return out
	}
	for k := range out {
		sum := 0.0
		for i := k; i < n; i++ {
			sum += float64((x[i] - mean) * (x[i-k] - mean))
		}
		out[k] = sum / all
	}
	return out
}

// Strongest returns the period, up to half of x's length, with the largest share of x's variance, and that share. Of m
// periods of independent values the largest has about ln(m)/m (Fisher, Proc. R. Soc. A 125, 1929).
func Strongest(x []float64) (period, share float64) {
	n := len(x)
	mean := 0.0
	for _, v := range x {
		mean += v / float64(n)
	}
	all, most := 0.0, 0.0
	for _, v := range x {
		all += float64((v - mean) * (v - mean))
	}
	if all == 0 {
		return 0, 0
	}
	for k := 2; k <= n/2; k++ {
		// Goertzel's recurrence: the sum at one frequency with one multiplication per value.
		w := 2 * math.Pi * float64(k) / float64(n)
		c := 2 * math.Cos(w)
		a, b := 0.0, 0.0
		for _, v := range x {
			a, b = float64(c*a)-b+(v-mean), a
		}
		power := float64(a*a) + float64(b*b) - float64(float64(c*a)*b)
		if 2*k == n {
			power /= 2
		}
		if power > most {
			most, period = power, float64(n)/float64(k)
		}
	}
	return period, 2 * most / (float64(n) * all)
}
