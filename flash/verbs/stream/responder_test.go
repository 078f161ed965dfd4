package stream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/extent"
	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/flash/verbs/verbstest"
	"farflash/internal/patience"
)

// rounds is the number of connections that a randomized test makes.
func rounds() uint64 {
	if patience.LongNamed("flash/verbs/stream") {
		return 600
	}
	return 40
}

// spot is a range that the peer may access, with a model of its contents.
type spot struct {
	stag  uint32
	base  uint64
	store bool
	now   []byte
}

// expected is an outstanding read or atomic.
type expected struct {
	atomic    bool
	at        *spot
	from      int
	sink      uint32
	sinkAt    uint64
	size, got int
	was       []byte         // contents when it was requested
	became    map[int][]byte // later values, by byte
	id        uint32         // identifier of an atomic
	original  uint64
}

// script drives our responder as a peer that splits its data arbitrarily but keeps to the rules, and finally breaks
// one.
type script struct {
	*rawPeer
	t     *testing.T
	label string
	spots []*spot
	// revoked: it has invalidated its own STag.
	revoked bool
	refused []byte // the request that the Terminate must return

	mu    sync.Mutex // guards everything below, which the reader updates
	due   []*expected
	wake  *sync.Cond
	err   error  // the reader's error
	ended []byte // the payload of a received Terminate
}

func (s *script) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf(s.label+": "+format, args...)
}

// answers is the reader goroutine.
func (s *script) answers(done chan<- struct{}) {
	defer close(done)
	for {
		x, err := s.next()
		s.mu.Lock()
		if err == nil {
			err = s.answer(x)
		}
		if err != nil {
			s.err = err
			s.wake.Broadcast()
			s.mu.Unlock()
			if n, _ := io.Copy(io.Discard, s.in); n > 0 && errors.Is(err, errTerminated) {
				s.mu.Lock()
				s.err = fmt.Errorf("%d bytes come after a Terminate", n)
				s.mu.Unlock()
			}
			return
		}
		s.wake.Broadcast()
		s.mu.Unlock()
	}
}

var errTerminated = errors.New("terminated")

// answer checks a received segment against the model.
func (s *script) answer(x rawSegment) error {
	if x.op == rawTerminate {
		s.ended = bytes.Clone(x.payload)
		return errTerminated
	}
	if len(s.due) == 0 {
		return fmt.Errorf("opcode %d comes, and nothing is due", x.op)
	}
	e := s.due[0]
	switch {
	case x.op == rawAtomicResponse && e.atomic:
		if len(x.payload) != 12 || !x.last || x.mo != 0 || big.Uint32(x.payload) != e.id {
			return fmt.Errorf("an atomic's answer is % x, to %x", x.payload, e.id)
		}
		if got := big.Uint64(x.payload[4:]); got != e.original {
			return fmt.Errorf("atomic %x found %x, and there was %x", e.id, got, e.original)
		}
		s.due = s.due[1:]
	case x.op == rawReadResponse && !e.atomic && x.tagged:
		n := len(x.payload)
		if n > 0 && (x.stag != e.sink || x.offset != e.sinkAt+uint64(e.got)) {
			return fmt.Errorf("an answer goes to %x:%x, and %x:%x is next", x.stag, x.offset, e.sink,
				e.sinkAt+uint64(e.got))
		}
		if e.got+n > e.size || x.last != (e.got+n == e.size) {
			return fmt.Errorf("%d bytes and %d more of %d, last %v", e.got, n, e.size, x.last)
		}
		for i, b := range x.payload {
			k := e.got + i
			if b != e.was[k] && !bytes.Contains(e.became[e.from+k], []byte{b}) {
				return fmt.Errorf("byte %d of a read of %d at %d (store %v) is %x, was %x, became %x", k, e.size,
					e.from, e.at.store, b, e.was[k], e.became[e.from+k])
			}
		}
		if e.got += n; x.last {
			s.due = s.due[1:]
		}
	default:
		return fmt.Errorf("opcode %d comes, and an answer (atomic: %v) is due", x.op, e.atomic)
	}
	return nil
}

