package server

import (
	"errors"

	"farflash/flash/extent"
	"farflash/flash/nbd"
	"farflash/flash/nbd/volume"
	"farflash/flash/verbs"
)

// volume returns a file as an NBD volume for one connection; its tasks queue at a gate if there are limits. leave, if
// not nil, must be called when the connection ends.
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

// limited is a volume whose tasks queue at a gate.
type limited struct {
	nbd.Volume
	gate *gate
}

// Start implements nbd.Volume. Tasks queue individually, so that none is delayed by the cost of another.
func (l limited) Start(tasks []*nbd.Task) {
	for _, t := range tasks {
		l.gate.enter(cost(t), t)
	}
}

// cost is the number of bytes that a task makes the device read or write. Freed pages cost no bytes, and neither do
// flushes, whose data were charged when written; both count as operations only.
func cost(t *nbd.Task) int {
	switch {
	case t.Kind == nbd.Flush || t.Kind == nbd.Trim:
		return 0
	case t.Kind == nbd.Zero && !t.NoHole:
		end := t.Offset + uint64(t.Length)
		if first, last := (t.Offset+pageSize-1)/pageSize, end/pageSize; first < last {
			return int(t.Length) - int(last-first)*pageSize
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

// store returns a file as a store for one iWARP connection; its accesses queue at a gate if there are limits.
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

// waiting is a store whose accesses queue at a gate first.
type waiting struct {
	*extent.Extent // also a verbs.Reporter
	gate           *gate
}

// behind notifies a gate when an access has its data. The access has already passed the gate.
type behind struct{ gate *gate }

// Enter implements extent.Gate.
func (behind) Enter(_ int, begin func()) { begin() }

// Leave implements extent.Gate.
func (b behind) Leave(bytes int) { b.gate.leave(bytes) }

// withdrawn is the Private of an access that was withdrawn before it reached the store.
type withdrawn struct{}

var errGone = errors.New("the connection is closed")

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
