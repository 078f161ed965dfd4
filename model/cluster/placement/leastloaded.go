package placement

import "fmt"

// LeastLoaded is the power of d choices (Azar et al., SIAM J. Computing 29(1), 1999; Mitzenmacher 2001): for each copy,
// another placer supplies d candidates, and the least loaded one is chosen. With d = 2 the fullest of n targets is
// above the mean by about ln ln n instead of by a power of ln n.
//
// The candidates of all copies are in different failure domains, so it needs d times as many domains. Ties go to the
// earlier candidate. The location of a chunk is known only up to its candidates: a reader must ask n*d targets or keep
// a record.
type LeastLoaded struct {
	among Placer
	d     int
	load  func(target int32) int64
	probe []int32
}

// NewLeastLoaded chooses among d candidates for each copy. load is called once per candidate, in order; it may count
// queued bytes, copies, or time in any unit.
func NewLeastLoaded(among Placer, d int, load func(target int32) int64) (*LeastLoaded, error) {
	if d < 1 {
		return nil, fmt.Errorf("%d candidates are not possible; use at least 1", d)
	}
	return &LeastLoaded{among: among, d: d, load: load}, nil
}

// Most implements Placer.
func (p *LeastLoaded) Most() int { return p.among.Most() / p.d }

// Candidates appends the n*d targets among which Place would choose, d for each copy.
func (p *LeastLoaded) Candidates(chunk uint64, n int, out []int32) []int32 {
	return p.among.Place(chunk, n*p.d, out)
}

// Place implements Placer.
func (p *LeastLoaded) Place(chunk uint64, n int, out []int32) []int32 {
	demand(n, p.Most())
	p.probe = p.Candidates(chunk, n, p.probe[:0])
	for i := range n {
		few := p.probe[i*p.d : (i+1)*p.d]
		best, least := few[0], p.load(few[0])
		for _, t := range few[1:] {
			if l := p.load(t); l < least {
				best, least = t, l
			}
		}
		out = append(out, best)
	}
	return out
}
