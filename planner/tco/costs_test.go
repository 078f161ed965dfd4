package tco

import (
	"fmt"
	"math"
	"testing"
)

func TestCosts(t *testing.T) {
	c := DefaultCosts()
	p3700 := Power{Active: 25, Idle: 4, Duty: 0.3}
	digits(t, "P_avg", p3700.Mean(), "10.3")
	digits(t, "c_M", c.Running(p3700), "0.038")
	digits(t, "AFR, %", 100*AFR(DefaultMTBF), "0.44")
	if err := (Costs{PUE: 0.9}).check(); err == nil {
		t.Error("a PUE below 1 was taken")
	}

	f := c.Expect(6, 0.0044, 1825, 1000, 500, 200)
	digits(t, "failures of 6 drives in 5 years", f.Expected, fmt.Sprintf("%.9f", 6*0.0044*5))
	digits(t, "spares", f.Spares, fmt.Sprintf("%.6f", 6*0.0044*5*1000))
	digits(t, "hours of rebuilding", f.Hours, fmt.Sprintf("%.6f", 6*0.0044*5*500e3/200/3600))
	c.Warranty, c.Replacing = 1095, 50
	digits(t, "spares after a warranty of 3 years", c.Expect(1, 0.01, 1825, 1000, 0, 0).Spares,
		fmt.Sprintf("%.6f", 0.05*0.4*1000))
	digits(t, "labour", c.Expect(1, 0.01, 1825, 1000, 0, 0).Labour, "2.500000")

	k := c.CarbonOf(1000, 10, 365)
	digits(t, "embodied", k.Embodied, "160.0")
	digits(t, "operational", k.Operational, fmt.Sprintf("%.6f", 0.01*24*365*1.54*0.4))

	e := Effective{Raw: 100, Utilisation: 0.8, Reduction: 2, Replication: 1, Encoding: 1.5}
	digits(t, "TBe", e.TBe(), "106.666667")
	digits(t, "$/TBe/month", e.PerMonth(10000, 1825), fmt.Sprintf("%.6f", 10000/106.66666666666667/60))
}

func TestConfigErrors(t *testing.T) {
	for _, bad := range []Config{{Horizon: -1, FillSpace: 1, FillIOPS: 1}, {FillSpace: 2, FillIOPS: 1},
		{FillSpace: 1}} {
		if _, err := NewPool(bad, goldenDrives()); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
	for _, change := range []func(*Workload){
		func(w *Workload) { w.WriteRate = -1 }, func(w *Workload) { w.Sequential = 1.1 },
		func(w *Workload) { w.PeakIOPS = math.Inf(1) },
		func(w *Workload) { w.WriteShare = math.NaN() }, func(w *Workload) { w.WorkingSet = -1 },
		func(w *Workload) { w.Arrival = -1 },
		func(w *Workload) {
			w.Arrival, w.End = 5,
				4
		}, func(w *Workload) { w.FullStripe = 2 }, func(w *Workload) { w.P99 = -1 },
	} {
		jobs, host := goldenJobs()
		change(&jobs[0])
		if _, err := Assess(DefaultConfig(), goldenDrives(), jobs, host); err == nil {
			t.Errorf("%+v was taken", jobs[0])
		}
	}
	for _, change := range []func(*Drive){
		func(d *Drive) { d.Buy = -1 }, func(d *Drive) { d.Run = math.NaN() }, func(d *Drive) { d.Budget = 0 },
		func(d *Drive) { d.Worn = 1e9 },
		func(d *Drive) { d.Capacity = 0 }, func(d *Drive) { d.IOPS = 0 }, func(d *Drive) { d.WAF = nil },
		func(d *Drive) { d.Stripe.FullIOs = 0.5 },
	} {
		drives := goldenDrives()
		change(&drives[0])
		if _, err := NewPool(DefaultConfig(), drives); err == nil {
			t.Errorf("%+v was taken", drives[0])
		}
	}
}
