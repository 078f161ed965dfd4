package tco

import (
	"strings"
	"testing"
)

// TestStripeErrors verifies that an array never writes less than requested, in any of four figures; one violation
// suffices to refuse it.
func TestStripeErrors(t *testing.T) {
	good := Stripe{FullBytes: 1.2, SmallBytes: 2, FullIOs: 1.2, SmallIOs: 4}
	if err := good.check("a"); err != nil {
		t.Fatal(err)
	}
	for i, spoil := range []func(*Stripe){
		func(s *Stripe) { s.FullBytes = 0.9 }, func(s *Stripe) { s.SmallBytes = 0.9 },
		func(s *Stripe) { s.FullIOs = 0.9 }, func(s *Stripe) { s.SmallIOs = 0.9 },
	} {
		s := good
		spoil(&s)
		if err := s.check("a"); err == nil || !strings.Contains(err.Error(), "none can be below 1") {
			t.Errorf("%d: %+v: %v", i, s, err)
		}
	}
}

// TestOutOfOrder verifies that workloads must arrive in order, and that one that never ends must write if its drive has
// no horizon.
func TestOutOfOrder(t *testing.T) {
	a, err := NewAllocator(AllocatorConfig{Config: DefaultConfig()}, goldenDrives())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Place(&Workload{Name: "x", WriteRate: 1, Arrival: 5}); err != nil {
		t.Fatal(err)
	}
	if k, _, err := a.Place(&Workload{Name: "y", WriteRate: 1, Arrival: 4}); err == nil || k != -1 ||
		!strings.Contains(err.Error(), "sort them by arrival") {
		t.Errorf("drive %d, %v", k, err)
	}
	forever := DefaultConfig()
	forever.Horizon = 0
	if a, err = NewAllocator(AllocatorConfig{Config: forever}, goldenDrives()); err != nil {
		t.Fatal(err)
	}
	if k, _, err := a.Place(&Workload{Name: "z"}); err == nil || k != -1 ||
		!strings.Contains(err.Error(), "would last forever") {
		t.Errorf("drive %d, %v", k, err)
	}
	for name, cfg := range map[string]AllocatorConfig{
		"threshold": {Config: DefaultConfig(), Threshold: -1},
		"horizon":   {Config: Config{Horizon: -1, FillSpace: 1, FillIOPS: 1}},
	} {
		if _, err := NewAllocator(cfg, goldenDrives()); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := NewAllocator(AllocatorConfig{Config: DefaultConfig()}, nil); err == nil {
		t.Error("no drives: accepted")
	}
}

// TestMigrateErrors verifies that an invalid placement is refused.
func TestMigrateErrors(t *testing.T) {
	jobs, host := goldenJobs()
	if _, _, err := Migrate(Config{Horizon: -1, FillSpace: 1, FillIOPS: 1}, goldenDrives(), jobs, host); err == nil {
		t.Error("a horizon below zero was taken")
	}
	if _, _, err := Migrate(DefaultConfig(), goldenDrives(), jobs, host[:1]); err == nil {
		t.Error("a placement of one of three was taken")
	}
}

// TestDrawNames verifies that drawn workloads are numbered from 1 in order of arrival.
func TestDrawNames(t *testing.T) {
	f, err := FitWorkloads(Table4())
	if err != nil {
		t.Fatal(err)
	}
	list := f.Draw(3, 20, 100)
	for i, w := range list {
		if want := []string{"w1", "w2"}; i < 2 && w.Name != want[i] || i == 19 && w.Name != "w20" {
			t.Errorf("workload %d is %s", i, w.Name)
		}
		if i > 0 && w.Arrival <= list[i-1].Arrival {
			t.Errorf("%s arrives on day %v, the one before on day %v", w.Name, w.Arrival, list[i-1].Arrival)
		}
	}
	for _, w := range f.Draw(3, 5, 0) {
		if w.Arrival != 0 {
			t.Errorf("%s arrives on day %v; all at once is right", w.Name, w.Arrival)
		}
	}
}
