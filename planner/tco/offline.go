package tco

import (
	"fmt"
	"math"
	"slices"

	"farflash/numeric/units"
)

// OfflineConfig configures the placement of all workloads at once on as many drives of one model as needed (algorithm
// 2).
type OfflineConfig struct {
	Config
	// Thresholds divide the workloads by sequential ratio, in ascending order: n thresholds make n+1 zones of drives.
	// None is the greedy approach.
	Thresholds []float64
	// Switch is delta: zones are kept apart only if the normalised differences of their write rates, |a-b|/(a+b), are
	// all below it. 1 or more: always.
	Switch float64
	// Most is the largest number of drives; 0: any number.
	Most int
}

// Constants of the paper's evaluation.
const (
	// PaperThreshold is the sequential ratio at which figure 10 divides workloads.
	PaperThreshold = 0.6
	// PaperSwitch is delta, 13.46 %.
	PaperSwitch = 0.1346
)

// DefaultOfflineConfig returns the paper's setting: two zones if their write rates are similar.
func DefaultOfflineConfig() OfflineConfig {
	return OfflineConfig{Config: DefaultConfig(), Thresholds: []float64{PaperThreshold}, Switch: PaperSwitch}
}

// Validate reports invalid zones, by the keys of a plan's zones.
func (c *OfflineConfig) Validate() error {
	var f units.Faults
	for i, e := range c.Thresholds {
		at := fmt.Sprintf("thresholds[%d]", i)
		f.Hold(e > 0 && e < 1, at, "%v is not possible; a threshold lies between 0%% and 100%%", units.Fraction(e))
		f.Hold(i == 0 || e > c.Thresholds[max(i-1, 0)], at, "%v follows %v; thresholds rise", units.Fraction(e),
			units.Fraction(c.Thresholds[max(i-1, 0)]))
	}
	f.Hold(c.Switch >= 0, "switch", "%v is not possible; write 0%% or more", units.Fraction(c.Switch))
	return f.Err()
}

// EvenThresholds divides [0, 1] into the given number of zones of equal width.
func EvenThresholds(zones int) []float64 {
	var list []float64
	for i := 1; i < zones; i++ {
		list = append(list, float64(i)/float64(zones))
	}
	return list
}

// OfflineResult is the outcome of Offline: the drives bought and the placement.
type OfflineResult struct {
	Placement
	Drives   []Drive
	Zone     []int // of each drive, 0 being the most sequential
	Grouped  bool  // zones are kept apart
	Spread   float64
	ZoneRate []float64 // GB per day written by the workloads of each zone
}

// Offline places all workloads on drives like model and buys one whenever no drive has space. Within a zone a workload
// goes where it makes the coefficient of variation of the drives' write rates smallest; with zones, each zone is filled
// in descending order of sequential ratio. Arrivals are respected: a drive's service starts with its first workload.
//
// The listing of algorithm 2 puts the test of delta inside the loop, and section 4.4 confuses the two approaches;
// figure 10 shows the intent: zones with similar write rates are grouped.
func Offline(cfg OfflineConfig, model Drive, jobs []Workload) (*OfflineResult, error) {
	if err := checkInput(cfg.Config, []Drive{model}, jobs); err != nil {
		return nil, err
	}
	if err := units.Within("zones", cfg.Validate()); err != nil {
		return nil, err
	}
	zones := len(cfg.Thresholds) + 1
	r := &OfflineResult{Placement: Placement{Host: make([]int, len(jobs)), Refused: map[int]Refusal{}},
		ZoneRate: make([]float64, zones)}
	of := make([][]int, zones)
	for j := range jobs {
		z := 0
		for _, e := range cfg.Thresholds {
			if jobs[j].Sequential < e {
				z++
			}
		}
		of[z] = append(of[z], j)
		r.ZoneRate[z] += jobs[j].WriteRate
	}
	for a := range zones {
		for b := range a {
			if sum := r.ZoneRate[a] + r.ZoneRate[b]; sum > 0 {
				r.Spread = max(r.Spread, math.Abs(r.ZoneRate[a]-r.ZoneRate[b])/sum)
			}
		}
	}
	r.Grouped = zones > 1 && r.Spread < cfg.Switch
	d := &distribution{cfg: cfg, model: model, jobs: jobs, result: r}
	if !r.Grouped {
		all := make([]int, len(jobs))
		for j := range all {
			all[j] = j
		}
		d.distribute(all, 0)
		return r, nil
	}
	for z, list := range of {
		slices.SortStableFunc(list, func(a, b int) int {
			switch {
			case jobs[a].Sequential > jobs[b].Sequential:
				return -1
			case jobs[a].Sequential < jobs[b].Sequential:
				return 1
			}
			return 0
		})
		d.distribute(list, z)
	}
	return r, nil
}

