package kv_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"farflash/flash/kv"
)

// metered is memory for several clients at a time, which counts their operations.
type metered struct {
	mu                   sync.Mutex
	mem                  []byte
	dead                 map[uint64]bool // clients that can be fenced
	reads, large, swaps  int             // large: of buckets or chunks, many at a time
	inFlight, mostFlight int             // large reads
	instance             int
	begun                func(n int) // before the n-th large read, from 1 on
}

// user is a client of it.
type user struct {
	*metered
	name uint64
}

func (m *metered) ReadAt(b []byte, off int64) (int, error) {
	m.mu.Lock()
	m.reads++
	large := len(b) > 16<<10
	if large {
		m.large++
		m.inFlight++
		m.mostFlight = max(m.mostFlight, m.inFlight)
		n, begun := m.large, m.begun
		m.mu.Unlock()
		if begun != nil {
			begun(n)
		}
		m.mu.Lock()
		m.inFlight--
	}
	defer m.mu.Unlock()
	return copy(b, m.mem[off:]), nil
}

func (m *metered) Write(b []byte, off int64, _ bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	copy(m.mem[off:], b)
	return nil
}

func (m *metered) CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.swaps++
	return (&direct{mem: m.mem}).CompareSwapBits(off, old, oldMask, value, mask, durable)
}

func (m *metered) Flush() error { return nil }

func (u user) Name() uint64 { return u.name }

func (u user) Instance() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return fmt.Sprint(u.instance)
}

func (u user) Fence(_ context.Context, name uint64, _ time.Duration) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dead[name] {
		return nil
	}
	return kv.ErrAlive
}

