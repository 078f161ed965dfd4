package client_test

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"net"
	"testing"
	"time"

	"farflash/flash/client"
	"farflash/flash/verbs"
	"farflash/flash/verbs/control"
	"farflash/flash/verbs/stream"
)

// memory exports one region of memory, so that only the client and the protocol cost anything.
type memory []byte

func (m memory) Open(string, verbs.Rights) (control.Export, error) {
	c, err := m.Stat("")
	return control.Export{Region: c, Close: func() {}}, err
}

func (m memory) Stat(string) (verbs.RegionConfig, error) {
	return verbs.RegionConfig{Memory: m, Rights: all, Allowed: verbs.AllSemantics}, nil
}

func (memory) Hint(string) string { return "" }

func (memory) Join(string, uint32) (string, error) { return "instance", nil }

func (memory) Whoami() (string, control.Past, error) { return "", control.Past{}, control.Malformed }

func (memory) Fence(string, time.Duration) error { return control.Malformed }

// serveMemory serves one connection after the other and returns the address.
func serveMemory(t testing.TB, e interface {
	control.Exports
	control.Clients
}) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var key [16]byte
	if _, err := rand.Read(key[:]); err != nil {
		t.Fatal(err)
	}
	a, err := verbs.NewAdapter(key)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			d := a.NewDomain(4)
			s := control.NewServer(e, e, d, 4)
			cfg := stream.DefaultConfig()
			cfg.Prepare = s.Prepare
			if c, err := stream.Server(nc, d, cfg); err == nil {
				_ = s.Serve(c)
				_ = c.Close()
			}
		}
	}()
	return l.Addr().String()
}

// operations are those of the hot path.
func operations(f *client.File, b []byte) map[string]func() error {
	return map[string]func() error{
		"read":     func() error { _, err := f.ReadAt(b, 0); return err },
		"write":    func() error { _, err := f.WriteAt(b, 0); return err },
		"durable":  func() error { _, err := f.WriteDurable(b, 0); return err },
		"addition": func() error { _, err := f.FetchAdd(0, 1, false); return err },
	}
}

// setting is the default configuration, or one that does not reconnect.
func setting(on bool) client.Config {
	cfg := client.DefaultConfig()
	if !on {
		cfg.Reconnect = client.Reconnect{}
	}
	return cfg
}

// TestNoAllocations verifies that no operation allocates, at either end, whether or not the client reconnects.
func TestNoAllocations(t *testing.T) {
	if testing.Short() {
		t.Skip("short tests run under the race detector, which has pools forget what they hold")
	}
	for _, on := range []bool{false, true} {
		c := dial(t, serveMemory(t, make(memory, 1<<20)), setting(on))
		for name, do := range operations(open(t, c, "disk"), make([]byte, 4096)) {
			run := func() {
				if err := do(); err != nil {
					t.Fatal(err)
				}
			}
			for range 500 {
				run()
			}
			if n := testing.AllocsPerRun(2000, run); n > 0 {
				t.Errorf("reconnect %v: %v allocations for a %s", on, n, name)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkOperations(b *testing.B) {
	for _, on := range []bool{false, true} {
		c := dial(b, serveMemory(b, make(memory, 1<<20)), setting(on))
		for name, do := range operations(open(b, c, "disk"), make([]byte, 4096)) {
			b.Run(fmt.Sprintf("%s/reconnect=%v", name, on), func(b *testing.B) {
				b.ReportAllocs()
				for range b.N {
					if err := do(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		_ = c.Close()
	}
}

// old is a server that does not know Join and Flush.
type old struct{ memory }

func (old) Join(string, uint32) (string, error) {
	return "", fmt.Errorf("%w: what?", control.Malformed)
}

func (old) Open(string, verbs.Rights) (control.Export, error) {
	c, err := make(memory, 4096).Stat("")
	return control.Export{Region: c, Close: func() {}, Flush: func() error { return fs.ErrInvalid }}, err
}

// TestOldServer: a client of a server that cannot end earlier connections works until its connection is lost, and then
// ends with the reason.
func TestOldServer(t *testing.T) {
	p := newProxy(t, serveMemory(t, old{}), never)
	f := open(t, dial(t, p.address(), quick()), "disk")
	if _, err := f.WriteAt(make([]byte, 100), 0); err != nil {
		t.Error(err)
	}
	if err := f.Flush(); err == nil {
		t.Error("a server that knows no flush has flushed")
	}
	p.to("")
	_, err := f.ReadAt(make([]byte, 100), 0)
	if err == nil {
		t.Error("a client of an old server has reconnected")
	}
	t.Log(err)
}
