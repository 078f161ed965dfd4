// Package volume implements nbd.Volume over a range of a flash/ctl pool: a file, or the whole pool.
//
// File is its only type. Reads lend the pool's own pages, so that the only copy is the kernel's. Ranges that were never
// written are returned as holes and occupy no frame. All pages touched by a batch of commands are requested together.
//
// Names, rights and growth are left to the code that opens files.
package volume

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/nbd"
)

// File is bytes [base, base+size) of a pool. It is one ctl.User: each loss of data is reported to one FLUSH only, so
// each connection needs its own File.
type File struct {
	pool       *ctl.Pool
	user       *ctl.User
	base, size uint64
}

// frames is the minimum number of frames of a pool: several times the frames of one task.
const frames = 4 * nbd.Window / ctl.Page

// New returns a volume over a range that starts on a page boundary.
func New(pool *ctl.Pool, base, size uint64) (*File, error) {
	if pool.Frames() < frames {
		return nil, fmt.Errorf("volume: the pool has %d frames; use at least %d", pool.Frames(), frames)
	}
	if base%ctl.Page != 0 || size > ^uint64(0)-base {
		return nil, fmt.Errorf("volume: %d bytes at %d are not a page-aligned range of the pool", size, base)
	}
	return &File{pool: pool, user: pool.User(base, size), base: base, size: size}, nil
}

// Size implements nbd.Volume.
func (f *File) Size() uint64 { return f.size }

// trimmed is the number of pages trimmed per call, so that other users of the pool get a turn in between.
const trimmed = 32768

// batch collects the pages that one Start requests. It is reused.
type batch struct{ wants []ctl.Want }

var batches = sync.Pool{New: func() any { return new(batch) }}

// work is the volume's state of a task.
type work struct {
	file  *File
	task  *nbd.Task
	left  atomic.Int32  // outstanding pages, plus one for the submitter
	err   atomic.Uint32 // first error
	slots []*slot
	used  int
	at    uint64 // next page of a trim
	end   uint64
	next  func(error)
	flush func(error)
}

// slot is one page of a task.
type slot struct {
	work *work
	ref  ctl.Ref
	have bool
	from uint32 // offset in the task of its first byte in this page
	n    uint32
	in   uint32 // offset in the page of that byte
	at   int    // for a read: index of its piece
	got  func(ctl.Ref, error)
	put  func(error)
}

func (f *File) work(t *nbd.Task) *work {
	w, ok := t.Private.(*work)
	if !ok {
		w = &work{}
		w.next = w.trim
		w.flush = func(err error) { w.note(err); w.step() }
		t.Private = w
	}
	w.file, w.task, w.used = f, t, 0
	w.err.Store(0)
	w.left.Store(1)
	return w
}

// Start implements nbd.Volume.
func (f *File) Start(tasks []*nbd.Task) {
	b := batches.Get().(*batch)
	for _, t := range tasks {
		w := f.work(t)
		switch t.Kind {
		case nbd.Read, nbd.Cache:
			w.pages(b, ctl.Reading)
		case nbd.Write:
			w.pages(b, ctl.Writing)
		case nbd.Zero, nbd.Trim:
			w.clear(b)
		}
	}
	if lane := tasks[0].Loop; lane == 0 && len(b.wants) == 1 && tasks[0].Sole && b.wants[0].Mode == ctl.Reading {
		f.pool.GetExclusive(b.wants[0].Page, b.wants[0].Fn)
	} else {
		f.pool.GetAll(lane, b.wants)
	}
	clear(b.wants)
	b.wants = b.wants[:0]
	batches.Put(b)
	for i, t := range tasks {
		tasks[i] = nil // the task may be reused as soon as it is done
		w := t.Private.(*work)
		switch t.Kind {
		case nbd.Flush:
			f.user.Flush(w.flush)
		case nbd.Zero, nbd.Trim:
			w.trim(nil)
		default:
			w.step()
		}
	}
}

// pages requests the pages of the task's range. For reads, pages without contents are skipped.
func (w *work) pages(b *batch, mode ctl.Mode) {
	t := w.task
	for from := uint32(0); from < t.Length; {
		at := w.file.base + t.Offset + uint64(from)
		n := min(t.Length-from, uint32(ctl.Page-at%ctl.Page))
		page := at / ctl.Page
		switch {
		case mode == ctl.Reading && !w.file.pool.MayHold(page):
			if t.Kind == nbd.Read {
				if k := len(t.Pieces); k > 0 && t.Pieces[k-1].Data == nil {
					t.Pieces[k-1].Zeros += int(n)
				} else {
					t.Pieces = append(t.Pieces, nbd.Piece{Zeros: int(n)})
				}
			}
		default:
			w.want(b, page, mode, from, n)
			if t.Kind == nbd.Read {
				// A non-nil placeholder, so that holes on either side do not merge across it.
				t.Pieces = append(t.Pieces, nbd.Piece{Data: []byte{}})
			}
		}
		from += n
	}
}

