package ftl_test

import (
	"testing"

	"farflash/policy/ftl"
)

// TestRenew renews each full block of a drive: its pages move once each, the block is erased, and no block is collected
// for space. An open or free block cannot be renewed.
func TestRenew(t *testing.T) {
	cfg := ftl.DefaultConfig()
	cfg.BlocksPerPool, cfg.PagesPerBlock = 32, 8
	const data = 20 * 8
	d, err := newFlash(cfg, data, nil)
	if err != nil {
		t.Fatal(err)
	}
	for lpa := range data {
		if !d.put(0, 0, ftl.LPA(lpa)) {
			t.Fatal("no page")
		}
	}
	if d.put(0, 0, 0); d.Renew(d.BlockOf(d.to[0])) || d.Renew(31) {
		t.Error("an open block or a free one can be renewed")
	}
	wanted := int64(0)
	for b := range ftl.Block(20) {
		if d.Renew(b) {
			wanted++
		}
		if d.Renew(b) {
			t.Errorf("block %d is wanted twice", b)
		}
	}
	d.settle()
	s := d.Stats()
	if wanted != 20 || s.Renewals != wanted || s.RenewalPrograms != data-1 || s.GCPrograms != 0 || s.Erases != wanted {
		t.Errorf("%d blocks wanted, %d renewed, %d pages moved for that, %d for space, %d erases", wanted, s.Renewals,
			s.RenewalPrograms, s.GCPrograms, s.Erases)
	}
	if err := d.verify(); err != nil {
		t.Error(err)
	}
	if s.WAF() != float64(data+1+data-1)/(data+1) {
		t.Errorf("write amplification %v", s.WAF())
	}
}