// change records a write by the peer in the model.
func (s *script) change(at *spot, from int, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(at.now[from:], b)
	for _, e := range s.due {
		if e.at == at && !e.atomic {
			for i, x := range b {
				if k := from + i; k >= e.from && k < e.from+e.size {
					e.became[k] = append(e.became[k], x)
				}
			}
		}
	}
}

// until waits for the reader until at most due responses are outstanding.
func (s *script) until(due int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.due) > due {
		s.mu.Unlock()
		s.send()
		s.mu.Lock()
	}
	for len(s.due) > due && s.err == nil {
		s.wake.Wait()
	}
	if s.err != nil {
		s.fatalf("%v", s.err)
	}
}

func (s *script) send() {
	if err := s.flush(); err != nil {
		s.fatalf("%v", err)
	}
}

// write sends an RDMA Write in segments of any size and order, some empty, some overlapping; the last write to a byte
// wins.
func (s *script) write() {
	at := s.spots[s.rnd.IntN(len(s.spots))]
	size := s.rnd.IntN([]int{9, 300, 9000, len(at.now) + 1}[s.rnd.IntN(4)])
	from := s.rnd.IntN(len(at.now) - size + 1)
	if s.busy(at, from, size) {
		return
	}
	flags := uint32(0)
	if at.store {
		flags = []uint32{0, 1, 2, 4, 5}[s.rnd.IntN(5)]
	}
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(s.rnd.Uint32())
	}
	type piece struct{ from, n int }
	var all []piece
	for k := 0; k < size; {
		n := s.pieces(size - k)
		all = append(all, piece{k, n})
		k += n
	}
	if s.rnd.IntN(3) == 0 && size > 0 {
		k := s.rnd.IntN(size)
		all = append(all, piece{k, s.rnd.IntN(size - k)})
	}
	if s.rnd.IntN(3) == 0 {
		s.rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	if len(all) == 0 {
		s.tagged(rawWrite, true, s.rnd.Uint32(), s.rnd.Uint64(), nil) // an empty Write may go anywhere
	}
	for i, x := range all {
		c := b[x.from:][:x.n]
		if s.rnd.IntN(2) == 0 { // makes the order of overlapping segments visible
			c = bytes.Clone(c)
			for k := range c {
				c[k] ^= byte(i)
			}
		}
		s.change(at, from+x.from, c)
		s.tagged(rawWrite, i == len(all)-1, at.stag|flags, at.base+uint64(from+x.from), c)
	}
}

// busy reports whether an atomic is outstanding in the range; its order relative to a write would be undefined.
func (s *script) busy(at *spot, from, size int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.due {
		if e.atomic && e.at == at && e.from < from+size && from < e.from+8 {
			return true
		}
	}
	return false
}

// read requests a range, once the limit on outstanding requests allows it.
func (s *script) read() {
	s.until(s.ird - 1)
	at := s.spots[s.rnd.IntN(len(s.spots))]
	size := s.rnd.IntN([]int{1, 9, 5000, len(at.now) + 1}[s.rnd.IntN(4)])
	from := s.rnd.IntN(len(at.now) - size + 1)
	stag, offset := at.stag, at.base+uint64(from)
	if size == 0 {
		stag, offset = s.rnd.Uint32(), s.rnd.Uint64()
	}
	e := &expected{at: at, from: from, size: size, sink: s.rnd.Uint32(), sinkAt: s.rnd.Uint64() >> 1,
		became: map[int][]byte{}}
	s.mu.Lock()
	e.was = bytes.Clone(at.now[from : from+size])
	// A preceding atomic may or may not have been applied when the read is answered.
	s.due = append(s.due, e)
	s.mu.Unlock()
	s.untagged(rawReadRequest, s.rnd.Uint32(), rawReadRequestOf(e.sink, e.sinkAt, uint32(size), stag, offset), nil)
}

