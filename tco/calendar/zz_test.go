package calendar_test

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"

	"farflash/rng"
	"farflash/tco"
	"farflash/tco/calendar"
	"farflash/tco/bound"
)

func user() float64 {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return float64(r.Utime.Sec) + float64(r.Utime.Usec)/1e6
}

func TestZZ(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("ZN"))
	seeds, _ := strconv.Atoi(os.Getenv("ZS"))
	mode := os.Getenv("ZM")
	for _, name := range familyNames {
		if f := os.Getenv("ZF"); f != "" && f != name {
			continue
		}
		var gaps []string
		worst, sum := 0.0, 0.0
		t0 := user()
		for seed := range uint64(seeds) { _ = seed
			r := rng.NewStream(seed+100, "family "+name)
			p := family(name, &r, n)
			gap := 0.0
			how := tco.DefaultOptimiseConfig()
			if mode == "calendar" {
				if p.Config.Horizon == 0 {
					p.Config.Horizon = tco.DefaultHorizon
				}
				for i := range p.Classes {
					d := &p.Classes[i].Drive
					d.Upkeep = tco.Upkeep{Members: 1, AFR: 0.0044, Next: d.Buy, Idle: d.Run * 0.4, Active: d.Run, Duty: 0.3, ByLoad: true}
					if !p.Classes[i].Optional { d.Upkeep.Next = d.Buy }
				}
				cfg := calendar.DefaultConfig()
				cfg.Horizon, cfg.FillSpace, cfg.FillIOPS = p.Config.Horizon, 0.9, 0.8
				cfg.Replacing, cfg.Warranty = 50, 1825
				c, err := calendar.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				p.Pricer = c
				o, err := tco.Optimise(how, p, nil)
				if err != nil {
					t.Log(name, seed, err)
					continue
				}
				gap = o.Cost/c.Floor(p).Least - 1
			} else {
				o, err := bound.Optimise(how, p, nil)
				if err != nil {
					t.Log(name, seed, err)
					continue
				}
				gap = o.Gap()
			}
			gaps = append(gaps, fmt.Sprintf("%.1f", 100*gap))
			worst, sum = max(worst, gap), sum+gap
		}
		fmt.Printf("%-9s mean %6.2f%% worst %6.2f%%  %.2f s each  %v\n", name, 100*sum/float64(len(gaps)), 100*worst, (user()-t0)/float64(seeds), gaps)
	}
}
