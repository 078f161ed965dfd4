package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
	"farflash/internal/patience"
)

// secret is data that no hostile host may see, of a subsystem for another host.
var secret = bytes.Repeat([]byte("secret! "), 512)

// witness is a target with a secret, and a host that uses it while hostile ones connect.
type witness struct {
	addr string
	good *nvmetest.Host
	open *nvmetest.Memory // the volume that hostile hosts may use
}

const secretSubsystem = "nqn.2026-01.other:vault-of-the-good-host"

func newWitness(t *testing.T, loops *server.Loops) *witness {
	t.Helper()
	cfg := nvme.DefaultConfig()
	l := login(1)
	l.Host, l.Subsystem = "nqn.2026-01.other:the-good-host", secretSubsystem
	cfg.Subsystems = []nvme.Subsystem{{Name: l.Subsystem, Hosts: []string{l.Host},
		Namespaces: []nvme.Namespace{nvmetest.Space(9, nvmetest.NewMemory(1<<20))}}}
	w := &witness{open: nvmetest.NewMemory(1 << 20)}
	target := nvmetest.Target(t, cfg, nvmetest.Space(1, w.open))
	config := quick(t, target, loops)
	config.Failed = nil
	config.Handshake, config.Progress = 2*time.Second, 2*time.Second
	_, w.addr = nvmetest.Serve(t, config)
	w.good = open(t, w.addr, l)
	o := nvmetest.IOOp(wire.Write, 9, 0, 8, wire.FUA)
	o.Out, o.InCapsule = secret, true
	if err := w.good.IO[0].Do(o); err != nil {
		t.Fatal(err)
	}
	return w
}

// check verifies that the good host is served and its data are as they were.
func (w *witness) check(t *testing.T) {
	t.Helper()
	o := nvmetest.IOOp(wire.Read, 9, 0, 8, 0)
	o.In = make([]byte, len(secret))
	if err := w.good.IO[0].Do(o); err != nil || !bytes.Equal(o.In, secret) {
		t.Fatalf("the other host: %v", err)
	}
}

// phase is a point in a host's conversation, with the PDU that comes next.
type phase struct {
	name  string
	reach func(addr string) (net.Conn, error)
	next  []byte
}

func phases(d wire.Digests) []phase {
	at := func(queues int) func(string) (*nvmetest.Host, error) {
		return func(addr string) (*nvmetest.Host, error) {
			l := login(queues)
			l.Digests = d
			return nvmetest.Open(addr, l)
		}
	}
	proto := &nvmetest.Conn{Digests: d, Limit: nvme.Window}
	ic := wire.IC{Digests: d}.Append(nil, wire.ICReq)
	capsule := func(q wire.Request, data []byte) []byte { return proto.Capsule(q, data) }
	admin := func(addr string) (net.Conn, error) {
		h, err := at(0)(addr)
		if err != nil {
			return nil, err
		}
		return h.Admin, nil
	}
	data := func(addr string) (net.Conn, error) {
		h, err := at(1)(addr)
		if err != nil {
			return nil, err
		}
		return &pair{h.IO[0], h.Admin}, nil
	}
	asked := func(addr string) (net.Conn, error) {
		c, err := data(addr)
		if err != nil {
			return nil, err
		}
		o := nvmetest.IOOp(wire.Write, 1, 0, 8, 0)
		o.Out = make([]byte, 4096)
		x := c.(*pair).Conn.(*nvmetest.Conn)
		if err := x.Send(o); err != nil {
			return nil, err
		}
		if p, err := x.Next(); err != nil || p.Type != wire.R2T {
			return nil, fmt.Errorf("%+v, %w", p, err)
		}
		return c, nil
	}
	raw := func(addr string) (net.Conn, error) { return net.Dial("tcp", addr) }
	early := func(addr string) (net.Conn, error) { return nvmetest.Dial(addr, d, 0) }
	l := login(0)
	l.Controller = wire.AnyController
	return []phase{
		{"ICReq", raw, ic},
		{"Connect", early, capsule(wire.Request{Opcode: wire.Fabrics, Fabrics: wire.Connect,
			Words: wire.Connection{Size: 31}.Words(), SGL: wire.SGL{Length: wire.ConnectSize, Type: wire.InCapsule}},
			l.Append(nil))},
		{"Identify", admin, capsule(wire.Request{Opcode: wire.Identify, CID: 100, Words: [6]uint32{1},
			SGL: wire.SGL{Length: 4096, Type: wire.Transport}}, nil)},
		{"Get Log Page", admin, capsule(wire.Request{Opcode: wire.GetLogPage, CID: 100,
			Words: wire.LogRequest{Log: wire.LogHealth, Length: 512}.Words(),
			SGL:   wire.SGL{Length: 512, Type: wire.Transport}}, nil)},
		{"Property Set", admin, capsule(wire.Request{Opcode: wire.Fabrics, Fabrics: wire.PropertySet, CID: 100,
			Words: wire.Property{Offset: wire.PropCC, Value: 0x460001}.Words()}, nil)},
		{"Read", data, capsule(wire.Request{Opcode: wire.Read, CID: 100, NSID: 1, Words: [6]uint32{8, 0, 7},
			SGL: wire.SGL{Length: 4096, Type: wire.Transport}}, nil)},
		{"Write", data, capsule(wire.Request{Opcode: wire.Write, CID: 100, NSID: 1, Words: [6]uint32{8},
			SGL: wire.SGL{Length: 512, Type: wire.InCapsule}}, make([]byte, 512))},
		{"Dataset Management", data, capsule(wire.Request{Opcode: wire.Dataset, CID: 100, NSID: 1,
			Words: [6]uint32{0, wire.DatasetDiscard}, SGL: wire.SGL{Length: 16, Type: wire.InCapsule}},
			wire.Range{Blocks: 8}.Append(nil))},
		{"H2CData", asked, proto.H2C(wire.Transfer{Command: 2, Tag: 7, Length: 4096}, true, make([]byte, 4096))},
		{"H2CTermReq", data, wire.AppendTerm(nil, wire.H2CTermReq, wire.Fault{Status: 1}, make([]byte, 24))},
	}
}