// atomic requests an add or a swap, in fields or as a whole.
func (s *script) atomic() {
	s.until(s.ird - 1)
	at := s.spots[s.rnd.IntN(len(s.spots))]
	from := 8 * s.rnd.IntN(min(8, len(at.now)/8)) // few words, so that atomics collide
	e := &expected{atomic: true, at: at, from: from, id: s.rnd.Uint32()}
	flags := uint32(0)
	if at.store {
		flags = uint32(s.rnd.IntN(3))
	}
	data, mask, compare, compareMask := s.rnd.Uint64(), uint64(0), s.rnd.Uint64(), s.rnd.Uint64()
	swap := s.rnd.IntN(2) == 0
	s.mu.Lock()
	old := little(at.now[from:])
	e.original = old
	next := old
	if swap {
		mask = s.rnd.Uint64()
		if s.rnd.IntN(2) == 0 {
			compare = old
		}
		if (old^compare)&compareMask == 0 {
			next = old&^mask | data&mask
		}
	} else {
		mask = []uint64{0, 1 << 63, 1<<31 | 1<<63, s.rnd.Uint64()}[s.rnd.IntN(4)]
		carry := uint64(0)
		next = 0
		for i := range 64 { // bit by bit: no carry beyond a set bit of the mask
			a, b := old>>i&1, data>>i&1
			next |= (a ^ b ^ carry) << i
			carry = a&b | a&carry | b&carry
			if mask>>i&1 == 1 {
				carry = 0
			}
		}
	}
	s.mu.Unlock()
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(next >> (8 * i))
	}
	s.change(at, from, b)
	s.mu.Lock()
	s.due = append(s.due, e)
	s.mu.Unlock()
	s.untagged(rawAtomicRequest, 0,
		rawAtomic(swap, e.id, at.stag|flags, at.base+uint64(from), data, mask, compare, compareMask), nil)
}

