package cfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/ctl/heat"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
	"farflash/numeric/rng"
)

var root = cfs.Cred{}

// clock returns a clock that counts seconds, so that times are reproducible.
func clock() func() time.Time {
	var mu sync.Mutex
	now := time.Unix(1_000_000, 0)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	}
}

func smallPool() (ctl.Config, ctl.Layout) {
	cfg := ctl.DefaultConfig()
	cfg.Frames, cfg.Chunk, cfg.Moves = 32, 4, 4
	return cfg, ctl.Layout{UUID: media.UUID{1, 2, 3}, Segment: 16, OverProvision: 0.3, LogPages: 64}
}

// blank returns a device with an empty file system, closed.
func blank(t testing.TB, grains int64) *device.Mem {
	t.Helper()
	cfg, layout := smallPool()
	dev := device.NewMem(grains * device.Grain)
	shape, err := layout.Shape(dev.Size())
	if err != nil {
		t.Fatal(err)
	}
	if err := ctl.Format(shape, dev); err != nil {
		t.Fatal(err)
	}
	pool, err := ctl.Open(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	if err := cfs.Format(pool, cfs.Config{Now: clock()}); err != nil {
		t.Fatal(err)
	}
	if err := pool.Close(); err != nil {
		t.Fatal(err)
	}
	return dev.Reopen()
}

// mount opens the file system of a device.
func mount(t testing.TB, dev device.Device) (*cfs.FS, *ctl.Pool) {
	t.Helper()
	cfg, _ := smallPool()
	pool, err := ctl.Open(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	f, err := cfs.Open(pool, cfs.Config{Now: clock()})
	if err != nil {
		t.Fatal(err)
	}
	return f, pool
}

// unmount checks everything and closes the pool.
func unmount(t testing.TB, f *cfs.FS, pool *ctl.Pool) {
	t.Helper()
	for _, v := range f.Check().Violations {
		t.Error(v)
	}
	for _, v := range pool.Check(true).Violations {
		t.Error(v)
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
}

func must[T any](x T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v; expected: %v", err, want)
	}
}

// fill returns n bytes of a pattern that identifies number.
func fill(n int, number uint64) []byte {
	b := make([]byte, n)
	draw := rng.NewStream(number, "fill")
	for i := range b {
		b[i] = byte(draw.Uint64())
	}
	return b
}

func put(t testing.TB, f *cfs.FS, path string, b []byte) {
	t.Helper()
	file := must(f.Create(root, path, 0o644, int64(len(b))))(t)
	must(file.WriteAt(b, 0))(t)
	ok(t, file.Close())
}

func get(t testing.TB, f *cfs.FS, path string) []byte {
	t.Helper()
	file := must(f.Open(root, path, cfs.Read))(t)
	b := must(io.ReadAll(io.NewSectionReader(file, 0, 1<<40)))(t)
	ok(t, file.Close())
	return b
}

// TestTree creates, fills, renames and removes files, and finds the same tree after a reopen.
func TestTree(t *testing.T) {
	dev := blank(t, 1500)
	f, pool := mount(t, dev)
	ok(t, f.Mkdir(root, "/a", 0o755))
	ok(t, f.Mkdir(root, "/a/b", 0o700))
	put(t, f, "/a/b/one", fill(10_000, 1))
	put(t, f, "two", fill(5, 2))
	put(t, f, "/empty", nil)
	ok(t, f.Rename(root, "/a/b", "/c", false))
	ok(t, f.Rename(root, "/two", "/c/one", false))
	is(t, f.Rename(root, "/empty", "/c/one", true), fs.ErrExist)
	for path, want := range map[string]error{
		"/none": fs.ErrNotExist, "/c/none": fs.ErrNotExist, "/empty/x": cfs.ErrNotDir, "/c/../a": cfs.ErrName,
		"/a\nb": cfs.ErrName, "/" + strings.Repeat("x", 256): cfs.ErrName, "/\xff": cfs.ErrName,
	} {
		_, err := f.Stat(root, path)
		is(t, err, want)
		is(t, f.Remove(root, path), want)
	}
	is(t, f.Remove(root, "/c"), cfs.ErrNotEmpty)
	is(t, f.Remove(root, "/"), fs.ErrExist)
	is(t, f.Mkdir(root, "/c", 0o755), fs.ErrExist)
	is(t, f.Rename(root, "/a", "/a/x", false), cfs.ErrInside)
	is(t, f.Rename(root, "/a", "/c/one", false), cfs.ErrNotDir)
	is(t, f.Rename(root, "/empty", "/a", false), cfs.ErrIsDir)
	is(t, f.Rename(root, "/a", "/c", false), cfs.ErrNotEmpty)
	_, err := f.Open(root, "/a", cfs.Read)
	is(t, err, cfs.ErrIsDir)
	ok(t, f.Rename(root, "/c/one", "/c/one", false))
	want := "/ a directory 0, c directory 4096, empty file 0; /c one file 5;"
	said := func(f *cfs.FS) string {
		var s strings.Builder
		for _, dir := range []string{"/", "/c"} {
			s.WriteString(dir)
			for i, x := range must(f.List(root, dir))(t) {
				if i > 0 {
					s.WriteByte(',')
				}
				fmt.Fprintf(&s, " %s %v %d", x.Name, x.Kind, x.Size)
			}
			s.WriteString("; ")
		}
		return strings.TrimSpace(s.String())
	}
	if got := said(f); got != want {
		t.Fatalf("%s", got)
	}
	unmount(t, f, pool)
	f, pool = mount(t, dev.Reopen())
	if got := said(f); got != want {
		t.Fatalf("afterwards: %s", got)
	}
	if got := get(t, f, "/c/one"); !bytes.Equal(got, fill(5, 2)) {
		t.Fatalf("%q", got)
	}
	if f.Found() != (cfs.Found{}) {
		t.Errorf("%+v was found after a clean end", f.Found())
	}
	i := must(f.Stat(root, "/c/one"))(t)
	if i.Path != "/c/one" || i.Used != 4096 || i.Block != 4096 || i.Perm != 0o644 || i.Base%4096 != 0 ||
		i.Time.Unix() < 1_000_000 {
		t.Errorf("%+v", i)
	}
	if u := f.Usage(); u.Files != 2 || u.Directories != 3 {
		t.Errorf("%+v", u)
	}
	unmount(t, f, pool)
}

// TestGrowth grows a file by WriteAt across many moves, with another file behind it, and shrinks and regrows it: gaps
// read as zeros, and growing copies no data.
func TestGrowth(t *testing.T) {
	dev := blank(t, 3000)
	f, pool := mount(t, dev)
	file := must(f.Create(root, "/x", 0o644, 0))(t)
	var want []byte
	bases := map[uint64]bool{}
	for i := range uint64(300) {
		if i%40 == 0 {
			put(t, f, fmt.Sprint("/y", i), fill(3000, i)) // occupies the neighbouring block
		}
		b := fill(int(1000+i*7), i)
		must(file.WriteAt(b, int64(len(want))))(t)
		want = append(want, b...)
		bases[must(f.Stat(root, "/x"))(t).Base] = true
	}
	if got := get(t, f, "/x"); !bytes.Equal(got, want) {
		t.Fatal("a file that grew is not what was written")
	}
	if len(bases) < 3 || len(bases) > 10 {
		t.Errorf("it was at %d addresses", len(bases))
	}
	draw := rng.NewStream(1, "growth")
	for range 60 {
		size := draw.IntN(int64(len(want)) + 100_000)
		if i := int(draw.IntN(3)); i > 0 {
			size = size/ctl.Page*ctl.Page + int64(i-1)
		}
		ok(t, file.Truncate(size))
		want = append(want[:min(int64(len(want)), size)], make([]byte, max(0, size-int64(len(want))))...)
		if got := get(t, f, "/x"); !bytes.Equal(got, want) {
			t.Fatalf("a file of %d bytes is not what it was before", size)
		}
		if size > 0 {
			at := draw.IntN(size)
			b := fill(int(draw.IntN(9000)), uint64(at))
			must(file.WriteAt(b, at))(t)
			if end := at + int64(len(b)); end > int64(len(want)) {
				want = append(want, make([]byte, end-int64(len(want)))...)
			}
			copy(want[at:], b)
		}
	}
	// Moving data on the medium writes only metadata.
	ok(t, file.Truncate(1<<20))
	must(file.WriteAt(fill(1<<20, 9), 0))(t)
	ok(t, file.Sync())
	put(t, f, "/behind", fill(1, 1))
	before, base := pool.Stats(), must(f.Stat(root, "/x"))(t).Base
	ok(t, file.Truncate(1<<30))
	if did := pool.Stats().Sub(before); did.Puts > 4 || must(f.Stat(root, "/x"))(t).Base == base {
		t.Errorf("moving 256 pages wrote %d", did.Puts)
	}
	if i := must(f.Stat(root, "/x"))(t); i.Used > 1<<20 || i.Size != 1<<30 {
		t.Errorf("%+v", i)
	}
	ok(t, file.Truncate(0))
	is(t, file.Truncate(-1), cfs.ErrTooLarge)
	is(t, file.Truncate(cfs.MaxSize+1), cfs.ErrTooLarge)
	ok(t, file.Truncate(cfs.MaxSize))
	must(file.WriteAt([]byte("end"), cfs.MaxSize-3))(t)
	ok(t, file.Close())
	is(t, file.Close(), fs.ErrClosed)
	ok(t, f.Remove(root, "/x"))
	unmount(t, f, pool)
}

// TestManyNames fills a directory over many pages and empties it in a different order.
func TestManyNames(t *testing.T) {
	dev := blank(t, 1500)
	f, pool := mount(t, dev)
	ok(t, f.Mkdir(root, "/d", 0o755))
	name := func(i int) string { return fmt.Sprintf("/d/%s%d", strings.Repeat("name", i%50), i) }
	const n = 400
	for i := range n {
		put(t, f, name(i), nil)
	}
	if i := must(f.Stat(root, "/d"))(t); i.Size < 8*ctl.Page {
		t.Errorf("a directory of %d bytes", i.Size)
	}
	for _, v := range f.Check().Violations {
		t.Fatal(v)
	}
	draw := rng.NewStream(1, "names")
	order := make([]int, n)
	for i := range order {
		j := int(draw.IntN(int64(i) + 1))
		order[i], order[j] = order[j], i
	}
	for k, i := range order {
		if k%3 == 0 {
			ok(t, f.Rename(root, name(i), name(i)+"x", false))
			ok(t, f.Remove(root, name(i)+"x"))
			continue
		}
		ok(t, f.Remove(root, name(i)))
	}
	if i := must(f.Stat(root, "/d"))(t); i.Size != 0 {
		t.Errorf("an empty directory of %d bytes", i.Size)
	}
	ok(t, f.Remove(root, "/d"))
	unmount(t, f, pool)
}

// TestRights verifies the access rights of three users.
func TestRights(t *testing.T) {
	dev := blank(t, 1000)
	f, pool := mount(t, dev)
	ann, bob, eve := cfs.Cred{UID: 1, GID: 10}, cfs.Cred{UID: 2, GID: 10}, cfs.Cred{UID: 3, GID: 30}
	is(t, f.Mkdir(ann, "/ann", 0o750), fs.ErrPermission)
	ok(t, f.Mkdir(root, "/ann", 0o750))
	ok(t, f.Chown(root, "/ann", 1, 10))
	file := must(f.Create(ann, "/ann/x", 0o640, 100))(t)
	ok(t, file.Close())
	for _, c := range []struct {
		who    cfs.Cred
		rights cfs.Rights
		want   error
	}{{ann, cfs.Read | cfs.Write, nil}, {bob, cfs.Read, nil}, {bob, cfs.Write, fs.ErrPermission},
		{eve, cfs.Read, fs.ErrPermission}, {root, cfs.Read | cfs.Write, nil}, {ann, 0, fs.ErrPermission}} {
		file, err := f.Open(c.who, "/ann/x", c.rights)
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		if _, err := file.WriteAt([]byte("x"), 0); (err == nil) != (c.rights&cfs.Write != 0) {
			t.Errorf("%+v writes: %v", c, err)
		}
		if _, err := file.ReadAt(make([]byte, 1), 0); err != nil {
			t.Error(err)
		}
		if c.rights&cfs.Write == 0 {
			is(t, file.Truncate(1), fs.ErrPermission)
			is(t, file.Allocate(1), fs.ErrPermission)
		}
		ok(t, file.Close())
	}
	is(t, f.Remove(bob, "/ann/x"), fs.ErrPermission)
	is(t, f.Rename(bob, "/ann/x", "/ann/y", false), fs.ErrPermission)
	is(t, f.Chmod(bob, "/ann/x", 0o777), fs.ErrPermission)
	is(t, f.Chown(ann, "/ann/x", 2, 2), fs.ErrPermission)
	_, err := f.List(eve, "/ann")
	is(t, err, fs.ErrPermission)
	_, err = f.Stat(eve, "/ann/x")
	is(t, err, fs.ErrPermission)
	ok(t, f.Chmod(ann, "/ann", 0o777))
	ok(t, f.Remove(eve, "/ann/x"))
	unmount(t, f, pool)
}

// TestOpenFiles verifies the handling of files that are removed, replaced, truncated and grown while they are open,
// pinned and unpinned.
func TestOpenFiles(t *testing.T) {
	dev := blank(t, 2000)
	f, pool := mount(t, dev)
	put(t, f, "/first", fill(20_000, 8)) // so that the next file's block is a lower buddy
	put(t, f, "/x", fill(20_000, 1))
	put(t, f, "/behind", fill(20_000, 2))
	file := must(f.Open(root, "/x", cfs.Read|cfs.Write))(t)
	base, size, err := file.Pin()
	if err != nil || size != 20_000 {
		t.Fatal(size, err)
	}
	raw := func(n int, at uint64) []byte {
		b := make([]byte, n)
		ok(t, pool.ReadAt(b, at))
		return b
	}
	if !bytes.Equal(raw(20_000, base), fill(20_000, 1)) {
		t.Fatal("the address of a file does not have what is in it")
	}
	// It grows within its block, and no further while another file is behind it.
	ok(t, file.Truncate(32_768))
	is(t, file.Truncate(32_769), cfs.ErrBusy)
	if file.Size() != 32_768 {
		t.Fatal(file.Size())
	}
	ok(t, f.Remove(root, "/behind"))
	ok(t, file.Truncate(40_000))
	// Truncated, it keeps its block for writers beyond its end; their pages are dropped at the last close.
	ok(t, file.Truncate(5000))
	if !bytes.Equal(raw(4096, base+8192), make([]byte, 4096)) {
		t.Fatal("what is behind the end is still there")
	}
	ok(t, pool.WriteAt(fill(4096, 3), base+16384, true))
	put(t, f, "/other", fill(9000, 4))
	for _, v := range f.Check().Violations {
		t.Error(v)
	}
	ok(t, file.Close())
	if i := must(f.Stat(root, "/x"))(t); i.Used != 8192 || i.Block != 8192 || i.Base != base {
		t.Errorf("%+v", i)
	}
	for _, v := range f.Check().Violations {
		t.Error(v)
	}
	// Removed and replaced: the data stays until the last close.
	one, two := must(f.Open(root, "/x", cfs.Read))(t), must(f.Open(root, "/x", cfs.Read|cfs.Write))(t)
	base, _, err = one.Pin()
	ok(t, err)
	ok(t, f.Rename(root, "/other", "/x", false))
	put(t, f, "/next", fill(30_000, 5))
	must(two.WriteAt(fill(5000, 6), 0))(t)
	if !bytes.Equal(raw(5000, base), fill(5000, 6)) {
		t.Error("a file without a name does not have what is written to it")
	}
	if got := get(t, f, "/x"); !bytes.Equal(got, fill(9000, 4)) {
		t.Error("what replaced it is something else")
	}
	for _, v := range f.Check().Violations {
		t.Error(v)
	}
	used, _ := pool.Use()
	ok(t, one.Close())
	ok(t, two.Close())
	if now, _ := pool.Use(); now != used-2 {
		t.Errorf("%d pages were in use, %d after the last one closed a file of 2", used, now)
	}
	// After a crash with such a file open, the file and its data are gone.
	one = must(f.Open(root, "/next", cfs.Read))(t)
	ok(t, f.Remove(root, "/next"))
	temp := must(f.Temp(root, 0o600))(t)
	must(temp.WriteAt(fill(10_000, 7), 0))(t)
	ok(t, temp.Sync())
	g, other := mount(t, dev.Reopen())
	if g.Found().Nameless != 2 {
		t.Errorf("%+v", g.Found())
	}
	unmount(t, g, other)
	ok(t, one.Close())
	ok(t, temp.Name(root, "/named", true))
	is(t, temp.Name(root, "/again", true), fs.ErrExist)
	ok(t, temp.Close())
	if got := get(t, f, "/named"); !bytes.Equal(got, fill(10_000, 7)) {
		t.Error("a file that was given a name is something else")
	}
	unmount(t, f, pool)
}

// TestNoSpace fills the pool: changes that need space are refused without a trace, changes that free space still work,
// and files with allocated space can be written.
func TestNoSpace(t *testing.T) {
	dev := blank(t, 700)
	f, pool := mount(t, dev)
	file := must(f.Create(root, "/mine", 0o644, 0))(t)
	ok(t, file.Allocate(100_000))
	big := must(f.Create(root, "/big", 0o644, 0))(t)
	var at int64
	for {
		n, err := big.WriteAt(fill(4096, 1), at)
		if err != nil {
			is(t, err, ctl.ErrFull)
			break
		}
		at += int64(n)
	}
	must(file.WriteAt(fill(100_000, 2), 0))(t)
	is(t, file.Allocate(10_000_000), ctl.ErrFull)
	if file.Size() != 100_000 {
		t.Errorf("%d bytes after a refusal", file.Size())
	}
	// Names and inodes can still be created from the spare pages, until that fails with an error.
	made := 0
	for ; ; made++ {
		g, err := f.Create(root, fmt.Sprintf("/%0200d", made), 0o644, 0)
		if err != nil {
			is(t, err, ctl.ErrFull)
			break
		}
		ok(t, g.Close())
	}
	for _, v := range f.Check().Violations {
		t.Error(v)
	}
	if made == 0 || made > 2000 {
		t.Errorf("%d files were made", made)
	}
	for i := range made {
		ok(t, f.Remove(root, fmt.Sprintf("/%0200d", i)))
	}
	ok(t, big.Truncate(at/2))
	ok(t, f.Mkdir(root, "/room", 0o755))
	ok(t, big.Close())
	ok(t, f.Remove(root, "/big"))
	if got := get(t, f, "/mine"); !bytes.Equal(got, fill(100_000, 2)) {
		t.Error("the file with its own room is something else")
	}
	ok(t, file.Close())
	unmount(t, f, pool)
}

// TestSideBySide has goroutines write files of their own that grow and shrink, in a shared directory, while others
// list, stat and check.
func TestSideBySide(t *testing.T) {
	dev := blank(t, 4000)
	f, pool := mount(t, dev)
	ok(t, f.Mkdir(root, "/d", 0o755))
	var workers, watchers sync.WaitGroup
	stop := make(chan struct{})
	for i := range 5 {
		workers.Go(func() {
			draw := rng.NewStream(uint64(i), "worker")
			path := fmt.Sprint("/d/", i)
			file, err := f.Create(root, path, 0o644, 0)
			if err != nil {
				t.Error(err)
				return
			}
			var want []byte
			for k := range 60 {
				at, b := draw.IntN(int64(len(want))+5000), fill(int(draw.IntN(12_000)), uint64(k))
				if _, err := file.WriteAt(b, at); err != nil {
					t.Error(err)
				}
				if len(b) > 0 {
					want = append(want, make([]byte, max(0, int(at)+len(b)-len(want)))...)
					copy(want[at:], b)
				}
				switch draw.IntN(8) {
				case 0:
					size := draw.IntN(int64(len(want)) + 1)
					if err := file.Truncate(size); err != nil {
						t.Error(err)
					}
					want = want[:size]
				case 1:
					next := path + "x"
					if err := f.Rename(root, path, next, true); err != nil {
						t.Error(err)
					}
					path = next
				}
				got := make([]byte, len(want))
				if _, err := file.ReadAt(got, 0); err != nil && len(want) > 0 || !bytes.Equal(got, want) {
					t.Errorf("worker %d, step %d: %d bytes are not what was written: %v", i, k, len(want), err)
					return
				}
			}
			if err := file.Close(); err != nil {
				t.Error(err)
			}
			if i%2 == 0 {
				if err := f.Remove(root, path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		watchers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				all, err := f.List(root, "/d")
				if err != nil {
					t.Error(err)
				}
				for _, x := range all {
					if _, err := f.Stat(root, x.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
						t.Error(err)
					}
				}
				for _, v := range f.Check().Violations {
					t.Error(v)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	watchers.Wait()
	if u := f.Usage(); u.Files != 2 {
		t.Errorf("%+v", u)
	}
	unmount(t, f, pool)
}

// TestFormat verifies which pools are refused: by Open, a pool without a file system; by Format, one with a file system
// or other data.
func TestFormat(t *testing.T) {
	cfg, layout := smallPool()
	dev := device.NewMem(700 * device.Grain)
	shape := must(layout.Shape(dev.Size()))(t)
	ok(t, ctl.Format(shape, dev))
	pool := must(ctl.Open(cfg, dev))(t)
	_, err := cfs.Open(pool, cfs.Config{})
	is(t, err, cfs.ErrNoFS)
	_, _, err = cfs.CheckPool(pool, cfs.Config{})
	is(t, err, cfs.ErrNoFS)
	ok(t, pool.WriteFrom([]byte("x"), 1<<50, true, heat.Auto))
	is(t, cfs.Format(pool, cfs.Config{}), fs.ErrExist)
	ok(t, pool.Discard(1<<50, ctl.Page, true))
	ok(t, pool.WriteFrom([]byte("x"), 1<<27, true, heat.Auto)) // as left by an interrupted Format
	ok(t, cfs.Format(pool, cfs.Config{}))
	is(t, cfs.Format(pool, cfs.Config{}), fs.ErrExist)
	r, _, err := cfs.CheckPool(pool, cfs.Config{})
	if err != nil || len(r.Violations) > 0 || r.Directories != 1 || r.Files != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	ok(t, pool.Close())
}

// TestUseIsNoChange verifies that opening, pinning and closing a file writes no metadata if there are no pages beyond
// its end. On a read-only pool it therefore succeeds.
func TestUseIsNoChange(t *testing.T) {
	dev := blank(t, 1500)
	f, pool := mount(t, dev)
	for name, n := range map[string]int{"/empty": 0, "/one": 1, "/page": ctl.Page, "/some": 5*ctl.Page + 3,
		"/full": 8 * ctl.Page} {
		put(t, f, name, fill(n, 1))
	}
	use := func() {
		t.Helper()
		for _, name := range []string{"/empty", "/one", "/page", "/some", "/full"} {
			one := must(f.Open(root, name, cfs.Read))(t)
			two := must(f.Open(root, name, cfs.Read))(t)
			for _, file := range []*cfs.File{one, two} {
				if _, _, err := file.Pin(); err != nil {
					t.Error(err)
				}
			}
			for _, file := range []*cfs.File{one, two} {
				if err := file.Close(); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
	}
	ok(t, pool.Sync())
	use() // may clean up leftovers
	ok(t, pool.Sync())
	was := pool.Stats()
	use()
	if now := pool.Stats(); now.Puts != was.Puts || now.Flushes != was.Flushes || now.Log != was.Log {
		t.Errorf("%d pages, %d pages of the log and %d flushes for who has looked", now.Puts-was.Puts,
			now.Log-was.Log, now.Flushes-was.Flushes)
	}
	dev.SetFaults(device.Faults{FlushError: 1})
	if err := f.Mkdir(root, "/d", 0o700); err == nil || pool.ReadOnly() == nil {
		t.Fatalf("a device that fails: %v, %v", err, pool.ReadOnly())
	}
	use()
}
