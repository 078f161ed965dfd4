package ftl

import "farflash/numeric/rng"

// Refusals of numbers that the flash does not have. They are constants, so that the checks cost what the bounds
// checks of the compiler do, which they replace.
const (
	noPool   = "ftl: no such pool, page or block; use pools from 0 to Config.Pools-1, and pages and blocks within them"
	noBlock  = "ftl: no such block in its pool, or one that was never opened"
	noStream = "ftl: no such stream; use 0 to Config.Streams-1"
)

// at returns a pool for reading.
func (f *FTL) at(pool int) *pool {
	if uint(pool) >= uint(len(f.pools)) {
		panic(noPool)
	}
	return f.pools[pool]
}

// known returns a block that was opened or given at some time.
func (p *pool) known(b int32) *block {
	if uint(b) >= uint(len(p.blocks)) {
		panic(noBlock)
	}
	return &p.blocks[b]
}

// bindable refuses a map or a random stream that New would refuse.
func (f *FTL) bindable(m Map, random *rng.Stream) {
	if m == nil {
		panic("ftl: Clone or Rebind without a map")
	}
	if _, ok := m.(Validity); f.cfg.Counts && !ok {
		panic("ftl: Clone or Rebind under Config.Counts with a map that does not know which pages are valid")
	}
	if random == nil && orderOf(f.cfg.Victim) == byArray {
		broken("Clone or Rebind without a random stream, which %v needs", f.cfg.Victim)
	}
}

// narrow returns a block's number within its pool. One beyond 32 bits stays out of range.
func narrow(block int) int32 {
	if uint(block) > 1<<30 {
		return -1
	}
	return int32(block)
}
