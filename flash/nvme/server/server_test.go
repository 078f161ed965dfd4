package server_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nvme"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/server"
	"farflash/flash/nvme/wire"
	"farflash/internal/patience"
	"farflash/numeric/rng"
)

// login returns the parameters of an association with Serve's subsystem.
func login(queues int) nvmetest.Login {
	return nvmetest.Login{Identity: wire.Identity{HostID: [16]byte{1}, Subsystem: nvmetest.Subsystem,
		Host: nvmetest.HostName}, Queues: queues}
}

// open makes an association, which ends with the test.
func open(t testing.TB, addr string, l nvmetest.Login) *nvmetest.Host {
	t.Helper()
	h, err := nvmetest.Open(addr, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() }) // it may be closed already
	for _, c := range append(h.IO, h.Admin) {
		if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// quick is a configuration for tests: a server whose timeouts tests can wait for.
func quick(t *testing.T, target *nvme.Target, loops *server.Loops) server.Config {
	cfg := server.DefaultConfig()
	cfg.Target, cfg.Loops = target, loops
	cfg.Drain = time.Second
	var ends atomic.Bool
	t.Cleanup(func() { ends.Store(true) })
	cfg.Failed = func(a net.Addr, err error) {
		if !ends.Load() {
			t.Logf("%v: %v", a, err)
		}
	}
	return cfg
}

// ways runs a test with connections that have goroutines, and with loops.
func ways(t *testing.T, f func(t *testing.T, loops *server.Loops)) {
	t.Run("goroutines", func(t *testing.T) { f(t, nil) })
	t.Run("loops", func(t *testing.T) { f(t, nbdtest.Loops(t)) })
}

// TestIdentify verifies what a host learns of the controller and its namespaces, with the values that Linux demands.
func TestIdentify(t *testing.T) { ways(t, testIdentify) }

func testIdentify(t *testing.T, loops *server.Loops) {
	target := nvmetest.Target(t, nvme.DefaultConfig(), nvmetest.Space(1, nvmetest.NewMemory(1<<20)),
		nvmetest.Space(7, nvmetest.NewMemory(1<<30)))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, login(3))
	c := h.Controller
	if c.ID != h.ID || c.KeepAlive == 0 || c.InCapsule != 8192 || c.Subsystem != nvmetest.Subsystem || !c.ANA ||
		c.Discovery || len(h.IO) != 3 {
		t.Errorf("%+v with %d queues", c, len(h.IO))
	}
	b, err := h.Admin.Identify(wire.CNSActive, 0)
	if ids := wire.DecodeList(b); err != nil || !slices.Equal(ids, []uint32{1, 7}) {
		t.Errorf("namespaces %v, %v", ids, err)
	}
	b, err = h.Admin.Identify(wire.CNSNamespace, 7)
	if n := wire.DecodeNamespace(b); err != nil || n.Blocks != 1<<21 || n.Shift != 9 || n.Group != 1 || n.Grain != 8 {
		t.Errorf("%+v, %v", n, err)
	}
	b, err = h.Admin.Identify(wire.CNSDescriptors, 7)
	if _, uuid, ok := wire.DecodeDescriptors(b); err != nil || !ok || uuid[15] != 7 {
		t.Errorf("%x %v, %v", uuid, ok, err)
	}
	for _, x := range []struct {
		cns  wire.CNS
		nsid uint32
		want wire.Status
	}{
		{wire.CNSNamespace, 2, wire.InvalidNamespace}, {wire.CNSNamespace, 0xffffffff, wire.InvalidNamespace},
		{wire.CNSDescriptors, 0, wire.InvalidNamespace}, {wire.CNSActive, 0xffffffff, wire.InvalidNamespace},
		{wire.CNSSets, 0, wire.InvalidField}, {0xff, 0, wire.InvalidField},
	} {
		if _, err := h.Admin.Identify(x.cns, x.nsid); !errors.Is(err, x.want|wire.NoRetry) {
			t.Errorf("CNS %#x of %d: %v", x.cns, x.nsid, err)
		}
	}
	for _, l := range []wire.LogRequest{{Log: wire.LogErrors, Length: 64}, {Log: wire.LogHealth, Length: 512},
		{Log: wire.LogFirmware, Length: 512}, {Log: wire.LogNamespaces, Length: 4096}, {Log: wire.LogANA, Length: 56},
		{Log: wire.LogCommands, Length: 4096}, {Log: wire.LogANA, Length: 4144, Offset: 4096}} {
		if b, err = h.Admin.Log(l); err != nil {
			t.Errorf("log %#x: %v", l.Log, err)
		}
		if l.Log == wire.LogANA && l.Offset == 0 {
			if _, g, ok := wire.DecodeANA(b); !ok || len(g) != 1 || g[0].State != wire.Optimized ||
				!slices.Equal(g[0].Namespaces, []uint32{1, 7}) {
				t.Errorf("ANA log %+v %v", g, ok)
			}
		}
	}
	if !bytes.Equal(b, make([]byte, 4144)) {
		t.Error("the ANA log beyond its end is not zeros")
	}
	if _, err := h.Admin.Log(wire.LogRequest{Log: 0x42, Length: 4}); !errors.Is(err, wire.InvalidLog|wire.NoRetry) {
		t.Errorf("an unknown log: %v", err)
	}
}

