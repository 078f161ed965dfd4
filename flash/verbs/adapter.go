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

// Adapter is the state that the connections of a process share: the STag table and the lock for atomics. It is safe for
// concurrent use.
type Adapter struct {
	// atomics serializes atomics over the whole adapter (RFC 7306, 5.3), because two regions may overlap. An atomic
	// takes some nanoseconds.
	atomics sync.Mutex

	mu      sync.RWMutex
	regions map[uint32]*Region
	tags    tags
}

// NewAdapter returns an adapter. Draw the key from crypto/rand: STags are derived from it, and a peer that does not
// know it cannot predict the next one.
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

// Regions is the number of registered regions.
func (a *Adapter) Regions() int {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.regions)
}

// tagBits is the number of STag bits that name a region; the other eight are Semantics.
const tagBits = 24

// tags generates region names: a counter passed through a keyed permutation of 24 bits. Without the key, names are as
// hard to predict as random ones, and a name is reused only after all others (both are required by RFC 5042, 6.1.1).
type tags struct {
	block cipher.Block
	next  uint32
}

// draw returns the next name, never zero.
func (t *tags) draw() uint32 {
	for {
		n := t.next
		t.next = (t.next + 1) & (1<<tagBits - 1)
		if v := t.permute(n); v != 0 {
			return v
		}
	}
}

// permute is an eight-round Feistel network over two 12-bit halves, with AES as the round function.
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

// name draws an unused name. It terminates because at most maxRegions are in use. The caller holds a.mu.
func (a *Adapter) name() uint32 {
	for {
		if n := a.tags.draw(); a.regions[n] == nil {
			return n
		}
	}
}

// maxRegions limits an adapter's regions to an eighth of the names, so that even on a full adapter a guessed name is
// more likely invalid than valid.
const maxRegions = 1 << (tagBits - 3)

// Domain is a protection domain: its connections can reach its regions only.
type Domain struct {
	adapter *Adapter
	most    int
	count   int // guarded by adapter.mu
}

// NewDomain returns a domain that can hold up to most regions.
func (a *Adapter) NewDomain(most int) *Domain { return &Domain{adapter: a, most: most} }

// Regions is the number of regions registered in the domain.
func (d *Domain) Regions() int {
	d.adapter.mu.RLock()
	defer d.adapter.mu.RUnlock()
	return d.count
}

// RegionConfig describes a region. Exactly one of Memory and Store is set.
type RegionConfig struct {
	Memory []byte
	// Store is the backing store; Offset and Length are the region's range in it.
	Store          Store
	Offset, Length uint64
	// Base is the tagged offset of the region's first byte.
	Base   uint64
	Rights Rights
	// Allowed are the flags that the peer may set. Default applies to operations that set neither Sync nor Async.
	Allowed, Default Semantics
	// Scope, if set, restricts the region to this connection.
	Scope *QueuePair
}

// Region is memory that peers in the domain can access.
type Region struct {
	domain *Domain
	name   uint32
	cfg    RegionConfig

	// mu is read-locked while bytes move, so no access is in progress after Deregister returns.
	mu   sync.RWMutex
	dead bool
}

// Register makes memory remotely accessible. It does not touch the memory, so its cost is independent of the length.
// The caller must first clear any contents that the peer must not see.
func (d *Domain) Register(cfg RegionConfig) (*Region, error) {
	switch {
	case (cfg.Memory != nil) == (cfg.Store != nil):
		return nil, errors.New("a region needs either memory or a store")
	case cfg.Memory != nil:
		cfg.Length = uint64(len(cfg.Memory))
	case cfg.Offset > cfg.Store.Size() || cfg.Length > cfg.Store.Size()-cfg.Offset:
		return nil, fmt.Errorf("the range of %d bytes at %d exceeds the store's %d bytes", cfg.Length, cfg.Offset,
			cfg.Store.Size())
	}
	switch {
	case cfg.Length > math.MaxUint64-cfg.Base:
		return nil, fmt.Errorf("base %#x plus %d bytes overflows 64 bits", cfg.Base, cfg.Length)
	case cfg.Rights&^allRights != 0 || (cfg.Allowed|cfg.Default)&^AllSemantics != 0:
		return nil, errors.New("unknown rights or semantics")
	case cfg.Default&(Sync|Async) == Sync|Async:
		return nil, errors.New("a region is synchronous or asynchronous by default, not both")
	case cfg.Rights&RemoteAtomic != 0 && (cfg.Base%8 != 0 || cfg.Offset%8 != 0):
		return nil, errors.New("a region for atomics must start at a multiple of 8")
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

// STag is the region's STag, with no semantics flags set.
func (r *Region) STag() uint32 { return r.name << 8 }

// Base is the tagged offset of the region's first byte.
func (r *Region) Base() uint64 { return r.cfg.Base }

// Length is the region's length in bytes.
func (r *Region) Length() uint64 { return r.cfg.Length }

// Rights are the rights of the peer.
func (r *Region) Rights() Rights { return r.cfg.Rights }

// Allowed are the semantics flags that the peer may set.
func (r *Region) Allowed() Semantics { return r.cfg.Allowed }

// Deregister revokes the region. When it returns, no byte of the region is read or written for a peer any more, even by
// operations in progress, and its STag is reused as late as possible. A second call is a no-op.
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

// fault is the reason for refusing an access.
type fault uint8

const (
	noFault fault = iota
	flawSTag
	flawDomain
	flawRights
	flawBounds
	flawWrap
)

// check validates the peer's access to n bytes before any byte moves: the STag must be valid for this connection, grant
// the rights, and cover the whole range. The last region that passed is cached in q.last.
func (q *QueuePair) check(stag uint32, offset uint64, n uint32, need Rights) (*Region, fault) {
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
	return r, noFault
}

func (r *Region) alive() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return !r.dead
}

// semantics returns the flags of an STag, with the region's default applied.
func (r *Region) semantics(stag uint32) Semantics {
	s := Semantics(stag)
	if s&(Sync|Async) == 0 {
		s |= r.cfg.Default
	}
	return s
}
