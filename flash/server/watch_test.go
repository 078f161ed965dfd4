package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"farflash/flash/cfs"
	"farflash/flash/ctl"
	"farflash/flash/device"
	"farflash/flash/nbd"
	"farflash/flash/qos"
	"farflash/flash/server"
	"farflash/flash/verbs"
	"farflash/scenario/shape"
)

// get requests a path of the metrics address under a host's name.
func (d *daemon) get(path, host string, accept ...string) (code int, body []byte, h http.Header) {
	d.t.Helper()
	_, _, at := d.s.Addresses()
	q, err := http.NewRequest(http.MethodGet, "http://"+at+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	q.Host = host
	for _, kind := range accept {
		q.Header.Set("Accept", kind)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Do(q)
	if err != nil {
		d.t.Fatal(err)
	}
	if body, err = io.ReadAll(r.Body); err != nil {
		d.t.Fatal(err)
	}
	_ = r.Body.Close()
	return r.StatusCode, body, r.Header
}

// series returns the value of a sample of the text format.
func (d *daemon) series(name string) string {
	for line := range strings.Lines(d.metrics()) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// want compares samples.
func (d *daemon) want(all map[string]string) {
	d.t.Helper()
	for name, value := range all {
		if got := d.series(name); got != value {
			d.t.Errorf("%s is %q, not %q", name, got, value)
		}
	}
}

// TestExportMetrics verifies that operations are counted by export, protocol and kind, over NBD and iWARP.
func TestExportMetrics(t *testing.T) { ways(t, testExportMetrics) }

func testExportMetrics(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.NBD, c.Metrics, c.Version = "127.0.0.1:0", "127.0.0.1:0", "v9" })
	c := d.nbd("disk")
	do := func(kind nbd.Command, offset uint64, n uint32, payload []byte) {
		t.Helper()
		if e, err := c.Do(0, kind, offset, n, payload); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
	for range 3 {
		do(nbd.CmdWrite, 4096, 8192, make([]byte, 8192))
	}
	do(nbd.CmdFlush, 0, 0, nil)
	do(nbd.CmdTrim, 0, 4096, nil)
	do(nbd.CmdWriteZeroes, 0, 4096, nil)
	for range 5 {
		if _, _, e, err := c.Fetch(0, 4096, 4096); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
	f := d.open(d.dial(), "other")
	if _, err := f.WriteDurable(make([]byte, 5000), 100); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(make([]byte, 5000), 100); err != nil {
		t.Fatal(err)
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	of := func(name, export, kind, protocol string) string {
		return fmt.Sprintf("farflash_%s{export=%q,kind=%q,protocol=%q}", name, export, kind, protocol)
	}
	d.want(map[string]string{
		of("operations_total", "disk", "read", "nbd"):                                 "5",
		of("operations_total", "disk", "write", "nbd"):                                "3",
		of("operations_total", "disk", "flush", "nbd"):                                "1",
		of("operations_total", "disk", "trim", "nbd"):                                 "1",
		of("operations_total", "disk", "zero", "nbd"):                                 "1",
		of("bytes_total", "disk", "read", "nbd"):                                      "20480",
		of("bytes_total", "disk", "write", "nbd"):                                     "24576",
		of("operation_seconds_count", "disk", "read", "nbd"):                          "5",
		of("operation_seconds_count", "disk", "flush", "nbd"):                         "1",
		of("bytes_total", "other", "write", "iwarp"):                                  "5000",
		of("bytes_total", "other", "read", "iwarp"):                                   "5000",
		of("operations_total", "other", "flush", "iwarp"):                             "1",
		`farflash_errors_total{error="EIO",export="disk",kind="read",protocol="nbd"}`: "0",
		`farflash_operations_outstanding{export="disk",protocol="nbd"}`:               "0",
		`farflash_operations_outstanding{export="other",protocol="iwarp"}`:            "0",
		"farflash_pool_recovery_clean":                                                "1",
		"farflash_pool_map_reads_total":                                               "0",
		"farflash_pool_map_writes_total":                                              "0",
		"farflash_exports_forgotten_total":                                            "0",
	})
	for _, name := range []string{of("operations_total", "disk", "write", "iwarp"), of("operations_total", "other",
		"read", "nbd")} {
		if got := d.series(name); got != "" {
			t.Errorf("%s is %s without a use", name, got)
		}
	}
	if !strings.Contains(d.metrics(), `version="v9"} 1`) {
		t.Error("the version is missing")
	}
	for _, name := range []string{"farflash_pool_hits_total", "farflash_pool_map_bytes"} {
		if n := d.series(name); n == "0" || n == "" {
			t.Errorf("%s is %q", name, n)
		}
	}
	_ = c.Close()
	d.until("farflash_nbd_connections 0\n")
	d.want(map[string]string{of("operations_total", "disk", "read", "nbd"): "5"}) // outlives the connection
}

// TestWaitCounts verifies that an operation that waits for a rate limit is outstanding, that its wait is part of its
// latency, and that one whose client leaves is neither done nor failed.
func TestWaitCounts(t *testing.T) { ways(t, testWaitCounts) }

func testWaitCounts(t *testing.T) {
	d := begin(t, func(c *server.Config) {
		c.NBD, c.Metrics = "127.0.0.1:0", "127.0.0.1:0"
		c.Limits = map[string]qos.Limit{"disk": {Operations: 10}, "other": {Bytes: 64}} // of other, one page per minute
	})
	c, p := d.nbd("disk"), d.dial()
	f := d.open(p, "disk")
	for range 3 {
		if _, _, e, err := c.Fetch(0, 0, 4096); e != 0 || err != nil {
			t.Fatal(e, err)
		}
		if _, err := f.ReadAt(make([]byte, 4096), 0); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	name := func(metric, labels, protocol string) string {
		return fmt.Sprintf("farflash_%s{%s,protocol=%q}", metric, labels, protocol)
	}
	for _, protocol := range []string{"nbd", "iwarp"} {
		var sum float64
		_, _ = fmt.Sscan(d.series(name("operation_seconds_sum", `export="disk",kind="read"`, protocol)), &sum)
		if sum < 0.15 {
			t.Errorf("%s: 3 reads that waited 0.1 s each took %v s in all", protocol, sum)
		}
	}
	c, f = d.nbd("other"), d.open(p, "other")
	for range 9 {
		if _, err := c.Send(0, nbd.CmdRead, 0, 4096, nil); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = f.ReadAt(make([]byte, 4096), 0) }() // returns when its connection ends
	}
	for _, protocol := range []string{"nbd", "iwarp"} {
		of := name("operations_outstanding", `export="other"`, protocol)
		d.until(of+" 8\n", of+" 9\n")
	}
	_, _ = c.Close(), p.Close()
	for _, protocol := range []string{"nbd", "iwarp"} {
		d.until(name("operations_outstanding", `export="other"`, protocol) + " 0\n")
		if got := d.series(name("operations_total", `export="other",kind="read"`, protocol)); got != "0" && got != "1" {
			t.Errorf("%s: %s reads ended, where one passes in a minute", protocol, got)
		}
		d.want(map[string]string{name("errors_total", `error="other",export="other",kind="read"`, protocol): "0"})
	}
}

// TestErrorsCount verifies that errors distinguish a full pool from a failing device, over both protocols.
func TestErrorsCount(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.NBD, c.Metrics = "127.0.0.1:0", "127.0.0.1:0" })
	used, capacity := d.pool.Use()
	for page := range uint64(capacity - used) { // far from the files
		if err := d.pool.WriteAt(make([]byte, 4096), 1<<40+page*4096, false); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := d.nbd("disk").Do(0, nbd.CmdWrite, 0, 4096, make([]byte, 4096)); e != nbd.ENOSPC || err != nil {
		t.Error(e, err)
	}
	if _, err := d.open(d.dial(), "disk").WriteDurable(make([]byte, 4096), 0); err == nil {
		t.Error("written to a full pool")
	}
	d.want(map[string]string{
		`farflash_errors_total{error="ENOSPC",export="disk",kind="write",protocol="nbd"}`:   "1",
		`farflash_errors_total{error="ENOSPC",export="disk",kind="write",protocol="iwarp"}`: "1",
		`farflash_errors_total{error="EIO",export="disk",kind="write",protocol="nbd"}`:      "0",
		`farflash_bytes_total{export="disk",kind="write",protocol="nbd"}`:                   "0",
	})
}

// TestNativeHistograms verifies that both kinds of buckets count each operation, and the bounds of the native ones.
func TestNativeHistograms(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.NBD, c.Metrics = "127.0.0.1:0", "127.0.0.1:0" })
	c := d.nbd("disk")
	for range 100 {
		if _, _, e, err := c.Fetch(0, 0, 4096); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
	_, body, header := d.get("/metrics", "localhost",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	from := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(header))
	var h *dto.Histogram
	for {
		var f dto.MetricFamily
		if err := from.Decode(&f); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if f.GetName() == "farflash_operation_seconds" {
			for _, m := range f.GetMetric() {
				if m.GetHistogram().GetSampleCount() == 100 {
					h = m.GetHistogram()
				}
			}
		}
	}
	if h == nil {
		t.Fatal("no histogram of 100 reads")
	}
	buckets := h.GetBucket()
	n, at, each := int64(h.GetZeroCount()), int32(0), int64(0)
	least, most := 0.0, float64(n)*h.GetZeroThreshold() // of the sum
	deltas := h.GetPositiveDelta()
	for _, s := range h.GetPositiveSpan() {
		at += s.GetOffset()
		for range s.GetLength() {
			each += deltas[0]
			deltas = deltas[1:]
			n += each
			least += float64(each) * math.Exp2(float64(at-1)/8)
			most += float64(each) * math.Exp2(float64(at)/8)
			at++
		}
	}
	if n != 100 || len(deltas) != 0 || h.GetSchema() != 3 || len(buckets) != 19 ||
		buckets[18].GetCumulativeCount() != 100 {
		t.Errorf("%d operations in native buckets, %d deltas beyond: %v", n, len(deltas), h)
	}
	if sum := h.GetSampleSum(); sum < least || sum > most {
		t.Errorf("the sum is %v; by the native buckets it is from %v to %v", sum, least, most)
	}
}

// TestLint holds the metrics against the conventions of Prometheus.
func TestLint(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.NBD, c.Metrics = "127.0.0.1:0", "127.0.0.1:0" })
	d.nbd("disk")
	problems, err := promlint.New(strings.NewReader(d.metrics())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestDeployed verifies that the metrics that the dashboard and the rules name exist, and so do the recorded ones.
func TestDeployed(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.NBD, c.Metrics = "127.0.0.1:0", "127.0.0.1:0" })
	d.nbd("disk")
	if _, err := d.s.SetLimit("disk", qos.Limit{Bytes: 1e9, Operations: 1e9}); err != nil {
		t.Fatal(err)
	}
	d.drained()
	there := map[string]bool{}
	for line := range strings.Lines(d.metrics()) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(strings.TrimSpace(name), " ")
			if there[name] = true; kind == "histogram" {
				there[name+"_bucket"], there[name+"_count"], there[name+"_sum"] = true, true, true
			}
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rules, dashboard := read("examples/deploy/rules.yaml"), read("examples/deploy/dashboard.json")
	if _, err := shape.Parse("rules.yaml", []byte(rules)); err != nil {
		t.Error(err)
	}
	if _, err := shape.Parse("prometheus.yaml", []byte(read("examples/deploy/prometheus.yaml"))); err != nil {
		t.Error(err)
	}
	if !json.Valid([]byte(dashboard)) {
		t.Error("the dashboard is no JSON")
	}
	for _, m := range regexp.MustCompile(`- record: (\S+)`).FindAllStringSubmatch(rules, -1) {
		there[m[1]] = true
	}
	page := read("docs/how-to/watch-a-daemon.md")
	named := regexp.MustCompile(`\b(farflash[_:]|process_|go_)[a-z0-9_:]+`)
	for where, text := range map[string]string{"rules": rules, "dashboard": dashboard, "page": page} {
		all := named.FindAllString(text, -1)
		if len(all) < 5 {
			t.Errorf("the %s name the metrics %q only", where, all)
		}
		for _, name := range all {
			if !there[name] {
				t.Errorf("the %s name %s, which /metrics does not have", where, name)
			}
		}
	}
	for _, m := range regexp.MustCompile(`- alert: (\S+)`).FindAllStringSubmatch(rules, -1) {
		if !strings.Contains(page, "`"+m[1]+"`") {
			t.Errorf("the page does not explain %s", m[1])
		}
	}
}

