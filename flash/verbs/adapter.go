package verbs

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
)

// Adapter is what connections of one process share: the table of STags, and the one lock
// that atomics take. Its methods may be called from anywhere.
type Adapter struct {
	// Atomics exclude each other over the whole adapter (RFC 7306, 5.3): two regions may
	// be the same memory. An atomic is some nanoseconds.
	atomics sync.Mutex

	mu      sync.RWMutex
	regions map[uint32]*Region
	tags    tags
}

// NewAdapter returns an adapter. The key, from crypto/rand, is what its STags are drawn
// with; a peer that does not know it cannot tell the next one.
func NewAdapter(key [16]byte) (*Adapter, error) {
	if key == ([16]byte{}) {
		return nil, errors.New("the adapter's key is zero; draw it from crypto/rand")
	}
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return &Adapter{regions: map[uint32]*Region{}, tags: tags{block: block}}, nil
}

// Regions is how many regions are registered.
func (a *Adapter) Regions() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.regions)
}

// tagBits is how many of an STag's bits name a region; the other eight are Semantics.
const tagBits = 24

// tags draws the names of regions: a counter, put through a permutation of 24 bits that
// only the key's owner can compute. So names are as hard to foretell as random ones, and
// one comes again only after all others: RFC 5042, 6.1.1, asks for both.
type tags struct {
	block cipher.Block
	next  uint32
}

// draw is the next name, never zero.
func (t *tags) draw() uint32 {
	for {
		n := t.next
		t.next = (t.next + 1) & (1<<tagBits - 1)
		if v := t.permute(n); v != 0 {
			return v
		}
	}
}

// permute is a Feistel network of eight rounds over two halves of twelve bits, each
// round's function a block of AES.
func (t *tags) permute(n uint32) uint32 {
	left, right := n>>12, n&0xFFF
	var b [aes.BlockSize]byte
	for round := range byte(8) {
		b = [aes.BlockSize]byte{round}
		binary.LittleEndian.PutUint32(b[4:], right)
		t.block.Encrypt(b[:], b[:])
		left, right = right, left^binary.LittleEndian.Uint32(b[:])&0xFFF
	}
	return left<<12 | right
}

// name draws a name that no region has. There are at most maxRegions.
func (a *Adapter) name() uint32 {
	for {
		if n := a.tags.draw(); a.regions[n] == nil {
			return n
		}
	}
}

// maxRegions bounds an adapter's regions: an eighth of the names, so that a guess is
// wrong more often than not even then.
const maxRegions = 1 << (tagBits - 3)

// Domain is a protection domain: its connections reach its regions, and no others.
type Domain struct {
	adapter *Adapter
	most    int
	count   int // held by adapter.mu
}

// NewDomain returns a domain of at most so many regions.
func (a *Adapter) NewDomain(most int) *Domain { return &Domain{adapter: a, most: most} }

// Regions is how many regions are registered in the domain.
func (d *Domain) Regions() int {
	d.adapter.mu.RLock()
	defer d.adapter.mu.RUnlock()
	return d.count
}

// RegionConfig is what a region is. One of Memory and Store is set.
type RegionConfig struct {
	Memory []byte
	// Store and the range of it.
	Store          Store
	Offset, Length uint64
	// Base is the tagged offset of the first byte.
	Base   uint64
	Rights Rights
	// Allowed are the semantics that the peer may ask for; Default holds where it asks
	// for neither Sync nor Async.
	Allowed, Default Semantics
	// Scope, if set, is the only connection that may use the region.
	Scope *QueuePair
}

// Region is memory that peers of a domain can reach.
type Region struct {
	domain *Domain
	name   uint32
	cfg    RegionConfig

	// Bytes are moved under the read lock, so none is after Deregister has returned.
	mu   sync.RWMutex
	dead bool
}

