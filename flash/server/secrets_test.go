package server_test

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"farflash/flash/client"
	"farflash/flash/nbd/nbdtest"
	"farflash/flash/nvme/chap"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/flash/server"
)

// TestReload replaces the certificates, the token and the NVMe keys of a server: clients need the new ones from then
// on, for iWARP, NBD and NVMe/TCP, connections that are open keep working, and what cannot take effect changes
// nothing.
func TestReload(t *testing.T) { ways(t, testReload) }

func testReload(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	var k [2]chap.Key
	for i := range k {
		var err error
		if k[i], err = chap.NewKey(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	secrets := func(a *authority, token string, k chap.Key) server.Secrets {
		return server.Secrets{TLS: &tls.Config{Certificates: []tls.Certificate{a.issue(t, false)}, ClientCAs: a.pool},
			Token: []byte(token), Keys: map[string]chap.Keys{nvmetest.HostName: {Host: k}}}
	}
	const one, two = "the first token of all", "the second of the tokens"
	d := begin(t, func(c *server.Config) {
		x := secrets(before, one, k[0])
		c.TLS, c.Token, c.Keys = x.TLS, x.Token, x.Keys
		c.NBD, c.NVMe = "127.0.0.1:0", paths(1)
	})
	iwarp := func(a *authority, token string) (*client.Client, error) {
		c := client.DefaultConfig()
		c.Token = []byte(token)
		c.TLS = &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.issue(t, false)}}
		x, err := dial(t, d.address(), c)
		if err == nil {
			t.Cleanup(func() { _ = x.Close() })
			_, err = x.Open("disk", all) // a wrong certificate shows only now
		}
		return x, err
	}
	nbd := func(a *authority) error {
		c := nbdtest.Dial(t, d.nbdAddress())
		if err := c.Secure(&tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1",
			Certificates: []tls.Certificate{a.issue(t, false)}}); err != nil {
			return err
		}
		return c.Go("disk", false)
	}
	nvme := func(k chap.Key) (*nvmetest.Host, error) {
		return nvmetest.Open(d.s.Paths()[0].String(), nvmetest.Login{Queues: 1, Keys: &chap.Keys{Host: k},
			Identity: wire.Identity{HostID: [16]byte{1}, Host: nvmetest.HostName, Subsystem: d.s.Subsystem()}})
	}
	served := func(a *authority, token string, k chap.Key, want bool) {
		t.Helper()
		_, far := iwarp(a, token)
		near := nbd(a)
		h, local := nvme(k)
		if h != nil {
			_ = h.Close()
		}
		for name, err := range map[string]error{"iWARP": far, "NBD": near, "NVMe": local} {
			if (err == nil) != want {
				t.Errorf("%s: %v, want served %v", name, err, want)
			}
		}
	}
	served(before, one, k[0], true)
	open, err := iwarp(before, one)
	if err != nil {
		t.Fatal(err)
	}
	host, err := nvme(k[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = host.Close() }()

	for what, x := range map[string]server.Secrets{
		"start the server again": {TLS: secrets(after, two, k[1]).TLS, Token: []byte(two)},
		"give 16 to 256":         secrets(after, "short", k[1]),
	} {
		if err := d.s.Reload(x); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %s", err, what)
		}
	}
	served(before, one, k[0], true)
	if err := d.s.Reload(secrets(after, two, k[1])); err != nil {
		t.Fatal(err)
	}
	served(before, one, k[0], false)
	served(after, two, k[1], true)
	if _, err := iwarp(after, one); err == nil {
		t.Error("the old token is accepted")
	}
	if _, err := open.Open("other", all); err != nil {
		t.Errorf("a connection that was open: %v", err)
	}
	o := nvmetest.IOOp(wire.Read, 1, 0, 1, 0)
	o.In = make([]byte, 512)
	if err := host.IO[0].Do(o); errors.Join(err) != nil {
		t.Errorf("a host that was connected: %v", err)
	}
}

// TestFarMetrics verifies that metrics that other machines can reach need TLS and the token, and that probes need only
// TLS.
func TestFarMetrics(t *testing.T) {
	a := newAuthority(t)
	const secret = "the token of all clients"
	d := begin(t, func(c *server.Config) {
		c.TLS, c.Token = &tls.Config{Certificates: []tls.Certificate{a.issue(t, false)}}, []byte(secret)
		c.Metrics = "0.0.0.0:0"
	})
	_, _, at := d.s.Addresses()
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool}, DisableKeepAlives: true}}
	for _, x := range []struct {
		path, token string
		want        int
	}{
		{"/metrics", "", http.StatusUnauthorized}, {"/metrics", "another token of clients", http.StatusUnauthorized},
		{"/metrics", secret, http.StatusOK}, {"/healthz", "", http.StatusOK}, {"/readyz", "", http.StatusOK},
	} {
		r, err := http.NewRequest(http.MethodGet, "https://127.0.0.1:"+port+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.token != "" {
			r.Header.Set("Authorization", "Bearer "+x.token)
		}
		got, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(got.Body)
		_ = got.Body.Close() // read to its end
		if err != nil || got.StatusCode != x.want || strings.Contains(string(b), "farflash_pool") != (x.token == secret) {
			t.Errorf("%s with %q: %s, %v", x.path, x.token, got.Status, err)
		}
	}
	if got, err := http.Get("http://127.0.0.1:" + port + "/metrics"); err == nil {
		_ = got.Body.Close()
		if got.StatusCode == http.StatusOK {
			t.Error("metrics are served without TLS")
		}
	}
}
