package server_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/pool"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/flash/uring"
	"farflash/flash/verbs"
)

const (
	size = 4 << 20
	all  = verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic
)

// ways runs a test with connections driven by goroutines and, where available, by io_uring loops.
func ways(t *testing.T, test func(*testing.T)) {
	t.Run("goroutines", test)
	loops, err := pool.Threads(pool.DefaultOptions(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if loops == nil {
		return
	}
	if err := loops.Close(); err != nil {
		t.Fatal(err)
	}
	t.Run("loops", test)
}

// daemon is a server on its own pool, with two files: disk and other.
type daemon struct {
	t     testing.TB
	s     *server.Server
	pool  *ctl.Pool
	tree  *cfs.FS
	loops *uring.Loops
	path  string
	said  []string
	bad   []ctl.Trouble
	mu    sync.Mutex
	was   int           // goroutines before the test
	drain time.Duration // time limit of the drain at the end
}

func begin(t testing.TB, change func(*server.Config)) *daemon {
	t.Helper()
	return beginOn(t, func(*pool.Options) {}, change)
}

// beginOn is begin with other options of the pool.
func beginOn(t testing.TB, options func(*pool.Options), change func(*server.Config)) *daemon {
	t.Helper()
	d := &daemon{t: t, drain: 5 * time.Second, path: filepath.Join(t.TempDir(), "pool"), was: runtime.NumGoroutine()}
	o := pool.DefaultOptions()
	o.Pool.Frames = 4096
	o.Pool.Trouble = func(x ctl.Trouble) {
		d.mu.Lock()
		d.bad = append(d.bad, x)
		d.mu.Unlock()
	}
	options(&o)
	if _, err := pool.Format(o, 16<<20, d.path); err != nil {
		t.Fatal(err)
	}
	var err error
	if strings.Contains(t.Name(), "/loops") {
		if o.Loops, err = pool.Threads(o, 2); err != nil {
			t.Fatal(err)
		}
	}
	d.loops = o.Loops
	if d.pool, _, err = pool.Open(o, d.path); err != nil {
		t.Fatal(err)
	}
	if err := cfs.Format(d.pool, cfs.Config{}); err != nil {
		t.Fatal(err)
	}
	tree, err := cfs.Open(d.pool, cfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d.tree = tree
	for _, name := range []string{"disk", "other", "locked"} {
		f, err := tree.Create(cfs.Cred{UID: 1}, name, 0o600, size)
		if errors.Is(err, fs.ErrPermission) {
			f, err = tree.Create(cfs.Cred{}, name, 0o600, size)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tree.Chmod(cfs.Cred{}, "locked", 0o400), tree.Chown(cfs.Cred{}, "disk", 1, 1),
		tree.Chown(cfs.Cred{}, "other", 1, 1), tree.Chown(cfs.Cred{}, "locked", 1, 1)); err != nil {
		t.Fatal(err)
	}
	cfg := server.DefaultConfig()
	cfg.Pool, cfg.Files = d.pool, server.Tree(tree, cfs.Cred{UID: 1})
	cfg.Address, cfg.Connections, cfg.Loops = "127.0.0.1:0", 8, d.loops
	cfg.Log = slog.New(slog.NewTextHandler(d, nil))
	if change != nil {
		change(&cfg)
	}
	if d.s, err = server.New(cfg); err != nil {
		t.Fatal(err)
	}
	if err := d.s.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.end)
	return d
}

// Write receives a line of the log.
func (d *daemon) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = append(d.said, string(line))
	return len(line), nil
}

// end drains the server and closes the pool, and verifies that no region, page or goroutine is left and that all
// invariants hold.
func (d *daemon) end() {
	if d.s == nil {
		return
	}
	if err := d.s.Drain(d.drain); err != nil {
		d.t.Error(err)
	}
	if text := d.s.Unended(); text != "" {
		d.t.Errorf("after the drain the server counts as outstanding: %s", text)
	}
	d.s = nil
	for _, v := range d.pool.Check(false).Violations {
		d.t.Error(v)
	}
	if err := d.pool.Close(); err != nil {
		d.t.Error(err)
	}
	if d.loops != nil {
		if err := d.loops.Close(); err != nil {
			d.t.Error(err)
		}
	}
	for i := 0; runtime.NumGoroutine() > d.was; i++ {
		if i == 500 {
			buf := make([]byte, 1<<16)
			d.t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), d.was, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (d *daemon) address() string {
	a, _, _ := d.s.Addresses()
	return a
}

// dial connects a client that does not reconnect, because tests here are about single connections; those of
// flash/client are about reconnecting.
func dial(t testing.TB, address string, cfg client.Config) (*client.Client, error) {
	t.Helper()
	cfg.Reconnect = client.Reconnect{}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return client.Dial(ctx, address, cfg)
}

func (d *daemon) dial() *client.Client {
	d.t.Helper()
	c, err := dial(d.t, d.address(), client.DefaultConfig())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (d *daemon) open(c *client.Client, name string) *client.File {
	d.t.Helper()
	f, err := c.Open(name, all)
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

// TestServe performs all operations on an export, from several goroutines, and verifies the data through another
// connection.
func TestServe(t *testing.T) { ways(t, testServe) }

func testServe(t *testing.T) {
	d := begin(t, nil)
	c := d.dial()
	f := d.open(c, "disk")
	if f.Size() != size || f.Rights() != all {
		t.Errorf("%d bytes with rights %v", f.Size(), f.Rights())
	}
	var group sync.WaitGroup
	for g := range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			b, got := bytes.Repeat([]byte{byte(g + 1)}, 5000), make([]byte, 5000)
			for i := range 20 {
				at := int64(g*100_000 + i*5000)
				write := f.WriteAt
				if i%2 == 0 {
					write = f.WriteDurable
				}
				if _, err := write(b, at); err != nil {
					t.Error(err)
					return
				}
				if _, err := f.ReadAt(got, at); err != nil || !bytes.Equal(got, b) {
					t.Errorf("what was written at %d is not read: %v", at, err)
					return
				}
			}
		}()
	}
	group.Wait()
	for i := range uint64(10) {
		if was, err := f.FetchAdd(size-8, 3, i%2 == 0); err != nil || was != 3*i {
			t.Errorf("an addition found %d: %v", was, err)
		}
	}
	if was, err := f.CompareSwap(size-8, 30, 7, true); err != nil || was != 30 {
		t.Errorf("a swap found %d: %v", was, err)
	}
	if was, err := f.CompareSwap(size-8, 30, 8, false); err != nil || was != 7 {
		t.Errorf("a swap that must not be found %d: %v", was, err)
	}
	other := d.open(d.dial(), "/disk")
	got := make([]byte, 5000)
	if _, err := other.ReadAt(got, 100_000); err != nil || got[0] != 2 {
		t.Errorf("another connection reads %d: %v", got[0], err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if n, rights, err := c.Stat("disk"); err != nil || n != size || rights != all {
		t.Errorf("stat: %d, %v, %v", n, rights, err)
	}
	if _, err := c.Open("nothing", all); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, _, err := c.Stat("nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if f, err := c.Open("locked", all); err != nil || f.Rights() != verbs.RemoteRead {
		t.Errorf("a file that may only be read: %v", err)
	}
	if _, err := c.Open("locked", verbs.RemoteWrite); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that may only be read is opened for writing: %v", err)
	}
}

// TestDurable verifies that data confirmed by WriteDurable survive a crash.
func TestDurable(t *testing.T) { ways(t, testDurable) }

func testDurable(t *testing.T) {
	d := begin(t, nil)
	f := d.open(d.dial(), "disk")
	b := bytes.Repeat([]byte{42}, 3*4096+100)
	if _, err := f.WriteDurable(b, 1000); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "copy") // a copy of the device as it is now, without involving the daemon
	if out, err := exec.Command("cp", d.path, image).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found, _, err := pool.Open(pool.DefaultOptions(), image)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := cfs.Open(found, cfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := tree.Open(cfs.Cred{}, "disk", cfs.Read)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(b))
	if _, err := file.ReadAt(got, 1000); err != nil || !bytes.Equal(got, b) {
		t.Errorf("what was confirmed is not there: %v", err)
	}
	if err := errors.Join(file.Close(), found.Close()); err != nil {
		t.Error(err)
	}
}

// TestDrain drains the server while clients write: confirmed data persist, and clients see that the connection is gone.
func TestDrain(t *testing.T) { ways(t, testDrain) }

func testDrain(t *testing.T) {
	d := begin(t, nil)
	var group sync.WaitGroup
	sure := make([]byte, 4)
	started := make(chan bool, len(sure))
	for g := range sure {
		f := d.open(d.dial(), "disk")
		group.Add(1)
		go func() {
			defer group.Done()
			for n := byte(1); ; n++ {
				if n == 5 {
					started <- true
				}
				if _, err := f.WriteDurable(bytes.Repeat([]byte{n}, 4096), int64(g)*4096); err != nil {
					return
				}
				sure[g] = n
			}
		}()
	}
	for range sure {
		<-started
	}
	d.end()
	group.Wait()
	found, _, err := pool.Open(pool.DefaultOptions(), d.path)
	if err != nil {
		t.Fatal(err)
	}
	if !found.Found().Clean {
		t.Error("the pool was not closed")
	}
	tree, err := cfs.Open(found, cfs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := tree.Open(cfs.Cred{}, "disk", cfs.Read)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4096)
	for g, n := range sure {
		if _, err := file.ReadAt(got, int64(g)*4096); err != nil || got[0] != n && got[0] != n+1 ||
			bytes.Count(got, got[:1]) != 4096 {
			t.Errorf("client %d was told of %d, and %d is there: %v", g, n, got[0], err)
		}
	}
	if err := errors.Join(file.Close(), found.Close()); err != nil {
		t.Error(err)
	}
}

// authority is a CA.
type authority struct {
	pool *x509.CertPool
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	_ = a.issue(t, true)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) issue(t testing.TB, self bool) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return a.issueFor(t, self, key)
}

func (a *authority) issueFor(t testing.TB, self bool, key crypto.Signer) tls.Certificate {
	t.Helper()
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: self, BasicConstraintsValid: true,
	}
	by, byKey := a.cert, a.key
	if self {
		by, byKey = form, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, by, key.Public(), byKey)
	if err != nil {
		t.Fatal(err)
	}
	if self {
		if a.cert, err = x509.ParseCertificate(raw); err != nil {
			t.Fatal(err)
		}
		a.key = key
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

var token = []byte("correct horse battery staple")

// TestTLS verifies that a server with TLS accepts only TLS 1.3, and authenticates clients by certificate or token.
func TestTLS(t *testing.T) { ways(t, testTLS) }

func testTLS(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	d := begin(t, func(c *server.Config) {
		c.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t, false)}, ClientCAs: a.pool}
		c.Token = token
		c.NBD, c.Handshake = "127.0.0.1:0", time.Second
	})
	mine := func() client.Config {
		c := client.DefaultConfig()
		c.Token = token
		c.TLS = &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t, false)}}
		return c
	}
	c, err := dial(t, d.address(), mine())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	f, err := c.Open("disk", all)
	if err != nil {
		t.Fatal(err)
	}
	b, got := bytes.Repeat([]byte{3}, 1<<20), make([]byte, 1<<20)
	if _, err := f.WriteDurable(b, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(b, got) {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*client.Config){
		"no TLS":                         func(c *client.Config) { c.TLS, c.Token = nil, nil },
		"no token":                       func(c *client.Config) { c.Token = nil },
		"another token":                  func(c *client.Config) { c.Token = append([]byte("x"), token...) },
		"the beginning of the token":     func(c *client.Config) { c.Token = token[:len(token)-1] },
		"a token without TLS":            func(c *client.Config) { c.TLS = nil },
		"no certificate":                 func(c *client.Config) { c.TLS.Certificates = nil },
		"another authority":              func(c *client.Config) { c.TLS.Certificates = []tls.Certificate{stranger.issue(t, false)} },
		"TLS 1.2":                        func(c *client.Config) { c.TLS.MaxVersion = tls.VersionTLS12 },
		"a server that cannot be proven": func(c *client.Config) { c.TLS.RootCAs = stranger.pool },
	} {
		cfg := mine()
		spoil(&cfg)
		c, err := dial(t, d.address(), cfg)
		if err == nil { // with TLS 1.3 a client learns only after the handshake that its certificate is rejected
			_, err = c.Open("disk", all)
			_ = c.Close()
		}
		if err == nil {
			t.Errorf("%s: served", name)
		}
		if err != nil && strings.Contains(err.Error(), string(token)) {
			t.Errorf("%s: the error has the token in it", name)
		}
	}
	d.mu.Lock()
	for _, s := range d.said {
		if strings.Contains(s, string(token)) {
			t.Errorf("the log has the token in it: %s", s)
		}
	}
	d.mu.Unlock()
	// NBD as well: no information before TLS.
	_, nbd, _ := d.s.Addresses()
	nc, err := net.Dial("tcp", nbd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	_ = nc.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := nc.Write(append([]byte{0, 0, 0, 3, 'I', 'H', 'A', 'V', 'E', 'O', 'P', 'T', 0, 0, 0, 3, 0, 0, 0, 0},
		make([]byte, 0)...)); err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(io.LimitReader(nc, 200))
	if bytes.Contains(text, []byte("disk")) {
		t.Error("NBD lists exports without TLS")
	}
}

// TestRefusesToStart verifies that the server does not listen on non-local addresses without TLS and client
// authentication.
func TestRefusesToStart(t *testing.T) {
	a := newAuthority(t)
	d := begin(t, nil)
	d.end()
	cert := func() *tls.Config { return &tls.Config{Certificates: []tls.Certificate{a.issue(t, false)}} }
	known := func() *tls.Config { c := cert(); c.ClientCAs = a.pool; return c }
	for name, c := range map[string]struct {
		change func(*server.Config)
		says   string
	}{
		"no TLS":      {func(c *server.Config) { c.Address = "0.0.0.0:0" }, "without TLS"},
		"any address": {func(c *server.Config) { c.Address = ":0" }, "without TLS"},
		"IPv6":        {func(c *server.Config) { c.Address = "[::]:0" }, "without TLS"},
		"nobody known": {func(c *server.Config) { c.Address, c.TLS = "0.0.0.0:0", cert() },
			"without authentication"},
		"NBD without TLS": {func(c *server.Config) { c.NBD = "0.0.0.0:0" }, "without TLS"},
		"NBD with a token": {func(c *server.Config) { c.NBD, c.TLS, c.Token = "0.0.0.0:0", cert(), token },
			"cannot carry a token"},
		"NBD here, a token": {func(c *server.Config) { c.NBD, c.TLS, c.Token = "127.0.0.1:0", cert(), token },
			"would admit clients without one"},
		"metrics":              {func(c *server.Config) { c.Metrics = "0.0.0.0:0" }, "without TLS"},
		"metrics with TLS":     {func(c *server.Config) { c.Metrics, c.TLS = "0.0.0.0:0", cert() }, "without authentication"},
		"a token in the clear": {func(c *server.Config) { c.Token = token }, "could be read in transit"},
		"a short token":        {func(c *server.Config) { c.Token, c.TLS = token[:15], cert() }, "16 to 256"},
		"nothing":              {func(c *server.Config) { c.Address = "" }, "no address to listen on"},
		"no connections":       {func(c *server.Config) { c.Connections = 0 }, "0 connections"},
		"no address":           {func(c *server.Config) { c.Address = "nowhere" }, "nowhere"},
	} {
		cfg := server.DefaultConfig()
		cfg.Address = "127.0.0.1:0"
		c.change(&cfg)
		if err := cfg.Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, ok := range []func(*server.Config){
		func(c *server.Config) { c.Address, c.TLS = "0.0.0.0:0", known() },
		func(c *server.Config) { c.Address, c.TLS, c.Token = "0.0.0.0:0", cert(), token },
		func(c *server.Config) { c.NBD, c.TLS = "0.0.0.0:0", known() },
		func(c *server.Config) { c.NBD, c.TLS, c.Token = "127.0.0.1:0", known(), token },
		func(c *server.Config) { c.NBD, c.TLS = "127.0.0.1:0", cert() },
		func(c *server.Config) { c.Address = "[::1]:0" },
	} {
		cfg := server.DefaultConfig()
		cfg.Address = "127.0.0.1:0"
		ok(&cfg)
		if err := cfg.Check(); err != nil {
			t.Error(err)
		}
	}
}

// metrics returns the contents of /metrics.
func (d *daemon) metrics() string {
	d.t.Helper()
	_, _, at := d.s.Addresses()
	r, err := http.Get("http://" + at + "/metrics")
	if err != nil {
		d.t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	if err := errors.Join(err, r.Body.Close()); err != nil {
		d.t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return string(text)
}

// TestMetrics reads /metrics.
func TestMetrics(t *testing.T) { ways(t, testMetrics) }

func testMetrics(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Metrics = "127.0.0.1:0" })
	f := d.open(d.dial(), "disk")
	if _, err := f.WriteDurable(make([]byte, 10000), 0); err != nil {
		t.Fatal(err)
	}
	text := d.metrics()
	for _, want := range []string{"farflash_connections 1\n", "farflash_regions 1\n",
		"farflash_write_bytes_total 10000\n", "# TYPE farflash_pool_read_only gauge\n", "farflash_pool_read_only 0\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestLimit verifies that an export stays within its rate and that others are not delayed.
func TestLimit(t *testing.T) { ways(t, testLimit) }

func testLimit(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.Limits = map[string]qos.Limit{"disk": {Operations: 50}, "other": {Class: qos.Latency}}
	})
	c := d.dial()
	slow, fast := d.open(c, "disk"), d.open(d.dial(), "other")
	b := make([]byte, 4096)
	from := time.Now()
	done := make(chan error, 1)
	go func() {
		b := make([]byte, 4096)
		for range 11 {
			if _, err := slow.ReadAt(b, 0); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for range 100 {
		if _, err := fast.ReadAt(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(from); took < 200*time.Millisecond { // ten intervals of 20 ms; a slow machine may take longer
		t.Errorf("11 operations at 50 a second took %v", took)
	}
}

// TestNBD has third-party NBD clients write and read a rate-limited file, and verifies their data through iWARP.
func TestNBD(t *testing.T) { ways(t, testNBD) }

func testNBD(t *testing.T) {
	tool, err := exec.LookPath("qemu-io")
	if err != nil {
		t.Skip("qemu-io is not installed")
	}
	d := begin(t, func(c *server.Config) {
		c.NBD, c.Limits = "127.0.0.1:0",
			map[string]qos.Limit{"disk": {Operations: 100, Bytes: 10 << 20, Burst: qos.DefaultBurst}}
	})
	_, at, _ := d.s.Addresses()
	out, err := exec.Command(tool, "-f", "raw", "-c", "write -P 7 4096 100k", "-c", "flush", "-c",
		"read -P 7 4096 100k", "-c", "read -P 0 0 4096", "nbd://"+at).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("failed")) {
		t.Errorf("%v: %s", err, out)
	}
	got := make([]byte, 100<<10)
	if _, err := d.open(d.dial(), "disk").ReadAt(got, 4096); err != nil || bytes.Count(got, []byte{7}) != len(got) {
		t.Errorf("what was written over NBD is not read over iWARP: %v", err)
	}
	if out, err := exec.Command(tool, "-f", "raw", "-c", "read 0 1", "nbd://"+at+"/locked").CombinedOutput(); err ==
		nil {
		t.Errorf("a file that may not be written is opened for writing: %s", out)
	}
	if out, err := exec.Command(tool, "-r", "-f", "raw", "-c", "read -P 0 0 4096",
		"nbd://"+at+"/locked").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// again serves the pool with a new server, after the first has ended, and returns the file system opened for it.
func (d *daemon) again(change func(*server.Config)) *cfs.FS {
	d.t.Helper()
	tree, err := cfs.Open(d.pool, cfs.Config{})
	if err != nil {
		d.t.Fatal(err)
	}
	cfg := server.DefaultConfig()
	cfg.Pool, cfg.Files, cfg.Loops = d.pool, server.Tree(tree, cfs.Cred{UID: 1}), d.loops
	change(&cfg)
	if d.s, err = server.New(cfg); err != nil {
		d.t.Fatal(err)
	}
	if err := d.s.Listen(); err != nil {
		d.t.Fatal(err)
	}
	return tree
}
