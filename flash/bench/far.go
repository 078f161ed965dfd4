package bench

import (
	"crypto/rand"
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

	"farflash/flash/ctl"
	"farflash/flash/extent"
	nvmeserver "farflash/flash/nvme/server"
	"farflash/flash/pool"
	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/internal/usage"
)

// far is the server side of a measurement: the files and their servers. The client side talks to it over two pipes: it
// sends a Config, which is answered with an address for each system, then questions, one at a time. When it closes its
// pipe, the servers stop and the files are removed.
type far struct {
	cfg *Config
	dir string
	own bool // it is a separate process

	pool   *ctl.Pool
	domain *verbs.Domain
	region *verbs.Region
	loops  *uring.Loops // serve verbs; nil without io_uring
	plain  string       // path of the file behind the plain protocol
	file   *os.File     // the same file, with direct I/O
	cached *os.File
	native *native // the server in C
	nvme   *nvmeserver.Server
	ring   ring // for SocketRing

	listeners []net.Listener
	mu        sync.Mutex
	begun     int // connections
	ended     int
	fewer     *sync.Cond // signals the end of a connection
	errs      []error    // from connections that have ended
}

// greeting is what the client side needs to know.
type greeting struct {
	Error     string
	Addresses [systems]string
	STag      uint32 // region for one-sided requests
	Plain     string // path of the file behind the plain protocol
	// Processors are those available to the servers.
	Processors []int
}

// question asks for the servers' state. It is answered when Ended connections, which the client side has made and
// closed, have ended on this side too, and, if Idle is set, all those of NVMe/TCP.
type question struct {
	Ended int
	Idle  bool
}

// state is the servers' cumulative state.
type state struct {
	Error string
	Spent time.Duration // processor time: of the server process, if separate, and of the server in C
	Reads int64         // device reads by the pool
	Sum   uint64        // sum of the words that atomics add to
	// Stores is device reads for each system of key-value stores.
	Stores []int64 `json:",omitempty"`
}

// Serve runs the server side as a separate process; in and out are the pipes to Config.Server.
func Serve(in io.Reader, out io.Writer) error { return serve(in, out, true) }

func serve(in io.Reader, out io.Writer, own bool) error {
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	var c Config
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("bench: reading the server's configuration: %w", err)
	}
	s, err := setUp(&c, own)
	if err != nil {
		return e.Encode(greeting{Error: err.Error()})
	}
	mine, err := allowed()
	if err != nil {
		return errors.Join(e.Encode(greeting{Error: err.Error()}), s.close())
	}
	hello := greeting{STag: s.region.STag(), Plain: s.plain, Processors: numbers(mine)}
	for i, l := range s.listeners {
		if l != nil {
			hello.Addresses[i] = l.Addr().String()
		}
	}
	if s.native != nil {
		hello.Addresses[SocketC] = s.native.address
	}
	err = e.Encode(hello)
	for err == nil {
		var q question
		if err = d.Decode(&q); err == nil {
			err = e.Encode(s.state(q))
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // the client side has ended
	}
	return errors.Join(err, s.close())
}

func (s *far) poolPath() string { return filepath.Join(s.dir, "pool") }

