package deploy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	yaml "go.yaml.in/yaml/v4"
)

// program builds the program.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "farflash")
	if out, err := exec.Command("go", "build", "-pgo=off", "-o", path,
		"farflash/cmd/farflash").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// daemon is a daemon that a service manager has started.
type daemon struct {
	t       *testing.T
	cmd     *exec.Cmd
	manager *net.UnixConn
	out     bytes.Buffer
}

// start starts a daemon with a config, in which paths of a real machine are those in dir, and ports are free ones.
func start(t *testing.T, program, dir, config string) *daemon {
	t.Helper()
	for _, from := range []string{"/var/lib/farflash", "/data", "/tls"} {
		config = strings.ReplaceAll(config, from+"/", dir+"/")
	}
	config = regexp.MustCompile(`(\d\.\d):\d+`).ReplaceAllString(config, "$1:0")
	path := filepath.Join(dir, "farflash.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "notify")
	d := &daemon{t: t, cmd: exec.Command(program, "flash", "serve", "--config", path)}
	var err error
	if d.manager, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	d.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+socket)
	d.cmd.Stdout, d.cmd.Stderr = &d.out, &d.out
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill() // it has exited if the test passes
		_ = d.cmd.Wait()
		_ = d.manager.Close()
		if t.Failed() {
			t.Log(d.out.String())
		}
	})
	return d
}

// says waits for a state.
func (d *daemon) says(want string) {
	d.t.Helper()
	b := make([]byte, 1000)
	if err := d.manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		d.t.Fatal(err)
	}
	n, err := d.manager.Read(b)
	if err != nil || !strings.HasPrefix(string(b[:n]), want) {
		d.t.Fatalf("the daemon says %q, %v; want %s", b[:n], err, want)
	}
}

func (d *daemon) signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// ends waits for the daemon's end, within the grace that service managers give it.
func (d *daemon) ends() {
	d.t.Helper()
	done := make(chan error, 1)
	go func() { done <- d.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			d.t.Errorf("the daemon ends with %v", err)
		}
	case <-time.After(30 * time.Second):
		d.t.Error("the daemon has not ended after 30 s")
	}
}

// keys writes a certificate that serves as the server's and as the authority of clients.
func keys(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{"server.pem": {Type: "CERTIFICATE", Bytes: raw},
		"clients.pem": {Type: "CERTIFICATE", Bytes: raw}, "server.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// documents decodes a file of YAML documents.
func documents(t *testing.T, name string) (all []map[string]any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	for {
		x := map[string]any{}
		switch err := d.Decode(&x); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, x)
	}
}

// at returns what is at a path of keys; an element of a list is the first.
func at[T any](t *testing.T, x any, path ...string) (v T) {
	t.Helper()
	for _, k := range path {
		if list, ok := x.([]any); ok && len(list) > 0 {
			x = list[0]
		}
		m, ok := x.(map[string]any)
		if !ok {
			t.Fatalf("%v: no mapping at %s", path, k)
		}
		x = m[k]
	}
	v, ok := x.(T)
	if !ok {
		t.Fatalf("%v is %v", path, x)
	}
	return v
}

// TestDaemons runs the daemon with both configs, through a reload, a kill and a stop: it is ready, answers the probe,
// and finds its exports again.
func TestDaemons(t *testing.T) {
	bin := program(t)
	unit, err := os.ReadFile("farflash.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests := documents(t, "kubernetes.yaml")
	set := manifests[2]
	probe := at[[]any](t, set, "spec", "template", "spec", "containers", "livenessProbe", "exec", "command")
	for name, config := range map[string]string{"systemd": string(unit),
		"Kubernetes": at[string](t, manifests[0], "data", "farflash.yaml")} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "f") // a test's own directory may be too long for a socket's path
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			keys(t, dir)
			d := start(t, bin, dir, config)
			d.says("READY=1")
			d.signal(syscall.SIGHUP)
			d.says("RELOADING=1")
			d.says("READY=1")
			var args []string
			for _, a := range probe[1:] {
				args = append(args, strings.ReplaceAll(a.(string), "/data/", dir+"/"))
			}
			if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
				t.Errorf("%v: %v: %s", probe, err, out)
			}
			d.signal(syscall.SIGKILL)
			_ = d.cmd.Wait() // killed
			_ = d.manager.Close()
			if err := os.Remove(filepath.Join(dir, "notify")); err != nil {
				t.Fatal(err)
			}
			d = start(t, bin, dir, config)
			d.says("READY=1")
			d.signal(syscall.SIGTERM)
			d.says("STOPPING=1")
			d.ends()
			if s := d.out.String(); !strings.Contains(s, "recovered after a crash") ||
				!strings.Contains(s, "export disk, 50GiB") {
				t.Errorf("what it says: %s", s)
			}
		})
	}
}

