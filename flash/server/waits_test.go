package server_test

import (
	"sync"
	"testing"
	"time"

	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/flash/server"
	"farflash/flash/verbs"
)

// slow is a set of files of which one opens and closes only when it may, as if a change of the file system waited for
// its devices.
type slow struct {
	server.Files
	name string
	mu   sync.Mutex
	may  chan bool // closed: it may
}

// hold makes the file wait until the returned function is called.
func (s *slow) hold() (release func()) {
	may := make(chan bool)
	s.mu.Lock()
	s.may = may
	s.mu.Unlock()
	return sync.OnceFunc(func() { close(may) })
}

func (s *slow) wait() {
	s.mu.Lock()
	may := s.may
	s.mu.Unlock()
	if may != nil {
		<-may
	}
}

// Open implements server.Files.
func (s *slow) Open(name string, rights verbs.Rights) (server.File, error) {
	if name != s.name {
		return s.Files.Open(name, rights)
	}
	s.wait()
	f, err := s.Files.Open(name, rights)
	if err != nil {
		return f, err
	}
	inner := f.Close
	f.Close = func() error {
		s.wait()
		return inner()
	}
	return f, nil
}

// TestFilesWait verifies that a file that cannot be opened or closed yet holds up no other: NVMe commands of other
// files go on, also on the same thread, since the file may wait for that thread's devices.
func TestFilesWait(t *testing.T) { ways(t, testFilesWait) }

func testFilesWait(t *testing.T) {
	files := &slow{name: "other"}
	d := begin(t, func(c *server.Config) {
		files.Files = c.Files
		c.Files, c.NVMe, c.Queues = files, paths(2), 1
	})
	one, two := d.connect(0), d.connect(1)
	read := func(h *nvmetest.Host, namespace uint32) <-chan error {
		done := make(chan error, 1)
		go func() {
			op := nvmetest.IOOp(wire.Read, namespace, 0, 8, 0)
			op.In = make([]byte, 4096)
			done <- h.IO[0].Do(op)
		}()
		return done
	}
	soon := func(what string, done <-chan error) {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s waits", what)
		}
	}
	release := files.hold()
	defer release()
	waits := read(two, 2)
	for range 10 {
		soon("a read while another file opens", read(one, 1))
	}
	select {
	case err := <-waits:
		t.Errorf("a file that cannot be opened is read: %v", err)
	default:
	}
	release()
	soon("a read of the file that was opened", waits)

	release = files.hold()
	defer release()
	if err := two.Close(); err != nil {
		t.Error(err)
	}
	for range 10 {
		soon("a read while another file closes", read(one, 1))
		time.Sleep(10 * time.Millisecond)
	}
	release()
}
