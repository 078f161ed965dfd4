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
	"os/exec"
	"slices"
	"syscall"

	"farflash/flash/pool"
	"farflash/flash/verbs"
	"farflash/flash/verbs/stream"
	"farflash/flash/wire"
	"farflash/internal/usage"
)

// bench is the client side of a measurement: the clients, and the pipes to the servers.
type bench struct {
	cfg  *Config
	turn int
	made int // connections to servers in Go

	greeting
	ask    *json.Encoder
	told   *json.Decoder
	end    func() error  // stops the servers
	domain *verbs.Domain // of the clients
	ring   ring          // for Local

	all     []int // processors available to this process
	clients []int // those of the clients: all, or some of them
}

// start starts the servers: in a separate process if there is a command for it, otherwise in this one.
func start(c *Config) (b *bench, err error) {
	b = &bench{cfg: c}
	cpus, err := allowed()
	if err != nil {
		return nil, err
	}
	b.all = numbers(cpus)
	servers := b.all
	if b.clients = b.all; c.Pinned && len(c.Server) > 0 && len(cpus) > 1 {
		b.clients, servers = halves(cpus)
	}
	if c.Threads == 0 {
		c.Threads = pool.DefaultThreads() // half of all processors
	}
	in, out, end, err := launch(c.Server, servers, serve)
	if err != nil {
		return nil, err
	}
	b.end = end
	b.ask, b.told = json.NewEncoder(out), json.NewDecoder(in)
	if err = b.ask.Encode(c); err == nil {
		err = b.told.Decode(&b.greeting)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: the servers: %w", err), b.end())
	}
	if b.Error != "" {
		return nil, errors.Join(errors.New(b.Error), b.end())
	}
	if slices.Contains(c.Systems, Local) {
		if err = b.ring.open(c, b.Plain); err != nil {
			return nil, errors.Join(err, b.close())
		}
	}
	var key [16]byte
	if _, err = rand.Read(key[:]); err != nil {
		return nil, errors.Join(err, b.close())
	}
	adapter, err := verbs.NewAdapter(key)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	b.domain = adapter.NewDomain(1)
	return b, nil
}

// launch starts the servers: by a command on some processors if there is one, otherwise by serve in this process.
func launch(server []string, processors []int, serve func(in io.Reader, out io.Writer, own bool) error) (
	in io.ReadCloser, out io.WriteCloser, end func() error, err error) {
	if len(server) > 0 {
		cmd := exec.Command(server[0], server[1:]...)
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // this process handles Ctrl-C
		if out, err = cmd.StdinPipe(); err != nil {
			return nil, nil, nil, err
		}
		if in, err = cmd.StdoutPipe(); err != nil {
			return nil, nil, nil, err
		}
		if err = startOn(cmd, processors); err != nil {
			return nil, nil, nil, fmt.Errorf("bench: the servers: %w", err)
		}
		return in, out, func() error {
			if err := errors.Join(out.Close(), cmd.Wait()); err != nil {
				return fmt.Errorf("bench: the servers: %w", err)
			}
			return nil
		}, nil
	}
	theirs, ours := io.Pipe()
	mine, answers := io.Pipe()
	done := make(chan error, 1)
	go serving(func() {
		err := serve(theirs, answers, false)
		done <- errors.Join(err, answers.Close())
	})
	return mine, ours, func() error { return errors.Join(ours.Close(), <-done) }, nil
}

// state queries the servers' state.
func (b *bench) state(q question) (a state, err error) {
	if err = b.ask.Encode(q); err == nil {
		err = b.told.Decode(&a)
	}
	switch {
	case err != nil:
		return a, fmt.Errorf("bench: lost the servers: %w", err)
	case a.Error != "":
		return a, errors.New(a.Error)
	}
	a.Spent += usage.CPU()
	return a, nil
}

// close stops the servers, which remove the files.
func (b *bench) close() error { return errors.Join(b.ring.close(), b.end()) }

// dial connects to a system, which serves the connection until it is closed. fd is readable when take may return
// requests.
func (b *bench) dial(s System, depth int) (k client, fd int, err error) {
	if s == Local {
		x, err := b.newLocal(depth)
		if err != nil {
			return nil, -1, err
		}
		return x, x.event, nil
	}
	if s == NVMe {
		return b.dialNVMe(depth)
	}
	nc, err := net.Dial("tcp", b.Addresses[s])
	if err != nil {
		return nil, -1, err
	}
	if s != SocketC {
		b.made++
		if _, err := nc.Write(binary.LittleEndian.AppendUint32(nil, uint32(depth))); err != nil {
			return nil, -1, errors.Join(err, nc.Close())
		}
	}
	conn, err := newSocket(nc)
	if err != nil {
		return nil, -1, err
	}
	if !s.verbs() {
		return newPlainClient(conn, b.cfg.Block), conn.fd, nil
	}
	k, err = b.dialVerbs(conn, depth)
	return k, conn.fd, err
}

// verbsClient issues one-sided requests.
type verbsClient struct {
	conn    *stream.Conn
	stag    uint32
	local   [][]byte
	got     []verbs.Completion
	posts   []verbs.Work
	atomics bool
}

func (b *bench) dialVerbs(s *socket, depth int) (client, error) {
	cfg := verbsConfig(depth)
	cfg.Polled = true // the thread polls
	conn, err := stream.Client(s, b.domain, cfg)
	if err != nil {
		return nil, err
	}
	k := &verbsClient{conn: conn, stag: b.STag, got: make([]verbs.Completion, depth), atomics: b.cfg.Atomics}
	for range depth {
		k.local = append(k.local, make([]byte, b.cfg.Block))
	}
	return k, nil
}

// start reads, or writes and then issues an empty read, whose completion implies that the data have been placed (RFC
// 5040, 5.5).
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

func (k *verbsClient) flush() (bool, error) {
	err := k.conn.Post(k.posts...)
	k.posts = k.posts[:0]
	return !k.conn.Blocked(), err
}

func (k *verbsClient) take(ended []int) (int, error) {
	n := k.conn.Poll(k.got[:len(ended)])
	if n == 0 {
		if err := k.conn.Err(); err != nil {
			return 0, fmt.Errorf("connection closed: %w", err)
		}
	}
	for i, x := range k.got[:n] {
		if x.Err != nil {
			return 0, x.Err
		}
		ended[i] = int(x.ID)
	}
	return n, nil
}

func (k *verbsClient) close() error { return k.conn.Close() }
