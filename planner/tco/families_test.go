package tco

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
	"farflash/policy/ftl/waf"
)

// familyNames are the families of problems that tests draw from.
var familyNames = []string{"plain", "steep", "prices", "space", "iops", "zero", "huge", "raid", "codes", "endless",
	"short", "worn", "p99", "apart", "arrivals", "ends", "owned", "racks"}

// family draws a problem with n workloads.
func family(name string, r *rng.Stream, n int) *Problem {
	p := &Problem{Config: Config{Horizon: DefaultHorizon, FillSpace: 0.9, FillIOPS: 0.8}}
	between := func(lo, hi float64) float64 { return lo + (hi-lo)*r.Float64() }
	models := 3
	for k := range models {
		d := Drive{Name: fmt.Sprint("m", k), Capacity: 800 * math.Pow(2, float64(k)) * between(0.8, 1.2),
			Run: between(0.02, 0.1), WAF: waf.DefaultSequentialMix(between(2, 6))}
		d.Buy = d.Capacity * between(0.8, 1.8)
		d.IOPS = d.Capacity * between(5, 30)
		d.Budget = d.Capacity * between(1000, 8000) * 2
		switch name {
		case "steep":
			table, err := NewTable([]waf.MixPoint{{S: 0, WAF: between(6, 9)}, {S: 0.5, WAF: between(4, 6)},
				{S: 0.7, WAF: 1.6}, {S: 1, WAF: 1}})
			if err != nil {
				panic(err)
			}
			d.WAF, d.Budget = table, d.Budget/4
		case "prices":
			d.Buy *= math.Pow(4, between(-1, 1))
		case "worn":
			d.Worn = d.Budget * between(0, 0.9)
		case "raid":
			d = mustArray(Array{Kind: []ArrayKind{RAID0, RAID1, RAID5}[k], Drives: 4}, d)
		case "codes":
			d = mustArray([]Array{{Kind: ErasureCode, Drives: 6, Data: 4, Parity: 2},
				{Kind: Replication, Drives: 3, Parity: 1}, {Kind: Single}}[k], d)
		case "p99":
			tail, err := NewTailTable([]TailPoint{{0.1, between(80, 200)}, {0.5, between(200, 600)},
				{0.8, between(800, 3000)}})
			if err != nil {
				panic(err)
			}
			d.Tail = tail
		case "racks":
			d.Domain = fmt.Sprint("rack", k%2)
		}
		p.Classes = append(p.Classes, Class{Drive: d, Count: n, Optional: true})
	}
	for j := range n {
		w := Workload{Name: fmt.Sprint("w", j), WriteRate: 2000 * r.Float64() * r.Float64(), Sequential: r.Float64(),
			WriteShare: r.Float64(), FullStripe: r.Float64(), WorkingSet: between(50, 500),
			PeakIOPS: between(100, 4000)}
		switch name {
		case "space":
			w.WorkingSet, w.PeakIOPS = between(200, 650), 100
		case "iops":
			w.WorkingSet, w.PeakIOPS = 10, between(1000, 4000)
		case "zero":
			if j%2 == 0 {
				w.WriteRate = 0
			}
		case "huge":
			w.WriteRate *= 20
		case "p99":
			w.P99 = between(300, 3000)
		case "apart", "racks":
			w.Apart = []string{"", "a", "b"}[r.IntN(3)]
			if name == "racks" && j > 3 {
				w.Apart = ""
			} else if name == "racks" {
				w.Apart = []string{"a", "b"}[j%2]
			}
		case "arrivals":
			w.Arrival = between(0, 700)
		case "ends":
			w.Arrival = between(0, 300)
			if j%3 > 0 {
				w.End = w.Arrival + between(100, 1500)
			}
		}
		p.Jobs = append(p.Jobs, w)
	}
	switch name {
	case "endless":
		p.Config.Horizon = 0
	case "short":
		p.Config.Horizon = 300
	case "owned":
		p.Classes[0].Optional, p.Classes[0].Count = false, 2
		p.Classes[1].Optional, p.Classes[1].Count = false, 1
	}
	return p
}

func mustArray(a Array, d Drive) Drive {
	d, err := a.Of(d, Corrected)
	if err != nil {
		panic(err)
	}
	return d
}
