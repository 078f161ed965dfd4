package ctl_test

import (
	"errors"
	"testing"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

// rotten is a device on which some writes to segments fail, and no other writes.
type rotten struct {
	*device.Mem
	from int64
	fail bool
	late bool // writes are held back
	held []*device.Op
}

func (r *rotten) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if r.fail && op.Kind == device.Write && op.Offset >= r.from {
			if r.held = append(r.held, op); !r.late {
				r.release()
			}
			continue
		}
		r.Mem.Submit(op)
	}
}

func (r *rotten) release() {
	held := r.held
	r.held = nil
	for _, op := range held {
		op.Finish(device.ErrIO)
	}
}

// lossy returns a pool and a function that loses the latest content of some pages.
func lossy(t *testing.T) (*rotten, *ctl.Pool, func(first, n uint64)) {
	cfg, layout := small()
	cfg.Frames, cfg.Chunk, cfg.Retries = 512, 32, 0
	layout.Segment = 64
	dev := &rotten{Mem: device.NewMem(8000 * device.Grain)}
	shape := format(t, layout, dev)
	_, dev.from = shape.Place(0)
	p := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	return dev, p, func(first, n uint64) {
		t.Helper()
		dev.fail = true
		for i := range n {
			serial++
			stamp(b, first+i, serial)
			if err := p.WriteAt(b, (first+i)*ctl.Page, false); err != nil {
				t.Fatal(err)
			}
		}
		// A sync by a user outside the lost range forces all pages to be written out; otherwise a partly filled chunk
		// would wait.
		if err := p.User(1<<40, ctl.Page).Sync(); err != nil {
			t.Fatalf("one is told of what is not his: %v", err)
		}
		dev.fail = false
	}
}

// expectLoss verifies that a Flush reports a loss, or that it does not.
func expectLoss(t *testing.T, who string, s interface{ Sync() error }, want bool) {
	t.Helper()
	if err := s.Sync(); errors.Is(err, device.ErrIO) != want || !want && err != nil {
		t.Errorf("%s: %v; to be told of a loss: %v", who, err, want)
	}
}

// TestLosses verifies that each user gets each loss in its range reported once, whoever asks first, and none outside
// its range.
func TestLosses(t *testing.T) {
	_, p, lose := lossy(t)
	a, twin, b := p.User(0, 10*ctl.Page), p.User(9*ctl.Page, 1), p.User(10*ctl.Page, 10*ctl.Page)
	lose(9, 1)
	again := p.User(0, 10*ctl.Page)
	expectLoss(t, "another one", b, false)
	expectLoss(t, "whose it was", a, true)
	expectLoss(t, "whose it was, again", a, false)
	expectLoss(t, "who has the same page", twin, true)
	expectLoss(t, "who came back before anybody was told", again, true)
	expectLoss(t, "who came afterwards", p.User(0, 10*ctl.Page), false)
	expectLoss(t, "the pool", p, true)
	expectLoss(t, "the pool, again", p, false)
	lose(10, 3)
	expectLoss(t, "another one", b, true)
	expectLoss(t, "whose it was before", a, false)
	expectLoss(t, "the pool", p, true)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestLossOfSync verifies that a failed synchronous write is also a loss for other users of the page, even though its
// writer got the error.
func TestLossOfSync(t *testing.T) {
	dev, p, _ := lossy(t)
	a := p.User(0, ctl.Page)
	dev.fail = true
	p.Get(0, ctl.Writing, func(other ctl.Ref, err error) {
		if err != nil {
			t.Fatal(err)
		}
		p.Get(0, ctl.Writing, func(r ctl.Ref, err error) {
			if err != nil {
				t.Fatal(err)
			}
			p.Put(r, ctl.Changed, heat.Auto, nil)
		})
		p.Put(other, ctl.Durable, heat.Auto, func(err error) {
			if !errors.Is(err, device.ErrIO) {
				t.Errorf("a durable put that failed: %v", err)
			}
		})
	})
	dev.fail = false
	expectLoss(t, "who wrote without waiting", a, true)
}

// TestManyLosses verifies that losses beyond lossesKept are still reported, and only to users whom they might concern.
func TestManyLosses(t *testing.T) {
	_, p, lose := lossy(t)
	a, far := p.User(0, 700*ctl.Page), p.User(1000*ctl.Page, ctl.Page)
	for range 3 {
		lose(0, 200)
	}
	back := p.User(3*ctl.Page, ctl.Page)
	expectLoss(t, "one who is far from all", far, false)
	expectLoss(t, "whose they were", a, true)
	expectLoss(t, "whose they were, again", a, false)
	expectLoss(t, "who came back before anybody was told", back, true)
	expectLoss(t, "who came afterwards", p.User(3*ctl.Page, ctl.Page), false)
}

// TestLossOfTwoFlushes verifies that two concurrent Flushes of one user both report the loss.
func TestLossOfTwoFlushes(t *testing.T) {
	dev, p, _ := lossy(t)
	a := p.User(0, 10*ctl.Page)
	dev.fail, dev.late = true, true
	p.Get(3, ctl.Whole, func(r ctl.Ref, err error) {
		if err != nil {
			t.Fatal(err)
		}
		stamp(r.Data, 3, 1)
		p.Put(r, ctl.Changed, heat.Auto, nil)
	})
	var all []error
	for range 2 {
		a.Flush(func(err error) { all = append(all, err) })
	}
	dev.release()
	if len(all) != 2 || !errors.Is(all[0], device.ErrIO) || !errors.Is(all[1], device.ErrIO) {
		t.Errorf("two flushes of a page that was lost end with %v", all)
	}
}

// TestWatch verifies that a watch of a range is called for each loss in it, until it is stopped.
func TestWatch(t *testing.T) {
	_, p, lose := lossy(t)
	n := 0
	stop := p.Watch(5*ctl.Page, 2*ctl.Page, func(err error) {
		if !errors.Is(err, device.ErrIO) {
			t.Errorf("watching: %v", err)
		}
		n++
	})
	lose(3, 6)
	if n != 2 {
		t.Errorf("%d calls for two pages of six", n)
	}
	stop()
	if lose(5, 1); n != 2 {
		t.Errorf("called after it had stopped")
	}
	expectLoss(t, "a user", p.User(5*ctl.Page, ctl.Page), true)
}

// queue is a device that holds back writes to segments until the test completes them.
type queue struct {
	*device.Mem
	from int64
	held []*device.Op
}

func (q *queue) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if op.Kind == device.Write && op.Offset >= q.from {
			q.held = append(q.held, op)
			continue
		}
		q.Mem.Submit(op)
	}
}

