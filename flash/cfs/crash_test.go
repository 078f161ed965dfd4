package cfs_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// cutter is a device that snapshots, during some of its operations, the state that a power cut at that instant would
// leave.
type cutter struct {
	*device.Mem
	draw  *rng.Stream
	every int64 // one cut per this many operations
	cuts  []*device.Mem

	mu   sync.Mutex    // guards every and cuts while shuffle executes operations
	stop chan struct{} // stops shuffle
	done sync.WaitGroup
}

// shuffle queues operations and has a goroutine execute them in random order. Cuts occur between them, with the queued
// ones partly done.
func (c *cutter) shuffle(seed uint64) {
	c.Hold(true)
	c.stop = make(chan struct{})
	draw := rng.NewStream(seed, "shuffle")
	c.done.Go(func() {
		for {
			if c.Held() == 0 {
				select {
				case <-c.stop:
					return
				case <-time.After(5 * time.Microsecond):
				}
				continue
			}
			c.mu.Lock()
			if c.every > 0 && draw.IntN(c.every) == 0 {
				c.cuts = append(c.cuts, c.Crash(&draw))
			}
			c.mu.Unlock()
			c.Step(&draw)
		}
	})
}

// cutting sets how often to cut from now on, and returns the snapshots so far.
func (c *cutter) cutting(every int64) (cuts []*device.Mem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.every = every
	cuts, c.cuts = c.cuts, nil
	return cuts
}

// Close implements device.Device.
func (c *cutter) Close() error {
	if c.stop != nil {
		close(c.stop)
		c.done.Wait()
		c.Hold(false)
	}
	return c.Mem.Close()
}

func (c *cutter) Submit(ops ...*device.Op) {
	for _, op := range ops {
		if c.stop == nil && c.every > 0 && c.draw.IntN(c.every) == 0 {
			c.cuts = append(c.cuts, c.Crash(c.draw))
		}
		c.Mem.Submit(op)
	}
}

// past is the history of a file's page, in order, and the first version that may be found after a cut.
type past struct {
	versions [][]byte
	floor    int
}

// entry is a file or directory of the model.
type entry struct {
	dir   bool
	perm  uint16
	size  int64
	pages []*past
	file  *cfs.File // left open
	kept  string    // of the root: what Keep stores
}

// model is the expected tree, by path.
type model map[string]*entry

func (m model) clone() model {
	c := model{}
	for p, e := range m {
		x := *e
		x.pages = slices.Clone(e.pages)
		c[p] = &x
	}
	return c
}

// resize models Truncate.
func (e *entry) resize(size int64) {
	n := int((size + ctl.Page - 1) / ctl.Page)
	if in := e.size % ctl.Page; in > 0 && size > e.size {
		was := e.pages[len(e.pages)-1]
		now := &past{floor: was.floor}
		for _, v := range was.versions {
			v = bytes.Clone(v)
			clear(v[in:])
			now.versions = append(now.versions, v)
		}
		e.pages[len(e.pages)-1] = now
	}
	e.pages = e.pages[:min(n, len(e.pages))]
	for len(e.pages) < n {
		e.pages = append(e.pages, &past{versions: [][]byte{make([]byte, ctl.Page)}})
	}
	e.size = size
}

// write models WriteAt within the file's size. It makes no data durable.
func (e *entry) write(b []byte, at int64) {
	for len(b) > 0 {
		p := e.pages[at/ctl.Page]
		v := bytes.Clone(p.versions[len(p.versions)-1])
		n := copy(v[at%ctl.Page:], b)
		p.versions = append(p.versions, v)
		b, at = b[n:], at+int64(n)
	}
}

// climber performs random operations on a file system and verifies after every cut that the state is that before or
// after the operation in progress.
type climber struct {
	t      testing.TB
	label  string
	draw   rng.Stream
	dev    *cutter
	fs     *cfs.FS
	pool   *ctl.Pool
	now    model
	number uint64
	cuts   int
	done   int
	nexts  int // cuts that found the operation complete
}

