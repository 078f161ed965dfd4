package cluster

import (
	"farflash/cluster/durability"
	"farflash/rng"
	"farflash/units"
)

// How long a cluster keeps what it is given, over years and from the failures of drives alone: the chain of package durability for its redundancy,
// its groups or placement and its repair, and a simulation of the same. docs/models/durability.md has the formulas.

// Durability asks how long chunks last.
type Durability struct {
	// AFR is the share of drives that fail in a year; 0 asks nothing.
	AFR units.Fraction
	// Capacity is what each target keeps.
	Capacity units.Bytes
	// Bandwidth is what each target gives to making lost pieces again, reads and writes together.
	Bandwidth units.ByteRate
	// Detect is after which time that begins.
	Detect units.Duration
}

// Lasting is how long the cluster's chunks last.
type Lasting struct {
	durability.Assessment
	// Accelerated is the mean time to data loss of one copyset if drives failed so often that it can be simulated: by the chain and by simulation, with half the
	// 95 % interval of the latter, in hours; and how many times as often as they do.
	Accelerated struct{ Chain, Simulated, Half, Factor float64 }
}

// redundancy is the cluster's.
func (c *Config) redundancy() durability.Scheme {
	if c.Code.Data > 0 {
		return durability.Scheme{Data: c.Code.Data, Parity: c.Code.Parity}
	}
	return durability.Replicas(c.Replicas)
}

// fleet is the drives among which a chunk's copies are, and how many such fleets there are.
func (c *Config) fleet() (f durability.Fleet, fleets int) {
	k := &c.Durability
	f = durability.Fleet{Scheme: c.redundancy(), Nodes: c.Targets, AFR: k.AFR, Spread: durability.Everywhere,
		Rebuild: durability.Rebuild{Capacity: k.Capacity, Bandwidth: k.Bandwidth, Detection: k.Detect}}
	fleets = 1
	switch {
	case c.candidates() == 1:
		// A chunk stays in its group, which makes lost pieces again by itself.
		f.Nodes, fleets = c.Group, c.Targets/c.Group
	case c.candidates() == 0 && c.Placement == PlaceCopysets:
		f.Spread, f.Scatter = durability.Copysets, scatterWidth*max(c.copies()-1, 1)
	}
	f.Chunks = max(1, float64(k.Capacity)*float64(f.Nodes)/float64(c.piece())/float64(c.copies()))
	return f, fleets
}

// Simulated losses, and how many failures and repairs one may take: the drives fail as much more often as that needs.
const (
	simulatedLosses = 400
	eventsPerLoss   = 2000
)

// Lasts is how long chunks last, and whether that was asked for.
func (c *Cluster) Lasts() (l Lasting, asked bool, err error) {
	if c.cfg.Durability.AFR == 0 {
		return l, false, nil
	}
	f, fleets := c.cfg.fleet()
	if l.Assessment, err = durability.Assess(f); err != nil {
		return l, true, err
	}
	l.MTTDL /= durability.Hours(fleets)
	l.Copysets *= float64(fleets)
	l.Loss = durability.Any(l.Loss, float64(fleets))
	cfg := durability.Config{Scheme: f.Scheme, MTTF: l.MTTF, Rebuild: l.Rebuild}
	factor := 1.0
	for {
		chain, err := durability.New(cfg)
		if err != nil {
			return l, true, err
		}
		l.Accelerated.Chain, l.Accelerated.Factor = float64(chain.MTTDL()), factor
		// Each drive fails and is repaired once in MTTF.
		if l.Accelerated.Chain*2*float64(f.Scheme.Width())/float64(cfg.MTTF) <= eventsPerLoss {
			break
		}
		factor *= 2
		cfg.MTTF = l.MTTF / durability.Hours(factor)
	}
	s := durability.DefaultSimulation(cfg)
	s.Runs = simulatedLosses
	stream := rng.NewStream(c.seed, "cluster/durability")
	out, err := durability.Simulate(s, &stream, 0.95)
	if err != nil {
		return l, true, err
	}
	l.Accelerated.Simulated, l.Accelerated.Half = out.MTTDL.Mean, out.MTTDL.Half
	return l, true, nil
}

func (c *Config) checkDurability(f *units.Faults) {
	k := &c.Durability
	if k.AFR == 0 {
		return
	}
	f.Hold(k.AFR > 0 && k.AFR < 1, "durability.afr", "%v is not possible; use a share such as 1.5%%", k.AFR)
	f.Hold(k.Capacity > 0, "durability.capacity", "%v is not possible; use a size such as 8TB", k.Capacity)
	f.Hold(k.Bandwidth > 0, "durability.bandwidth", "%v is not possible; use a rate such as 50MB/s", k.Bandwidth)
	f.Hold(k.Detect >= 0, "durability.detect", "%v is not possible; use a time such as 10m", k.Detect)
	if k, _ := c.fleet(); c.copies() > 0 {
		f.Hold(k.Nodes > k.Scheme.Width() || c.candidates() == 0, "durability", "a group of %d has no target that could take the place of one of the %d that keep a chunk; use larger groups", k.Nodes, k.Scheme.Width())
	}
}
