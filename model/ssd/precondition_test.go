package ssd

import (
	"testing"

	"farflash/model/ssd/nand"
)

// TestEvenWear verifies that random writes wear blocks so evenly that steady images can start with equal erase counts.
func TestEvenWear(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Geometry = nand.Geometry{Channels: 1, ChipsPerChannel: 1, DiesPerChip: 1, PlanesPerDie: 1,
		BlocksPerPlane: 256, PagesPerBlock: 64, PageSize: cfg.Geometry.PageSize}
	cfg.OverProvisioning, cfg.Mapping.Ideal = .2, true
	cfg.Preconditioning = Preconditioning{Fill: FillReplay, Occupancy: 1, Passes: 50}
	m, err := Prepare(cfg, 1, "x", nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks, sum, squares := 0.0, 0.0, 0.0
	for n, b := range m.ftl.EraseHistogram() {
		blocks += float64(b)
		sum += float64(b) * float64(n)
		squares += float64(b) * float64(n) * float64(n)
	}
	mean := sum / blocks
	if variance := squares/blocks - mean*mean; mean < 80 || variance > 0.06*mean {
		t.Errorf("erases of %.1f on average with a variance of %.2f", mean, variance)
	}
}
