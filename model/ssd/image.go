package ssd

import (
	"fmt"
	"sync"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ftl"
)

// Image is the state of a drive's flash before time 0. Drives made from one image share it until they change it. It is
// safe for concurrent use.
type Image struct {
	mu     sync.Mutex // ftl.Clone changes the owner of the pools on both sides
	cfg    Config
	ns     []namespace
	pools  pools
	l2p    table
	owners owners
	ftl    *ftl.FTL
	mapped int64
}

// Watch receives a preparation's progress, 0 to 1; an error aborts it.
type Watch func(share float64) error

// Prepare returns the image of a preconditioned drive. watch may be nil.
func Prepare(cfg Config, seed uint64, name string, watch Watch) (*Image, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Image{cfg: cfg, ns: cfg.layOut()}
	m.pools = cfg.planePools(m.ns)
	m.pools.give(m.ns)
	g := &m.pools.flash
	last := &m.ns[len(m.ns)-1]
	reach := int64(0) // of a part beyond its page, in sectors
	for i := range m.ns {
		reach = max(reach, m.ns[i].shift)
	}
	m.l2p = newTable(int64(last.mapBase)+int64(last.mapPages), cfg.sectorsPerGrain()+int(reach))
	m.owners = newOwners(g.Planes(), g.PagesPerBlock)
	random := rng.NewStream(seed, name+"/preconditioning")
	f, err := ftl.New(cfg.translation(m.ns, &m.pools), m, &random)
	if err != nil {
		return nil, units.Wrong("collection", "%v", err)
	}
	m.ftl = f
	m.ftl.UseFast(false) // data written before time 0 have already been folded
	if watch == nil {
		watch = func(float64) error { return nil }
	}
	if err := m.precondition(&random, watch); err != nil {
		return nil, err
	}
	// Drives check only their own changes, so the image is checked here.
	if err := m.ftl.CheckBlocks(); err != nil {
		panic(err)
	}
	if n := m.ftl.ValidPages(); n != m.mapped {
		panic(fmt.Sprintf("ssd: the image maps %d pages, but %d are valid", m.mapped, n))
	}
	return m, nil
}

// Capacity returns the bytes of a drive's namespace, 0 if there is none.
func (m *Image) Capacity(namespace int) int64 { return int64(m.cfg.CapacityOf(namespace)) }

// The image is the ftl.Map of its translation layer.

// Lookup implements ftl.Map.
func (m *Image) Lookup(l ftl.LPA) ftl.PPA { return lookup(&m.l2p, l) }

// CompareAndSwap implements ftl.Map.
func (m *Image) CompareAndSwap(l ftl.LPA, old, new ftl.PPA) bool {
	return compareAndSwap(&m.l2p, l, old, new)
}

// Owner implements ftl.Map.
func (m *Image) Owner(p ftl.PPA) ftl.LPA {
	g := &m.pools.flash
	perBlock := uint32(g.PagesPerBlock)
	blk := uint32(p) / perBlock
	perPlane := uint32(g.BlocksPerPlane)
	return ftl.LPA(m.owners.get(int(blk/perPlane), int(blk%perPlane), int(uint32(p)%perBlock)))
}

func lookup(t *table, l ftl.LPA) ftl.PPA {
	if p := t.get(uint32(l)); p < trimmed {
		return ftl.PPA(p)
	}
	return ftl.NoPPA
}

func compareAndSwap(t *table, l ftl.LPA, old, new ftl.PPA) bool {
	if t.get(uint32(l)) != uint32(old) {
		return false
	}
	t.set(uint32(l), uint32(new))
	return true
}

// give moves the image's state to d, which becomes its only user. The image must not be used afterwards.
func (m *Image) give(d *Drive) {
	d.l2p, d.owners, d.ftl, d.mapped = m.l2p, m.owners, m.ftl, m.mapped
	d.ftl.Rebind(d, &d.random)
	d.before = d.ftl.Stats()
	d.startSLC()
	d.makeZones()
	d.makeGroups()
	m.ftl = nil
}

// clone gives d a copy-on-write copy of the image's state.
func (m *Image) clone(d *Drive) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d.l2p, d.owners = m.l2p.clone(), m.owners.clone()
	d.ftl = m.ftl.Clone(d, &d.random)
	d.mapped = m.mapped
	d.before = d.ftl.Stats()
	d.startSLC()
	d.makeZones()
	d.makeGroups()
}
