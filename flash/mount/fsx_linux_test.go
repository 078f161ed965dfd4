package mount_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"farflash/internal/patience"
)

// exerciser applies random operations to a file and to a model of its contents.
type exerciser struct {
	t      *testing.T
	name   string
	f      *os.File // through the page cache
	direct *os.File // around it
	model  []byte
	r      *rand.Rand
	step   int
	last   []string // operations
}

// note keeps an operation, for the message of a failure.
func (x *exerciser) note(what string, off, n int) {
	x.last = append(x.last[max(0, len(x.last)-19):], fmt.Sprintf("%d %s %d+%d", x.step, what, off, n))
}

// most is the largest size of the file.
const most = 256 << 10

func (x *exerciser) fatalf(format string, args ...any) {
	x.t.Helper()
	x.t.Fatalf("step %d, %d bytes: "+format+"\n%s", append(append([]any{x.step, len(x.model)}, args...),
		strings.Join(x.last, "\n"))...)
}

func (x *exerciser) check(err error) {
	x.t.Helper()
	if err != nil {
		x.fatalf("%v", err)
	}
}

func (x *exerciser) open() {
	x.t.Helper()
	x.note("open", 0, 0)
	var err error
	x.f, err = os.OpenFile(x.name, os.O_RDWR|os.O_CREATE, 0o600)
	x.check(err)
	x.direct, err = os.OpenFile(x.name, os.O_RDWR|syscall.O_DIRECT, 0)
	x.check(err)
}

// span draws a range, which is a multiple of unit.
func (x *exerciser) span(end, unit int) (off, n int) {
	off = x.r.IntN(end/unit+1) * unit
	return off, min((1+x.r.IntN(64<<10/unit))*unit, end-off)
}

// put writes into the model.
func (x *exerciser) put(b []byte, off int) {
	if len(b) == 0 {
		return // it does not extend the file
	}
	if end := off + len(b); end > len(x.model) {
		x.model = append(x.model, make([]byte, end-len(x.model))...)
	}
	copy(x.model[off:], b)
}

// fill draws bytes into b.
func (x *exerciser) fill(b []byte) []byte {
	for i := range b {
		b[i] = byte(x.r.Uint32())
	}
	return b
}

// aligned returns memory for O_DIRECT.
func aligned(n int) []byte {
	b := make([]byte, n+4096)
	return b[4096-int(uintptr(unsafe.Pointer(&b[0]))%4096):][:n:n]
}

func (x *exerciser) write() {
	off, n := x.span(most, 1)
	x.note("write", off, n)
	b := x.fill(make([]byte, n))
	_, err := x.f.WriteAt(b, int64(off))
	x.check(err)
	x.put(b, off)
}

func (x *exerciser) writeDirect() {
	off, n := x.span(most, 4096)
	x.note("write around", off, n)
	b := x.fill(aligned(n))
	_, err := x.direct.WriteAt(b, int64(off))
	x.check(err)
	x.put(b, off)
}

// compare compares what was read at an offset with the model.
func (x *exerciser) compare(how string, b []byte, off int) {
	x.t.Helper()
	want := x.model[min(off, len(x.model)):min(off+len(b), len(x.model))]
	if bytes.Equal(b, want) {
		return
	}
	for i := range min(len(b), len(want)) {
		if b[i] != want[i] {
			x.fatalf("%s at %d: byte %d is %d, want %d", how, off, off+i, b[i], want[i])
		}
	}
	x.fatalf("%s at %d: %d bytes, want %d", how, off, len(b), len(want))
}

func (x *exerciser) read(f *os.File, how string, b []byte, off int) {
	x.t.Helper()
	x.note(how, off, len(b))
	n, err := f.ReadAt(b, int64(off))
	if err != nil && !errors.Is(err, io.EOF) {
		x.fatalf("%s: %v", how, err)
	}
	if want := min(len(b), max(len(x.model)-off, 0)); n != want {
		x.fatalf("%s at %d: %d bytes, want %d", how, off, n, want)
	}
	x.compare(how, b[:n], off)
}

