package ftl_test

import (
	"strings"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// first picks the block filled first, as FIFO does.
type first struct{ asked, seen int }

func (p *first) Pick(c ftl.Candidates) int32 {
	p.asked++
	best := int32(-1)
	n := 0
	for x, ok := c.Next(); ok; x, ok = c.Next() {
		if best < 0 {
			best = x.Block
		}
		n++
	}
	if n != c.Len() {
		panic("the list is not as long as it says")
	}
	p.seen += n
	return best
}

// fewest picks the block with the fewest valid pages and, among equals, the one filled first.
type fewest struct{}

func (fewest) Pick(c ftl.Candidates) int32 {
	best, found := c.Next()
	for x, ok := c.Next(); ok; x, ok = c.Next() {
		if x.Valid < best.Valid {
			best = x
		}
	}
	if !found || best.Valid > best.Pages || best.Age < 0 {
		panic("a candidate that cannot be")
	}
	return best.Block
}

// overwritten returns the number of pages moved by a drive of one pool, and a trace of its operations, while 85 % of
// its pages were overwritten at random.
func overwritten(t *testing.T, victim ftl.Victim, own ftl.Picker) (moved int64, trace string) {
	t.Helper()
	cfg := ftl.DefaultConfig()
	cfg.BlocksPerPool, cfg.PagesPerBlock, cfg.Victim = 64, 16, victim
	d := &tiny{places: map[ftl.LPA]ftl.PPA{}, owners: map[ftl.PPA]ftl.LPA{}}
	var err error
	if d.ftl, err = ftl.New(cfg, d, nil); err != nil {
		t.Fatal(err)
	}
	if own != nil {
		if err := d.ftl.CollectBy(own); err != nil {
			t.Fatal(err)
		}
	}
	random := rng.NewStream(1, "overwrites")
	var b strings.Builder
	for i := range 30000 {
		lpa := ftl.LPA(i % 850)
		if i >= 850 {
			lpa = ftl.LPA(random.IntN(850))
		}
		if err := d.write(lpa); err != nil {
			t.Fatal(err)
		}
		b.WriteByte(byte(d.places[lpa]))
	}
	return d.ftl.Stats().GCPrograms, b.String()
}

// TestOwnPolicy verifies that a custom policy that picks as fifo does places every page where fifo does, and that one
// that picks as greedy does moves as much, except for ties.
func TestOwnPolicy(t *testing.T) {
	mine := &first{}
	moved, trace := overwritten(t, ftl.FIFO, mine)
	if want, same := overwritten(t, ftl.FIFO, nil); moved != want || trace != same || mine.asked == 0 ||
		mine.seen/mine.asked < 50 {
		t.Errorf("%d pages moved, %d by fifo; asked %d times of %d candidates", moved, want, mine.asked, mine.seen)
	}
	moved, _ = overwritten(t, ftl.FIFO, fewest{})
	if want, _ := overwritten(t, ftl.Greedy, nil); float64(moved) > 1.02*float64(want) ||
		float64(moved) < .98*float64(want) {
		t.Errorf("%d pages moved, %d by greedy", moved, want)
	}
}

// wrong picks a block that is no candidate.
type wrong struct{}

func (wrong) Pick(ftl.Candidates) int32 { return 1 << 20 }

// TestOwnPolicyRefused verifies that CollectBy refuses other policies than fifo, and that a pick that is no candidate
// panics.
func TestOwnPolicyRefused(t *testing.T) {
	f, err := newFlash(ftl.DefaultConfig(), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.CollectBy(&first{}); err == nil ||
		!strings.Contains(err.Error(), "not that of greedy; set Victim to FIFO") {
		t.Error(err)
	}
	defer func() {
		if x, _ := recover().(string); x != "ftl: Picker.Pick returns block 1048576, which is not a candidate; "+
			"return the Block of one" {
			t.Error(x)
		}
	}()
	overwritten(t, ftl.FIFO, wrong{})
}