func (c *climber) fatalf(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf("%s, operation %d: %s", c.label, c.done, fmt.Sprintf(format, args...))
}

func (c *climber) mount(dev *device.Mem) (*cfs.FS, *ctl.Pool, *cutter) {
	c.t.Helper()
	cut := &cutter{Mem: dev, draw: &c.draw}
	cfg, _ := smallPool()
	pool, err := ctl.Open(cfg, cut)
	if err != nil {
		c.fatalf("%v", err)
	}
	f, err := cfs.Open(pool, cfs.Config{Now: clock()})
	if err != nil {
		c.fatalf("%v", err)
	}
	return f, pool, cut
}

// pick returns a random path of the model, of a file or of a directory.
func (c *climber) pick(dir bool) (string, *entry) {
	var all []string
	for _, p := range slices.Sorted(maps.Keys(c.now)) {
		if c.now[p].dir == dir {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return "", nil
	}
	p := all[c.draw.IntN(int64(len(all)))]
	return p, c.now[p]
}

// fresh returns a random path, which may be in use.
func (c *climber) fresh() string {
	dir, _ := c.pick(true)
	return path.Join(dir, strings.Repeat("n", int(1+c.draw.IntN(60)))+strconv.Itoa(int(c.draw.IntN(12))))
}

// act performs one operation, compares its result with the model, and verifies the states that cuts during it left.
func (c *climber) act() {
	next := c.now.clone()
	var do func() error
	after := func() {}
	file := func(p string, what func(*cfs.File) error) error {
		if f := c.now[p].file; f != nil {
			return what(f)
		}
		f, err := c.fs.Open(root, p, cfs.Read|cfs.Write)
		if err != nil {
			return err
		}
		if err := what(f); err != nil {
			return err
		}
		return f.Close()
	}
	switch k := c.draw.IntN(21); {
	case k < 2:
		p := c.fresh()
		if len(next) > 40 || next[p] != nil {
			return
		}
		next[p] = &entry{dir: true, perm: 0o755}
		do = func() error { return c.fs.Mkdir(root, p, 0o755) }
	case k < 5:
		p, size, leave := c.fresh(), c.draw.IntN(30_000), c.draw.IntN(4) == 0
		if len(next) > 40 || next[p] != nil {
			return
		}
		e := &entry{perm: 0o644}
		e.resize(size)
		next[p] = e
		do = func() error {
			f, err := c.fs.Create(root, p, 0o644, size)
			if err != nil {
				return err
			}
			if leave {
				after = func() { next[p].file = f }
				return nil
			}
			return f.Close()
		}
	case k < 10:
		p, e := c.pick(false)
		if e == nil || e.size == 0 {
			return
		}
		at := c.draw.IntN(e.size)
		c.number++
		b := fill(int(min(1+c.draw.IntN(9000), e.size-at)), c.number)
		next[p].write(b, at) // shared with c.now, because either version may be found
		do = func() error {
			return file(p, func(f *cfs.File) error { _, err := f.WriteAt(b, at); return err })
		}
	case k < 12:
		p, e := c.pick(false)
		if e == nil {
			return
		}
		size := c.draw.IntN(60_000)
		if c.draw.IntN(3) == 0 {
			size = c.draw.IntN(e.size + 1)
		}
		next[p].resize(size)
		do = func() error { return file(p, func(f *cfs.File) error { return f.Truncate(size) }) }
	case k < 14:
		p, e := c.pick(c.draw.IntN(3) == 0)
		if e == nil || p == "/" || next.below(p) > 0 {
			return
		}
		delete(next, p)
		do = func() error { return c.fs.Remove(root, p) }
		after = func() {
			if e.file != nil && e.file.Close() != nil {
				c.fatalf("closing what was removed")
			}
		}
	case k < 17:
		from, e := c.pick(c.draw.IntN(3) == 0)
		to := c.fresh()
		if c.draw.IntN(2) == 0 && e != nil {
			if p, _ := c.pick(e.dir); p != "" {
				to = p
			}
		}
		if e == nil || from == "/" || strings.HasPrefix(to+"/", from+"/") || next.below(to) > 0 ||
			next[to] != nil && next[to].dir != e.dir {
			return
		}
		var left *cfs.File
		if next[to] != nil {
			left = next[to].file
		}
		next.move(from, to)
		do = func() error { return c.fs.Rename(root, from, to, false) }
		after = func() {
			if left != nil && left.Close() != nil {
				c.fatalf("closing what was replaced")
			}
		}
	case k < 18: // a file is filled while nameless, then named
		p := c.fresh()
		if next[p] != nil && next[p].dir {
			return
		}
		var left *cfs.File
		if next[p] != nil {
			left = next[p].file
		}
		c.number++
		b := fill(int(c.draw.IntN(30_000)), c.number)
		e := &entry{perm: 0o600}
		e.resize(int64(len(b)))
		e.write(b, 0)
		for _, x := range e.pages {
			x.floor = len(x.versions) - 1 // durable before it is named
		}
		next[p] = e
		do = func() error {
			f, err := c.fs.Temp(root, 0o600)
			if err != nil {
				return err
			}
			for at := 0; at < len(b); at += 7000 {
				if _, err := f.WriteAt(b[at:min(at+7000, len(b))], int64(at)); err != nil {
					return err
				}
			}
			if err := f.Name(root, p, false); err != nil {
				return err
			}
			return f.Close()
		}
		after = func() {
			if left != nil && left.Close() != nil {
				c.fatalf("closing what was replaced")
			}
			// All earlier writes are durable too.
			next.settle()
		}
	case k < 19:
		p, e := c.pick(c.draw.IntN(2) == 0)
		if e == nil {
			return
		}
		perm := uint16(c.draw.IntN(0o1000))
		next[p].perm = perm
		do = func() error { return c.fs.Chmod(root, p, perm) }
	case k < 20:
		c.number++
		b := fill(int(c.draw.IntN(cfs.MostKept+1)), c.number)
		next["/"].kept = string(b)
		do = func() error { return c.fs.Keep(b) }
	default:
		do = c.pool.Sync
		after = next.settle
	}
	every := int64(4)
	if c.draw.IntN(3) > 0 {
		every = 40
	}
	c.dev.cutting(every)
	err := do()
	cuts := c.dev.cutting(0)
	c.done++
	if err != nil {
		c.fatalf("%v", err)
	}
	for i, dev := range cuts {
		f, pool, on := c.mount(dev)
		found := c.found(f)
		why := found.is(next)
		if why != nil {
			if before := found.is(c.now); before != nil {
				c.fatalf("cut %d of %d: it is not as it was before: %v; nor as it is now: %v", i, len(cuts), before,
					why)
			}
		} else {
			c.nexts++
		}
		for _, v := range f.Check().Violations {
			c.t.Errorf("%s, operation %d, cut %d: %v", c.label, c.done, i, v)
		}
		for _, v := range pool.Check(false).Violations {
			c.t.Errorf("%s, operation %d, cut %d: %v", c.label, c.done, i, v)
		}
		if c.t.Failed() {
			c.t.FailNow()
		}
		c.cuts++
		if c.draw.IntN(30) == 0 && c.dev.stop == nil { // continue from a state found after a cut
			c.leave()
			c.fs, c.pool, c.dev, c.now = f, pool, on, found
			return
		}
		if err := pool.Close(); err != nil {
			c.fatalf("%v", err)
		}
	}
	after()
	c.now = next
}

// leave closes the file system.
func (c *climber) leave() {
	for _, e := range c.now {
		if e.file != nil {
			_ = e.file.Close() // may fail if the file was removed
		}
	}
	if err := c.pool.Close(); err != nil {
		c.fatalf("%v", err)
	}
}

// below counts the entries below a directory.
func (m model) below(dir string) int {
	n := 0
	for p := range m {
		if p != dir && strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/") {
			n++
		}
	}
	return n
}

