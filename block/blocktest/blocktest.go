// Package blocktest is for tests on either side of block.Device: an in-memory stand-in for a drive, and the conformance
// test for every Device.
//
// Its main parts are Device, which serves requests of each kind in a fixed time on a sim.Engine, so that a host's
// behaviour can be computed by hand, and Conform, which tests any Device, including this one, against the contract that
// package block states.
//
// It leaves out arbitration between queues, threads (a Subject is driven by one), and the sources of latency in real
// drives.
package blocktest

import (
	"math"
	"testing"

	"farflash/block"
)

// Sink is a function as a block.Sink.
type Sink func(block.Completion)

// Complete implements block.Sink.
func (s Sink) Complete(c block.Completion) { s(c) }

// Subject is a device under test.
type Subject struct {
	Device block.Device
	// Step advances the device's time until at least one more request has completed, if any is outstanding, and reports
	// false when the device is idle.
	Step func() bool
	// Content is set if the device keeps written data.
	Content bool
}

// Conform tests devices against the contract of block.Device. Each call of fresh returns a device without written data
// that reports to sink; its first namespace has at least 1 MiB.
func Conform(t *testing.T, fresh func(t *testing.T, sink Sink) Subject) {
	for _, c := range []struct {
		name string
		test func(*session)
	}{
		{"capacity", (*session).capacity},
		{"invalid queues", (*session).openErrors},
		{"every request completes once", (*session).endsOnce},
		{"full queue", (*session).fullQueue},
		{"a full queue does not block others", (*session).otherQueue},
		{"submitting from a completion", (*session).chain},
		{"invalid requests", (*session).badRequests},
		{"unopened queues", (*session).closedQueues},
		{"submitting to another queue from a completion", (*session).across},
		{"in-flight limit", (*session).limit},
		{"close", (*session).close},
		{"content", (*session).content},
		{"buffers of the wrong length", (*session).odd},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &session{t: t, sent: map[uint64]sent{}}
			s.Subject = fresh(t, s.complete)
			c.test(s)
		})
	}
}

// session is one device and the requests submitted to it.
type session struct {
	t *testing.T
	Subject
	sent       map[uint64]sent // not yet completed
	done       []block.Completion
	submitting bool
	after      func(block.Completion)
	tag        uint64
}

type sent struct {
	queue block.QueueID
	req   block.Request
}

func (s *session) open(c block.QueueConfig) block.QueueID {
	s.t.Helper()
	q, err := s.Device.Open(c)
	if err != nil {
		s.t.Fatal(err)
	}
	return q
}

// submit submits the request with a unique tag.
func (s *session) submit(q block.QueueID, r block.Request) bool {
	s.tag++
	r.Tag = s.tag<<8 | 0xa5
	if s.Content && r.Op <= block.Write && r.Data == nil && r.Length > 0 && r.Length <= 1<<20 {
		r.Data = [][]byte{make([]byte, r.Length)}
	}
	s.sent[r.Tag] = sent{q, r}
	if e, ok := s.Device.(block.Expecter); ok { // hints must not change behaviour
		e.Expect(r.Namespace, r.Offset)
		e.Expect(^r.Namespace, -1)
		e.Expect(r.Namespace, math.MaxInt64)
	}
	s.submitting = true
	ok := s.Device.Submit(q, r)
	s.submitting = false
	if !ok {
		delete(s.sent, r.Tag)
	}
	return ok
}

func (s *session) complete(c block.Completion) {
	if s.submitting {
		s.t.Errorf("request %#x completed within Submit", c.Tag)
	}
	x, ok := s.sent[c.Tag]
	switch {
	case !ok:
		s.t.Errorf("completion with tag %#x: no such request is outstanding", c.Tag)
		return
	case c.Queue != x.queue || c.Op != x.req.Op || c.Length != x.req.Length:
		s.t.Errorf("%v of %d bytes on queue %d completed as %v of %d bytes on queue %d", x.req.Op, x.req.Length, x.queue,
			c.Op, c.Length, c.Queue)
	case c.Submitted > c.Fetched || c.Fetched > c.Finished:
		s.t.Errorf("submitted at %v, fetched at %v, finished at %v", c.Submitted, c.Fetched, c.Finished)
	case len(s.done) > 0 && c.Finished < s.done[len(s.done)-1].Finished:
		s.t.Errorf("completion at %v reported after one at %v", c.Finished, s.done[len(s.done)-1].Finished)
	}
	delete(s.sent, c.Tag)
	s.done = append(s.done, c)
	if s.after != nil {
		s.after(c)
	}
}

