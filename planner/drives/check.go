package drives

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/numeric/units"
	"farflash/planner/tco"
)

// mostDrives limits the size of a group.
const mostDrives = 1_000_000

// validate reports the errors of a plan, by its keys. If own is set, the plan's own workloads are placed.
func (p *Plan) validate(own bool) error {
	var f units.Faults
	f.Within("", p.config().Validate())
	if p.Calendar() && p.config().Validate() == nil && p.costs().Validate() == nil {
		// the calendar validates some of the same keys
		f.Within("", p.calendar().Validate())
	}
	f.Hold(p.Objective != CalendarObjective || p.Mode == tco.Corrected, "objective",
		"mode: paper needs objective: paper, since its formulas give the cost per GB; write mode: corrected, or "+
			"objective: paper")
	f.Hold(p.Review == 0 || p.Review >= leastReview, "review",
		"%v is too short; workloads may move at most every 30d", p.Review)
	f.Within("costs", p.costs().Validate())
	f.Hold(p.Costs.Rebuild > 0, "costs.rebuild",
		"%v is not possible; the rate at which a replacement drive is written must be above 0", p.Costs.Rebuild)
	f.Hold(p.Effective.Reduction > 0 && !math.IsInf(p.Effective.Reduction, 1), "effective.reduction",
		"%v is not possible; it is user bytes over stored bytes, 1 for no overhead", p.Effective.Reduction)
	f.Hold(p.Effective.Replication >= 1 && !math.IsInf(p.Effective.Replication, 1), "effective.replication",
		"%v copies are not possible; write 1 or more", p.Effective.Replication)
	f.Hold(p.Search.Steps >= 0, "search.steps", "%d is not possible; write 0 or more", p.Search.Steps)
	f.Hold(p.Search.Climb >= 0, "search.climb", "%d is not possible; write 0 or more", p.Search.Climb)
	f.Within("weights", p.Weights.Validate())
	zones := p.zones()
	f.Within("zones", zones.Validate())
	f.Within("uncertainty", p.validateUncertainty())
	p.unheeded(&f)
	f.Hold(len(p.Drives) > 0, "drives",
		"no drives; list at least one group, such as {model: Intel DC P3700 2TB, count: 4, price: $3400}")
	for i := range p.Drives {
		f.Within(fmt.Sprintf("drives[%d]", i), p.Drives[i].validate())
	}
	if p.ApartBy == ZoneFate {
		for i := range p.Drives {
			f.Hold(len(p.Drives[i].Domains) > 0, fmt.Sprintf("drives[%d].domains", i),
				"apart_by: zone needs the zone of these drives; write domains such as [east/r1, west/r1]")
		}
	}
	for i := range p.Drives {
		for n, domain := range p.Drives[i].Domains {
			f.Hold(domain != "" && !strings.HasPrefix(domain, "/") && !strings.HasSuffix(domain, "/"),
				fmt.Sprintf("drives[%d].domains[%d]", i, n),
				"%q is not the name of a domain; write a name such as r1 or east/r1", domain)
		}
	}
	if own {
		f.Hold((p.Workloads.File == "") != (p.Workloads.List == nil), "workloads",
			"workloads are either a CSV file or a list; write one of the two")
		f.Within("workloads", p.validateList())
	}
	return f.Err()
}

