package tco_test

import (
	"math"
	"testing"

	"farflash/tco"
)

// TestMigrate wears one drive out by hand and follows its workloads to the other.
func TestMigrate(t *testing.T) {
	drive := tco.Drive{Name: "a", Buy: 1000, Run: 1, Budget: 10000, Capacity: 500, IOPS: 1000, WAF: tco.Constant(2)}
	other := drive
	other.Name, other.Budget = "b", 1e6
	jobs := []tco.Workload{
		{Name: "heavy", WriteRate: 50, WorkingSet: 200},            // wears a's 10000 GB out in 100 days
		{Name: "light", WriteRate: 10, WorkingSet: 100},            // on b
		{Name: "later", WriteRate: 1, WorkingSet: 10, Arrival: 99}, // with heavy, on its last day
		{Name: "gone", WriteRate: 1, WorkingSet: 10, End: 20},
	}
	cfg := tco.Config{Horizon: 1000, FillSpace: 1, FillIOPS: 1}
	moves, after, err := tco.Migrate(cfg, []tco.Drive{drive, other}, jobs, []int{0, 1, 0, 0})
	if err != nil {
		t.Fatal(err)
	}
	// gone: 20 days of 51 GB; then 50 a day up to day 99; then 51.
	day := 99 + (10000-2*(20*51+79*50))/(2*51.0)
	if len(moves) != 2 {
		t.Fatalf("moves %+v; two are right", moves)
	}
	for i, want := range []int{0, 2} {
		m := moves[i]
		if m.Workload != want || m.From != 0 || m.To != 1 || math.Abs(m.Day-day) > 1e-9 || m.Copied != jobs[want].WorkingSet || math.Abs(m.Wear-2*m.Copied) > 1e-9 {
			t.Errorf("move %+v; workload %d on day %v is right", m, want, day)
		}
	}
	b := after.Drives[1]
	// b lives for its horizon: 10 a day, 61 from the move on, and the copies.
	if math.Abs(b.Lifetime-1000) > 1e-9 || math.Abs(b.WearAtDeath*1e6-2*(10*1000+51*(1000-day)+210)) > 1e-6 {
		t.Errorf("the other drive is %+v; it wears %v", b, 2*(10*1000+51*(1000-day)+210))
	}
	// Where nobody has room, the workload is left over, with the reason.
	other.Capacity = 150
	moves, _, err = tco.Migrate(cfg, []tco.Drive{drive, other}, jobs, []int{0, 1, 0, 0})
	if err != nil || len(moves) != 2 || moves[0].To != -1 || moves[0].Refused[tco.NoSpace] != 1 || moves[1].To != 1 {
		t.Errorf("moves %+v, error %v", moves, err)
	}
	// Without a horizon every drive is worn out some day, and nothing moves.
	cfg.Horizon = 0
	if moves, _, err := tco.Migrate(cfg, []tco.Drive{drive, other}, jobs, []int{0, 1, 0, 0}); err != nil || moves != nil {
		t.Error(moves, err)
	}
}
