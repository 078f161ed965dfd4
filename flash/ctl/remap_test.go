package ctl_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// object is content that moves between addresses. Each version carries its id, so that it can be recognised anywhere.
type object struct {
	id            uint64
	version, put  uint64 // the newest; the newest that was put
	floor         uint64 // earlier versions were superseded by a durable one; 0: none may ever have been durable
	busy, dropped bool
}

// layout maps each address to its object.
type layout []*object

// mover is a pool in which objects are written and moved at random, with a model of the states that are valid after a
// power cut.
type mover struct {
	t      testing.TB
	cfg    ctl.Config
	dev    *device.Mem
	pool   *ctl.Pool
	draw   rng.Stream
	label  string
	now    layout
	states []layout // after each Remap
	acked  int      // index of the newest durable state
	held   []held
	next   uint64
	cuts   int64
	moved  int64
}

type held struct {
	ref  ctl.Ref
	o    *object
	done func()
}

// objectPage returns the page of an address: half of them are contiguous, the others far apart and across leaves of the
// table.
func (m *mover) objectPage(at int) uint64 {
	if half := len(m.now) / 2; at >= half {
		return 1<<44 - 7 + uint64(at-half)
	}
	return 3 + uint64(at)
}

func newMover(t testing.TB, seed uint64) *mover {
	m := &mover{t: t, draw: rng.NewStream(seed, "mover"), label: fmt.Sprint("seed ", seed)}
	cfg, shape := small()
	m.cfg = cfg
	m.cfg.PutThrough = m.draw.IntN(3) == 0
	m.cfg.Chunk, m.cfg.Frames = int(1+m.draw.IntN(6)), int(12+m.draw.IntN(24))
	m.cfg.Writes = int(8 + m.draw.IntN(24))
	shape.Segment, shape.LogPages, shape.OverProvision = int(8+m.draw.IntN(12)), 8+m.draw.IntN(24), 0.6
	m.dev = device.NewMem((300 + m.draw.IntN(120)) * device.Grain)
	s := format(t, shape, m.dev)
	m.now = make(layout, 2*(s.Capacity*(40+m.draw.IntN(40))/200))
	m.states = []layout{slices.Clone(m.now)}
	m.pool = open(t, m.cfg, m.dev)
	m.dev.Hold(true)
	return m
}

func (m *mover) fatalf(format string, args ...any) {
	m.t.Helper()
	m.t.Fatalf(m.label+": "+format, args...)
}

// content fills in a version of an object; contentOf decodes it, and reports whether it is a single version.
func content(b []byte, id, version uint64) {
	stamp(b, id, version)
	binary.LittleEndian.PutUint64(b[8:], id)
}

func contentOf(b []byte) (id, version uint64, err error) {
	if bytes.Equal(b, make([]byte, len(b))) {
		return 0, 0, nil
	}
	version, id = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	want := make([]byte, ctl.Page)
	content(want, id, version)
	if !bytes.Equal(b, want) {
		return 0, 0, fmt.Errorf("a mix, beginning with version %d of object %d", version, id)
	}
	return id, version, nil
}

func (m *mover) write() {
	at := int(m.draw.IntN(int64(len(m.now))))
	o := m.now[at]
	if o == nil {
		m.next++
		o = &object{id: m.next}
		m.now[at] = o
		m.states[len(m.states)-1] = slices.Clone(m.now)
	}
	if o.busy {
		return
	}
	o.busy = true
	mode, keep := ctl.Mode(1+m.draw.IntN(2)), m.draw.IntN(3) == 0
	m.pool.Get(m.objectPage(at), mode, func(r ctl.Ref, err error) {
		if err != nil {
			m.fatalf("getting object %d: %v", o.id, err)
		}
		if o.dropped {
			m.late(r, o)
			if m.draw.IntN(2) == 0 { // never becomes visible
				content(r.Data, o.id, o.version+1000)
				m.pool.Put(r, ctl.Changed, heat.Auto, nil)
				return
			}
		}
		if o.dropped || r.Fill && m.draw.IntN(8) == 0 {
			o.busy = false
			m.pool.Put(r, ctl.Kept, heat.Auto, nil)
			return
		}
		o.version++
		version := o.version
		content(r.Data, o.id, version)
		done := func() {
			o.put, o.busy = version, false
			if m.draw.IntN(3) == 0 {
				m.pool.Put(r, ctl.Durable, heat.Auto, func(err error) {
					if err != nil {
						m.fatalf("putting object %d: %v", o.id, err)
					}
					o.floor = max(o.floor, version)
				})
				return
			}
			m.pool.Put(r, ctl.Changed, heat.Auto, nil)
		}
		if keep && len(m.held) < 6 {
			m.held = append(m.held, held{r, o, done})
			return
		}
		done()
	})
}

