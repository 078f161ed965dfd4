package durability

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"farflash/numeric/units"
)

func near(a, b, relative float64) bool { return math.Abs(a-b) <= relative*math.Abs(b) }

func chain(t testing.TB, s Scheme, mttf, rebuild Hours, r Repair) *Chain {
	t.Helper()
	c, err := New(Config{Scheme: s, MTTF: mttf, Rebuild: rebuild, Repair: r})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTextbookMTTDL checks closed forms from textbooks, with l and m the rates of failure and repair.
func TestTextbookMTTDL(t *testing.T) {
	const mttf, mttr = 1e5, 24.0
	l, m := 1/mttf, 1/mttr
	n := 8.0
	for _, c := range []struct {
		name   string
		chain  *Chain
		exact  float64
		approx float64
	}{
		{"one drive", chain(t, Replicas(1), mttf, mttr, Parallel), mttf, mttf},
		{"RAID-0 of 8", chain(t, Scheme{8, 0}, mttf, mttr, Parallel), mttf / 8, mttf / 8},
		{"RAID-1", chain(t, Replicas(2), mttf, mttr, Parallel), (3*l + m) / (2 * l * l), mttf * mttf / (2 * mttr)},
		{"RAID-5 of 8", chain(t, Scheme{7, 1}, mttf, mttr, Serial), ((2*n-1)*l + m) / (n * (n - 1) * l * l),
			mttf * mttf / (n * (n - 1) * mttr)},
		{"RAID-6 of 8", chain(t, Scheme{6, 2}, mttf, mttr, Serial),
			// T0 + T1 + T2 of the chain 0 -> 1 -> 2 -> loss, written out.
			1/(n*l) + (1+m/(n*l))/((n-1)*l) + (1+m*(1+m/(n*l))/((n-1)*l))/((n-2)*l),
			mttf * mttf * mttf / (n * (n - 1) * (n - 2) * mttr * mttr)},
		// Without repair each failure waits for the next: 1/(3l) + 1/(2l) + 1/l.
		{"no repair", chain(t, Replicas(3), mttf, Hours(math.Inf(1)), Parallel), mttf * (1./3 + 1./2 + 1), 0},
	} {
		if got := float64(c.chain.MTTDL()); !near(got, c.exact, 1e-12) {
			t.Errorf("%s: MTTDL %v h, the formula gives %v", c.name, got, c.exact)
		}
		if got := float64(c.chain.Approximation()); !near(got, c.approx, 1e-12) {
			t.Errorf("%s: approximation %v h, the formula gives %v", c.name, got, c.approx)
		}
	}
}

// TestPrintedMTTDL checks printed figures: the RAID paper's level 5 for drives of 30,000 h and repairs of one hour, and
// the survey's hundred drives of 200,000 h in groups of 16.
func TestPrintedMTTDL(t *testing.T) {
	for _, c := range []struct {
		name          string
		mttf          Hours
		group, drives float64
		printed       Hours
		within        float64
	}{
		{"SIGMOD 1988, G = 10", 30_000, 11, 110, 820_000, 0.005},
		{"SIGMOD 1988, G = 25", 30_000, 26, 104, 346_000, 0.005},
		{"Surveys 1994, 3000 years", 200_000, 16, 100, 3000 * Year, 0.02},
	} {
		// A group's approximation, divided by the number of groups.
		got := chain(t, Scheme{int(c.group) - 1, 1}, c.mttf, 1, Serial).Approximation() / Hours(c.drives/c.group)
		if !near(float64(got), float64(c.printed), c.within) {
			t.Errorf("%s: %.0f h, printed %.0f", c.name, got, c.printed)
		}
	}
}

// TestLinearSystem compares the recursion with gonum's solution of the linear system, where that is well conditioned.
func TestLinearSystem(t *testing.T) {
	for _, s := range []Scheme{Replicas(2), Replicas(3), Replicas(5), {4, 2}, {8, 3}, {10, 4}} {
		for _, ratio := range []float64{0.5, 5, 50} {
			for _, r := range []Repair{Parallel, Serial} {
				c := chain(t, s, 1000, Hours(1000/ratio), r)
				n := len(c.fail)
				a, b, x := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil), new(mat.VecDense)
				for i := range n {
					a.Set(i, i, c.fail[i]+c.mend[i])
					if i > 0 {
						a.Set(i, i-1, -c.mend[i])
					}
					if i < n-1 {
						a.Set(i, i+1, -c.fail[i])
					}
					b.SetVec(i, 1)
				}
				if err := x.SolveVec(a, b); err != nil {
					t.Logf("%v, ratio %v: %v", s, ratio, err)
					continue
				}
				if got := float64(c.MTTDL()); !near(got, x.AtVec(0), 1e-6) {
					t.Errorf("%v, ratio %v: %v, gonum %v", s, ratio, got, x.AtVec(0))
				}
			}
		}
	}
}

