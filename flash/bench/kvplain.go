package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"farflash/flash/kv"
)

// The protocol of the systems whose servers run the table, little-endian. A request has 16 bytes: 1 of operation, 1 of
// zero, 2 of the key's length, 4 of the request's number, 4 of the value's length or the number of keys of a scan, 4 of
// zero; the key and the value follow. A reply has 12 bytes: 4 of the request's number, 4 that are 0 for no value, 1 for
// one, 2 for an error, whose text is the value, and 4 of the value's length; the value follows, or those of a scan one
// after the other.
const (
	kvRequest = 16
	kvReply   = 12

	kvGet  = 0
	kvPut  = 1
	kvScan = 2

	kvNone  = 0
	kvThere = 1
	kvError = 2

	kvLongest = 128 << 20 // bytes of a reply
)

// table is what clients of all systems can do with a store.
type table interface {
	get(key, dst []byte) (value []byte, ok bool, err error)
	put(key, value []byte) error
	// scan reads the values of n keys, or of as many as follow a key's place, and returns their number.
	scan(key []byte, n int) (found int, err error)
	close() error
}

// scanStore appends the values of up to n keys, from the bucket of a key on.
func scanStore(s *kv.Store, key []byte, n int, dst []byte) (values []byte, found int, err error) {
	ctx := context.Background()
	var keys [][]byte
	enough := errors.New("enough")
	for from := s.Bucket(key); len(keys) < n; {
		// A bucket has ten keys if the store is as full as it was made for.
		from, err = s.Keys(ctx, from, uint64(n-len(keys)+9)/10, func(key []byte) error {
			if keys = append(keys, append([]byte(nil), key...)); len(keys) == n {
				return enough
			}
			return nil
		})
		if err != nil && !errors.Is(err, enough) {
			return dst, 0, err
		}
		if from == 0 {
			break
		}
	}
	for _, k := range keys {
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		var ok bool
		if dst, ok, err = s.Get(ctx, k, dst); err != nil {
			return dst, found, err
		}
		if ok {
			found++
		}
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst, found, nil
}

// kvLocal is a store that the client runs.
type kvLocal struct {
	store *kv.Store
	end   func() error
}

func (k *kvLocal) get(key, dst []byte) ([]byte, bool, error) {
	return k.store.Get(context.Background(), key, dst)
}

func (k *kvLocal) put(key, value []byte) error { return k.store.Put(context.Background(), key, value) }

func (k *kvLocal) scan(key []byte, n int) (int, error) {
	_, found, err := scanStore(k.store, key, n, nil)
	return found, err
}

func (k *kvLocal) close() error { return errors.Join(k.store.Close(), k.end()) }

// kvRemote is a connection to a server that runs the table. Each of the goroutines that use it has one request at a
// time.
type kvRemote struct {
	nc   net.Conn
	mu   sync.Mutex // guards out
	out  *bufio.Writer
	free chan int // slots
	all  []kvSlot
	sent *atomic.Int64 // requests
	over chan struct{} // closed when nothing more is received, for the reason in err
	err  error
}

type kvSlot struct {
	dst   []byte
	state uint32
	done  chan struct{}
}

func newKVRemote(nc net.Conn, depth int, sent *atomic.Int64) *kvRemote {
	k := &kvRemote{nc: nc, out: bufio.NewWriterSize(nc, 64<<10), free: make(chan int, depth),
		all: make([]kvSlot, depth), sent: sent, over: make(chan struct{})}
	for i := range k.all {
		k.all[i].done = make(chan struct{}, 1)
		k.free <- i
	}
	go k.receive()
	return k
}

// receive receives replies until the connection ends.
func (k *kvRemote) receive() {
	defer close(k.over)
	in := bufio.NewReaderSize(k.nc, 64<<10)
	var head [kvReply]byte
	for {
		if _, k.err = io.ReadFull(in, head[:]); k.err != nil {
			return
		}
		i, n := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[8:])
		if int64(i) >= int64(len(k.all)) || n > kvLongest {
			k.err = errors.New("bench: no reply of the server's")
			return
		}
		s := &k.all[i]
		s.state = binary.LittleEndian.Uint32(head[4:])
		at := len(s.dst)
		if cap(s.dst)-at < int(n) {
			s.dst = append(make([]byte, 0, at+int(n)), s.dst...)
		}
		s.dst = s.dst[:at+int(n)]
		if _, k.err = io.ReadFull(in, s.dst[at:]); k.err != nil {
			return
		}
		s.done <- struct{}{}
	}
}

