package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/iotest"

	"farflash/flash/cfs"
	"farflash/flash/cfs/transfer"
	"farflash/flash/ctl"
	"farflash/flash/ctl/media"
	"farflash/flash/device"
)

func open(t *testing.T) *cfs.FS {
	dev := device.NewMem(4000 * device.Grain)
	layout := ctl.Layout{UUID: media.UUID{1}, Segment: 32, OverProvision: 0.3}
	shape, err := layout.Shape(dev.Size())
	if err != nil {
		t.Fatal(err)
	}
	cfg := ctl.DefaultConfig()
	cfg.Frames = 256
	if err := ctl.Format(shape, dev); err != nil {
		t.Fatal(err)
	}
	pool, err := ctl.Open(cfg, dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := cfs.Format(pool, cfs.Config{}); err != nil {
		t.Fatal(err)
	}
	files, err := cfs.Open(pool, cfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// save saves a file of the pool as the superuser.
func save(ctx context.Context, files *cfs.FS, from, to string) error {
	return transfer.Save(to, false, func(out io.Writer) error {
		return transfer.Get(ctx, files, cfs.Cred{}, from, out)
	})
}

// TestSaveOver verifies that a file can be replaced, and that a pipe, which stands for a device, cannot.
func TestSaveOver(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("old"), 0o600), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	write := func(out io.Writer) error { _, err := out.Write([]byte("new")); return err }
	if err := transfer.Save(file, false, write); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an existing file: %v", err)
	}
	if err := transfer.Save(file, true, write); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(file); string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
	for _, to := range []string{pipe, dir} {
		if err := transfer.Save(to, true, write); err == nil {
			t.Errorf("%s is replaced", to)
		}
	}
	if there, err := os.Stat(pipe); err != nil || there.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("%v, %v", there, err)
	}
}

// TestThereAndBack copies files of various sizes in and out; zeros take no space.
func TestThereAndBack(t *testing.T) {
	files, ctx, who := open(t), context.Background(), cfs.Cred{}
	for _, n := range []int{0, 1, 4096, 1 << 20, 1<<20 + 1, 3_500_000} {
		b := bytes.Repeat([]byte("some content "), n/13+1)[:n]
		if n > 1<<20 {
			clear(b[:1<<20])
		}
		if err := transfer.Put(ctx, files, who, iotest.HalfReader(bytes.NewReader(b)),
			transfer.Target{Path: "/x", Perm: 0o600, Replace: true}); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := transfer.Get(ctx, files, who, "/x", &out); err != nil || !bytes.Equal(out.Bytes(), b) {
			t.Fatalf("%d bytes come back as %d: %v", n, out.Len(), err)
		}
		to := filepath.Join(t.TempDir(), "out")
		if err := save(ctx, files, "/x", to); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%d bytes are saved as %d: %v", n, len(got), err)
		}
		if err := save(ctx, files, "/x", to); !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
		if s, err := files.Stat(who, "/x"); err != nil || n > 1<<20 && s.Used > int64(n)-1<<20+ctl.Page {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

// broken fails after some bytes.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestMistakes verifies that failed copies leave no file behind.
func TestMistakes(t *testing.T) {
	files, ctx, who := open(t), context.Background(), cfs.Cred{}
	in := func() io.Reader { return bytes.NewReader(make([]byte, 5000)) }
	if err := transfer.Put(ctx, files, who, in(), transfer.Target{Path: "/x"}); err != nil {
		t.Fatal(err)
	}
	if err := transfer.Put(ctx, files, who, in(), transfer.Target{Path: "/x"}); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := transfer.Put(ctx, files, who, iotest.ErrReader(io.ErrNoProgress),
		transfer.Target{Path: "/y"}); !errors.Is(err, io.ErrNoProgress) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	pipe, feed := io.Pipe()
	if err := transfer.Put(ended, files, who, pipe, transfer.Target{Path: "/y"}); !errors.Is(err,
		transfer.ErrInterrupted) {
		t.Error(err)
	}
	if err := errors.Join(feed.Close(), pipe.Close()); err != nil {
		t.Error(err)
	}
	if err := transfer.Get(ctx, files, who, "/x", broken{}); !errors.Is(err, transfer.ErrLocal) {
		t.Error(err)
	}
	dir := t.TempDir()
	if err := save(ended, files, "/x", filepath.Join(dir, "out")); !errors.Is(err,
		transfer.ErrInterrupted) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	for _, d := range []string{"/d", "/d/e"} {
		if err := files.Mkdir(who, d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := transfer.Put(ctx, files, who, in(), transfer.Target{Path: "/d/e/f"}); err != nil {
		t.Fatal(err)
	}
	if err := transfer.RemoveAll(files, who, "/d"); err != nil {
		t.Error(err)
	}
	if u := files.Usage(); u.Files != 1 || u.Directories != 1 {
		t.Errorf("%+v", u)
	}
	for _, v := range files.Check().Violations {
		t.Error(v)
	}
}