// TestLossWithin compares lossWithin with closed forms, and with the mean for long times.
func TestLossWithin(t *testing.T) {
	// A mirror's survival is a sum of two exponentials whose rates are the roots of s^2 + (3l+m) s + 2l^2.
	const l, m = 1e-3, 0.1
	c := chain(t, Replicas(2), 1/l, 1/m, Parallel)
	root := math.Sqrt((3*l+m)*(3*l+m) - 8*l*l)
	r1, r2 := (3*l+m+root)/2, (3*l+m-root)/2
	for _, at := range []float64{1, 10, 1000, 50_000, 1e6} {
		want := 1 - (r1*math.Exp(-r2*at)-r2*math.Exp(-r1*at))/(r1-r2)
		if got := c.lossWithin(Hours(at)); !near(got, want, 1e-9) {
			t.Errorf("mirror lost within %v h with %v, the closed form has %v", at, got, want)
		}
	}
	// For one drive it is the exponential itself, for small and large times.
	one := chain(t, Replicas(1), 1e6, 10, Parallel)
	for _, at := range []float64{1e-9, 1e-3, 1, 1e6, 1e8} {
		if got, want := one.lossWithin(Hours(at)), -math.Expm1(-at/1e6); !near(got, want, 1e-9) {
			t.Errorf("one drive lost within %v h with %v, want %v", at, got, want)
		}
	}
	// Rare losses have the rate 1/MTTDL once rebuilds have set in: 17+3 shards, 1e-17 a year.
	rare := chain(t, Scheme{17, 3}, 1.2e6, 2, Parallel)
	if got, want := rare.lossWithin(Year), float64(Year/rare.MTTDL()); !near(got, want, 1e-3) || got > 1e-11 {
		t.Errorf("17+3 lost within a year with %v, by the mean %v", got, want)
	}
	// Squaring forty times and more loses no accuracy.
	if got, want := rare.lossWithin(rare.MTTDL()), 1-math.Exp(-1); !near(got, want, 1e-6) {
		t.Errorf("lost within the mean time with %v, want %v", got, want)
	}
	if rare.lossWithin(0) != 0 || rare.lossWithin(-1) != 0 {
		t.Error("something is lost in no time")
	}
	if n := rare.Nines(); n < 11 || n > 20 {
		t.Errorf("%v nines", n)
	}
}

// TestMonotone: more parity, better drives and faster rebuilds never hurt; more data shards never help.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			Scheme:  Scheme{rapid.IntRange(1, 20).Draw(t, "data"), rapid.IntRange(0, 5).Draw(t, "parity")},
			MTTF:    Hours(rapid.Float64Range(1e3, 1e7).Draw(t, "mttf")),
			Rebuild: Hours(rapid.Float64Range(0.01, 1000).Draw(t, "rebuild")),
			Repair:  Repair(rapid.IntRange(0, 1).Draw(t, "repair")),
		}
		year := Hours(rapid.Float64Range(1, 1e5).Draw(t, "time"))
		of := func(c Config) (float64, float64) {
			ch, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			if a, e := ch.Approximation(), ch.MTTDL(); !(a <= e*(1+1e-12)) {
				t.Fatalf("%+v: approximation %v above the exact %v", c, a, e)
			}
			return float64(ch.MTTDL()), ch.lossWithin(year)
		}
		mttdl, loss := of(cfg)
		if !(loss >= 0 && loss <= 1) {
			t.Fatalf("loss with chance %v", loss)
		}
		better := func(what string, c Config) {
			if m, l := of(c); m < mttdl*(1-1e-12) || l > loss*(1+1e-9) {
				t.Fatalf("%s: MTTDL from %v to %v, loss from %v to %v", what, mttdl, m, loss, l)
			}
		}
		c := cfg
		c.MTTF *= 1.5
		better("better drives", c)
		c = cfg
		c.Rebuild /= 2
		better("faster rebuilds", c)
		c = cfg
		c.Scheme.Parity++
		better("more parity", c)
		if cfg.Scheme.Data > 1 {
			c = cfg
			c.Scheme.Data--
			better("fewer data shards", c)
		}
		c = cfg
		c.Repair = Parallel
		better("parallel repair", c)
	})
}

// afr is the inverse of mttf.
func afr(mttf Hours) units.Fraction { return units.Fraction(lossOf(float64(Year / mttf))) }

func TestAFR(t *testing.T) {
	// The usual example: 1.2 million hours are 0.73% a year.
	if a := float64(afr(1.2e6)); !near(a, 0.00727, 1e-3) {
		t.Errorf("AFR of 1.2 million hours is %v", a)
	}
	for _, a := range []units.Fraction{1e-9, 0.0001, 0.015, 0.5, 0.999} {
		m, err := mttf(a)
		if err != nil || !near(float64(afr(m)), float64(a), 1e-12) {
			t.Errorf("AFR %v is an MTTF of %v h, which is an AFR of %v", a, m, afr(m))
		}
	}
	for _, a := range []units.Fraction{0, 1, -1, units.Fraction(math.NaN())} {
		if _, err := mttf(a); err == nil {
			t.Errorf("AFR %v is not refused", float64(a))
		}
	}
	if Year.Years() != 1 || hoursOf(units.Day) != 24 {
		t.Error("a year or a day is wrong")
	}
}

