package bench

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/extent"
	"farflash/flash/pool"
	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
)

// bench is what stands while measurements go on.
type bench struct {
	cfg  *Config
	dir  string
	turn int

	pool   *ctl.Pool
	adapt  *verbs.Adapter
	domain *verbs.Domain // of the server
	near   *verbs.Domain // of the clients
	region *verbs.Region

	loops   *uring.Loops // that serve verbs; nil without io_uring
	file    *os.File     // what the plain protocol is served from, around the page cache
	cached  *os.File
	native  *native // a server in C
	ring    *uring.Device
	arena   []byte
	buffers chan []byte // of arena
}

// setUp makes the files, and with a C compiler its server.
func setUp(c *Config, gcc string) (b *bench, err error) {
	b = &bench{cfg: c}
	if b.dir, err = os.MkdirTemp(c.Dir, "farflash-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	o := pool.DefaultOptions()
	o.Pool.Frames = int(c.Memory / ctl.Page)
	path := filepath.Join(b.dir, "pool")
	whole := int64(c.Room * float64(c.Size))
	if _, err = pool.Format(o, uint64(whole)+1<<20, path); err != nil {
		return b, err
	}
	if err = room(path, whole); err != nil {
		return b, err
	}
	var ring bool
	serving(func() { // so what its threads do is the servers'
		if o.Loops, err = pool.Threads(o, c.Threads); err == nil {
			if b.loops = o.Loops; b.loops != nil {
				b.loops.Spin(c.Spin)
			}
			b.pool, ring, err = pool.Open(o, path)
		}
	})
	if err != nil {
		return b, err
	}
	rings := slices.Contains(c.Systems, SocketRing) || slices.Contains(c.Systems, Local)
	if !ring && rings {
		return b, fmt.Errorf("bench: io_uring is not to be had here; leave %v and %v out", SocketRing, Local)
	}
	if err = b.fill(); err != nil {
		return b, err
	}
	// What is read by the plain protocol is the same file; what it writes goes to one of its own, as it would destroy the pool.
	plain := path
	if c.Writes > 0 {
		plain = filepath.Join(b.dir, "plain")
		if err = room(plain, c.Size); err != nil {
			return b, err
		}
	}
	if b.file, err = os.OpenFile(plain, os.O_RDWR|syscall.O_DIRECT, 0); errors.Is(err, syscall.EINVAL) {
		b.file, err = os.OpenFile(plain, os.O_RDWR, 0)
	}
	if err != nil {
		return b, err
	}
	if b.cached, err = os.OpenFile(plain, os.O_RDWR, 0); err != nil {
		return b, err
	}
	if err = b.serveVerbs(); err != nil {
		return b, err
	}
	if rings {
		if err = b.openRing(plain); err != nil {
			return b, err
		}
	}
	if gcc != "" {
		b.native, err = startNative(gcc, b.dir, plain, c.Block)
	}
	return b, err
}

// fill writes all that will be read.
func (b *bench) fill() error {
	part := make([]byte, 1<<20)
	for at := int64(0); at < b.cfg.Size; at += int64(len(part)) {
		binary.LittleEndian.PutUint64(part, uint64(at))
		if err := b.pool.WriteAt(part[:min(int64(len(part)), b.cfg.Size-at)], uint64(at), false); err != nil {
			return err
		}
	}
	return b.pool.Sync()
}

// room has a file take its room, so that no read of it is of a hole: what reads as zeros is written as such.
func room(path string, n int64) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	const part = 1 << 20
	old := make([]byte, part)
	for at := int64(0); at < n && err == nil; at += part {
		clear(old)
		if _, err = f.ReadAt(old, at); err == io.EOF {
			err = nil // beyond the end there is nothing to keep
		}
		if err == nil {
			_, err = f.WriteAt(old[:min(part, n-at)], at)
		}
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (b *bench) deviceReads() int64 { return b.pool.Stats().Misses }

// close ends everything, and removes the files.
func (b *bench) close() error {
	var errs []error
	if b.region != nil {
		b.region.Deregister()
	}
	if b.native != nil {
		errs = append(errs, b.native.stop())
	}
	if b.ring != nil {
		errs = append(errs, b.ring.Close(), device.Release(b.arena))
	}
	if b.pool != nil {
		errs = append(errs, b.pool.Close())
	}
	if b.loops != nil {
		errs = append(errs, b.loops.Close())
	}
	for _, f := range []*os.File{b.file, b.cached} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(b.dir))...)
}

