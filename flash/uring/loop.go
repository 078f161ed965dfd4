package uring

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"farflash/flash/device"
	"farflash/internal/fifo"
)

// Loops are threads with one ring each, shared by devices and sockets. A request from a socket, its device operations
// and its response are handled on the same thread, and concurrent operations of several connections share system calls.
type Loops struct {
	all  []*loop
	spin atomic.Int64  // ns; see Spin
	next atomic.Uint32 // where the search for the next socket's loop starts
	// Sockets: the kernel supports what Attach needs (Linux 5.19).
	sockets bool
}

// Start starts n loops, each with up to entries device operations in flight.
func Start(n, entries int) (*Loops, error) {
	ls := &Loops{}
	if n < 1 || n > 255 {
		return nil, fmt.Errorf("uring: %d loops; use 1 to 255", n)
	}
	for range n {
		l := &loop{done: make(chan struct{}), depth: entries, spin: &ls.spin}
		made := make(chan error)
		go l.run(made)
		if err := <-made; err != nil {
			return nil, errors.Join(err, ls.Close())
		}
		ls.all = append(ls.all, l)
	}
	ls.sockets = ls.all[0].receives()
	return ls, nil
}

// Spin makes a thread with sockets poll for up to d after the last event before it sleeps, provided that the last two
// events came within d of each other. A client that soon sends its next request is then served without the latency of
// waking a thread and its processor. Between polls the thread yields the processor. 0, the default, disables polling.
func (ls *Loops) Spin(d time.Duration) { ls.spin.Store(int64(d)) }

// Len returns the number of loops.
func (ls *Loops) Len() int { return len(ls.all) }

// Sockets reports whether the kernel supports sockets on these loops.
func (ls *Loops) Sockets() bool { return ls.sockets }

// Close stops the threads. All devices and sockets must be closed; the error reports sockets that are not.
func (ls *Loops) Close() error {
	var errs []error
	for _, l := range ls.all {
		if n := l.held.Load(); n != 0 {
			errs = append(errs, fmt.Errorf("uring: %d sockets are still attached", n))
		}
		l.order(func() { l.over = true })
		<-l.done
		errs = append(errs, l.ring.Close(), syscall.Close(l.event))
	}
	ls.all = nil
	return errors.Join(errs...)
}