// TestDiscovery verifies that a discovery controller lists a subsystem on each port, for the hosts that may use it.
func TestDiscovery(t *testing.T) { ways(t, testDiscovery) }

func testDiscovery(t *testing.T, loops *server.Loops) {
	cfg := nvme.DefaultConfig()
	cfg.Ports = []nvme.Port{{ID: 1, Address: "127.0.0.1", Service: "4420"}, {ID: 2, Address: "::1", Service: "4421",
		IPv6: true}}
	cfg.Subsystems = []nvme.Subsystem{{Name: "nqn.2026-01.example:secret",
		Hosts: []string{"nqn.2026-01.example:other"}}}
	target := nvmetest.Target(t, cfg, nvmetest.Space(1, nvmetest.NewMemory(1<<20)))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	l := login(0)
	l.Subsystem = wire.DiscoveryName
	h := open(t, addr, l)
	if !h.Controller.Discovery {
		t.Errorf("%+v", h.Controller)
	}
	b, err := h.Admin.Log(wire.LogRequest{Log: wire.LogDiscovery, Length: 4096})
	_, entries, ok := wire.DecodeDiscovery(b)
	if err != nil || !ok || len(entries) != 2 || entries[0].Subsystem != nvmetest.Subsystem ||
		entries[0].Service != "4420" || entries[1].Address != "::1" || !entries[1].IPv6 {
		t.Errorf("%+v %v %v", entries, ok, err)
	}
	// The host gets an event of a change.
	if _, err := h.Admin.Feature(wire.FeatureEvents, 1<<31); err != nil {
		t.Fatal(err)
	}
	event := &nvmetest.Op{Request: wire.Request{Opcode: wire.AsyncEvent}}
	if err := h.Admin.Send(event); err != nil {
		t.Fatal(err)
	}
	if err := target.Set(nvme.Subsystem{Name: "nqn.2026-01.example:new"}); err != nil {
		t.Fatal(err)
	}
	if p, err := h.Admin.Next(); err != nil || wire.Event(p.CQE.Result) != wire.DiscoveryChanged {
		t.Errorf("%+v, %v", p, err)
	}
}

// shapes are the ways in which a host can use connections.
func shapes() map[string]nvmetest.Login {
	all := map[string]nvmetest.Login{}
	for k := range 8 {
		l := login(4)
		l.Digests = wire.Digests{Header: k&1 != 0, Data: k&2 != 0}
		l.NoFlow = k&4 != 0
		if k == 5 {
			l.Align = wire.MaxAlign
		}
		all[fmt.Sprintf("header=%v,data=%v,noflow=%v,align=%d", k&1 != 0, k&2 != 0, k&4 != 0, l.Align)] = l
	}
	return all
}

// TestRandom runs random commands on several queues, each on its own part of a namespace, beside a byte slice.
func TestRandom(t *testing.T) { ways(t, testRandom) }

func testRandom(t *testing.T, loops *server.Loops) {
	for _, block := range []int{512, 4096} {
		for name, l := range shapes() {
			t.Run(fmt.Sprintf("%d,%s", block, name), func(t *testing.T) {
				t.Parallel()
				runRandom(t, loops, block, l)
			})
		}
	}
}