// dial makes a connection to a system, which serves it until it is closed.
func (b *bench) dial(s System, depth int) (client, error) {
	switch s {
	case Local:
		return b.newLocal(depth), nil
	case SocketC:
		nc, err := net.Dial("tcp", b.native.address)
		if err != nil {
			return nil, err
		}
		k := newPlainClient(nc, b.cfg.Block)
		k.served <- nil
		return k, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	far, err := l.Accept()
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, errors.Join(err, near.Close())
	}
	if s.verbs() {
		return b.dialVerbs(near, far, depth, s == VerbsPolled)
	}
	k := newPlainClient(near, b.cfg.Block)
	go serving(func() {
		var err error
		switch s {
		case Socket:
			err = b.servePlain(far, b.file)
		case SocketCached:
			err = b.servePlain(far, b.cached)
		default:
			err = b.serveRing(far, depth)
		}
		k.served <- errors.Join(err, far.Close())
	})
	return k, nil
}

// serveVerbs registers what one-sided requests reach.
func (b *bench) serveVerbs() error {
	e, err := extent.New(b.pool, 0, uint64(b.cfg.Size), nil)
	if err != nil {
		return err
	}
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return err
	}
	if b.adapt, err = verbs.NewAdapter(key); err != nil {
		return err
	}
	b.domain, b.near = b.adapt.NewDomain(8), b.adapt.NewDomain(1)
	b.region, err = b.domain.Register(verbs.RegionConfig{
		Store: e, Length: e.Size(), Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic, Allowed: verbs.AllSemantics,
	})
	return err
}

// verbsClient does one-sided requests.
type verbsClient struct {
	conn, server *stream.Conn
	stag         uint32
	local        [][]byte
	got          []verbs.Completion
	posts        []verbs.Work
	atomics      bool
}

func (b *bench) dialVerbs(near, far net.Conn, depth int, polled bool) (client, error) {
	cfg := stream.DefaultConfig()
	cfg.Verbs.IRD, cfg.Verbs.ORD, cfg.Verbs.Sends = 2*depth, 2*depth, 2*depth
	ours := cfg
	cfg.Loops = b.loops
	ours.Polled = true // who waits reads
	if !polled {
		ours.Spin = 0
	}
	served := make(chan error, 1)
	var server *stream.Conn
	go serving(func() { // what it starts is the server's, too
		var err error
		server, err = stream.Server(far, b.domain, cfg)
		served <- err
	})
	conn, err := stream.Client(near, b.near, ours)
	if err = errors.Join(err, <-served); err != nil {
		return nil, err
	}
	k := &verbsClient{conn: conn, server: server, stag: b.region.STag(), got: make([]verbs.Completion, depth), atomics: b.cfg.Atomics}
	for range depth {
		k.local = append(k.local, make([]byte, b.cfg.Block))
	}
	return k, nil
}

// start reads, or writes and then reads nothing, whose completion says that what was written is in its place (RFC 5040, 5.5).
func (k *verbsClient) start(slot int, write bool, offset uint64) error {
	w := verbs.Work{ID: uint64(slot), Op: wire.ReadReq, Local: k.local[slot], STag: k.stag, Offset: offset}
	if k.atomics {
		w.Op, w.Local, w.Atomic, w.Operand = wire.AtomicReq, nil, wire.FetchAdd, wire.Operand{Data: 1}
	}
	if !write {
		k.posts = append(k.posts, w)
		return nil
	}
	w.Op, w.Quiet = wire.Write, true
	k.posts = append(k.posts, w, verbs.Work{ID: uint64(slot), Op: wire.ReadReq, STag: k.stag})
	return nil
}

func (k *verbsClient) flush() error {
	if len(k.posts) == 0 {
		return nil
	}
	err := k.conn.Post(k.posts...)
	k.posts = k.posts[:0]
	return err
}

func (k *verbsClient) wait(ended []int) (int, error) {
	n := k.conn.Wait(k.got[:len(ended)])
	if n == 0 {
		return 0, fmt.Errorf("the connection ended: %w", k.conn.Err())
	}
	for i, x := range k.got[:n] {
		if x.Err != nil {
			return 0, x.Err
		}
		ended[i] = int(x.ID)
	}
	return n, nil
}

func (k *verbsClient) close() error { return errors.Join(k.conn.Close(), k.server.Close()) }
