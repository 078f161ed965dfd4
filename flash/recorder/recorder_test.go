package recorder_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"farflash/block"
	"farflash/flash/meter"
	"farflash/flash/recorder"
	"farflash/workload"
	"farflash/workload/trace"
)

// server is a meter whose operations are recorded.
type server struct {
	r *recorder.Recorder
	m *meter.Meter
}

func serve(t testing.TB, path string, size int64) *server {
	t.Helper()
	r, err := recorder.New(recorder.Config{Path: path, Size: size})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{r, meter.New(9)}
	s.m.Record(r.Take)
	return s
}

// do executes an operation that takes some time.
func (s *server) do(u *meter.Use, k meter.Kind, offset uint64, n int, f meter.Failure, d time.Duration) {
	at, first := u.Begin(1)
	x := u.Trace(first)
	x.Kind, x.Offset, x.Bytes = k, offset, n
	x.Reached(meter.Arrived, at)
	x.Reached(meter.Done, at+int64(d)/2)
	x.Reached(meter.Sent, at+int64(d))
	x.End(f)
}

// read returns the records of a recording.
func read(t testing.TB, path string) (all []workload.Record, r *trace.Reader) {
	t.Helper()
	r, err := trace.Open(path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if r.Format() != trace.Recorded {
		t.Fatalf("%s is read as %v", path, r.Format())
	}
	for {
		var x workload.Record
		if err := r.Next(&x); err == io.EOF {
			return all, r
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
}

// TestReplay records operations of two exports and reads them as a trace.
func TestReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ops.csv")
	s := serve(t, path, recorder.Least)
	disk, odd := s.m.Open("disk", "nbd"), s.m.Open(`a "b", c`, "iwarp")
	disk.Peer, odd.Peer = "10.0.0.1:40", "unix,\n\""
	for _, x := range []struct {
		u      *meter.Use
		k      meter.Kind
		offset uint64
		n      int
		f      meter.Failure
	}{
		{disk, meter.Write, 8192, 4096, meter.Succeeded}, {odd, meter.Read, 5, 7, meter.IO},
		{disk, meter.Flush, 99, 0, meter.Succeeded}, {disk, meter.Zero, 0, 4096, meter.Succeeded},
		{disk, meter.Trim, 4096, 512, meter.Succeeded},
		{disk, meter.Cache, 4096, 512, meter.Succeeded}, {disk, meter.Read, 0, 512, meter.Dropped},
		{disk, meter.Read, 0, 0, meter.Succeeded}, // these three are not in it
	} {
		s.do(x.u, x.k, x.offset, x.n, x.f, 30*time.Microsecond)
		time.Sleep(time.Microsecond)
	}
	if err := s.r.Close(); err != nil {
		t.Fatal(err)
	}
	if written, lost := s.r.Counts(); written != 5 || lost != 0 {
		t.Errorf("%d operations written, %d lost", written, lost)
	}
	all, r := read(t, path)
	var got []string
	for _, x := range all {
		got = append(got, fmt.Sprint(x.Op, " ", r.VolumeName(x.Volume), " ", x.Offset, " ", x.Size, " ", x.Response))
	}
	want := `write disk 8192 4096 30us
read a "b", c 0 512 30us
flush disk 0 0 30us
trim disk 0 4096 30us
trim disk 4096 512 30us`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("the recording has\n%s\nwant\n%s", text, want)
	}
	if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "not for whole sectors of 512B: 1 request;") {
		t.Errorf("notes %q", notes)
	}
}