func (m model) move(from, to string) {
	if from == to {
		return
	}
	for p, e := range m {
		if p == from || strings.HasPrefix(p, from+"/") {
			delete(m, p)
			m[to+p[len(from):]] = e
		}
	}
}

// settle marks everything durable.
func (m model) settle() {
	for _, e := range m {
		for _, p := range e.pages {
			p.floor = len(p.versions) - 1
		}
	}
}

// found reads the whole tree.
func (c *climber) found(f *cfs.FS) model {
	m := model{"/": {dir: true, perm: 0o755}}
	i, err := f.Stat(root, "/")
	if err != nil {
		c.fatalf("%v", err)
	}
	m["/"].perm, m["/"].kept = i.Perm, string(f.Kept())
	for todo := []string{"/"}; len(todo) > 0; {
		dir := todo[0]
		todo = todo[1:]
		all, err := f.List(root, dir)
		if err != nil {
			c.fatalf("%v", err)
		}
		for _, x := range all {
			e := &entry{dir: x.Kind == cfs.Directory, perm: x.Perm}
			m[x.Path] = e
			if e.dir {
				todo = append(todo, x.Path)
				continue
			}
			e.resize(x.Size)
			file, err := f.Open(root, x.Path, cfs.Read)
			if err != nil {
				c.fatalf("%v", err)
			}
			for i, p := range e.pages {
				b := p.versions[0]
				if n, err := file.ReadAt(b[:min(ctl.Page, x.Size-int64(i)*ctl.Page)], int64(i)*ctl.Page); n == 0 ||
					err != nil {
					c.fatalf("%s, page %d: %v", x.Path, i, err)
				}
			}
			if err := file.Close(); err != nil {
				c.fatalf("%v", err)
			}
		}
	}
	return m
}

