package server_test

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/server"
)

func (d *daemon) nbdAddress() string {
	_, at, _ := d.s.Addresses()
	return at
}

// silent connects to NBD and sends no bytes.
func (d *daemon) silent() net.Conn {
	d.t.Helper()
	nc, err := net.Dial("tcp", d.nbdAddress())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// TestNBDPlaces verifies that unauthenticated clients claim no place of authenticated ones, and that a client beyond
// the limit receives an error.
func TestNBDPlaces(t *testing.T) { ways(t, testNBDPlaces) }

func testNBDPlaces(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.NBD, c.Metrics, c.Connections, c.Handshakes, c.Handshake = "127.0.0.1:0", "127.0.0.1:0", 3, 24, time.Minute
	})
	for range 20 {
		d.silent()
	}
	d.until("farflash_handshakes 20\n")
	for range 3 {
		if _, _, e, err := d.nbd("disk").Fetch(0, 0, 4096); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
	d.until("farflash_nbd_connections 3\n")
	if err := nbdtest.Dial(t, d.nbdAddress()).Go("disk", false); err == nil ||
		!strings.Contains(err.Error(), "too many connections") {
		t.Errorf("one too many: %v", err)
	}
	d.until("farflash_handshakes 21\n")
}

// TestNBDPlacesTLS is the same with clients identified by certificates.
func TestNBDPlacesTLS(t *testing.T) { ways(t, testNBDPlacesTLS) }

func testNBDPlacesTLS(t *testing.T) {
	a := newAuthority(t)
	d := begin(t, func(c *server.Config) {
		c.NBD, c.Connections, c.Handshake = "127.0.0.1:0", 2, time.Minute
		c.TLS = &tls.Config{Certificates: []tls.Certificate{a.issue(t, false)}, ClientCAs: a.pool}
	})
	for range 10 {
		d.silent()
		nbdtest.Dial(t, d.nbdAddress()) // completes the greeting only
	}
	for range 2 {
		c := nbdtest.Dial(t, d.nbdAddress())
		if all, err := c.Option(nbd.OptGo, nbdtest.Named("disk", 0, 0)); err != nil ||
			all[0].Reply != nbd.ReplyTLSRequired {
			t.Fatalf("without TLS: %v, %v", all, err)
		}
		if _, err := c.Option(nbd.OptStartTLS, nil); err != nil {
			t.Fatal(err)
		}
		c.Conn = tls.Client(c.Conn,
			&tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1", Certificates: []tls.Certificate{a.issue(t, false)},
				MinVersion: tls.VersionTLS13})
		if err := c.Go("disk", true); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNBDDrains verifies that Drain waits for NBD clients of every kind, up to its limit, and accepts no new ones in
// the meantime.
func TestNBDDrains(t *testing.T) { ways(t, testNBDDrains) }

func testNBDDrains(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.NBD, c.Progress, c.Handshake = "127.0.0.1:0", time.Minute, time.Minute })
	d.silent()
	c := d.nbd("disk")
	if e, err := c.Do(0, nbd.CmdWrite, 0, size, make([]byte, size)); e != 0 || err != nil {
		t.Fatal(e, err)
	}
	for range 8 {
		if _, err := c.Send(0, nbd.CmdRead, 0, size, nil); err != nil { // and reads no reply
			t.Fatal(err)
		}
	}
	p := d.dial()
	f := d.open(p, "disk")
	if _, err := f.ReadAt(make([]byte, 4096), 0); err != nil {
		t.Fatal(err)
	}
	from, at := time.Now(), d.nbdAddress()
	d.drain = 300 * time.Millisecond
	d.end()
	if took := time.Since(from); took > 20*time.Second {
		// far below the other limits, and far above the needs of a busy machine
		t.Errorf("it took %v to drain within 300 ms", took)
	}
	if _, err := net.Dial("tcp", at); err == nil {
		t.Error("it still listens")
	}
}

// TestNBDMayBeSilent verifies that the idle limit does not apply to NBD clients: a quiet device is still in use.
func TestNBDMayBeSilent(t *testing.T) { ways(t, testNBDMayBeSilent) }

func testNBDMayBeSilent(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.NBD, c.Idle = "127.0.0.1:0", 50*time.Millisecond })
	c := d.nbd("disk")
	if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the server has ended a silent connection: %v", err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, _, e, err := c.Fetch(0, 0, 4096); e != 0 || err != nil {
		t.Error(e, err)
	}
}
