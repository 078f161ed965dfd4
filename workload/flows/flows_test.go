package flows_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/workload/flows"

	"pgregory.net/rapid"
)

func Example() {
	src, err := flows.New(flows.Config{Incast: &flows.Incast{Fan: 2, Size: units.MB}}, flows.Network{Hosts: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	all, _ := flows.Collect(src)
	slices.SortFunc(all, func(a, b flows.Flow) int { return int(a.Src - b.Src) })
	for _, f := range all {
		fmt.Printf("host %d sends %v to host %d\n", f.Src, f.Size, f.Dst)
	}
	// Output:
	// host 1 sends 1MB to host 0
	// host 2 sends 1MB to host 0
}

func ExampleSizes_Distribution() {
	s := flows.Sizes{Name: flows.WebSearch}
	d, err := s.Distribution()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("mean %.0f B, median %v\n", d.Mean(), d.Quantile(0.5))
	// Output: mean 1711250 B, median 73.076KB
}

var network = flows.Network{Hosts: 16, Links: slices.Repeat([]units.BitRate{100 * units.Gbps}, 16), Seed: 1}

func collect(t testing.TB, cfg flows.Config, n flows.Network) []flows.Flow {
	t.Helper()
	src, err := flows.New(cfg, n)
	if err != nil {
		t.Fatal(err)
	}
	all, err := flows.Collect(src)
	if err != nil {
		t.Fatal(err)
	}
	var f flows.Flow
	for range 2 {
		if err := src.Next(&f); err != io.EOF {
			t.Fatalf("after the end: %v", err)
		}
	}
	for i, f := range all {
		if f.Src == f.Dst || f.Src < 0 || int(f.Src) >= n.Hosts || f.Dst < 0 || int(f.Dst) >= n.Hosts || f.Size < 1 ||
			i > 0 && f.Start < all[i-1].Start {
			t.Fatalf("flow %d: %+v", i, f)
		}
	}
	return all
}

// TestUnequalLinks verifies that a load is a fraction of the total capacity of the links of the participating hosts,
// whichever of them is slow.
func TestUnequalLinks(t *testing.T) {
	const g = units.Gbps
	for _, c := range []struct {
		links []units.BitRate
		hosts []int
		mean  units.BitRate // per participating host
	}{
		{[]units.BitRate{100 * g, 100 * g, 100 * g, 100 * g}, nil, 100 * g},
		{[]units.BitRate{20 * g, 100 * g, 100 * g, 100 * g}, nil, 80 * g},
		{[]units.BitRate{100 * g, 100 * g, 100 * g, 20 * g}, nil, 80 * g},
		{[]units.BitRate{20 * g, 100 * g, 100 * g, 40 * g}, []int{0, 3}, 30 * g},
	} {
		n := len(c.hosts)
		if n == 0 {
			n = len(c.links)
		}
		cfg := flows.Config{Poisson: &flows.Poisson{Load: 0.4, Sizes: flows.Sizes{Fixed: 10 * units.KB},
			Hosts: c.hosts, Duration: 20 * units.Millisecond}}
		all := collect(t, cfg, flows.Network{Hosts: len(c.links), Links: c.links, Seed: 3})
		want := 0.4 * float64(c.mean) * float64(n) * 0.02 / 80_000
		if got := float64(len(all)); math.Abs(got-want) > 4*math.Sqrt(want) {
			t.Errorf("links of %v, hosts %v: %v flows, want %.0f", c.links, c.hosts, got, want)
		}
	}
}

// TestMeans verifies the exact means of the published distributions: websearch worked out by hand, the others with the
// formula of the repository they are from (getAvg).
func TestMeans(t *testing.T) {
	for name, want := range map[string]float64{
		flows.WebSearch: 1711250, flows.FacebookHadoop: 120420.75, flows.AliStorage2019: 40869.8,
		flows.GoogleRPC2008: 2891.62125005,
	} {
		s := flows.Sizes{Name: name}
		d, err := s.Distribution()
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Mean(); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: mean %v, want %v", name, got, want)
		}
		for _, p := range d.Points() {
			if got := d.Quantile(float64(p.Share)); p.Size > 0 && got > p.Size {
				t.Errorf("%s: quantile %v is %v, the point is %v", name, p.Share, got, p.Size)
			}
		}
		if d.Quantile(0) != 1 || d.Quantile(1) != d.Points()[len(d.Points())-1].Size {
			t.Errorf("%s: from %v to %v", name, d.Quantile(0), d.Quantile(1))
		}
	}
}

func TestQuantiles(t *testing.T) {
	s := flows.Sizes{Points: []flows.Point{{Size: 100, Share: 0}, {Size: 200, Share: 0.5}, {Size: 200, Share: 0.75},
		{Size: 1000, Share: 0.75}, {Size: 2000, Share: 1}}}
	d, err := s.Distribution()
	if err != nil {
		t.Fatal(err)
	}
	for share, want := range map[float64]units.Bytes{0: 100, 0.25: 150, 0.5: 200, 0.6: 200, 0.75: 200, 0.875: 1500,
		1: 2000, -1: 100, 2: 2000} {
		if got := d.Quantile(share); got != want {
			t.Errorf("quantile %v = %v, want %v", share, got, want)
		}
	}
	if want := 0.5*150 + 0.25*200 + 0.25*1500; d.Mean() != want {
		t.Errorf("mean %v, want %v", d.Mean(), want)
	}
	fixed := flows.Sizes{Fixed: 4096}
	if d, err = fixed.Distribution(); err != nil || d.Mean() != 4096 || d.Quantile(0.3) != 4096 {
		t.Error(d, err)
	}
}

// TestLoad verifies that flows carry the requested load, that their gaps are exponential, and that hosts are drawn
// uniformly, each within five standard errors.
func TestLoad(t *testing.T) {
	const n = 100000
	for _, load := range []units.Fraction{0.1, 0.8} {
		all := collect(t, flows.Config{Poisson: &flows.Poisson{Load: load,
			Sizes: flows.Sizes{Name: flows.FacebookHadoop}, Flows: n}}, network)
		if len(all) != n {
			t.Fatalf("%d flows", len(all))
		}
		s := flows.Sizes{Name: flows.FacebookHadoop}
		d, err := s.Distribution()
		if err != nil {
			t.Fatal(err)
		}
		var bytes, squares, gaps, gapSquares float64
		var src, dst [16]float64
		last := units.Duration(0)
		for _, f := range all {
			bytes += float64(f.Size)
			squares += float64(f.Size) * float64(f.Size)
			gap := float64(f.Start - last)
			gaps += gap
			gapSquares += gap * gap
			last = f.Start
			src[f.Src]++
			dst[f.Dst]++
		}
		deviation := math.Sqrt(squares/n - bytes/n*bytes/n)
		if got := bytes / n; math.Abs(got-d.Mean()) > 5*deviation/math.Sqrt(n)+1 {
			t.Errorf("mean size %v, want %v", got, d.Mean())
		}
		want := float64(units.Second) * 8 * d.Mean() / (float64(load) * 100e9 * 16)
		if got := gaps / n; math.Abs(got-want) > 5*want/math.Sqrt(n) {
			t.Errorf("load %v: mean gap %v, want %v", load, got, want)
		}
		if scv := gapSquares/n/(gaps/n*gaps/n) - 1; math.Abs(scv-1) > 5*math.Sqrt(8.0/n) {
			t.Errorf("the gaps' squared coefficient of variation is %v", scv)
		}
		for h := range src {
			if e := 5 * math.Sqrt(n/16.0); math.Abs(src[h]-n/16.0) > e || math.Abs(dst[h]-n/16.0) > e {
				t.Errorf("host %d sends %v and receives %v flows of %d", h, src[h], dst[h], n)
			}
		}
	}
}

// TestSampledQuantiles compares drawn sizes with their distribution (Kolmogorov and Smirnov's statistic; 1.95 is
// exceeded once in a thousand).
func TestSampledQuantiles(t *testing.T) {
	const n = 20000
	for _, name := range flows.Names() {
		s := flows.Sizes{Name: name}
		d, err := s.Distribution()
		if err != nil {
			t.Fatal(err)
		}
		all := collect(t, flows.Config{Poisson: &flows.Poisson{Load: 0.5, Sizes: s, Flows: n}}, network)
		var sizes []units.Bytes
		for _, f := range all {
			sizes = append(sizes, f.Size)
		}
		slices.Sort(sizes)
		for q := 0.01; q < 1; q += 0.01 {
			// numbers of draws below the quantile, and not above it
			low, _ := slices.BinarySearch(sizes, d.Quantile(q))
			high, _ := slices.BinarySearch(sizes, d.Quantile(q)+1)
			if e := 1.95 / math.Sqrt(n); float64(low)/n > q+e || float64(high)/n < q-e {
				t.Errorf("%s: of %d draws, %d are below the quantile %.2f and %d not above it", name, n, low, q, high)
			}
		}
	}
}

func TestPoissonStreams(t *testing.T) {
	cfg := func(load units.Fraction) flows.Config {
		return flows.Config{Class: 3, Start: units.Second,
			Poisson: &flows.Poisson{Load: load, Sizes: flows.Sizes{Name: flows.AliStorage2019},
				Duration: units.Millisecond, Hosts: []int{1, 3, 5, 7}}}
	}
	a, b := collect(t, cfg(0.5), network), collect(t, cfg(0.5), network)
	if len(a) < 100 || !reflect.DeepEqual(a, b) {
		t.Errorf("%d flows; the same seed gives others", len(a))
	}
	for _, f := range a {
		if f.Src%2 == 0 || f.Dst%2 == 0 || f.Src > 7 || f.Dst > 7 || f.Class != 3 || f.Start < units.Second ||
			f.Start >= units.Second+units.Millisecond {
			t.Fatalf("%+v", f)
		}
	}
	half := collect(t, cfg(0.25), network)
	for i := range half {
		if half[i].Src != a[i].Src || half[i].Dst != a[i].Dst || half[i].Size != a[i].Size {
			t.Fatalf("the load changes flow %d from %+v to %+v", i, a[i], half[i])
		}
	}
	other := network
	other.Seed = 2
	named := cfg(0.5)
	named.Name = "background"
	if reflect.DeepEqual(a, collect(t, cfg(0.5), other)) || reflect.DeepEqual(a, collect(t, named, network)) {
		t.Error("another seed or name gives the same flows")
	}
}

func TestIncast(t *testing.T) {
	all := collect(t, flows.Config{Class: 2, Start: 5,
		Incast: &flows.Incast{Fan: 3, Size: 100, Rounds: 4, Every: 10, Target: 15, Rotating: true}}, network)
	if len(all) != 12 {
		t.Fatalf("%d flows", len(all))
	}
	for r := range 4 {
		seen := map[int32]bool{}
		for _, f := range all[3*r : 3*r+3] {
			if f.Dst != int32((15+r)%16) || f.Start != units.Duration(5+10*r) || f.Size != 100 || f.Class != 2 ||
				seen[f.Src] {
				t.Errorf("round %d: %+v", r, f)
			}
			seen[f.Src] = true
		}
	}
	if all = collect(t, flows.Config{Incast: &flows.Incast{Fan: 15, Size: 1, Target: 3}}, network); len(all) != 15 {
		t.Errorf("%d flows", len(all))
	}
}

func TestPatterns(t *testing.T) {
	all := collect(t, flows.Config{AllToAll: &flows.AllToAll{Size: 7, Hosts: []int{2, 4, 6}}}, network)
	want := []flows.Flow{{2, 4, 0, 7, 0, 0, 0}, {4, 6, 0, 7, 0, 0, 0}, {6, 2, 0, 7, 0, 0, 0}, {2, 6, 0, 7, 0, 0, 0},
		{4, 2, 0, 7, 0, 0, 0}, {6, 4, 0, 7, 0, 0, 0}}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%+v", all)
	}
	all = collect(t, flows.Config{Permutation: &flows.Permutation{Size: 7}}, network)
	var in [16]int
	for i, f := range all {
		in[f.Dst]++
		if int(f.Src) != i {
			t.Errorf("%+v", f)
		}
	}
	if in != [16]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1} {
		t.Error(in)
	}
	all = collect(t, flows.Config{Start: 10,
		List: []flows.Entry{{Src: 1, Dst: 0, Size: 5, Start: 3}, {Src: 2, Dst: 0, Size: 6, Class: 7},
			{Src: 3, Dst: 0, Size: 7}}}, network)
	want = []flows.Flow{{2, 0, 7, 6, 10, 0, 0}, {3, 0, 0, 7, 10, 0, 0}, {1, 0, 0, 5, 13, 0, 0}}
	if !reflect.DeepEqual(all, want) {
		t.Errorf("%+v", all)
	}
}