// want requests one page.
func (w *work) want(b *batch, page uint64, mode ctl.Mode, from, n uint32) {
	if w.used == len(w.slots) {
		s := &slot{work: w}
		s.got, s.put = s.gotten, s.done
		w.slots = append(w.slots, s)
	}
	s := w.slots[w.used]
	w.used++
	s.have, s.from, s.n, s.at = false, from, n, len(w.task.Pieces)
	s.in = uint32((w.file.base + w.task.Offset + uint64(from)) % ctl.Page)
	if mode == ctl.Writing && n == ctl.Page {
		mode = ctl.Whole
	}
	w.left.Add(1)
	b.wants = append(b.wants, ctl.Want{Page: page, Mode: mode, Fn: s.got})
}

// gotten receives a page, or the error of getting it.
func (s *slot) gotten(r ctl.Ref, err error) {
	w := s.work
	t := w.task
	if err != nil {
		s.done(err)
		return
	}
	switch t.Kind {
	case nbd.Read:
		s.ref, s.have = r, true
		t.Pieces[s.at].Data = r.Data[s.in:][:s.n]
		w.step()
		return
	case nbd.Cache:
		w.file.pool.Put(r, ctl.Kept, heat.Auto, s.put)
		return
	case nbd.Write:
		copy(r.Data[s.in:], t.Payload[s.from:][:s.n])
	default:
		clear(r.Data[s.in:][:s.n])
	}
	change := ctl.Changed
	if t.Durable {
		change = ctl.Durable
	}
	w.file.pool.Put(r, change, heat.Auto, s.put)
}

// done finishes a page.
func (s *slot) done(err error) {
	s.work.note(err)
	s.work.step()
}

// note records the first error.
func (w *work) note(err error) {
	if err != nil {
		w.err.CompareAndSwap(0, uint32(Errno(err)))
	}
}

// step finishes the task when all its pages are done.
func (w *work) step() {
	if w.left.Add(-1) > 0 {
		return
	}
	t := w.task
	if t.Err = nbd.Errno(w.err.Load()); t.Err != 0 && t.Kind == nbd.Read {
		w.file.Release(t)
	}
	t.Done(t)
}

// Errno maps an error of the pool, or nil, to the protocol's error number. A pool that turned read-only reports what
// made it so; EPERM is for exports that are read-only by intent, which the session refuses.
func Errno(err error) nbd.Errno {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ctl.ErrFull), errors.Is(err, syscall.ENOSPC):
		return nbd.ENOSPC
	case errors.Is(err, ctl.ErrClosed):
		return nbd.ESHUTDOWN
	case errors.Is(err, ctl.ErrRange):
		return nbd.EINVAL
	}
	return nbd.EIO
}

// Release implements nbd.Volume.
func (f *File) Release(t *nbd.Task) {
	w := t.Private.(*work)
	for _, s := range w.slots[:w.used] {
		if s.have {
			s.have = false
			f.pool.Put(s.ref, ctl.Kept, heat.Auto, nil)
			s.ref = ctl.Ref{}
		}
	}
	w.used = 0
}

// clear requests the pages that are zeroed in part, or that must keep their space; whole pages are left to trim.
func (w *work) clear(b *batch) {
	t := w.task
	from, to := w.file.base+t.Offset, w.file.base+t.Offset+uint64(t.Length)
	first, last := (from+ctl.Page-1)/ctl.Page, to/ctl.Page // whole pages are [first, last)
	w.at, w.end = first, max(first, last)
	if t.NoHole {
		w.at = w.end
		w.pages(b, ctl.Writing)
		return
	}
	if t.Kind == nbd.Trim {
		return // partial pages need not be trimmed
	}
	if first > last { // within one page
		w.edge(b, from, to)
		return
	}
	if from%ctl.Page != 0 {
		w.edge(b, from, first*ctl.Page)
	}
	if to%ctl.Page != 0 {
		w.edge(b, last*ctl.Page, to)
	}
}

// edge zeroes bytes of one page, if it has contents. If it has none, a preceding trim of the page may not be durable
// yet, so a durable task waits for that.
func (w *work) edge(b *batch, from, to uint64) {
	if !w.file.pool.MayHold(from / ctl.Page) {
		if w.task.Durable {
			w.left.Add(1)
			w.file.pool.Await(w.flush)
		}
		return
	}
	w.want(b, from/ctl.Page, ctl.Writing, uint32(from-w.file.base-w.task.Offset), uint32(to-from))
}

// trim trims the whole pages, `trimmed` at a time.
func (w *work) trim(err error) {
	w.note(err)
	if w.at == w.end || err != nil {
		w.step()
		return
	}
	at, n := w.at, min(w.end-w.at, trimmed)
	w.at += n
	w.file.pool.Trim(at, n, w.task.Durable, w.next)
}

// Extent implements nbd.Volume.
func (f *File) Extent(offset, n uint64) (length uint64, allocated bool, err error) {
	at := f.base + offset
	first := at / ctl.Page
	pages, held := f.pool.MayRun(first, (at+n-1)/ctl.Page-first+1)
	return min((first+pages)*ctl.Page-at, n), held, nil
}
