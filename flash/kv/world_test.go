package kv_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"farflash/flash/kv"
	"farflash/numeric/rng"
)

// world is a server's memory and its clients in one thread of control: a seed decides which client goes on at each
// operation of the memory, where reads and writes are torn, which connections are lost and when, which clients stop or
// die, and which pages reach the flash.
type world struct {
	mem, flash []byte
	draw       rng.Stream
	instance   int
	clients    []*peer
	ready      []*peer // those that wait for their turn
	now        int     // steps
	end        int     // of the server, as a step; 0: it does not end
	idle       chan struct{}

	// Faults, each one in so many operations; 0: none.
	drop, stall, die int
	writeOut         int
	long             int // the most steps of standing still; a third of it is silence
}

// peer is a client, as kv.Memory and kv.Peers.
type peer struct {
	w      *world
	id     uint64
	turn   chan struct{}
	sent   []piece // writes that have not been executed
	kept   []piece // writes that no answer has confirmed
	fenced bool
	dead   bool
	until  int // it stands still until this step
	ended  bool
	since  int // it was heard last
}

type piece struct {
	b     []byte
	off   int64
	ahead bool
}

var (
	errUnknown = errors.New("outcome unknown")
	errFenced  = errors.New("fenced")
)

func newWorld(size int64, seed uint64) *world {
	return &world{mem: make([]byte, size), flash: make([]byte, size), draw: rng.NewStream(seed, "world"),
		idle: make(chan struct{}), long: 300}
}

// run runs processes until all have ended. Each is one client.
func (w *world) run(processes ...func(p *peer)) {
	for _, f := range processes {
		p := &peer{w: w, id: uint64(len(w.clients) + 1), turn: make(chan struct{}, 1)}
		w.clients = append(w.clients, p)
		w.ready = append(w.ready, p)
		go func() {
			<-p.turn
			defer func() {
				p.ended = true
				w.next()
			}()
			f(p)
		}()
	}
	w.next()
	<-w.idle
}

// next lets a client go on, or what the network still holds.
func (w *world) next() {
	for {
		if w.now++; w.now == w.end {
			for _, p := range w.clients {
				p.fenced, p.sent, p.kept = true, nil, nil
			}
		}
		if w.writeOut > 0 && w.one(w.writeOut) {
			page := w.draw.IntN(int64(len(w.mem)/4096)) * 4096
			copy(w.flash[page:page+4096], w.mem[page:page+4096])
		}
		if c := w.clients[w.draw.IntN(int64(len(w.clients)))]; len(c.sent) > 0 && w.one(4) {
			c.deliver() // of a client that is dead too
			continue
		}
		if len(w.ready) == 0 {
			close(w.idle)
			return
		}
		i := int(w.draw.IntN(int64(len(w.ready))))
		p := w.ready[i]
		if p.until > w.now && len(w.ready) > 1 && w.one(2) {
			continue
		}
		if p.until > w.now {
			if others := w.waiting(); others != nil {
				p = others
			}
		}
		for k, q := range w.ready {
			if q == p {
				w.ready = append(w.ready[:k], w.ready[k+1:]...)
				break
			}
		}
		p.turn <- struct{}{}
		return
	}
}

// waiting returns a client that does not stand still.
func (w *world) waiting() *peer {
	for _, p := range w.ready {
		if p.until <= w.now {
			return p
		}
	}
	return nil
}

// one is true one time in n.
func (w *world) one(n int) bool { return n > 0 && w.draw.IntN(int64(n)) == 0 }

// yield lets others go on.
func (p *peer) yield() {
	p.w.ready = append(p.w.ready, p)
	p.w.next()
	<-p.turn
	p.since = p.w.now
}

// step is the beginning of each operation.
func (p *peer) step() error {
	w := p.w
	if w.one(w.stall) {
		p.until = w.now + 50 + int(w.draw.IntN(int64(w.long)))
	}
	p.yield()
	if w.one(w.die) {
		p.dead = true
		runtime.Goexit()
	}
	if p.fenced {
		return errFenced
	}
	return nil
}

// deliver executes the first write that has been sent.
func (p *peer) deliver() {
	x := p.sent[0]
	p.sent = p.sent[1:]
	p.w.put(x)
}

// put executes a part of a write.
func (w *world) put(x piece) {
	copy(w.mem[x.off:], x.b)
	if x.ahead {
		w.sync(x.off, len(x.b))
	}
}

// sync writes pages to flash.
func (w *world) sync(off int64, n int) {
	from, to := off/4096*4096, (off+int64(n)+4095)/4096*4096
	copy(w.flash[from:to], w.mem[from:to])
}

