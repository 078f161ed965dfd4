package flows

import (
	_ "embed" // for the longest of the distributions
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"sync"

	"farflash/internal/spelling"
	"farflash/numeric/units"
)

// Names of the published size distributions. The points are those in traffic_gen of HPCC's repository (commit 9f4be2a),
// which attributes the last two to Alibaba's own measurement of 2019 and to Google's from before 2008.
const (
	WebSearch      = "websearch"       // Alizadeh et al., Data Center TCP, SIGCOMM 2010
	FacebookHadoop = "facebook-hadoop" // Roy et al., Inside the Social Network's (Datacenter) Network, SIGCOMM 2015
	AliStorage2019 = "alistorage-2019" // Li et al., HPCC, SIGCOMM 2019, repository
	GoogleRPC2008  = "googlerpc-2008"  // Li et al., HPCC, SIGCOMM 2019, repository
)

// Names lists the published size distributions.
func Names() []string { return []string{WebSearch, FacebookHadoop, AliStorage2019, GoogleRPC2008} }

// Sizes is a distribution of flow sizes: a published one by name, one size for all, or points.
type Sizes struct {
	// Name is a published distribution: websearch, facebook-hadoop, alistorage-2019 or googlerpc-2008.
	Name string `yaml:"name,omitempty"`
	// Fixed is the size of all flows.
	Fixed units.Bytes `yaml:"fixed,omitempty"`
	// Points are points of the cumulative distribution, which is linear between them. The first has 0%, the last 100%.
	Points []Point `yaml:"points,omitempty"`
}

// Point is a point of a cumulative distribution.
type Point struct {
	// Size is the flow size.
	Size units.Bytes `yaml:"size"`
	// Share is the share of flows that are at most this large.
	Share units.Fraction `yaml:"share"`
}

// Wanted describes the accepted text.
func (Sizes) Wanted() string { return "a size such as 16KiB, or one of " + strings.Join(Names(), ", ") }

// UnmarshalText parses a distribution's name or a size.
func (s *Sizes) UnmarshalText(text []byte) error {
	t := strings.TrimSpace(string(text))
	if t != "" && t[0] >= '0' && t[0] <= '9' {
		fixed, err := units.ParseBytes(t)
		if err == nil {
			*s = Sizes{Fixed: fixed}
		}
		return err
	}
	if err := known(t); err != nil {
		return err
	}
	*s = Sizes{Name: t}
	return nil
}

func known(name string) error {
	for _, n := range Names() {
		if n == name {
			return nil
		}
	}
	if best := spelling.Nearest(name, Names()); best != "" {
		return fmt.Errorf("unknown distribution %q; did you mean %q?", name, best)
	}
	return fmt.Errorf("unknown distribution %q; there are %s", name, strings.Join(Names(), ", "))
}

// Distribution is a cumulative distribution of sizes, linear between its points.
type Distribution struct {
	sizes  []float64 // bytes
	shares []float64 // 0 to 1
	mean   float64
}

// Distribution returns the distribution that s selects, or an error that names the key.
func (s *Sizes) Distribution() (*Distribution, error) {
	set := 0
	for _, is := range []bool{s.Name != "", s.Fixed != 0, s.Points != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return nil, fmt.Errorf("%d of name, fixed and points are set; set one", set)
	case s.Fixed < 0:
		return nil, units.Wrong("fixed", "%d bytes are not possible", int64(s.Fixed))
	case s.Fixed > 0:
		return newDistribution([]float64{float64(s.Fixed), float64(s.Fixed)}, []float64{0, 1}), nil
	case s.Name == "":
		return fromPoints(s.Points)
	}
	if err := known(s.Name); err != nil {
		return nil, units.Within("name", err)
	}
	return published()[s.Name], nil
}

func newDistribution(sizes, shares []float64) *Distribution {
	d := &Distribution{sizes: sizes, shares: shares}
	for i := 1; i < len(sizes); i++ {
		d.mean += float64((sizes[i] + sizes[i-1]) / 2 * (shares[i] - shares[i-1]))
	}
	return d
}