// TestForeignNames verifies that a page from a host whose name was made to resolve to this machine cannot read the
// metrics.
func TestForeignNames(t *testing.T) {
	d := begin(t, func(c *server.Config) { c.Metrics = "127.0.0.1:0" })
	_, _, at := d.s.Addresses()
	_, port, _ := net.SplitHostPort(at)
	for _, host := range []string{at, "localhost", "LocalHost:" + port, "127.0.0.1", "127.0.0.2:80", "[::1]:" + port, "[::1]"} {
		if code, _, _ := d.get("/metrics", host); code != http.StatusOK {
			t.Errorf("%s: %d", host, code)
		}
	}
	for _, host := range []string{"evil.example", "evil.example:" + port, "localhost.evil.example", "127.0.0.1.evil.example",
		"192.0.2.1:" + port, "[2001:db8::1]:" + port, "[localhost", "localhost."} {
		for _, path := range []string{"/metrics", "/healthz", "/readyz", "/"} {
			code, text, header := d.get(path, host)
			if code != http.StatusMisdirectedRequest || bytes.Contains(text, []byte("farflash_")) ||
				!strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
				t.Errorf("%s for %s: %d: %s", path, host, code, text)
			}
		}
	}
	// A Unix socket, which pages cannot reach, has no name.
	path := filepath.Join(t.TempDir(), "m")
	u := begin(t, func(c *server.Config) { c.Metrics = "unix:" + path })
	nc, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(nc, "GET /healthz HTTP/1.0\r\nHost: any.example\r\n\r\n")
	if text, _ := io.ReadAll(nc); !bytes.HasSuffix(text, []byte("\r\n\r\nok\n")) {
		t.Errorf("over a Unix socket: %q", text)
	}
	_ = nc.Close()
	u.end()
}

