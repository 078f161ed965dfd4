//go:build invariants

package ftl

// checkEvery is after how many changes of a small pool its invariants are walked; a large one takes as many more as a
// sixty-fourth of its pages, because a walk looks at them all.
const checkEvery = 16

// watch counts a pool's changes since its invariants were walked.
type watch struct{ changes uint32 }

// changed is called at the end of everything that changes a pool. It stops the program if an invariant does not hold;
// what the map says is left out, which may be ahead while the driver is about it.
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
