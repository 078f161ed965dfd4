package otlp

import (
	"bytes"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"farflash/flash/meter"
	"farflash/flash/otlp/otlptest"
)

// log is a log that tests can read while it is written.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *log) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, url string, interval time.Duration) (*Exporter, *log) {
	t.Helper()
	l := new(log)
	e, err := New(Config{URL: url, Version: "1.2", Instance: "pool", Interval: interval,
		Log: slog.New(slog.NewTextHandler(l, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return e, l
}

// traces makes n traces of reads that waited for everything.
func traces(n int, take func(*meter.Trace)) {
	m := meter.New(1)
	m.Trace(1, 0, take)
	u := m.Open("disk", "nbd")
	u.Peer = "10.1.2.3:4000"
	for range n {
		_, first := u.Begin(1)
		x := u.Trace(first)
		x.Kind, x.Offset, x.Bytes = meter.Read, 8192, 4096
		at := m.Now()
		x.Reached(meter.Stalled, at-3e6)
		x.Reached(meter.Resumed, at-1e6)
		x.Reached(meter.Admitted, at+5e6)
		x.Reached(meter.Done, at+7e6)
		x.Reached(meter.Sent, at+8e6)
		x.End(meter.Succeeded)
	}
}

// TestSpans verifies what a collector gets of a request: a span with its attributes, and the stages within.
func TestSpans(t *testing.T) {
	g := otlptest.New(t)
	e, l := start(t, g.URL, time.Hour)
	traces(1, e.Take)
	e.Close(5 * time.Second)
	all := g.Spans()
	if sent, lost := e.Spans(); len(all) != 5 || sent != 5 || lost != 0 || l.text() != "" {
		t.Fatalf("%d spans, %d counted, %d lost; %s", len(all), sent, lost, l.text())
	}
	if got := otlptest.Attributes(g.Messages()[0].ResourceSpans[0].Resource.Attributes); got !=
		"service.name=farflash\nservice.version=1.2\nservice.instance.id=pool\n" {
		t.Errorf("resource: %s", got)
	}
	root := all[0]
	if got := otlptest.Attributes(root.Attributes); got != "network.protocol.name=nbd\nfarflash.export=disk\n"+
		"farflash.operation=read\nfarflash.offset=8192\nfarflash.bytes=4096\nnetwork.peer.address=10.1.2.3\n"+
		"network.peer.port=4000\n" || root.Name != "read" || root.Kind != otlp.Span_SPAN_KIND_SERVER ||
		root.Status != nil || root.ParentSpanId != nil {
		t.Errorf("%v", root)
	}
	if n := root.EndTimeUnixNano - root.StartTimeUnixNano; n != 11e6 {
		t.Errorf("the request took %d ns, not 11 ms", n)
	}
	known := map[string]bool{}
	for i, want := range []struct {
		name  string
		nanos uint64
	}{{"read", 11e6}, {"wait for memory", 2e6}, {"wait for limit", 0}, {"pool", 2e6}, {"answer", 1e6}} {
		s := all[i]
		n := s.EndTimeUnixNano - s.StartTimeUnixNano
		if s.Name != want.name || want.nanos != 0 && n != want.nanos || !bytes.Equal(s.TraceId, root.TraceId) ||
			i > 0 && !bytes.Equal(s.ParentSpanId, root.SpanId) || len(s.TraceId) != 16 || len(s.SpanId) != 8 {
			t.Errorf("span %d: %v, of %d ns, want %+v", i, s, n, want)
		}
		if s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano {
			t.Errorf("%s is not within the request", s.Name)
		}
		known[hex.EncodeToString(s.SpanId)] = true
	}
	if len(known) != len(all) {
		t.Error("two spans have one identity")
	}
}

// TestFailure verifies that a request that failed says so, and has only the stages that it reached.
func TestFailure(t *testing.T) {
	g := otlptest.New(t)
	e, _ := start(t, g.URL, time.Hour)
	for _, f := range []meter.Failure{meter.IO, meter.Full, meter.Other, meter.Dropped} {
		m := meter.New(1)
		m.Trace(1, 0, e.Take)
		_, first := m.Open("disk", "nvme").Begin(1)
		u := m.Open("disk", "nvme")
		x := u.Trace(first)
		x.Peer = "unix"
		x.End(f)
	}
	e.Close(5 * time.Second)
	all := g.Spans()
	if len(all) != 4 {
		t.Fatalf("%d spans", len(all))
	}
	for i, want := range []string{"EIO", "ENOSPC", "other", "dropped"} {
		if got := otlptest.Attributes(all[i].Attributes); !strings.HasSuffix(got,
			"network.peer.address=unix\nerror.type="+want+"\n") ||
			all[i].Status.GetCode() != otlp.Status_STATUS_CODE_ERROR {
			t.Errorf("%s: %s %v", want, got, all[i].Status)
		}
	}
}

// TestBatches verifies that traces do not wait for Close, and that a batch has a limit.
func TestBatches(t *testing.T) {
	g := otlptest.New(t)
	e, _ := start(t, g.URL, time.Millisecond)
	traces(1, e.Take)
	for i := 0; len(g.Spans()) == 0; i++ {
		if i == 5000 {
			t.Fatal("no trace arrives")
		}
		time.Sleep(time.Millisecond)
	}
	e.Close(5 * time.Second)

	e, _ = start(t, g.URL, time.Hour)
	traces(1000, e.Take)
	e.Close(5 * time.Second)
	if n := len(g.Spans()); n != 5*1001 {
		t.Errorf("%d spans arrive", n)
	}
	for _, x := range g.Messages() {
		if n := len(x.ResourceSpans[0].ScopeSpans[0].Spans); n >= together+5 {
			t.Errorf("%d spans in a message", n)
		}
	}
}

// TestUnwilling verifies that every refusal is counted, that the first of several in a row is logged and none of the
// others, and that the collector is asked for nothing else.
func TestUnwilling(t *testing.T) {
	partly := &collector.ExportTraceServiceResponse{
		PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "too old"}}
	for name, x := range map[string]struct {
		answer func(w http.ResponseWriter)
		lost   int64 // of the 5 spans of each message
		says   string
	}{
		"an error": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }, 5, "503"},
		"another place": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "/x")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, 5, "307"},
		"no answer":      {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 5, "EOF"},
		"another format": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, 5, "not OTLP"},
		"some of it": {func(w http.ResponseWriter) {
			b, err := proto.Marshal(partly)
			if err != nil {
				panic(err)
			}
			_, _ = w.Write(b)
		}, 2, "too old"},
	} {
		g := otlptest.New(t)
		g.Answer(func(w http.ResponseWriter, _ *http.Request) { x.answer(w) })
		e, l := start(t, g.URL, time.Millisecond)
		const messages = 3
		for i := range messages {
			traces(1, e.Take)
			for k := 0; ; k++ {
				if sent, lost := e.Spans(); sent+lost == int64(5*(i+1)) {
					break
				}
				if k == 5000 {
					t.Fatalf("%s: nothing is counted", name)
				}
				time.Sleep(time.Millisecond)
			}
		}
		g.Answer(nil)
		traces(1, e.Take)
		e.Close(5 * time.Second)
		sent, lost := e.Spans()
		if lost != messages*x.lost || sent != 5*(messages+1)-lost || g.Posts() != messages+1 {
			t.Errorf("%s: %d sent, %d lost, in %d requests", name, sent, lost, g.Posts())
		}
		if text := l.text(); strings.Count(text, "traces are lost") != 1 || strings.Count(text, "arrive again") != 1 ||
			strings.Count(text, "\n") != 2 || !strings.Contains(text, x.says) {
			t.Errorf("%s: the log says %s", name, text)
		}
	}
}