// TestManifests verifies that the manifests agree with each other: names, paths, ports, and the time to end.
func TestManifests(t *testing.T) {
	all := documents(t, "kubernetes.yaml")
	var kinds []string
	for _, x := range all {
		kinds = append(kinds, at[string](t, x, "apiVersion")+" "+at[string](t, x, "kind"))
		if at[string](t, x, "metadata", "name") != "farflash" {
			t.Errorf("%v has another name", x["metadata"])
		}
	}
	if !slices.Equal(kinds, []string{"v1 ConfigMap", "v1 Service", "apps/v1 StatefulSet"}) {
		t.Fatalf("%v", kinds)
	}
	config, set := at[string](t, all[0], "data", "farflash.yaml"), all[2]
	pod := at[map[string]any](t, set, "spec", "template", "spec")
	box := at[[]any](t, pod, "containers")[0]
	label := at[string](t, set, "spec", "template", "metadata", "labels", "app")
	for _, got := range []string{at[string](t, set, "spec", "selector", "matchLabels", "app"),
		at[string](t, all[1], "spec", "selector", "app"), at[string](t, set, "spec", "serviceName")} {
		if got != label {
			t.Errorf("%s is not %s", got, label)
		}
	}
	mounts := map[string]string{}
	for _, x := range at[[]any](t, box, "volumeMounts") {
		mounts[at[string](t, x, "name")] = at[string](t, x, "mountPath")
	}
	volumes := []string{at[string](t, set, "spec", "volumeClaimTemplates", "metadata", "name")}
	for _, x := range at[[]any](t, pod, "volumes") {
		volumes = append(volumes, at[string](t, x, "name"))
	}
	for name := range mounts {
		if !slices.Contains(volumes, name) {
			t.Errorf("no volume %s", name)
		}
	}
	if args := at[[]any](t, box, "args"); args[1] != mounts["config"]+"/farflash.yaml" {
		t.Errorf("the config is %v", args)
	}
	for _, path := range []string{mounts["data"] + "/pool.img", mounts["tls"] + "/server.key"} {
		if !strings.Contains(config, path) {
			t.Errorf("%s is not in the config", path)
		}
	}
	if port := at[int](t, box, "ports", "containerPort"); port != at[int](t, all[1], "spec", "ports", "port") ||
		!strings.Contains(config, "nbd: 0.0.0.0:10809") || port != 10809 {
		t.Errorf("port %d", port)
	}
	if grace := at[int](t, pod, "terminationGracePeriodSeconds"); grace != 30 {
		t.Errorf("%d s to end", grace)
	}
}

// TestUnit verifies the unit of systemd with its own tool.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit, err := os.ReadFile("farflash.service")
	if err != nil {
		t.Fatal(err)
	}
	// Its program and its manual need not be installed here.
	path := filepath.Join(t.TempDir(), "farflash.service")
	text := strings.ReplaceAll(string(unit), "/usr/local/bin/farflash", "/bin/true")
	text = regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(text, "")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=20", path).CombinedOutput()
	if err != nil {
		t.Errorf("it permits more than it needs: %v: %s", err, out)
	}
}
