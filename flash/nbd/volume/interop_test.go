package volume_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nbd/server"
)

// run runs a third-party program, and skips the test, by name, if it is not installed.
func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.TempDir() // for files that fio leaves behind
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, &out, &wrong)
	}
	return out.String()
}

// random returns a file of n random bytes with holes.
func random(t *testing.T, n int) (string, []byte) {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	clear(b[n/4 : n/2])
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, b
}

// TestNbdinfo compares what libnbd's nbdinfo reports with the export.
func TestNbdinfo(t *testing.T) { both(t, testNbdinfo) }

func testNbdinfo(t *testing.T) {
	_, addr := serve(t, nil)
	var told struct {
		TLS     bool
		Exports []struct {
			Name        string   `json:"export-name"`
			Description string   `json:"description"`
			Size        int      `json:"export-size"`
			FUA         bool     `json:"can_fua"`
			Multi       bool     `json:"can_multi_conn"`
			Fast        bool     `json:"can_fast_zero"`
			Cache       bool     `json:"can_cache"`
			DF          bool     `json:"can_df"`
			Contexts    []string `json:"contexts"`
			Preferred   int      `json:"block_size_preferred"`
		}
	}
	if err := json.Unmarshal([]byte(run(t, "nbdinfo", "--json", "--list", "nbd://"+addr)), &told); err != nil {
		t.Fatal(err)
	}
	e := told.Exports[0]
	if len(told.Exports) != 1 || e.Name != "disk" || e.Size != size || !e.FUA || !e.Multi || !e.Fast || !e.Cache ||
		!e.DF || e.Preferred != 4096 || len(e.Contexts) != 1 {
		t.Errorf("%+v", told)
	}
	if got := strings.Fields(run(t, "nbdinfo", "--map", "nbd://"+addr+"/disk")); strings.Join(got, " ") !=
		"0 25165824 3 hole,zero" {
		t.Errorf("the map of an empty volume is %q", got)
	}
}

// TestNbdcopy copies an image in and out, with many requests over several connections, and with simple replies.
func TestNbdcopy(t *testing.T) { both(t, testNbdcopy) }

func testNbdcopy(t *testing.T) {
	_, addr := serve(t, nil)
	path, b := random(t, size)
	run(t, "nbdcopy", "--flush", path, "nbd://"+addr+"/disk")
	for _, how := range [][]string{{"--connections=4", "--requests=64"}, {"--synchronous"},
		{"--request-size=1048576"}} {
		back := filepath.Join(t.TempDir(), "back")
		run(t, "nbdcopy", append(how, "nbd://"+addr+"/disk", back)...)
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%v: %d bytes came back, which are not those that went: %v", how, len(got), err)
		}
	}
	if m := run(t, "nbdinfo", "--map", "nbd://"+addr+"/disk"); !strings.Contains(m, "hole,zero") {
		t.Errorf("the hole of the image was not kept:\n%s", m)
	}
}

// TestQemu has qemu read, write, zero and discard, and convert and compare images.
func TestQemu(t *testing.T) { both(t, testQemu) }

func testQemu(t *testing.T) {
	_, addr := serve(t, nil)
	uri := "nbd://" + addr + "/disk"
	out := run(t, "qemu-io", "-f", "raw", "-c", "write -P 0xab 0 1M", "-c", "write -P 0xcd -f 1000k 9000", "-c",
		"write -z 64k 128k", "-c", "write -z -u 300k 100k",
		"-c", "discard 512k 64k", "-c", "flush", "-c", "read -P 0xab 0 64k", "-c", "read -P 0 64k 128k", "-c",
		"read -P 0 300k 100k",
		"-c", "read -P 0xcd 1000k 9000", "-c", "aio_write -P 0x11 2M 3M", "-c", "aio_read 0 4M", "-c", "aio_flush",
		"-c", "read -P 0x11 2M 3M", "-c", "map", uri)
	if strings.Contains(out, "failed") || strings.Contains(out, "rror") {
		t.Error(out)
	}
	path, _ := random(t, size)
	run(t, "qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", "-W", "-m", "16", path, uri)
	run(t, "qemu-img", "compare", "-f", "raw", "-F", "raw", path, uri)
	if out := run(t, "qemu-img", "map", "--output=json", "-f", "raw", uri); !strings.Contains(out, `"zero": true`) ||
		!strings.Contains(out, `"data": true`) {
		t.Errorf("the map is %s", out)
	}
}