// distribution is the state of algorithm 2's Distribute.
type distribution struct {
	cfg    OfflineConfig
	model  Drive
	jobs   []Workload
	result *OfflineResult

	space, load, rate []float64 // by drive
	crowds            []Group
	apart             map[string][]int
}

func (d *distribution) distribute(list []int, zone int) {
	first := len(d.result.Drives)
	sum, squares := 0.0, 0.0 // of the zone's write rates
	for _, j := range list {
		w := &d.jobs[j]
		d.result.Host[j] = -1
		if why := d.room(-1, w); why != Fits {
			var f Refusal
			f[why]++
			d.result.Refused[j] = f
			continue
		}
		best, least := -1, math.Inf(1)
		n := float64(len(d.rate) - first)
		for k := first; k < len(d.rate); k++ {
			if d.room(k, w) != Fits {
				continue
			}
			mean := (sum + w.WriteRate) / n
			is, was := d.rate[k]+w.WriteRate, d.rate[k]
			variance := (squares-float64(was*was)+float64(is*is))/n - float64(mean*mean)
			cv := 0.0
			if mean > 0 {
				cv = math.Sqrt(max(0, variance)) / mean
			}
			if best < 0 || better(cv, least) {
				best, least = k, cv
			}
		}
		if best < 0 {
			if d.cfg.Most > 0 && len(d.rate) >= d.cfg.Most {
				var f Refusal
				for k := first; k < len(d.rate); k++ {
					f[d.room(k, w)]++
				}
				if first == len(d.rate) {
					f[NoSpace]++
				}
				d.result.Refused[j] = f
				continue
			}
			best = d.add(zone)
		}
		was := d.rate[best]
		d.rate[best] += w.WriteRate
		sum += w.WriteRate
		squares += float64(d.rate[best]*d.rate[best]) - float64(was*was)
		d.space[best] += w.WorkingSet
		d.load[best] += d.model.Load(w)
		d.crowds[best].Join(&d.model, w, 1)
		if w.Apart != "" {
			if d.apart == nil {
				d.apart = map[string][]int{}
			}
			d.apart[w.Apart] = append(d.apart[w.Apart], best)
		}
		d.result.Host[j] = best
	}
}

// room returns the first obstacle for a workload on drive k, or on an empty drive if k is -1. Each bought drive is a
// failure domain of its own.
func (d *distribution) room(k int, w *Workload) Obstacle {
	space, load, crowd := w.WorkingSet, d.model.Load(w), Group{}
	if k >= 0 {
		space += d.space[k]
		load += d.load[k]
		crowd = d.crowds[k]
		if w.Apart != "" && slices.Contains(d.apart[w.Apart], k) {
			return SameDomain
		}
	}
	crowd.Join(&d.model, w, 1)
	switch {
	case space > float64(d.model.Capacity*d.cfg.FillSpace)*(1+roundOff):
		return NoSpace
	case load > float64(d.model.IOPS*d.cfg.FillIOPS)*(1+roundOff):
		return NoIOPS
	case crowd.Late(&d.model, load) > 1:
		return TooSlow
	}
	return Fits
}

func (d *distribution) add(zone int) int {
	n := len(d.rate)
	x := d.model
	x.Name = fmt.Sprintf("%s-%d", d.model.Name, n+1)
	x.Domain = x.Name
	d.result.Drives = append(d.result.Drives, x)
	d.result.Zone = append(d.result.Zone, zone)
	d.space, d.load, d.rate, d.crowds = append(d.space, 0), append(d.load, 0), append(d.rate, 0),
		append(d.crowds, Group{})
	return n
}