func little(b []byte) (v uint64) {
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// message is a message that our side must receive.
type message struct {
	op          byte
	payload     []byte
	immediate   uint64
	invalidated uint32
}

// TestResponderAgainstModel runs all operations of a peer that was written from the RFCs alone against our responder,
// in segments and pieces of any size; finally the peer breaks a rule or leaves. The data it reads and the final memory
// contents match the model, each message is received once and in order, and no resource leaks.
func TestResponderAgainstModel(t *testing.T) { ways(t, testResponderAgainstModel) }

func testResponderAgainstModel(t *testing.T) { drawn(t, responderRound) }

// drawn plays rounds until one fails. No round may leak goroutines.
func drawn(t *testing.T, round func(t *testing.T, cfg stream.Config, seed uint64)) {
	goroutines(t)
	cfg := config(t)
	for seed := range rounds() {
		if round(t, cfg, seed); t.Failed() {
			return
		}
	}
}

func responderRound(t *testing.T, cfg stream.Config, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 77))
	cfg.Progress, cfg.Linger = 5*time.Second, 2*time.Second
	cfg.Verbs.IRD = 1 + rnd.IntN(9)
	cfg.Verbs.ORD = rnd.IntN(3)
	cfg.Verbs.CRC = rnd.IntN(3) > 0
	cfg.Verbs.Markers = rnd.IntN(3) == 0
	cfg.Verbs.Window = 4096 * (1 + rnd.IntN(4))
	cfg.Verbs.Receives = 40
	cfg.Verbs.MaxSegment = []int{128, 1000, 9000, 65535}[rnd.IntN(4)]
	d := domain(t)
	memory := make([]byte, 20000)
	for i := range memory {
		memory[i] = byte(rnd.Uint32())
	}
	far, content, put := pagesOf(t, seed, memory)
	all := verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.RemoteInvalidate
	register := func(c verbs.RegionConfig) *verbs.Region {
		r, err := d.Register(c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	s := &script{t: t, label: fmt.Sprint("seed ", seed)}
	s.wake = sync.NewCond(&s.mu)
	ram := register(verbs.RegionConfig{Memory: memory, Base: 1 << 40, Rights: all})
	farAt := 4096 + 8*rnd.IntN(600)
	flash := register(verbs.RegionConfig{Store: far, Offset: uint64(farAt), Length: 40000,
		Base: 8 * rnd.Uint64N(1<<50), Rights: all, Allowed: verbs.AllSemantics})
	for _, r := range []*verbs.Region{ram, flash} {
		x := &spot{stag: r.STag(), base: r.Base(), store: r == flash}
		if x.store {
			x.now = bytes.Clone(content()[farAt:][:40000])
		} else {
			x.now = bytes.Clone(memory)
		}
		s.spots = append(s.spots, x)
	}
	var spare []*verbs.Region
	for range 4 {
		spare = append(spare, register(verbs.RegionConfig{Memory: make([]byte, 8), Rights: all}))
	}
	cfg.Prepare = func(c *stream.Conn) error {
		for id := range uint64(40) {
			if err := c.PostReceive(verbs.Receive{ID: id, Local: make([]byte, 5000)}); err != nil {
				return err
			}
		}
		return nil
	}

	a, b := sockets(t, false)
	s.rawPeer = newRawPeer(a, rnd)
	ours := make(chan *stream.Conn, 1)
	started := make(chan error, 1)
	go func() {
		c, err := stream.Server(b, d, cfg)
		started <- err
		ours <- c
	}()
	f := startupFrame{markers: rnd.IntN(3) == 0, crc: rnd.IntN(2) == 0, revision: byte(1 + rnd.IntN(2)),
		private: make([]byte, rnd.IntN(500))}
	if f.revision == 2 && rnd.IntN(4) > 0 {
		f.enhanced, f.ird, f.ord = true, uint16(rnd.IntN(20)), uint16(1+rnd.IntN(20))
		if rnd.IntN(2) == 0 {
			f.peerToPeer, f.rtr = true, byte(1+rnd.IntN(7))
		}
		if rnd.IntN(4) == 0 {
			f.ird, f.ord = 0x3fff, 0x3fff
		}
	}
	s.out = f.bytes(false)
	s.send()
	reply, err := s.readStartup(true)
	if err != nil || reply.reject || reply.enhanced != f.enhanced || reply.revision != f.revision ||
		reply.peerToPeer != f.peerToPeer || f.peerToPeer && reply.rtr&f.rtr == 0 {
		s.fatalf("the reply to %+v is %+v, %v", f, reply, err)
	}
	if f.enhanced && f.ord != 0x3fff && int(reply.ird) != cfg.Verbs.IRD ||
		f.enhanced && f.ird != 0x3fff && reply.ord > f.ird {
		s.fatalf("the reply to %+v is %+v", f, reply)
	}
	if err := <-started; err != nil {
		s.fatalf("%v", err)
	}
	conn := <-ours
	s.crc, s.marksIn, s.marksOut, s.ird = f.crc || reply.crc, f.markers, reply.markers, cfg.Verbs.IRD
	read := make(chan struct{})
	go s.answers(read)
	if f.peerToPeer {
		switch r := reply.rtr & f.rtr; {
		case r&1 != 0:
			s.untagged(rawSend, 0, nil, nil)
		case r&2 != 0:
			s.tagged(rawWrite, true, rnd.Uint32(), rnd.Uint64(), nil)
		default:
			s.due = append(s.due, &expected{at: s.spots[0], sink: 1})
			s.untagged(rawReadRequest, 0, rawReadRequestOf(1, 0, 0, 0, 0), nil)
		}
	}

	// The part that keeps to the rules.
	var sent []message
	for range 10 + rnd.IntN(60) {
		switch k := rnd.IntN(12); {
		case k < 4:
			s.write()
		case k < 7:
			s.read()
		case k < 9:
			s.atomic()
		case len(sent) < 36:
			m := message{op: []byte{rawSend, rawSendSolicited, rawImmediate, rawImmediateSolicited, rawSendInvalidate,
				rawSendSolicitedInvalidate}[rnd.IntN(6)]}
			switch m.op {
			case rawImmediate, rawImmediateSolicited:
				m.immediate = rnd.Uint64()
				s.untagged(m.op, 0, big.AppendUint64(nil, m.immediate), nil)
			case rawSendInvalidate, rawSendSolicitedInvalidate:
				if len(spare) == 0 {
					continue
				}
				m.invalidated, spare = spare[0].STag(), spare[1:]
				fallthrough
			default:
				m.payload = make([]byte, rnd.IntN(5001))
				for i := range m.payload {
					m.payload[i] = byte(rnd.Uint32())
				}
				s.untagged(m.op, m.invalidated, m.payload, s.pieces)
			}
			sent = append(sent, m)
		}
		if rnd.IntN(3) == 0 {
			s.send()
		}
	}
	s.send()
	s.until(0)
	// An empty read is answered after everything before it.
	s.due = append(s.due, &expected{at: s.spots[0], sink: 5})
	s.untagged(rawReadRequest, 0, rawReadRequestOf(5, 0, 0, rnd.Uint32(), rnd.Uint64()), nil)
	s.send()
	s.until(0)

	// The part that breaks one.
	want := s.breakRule(flash)
	if s.revoked {
		sent = append(sent, message{op: rawSendInvalidate, invalidated: flash.STag()})
	}
	<-read
	if want != "" {
		if got := fmt.Sprintf("%x", s.ended[:min(len(s.ended), 2)]); !errors.Is(s.err, errTerminated) || got != want {
			t.Errorf("%s: %s (%v) comes where a Terminate of %s is due", s.label, got, s.err, want)
		}
	}
	if !bytes.HasSuffix(s.ended, s.refused) {
		t.Errorf("%s: % x does not end with the request that it refuses", s.label, s.ended)
	}
	_ = a.Close()
	select {
	case <-conn.Done():
	case <-time.After(20 * time.Second):
		s.fatalf("the connection neither ends nor goes on")
	}
	if err := conn.Close(); err != nil {
		t.Errorf("%s: %v", s.label, err)
	}
	var got [64]verbs.Completion
	n := 0
	for {
		k := conn.Poll(got[n:])
		if k == 0 {
			break
		}
		n += k
	}
	if n != 40 {
		t.Errorf("%s: %d of 40 receives have completed", s.label, n)
	}
	for i, c := range got[:n] {
		if c.ID != uint64(i) || !c.Receive {
			t.Errorf("%s: completion %d is of %d", s.label, i, c.ID)
		}
		if i >= len(sent) {
			if c.Err == nil {
				t.Errorf("%s: receive %d completes with what was not sent", s.label, i)
			}
			continue
		}
		m := sent[i]
		length := len(m.payload)
		if m.op == rawImmediate || m.op == rawImmediateSolicited {
			length = 8
		}
		if c.Err != nil || byte(c.Op) != m.op || int(c.Length) != length || c.Immediate != m.immediate ||
			c.Invalidated != m.invalidated {
			t.Errorf("%s: message %d arrives as %+v", s.label, i, c)
		}
	}
	if !bytes.Equal(memory, s.spots[0].now) || !bytes.Equal(content()[farAt:][:40000], s.spots[1].now) {
		t.Errorf("%s: memory is not as the model", s.label)
	}
	left := 2 + len(spare)
	if s.revoked {
		left--
	}
	if n := d.Regions(); n != left {
		t.Errorf("%s: %d regions are left, and must be %d", s.label, n, left)
	}
	put()
}

// pagesOf returns a 64 KiB store that starts with some bytes: one in memory whose pages become ready in any order, or a
// range of a nearly full pool whose memory is little more than the limit of one connection. put verifies that no page
// is held and closes the store.
func pagesOf(t *testing.T, seed uint64, first []byte) (s verbs.Store, content func() []byte, put func()) {
	t.Helper()
	const n = 1 << 16
	if seed%2 == 0 {
		pages := verbstest.NewPages(n, 4096, seed+1)
		copy(pages.Bytes(), first)
		return pages, pages.Bytes, func() {
			if pages.Out() != 0 {
				t.Errorf("seed %d: %d accesses hold pages", seed, pages.Out())
			}
		}
	}
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk, cfg.Writes = 96, 4, 8
	layout := ctl.Layout{Segment: 8, OverProvision: 0.3, LogPages: 16}
	dev := device.NewMem(200 * device.Grain)
	shape, err := layout.Shape(dev.Size())
	if err == nil {
		err = ctl.Format(shape, dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	pool, err := ctl.Open(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	e, err := extent.New(pool, 0, n, nil)
	if err == nil {
		err = pool.WriteAt(first, 0, true)
	}
	for p := int64(n); err == nil && p < (shape.Capacity-10)*ctl.Page; p += ctl.Page {
		err = pool.WriteAt([]byte{1}, uint64(p), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	content = func() []byte {
		b := make([]byte, n)
		if err := pool.ReadAt(b, 0); err != nil {
			t.Error(err)
		}
		return b
	}
	return e, content, func() {
		for _, v := range pool.Check(true).Violations {
			t.Errorf("seed %d: %v", seed, v)
		}
		if err := pool.Close(); err != nil { // fails if a page is still held
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}

// breakRule breaks a rule or leaves, and returns the expected Terminate, or "" if the connection just ends.
func (s *script) breakRule(far *verbs.Region) (terminate string) {
	ram := s.spots[0]
	leave := func() {
		if tcp, ok := s.nc.(*net.TCPConn); ok && s.rnd.IntN(2) == 0 {
			_ = tcp.SetLinger(0)
		}
		_ = s.nc.Close()
	}
	switch k := s.rnd.IntN(16); k {
	case 0, 1, 2: // leave, mid-frame or between frames
		for range s.rnd.IntN(4) {
			s.tagged(rawWrite, false, ram.stag, ram.base, ram.now[:8]) // unchanged contents
			s.untaggedAt(rawReadRequest, true, 0, 1, s.msnOut[1], 0,
				rawReadRequestOf(1, 1, 9000, far.STag(), far.Base()))
			s.msnOut[1]++
		}
		if len(s.out) > 0 && s.rnd.IntN(2) == 0 {
			s.out = s.out[:s.rnd.IntN(len(s.out))]
		}
		_ = s.flush()
		leave()
		return ""
	case 3: // send a Terminate
		s.untagged(rawTerminate, 0, []byte{0x01, 0, 0, 0}, nil)
		_ = s.flush()
		return ""
	case 4: // skip a sequence number
		s.untaggedAt(rawSend, true, 0, 0, s.msnOut[0]+1, 0, []byte("x"))
		terminate = "1203"
	case 5: // repeat a sequence number
		s.untaggedAt(rawReadRequest, true, 0, 1, s.msnOut[1]-1, 0, rawReadRequestOf(1, 1, 0, 0, 0))
		terminate = "1203"
	case 6: // a response without a request
		s.tagged(rawReadResponse, true, ram.stag, ram.base, []byte("x"))
		terminate = "0206"
	case 7: // one byte beyond the end
		s.tagged(rawWrite, true, ram.stag, ram.base+uint64(len(ram.now)), []byte("x"))
		terminate = "1101"
	case 8:
		s.refused = rawReadRequestOf(1, 1, 2, ram.stag, ram.base+uint64(len(ram.now))-1)
		s.untagged(rawReadRequest, 0, s.refused, nil)
		terminate = "0101"
	case 9: // an offset that leaves a gap in a message
		s.untaggedAt(rawSend, false, 0, 0, s.msnOut[0], 0, []byte("xx"))
		s.untaggedAt(rawSend, true, 0, 0, s.msnOut[0], 3, []byte("xx"))
		terminate = "1204"
	case 10: // another opcode within a message
		s.untaggedAt(rawSend, false, 0, 0, s.msnOut[0], 0, []byte("xx"))
		s.untaggedAt(rawSendSolicited, true, 0, 0, s.msnOut[0], 2, []byte("xx"))
		terminate = "0206"
	case 11: // a misaligned atomic
		s.untagged(rawAtomicRequest, 0, rawAtomic(false, 1, ram.stag, ram.base+4, 1, 0, 0, 0), nil)
		terminate = "0207"
	case 12: // revoke an STag in use, on its own connection
		s.untagged(rawSendInvalidate, far.STag(), nil, nil)
		s.revoked = true
		s.tagged(rawWrite, true, far.STag(), far.Base(), []byte("x"))
		_ = s.flush()
		return ""
	case 13: // a message one byte too long for its buffer
		s.untagged(rawSend, 0, make([]byte, 5001), s.pieces)
		terminate = "1205"
	case 14: // a wrong DDP version
		s.out = nil
		s.frame([]byte{0xC2, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
		terminate = "1104"
	default: // a corrupted frame
		if !s.crc {
			leave()
			return ""
		}
		s.tagged(rawWrite, true, ram.stag, ram.base, []byte("0123456789"))
		s.out[len(s.out)-1-s.rnd.IntN(16)] ^= 1 << s.rnd.IntN(8)
		terminate = "2002"
	}
	_ = s.flush()
	return terminate
}
