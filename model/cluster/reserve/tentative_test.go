package reserve_test

import (
	"testing"

	"farflash/model/cluster/reserve"
	"farflash/sim"
)

// TestTentative verifies that a bid is tentative from when it is made until its gateway answers.
func TestTentative(t *testing.T) {
	d, err := reserve.New(reserve.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	q := reserve.NewRegular(d)
	if q.Tentative() {
		t.Error("an empty queue has a tentative bid")
	}
	const us = sim.Time(1e6)
	w := q.Request(10*us, 1, 0, 0, 0, nil)
	if since, ok := q.Undecided(17*us, 1); !q.Tentative() || !ok || since != 7*us {
		t.Errorf("undecided for %v (%v) after 7us", since, ok)
	}
	if _, ok := q.Undecided(17*us, 2); ok {
		t.Error("a chunk without a bid has one")
	}
	q.Request(12*us, 2, 1, 0, 0, nil)
	q.Accept(17*us, 1, w)
	if _, ok := q.Undecided(18*us, 1); ok {
		t.Error("an accepted bid still waits")
	}
	if !q.Tentative() {
		t.Error("the other bid no longer waits")
	}
	q.Cancel(18*us, 2)
	if q.Tentative() {
		t.Error("all is decided, but a bid waits")
	}
}
