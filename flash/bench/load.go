package bench

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"farflash/internal/fifo"
	"farflash/numeric/rng"
	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// client is one connection to a system, used by one thread.
type client interface {
	// start starts a request in a free slot. It may leave sending to flush.
	start(slot int, write bool, offset uint64) error
	// flush sends the started requests and reports whether all of them were accepted.
	flush() (all bool, err error)
	// take stores the slots of finished requests, without waiting.
	take(ended []int) (int, error)
	close() error
}

// connState is the load on one connection, with its latency statistics.
type connState struct {
	c      *Config
	client client
	fd     int // readable when take may return requests
	draw   rng.Stream
	due    []time.Time // by slot
	took   stats.Histogram
	count  int64 // finished within the measurement
	all    int64
	from   time.Time // requests due earlier are not counted
	until  time.Time // end of the measurement: no request starts later

	free    []int                // slots
	done    []int                // scratch space for take
	late    fifo.Ring[time.Time] // open loop: due times of requests without a free slot
	blocked bool                 // the connection accepts no more for now
}

func newConnState(c *Config, k client, fd int, draw rng.Stream, depth int) *connState {
	l := &connState{c: c, client: k, fd: fd, draw: draw, due: make([]time.Time, depth), done: make([]int, depth)}
	for slot := range depth {
		l.free = append(l.free, slot)
	}
	return l
}

// slot claims a free slot; there must be one.
func (l *connState) slot() int {
	n := len(l.free) - 1
	slot := l.free[n]
	l.free = l.free[:n]
	return slot
}

// next draws a request.
func (l *connState) next() (write bool, offset uint64) {
	if l.c.Atomics {
		return false, uint64(l.draw.IntN(counters/8)) * 8
	}
	write = l.c.Writes > 0 && l.draw.Float64() < l.c.Writes
	return write, uint64(l.draw.IntN(l.c.Size/int64(l.c.Block))) * uint64(l.c.Block)
}

func (l *connState) begin(slot int, due time.Time) error {
	l.due[slot] = due
	write, offset := l.next()
	return l.client.start(slot, write, offset)
}

func (l *connState) ended(slot int, now time.Time) {
	l.all++
	if due := l.due[slot]; !due.Before(l.from) && !now.After(l.until) {
		l.count++
		l.took.Record(units.Duration(now.Sub(due)) * units.Nanosecond)
	}
}

// openDepth is the maximum number of outstanding requests per connection in an open loop. Requests beyond it queue, and
// the queueing time counts.
const openDepth = 32

// measure loads a system on all connections; rate is the total offered rate, 0 for a closed loop.
func (b *bench) measure(s System, rate float64) (m Measured, err error) {
	for t := b.cfg.Time; ; t *= 2 { // on a busy machine a short measurement may finish no request
		if m, err = b.during(s, rate, t); !errors.Is(err, errNoCompletion) || t > time.Hour {
			return m, err
		}
	}
}

var errNoCompletion = errors.New("no request completed; measure longer")

func (b *bench) during(s System, rate float64, length time.Duration) (m Measured, err error) {
	c := b.cfg
	b.turn++
	if len(b.clients) < len(b.all) && s != Local { // Local has no server and shows the upper bound, on all processors
		free, wrong := confine(b.clients, b.all)
		if wrong != nil {
			return m, wrong
		}
		defer func() { err = errors.Join(err, free()) }()
	}
	lanes := make([]*connState, c.Connections)
	defer func() {
		for _, l := range lanes {
			if l != nil {
				err = errors.Join(err, l.client.close())
			}
		}
		_, wrong := b.state(question{Ended: b.made, Idle: true})
		err = errors.Join(err, wrong)
	}()
	depth := c.Depth
	if rate > 0 {
		depth = max(c.Depth, openDepth)
	}
	for i := range lanes {
		k, fd, err := b.dial(s, depth)
		if err != nil {
			return m, err
		}
		lanes[i] = newConnState(c, k, fd, rng.NewStream(c.Seed+uint64(b.turn), fmt.Sprintf("connection %d", i)), depth)
	}
	before, err := b.state(question{})
	if err != nil {
		return m, err
	}
	warm := min(length/5, 200*time.Millisecond)
	from := time.Now().Add(warm)
	for _, l := range lanes {
		l.from, l.until = from, from.Add(length)
	}
	threads := min(len(b.clients), len(lanes))
	errs := make([]error, threads)
	var all sync.WaitGroup
	for i := range threads {
		mine := lanes[i*len(lanes)/threads : (i+1)*len(lanes)/threads]
		draw := rng.NewStream(c.Seed+uint64(b.turn), fmt.Sprintf("arrivals %d", i))
		t, err := newThread(mine, rate*float64(len(mine))/float64(len(lanes)), draw, s == VerbsPolled ||
			rate > 0 && len(b.clients) < len(b.all))
		if err != nil {
			errs[i] = err
			break
		}
		all.Add(1)
		go asking(func() {
			defer all.Done()
			errs[i] = errors.Join(t.run(), t.close())
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
		return m, errNoCompletion
	}
	after, err := b.state(question{})
	if err != nil {
		return m, err
	}
	us := func(q float64) float64 { return float64(took.Quantile(q)) / float64(units.Microsecond) }
	m = Measured{Rate: float64(count) / length.Seconds(), P50: us(0.5), P99: us(0.99),
		CPU: float64((after.Spent - before.Spent).Microseconds()) / float64(begun)}
	if s.pooled() {
		m.Reads = float64(after.Reads-before.Reads) / float64(begun)
	}
	if added := after.Sum - before.Sum; c.Atomics && added != uint64(begun) {
		return m, fmt.Errorf("%d atomic additions added %d", begun, added)
	}
	return m, nil
}
