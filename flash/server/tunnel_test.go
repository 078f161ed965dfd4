package server_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"farflash/flash/nvme/initiator"
	"farflash/flash/server"
	"farflash/flash/verbs/siwtest"
)

// listing returns a listing of the how-to of NVMe/TCP, by its title.
func listing(t *testing.T, title string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/nvme.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), fmt.Sprintf("title=%q\n", title))
	body, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("the page has no %s", title)
	}
	return body
}

// stunnel runs one with a configuration of the how-to, in which addresses are replaced, and returns its logs,
// once it accepts connections.
func stunnel(t *testing.T, secret, title string, replace ...string) *journal {
	t.Helper()
	dir := t.TempDir()
	text := listing(t, title)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("%s has no %s", title, replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	for name, text := range map[string]string{"psk": secret, "conf": "foreground = yes\npid =\ndebug = 6\n" + text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	j := &journal{}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "stunnel", "conf")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, j, j
	wait, err := siwtest.Tied(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = wait() // killed
		if t.Failed() {
			t.Logf("%s:\n%s", title, j)
		}
	})
	for range 600 {
		if strings.Contains(j.String(), "Configuration successful") {
			return j
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("stunnel does not start with %s", title)
	return nil
}

// journal is what a program has written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// wiretap forwards connections to an address and keeps what passes in both directions.
func wiretap(t *testing.T, to string) (at string, seen *journal) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	seen = &journal{}
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(io.MultiWriter(to, seen), from) // until one of them closes
		_, _ = to.Close(), from.Close()
	}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			go pass(far, near)
			go pass(near, far)
		}
	}()
	return l.Addr().String(), seen
}

// TestTunnel verifies that the tunnel of the how-to works: data pass through two stunnels, which know each other by a
// secret, with TLS 1.3. In between they cannot be read, and a host with another secret cannot connect.
func TestTunnel(t *testing.T) {
	if _, err := exec.LookPath("stunnel"); err != nil {
		t.Skip("stunnel is not installed")
	}
	d := begin(t, func(c *server.Config) { c.NVMe = paths(1) })
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	secret := "host:" + hex.EncodeToString(key)
	far := lasting(t)
	stunnel(t, secret, "stunnel-server.conf", "4421", far, "127.0.0.1:4420", d.s.Paths()[0].String())
	between, seen := wiretap(t, far)
	dial := func(at string) (*initiator.Association, error) {
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		cfg := initiator.DefaultConfig()
		cfg.Subsystem, cfg.Reconnect = d.s.Subsystem(), initiator.Reconnect{}
		return initiator.Dial(ctx, at, cfg)
	}
	enter := func(secret string) (at string, log *journal) {
		at = lasting(t)
		log = stunnel(t, secret, "stunnel-host.conf", "127.0.0.1:4420", at, "server:4421", between)
		return at, log
	}
	at, log := enter(secret)
	a, err := dial(at)
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.Namespaces()
	if err != nil || len(all) == 0 {
		t.Fatalf("namespaces %v, %v", all, err)
	}
	plain := bytes.Repeat([]byte("nothing to hide "), 4096)
	if _, err := all[0].WriteAt(plain, 8192); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(plain))
	if _, err := all[0].ReadAt(got, 8192); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("what was written is read otherwise: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if s := seen.String(); len(s) < 2*len(plain) || strings.Contains(s, string(plain[:16])) ||
		strings.Contains(s, d.s.Subsystem()) {
		t.Errorf("%d bytes in between, and they can be read", len(s))
	}
	if !strings.Contains(log.String(), "TLSv1.3 ciphersuite") {
		t.Error("the host's end does not speak TLS 1.3")
	}
	at, _ = enter("host:" + strings.Repeat("0", 64))
	if a, err := dial(at); err == nil {
		t.Errorf("a host with another secret is let in: %v", a.Close())
	}
}
