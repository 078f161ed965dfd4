package ssd_test

import (
	"testing"

	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/policy/ftl"

	"pgregory.net/rapid"
)

// drawTight draws a drive that is as small and as full as validation accepts: its planes have just the spare blocks
// that the open blocks of its streams and the reserve need.
func drawTight(t *rapid.T) ssd.Config {
	cfg := drawConfig(t)
	cfg.Quirks = ssd.Quirks{}
	g := &cfg.Geometry
	g.Channels, g.ChipsPerChannel, g.DiesPerChip = rapid.IntRange(1, 2).Draw(t, "tight channels"), 1, 1
	g.PlanesPerDie = rapid.SampledFrom([]int{1, 2}).Draw(t, "tight planes")
	g.BlocksPerPlane = rapid.IntRange(16, 60).Draw(t, "tight blocks")
	g.PagesPerBlock = rapid.SampledFrom([]int{4, 16}).Draw(t, "tight pages")
	cfg.Collection.Victim = ftl.Victim(rapid.IntRange(0, 5).Draw(t, "tight victim"))
	cfg.Collection.Reserve = rapid.IntRange(1, 3).Draw(t, "reserve")
	cfg.Namespaces = nil
	for i := range rapid.IntRange(1, 3).Draw(t, "namespaces") {
		n := ssd.Namespace{Streams: rapid.IntRange(1, 3).Draw(t, "of streams")}
		if i > 0 && rapid.Bool().Draw(t, "one channel") {
			n.Channels = []int{0}
		}
		cfg.Namespaces = append(cfg.Namespaces, n)
	}
	if cfg.FDP = nil; rapid.Bool().Draw(t, "tight fdp") {
		drawGroups(t, &cfg)
	}
	// The least over-provisioning accepted, to within a hundredth of the drive.
	for at := 1; at < 100; at++ {
		cfg.OverProvisioning = units.Fraction(float64(at) / 100)
		if cfg.Validate() == nil {
			break
		}
	}
	cfg.Preconditioning.Occupancy = units.Fraction(rapid.SampledFrom([]float64{.3, .8, .95, 1}).Draw(t,
		"tight occupancy"))
	return cfg
}

// TestTightDrives verifies that a valid drive completes whatever its host requests, however little spare space it has.
func TestTightDrives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { soakOf(t, drawTight(t), nil) })
}

// TestTightPeers does the same for drives with MQSim's quirks, whose hosts write only the addresses that the drive was
// filled with.
func TestTightPeers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawTight(t)
		cfg.OverProvisioning = units.Fraction(rapid.Float64Range(.1, .9).Draw(t, "peer's op"))
		cfg = ssd.MQSim(cfg)
		cfg.Mapping.Ideal = true        // its mapping pages take space that is never freed
		cfg.Quirks.EvictedAsOwn = false // it gives a namespace pages that were never written there
		cfg.Preconditioning.Fill = ssd.Fill(rapid.IntRange(1, 3).Draw(t, "peer's fill"))
		cfg.Preconditioning.Occupancy = units.Fraction(rapid.Float64Range(.1, 1).Draw(t, "peer's occupancy"))
		soakOf(t, cfg, nil)
	})
}
