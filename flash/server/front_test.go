package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"farflash/flash/cfs"
	"farflash/flash/client"
	"farflash/flash/ctl"
	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/server"
)

// TestUnix serves iWARP, NBD and /metrics on Unix sockets, whose files are gone afterwards.
func TestUnix(t *testing.T) { ways(t, testUnix) }

func testUnix(t *testing.T) {
	dir, err := os.MkdirTemp("", "f") // a test's own directory may be too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := func(name string) string { return "unix:" + filepath.Join(dir, name) }
	// A killed daemon leaves a socket that refuses connections.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "nbd"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	d := begin(t, func(c *server.Config) { c.Address, c.NBD, c.Metrics = at("iwarp"), at("nbd"), at("metrics") })
	iwarp, block, metrics := d.s.Addresses()
	if iwarp != at("iwarp") || block != at("nbd") || metrics != at("metrics") {
		t.Errorf("it serves %s, %s and %s", iwarp, block, metrics)
	}
	f := d.open(d.dial(), "disk")
	if _, err := f.WriteDurable([]byte("over a Unix socket"), 0); err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("unix", filepath.Join(dir, "nbd"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	c, err := nbdtest.NewClient(nc, nbd.FlagFixedNewstyle|nbd.FlagNoZeroes)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Go("disk", true); err != nil {
		t.Fatal(err)
	}
	if got, _, e, err := c.Fetch(0, 0, 4096); e != 0 || err != nil || !strings.HasPrefix(string(got), "over a Unix") {
		t.Errorf("%q %v %v", got[:min(len(got), 20)], e, err)
	}
	other := server.DefaultConfig()
	other.Pool, other.Files, other.Address, other.Connections = d.pool, server.Tree(d.tree, cfs.Cred{UID: 1}), at("iwarp"), 8
	second, err := server.New(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Listen(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a socket in use: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other.Address = at("file")
	if second, err = server.New(other); err != nil {
		t.Fatal(err)
	}
	if err := second.Listen(); err == nil || !strings.Contains(err.Error(), "is there and is not a socket") {
		t.Errorf("another file: %v", err)
	}
	d.end()
	for _, name := range []string{"iwarp", "nbd", "metrics"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	for address, want := range map[string]string{"unix:": "a path is missing",
		"unix:/" + strings.Repeat("a", 107): "the path has 108 bytes; a Unix socket's has at most 107"} {
		other.Address = address
		if err := other.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestNBDConnections verifies that the number of NBD connections can be set, within the memory that each needs.
func TestNBDConnections(t *testing.T) {
	c := server.DefaultConfig()
	c.NBD, c.NBDConnections = "127.0.0.1:0", 24
	frames := 24 * nbd.Window * 8 / ctl.Page
	if err := c.CheckMemory(frames); err != nil {
		t.Error(err)
	}
	want := fmt.Sprintf("%d pages of memory are too few for 24 NBD connections; give %d, or fewer connections",
		frames-1, frames)
	if err := c.CheckMemory(frames - 1); err == nil || err.Error() != want {
		t.Errorf("%v, not %s", err, want)
	}
	for _, x := range []server.Config{{Address: "127.0.0.1:0", Connections: 64, Reads: 16}, {}, c,
		{Address: "127.0.0.1:0", Connections: 3, Reads: 2, NBD: "127.0.0.1:0", NBDConnections: 2}} {
		n := x.LeastFrames()
		if x.CheckMemory(n) != nil || n > 1 && x.CheckMemory(n-1) == nil {
			t.Errorf("%d frames are not the least for %+v", n, x)
		}
	}
	if c.NBDConnections = -1; c.Check() == nil {
		t.Error("-1 connections are accepted")
	}
	if c.NBDConnections = 1<<14 + 1; c.Check() == nil {
		t.Error("16,385 connections are accepted")
	}
	d := begin(t, func(c *server.Config) { c.NBD, c.NBDConnections, c.Connections = "127.0.0.1:0", 2, 2 })
	for range 2 {
		d.nbd("disk")
	}
	if err := nbdtest.Dial(t, d.nbdAddress()).Go("disk", false); err == nil ||
		!strings.Contains(err.Error(), "too many connections") {
		t.Errorf("a third: %v", err)
	}
}

// heard waits for a notice that contains text.
func (d *daemon) heard(text string) {
	d.t.Helper()
	for range 500 {
		d.mu.Lock()
		all := strings.Join(d.said, "\n")
		d.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.t.Errorf("no notice with %q: %q", text, d.said)
}

// TestCertificateKinds verifies that clients of our own and tools with GnuTLS are served with certificates of ECDSA
// keys, those of our own also with RSA keys, and that the server's notice explains why GnuTLS sends no RSA certificate.
func TestCertificateKinds(t *testing.T) {
	a := newAuthority(t)
	d := begin(t, func(c *server.Config) {
		c.NBD = "127.0.0.1:0"
		c.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t, false)}, ClientCAs: a.pool}
	})
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]tls.Certificate{"ecdsa": a.issue(t, false), "rsa": a.issueFor(t, false, key)}
	for name, certificate := range kinds {
		cfg := client.DefaultConfig()
		cfg.TLS = &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{certificate}}
		c, err := dial(t, d.address(), cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := c.Open("disk", all); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = c.Close() // its work is done
	}
	const hint = "use one with an ECDSA or Ed25519 key"
	nc, err := tls.Dial("tcp", d.address(), &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"})
	if err == nil { // the client learns later that a certificate is required
		_, _ = nc.Read(make([]byte, 1))
		_ = nc.Close()
	}
	d.heard(hint)
	if _, err := exec.LookPath("nbdinfo"); err != nil {
		t.Skip("nbdinfo is not installed")
	}
	for name, certificate := range kinds {
		dir := t.TempDir()
		private, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		for file, b := range map[string]*pem.Block{"ca-cert.pem": {Type: "CERTIFICATE", Bytes: a.cert.Raw},
			"client-cert.pem": {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]},
			"client-key.pem":  {Type: "PRIVATE KEY", Bytes: private}} {
			if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		d.mu.Lock()
		d.said = nil
		d.mu.Unlock()
		out, err := exec.Command("nbdinfo", "--size",
			"nbds://"+d.nbdAddress()+"/disk?tls-certificates="+dir).CombinedOutput()
		switch {
		case err == nil && strings.TrimSpace(string(out)) != fmt.Sprint(size):
			t.Errorf("%s: %s", name, out)
		case err != nil && name == "ecdsa":
			t.Errorf("%s: %v: %s", name, err, out)
		case err != nil: // GnuTLS 3.7; later ones may send it
			d.heard(hint)
		}
	}
}
