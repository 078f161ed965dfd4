package bench

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"farflash/internal/fifo"
	"farflash/rng"
	"farflash/stats"
	"farflash/units"
)

// client is one connection to a system. One goroutine starts requests, one waits; they may be the same.
type client interface {
	// start begins request number slot, of which none is under way. It may wait for flush with sending it.
	start(slot int, write bool, offset uint64) error
	// flush sends what was begun.
	flush() error
	// wait fills in numbers of requests that have ended, at least one.
	wait(ended []int) (int, error)
	close() error
}

// lane is what one connection is asked for, and how long it took.
type lane struct {
	c      Config
	client client
	draw   rng.Stream
	due    []time.Time // of each slot's request
	took   stats.Histogram
	count  int64 // that ended in time
	all    int64
	from   time.Time // what ends before is not counted
	until  time.Time // nothing is begun after it

	// Of an open loop; see open.go.
	mu    sync.Mutex           // whoever begins requests has it
	more  *sync.Cond           // something is under way, or nothing more comes
	free  []int                // slots
	late  fifo.Ring[time.Time] // what was due when there was none
	under int                  // requests under way
	over  bool
}

// next draws a request.
func (l *lane) next() (write bool, offset uint64) {
	if l.c.Atomics {
		return false, uint64(l.draw.IntN(counters/8)) * 8
	}
	write = l.c.Writes > 0 && l.draw.Float64() < l.c.Writes
	return write, uint64(l.draw.IntN(l.c.Size/int64(l.c.Block))) * uint64(l.c.Block)
}

func (l *lane) begin(slot int, due time.Time) error {
	l.due[slot] = due
	write, offset := l.next()
	return l.client.start(slot, write, offset)
}

func (l *lane) ended(slot int, now time.Time) {
	l.all++
	if due := l.due[slot]; !due.Before(l.from) && !now.After(l.until) {
		l.count++
		l.took.Record(units.Duration(now.Sub(due)) * units.Nanosecond)
	}
}

// closed keeps all slots busy.
func (l *lane) closed() error {
	for slot := range l.c.Depth {
		if err := l.begin(slot, time.Now()); err != nil {
			return err
		}
	}
	if err := l.client.flush(); err != nil {
		return err
	}
	done := make([]int, l.c.Depth)
	for left := l.c.Depth; left > 0; {
		n, err := l.client.wait(done)
		if err != nil {
			return err
		}
		now := time.Now()
		for _, slot := range done[:n] {
			l.ended(slot, now)
			if now.After(l.until) {
				left--
				continue
			}
			if err := l.begin(slot, now); err != nil {
				return err
			}
		}
		// What can be begun together is sent together, by all systems.
		if err := l.client.flush(); err != nil {
			return err
		}
	}
	return nil
}

// openDepth is how many requests of a connection an open loop has under way at most; what is due then waits, and its time counts.
const openDepth = 32

// measure has all connections of a system at work for a time; rate is what is offered in all, 0 a closed loop.
func (b *bench) measure(s System, rate float64) (m Measured, err error) {
	for t := b.cfg.Time; ; t *= 2 { // on a machine that is busy with something else nothing may end in a short time
		if m, err = b.during(s, rate, t); !errors.Is(err, errNothing) || t > time.Hour {
			return m, err
		}
	}
}

var errNothing = errors.New("no request ended in time; measure longer")

func (b *bench) during(s System, rate float64, length time.Duration) (m Measured, err error) {
	c := b.cfg
	b.turn++
	if len(b.clients) < len(b.all) && s != Local { // that has no server, and is to show what there is
		free, wrong := confine(b.clients, b.all)
		if wrong != nil {
			return m, wrong
		}
		defer func() { err = errors.Join(err, free()) }()
	}
	lanes := make([]*lane, c.Connections)
	defer func() {
		for _, l := range lanes {
			if l != nil {
				err = errors.Join(err, l.client.close())
			}
		}
		_, wrong := b.state(question{Ended: b.made})
		err = errors.Join(err, wrong)
	}()
	depth := c.Depth
	if rate > 0 {
		depth = max(c.Depth, openDepth)
	}
	for i := range lanes {
		k, err := b.dial(s, depth)
		if err != nil {
			return m, err
		}
		lanes[i] = &lane{c: *c, client: k, draw: rng.NewStream(c.Seed+uint64(b.turn), fmt.Sprintf("connection %d", i)), due: make([]time.Time, depth)}
		lanes[i].c.Depth = depth
		lanes[i].more = sync.NewCond(&lanes[i].mu)
		for slot := range depth {
			lanes[i].free = append(lanes[i].free, slot)
		}
	}
	before, err := b.state(question{})
	if err != nil {
		return m, err
	}
	warm := min(length/5, 200*time.Millisecond)
	from := time.Now().Add(warm)
	var all sync.WaitGroup
	errs := make([]error, len(lanes)+1)
	for i, l := range lanes {
		l.from, l.until = from, from.Add(length)
		all.Add(1)
		go asking(func() {
			defer all.Done()
			if rate > 0 {
				errs[i] = l.answered()
			} else {
				errs[i] = l.closed()
			}
		})
	}
	if rate > 0 {
		all.Add(1)
		go asking(func() {
			defer all.Done()
			draw := rng.NewStream(c.Seed+uint64(b.turn), "arrivals")
			errs[len(lanes)] = arrive(lanes, rate, &draw)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return m, err
	}
	var took stats.Histogram
	count, begun := int64(0), int64(0)
	for _, l := range lanes {
		took.Merge(&l.took)
		count += l.count
		begun += l.all
	}
	if count == 0 {
		return m, errNothing
	}
	after, err := b.state(question{})
	if err != nil {
		return m, err
	}
	us := func(q float64) float64 { return float64(took.Quantile(q)) / float64(units.Microsecond) }
	m = Measured{Rate: float64(count) / length.Seconds(), P50: us(0.5), P99: us(0.99), CPU: float64((after.Spent - before.Spent).Microseconds()) / float64(begun)}
	if s.verbs() {
		m.Reads = float64(after.Reads-before.Reads) / float64(begun)
	}
	if added := after.Sum - before.Sum; c.Atomics && added != uint64(begun) {
		return m, fmt.Errorf("%d additions have added %d", begun, added)
	}
	return m, nil
}
