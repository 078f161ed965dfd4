package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"farflash/flash/device"
	"farflash/flash/uring"
)

// The plain protocol, little-endian. A request has 16 bytes: 4 of operation (0 reads, 1 writes), 4 of request number, 8
// of offset; a write is followed by the block. A reply has 16 bytes: 4 of request number, 4 of error, 4 that are 1 if
// no data follow, 4 of zero; a read's reply is followed by the block.
const plainHeader = 16

func putRequest(b []byte, write bool, slot int, offset uint64) {
	what := uint32(0)
	if write {
		what = 1
	}
	binary.LittleEndian.PutUint32(b, what)
	binary.LittleEndian.PutUint32(b[4:], uint32(slot))
	binary.LittleEndian.PutUint64(b[8:], offset)
}

func parseRequest(b []byte) (write bool, slot uint32, offset uint64) {
	return binary.LittleEndian.Uint32(b) == 1, binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])
}

func putReply(b []byte, slot uint32, write bool, err error) {
	clear(b[:plainHeader])
	binary.LittleEndian.PutUint32(b, slot)
	if err != nil {
		binary.LittleEndian.PutUint32(b[4:], 5)
	}
	if write {
		binary.LittleEndian.PutUint32(b[8:], 1)
	}
}

// feed is a buffered reader.
type feed struct {
	from       io.Reader
	in         []byte
	start, end int
}

// more reads available bytes, blocking only if from does.
func (f *feed) more() error {
	f.end = copy(f.in, f.in[f.start:f.end])
	f.start = 0
	n, err := f.from.Read(f.in[f.end:])
	f.end += n
	return err
}

// need returns the next n bytes, reading until they are available.
func (f *feed) need(n int) ([]byte, error) {
	for f.end-f.start < n {
		if err := f.more(); err != nil {
			return nil, err
		}
	}
	b := f.in[f.start:][:n]
	f.start += n
	return b, nil
}

type plainClient struct {
	feed
	socket *socket
	block  int
	out    []byte
}

func newPlainClient(s *socket, block int) *plainClient {
	return &plainClient{feed: feed{from: reader(s.receive), in: make([]byte, 64<<10+block)}, socket: s, block: block}
}

func (k *plainClient) start(slot int, write bool, offset uint64) error {
	n := plainHeader
	if write {
		n += k.block
	}
	at := len(k.out)
	k.out = slices.Grow(k.out, n)[:at+n]
	putRequest(k.out[at:], write, slot, offset)
	return nil
}

func (k *plainClient) flush() (bool, error) {
	if len(k.out) == 0 {
		return true, nil
	}
	n, err := k.socket.send(k.out)
	k.out = k.out[:copy(k.out, k.out[n:])]
	return len(k.out) == 0, err
}

func (k *plainClient) take(ended []int) (n int, err error) {
	if err := k.more(); err != nil {
		return 0, err
	}
	for ; k.end-k.feed.start >= plainHeader; n++ {
		h := k.in[k.feed.start:]
		if e := binary.LittleEndian.Uint32(h[4:]); e != 0 {
			return 0, fmt.Errorf("server error %d", e)
		}
		size := plainHeader + k.block
		if binary.LittleEndian.Uint32(h[8:]) == 1 {
			size = plainHeader
		}
		if k.end-k.feed.start < size {
			break
		}
		if n == len(ended) {
			return 0, errors.New("more responses than requests")
		}
		ended[n] = int(binary.LittleEndian.Uint32(h))
		k.feed.start += size
	}
	return n, nil
}

func (k *plainClient) close() error { return k.socket.Close() }

