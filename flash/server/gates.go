package server

import (
	"fmt"
	"sync"
	"time"

	"farflash/flash/qos"
)

// turn is an access waiting at a gate.
type turn struct {
	gate *gate
	what any
}

// gates executes the decisions of package qos; it owns the clock and the timer.
type gates struct {
	mu      sync.Mutex
	policy  *qos.Scheduler[turn]
	tenants map[string]int
	rest    int // tenant of exports without a limit
	began   time.Time
	timer   *time.Timer
	closed  bool
}

// newGates returns nil if there are no limits.
func newGates(limits map[string]qos.Limit, depth int) (*gates, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	if depth == 0 {
		depth = qos.Depth
	}
	g := &gates{policy: qos.New[turn](int64(depth)), tenants: map[string]int{}, began: time.Now()}
	var err error
	if g.rest, err = g.policy.Add(qos.Limit{}); err != nil {
		return nil, err
	}
	for spelled, l := range limits {
		name := Name(spelled)
		if _, twice := g.tenants[name]; twice {
			return nil, fmt.Errorf("%s has two limits; give one", name)
		}
		if g.tenants[name], err = g.policy.Add(l); err != nil {
			return nil, err
		}
	}
	g.timer = time.AfterFunc(time.Hour, g.run)
	return g, nil
}

// gate is the queue of one use of an export.
type gate struct {
	g      *gates
	tenant int
	begin  func(what any) // starts an access that entered and was not withdrawn, once, on any goroutine
	refuse func(what any) // called instead for accesses that enter after shut; nil if shut is never called
	gone   bool           // guarded by g.mu
}

// of returns a gate for an export, or nil if there are no limits.
func (g *gates) of(name string) *gate {
	if g == nil {
		return nil
	}
	t, ok := g.tenants[name]
	if !ok {
		t = g.rest
	}
	return &gate{g: g, tenant: t}
}

// enter queues an access that makes the device read or write this many bytes. It starts now or later.
func (x *gate) enter(bytes int, what any) {
	x.g.mu.Lock()
	if x.gone {
		x.g.mu.Unlock()
		x.refuse(what)
		return
	}
	x.g.policy.Offer(x.tenant, int64(bytes), turn{x, what})
	x.g.mu.Unlock()
	x.g.run()
}

// withdraw removes a queued access and reports whether it was still queued; otherwise it has started.
func (x *gate) withdraw(what any) bool {
	x.g.mu.Lock()
	defer x.g.mu.Unlock()
	return len(x.g.policy.Withdraw(x.tenant, func(t turn) bool { return t.gate == x && t.what == what })) > 0
}

// shut refuses all queued and future accesses.
func (x *gate) shut() {
	x.g.mu.Lock()
	x.gone = true
	all := x.g.policy.Withdraw(x.tenant, func(t turn) bool { return t.gate == x })
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
		now := int64(time.Since(g.began))
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
	if g == nil {
		return
	}
	g.mu.Lock()
	g.policy.Open()
	g.mu.Unlock()
	g.run()
}

func (g *gates) close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.closed = true
	g.timer.Stop()
	g.mu.Unlock()
}

// waiting is the number of queued accesses.
func (g *gates) waiting() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.policy.Waiting()
}
