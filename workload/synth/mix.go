package synth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"farflash/numeric/rng"
	"farflash/numeric/units"
)

// Mix is a mixture of sizes. "4KiB/60:64KiB/40" lists sizes with their shares in per cent, where sizes without a share
// divide the remainder; "4KiB-64KiB" is all multiples of 4 KiB up to 64 KiB, equally likely.
type Mix string

// mostSizes limits the sizes of a mixture.
const mostSizes = 1 << 14

// mixture draws sizes by their shares.
type mixture struct {
	sizes   []int64
	upTo    []float64 // cumulative shares
	largest int64
	mean    float64
	square  float64
}

// Parts returns the sizes of a mixture and their shares, which sum to 1.
func (m Mix) Parts() (sizes []units.Bytes, shares []float64, err error) {
	if low, high, ok := strings.Cut(string(m), "-"); ok && !strings.ContainsAny(string(m), "/:") {
		a, err := units.ParseBytes(strings.TrimSpace(low))
		if err != nil {
			return nil, nil, err
		}
		b, err := units.ParseBytes(strings.TrimSpace(high))
		switch {
		case err != nil:
			return nil, nil, err
		case a <= 0 || b < a:
			return nil, nil, fmt.Errorf("%q is not a range of sizes; write the smaller one first, as in 4KiB-64KiB",
				string(m))
		case b/a > mostSizes:
			return nil, nil, fmt.Errorf("%q has %d sizes; use at most %d", string(m), b/a, mostSizes)
		}
		for n := a; n <= b; n += a {
			sizes = append(sizes, n)
		}
		for range sizes {
			shares = append(shares, 1/float64(len(sizes)))
		}
		return sizes, shares, nil
	}
	rest, open := 100.0, 0
	for part := range strings.SplitSeq(string(m), ":") {
		text, share, given := strings.Cut(part, "/")
		n, err := units.ParseBytes(strings.TrimSpace(text))
		if err != nil {
			return nil, nil, err
		}
		p := -1.0
		if share = strings.TrimSpace(strings.TrimSuffix(share, "%")); given && share != "" {
			if p, err = strconv.ParseFloat(share, 64); err != nil || !(p >= 0 && p <= 100) {
				return nil, nil, fmt.Errorf("%q is not a share in per cent of sizes of %v; write 0 to 100", share, n)
			}
			rest -= p
		} else {
			open++
		}
		sizes, shares = append(sizes, n), append(shares, p)
	}
	switch {
	case len(sizes) > mostSizes:
		return nil, nil, fmt.Errorf("%d sizes; use at most %d", len(sizes), mostSizes)
	case rest < -1e-9:
		return nil, nil, fmt.Errorf("the shares of %q are %g %% in all; they must not be more than 100", string(m),
			100-rest)
	case open == 0 && rest > 1e-9:
		return nil, nil, fmt.Errorf(
			"the shares of %q are %g %% in all; they must be 100, or leave one out, which gets the rest", string(m),
			100-rest)
	}
	for i, p := range shares {
		if p < 0 {
			p = max(rest, 0) / float64(open)
		}
		shares[i] = p / 100
	}
	return sizes, shares, nil
}

// Mean is the mean size of a mixture, in bytes.
func (m Mix) Mean() (float64, error) {
	sizes, shares, err := m.Parts()
	mean := 0.0
	for i, n := range sizes {
		mean += float64(shares[i] * float64(n))
	}
	return mean, err
}

func newMixture(m Mix) (*mixture, error) {
	sizes, shares, err := m.Parts()
	if err != nil {
		return nil, err
	}
	x := &mixture{}
	sum := 0.0
	for i, n := range sizes {
		if n <= 0 || n%units.Sector != 0 || n > units.GiB {
			return nil, fmt.Errorf("a size of %v is not possible; sizes are multiples of 512B up to 1GiB", n)
		}
		sum += shares[i]
		x.sizes, x.upTo, x.largest = append(x.sizes, int64(n)), append(x.upTo, sum), max(x.largest, int64(n))
		x.mean += float64(shares[i] * float64(n))
		x.square += float64(shares[i] * float64(float64(n)*float64(n)))
	}
	return x, nil
}

// draw returns the size at u in [0, 1).
func (x *mixture) draw(u float64) int64 {
	i, found := slices.BinarySearch(x.upTo, u)
	if found {
		i++ // skip sizes with a share of 0
		for i < len(x.upTo) && x.upTo[i] == u {
			i++
		}
	}
	return x.sizes[min(i, len(x.sizes)-1)]
}

// mixedSizes draws from a mixture.
func mixedSizes(cfg Size, seed uint64, name string) (sizes, error) {
	if cfg.Shape != (Shape{}) || cfg.Granule != 0 || cfg.Min != 0 || cfg.Max != 0 {
		return sizes{}, units.Wrong("mix",
			"mix defines all sizes; leave out kind, scv, skewness, acf1, granule, min and max")
	}
	x, err := newMixture(cfg.Mix)
	if err != nil {
		return sizes{}, units.Wrong("mix", "%v", err)
	}
	return sizes{mix: x, rounding: rng.NewStream(seed, name+"/size/mix"),
		achieved: Achieved{x.mean, x.square/float64(x.mean*x.mean) - 1}}, nil
}