// TestMerge verifies that a merge equals sorting all flows by start and source.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sources []flows.Source
		var want []flows.Flow
		for i := range rapid.IntRange(0, 5).Draw(t, "sources") {
			var own []flows.Flow
			for _, s := range rapid.SliceOfN(rapid.Int64Range(0, 9), 0, 9).Draw(t, "starts") {
				own = append(own, flows.Flow{Src: int32(i), Dst: int32(len(own)), Start: units.Duration(s)})
			}
			flows.Sort(own)
			sources = append(sources, flows.Slice(own))
			want = append(want, own...)
		}
		flows.Sort(want)
		got, err := flows.Collect(flows.Merge(sources...))
		if err != nil || len(got) != len(want) || len(got) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, %v, want %v", got, err, want)
		}
	})
}

// failing yields one flow, then an error.
type failing struct{ n int }

var errFailing = errors.New("failing")

func (f *failing) Next(flow *flows.Flow) error {
	if f.n--; f.n < 0 {
		return errFailing
	}
	*flow = flows.Flow{}
	return nil
}

func TestMergeErrors(t *testing.T) {
	for n := range 2 {
		got, err := flows.Collect(flows.Merge(&failing{n}, flows.Slice([]flows.Flow{{Start: 1}})))
		if !errors.Is(err, errFailing) || len(got) != n {
			t.Errorf("%d flows, %v", len(got), err)
		}
	}
}

