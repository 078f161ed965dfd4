package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"farflash/flash/nbd"
	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/flash/otlp/otlptest"
	"farflash/flash/qos"
	"farflash/flash/recorder"
	"farflash/flash/server"
	"farflash/workload"
	"farflash/workload/trace"
)

// TestTraces verifies what a collector learns of requests through each door: what each did and whose it was, and the
// stages that it went through, one after the other; and that a recording has the same.
func TestTraces(t *testing.T) { ways(t, testTraces) }

func testTraces(t *testing.T) {
	collector := otlptest.New(t)
	recording := filepath.Join(t.TempDir(), "operations.csv")
	r, err := recorder.New(recorder.Config{Path: recording, Size: recorder.Least})
	if err != nil {
		t.Fatal(err)
	}
	d := begin(t, func(c *server.Config) {
		c.NBD, c.NVMe, c.Queues, c.Traces, c.TraceEvery = "127.0.0.1:0", paths(1), 1, collector.URL, 1
		c.Recorder = r
		c.Limits = map[string]qos.Limit{"other": {Operations: 1000}}
	})
	page := bytes.Repeat([]byte("trace"), 4096)[:4096]
	for _, name := range []string{"disk", "other"} {
		c := d.nbd(name)
		for _, x := range []struct {
			k nbd.Command
			n uint32
		}{{nbd.CmdWrite, 4096}, {nbd.CmdFlush, 0}, {nbd.CmdTrim, 4096}} {
			var data []byte
			if x.k == nbd.CmdWrite {
				data = page
			}
			if e, err := c.Do(0, x.k, uint64(x.n), x.n, data); e != 0 || err != nil {
				t.Fatal(x, e, err)
			}
		}
		if _, _, e, err := c.Fetch(0, 8192, 4096); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
	h := d.connect(0)
	put := nvmetest.IOOp(wire.Write, 1, 80, 8, 0)
	put.Out = page
	get := nvmetest.IOOp(wire.Read, 1, 80, 8, 0)
	get.In = make([]byte, 4096)
	for _, op := range []*nvmetest.Op{put, get, {Request: wire.Request{Opcode: wire.Flush, NSID: 1}}} {
		if err := h.IO[0].Do(op); err != nil {
			t.Fatal(err)
		}
	}
	f := d.open(d.dial(), "disk")
	if _, err := f.WriteAt(page, 100<<12); err != nil {
		t.Fatal(err)
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.ReadAt(page, 100<<12); err != nil {
		t.Fatal(err)
	}
	d.end()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}

	all := collector.Spans()
	seen := map[string]string{}
	for i, s := range all {
		if len(s.ParentSpanId) > 0 {
			continue
		}
		at, _, _ := strings.Cut(otlptest.Attributes(s.Attributes), "network.peer.port=")
		stages, last := "", s.StartTimeUnixNano
		for _, c := range all[i+1:] {
			if !bytes.Equal(c.ParentSpanId, s.SpanId) {
				break
			}
			if c.StartTimeUnixNano < last || c.EndTimeUnixNano < c.StartTimeUnixNano ||
				c.EndTimeUnixNano > s.EndTimeUnixNano {
				t.Errorf("%s: %s does not follow the stage before", at, c.Name)
			}
			last = c.EndTimeUnixNano
			stages += c.Name + ","
		}
		seen[at] += stages + ";"
	}
	want := map[string]string{}
	recorded := map[string]int{}
	expect := func(protocol, export, operation string, offset, n int, stages string) {
		recorded[fmt.Sprint(operation, " ", export, " ", offset, " ", n)]++
		want[fmt.Sprintf("network.protocol.name=%s\nfarflash.export=%s\nfarflash.operation=%s\nfarflash.offset=%d\n"+
			"farflash.bytes=%d\nnetwork.peer.address=127.0.0.1\n", protocol, export, operation, offset, n)] = stages +
			";"
	}
	const stages = "wait for limit,pool,answer,"
	for _, export := range []string{"disk", "other"} {
		expect("nbd", export, "write", 4096, 4096, stages)
		expect("nbd", export, "flush", 0, 0, stages)
		expect("nbd", export, "trim", 4096, 4096, stages)
		expect("nbd", export, "read", 8192, 4096, stages)
	}
	expect("nvme", "disk", "write", 80*512, 4096, stages)
	expect("nvme", "disk", "read", 80*512, 4096, stages)
	expect("nvme", "disk", "flush", 0, 0, stages)
	expect("iwarp", "disk", "write", 100<<12, 4096, "wait for limit,pool,")
	expect("iwarp", "disk", "read", 100<<12, 4096, stages)
	expect("iwarp", "disk", "flush", 0, 0, "pool,")
	for k, v := range want {
		if seen[k] != v {
			t.Errorf("%s has stages %q, want %q", k, seen[k], v)
		}
		delete(seen, k)
	}
	for k, v := range seen {
		t.Errorf("not expected: %s with %q", k, v)
	}
	in, err := trace.Open(recording, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var x workload.Record
	for err = in.Next(&x); err == nil; err = in.Next(&x) {
		recorded[fmt.Sprint(x.Op, " ", in.VolumeName(x.Volume), " ", x.Offset, " ", x.Size)]--
		if x.Response <= 0 {
			t.Errorf("%v at %d took %v", x.Op, x.Offset, x.Response)
		}
	}
	if err = errors.Join(in.Close(), notEOF(err)); err != nil {
		t.Error(err)
	}
	for k, n := range recorded {
		if n != 0 {
			t.Errorf("%s: the recording lacks %d", k, n)
		}
	}
}

func notEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// TestTracesLost verifies that a hanging collector delays neither requests nor the end, and that lost spans are counted
// in the metrics.
func TestTracesLost(t *testing.T) {
	collector := otlptest.New(t)
	collector.Answer(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	d := begin(t, func(c *server.Config) {
		c.NBD, c.Metrics, c.Traces, c.TraceEvery = "127.0.0.1:0", "127.0.0.1:0", collector.URL, 1
	})
	c := d.nbd("disk")
	const n = 5000 // more than an exporter keeps
	for range n {
		if _, _, e, err := c.Fetch(0, 0, 4096); e != 0 || err != nil {
			t.Fatal(e, err)
		}
	}
	var lost float64
	if _, err := fmt.Sscan(d.series("farflash_spans_lost_total"), &lost); err != nil || lost < n {
		t.Errorf("%v spans are lost, %v", lost, err)
	}
	d.drain = 200 * time.Millisecond
	began := time.Now()
	if d.end(); time.Since(began) > 5*time.Second {
		t.Errorf("the end took %v", time.Since(began))
	}
	said := 0
	for _, line := range d.said {
		if strings.Contains(line, "traces are lost") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("the log has %d lines about it: %q", said, d.said)
	}
}

// TestTraceSettings verifies that an address that is no collector's, and a number that means nothing, are refused
// before anything is served.
func TestTraceSettings(t *testing.T) {
	for _, x := range []struct {
		url   string
		every int
		want  string
	}{{"127.0.0.1:4318", 1000, "URL of a collector"}, {"http://127.0.0.1:4318", 0, "give 1 or more"}} {
		c := server.DefaultConfig()
		c.Address, c.Traces, c.TraceEvery = "127.0.0.1:0", x.url, x.every
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v", x, err)
		}
	}
}
