package tco

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"farflash/numeric/rng"
)

// lifeOf walks the days of a drive from one arrival or end to the next, and returns its outcome. It is independent of
// Pool: it sums up the present workloads anew at each step.
func lifeOf(d *Drive, jobs []Workload, horizon float64) (death, cost, data, worn float64, limited bool) {
	first := math.Inf(1)
	var days []float64
	forever := false
	for i := range jobs {
		first = min(first, jobs[i].Arrival)
		days = append(days, jobs[i].Arrival)
		if jobs[i].End > 0 {
			days = append(days, jobs[i].End)
		} else {
			forever = true
		}
	}
	slices.Sort(days)
	end := math.Inf(1)
	if horizon > 0 {
		end = first + horizon
	}
	if !forever {
		end = min(end, days[len(days)-1])
	}
	days = append(days, end)
	worn = d.Worn
	for i, from := range days[:len(days)-1] {
		to := min(days[i+1], end)
		if to <= from {
			continue
		}
		rate, wearing, mix := 0.0, 0.0, 0.0
		for j := range jobs {
			w := &jobs[j]
			if w.Arrival <= from && (w.End == 0 || w.End > from) {
				rate += w.WriteRate
				b := w.WriteRate * d.Stripe.Bytes(w.FullStripe)
				wearing += b
				mix += b * w.Sequential
			}
		}
		if wearing > 0 {
			nand := wearing * d.WAF.At(min(1, mix/wearing))
			if left := (d.Budget - worn) / nand; from+left <= to {
				return from + left, d.Buy + d.Run*(from+left-first), data + rate*left, d.Budget, true
			}
			worn += nand * (to - from)
		}
		data += rate * (to - from)
	}
	return end, d.Buy + d.Run*(end-first), data, worn, false
}

// TestEpochs compares the outcome of a drive with lifeOf, with workloads that come and go, horizons, arrays and prior
// wear.
func TestEpochs(t *testing.T) {
	limited, ended, unlimited := 0, 0, 0
	for seed := range uint64(400) {
		r := rng.NewStream(seed, "epochs")
		drive := someDrives(&r, 1)[0]
		drive.Capacity, drive.IOPS = 1e9, 1e9
		drive.Worn = drive.Budget * 0.3 * float64(r.IntN(2))
		if r.IntN(2) == 0 {
			drive.Stripe = Stripe{FullBytes: 1.2, SmallBytes: 2, FullIOs: 1.2, SmallIOs: 4}
		}
		cfg := Config{FillSpace: 1, FillIOPS: 1, Horizon: []float64{0, 300, 2000}[r.IntN(3)]}
		jobs := someJobs(&r, 1+int(r.IntN(6)), 200)
		ending := r.IntN(3)
		for j := range jobs {
			jobs[j].FullStripe = r.Float64()
			jobs[j].WriteRate *= 3
			if ending == 2 || ending == 1 && r.IntN(2) == 0 {
				jobs[j].End = jobs[j].Arrival + 1 + 400*r.Float64()
			}
		}
		host := make([]int, len(jobs))
		a, err := Assess(cfg, []Drive{drive}, jobs, host)
		if err != nil {
			continue // worn out, or past its horizon, before the last arrival
		}
		death, cost, data, worn, wears := lifeOf(&drive, jobs, cfg.Horizon)
		d := &a.Drives[0]
		if idle := slices.MaxFunc(jobs,
			func(a, b Workload) int { return int(math.Copysign(1, a.Arrival-b.Arrival)) }).Arrival; death < idle {
			continue // all had left before the last arrival, which starts a second service
		}
		near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-9*(1+math.Abs(y)) }
		if !near(d.Death, death) || !near(d.Cost, cost) || !near(d.Data, data) ||
			!near(d.WearAtDeath, worn/drive.Budget) || d.Limited != wears {
			t.Fatalf("seed %d: dies on day %v for %v with %v GB, wear %v (%v); its days come to %v, %v, %v, %v (%v)",
				seed, d.Death, d.Cost, d.Data, d.WearAtDeath, d.Limited,
				death, cost, data, worn/drive.Budget, wears)
		}
		switch {
		case wears:
			limited++
		case ending == 2:
			ended++
		default:
			unlimited++
		}
		if a.Used != 1 || a.Placed != len(jobs) || a.Refused != 0 || !near(a.MeanLife, death-jobs[0].Arrival) ||
			!near(a.EarliestDeath, death) || !near(a.BudgetAtDeath, worn/drive.Budget) {
			t.Fatalf("seed %d: %+v", seed, a)
		}
	}
	if limited < 50 || ended < 20 || unlimited < 20 {
		t.Errorf("%d drives are worn out, %d end with their workloads, %d at their horizon: no test", limited, ended,
			unlimited)
	}
}

