package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/pool"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/internal/patience"
)

// crowd is a set of concurrent users of one small pool: clients over iWARP and NBD, programs that change files and
// names, and maintenance.
type crowd struct {
	t     *testing.T
	pool  *ctl.Pool
	tree  *cfs.FS
	s     *server.Server
	ended atomic.Bool
	all   sync.WaitGroup
	turns int // per member
	taken atomic.Int64
}

const crowdFile = 192 * ctl.Page

// image holds the possible values of each byte of a file: the known value, or any that was sent and not confirmed.
type image struct {
	known []byte
	maybe map[int][]byte
}

func newImage(n int) *image { return &image{known: make([]byte, n), maybe: map[int][]byte{}} }

// sent records bytes that may have been written.
func (m *image) sent(at int, b []byte) {
	for i, x := range b {
		m.maybe[at+i] = append(m.maybe[at+i], x)
	}
}

func (m *image) there(at int, b []byte) {
	copy(m.known[at:], b)
	for i := range b {
		delete(m.maybe, at+i)
	}
}

// differs returns an error if the bytes read are not possible.
func (m *image) differs(at int, got []byte) error {
	for i, x := range got {
		if x != m.known[at+i] && !bytes.Contains(m.maybe[at+i], []byte{x}) {
			return fmt.Errorf("byte %d is %x, and was written as %x", at+i, x, m.known[at+i])
		}
	}
	return nil
}

// member runs a user's turns in a goroutine until they are used up.
func (w *crowd) member(name string, seed uint64, turn func(r *rand.Rand) error) {
	w.all.Add(1)
	go func() {
		defer w.all.Done()
		r := rand.New(rand.NewPCG(seed, 5))
		for k := 0; k < w.turns && !w.t.Failed(); k++ {
			w.taken.Add(1)
			if err := turn(r); err != nil {
				if !w.ended.Load() {
					w.t.Errorf("%s, turn %d: %v", name, k, err)
				}
				return
			}
		}
	}()
}

// some returns a random range of a file and random bytes for it.
func some(r *rand.Rand, size int) (at int, b []byte) {
	n := 1 + r.IntN([]int{16, 5000, 5 * ctl.Page}[r.IntN(3)])
	b = make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	if at = r.IntN(size - n); r.IntN(3) == 0 {
		at &^= ctl.Page - 1
	}
	return at, b
}

// over is an iWARP client that checks reads, writes and confirmed durability against its image.
func (w *crowd) over(address, file string, seed uint64, m *image) {
	var c *client.Client
	var f *client.File
	rejected := 0
	w.member(file, seed, func(r *rand.Rand) error {
		if f == nil {
			var err error
			c, err = dial(w.t, address, client.DefaultConfig())
			if errors.Is(err, verbs.ErrRejected) && rejected < 1000 {
				rejected++
				time.Sleep(time.Millisecond) // places of connections that have just ended are not free yet
				return nil
			}
			if err != nil {
				return err
			}
			rejected = 0
			if f, err = c.Open(file, all); err != nil {
				return errors.Join(err, c.Close())
			}
		}
		at, b := some(r, crowdFile)
		switch r.IntN(8) {
		case 0, 1, 2:
			if _, err := f.ReadAt(b, int64(at)); err != nil {
				return errors.Join(err, c.Close())
			}
			return m.differs(at, b)
		case 3, 4:
			m.sent(at, b)
			if _, err := f.WriteAt(b, int64(at)); err != nil {
				return errors.Join(err, c.Close())
			}
			// A read after it sees it, and bytes that were read have been written.
			got := make([]byte, len(b))
			if _, err := f.ReadAt(got, int64(at)); err != nil {
				return errors.Join(err, c.Close())
			}
			m.there(at, b)
			return m.differs(at, got)
		case 5:
			m.sent(at, b)
			if _, err := f.WriteDurable(b, int64(at)); err != nil {
				return errors.Join(err, c.Close())
			}
			m.there(at, b)
		case 6:
			at &^= 7
			n := r.Uint64()
			old := uint64(0)
			for i := range 8 {
				old |= uint64(m.known[at+i]) << (8 * i)
			}
			next := make([]byte, 8)
			for i := range next {
				next[i] = byte((old + n) >> (8 * i))
			}
			m.sent(at, next)
			got, err := f.FetchAdd(int64(at), n, r.IntN(2) == 0)
			if err != nil {
				return errors.Join(err, c.Close())
			}
			if got != old {
				return fmt.Errorf("%x was added to, and there was %x", got, old)
			}
			m.there(at, next)
		default:
			var err error
			if r.IntN(4) == 0 {
				err = f.Close()
			}
			f = nil
			return errors.Join(err, c.Close())
		}
		return nil
	})
	w.t.Cleanup(func() {
		if c != nil {
			_ = c.Close()
		}
	})
}

