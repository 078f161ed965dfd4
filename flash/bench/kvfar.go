package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/kv"
	"farflash/flash/pool"
	"farflash/flash/server"
	"farflash/flash/uring"
	"farflash/internal/usage"
)

// kvFar is the servers' side of a measurement of key-value stores, which is asked as far is.
type kvFar struct {
	cfg *KVConfig
	dir string
	own bool // it is a separate process
	g   kv.Geometry

	loops   *uring.Loops
	pool    *ctl.Pool
	server  *server.Server
	handle  *device.Handle
	ring    *uring.Device
	plain   [kvSystems]*kvPlain
	running sync.WaitGroup
	mu      sync.Mutex
	ended   int
	fewer   *sync.Cond
	errs    []error
}

// kvPlain is a system whose server runs the table.
type kvPlain struct {
	file     *kvFile
	store    *kv.Store
	listener net.Listener
}

// kvGreeting is what the clients' side needs to know.
type kvGreeting struct {
	Error      string
	Addresses  [kvSystems]string
	Processors []int
}

// ServeKV is Serve for key-value stores.
func ServeKV(in io.Reader, out io.Writer) error { return serveKV(in, out, true) }

func serveKV(in io.Reader, out io.Writer, own bool) error {
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	var c KVConfig
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("bench: reading the server's configuration: %w", err)
	}
	hello := kvGreeting{}
	mine, err := allowed()
	if err != nil {
		return e.Encode(kvGreeting{Error: err.Error()})
	}
	hello.Processors = numbers(mine)
	s := &kvFar{cfg: &c, own: own}
	s.fewer = sync.NewCond(&s.mu)
	if err := s.setUp(&hello); err != nil {
		return e.Encode(kvGreeting{Error: errors.Join(err, s.close()).Error()})
	}
	err = e.Encode(hello)
	for err == nil {
		var q question
		if err = d.Decode(&q); err == nil {
			err = e.Encode(s.state(q))
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the clients' side has ended
	}
	return errors.Join(err, s.close())
}

