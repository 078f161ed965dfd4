// Package recorder writes the operations of a server to a file, as a trace that farflash can replay (format "farflash",
// package workload/trace/record). The file has offsets and lengths, names of exports and addresses of clients, and no
// data.
//
// Take formats an operation into a buffer. A goroutine writes it every second, or earlier if there is much. Operations
// do not wait for the file: those that come while too much waits to be written, or that cannot be written, are lost and
// counted. The file grows to half of the size that both may have; then it is renamed to its name with ".1" at the end,
// and replaces an earlier one.
//
// It leaves out the content, failed operations' errors, and cache hints.
package recorder

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"farflash/flash/meter"
	"farflash/workload/trace/record"
)

// Config configures a Recorder.
type Config struct {
	Path string
	Size int64 // maximum size of the file and the one before it, in bytes; at least Least
	Log  *slog.Logger
}

// Least is the least size.
const Least = 1 << 20

const header = record.Header + "\n"

// The buffer is written from half on, and what would make it longer than most is lost.
const (
	half = 64 << 10
	most = 8 << 20
)

// Recorder records operations. Take is safe for concurrent use.
type Recorder struct {
	cfg  Config
	file *os.File
	size int64 // of its whole lines
	torn bool  // it may have more than that
	fail bool  // the last write failed

	mu      sync.Mutex
	buf     []byte
	lines   int64 // in buf
	written int64
	lost    int64

	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}
}

// New opens the file. One that exists must be a recording, and is continued: a last line that is cut off, as after a
// power cut, is removed.
func New(cfg Config) (*Recorder, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Size < Least {
		return nil, fmt.Errorf("recorder: a recording of %d bytes; give at least %d", cfg.Size, Least)
	}
	r := &Recorder{cfg: cfg, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("recorder: %w", err)
	}
	go r.run()
	return r, nil
}

// open opens the file, behind its last whole line.
func (r *Recorder) open() (err error) {
	if r.file, err = os.OpenFile(r.cfg.Path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.file.Close())
		}
	}()
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", r.cfg.Path)
	}
	first := make([]byte, len(header))
	n, err := r.file.ReadAt(first, 0)
	switch {
	case err != nil && err != io.EOF:
		return err
	case !strings.HasPrefix(header, string(first[:n])):
		return fmt.Errorf("%s exists and is no recording; give another name", r.cfg.Path)
	case n < len(header):
		r.size = 0
	default:
		if r.size, err = whole(r.file, info.Size()); err != nil {
			return err
		}
	}
	return r.cut()
}

// whole returns the size of a file up to the end of its last whole line. It has one.
func whole(f io.ReaderAt, size int64) (int64, error) {
	b := make([]byte, half)
	for {
		from := max(size-half, 0)
		n, err := f.ReadAt(b[:size-from], from)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		size = from
	}
}

// Take records an operation that has ended. It does not wait for the file.
func (r *Recorder) Take(t *meter.Trace) {
	x := record.Operation{Export: t.Export, Session: t.Peer, Offset: t.Offset, Length: t.Bytes}
	switch t.Kind {
	case meter.Read:
		x.Op = "read"
	case meter.Write:
		x.Op = "write"
	case meter.Flush:
		x.Op, x.Offset, x.Length = "flush", 0, 0
	case meter.Trim, meter.Zero:
		x.Op = "trim"
	default:
		return
	}
	if t.Failure == meter.Dropped || x.Length == 0 && t.Kind != meter.Flush {
		return
	}
	x.At, _ = t.Time(meter.Arrived)
	end, ok := t.Time(meter.Sent)
	if !ok {
		end, ok = t.Time(meter.Done)
	}
	x.Latency, x.Timed = end.Sub(x.At), ok
	r.mu.Lock()
	if len(r.buf) > most {
		r.lost++
		r.mu.Unlock()
		return
	}
	r.buf = record.Append(r.buf, &x)
	r.lines++
	full := len(r.buf) > half
	r.mu.Unlock()
	if full {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// Counts returns how many operations are in files, and how many were lost.
func (r *Recorder) Counts() (written, lost int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.written, r.lost
}

// Close writes the rest. No operation may be passed to Take any more.
func (r *Recorder) Close() error {
	close(r.stop)
	<-r.ended
	return r.file.Close()
}

func (r *Recorder) count(written, lost int64) {
	r.mu.Lock()
	r.written += written
	r.lost += lost
	r.mu.Unlock()
}

func (r *Recorder) run() {
	defer close(r.ended)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var spare []byte
	for over := false; !over; {
		select {
		case <-r.wake:
		case <-tick.C:
		case <-r.stop:
			over = true
		}
		r.mu.Lock()
		b, lines := r.buf, r.lines
		r.buf, r.lines = spare[:0], 0
		r.mu.Unlock()
		spare = b
		if lines == 0 {
			continue
		}
		done, err := r.write(b)
		if err != nil {
			written := int64(bytes.Count(b[:done], []byte{'\n'}))
			r.count(written, lines-written)
		} else {
			r.count(lines, 0)
		}
		_, lost := r.Counts()
		switch {
		case err != nil && !r.fail:
			r.cfg.Log.Error("operations are not recorded; requests go on", "file", r.cfg.Path, "error", err)
		case err == nil && r.fail:
			r.cfg.Log.Info("operations are recorded again", "file", r.cfg.Path, "lost", lost)
		}
		r.fail = err != nil
	}
}

// write appends lines to the file. It returns how many bytes of them it has written, which are whole lines.
func (r *Recorder) write(b []byte) (done int, err error) {
	if r.torn {
		if err := r.cut(); err != nil {
			return 0, err
		}
	}
	for done < len(b) {
		rest := b[done:]
		if left := r.cfg.Size/2 - r.size - int64(len(header)); int64(len(rest)) > left {
			n := bytes.LastIndexByte(rest[:max(left, 0)], '\n') + 1
			if n == 0 && r.size > 0 {
				if err := r.rotate(); err != nil {
					return done, err
				}
				continue
			}
			rest = rest[:max(n, bytes.IndexByte(rest, '\n')+1)]
		}
		head := 0
		if r.size == 0 {
			if head, err = r.file.WriteString(header); err != nil {
				return done, errors.Join(err, r.cut())
			}
		}
		n, err := r.file.Write(rest)
		if err != nil {
			return done, errors.Join(err, r.cut())
		}
		r.size += int64(head + n)
		done += n
	}
	return done, nil
}

// cut removes what follows the whole lines.
func (r *Recorder) cut() error {
	err := r.file.Truncate(r.size)
	if err == nil {
		_, err = r.file.Seek(r.size, io.SeekStart)
	}
	r.torn = err != nil
	return err
}

// rotate begins a new file. If it cannot, the old one stays.
func (r *Recorder) rotate() error {
	next, err := os.OpenFile(r.cfg.Path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = os.Rename(r.cfg.Path, r.cfg.Path+".1"); err == nil || errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(r.cfg.Path+".new", r.cfg.Path)
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	old := r.file
	r.file, r.size, r.torn = next, 0, false
	return old.Close()
}