// do sends a request, and appends the reply's value to dst.
func (k *kvRemote) do(op byte, key, value, dst []byte, n int) ([]byte, uint32, error) {
	i := <-k.free
	defer func() { k.free <- i }()
	k.sent.Add(1)
	s := &k.all[i]
	s.dst = dst
	var head [kvRequest]byte
	head[0] = op
	binary.LittleEndian.PutUint16(head[2:], uint16(len(key)))
	binary.LittleEndian.PutUint32(head[4:], uint32(i))
	binary.LittleEndian.PutUint32(head[8:], uint32(n))
	k.mu.Lock()
	_, e1 := k.out.Write(head[:])
	_, e2 := k.out.Write(key)
	_, e3 := k.out.Write(value)
	err := errors.Join(e1, e2, e3, k.out.Flush())
	k.mu.Unlock()
	if err != nil {
		return dst, 0, err
	}
	select {
	case <-s.done:
	case <-k.over:
		return dst, 0, fmt.Errorf("bench: lost the server: %w", k.err)
	}
	if s.state == kvError {
		return dst, 0, fmt.Errorf("bench: the server: %s", s.dst[len(dst):])
	}
	return s.dst, s.state, nil
}

func (k *kvRemote) get(key, dst []byte) ([]byte, bool, error) {
	value, state, err := k.do(kvGet, key, nil, dst, 0)
	return value, state == kvThere, err
}

func (k *kvRemote) put(key, value []byte) error {
	_, _, err := k.do(kvPut, key, value, nil, len(value))
	return err
}

func (k *kvRemote) scan(key []byte, n int) (found int, err error) {
	values, _, err := k.do(kvScan, key, nil, nil, n)
	for ; len(values) >= 4; found++ {
		n := int(binary.LittleEndian.Uint32(values))
		values = values[min(4+n, len(values)):]
	}
	return found, err
}

func (k *kvRemote) close() error {
	err := k.nc.Close()
	<-k.over
	return err
}

// kvAsked is a request, as a server has received it.
type kvAsked struct {
	op    byte
	id, n uint32
	body  []byte // the key, and the value
	key   int
	reply []byte
}

// receiveKV receives a request.
func receiveKV(in io.Reader, q *kvAsked) error {
	var head [kvRequest]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return err
	}
	q.op, q.key = head[0], int(binary.LittleEndian.Uint16(head[2:]))
	q.id, q.n = binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	n := q.key
	if q.op == kvPut {
		if q.n > 1<<20 {
			return fmt.Errorf("bench: a value of %d bytes", q.n)
		}
		n += int(q.n)
	}
	if cap(q.body) < n {
		q.body = make([]byte, n)
	}
	q.body = q.body[:n]
	_, err := io.ReadFull(in, q.body)
	return err
}

// answer executes a request, and makes its reply.
func (q *kvAsked) answer(s *kv.Store) []byte {
	b := append(q.reply[:0], make([]byte, kvReply)...)
	key, state := q.body[:q.key], uint32(kvNone)
	var err error
	switch q.op {
	case kvGet:
		var ok bool
		if b, ok, err = s.Get(context.Background(), key, b); ok {
			state = kvThere
		}
	case kvPut:
		err = s.Put(context.Background(), key, q.body[q.key:])
	case kvScan:
		b, _, err = scanStore(s, key, int(min(q.n, 1<<16)), b)
	default:
		err = fmt.Errorf("operation %d", q.op)
	}
	if err != nil {
		b, state = append(b[:kvReply], err.Error()...), kvError
	}
	binary.LittleEndian.PutUint32(b, q.id)
	binary.LittleEndian.PutUint32(b[4:], state)
	binary.LittleEndian.PutUint32(b[8:], uint32(len(b)-kvReply))
	q.reply = b
	return b
}

// serveKVPlain answers a connection's requests one after the other.
func serveKVPlain(nc io.ReadWriter, s *kv.Store, t *turns) error {
	in := bufio.NewReaderSize(nc, 64<<10)
	for q := new(kvAsked); ; {
		if err := receiveKV(in, q); err != nil {
			return over(err)
		}
		if _, err := nc.Write(q.answer(s)); err != nil {
			return over(err)
		}
		t.pass(now())
	}
}

// serveKVRing answers up to depth requests of a connection at a time.
func serveKVRing(nc net.Conn, s *kv.Store, depth int) error {
	in := bufio.NewReaderSize(nc, 64<<10)
	free, work := make(chan *kvAsked, depth), make(chan *kvAsked, depth)
	var all sync.WaitGroup
	var mu sync.Mutex // guards failed, and sending
	var failed error
	for range depth {
		free <- new(kvAsked)
		all.Go(func() {
			for q := range work {
				b := q.answer(s)
				mu.Lock()
				if failed == nil {
					_, failed = nc.Write(b)
				}
				mu.Unlock()
				free <- q
			}
		})
	}
	var err error
	for err == nil {
		q := <-free
		if err = receiveKV(in, q); err == nil {
			work <- q
		}
	}
	close(work)
	all.Wait()
	return errors.Join(over(err), over(failed))
}
