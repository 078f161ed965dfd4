package flashcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"farflash/cli/verb"
	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/internal/term"
)

// filled returns the path of a pool with n files of size bytes.
func filled(t *testing.T, n, size int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pool.img")
	o := pool.DefaultOptions()
	o.Pool.Frames, o.Cached = 512, true
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := pool.Format(o, uint64(2*n*size+8<<20), path)
	try(err)
	try(formatFiles(o, "", 0, path))
	opened, _, err := pool.Open(o, path)
	try(err)
	files, err := cfs.Open(opened, cfs.Config{})
	try(err)
	for i := range n {
		f, err := files.Create(super, fmt.Sprintf("/file-%d", i), 0o600, 0)
		try(err)
		_, err = f.WriteAt(bytes.Repeat([]byte{byte(i + 1)}, size), 0)
		try(err)
		try(f.Close())
	}
	try(opened.Close())
	return path
}

// quiet returns a program that prints to a buffer.
func quiet() (*program, *bytes.Buffer) {
	var out bytes.Buffer
	return &program{&verb.Program{Out: &out, In: strings.NewReader("yes\n"), Note: func(string, ...any) {},
		Keeping: func() {}, Progress: func(string, string, bool, string) *term.Progress {
			return term.NewProgress(io.Discard, term.ProgressConfig{Quiet: true})
		}}}, &out
}

func examined(t *testing.T, path string) *ctl.Examined {
	t.Helper()
	o := pool.DefaultOptions()
	o.Pool.Frames, o.Cached = 512, true
	x, err := pool.Examine(o, true, func(int64, int64) error { return nil }, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// TestSalvageInside verifies that no name leads out of the directory, whether it goes up, is absolute, or follows a
// link that is there.
func TestSalvageInside(t *testing.T) {
	x := examined(t, filled(t, 1, 5000))
	s, err := survey(x)
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	dir := filepath.Join(t.TempDir(), "out")
	to, err := vacantDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := &rescue{pool: x, to: to, buf: make([]byte, 1<<20), step: func(int64) error { return nil }}
	for _, name := range []string{"../evil", "a/../../evil", "/" + outside + "/evil", outside + "/evil", "link/evil",
		"..", "."} {
		if err := r.copy(name, s.Entries[0]); err == nil {
			t.Errorf("%q is copied", name)
		}
	}
	if err := r.copy("fine", s.Entries[0]); err != nil {
		t.Error(err)
	}
	for _, d := range []string{outside, filepath.Dir(dir)} {
		if all, err := os.ReadDir(d); err != nil || d == outside && len(all) > 0 || d != outside && len(all) != 1 {
			t.Errorf("%s has %v, %v", d, all, err)
		}
	}
}

// TestSalvageInterrupted cancels a salvage. It ends within a second, says how far it came, and leaves complete files.
func TestSalvageInterrupted(t *testing.T) {
	const files, size = 6, 3 << 20
	x := examined(t, filled(t, files, size))
	p, _ := quiet()
	ctx, cancel := context.WithCancel(context.Background())
	dir := filepath.Join(t.TempDir(), "out")
	go func() {
		for { // in the middle of a file
			all, _ := os.ReadDir(dir)
			if len(all) > 2 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	begun := time.Now()
	err := p.salvage(ctx, x, dir, "pool.img")
	var coded *verb.Error
	if !errors.As(err, &coded) || coded.Code != verb.ExitFailed || !strings.Contains(err.Error(), "interrupted") ||
		!strings.Contains(err.Error(), "all of them complete") {
		t.Fatalf("%v", err)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) == 0 || len(all) >= files {
		t.Fatalf("%v, %v", all, err)
	}
	for i, e := range all {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || !bytes.Equal(b, bytes.Repeat([]byte{byte(i + 1)}, size)) {
			t.Errorf("%s is not complete: %d bytes, %v", e.Name(), len(b), err)
		}
	}
}

// TestAgreed verifies that only a terminal can agree.
func TestAgreed(t *testing.T) {
	p, out := quiet()
	if yes, err := p.agreed(context.Background(), "?"); yes || err == nil || out.Len() > 0 {
		t.Errorf("%v, %v, %q", yes, err, out)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p.In = null
	if yes, err := p.agreed(context.Background(), "?"); yes || err == nil {
		t.Errorf("%v, %v", yes, err)
	}
}
