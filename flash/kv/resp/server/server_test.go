package server_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"farflash/flash/kv"
	"farflash/flash/kv/resp/server"
)

// ram is a store's file in memory, as kv.Memory and kv.Peers.
type ram struct {
	mu     *sync.Mutex // of all clients
	b      []byte
	name   uint64
	broken error                  // of all operations
	lost   error                  // of swaps, which are executed
	writes func(off int64, n int) // before each write
}

func (r *ram) ReadAt(b []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return 0, r.broken
	}
	return copy(b, r.b[off:]), nil
}

func (r *ram) Write(b []byte, off int64, _ bool) error {
	if r.writes != nil {
		r.writes(off, len(b))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	copy(r.b[off:], b)
	return r.broken
}

func (r *ram) CompareSwapBits(off int64, old, oldMask, value, mask uint64, _ bool) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return 0, r.broken
	}
	now := binary.LittleEndian.Uint64(r.b[off:])
	if (now^old)&oldMask == 0 {
		binary.LittleEndian.PutUint64(r.b[off:], now&^mask|value&mask)
	}
	return now, r.lost
}

func (r *ram) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

func (r *ram) Name() uint64 { return r.name }

func (r *ram) Instance() string { return "1" }

func (r *ram) Fence(context.Context, uint64, time.Duration) error { return kv.ErrAlive }

// file is a store's file, with what its clients have.
type file struct {
	mu     sync.Mutex
	b      []byte
	opened atomic.Int64
	last   atomic.Pointer[ram]
	hold   chan struct{} // opening waits for it
}

func newFile(t testing.TB, keys uint64) *file {
	t.Helper()
	g, err := kv.NewGeometry(keys, 48, 4000, kv.Data, 1)
	if err != nil {
		t.Fatal(err)
	}
	f := &file{b: make([]byte, g.Size())}
	if err := kv.Create(&ram{mu: &f.mu, b: f.b, name: 1}, g); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *file) open(ctx context.Context) (*kv.Store, func() error, error) {
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	r := &ram{mu: &f.mu, b: f.b, name: uint64(f.opened.Add(1))}
	s, err := kv.Open(ctx, r, r, kv.DefaultOptions())
	if err != nil {
		return nil, nil, err
	}
	f.last.Store(r)
	return s, s.Close, nil
}