// over suppresses the error of a client that has closed its connection.
func over(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// servePlain is the baseline: read a request, pread or pwrite, write the reply, repeat.
func (s *far) servePlain(nc io.ReadWriter, f *os.File) error {
	block := s.cfg.Block
	r := feed{from: nc, in: make([]byte, 64<<10+block)}
	buf := device.Aligned(device.Grain + block)
	// the reply header is right before the data, so that one write sends both
	data, reply := buf[device.Grain:], buf[device.Grain-plainHeader:]
	for t := new(turns); ; t.pass(time.Now()) {
		h, err := r.need(plainHeader)
		if err != nil {
			return over(err)
		}
		write, slot, offset := parseRequest(h)
		n := plainHeader
		if write {
			p, err := r.need(block)
			if err != nil {
				return over(err)
			}
			copy(data, p)
			_, err = f.WriteAt(data, int64(offset))
			putReply(reply, slot, true, err)
		} else {
			_, err = f.ReadAt(data, int64(offset))
			putReply(reply, slot, false, err)
			n += block
		}
		if _, err := nc.Write(reply[:n]); err != nil {
			return over(err)
		}
	}
}

// ring is the plain file on io_uring, with registered buffers. The zero value has no device.
type ring struct {
	device  *uring.Device
	arena   []byte
	buffers chan []byte // slices of arena
}

// open opens a file, which the pool and another ring may also have open.
func (r *ring) open(c *Config, path string) (err error) {
	if r.device, err = uring.Open(path, device.Mode{Shared: true}, 256); err != nil {
		return err
	}
	n := c.Connections * max(c.Depth, openDepth)
	size := device.Grain + c.Block
	if r.arena, err = device.Arena(n * size); err != nil {
		return err
	}
	if err := r.device.Register(r.arena); err != nil {
		return err
	}
	r.buffers = make(chan []byte, n)
	for i := range n {
		r.buffers <- r.arena[i*size:][:size:size]
	}
	return nil
}

func (r *ring) close() error {
	if r.device == nil {
		return nil
	}
	err := r.device.Close()
	if r.arena != nil {
		err = errors.Join(err, device.Release(r.arena))
	}
	return err
}

// ringRequest is one outstanding request of serveRing.
type ringRequest struct {
	op    device.Op
	buf   []byte
	slot  uint32
	write bool
}

// ringReplies queues the replies of serveRing.
type ringReplies struct {
	mu    sync.Mutex
	ready []*ringRequest
	kick  chan struct{}
	quit  chan struct{}
	free  chan *ringRequest
	done  chan error
}

func (w *ringReplies) add(q *ringRequest) {
	w.mu.Lock()
	w.ready = append(w.ready, q)
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// run sends all ready replies with one system call.
func (w *ringReplies) run(nc net.Conn, block int) {
	var vec net.Buffers
	var spare []*ringRequest
	var failed error
	for {
		select {
		case <-w.quit:
			w.done <- failed
			return
		case <-w.kick:
		}
		w.mu.Lock()
		batch := w.ready
		w.ready = spare[:0]
		w.mu.Unlock()
		vec = vec[:0]
		for _, q := range batch {
			reply, n := q.buf[device.Grain-plainHeader:], plainHeader
			putReply(reply, q.slot, q.write, q.op.Err)
			if !q.write {
				n += block
			}
			vec = append(vec, reply[:n])
		}
		if sent := vec; failed == nil && len(sent) > 0 {
			_, failed = sent.WriteTo(nc)
		}
		for _, q := range batch {
			w.free <- q
		}
		spare = batch
	}
}

// serveRing serves the plain protocol with concurrent requests on a ring; replies are sent in order of completion.
func (s *far) serveRing(nc net.Conn, depth int) error {
	block := s.cfg.Block
	w := &ringReplies{kick: make(chan struct{}, 1), quit: make(chan struct{}), free: make(chan *ringRequest, depth),
		done: make(chan error, 1)}
	for range depth {
		q := &ringRequest{buf: <-s.ring.buffers}
		q.op.Done = func(*device.Op) { w.add(q) }
		w.free <- q
	}
	go w.run(nc, block)
	r := feed{from: nc, in: make([]byte, 64<<10+block)}
	ops := make([]*device.Op, 0, depth)
	var err error
	for {
		var h []byte
		if h, err = r.need(plainHeader); err != nil {
			break
		}
		q := <-w.free
		var offset uint64
		q.write, q.slot, offset = parseRequest(h)
		q.op.Kind, q.op.Offset, q.op.Buf = device.Read, int64(offset), q.buf[device.Grain:][:block]
		if q.write {
			var p []byte
			if p, err = r.need(block); err != nil {
				w.free <- q
				break
			}
			q.op.Kind = device.Write
			copy(q.op.Buf, p)
		}
		// Requests that arrived together are submitted together, as far as there are free slots.
		if ops = append(ops, &q.op); r.end-r.start < plainHeader || len(w.free) == 0 {
			s.ring.device.Submit(ops...)
			ops = ops[:0]
		}
	}
	if len(ops) > 0 {
		s.ring.device.Submit(ops...)
	}
	for range depth {
		s.ring.buffers <- (<-w.free).buf
	}
	close(w.quit)
	return errors.Join(over(err), over(<-w.done))
}