// step waits for at least one more completion.
func (s *session) step() {
	s.t.Helper()
	for n := len(s.done); len(s.done) == n; {
		if !s.Step() {
			s.t.Fatalf("no events are left, but %d requests are outstanding", len(s.sent))
		}
	}
}

// drain waits for all outstanding requests.
func (s *session) drain() {
	s.t.Helper()
	for len(s.sent) > 0 {
		s.step()
	}
	for s.Step() {
	}
}

func (s *session) allOK() {
	s.t.Helper()
	for _, c := range s.done {
		if c.Status != block.OK {
			s.t.Errorf("%v of %d bytes: %v", c.Op, c.Length, c.Status)
		}
	}
}

func (s *session) capacity() {
	size := s.Device.Capacity(0)
	if size < 1<<20 || size%512 != 0 {
		s.t.Fatalf("capacity is %d bytes, want at least 1 MiB in whole sectors", size)
	}
	q := s.open(block.QueueConfig{Depth: 8, Weight: 1})
	s.submit(q, block.Request{Op: block.Write, Offset: size - 512, Length: 512})
	s.submit(q, block.Request{Op: block.Read, Length: 512})
	s.drain()
	s.allOK()
}

func (s *session) openErrors() {
	for _, c := range []block.QueueConfig{{Depth: 1, Weight: 1}, {Depth: -4, Weight: 1},
		{Depth: 8, Weight: 1, Class: block.Classes}} {
		if _, err := s.Device.Open(c); err == nil {
			s.t.Errorf("Open accepts a queue of depth %d and class %v", c.Depth, c.Class)
		}
	}
	a, b := s.open(block.QueueConfig{Depth: 2, Weight: 1}), s.open(block.QueueConfig{Depth: 2, Weight: 1})
	if a == b {
		s.t.Errorf("two queues have the ID %d", a)
	}
}

// mixed returns the i-th of many different requests.
func mixed(i int) block.Request {
	r := block.Request{Offset: int64(i*37%200) * 4096, Length: int64(i%16+1) * 512}
	switch i % 7 {
	case 0, 2, 4:
		r.Op = block.Write
		r.ForceUnit = i%14 == 4
	case 5:
		r.Op = block.Trim
	case 6:
		r = block.Request{Op: block.Flush}
	}
	return r
}

func (s *session) endsOnce() {
	const n = 2000
	queues := []block.QueueID{
		s.open(block.QueueConfig{Depth: 64, Class: block.High, Weight: 1}),
		s.open(block.QueueConfig{Depth: 5, Class: block.Low, Weight: 3}),
	}
	for i := range n {
		for !s.submit(queues[i%2], mixed(i)) {
			s.step()
		}
	}
	s.drain()
	if len(s.done) != n {
		s.t.Errorf("%d of %d requests completed", len(s.done), n)
	}
	s.allOK()
}

// fill submits reads until the queue is full.
func (s *session) fill(q block.QueueID, depth int) {
	s.t.Helper()
	for n := 0; s.submit(q, block.Request{Op: block.Read, Offset: int64(n) * 4096, Length: 4096}); n++ {
		if n == depth {
			s.t.Fatalf("a queue of depth %d accepts %d outstanding requests", depth, n+1)
		}
	}
	if len(s.sent) == 0 {
		s.t.Fatalf("an empty queue of depth %d rejects a request", depth)
	}
}

func (s *session) fullQueue() {
	for _, depth := range []int{2, 3, 8} {
		q := s.open(block.QueueConfig{Depth: depth, Weight: 1})
		s.fill(q, depth)
		for range 50 {
			s.step()
			if !s.submit(q, block.Request{Op: block.Write, Length: 4096}) {
				s.t.Fatalf("depth %d: the queue is still full after a completion", depth)
			}
		}
		s.drain()
		s.fill(q, depth)
		s.drain()
	}
	s.allOK()
}

func (s *session) otherQueue() {
	full, other := s.open(block.QueueConfig{Depth: 2, Weight: 1}), s.open(block.QueueConfig{Depth: 4, Weight: 1})
	s.fill(full, 2)
	if !s.submit(other, block.Request{Op: block.Read, Length: 4096}) {
		s.t.Error("a queue rejects a request while another queue is full")
	}
	s.drain()
	s.allOK()
}

