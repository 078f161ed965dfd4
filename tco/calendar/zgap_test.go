package calendar_test

import (
	"strings"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"farflash/rng"
	"farflash/tco"
	"farflash/tco/calendar"
)

func TestZGap(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	if n == 0 {
		t.Skip()
	}
	seeds, _ := strconv.Atoi(os.Getenv("SEEDS"))
	exact := os.Getenv("EXACT") != ""
	residual, discount := 0.0, 0.0
	if os.Getenv("MONEY") != "" {
		residual, discount = 0.3, 0.05
	}
	for _, name := range familyNames {
		if f := os.Getenv("FAM"); f != "" && !strings.Contains(f, name) {
			continue
		}
		sum, worst, k := 0.0, 0.0, 0
		var t1, t2 time.Duration
		sum2, worst2 := 0.0, 0.0
		for seed := range uint64(seeds) {
			r := rng.NewStream(seed, "gap-"+name)
			p := family(name, &r, n)
			cfg := calendar.DefaultConfig()
			cfg.FillSpace, cfg.FillIOPS, cfg.Replacing, cfg.Residual, cfg.Discount = 0.9, 0.8, 20, residual, discount
			if p.Config.Horizon > 0 {
				cfg.Horizon = p.Config.Horizon
			}
			for i := range p.Classes {
				d := &p.Classes[i].Drive
				if d.Upkeep.Next == 0 {
					d.Upkeep.Next, d.Upkeep.Idle, d.Upkeep.Active, d.Upkeep.Duty, d.Upkeep.AFR = d.Buy, d.Run, d.Run*1.5, 0.5, 0.005
				}
			}
			c, err := calendar.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			p.Pricer = c
			how := tco.DefaultOptimiseConfig()
			if exact {
				how.Exact = n
			} else {
				if k, _ := strconv.Atoi(os.Getenv("MORE")); k > 0 {
				how.Steps *= k
			}
			}
			from := time.Now()
			o, err := tco.Optimise(how, p, nil)
			if err != nil {
				fmt.Println(name, seed, err)
				continue
			}
			t1 += time.Since(from)
			from = time.Now()
			f := c.Floor(p)
			t2 += time.Since(from)
			best := o.Cost
			if os.Getenv("BOTH") != "" {
				how.Exact = n
				x, err := tco.Optimise(how, p, nil)
				if err != nil || !x.Exact {
					t.Fatal(err)
				}
				best = x.Cost
			}
			sum2, worst2 = sum2+o.Cost/best-1, max(worst2, o.Cost/best-1)
			gap := best/f.Least - 1
			sum, worst, k = sum+gap, max(worst, gap), k+1
		}
		fmt.Printf("| %s | %.2f, %.2f | %.1f, %.1f |\n", name, 100*sum2/float64(k), 100*worst2, 100*sum/float64(k), 100*worst)
		fmt.Printf("%-9s n %d: mean %.1f %% worst %.1f %% of %d; plan %v bound %v\n", name, n, 100*sum/float64(max(1, k)), 100*worst, k, t1, t2)
	}
}
