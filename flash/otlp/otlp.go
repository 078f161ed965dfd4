// Package otlp sends the traces of a meter to a collector: OpenTelemetry's protocol OTLP over HTTP, in binary protocol
// buffers (OTLP 1.11).
//
// An Exporter takes traces without waiting, sends them in batches, and counts those that the collector does not get:
// nothing is repeated, so a collector that is away costs traces and neither memory nor time of requests. A trace is a
// span of the request, with a child for each stage that took time.
//
// The messages are the official ones (go.opentelemetry.io/proto/slim/otlp), which need nothing but protocol buffers;
// OpenTelemetry's SDK with its exporter links gRPC besides. The package leaves out propagation: none of the protocols
// served has room for the context of a client's trace.
package otlp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	resource "go.opentelemetry.io/proto/slim/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"farflash/flash/meter"
)

// Config says where traces go and whose they are.
type Config struct {
	URL      string // of the collector; without a path, it gets /v1/traces
	Version  string // of the program
	Instance string // distinguishes this daemon from others
	Log      *slog.Logger
	// Interval is the longest time that a trace waits for others. 0: 5 s, the default of OpenTelemetry's SDKs, as are
	// the length of the queue and that of a batch.
	Interval time.Duration
}

const (
	queued   = 2048
	together = 512
	timeout  = 10 * time.Second
	longest  = 64 << 10 // bytes of an answer
)

// Exporter sends traces. It is safe for concurrent use.
type Exporter struct {
	cfg    Config
	to     *url.URL
	client *http.Client
	queue  chan *meter.Trace
	begin  sync.Once
	stop   chan struct{} // closed by Close
	ended  chan struct{}
	ctx    context.Context // of requests
	cancel context.CancelFunc
	failed bool // the collector did not get the last batch; of the sending goroutine

	sent, lost atomic.Int64 // spans
}

// Check verifies the URL of a collector.
func Check(at string) error {
	_, err := address(at)
	return err
}

func address(at string) (*url.URL, error) {
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not the URL of a collector of traces; give one such as http://127.0.0.1:4318", at)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u, nil
}

// New returns an exporter. Its goroutine starts with the first trace.
func New(cfg Config) (*Exporter, error) {
	to, err := address(cfg.URL)
	if err != nil {
		return nil, err
	}
	cfg.Interval = cmp.Or(cfg.Interval, 5*time.Second)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	e := &Exporter{cfg: cfg, to: to, queue: make(chan *meter.Trace, queued), stop: make(chan struct{}),
		ended: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.client = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: longest},
		// Another address was not agreed on, and a redirected POST would lose its body.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       timeout,
	}
	return e, nil
}

// Take takes a trace that has ended. It never waits: if the collector is too slow, the trace is lost and counted.
func (e *Exporter) Take(t *meter.Trace) {
	e.begin.Do(func() { go e.run() })
	select {
	case e.queue <- t:
	default:
		e.lost.Add(int64(1 + len(stagesOf(t))))
	}
}

// Spans returns how many spans the collector has taken, and how many it did not get.
func (e *Exporter) Spans() (sent, lost int64) { return e.sent.Load(), e.lost.Load() }

// Close sends the traces it holds and ends, at most after within. No trace may be passed to Take any more.
func (e *Exporter) Close(within time.Duration) {
	e.begin.Do(func() { close(e.ended) }) // nothing was ever taken
	limit := time.AfterFunc(max(within, 0), e.cancel)
	close(e.stop)
	<-e.ended
	limit.Stop()
	e.cancel()
	e.client.CloseIdleConnections()
}

// run sends batches until Close.
func (e *Exporter) run() {
	defer close(e.ended)
	tick := time.NewTicker(e.cfg.Interval)
	defer tick.Stop()
	var batch []*otlp.Span
	flush := func() {
		if len(batch) > 0 {
			e.send(batch)
			batch = batch[:0]
		}
	}
	take := func(t *meter.Trace) {
		if batch = appendSpans(batch, t); len(batch) >= together {
			flush()
		}
	}
	for {
		select {
		case t := <-e.queue:
			take(t)
		case <-tick.C:
			flush()
		case <-e.stop:
			for len(e.queue) > 0 {
				take(<-e.queue)
			}
			flush()
			return
		}
	}
}

// send sends spans and counts them. The first failure of several in a row is logged.
func (e *Exporter) send(spans []*otlp.Span) {
	rejected, err := e.post(spans)
	e.sent.Add(int64(len(spans)) - rejected)
	e.lost.Add(rejected)
	switch {
	case err != nil && !e.failed:
		e.cfg.Log.Warn("traces are lost; requests go on", "collector", e.to.Redacted(), "error", err)
	case err == nil && e.failed:
		e.cfg.Log.Info("traces arrive again", "collector", e.to.Redacted(), "lost", e.lost.Load())
	}
	e.failed = err != nil
}

