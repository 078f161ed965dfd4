package otlp

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"farflash/flash/meter"
	"farflash/flash/otlp/otlptest"
)

// lone makes the trace of one request that reached no stage.
func lone(take func(*meter.Trace)) {
	m := meter.New(1)
	m.Trace(1, 0, take)
	u := m.Open("disk", "nvme")
	_, first := u.Begin(1)
	u.Trace(first).End(meter.Dropped)
}

// TestLone verifies that a single span is sent.
func TestLone(t *testing.T) {
	g := otlptest.New(t)
	e, _ := start(t, g.URL, time.Hour)
	lone(e.Take)
	e.Close(5 * time.Second)
	if sent, lost := e.Spans(); sent != 1 || lost != 0 || len(g.Spans()) != 1 {
		t.Errorf("%d spans are sent, %d lost, %d arrive", sent, lost, len(g.Spans()))
	}
}

// TestUnsendable verifies that spans which OTLP cannot carry, here because a text is not UTF-8, are lost, counted and
// logged.
func TestUnsendable(t *testing.T) {
	g, l := otlptest.New(t), new(log)
	e, err := New(Config{URL: g.URL, Instance: "pool\xff", Log: slog.New(slog.NewTextHandler(l, nil))})
	if err != nil {
		t.Fatal(err)
	}
	lone(e.Take)
	e.Close(5 * time.Second)
	if sent, lost := e.Spans(); sent != 0 || lost != 1 || len(g.Spans()) != 0 {
		t.Errorf("%d spans are sent, %d lost, %d arrive", sent, lost, len(g.Spans()))
	}
	if !strings.Contains(l.text(), "traces are lost") || !strings.Contains(l.text(), "UTF-8") {
		t.Errorf("the log says %q", l.text())
	}
}