// end completes one of the writes held back.
func (q *queue) end(i int, err error) {
	op := q.held[i]
	q.held = append(q.held[:i:i], q.held[i+1:]...)
	if err != nil {
		op.Finish(err)
		return
	}
	q.Mem.Submit(op)
}

// TestOvertakenByWhatFails has three writes of a page in flight. The newest fails first, and there is no space to retry
// it. Waiters of the older writes must not be notified when those complete, because they were overtaken, but when the
// newest content is finally written.
func TestOvertakenByWhatFails(t *testing.T) {
	cfg, layout := small()
	cfg.Chunk, cfg.Writes, cfg.Retries = 1, 8, 0
	layout.Segment = 64
	dev := &queue{Mem: device.NewMem(2000 * device.Grain), from: 1 << 40}
	shape := format(t, layout, dev)
	_, dev.from = shape.Place(0)
	pool := open(t, cfg, dev)
	put := func(page, serial uint64, change ctl.Change, fn func(error)) {
		pool.Get(page, ctl.Writing, func(r ctl.Ref, err error) {
			if err != nil {
				t.Fatal(err)
			}
			stamp(r.Data, page, serial)
			pool.Put(r, change, heat.Auto, fn)
		})
	}
	var durable []error
	for serial := range uint64(2) {
		put(0, serial+1, ctl.Durable, func(err error) { durable = append(durable, err) })
	}
	put(0, 3, ctl.Changed, nil)
	for page := range uint64(9) {
		put(page+1, 1, ctl.Changed, nil)
	}
	if len(dev.held) != 8 {
		t.Fatalf("%d writes are under way", len(dev.held))
	}
	dev.end(2, device.ErrIO)
	dev.end(0, nil)
	dev.end(0, nil)
	if len(durable) > 0 {
		t.Errorf("two writes are over that were overtaken by one that failed, and what they were to make durable is "+
			"said to be: %v", durable)
	}
	for len(dev.held) > 0 {
		dev.end(0, nil)
	}
	if len(durable) != 2 || durable[0] != nil || durable[1] != nil {
		t.Errorf("the newest content is written after all; the older ones are told %v", durable)
	}
	draw := rng.NewStream(1, "overtaken")
	found, b := open(t, cfg, dev.Crash(&draw)), make([]byte, ctl.Page)
	if err := found.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if s, err := serialOf(b, 0); err != nil || s != 3 {
		t.Errorf("after a crash the page is %d, %v", s, err)
	}
}