// TestLeaving verifies that space, load and rates count the workloads present at the last arrival, and that a
// workload's capacity is free again on the day on which it leaves.
func TestLeaving(t *testing.T) {
	d := []Drive{{Name: "a", Buy: 100, Run: 1, Budget: 1e6, Capacity: 10, IOPS: 10, WAF: Constant(2)}}
	jobs := []Workload{
		{Name: "x", WriteRate: 10, Sequential: 0.5, End: 100, WorkingSet: 6, PeakIOPS: 7},
		{Name: "y", WriteRate: 5, Sequential: 0.2, WorkingSet: 4, PeakIOPS: 3},
		{Name: "z", WriteRate: 1, Sequential: 0.8, Arrival: 100, WorkingSet: 6, PeakIOPS: 7},
	}
	cfg := Config{FillSpace: 1, FillIOPS: 1}
	a, err := Assess(cfg, d, jobs, []int{0, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	s := &a.Drives[0]
	if s.WriteRate != 6 || math.Abs(s.Sequential-(5*0.2+0.8)/6) > 1e-12 || s.Space != 10 || s.Load != 10 ||
		s.SpaceShare != 1 || s.IOPSShare != 1 || s.Worn != 3000 || s.Workloads != 3 {
		t.Errorf("%+v", s)
	}
	jobs[2].Arrival = 99.9
	for _, c := range []struct {
		space, io float64
		why       Obstacle
	}{{6, 0, NoSpace}, {0, 7, NoIOPS}} {
		jobs[2].WorkingSet, jobs[2].PeakIOPS = c.space, c.io
		if _, err := Assess(cfg, d, jobs, []int{0, 0, 0}); err == nil ||
			err.Error() != fmt.Sprintf("workload z does not fit on drive a: %v", c.why) {
			t.Errorf("%v", err)
		}
	}
	// Two that leave in the reverse order of arrival.
	jobs[2] = Workload{Name: "z", WriteRate: 1, Arrival: 10, End: 50}
	jobs = append(jobs, Workload{Name: "v", WriteRate: 1, Arrival: 60, WorkingSet: 1})
	if _, err := Assess(cfg, d, jobs, []int{0, 0, 0, 0}); err == nil {
		t.Error("x has not left, and its room is another's")
	}
	jobs[3].Arrival = 100
	if a, err = Assess(cfg, d, jobs, []int{0, 0, 0, 0}); err != nil || a.Drives[0].WriteRate != 6 ||
		a.Drives[0].Space != 5 {
		t.Errorf("%v: %+v", err, a)
	}
}

// TestAssessment compares sums, means and deviations over drives with results by hand.
func TestAssessment(t *testing.T) {
	drives := []Drive{
		{Name: "a", Buy: 100, Run: 1, Budget: 1000, Capacity: 10, IOPS: 10, WAF: Constant(1)},
		{Name: "b", Buy: 200, Run: 2, Budget: 9000, Capacity: 20, IOPS: 40, WAF: Constant(1)},
		{Name: "idle", Buy: 50, Run: 9, Budget: 1000, Capacity: 10, IOPS: 10, WAF: Constant(1)},
	}
	jobs := []Workload{
		{Name: "x", WriteRate: 10, WorkingSet: 3, PeakIOPS: 6},
		{Name: "y", WriteRate: 5, WorkingSet: 6, PeakIOPS: 12, Arrival: 20},
		{Name: "z", WriteRate: 5, WorkingSet: 6, PeakIOPS: 0, Arrival: 40},
		{Name: "nobody's", WriteRate: 5},
	}
	a, err := Assess(Config{Horizon: 200, FillSpace: 1, FillIOPS: 1}, drives, jobs, []int{0, 1, 1, -1})
	if err != nil {
		t.Fatal(err)
	}
	// a is worn out after 100 days with 1000 GB; b serves 200 from day 20 on, with 5 * 20 + 10 * 180 = 1900 GB.
	for _, x := range []struct {
		what      string
		got, want float64
	}{
		{"cost", a.Cost, 100 + 100 + 200 + 400 + 50}, {"data", a.Data, 2900}, {"days", a.Days, 300},
		{"used", float64(a.Used), 2}, {"placed", float64(a.Placed), 3},
		{"refused", float64(a.Refused), 1}, {"space", a.SpaceShare, (0.3 + 0.6) / 3},
		{"IOPS", a.IOPSShare, (0.6 + 0.3) / 3},
		{"deviation of space", a.SpaceCV, math.Sqrt((0+0.3*0.3+0.3*0.3)/3) / 0.3},
		{"deviation of IOPS", a.IOPSCV, math.Sqrt((0.3*0.3+0+0.3*0.3)/3) / 0.3},
		{"deviation of workloads", a.WorkloadsCV, math.Sqrt((0.0+1+1)/3) / 1}, {"worn out", a.EnduranceLimited, 0.5},
		{"earliest", a.EarliestDeath, 100},
		{"mean life", a.MeanLife, 150}, {"budget", a.BudgetAtDeath, 2900.0 / 11000}, {"rate", a.RateOfPool, 20},
		{"per GB", a.CostPerGB(), 850.0 / 2900}, {"per day", a.CostPerDay(), 850.0 / 300},
	} {
		if math.Abs(x.got-x.want) > 1e-12*(1+x.want) {
			t.Errorf("%s: %v, not %v", x.what, x.got, x.want)
		}
	}
	if got := ByArrival([]Workload{{Arrival: 2}, {Arrival: 1}, {Arrival: 2}, {Arrival: 0}}); !slices.Equal(got,
		[]int{3, 1, 0, 2}) {
		t.Errorf("by arrival: %v", got)
	}
	for _, host := range [][]int{{0, 1, 1}, {0, 1, 3, -1}} {
		if _, err := Assess(DefaultConfig(), drives, jobs, host); err == nil {
			t.Errorf("a placement %v was taken", host)
		}
	}
	if none, err := Assess(Config{Horizon: 200, FillSpace: 1, FillIOPS: 1}, drives, jobs,
		[]int{-1, -1, -1, -1}); err != nil || none.Used != 0 || none.MeanLife != 0 || none.SpaceCV != 0 {
		t.Errorf("%v: %+v", err, none)
	}
}

// TestOfflineChoice verifies that within a zone a workload goes where the drives' write rates then differ least, by
// hand: rates of 10 and 4, and a workload of 7 that fits on both.
func TestOfflineChoice(t *testing.T) {
	model := Drive{Name: "d", Buy: 1000, Budget: 1e7, Capacity: 100, IOPS: 100, WAF: Constant(2)}
	cfg := OfflineConfig{Config: DefaultConfig()}
	jobs := []Workload{
		{Name: "a", WriteRate: 10, WorkingSet: 60},
		{Name: "b", WriteRate: 4, WorkingSet: 60},                // needs another drive
		{Name: "c", WriteRate: 7, WorkingSet: 20},                // 10 and 11 differ less than 17 and 4
		{Name: "d", WriteRate: 2, WorkingSet: 10},                // 12 and 11 less than 10 and 13: by 1 against 3
		{Name: "e", WriteRate: 1, WorkingSet: 10},                // 12 and 12
		{Name: "f", WriteRate: 0, WorkingSet: 5, PeakIOPS: 101},  // exceeds any drive
		{Name: "g", WriteRate: 3, WorkingSet: 100, PeakIOPS: 50}, // a drive of its own
		{Name: "h", WriteRate: 3, WorkingSet: 0, PeakIOPS: 60, Apart: "q"},
		{Name: "i", WriteRate: 3, WorkingSet: 0, PeakIOPS: 10, Apart: "q"},
	}
	r, err := Offline(cfg, model, jobs)
	if err != nil {
		t.Fatal(err)
	}
	// h: 12, 12 and 3 become 12, 12, 6 on the third, but that drive has used 50 of 100 I/Os per second and h needs 60:
	// 15, 12, 3 and 12, 15, 3 tie, so the first. i must not share a drive with h: 15, 12, 6 is best.
	want := []int{0, 1, 1, 0, 1, -1, 2, 0, 2}
	if !slices.Equal(r.Host, want) || len(r.Drives) != 3 || r.Refused[5].Main() != NoIOPS {
		t.Errorf("%v on %d drives, not %v; f is refused for %v", r.Host, len(r.Drives), want, r.Refused[5].Main())
	}
	if r.Drives[2].Name != "d-3" || r.Drives[2].Domain != "d-3" || r.Grouped {
		t.Errorf("%+v", r.Drives[2])
	}
	cfg.Most = 2
	if r, err = Offline(cfg, model, jobs); err != nil || r.Host[6] != -1 || r.Refused[6][NoSpace] != 2 ||
		len(r.Drives) != 2 {
		t.Errorf("%v on %d drives: %v, %v", r.Host, len(r.Drives), r.Refused[6], err)
	}
	// Latencies: a drive of 100 I/Os per second meets 200 us up to half of them.
	tail, err := NewTailTable([]TailPoint{{0.1, 100}, {0.5, 200}, {0.9, 1000}})
	if err != nil {
		t.Fatal(err)
	}
	model.Tail = tail
	jobs = []Workload{
		{Name: "a", WriteRate: 9, PeakIOPS: 30, P99: 200},
		{Name: "b", WriteRate: 1, PeakIOPS: 20},            // fits next to a, to the last I/O
		{Name: "c", WriteRate: 1, PeakIOPS: 10},            // does not fit next to a
		{Name: "d", WriteRate: 1, PeakIOPS: 5, P99: 99},    // nowhere
		{Name: "e", WriteRate: 1, PeakIOPS: 35, P99: 1000}, // next to c
	}
	if r, err = Offline(OfflineConfig{Config: DefaultConfig()}, model, jobs); err != nil ||
		!slices.Equal(r.Host, []int{0, 0, 1, -1, 1}) || r.Refused[3].Main() != TooSlow {
		t.Errorf("%v, %v: d is refused for %v", r.Host, err, r.Refused[3].Main())
	}
}
