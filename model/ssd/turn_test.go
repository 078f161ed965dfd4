package ssd

import (
	"testing"

	"farflash/sim"
)

// TestArrivingTurns verifies that under MQSim's quirks entries loaded by one read of a mapping page are resumed in the
// order in which they were requested, and that an entry evicted and written back during the read keeps the position
// assigned at its eviction.
func TestArrivingTurns(t *testing.T) {
	cfg := round()
	cfg.Geometry.PagesPerBlock = 128 // otherwise the only mapping page is partial and not on flash
	cfg.Mapping.Ideal, cfg.Mapping.CMTCapacity = false, 1<<20
	d, err := New(MQSim(cfg), sim.New(), &asker{}, 1, "ssd")
	if err != nil {
		t.Fatal(err)
	}
	c := &d.tables[0]
	evicted := d.addEntry(7, 0, false)
	c.entries[evicted].dirty = true
	c.most = c.n // so that the next entry evicts it
	first := d.addEntry(8, 0, true)
	c.most += 2
	second, again := d.addEntry(9, 0, true), d.addEntry(7, 0, true)
	if of := c.entries; !(of[again].number < of[first].number && of[first].number < of[second].number) {
		t.Errorf("turns are %d of the entry that was evicted, %d and %d of the others", of[again].number,
			of[first].number, of[second].number)
	}
	p := d.pageState(d.mappingPageOf(7, 0))
	p.reading, p.since = false, 0 // the read has completed; later requests get new positions
	if n := d.turnOf(c, 7, d.mappingPageOf(7, 0)); n <= c.entries[second].number {
		t.Errorf("the entry has turn %d again when it is asked for later", n)
	}
}
