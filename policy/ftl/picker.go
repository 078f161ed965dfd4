package ftl

import "fmt"

// Picker is a victim policy of one's own, in the place of a Victim. It keeps what it remembers itself, asks no clock
// and draws from a random stream that it was made with.
type Picker interface {
	// Pick returns which of the candidates is collected next: its Block. At least one of them would yield room. One
	// that yields none is moved all the same, for nothing.
	Pick(c Candidates) int32
}

// Candidates are the blocks of a pool that may be collected: every page of theirs has been programmed, and they are
// not being collected. They are good until Pick returns.
type Candidates struct {
	f    *FTL
	p    *pool
	next int32
}

// Candidate is a block that may be collected.
type Candidate struct {
	Block  int32 // its number in the pool
	Stream int   // which wrote it
	Valid  int   // pages that hold data; what is moved
	Pages  int   // of a block
	Age    int   // erases of the pool since the block's last page was handed out
	Erases int   // of the block
}

// Len is how many there are, whatever Next has returned.
func (c *Candidates) Len() int { return int(c.p.candidates) }

// Next returns the next one, first filled first, and false after the last.
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

// CollectBy has every pool's victims be what a policy of one's own picks from now on. Config.Victim must be FIFO,
// whose list of candidates it goes by; what computes a steady state knows only FIFO's. One policy serves all pools;
// it is kept by Clone, which whoever clones gives one of its own.
func (f *FTL) CollectBy(p Picker) error {
	if f.cfg.Victim != FIFO {
		return fmt.Errorf("ftl: a policy of one's own goes by fifo's list of candidates, not by that of %v; set "+
			"Victim to FIFO", f.cfg.Victim)
	}
	f.picker = p
	return nil
}

// picked asks the policy, and holds it to what it was given.
func (f *FTL) picked(p *pool) int32 {
	b := f.picker.Pick(Candidates{f, p, p.young.head})
	if b < 0 || int(b) >= len(p.blocks) || p.blocks[b].state != closed {
		panic(fmt.Sprintf("ftl: the policy picked block %d, which is not a candidate", b))
	}
	return b
}