// overNBD is an NBD client.
func (w *crowd) overNBD(address, file string, seed uint64, m *image) {
	var c *nbdtest.Client
	refused := 0
	w.member(file, seed, func(r *rand.Rand) error {
		if c == nil {
			nc, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			if c, err = nbdtest.NewClient(nc, 3); err != nil {
				return err
			}
			if err = c.Go(file, true); err != nil && refused < 1000 {
				refused++
				c = nil
				time.Sleep(time.Millisecond) // the place of the previous connection is not free yet
				return nc.Close()
			}
			if err != nil {
				return err
			}
			refused = 0
		}
		at, b := some(r, crowdFile)
		do := func(flags uint16, k nbd.Command, payload []byte) error {
			e, err := c.Do(flags, k, uint64(at), uint32(len(b)), payload)
			if err == nil && e != 0 {
				err = fmt.Errorf("%v: %w", k, e)
			}
			return err
		}
		fua := uint16(0)
		if r.IntN(4) == 0 {
			fua = nbd.CmdFUA
		}
		switch r.IntN(8) {
		case 0, 1, 2:
			got, _, e, err := c.Fetch(0, uint64(at), uint32(len(b)))
			if e != 0 {
				err = errors.Join(err, e)
			}
			if err != nil {
				return err
			}
			return m.differs(at, got)
		case 3, 4:
			m.sent(at, b)
			if err := do(fua, nbd.CmdWrite, b); err != nil {
				return err
			}
			m.there(at, b)
		case 5:
			clear(b)
			m.sent(at, b)
			if err := do(fua, nbd.CmdWriteZeroes, nil); err != nil {
				return err
			}
			m.there(at, b)
		case 6:
			at &^= ctl.Page - 1
			b = make([]byte, min(len(b)+ctl.Page, crowdFile-at)&^(ctl.Page-1))
			m.sent(at, b)
			if err := do(fua, nbd.CmdTrim, nil); err != nil {
				return err
			}
			m.there(at, b)
		default:
			at, b = 0, nil
			if err := do(0, nbd.CmdFlush, nil); err != nil {
				return err
			}
			if r.IntN(5) == 0 {
				err := c.Close()
				c = nil
				return err
			}
		}
		return nil
	})
	w.t.Cleanup(func() {
		if c != nil {
			_ = c.Close()
		}
	})
}