// fromPoints validates a user's points.
func fromPoints(points []Point) (*Distribution, error) {
	if len(points) < 2 {
		return nil, units.Wrong("points", "%d points; a distribution has two or more", len(points))
	}
	var sizes, shares []float64
	for i, p := range points {
		key := fmt.Sprintf("points[%d]", i)
		switch {
		case p.Size < 0:
			return nil, units.Wrong(key+".size", "%d bytes are not possible", int64(p.Size))
		case !(p.Share >= 0 && p.Share <= 1):
			return nil, units.Wrong(key+".share", "%v is not possible; shares are from 0%% to 100%%", p.Share)
		case i == 0 && p.Share != 0:
			return nil, units.Wrong(key+".share",
				"a distribution cannot start at %v; write 0%% for the smallest size", p.Share)
		case i == len(points)-1 && p.Share != 1:
			return nil, units.Wrong(key+".share",
				"a distribution cannot end at %v; write 100%% for the largest size", p.Share)
		case i > 0 && p.Size < points[i-1].Size:
			return nil, units.Wrong(key+".size", "%v is below the previous point, %v; sizes must ascend", p.Size,
				points[i-1].Size)
		case i > 0 && p.Share < points[i-1].Share:
			return nil, units.Wrong(key+".share", "%v is below the previous point, %v; shares must ascend", p.Share,
				points[i-1].Share)
		}
		sizes, shares = append(sizes, float64(p.Size)), append(shares, float64(p.Share))
	}
	if sizes[len(sizes)-1] == 0 {
		return nil, units.Wrong("points", "all flows have 0 bytes")
	}
	return newDistribution(sizes, shares), nil
}

// Mean is the mean size in bytes, before truncation to whole bytes.
func (d *Distribution) Mean() float64 { return d.mean }

// Quantile returns the size that a fraction of flows, from 0 to 1, does not exceed. Like the published generators, it
// truncates sizes to whole bytes, with a minimum of one.
func (d *Distribution) Quantile(share float64) units.Bytes {
	i := sort.SearchFloat64s(d.shares, share)
	i = min(max(i, 1), len(d.shares)-1)
	low, high := d.shares[i-1], d.shares[i]
	size := d.sizes[i]
	if high > low {
		share = min(max(share, low), high)
		size = d.sizes[i-1] + float64((size-d.sizes[i-1])*((share-low)/(high-low)))
	}
	return max(1, units.Bytes(size))
}

// Points returns the distribution's points.
func (d *Distribution) Points() []Point {
	var out []Point
	for i := range d.sizes {
		out = append(out, Point{units.Bytes(d.sizes[i]), units.Fraction(d.shares[i])})
	}
	return out
}

//go:embed googlerpc2008.txt
var googleRPC2008 string

// published returns the named distributions, built once.
var published = sync.OnceValue(func() map[string]*Distribution {
	out := map[string]*Distribution{}
	for name, text := range map[string]string{
		WebSearch: "0 0 10000 15 20000 20 30000 30 50000 40 80000 53 200000 60 1000000 70 2000000 80 5000000 90 " +
			"10000000 97 30000000 100",
		FacebookHadoop: "0 0 100 1 200 2 300 5 350 15 400 20 500 30 600 40 700 50 1000 60 2000 67 7000 70 30000 72 " +
			"50000 82 80000 87 " +
			"120000 90 300000 95 1000000 97.5 2000000 99 10000000 100",
		AliStorage2019: "0 0 4000 22.93 8000 69.21 16000 80.61 32000 90.47 64000 93.53 128000 96.77 256000 97.53 " +
			"2000000 100",
		GoogleRPC2008: googleRPC2008,
	} {
		words := strings.Fields(text)
		sizes, shares := make([]float64, len(words)/2), make([]float64, len(words)/2)
		for i, w := range words {
			x, err := strconv.ParseFloat(w, 64)
			if err != nil {
				panic(fmt.Sprintf("flows: the points of %s: %v", name, err))
			}
			if i%2 == 0 {
				sizes[i/2] = x
			} else {
				shares[i/2] = x / 100
			}
		}
		if n := len(sizes); n < 2 || shares[0] != 0 || shares[n-1] != 1 || math.IsNaN(sizes[0]) {
			panic("flows: the points of " + name + " are not a distribution")
		}
		out[name] = newDistribution(sizes, shares)
	}
	return out
})
