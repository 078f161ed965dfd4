package drivemeter

import (
	"fmt"
	"strings"

	"farflash/block"
	"farflash/model/ssd"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/scenario"
)

// Rare events under measure.until: steady. Every enabled mechanism that can delay requests must have occurred often
// enough before the mean is trusted.
//
// Not counted: wear levelling, which an even load triggers once in a hundred drive writes, and map-cache misses if none
// occur, as when the whole map fits.

// seldom counts the rare events of the drives so far, and the requests of each flow.
func (s *steady) seldom(m *Meter, now *ssd.Stats) []stats.Occurrence {
	list := s.blocks(now)
	add := func(what string, times uint64) {
		list = append(list, stats.Occurrence{What: what, Times: int64(times)})
	}
	some := func(is func(c *ssd.Config) bool) bool {
		for _, d := range m.drives {
			if c := d.Config(); is(&c) {
				return true
			}
		}
		return false
	}
	if now.Finished[block.Read] > 0 && some(func(c *ssd.Config) bool { return c.Reliability != nil }) {
		add("reads repeated", now.Errors.Retried)
	}
	if some(func(c *ssd.Config) bool { return c.Reliability != nil && c.Reliability.Refresh != nil }) {
		add("blocks refreshed", uint64(now.FTL.Renewals))
	}
	if now.HostPrograms > 0 && some(func(c *ssd.Config) bool { return c.SLCCache != nil }) {
		add("blocks of the SLC cache folded", uint64(now.FTL.Folds))
	}
	if some(func(c *ssd.Config) bool { return len(c.PowerStates) > 0 }) {
		add("wakes from a power state", now.Wakes)
	}
	if some(func(c *ssd.Config) bool { return c.PowerLimit != nil }) {
		add("operations held back for power", now.PowerHeld)
	}
	if now.MapMisses > 0 {
		add("misses of the map's cache", now.MapMisses)
	}
	list = append(list, s.classes(m)...)
	if m.Others != nil {
		list = append(list, m.Others()...)
	}
	return list
}

// blocks counts erased blocks, if blocks are erased while writes continue or the drive started full; a drive that
// started empty may write for a long time before it collects.
func (s *steady) blocks(now *ssd.Stats) []stats.Occurrence {
	if now.HostPrograms == s.seen.HostPrograms || now.Erases == 0 && s.fresh {
		return nil
	}
	return []stats.Occurrence{{What: "blocks erased by garbage collection", Times: int64(now.Erases)}}
}

// classes counts the requests of each flow by operation, and those of the rarest size of a mix.
func (s *steady) classes(m *Meter) (list []stats.Occurrence) {
	for i, n := range s.requests {
		item := m.flows.Items[i]
		for op := range n {
			if n[op] == 0 {
				continue
			}
			of := ""
			if len(s.requests) > 1 {
				of = " of " + m.s.LoadName(item)
			}
			list = append(list, stats.Occurrence{What: block.Op(op).String() + "s" + of, Times: n[op]})
			if size, share := rarest(m.s, item, block.Op(op)); share > 0 {
				list = append(list, stats.Occurrence{What: fmt.Sprintf("%ss of %v%s", block.Op(op), size, of),
					Times: int64(float64(share * float64(n[op])))})
			}
		}
	}
	return list
}

// rarest is the least frequent size of a mix and its share; 0 for other size distributions.
func rarest(s *scenario.Scenario, item int, op block.Op) (least units.Bytes, share float64) {
	w := s.Workload[item].Synthetic
	if w == nil {
		return 0, 0
	}
	f := w.Reads
	if op == block.Write {
		f = w.Writes
	}
	if f == nil || !strings.Contains(string(f.Size.Mix), "/") {
		return 0, 0
	}
	sizes, shares, err := f.Size.Mix.Parts()
	if err != nil {
		return 0, 0
	}
	for i, x := range shares {
		if x > 0 && (share == 0 || x < share) {
			least, share = sizes[i], x
		}
	}
	return least, share
}