// TestContinued: a recording goes on in the file of an earlier one, whose last line was cut off at any byte, and other
// files are refused and stay as they are.
func TestContinued(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "ops.csv")
	s := serve(t, path, recorder.Least)
	u := s.m.Open("disk", "nbd")
	for i := range 3 {
		s.do(u, meter.Write, uint64(i)*4096, 4096, meter.Succeeded, time.Microsecond)
	}
	if err := s.r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(b) + 1 {
		if err := os.WriteFile(path, b[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s := serve(t, path, recorder.Least)
		s.do(s.m.Open("disk", "nbd"), meter.Read, 1<<20, 512, meter.Succeeded, time.Microsecond)
		if err := s.r.Close(); err != nil {
			t.Fatal(err)
		}
		all, _ := read(t, path)
		whole := max(strings.Count(string(b[:cut]), "\n"), 1)
		if len(all) != whole || all[len(all)-1].Op != block.Read {
			t.Fatalf("cut to %d of %d bytes, the recording has %d operations, want %d", cut, len(b), len(all), whole)
		}
	}
	for _, text := range []string{"important\n", "time,op,export,offset,length,latency,sessions\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := recorder.New(recorder.Config{Path: path, Size: recorder.Least}); err == nil ||
			!strings.Contains(err.Error(), path+" exists and is no recording; give another name") {
			t.Errorf("%q is continued: %v", text, err)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%q became %q (%v)", text, b, err)
		}
	}
	for at, want := range map[string]error{dir: syscall.EISDIR, filepath.Join(dir, "no", "ops.csv"): fs.ErrNotExist} {
		if _, err := recorder.New(recorder.Config{Path: at, Size: recorder.Least}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", at, err, want)
		}
	}
	if _, err := recorder.New(recorder.Config{Path: path, Size: recorder.Least - 1}); err == nil {
		t.Error("a recording of less than the least size is possible")
	}
}

// TestBounded records more than the size from several goroutines: what the two files have is at most that, and together
// with what they had before nothing but whole lines.
func TestBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ops.csv")
	s := serve(t, path, recorder.Least)
	var all sync.WaitGroup
	const each, clients = 10_000, 4
	for range clients {
		all.Go(func() {
			u := s.m.Open("disk", "nbd")
			defer u.Close()
			for i := range each {
				s.do(u, meter.Write, uint64(i)*4096, 4096, meter.Succeeded, time.Microsecond)
			}
		})
	}
	all.Wait()
	if err := s.r.Close(); err != nil {
		t.Fatal(err)
	}
	if written, lost := s.r.Counts(); written+lost != each*clients || lost > 0 {
		t.Errorf("%d of %d operations written, %d lost", written, each*clients, lost)
	}
	size, lines := int64(0), 0
	for _, at := range []string{path, path + ".1"} {
		info, err := os.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		list, _ := read(t, at)
		lines += len(list)
	}
	if size > recorder.Least || lines < each {
		t.Errorf("%d bytes in two files, of at most %d, with %d lines", size, recorder.Least, lines)
	}
}

// TestFull: on a full file system operations are lost and counted, nothing of a line stays, and recording goes on when
// there is space.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ops.csv")
	s := serve(t, path, 1<<30)
	u := s.m.Open("disk", "nbd")
	// RLIMIT_FSIZE stands for the full file system: a write beyond it is cut off, and then fails.
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	limit := func(x syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &x); err != nil {
			t.Fatal(err)
		}
	}
	limit(syscall.Rlimit{Cur: 100_000, Max: was.Max})
	defer limit(was)
	some := func(n int64) {
		before, lostBefore := s.r.Counts()
		for range n {
			s.do(u, meter.Write, 4096, 4096, meter.Succeeded, time.Microsecond)
		}
		for {
			written, lost := s.r.Counts()
			if written+lost == before+lostBefore+n {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	for range 2 {
		some(1000)
	}
	if _, lost := s.r.Counts(); lost == 0 {
		t.Error("nothing is lost on a full file system")
	}
	limit(was)
	some(1000)
	if err := s.r.Close(); err != nil {
		t.Fatal(err)
	}
	written, _ := s.r.Counts()
	if all, _ := read(t, path); int64(len(all)) != written {
		t.Errorf("the recording has %d operations, and %d were written", len(all), written)
	}
}

// BenchmarkTake records operations.
func BenchmarkTake(b *testing.B) {
	s := serve(b, filepath.Join(b.TempDir(), "ops.csv"), 64<<20)
	u := s.m.Open("disk", "nbd")
	u.Peer = "10.0.0.1:40000"
	b.ReportAllocs()
	for b.Loop() {
		at, first := u.Begin(1)
		x := u.Trace(first)
		x.Kind, x.Offset, x.Bytes = meter.Write, 1<<30, 4096
		x.Reach(meter.Done)
		x.Reach(meter.Sent)
		x.End(meter.Succeeded)
		u.End(at, meter.Write, 4096, meter.Succeeded)
	}
	written, lost := s.r.Counts()
	b.ReportMetric(float64(lost)/float64(max(written+lost, 1)), "lost")
	if err := s.r.Close(); err != nil {
		b.Fatal(err)
	}
}