// post sends spans, and returns how many of them the collector does not keep, and why.
func (e *Exporter) post(spans []*otlp.Span) (rejected int64, err error) {
	all := int64(len(spans))
	body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*otlp.ResourceSpans{{
		Resource: &resource.Resource{Attributes: []*common.KeyValue{text("service.name", "farflash"),
			text("service.version", e.cfg.Version), text("service.instance.id", e.cfg.Instance)}},
		ScopeSpans: []*otlp.ScopeSpans{{
			Scope: &common.InstrumentationScope{Name: "farflash", Version: e.cfg.Version}, Spans: spans}},
	}}})
	if err != nil {
		return all, err
	}
	r, err := http.NewRequestWithContext(e.ctx, http.MethodPost, e.to.String(), bytes.NewReader(body))
	if err != nil {
		return all, err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "farflash/"+e.cfg.Version)
	answer, err := e.client.Do(r)
	if err != nil {
		if x := new(url.Error); errors.As(err, &x) {
			err = x.Err // the address is in the log already
		}
		return all, err
	}
	said, err := io.ReadAll(io.LimitReader(answer.Body, longest))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return all, err
	}
	if answer.StatusCode != http.StatusOK {
		return all, fmt.Errorf("it answers %s", answer.Status)
	}
	var x collector.ExportTraceServiceResponse
	if err := proto.Unmarshal(said, &x); err != nil {
		return all, fmt.Errorf("its answer is not OTLP: %w", err)
	}
	if n := x.GetPartialSuccess().GetRejectedSpans(); n > 0 {
		return min(n, all), fmt.Errorf("it refuses %d of %d spans: %.200q", n, all,
			x.GetPartialSuccess().GetErrorMessage())
	}
	return 0, nil
}

// stage is a part of a request that took time.
type stage struct {
	name     string
	from, to time.Time
}

// stagesOf returns the stages of a request.
func stagesOf(t *meter.Trace) (all []stage) {
	add := func(name string, from, to meter.Stage) {
		a, began := t.Time(from)
		b, ended := t.Time(to)
		if began && ended {
			all = append(all, stage{name, a, b})
		}
	}
	add("wait for memory", meter.Stalled, meter.Resumed)
	add("wait for limit", meter.Arrived, meter.Admitted)
	begun := meter.Arrived
	if _, waited := t.Time(meter.Admitted); waited {
		begun = meter.Admitted
	}
	add("pool", begun, meter.Done)
	add("answer", meter.Done, meter.Sent)
	return all
}

// appendSpans appends the spans of a trace: that of the request first.
func appendSpans(to []*otlp.Span, t *meter.Trace) []*otlp.Span {
	var id [16 + 8]byte
	_, _ = rand.Read(id[:]) // never fails
	began, stalled := t.Time(meter.Stalled)
	if !stalled {
		began, _ = t.Time(meter.Arrived)
	}
	ended := began
	for s := range meter.Stages {
		if at, ok := t.Time(s); ok {
			ended = at
		}
	}
	root := &otlp.Span{TraceId: id[:16], SpanId: id[16:], Flags: 1, Name: t.Kind.String(),
		Kind:              otlp.Span_SPAN_KIND_SERVER,
		StartTimeUnixNano: uint64(began.UnixNano()), EndTimeUnixNano: uint64(ended.UnixNano()),
		Attributes: []*common.KeyValue{text("network.protocol.name", t.Protocol), text("farflash.export", t.Export),
			text("farflash.operation", t.Kind.String()), number("farflash.offset", int64(t.Offset)),
			number("farflash.bytes", int64(t.Bytes))}}
	if t.Peer != "" {
		host, port, err := net.SplitHostPort(t.Peer)
		if n, wrong := strconv.Atoi(port); err == nil && wrong == nil {
			root.Attributes = append(root.Attributes, text("network.peer.address", host),
				number("network.peer.port", int64(n)))
		} else {
			root.Attributes = append(root.Attributes, text("network.peer.address", t.Peer))
		}
	}
	if t.Failure != meter.Succeeded {
		root.Attributes = append(root.Attributes, text("error.type", t.Failure.String()))
		root.Status = &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR}
	}
	to = append(to, root)
	for _, s := range stagesOf(t) {
		own := make([]byte, 8)
		_, _ = rand.Read(own)
		to = append(to, &otlp.Span{TraceId: root.TraceId, SpanId: own, ParentSpanId: root.SpanId, Flags: 1,
			Name: s.name,
			Kind: otlp.Span_SPAN_KIND_INTERNAL, StartTimeUnixNano: uint64(s.from.UnixNano()),
			EndTimeUnixNano: uint64(s.to.UnixNano())})
	}
	return to
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}