func runRandom(t *testing.T, loops *server.Loops, block int, l nvmetest.Login) {
	const part = 4 << 20
	rounds := 6
	if patience.Long(t) {
		rounds = 300
	}
	m := nvmetest.NewMemory(uint64(part * l.Queues))
	cfg := nvme.DefaultConfig()
	cfg.Block = block
	cfg.Limits.Memory = 1 << 20 // so that commands wait for memory
	target := nvmetest.Target(t, cfg, nvmetest.Space(1, m))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, l)
	var running sync.WaitGroup
	for i, c := range h.IO {
		running.Go(func() {
			draw := rng.NewStream(uint64(i), "ops")
			if err := randomOps(c, die{&draw}, rounds, block, i*part, part); err != nil {
				t.Errorf("queue %d: %v", i+1, err)
			}
		})
	}
	running.Wait()
	for until := time.Now().Add(10 * time.Second); m.Borrowed() != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) { // the host can have the last bytes before the server knows that they are sent
			t.Fatalf("the memory of %d reads is still lent", m.Borrowed())
		}
	}
}

// randomOps runs batches of commands that do not overlap, and compares the data read.
func randomOps(c *nvmetest.Conn, draw die, rounds, block, from, size int) error {
	want := make([]byte, size)
	for round := range rounds {
		var ops []*nvmetest.Op
		var check []func() error
		for at := 0; at < size-1<<20 && len(ops) < 16; {
			at += draw.below(64) * block
			n := (1 + draw.below(32)) * block
			if draw.below(8) == 0 {
				n = (1 + draw.below(1<<20/block)) * block
			}
			if at+n > size {
				break
			}
			o, f := randomOp(draw, block, from, want, at, n)
			ops, check = append(ops, o), append(check, f)
			at += n
		}
		c.Chunk = uint32(draw.below(3) * 4096)
		if err := c.Run(ops...); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for i, o := range ops {
			if err := check[i](); err != nil {
				return fmt.Errorf("round %d, %#x: %w", round, o.Opcode, err)
			}
		}
	}
	return nil
}

func randomOp(draw die, block, from int, want []byte, at, n int) (*nvmetest.Op, func() error) {
	slba, blocks := uint64((from+at)/block), n/block
	must := func(o *nvmetest.Op, s wire.Status) func() error {
		return func() error {
			if o.CQE.Status != s {
				return fmt.Errorf("%d bytes at %d: %w", n, at, o.CQE.Status)
			}
			return nil
		}
	}
	switch draw.below(8) {
	case 0, 1, 2:
		o := nvmetest.IOOp(wire.Read, 1, slba, blocks, 0)
		o.In = make([]byte, n)
		same := bytes.Clone(want[at:][:n])
		return o, func() error {
			if !bytes.Equal(o.In, same) {
				return fmt.Errorf("%d bytes at %d are not those that were written: %w", n, at, o.CQE.Status)
			}
			return must(o, 0)()
		}
	case 3:
		o := nvmetest.IOOp(wire.WriteZeroes, 1, slba, blocks, uint32(draw.below(2))*wire.Deallocate)
		clear(want[at:][:n])
		return o, must(o, 0)
	case 4:
		o := nvmetest.IOOp(wire.Compare, 1, slba, blocks, 0)
		o.Out = bytes.Clone(want[at:][:n])
		o.InCapsule = n <= 8192 && draw.below(2) == 0
		if draw.below(2) == 0 {
			o.Out[draw.below(n)] ^= 1
			return o, must(o, wire.CompareFailure|wire.NoRetry)
		}
		return o, must(o, 0)
	case 5:
		if draw.below(2) == 0 {
			o := nvmetest.IOOp(wire.Verify, 1, slba, blocks, 0)
			return o, must(o, 0)
		}
		// Whole pages, which all become zeros.
		first, last := (at+4095)/4096*4096, (at+n)/4096*4096
		r := wire.Range{Start: slba}
		if first < last {
			clear(want[first:last])
			r = wire.Range{Start: uint64((from + first) / block), Blocks: uint32((last - first) / block)}
		}
		o := nvmetest.Ranges(1, r)
		o.Out = append(o.Out, make([]byte, 4096-len(o.Out))...) // as Linux does
		o.InCapsule = draw.below(2) == 0
		return o, must(o, 0)
	}
	o := nvmetest.IOOp(wire.Write, 1, slba, blocks, uint32(draw.below(2))*wire.FUA)
	o.Out = make([]byte, n)
	for i := 0; i < n; i += 8 {
		binary.LittleEndian.PutUint64(o.Out[i:], draw.Uint64())
	}
	copy(want[at:], o.Out)
	o.InCapsule = n <= 8192 && draw.below(2) == 0
	return o, must(o, 0)
}