// mine is a program with its own directory, in which it creates, changes, renames and removes files.
func (w *crowd) mine(dir string, seed uint64, files map[string][]byte) {
	root := cfs.Cred{}
	w.member(dir, seed, func(r *rand.Rand) error {
		name := fmt.Sprintf("%s/%d", dir, r.IntN(6))
		was, there := files[name]
		if !there {
			f, err := w.tree.Create(root, name, 0o600, 0)
			if err != nil {
				return err
			}
			files[name] = []byte{}
			return f.Close()
		}
		switch r.IntN(9) {
		case 0:
			delete(files, name)
			return w.tree.Remove(root, name)
		case 1:
			to := fmt.Sprintf("%s/%d", dir, r.IntN(6))
			if to == name {
				return nil
			}
			delete(files, name)
			files[to] = was
			return w.tree.Rename(root, name, to, false)
		}
		f, err := w.tree.Open(root, name, cfs.Read|cfs.Write)
		if err != nil {
			return err
		}
		err = func() error {
			switch r.IntN(7) {
			case 0, 1:
				n := r.IntN(40 * ctl.Page)
				if r.IntN(4) == 0 {
					n = 0
				}
				files[name] = append(bytes.Clone(was), make([]byte, max(0, n-len(was)))...)[:n]
				return f.Truncate(int64(n))
			case 2:
				n := r.IntN(40 * ctl.Page)
				err := f.Allocate(int64(n))
				if err == nil {
					files[name] = append(was, make([]byte, max(0, n-len(was)))...)
				}
				return unless(err, ctl.ErrFull)
			case 3, 4:
				at, b := some(r, 40*ctl.Page)
				files[name] = append(was, make([]byte, max(0, at+len(b)-len(was)))...)
				copy(files[name][at:], b)
				_, err := f.WriteAt(b, int64(at))
				return err
			case 5:
				return f.Sync()
			}
			return is(f, was)
		}()
		return errors.Join(err, f.Close())
	})
}

func unless(err, is error) error {
	if errors.Is(err, is) {
		return nil
	}
	return err
}

// is verifies the contents of a file.
func is(f *cfs.File, want []byte) error {
	got := make([]byte, len(want)+1)
	n, err := f.ReadAt(got, 0)
	if err != io.EOF || !bytes.Equal(got[:n], want) {
		for i := range min(n, len(want)) {
			if got[i] != want[i] {
				return fmt.Errorf("byte %d of %d is %x, and was written as %x", i, len(want), got[i], want[i])
			}
		}
		return fmt.Errorf("%d bytes of %d: %w", n, len(want), err)
	}
	return nil
}

// TestCrowd verifies that all confirmed results persist under full concurrency: iWARP and NBD clients, programs that
// truncate, rename and remove files, checks, flushes, checkpoints and garbage collection in a nearly full pool, and a
// drain of the server in the middle. FARFLASH_LONG=1 runs longer.
func TestCrowd(t *testing.T) { ways(t, testCrowd) }