// TestPoints verifies properties of any distribution: quantiles increase and stay within the points, and the mean is
// the integral of the quantiles.
func TestPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.Int64Range(1, 1<<30), 2, 8).Draw(t, "sizes")
		shares := rapid.SliceOfN(rapid.Float64Range(0, 1), len(sizes), len(sizes)).Draw(t, "shares")
		slices.Sort(sizes)
		slices.Sort(shares)
		shares[0], shares[len(shares)-1] = 0, 1
		var s flows.Sizes
		for i := range sizes {
			s.Points = append(s.Points, flows.Point{Size: units.Bytes(sizes[i]), Share: units.Fraction(shares[i])})
		}
		d, err := s.Distribution()
		if err != nil {
			t.Fatal(err)
		}
		const steps = 2000
		sum, last := 0.0, units.Bytes(0)
		for i := range steps {
			q := d.Quantile((float64(i) + 0.5) / steps)
			if q < last || int64(q) < sizes[0] || int64(q) > sizes[len(sizes)-1] {
				t.Fatalf("quantile %v after %v", q, last)
			}
			sum += float64(q)
			last = q
		}
		if slack := float64(sizes[len(sizes)-1]-sizes[0])*2/steps + 1; math.Abs(sum/steps-d.Mean()) > slack {
			t.Fatalf("mean %v, quantiles' mean %v", d.Mean(), sum/steps)
		}
	})
}

