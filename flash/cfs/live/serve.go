package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/cfs/transfer"
)

// Server executes the requests of other processes on a file system.
type Server struct {
	files   *cfs.FS
	daemon  Daemon
	l       *net.UnixListener
	devices []os.FileInfo
	ctx     context.Context // ends operations in progress
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool // whether a request is in progress
	ending bool
}

// most is the number of connections at a time; more wait.
const most = 16

// Daemon is the process that serves a pool. Its functions are called concurrently.
type Daemon struct {
	// Changed is called after each request that may have changed the tree, before it is answered; may be nil.
	Changed func()
	// Report returns what Report asks for, to be encoded in JSON; may be nil.
	Report func() any
	// Control executes an order and returns its answer, to be encoded in JSON; may be nil.
	Control func(order json.RawMessage) (any, error)
}

// Serve serves the file system of a pool on these devices, until Close. The socket becomes accessible to the owner of
// this process only.
func Serve(files *cfs.FS, l *net.UnixListener, daemon Daemon, devices ...string) (*Server, error) {
	s := &Server{files: files, daemon: daemon, l: l, conns: map[net.Conn]bool{}}
	for _, path := range devices {
		info, err := os.Stat(path)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		s.devices = append(s.devices, info)
	}
	if err := os.Chmod(l.Addr().String(), 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Go(s.accept)
	return s, nil
}

func (s *Server) accept() {
	places := make(chan struct{}, most)
	for {
		places <- struct{}{}
		nc, err := s.l.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			<-places
			time.Sleep(10 * time.Millisecond) // out of descriptors, say
			continue
		}
		s.mu.Lock()
		if s.ending {
			_ = nc.Close()
		} else {
			s.conns[nc] = false
			s.running.Go(func() {
				s.serve(nc)
				s.mu.Lock()
				delete(s.conns, nc)
				s.mu.Unlock()
				_ = nc.Close()
				<-places
			})
		}
		s.mu.Unlock()
	}
}

// busy marks the beginning and the end of a request. It reports false if none may begin.
func (s *Server) busy(nc net.Conn, on bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[nc] = on
	return !s.ending
}

// serve executes the requests of one connection. Errors end it.
func (s *Server) serve(nc *net.UnixConn) {
	c := &conn{nc, bufio.NewReader(nc)}
	if nc.SetReadDeadline(time.Now().Add(10*time.Second)) != nil {
		return
	}
	kind, path, err := c.receive(nil, mostAsk)
	if err != nil || kind != frameHello || nc.SetReadDeadline(time.Time{}) != nil {
		return
	}
	info, err := os.Stat(string(path))
	if !permitted(nc) {
		err = fmt.Errorf("the pool belongs to another user: %w", fs.ErrPermission)
	}
	if err == nil && !slices.ContainsFunc(s.devices, func(x os.FileInfo) bool { return os.SameFile(x, info) }) {
		err = errors.New("the process that serves there has another pool; remove the socket if that is not meant")
	}
	if c.answer(Reply{}, err) != nil || err != nil {
		return
	}
	for {
		kind, ask, err := c.receive(nil, mostAsk)
		if err != nil || kind != frameAsk || !s.busy(nc, true) {
			return
		}
		var r Request
		if err := json.Unmarshal(ask, &r); err != nil {
			return
		}
		stream := &stream{c: c, ctx: s.ctx, over: r.Op != Put}
		y, err := s.execute(r, stream)
		if c.answer(y, err) != nil || !stream.over || !s.busy(nc, false) {
			return // a stream that was not read to its end cannot be followed by a request
		}
	}
}

// execute executes a request.
func (s *Server) execute(r Request, stream *stream) (y Reply, err error) {
	if r.Op == Report && s.daemon.Report != nil {
		y.Report, err = json.Marshal(s.daemon.Report())
		return y, err
	}
	if r.Op == Control && s.daemon.Control != nil {
		x, err := s.daemon.Control(r.Order)
		if err == nil {
			y.Report, err = json.Marshal(x)
		}
		return y, err
	}
	y, err = execute(s.ctx, s.files, r, stream, stream)
	if r.Op.changes() && s.daemon.Changed != nil {
		s.daemon.Changed()
	}
	return y, err
}

func (c *conn) answer(y Reply, err error) error {
	a := answer{Reply: y}
	if err != nil {
		a.Error = err.Error()
		for name, e := range known {
			if errors.Is(err, e) {
				a.Is = append(a.Is, name)
			}
		}
		slices.Sort(a.Is)
	}
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return c.send(frameReply, b)
}

// stream is the stream of a Put, to be read, or of a Get, to be written.
type stream struct {
	c    *conn
	ctx  context.Context // of the server
	b    []byte          // received and not read
	buf  []byte
	over bool
	err  error
}

// Read implements io.Reader. The end of the connection is not the end of the stream.
func (s *stream) Read(b []byte) (int, error) {
	for len(s.b) == 0 && s.err == nil {
		kind, got, err := s.c.receive(s.buf, mostData)
		switch {
		case err != nil && s.ctx.Err() != nil:
			s.err = fmt.Errorf("%w, because the serving process ends; no file was created", transfer.ErrInterrupted)
		case err != nil:
			// not wrapped, because an EOF would be the stream's
			s.err = errors.New("the client is gone: " + err.Error())
		case kind == frameData:
			s.b, s.buf = got, got
		case kind == frameEnd && len(got) == 0:
			s.over, s.err = true, io.EOF
		case kind == frameEnd:
			s.over, s.err = true, errors.New(string(got))
		default:
			s.err = fmt.Errorf("an unexpected frame %q", kind)
		}
	}
	if len(s.b) == 0 {
		return 0, s.err
	}
	n := copy(b, s.b)
	s.b = s.b[n:]
	return n, nil
}

// Write implements io.Writer.
func (s *stream) Write(b []byte) (int, error) {
	for at := 0; at < len(b); {
		n := min(len(b)-at, mostData)
		if err := s.c.send(frameData, b[at:][:n]); err != nil {
			return at, err
		}
		at += n
	}
	return len(b), nil
}

// Close ends the service: requests in progress get so much time, others are refused. It returns when none is left.
func (s *Server) Close(within time.Duration) error {
	s.mu.Lock()
	s.ending = true
	for nc, busy := range s.conns {
		if !busy {
			_ = nc.Close()
		}
	}
	s.mu.Unlock()
	err := s.l.Close()
	end := time.AfterFunc(within, func() {
		s.cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		for nc := range s.conns {
			_ = nc.SetReadDeadline(time.Unix(1, 0)) // the answer still passes
			_ = nc.SetWriteDeadline(time.Now().Add(time.Second))
		}
	})
	s.running.Wait()
	end.Stop()
	s.cancel()
	return err
}

// permitted reports whether the process at the other end belongs to the owner of this one, or to the superuser. The
// permissions of the socket's file say the same, but only after it was created.
func permitted(nc *net.UnixConn) bool {
	raw, err := nc.SyscallConn()
	if err != nil {
		return false
	}
	var peer *syscall.Ucred
	if raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}) != nil || err != nil {
		return false
	}
	return peer.Uid == 0 || int(peer.Uid) == os.Geteuid()
}