func fabrics(k wire.FabricsType) *nvmetest.Op {
	return &nvmetest.Op{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: k}}
}

// TestStatuses verifies the errors of commands that are refused, and that the connection goes on.
func TestStatuses(t *testing.T) { ways(t, testStatuses) }

func testStatuses(t *testing.T, loops *server.Loops) {
	readOnly := nvmetest.Space(2, nvmetest.NewMemory(1<<20))
	readOnly.ReadOnly = true
	target := nvmetest.Target(t, nvme.DefaultConfig(), nvmetest.Space(1, nvmetest.NewMemory(8<<20)), readOnly)
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, login(1))
	data := func(o *nvmetest.Op, out, in int, capsule bool) *nvmetest.Op {
		o.Out, o.In, o.InCapsule = make([]byte, out), make([]byte, in), capsule
		return o
	}
	const dnr = wire.NoRetry
	for name, x := range map[string]struct {
		op   *nvmetest.Op
		want wire.Status
	}{
		"beyond the end": {data(nvmetest.IOOp(wire.Read, 1, 16383, 2, 0), 0, 1024, false),
			wire.OutOfRange | dnr},
		"an LBA that wraps": {data(nvmetest.IOOp(wire.Read, 1, 1<<64-1, 2, 0), 0, 1024, false),
			wire.OutOfRange | dnr},
		"another namespace": {data(nvmetest.IOOp(wire.Read, 3, 0, 1, 0), 0, 512, false),
			wire.InvalidNamespace | dnr},
		"namespace 0": {data(nvmetest.IOOp(wire.Read, 0, 0, 1, 0), 0, 512, false),
			wire.InvalidNamespace | dnr},
		"all namespaces": {data(nvmetest.IOOp(wire.Read, 1<<32-1, 0, 1, 0), 0, 512, false),
			wire.InvalidNamespace | dnr},
		"a shorter SGL": {data(nvmetest.IOOp(wire.Read, 1, 0, 2, 0), 0, 512, false),
			wire.WrongSGLLength | dnr},
		"a shorter capsule": {data(nvmetest.IOOp(wire.Write, 1, 0, 2, 0), 512, 0, true),
			wire.WrongSGLLength | dnr},
		"no data": {data(nvmetest.IOOp(wire.Write, 1, 0, 2, 0), 0, 0, false), wire.WrongSGLLength | dnr},
		"more than MDTS": {data(nvmetest.IOOp(wire.Read, 1, 0, 2049, 0), 0, 2049*512, false),
			wire.InvalidField | dnr},
		"a capsule over IOCCSZ": {data(nvmetest.IOOp(wire.Write, 1, 0, 32, 0), 16384, 0, true),
			wire.WrongSGLLength | dnr},
		"an unknown opcode": {data(nvmetest.IOOp(0x7e, 1, 0, 1, 0), 0, 512, false), wire.InvalidOpcode | dnr},
		"write protection": {data(nvmetest.IOOp(wire.Write, 2, 0, 1, 0), 512, 0, true),
			wire.WriteProtected | dnr},
		"zeroes, protected": {nvmetest.IOOp(wire.WriteZeroes, 2, 0, 1, 0), wire.WriteProtected | dnr},
		"a range beyond the end": {nvmetest.Ranges(1, wire.Range{}, wire.Range{Start: 16384, Blocks: 1}),
			wire.OutOfRange | dnr},
		"flush":          {nvmetest.IOOp(wire.Flush, 1, 0, 1, 0), 0},
		"flush all":      {nvmetest.IOOp(wire.Flush, 1<<32-1, 0, 1, 0), 0},
		"a property":     {fabrics(wire.PropertyGet), wire.InvalidField | dnr},
		"authentication": {fabrics(wire.AuthReceive), wire.InvalidOpcode | dnr},
	} {
		if err := h.IO[0].Run(x.op); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if x.op.CQE.Status != x.want {
			t.Errorf("%s: %v, want %v", name, x.op.CQE.Status, x.want)
		}
	}
	b, err := h.Admin.Log(wire.LogRequest{Log: wire.LogErrors, Length: 64})
	if e := wire.DecodeErrorEntry(b); err != nil || e.Count == 0 || e.Queue != 1 || e.Status == 0 {
		t.Errorf("error log %+v, %v", e, err)
	}
}

// TestEvents verifies that a host learns of namespaces that are added, removed and resized, and of the state of a port,
// once until it reads the log.
func TestEvents(t *testing.T) { ways(t, testEvents) }