// Register makes memory reachable. It looks at none of it, so it costs the same whatever
// the length. Zero the memory first if it holds what the peer must not see.
func (d *Domain) Register(cfg RegionConfig) (*Region, error) {
	switch {
	case (cfg.Memory != nil) == (cfg.Store != nil):
		return nil, errors.New("a region is memory, or a range of a store: one of the two")
	case cfg.Memory != nil:
		cfg.Length = uint64(len(cfg.Memory))
	case cfg.Offset > cfg.Store.Size() || cfg.Length > cfg.Store.Size()-cfg.Offset:
		return nil, fmt.Errorf("the range of %d bytes at %d is beyond the store's %d", cfg.Length, cfg.Offset,
			cfg.Store.Size())
	}
	switch {
	case cfg.Length > math.MaxUint64-cfg.Base:
		return nil, fmt.Errorf("a base of %#x and %d bytes are more than 64 bits hold", cfg.Base, cfg.Length)
	case cfg.Rights&^allRights != 0 || (cfg.Allowed|cfg.Default)&^AllSemantics != 0:
		return nil, errors.New("unknown rights or semantics")
	case cfg.Default&(Sync|Async) == Sync|Async:
		return nil, errors.New("a region is synchronous or asynchronous by default, not both")
	case cfg.Rights&RemoteAtomic != 0 && (cfg.Base%8 != 0 || cfg.Offset%8 != 0):
		return nil, errors.New("a region for atomics begins at a multiple of 8")
	}
	r := &Region{domain: d, cfg: cfg}
	a := d.adapter
	a.mu.Lock()
	defer a.mu.Unlock()
	if d.count >= d.most || len(a.regions) >= maxRegions {
		return nil, fmt.Errorf("%w: the domain has %d regions", ErrFull, d.count)
	}
	d.count++
	r.name = a.name()
	a.regions[r.name] = r
	return r, nil
}

// STag is the region's name for the peer, with no semantics in it.
func (r *Region) STag() uint32 { return r.name << 8 }

// Base is the tagged offset of the region's first byte.
func (r *Region) Base() uint64 { return r.cfg.Base }

// Length is the region's length in bytes.
func (r *Region) Length() uint64 { return r.cfg.Length }

// Rights are what the peer may do.
func (r *Region) Rights() Rights { return r.cfg.Rights }

// Allowed are the semantics that the peer may ask for.
func (r *Region) Allowed() Semantics { return r.cfg.Allowed }

// Deregister takes the region back. When it returns, no byte of it is read or written
// for a peer any more, whatever is under way, and its STag is not given to another for as
// long as can be. A second call does nothing.
func (r *Region) Deregister() {
	r.mu.Lock()
	was := r.dead
	r.dead = true
	r.mu.Unlock()
	if was {
		return
	}
	a := r.domain.adapter
	a.mu.Lock()
	delete(a.regions, r.name)
	r.domain.count--
	a.mu.Unlock()
}

func (a *Adapter) lookup(name uint32) *Region {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.regions[name]
}

// flaw is why an access is refused.
type flaw uint8

const (
	sound flaw = iota
	flawSTag
	flawDomain
	flawRights
	flawBounds
	flawWrap
)

// check looks at an access of the connection to n bytes before any byte moves: is the
// STag valid, here, with these rights, for all of the range?
func (q *QueuePair) check(stag uint32, offset uint64, n uint32, need Rights) (*Region, flaw) {
	r := q.last
	if r == nil || r.name != stag>>8 {
		r = q.adapter.lookup(stag >> 8)
	}
	if r == nil || !r.alive() {
		q.last = nil
		return nil, flawSTag
	}
	flags := Semantics(stag)
	switch c := &r.cfg; {
	case r.domain != q.domain || c.Scope != nil && c.Scope != q:
		return nil, flawDomain
	case flags&^c.Allowed != 0 || flags&(Sync|Async) == Sync|Async:
		return nil, flawSTag
	case c.Rights&need != need:
		return nil, flawRights
	case offset > math.MaxUint64-uint64(n):
		return nil, flawWrap
	case offset < c.Base || offset-c.Base > c.Length || uint64(n) > c.Length-(offset-c.Base):
		return nil, flawBounds
	}
	q.last = r
	return r, sound
}

func (r *Region) alive() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return !r.dead
}

// semantics are the flags of an STag with the region's default.
func (r *Region) semantics(stag uint32) Semantics {
	s := Semantics(stag)
	if s&(Sync|Async) == 0 {
		s |= r.cfg.Default
	}
	return s
}
