package catalogue

import (
	"math"
	"strings"
	"testing"
)

// TestEstimate compares with medians by hand. The model's own figure, disks and drives without the figure do not count.
func TestEstimate(t *testing.T) {
	from := []Model{
		{Name: "a", Capacity: 1000, Price: 1000, TBW: 1000, ReadIOPS: 100, WriteIOPS: 50, ActiveW: 10, IdleW: 5},
		{Name: "b", Capacity: 2000, Price: 8000, TBW: 6000, ReadIOPS: 200, WriteIOPS: 20, ActiveW: 20},
		{Name: "c", Capacity: 4000, Price: 8000, ActiveW: 24, WriteIOPS: 70},
		{Name: "d", Capacity: 4000, Free: true},
		{Name: "disk", Capacity: 4000, Price: 9e9, TBW: 9e9, ReadIOPS: 9e9, WriteIOPS: 9e9, ActiveW: 9e9, IdleW: 9e9,
			Disk: true},
		{Name: "x", Capacity: 500, Price: 9e9},
	}
	x := Model{Name: "x", Capacity: 500}
	for f, want := range []Estimate{
		PriceFigure:     {PriceFigure, 1000, 500, 2000, 3},     // 1, 4 and 2 per GB
		EnduranceFigure: {EnduranceFigure, 1000, 500, 1500, 2}, // 1 and 3 TB per GB
		ReadFigure:      {ReadFigure, 150, 100, 200, 2},
		WriteFigure:     {WriteFigure, 45, 15, 75, 2}, // 0.5 and 0.1 of its reads, which are estimated as 150 by then
		ActiveFigure:    {ActiveFigure, 20, 10, 24, 3},
		IdleFigure:      {IdleFigure, 5, 5, 5, 1},
	} {
		e, err := x.Estimate(Figure(f), from)
		if err != nil || e.Figure != want.Figure || e.Drives != want.Drives || math.Abs(e.Value-want.Value) > 1e-9 ||
			math.Abs(e.Low-want.Low) > 1e-9 || math.Abs(e.High-want.High) > 1e-9 {
			t.Errorf("%+v, %v; %+v is right", e, err, want)
		}
		if x.knows(Figure(f)) {
			t.Errorf("%v is known before it is taken", Figure(f))
		}
		x.Take(e)
	}
	if left := x.Unknown(); left != nil {
		t.Errorf("%v are unknown", left)
	}
	alone := Model{Name: "alone", Capacity: 500} // without reads, writes are estimated directly: 50, 20 and 70
	if e, err := alone.Estimate(WriteFigure, from); err != nil || e.Value != 50 || e.Drives != 3 {
		t.Errorf("%+v, %v", e, err)
	}
	for want, m := range map[string]*Model{"is known of x": &x, "is a hard disk": {Name: "h", Disk: true},
		"is known of gift": {Name: "gift", Free: true}} {
		if _, err := m.Estimate(PriceFigure, from); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; one with %q is right", err, want)
		}
	}
	if _, err := alone.Estimate(PriceFigure, from[3:5]); err == nil ||
		!strings.Contains(err.Error(), "no other drive has it") {
		t.Errorf("error %v", err)
	}
}
