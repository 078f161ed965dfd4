package live

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/cfs/transfer"
	"farflash/flash/ctl"
)

// The protocol: frames of a kind, a length of four bytes, big-endian, and that number of bytes. A client sends one
// frame with the path of a device, and then for each request a frame with it, in JSON, followed by those of Put's
// stream. The server answers each with the frames of Get's stream and one with the answer.
const (
	frameHello = 'h'
	frameAsk   = 'q'
	frameData  = 'd'
	frameEnd   = 'e' // of Put's stream; one with a text says that the stream could not be read
	frameReply = 'r'
)

// Limits of frames in bytes: of streams, and of all others a server accepts. A client accepts any answer.
const (
	mostData = 1 << 20
	mostAsk  = 64 << 10
)

// answer is the server's answer in JSON.
type answer struct {
	Reply Reply
	Error string   `json:",omitempty"`
	Is    []string `json:",omitempty"` // names of errors that it wraps
}

// known are the errors that keep their identity on the way.
var known = map[string]error{
	"not exist": fs.ErrNotExist, "exist": fs.ErrExist, "permission": fs.ErrPermission, "closed": fs.ErrClosed,
	"name": cfs.ErrName, "not dir": cfs.ErrNotDir, "is dir": cfs.ErrIsDir, "not empty": cfs.ErrNotEmpty,
	"inside": cfs.ErrInside, "too large": cfs.ErrTooLarge, "busy": cfs.ErrBusy, "full": ctl.ErrFull,
	"read only": ctl.ErrReadOnly, "damaged": ctl.ErrDamaged, "pool closed": ctl.ErrClosed, "eio": syscall.EIO,
	"interrupted": transfer.ErrInterrupted,
}

// remote is an error of the serving process.
type remote struct {
	text string
	is   []error
}

func (e *remote) Error() string   { return e.text }
func (e *remote) Unwrap() []error { return e.is }

// conn is one end of a connection.
type conn struct {
	net.Conn
	in *bufio.Reader
}

func (c *conn) send(kind byte, b []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(b)))
	_, err := (&net.Buffers{head, b}).WriteTo(c.Conn)
	return err
}

// receive returns the next frame, of at most the given number of bytes, in b if it fits.
func (c *conn) receive(b []byte, most uint32) (kind byte, got []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > most {
		return 0, nil, fmt.Errorf("a frame of %d bytes; at most %d are allowed", n, most)
	}
	if uint32(cap(b)) < n {
		b = make([]byte, n)
	}
	_, err = io.ReadFull(c.in, b[:n])
	return head[0], b[:n], err
}

// ErrAbsent is the error of Dial if no process serves the pool with a Server.
var ErrAbsent = errors.New("no process serves it")

// Dial connects to the process that serves a pool with one of these devices, over the given socket or, if that is
// empty, over the one beside a device.
func Dial(socket string, devices ...string) (*Files, error) {
	for _, device := range devices {
		at := cmp.Or(socket, Socket(device))
		nc, err := net.DialTimeout("unix", at, 5*time.Second)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil, err
		case err != nil:
			continue // there is none, or a killed process has left it
		}
		c := &conn{nc, bufio.NewReader(nc)}
		path, err := filepath.Abs(device)
		if err == nil {
			err = c.send(frameHello, []byte(path))
		}
		if err == nil {
			_, err = c.reply(nil)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", at, err), nc.Close())
		}
		return &Files{conn: c}, nil
	}
	return nil, ErrAbsent
}

// gone explains an error of the connection.
func gone(err error) error {
	return fmt.Errorf("%w: the connection to the serving process was lost: %w", syscall.EIO, err)
}

// do executes a request by the serving process.
func (c *conn) do(ctx context.Context, r Request, in io.Reader, out io.Writer) (Reply, error) {
	ask, err := json.Marshal(r)
	if err != nil {
		return Reply{}, err
	}
	if len(ask) > mostAsk {
		return Reply{}, fmt.Errorf("%d bytes of names: %w", len(ask), cfs.ErrName)
	}
	if err := c.send(frameAsk, ask); err != nil {
		return Reply{}, gone(err)
	}
	switch r.Op {
	case Put:
		return c.put(ctx, in)
	case Get:
		defer context.AfterFunc(ctx, func() { _ = c.Close() })()
		y, err := c.reply(out)
		if ctx.Err() != nil {
			err = fmt.Errorf("%w before the copy was complete", transfer.ErrInterrupted)
		}
		return y, err
	}
	return c.reply(nil)
}

// The states of a stream that is sent. The first to change it decides whether it is complete or interrupted.
const (
	streaming = iota
	complete
	interrupted
)

// put sends a stream. It ends early if the server has answered already, which is then an error.
func (c *conn) put(ctx context.Context, in io.Reader) (Reply, error) {
	var state atomic.Int32
	var size atomic.Int64
	failed := make(chan error, 1)
	go func() { // reading can block for ever
		b := make([]byte, mostData)
		for {
			n, err := io.ReadFull(in, b)
			if n > 0 && c.send(frameData, b[:n]) != nil {
				return // the answer says why
			}
			size.Add(int64(n))
			switch {
			case err == nil:
				continue
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
				err = nil
			}
			if !state.CompareAndSwap(streaming, complete) {
				return
			}
			if err == nil {
				_ = c.send(frameEnd, nil) // likewise
				return
			}
			failed <- err
			_ = c.send(frameEnd, []byte(err.Error())) // likewise
			return
		}
	}()
	defer context.AfterFunc(ctx, func() {
		if state.CompareAndSwap(streaming, interrupted) {
			_ = c.Close() // never mind: the server ends with it
		}
	})()
	y, err := c.reply(nil)
	if state.Load() == interrupted {
		return y, fmt.Errorf("%w after %d bytes; no file was created", transfer.ErrInterrupted, size.Load())
	}
	select {
	case err = <-failed:
	default:
	}
	return y, err
}

// reply receives the answer to a request, and copies the stream before it to out.
func (c *conn) reply(out io.Writer) (Reply, error) {
	var b []byte
	for {
		kind, got, err := c.receive(b, 1<<31)
		switch {
		case err != nil:
			return Reply{}, gone(err)
		case kind == frameData && out != nil:
			if _, err := out.Write(got); err != nil {
				return Reply{}, errors.Join(fmt.Errorf("%w: %w", transfer.ErrLocal, err), c.Close())
			}
			b = got
			continue
		case kind != frameReply:
			return Reply{}, gone(fmt.Errorf("an unexpected frame %q", kind))
		}
		var a answer
		if err := json.Unmarshal(got, &a); err != nil {
			return Reply{}, gone(err)
		}
		if a.Error == "" {
			return a.Reply, nil
		}
		e := &remote{text: a.Error}
		for _, name := range a.Is {
			if known[name] != nil {
				e.is = append(e.is, known[name])
			}
		}
		return a.Reply, e
	}
}