func testCrowd(t *testing.T) {
	w := &crowd{t: t, turns: 100}
	if patience.Long(t) {
		w.turns = 4000
	}
	path := filepath.Join(t.TempDir(), "pool")
	o := pool.DefaultOptions()
	o.Pool.Frames, o.Pool.Chunk = 1024, 8
	o.Layout = ctl.Layout{Segment: 64, OverProvision: 0.3, LogPages: 24}
	if _, err := pool.Format(o, 8<<20, path); err != nil {
		t.Fatal(err)
	}
	d := begin(t, nil) // for its loops and its checks at the end
	o.Loops = d.loops
	var err error
	if w.pool, _, err = pool.Open(o, path); err != nil {
		t.Fatal(err)
	}
	if err := cfs.Format(w.pool, cfs.Config{}); err != nil {
		t.Fatal(err)
	}
	if w.tree, err = cfs.Open(w.pool, cfs.Config{}); err != nil {
		t.Fatal(err)
	}
	cfg := server.DefaultConfig()
	cfg.Pool, cfg.Files, cfg.Loops = w.pool, server.Tree(w.tree, cfs.Cred{}), d.loops
	cfg.Address, cfg.NBD, cfg.Connections, cfg.Reads = "127.0.0.1:0", "127.0.0.1:0", 8, 4
	cfg.Depth = 64 << 10
	cfg.Limits = map[string]qos.Limit{
		"export0": {Class: qos.Latency, Operations: 20_000}, "export1": {Bytes: 64 << 20, Burst: qos.DefaultBurst},
		"export4": {Operations: 5000, Burst: 1_000_000}, "export5": {Class: qos.Latency},
	}
	if w.s, err = server.New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := w.s.Listen(); err != nil {
		t.Fatal(err)
	}
	far, near, _ := w.s.Addresses()
	images := map[string]*image{}
	for i := range uint64(6) {
		name := fmt.Sprintf("/export%d", i)
		f, err := w.tree.Create(cfs.Cred{}, name, 0o600, crowdFile)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(make([]byte, crowdFile), 0) // so that garbage collection starts soon
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		images[name] = newImage(crowdFile)
		if i < 4 {
			w.over(far, name, i, images[name])
		} else {
			w.overNBD(near, name, i, images[name])
		}
	}
	owned := map[string]map[string][]byte{}
	for i := range uint64(2) {
		dir := fmt.Sprintf("/mine%d", i)
		if err := w.tree.Mkdir(cfs.Cred{}, dir, 0o700); err != nil {
			t.Fatal(err)
		}
		owned[dir] = map[string][]byte{}
		w.mine(dir, 100+i, owned[dir])
	}
	// Maintenance that checks the pool and changes files in use: an exported file grows, and is truncated to its old
	// size.
	w.member("who looks", 200, func(r *rand.Rand) error {
		switch r.IntN(6) {
		case 0:
			return violated(w.tree.Check().Violations)
		case 1, 2:
			return violated(w.pool.Check(r.IntN(4) == 0).Violations)
		case 3:
			return w.pool.Sync()
		}
		f, err := w.tree.Open(cfs.Cred{}, fmt.Sprintf("/export%d", r.IntN(6)), cfs.Write)
		if err != nil {
			return err
		}
		err = unless(f.Truncate(crowdFile+int64(r.IntN(30*ctl.Page))), cfs.ErrBusy)
		if err == nil {
			err = f.Truncate(crowdFile)
		}
		return errors.Join(err, f.Close())
	})

	// The server is drained when about half of the turns are used up.
	for w.taken.Load() < int64(w.turns)*9/2 && !t.Failed() {
		time.Sleep(5 * time.Millisecond)
	}
	w.ended.Store(true)
	if err := w.s.Drain(10 * time.Second); err != nil {
		t.Error(err)
	}
	w.all.Wait()
	w.ended.Store(false)
	look := func(tree *cfs.FS) {
		t.Helper()
		for name, m := range images {
			f, err := tree.Open(cfs.Cred{}, name, cfs.Read)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]byte, crowdFile)
			if _, err := f.ReadAt(got, 0); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if err := m.differs(0, got); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		for dir, files := range owned {
			all, err := tree.List(cfs.Cred{}, dir)
			if err != nil || len(all) != len(files) {
				t.Errorf("%s has %d files, and must have %d: %v", dir, len(all), len(files), err)
			}
			for name, want := range files {
				f, err := tree.Open(cfs.Cred{}, name, cfs.Read)
				if errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s is gone", name)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := is(f, want); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		if err := violated(tree.Check().Violations); err != nil {
			t.Error(err)
		}
	}
	look(w.tree)
	stats := w.pool.Stats()
	t.Logf("%d pages put, %d moved, %d checkpoints, %d flushes", stats.Puts, stats.Moved, stats.Checkpoints,
		stats.Flushes)
	if err := violated(w.pool.Check(true).Violations); err != nil {
		t.Error(err)
	}
	if err := w.pool.Close(); err != nil {
		t.Fatal(err)
	}
	if w.pool, _, err = pool.Open(o, path); err != nil {
		t.Fatal(err)
	}
	if w.tree, err = cfs.Open(w.pool, cfs.Config{}); err != nil {
		t.Fatal(err)
	}
	if n := w.tree.Found(); n != (cfs.Found{}) {
		t.Errorf("after an end in good order there is to be put in order %+v", n)
	}
	look(w.tree)
	if err := w.pool.Close(); err != nil {
		t.Fatal(err)
	}
}

func violated(all []ctl.Violation) error {
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%d violations: %v", len(all), all[:min(len(all), 5)])
}