// serve serves files on a Unix socket, and returns its path.
func serve(t testing.TB, cfg server.Config, files ...*file) (s *server.Server, path string, end func()) {
	t.Helper()
	for _, f := range files {
		cfg.Stores = append(cfg.Stores, f.open)
	}
	cfg.Clients = 1
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	end = sync.OnceFunc(func() {
		if err := errors.Join(s.Shutdown(), <-served); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return s, path, end
}

// dialog is a client that sends lines and reads as many replies.
type dialog struct {
	t  testing.TB
	nc net.Conn
	r  *bufio.Reader
}

func dial(t testing.TB, path string) *dialog {
	t.Helper()
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return &dialog{t, nc, bufio.NewReader(nc)}
}

func (d *dialog) send(text string) {
	d.t.Helper()
	if _, err := io.WriteString(d.nc, text); err != nil {
		d.t.Fatal(err)
	}
}

// reply reads a reply in one line: the elements of an array are within brackets.
func (d *dialog) reply() string {
	d.t.Helper()
	line, err := d.r.ReadString('\n')
	if err != nil {
		d.t.Fatalf("%q: %v", line, err)
	}
	line = strings.TrimSuffix(line, "\r\n")
	n := 0
	_, _ = fmt.Sscan(line[1:], &n)
	switch {
	case line[0] == '$' && n >= 0:
		b := make([]byte, n+2)
		if _, err := io.ReadFull(d.r, b); err != nil {
			d.t.Fatal(err)
		}
		return string(b[:n])
	case line[0] == '*':
		var all []string
		for range n {
			all = append(all, d.reply())
		}
		return "[" + strings.Join(all, " ") + "]"
	}
	return line
}

func (d *dialog) ask(line string) string {
	d.t.Helper()
	d.send(line + "\r\n")
	return d.reply()
}

func (d *dialog) expect(line, want string) {
	d.t.Helper()
	if got := d.ask(line); got != want {
		d.t.Errorf("%.80s: %q, not %q", line, got, want)
	}
}

// TestCommands runs commands on stores, with the answers that Redis gives.
func TestCommands(t *testing.T) {
	_, path, _ := serve(t, server.DefaultConfig(), newFile(t, 1000), newFile(t, 100))
	d := dial(t, path)
	d.send("SET a 1\r\nINCR a\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\nGETDEL a\r\nGET a\r\n")
	for _, want := range []string{"+OK", ":2", "2", "2", "$-1"} {
		if got := d.reply(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	d.expect("SET k v NX", "+OK")
	d.expect("SET k w NX", "$-1")
	d.expect("APPEND k ww", ":3")
	d.expect("DEL k k none", ":1")
	// More keys than are worked on at a time, the first of them twice.
	set, get, want := "MSET k0 0", "MGET", ""
	for i := range 40 {
		set, get = set+fmt.Sprintf(" k%d v%d", i, i), get+fmt.Sprintf(" k%d", i)
		want += fmt.Sprintf(" v%d", i)
	}
	d.expect(set, "+OK")
	d.expect(get, "["+want[1:]+"]")
	d.expect("DBSIZE", ":40")
	d.expect("SELECT 1", "+OK")
	d.expect("DBSIZE", ":0")
	d.expect("SET other 1", "+OK")
	d.expect("SELECT 0", "+OK")
	var all []string
	for cursor := "0"; ; {
		answer := d.ask("SCAN " + cursor + " COUNT 5 MATCH k*")
		var keys string
		cursor, keys, _ = strings.Cut(strings.Trim(answer, "[]"), " ")
		all = append(all, strings.Fields(strings.Trim(keys, "[]"))...)
		if cursor == "0" {
			break
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) != 40 {
		t.Errorf("SCAN finds %d of 40 keys", len(all))
	}
	if n := len(strings.Fields(d.ask("KEYS k1*"))); n != 11 {
		t.Errorf("KEYS finds %d of 11 keys", n)
	}
	if got := d.ask("INFO"); !strings.Contains(got, "db0:keys=40,") || !strings.Contains(got, "db1:keys=1,") {
		t.Errorf("%s", got)
	}
	other := dial(t, path)
	other.expect("CLIENT SETNAME second", "+OK")
	if got := d.ask("CLIENT LIST"); strings.Count(got, "\n") != 2 || !strings.Contains(got, "name=second") {
		t.Errorf("CLIENT LIST: %s", got)
	}
	d.expect("FLUSHDB", "+OK")
	d.expect("DBSIZE", ":0")
	d.expect("SELECT 1", "+OK")
	d.expect("DBSIZE", ":1")
	d.expect("FLUSHALL", "+OK")
	d.expect("DBSIZE", ":0")
	long := strings.Repeat("x", 5000)
	d.expect("SET k "+long, "-ERR a value of 5000 bytes: too long for the store; the most is 4071")
	d.expect("MSET j 1 k "+long,
		"-ERR a value of 5000 bytes: too long for the store; the most is 4071; other keys may have been changed")
	d.expect("SET "+long[:100]+" x", "-ERR a key of 100 bytes: too long for the store; use 1 to 48")
	d.expect("SET '' x", "-ERR a key of 0 bytes: too long for the store; use 1 to 48")
	d.expect("QUIT", "+OK")
	if _, err := d.r.ReadByte(); err != io.EOF {
		t.Errorf("after QUIT: %v", err)
	}
}

// TestFull verifies the error of a store without space.
func TestFull(t *testing.T) {
	_, path, _ := serve(t, server.DefaultConfig(), newFile(t, 1))
	d := dial(t, path)
	for i := range 5000 {
		if got := d.ask(fmt.Sprintf("SET k%d v", i)); got != "+OK" {
			if !strings.HasPrefix(got, "-OOM ") {
				t.Error(got)
			}
			return
		}
	}
	t.Error("it takes any number of keys")
}

// TestUnknown verifies that a change during which the connection to the store is lost is answered by UNKNOWN and not
// made again, that a read is answered by an error, and that the store is opened again.
func TestUnknown(t *testing.T) {
	f := newFile(t, 100)
	_, path, _ := serve(t, server.DefaultConfig(), f)
	d := dial(t, path)
	d.expect("SET n 1", "+OK")
	lost := errors.New("connection lost")
	r := f.last.Load()
	r.mu.Lock()
	r.lost = lost
	r.mu.Unlock()
	d.expect("INCR n", "-UNKNOWN whether the change was made: connection lost")
	d.expect("INCR n", ":3") // it was made, once
	if n := f.opened.Load(); n != 2 {
		t.Errorf("%d clients", n)
	}
	r = f.last.Load()
	r.mu.Lock()
	r.broken = lost
	r.mu.Unlock()
	d.expect("GET n", "-ERR connection lost")
	d.expect("GET n", "3")
}

// TestLoading verifies that a command does not wait for ever until a store is open.
func TestLoading(t *testing.T) {
	f := newFile(t, 100)
	f.hold = make(chan struct{})
	cfg := server.DefaultConfig()
	cfg.Opening = time.Millisecond
	_, path, _ := serve(t, cfg, f)
	d := dial(t, path)
	d.expect("GET k", "-LOADING the store is being opened")
	d.expect("SET k 1", "-LOADING the store is being opened")
	close(f.hold)
	for d.ask("SET k v") != "+OK" { // until it is open
		time.Sleep(time.Millisecond)
	}
	d.expect("GET k", "v")
}

// TestDrain verifies that a command in progress is answered at a shutdown, that the connection then ends, and that the
// client leaves the store.
func TestDrain(t *testing.T) {
	f := newFile(t, 100)
	_, path, end := serve(t, server.DefaultConfig(), f)
	d, idle := dial(t, path), dial(t, path)
	d.expect("SET k 1", "+OK")
	idle.expect("PING", "+PONG")
	begun, goOn := make(chan struct{}), make(chan struct{})
	f.last.Load().writes = func(int64, int) {
		begun <- struct{}{}
		<-goOn
	}
	d.send("SET k 2\r\n")
	<-begun
	ended := make(chan struct{})
	go func() {
		end()
		close(ended)
	}()
	if _, err := idle.r.ReadByte(); err != io.EOF { // it waits for nothing
		t.Errorf("an idle connection: %v", err)
	}
	close(goOn)
	if got := d.reply(); got != "+OK" {
		t.Error(got)
	}
	if _, err := d.r.ReadByte(); err != io.EOF {
		t.Errorf("after the answer: %v", err)
	}
	<-ended
	if _, err := net.Dial("unix", path); err == nil {
		t.Error("it takes connections after its end")
	}
	f.hold = nil
	s, stop, err := f.open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Use(context.Background())
	if err = errors.Join(err, stop()); err != nil || u.Members != 1 {
		t.Errorf("%d members, %v", u.Members, err)
	}
}

// TestMost verifies the limit of connections.
func TestMost(t *testing.T) {
	cfg := server.DefaultConfig()
	cfg.Most = 1
	_, path, _ := serve(t, cfg, newFile(t, 100))
	d := dial(t, path)
	d.expect("PING", "+PONG")
	if got := dial(t, path).reply(); got != "-ERR max number of clients reached" {
		t.Error(got)
	}
	d.expect("QUIT", "+OK")
}

// TestAddresses verifies which addresses are served.
func TestAddresses(t *testing.T) {
	with := func(change func(*server.Config)) *server.Config {
		c := server.DefaultConfig()
		change(&c)
		return &c
	}
	secured := func(c *server.Config) { c.TLS = &tls.Config{} }
	far, near := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	for i, x := range []struct {
		cfg  *server.Config
		at   net.Addr
		fine bool
	}{
		{with(func(*server.Config) {}), near, true}, {with(func(*server.Config) {}), &net.UnixAddr{Name: "x"}, true},
		{with(func(*server.Config) {}), far, false}, {with(func(*server.Config) {}), &net.TCPAddr{}, false},
		{with(secured), far, false},
		{with(func(c *server.Config) { c.Password = []byte("x") }), far, false},
		{with(func(c *server.Config) { secured(c); c.Password = []byte("x") }), far, true},
		{with(func(c *server.Config) { c.TLS = &tls.Config{ClientCAs: x509.NewCertPool()} }), far, true},
	} {
		if err := x.cfg.Allows(x.at); (err == nil) != x.fine || err != nil && !errors.Is(err, server.ErrExposed) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestTLS verifies a connection with TLS and a password.
func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	mold := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{{127, 0, 0, 1}}}
	der, err := x509.CreateCertificate(rand.Reader, mold, mold, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cfg := server.DefaultConfig()
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	cfg.Password = []byte("secret")
	s, path, _ := serve(t, cfg, newFile(t, 100))
	dial(t, path).expect("GET k", "-NOAUTH Authentication required.") // a Unix socket is not encrypted
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	nc, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	d := &dialog{t, nc, bufio.NewReader(nc)}
	d.expect("AUTH secret", "+OK")
	d.expect("SET k v", "+OK")
	d.expect("GET k", "v")
	if err := errors.Join(nc.Close(), s.Shutdown(), <-served); err != nil {
		t.Error(err)
	}
	if v := nc.ConnectionState().Version; v != tls.VersionTLS13 {
		t.Errorf("TLS %x", v)
	}
}

// tool skips a test if a program of Redis is missing.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (Debian's package redis-tools)", name)
	}
	return path
}

// TestRedisCLI verifies what redis-cli sends by itself, and its modes.
func TestRedisCLI(t *testing.T) {
	cli := tool(t, "redis-cli")
	_, path, _ := serve(t, server.DefaultConfig(), newFile(t, 1000))
	for _, x := range []struct{ args, in, want string }{
		{"set colour blue", "", "OK\n"}, {"-3 get colour", "", "blue\n"}, {"get none", "", "\n"},
		{"", "set a 1\nincr a\nget \"a\"\n", "OK\n2\n2\n"},
		{"--pipe", "SET p 1\r\nSET q 2\r\n", "errors: 0, replies: 2"}, {"--scan --pattern p*", "", "p\n"},
		{"--bigkeys", "", "4 strings with"}, {"-n 1 get a", "", "DB index is out of range"},
		{"set k v ex 5", "", "keys of this store do not expire"},
	} {
		cmd := exec.Command(cli, append([]string{"-s", path}, strings.Fields(x.args)...)...)
		cmd.Stdin = strings.NewReader(x.in)
		out, err := cmd.CombinedOutput()
		if err != nil && !strings.Contains(string(out), x.want) || !strings.Contains(string(out), x.want) {
			t.Errorf("redis-cli %s: %v\n%s", x.args, err, out)
		}
	}
}

// TestRedisBenchmark runs redis-benchmark, whose clients end at an error.
func TestRedisBenchmark(t *testing.T) {
	program := tool(t, "redis-benchmark")
	_, path, _ := serve(t, server.DefaultConfig(), newFile(t, 2000))
	for _, args := range []string{"-t ping_inline,ping_mbulk,set,get,incr,mset -n 500 -r 1000",
		"-t set,get -n 500 -r 1000 -P 8 -d 3000"} {
		cmd := exec.Command(program, append([]string{"-s", path, "--csv"}, strings.Fields(args)...)...)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "rror") || strings.Count(string(out), "\n") < 3 {
			t.Errorf("redis-benchmark %s: %v\n%s", args, err, out)
		}
	}
	d := dial(t, path)
	if d.ask("DBSIZE") == ":0" {
		t.Error("it has left no keys")
	}
}
