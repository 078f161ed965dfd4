//go:build invariants

package ftl

// checkEvery is the number of changes of a small pool between two checks of its invariants. For a large pool a
// sixty-fourth of its pages is added, because a check visits all of them.
const checkEvery = 16

// watch counts a pool's changes since its last check.
type watch struct{ changes uint32 }

// changed is called at the end of every operation that changes a pool. It panics if an invariant does not hold. The map
// is not checked, because it can be ahead while the driver is in the middle of an operation.
func (f *FTL) changed(pool int, p *pool) {
	if p.changes++; p.changes < checkEvery+uint32(f.pages*f.blocks/64) || p.restoring != nil {
		return
	}
	p.changes = 0
	handed, err := f.checkPool(pool, p, false)
	if err == nil {
		err = f.checkPrograms(p, handed)
	}
	if err != nil {
		broken("pool %d: %v", pool, err)
	}
}