// pair is an I/O queue's connection, with the admin queue's.
type pair struct {
	net.Conn
	admin net.Conn
}

func (p *pair) Close() error { return errors.Join(p.Conn.Close(), p.admin.Close()) }

// attack sends bytes at a point of the conversation and then closes the host's side. The server must end the
// connection, and not show the secret.
func (w *witness) attack(t *testing.T, p phase, b []byte, label string) {
	t.Helper()
	nc, err := p.reach(w.addr)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	defer func() { _ = nc.Close() }()
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = nc.Write(b) // the server may have ended the connection already
	tcp := nc
	if x, ok := tcp.(*pair); ok {
		tcp = x.Conn
	}
	if x, ok := tcp.(*nvmetest.Conn); ok {
		tcp = x.Conn
	}
	_ = tcp.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(tcp)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%s, %s: the connection goes on", p.name, label)
	}
	if bytes.Contains(got, secret[:16]) {
		t.Errorf("%s, %s: the secret is read", p.name, label)
	}
}

// TestHostileFields sends every PDU with each field changed, cut off at each byte, and with bytes added.
func TestHostileFields(t *testing.T) { ways(t, testHostileFields) }

func testHostileFields(t *testing.T, loops *server.Loops) {
	w := newWitness(t, loops)
	for _, d := range []wire.Digests{{}, {Header: true, Data: true}} {
		every := 1
		if (d.Header || loops != nil) && !patience.Long(t) {
			every = 11
		}
		for _, p := range phases(d) {
			for i := range p.next {
				if i%every != 0 || i > 100 && i%97 != 0 && i < len(p.next)-8 { // after 100 come the data
					continue
				}
				for _, x := range []byte{0x01, 0xff} {
					b := bytes.Clone(p.next)
					b[i] ^= x
					w.attack(t, p, b, fmt.Sprintf("byte %d ^ %#x", i, x))
				}
				w.attack(t, p, p.next[:i], fmt.Sprintf("cut at byte %d", i))
			}
			w.attack(t, p, append(bytes.Clone(p.next), 0xff), "a byte added")
			w.attack(t, p, append(bytes.Clone(p.next), p.next...), "twice")
			w.attack(t, p, append(bytes.Clone(p.next), bytes.Repeat([]byte{4}, 4096)...), "4096 bytes added")
			w.check(t)
		}
	}
	until := time.Now().Add(10 * time.Second)
	for w.open.Borrowed() > 0 && time.Now().Before(until) {
		time.Sleep(time.Millisecond)
	}
	if n := w.open.Borrowed(); n > 0 {
		t.Errorf("the memory of %d reads is still lent", n)
	}
}