// TestSlow verifies that a collector that does not answer holds up neither requests nor the end, and that traces it
// does not get are counted.
func TestSlow(t *testing.T) {
	g := otlptest.New(t)
	g.Answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	e, _ := start(t, g.URL, time.Millisecond)
	const n = 2 * queued
	began := time.Now()
	traces(n, e.Take)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d traces were taken in %v", n, took)
	}
	began = time.Now()
	e.Close(50 * time.Millisecond)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it ends after %v", took)
	}
	if sent, lost := e.Spans(); sent != 0 || lost != 5*n {
		t.Errorf("%d spans are sent, and %d lost of %d", sent, lost, 5*n)
	}
}

// TestIdle verifies that an exporter without traces asks for nothing and has nothing to end.
func TestIdle(t *testing.T) {
	g := otlptest.New(t)
	e, _ := start(t, g.URL, time.Millisecond)
	e.Close(0)
	if g.Posts() != 0 {
		t.Errorf("%d requests", g.Posts())
	}
}

// TestAddress verifies which URLs are those of collectors, and that a password in one is not logged.
func TestAddress(t *testing.T) {
	for at, want := range map[string]string{
		"http://127.0.0.1:4318":          "http://127.0.0.1:4318/v1/traces",
		"https://otel.example/":          "https://otel.example/v1/traces",
		"https://otel.example/otlp?k=v":  "https://otel.example/otlp?k=v",
		"http://[::1]:4318":              "http://[::1]:4318/v1/traces",
		"127.0.0.1:4318":                 "",
		"localhost:4318":                 "",
		"ftp://otel.example":             "",
		"http://":                        "",
		"http://:4318":                   "",
		"http://otel.example/#here":      "",
		"":                               "",
		"http://otel.example:port":       "",
		"unix:/run/collector.socket":     "",
		"http://otel.example/\x00traces": "",
	} {
		u, err := address(at)
		if ok := err == nil; ok != (want != "") || ok && u.String() != want || (Check(at) == nil) != ok {
			t.Errorf("%q: %v, %v, want %q", at, u, err, want)
		}
	}
	e, l := start(t, "http://me:hidden@127.0.0.1:1/v1/traces", time.Hour)
	traces(1, e.Take)
	e.Close(5 * time.Second)
	if text := l.text(); !strings.Contains(text, "traces are lost") || strings.Contains(text, "hidden") {
		t.Errorf("the log says %s", text)
	}
}