// late checks a page given to a request whose object was dropped while it waited: it is the object or zeros, never
// another object.
func (m *mover) late(r ctl.Ref, o *object) {
	if r.Fill {
		return
	}
	if id, _, err := contentOf(r.Data); err != nil || id != 0 && id != o.id {
		m.fatalf("object %d, which was dropped, reads as object %d: %v", o.id, id, err)
	}
}

func (m *mover) read() {
	at := int(m.draw.IntN(int64(len(m.now))))
	o := m.now[at]
	m.pool.Get(m.objectPage(at), ctl.Reading, func(r ctl.Ref, err error) {
		if err != nil {
			m.fatalf("reading address %d: %v", at, err)
		}
		id, version, err := contentOf(r.Data)
		if err != nil {
			m.fatalf("reading address %d: %v", at, err)
		}
		if o != nil && !o.dropped && (id != o.id && o.version > 0 || version != o.version) {
			m.fatalf("version %d of object %d reads as version %d of object %d", o.version, o.id, version, id)
		}
		if o != nil && o.dropped {
			m.late(r, o)
		}
		if m.draw.IntN(3) == 0 && len(m.held) < 6 {
			m.held = append(m.held, held{r, o, func() { m.pool.Put(r, ctl.Kept, heat.Auto, nil) }})
			return
		}
		m.pool.Put(r, ctl.Kept, heat.Auto, nil)
	})
}

// release puts a held page after checking its content once more.
func (m *mover) release() {
	if len(m.held) == 0 {
		return
	}
	i := int(m.draw.IntN(int64(len(m.held))))
	h := m.held[i]
	m.held = slices.Delete(m.held, i, i+1)
	if h.o != nil && !h.o.dropped && h.o.version > 0 {
		if id, version, err := contentOf(h.ref.Data); err != nil || id != h.o.id || version != h.o.version {
			m.fatalf("object %d, which is held, is version %d of object %d: %v", h.o.id, version, id, err)
		}
	}
	h.done()
}

// remap moves and drops some ranges atomically.
func (m *mover) remap() {
	var steps []ctl.Step
	for range 1 + m.draw.IntN(4) {
		half := len(m.now) / 2
		n := int(1 + m.draw.IntN(min(5, int64(half))))
		pick := func() int { return int(m.draw.IntN(2))*half + int(m.draw.IntN(int64(half-n+1))) }
		from, to := pick(), pick()
		drop := m.draw.IntN(6) == 0
		if !drop && from < to+n && to < from+n {
			continue
		}
		s := ctl.Step{From: m.objectPage(from), Count: uint64(n), Drop: drop}
		gone := from
		if !drop {
			s.To, gone = m.objectPage(to), to
		}
		for k := range n {
			if o := m.now[gone+k]; o != nil {
				o.dropped, m.now[gone+k] = true, nil
			}
			if !drop {
				m.now[to+k], m.now[from+k] = m.now[from+k], nil
			}
		}
		steps = append(steps, s)
	}
	m.states = append(m.states, slices.Clone(m.now))
	m.moved++
	number, sync := len(m.states)-1, m.draw.IntN(3) == 0
	release := m.pool.Fetch(steps, func() { m.dev.Step(&m.draw) })
	err := m.pool.Remap(steps, sync, func(err error) {
		if err != nil {
			m.fatalf("%+v: %v", steps, err)
		}
		if sync {
			m.acked = max(m.acked, number)
		}
	})
	release()
	if err != nil {
		m.fatalf("%+v: %v", steps, err)
	}
}

func (m *mover) act() {
	switch k := m.draw.IntN(24); {
	case k < 7:
		m.write()
	case k < 9:
		m.read()
	case k < 11:
		m.release()
	case k < 14:
		m.remap()
	case k < 15:
		number := len(m.states) - 1
		marks := map[*object]uint64{}
		for _, o := range m.now {
			if o != nil {
				marks[o] = o.put
			}
		}
		m.pool.Flush(func(err error) {
			if err != nil {
				m.fatalf("flush: %v", err)
			}
			m.acked = max(m.acked, number)
			for o, v := range marks {
				o.floor = max(o.floor, v)
			}
		})
	default:
		m.dev.Step(&m.draw)
	}
}