// TestHostileNames verifies that a host is not let into another's subsystem, nor into its association.
func TestHostileNames(t *testing.T) { ways(t, testHostileNames) }

func testHostileNames(t *testing.T, loops *server.Loops) {
	w := newWitness(t, loops)
	l := login(0)
	l.Subsystem = secretSubsystem
	if _, err := nvmetest.Open(w.addr, l); !errors.Is(err, wire.InvalidHost|wire.NoRetry) {
		t.Errorf("another host's subsystem: %v", err)
	}
	for label, change := range map[string]func(*nvmetest.Login){
		"name": func(l *nvmetest.Login) {}, "identifier": func(l *nvmetest.Login) {
			l.Host, l.HostID[0] = "nqn.2026-01.other:the-good-host", 9
		},
	} {
		l := login(0)
		l.Subsystem = secretSubsystem
		change(&l)
		c, err := nvmetest.Dial(w.addr, wire.Digests{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Connect(l, 1, w.good.ID); !errors.Is(err, wire.ConnectParameters|wire.NoRetry) {
			t.Errorf("an I/O queue of another host's association, by its %s: %v", label, err)
		}
		_ = c.Close()
	}
	w.check(t)
}

// TestHostileFlood verifies that hosts that connect and stay silent do not keep others out, and that their connections
// end.
func TestHostileFlood(t *testing.T) { ways(t, testHostileFlood) }

func testHostileFlood(t *testing.T, loops *server.Loops) {
	w := newWitness(t, loops)
	var all []net.Conn
	for range 200 {
		nc, err := net.Dial("tcp", w.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
		all = append(all, nc)
	}
	open(t, w.addr, login(4))
	w.check(t)
	for _, nc := range all {
		if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a silent connection goes on")
		}
	}
}

// TestHostileMemory verifies that hosts that ask for all the memory they can have, and read none of the answers, do not
// make the server hold the volume's memory or more than its limit.
func TestHostileMemory(t *testing.T) { ways(t, testHostileMemory) }

func testHostileMemory(t *testing.T, loops *server.Loops) {
	w := newWitness(t, loops)
	const hosts = 4
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range hosts {
		l := login(1)
		l.HostID[1] = byte(i)
		h := open(t, w.addr, l)
		for k := range 100 {
			o := nvmetest.IOOp(wire.Write, 1, 0, 2048, 0)
			o.Out = make([]byte, 1<<20)
			if k%2 == 0 {
				o = nvmetest.IOOp(wire.Read, 1, 0, 2048, 0)
				o.In = make([]byte, 1<<20)
			}
			if err := h.IO[0].Send(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	until := time.Now().Add(10 * time.Second)
	for time.Sleep(100 * time.Millisecond); w.open.Borrowed() > 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if n := w.open.Borrowed(); n > 0 {
		t.Errorf("the memory of %d reads is lent to hosts that do not read", n)
	}
	w.check(t)
	runtime.GC()
	runtime.ReadMemStats(&after)
	limit := uint64(hosts * (2*nvme.DefaultLimits().Memory + 1<<20))
	if n := after.HeapAlloc - min(after.HeapAlloc, before.HeapAlloc); n > limit {
		t.Errorf("%d hosts make the server hold %d MiB, more than %d", hosts, n>>20, limit>>20)
	}
}

// TestDrain verifies that a server that ends answers the commands that it has received.
func TestDrain(t *testing.T) { ways(t, testDrain) }

func testDrain(t *testing.T, loops *server.Loops) {
	m := nvmetest.NewMemory(1 << 20)
	stuck := make(chan *nbd.Task, 1)
	m.Before = func(x *nbd.Task) bool {
		if x.Kind != nbd.Flush {
			return true
		}
		stuck <- x
		return false
	}
	target := nvmetest.Target(t, nvme.DefaultConfig(), nvmetest.Space(1, m))
	cfg := quick(t, target, loops)
	cfg.Drain = 20 * time.Second
	s, addr := nvmetest.Serve(t, cfg)
	h := open(t, addr, login(1))
	if err := h.IO[0].Send(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
		t.Fatal(err)
	}
	x := <-stuck
	ended := make(chan error)
	go func() { ended <- s.Shutdown() }()
	time.Sleep(50 * time.Millisecond)
	m.Execute(x)
	if p, err := h.IO[0].Next(); err != nil || p.CQE.Status != 0 {
		t.Errorf("the answer is %+v, %v", p.CQE, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