func testEvents(t *testing.T, loops *server.Loops) {
	m := nvmetest.NewMemory(8 << 20)
	small := nvmetest.Space(1, m)
	small.Size = 1 << 20
	target := nvmetest.Target(t, nvme.DefaultConfig(), small)
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, login(1))
	if _, err := h.Admin.Feature(wire.FeatureEvents, wire.EventNamespace|wire.EventANA); err != nil {
		t.Fatal(err)
	}
	await := func(want wire.Event) {
		t.Helper()
		if p, err := h.Admin.Next(); err != nil || wire.Event(p.CQE.Result) != want {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	ask := func() {
		t.Helper()
		if err := h.Admin.Send(&nvmetest.Op{Request: wire.Request{Opcode: wire.AsyncEvent}}); err != nil {
			t.Fatal(err)
		}
	}
	set := func(spaces ...nvme.Namespace) {
		t.Helper()
		if err := target.Set(nvme.Subsystem{Name: nvmetest.Subsystem, Namespaces: spaces}); err != nil {
			t.Fatal(err)
		}
	}
	changed := func(want ...uint32) {
		t.Helper()
		b, err := h.Admin.Log(wire.LogRequest{Log: wire.LogNamespaces, Length: 4096})
		if got := wire.DecodeList(b); err != nil || !slices.Equal(got, want) {
			t.Errorf("changed are %v, %v; want %v", got, err, want)
		}
	}
	ask()
	set(small, nvmetest.Space(2, nvmetest.NewMemory(1<<20)))
	await(wire.NamespacesChanged)
	ask()
	middle := nvmetest.Space(1, m)
	middle.Size = 4 << 20
	set(middle) // no event: the log is not read
	changed(1, 2)
	if err := target.Set(nvme.Subsystem{Name: nvmetest.Subsystem, Namespaces: []nvme.Namespace{small}}); err == nil {
		t.Error("a namespace shrinks under its host")
	}
	set(nvmetest.Space(1, m))
	await(wire.NamespacesChanged)
	changed(1)
	o := nvmetest.IOOp(wire.Read, 1, 16383, 1, 0)
	o.In = make([]byte, 512)
	if err := h.IO[0].Do(o); err != nil {
		t.Errorf("the last block after growth: %v", err)
	}
	ask()
	target.SetState(1, wire.Inaccessible)
	await(wire.ANAChanged)
	if err := h.IO[0].Do(o); !errors.Is(err, wire.PathInaccessible) {
		t.Errorf("on an inaccessible path: %v", err)
	}
	target.SetState(1, wire.NonOptimized)
	if err := h.IO[0].Do(o); err != nil {
		t.Error(err)
	}
	for range wire.EventLimit {
		ask()
	}
	if err := h.Admin.Do(&nvmetest.Op{Request: wire.Request{Opcode: wire.AsyncEvent}}); !errors.Is(err,
		wire.TooManyEvents|wire.NoRetry) {
		t.Errorf("one request too many: %v", err)
	}
}

// TestFence verifies that a host is let in again only after the commands of its earlier association are done, so that a
// write that it repeats is not undone by the first one.
func TestFence(t *testing.T) { ways(t, testFence) }

func testFence(t *testing.T, loops *server.Loops) {
	m := nvmetest.NewMemory(1 << 20)
	stuck := make(chan *nbd.Task, 16)
	var hold atomic.Bool
	m.Before = func(x *nbd.Task) bool {
		if x.Kind == nbd.Write && hold.Load() {
			stuck <- x
			return false
		}
		return true
	}
	target := nvmetest.Target(t, nvme.DefaultConfig(), nvmetest.Space(1, m))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, login(2))
	hold.Store(true)
	o := nvmetest.IOOp(wire.Write, 1, 0, 1, 0)
	o.Out, o.InCapsule = bytes.Repeat([]byte("old "), 128), true
	if err := h.IO[0].Send(o); err != nil {
		t.Fatal(err)
	}
	old := <-stuck
	hold.Store(false)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	again := make(chan *nvmetest.Host, 1)
	go func() {
		h, err := nvmetest.Open(addr, login(2))
		if err != nil {
			t.Error(err)
		}
		again <- h
	}()
	other := login(1)
	other.HostID[0] = 2
	if err := open(t, addr, other).IO[0].Do(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
		t.Errorf("another host: %v", err)
	}
	select {
	case <-again:
		t.Fatal("the host is let in while its old write is outstanding")
	case <-time.After(200 * time.Millisecond):
	}
	m.Execute(old)
	h = <-again
	if h == nil {
		return
	}
	defer func() { _ = h.Close() }()
	o = nvmetest.IOOp(wire.Write, 1, 0, 1, 0)
	o.Out, o.InCapsule = bytes.Repeat([]byte("new "), 128), true
	if err := h.IO[0].Do(o); err != nil {
		t.Fatal(err)
	}
	r := nvmetest.IOOp(wire.Read, 1, 0, 1, 0)
	r.In = make([]byte, 512)
	if err := h.IO[1].Do(r); err != nil || !bytes.Equal(r.In, o.Out) {
		t.Errorf("%q, %v", r.In[:8], err)
	}
}