// open opens the store for a client, with up to 8 operations of a count in flight.
func (m *metered) open(t testing.TB, name uint64) *kv.Store {
	t.Helper()
	o := kv.DefaultOptions()
	u := user{m, name}
	s, err := kv.Open(context.Background(), u, u, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reset forgets what was counted.
func (m *metered) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads, m.large, m.swaps, m.mostFlight = 0, 0, 0, 0
}

func newMetered(t testing.TB, keys uint64) (*metered, kv.Geometry) {
	t.Helper()
	g, err := kv.NewGeometry(keys, 48, 10, kv.Async, 7)
	if err != nil {
		t.Fatal(err)
	}
	return &metered{mem: made(t, g), dead: map[uint64]bool{}}, g
}

func fill(t testing.TB, s *kv.Store, prefix string, n int) {
	t.Helper()
	for i := range n {
		if err := s.Put(context.Background(), fmt.Appendf(nil, "%s %d", prefix, i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCountOperations verifies how many operations a count takes: large reads, and a few for each chunk with slots to
// be found.
func TestCountOperations(t *testing.T) {
	ctx := context.Background()
	m, g := newMetered(t, 20000)
	const per = 256 << 10 / 1024
	buckets := int(g.Buckets+per-1) / per // reads
	a := m.open(t, 1)
	fill(t, a, "a", 3000)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b := m.open(t, 2)
	m.reset()
	if err := b.Collect(ctx); err != nil {
		t.Fatal(err)
	}
	// The lock is taken and given back; members; chunks before and after.
	if m.swaps != 2 || m.large > buckets+2 || m.reads > buckets+8 {
		t.Errorf("a count that finds nothing: %d swaps, %d reads, %d of them large, of %d buckets", m.swaps, m.reads, m.large,
			g.Buckets)
	}

	c := m.open(t, 3)
	fill(t, c, "c", 100)
	m.dead[3] = true // with the rest of three chunks
	u, err := b.Use(ctx)
	if err != nil {
		t.Fatal(err)
	}
	m.reset()
	if err := b.Collect(ctx); err != nil {
		t.Fatal(err)
	}
	found, chunks := int(b.Counters().Collected), 3
	if found == 0 || u.Slots-uint64(found) != u.Keys {
		t.Errorf("%d slots found, of %d for %d keys", found, u.Slots, u.Keys)
	}
	if m.swaps > 4*chunks+3 || m.large > 2*buckets+2 || m.reads > 2*buckets+10 {
		t.Errorf("a count of %d chunks: %d swaps, %d reads, %d of them large", chunks, m.swaps, m.reads, m.large)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCountAnew verifies the count after a restart of the server: it reads the entries once, and the homes of those
// that are elsewhere, and writes the chunks.
func TestCountAnew(t *testing.T) {
	ctx := context.Background()
	m, g := newMetered(t, 2000)
	a := m.open(t, 1)
	fill(t, a, "a", 2000)
	m.mu.Lock()
	m.instance++ // a is gone, with slots that it held
	m.mu.Unlock()
	m.reset()
	b := m.open(t, 2)
	if m.reads > int(g.Buckets)+12 || m.swaps > 4 {
		t.Errorf("%d reads, %d swaps, for %d buckets", m.reads, m.swaps, g.Buckets)
	}
	if u, err := b.Use(ctx); err != nil || u.Keys != 2000 || u.Slots != 2000 {
		t.Errorf("%d keys, %d slots: %v", u.Keys, u.Slots, err)
	}
	for i := range 2000 {
		if _, ok, err := b.Get(ctx, fmt.Appendf(nil, "a %d", i), nil); err != nil || !ok {
			t.Fatalf("key %d: %v %v", i, ok, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestReadsAhead verifies that a count has eight large reads in flight, and never more: the first ones wait for each
// other.
func TestReadsAhead(t *testing.T) {
	m, _ := newMetered(t, 30000)
	s := m.open(t, 1)
	fill(t, s, "k", 10)
	m.reset()
	all := make(chan struct{})
	m.begun = func(n int) {
		if n == 8 {
			close(all)
		}
		<-all
	}
	if err := s.Collect(context.Background()); err != nil {
		t.Fatal(err)
	}
	if m.begun = nil; m.mostFlight != 8 {
		t.Errorf("%d reads in flight", m.mostFlight)
	}
	n := 0
	err := s.Scan(context.Background(), nil, func([]byte, []byte, bool) error {
		n++
		return nil
	})
	if err != nil || n != 10 {
		t.Errorf("%d of 10 keys: %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestChangesDuringCount verifies that changes go on while their client counts.
func TestChangesDuringCount(t *testing.T) {
	m, _ := newMetered(t, 30000)
	s := m.open(t, 1)
	fill(t, s, "k", 10)
	begun, goOn := make(chan struct{}), make(chan struct{})
	m.reset()
	m.begun = func(n int) {
		if n == 1 {
			close(begun)
		}
		<-goOn
	}
	done := make(chan error)
	go func() { done <- s.Collect(context.Background()) }()
	<-begun
	fill(t, s, "k", 10)   // other values
	fill(t, s, "new", 60) // through more than a chunk
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCountsAside verifies that no slot is given out twice while several clients, each with goroutines, change keys and
// count: each goroutine finds its own puts in its keys, and at the end each key has one slot.
func TestCountsAside(t *testing.T) {
	ctx := context.Background()
	m, _ := newMetered(t, 500)
	var clients []*kv.Store
	for i := range uint64(3) {
		clients = append(clients, m.open(t, i+1))
	}
	var all sync.WaitGroup
	for i, s := range clients {
		for g := range 3 {
			all.Go(func() {
				for n := range 200 {
					key, value := fmt.Appendf(nil, "%d %d %d", i, g, n%5), fmt.Appendf(nil, "%d", n)
					if err := s.Put(ctx, key, value); err != nil {
						t.Error(err)
						return
					}
					if n%50 == 49 {
						if err := s.Collect(ctx); err != nil {
							t.Error(err)
							return
						}
					}
					if got, ok, err := s.Get(ctx, key, nil); err != nil || !ok || string(got) != string(value) {
						t.Errorf("%s: %q %v %v, not %s", key, got, ok, err, value)
						return
					}
				}
			})
		}
	}
	all.Wait()
	for _, s := range clients {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := m.open(t, 9)
	for range 2 { // what was counted meanwhile may have left slots to the next count
		if err := s.Collect(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := s.Use(ctx); err != nil || u.Keys != 45 || u.Slots != 45 {
		t.Errorf("%d keys, %d slots: %v", u.Keys, u.Slots, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
