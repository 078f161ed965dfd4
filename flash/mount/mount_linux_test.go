package mount_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/posixtest"
	"golang.org/x/sys/unix"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/mount"
	"farflash/flash/server"
	"farflash/numeric/rng"
)

// host is a server of a pool in memory.
type host struct {
	t    testing.TB
	dev  *device.Mem
	pool *ctl.Pool
	tree *cfs.FS
	s    *server.Server
	at   string // its address, the same for all its lives
}

func newHost(t testing.TB) *host {
	t.Helper()
	if err := mount.Available(); err != nil {
		t.Skip(err)
	}
	h := &host{t: t, dev: device.NewMem(96 << 20), at: "127.0.0.1:0"}
	shape, err := ctl.Layout{Segment: 64, OverProvision: 0.3, LogPages: 64}.Shape(h.dev.Size())
	if err == nil {
		err = ctl.Format(shape, h.dev)
	}
	if err != nil {
		t.Fatal(err)
	}
	h.open(true)
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *host) open(format bool) {
	h.t.Helper()
	cfg := ctl.DefaultConfig()
	cfg.Frames = 4096
	var err error
	h.pool, err = ctl.Open(cfg, h.dev)
	if err == nil && format {
		err = cfs.Format(h.pool, cfs.Config{Now: time.Now})
	}
	if err == nil {
		h.tree, err = cfs.Open(h.pool, cfs.Config{Now: time.Now})
	}
	if err != nil {
		h.t.Fatal(err)
	}
	sc := server.DefaultConfig()
	sc.Pool, sc.Files, sc.Requests = h.pool, server.Tree(h.tree, cfs.Cred{}), server.Requests(h.tree, cfs.Cred{})
	sc.Address, sc.Connections, sc.Reads, sc.Open = h.at, 8, 8, 256
	if h.s, err = server.New(sc); err == nil {
		err = h.s.Listen()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.at, _, _ = h.s.Addresses()
}

func (h *host) stop() {
	if h.s == nil {
		return
	}
	if err := errors.Join(h.s.Drain(0), h.pool.Close()); err != nil {
		h.t.Error(err)
	}
	h.s = nil
}

// mostWait is how long a test can take on any machine.
const mostWait = 30 * time.Minute

// kinds are the ways to mount.
var kinds = []string{"remote", "local"}

// mount mounts in a new directory.
func (h *host) mount(t testing.TB, kind string) (dir string, m *mount.Mounted) {
	t.Helper()
	tree := mount.Local(h.tree)
	if kind == "remote" {
		tree = mount.Remote(h.dial(t, 10*time.Second))
	}
	return attach(t, tree)
}

func (h *host) dial(t testing.TB, limit time.Duration) *client.Client {
	t.Helper()
	cfg := client.DefaultConfig()
	cfg.Reconnect.Limit = limit
	c, err := client.Dial(context.Background(), h.at, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func attach(t testing.TB, tree mount.Tree) (dir string, m *mount.Mounted) {
	t.Helper()
	dir = t.TempDir()
	m, err := mount.Mount(dir, tree, mount.Config{Source: "test"})
	if errors.Is(err, syscall.EPERM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	// This process serves the mount that it uses: if it were killed while it waits for itself, it could not end.
	watch := time.AfterFunc(mostWait, func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH|unix.MNT_FORCE)
		t.Errorf("%s is still mounted after %v", dir, mostWait)
	})
	t.Cleanup(func() {
		watch.Stop()
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
	})
	return dir, m
}

// lacking are the tests of go-fuse for what the file system does not have, with what its users get instead.
var lacking = map[string]string{
	"Link": "links", "LinkUnlinkRename": "links", "OpenSymlinkRace": "symbolic links", "SetattrSymlink": "symbolic links",
	"SymlinkReadlink": "symbolic links", "XAttr": "extended attributes", "XAttrLarge": "extended attributes",
	"FallocateKeepSize":   "reservations beyond the end of a file",
	"FcntlFlockLocksFile": "locks of one process that exclude each other, which POSIX has not either",
}

// TestPosix runs go-fuse's tests of a file system.
func TestPosix(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			h := newHost(t)
			for name, test := range posixtest.All {
				t.Run(name, func(t *testing.T) {
					if what := lacking[name]; what != "" {
						t.Skipf("there are no %s (TestLacking)", what)
					}
					dir, _ := h.mount(t, kind)
					sub := filepath.Join(dir, name)
					if err := os.Mkdir(sub, 0o777); err != nil {
						t.Fatal(err)
					}
					test(t, sub)
				})
			}
		})
	}
}