// unheeded rejects keys that the algorithm does not use.
func (p *Plan) unheeded(f *units.Faults) {
	for _, x := range []struct {
		key    string
		heeded bool
		by     string
	}{
		{"weights", !p.Algorithm.offline && !p.Algorithm.optimal && p.Algorithm.policy == tco.MinTCOPerf,
			"mintco-perf"},
		{"zones", p.Algorithm.offline, "mintco-offline"},
		{"review", p.Calendar() && p.Algorithm.optimal, "optimal with objective: calendar"},
		{"warm_up", !p.Algorithm.offline && !p.Algorithm.optimal,
			"an algorithm that places workloads as they arrive, such as mintco-v3"},
	} {
		if path, given := p.given(x.key); given && !x.heeded {
			f.Hold(false, path, "%v does not use it; leave it out, or choose %s", p.Algorithm, x.by)
		}
	}
	for i := range p.Drives {
		if path, given := p.given(fmt.Sprintf("drives[%d].write_share", i)); given && p.Mode == tco.Corrected &&
			p.Drives[i].WriteShare <= 1 {
			f.Hold(false, path, "each workload's own write_share counts, against the ratings for reads and writes; "+
				"leave it out, or choose mode: paper")
		}
	}
	for _, key := range []string{"discount", "price_trend", "space", "moving", "residual", "residual_over"} {
		if path, given := p.given("costs." + key); given && !p.Calendar() {
			f.Hold(false, path, "objective: paper does not use it; leave it out, or choose objective: calendar")
		}
	}
}

// leastReview is the shortest time between reviews, in days.
const leastReview = 30

// given returns the first key of a section that the user set.
func (p *Plan) given(section string) (string, bool) {
	if _, ok := p.set[section]; ok {
		return section, true
	}
	var below []string
	for path := range p.set {
		if strings.HasPrefix(path, section+".") {
			below = append(below, path)
		}
	}
	if below == nil {
		return "", false
	}
	return slices.Min(below), true
}

// zones returns the configuration of mintco-offline.
func (p *Plan) zones() tco.OfflineConfig {
	c := tco.OfflineConfig{Config: p.config(), Switch: float64(p.Zones.Switch)}
	for _, e := range p.Zones.Thresholds {
		c.Thresholds = append(c.Thresholds, float64(e))
	}
	return c
}

// mostSpare is the largest share of a drive that may be left unused.
const mostSpare = 0.9

func (g *Group) validate() error {
	var f units.Faults
	f.Hold(g.Model != "", "model",
		"no model; name one of the catalogue (farflash list drives) or of your own table (catalogue: drives.csv)")
	f.Hold(g.Count >= 0, "count", "%d is not possible; a count is 0 or more", g.Count)
	f.Hold(g.UpTo >= 0, "up_to", "%d is not possible; a count is 0 or more", g.UpTo)
	f.Hold((g.Count > 0) != (g.UpTo > 0), "count",
		"write either count, for existing drives, or up_to, for drives that may be bought")
	f.Hold(!g.Owned || g.Count > 0, "owned", "owned drives already exist; write count instead of up_to")
	f.Hold(max(g.Count, g.UpTo) <= mostDrives, "count", "%d drives are too many; a plan has at most %d",
		max(g.Count, g.UpTo), mostDrives)
	for _, x := range []struct {
		key string
		v   *float64
	}{{"read_iops", g.ReadIOPS}, {"write_iops", g.WriteIOPS}, {"active_w", g.ActiveW}, {"idle_w", g.IdleW},
		{"tbw", g.TBW}} {
		f.Hold(x.v == nil || *x.v >= 0 && !math.IsInf(*x.v, 1), x.key, "the value is not possible; write 0 or more")
	}
	f.Hold(g.AFR == nil || *g.AFR <= 1, "afr",
		"it is above 100%%; write the share of drives that fail in a year, at most 100%%")
	f.Hold(g.Duty == nil || *g.Duty <= 1, "duty", "it is above 100%%; a drive is active for at most all of the time")
	f.Hold(g.WriteShare <= 1, "write_share", "%v is above 100%%; write the share of I/Os that write, at most 100%%",
		g.WriteShare)
	f.Hold(g.Spare <= mostSpare, "spare", "%v is not possible; at most %v of a drive may be left unused", g.Spare,
		units.Fraction(mostSpare))
	f.Hold(g.Worn < 1, "worn", "a worn-out drive takes no workload; write less than 100%%")
	if g.Array != nil {
		f.Within("array", g.Array.validate())
	}
	if g.WAF != nil {
		f.Within("waf", g.WAF.validate())
	}
	f.Hold(g.RatedWAF == 0 || g.RatedWAF >= 1 && !math.IsInf(g.RatedWAF, 1), "rated_waf",
		"a write amplification of %v is not possible; write 1 or more", g.RatedWAF)
	if g.Latency != nil {
		f.Hold((g.Latency.Points == nil) != (g.Latency.Simulate == ""), "latency",
			"latency has either points or simulate; write one of the two")
	}
	return f.Err()
}

