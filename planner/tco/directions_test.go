package tco_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/planner/tco/bound"
	"farflash/planner/tco/catalogue"
	"farflash/planner/tco/certify"
)

// rated is a drive with separate ratings for reads and writes.
func rated(t *testing.T, mode tco.Mode, reads, writes float64) tco.Drive {
	t.Helper()
	m := catalogue.Model{Name: "m", Capacity: 1000, TBW: 3000, ReadIOPS: reads, WriteIOPS: writes, ActiveW: 10,
		IdleW: 5, Price: 500}
	d, err := m.Drive("d", mode, tco.DefaultCosts(), 0.3, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDirections verifies that reads count against the read rating, writes against the write rating, and the shares of
// both add up to at most 1.
func TestDirections(t *testing.T) {
	job := func(iops, writes float64) tco.Workload {
		return tco.Workload{Name: fmt.Sprintf("%v at %v", iops, writes), WriteRate: 1, PeakIOPS: iops,
			WriteShare: writes, WorkingSet: 1}
	}
	for _, c := range []struct {
		iops, writes float64
		fits         bool
	}{{150e3, 1, false}, {85e3, 1, true}, {85.001e3, 1, false}, {160e3, 0, true}, {1e6, 0, true}, {1.001e6, 0, false},
		// half of each: 1/(0.5/1e6 + 0.5/85e3)
		{156682, 0.5, true}, {156683, 0.5, false}} {
		_, err := tco.Assess(tco.DefaultConfig(), []tco.Drive{rated(t, tco.Corrected, 1e6, 85e3)},
			[]tco.Workload{job(c.iops, c.writes)}, []int{0})
		if (err == nil) != c.fits {
			t.Errorf("%v I/Os a second, %v of them writes: %v", c.iops, c.writes, err)
		}
	}
	d := rated(t, tco.Corrected, 1e6, 85e3)
	jobs := []tco.Workload{job(200e3, 0), job(34e3, 1), job(100e3, 0.17)}
	jobs[2].End = 100
	a, err := tco.Assess(tco.DefaultConfig(), []tco.Drive{d}, jobs, []int{0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	if s := a.Drives[0]; math.Abs(s.Load-334e3) > 1e-6 || math.Abs(s.IOPSShare-(0.2+0.4+0.083+0.2)) > 1e-12 {
		t.Errorf("%v I/Os a second, %v of what it does", s.Load, s.IOPSShare)
	}
	// The paper has one rating, of the group's mix.
	if d := rated(t, tco.Paper, 1e6, 85e3); d.WriteCost != 0 ||
		math.Abs(d.Load(&jobs[2])/d.IOPS-100e3*(0.5/85e3+0.5/1e6)) > 1e-12 {
		t.Errorf("%+v", d)
	}
	// A small write to RAID-5 reads the old data and parity, and writes both: of 6 drives, 2 (1/1e6 + 1/85e3)/6 of a
	// write per second.
	r, err := tco.Array{Kind: tco.RAID5, Drives: 6}.Of(d, tco.Corrected)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Load(&jobs[1])/r.IOPS, 34e3*2*(1/1e6+1/85e3)/6; math.Abs(got-want) > 1e-12 {
		t.Errorf("small writes take %v of the array, not %v", got, want)
	}
	full := jobs[1]
	full.FullStripe = 1
	if got, want := r.Load(&full)/r.IOPS, 34e3*1.2/85e3/6; math.Abs(got-want) > 1e-12 {
		t.Errorf("full stripes take %v of the array, not %v", got, want)
	}
}

// TestDirectedPlans verifies that plans of few workloads limited by both ratings meet every limit, and that no plan
// costs less than the bound, by independent arithmetic.
func TestDirectedPlans(t *testing.T) {
	r := rng.NewStream(1, "directions")
	tight := 0
	for n := range 40 {
		p := tco.Problem{Config: tco.DefaultConfig()}
		for k := range 2 {
			d := rated(t, tco.Corrected, 10e3+20e3*r.Float64(), 2e3+40e3*r.Float64())
			d.Name, d.Buy = fmt.Sprint("m", k), 300+400*r.Float64()
			if k == 1 && n%3 == 0 {
				var err error
				if d, err = (tco.Array{Kind: tco.RAID5, Drives: 4}).Of(d, tco.Corrected); err != nil {
					t.Fatal(err)
				}
			}
			p.Classes = append(p.Classes, tco.Class{Drive: d, Count: 6, Optional: true})
		}
		for j := range 6 {
			p.Jobs = append(p.Jobs,
				tco.Workload{Name: fmt.Sprint("w", j), WriteRate: 100 * r.Float64(), PeakIOPS: 2e3 + 6e3*r.Float64(),
					WriteShare: r.Float64(), WorkingSet: 10 + 90*r.Float64(), FullStripe: r.Float64()})
		}
		best, err := bound.Optimise(tco.DefaultOptimiseConfig(), &p, nil)
		if err != nil {
			if !strings.Contains(err.Error(), "IOPS") {
				t.Errorf("%d: %v", n, err)
			}
			continue
		}
		if err := certify.Check(&p, best.Certificate); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		load := make(map[int]float64)
		drives, _ := p.Drives()
		for j, k := range best.Host {
			load[k] += drives[k].Load(&p.Jobs[j]) / drives[k].IOPS
		}
		for k, share := range load {
			if share > 1+1e-9 {
				t.Errorf("%d: drive %d does %v of what it can", n, k, share)
			}
		}
		if len(load) > 1 {
			tight++
		}
	}
	if tight < 10 {
		t.Errorf("of 40 problems only %d need more than a drive", tight)
	}
}
