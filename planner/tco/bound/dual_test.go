package bound

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// TestCritical verifies that the price at which items fill a size is the ratio of the first item that does not fit, in
// descending order.
func TestCritical(t *testing.T) {
	for seed := range uint64(300) {
		r := rng.NewStream(seed, "critical")
		items := make([]item, 1+r.IntN(12))
		for i := range items {
			items[i] = item{float64(1 + r.IntN(6)), float64(1 + r.IntN(9))} // many are equal
		}
		size := float64(r.IntN(60))
		sorted := slices.Clone(items)
		slices.SortFunc(sorted, func(a, b item) int { return int(b.ratio - a.ratio) })
		want, left := 0.0, size
		for i := 0; i < len(sorted) && want == 0; {
			same, n := 0.0, i
			for ; n < len(sorted) && sorted[n].ratio == sorted[i].ratio; n++ {
				same += sorted[n].weight
			}
			if same > left {
				want = sorted[i].ratio
			}
			left -= same
			i = n
		}
		if got := critical(slices.Clone(items), size); got != want {
			t.Fatalf("seed %d: %v fill %v at %v, not %v", seed, sorted, size, got, want)
		}
	}
	if critical(nil, 3) != 0 {
		t.Error("nothing has a price")
	}
}

// dualOf returns the relaxation of a small problem with drives of one model.
func dualOf(r *rng.Stream, optional bool, horizon float64) (*tco.Problem, *dual) {
	p := &tco.Problem{Config: tco.Config{FillSpace: 0.9, FillIOPS: 0.8, Horizon: horizon}}
	d := someDrives(r, 1)[0]
	d.Capacity, d.IOPS, d.Worn = 150, 700, 1000
	d.Stripe = tco.Stripe{FullBytes: 1.2, SmallBytes: 2, FullIOs: 1.2, SmallIOs: 4}
	p.Classes = []tco.Class{{Drive: d, Count: 4, Optional: optional}}
	p.Jobs = someJobs(r, 8, 100)
	for j := range p.Jobs {
		p.Jobs[j].FullStripe = r.Float64()
		if r.IntN(3) == 0 {
			p.Jobs[j].End = p.Jobs[j].Arrival + 200*r.Float64() + 1
		}
	}
	x := newDual(p)
	x.r = 0.002 + 0.01*r.Float64()
	return p, x
}

// TestDual verifies that the demand of each workload agrees with the drive's figures, and that the lower bound on a
// drive holds for every set of workloads.
func TestDual(t *testing.T) {
	for seed := range uint64(60) {
		r := rng.NewStream(seed, "dual")
		p, d := dualOf(&r, seed%2 == 0, []float64{0, 900}[seed%3%2])
		x, drive := &d.classes[0], &p.Classes[0].Drive
		space, io := 0.0, 0.0
		for j := range p.Jobs {
			w := &p.Jobs[j]
			if low := x.wear[j]; low > w.WriteRate*drive.Stripe.Bytes(w.FullStripe)*drive.WAF.At(w.Sequential)*
				(1+1e-12) || low <= 0 {
				t.Errorf("workload %d wears %v", j, low)
			}
			wantSpace, wantIO, end := w.WorkingSet, drive.Stripe.Load(w), math.Inf(1)
			if w.End > 0 {
				wantSpace, wantIO, end = 0, 0, w.End
				if !slices.Contains(d.edges, w.End) {
					t.Errorf("the end of workload %d is none", j)
				}
			}
			space += wantSpace
			io += wantIO
			if x.space[j] != wantSpace || x.io[j] != wantIO || d.end[j] != end || d.arrive[j] != w.Arrival ||
				d.rate[j] != w.WriteRate {
				t.Errorf("workload %d takes %v and %v, from %v to %v", j, x.space[j], x.io[j], d.arrive[j], d.end[j])
			}
			if got := d.lived(j, 150); got != min(150, end)-w.Arrival {
				t.Errorf("workload %d lives for %v", j, got)
			}
		}
		if !slices.IsSorted(d.edges) || x.budget != drive.Budget-1000 || math.Abs(x.spaceMost-135) > 1e-6 ||
			math.Abs(x.ioMost-560) > 1e-5 || x.spaceTight != (space > 135) || x.ioTight != (io > 560) {
			t.Errorf("%+v", x)
		}
		value := make([]float64, len(p.Jobs))
		for j := range value {
			value[j] = 60 * (r.Float64() - 0.3)
		}
		q := tco.Piece{Wear: 1e-3 * r.Float64(), Space: r.Float64(), IOPS: 0.1 * r.Float64()}
		from, to := 0.0, 30.0
		for _, die := range []float64{80, 120, 500} {
			before := die * 0.9
			least := math.Inf(1)
			for set := range 1 << len(p.Jobs) {
				sum, possible := drive.Buy+drive.Run*(die-to)-q.Wear*x.budget-q.Space*x.spaceMost-q.IOPS*x.ioMost, true
				for j := range p.Jobs {
					if set>>j&1 == 0 {
						continue
					}
					possible = possible && d.arrive[j] >= from && d.arrive[j] < before
					days := min(die, d.end[j]) - d.arrive[j]
					sum += days*(q.Wear*x.wear[j]-d.r*d.rate[j]) + q.Space*x.space[j] + q.IOPS*x.io[j] - value[j]
				}
				if possible {
					least = min(least, sum)
				}
			}
			if got := d.least(x, value, from, to, die, before, &q); math.Abs(got-least) > 1e-9*math.Abs(least) {
				t.Errorf("seed %d: a drive that dies on day %v reaches %v, not %v", seed, die, got, least)
			}
		}
	}
}