// matches returns an error if the recovered versions are not a valid successor of a state.
func (m *mover) matches(state layout, ids, versions []uint64) error {
	for at, o := range state {
		switch {
		case o == nil && ids[at] != 0:
			return fmt.Errorf("address %d has object %d, it had none", at, ids[at])
		case o != nil && ids[at] == 0 && o.floor > 0:
			return fmt.Errorf("address %d has nothing, it had object %d, durable as version %d", at, o.id, o.floor)
		case o != nil && ids[at] != 0 && (ids[at] != o.id || versions[at] < o.floor || versions[at] > o.version):
			return fmt.Errorf("address %d has version %d of object %d, it had object %d, from version %d to %d", at,
				versions[at], ids[at], o.id, o.floor, o.version)
		}
	}
	return nil
}

// cut cuts the power: the recovered state must be that after one of the Remaps, and not older than the newest durable
// one.
func (m *mover) cut() {
	m.cuts++
	pool, err := ctl.Open(m.cfg, m.dev.Crash(&m.draw))
	if err != nil {
		m.fatalf("cut %d: %v", m.cuts, err)
	}
	ids, versions := make([]uint64, len(m.now)), make([]uint64, len(m.now))
	b := make([]byte, ctl.Page)
	for at := range m.now {
		if err := pool.ReadAt(b, m.objectPage(at)*ctl.Page); err != nil {
			m.fatalf("cut %d, address %d: %v", m.cuts, at, err)
		}
		if ids[at], versions[at], err = contentOf(b); err != nil {
			m.fatalf("cut %d, address %d: %v", m.cuts, at, err)
		}
	}
	var why []error
	for k := m.acked; k < len(m.states); k++ {
		err := m.matches(m.states[k], ids, versions)
		if err == nil {
			why = nil
			break
		}
		why = append(why, fmt.Errorf("state %d: %w", k, err))
	}
	if len(why) > 0 {
		m.fatalf("cut %d: found no state from the durable one, %d, to %d:\n%v", m.cuts, m.acked, len(m.states)-1,
			errors.Join(why...))
	}
	if m.draw.IntN(4) == 0 {
		for _, v := range pool.Check(true).Violations {
			m.t.Errorf("%s, cut %d: %v", m.label, m.cuts, v)
		}
	}
	if err := pool.Close(); err != nil || m.t.Failed() {
		m.fatalf("cut %d: %v", m.cuts, err)
	}
}

// end puts everything back, verifies the whole state once more and closes the pool.
func (m *mover) end() {
	for len(m.held) > 0 || m.dev.Held() > 0 {
		m.release()
		m.dev.Step(&m.draw)
	}
	m.dev.Hold(false)
	for _, v := range m.pool.Check(true).Violations {
		m.t.Errorf("%s: %v", m.label, v)
	}
	used := int64(0)
	b := make([]byte, ctl.Page)
	for at, o := range m.now {
		if err := m.pool.ReadAt(b, m.objectPage(at)*ctl.Page); err != nil {
			m.fatalf("address %d: %v", at, err)
		}
		id, version, err := contentOf(b)
		switch {
		case err != nil, o == nil && id != 0, o != nil && o.version > 0 && (id != o.id || version != o.version):
			m.fatalf("in the end address %d has version %d of object %d (%v), it should be %+v", at, version, id, err,
				o)
		case id != 0:
			used++
		}
	}
	if n, _ := m.pool.Use(); n != used {
		m.fatalf("%d pages are in use, %d objects are there", n, used)
	}
	if err := m.pool.Close(); err != nil {
		m.fatalf("%v", err)
	}
}

// TestRemapCrash moves pages while they are read, written, collected and held, and cuts the power some thousand times
// (FARFLASH_LONG: a hundred thousand). The recovered state is always consistent, with each object at exactly one
// address.
func TestRemapCrash(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	worlds := 40
	switch {
	case raced:
		worlds = 2
	case patience.Long(t):
		worlds = 2000
	}
	var cuts, moved int64
	for seed := range worlds {
		m := newMover(t, uint64(seed))
		for range 60 {
			for range 1 + m.draw.IntN(60) {
				m.act()
			}
			m.cut()
		}
		m.end()
		cuts, moved = cuts+m.cuts, moved+m.moved
	}
	t.Logf("%d cuts, %d groups of moves", cuts, moved)
}