func (s *session) chain() {
	q := s.open(block.QueueConfig{Depth: 2, Weight: 1})
	left := 300
	s.after = func(block.Completion) {
		if left--; left > 0 && !s.submit(q, mixed(left)) {
			s.t.Error("the queue is full during the completion of its only request")
		}
	}
	s.submit(q, mixed(left))
	s.drain()
	if left != 0 {
		s.t.Errorf("%d requests of the chain were not submitted", left)
	}
	s.allOK()
}

func (s *session) badRequests() {
	size := s.Device.Capacity(0)
	q := s.open(block.QueueConfig{Depth: 4, Weight: 1})
	for _, c := range []struct {
		what string
		req  block.Request
		want block.Status
	}{
		{"zero length", block.Request{Op: block.Read}, block.Invalid},
		{"odd length", block.Request{Op: block.Write, Length: 700}, block.Invalid},
		{"negative length", block.Request{Op: block.Read, Offset: 4096, Length: -512}, block.Invalid},
		{"odd offset", block.Request{Op: block.Read, Offset: 5, Length: 512}, block.Invalid},
		{"negative offset", block.Request{Op: block.Write, Offset: -512, Length: 512}, block.Invalid},
		{"across the end", block.Request{Op: block.Write, Offset: size - 512, Length: 1024}, block.OutOfRange},
		{"past the end", block.Request{Op: block.Trim, Offset: size, Length: 512}, block.OutOfRange},
		{"far past the end", block.Request{Op: block.Read, Offset: 1<<63 - 512, Length: 512}, block.OutOfRange},
		{"longer than the namespace", block.Request{Op: block.Read, Length: size + 512}, block.OutOfRange},
		{"trim of the whole namespace", block.Request{Op: block.Trim, Length: size}, block.OK},
		{"zone reset without zones", block.Request{Op: block.Reset}, block.Invalid},
		{"append without zones", block.Request{Op: block.Write, Append: true, Length: 4096}, block.Invalid},
		{"no such namespace", block.Request{Op: block.Read, Length: 512, Namespace: 255}, block.Invalid},
		{"unknown operation", block.Request{Op: block.Ops, Length: 512}, block.Invalid},
		{"highest operation code", block.Request{Op: 255, Length: 512}, block.Invalid},
		{"valid request", block.Request{Op: block.Read, Length: 512}, block.OK},
	} {
		n := len(s.done)
		if !s.submit(q, c.req) {
			s.t.Fatalf("%s: the queue is full", c.what)
		}
		s.drain()
		if len(s.done) != n+1 {
			s.t.Fatalf("%s: %d completions", c.what, len(s.done)-n)
		}
		if got := s.done[n].Status; got != c.want {
			s.t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// closedQueues submits to queues that were never opened: each request completes as Invalid, or is refused.
func (s *session) closedQueues() {
	q := s.open(block.QueueConfig{Depth: 4, Weight: 1})
	for _, c := range []block.QueueID{q + 1, -1, math.MaxInt32, math.MinInt32} {
		n := len(s.done)
		if s.submit(c, block.Request{Op: block.Read, Length: 512}) {
			s.drain()
			if len(s.done) != n+1 || s.done[n].Status != block.Invalid {
				s.t.Errorf("a request on queue %d, which is not open: %+v", c, s.done[n:])
			}
		}
	}
	if size := s.Device.Capacity(255) | s.Device.Capacity(-1); size != 0 {
		s.t.Errorf("namespaces that do not exist have %d bytes", size)
	}
	n := len(s.done)
	s.submit(q, block.Request{Op: block.Read, Length: 512})
	s.drain()
	if len(s.done) != n+1 || s.done[n].Status != block.OK {
		s.t.Errorf("a request afterwards: %+v", s.done[n:])
	}
}

// across submits from a completion on one queue to another, which is empty and must accept the request.
func (s *session) across() {
	queues := [2]block.QueueID{s.open(block.QueueConfig{Depth: 2, Weight: 1}),
		s.open(block.QueueConfig{Depth: 2, Weight: 1, Class: block.Low})}
	left := 200
	s.after = func(c block.Completion) {
		to := queues[0]
		if c.Queue == to {
			to = queues[1]
		}
		if left--; left > 0 && !s.submit(to, mixed(left)) {
			s.t.Error("an empty queue rejects a request")
		}
	}
	s.submit(queues[0], mixed(left))
	s.drain()
	if left != 0 {
		s.t.Errorf("%d requests were not submitted", left)
	}
	s.allOK()
}

func (s *session) close() {
	q := s.open(block.QueueConfig{Depth: 4, Weight: 1})
	s.submit(q, block.Request{Op: block.Write, Length: 4096})
	if err := s.Device.Close(); err == nil {
		s.t.Fatal("Close succeeds with a request outstanding")
	}
	if !s.submit(q, block.Request{Op: block.Read, Length: 512}) {
		s.t.Error("the device rejects requests after a failed Close")
	}
	s.drain()
	if len(s.done) != 2 {
		s.t.Errorf("%d of 2 requests completed", len(s.done))
	}
	s.allOK()
	for range 2 {
		if err := s.Device.Close(); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.submit(q, block.Request{Op: block.Read, Length: 512}) {
		s.t.Error("a closed device accepts a request")
	}
	if _, err := s.Device.Open(block.QueueConfig{Depth: 4, Weight: 1}); err == nil {
		s.t.Error("Open succeeds on a closed device")
	}
	s.Step()
	if len(s.done) != 2 {
		s.t.Errorf("completion after the device was closed")
	}
}

// pattern returns the value that the n-th write stores in a byte.
func pattern(n, at int64) byte { return byte(n*31 + at*7 + at>>9) }

// content writes, overwrites and trims, and reads everything back, with buffers of odd sizes.
func (s *session) content() {
	if !s.Content {
		s.t.Skip("the device does not keep content")
	}
	const size = 64 << 10
	want := make([]byte, size)
	q := s.open(block.QueueConfig{Depth: 4, Weight: 1})
	for i := range int64(200) {
		r := block.Request{Op: block.Write, Offset: i * 37 % 100 * 512, Length: (i%9 + 1) * 512}
		if i%11 == 5 {
			r.Op = block.Trim
			clear(want[r.Offset : r.Offset+r.Length])
		} else {
			b := make([]byte, r.Length)
			for k := range b {
				b[k] = pattern(i, r.Offset+int64(k))
			}
			copy(want[r.Offset:], b)
			cut := i * 13 % r.Length
			r.Data = [][]byte{b[:cut], b[cut:]}
		}
		s.submit(q, r)
		s.drain()
	}
	got := make([]byte, size)
	for k := range got {
		got[k] = 0xee
	}
	s.submit(q, block.Request{Op: block.Read, Length: size, Data: [][]byte{got[:1], got[1:1000], {}, got[1000:]}})
	s.drain()
	s.allOK()
	for k := range got {
		if got[k] != want[k] {
			s.t.Fatalf("byte %d is %#x, want %#x, which was written last", k, got[k], want[k])
		}
	}
}

func (s *session) odd() {
	if !s.Content {
		s.t.Skip("the device does not keep content")
	}
	q := s.open(block.QueueConfig{Depth: 4, Weight: 1})
	for _, r := range []block.Request{
		{Op: block.Write, Length: 1024, Data: [][]byte{make([]byte, 512)}},
		{Op: block.Read, Length: 512, Data: [][]byte{make([]byte, 512), make([]byte, 1)}},
	} {
		n := len(s.done)
		s.submit(q, r)
		s.drain()
		if got := s.done[n].Status; got != block.Invalid {
			s.t.Errorf("%v of %d bytes with buffers of another length: %v, want invalid", r.Op, r.Length, got)
		}
	}
}

func (s *session) limit() {
	tuner, ok := s.Device.(block.Tuner)
	if !ok {
		s.t.Skip("the device is not a Tuner")
	}
	const depth = 32
	q := s.open(block.QueueConfig{Depth: depth, Weight: 1, InFlight: 1})
	for _, limit := range []int{1, 4, 1, 0} {
		first := len(s.done)
		tuner.Tune(q, 1+limit, limit)
		s.fill(q, depth)
		s.drain()
		// While a completion is in flight to the host, the device may fetch the next command.
		if most := together(s.done[first:]); limit > 0 && most > 2*limit {
			s.t.Errorf("%d commands in flight at once; the limit is %d", most, limit)
		}
	}
	// The limit is lifted while the queue waits.
	tuner.Tune(q, 1, 1)
	s.fill(q, depth)
	tuner.Tune(q, 1, 0)
	s.drain()
	s.allOK()
}

// together returns the largest number of the commands that were in flight at once.
func together(done []block.Completion) int {
	most := 0
	for _, a := range done {
		n := 0
		for _, b := range done {
			if b.Fetched <= a.Fetched && a.Fetched < b.Finished {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
