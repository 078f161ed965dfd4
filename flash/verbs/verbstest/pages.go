// Package verbstest supports tests of packages that use verbs: a Store in memory whose pages become ready when, and in
// the order that, the test decides, and a conformance test for Stores.
//
// Pages is the store; Conformance tests a store. It does not cover what a store does to its medium.
package verbstest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"farflash/flash/verbs"
)

// Pages is a Store in memory with a page cache in front of a medium. A Put changes the cache; the medium changes only
// when a synchronous Put completes.
type Pages struct {
	// Hold keeps callbacks back until Release.
	Hold bool
	// HoldPuts keeps back only the completions of Puts.
	HoldPuts bool
	// FailGet and FailPut, if set, are the error of the next Get, or of the next Put with changes.
	FailGet, FailPut error

	mu     sync.Mutex
	page   int
	cache  []byte
	medium []byte
	held   []func()
	order  *rand.Rand
	out    map[*verbs.Access]bool
	log    []string
}

// NewPages returns a store of size bytes in pages of page bytes. With a nonzero seed, pages become ready in an order
// drawn from it.
func NewPages(size, page int, seed uint64) *Pages {
	p := &Pages{page: page, cache: make([]byte, size), medium: make([]byte, size), out: map[*verbs.Access]bool{}}
	if seed != 0 {
		p.order = rand.New(rand.NewPCG(seed, seed))
	}
	return p
}

// Size is the length in bytes.
func (p *Pages) Size() uint64 { return uint64(len(p.cache)) }

// PageSize is the length of a page in bytes.
func (p *Pages) PageSize() int { return p.page }

// Bytes is the content as an operation sees it. Call it only while no operation is in progress.
func (p *Pages) Bytes() []byte { return p.cache }

// Medium returns the content that would survive a power loss.
func (p *Pages) Medium() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.medium)
}

// Out is the number of accesses that hold pages or wait for them.
func (p *Pages) Out() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.out)
}

// Log returns the Gets and Puts since the last call.
func (p *Pages) Log() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.log
	p.log = nil
	return l
}

// Held is the number of callbacks kept back.
func (p *Pages) Held() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held)
}

// Release makes held callback i, where 0 is the oldest; all of them if i is negative.
func (p *Pages) Release(i int) {
	p.mu.Lock()
	var run []func()
	if i < 0 {
		run, p.held = p.held, nil
	} else {
		run = []func(){p.held[i]}
		p.held = slices.Delete(p.held, i, i+1)
	}
	p.mu.Unlock()
	for _, f := range run {
		f()
	}
}

// Get implements verbs.Store.
func (p *Pages) Get(a *verbs.Access) {
	p.mu.Lock()
	if p.out[a] {
		panic("Get called twice for an access")
	}
	if a.Length <= 0 || a.Offset+uint64(a.Length) > uint64(len(p.cache)) {
		panic(fmt.Sprintf("%d bytes at %d exceed the store", a.Length, a.Offset))
	}
	kind := "read"
	if a.Write {
		kind = "write"
	}
	if a.Sync {
		kind += " sync"
	}
	if a.Prefetch {
		kind += " prefetch"
	}
	p.log = append(p.log, fmt.Sprintf("get %d+%d %s", a.Offset, a.Length, kind))
	var calls []func()
	p.out[a] = true
	if err := p.FailGet; err != nil {
		p.FailGet = nil
		calls = append(calls, func() { a.Fail(err) })
	} else {
		size, end := uint64(p.page), a.Offset+uint64(a.Length)
		for at := a.Offset; at < end; {
			to := min(at&^(size-1)+size, end)
			from, b := at, p.cache[at:to:to]
			calls = append(calls, func() { a.Ready(from, b) })
			at = to
		}
		if p.order != nil {
			p.order.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		}
	}
	p.call(p.Hold, calls)
}

// Put implements verbs.Store.
func (p *Pages) Put(a *verbs.Access) {
	p.mu.Lock()
	if !p.out[a] {
		panic("Put called for an access without Get")
	}
	delete(p.out, a)
	what := "unchanged"
	if a.Changed {
		what = "changed"
	}
	p.log = append(p.log, fmt.Sprintf("put %d+%d %s", a.Offset, a.Length, what))
	var err error
	if a.Changed {
		err, p.FailPut = p.FailPut, nil
	}
	at, n, durable := a.Offset, uint64(a.Length), a.Changed && a.Sync && err == nil
	p.call(p.Hold || p.HoldPuts, []func(){func() {
		if durable {
			p.mu.Lock()
			copy(p.medium[at:at+n], p.cache[at:at+n])
			p.mu.Unlock()
		}
		a.Done(err)
	}})
}

// call makes the calls, or keeps them, and unlocks p.mu.
func (p *Pages) call(hold bool, calls []func()) {
	if hold {
		p.held = append(p.held, calls...)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	for _, f := range calls {
		f()
	}
}

// ErrMedium is an error for tests to inject.
var ErrMedium = errors.New("the medium is unreadable")
