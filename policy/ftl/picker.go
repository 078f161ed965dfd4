package ftl

import (
	"errors"
	"fmt"
)

// Picker is a custom victim policy that replaces Config.Victim. It keeps its own state, reads no clock and draws only
// from a random stream it was created with.
type Picker interface {
	// Pick returns the Block of the candidate to collect next. At least one candidate would yield space. If Pick
	// returns one that yields none, its pages are moved all the same, without gain. It must not return a block that is
	// no candidate, nor change the translation layer.
	Pick(c Candidates) int32
}

// Candidates iterates over the blocks of a pool that can be collected: those fully programmed and not being collected.
// It is valid until Pick returns.
type Candidates struct {
	f    *FTL
	p    *pool
	next int32
}

// Candidate is a block that may be collected.
type Candidate struct {
	Block  int32 // number within the pool
	Stream int   // the stream that wrote it
	Valid  int   // pages that hold data and would be moved
	Pages  int   // of a block
	Age    int   // erases of the pool since the block became a candidate
	Erases int   // erases of the pool since the block's last page was programmed
}

// Len returns the total number of candidates, regardless of the iterator's position.
func (c *Candidates) Len() int { return int(c.p.candidates) }

// Next returns the next candidate, first filled first, and false after the last.
func (c *Candidates) Next() (Candidate, bool) {
	if c.next == none {
		return Candidate{}, false
	}
	m := &c.p.blocks[c.next]
	x := Candidate{
		Block: c.next, Stream: int(m.stream), Valid: int(m.valid), Pages: int(c.f.pages),
		Age: int(c.p.erases - uint32(m.pending)), Erases: int(m.erases),
	}
	c.next = m.next
	return x, true
}

// CollectBy makes a custom policy choose every pool's victims from now on. Config.Victim must be FIFO, because the
// policy iterates over FIFO's list of candidates; steady-state preconditioning computes FIFO's distribution, not the
// policy's. One policy serves all pools. Clone keeps it, so whoever clones should install a new one in the copy.
func (f *FTL) CollectBy(p Picker) error {
	if p == nil {
		return errors.New("ftl: the victim policy is nil")
	}
	if f.cfg.Victim != FIFO {
		return fmt.Errorf("ftl: a custom policy needs fifo's list of candidates, not that of %v; set Victim to FIFO", f.cfg.Victim)
	}
	f.picker = p
	return nil
}

// picked calls the custom policy and verifies that its choice is a candidate.
func (f *FTL) picked(p *pool) int32 {
	b := f.picker.Pick(Candidates{f, p, p.young.head})
	if b < 0 || int(b) >= len(p.blocks) || p.blocks[b].state != closed {
		panic(fmt.Sprintf("ftl: Picker.Pick returns block %d, which is not a candidate; return the Block of one", b))
	}
	return b
}