// TestReady verifies /healthz and /readyz while the server serves, while it drains, and once a write has failed.
func TestReady(t *testing.T) {
	hold, armed := make(chan struct{}), new(atomic.Bool)
	d := begin(t, func(c *server.Config) {
		c.NBD, c.Metrics, c.Files = "127.0.0.1:0", "127.0.0.1:0", shutting{c.Files, armed, hold}
	})
	is := func(d *daemon, path string, want int, says string) {
		t.Helper()
		if code, text, _ := d.get(path, "localhost"); code != want || !strings.Contains(string(text), says) {
			t.Errorf("%s: %d: %s", path, code, text)
		}
	}
	is(d, "/healthz", 200, "ok")
	is(d, "/readyz", 200, "ready")
	d.nbd("disk")
	armed.Store(true)
	ended := make(chan error)
	go func() { ended <- d.s.Drain(5 * time.Second) }()
	for range 500 {
		if code, _, _ := d.get("/readyz", "localhost"); code != 200 {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	is(d, "/readyz", 503, "stopping")
	is(d, "/healthz", 200, "ok")
	close(hold)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	d.s = nil
	if err := d.pool.Close(); err != nil {
		t.Error(err)
	}

	// A device that fails makes the pool read-only.
	dev := device.NewMem(64 << 20)
	p, tree := inMemory(t, dev, ctl.Layout{Segment: 64, OverProvision: 0.125})
	cfg := server.DefaultConfig()
	cfg.Pool, cfg.Files = p, server.Tree(tree, cfs.Cred{})
	cfg.Address, cfg.Metrics, cfg.Connections = "127.0.0.1:0", "127.0.0.1:0", 4
	s, err := server.New(cfg)
	if err == nil {
		err = s.Listen()
	}
	if err != nil {
		t.Fatal(err)
	}
	d = &daemon{t: t, s: s}
	is(d, "/readyz", 200, "ready")
	dev.SetFaults(device.Faults{Seed: 1, WriteError: 1})
	if err := p.WriteAt(make([]byte, 4096), 1<<40, true); err == nil {
		t.Error("written to a device that fails")
	}
	is(d, "/readyz", 503, "read-only")
	is(d, "/healthz", 200, "ok")
	d.want(map[string]string{"farflash_pool_read_only": "1"})
	if err := d.s.Drain(0); err != nil {
		t.Error(err)
	}
	_ = p.Close() // fails as well
}

// shutting is a set of files whose Close waits once it is armed.
type shutting struct {
	server.Files
	armed *atomic.Bool
	until chan struct{}
}

func (x shutting) Open(name string, rights verbs.Rights) (server.File, error) {
	f, err := x.Files.Open(name, rights)
	shut := f.Close
	f.Close = func() error {
		if x.armed.Load() {
			<-x.until
		}
		return shut()
	}
	return f, err
}
