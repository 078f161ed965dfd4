package objects

import (
	"farflash/cluster"
	"farflash/cluster/durability"
	"farflash/cluster/placement"
	"farflash/result"
)

// fillLasting fills in how long an object cluster's chunks last, if that is asked.
func fillLasting(r *result.Result, c *cluster.Cluster) {
	l, asked, err := c.Lasts()
	switch {
	case !asked:
		return
	case err != nil:
		r.Warn("how long chunks last is not known: %v", err)
		return
	}
	years := func(h float64) float64 { return h / float64(durability.Year) }
	r.Set("cluster.durability.mttdl", years(float64(l.MTTDL)))
	r.Set("cluster.durability.loss", l.Loss)
	r.Set("cluster.durability.nines", l.Nines())
	r.Set("cluster.durability.chunk_nines", l.ChunkNines())
	r.Set("cluster.durability.rebuild", float64(l.Rebuild)*3600)
	r.Set("cluster.durability.copysets", l.Copysets)
	a := &l.Accelerated
	r.Set("cluster.durability.accelerated.factor", a.Factor)
	r.Set("cluster.durability.accelerated.chain", years(a.Chain))
	r.Set("cluster.durability.accelerated.simulated", years(a.Simulated))
	r.Set("cluster.durability.accelerated.half", years(a.Half))
	r.Limits = append(r.Limits, "Durability counts failures of drives one by one: no bursts, no operators, no unreadable sectors.")
}

// fillMulticast fills in what a protocol's multicasts cost the network's switches, or each packet. Where a request goes to a whole group, a rule for the group is enough;
// data for some of its targets needs one for each set that may be chosen, or a string of bits.
func fillMulticast(r *result.Result, cfg *cluster.Config) {
	if !cfg.Protocol.Grouped() || cfg.Core == cluster.CorePacket {
		return
	}
	groups := cfg.Targets / cfg.Group
	rules := uint64(groups)
	if cfg.Protocol.Multicasts() && cfg.Replicas > 1 {
		rules += placement.RulesPerSwitch(cfg.Targets, cfg.Group, cfg.Replicas)
		if bits, err := placement.BIERBits(cfg.Group); err == nil {
			r.Set("cluster.multicast.bier", float64(placement.BIERHeader(bits)))
		}
	}
	r.Set("cluster.multicast.rules", float64(rules))
}
