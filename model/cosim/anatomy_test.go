package cosim_test

import (
	"testing"

	"farflash/model/cosim"
	"farflash/model/nvmf"
	"farflash/numeric/units"
	"farflash/sim"
)

// staged returns a request's stages: the given times in flash and at the target.
func staged(flash, target sim.Time) []sim.Time {
	x := [nvmf.Stages]sim.Time{nvmf.Flash: flash, nvmf.AtTarget: target}
	return x[:]
}

// TestAnatomy: of ten requests, six take 1 us, three 10 us and one 100 us, each in a separate bucket. It compares the
// mean of each stage with calculations by hand, for all of them, the middle half, the slowest, and an empty range.
func TestAnatomy(t *testing.T) {
	var a, b cosim.Anatomy
	add := func(n int, to *cosim.Anatomy, latency, flash sim.Time) {
		for range n {
			to.Add(latency, staged(flash, latency-flash))
		}
	}
	add(4, &a, us, us)
	add(2, &b, us, us/2)
	add(3, &a, 10*us, 4*us)
	add(1, &b, 100*us, 20*us)
	a.Merge(&b)
	if a.Count() != 10 || b.Count() != 3 {
		t.Errorf("%d and %d requests", a.Count(), b.Count())
	}
	mean := a.Mean()
	// 4*1 + 2*0.5 + 3*4 + 20 = 37, and 2*0.5 + 3*6 + 80 = 99.
	if mean[nvmf.Flash] != 3.7*float64(us) || mean[nvmf.AtTarget] != 9.9*float64(us) || mean[nvmf.TXQ] != 0 {
		t.Errorf("mean %v", mean)
	}
	for _, c := range []struct {
		name            string
		from, to        float64
		flash, atTarget float64 // us
	}{
		{"all", 0, 1, 3.7, 9.9},
		{"the first", 0, 0.1, 5.0 / 6, 1.0 / 6},
		{"all of 1 us, to their end", 0, 0.6, 5.0 / 6, 1.0 / 6},
		{"behind those of 1 us", 0.6, 0.9, 4, 6},
		{"from the midst of one bucket to the midst of another", 0.5, 0.7, 17.0 / 9, 19.0 / 9},
		{"the slowest tenth", 0.9, 1, 20, 80},
		{"a share that is less than a request", 0.99, 0.99, 20, 80},
		{"the ranks of one bucket, none of them whole", 0.65, 0.65, 4, 6},
	} {
		got, ok := a.Around(c.from, c.to)
		near := func(x, y float64) bool { return x > y-1 && x < y+1 } // ps
		if !ok || !near(got[nvmf.Flash], c.flash*float64(us)) || !near(got[nvmf.AtTarget], c.atTarget*float64(us)) {
			t.Errorf("%s: %v, %v", c.name, got, ok)
		}
	}
	var none cosim.Anatomy
	if got, ok := none.Around(0, 1); ok || got != [17]float64{} {
		t.Errorf("nothing was noted, and around all of it are %v", got)
	}
	if got, ok := a.Around(1, 1); ok {
		t.Errorf("behind the last are %v", got)
	}
}

// TestAnatomyOfOverload: the time of all requests together may exceed the clock's 106 days, as it does where millions
// of requests wait for seconds.
func TestAnatomyOfOverload(t *testing.T) {
	var a, b cosim.Anatomy
	for range 3 {
		a.Add(100*units.Day, []sim.Time{60 * units.Day, 40 * units.Day})
		b.Add(100*units.Day, []sim.Time{30 * units.Day, 70 * units.Day})
	}
	a.Merge(&b)
	if mean := a.Mean(); mean[0] != float64(45*units.Day) || mean[1] != float64(55*units.Day) {
		t.Errorf("the mean of 60 and 30 days is %v ps, of 40 and 70 %v", mean[0], mean[1])
	}
	if around, ok := a.Around(0, 1); !ok || around[0] != float64(45*units.Day) {
		t.Errorf("around all requests: %v ps", around[0])
	}
}
