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
	"farflash/flash/pool"
	"farflash/flash/uring"
	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/internal/usage"
)

// far is the far side of a measurement: the files, what serves them, and where. The near side asks it over two pipes:
// first it sends a Config, which is answered by an address for each system, then questions, one at a time; when it
// closes its pipe, everything ends and the files go.
type far struct {
	cfg *Config
	dir string
	own bool // it has a process of its own

	pool   *ctl.Pool
	domain *verbs.Domain
	region *verbs.Region
	loops  *uring.Loops // that serve verbs; nil without io_uring
	plain  string       // the file that the plain protocol is served from
	file   *os.File     // it, around the page cache
	cached *os.File
	native *native // a server in C
	ring   ring    // of SocketRing

	listeners []net.Listener
	mu        sync.Mutex
	begun     int // connections
	ended     int
	fewer     *sync.Cond // one has ended
	errs      []error    // of those that have ended
}

// greeting is what the near side has to know.
type greeting struct {
	Error     string
	Addresses [systems]string
	STag      uint32 // of what one-sided requests reach
	Plain     string // the file that the plain protocol reads
	// Processors are those that the servers may use.
	Processors []int
}

// question asks for the servers' state. It is answered when so many connections, which the near side has made and
// closed, have ended here too.
type question struct{ Ended int }

// state is what servers have done so far.
type state struct {
	Error string
	Spent time.Duration // of processor time, if they have a process of their own, and of the server in C
	Reads int64         // of the device, by the pool
	Sum   uint64        // of what atomics add to
}

// Serve is the far side in a process of its own: in and out are its pipes, which Config.Server has made.
func Serve(in io.Reader, out io.Writer) error { return serve(in, out, true) }

func serve(in io.Reader, out io.Writer, own bool) error {
	d, e := json.NewDecoder(in), json.NewEncoder(out)
	var c Config
	if err := d.Decode(&c); err != nil {
		return fmt.Errorf("bench: nobody says what is to be served: %w", err)
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
		err = nil // the near side has ended
	}
	return errors.Join(err, s.close())
}

func (s *far) poolPath() string { return filepath.Join(s.dir, "pool") }

// state answers.
func (s *far) state(q question) (a state) {
	s.mu.Lock()
	for s.ended < q.Ended {
		s.fewer.Wait()
	}
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

// counters is how many bytes are added to by atomics, from the first on.
const counters = 1 << 20

// sum adds up what atomics add to.
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

// setUp makes the files, and whatever serves them.
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
	whole := int64(c.Room * float64(c.Size))
	if _, err = pool.Format(o, uint64(whole)+1<<20, path); err != nil {
		return s, err
	}
	if err = room(path, whole); err != nil {
		return s, err
	}
	var ring bool
	serving(func() { // so what its threads do is the servers'
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
		return s, fmt.Errorf("bench: io_uring is not to be had here; leave %v and %v out", SocketRing, Local)
	}
	if err = s.fill(); err != nil {
		return s, err
	}
	// What is read by the plain protocol is the same file; what it writes goes to one of its own, as it would destroy
	// the pool.
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

// fill writes all that will be read.
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

// blocking serves the plain protocol by a thread that waits in system calls, as a server in C with a thread for each
// connection does: on a descriptor that blocks, without the runtime's poller. The runtime lets as many goroutines run
// as there are processors, and takes some tens of microseconds to see that one of them waits in a system call and
// does not run; so while it is served each connection has a place of its own, in a process that serves nothing else
// then.
func (s *far) blocking(nc net.Conn, file *os.File) error {
	if !s.own { // else the clients would have the places, too
		return errors.Join(s.servePlain(nc, file), nc.Close())
	}
	fd, err := detach(nc)
	if err != nil {
		return err
	}
	err = syscall.SetNonblock(fd, false) // before os sees it, which gives those that do not block to the poller
	conn := os.NewFile(uintptr(fd), "connection")
	if err == nil {
		addPlaces(1)
		err = s.servePlain(conn, file)
		addPlaces(-1)
	}
	return errors.Join(err, conn.Close())
}

// close ends everything, and removes the files.
func (s *far) close() error {
	var errs []error
	for _, l := range s.listeners {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	s.mu.Lock()
	for s.ended < s.begun { // the near side has closed them
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

// register makes what one-sided requests reach.
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

// listen has a system serve whoever connects to an address of its own. A client says first how many requests it has
// under way at most.
func (s *far) listen(which System) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.listeners[which] = l
	go serving(func() { // what is started here is the servers', too
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

// connection serves one until its client goes.
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

// verbsConfig is a connection's at both ends.
func verbsConfig(depth int) stream.Config {
	cfg := stream.DefaultConfig()
	cfg.Verbs.IRD, cfg.Verbs.ORD, cfg.Verbs.Sends = 2*depth, 2*depth, 2*depth
	return cfg
}
