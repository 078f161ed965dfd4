package ctl

import (
	"sync"
	"sync/atomic"

	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/policy/ftl"
)

// inbox collects what threads want of the core while another one has it. No thread that serves connections waits for
// p.mu: if it is taken, the request is left here, and whoever has p.mu attends to it before it goes. Threads that would
// take turns at a mutex for less than a microsecond each would otherwise spend ten times as long asleep.
type inbox struct {
	mu    sync.Mutex
	ops   []*device.Op // completed
	posts []post
	n     atomic.Int64 // of both, readable without mu

	// The lists that drain works on, guarded by p.mu.
	spareOps   []*device.Op
	sparePosts []post
}

// post is a Get or a Put, or a lane that wants frames or a checksum.
type post struct {
	kind    postKind
	changed bool
	sync    bool
	lane    uint8
	from    heat.Origin
	get     request
	put     Ref
	place   ftl.PPA // whose checksum is needed soon
	fn      func(error)
}

type postKind uint8

const (
	postGet postKind = iota
	postPut
	postGrant
	postSum
)

// lock takes p.mu and attends to what was posted: what a thread posted before it called happens first.
func (p *Pool) lock() {
	p.mu.Lock()
	p.drain()
}

// try is lock, unless another thread has p.mu.
func (p *Pool) try() bool {
	if !p.mu.TryLock() {
		return false
	}
	p.drain()
	return true
}

// post leaves posts, or a completed operation, to whoever has p.mu.
func (p *Pool) post(op *device.Op, posts ...post) {
	in := &p.inbox
	in.mu.Lock()
	if op != nil {
		in.ops = append(in.ops, op)
	}
	in.posts = append(in.posts, posts...)
	in.n.Store(int64(len(in.ops) + len(in.posts)))
	in.mu.Unlock()
}

// attend makes sure that everything posted is attended to. The thread that has p.mu looks at the inbox after it
// released p.mu; so either this call gets p.mu, or that thread sees what was posted before.
func (p *Pool) attend() {
	if p.inbox.n.Load() > 0 && p.try() {
		p.leave()
	}
}

// drain attends to what was posted. The caller holds p.mu.
func (p *Pool) drain() {
	in, c := &p.inbox, p.core
	for in.n.Load() > 0 {
		in.mu.Lock()
		ops, posts := in.ops, in.posts
		in.ops, in.posts = in.spareOps[:0], in.sparePosts[:0]
		in.n.Store(0)
		in.mu.Unlock()
		for _, op := range ops {
			c.lane = op.Loop
			c.complete(op)
		}
		for i := range posts {
			x := &posts[i]
			c.lane = x.lane
			switch x.kind {
			case postGet:
				p.get(x.get)
			case postPut:
				c.put(x.put, x.changed, x.sync, x.from, x.fn)
			case postGrant:
				c.grant(x.lane)
			case postSum:
				if _, known := c.ledger.SumAt(x.place); !known {
					c.load(x.place, nobody, 0)
				}
			}
		}
		clear(ops)
		clear(posts)
		in.spareOps, in.sparePosts = ops, posts
	}
}

// get serves a request. The caller holds p.mu.
func (p *Pool) get(r request) {
	if p.closed {
		p.core.give(r.fn, Ref{Page: r.asked}, ErrClosed)
		return
	}
	if !r.write && !p.table.Away(r.page) {
		p.table.Make(r.page).CountRead()
	}
	p.core.get(r)
}

// leave releases p.mu, and then copies the pages, submits the operations and runs the callbacks that the core has
// queued. It goes on with what others have posted meanwhile, if none of them does.
func (p *Pool) leave() {
	for {
		// Every entry point that can queue work ends here, so persist sees all records and waiters that the call added.
		p.core.persist()
		p.core.economise()
		if len(p.core.ops) == 0 && len(p.core.calls) == 0 && len(p.core.fills) == 0 {
			p.mu.Unlock()
		} else {
			// The core gets the empty lists of a batch, so that the next caller can queue work while this one carries
			// out its own.
			b := batches.Get().(*batch)
			b.ops, p.core.ops = p.core.ops, b.ops
			b.to, p.core.to = p.core.to, b.to
			b.calls, p.core.calls = p.core.calls, b.calls
			b.fills, p.core.fills = p.core.fills, b.fills
			p.mu.Unlock()
			p.carryOut(b)
		}
		// Others that post while this thread carries out its batch find p.mu free, and take over.
		if p.inbox.n.Load() == 0 || !p.try() {
			return
		}
	}
}