// TestPrices verifies that the prices chosen for a day of death are optimal by coordinate: no small change of a single
// price raises the lower bound on a drive.
func TestPrices(t *testing.T) {
	raised := 0
	for seed := range uint64(80) {
		r := rng.NewStream(seed, "prices")
		p, d := dualOf(&r, false, 0)
		x := &d.classes[0]
		x.c.Drive.Budget /= 40
		x.budget = x.c.Drive.Budget - x.c.Drive.Worn/40
		value := make([]float64, len(p.Jobs))
		for j := range value {
			value[j] = 200 * r.Float64()
		}
		var q tco.Piece
		var s scratch
		const die = 300
		free := d.least(x, value, 0, 0, die, die, &q)
		d.prices(x, value, 0, die, die, &q, &s)
		best := d.least(x, value, 0, 0, die, die, &q)
		if q.Wear < 0 || q.Space < 0 || q.IOPS < 0 || best < free-1e-9*math.Abs(free) {
			t.Fatalf("seed %d: %+v reaches %v, nothing %v", seed, q, best, free)
		}
		if best > free {
			raised++
		}
		// With the others fixed, the price chosen last must be optimal.
		for _, by := range []float64{0.9, 0.999, 1.001, 1.1} {
			other := q
			switch {
			case x.ioTight:
				other.IOPS *= by
			case x.spaceTight:
				other.Space *= by
			default:
				other.Wear *= by
			}
			if got := d.least(x, value, 0, 0, die, die, &other); got > best+1e-9*math.Abs(best) {
				t.Errorf("seed %d: %+v reaches %v, %+v %v", seed, q, best, other, got)
			}
		}
	}
	if raised < 60 {
		t.Errorf("prices raise %d of 80: no test", raised)
	}
}

// TestMinorant verifies that the function is concave, nowhere above the write amplification, and as high as possible:
// for equation 7, which is constant and then falls ever more steeply, it nearly coincides; below a convex table it
// meets the ends and follows their chord.
func TestMinorant(t *testing.T) {
	sag, err := tco.NewTable([]waf.MixPoint{{S: 0, WAF: 5}, {S: 0.5, WAF: 2}, {S: 1, WAF: 1}})
	if err != nil {
		t.Fatal(err)
	}
	bulge, err := tco.NewTable([]waf.MixPoint{{S: 0, WAF: 5}, {S: 0.5, WAF: 4}, {S: 1, WAF: 1}})
	if err != nil {
		t.Fatal(err)
	}
	// A corner so close to the end that it is treated as the end.
	late, err := tco.NewTable([]waf.MixPoint{{S: 0, WAF: 5}, {S: 1 - 3e-7, WAF: 2}, {S: 1, WAF: 1}})
	if err != nil {
		t.Fatal(err)
	}
	// A chord across the corner where equation 7 starts to fall would cut it off.
	if w := waf.DefaultSequentialMix(7); AtKnots(minorant(w), w.Turn) < w.At(w.Turn)-1e-8 {
		t.Errorf("at the corner the line is at %v, the curve at %v", AtKnots(minorant(w), w.Turn), w.At(w.Turn))
	}
	for name, c := range map[string]struct {
		w    tco.WAF
		mean float64 // lower limit on the function's mean, as a share of the curve's
	}{
		"level": {tco.Constant(3), 1 - 1e-8}, "equation 7": {waf.DefaultSequentialMix(7), 1 - 1e-5},
		"a table that bulges":           {bulge, 1 - 1e-8},
		"a table that falls at its end": {late, 1 - 1e-3}, // of 3.5, a triangle over the last 512th is missing
		// The mean of 5-2-1 is 2.5. A line through (0.5, 2) and (1, 1) has a mean of 2, and no other has more: a line
		// below (0.5, 2) is at most 2 at its midpoint.
		"a table that sags": {sag, 0.79},
	} {
		line := minorant(c.w)
		if line[0].S != 0 || line[len(line)-1].S != 1 {
			t.Errorf("%s: from %v to %v", name, line[0].S, line[len(line)-1].S)
		}
		below, above, before := 0.0, 0.0, math.Inf(1)
		for i := 1; i < len(line); i++ {
			a, b := line[i-1], line[i]
			slope := (b.WAF - a.WAF) / (b.S - a.S)
			if slope > before+1e-6 {
				t.Fatalf("%s: bends upwards at %v: %v after %v", name, a.S, slope, before)
			}
			before = slope
			for _, part := range []float64{0, 0.3, 0.7, 1} {
				s := a.S + part*(b.S-a.S)
				low := a.WAF + part*(b.WAF-a.WAF)
				if got := AtKnots(line, s); math.Abs(got-low) > 1e-9 {
					t.Fatalf("%s: at %v the line is at %v, not %v", name, s, got, low)
				}
				if low > c.w.At(s) {
					t.Fatalf("%s: at %v the line is at %v, above %v", name, s, low, c.w.At(s))
				}
			}
			below += (b.S - a.S) * (a.WAF + b.WAF) / 2
			above += (b.S - a.S) * (c.w.At(a.S) + c.w.At(b.S)) / 2
		}
		if below < c.mean*above {
			t.Errorf("%s: the line has a mean of %v, the curve %v", name, below, above)
		}
	}
}