// state answers a question.
func (s *kvFar) state(q question) (a state) {
	s.mu.Lock()
	for s.ended < q.Ended {
		s.fewer.Wait()
	}
	err := errors.Join(s.errs...)
	s.mu.Unlock()
	a.Stores = make([]int64, kvSystems)
	if s.pool != nil {
		a.Stores[KVVerbs] = s.pool.Stats().Misses
	}
	for i, x := range s.plain {
		if x != nil {
			a.Stores[i] = x.file.reads.Load()
		}
	}
	if s.own {
		a.Spent = usage.CPU()
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// setUp makes the stores, and starts the servers.
func (s *kvFar) setUp(hello *kvGreeting) (err error) {
	c := s.cfg
	if s.dir, err = os.MkdirTemp(c.Dir, "farflash-bench-"); err != nil {
		return err
	}
	if s.g, err = c.geometry(); err != nil {
		return err
	}
	for _, which := range c.Systems {
		if which == KVVerbs {
			serving(func() { hello.Addresses[which], err = s.setUpVerbs() })
		} else {
			serving(func() { hello.Addresses[which], err = s.setUpPlain(which) })
		}
		if err != nil {
			return fmt.Errorf("%v: %w", which, err)
		}
	}
	return nil
}

// setUpVerbs makes a pool with the store, and serves it.
func (s *kvFar) setUpVerbs() (address string, err error) {
	c, path := s.cfg, filepath.Join(s.dir, "pool")
	o := pool.DefaultOptions()
	o.Pool.Frames = int(c.Memory / ctl.Page)
	if _, err = pool.Format(o, uint64(s.g.Size())+64<<20, path); err != nil {
		return "", err
	}
	if o.Loops, err = pool.Threads(o, c.Threads); err != nil {
		return "", err
	}
	if s.loops = o.Loops; s.loops != nil {
		s.loops.Spin(c.Spin)
	}
	if s.pool, _, err = pool.Open(o, path); err != nil {
		return "", err
	}
	if err = cfs.Format(s.pool, cfs.Config{}); err != nil {
		return "", err
	}
	tree, err := cfs.Open(s.pool, cfs.Config{Now: time.Now})
	if err != nil {
		return "", err
	}
	f, err := tree.Create(cfs.Cred{}, "/store", 0o600, s.g.Size())
	if err != nil {
		return "", err
	}
	sc := server.DefaultConfig()
	sc.Pool, sc.Files, sc.Keeper, sc.Loops = s.pool, server.Tree(tree, cfs.Cred{}), tree, s.loops
	sc.Address, sc.Connections = "127.0.0.1:0", c.Clients+1
	if s.server, err = server.New(sc); err != nil {
		return "", errors.Join(err, f.Close())
	}
	first, err := s.g.First()
	if err == nil {
		_, err = f.WriteAt(first, 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	if err = s.server.Listen(); err != nil {
		return "", err
	}
	address, _, _ = s.server.Addresses()
	return address, nil
}

// setUpPlain makes a file with the store, and serves it.
func (s *kvFar) setUpPlain(which KVSystem) (address string, err error) {
	path := filepath.Join(s.dir, which.String())
	if err = room(path, s.g.Size()); err != nil {
		return "", err
	}
	var run func(*device.Op) error
	if which == KVSocketRing {
		if s.ring, err = uring.Open(path, device.Mode{}, 256); err != nil {
			return "", fmt.Errorf("io_uring is unavailable; omit %v: %w", which, err)
		}
		run = submitting(s.ring)
	} else {
		h, err := device.OpenHandle(path, device.Mode{})
		if err != nil {
			return "", err
		}
		s.handle, run = &h, h.Run
	}
	x := &kvPlain{file: newKVFile(run, s.g.Size()-int64(s.g.Slots)*int64(s.g.Slot), s.cfg.Memory)}
	if err = kv.Create(x.file, s.g); err != nil {
		return "", err
	}
	if x.store, err = kv.Open(context.Background(), x.file, alone{}, kv.DefaultOptions()); err != nil {
		return "", err
	}
	if x.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return "", err
	}
	s.plain[which] = x
	s.running.Go(func() { s.accept(which, x) })
	return x.listener.Addr().String(), nil
}

// accept serves connections until the listener is closed.
func (s *kvFar) accept(which KVSystem, x *kvPlain) {
	for {
		nc, err := x.listener.Accept()
		if err != nil {
			return
		}
		s.running.Go(func() {
			err := s.connection(which, x, nc)
			s.mu.Lock()
			defer s.mu.Unlock()
			if err != nil {
				s.errs = append(s.errs, fmt.Errorf("%v: %w", which, err))
			}
			s.ended++
			s.fewer.Broadcast()
		})
	}
}

// connection serves one connection until its client closes it.
func (s *kvFar) connection(which KVSystem, x *kvPlain, nc net.Conn) error {
	var first [4]byte
	if _, err := io.ReadFull(nc, first[:]); err != nil {
		return errors.Join(over(err), nc.Close())
	}
	if which == KVSocketRing {
		depth := int(min(binary.LittleEndian.Uint32(first[:]), 1024))
		return errors.Join(serveKVRing(nc, x.store, depth), nc.Close())
	}
	if !s.own { // as in far.blocking
		return errors.Join(serveKVPlain(nc, x.store, new(turns)), nc.Close())
	}
	fd, err := detach(nc)
	if err != nil {
		return err
	}
	err = syscall.SetNonblock(fd, false)
	conn := os.NewFile(uintptr(fd), "connection")
	if err == nil {
		addPlaces(1)
		err = serveKVPlain(conn, x.store, new(turns))
		addPlaces(-1)
	}
	return errors.Join(err, conn.Close())
}

// close stops the servers and removes the files.
func (s *kvFar) close() error {
	var errs []error
	for _, x := range s.plain {
		if x != nil {
			errs = append(errs, x.listener.Close())
		}
	}
	s.running.Wait() // the clients' side has closed its connections
	for _, x := range s.plain {
		if x != nil {
			errs = append(errs, x.store.Close())
		}
	}
	if s.server != nil {
		errs = append(errs, s.server.Drain(0))
	}
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.loops != nil {
		errs = append(errs, s.loops.Close())
	}
	if s.handle != nil {
		errs = append(errs, s.handle.End())
	}
	if s.ring != nil {
		errs = append(errs, s.ring.Close())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(append(slices.Clone(s.errs), errs...)...)
}
