package deploy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
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

	"farflash/scenario/shape"
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

// documents parses a file of YAML documents.
func documents(t *testing.T, name string) (all []*shape.Node) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(b), "\n---\n") {
		n, err := shape.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// at returns the node at a path of keys, which leads through the first element of each list.
func at(t *testing.T, n *shape.Node, path ...string) *shape.Node {
	t.Helper()
	for _, k := range path {
		if n.Kind == shape.Sequence && len(n.Items) > 0 {
			n = n.Items[0]
		}
		if n = n.Get(k); n == nil {
			t.Fatalf("%v: no key %s", path, k)
		}
	}
	return n
}

// text is the scalar at a path.
func text(t *testing.T, n *shape.Node, path ...string) string {
	t.Helper()
	return at(t, n, path...).Text
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
	probe := at(t, set, "spec", "template", "spec", "containers", "livenessProbe", "exec", "command").Items
	for name, config := range map[string]string{"systemd": string(unit),
		"Kubernetes": text(t, manifests[0], "data", "farflash.yaml")} {
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
				args = append(args, strings.ReplaceAll(a.Text, "/data/", dir+"/"))
			}
			if out, err := exec.Command(bin, args...).CombinedOutput(); err != nil {
				t.Errorf("%v: %v: %s", args, err, out)
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
		kinds = append(kinds, text(t, x, "apiVersion")+" "+text(t, x, "kind"))
		if name := text(t, x, "metadata", "name"); name != "farflash" {
			t.Errorf("%s has another name", name)
		}
	}
	if !slices.Equal(kinds, []string{"v1 ConfigMap", "v1 Service", "apps/v1 StatefulSet"}) {
		t.Fatalf("%v", kinds)
	}
	config, set := text(t, all[0], "data", "farflash.yaml"), all[2]
	pod := at(t, set, "spec", "template", "spec")
	box := at(t, pod, "containers").Items[0]
	label := text(t, set, "spec", "template", "metadata", "labels", "app")
	for _, got := range []string{text(t, set, "spec", "selector", "matchLabels", "app"),
		text(t, all[1], "spec", "selector", "app"), text(t, set, "spec", "serviceName")} {
		if got != label {
			t.Errorf("%s is not %s", got, label)
		}
	}
	mounts := map[string]string{}
	for _, x := range at(t, box, "volumeMounts").Items {
		mounts[text(t, x, "name")] = text(t, x, "mountPath")
	}
	volumes := []string{text(t, set, "spec", "volumeClaimTemplates", "metadata", "name")}
	for _, x := range at(t, pod, "volumes").Items {
		volumes = append(volumes, text(t, x, "name"))
	}
	for name := range mounts {
		if !slices.Contains(volumes, name) {
			t.Errorf("no volume %s", name)
		}
	}
	if args := at(t, box, "args").Items; args[1].Text != mounts["config"]+"/farflash.yaml" {
		t.Errorf("the config is %s", args[1].Text)
	}
	for _, path := range []string{mounts["data"] + "/pool.img", mounts["tls"] + "/server.key"} {
		if !strings.Contains(config, path) {
			t.Errorf("%s is not in the config", path)
		}
	}
	if port := text(t, box, "ports", "containerPort"); port != text(t, all[1], "spec", "ports", "port") ||
		!strings.Contains(config, "nbd: 0.0.0.0:"+port+"\n") {
		t.Errorf("port %s", port)
	}
	if grace := text(t, pod, "terminationGracePeriodSeconds"); grace != "30" {
		t.Errorf("%s s to end", grace)
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
	form := strings.ReplaceAll(string(unit), "/usr/local/bin/farflash", "/bin/true")
	form = regexp.MustCompile(`(?m)^Documentation=.*\n`).ReplaceAllString(form, "")
	if err := os.WriteFile(path, []byte(form), 0o600); err != nil {
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