func TestSmallChances(t *testing.T) {
	for _, p := range []float64{0, 1e-300, 1e-17, 1e-9, 9e-4, 1.1e-3, 0.2, 0.999} {
		for _, n := range []float64{0, 1, 3, 1e3, 1e12} {
			want := -math.Expm1(n * math.Log1p(-p))
			if got := Any(p, n); !near(got, want, 1e-12) && math.Abs(got-want) > 1e-300 {
				t.Errorf("any of %v with %v: %v, want %v", n, p, got, want)
			}
		}
	}
	if Any(1, 3) != 1 || Any(1, 0) != 0 {
		t.Error("what is certain is not")
	}
	if !near(nines(1e-11), 11, 1e-12) || !math.IsInf(nines(0), 1) {
		t.Error("nines are wrong")
	}
}

func TestRebuild(t *testing.T) {
	r := Rebuild{Capacity: 16 * units.TB, Data: 1, Helpers: 99, Bandwidth: 50 * units.MBPerSecond,
		Detection: 30 * units.Minute}
	for _, c := range []struct {
		name   string
		change func(*Rebuild)
		want   float64 // hours
	}{
		{"shared", func(*Rebuild) {}, 0.5 + 16e12*2/(99*50e6)/3600},
		{"spare", func(r *Rebuild) { r.Spare = true }, 0.5 + 16e12/50e6/3600},
		{"code", func(r *Rebuild) { r.Data = 8 }, 0.5 + 16e12*9/(99*50e6)/3600},
		{"code, few helpers, spare", func(r *Rebuild) { r.Data, r.Helpers, r.Spare = 8, 8, true },
			0.5 + 16e12/50e6/3600},
		{"code, half the bandwidth to read", func(r *Rebuild) { r.Data, r.Helpers, r.Spare = 8, 8, false },
			0.5 + 16e12*9/(8*50e6)/3600},
		{"network", func(r *Rebuild) { r.Network = units.GBPerSecond }, 0.5 + 16e12/1e9/3600},
	} {
		x := r
		c.change(&x)
		if got, err := x.time(); err != nil || !near(float64(got), c.want, 1e-12) {
			t.Errorf("%s: %v h, want %v (%v)", c.name, got, c.want, err)
		}
	}
	for _, change := range []func(*Rebuild){
		func(r *Rebuild) { r.Capacity = 0 }, func(r *Rebuild) { r.Data = 0 }, func(r *Rebuild) { r.Helpers = 0 },
		func(r *Rebuild) { r.Bandwidth = 0 }, func(r *Rebuild) { r.Network = -1 },
		func(r *Rebuild) { r.Detection = -1 },
	} {
		x := r
		change(&x)
		if _, err := x.time(); err == nil {
			t.Errorf("%+v is not refused", x)
		}
	}
}

func TestRefused(t *testing.T) {
	good := DefaultConfig()
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Scheme = Scheme{0, 2} }, func(c *Config) {
			c.Scheme = Scheme{1,
				-1}
		}, func(c *Config) { c.Scheme = Scheme{250, 7} },
		func(c *Config) { c.MTTF = 0 }, func(c *Config) { c.MTTF = Hours(math.Inf(1)) },
		func(c *Config) { c.Rebuild = 0 },
		func(c *Config) { c.Rebuild = Hours(math.NaN()) }, func(c *Config) { c.Repair = 2 },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%+v is not refused", c)
		}
	}
}

func ExampleAssess() {
	fleet := Fleet{
		Scheme: Replicas(3), Nodes: 900, AFR: 0.015, Chunks: 1e8,
		Rebuild: Rebuild{Capacity: 8 * units.TB, Bandwidth: 50 * units.MBPerSecond, Detection: 10 * units.Minute},
	}
	for _, s := range []struct {
		name    string
		spread  Spread
		scatter int
	}{{"everywhere", Everywhere, 0}, {"window of 10", Window, 10}, {"copysets of 10", Copysets, 10}} {
		fleet.Spread, fleet.Scatter = s.spread, s.scatter
		a, err := Assess(fleet)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%-14s rebuild %5.1f h, %9.0f copysets, %.1f nines for all data, %.1f for a chunk\n", s.name,
			a.Rebuild, a.Copysets, a.Nines(), a.ChunkNines())
	}
	// Output:
	// everywhere     rebuild   0.3 h,  68069321 copysets, 6.2 nines for all data, 14.0 for a chunk
	// window of 10   rebuild   9.1 h,     40500 copysets, 6.3 nines for all data, 11.0 for a chunk
	// copysets of 10 rebuild   9.1 h,      1500 copysets, 7.8 nines for all data, 11.0 for a chunk
}
