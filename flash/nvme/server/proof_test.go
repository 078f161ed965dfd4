package server_test

import (
	"crypto/rand"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/nvme"
	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
)

// TestProof verifies that a host with the right key, and only such a host, can use a subsystem that asks for keys: by
// loops and by goroutines, in one direction and in both.
func TestProof(t *testing.T) { ways(t, testProof) }

func testProof(t *testing.T, loops *server.Loops) {
	var k [3]chap.Key
	for i := range k {
		var err error
		if k[i], err = chap.NewKey(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	const other = "nqn.2026-01.example:other"
	cfg := nvme.DefaultConfig()
	cfg.Limits.Controllers, cfg.Random = 2, rand.Reader
	cfg.Subsystems = []nvme.Subsystem{{Name: "nqn.2026-01.example:open", Serial: "2"}}
	target := nvmetest.Target(t, cfg)
	space := nvmetest.Space(1, nvmetest.NewMemory(1<<20))
	if err := target.Set(nvme.Subsystem{Name: nvmetest.Subsystem, Namespaces: []nvme.Namespace{space},
		Keys: map[string]chap.Keys{nvmetest.HostName: {Host: k[0], Controller: k[1]}, other: {Host: k[2]}}}); err !=
		nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said []string
	c := quick(t, target, loops)
	c.Failed = func(_ net.Addr, err error) {
		mu.Lock()
		said = append(said, err.Error())
		mu.Unlock()
	}
	_, addr := nvmetest.Serve(t, c)
	open := func(host string, keys *chap.Keys) error {
		h, err := nvmetest.Open(addr, nvmetest.Login{Queues: 2, Keys: keys,
			Identity: wire.Identity{HostID: [16]byte{1}, Host: host, Subsystem: nvmetest.Subsystem}})
		if err != nil {
			return err
		}
		o := nvmetest.IOOp(wire.Read, 1, 0, 8, 0)
		o.In = make([]byte, 4096)
		return errors.Join(h.IO[1].Do(o), h.Close())
	}
	for _, x := range []struct {
		name string
		host string
		keys *chap.Keys
		want error
	}{
		{"one way", nvmetest.HostName, &chap.Keys{Host: k[0]}, nil},
		{"both ways", nvmetest.HostName, &chap.Keys{Host: k[0], Controller: k[1]}, nil},
		{"another host", other, &chap.Keys{Host: k[2]}, nil},
		{"the key of another host", other, &chap.Keys{Host: k[0]}, chap.Failed},
		{"a wrong key", nvmetest.HostName, &chap.Keys{Host: k[1]}, chap.Failed},
		{"another key of the subsystem", nvmetest.HostName, &chap.Keys{Host: k[0], Controller: k[2]}, chap.Failed},
		{"no key", nvmetest.HostName, nil, wire.AuthRequired | wire.NoRetry},
		{"a host without a key here", "nqn.2026-01.example:stranger", &chap.Keys{Host: k[0]},
			wire.InvalidHost | wire.NoRetry},
	} {
		if err := open(x.host, x.keys); !errors.Is(err, x.want) || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, want %v", x.name, err, x.want)
		}
	}
	for i := 0; ; i++ {
		mu.Lock()
		all := strings.Join(said, "\n")
		mu.Unlock()
		if strings.Contains(all, chap.Failed.Error()) {
			break
		}
		if i == 500 {
			t.Fatalf("the reason is not reported: %q", all)
		}
		time.Sleep(10 * time.Millisecond)
	}

	// Strangers who do not prove who they are can use no queue, and keep no place of a host.
	login := nvmetest.Login{Identity: wire.Identity{HostID: [16]byte{1}, Host: nvmetest.HostName,
		Subsystem: nvmetest.Subsystem}}
	for range 8 {
		c, err := nvmetest.Dial(addr, wire.Digests{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		id, err := c.Connect(login, 0, wire.AnyController)
		if err != nil || !c.Asked {
			t.Fatalf("asked for a proof: %v, %v", c.Asked, err)
		}
		for _, o := range []*nvmetest.Op{{Request: wire.Request{Opcode: wire.KeepAlive}},
			{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.PropertyGet}}} {
			if err := c.Do(o); !errors.Is(err, wire.AuthRequired|wire.NoRetry) {
				t.Errorf("before the proof: %v", err)
			}
		}
		io, err := nvmetest.Dial(addr, wire.Digests{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = io.Close() }()
		if _, err := io.Connect(login, 1, id); !errors.Is(err, wire.AuthRequired|wire.NoRetry) {
			t.Errorf("an I/O queue before the proof: %v", err)
		}
	}
	if err := open(nvmetest.HostName, &chap.Keys{Host: k[0]}); err != nil {
		t.Errorf("beside strangers: %v", err)
	}

	// Nonsense in place of a proof.
	for _, b := range [][]byte{make([]byte, 4), make([]byte, 64), {1, 2, 3, 4, 5, 6, 7, 8, 9}} {
		c, err := nvmetest.Dial(addr, wire.Digests{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := c.Connect(login, 0, wire.AnyController); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(&nvmetest.Op{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.AuthSend,
			Words: wire.ProofWords(len(b))}, Out: b}); err != nil {
			t.Errorf("%x: %v", b, err)
		}
		o := &nvmetest.Op{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.AuthReceive,
			Words: wire.ProofWords(4096)}, In: make([]byte, 4096)}
		if err := c.Do(o); err != nil || o.In[1] != 0xf1 {
			t.Errorf("%x: %x, %v", b, o.In[:16], err)
		}
		if _, err := c.Next(); err == nil {
			t.Error("the connection goes on")
		}
	}
}
