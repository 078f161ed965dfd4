package bench

import (
	"sync"
	"testing"
	"time"

	"farflash/rng"
)

// prompt is a client whose requests end when they are waited for, in the order in which they were begun. It counts those that were begun before they were due.
type prompt struct {
	mu    sync.Mutex
	l     *lane
	begun chan int
	under map[int]bool
	twice bool
	early int
}

func (p *prompt) start(slot int, _ bool, _ uint64) error {
	p.mu.Lock()
	p.twice = p.twice || p.under[slot]
	p.under[slot] = true
	p.mu.Unlock()
	if time.Now().Before(p.l.due[slot]) {
		p.early++
	}
	p.begun <- slot
	return nil
}

func (p *prompt) flush() error { return nil }

func (p *prompt) wait(ended []int) (int, error) {
	ended[0] = <-p.begun
	p.mu.Lock()
	p.under[ended[0]] = false
	p.mu.Unlock()
	return 1, nil
}

func (p *prompt) close() error { return nil }

// TestArrivals: every request of an open loop that is due in its time is begun once, not before it is due, and ends, however few slots there are.
func TestArrivals(t *testing.T) {
	const rate, depth = 20_000, 2
	c := DefaultConfig()
	from := time.Now()
	var lanes []*lane
	var clients []*prompt
	for range 3 {
		p := &prompt{begun: make(chan int, depth), under: map[int]bool{}}
		l := &lane{c: c, client: p, draw: rng.NewStream(1, "requests"), due: make([]time.Time, depth), from: from, until: from.Add(50 * time.Millisecond), free: []int{0, 1}}
		l.more, p.l = sync.NewCond(&l.mu), l
		lanes, clients = append(lanes, l), append(clients, p)
	}
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(func() {
			if err := l.answered(); err != nil {
				t.Error(err)
			}
		})
	}
	draw := rng.NewStream(1, "arrivals")
	if err := arrive(lanes, rate, &draw); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	// The same draws again say to whom they came.
	again := rng.NewStream(1, "arrivals")
	want := make([]int64, len(lanes))
	total := int64(0)
	for i := range lanes {
		total += lanes[i].all
	}
	for range total {
		again.Exp()
		want[again.IntN(int64(len(lanes)))]++
	}
	for i, l := range lanes {
		if l.all != want[i] || l.all == 0 || l.under != 0 || l.late.N != 0 || len(l.free) != depth {
			t.Errorf("connection %d: %d of %d requests ended, %d are under way, %d late, %d slots are free", i, l.all, want[i], l.under, l.late.N, len(l.free))
		}
		if p := clients[i]; p.early > 0 || p.twice {
			t.Errorf("connection %d: %d requests were begun before they were due; a slot was used twice: %v", i, p.early, p.twice)
		}
	}
}
