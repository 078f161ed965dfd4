package tco

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/rng"
)

// plainly places workloads on equal drives by algorithm 2's Distribute, recomputing everything from the placement so
// far.
func plainly(cfg OfflineConfig, model Drive, jobs []Workload) (host []int, drives [][]int) {
	fits := func(on []int) bool {
		space, load, tight := 0.0, 0.0, math.Inf(1)
		seen := map[string]bool{}
		for _, j := range on {
			w := &jobs[j]
			space += w.WorkingSet
			load += w.PeakIOPS
			if w.P99 > 0 {
				tight = min(tight, w.P99)
			}
			if w.Apart != "" && seen[w.Apart] {
				return false
			}
			seen[w.Apart] = true
		}
		return space <= model.Capacity*cfg.FillSpace+1e-9 && load <= model.IOPS*cfg.FillIOPS+1e-9 &&
			(math.IsInf(tight, 1) || model.Tail.(TailTable).At(load/model.IOPS) <= tight)
	}
	for j := range jobs {
		host = append(host, -1)
		if !fits([]int{j}) {
			continue
		}
		best, least := -1, math.Inf(1)
		for k := range drives {
			if !fits(append(slices.Clone(drives[k]), j)) {
				continue
			}
			rates, mean, squares := make([]float64, len(drives)), 0.0, 0.0
			for i := range drives {
				for _, x := range drives[i] {
					rates[i] += jobs[x].WriteRate
				}
				if i == k {
					rates[i] += jobs[j].WriteRate
				}
				mean += rates[i] / float64(len(drives))
			}
			for _, r := range rates {
				squares += (r - mean) * (r - mean)
			}
			cv := 0.0
			if mean > 0 {
				cv = math.Sqrt(squares/float64(len(drives))) / mean
			}
			if cv < least-1e-9 {
				best, least = k, cv
			}
		}
		if best < 0 && cfg.Most > 0 && len(drives) >= cfg.Most {
			continue
		}
		if best < 0 {
			best = len(drives)
			drives = append(drives, nil)
		}
		drives[best] = append(drives[best], j)
		host[j] = best
	}
	return host, drives
}