// register registers memory with all rings. A ring has one registered arena. Operations in other memory are mapped
// individually, and so are all operations of a process that may not lock that much memory (RLIMIT_MEMLOCK, a few MiB
// for most users).
func (ls *Loops) register(arena []byte) error {
	var errs []error
	for _, l := range ls.all {
		done := make(chan error)
		l.order(func() {
			var err error
			if l.arena == nil {
				switch err = l.ring.register(arena); {
				case err == nil:
					l.arena = arena
				case errors.Is(err, syscall.ENOMEM):
					err = nil // works without registration
				}
			}
			done <- err
		})
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

// forget unregisters an arena.
func (ls *Loops) forget(arena []byte) error {
	var errs []error
	for _, l := range ls.all {
		done := make(chan error)
		l.order(func() {
			var err error
			if unsafe.SliceData(l.arena) == unsafe.SliceData(arena) {
				err = l.ring.unregister()
				l.arena = nil
			}
			done <- err
		})
		errs = append(errs, <-done)
	}
	return errors.Join(errs...)
}

// loop is one thread with its ring. Other threads access only held, event, done and the fields guarded by mu; the
// ring belongs to the thread while it runs.
type loop struct {
	ring  *Ring
	held  atomic.Int32 // sockets
	event int          // an eventfd that wakes the thread
	depth int          // limit of device operations in flight
	spin  *atomic.Int64

	mu     sync.Mutex
	queue  fifo.Ring[task] // not yet submitted
	ready  []*Socket       // sockets that called Wake
	orders []func()        // functions that must run on the thread
	asleep bool            // the thread is blocked in the kernel, or about to be

	done chan struct{}

	// Owned by the thread.
	arena   []byte // registered memory: operations in it need no mapping
	slots   []slot
	again   []task // reads of a merged entry that failed or fell short; repeated one by one
	free    []uint32
	batch   []task       // completed operations
	events  []completion // of sockets
	sockets []*Socket
	spaces  []uint32 // free indices of sockets
	turns   []*Socket
	ahead   int    // entries pushed and not yet submitted
	signal  uint64 // buffer for the read of event
	armed   bool   // that read is in flight
	over    bool
	spinning
}

// task is an operation of a device.
type task struct {
	op  *device.Op
	dev *Device
}

// Tokens of operations in flight: the index of a slot, or a socket and the kind of its operation, or the eventfd.
const (
	woken       = ^uint64(0)
	socketToken = 1 << 62
	socketShift = 2

	socketReceive = 0
	socketPoll    = 1
	socketCancel  = 2
)

// run is the thread: it creates the ring, which only its creator may use, and turns until Close.
func (l *loop) run(made chan<- error) {
	runtime.LockOSThread() // the thread exits with the goroutine
	defer close(l.done)
	var err error
	if l.ring, err = New(l.depth + 1); err != nil {
		made <- err
		return
	}
	event, _, no := syscall.Syscall(syscall.SYS_EVENTFD2, 0, syscall.O_CLOEXEC, 0)
	if no != 0 {
		made <- errors.Join(fmt.Errorf("uring: %w", no), l.ring.Close())
		return
	}
	l.event = int(event)
	// Sockets need no slots: loop.push submits when the ring is full.
	l.slots = make([]slot, l.ring.size-1) // one entry is reserved for the eventfd
	for i := range l.slots {
		l.free = append(l.free, uint32(i))
	}
	made <- nil
	for !l.over {
		l.turn()
	}
}

// order runs f on the thread.
func (l *loop) order(f func()) {
	l.mu.Lock()
	l.orders = append(l.orders, f)
	l.wakeIfAsleep()
}

// wakeIfAsleep releases l.mu and wakes the thread if it sleeps. The caller holds l.mu.
func (l *loop) wakeIfAsleep() {
	wake := l.asleep
	l.asleep = false
	l.mu.Unlock()
	if wake {
		l.wake()
	}
}

// wake makes the thread's read of the eventfd complete, and so the wait in enter.
func (l *loop) wake() {
	one := [8]byte{0: 1}
	for {
		if _, err := syscall.Write(l.event, one[:]); err == nil {
			return
		} else if !errors.Is(err, syscall.EINTR) {
			panic("uring: waking the thread: " + err.Error()) // operations own memory that could never be released
		}
	}
}

// turn handles pending work, submits operations, blocks if the thread is idle, and delivers completions.
func (l *loop) turn() {
	l.mu.Lock()
	orders := l.orders
	l.orders = nil
	l.turns, l.ready = l.ready, l.turns[:0]
	for _, s := range l.turns {
		s.queued = false
	}
	l.take()
	l.mu.Unlock()
	// Without the lock: orders and handlers queue work themselves.
	for _, f := range orders {
		f()
	}
	if l.ahead > 0 && len(l.turns) > 0 {
		l.submit(false) // devices work while the responses are sent
	}
	for i, s := range l.turns {
		l.turns[i] = nil
		s.handler.Turn()
	}
	l.mu.Lock()
	l.take()
	// Operations without a free slot wait for a completion, which wakes the thread by itself. asleep is set under the
	// lock under which idle was decided, so work queued from then on finds it set and wakes the thread.
	idle := (l.queue.N == 0 && len(l.again) == 0 || len(l.free) == 0) && len(l.orders) == 0 && len(l.ready) == 0 &&
		len(l.batch) == 0 && len(l.events) == 0 && !l.over
	spins := idle && l.spins()
	wait := idle && !spins
	l.asleep = wait
	l.mu.Unlock()
	if wait && !l.armed {
		l.armed = true
		l.push(submission{
			opcode: opRead, fd: int32(l.event), offset: ^uint64(0),
			address: uint64(uintptr(unsafe.Pointer(&l.signal))), length: 8, token: woken,
		})
	}
	if idle || l.ahead > 0 {
		l.submit(wait) // also while spinning: the kernel delivers completions only inside a call
	}
	if wait {
		l.mu.Lock()
		l.asleep = false
		l.mu.Unlock()
	}
	if !l.collect() && spins {
		_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) // let other threads use the processor
	}
	l.finish()
}

// spins reports whether to poll again instead of sleeping.
func (l *loop) spins() bool {
	spin := l.spin.Load()
	return spin > 0 && l.held.Load() > 0 && l.worth(time.Now(), time.Duration(spin))
}

// push adds an entry to the submission queue, submitting earlier ones if it is full.
func (l *loop) push(s submission) {
	for l.ahead >= int(l.ring.size) {
		l.submit(false)
	}
	l.ring.push(s)
	l.ahead++
}

// take pushes queued device operations into free slots. The caller holds l.mu. It leaves one entry free, so that push
// never submits while the lock is held.
func (l *loop) take() {
	for (l.queue.N > 0 || len(l.again) > 0) && len(l.free) > 0 && l.ahead < int(l.ring.size)-1 {
		i := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		s := &l.slots[i]
		if n := len(l.again); n > 0 { // one by one, to find the one that fails
			s.first, l.again = l.again[n-1], l.again[:n-1]
		} else {
			s.fill(&l.queue)
		}
		l.push(l.entry(s, uint64(i)))
	}
}

// submit passes all pushed entries to the kernel. Entries that it rejects permanently complete with its error.
func (l *loop) submit(wait bool) {
	for {
		got, err := l.ring.enter(l.ahead, wait)
		l.ahead -= got
		switch {
		case err == nil && l.ahead == 0:
			return
		case err == nil:
			wait = false // the kernel accepted only part of the batch
		case errors.Is(err, syscall.EINTR):
			if l.ahead == 0 { // a signal ended the wait
				return
			}
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EBUSY):
			l.collect()
			time.Sleep(50 * time.Microsecond) // the kernel is short of memory or of completion entries
		case l.ahead == 0:
			// operations own memory that could never be released
			panic("uring: waiting for completions: " + err.Error())
		default:
			// The entries not accepted are the newest; roll them back.
			tail := l.ring.sqTail.Load()
			no := syscall.EIO
			_ = errors.As(err, &no) // enter returns only Errnos
			for i := range uint32(l.ahead) {
				token := l.ring.sqes[(tail-1-i)&l.ring.sqMask].token
				if token == woken {
					panic("uring: waking the thread: " + err.Error())
				}
				l.ended(completion{token: token, result: -int32(no)})
			}
			l.ring.sqTail.Store(tail - uint32(l.ahead))
			l.ahead = 0
			return
		}
	}
}