// TestFenceTimes verifies that a host whose old commands do not end is refused for now, in time.
func TestFenceTimes(t *testing.T) { ways(t, testFenceTimes) }

func testFenceTimes(t *testing.T, loops *server.Loops) {
	m := nvmetest.NewMemory(1 << 20)
	stuck := make(chan *nbd.Task, 1)
	m.Before = func(x *nbd.Task) bool { stuck <- x; return false }
	cfg := nvme.DefaultConfig()
	cfg.Grace = int64(time.Second)
	target := nvmetest.Target(t, cfg, nvmetest.Space(1, m))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, login(1))
	if err := h.IO[0].Send(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
		t.Fatal(err)
	}
	x := <-stuck
	_ = h.Close()
	if _, err := nvmetest.Open(addr, login(1)); !errors.Is(err, wire.ControllerBusy) {
		t.Errorf("%v", err)
	}
	m.Execute(x)
}

// TestKeepAlive verifies that a silent host's association ends, and that commands keep one alive.
func TestKeepAlive(t *testing.T) { ways(t, testKeepAlive) }

func testKeepAlive(t *testing.T, loops *server.Loops) {
	cfg := nvme.DefaultConfig()
	cfg.Grace = int64(100 * time.Millisecond)
	target := nvmetest.Target(t, cfg, nvmetest.Space(1, nvmetest.NewMemory(1<<20)))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	l := login(1)
	l.KeepAlive = 500
	silent := open(t, addr, l)
	l.HostID[0] = 2
	busy := open(t, addr, l)
	for range 15 {
		time.Sleep(100 * time.Millisecond)
		if err := busy.Admin.Do(&nvmetest.Op{Request: wire.Request{Opcode: wire.KeepAlive}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []*nvmetest.Conn{silent.Admin, silent.IO[0]} {
		if _, err := c.Next(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the silent host's connection: %v", err)
		}
	}
}

// TestReset verifies that a host that disables the controller sees its I/O queues end before CSTS says so, and can
// enable it again.
func TestReset(t *testing.T) { ways(t, testReset) }

func testReset(t *testing.T, loops *server.Loops) {
	target := nvmetest.Target(t, nvme.DefaultConfig(), nvmetest.Space(1, nvmetest.NewMemory(1<<20)))
	_, addr := nvmetest.Serve(t, quick(t, target, loops))
	h := open(t, addr, login(2))
	for _, cc := range []struct {
		value, mask, want uint64
	}{{0x460000, wire.CSTSReady, 0}, {0x460001, wire.CSTSReady, 1},
		{0x464001, wire.CSTSShutdown, wire.CSTSShutdownOK}} {
		if err := h.Admin.Set(wire.Property{Offset: wire.PropCC, Value: cc.value}); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(10 * time.Second); ; {
			v, err := h.Admin.Get(wire.PropCSTS, false)
			if err != nil || time.Now().After(until) {
				t.Fatalf("CC %#x: CSTS %#x, %v", cc.value, v, err)
			}
			if v&cc.mask == cc.want {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if cc.value == 0x460000 {
			for _, c := range h.IO {
				if _, err := c.Next(); err == nil {
					t.Error("an I/O queue goes on after a reset")
				}
			}
		} else if cc.value == 0x460001 {
			c, err := h.Join(1)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Do(nvmetest.IOOp(wire.Flush, 1, 0, 1, 0)); err != nil {
				t.Error(err)
			}
		}
	}
}

// die draws numbers.
type die struct{ *rng.Stream }

// below draws a number from 0 to n-1.
func (d die) below(n int) int { return int(d.IntN(int64(n))) }