// is returns an error if the tree found differs from want.
func (m model) is(want model) error {
	for _, p := range slices.Sorted(maps.Keys(want)) {
		x, e := m[p], want[p]
		switch {
		case x == nil:
			return fmt.Errorf("%s is not there", p)
		case x.dir != e.dir || x.perm != e.perm || x.size != e.size:
			return fmt.Errorf("%s has %d bytes and mode %o, directory: %v; it had %d and %o, %v", p, x.size, x.perm,
				x.dir, e.size, e.perm, e.dir)
		case x.kept != e.kept:
			return fmt.Errorf("it keeps %d bytes that are not the %d last stored", len(x.kept), len(e.kept))
		}
		for i, was := range e.pages {
			n := min(ctl.Page, e.size-int64(i)*ctl.Page)
			if !slices.ContainsFunc(was.versions[was.floor:],
				func(v []byte) bool { return bytes.Equal(v[:n], x.pages[i].versions[0][:n]) }) {
				return fmt.Errorf("%s, page %d: it is none of %d versions", p, i, len(was.versions)-was.floor)
			}
		}
	}
	for p := range m {
		if want[p] == nil {
			return fmt.Errorf("%s is there", p)
		}
	}
	return nil
}

// TestCrashShuffled is TestCrash on a device that executes queued operations in any order. The order depends on
// goroutine scheduling, so a seed does not determine the run; the invariants must hold for every order.
func TestCrashShuffled(t *testing.T) {
	worlds := 4
	if patience.Long(t) {
		worlds = 200
	}
	if raced {
		worlds = 1
	}
	empty := blank(t, 2500)
	cuts, nexts, done := 0, 0, 0
	for seed := range worlds {
		c := &climber{t: t, label: fmt.Sprint("seed ", seed), draw: rng.NewStream(uint64(seed), "shuffled"),
			now: model{"/": {dir: true, perm: 0o755}}}
		c.fs, c.pool, c.dev = c.mount(empty.Reopen())
		c.dev.shuffle(uint64(seed))
		for range 120 {
			c.act()
		}
		if why := c.found(c.fs).is(c.now); why != nil {
			c.fatalf("in the end: %v", why)
		}
		c.leave()
		cuts, nexts, done = cuts+c.cuts, nexts+c.nexts, done+c.done
	}
	t.Logf("%d operations, %d cuts, %d of them found the operation done", done, cuts, nexts)
}

