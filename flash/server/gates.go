package server

import (
	"fmt"
	"sync"
	"time"

	"farflash/flash/extent"
	"farflash/flash/qos"
)

// gates carries out what package qos decides: it has the clock and the timer.
type gates struct {
	mu      sync.Mutex
	policy  *qos.Scheduler[func()]
	tenants map[string]int
	rest    int // the tenant of exports without a limit
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
	g := &gates{policy: qos.New[func()](int64(depth)), tenants: map[string]int{}, began: time.Now()}
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

// gate is one export's.
type gate struct {
	g      *gates
	tenant int
}

// of is the gate of an export; nil if nothing is limited.
func (g *gates) of(name string) extent.Gate {
	if g == nil {
		return nil
	}
	t, ok := g.tenants[name]
	if !ok {
		t = g.rest
	}
	return &gate{g, t}
}

// Enter implements extent.Gate.
func (x *gate) Enter(bytes int, begin func()) {
	x.g.mu.Lock()
	x.g.policy.Offer(x.tenant, int64(bytes), begin)
	x.g.mu.Unlock()
	x.g.run()
}

// Leave implements extent.Gate.
func (x *gate) Leave(bytes int) {
	x.g.mu.Lock()
	x.g.policy.Done(int64(bytes))
	waiting := x.g.policy.Waiting() > 0
	x.g.mu.Unlock()
	if waiting {
		x.g.run()
	}
}

// run begins what may.
func (g *gates) run() {
	for {
		g.mu.Lock()
		now := int64(time.Since(g.began))
		begin, ok := g.policy.Next(now)
		if !ok {
			if wait, ok := g.policy.When(now); ok && !g.closed {
				g.timer.Reset(time.Duration(wait) + time.Microsecond)
			}
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		begin()
	}
}

// open lets everything begin that waits.
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

// waiting is how many accesses wait.
func (g *gates) waiting() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.policy.Waiting()
}
