package ssd_test

import (
	"slices"
	"testing"

	"farflash/block"
	"farflash/model/ssd"
)

// TestAccounts verifies that each read and write is reported once, that its parts add up to its latency, and that the
// sums over all requests equal the breakdown. For a request that used flash the lane is reported, and Wait is the rest
// of the time since it was queued; one that used none has no lane.
func TestAccounts(t *testing.T) {
	for name, change := range map[string]func(*ssd.Config){
		"cached": func(cfg *ssd.Config) {
			cfg.Cache.Mode, cfg.Cache.Capacity = ssd.CacheWrite,
				16*cfg.Geometry.PageSize
		},
		"uncached": func(cfg *ssd.Config) { cfg.Cache.Mode = ssd.CacheOff },
		"mapped":   func(cfg *ssd.Config) { cfg.Mapping.Ideal, cfg.Mapping.CMTCapacity = false, 4000 },
	} {
		cfg := ofPages()
		cfg.Mapping.Ideal = true
		change(&cfg)
		var sums [2]ssd.Breakdown
		flashed, not := 0, 0
		page := int64(cfg.Geometry.PageSize)
		records := random(400, block.Write, page, 64*page)
		for i, r := range random(400, block.Read, page, 128*page) {
			records = slices.Insert(records, 2*i, r)
		}
		d, _, _ := play(t, cfg, 8, records, func(d *ssd.Drive) {
			d.OnAccount = func(a *ssd.Account) {
				parts := a.Queue + a.Link + a.DRAM + a.Cache + a.Mapping + a.Backlog + a.Wait + a.Array + a.Transfer
				if parts != a.Whole || a.Whole <= 0 || a.Queue < 0 || a.Link <= 0 ||
					min(a.DRAM, a.Cache, a.Mapping, a.Backlog, a.Wait, a.Array, a.Transfer) < 0 {
					t.Fatalf("%s: %+v comes to %v", name, *a, parts)
				}
				lanes := int32(cfg.Geometry.Channels * cfg.Geometry.ChipsPerChannel * cfg.Geometry.DiesPerChip)
				switch {
				case a.Array+a.Transfer == 0:
					not++
					if a.Lane != -1 || a.Wait != 0 || a.Mapping != 0 || a.Backlog != 0 {
						t.Fatalf("%s: no flash works for %+v", name, *a)
					}
				default:
					flashed++
					if a.Lane < 0 || a.Lane >= lanes || a.DRAM != 0 || a.Cache != 0 ||
						a.Ended-a.Queued-a.Array-a.Transfer != a.Wait {
						t.Fatalf("%s: %+v", name, *a)
					}
				}
				b := &sums[a.Op]
				b.Requests++
				b.Queue.Add(a.Queue)
				b.Link.Add(a.Link)
				b.DRAM.Add(a.DRAM)
				b.Cache.Add(a.Cache)
				b.Mapping.Add(a.Mapping)
				b.Backlog.Add(a.Backlog)
				b.Wait.Add(a.Wait)
				b.Array.Add(a.Array)
				b.Transfer.Add(a.Transfer)
				b.All.Add(a.Whole)
			}
		})
		if got := d.Stats().Breakdown; got != sums || flashed+not != 800 || flashed == 0 ||
			name == "cached" && not == 0 {
			t.Errorf("%s: the breakdown is %+v, the sums %+v, of %d and %d requests", name, got, sums, flashed, not)
		}
		if b := &sums[block.Read]; name == "mapped" && b.Mapping.Sign() == 0 {
			t.Errorf("nobody waits for the map: no test")
		}
	}
}
