package uses

import "testing"

// TestLedger verifies that each moment goes to one use, and that arriving data counts as receiving while the disk does
// no work.
func TestLedger(t *testing.T) {
	l := Ledger{Now: Idle}
	l.Turn(10, Reserved)
	l.From, l.To = 12, 30
	l.Turn(20, Tentative) // 2 reserved, 8 receiving
	l.Turn(40, Work)      // 10 receiving, 10 tentative
	l.From, l.To = 41, 60
	l.Turn(70, Down) // work takes precedence
	want := Spent{Idle: 10, Reserved: 2, Receiving: 18, Tentative: 10, Work: 30}
	if l.Spent != want || l.Spent.All() != 70 {
		t.Errorf("%v, not %v", l.Spent, want)
	}
	l.From, l.To = 65, 80
	l.Turn(90, Idle)
	if l.Spent[Down] != 10 || l.Spent[Receiving] != 28 {
		t.Errorf("%v", l.Spent)
	}
}