// TestFio has fio's own NBD engine write, and verify with checksums, at a queue depth of 32 over two connections.
func TestFio(t *testing.T) { both(t, testFio) }

func testFio(t *testing.T) {
	_, addr := serve(t, nil)
	if run(t, "fio", "--version"); !strings.Contains(run(t, "fio", "--enghelp"), "nbd") {
		t.Skip("fio has no nbd engine")
	}
	run(t, "fio", "--name=verify", "--ioengine=nbd", "--uri=nbd://"+addr+"/disk", "--rw=randwrite",
		"--bsrange=512-64k", "--bs_unaligned=0", "--iodepth=32", "--size=8M",
		"--verify=crc32c", "--verify_fatal=1", "--do_verify=1", "--fsync=64", "--randseed=7", "--eta=never")
	run(t, "fio", "--name=mixed", "--ioengine=nbd", "--uri=nbd://"+addr+"/disk", "--rw=randrw", "--rwmixread=60",
		"--bs=4k", "--iodepth=32", "--size=4M", "--offset=12M",
		"--numjobs=2", "--offset_increment=4M", "--verify=crc32c", "--verify_fatal=1", "--randseed=8", "--eta=never")
}

// certificates creates a CA, a server certificate and a client certificate in the folder layout of libnbd and qemu.
func certificates(t *testing.T) (dir string, cfg *tls.Config) {
	dir = t.TempDir()
	write := func(name, kind string, der []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	for i, name := range []string{"ca", "server", "client"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		}
		if i == 0 {
			c.IsCA, c.KeyUsage, c.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
			authority, signer = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, authority, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		write(name+"-cert.pem", "CERTIFICATE", der)
		write(name+"-key.pem", "PRIVATE KEY", private)
		switch i {
		case 0:
			made, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			pool.AddCert(made)
			authority = made
		case 1:
			cfg = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
				ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
		}
	}
	return dir, cfg
}

// TestTLSTools connects libnbd and qemu over TLS with certificates on both sides; clients without one are refused.
func TestTLSTools(t *testing.T) {
	dir, cfg := certificates(t)
	_, addr := serve(t, func(c *server.Config, _ *nbd.Export) { c.TLS, c.Require = cfg, true })
	path, b := random(t, size)
	_, port, _ := net.SplitHostPort(addr)
	t.Run("libnbd", func(t *testing.T) {
		uri := "nbds://localhost:" + port + "/disk?tls-certificates=" + dir
		run(t, "nbdcopy", "--flush", path, uri)
		back := filepath.Join(t.TempDir(), "back")
		run(t, "nbdcopy", uri, back)
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%d bytes came back, which are not those that went: %v", len(got), err)
		}
		if out, err := exec.Command("nbdinfo", "nbd://"+addr+"/disk").CombinedOutput(); err == nil {
			t.Errorf("without TLS: %s", out)
		}
	})
	t.Run("qemu", func(t *testing.T) {
		creds := []string{"--object", "tls-creds-x509,id=t,dir=" + dir + ",endpoint=client", "--image-opts"}
		image := "driver=nbd,host=localhost,port=" + port + ",export=disk,tls-creds=t"
		out := run(t, "qemu-io",
			append(creds, "-c", "write -P 0x5a 0 2M", "-c", "flush", "-c", "read -P 0x5a 0 2M", image)...)
		if strings.Contains(out, "failed") {
			t.Error(out)
		}
	})
}
