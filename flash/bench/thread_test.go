package bench

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"farflash/numeric/rng"
)

// prompt is a client whose requests finish as soon as they are sent, in reverse order; every third flush is refused at
// first. It records violations.
type prompt struct {
	l      *connState
	event  int
	begun  []int
	sent   []int
	under  map[int]bool
	twice  bool
	early  int
	most   int
	count  int
	dues   []time.Time // of the started requests
	begins func()      // called when a request starts
	held   bool        // the last flush did not accept everything
}

func newPrompt(t *testing.T) *prompt {
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(event) })
	return &prompt{event: event, under: map[int]bool{}}
}

func (p *prompt) start(slot int, _ bool, _ uint64) error {
	p.twice = p.twice || p.under[slot]
	p.under[slot] = true
	p.most = max(p.most, len(p.under))
	if time.Now().Before(p.l.due[slot]) {
		p.early++
	}
	p.dues = append(p.dues, p.l.due[slot])
	p.begun = append(p.begun, slot)
	if p.begins != nil {
		p.begins()
	}
	return nil
}

func (p *prompt) flush() (bool, error) {
	if len(p.begun) == 0 {
		return true, nil
	}
	if p.count++; p.count%3 == 0 && !p.held {
		p.held = true
		return false, nil
	}
	p.held = false
	p.sent = append(p.sent, p.begun...)
	p.begun = p.begun[:0]
	_, err := unix.Write(p.event, one)
	return true, err
}

func (p *prompt) take(ended []int) (int, error) {
	n := len(p.sent)
	if n == 0 {
		return 0, nil
	}
	ended[0] = p.sent[n-1]
	p.sent = p.sent[:n-1]
	delete(p.under, ended[0])
	if len(p.sent) == 0 {
		var b [8]byte
		_, err := unix.Read(p.event, b[:])
		return 1, err
	}
	return 1, nil
}

func (p *prompt) close() error { return nil }

// prompts returns lanes that run for 50 ms from now.
func prompts(t *testing.T, n, depth int) (lanes []*connState, clients []*prompt) {
	c := DefaultConfig()
	from := time.Now()
	for range n {
		p := newPrompt(t)
		p.l = newConnState(&c, p, p.event, rng.NewStream(1, "requests"), depth)
		p.l.from, p.l.until = from, from.Add(50*time.Millisecond)
		lanes, clients = append(lanes, p.l), append(clients, p)
	}
	return lanes, clients
}

func whole(t *testing.T, lanes []*connState, clients []*prompt, depth int) {
	t.Helper()
	for i, l := range lanes {
		p := clients[i]
		slices.Sort(l.free)
		if l.all == 0 || l.late.N != 0 || len(l.free) != depth || len(slices.Compact(l.free)) != depth || l.blocked {
			t.Errorf("connection %d: %d requests ended, %d are late, the slots %v are free, blocked: %v", i, l.all,
				l.late.N, l.free, l.blocked)
		}
		if p.early > 0 || p.twice || len(p.under) > 0 || p.most > depth {
			t.Errorf("connection %d: %d requests were begun before they were due, %d are under way, %d were at once; "+
				"a slot was used twice: %v", i, p.early, len(p.under), p.most, p.twice)
		}
	}
}

// TestArrivals verifies that every request of an open loop that is due within the measurement is started once, not
// before it is due, and finishes, however few slots there are.
func TestArrivals(t *testing.T) {
	const rate, depth = 20_000, 2
	for _, spins := range []bool{false, true} {
		lanes, clients := prompts(t, 3, depth)
		th, err := newThread(lanes, rate, rng.NewStream(1, "arrivals"), spins)
		if err != nil {
			t.Fatal(err)
		}
		if err := th.run(); err != nil {
			t.Fatal(err)
		}
		if err := th.close(); err != nil {
			t.Fatal(err)
		}
		whole(t, lanes, clients, depth)
		// Repeating the draws yields the due times and connections; no other request may have started.
		var dues []time.Time
		for _, p := range clients {
			dues = append(dues, p.dues...)
		}
		if len(dues) == 0 {
			t.Fatal("no request came")
		}
		slices.SortFunc(dues, time.Time.Compare)
		again, want := rng.NewStream(1, "arrivals"), make([]int64, len(lanes))
		interval := func() time.Duration { return time.Duration(again.Exp() / rate * float64(time.Second)) }
		at := dues[0]
		for k, due := range dues {
			if after := interval(); k > 0 {
				at = at.Add(after)
			}
			if !due.Equal(at) {
				t.Fatalf("request %d was due %v after the first, not %v", k, due.Sub(dues[0]), at.Sub(dues[0]))
			}
			want[again.IntN(int64(len(lanes)))]++
		}
		for i, l := range lanes {
			if l.all != want[i] {
				t.Errorf("connection %d: %d of %d requests ended", i, l.all, want[i])
			}
		}
		if until := lanes[0].until; at.After(until) || !at.Add(interval()).After(until) {
			t.Errorf("the last of %d requests was due %v before the end, at %d a second", len(dues), until.Sub(at),
				rate)
		}
	}
}

// TestClosed verifies that each connection keeps all its requests outstanding until the end of the measurement, and
// then none.
func TestClosed(t *testing.T) {
	const depth = 4
	lanes, clients := prompts(t, 5, depth)
	th, err := newThread(lanes, 0, rng.NewStream(1, "arrivals"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := th.run(); err != nil {
		t.Fatal(err)
	}
	if now := time.Now(); now.Before(lanes[0].until) {
		t.Errorf("it ended %v early", lanes[0].until.Sub(now))
	}
	if err := th.close(); err != nil {
		t.Fatal(err)
	}
	whole(t, lanes, clients, depth)
	for i, p := range clients {
		if p.most != depth {
			t.Errorf("connection %d: %d requests at once", i, p.most)
		}
	}
}
