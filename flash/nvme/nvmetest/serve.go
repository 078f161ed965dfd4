package nvmetest

import (
	"net"
	"sync"
	"testing"

	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/server"
)

// Subsystem is the name of Serve's subsystem, and HostName that of the hosts that tests use.
const (
	Subsystem = "nqn.2026-01.example:disk"
	HostName  = "nqn.2026-01.example:host"
)

// Memory is a volume in memory. It is safe for concurrent use. Pages that were never written, or were trimmed, are
// returned as zeros.
type Memory struct {
	mu    sync.Mutex
	size  uint64
	pages map[uint64][]byte
	// Lent is the number of reads whose memory is not released.
	Lent int
	// Before, if set, is called with each task on its way; it may delay or fail it. It reports whether the task is to
	// be executed.
	Before func(*nbd.Task) bool
}

const pageSize = 4096

// NewMemory returns a volume.
func NewMemory(size uint64) *Memory { return &Memory{size: size, pages: map[uint64][]byte{}} }

// Size implements nbd.Volume.
func (m *Memory) Size() uint64 { return m.size }

// Start implements nbd.Volume.
func (m *Memory) Start(tasks []*nbd.Task) {
	for _, t := range tasks {
		if m.Before == nil || m.Before(t) {
			m.Execute(t)
		}
	}
}

// Execute executes a task.
func (m *Memory) Execute(t *nbd.Task) {
	m.mu.Lock()
	switch t.Kind {
	case nbd.Read:
		m.Lent++
	case nbd.Flush, nbd.Cache:
		t.Length = 0
	}
	for from := uint32(0); from < t.Length; {
		at := t.Offset + uint64(from)
		n := min(t.Length-from, uint32(pageSize-at%pageSize))
		p := m.pages[at/pageSize]
		if p == nil && (t.Kind == nbd.Write || t.Kind == nbd.Zero && t.NoHole) {
			p = make([]byte, pageSize)
			m.pages[at/pageSize] = p
		}
		switch {
		case t.Kind == nbd.Read && p == nil:
			t.Pieces = append(t.Pieces, nbd.Piece{Zeros: int(n)})
		case t.Kind == nbd.Read: // a copy, because writes may overtake its sending
			t.Pieces = append(t.Pieces, nbd.Piece{Data: append([]byte(nil), p[at%pageSize:][:n]...)})
		case t.Kind == nbd.Write:
			copy(p[at%pageSize:], t.Payload[from:][:n])
		case n == pageSize && !t.NoHole:
			delete(m.pages, at/pageSize)
		case t.Kind == nbd.Zero && p != nil:
			clear(p[at%pageSize:][:n])
		}
		from += n
	}
	m.mu.Unlock()
	t.Done(t)
}

// Release implements nbd.Volume.
func (m *Memory) Release(*nbd.Task) {
	m.mu.Lock()
	m.Lent--
	m.mu.Unlock()
}

// Borrowed is the number of reads whose memory is not released.
func (m *Memory) Borrowed() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.Lent
}

// Extent implements nbd.Volume.
func (m *Memory) Extent(offset, n uint64) (length uint64, allocated bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(n, pageSize-offset%pageSize), m.pages[offset/pageSize] != nil, nil
}

// Space returns a namespace with a volume.
func Space(id uint32, v nbd.Volume) nvme.Namespace {
	return nvme.Namespace{ID: id, UUID: [16]byte{6: 0x40, 8: 0x80, 15: byte(id), 14: byte(id >> 8)}, Size: v.Size(),
		Open: func(string) (nbd.Export, error) { return nbd.Export{Volume: v}, nil }}
}

// Target returns a target with one subsystem.
func Target(t testing.TB, cfg nvme.Config, spaces ...nvme.Namespace) *nvme.Target {
	t.Helper()
	cfg.Subsystems = append(cfg.Subsystems, nvme.Subsystem{Name: Subsystem, Serial: "1", Namespaces: spaces})
	target, err := nvme.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// Serve serves a target on a loopback port until the test ends.
func Serve(t testing.TB, cfg server.Config) (*server.Server, string) {
	t.Helper()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l, 1) }()
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Errorf("shutting down: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
		if alive, dying := cfg.Target.Associations(); alive+dying != 0 {
			t.Errorf("%d associations are alive and %d dying after the server has ended", alive, dying)
		}
	})
	return s, l.Addr().String()
}