// mapped reads or writes a part of the file through memory.
func (x *exerciser) mapped(writes bool) {
	if len(x.model) == 0 {
		return
	}
	m, err := unix.Mmap(int(x.f.Fd()), 0, len(x.model), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	x.check(err)
	off, n := x.span(len(x.model), 1)
	x.note(fmt.Sprintf("mmap, writes %v,", writes), off, n)
	if writes {
		copy(x.model[off:], x.fill(m[off:off+n]))
		x.check(unix.Msync(m, unix.MS_SYNC))
	} else {
		x.compare("mmap", bytes.Clone(m[off:off+n]), off)
	}
	x.check(unix.Munmap(m))
}

func (x *exerciser) truncate() {
	size := x.r.IntN(most + 1)
	x.note("truncate", 0, size)
	x.check(x.f.Truncate(int64(size)))
	if size <= len(x.model) {
		x.model = x.model[:size:size]
	} else {
		x.model = append(x.model, make([]byte, size-len(x.model))...)
	}
}

func (x *exerciser) allocate() {
	size := 1 + x.r.IntN(most)
	x.note("allocate", 0, size)
	x.check(unix.Fallocate(int(x.f.Fd()), 0, 0, int64(size)))
	if size > len(x.model) {
		x.model = append(x.model, make([]byte, size-len(x.model))...)
	}
}

// again closes the file, compares all of it, and opens it again.
func (x *exerciser) again() {
	x.check(errors.Join(x.f.Sync(), x.f.Close(), x.direct.Close()))
	got, err := os.ReadFile(x.name)
	x.check(err)
	if len(got) != len(x.model) {
		x.fatalf("the closed file has %d bytes", len(got))
	}
	x.compare("all", got, 0)
	x.open()
}

// TestExercise applies random reads, writes, truncations and allocations, through the page cache, around it and through
// memory, and compares every byte that is read with a model. Another process does so: a page fault of this one would
// wait for the mount while Go's collector waits for the fault, and the mount for the collector.
func TestExercise(t *testing.T) {
	steps := 1500
	if patience.Long(t) {
		steps = 100_000
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			h := newHost(t)
			dir, _ := h.mount(t, kind)
			cmd := exec.Command(os.Args[0], "-test.run", "^TestExerciser$")
			cmd.Env = append(os.Environ(), exerciseAt+"="+dir, exerciseSteps+"="+strconv.Itoa(steps))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		})
	}
}

// The environment of the process that TestExercise starts.
const (
	exerciseAt    = "FARFLASH_EXERCISE_AT"
	exerciseSteps = "FARFLASH_EXERCISE_STEPS"
)

// TestExerciser is the other process of TestExercise.
func TestExerciser(t *testing.T) {
	dir := os.Getenv(exerciseAt)
	if dir == "" {
		t.Skip("it is a part of TestExercise")
	}
	steps, err := strconv.Atoi(os.Getenv(exerciseSteps))
	if err != nil {
		t.Fatal(err)
	}
	x := &exerciser{t: t, name: filepath.Join(dir, "f"), r: rand.New(rand.NewPCG(1, 2))}
	x.open()
	for x.step = range steps {
		switch x.r.IntN(16) {
		case 0, 1, 2:
			x.write()
		case 3, 4:
			x.writeDirect()
		case 5, 6, 7:
			off, n := x.span(most, 1)
			x.read(x.f, "read", make([]byte, n), off)
		case 8, 9:
			off, n := x.span(most, 4096)
			x.read(x.direct, "O_DIRECT", aligned(n), off)
		case 10, 11:
			x.mapped(false)
		case 12, 13:
			x.mapped(true)
		case 14:
			if x.step%4 == 0 {
				x.allocate()
			} else {
				x.truncate()
			}
		case 15:
			x.again()
		}
	}
	x.again()
	x.check(errors.Join(x.f.Close(), x.direct.Close()))
}
