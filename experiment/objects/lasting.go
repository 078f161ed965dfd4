package objects

import (
	"farflash/model/cluster"
	"farflash/model/cluster/durability"
	"farflash/model/cluster/placement"
	"farflash/numeric/rng"
	"farflash/result"
	"farflash/scenario"
)

// The durability of a cluster's data over years, under failures of drives alone: the Markov chain of package durability
// for its redundancy, its groups or placement and its repair, and a simulation of the same. docs/models/durability.md
// has the formulas.

// lasting is the durability of a cluster's chunks.
type lasting struct {
	durability.Assessment
	// Accelerated is the mean time to data loss of one copyset at a failure rate high enough to simulate: by the chain
	// and by simulation, with half the 95 % interval of the latter, in hours; and the factor on the failure rate.
	Accelerated struct{ Chain, Simulated, Half, Factor float64 }
}

// The number of simulated losses, and the limit on failures and repairs per loss: the failure rate is raised as far as
// that requires.
const (
	simulatedLosses = 400
	eventsPerLoss   = 2000
)

// lasts computes the durability of the given number of equal fleets.
func lasts(f durability.Fleet, fleets int, seed uint64) (l lasting, err error) {
	if l.Assessment, err = durability.Assess(f); err != nil {
		return l, err
	}
	l.MTTDL /= durability.Hours(fleets)
	l.Copysets *= float64(fleets)
	l.Loss = durability.Any(l.Loss, float64(fleets))
	cfg := durability.Config{Scheme: f.Scheme, MTTF: l.MTTF, Rebuild: l.Rebuild}
	factor := 1.0
	for {
		chain, err := durability.New(cfg)
		if err != nil {
			return l, err
		}
		l.Accelerated.Chain, l.Accelerated.Factor = float64(chain.MTTDL()), factor
		// Each drive fails and is repaired once per MTTF.
		if l.Accelerated.Chain*2*float64(f.Scheme.Width())/float64(cfg.MTTF) <= eventsPerLoss {
			break
		}
		factor *= 2
		cfg.MTTF = l.MTTF / durability.Hours(factor)
	}
	s := durability.DefaultSimulation(cfg)
	s.Runs = simulatedLosses
	stream := rng.NewStream(seed, "cluster/durability")
	out, err := durability.Simulate(s, &stream, 0.95)
	if err != nil {
		return l, err
	}
	l.Accelerated.Simulated, l.Accelerated.Half = out.MTTDL.Mean, out.MTTDL.Half
	return l, nil
}

// fillLasting fills in the durability of an object cluster's chunks, if requested.
func fillLasting(r *result.Result, c *scenario.ObjectCluster, seed uint64) {
	if c.Durability.AFR == 0 {
		return
	}
	f, fleets := c.Fleet()
	l, err := lasts(f, fleets, seed)
	if err != nil {
		r.Warn("durability is unknown: %v", err)
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
	r.Limits = append(r.Limits,
		"Durability assumes independent failures of single drives: no bursts, no operator errors, no unreadable "+
			"sectors.")
}

// fillMulticast fills in the cost of a protocol's multicasts in the network's switches, or in each packet. If a request
// goes to a whole group, one rule per group suffices; data for some of its targets needs one for each possible set, or
// a bit string.
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