// TestRemapFaults fails each operation of a story with moves, once and permanently: everything reported durable is
// found intact afterwards.
func TestRemapFaults(t *testing.T) {
	cfg, shape := small()
	const n = 30
	blank := device.NewMem(420 * device.Grain)
	format(t, shape, blank)
	b := make([]byte, ctl.Page)
	// The object's pages move from address to address; each step is one Remap of all of them.
	story := func(dev *device.Mem) (acked, tried int) {
		pool, err := ctl.Open(cfg, dev)
		if err != nil {
			return -1, -1
		}
		acked, tried = -1, -1
		for i := range n {
			content(b, uint64(i)+1, 1)
			if pool.WriteAt(b, uint64(i)*ctl.Page, true) != nil {
				_ = pool.Close() // the injected fault
				return acked, tried
			}
		}
		acked, tried = 0, 0
		for k := range 12 {
			tried = k + 1
			done := make(chan error, 1)
			steps := []ctl.Step{{From: place(k), To: place(k + 1), Count: n / 2},
				{From: place(k) + n/2, To: place(k+1) + n/2, Count: n / 2}}
			if pool.Remap(steps, true, func(err error) { done <- err }) != nil || <-done != nil {
				break
			}
			acked = k + 1
			if pool.WriteAt(b, 1<<30, false) != nil {
				break
			}
		}
		for _, v := range pool.Check(false).Violations {
			t.Error(v)
		}
		_ = pool.Close() // may fail with the injected fault
		return acked, tried
	}
	whole := blank.Reopen()
	whole.SetFaults(device.Faults{})
	if acked, _ := story(whole); acked != 12 {
		t.Fatalf("%d of 12 steps without a fault", acked)
	}
	for at := int64(1); at <= whole.Count(); at += 2 {
		for _, f := range []device.Faults{{FailAt: at}, {FailAt: at, FailFull: true}, {FailFrom: at}} {
			dev := blank.Reopen()
			dev.SetFaults(f)
			acked, tried := story(dev)
			pool, err := ctl.Open(cfg, dev.Reopen())
			if err != nil {
				t.Fatalf("%+v: %v", f, err)
			}
			for i := range uint64(n) {
				var at []int
				for k := range 14 {
					if err := pool.ReadAt(b, (place(k)+i)*ctl.Page); err != nil {
						t.Fatalf("%+v: %v", f, err)
					}
					if id, _, err := contentOf(b); err != nil || id != 0 && id != i+1 {
						t.Fatalf("%+v: object %d at step %d, page %d: %v", f, id, k, i, err)
					} else if id != 0 {
						at = append(at, k)
					}
				}
				if acked >= 0 && (len(at) != 1 || at[0] < acked || at[0] > tried) || len(at) > 1 {
					t.Fatalf("%+v: page %d is at steps %v; step %d was durable, %d tried", f, i, at, acked, tried)
				}
			}
			if err := pool.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// place returns the first page of the object after k steps.
func place(k int) uint64 { return uint64(k%14) * 100 }

// TestRemapRefuses verifies that invalid steps are refused and change no mapping.
func TestRemapRefuses(t *testing.T) {
	cfg, shape := small()
	dev := device.NewMem(smallGrains * device.Grain)
	format(t, shape, dev)
	pool := open(t, cfg, dev)
	b := make([]byte, ctl.Page)
	content(b, 1, 1)
	if err := pool.WriteAt(b, 0, true); err != nil {
		t.Fatal(err)
	}
	good := ctl.Step{From: 0, To: 10, Count: 1}
	for _, steps := range [][]ctl.Step{
		{good, {From: 1, To: 2, Count: 2}},
		{good, {From: 2, To: 1, Count: 2}},
		{good, {From: 1 << 52, To: 1, Count: 1}},
		{good, {From: 1, To: 1 << 52, Count: 1}},
		{good, {From: 1, To: 1<<52 - 1, Count: 2}},
		{good, {From: 1, Count: math.MaxUint64, Drop: true}},
		slices.Repeat([]ctl.Step{good}, ctl.MaxSteps+1),
	} {
		if err := pool.Remap(steps, true, nil); !errors.Is(err, ctl.ErrRange) {
			t.Errorf("%+v: %v", steps[1], err)
		}
	}
	if err := pool.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	if id, _, err := contentOf(b); id != 1 || err != nil {
		t.Errorf("object %d, %v", id, err)
	}
	if n, held := pool.Run(0, 1<<52); n != 1 || !held {
		t.Errorf("%d pages are in use from the first on, %v", n, held)
	}
	if n, held := pool.Run(1, 1<<52-1); n != 1<<52-1 || held {
		t.Errorf("%d pages after it, %v", n, held)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRemapSideBySide has goroutines read and write pages, on both the lock-free and the locked path, while another
// moves them. Each finds its page, with its content, at the address that a lock shared with the mover gives, and pages
// held across a move are put at their new address.
func TestRemapSideBySide(t *testing.T) {
	onFiles(t, func(t testing.TB, name string, openDevice func(string, int64) device.Device) {
		cfg, shape := small()
		cfg.Frames = 48
		dev := openDevice("moves", 700*device.Grain)
		format(t, shape, dev)
		pool := open(t, cfg, dev)
		const workers, own = 6, 12
		var base [workers]uint64
		var where [workers]sync.RWMutex
		for i := range base {
			base[i] = uint64(i) * 1000
		}
		stop := make(chan struct{})
		var all, mover sync.WaitGroup
		mover.Go(func() {
			for n := uint64(0); ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				i := n % workers
				to := base[i] + 100
				if to >= i*1000+1000 {
					to = i * 1000
				}
				done := make(chan error, 1)
				where[i].Lock()
				err := pool.Remap([]ctl.Step{{From: base[i], To: to, Count: own}}, n%5 == 0,
					func(err error) { done <- err })
				base[i] = to
				where[i].Unlock()
				if err = errors.Join(err, <-done); err != nil {
					t.Error(err)
				}
				time.Sleep(20 * time.Microsecond) // otherwise the mover would starve the others
			}
		})
		for i := range workers {
			all.Go(func() {
				draw := rng.NewStream(uint64(i), "worker")
				var versions [own]uint64
				for range 1500 {
					k := uint64(draw.IntN(own))
					got := make(chan ctl.Ref, 1)
					where[i].RLock()
					pool.Get(base[i]+k, ctl.Writing, func(r ctl.Ref, err error) {
						if err != nil {
							t.Error(err)
						}
						got <- r
					})
					where[i].RUnlock()
					r := <-got
					if r.Data == nil {
						return
					}
					id, version, err := contentOf(r.Data)
					if err != nil || version != versions[k] || id != 0 && id != uint64(i)*own+k+1 {
						t.Errorf("page %d of worker %d has version %d of object %d, %v; it was version %d", k, i,
							version, id, err, versions[k])
						pool.Put(r, ctl.Kept, heat.Auto, nil)
						return
					}
					versions[k]++
					content(r.Data, uint64(i)*own+k+1, versions[k])
					pool.Put(r, ctl.Changed+ctl.Change(draw.IntN(8)/7), heat.Auto, func(err error) {
						if err != nil {
							t.Error(err)
						}
					})
				}
			})
		}
		all.Wait()
		close(stop)
		mover.Wait()
		clean(t, pool, true)
		if err := pool.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkRemap moves a GiB in use back and forth.
func BenchmarkRemap(b *testing.B) {
	cfg := ctl.DefaultConfig()
	shape := ctl.DefaultLayout()
	const pages = 1 << 18
	dev := device.NewMem((pages + pages/3) * device.Grain)
	format(b, shape, dev)
	pool := open(b, cfg, dev)
	buf := make([]byte, 64*ctl.Page)
	for i := uint64(0); i < pages*ctl.Page; i += uint64(len(buf)) {
		if err := pool.WriteAt(buf, i, false); err != nil {
			b.Fatal(err)
		}
	}
	if err := pool.Sync(); err != nil {
		b.Fatal(err)
	}
	at, to := uint64(0), uint64(1)<<40
	for b.Loop() {
		if err := pool.Remap([]ctl.Step{{From: at, To: to, Count: pages}}, false, nil); err != nil {
			b.Fatal(err)
		}
		at, to = to, at
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pages, "ns/page")
	if err := pool.Close(); err != nil {
		b.Fatal(err)
	}
}
