package server

import (
	"errors"

	"farflash/flash/extent"
	"farflash/flash/nbd"
	"farflash/flash/nbd/volume"
	"farflash/flash/verbs"
)

// volume is a file over NBD, for one connection, whose tasks wait for their turn if there are limits. leave is called
// when the connection ends; it may be nil.
func (s *Server) volume(name string, f File) (v nbd.Volume, leave func(), err error) {
	v, err = volume.New(s.cfg.Pool, f.Base, f.Size)
	x := s.gates.of(name)
	if x == nil || err != nil {
		return v, nil, err
	}
	l := limited{v, x}
	x.begin, x.refuse = l.begin, l.refuse
	return l, x.shut, nil
}

// limited is a volume whose tasks wait for their turn.
type limited struct {
	nbd.Volume
	gate *gate
}

// Start implements nbd.Volume. Tasks wait one by one, so that none waits for the cost of another.
func (l limited) Start(tasks []*nbd.Task) {
	for _, t := range tasks {
		l.gate.enter(cost(t), t)
	}
}

// cost is how many bytes a task has the device read or write. Pages that are freed, and flushes, of what was paid for
// when it was written, are operations without bytes.
func cost(t *nbd.Task) int {
	switch {
	case t.Kind == nbd.Flush || t.Kind == nbd.Trim:
		return 0
	case t.Kind == nbd.Zero && !t.NoHole:
		end := t.Offset + uint64(t.Length)
		if first, last := (t.Offset+Page-1)/Page, end/Page; first < last {
			return int(t.Length) - int(last-first)*Page
		}
	}
	return int(t.Length)
}

func (l limited) begin(what any) {
	t := what.(*nbd.Task)
	n, done := cost(t), t.Done
	t.Done = func(t *nbd.Task) {
		t.Done = done
		l.gate.leave(n)
		done(t)
	}
	l.Volume.Start([]*nbd.Task{t})
}

func (l limited) refuse(what any) {
	t := what.(*nbd.Task)
	t.Err = nbd.ESHUTDOWN
	t.Done(t)
}

// store is a file over iWARP, for one connection, whose accesses wait for their turn if there are limits.
func (s *Server) store(name string, f File) (verbs.Store, error) {
	x := s.gates.of(name)
	if x == nil {
		return extent.New(s.cfg.Pool, f.Base, f.Size, nil)
	}
	e, err := extent.New(s.cfg.Pool, f.Base, f.Size, behind{x})
	x.begin = func(what any) { e.Get(what.(*verbs.Access)) }
	return waiting{e, x}, err
}

var _ interface {
	verbs.Reporter
	verbs.Forgetter
} = waiting{}

// waiting is a store whose accesses wait before it is asked for them.
type waiting struct {
	*extent.Extent // which reports what is lost, too
	gate           *gate
}

// behind tells a gate when an access has what it asked for. The access has waited already.
type behind struct{ gate *gate }

// Enter implements extent.Gate.
func (behind) Enter(_ int, begin func()) { begin() }

// Leave implements extent.Gate.
func (b behind) Leave(bytes int) { b.gate.leave(bytes) }

// withdrawn is the Private of an access that the store was never asked for.
type withdrawn struct{}

var errGone = errors.New("the connection has ended")

// Get implements verbs.Store.
func (w waiting) Get(a *verbs.Access) { w.gate.enter(a.Length, a) }

// Forget implements verbs.Forgetter.
func (w waiting) Forget(a *verbs.Access) {
	if w.gate.withdraw(a) {
		a.Private = withdrawn{}
		a.Fail(errGone)
	}
}

// Put implements verbs.Store.
func (w waiting) Put(a *verbs.Access) {
	if a.Private == (withdrawn{}) {
		a.Done(nil)
		return
	}
	w.Extent.Put(a)
}
