package calendar_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"farflash/rng"
	"farflash/tco"
	"farflash/tco/bound"
	"farflash/tco/calendar"
)

func zpool2(t testing.TB, mode tco.Mode) []tco.Drive {
	t.Helper()
	var drives []tco.Drive
	for _, x := range []struct {
		name        string
		price, iops float64
		count       int
	}{
		{"Intel DC P3700 2TB", 3400, 0, 2}, {"Intel DC P3700 1.6TB", 2700, 0, 3}, {"Intel DC P3600 2TB", 2200, 0, 3}, {"Intel DC P3608 4TB", 5600, 0, 2},
		{"HGST Ultrastar SN150 3.2TB", 8769, 300000, 1}, {"Memblaze PBlaze4 3.2TB", 3200, 300000, 2}, {"SK hynix PE3100 960GB", 960, 100000, 2},
		{"Intel DC P3520 2TB", 1132, 100000, 3}, {"Samsung PM1725a U.2 6.4TB", 7000, 0, 2},
	} {
		m, err := tco.FindModel(tco.Catalogue(), x.name)
		if err != nil {
			t.Fatal(err)
		}
		m.Price = x.price
		if x.iops > 0 {
			m.ReadIOPS, m.WriteIOPS = x.iops, x.iops/4
		}
		if m.ActiveW == 0 {
			m.ActiveW, m.IdleW = 25, 8
		}
		for range x.count {
			d, err := m.Drive(m.Name, mode, tco.DefaultCosts(), 0.3, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			drives = append(drives, d)
		}
	}
	return drives
}

func TestZM(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ZN"))
	seeds, _ := strconv.Atoi(os.Getenv("ZS"))
	days, _ := strconv.ParseFloat(os.Getenv("ZD"), 64)
	mode := os.Getenv("ZM")
	fit, err := tco.FitWorkloads(tco.Table4())
	if err != nil { t.Fatal(err) }
	for seed := range uint64(seeds) {
		drives := zpool2(t, tco.Corrected)
		p := &tco.Problem{Config: tco.DefaultConfig(), Jobs: fit.Draw(seed+3, n, days)}
		for _, i := range []int{0, 2, 5, 8, 11, 19} {
			p.Classes = append(p.Classes, tco.Class{Drive: drives[i], Count: n, Optional: true})
		}
		how := tco.DefaultOptimiseConfig()
		t0 := user()
		if mode == "calendar" {
			for i := range p.Classes {
				d := &p.Classes[i].Drive
				d.Upkeep = tco.Upkeep{Members: 1, AFR: 0.0044, Next: d.Buy, Idle: d.Run * 0.4, Active: d.Run, Duty: 0.3, ByLoad: true}
			}
			cfg := calendar.DefaultConfig()
			cfg.Horizon, cfg.FillSpace, cfg.FillIOPS = 1825, p.Config.FillSpace, p.Config.FillIOPS
			cfg.Replacing, cfg.Warranty = 50, 1825
			c, _ := calendar.New(cfg)
			p.Pricer = c
			o, err := tco.Optimise(how, p, nil)
			if err != nil { t.Fatal(err) }
			t1 := user()
			f := c.Floor(p).Least
			fmt.Printf("calendar n %d days %v: gap %.2f%% search %.2f s bound %.2f s\n", n, days, 100*(o.Cost/f-1), t1-t0, user()-t1)
		} else {
			if mode == "endless" { p.Config.Horizon = 0 }
			o, err := tco.Optimise(how, p, nil)
			if err != nil { t.Fatal(err) }
			t1 := user()
			bound.Prove(how, p, o)
			used := map[int]int{}
			seen := map[int]bool{}
			for _, h := range o.Host { if !seen[h] { seen[h] = true; used[o.Class[h]]++ } }
			fmt.Printf("paper n %d days %v: gap %.2f%% search %.2f s bound %.2f s drives %v\n", n, days, 100*o.Gap(), t1-t0, user()-t1, used)
		}
	}
}

func TestZD(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ZN"))
	seed, _ := strconv.Atoi(os.Getenv("ZS"))
	days, _ := strconv.ParseFloat(os.Getenv("ZD"), 64)
	fit, _ := tco.FitWorkloads(tco.Table4())
	drives := zpool2(t, tco.Corrected)
	p := &tco.Problem{Config: tco.DefaultConfig(), Jobs: fit.Draw(uint64(seed), n, days)}
	if os.Getenv("ZM") == "endless" { p.Config.Horizon = 0 }
	for _, i := range []int{0, 2, 5, 8, 11, 19} {
		p.Classes = append(p.Classes, tco.Class{Drive: drives[i], Count: n, Optional: true})
		d := drives[i]
		fmt.Printf("%s buy %.0f run %.4f budget %.3g cap %.0f iops %.0f wcost %.2f A0 %.2f A.5 %.2f A1 %.2f\n", d.Name, d.Buy, d.Run, d.Budget, d.Capacity, d.IOPS, d.WriteCost, d.WAF.At(0), d.WAF.At(.5), d.WAF.At(1))
	}
	o, err := tco.Optimise(tco.DefaultOptimiseConfig(), p, nil)
	if err != nil { t.Fatal(err) }
	a, _ := tco.Assess(p.Config, o.Drives, p.Jobs, o.Host)
	for k := range a.Drives {
		if s := &a.Drives[k]; s.Workloads > 0 {
			fmt.Printf("%-30s n %d rate %.0f S %.2f WAF %.2f space %.3f io %.3f life %.0f limited %v\n", o.Drives[k].Name, s.Workloads, s.WriteRate, s.Sequential, s.WAF, s.SpaceShare, s.IOPSShare, s.Lifetime, s.Limited)
		}
	}
	fmt.Println(o.CostPerGB())
}

func TestZH(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ZN"))
	name := os.Getenv("ZF")
	sd, _ := strconv.Atoi(os.Getenv("ZS"))
	r := rng.NewStream(uint64(sd)+100, "family "+name)
	p := family(name, &r, n)
	for i := range p.Classes {
		d := &p.Classes[i].Drive
		d.Upkeep = tco.Upkeep{Members: 1, AFR: 0.0044, Next: d.Buy, Idle: d.Run * 0.4, Active: d.Run, Duty: 0.3, ByLoad: true}
		fmt.Printf("%s buy %.0f run %.4f budget %.3g cap %.0f iops %.0f A0 %.2f A.5 %.2f A1 %.2f buy/budget %.3g\n", d.Name, d.Buy, d.Run, d.Budget, d.Capacity, d.IOPS, d.WAF.At(0), d.WAF.At(.5), d.WAF.At(1), d.Buy/d.Budget)
	}
	cfg := calendar.DefaultConfig()
	cfg.Horizon, cfg.FillSpace, cfg.FillIOPS = p.Config.Horizon, 0.9, 0.8
	cfg.Replacing, cfg.Warranty = 50, 1825
	c, _ := calendar.New(cfg)
	p.Pricer = c
	o, err := tco.Optimise(tco.DefaultOptimiseConfig(), p, nil)
	if err != nil { t.Fatal(err) }
	there := make([]bool, len(o.Drives))
	b, _ := c.Keep(o.Drives, there, p.Jobs, o.Host)
	for k := range o.Drives {
		a := &b.Drives[k]
		if a.Last == 0 { continue }
		fmt.Printf("%s cost %.0f replaced %d wear %.2f space %.3f io %.3f WAF %.2f S %.2f\n", o.Drives[k].Name, a.Total(), len(a.Replaced), a.Wear, a.MostSpace/o.Drives[k].Capacity, a.MostLoad/o.Drives[k].IOPS, a.NAND/a.Hosted, a.Mixed/a.Hosted)
	}
	fl := c.Floor(p)
	fmt.Printf("cost %.0f floor %.0f\n", o.Cost, fl.Least)
}