// TestCrash performs random operations and cuts the power during them, some thousand times (FARFLASH_LONG: a hundred
// thousand). The recovered tree is the one before or after the operation, satisfies every invariant, and contains
// everything made durable. FARFLASH_CASE runs a single seed.
func TestCrash(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	worlds, only := 12, -1
	switch {
	case raced:
		worlds = 1 // single-threaded: no races to find
	case patience.Long(t):
		worlds = 600
	}
	if s := os.Getenv("FARFLASH_CASE"); s != "" {
		only, _ = strconv.Atoi(s)
		worlds = only + 1
	}
	empty := blank(t, 2500)
	cuts, nexts, done := 0, 0, 0
	for seed := max(0, only); seed < worlds; seed++ {
		c := &climber{t: t, label: fmt.Sprint("seed ", seed), draw: rng.NewStream(uint64(seed), "climber"),
			now: model{"/": {dir: true, perm: 0o755}}}
		c.fs, c.pool, c.dev = c.mount(empty.Reopen())
		for range 300 {
			c.act()
		}
		if why := c.found(c.fs).is(c.now); why != nil {
			c.fatalf("in the end: %v", why)
		}
		c.leave()
		cuts, nexts, done = cuts+c.cuts, nexts+c.nexts, done+c.done
	}
	t.Logf("%d operations, %d cuts, %d of them found the operation done", done, cuts, nexts)
	if only < 0 && !raced && (cuts < 2000 || nexts < cuts/20 || nexts > cuts*19/20) {
		t.Errorf("%d cuts, %d found the operation done: too little was tried", cuts, nexts)
	}
}

// sticky is a device that holds back one write until it is released.
type sticky struct {
	*device.Mem
	mu    sync.Mutex
	armed bool
	held  *device.Op
}

func (s *sticky) Submit(ops ...*device.Op) {
	for _, op := range ops {
		s.mu.Lock()
		hold := s.armed && op.Kind == device.Write
		if hold {
			s.armed, s.held = false, op
		}
		s.mu.Unlock()
		if !hold {
			s.Mem.Submit(op)
		}
	}
}

// TestNameWaits verifies that a file is not named before all of it is durable, even if its last write takes longer than
// every step of the naming.
func TestNameWaits(t *testing.T) {
	dev := &sticky{Mem: blank(t, 900)}
	f, pool := mount(t, dev)
	file := must(f.Temp(root, 0o644))(t)
	ok(t, file.Truncate(1<<20))
	dev.mu.Lock()
	dev.armed = true
	dev.mu.Unlock()
	must(file.WriteAt(fill(16*ctl.Page, 1), 0))(t)
	if dev.held == nil {
		t.Fatal("nothing was written yet")
	}
	named := make(chan error, 1)
	go func() { named <- file.Name(root, "/x", true) }()
	select {
	case err := <-named:
		t.Fatalf("it has a name before it is durable: %v", err)
	case <-time.After(50 * time.Millisecond): // correct code always waits here, until the write is released below
	}
	if _, err := f.Stat(root, "/x"); err == nil {
		t.Error("the name is seen before the file is durable")
	}
	dev.Mem.Submit(dev.held)
	ok(t, <-named)
	ok(t, file.Close())
	unmount(t, f, pool)
}
