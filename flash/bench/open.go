package bench

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"farflash/rng"
)

// An open loop: requests are due at exponential intervals, whatever has ended. One thread begins them for all connections, each for one of them at random, which is the same as intervals of
// each connection's own.

// arrive begins requests of lanes when they are due, until their time is over, rate in a second.
func arrive(lanes []*lane, rate float64, draw *rng.Stream) error {
	defer func() {
		for _, l := range lanes {
			l.mu.Lock()
			l.over = true
			l.more.Signal()
			l.mu.Unlock()
		}
	}()
	// The thread keeps its place among those that run while it sleeps: the others have theirs beside it.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	defer func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) - 1) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0) }() // the thread goes on to do something else
	for due := time.Now(); ; {
		due = due.Add(time.Duration(draw.Exp() / rate * float64(time.Second)))
		if due.After(lanes[0].until) {
			return nil
		}
		sleepUntil(due)
		if err := lanes[draw.IntN(int64(len(lanes)))].arrived(due); err != nil {
			return err
		}
	}
}

// sleepUntil is on time to a few microseconds: the last millisecond is the kernel's to wait. The runtime's timers are up to that much late when nothing else is to be done. That the
// runtime does not know of the wait spares it to look for places that it could take away from who waits in a call, fifty thousand times a second.
func sleepUntil(due time.Time) {
	if wait := time.Until(due) - time.Millisecond; wait > 0 {
		time.Sleep(wait)
	}
	for wait := time.Until(due); wait > 0; wait = time.Until(due) { // a signal ends it early
		t := unix.NsecToTimespec(int64(wait))
		_, _, _ = syscall.RawSyscall6(syscall.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&t)), 0, 0, 0)
	}
}

// arrived begins a request that is due, or keeps it until a slot is free: its time counts.
func (l *lane) arrived(due time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free)
	if n == 0 {
		l.late.Push(due)
		return nil
	}
	slot := l.free[n-1]
	l.free = l.free[:n-1]
	l.under++
	l.more.Signal()
	if err := l.begin(slot, due); err != nil {
		return err
	}
	return l.client.flush()
}

// answered takes what ends in an open loop, until there is nothing more to come.
func (l *lane) answered() error {
	done := make([]int, l.c.Depth)
	for {
		l.mu.Lock()
		for l.under == 0 && !l.over {
			l.more.Wait()
		}
		left := l.under
		l.mu.Unlock()
		if left == 0 {
			return nil
		}
		n, err := l.client.wait(done)
		if err != nil {
			return err
		}
		if err := l.again(done[:n]); err != nil {
			return err
		}
	}
}

// again takes what has ended, and begins what is late with the slots.
func (l *lane) again(done []int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	begun := false
	for _, slot := range done {
		l.ended(slot, now)
		if l.late.N == 0 {
			l.free = append(l.free, slot)
			l.under--
			continue
		}
		begun = true
		if err := l.begin(slot, l.late.Pop()); err != nil {
			return err
		}
	}
	if !begun {
		return nil
	}
	return l.client.flush()
}
