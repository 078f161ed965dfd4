package bench

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"farflash/numeric/rng"
)

// thread issues the requests of many connections. It starts due requests, takes finished ones, and waits for either.
// There is one thread per client processor, so that no request waits for one goroutine to wake another.
type thread struct {
	lanes []*connState
	poll  int  // epoll descriptor
	spins bool // it polls instead of sleeping
	under int  // outstanding requests
	until time.Time
	turns turns

	// Open loop: requests are due at exponential intervals, independent of completions, each on a random connection.
	// That is equivalent to independent exponential intervals per connection.
	rate  float64 // requests per second; 0 is a closed loop
	draw  rng.Stream
	due   time.Time // due time of the next one; zero after the last
	timer int       // timerfd
}

// newThread returns a thread for some connections; rate is their total rate in an open loop.
func newThread(lanes []*connState, rate float64, draw rng.Stream, spins bool) (t *thread, err error) {
	t = &thread{lanes: lanes, rate: rate, draw: draw, spins: spins, until: lanes[0].until, poll: -1, timer: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if t.poll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return t, os.NewSyscallError("epoll_create1", err)
	}
	for i, l := range lanes {
		if err = t.watch(unix.EPOLL_CTL_ADD, i, l.fd, unix.EPOLLIN); err != nil {
			return t, err
		}
	}
	if rate > 0 && !spins {
		if t.timer, err = unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err != nil {
			return t, os.NewSyscallError("timerfd_create", err)
		}
		// Edge-triggered, because the timer is never read.
		err = t.watch(unix.EPOLL_CTL_ADD, len(lanes), t.timer, unix.EPOLLIN|unix.EPOLLET)
	}
	return t, err
}

func (t *thread) watch(op, i, fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl",
		unix.EpollCtl(t.poll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(i)}))
}

func (t *thread) close() (err error) {
	for _, fd := range []int{t.poll, t.timer} {
		if fd >= 0 {
			err = errors.Join(err, os.NewSyscallError("close", unix.Close(fd)))
		}
	}
	return err
}

// run starts requests until the end of the measurement, and returns when all have finished.
func (t *thread) run() error {
	addPlaces(1)
	defer addPlaces(-1)
	if t.rate > 0 {
		t.due = time.Now()
		t.next()
	} else {
		for i, l := range t.lanes {
			for len(l.free) > 0 {
				if err := t.begin(l, l.slot(), time.Now()); err != nil {
					return err
				}
			}
			if err := t.flush(i); err != nil {
				return err
			}
		}
	}
	events := make([]unix.EpollEvent, len(t.lanes)+1)
	for {
		now := time.Now()
		t.turns.pass(now)
		for ; !t.due.IsZero() && !t.due.After(now); t.next() {
			if err := t.arrived(int(t.draw.IntN(int64(len(t.lanes))))); err != nil {
				return err
			}
		}
		if t.under == 0 && t.due.IsZero() {
			return nil
		}
		wait, err := t.alarm()
		if err != nil {
			return err
		}
		n, err := unix.EpollWait(t.poll, events, wait)
		if err != nil && err != unix.EINTR {
			return os.NewSyscallError("epoll_wait", err)
		}
		if n <= 0 && t.spins {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // let other threads use the processor
		}
		for _, e := range events[:max(n, 0)] {
			if int(e.Fd) == len(t.lanes) {
				continue // the timer
			}
			if err := t.happened(int(e.Fd)); err != nil {
				return err
			}
		}
	}
}

// next draws the due time of the next request.
func (t *thread) next() {
	if t.due = t.due.Add(time.Duration(t.draw.Exp() / t.rate * float64(time.Second))); t.due.After(t.until) {
		t.due = time.Time{}
	}
}

// alarm sets the timer to end the wait when the next request is due. It is accurate to some microseconds, because the
// kernel adds no slack to this kind of timer.
func (t *thread) alarm() (wait int, err error) {
	switch {
	case t.spins:
		return 0, nil
	case t.due.IsZero():
		return -1, nil
	}
	at := time.Until(t.due)
	if at <= 0 {
		return 0, nil
	}
	err = unix.TimerfdSettime(t.timer, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}, nil)
	return -1, os.NewSyscallError("timerfd_settime", err)
}

// arrived starts a due request, or queues it until a slot is free; the queueing time counts.
func (t *thread) arrived(i int) error {
	l := t.lanes[i]
	if len(l.free) == 0 {
		l.late.Push(t.due)
		return nil
	}
	if err := t.begin(l, l.slot(), t.due); err != nil {
		return err
	}
	return t.flush(i)
}

func (t *thread) begin(l *connState, slot int, due time.Time) error {
	t.under++
	return l.begin(slot, due)
}

// flush sends the requests that a connection has started. The remainder is sent when the socket is writable.
func (t *thread) flush(i int) error {
	l := t.lanes[i]
	all, err := l.client.flush()
	if err != nil || all == !l.blocked {
		return err
	}
	l.blocked = !all
	events := uint32(unix.EPOLLIN)
	if l.blocked {
		events |= unix.EPOLLOUT
	}
	return t.watch(unix.EPOLL_CTL_MOD, i, l.fd, events)
}

// happened takes finished requests and starts others in their slots: queued ones in an open loop, new ones in a closed
// loop until its end.
func (t *thread) happened(i int) error {
	l := t.lanes[i]
	n, err := l.client.take(l.done)
	if err != nil {
		return err
	}
	now := time.Now()
	t.under -= n
	for _, slot := range l.done[:n] {
		l.ended(slot, now)
		switch {
		case l.late.N > 0:
			err = t.begin(l, slot, l.late.Pop())
		case t.rate == 0 && !now.After(l.until):
			err = t.begin(l, slot, now)
		default:
			l.free = append(l.free, slot)
		}
		if err != nil {
			return err
		}
	}
	// All systems send requests that start together in one call.
	return t.flush(i)
}