func TestSizesText(t *testing.T) {
	var s flows.Sizes
	for text, want := range map[string]flows.Sizes{"websearch": {Name: flows.WebSearch},
		"64KiB": {Fixed: 64 * units.KiB}, " alistorage-2019 ": {Name: flows.AliStorage2019}} {
		if err := s.UnmarshalText([]byte(text)); err != nil || !reflect.DeepEqual(s, want) {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
	}
	for text, want := range map[string]string{
		"websaerch": `unknown distribution "websaerch"; did you mean "websearch"?`,
		"zzzzzzzzz": `unknown distribution "zzzzzzzzz"; there are websearch, facebook-hadoop, alistorage-2019, googlerpc-2008`,
		"64":        `"64"`,
		"":          `unknown distribution ""`,
	} {
		if err := s.UnmarshalText([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestErrors(t *testing.T) {
	web := flows.Sizes{Name: flows.WebSearch}
	points := func(p ...flows.Point) flows.Config {
		return flows.Config{Poisson: &flows.Poisson{Load: 0.5, Sizes: flows.Sizes{Points: p}, Flows: 1}}
	}
	for _, c := range []struct {
		cfg  flows.Config
		want string
	}{
		{flows.Config{}, "0 of list, poisson, incast, all_to_all, permutation and collective are set; set one"},
		{flows.Config{Class: 8, AllToAll: &flows.AllToAll{Size: 1}}, "class: 8 is not possible; classes are 0 to 7"},
		{flows.Config{Start: -1, AllToAll: &flows.AllToAll{Size: 1}}, "start: -1ps is negative"},
		{flows.Config{Poisson: &flows.Poisson{Load: 1.2, Sizes: web, Flows: 1}},
			"poisson.load: 120% is not possible; it is a share of the hosts' links, above 0% and at most 100%"},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Sizes: web}}, "poisson: it never ends; set duration or flows"},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Sizes: web, Flows: -1}}, "poisson.flows: -1 is negative"},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Sizes: web, Duration: -1}},
			"poisson.duration: -1ps is negative"},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Flows: 1}},
			"poisson.sizes: 0 of name, fixed and points are set; set one"},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Flows: 1, Sizes: flows.Sizes{Name: "web"}}},
			`poisson.sizes.name: unknown distribution "web"; did you mean "websearch"?`},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Flows: 1, Sizes: flows.Sizes{Fixed: -1}}},
			"poisson.sizes.fixed: -1 bytes are not possible"},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Flows: 1, Sizes: web, Hosts: []int{1, 16}}},
			"poisson.hosts[1]: no host 16; the network has 0 to 15"},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Flows: 1, Sizes: web, Hosts: []int{1, 1}}},
			"poisson.hosts[1]: host 1 is named twice"},
		{flows.Config{Poisson: &flows.Poisson{Load: 0.5, Flows: 1, Sizes: web, Hosts: []int{1}}},
			"poisson.hosts: only host 1 takes part; flows need two"},
		{points(flows.Point{Size: 1, Share: 0}), "poisson.sizes.points: 1 points; a distribution has two or more"},
		{points(flows.Point{Size: 1, Share: 0.1}, flows.Point{Size: 2, Share: 1}),
			"poisson.sizes.points[0].share: a distribution cannot start at 10%; write 0% for the smallest size"},
		{points(flows.Point{Size: 1, Share: 0}, flows.Point{Size: 2, Share: 0.9}),
			"poisson.sizes.points[1].share: a distribution cannot end at 90%; write 100% for the largest size"},
		{points(flows.Point{Size: 3, Share: 0}, flows.Point{Size: 2, Share: 1}),
			"poisson.sizes.points[1].size: 2B is below the previous point, 3B; sizes must ascend"},
		{points(flows.Point{Size: 1}, flows.Point{Size: 2, Share: 0.5}, flows.Point{Size: 2, Share: 0.4},
			flows.Point{Size: 3, Share: 1}),
			"poisson.sizes.points[2].share: 40% is below the previous point, 50%; shares must ascend"},
		{points(flows.Point{Size: 1}, flows.Point{Size: 2, Share: units.Fraction(math.NaN())}),
			"poisson.sizes.points[1].share: NaN is not possible"},
		{points(flows.Point{Size: -1}, flows.Point{Size: 2, Share: 1}),
			"poisson.sizes.points[0].size: -1 bytes are not possible"},
		{points(flows.Point{}, flows.Point{Share: 1}), "poisson.sizes.points: all flows have 0 bytes"},
		{flows.Config{Incast: &flows.Incast{Fan: 16, Size: 1}},
			"incast.fan: 16 is not possible; of 16 hosts, at most 15 can send to one"},
		{flows.Config{Incast: &flows.Incast{Size: 1}}, "incast.fan: 0 is not possible; at least one host sends"},
		{flows.Config{Incast: &flows.Incast{Fan: 2}}, "incast.size: 0 bytes are not possible; a flow has at least one"},
		{flows.Config{Incast: &flows.Incast{Fan: 2, Size: 1, Rounds: -1}}, "incast.rounds: -1 is negative"},
		{flows.Config{Incast: &flows.Incast{Fan: 2, Size: 1, Rounds: 2}},
			"incast.every: 2 rounds would be at the same time; set every, the time between them"},
		{flows.Config{Incast: &flows.Incast{Fan: 2, Size: 1, Rounds: 2, Every: units.Forever}},
			"incast.every: 2 rounds of"},
		{flows.Config{Incast: &flows.Incast{Fan: 2, Size: 1, Every: -1}}, "incast.every: -1ps is negative"},
		{flows.Config{Incast: &flows.Incast{Fan: 2, Size: 1, Target: 16}},
			"incast.target: no host 16; the network has 0 to 15"},
		{flows.Config{AllToAll: &flows.AllToAll{}}, "all_to_all.size: 0 bytes are not possible"},
		{flows.Config{AllToAll: &flows.AllToAll{Size: 1, Hosts: []int{-1}}},
			"all_to_all.hosts[0]: no host -1"},
		{flows.Config{Permutation: &flows.Permutation{}}, "permutation.size: 0 bytes are not possible"},
		{flows.Config{Permutation: &flows.Permutation{Size: 1, Hosts: []int{0}}},
			"permutation.hosts: only host 0 takes part; flows need two"},
		{flows.Config{List: []flows.Entry{}}, "list: it has no flow"},
		{flows.Config{List: []flows.Entry{{Src: 16}}}, "list[0].src: no host 16"},
		{flows.Config{List: []flows.Entry{{Dst: -1}}}, "list[0].dst: no host -1"},
		{flows.Config{List: []flows.Entry{{}}}, "list[0].dst: host 0 sends to itself"},
		{flows.Config{List: []flows.Entry{{Dst: 1, Class: 8}}}, "list[0].class: 8 is not possible"},
		{flows.Config{List: []flows.Entry{{Dst: 1, Size: 1}, {Dst: 1}}}, "list[1].size: 0 bytes are not possible"},
		{flows.Config{List: []flows.Entry{{Dst: 1, Size: 1, Start: -1}}}, "list[0].start: -1ps is not possible"},
	} {
		_, err := flows.New(c.cfg, network)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("\n got %v\nwant %s", err, c.want)
		}
	}
	if _, err := flows.New(flows.DefaultConfig(), flows.Network{Hosts: 1}); err == nil ||
		err.Error() != "a network of 1 hosts; flows need two" {
		t.Error(err)
	}
	if _, err := flows.New(flows.DefaultConfig(), flows.Network{Hosts: 2}); err == nil ||
		err.Error() != "poisson: the hosts' links have no rate, so load has no meaning" {
		t.Error(err)
	}
	if all := collect(t, flows.DefaultConfig(), network); len(all) == 0 {
		t.Error("the default makes no flows")
	}
}

// TestNoAllocation verifies that sources do not allocate per flow.
func TestNoAllocation(t *testing.T) {
	endless := []flows.Config{
		{Poisson: &flows.Poisson{Load: 0.5, Sizes: flows.Sizes{Name: flows.GoogleRPC2008}, Flows: 1 << 40}},
		{Incast: &flows.Incast{Fan: 3, Size: 1, Rounds: 1 << 30, Every: 1, Rotating: true}},
	}
	var sources []flows.Source
	for _, cfg := range endless {
		src, err := flows.New(cfg, network)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, src)
	}
	src := flows.Merge(sources...)
	var f flows.Flow
	if err := src.Next(&f); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() { _ = src.Next(&f) }); n != 0 {
		t.Errorf("%v allocations per flow", n)
	}
}
