// Package volume is an nbd.Volume over a range of a pool of flash/ctl: a file, or the whole of it.
//
// File is its only type. What a client reads is lent from the pool's own pages and copied by nobody but the kernel;
// what was never written is told as a hole and takes no page. All pages that commands of one batch touch are asked
// for together.
//
// It leaves out names, rights and growth, which are those of who opens files.
package volume

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/nbd"
)

// File is bytes [base, base+size) of a pool. It is one user of it: of what is lost, one FLUSH is told, so each
// connection has a File of its own.
type File struct {
	pool       *ctl.Pool
	user       *ctl.User
	base, size uint64
}

// frames is how many a pool has to have: several times what one task may ask for.
const frames = 4 * nbd.Window / ctl.Page

// New returns a volume of a range, which begins at a page.
func New(pool *ctl.Pool, base, size uint64) (*File, error) {
	if pool.Frames() < frames {
		return nil, fmt.Errorf("volume: a pool of %d frames; use at least %d", pool.Frames(), frames)
	}
	if base%ctl.Page != 0 || size > ^uint64(0)-base {
		return nil, fmt.Errorf("volume: %d bytes at %d are no file of a pool", size, base)
	}
	return &File{pool: pool, user: pool.User(base, size), base: base, size: size}, nil
}

// Size implements nbd.Volume.
func (f *File) Size() uint64 { return f.size }

// trimmed is how many pages are trimmed at once: others get at the pool in between.
const trimmed = 32768

// batch is what one Start asks for. It is kept for the next one.
type batch struct{ wants []ctl.Want }

var batches = sync.Pool{New: func() any { return new(batch) }}

// work is what the volume keeps of a task.
type work struct {
	file  *File
	task  *nbd.Task
	left  atomic.Int32  // pages that are on the way, and one for who asks
	err   atomic.Uint32 // the first error
	slots []*slot
	used  int
	at    uint64 // of a trim: the page that is next
	end   uint64
	next  func(error)
	flush func(error)
}

// slot is a page of a task.
type slot struct {
	work *work
	ref  ctl.Ref
	have bool
	from uint32 // of the task's bytes, the first in this page
	n    uint32
	in   uint32 // where that is in the page
	at   int    // of a read: its piece
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
	if lane := tasks[0].Lane; lane == 0 && len(b.wants) == 1 && tasks[0].Alone && b.wants[0].Mode == ctl.Reading {
		f.pool.GetAlone(b.wants[0].Page, b.wants[0].Fn)
	} else {
		f.pool.GetAll(lane, b.wants)
	}
	clear(b.wants)
	b.wants = b.wants[:0]
	batches.Put(b)
	for i, t := range tasks {
		tasks[i] = nil // it may be used for something else as soon as it is done
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

// pages asks for the pages of the task's range, of those that are read only if they have content.
func (w *work) pages(b *batch, mode ctl.Mode) {
	t := w.task
	for from := uint32(0); from < t.Length; {
		at := w.file.base + t.Offset + uint64(from)
		n := min(t.Length-from, uint32(ctl.Page-at%ctl.Page))
		page := at / ctl.Page
		switch {
		case mode == ctl.Reading && !w.file.pool.Holds(page):
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
				// Something that is not nil, so that holes on both sides do not merge over it.
				t.Pieces = append(t.Pieces, nbd.Piece{Data: []byte{}})
			}
		}
		from += n
	}
}

// want asks for one page.
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

// gotten is the page, or why not.
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

// done ends a page.
func (s *slot) done(err error) {
	s.work.note(err)
	s.work.step()
}

// note notes the first error.
func (w *work) note(err error) {
	if err != nil {
		w.err.CompareAndSwap(0, uint32(errno(err)))
	}
}

// step ends the task when everything has come.
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

// errno is an error as the protocol has it.
func errno(err error) nbd.Errno {
	switch {
	case errors.Is(err, ctl.ErrFull):
		return nbd.ENOSPC
	case errors.Is(err, ctl.ErrClosed):
		return nbd.ESHUTDOWN
	case errors.Is(err, ctl.ErrReadOnly):
		return nbd.EPERM
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

// clear asks for pages that are zeroed only in part, or that keep their room; whole ones are trimmed by trim.
func (w *work) clear(b *batch) {
	t := w.task
	from, to := w.file.base+t.Offset, w.file.base+t.Offset+uint64(t.Length)
	first, last := (from+ctl.Page-1)/ctl.Page, to/ctl.Page // whole pages from first to before last
	w.at, w.end = first, max(first, last)
	if t.NoHole {
		w.at = w.end
		w.pages(b, ctl.Writing)
		return
	}
	if t.Kind == nbd.Trim {
		return // a part of a page may stay as it is
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

// edge zeroes bytes of one page, if it has content. If it has none, that it was trimmed may not be durable yet.
func (w *work) edge(b *batch, from, to uint64) {
	if !w.file.pool.Holds(from / ctl.Page) {
		if w.task.Durable {
			w.left.Add(1)
			w.file.pool.Await(w.flush)
		}
		return
	}
	w.want(b, from/ctl.Page, ctl.Writing, uint32(from-w.file.base-w.task.Offset), uint32(to-from))
}

// trim trims whole pages, some at a time.
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
	pages, held := f.pool.Run(first, (at+n-1)/ctl.Page-first+1)
	return min((first+pages)*ctl.Page-at, n), held, nil
}