// state answers a question.
func (s *far) state(q question) (a state) {
	s.mu.Lock()
	for s.ended < q.Ended {
		s.fewer.Wait()
	}
	s.mu.Unlock()
	if q.Idle {
		s.left()
	}
	s.mu.Lock()
	err := errors.Join(s.errs...)
	s.errs = nil
	s.mu.Unlock()
	if a.Reads = s.pool.Stats().Misses; s.cfg.Atomics {
		var wrong error
		a.Sum, wrong = s.sum()
		err = errors.Join(err, wrong)
	}
	if a.Spent = s.native.spent(); s.own {
		a.Spent += usage.CPU()
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// counters is the number of bytes, from the start of the file, that atomics add to.
const counters = 1 << 20

// sum adds up the words that atomics add to.
func (s *far) sum() (sum uint64, err error) {
	words := make([]byte, counters)
	if err := s.pool.ReadAt(words, 0); err != nil {
		return 0, err
	}
	for i := 0; i < len(words); i += 8 {
		sum += binary.LittleEndian.Uint64(words[i:])
	}
	return sum, nil
}

// setUp creates the files and starts the servers.
func setUp(c *Config, own bool) (s *far, err error) {
	s = &far{cfg: c, own: own, listeners: make([]net.Listener, systems)}
	s.fewer = sync.NewCond(&s.mu)
	if s.dir, err = os.MkdirTemp(c.Dir, "farflash-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	o := pool.DefaultOptions()
	o.Pool.Frames = int(c.Memory / ctl.Page)
	path := s.poolPath()
	whole := int64(c.Space * float64(c.Size))
	if _, err = pool.Format(o, uint64(whole)+1<<20, path); err != nil {
		return s, err
	}
	if err = room(path, whole); err != nil {
		return s, err
	}
	var ring bool
	serving(func() { // label the threads' work as the servers'
		if o.Loops, err = pool.Threads(o, c.Threads); err == nil {
			if s.loops = o.Loops; s.loops != nil {
				s.loops.Spin(c.Spin)
			}
			s.pool, ring, err = pool.Open(o, path)
		}
	})
	if err != nil {
		return s, err
	}
	if !ring && (slices.Contains(c.Systems, SocketRing) || slices.Contains(c.Systems, Local)) {
		return s, fmt.Errorf("bench: io_uring is unavailable; omit %v and %v", SocketRing, Local)
	}
	if err = s.fill(); err != nil {
		return s, err
	}
	// The plain protocol reads the same file. It writes to a separate one, because it would destroy the pool.
	s.plain = path
	if c.Writes > 0 {
		s.plain = filepath.Join(s.dir, "plain")
		if err = room(s.plain, c.Size); err != nil {
			return s, err
		}
	}
	if s.file, err = os.OpenFile(s.plain, os.O_RDWR|syscall.O_DIRECT, 0); errors.Is(err, syscall.EINVAL) {
		s.file, err = os.OpenFile(s.plain, os.O_RDWR, 0)
	}
	if err != nil {
		return s, err
	}
	if s.cached, err = os.OpenFile(s.plain, os.O_RDWR, 0); err != nil {
		return s, err
	}
	if err = s.register(); err != nil {
		return s, err
	}
	for _, which := range c.Systems {
		switch which {
		case Local:
		case SocketC:
			gcc, why := compiler()
			if why != "" {
				return s, fmt.Errorf("bench: %v: %s", which, why)
			}
			s.native, err = startNative(gcc, s.dir, s.plain, c.Block)
		case NVMe:
			err = s.listenNVMe()
		default:
			if which == SocketRing {
				if err = s.ring.open(c, s.plain); err != nil {
					return s, err
				}
			}
			err = s.listen(which)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// fill writes the whole range, so that reads find data.
func (s *far) fill() error {
	part := make([]byte, 1<<20)
	for at := int64(0); at < s.cfg.Size; at += int64(len(part)) {
		binary.LittleEndian.PutUint64(part, uint64(at))
		if err := s.pool.WriteAt(part[:min(int64(len(part)), s.cfg.Size-at)], uint64(at), false); err != nil {
			return err
		}
	}
	return s.pool.Sync()
}

// room allocates a file's blocks, so that no read hits a hole: ranges that read as zeros are written as zeros.
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
			err = nil // there is no old content beyond the end
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

// blocking serves the plain protocol with a thread that blocks in system calls, like a C server with a thread per
// connection: on a blocking descriptor, without the runtime's poller. The runtime runs GOMAXPROCS goroutines, and takes
// some tens of microseconds to notice that one of them is blocked in a system call. So each connection gets a P of its
// own while it is served, in a process that serves nothing else at that time.
func (s *far) blocking(nc net.Conn, file *os.File) error {
	if !s.own { // in a shared process the clients would get the extra Ps too
		return errors.Join(s.servePlain(nc, file), nc.Close())
	}
	fd, err := detach(nc)
	if err != nil {
		return err
	}
	err = syscall.SetNonblock(fd, false) // before os.NewFile, which adds non-blocking descriptors to the poller
	conn := os.NewFile(uintptr(fd), "connection")
	if err == nil {
		addPlaces(1)
		err = s.servePlain(conn, file)
		addPlaces(-1)
	}
	return errors.Join(err, conn.Close())
}

// close stops all servers and removes the files.
func (s *far) close() error {
	var errs []error
	if s.nvme != nil {
		errs = append(errs, s.nvme.Shutdown())
		s.listeners[NVMe] = nil
	}
	for _, l := range s.listeners {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	s.mu.Lock()
	for s.ended < s.begun { // the client side has closed them
		s.fewer.Wait()
	}
	errs = append(errs, s.errs...)
	s.mu.Unlock()
	if s.region != nil {
		s.region.Deregister()
	}
	if s.native != nil {
		errs = append(errs, s.native.stop())
	}
	errs = append(errs, s.ring.close())
	if s.pool != nil {
		errs = append(errs, s.pool.Close())
	}
	if s.loops != nil {
		errs = append(errs, s.loops.Close())
	}
	for _, f := range []*os.File{s.file, s.cached} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// register creates the region for one-sided requests.
func (s *far) register() error {
	e, err := extent.New(s.pool, 0, uint64(s.cfg.Size), nil)
	if err != nil {
		return err
	}
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		return err
	}
	adapter, err := verbs.NewAdapter(key)
	if err != nil {
		return err
	}
	s.domain = adapter.NewDomain(8)
	s.region, err = s.domain.Register(verbs.RegionConfig{
		Store: e, Length: e.Size(), Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic,
		Allowed: verbs.AllSemantics,
	})
	return err
}

// listen serves a system on its own address. A client first sends its maximum number of outstanding requests.
func (s *far) listen(which System) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listeners[which] = l
	go serving(func() { // label goroutines started here as the servers'
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.begun++
			s.mu.Unlock()
			go func() {
				err := s.connection(which, nc)
				s.mu.Lock()
				defer s.mu.Unlock()
				if err != nil {
					s.errs = append(s.errs, fmt.Errorf("%v: %w", which, err))
				}
				s.ended++
				s.fewer.Broadcast()
			}()
		}
	})
	return nil
}

// connection serves one connection until its client closes it.
func (s *far) connection(which System, nc net.Conn) error {
	var first [4]byte
	if _, err := io.ReadFull(nc, first[:]); err != nil {
		return errors.Join(over(err), nc.Close())
	}
	depth := int(binary.LittleEndian.Uint32(first[:]))
	var err error
	switch which {
	case Verbs, VerbsPolled:
		cfg := verbsConfig(depth)
		cfg.Loops, cfg.Verbs.Window = s.loops, s.cfg.window(depth)
		c, err := stream.Server(nc, s.domain, cfg)
		if err != nil {
			return err
		}
		<-c.Done()
		return c.Close()
	case Socket:
		return s.blocking(nc, s.file)
	case SocketCached:
		return s.blocking(nc, s.cached)
	case SocketRing:
		err = s.serveRing(nc, depth)
	}
	return errors.Join(err, nc.Close())
}

// verbsConfig is the configuration of both ends of a connection.
func verbsConfig(depth int) stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Verbs.IRD, cfg.Verbs.ORD, cfg.Verbs.Sends = 2*depth, 2*depth, 2*depth
	return cfg
}