// validate rejects settings that the kind of array does not have.
func (a *Array) validate() error {
	var f units.Faults
	f.Hold(a.Drives >= 0, "drives", "%d is not possible; an array has at least one drive", a.Drives)
	f.Hold(a.Data == 0 || a.Kind == tco.ErasureCode, "data",
		"only ec takes data shards, and the array is %v; leave it out, or choose ec", a.Kind)
	f.Hold(a.Parity == 0 || a.Kind == tco.ErasureCode || a.Kind == tco.Replication, "parity",
		"the parity of %v is fixed; leave it out, or choose ec or replication", a.Kind)
	return f.Err()
}

// leastBlocks and mostBlocks limit the simulated blocks of a drive: fewer leave no spare block, more take minutes.
const leastBlocks, mostBlocks = 16, 20_000

func (a *Amplification) validate() error {
	var f units.Faults
	given := 0
	equation := a.Random != 0 || a.Turn != 0 || a.Slope != 0 || a.Sequential != 0
	for _, set := range []bool{equation, a.Constant != 0, a.Table != "", a.Points != nil, a.Simulate != 0,
		a.Trace != ""} {
		if set {
			given++
		}
	}
	f.Hold(given == 1, "",
		"write amplification comes from exactly one of random (with sequential, turn and slope: equation 7), "+
			"constant, table, points, simulate and trace")
	f.Hold(a.Constant == 0 || a.Constant >= 1 && !math.IsInf(a.Constant, 1), "constant",
		"a write amplification of %v is not possible; write 1 or more", a.Constant)
	if a.Points != nil {
		_, err := a.table()
		f.Hold(err == nil, "points", "%v", err)
	}
	f.Hold(a.Simulate >= 0, "simulate", "%d blocks are not possible; write 0 or more", a.Simulate)
	f.Hold(a.Simulate <= 0 || a.Simulate >= leastBlocks && a.Simulate <= mostBlocks, "simulate",
		"a drive of %d blocks cannot be simulated; write %d to %d, such as 500", a.Simulate, leastBlocks, mostBlocks)
	if equation {
		f.Hold(a.Random >= 1 && !math.IsInf(a.Random, 1), "random",
			"a write amplification of %v is not possible; write 1 or more", a.Random)
		f.Hold(a.Sequential == 0 || a.Sequential >= 1, "sequential",
			"a write amplification of %v is not possible; write 1 or more", a.Sequential)
		f.Hold(a.Sequential <= max(1, a.Random), "sequential",
			"sequential writes are amplified by %v, more than random ones, by %v; write at most the value of random",
			a.Sequential, a.Random)
		f.Hold(a.Turn < 1, "turn", "%v is not possible; write less than 100%%", a.Turn)
		f.Hold(!math.IsNaN(a.Slope) && !math.IsInf(a.Slope, 0), "slope", "%v is not a slope", a.Slope)
	}
	return f.Err()
}

// validateList validates the plan's own list of workloads.
func (p *Plan) validateList() error {
	var f units.Faults
	seen := map[string]bool{}
	jobs := p.listed()
	for i := range jobs {
		w := &jobs[i]
		at := fmt.Sprintf("list[%d]", i)
		f.Hold(w.Name != "", at, "the workload has no name; give it one")
		f.Hold(w.Name == "" || !seen[w.Name], at+".name", "two workloads are named %q; give each its own name", w.Name)
		seen[w.Name] = true
		f.Within(at, w.Validate())
	}
	return f.Err()
}