// TestSpans verifies that arrivals are divided into groups of equal numbers of days, each with its first and last day,
// and at most as many groups as days.
func TestSpans(t *testing.T) {
	for _, c := range []struct {
		arrive []float64
		most   int
		want   string
	}{
		{[]float64{5, 1, 3, 3, 9, 7}, 2, "[[1 3] [5 9]]"},
		{[]float64{5, 1, 3, 3, 9, 7}, 5, "[[1 1] [3 3] [5 5] [7 7] [9 9]]"},
		{[]float64{5, 1, 3, 3, 9, 7}, 9, "[[1 1] [3 3] [5 5] [7 7] [9 9]]"}, {[]float64{4, 4, 4}, 3, "[[4 4]]"},
		{[]float64{5, 1, 3}, 1, "[[1 5]]"},
	} {
		if got := fmt.Sprint(spansOf(c.arrive, c.most)); got != c.want {
			t.Errorf("%v in %d: %s, not %s", c.arrive, c.most, got, c.want)
		}
	}
}

// TestCases verifies that the number of drives is what the workloads' space or I/O needs, whichever is more, and that
// rounding does not add one.
func TestCases(t *testing.T) {
	for _, c := range []struct {
		space, io float64 // of each of ten workloads
		need      int
	}{{10, 0, 1}, {20, 0, 2}, {20.1, 0, 3}, {10, 35, 4}, {0, 0, 1}, {30, 10, 3}} {
		p := &tco.Problem{Config: tco.Config{FillSpace: 1, FillIOPS: 1},
			Classes: []tco.Class{{Count: 9, Optional: true,
				Drive: tco.Drive{Budget: 1, Capacity: 100, IOPS: 100, WAF: tco.Constant(1)}}}}
		for range 10 {
			p.Jobs = append(p.Jobs, tco.Workload{WorkingSet: c.space, PeakIOPS: c.io})
		}
		got := newDual(p).casesOf()
		if len(got) != 2 || got[0].Least != 0 || got[0].Most != c.need-1 || !got[0].Impossible ||
			got[1].Least != c.need || got[1].Most != 9 || got[1].Impossible {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestDeathdays verifies that days of death are evenly spaced on a logarithmic scale, from half of the life under all
// workloads together to the end of the horizon or as long as a drive can pay off, and that ends of workloads in between
// are included.
func TestDeathdays(t *testing.T) {
	p := &tco.Problem{Config: tco.Config{FillSpace: 1, FillIOPS: 1},
		Classes: []tco.Class{{Count: 1,
			Drive: tco.Drive{Run: 0.5, Budget: 1000, Capacity: 1, IOPS: 1, WAF: tco.Constant(2)}}},
		Jobs: []tco.Workload{{WriteRate: 4}, {WriteRate: 1, Arrival: 6, End: 250}}}
	for _, c := range []struct {
		horizon, rate, first, last float64
	}{
		{0, 2, 50, 2000}, // 1000 GB at 10 per day, halved; 1000 * 2 / 2 / 0.5
		{0, 0.01, 50, 200},
		{400, 2, 50, 406}, // the last possible first workload arrives on day 6
		{60, 2, 33, 66},
	} {
		p.Config.Horizon = c.horizon
		d := newDual(p)
		d.r = c.rate
		days := d.deathdays(&d.classes[0], [2]float64{0, 6}, 5)
		var at []float64
		for _, x := range days {
			at = append(at, x.t)
		}
		near := func(x, y float64) bool { return math.Abs(x-y) < 1e-6*y }
		end := slices.Index(at, 250)
		if within := c.last > 250 || c.horizon == 0; (end >= 0) != within {
			t.Errorf("%+v: %v", c, at)
		} else if within {
			at = slices.Delete(at, end, end+1)
		}
		if len(at) != 5 || !near(at[0], c.first) || !near(at[4], c.last) {
			t.Errorf("%+v: %v", c, at)
			continue
		}
		for k := 1; k < 5; k++ {
			if !near(at[k]/at[k-1], math.Pow(c.last/c.first, 0.25)) {
				t.Errorf("%+v: %v", c, at)
			}
		}
	}
}

func someDrives(r *rng.Stream, n int) []tco.Drive {
	list := make([]tco.Drive, n)
	for k := range list {
		list[k] = tco.Drive{Name: fmt.Sprint("d", k), Buy: 500 + 100*float64(r.IntN(30)), Run: 0.01 + 0.1*r.Float64(),
			Budget: 1e5 * float64(1+r.IntN(60)), Capacity: 400 * float64(1+r.IntN(5)),
			IOPS: 3000 * float64(1+r.IntN(3)), WAF: waf.DefaultSequentialMix(2 + 5*r.Float64())}
	}
	return list
}

func someJobs(r *rng.Stream, n int, days float64) []tco.Workload {
	list := make([]tco.Workload, n)
	for j := range list {
		list[j] = tco.Workload{Name: fmt.Sprint("w", j), WriteRate: 1 + 200*r.Float64()*r.Float64(),
			Sequential: r.Float64(), PeakIOPS: 400 * r.Float64(), WriteShare: r.Float64(),
			WorkingSet: 100 * r.Float64(), Arrival: days * r.Float64()}
	}
	list[0].Arrival = 0
	return list
}

// TestHighest verifies that the function below any curve is concave, cannot be raised at any single knot, and has no
// lower mean than any straight line below the curve.
func TestHighest(t *testing.T) {
	for seed := range uint64(200) {
		r := rng.NewStream(seed, "highest")
		const n = 21
		at, f := make([]float64, n), make([]float64, n)
		for i := range at {
			at[i] = float64(i) / (n - 1)
			f[i] = []float64{2, 6 - 4*at[i], 5 - 4*math.Sqrt(at[i]), 2 + 8*(at[i]-0.4)*(at[i]-0.4),
				1 + 3*at[i]*at[i]}[seed%5] + 0.8*r.Float64()
		}
		c := highest(at, f)
		bend := func(i int) float64 {
			if i < 1 || i > n-2 {
				return 0
			}
			return (c[i+1] - c[i]) - (c[i] - c[i-1])
		}
		mean, touches := 0.0, false
		for i := range c {
			mean += c[i] / n
			touches = touches || c[i] > f[i]-1e-9
			if c[i] > f[i]+1e-9 || bend(i) > 1e-9 || c[i] <= 0 {
				t.Errorf("seed %d: at %v the line is at %v, bent by %v; the curve is at %v", seed, at[i], c[i],
					bend(i), f[i])
			}
			if c[i] < f[i]-1e-9 && (i < 2 || bend(i-1) < -1e-9) && (i > n-3 || bend(i+1) < -1e-9) &&
				!(i == 1 && bend(0) == 0 || i == n-2) {
				t.Errorf("seed %d: at %v the line could be higher than %v", seed, at[i], c[i])
			}
		}
		for i := range n {
			for k := range i {
				slope := (f[i] - f[k]) / (at[i] - at[k])
				straight, below := 0.0, true
				for q := range n {
					v := f[i] + slope*(at[q]-at[i])
					straight += v / n
					below = below && v <= f[q]+1e-12 && v > 0.01
				}
				if below && mean < straight-1e-9 {
					t.Errorf("seed %d: a mean of %v; the line through %v and %v has %v", seed, mean, at[k], at[i],
						straight)
				}
			}
		}
		if !touches {
			t.Errorf("seed %d: the line touches nothing", seed)
		}
	}
}
