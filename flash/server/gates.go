package server

import (
	"sync"
	"sync/atomic"
	"time"

	"farflash/flash/qos"
)

// turn is an access waiting at a gate.
type turn struct {
	gate  *gate
	what  any
	bytes int
}

// gates executes the decisions of package qos; it owns the clock and the timer. Until there is a limit, nothing passes
// through it.
type gates struct {
	on     atomic.Bool // there is or was a limit
	mu     sync.Mutex
	policy *qos.Scheduler[turn]
	shares map[string]*share // of exports that are open or have or had a limit
	rest   int               // tenant of exports that never had one
	began  time.Time
	timer  *time.Timer
	closed bool
}

// share is an export's.
type share struct {
	name   string
	tenant int
	limit  qos.Limit
	gates  int // not released
}

// newGates returns the gates of exports with these limits.
func newGates(limits map[string]qos.Limit, depth int) (*gates, error) {
	if depth == 0 {
		depth = qos.Depth
	}
	g := &gates{policy: qos.New[turn](int64(depth)), shares: map[string]*share{}, began: time.Now()}
	g.timer = time.AfterFunc(time.Hour, g.run)
	var err error
	if g.rest, err = g.policy.Add(qos.Limit{}); err != nil {
		return nil, err
	}
	by, err := oneSpelling(limits)
	if err != nil {
		return nil, err
	}
	for name, l := range by {
		if err := g.set(name, l); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// now is the time of the policy. The caller holds g.mu.
func (g *gates) now() int64 { return int64(time.Since(g.began)) }

// shareOf returns the share of an export, a new one if need be. The caller holds g.mu.
func (g *gates) shareOf(name string) *share {
	x := g.shares[name]
	if x == nil {
		x = &share{name: name, tenant: g.rest}
		g.shares[name] = x
	}
	return x
}

// set changes the limit of an export, its queued accesses included.
func (g *gates) set(name string, l qos.Limit) error {
	g.mu.Lock()
	x := g.shareOf(name)
	err := g.change(x, l)
	if err == nil {
		x.limit = l
		g.on.Store(g.on.Load() || l != qos.Limit{})
	}
	g.tidy(x)
	g.mu.Unlock()
	g.run()
	return err
}

// change changes the limit of a share. The caller holds g.mu.
func (g *gates) change(x *share, l qos.Limit) error {
	if x.tenant != g.rest {
		return g.policy.Set(x.tenant, l, g.now())
	}
	if l == (qos.Limit{}) {
		return nil
	}
	own, err := g.policy.Add(l)
	if err != nil {
		return err
	}
	for _, t := range g.policy.Withdraw(g.rest, func(t turn) bool { return t.gate.share == x }) {
		g.policy.Offer(own, int64(t.bytes), t)
	}
	x.tenant = own
	return nil
}

// tidy forgets a share that is like those of exports without a limit. The caller holds g.mu.
func (g *gates) tidy(x *share) {
	if x.gates == 0 && x.tenant == g.rest {
		delete(g.shares, x.name)
	}
}

// limits returns the limits in force, by export.
func (g *gates) limits() map[string]qos.Limit {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := map[string]qos.Limit{}
	for name, x := range g.shares {
		if x.limit != (qos.Limit{}) {
			all[name] = x.limit
		}
	}
	return all
}

// gate is the queue of one use of an export.
type gate struct {
	g      *gates
	share  *share
	begin  func(what any) // starts an access that entered and was not withdrawn, once, on any goroutine
	refuse func(what any) // called instead for accesses that enter after shut; nil if shut is never called
	gone   bool           // guarded by g.mu
}

// of returns a gate for an export.
func (g *gates) of(name string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.shareOf(name)
	x.gates++
	return &gate{g: g, share: x}
}

// release ends the use of a gate, at which nothing waits any more.
func (x *gate) release() {
	x.g.mu.Lock()
	defer x.g.mu.Unlock()
	x.share.gates--
	x.g.tidy(x.share)
}

// limited reports whether accesses must enter the gate.
func (x *gate) limited() bool { return x.g.on.Load() }

// enter queues an access that makes the device read or write this many bytes. It starts now or later.
func (x *gate) enter(bytes int, what any) {
	x.g.mu.Lock()
	if x.gone {
		x.g.mu.Unlock()
		x.refuse(what)
		return
	}
	x.g.policy.Offer(x.share.tenant, int64(bytes), turn{x, what, bytes})
	x.g.mu.Unlock()
	x.g.run()
}

// withdraw removes a queued access and reports whether it was still queued; otherwise it has started.
func (x *gate) withdraw(what any) bool {
	x.g.mu.Lock()
	defer x.g.mu.Unlock()
	return len(x.g.policy.Withdraw(x.share.tenant, func(t turn) bool { return t.gate == x && t.what == what })) > 0
}

// shut refuses all queued and future accesses.
func (x *gate) shut() {
	x.g.mu.Lock()
	x.gone = true
	all := x.g.policy.Withdraw(x.share.tenant, func(t turn) bool { return t.gate == x })
	x.g.mu.Unlock()
	for _, t := range all {
		x.refuse(t.what)
	}
}

// leave reports that an access that started has its data, or has failed.
func (x *gate) leave(bytes int) {
	x.g.mu.Lock()
	x.g.policy.Done(int64(bytes))
	waiting := x.g.policy.Waiting() > 0
	x.g.mu.Unlock()
	if waiting {
		x.g.run()
	}
}

// run starts all accesses that the policy permits now.
func (g *gates) run() {
	for {
		g.mu.Lock()
		now := g.now()
		next, ok := g.policy.Next(now)
		if !ok {
			if wait, ok := g.policy.When(now); ok && !g.closed {
				g.timer.Reset(time.Duration(wait) + time.Microsecond)
			}
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		next.gate.begin(next.what)
	}
}

// open starts everything that is queued, without limits from now on.
func (g *gates) open() {
	g.mu.Lock()
	g.policy.Open()
	g.mu.Unlock()
	g.run()
}

func (g *gates) close() {
	g.mu.Lock()
	g.closed = true
	g.timer.Stop()
	g.mu.Unlock()
}

// waiting is the number of queued accesses.
func (g *gates) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.policy.Waiting()
}
