package client_test

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// way is what a proxy does to one connection.
type way struct {
	// cut is the number of bytes, in the direction up (to the server) or down, after which end happens; negative:
	// never.
	cut  int
	down bool
	end  int
	// late is the delay of the bytes that are held back under hold.
	late time.Duration
	// slow delays each read.
	slow time.Duration
}

// The ends of a connection. reset: both ends are reset. fin: both are closed. half: only the receiver of the
// direction sees an end, and the other direction goes on until it ends too. hold: the client sees a reset at once,
// and the server gets the bytes from the cut on later, as from a network in which they took another path. mute:
// nothing is forwarded in this direction any more, and neither end notices.
const (
	reset = iota
	fin
	half
	hold
	mute
	ends
)

// proxy forwards connections on loopback to a server that can be exchanged.
type proxy struct {
	l       net.Listener
	running sync.WaitGroup

	mu     sync.Mutex
	target string // "": connections are reset
	way    func(n int) way
	n      int // connections so far
	open   map[net.Conn]bool
	passed [2]int // bytes up and down of the last connection
}

func newProxy(t testing.TB, target string, w func(n int) way) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, way: w, open: map[net.Conn]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.to("")
		p.running.Wait()
	})
	return p
}

// never is the way of a connection that nothing happens to.
func never(int) way { return way{cut: -1} }

func (p *proxy) address() string { return p.l.Addr().String() }

// to resets all connections and forwards later ones to another server. When it returns, nothing passes between a client
// and the earlier one any more.
func (p *proxy) to(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for c := range p.open {
		shut(c)
	}
	clear(p.open)
}

// set changes what happens to later connections.
func (p *proxy) set(w func(n int) way) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.way = w
}

// last returns the number of bytes of the last connection.
func (p *proxy) last() (up, down int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed[0], p.passed[1]
}

// connections is the number of connections so far.
func (p *proxy) connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// shut resets a connection.
func shut(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func (p *proxy) accept() {
	for {
		a, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		target := p.target
		w := p.way(p.n)
		p.n++
		p.passed = [2]int{}
		p.mu.Unlock()
		b, err := net.Dial("tcp", target)
		if err != nil {
			shut(a)
			continue
		}
		p.mu.Lock()
		if p.target != target {
			shut(a)
			shut(b)
		} else {
			p.open[a], p.open[b] = true, true
		}
		n := p.n
		p.mu.Unlock()
		p.running.Go(func() { p.pump(b, a, n, w, false) })
		p.running.Go(func() { p.pump(a, b, n, w, true) })
	}
}

// write forwards bytes unless the connection has been reset meanwhile.
func (p *proxy) write(to net.Conn, b []byte, n int, down bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open[to] {
		return net.ErrClosed
	}
	if n == p.n {
		i := 0
		if down {
			i = 1
		}
		p.passed[i] += len(b)
	}
	_ = to.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_, err := to.Write(b)
	return err
}

func (p *proxy) close(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if p.open[c] {
			delete(p.open, c)
			shut(c)
		}
	}
}

func (p *proxy) pump(to, from net.Conn, n int, w way, down bool) {
	buf := make([]byte, 32<<10)
	left := w.cut
	if w.down != down {
		left = -1
	}
	for {
		k, err := from.Read(buf)
		if w.slow > 0 {
			time.Sleep(w.slow)
		}
		if left >= 0 && k > left {
			p.finish(to, from, n, w, buf[:k], left)
			return
		}
		if left >= 0 {
			left -= k
		}
		if k > 0 && p.write(to, buf[:k], n, down) != nil {
			p.close(to, from)
			return
		}
		if err == io.EOF {
			_ = to.(*net.TCPConn).CloseWrite()
			return
		}
		if err != nil {
			p.close(to, from)
			return
		}
	}
}

// finish forwards the bytes before the cut and ends the connection.
func (p *proxy) finish(to, from net.Conn, n int, w way, b []byte, left int) {
	_ = p.write(to, b[:left], n, w.down)
	switch w.end {
	case reset:
		p.close(to, from)
	case fin:
		_ = to.Close()
		_ = from.Close()
	case half:
		_ = to.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, from)
	case hold:
		if w.down {
			p.close(to, from)
			return
		}
		p.close(from)
		time.Sleep(w.late)
		_ = p.write(to, b[left:], n, w.down)
		time.Sleep(w.late)
		p.close(to)
	case mute:
		_, _ = io.Copy(io.Discard, from)
	}
}

// chaos returns ways drawn from a seed: connections end after a bounded number of bytes.
func chaos(seed uint64, bytes int) func(n int) way {
	return func(n int) way {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		w := way{cut: 200 + r.IntN(bytes), down: r.IntN(3) == 0, end: r.IntN(ends),
			late: time.Duration(r.IntN(20)) * time.Millisecond}
		if r.IntN(8) == 0 {
			w.slow = time.Duration(r.IntN(300)) * time.Microsecond
		}
		return w
	}
}