// drain executes all that was sent. If the connection is lost, it is sent again, and executed once more.
func (p *peer) drain() (lost bool) {
	for len(p.sent) > 0 {
		if p.w.one(3) {
			p.yield()
		}
		if p.fenced {
			return false
		}
		if len(p.sent) > 0 {
			p.deliver()
		}
	}
	if lost = p.w.one(p.w.drop); lost {
		for _, x := range p.kept {
			p.yield()
			if p.fenced {
				return lost
			}
			p.w.put(x)
		}
	}
	return lost
}

// cut divides the n bytes at off into parts, at multiples of eight in memory.
func (w *world) cut(off int64, n int) [][2]int {
	if n <= 8 {
		return [][2]int{{0, n}}
	}
	most := n
	if w.one(2) {
		most = min(n, 256)
	}
	at := int(w.draw.IntN(int64(most/8+1)))*8 - int(off%8)
	at = min(max(at, 0), n)
	parts := [][2]int{{0, at}, {at, n}}
	if w.one(2) {
		parts[0], parts[1] = parts[1], parts[0]
	}
	return parts
}

func (p *peer) ReadAt(b []byte, off int64) (int, error) {
	if err := p.step(); err != nil {
		return 0, err
	}
	p.drain()
	for i, c := range p.w.cut(off, len(b)) {
		if i > 0 {
			p.yield()
		}
		if p.fenced {
			return 0, errFenced
		}
		copy(b[c[0]:c[1]], p.w.mem[off+int64(c[0]):])
	}
	p.kept = nil
	return len(b), nil
}

func (p *peer) Write(b []byte, off int64, ahead bool) error {
	if err := p.step(); err != nil {
		return err
	}
	for _, c := range p.w.cut(off, len(b)) {
		x := piece{append([]byte(nil), b[c[0]:c[1]]...), off + int64(c[0]), ahead}
		p.sent, p.kept = append(p.sent, x), append(p.kept, x)
	}
	return nil
}

func (p *peer) CompareSwapBits(off int64, old, oldMask, value, mask uint64, durable bool) (uint64, error) {
	if err := p.step(); err != nil {
		return 0, err
	}
	lost := p.drain()
	if p.fenced {
		return 0, errFenced
	}
	if lost && p.w.one(2) {
		p.kept = nil
		return 0, errUnknown // not executed
	}
	b := p.w.mem[off:]
	now := le64(b)
	if (now^old)&oldMask == 0 {
		if x := now&^mask | value&mask; x != now {
			putLE64(b, x)
			if durable {
				p.yield() // visible before it is durable
				p.w.sync(off, 8)
			}
		}
	}
	p.kept = nil
	if lost {
		return 0, errUnknown
	}
	p.yield()
	if p.fenced {
		return 0, errors.Join(errFenced)
	}
	return now, nil
}

func (p *peer) Flush() error {
	if err := p.step(); err != nil {
		return err
	}
	p.drain()
	if p.fenced {
		return errFenced
	}
	p.kept = nil
	copy(p.w.flash, p.w.mem)
	return nil
}

func (p *peer) Name() uint64 { return p.id | uint64(p.w.instance)<<32 }

func (p *peer) Instance() string { return fmt.Sprint(p.w.instance) }

func (p *peer) Fence(_ context.Context, name uint64, patience time.Duration) error {
	if err := p.step(); err != nil {
		return err
	}
	w := p.w
	if int(name>>32) != w.instance {
		return nil
	}
	q := w.clients[uint32(name)-1]
	if q == p {
		return errors.New("a client fences itself")
	}
	if !q.fenced && !q.ended && !q.dead && w.now-q.since < int(patience) {
		return kv.ErrAlive
	}
	q.fenced, q.sent, q.kept = true, nil, nil
	return nil
}

func (p *peer) pause(ctx context.Context, _ int) error {
	if err := p.step(); err != nil {
		return err
	}
	return ctx.Err()
}

// options are those of a client of the world.
func (p *peer) options() kv.Options {
	return kv.Options{Patience: time.Duration(p.w.long / 3), Pause: p.pause,
		Unknown: func(err error) bool { return errors.Is(err, errUnknown) }}
}

// crash ends the server: only the flash remains, and all names are gone.
func (w *world) crash() {
	copy(w.mem, w.flash)
	w.instance++
	w.clients, w.end = nil, 0
}

func le64(b []byte) uint64 {
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 |
		uint64(b[6])<<48 | uint64(b[7])<<56
}

func putLE64(b []byte, x uint64) {
	for i := range 8 {
		b[i] = byte(x >> (8 * i))
	}
}