// TestLacking: what the file system does not have gets the errors that programs expect.
func TestLacking(t *testing.T) {
	h := newHost(t)
	dir, _ := h.mount(t, "remote")
	f := filepath.Join(dir, "f")
	if err := os.WriteFile(f, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g := filepath.Join(dir, "g")
	if err := os.WriteFile(g, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(dir, strings.Repeat("x", 256))
	for name, x := range map[string]struct {
		err  error
		want syscall.Errno
	}{
		"link": {os.Link(f, f+"2"), syscall.EPERM}, "symlink": {os.Symlink("f", f+"3"), syscall.EPERM},
		"fifo":         {unix.Mkfifo(f+"4", 0o600), syscall.EPERM},
		"set xattr":    {unix.Setxattr(f, "user.x", []byte("y"), 0), syscall.ENOTSUP},
		"get xattr":    {second(unix.Getxattr(f, "user.x", nil)), syscall.ENOTSUP},
		"setuid":       {unix.Chmod(f, 0o4755), syscall.EPERM},
		"exchange":     {unix.Renameat2(0, f, 0, g, unix.RENAME_EXCHANGE), syscall.EINVAL},
		"long name":    {os.WriteFile(long, nil, 0o600), syscall.ENAMETOOLONG},
		"control name": {os.WriteFile(f+"\x01", nil, 0o600), syscall.EINVAL},
		"absent":       {second(os.Stat(f + "\x01")), syscall.ENOENT},
		"punch":        {allocate(f, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE), syscall.ENOTSUP},
		"keep size":    {allocate(f, unix.FALLOC_FL_KEEP_SIZE), syscall.ENOTSUP},
	} {
		if !errors.Is(x.err, x.want) {
			t.Errorf("%s: %v, want %v", name, x.err, x.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func allocate(name string, mode uint32) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Fallocate(int(f.Fd()), mode, 0, 4096)
}

// TestTwoMounts: each of two mounts sees at once what the other has made, renamed, resized and removed, and the data of
// files that the other has closed, or has open.
func TestTwoMounts(t *testing.T) {
	h := newHost(t)
	a, _ := h.mount(t, "remote")
	b, _ := h.mount(t, "remote")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.Mkdir(a+"/d", 0o755))
	check(os.WriteFile(a+"/d/f", []byte("one"), 0o640))
	for i := range 20 {
		text := bytes.Repeat([]byte{byte('a' + i)}, 3000*(i%5)+1)
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		check(os.WriteFile(from+"/d/f", text, 0))
		got, err := os.ReadFile(to + "/d/f")
		check(err)
		if !bytes.Equal(got, text) {
			t.Fatalf("round %d: %d bytes, want %d", i, len(got), len(text))
		}
	}
	check(os.Rename(a+"/d", a+"/e"))
	if _, err := os.Stat(b + "/d"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	all, err := os.ReadDir(b + "/e")
	check(err)
	if len(all) != 1 || all[0].Name() != "f" {
		t.Error(all)
	}
	check(os.Chmod(b+"/e/f", 0o604))
	check(os.Truncate(b+"/e/f", 2))
	if x, err := os.Stat(a + "/e/f"); err != nil || x.Size() != 2 || x.Mode() != 0o604 {
		t.Error(x, err)
	}
	// While both have it open, one appends within the file's block and the other follows.
	f, err := os.OpenFile(a+"/e/f", os.O_APPEND|os.O_WRONLY, 0)
	check(err)
	g, err := os.Open(b + "/e/f")
	check(err)
	at := int64(2)
	for i := range 5 {
		line := fmt.Sprintf("line %d\n", i)
		_, err := f.WriteString(line)
		check(err)
		check(f.Sync())
		got := make([]byte, 100)
		n, _ := g.ReadAt(got, at)
		if string(got[:n]) != line {
			t.Errorf("%q, want %q", got[:n], line)
		}
		at += int64(n)
	}
	// It cannot be moved while another machine has it open.
	if _, err := f.Write(make([]byte, 1<<20)); !errors.Is(err, syscall.EBUSY) {
		t.Error(err)
	}
	check(g.Close())
	check(os.Remove(b + "/e/f"))
	if _, err := f.Write([]byte("into a file without a name")); err != nil {
		t.Error(err)
	}
	check(f.Close())
	check(os.Remove(a + "/e"))
}

// TestTimes: a write changes the time of a file when it is closed, unless the program sets another one.
func TestTimes(t *testing.T) {
	h := newHost(t)
	dir, _ := h.mount(t, "remote")
	name := filepath.Join(dir, "f")
	old := time.Unix(1_000_000_000, 0)
	if err := os.WriteFile(name, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	mtime := func() int64 {
		x, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return x.ModTime().Unix()
	}
	if err := os.Chtimes(name, old, old); err != nil || mtime() != old.Unix() {
		t.Errorf("%v, %d", err, mtime())
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil || time.Since(time.Unix(mtime(), 0)) > time.Minute {
		t.Errorf("%v, %d", err, mtime())
	}
	f, err = os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("y"), 0); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chtimes(name, old, old), f.Close()); err != nil || mtime() != old.Unix() {
		t.Errorf("%v, %d", err, mtime())
	}
}

// TestKill cuts the server's power and starts it again while files are written through a mount: what was closed without
// an error has its data.
func TestKill(t *testing.T) {
	h := newHost(t)
	dir, _ := h.mount(t, "remote")
	var writers sync.WaitGroup
	stop := make(chan struct{})
	draw := rng.NewStream(1, "kill")
	var written, failed atomic.Int64
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("%s/%d-%d", dir, w, i%8)
				text := bytes.Repeat([]byte{byte(i), byte(w)}, 4000)
				if err := os.WriteFile(name, text, 0o600); err != nil {
					failed.Add(1)
					continue
				}
				got, err := os.ReadFile(name)
				if err != nil {
					failed.Add(1)
				} else if !bytes.Equal(got, text) {
					t.Errorf("%s: %d bytes %x, want %d of %x", name, len(got), got[:min(4, len(got))], len(text), text[:2])
					return
				}
				written.Add(1)
			}
		})
	}
	progress := func() { // until some more files have been written
		for before := written.Load(); written.Load() < before+10 && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
	}
	for range 4 {
		progress()
		if err := h.s.Drain(0); err != nil { // from here on clients get no answers
			t.Error(err)
		}
		after := h.dev.Crash(&draw)
		_ = h.pool.Close() // of a device that is gone
		h.dev = after
		h.open(false)
	}
	progress()
	close(stop)
	writers.Wait()
	t.Logf("%d files, %d errors", written.Load(), failed.Load())
	if err := os.WriteFile(dir+"/after", []byte("works"), 0o600); err != nil {
		t.Error(err)
	}
}

// TestDead: without its server a mount returns EIO, within the limit of the client, and unmounting works, with a file
// open, and while programs wait.
func TestDead(t *testing.T) {
	for _, limit := range []time.Duration{500 * time.Millisecond, time.Hour} {
		h := newHost(t)
		dir, m := attach(t, mount.Remote(h.dial(t, limit)))
		f, err := os.Create(dir + "/f")
		if err != nil {
			t.Fatal(err)
		}
		h.stop()
		waits := make(chan error, 1)
		go func() { waits <- second(os.Stat(dir + "/f")) }()
		if limit < time.Minute {
			if err := <-waits; !errors.Is(err, syscall.EIO) {
				t.Errorf("without a server: %v", err)
			}
		} else {
			select {
			case err := <-waits:
				t.Errorf("a wait without a limit ends with %v", err)
			case <-time.After(300 * time.Millisecond):
			}
		}
		if err := m.Unmount(); err != nil {
			t.Error(err)
		}
		if limit > time.Minute {
			if err := <-waits; err == nil {
				t.Error("a wait succeeds without a server")
			}
		}
		_ = f.Close()
		if all, err := os.ReadDir(dir); err != nil || len(all) != 0 {
			t.Errorf("after the unmount: %v, %v", all, err)
		}
	}
}

// TestReadOnlyMount: nothing can be changed through a mount for reading.
func TestReadOnlyMount(t *testing.T) {
	h := newHost(t)
	rw, _ := h.mount(t, "local")
	if err := os.WriteFile(rw+"/f", []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m, err := mount.Mount(dir, mount.Remote(h.dial(t, time.Second)), mount.Config{Source: "test", ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(dir + "/f"); err != nil || string(got) != "text" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.WriteFile(dir+"/g", nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Error(err)
	}
	if err := m.Unmount(); err != nil {
		t.Error(err)
	}
}

// TestGit makes a repository, clones it and checks it, all through a mount.
func TestGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	dir, _ := h.mount(t, "remote")
	run := func(at string, args ...string) {
		t.Helper()
		// A child that enters the mount before it is another program can stop this one, which serves the mount.
		cmd := exec.Command(git, append([]string{"-C", at}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "HOME="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if err := os.Mkdir(dir+"/one", 0o755); err != nil {
		t.Fatal(err)
	}
	run(dir+"/one", "init", "-q")
	for i := range 30 {
		name := fmt.Sprintf("%s/one/file%d.go", dir, i)
		if err := os.WriteFile(name, bytes.Repeat([]byte(fmt.Sprintln("line", i)), 100*i+1), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run(dir+"/one", "add", ".")
	run(dir+"/one", "commit", "-qm", "first")
	run(dir, "clone", "-q", "--no-hardlinks", dir+"/one", dir+"/two")
	run(dir+"/two", "fsck", "--strict")
	run(dir+"/two", "diff", "--exit-code", "HEAD")
	got, err := os.ReadFile(dir + "/two/file29.go")
	if want := bytes.Repeat([]byte("line 29\n"), 2901); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want %d, %v", len(got), len(want), err)
	}
}

// TestBuild builds a program in a mount and runs it there.
func TestBuild(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	h := newHost(t)
	dir, _ := h.mount(t, "remote")
	for name, text := range map[string]string{
		"go.mod":  "module p\n\ngo 1.21\n",
		"main.go": "package main\n\nfunc main() { println(\"built in a mount\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// The shell enters the mount, not a child of this process that is this program still.
	cmd := exec.Command("sh", "-c", `cd "$1" && "$2" build -o prog . && ./prog`, "sh", dir, tool)
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOTOOLCHAIN=local")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "built in a mount\n" {
		t.Errorf("%v\n%s", err, out)
	}
}
