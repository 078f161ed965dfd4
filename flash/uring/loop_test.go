package uring

import (
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"farflash/flash/device"
)

// echo sends back the data that it receives, until the end of the stream.
type echo struct {
	t      *testing.T
	socket *Socket
	buf    [256]byte
	over   chan string
}

func (e *echo) Turn() {
	if receiving, _ := e.socket.Busy(); !receiving {
		e.socket.Receive(e.buf[:])
	} else {
		e.socket.Cancel(true)
	}
}

func (e *echo) Received(n int, err error) {
	if n == 0 {
		e.socket.Detach()
		why := "end"
		if err != nil {
			why = err.Error()
		}
		e.over <- why
		return
	}
	if k, err := e.socket.Send(e.buf[:n]); k != n || err != nil {
		e.t.Errorf("%d of %d bytes are sent: %v", k, n, err)
	}
	e.socket.Receive(e.buf[:])
}

func (e *echo) Writable(error) {}

// TestSockets has a loop echo data, cancels a receive, and verifies that Close reports a socket that is still attached.
func TestSockets(t *testing.T) {
	for name, spin := range map[string]time.Duration{"sleeps": 0, "spins": 2 * time.Millisecond} {
		t.Run(name, func(t *testing.T) { sockets(t, spin) })
	}
}

func sockets(t *testing.T, spin time.Duration) {
	skipped(t)
	ls, err := Start(2, 4)
	if err != nil {
		t.Fatal(err)
	}
	ls.Spin(spin)
	if !ls.Sockets() {
		if err := ls.Close(); err != nil {
			t.Fatal(err)
		}
		t.Skip("this kernel's rings do not receive as is needed")
	}
	if a, b := ls.Next(), ls.Next(); a == b || a == 0 || b == 0 {
		t.Errorf("sockets of lanes %d and %d", a, b)
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{t: t, over: make(chan string, 1)}
	if e.socket, err = ls.Attach(1, pair[0], e); err != nil {
		t.Fatal(err)
	}
	e.socket.Begin()
	var got [5]byte
	for range 3 {
		if _, err := syscall.Write(pair[1], []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if n, err := syscall.Read(pair[1], got[:]); err != nil || string(got[:n]) != "hello" {
			t.Fatalf("%q came back: %v", got[:n], err)
		}
	}
	e.socket.Wake()
	if why := <-e.over; why != syscall.ECANCELED.Error() {
		t.Errorf("a receive that was cancelled ended with %q", why)
	}
	if _, err := ls.Attach(2, pair[0], e); err != nil {
		t.Fatal(err)
	}
	if err := ls.Close(); err == nil || !strings.Contains(err.Error(), "1 sockets are still attached") {
		t.Errorf("closing with a socket: %v", err)
	}
	for _, fd := range pair {
		if err := syscall.Close(fd); err != nil {
			t.Error(err)
		}
	}
}

// TestLanes verifies that an operation is completed by the thread of its lane, and that two devices share threads.
func TestLanes(t *testing.T) {
	skipped(t)
	ls, err := Start(2, 4)
	if err != nil {
		t.Fatal(err)
	}
	var devices []*Device
	for _, name := range []string{"a", "b"} {
		d, err := ls.Open(filepath.Join(t.TempDir(), name), device.Mode{Create: 16 * device.Grain})
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, d)
	}
	threads := map[uint8]int{}
	for range 5 {
		for lane := uint8(1); lane <= 4; lane++ {
			for _, d := range devices {
				done := make(chan int, 1)
				d.Submit(&device.Op{Kind: device.Read, Buf: device.Aligned(device.Grain), Loop: lane,
					Done: func(*device.Op) { done <- syscall.Gettid() }})
				thread := <-done
				if was, ok := threads[lane]; ok && was != thread {
					t.Errorf("lane %d is done by threads %d and %d", lane, was, thread)
				}
				threads[lane] = thread
			}
		}
	}
	if threads[1] == threads[2] || threads[1] != threads[3] || threads[2] != threads[4] {
		t.Errorf("threads by lane: %v", threads)
	}
	for _, d := range devices {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := ls.Close(); err != nil {
		t.Error(err)
	}
}

// TestMore submits operations of two owners, and some without an owner, to two devices on one thread, and verifies that
// an operation with More is followed by one of the same owner.
func TestMore(t *testing.T) {
	skipped(t)
	ls, err := Start(1, 16)
	if err != nil {
		t.Fatal(err)
	}
	var devices []*Device
	for _, name := range []string{"a", "b"} {
		d, err := ls.Open(filepath.Join(t.TempDir(), name), device.Mode{Create: 16 * device.Grain})
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, d)
	}
	type ended struct {
		owner any
		more  bool
	}
	const each, rounds = 12, 200
	order := make(chan ended, 2*each*rounds)
	var under sync.WaitGroup
	for range rounds {
		for _, d := range devices {
			ops := make([]*device.Op, each)
			for i := range ops {
				ops[i] = &device.Op{Kind: device.Read, Offset: int64(i) * device.Grain,
					Buf: device.Aligned(device.Grain), Done: func(op *device.Op) {
						order <- ended{op.Owner, op.More}
						under.Done()
					}}
				if owner := i / 2 % 3; owner > 0 {
					ops[i].Owner = owner
				}
			}
			under.Add(each)
			d.Submit(ops...)
		}
		under.Wait()
	}
	close(order)
	more := map[any]int{}
	last := ended{}
	for e := range order {
		if last.more && e.owner != last.owner {
			t.Errorf("owner %v was told that there is more, and %v's came", last.owner, e.owner)
		}
		if last = e; e.more {
			more[e.owner]++
		}
	}
	if last.more || more[nil] > 0 || more[1]+more[2] == 0 {
		t.Errorf("told that there is more: %v, the last one %v", more, last)
	}
	t.Logf("told that there is more: %v", more)
	for _, d := range devices {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := ls.Close(); err != nil {
		t.Error(err)
	}
}