// collect processes the available completions, and reports whether there were any.
func (l *loop) collect() (some bool) {
	for ; ; some = true {
		c, ok := l.ring.reap()
		if !ok {
			if spin := l.spin.Load(); some && spin > 0 {
				l.came(time.Now(), time.Duration(spin))
			}
			return some
		}
		l.ended(c)
	}
}

// ended processes one completion. Socket events are queued, because a handler may be running.
func (l *loop) ended(c completion) {
	switch {
	case c.token == woken:
		l.armed = false
		return
	case c.token&socketToken != 0:
		l.events = append(l.events, c)
		return
	}
	// The slot is free again, but its operations are delivered only in finish, because a handler may be running.
	s := &l.slots[c.token]
	l.free = append(l.free, uint32(c.token))
	if len(s.more) > 0 {
		l.batch, l.again = s.divide(int(c.result), l.batch, l.again)
		return
	}
	t := s.first
	s.first = task{}
	t.op.Err = nil
	switch {
	case c.result < 0:
		t.op.Err = syscall.Errno(-c.result)
	case t.op.Kind != device.Flush && int(c.result) < len(t.op.Buf):
		t.op.Err = device.ErrShort
	}
	l.batch = append(l.batch, t)
}

// finish delivers collected completions to sockets and submitters.
func (l *loop) finish() {
	for i := 0; i < len(l.events); i++ { // a handler can cause more to be collected
		c := l.events[i]
		l.sockets[uint32(c.token)>>socketShift].happened(c)
	}
	l.events = l.events[:0]
	// Done can queue operations; they wait for the next turn. Operations that complete meanwhile stay in batch.
	n := len(l.batch)
	for i := range n {
		t := l.batch[i]
		l.batch[i] = task{}
		t.op.More = i+1 < n && t.op.Owner != nil && l.batch[i+1].op.Owner == t.op.Owner
		t.dev.ended(1)
		t.op.Done(t.op)
	}
	l.batch = l.batch[:copy(l.batch, l.batch[n:])]
}

// entry returns the ring's entry for a slot. Memory in the registered arena uses the fixed opcodes, which save the
// kernel the mapping.
func (l *loop) entry(x *slot, token uint64) submission {
	op := x.first.op
	s := submission{fd: int32(x.first.dev.fd), token: token}
	if op.Kind == device.Flush {
		s.opcode, s.opFlags = opFsync, fsyncDatasync
		return s
	}
	s.offset = uint64(op.Offset)
	if len(x.more) > 0 {
		s.opcode, s.address, s.length = opReadVector, uint64(uintptr(unsafe.Pointer(&x.vector[0]))),
			uint32(len(x.vector))
		return s
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(op.Buf)))
	s.opcode = opRead
	if op.Kind == device.Write {
		s.opcode = opWrite
	}
	arena := uintptr(unsafe.Pointer(unsafe.SliceData(l.arena)))
	if l.arena != nil && base >= arena && base+uintptr(len(op.Buf)) <= arena+uintptr(len(l.arena)) {
		s.opcode = opReadFixed + (s.opcode - opRead)
	}
	s.address, s.length = uint64(base), uint32(len(op.Buf))
	return s
}

// receives probes whether the kernel can receive from sockets as Attach needs it.
func (l *loop) receives() bool {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() {
		for _, fd := range pair {
			_ = syscall.Close(fd) // a close error is harmless here
		}
	}()
	if _, err := syscall.Write(pair[1], []byte{1}); err != nil {
		return false
	}
	t := &trial{done: make(chan bool, 1)}
	l.held.Add(1)
	t.socket = &Socket{loop: l, handler: t, fd: pair[0]}
	t.socket.Begin()
	return <-t.done
}

// trial receives one byte. Success shows that the kernel has IORING_RECVSEND_POLL_FIRST (Linux 5.19).
type trial struct {
	socket *Socket
	b      [8]byte
	done   chan bool
}

// Turn implements Handler.
func (t *trial) Turn() { t.socket.Receive(t.b[:]) }

// Received implements Handler.
func (t *trial) Received(n int, err error) {
	t.socket.Detach()
	t.done <- n == 1 && err == nil
}

// Writable implements Handler.
func (t *trial) Writable(error) {}