// TestOfflineByDefinition verifies that the running sums of Offline choose the same drives as the definition of the
// coefficient of variation, under every kind of limit.
func TestOfflineByDefinition(t *testing.T) {
	tail, err := NewTailTable([]TailPoint{{0.1, 100}, {0.5, 200}, {0.9, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	r := rng.NewStream(3, "offline")
	most := 0
	for trial := range 300 {
		model := Drive{Name: "d", Buy: 1000, Budget: 1e7, Capacity: 100, IOPS: 100, WAF: Constant(2), Tail: tail}
		cfg := OfflineConfig{Config: DefaultConfig(), Most: int(r.IntN(3)) * int(r.IntN(5))}
		cfg.FillSpace, cfg.FillIOPS = 0.5+float64(r.IntN(2))/2, 0.5+float64(r.IntN(2))/2
		var jobs []Workload
		for j := range 2 + r.IntN(16) {
			w := Workload{Name: fmt.Sprint("w", j), WriteRate: float64(r.IntN(8)), WorkingSet: float64(r.IntN(40)),
				PeakIOPS: float64(r.IntN(30)), End: 1e6}
			if r.IntN(4) == 0 {
				w.P99 = float64(100 * (1 + r.IntN(8)))
			}
			if r.IntN(4) == 0 {
				w.Apart = "q"
			}
			jobs = append(jobs, w)
		}
		got, err := Offline(cfg, model, jobs)
		if err != nil {
			t.Fatal(err)
		}
		host, drives := plainly(cfg, model, jobs)
		if !slices.Equal(got.Host, host) || len(got.Drives) != len(drives) {
			t.Fatalf("trial %d, at most %d drives: %v on %d, the definition has %v on %d", trial, cfg.Most, got.Host,
				len(got.Drives), host, len(drives))
		}
		for j, k := range host {
			if f, refused := got.Refused[j]; refused != (k < 0) || refused && f == (Refusal{}) {
				t.Errorf("trial %d: workload %d is on drive %d and refused %v: %v", trial, j, k, refused, f)
			}
		}
		if cfg.Most > 0 && slices.Contains(host, -1) && len(drives) == cfg.Most {
			most++
		}
	}
	if most < 20 {
		t.Errorf("drives were too few %d times: no test", most)
	}
}

// TestThresholdOfCost verifies that a drive whose cost per gigabyte would exceed the threshold is refused, and one that
// meets it is not.
func TestThresholdOfCost(t *testing.T) {
	drive := Drive{Name: "d", Buy: 1000, Run: 2, Budget: 1e6, Capacity: 100, IOPS: 100, WAF: Constant(4)}
	jobs := []Workload{{Name: "w", WriteRate: 50, WorkingSet: 10}}
	// 4 GB of wear per GB written: 5000 days without a horizon, and 1000 + 2 * 5000 over 250,000 GB.
	const each = 11000. / 250000
	for threshold, why := range map[float64]Obstacle{each * 1.001: Fits, each * .999: TooCostly, 0: Fits} {
		p, _, err := Online(AllocatorConfig{Config: Config{FillSpace: 1, FillIOPS: 1}, Policy: MinRate,
			Threshold: threshold}, []Drive{drive}, jobs)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Host[0] == 0; got != (why == Fits) || !got && p.Refused[0].Main() != why {
			t.Errorf("at most %v a GB: on drive %d, refused for %v; it costs %v", threshold, p.Host[0],
				p.Refused[0].Main(), each)
		}
	}
}

// TestAllRowsAreRead verifies that an empty row does not end the table, and that every invalid row is reported.
func TestAllRowsAreRead(t *testing.T) {
	head := "name,write_gb_per_day,sequential,peak_iops,write_share,working_set_gb\n"
	list, err := ReadWorkloads(strings.NewReader(head+"a,1,0.5,1,0.5,1\n, ,,,,\nb,1,0.5,1,0.5,1\n"), "w.csv")
	if err != nil || len(list) != 2 || list[1].Name != "b" {
		t.Errorf("%d workloads, %v", len(list), err)
	}
	_, err = ReadWorkloads(strings.NewReader(head+"a,1\nb,1,0.5\nc,x,0.5,1,0.5,1\n"), "w.csv")
	for _, want := range []string{"row 2: 2 values", "row 3: 3 values",
		"row 4, column write_gb_per_day"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; %s is part of it", err, want)
		}
	}
}

// TestDeadDrive verifies that a drive that wears out and loses its workloads has used its whole budget, and wears no
// further.
func TestDeadDrive(t *testing.T) {
	drives := []Drive{
		{Name: "a", Buy: 1000, Run: 1, Budget: 10000, Capacity: 500, IOPS: 1000, WAF: Constant(2)},
		{Name: "b", Buy: 1000, Run: 1, Budget: 1e7, Capacity: 500, IOPS: 1000, WAF: Constant(2)},
	}
	jobs := []Workload{{Name: "w", WriteRate: 50, WorkingSet: 20},
		{Name: "late", WriteRate: 1, WorkingSet: 10, Arrival: 300}}
	cfg := Config{Horizon: 1000, FillSpace: 1, FillIOPS: 1}
	moves, after, err := Migrate(cfg, drives, jobs, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	// 100 GB of wear per day last 100 days.
	d := after.Drives[0]
	if len(moves) != 1 || moves[0].Day != 100 || moves[0].To != 1 {
		t.Errorf("moves %+v", moves)
	}
	if math.Abs(d.WearAtDeath-1) > 1e-12 || math.Abs(d.Lifetime-100) > 1e-9 || math.Abs(d.Data-5000) > 1e-6 ||
		math.Abs(d.Cost-1100) > 1e-9 || d.WriteRate != 0 {
		t.Errorf("the drive that is worn out: %+v", d)
	}
	// The other's service starts with a copy of 20 GB on day 100 and lasts for the horizon: 50 GB per day until day
	// 1000, when the first drive's horizon ends, and 1 more from day 300 on.
	if b := after.Drives[1]; math.Abs(b.WearAtDeath*1e7-2*(900*50+800+20)) > 1e-6 {
		t.Errorf("the other wears %v", b.WearAtDeath*1e7)
	}
}
