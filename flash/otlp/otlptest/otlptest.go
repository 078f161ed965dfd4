// Package otlptest has a collector of OpenTelemetry traces for tests: Collector decodes requests over HTTP, keeps
// them, and reports requests to the test that are not OTLP.
//
// It leaves out everything else that collectors do.
package otlptest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/slim/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/slim/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector is a collector. It is safe for concurrent use.
type Collector struct {
	*httptest.Server
	mu     sync.Mutex
	got    []*collector.ExportTraceServiceRequest
	posts  int
	answer func(w http.ResponseWriter, r *http.Request)
}

// New returns a collector that serves until the test ends.
func New(t testing.TB) *Collector {
	c := &Collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var x collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &x)
		}
		if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" ||
			r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s, %v, %v", r.Method, r.URL, r.Header, err)
		}
		c.mu.Lock()
		answer := c.answer
		c.posts++
		if answer == nil {
			c.got = append(c.got, &x)
		}
		c.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// Answer sets how requests are answered, which are then not kept. nil: by success.
func (c *Collector) Answer(how func(w http.ResponseWriter, r *http.Request)) {
	c.mu.Lock()
	c.answer = how
	c.mu.Unlock()
}

// Posts is the number of requests.
func (c *Collector) Posts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.posts
}

// Messages returns the requests that were kept.
func (c *Collector) Messages() []*collector.ExportTraceServiceRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[:len(c.got):len(c.got)]
}

// Spans returns the spans of all requests that were kept.
func (c *Collector) Spans() (all []*otlp.Span) {
	for _, x := range c.Messages() {
		for _, r := range x.ResourceSpans {
			for _, s := range r.ScopeSpans {
				all = append(all, s.Spans...)
			}
		}
	}
	return all
}

// Attributes returns attributes as key=value, a line each, in their order.
func Attributes(all []*common.KeyValue) string {
	var b strings.Builder
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			fmt.Fprintf(&b, "%s=%s\n", a.Key, v.StringValue)
		case *common.AnyValue_IntValue:
			fmt.Fprintf(&b, "%s=%d\n", a.Key, v.IntValue)
		default:
			fmt.Fprintf(&b, "%s: %T\n", a.Key, v)
		}
	}
	return b.String()
}
