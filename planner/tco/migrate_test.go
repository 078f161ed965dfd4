package tco_test

import (
	"math"
	"testing"

	"farflash/planner/tco"
)

// TestMigrate computes by hand the wear-out of one drive and follows its workloads to the other.
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
	// gone: 20 days of 51 GB; then 50 per day up to day 99; then 51.
	day := 99 + (10000-2*(20*51+79*50))/(2*51.0)
	if len(moves) != 2 {
		t.Fatalf("moves %+v; two are right", moves)
	}
	for i, want := range []int{0, 2} {
		m := moves[i]
		if m.Workload != want || m.From != 0 || m.To != 1 || math.Abs(m.Day-day) > 1e-9 ||
			m.Copied != jobs[want].WorkingSet || math.Abs(m.Wear-2*m.Copied) > 1e-9 {
			t.Errorf("move %+v; workload %d on day %v is right", m, want, day)
		}
	}
	b := after.Drives[1]
	// b serves for its horizon: 10 per day, 61 from the move on, and the copies.
	if math.Abs(b.Lifetime-1000) > 1e-9 || math.Abs(b.WearAtDeath*1e6-2*(10*1000+51*(1000-day)+210)) > 1e-6 {
		t.Errorf("the other drive is %+v; it wears %v", b, 2*(10*1000+51*(1000-day)+210))
	}
	// If no drive has space, the workload is left over, with the reason.
	other.Capacity = 150
	moves, _, err = tco.Migrate(cfg, []tco.Drive{drive, other}, jobs, []int{0, 1, 0, 0})
	if err != nil || len(moves) != 2 || moves[0].To != -1 || moves[0].Refused[tco.NoSpace] != 1 || moves[1].To != 1 {
		t.Errorf("moves %+v, error %v", moves, err)
	}
	// Without a horizon every drive wears out eventually, and no workload moves.
	cfg.Horizon = 0
	if moves, _, err := tco.Migrate(cfg, []tco.Drive{drive, other}, jobs, []int{0, 1, 0, 0}); err != nil ||
		moves != nil {
		t.Error(moves, err)
	}
}

// TestMigrateLeavesRoom verifies that a move takes no space that the placement assigns to a later arrival.
func TestMigrateLeavesRoom(t *testing.T) {
	cfg := tco.Config{Horizon: 1000, FillSpace: 1, FillIOPS: 1}
	short := tco.Drive{Name: "short", Buy: 1, Run: 1, Budget: 5000, Capacity: 6400, IOPS: 1e6, WAF: tco.Constant(1)}
	long, spare := short, short
	long.Name, long.Budget = "long", 1e7
	spare.Name, spare.Budget, spare.Run = "spare", 1e7, 50 // expensive, so that long is chosen if it has space
	jobs := []tco.Workload{{Name: "leaves", WriteRate: 50, WorkingSet: 3000},
		{Name: "stays", WriteRate: 1, WorkingSet: 500}, {Name: "comes", WriteRate: 1, WorkingSet: 3000, Arrival: 300}}
	for _, c := range []struct {
		end float64 // end of the second workload
		to  int
	}{{0, 2}, {200, 1}, {301, 2}, {300, 1}} {
		jobs[1].End = c.end
		moves, a, err := tco.Migrate(cfg, []tco.Drive{short, long, spare}, jobs, []int{0, 1, 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(moves) != 1 || moves[0].Workload != 0 || moves[0].Day != 100 || moves[0].To != c.to ||
			moves[0].Refused[tco.NoSpace] > 1 {
			t.Errorf("an end on day %v: %+v", c.end, moves)
		}
		for k, s := range a.Drives {
			if s.Space > 6400 {
				t.Errorf("an end on day %v: drive %d has %v GB", c.end, k, s.Space)
			}
		}
	}
}

// TestMigrateEnds verifies that moves end with the horizon of the drive on which a workload was placed, and so do money
// and data.
func TestMigrateEnds(t *testing.T) {
	cfg := tco.Config{Horizon: 1000, FillSpace: 1, FillIOPS: 1}
	var drives []tco.Drive
	for range 20 {
		drives = append(drives,
			tco.Drive{Name: "d", Buy: 100, Run: 1, Budget: 3000, Capacity: 100, IOPS: 1000, WAF: tco.Constant(1)})
	}
	jobs := []tco.Workload{{Name: "w", WriteRate: 10, Arrival: 50}}
	moves, a, err := tco.Migrate(cfg, drives, jobs, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	// The workload wears out a drive in 300 days: from day 50 on, the moves are on days 350, 650 and 950, and service
	// ends on day 1050.
	if len(moves) != 3 || moves[0].Day != 350 || moves[1].Day != 650 || moves[2].Day != 950 {
		t.Fatalf("%+v", moves)
	}
	cost, data := 0.0, 0.0
	for k := range a.Drives {
		if a.Drives[k].Workloads > 0 {
			cost, data = cost+a.Drives[k].Cost, data+a.Drives[k].Data
		}
	}
	if math.Abs(cost-(4*100+1000)) > 1e-9 || math.Abs(data-10*1000) > 1e-9 {
		t.Errorf("%v for %v GB", cost, data)
	}
	// A copy wears the receiving drive, but does not extend its service.
	jobs[0].WorkingSet = 100
	if moves, a, err = tco.Migrate(cfg, drives, jobs, []int{0}); err != nil || len(moves) != 3 ||
		moves[1].Day != 640 || moves[2].Day != 930 {
		t.Errorf("%+v, %v", moves, err)
	}
	if last := a.Drives[moves[2].To]; math.Abs(last.Death-1050) > 1e-9 || math.Abs(last.Cost-(100+120)) > 1e-9 {
		t.Errorf("%+v", last)
	}
}
