package cosim_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
)

const us = units.Microsecond

// watched is a device that records its calls.
type watched struct {
	block.Device
	eng       *sim.Engine
	requests  []block.Request // the accepted requests
	at        []sim.Time      // their times
	refusals  int
	told      []int64 // the offsets passed to Expect
	ahead     []int   // by request: the number of offsets announced but not yet submitted
	under     []int   // outstanding, by queue
	mostUnder []int
}

func (w *watched) Submit(q block.QueueID, r block.Request) bool {
	if !w.Device.Submit(q, r) {
		w.refusals++
		return false
	}
	w.ahead = append(w.ahead, len(w.told)-len(w.requests))
	w.requests = append(w.requests, r)
	w.at = append(w.at, w.eng.Now())
	for len(w.under) <= int(q) {
		w.under, w.mostUnder = append(w.under, 0), append(w.mostUnder, 0)
	}
	w.under[q]++
	w.mostUnder[q] = max(w.mostUnder[q], w.under[q])
	return true
}

// Expect implements block.Expecter.
func (w *watched) Expect(_ uint8, offset int64) { w.told = append(w.told, offset) }

// bench is a host with a device whose times are known.
type bench struct {
	eng     *sim.Engine
	host    *cosim.Host
	dev     *watched
	samples []cosim.Sample
}

func newBench(t testing.TB, change func(*blocktest.Config), flows ...cosim.Flow) *bench {
	t.Helper()
	cfg := blocktest.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	b := &bench{eng: sim.New()}
	b.host = cosim.NewHost(b.eng)
	d, err := blocktest.New(cfg, b.eng, func(c block.Completion) {
		b.dev.under[c.Queue]--
		b.host.Complete(c)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.dev = &watched{Device: d, eng: b.eng}
	b.host.OnSample = func(s *cosim.Sample) { b.samples = append(b.samples, *s) }
	for i := range flows {
		if flows[i].Queue.Depth == 0 {
			flows[i].Queue = block.QueueConfig{Depth: 1024, Class: block.High, Weight: 1}
		}
		if flows[i].Name == "" {
			flows[i].Name = fmt.Sprintf("flow %d", i)
		}
	}
	if err := b.host.Attach(b.dev, flows); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) run(t testing.TB) {
	t.Helper()
	if err := b.host.Start(); err != nil {
		t.Fatal(err)
	}
	b.eng.Run(sim.Forever)
	if err := b.host.Err(); err != nil {
		t.Fatal(err)
	}
	if b.host.Issued() != b.host.Ended() {
		t.Errorf("%d requests were issued, %d ended", b.host.Issued(), b.host.Ended())
	}
}

// reads returns reads of 4 KiB at different addresses, at the given times.
func reads(times ...sim.Time) []workload.Record {
	out := make([]workload.Record, len(times))
	for i, at := range times {
		out[i] = workload.Record{Time: at, Op: block.Read, Offset: int64(i) * 4096, Size: 4096,
			Response: workload.NoResponse}
	}
	return out
}

func many(n int) []workload.Record { return reads(make([]sim.Time, n)...) }

// An open loop issues each request at its own time, however slow the device is.
func TestOpenLoopTimes(t *testing.T) {
	times := []sim.Time{5 * us, 5 * us, 6 * us, 300 * us, 300*us + 1}
	for _, start := range []sim.Time{0, 17 * us} {
		b := newBench(t, nil, cosim.Flow{Source: workload.Slice(reads(times...)), Start: start})
		b.run(t)
		for i, at := range times {
			if b.dev.at[i] != start+at {
				t.Errorf("start %v: request %d is issued at %v, want %v", start, i, b.dev.at[i], start+at)
			}
			if got := b.dev.requests[i].Offset; got != int64(i)*4096 {
				t.Errorf("request %d is for offset %d", i, got)
			}
		}
		m := b.host.Measured(block.Read)
		if m.Latency.Count() != 5 || m.Bytes != 5*4096 || m.Failed != 0 || m.Latency.Min() != 80*us ||
			m.Latency.Max() != 80*us {
			t.Errorf("measured %d requests, %d bytes, %d failed, %v to %v", m.Latency.Count(), m.Bytes, m.Failed,
				m.Latency.Min(), m.Latency.Max())
		}
		if got := b.eng.Now(); got != start+380*us+1 {
			t.Errorf("the last request ends at %v", got)
		}
	}
}

// Times that run backwards within a source are issued as soon as they are read.
func TestOpenLoopBackwards(t *testing.T) {
	b := newBench(t, nil, cosim.Flow{Source: workload.Slice(reads(50*us, 20*us, 60*us))})
	b.run(t)
	if want := []sim.Time{50 * us, 50 * us, 60 * us}; !slices.Equal(b.dev.at, want) {
		t.Errorf("issued at %v, want %v", b.dev.at, want)
	}
}

// A closed loop keeps its number of requests outstanding: never more, and never fewer while there are any.
func TestClosedLoopDepth(t *testing.T) {
	for _, depth := range []int{1, 2, 7, 64} {
		records := many(500)
		for i := range records {
			records[i].Time = sim.Time(i) * units.Second // a closed loop ignores the times
			records[i].Op = block.Op(i % 2)
		}
		b := newBench(t, nil, cosim.Flow{Source: workload.Slice(records), Outstanding: depth, Start: 3 * us})
		b.run(t)
		if got := b.dev.mostUnder[0]; got != depth {
			t.Errorf("depth %d: up to %d requests are under way", depth, got)
		}
		if b.dev.at[0] != 3*us || b.dev.at[depth-1] != 3*us || b.dev.at[depth] == 3*us {
			t.Errorf("depth %d: requests 0, %d and %d are issued at %v, %v and %v", depth, depth-1, depth,
				b.dev.at[0], b.dev.at[depth-1], b.dev.at[depth])
		}
		if b.host.Ended() != 500 {
			t.Errorf("depth %d: %d requests ended", depth, b.host.Ended())
		}
	}
	// One at a time: the times add up.
	b := newBench(t, nil, cosim.Flow{Source: workload.Slice(many(10)), Outstanding: 1})
	b.run(t)
	if got := b.eng.Now(); got != 800*us {
		t.Errorf("ten reads one after the other take %v", got)
	}
}

// With a full submission queue requests wait in the host, in order, and are measured from their arrival.
func TestFullQueueWaits(t *testing.T) {
	for _, fromSubmission := range []bool{false, true} {
		times := make([]sim.Time, 20)
		for i := range times {
			times[i] = sim.Time(i) * us
		}
		b := newBench(t, nil, cosim.Flow{
			Source: workload.Slice(reads(times...)), FromSubmission: fromSubmission,
			Queue: block.QueueConfig{Depth: 3, Weight: 1},
		})
		b.run(t)
		if b.dev.refusals == 0 {
			t.Fatal("the queue was never full")
		}
		if b.dev.mostUnder[0] != 2 {
			t.Errorf("%d requests are in a queue that takes 2", b.dev.mostUnder[0])
		}
		for i, r := range b.dev.requests {
			if r.Offset != int64(i)*4096 {
				t.Fatalf("request %d is submitted in place of request %d", r.Offset/4096, i)
			}
		}
		// Pairs of reads follow each other every 80 us.
		for i, s := range b.samples {
			submitted := sim.Time(i/2)*80*us + sim.Time(i%2)*us
			want := cosim.Sample{
				ID: uint64(i), Op: block.Read, Offset: int64(i) * 4096, Size: 4096,
				Arrival: times[i], Submitted: submitted, Fetched: submitted, Finished: submitted + 80*us,
				Latency: submitted + 80*us - times[i],
			}
			if fromSubmission {
				want.Latency = 80 * us
			}
			if s != want {
				t.Errorf("sample %d is %+v, want %+v", i, s, want)
			}
		}
		m := b.host.Measured(block.Read)
		switch {
		case fromSubmission && (m.Latency.Min() != 80*us || m.Latency.Max() != 80*us):
			t.Errorf("from submission: %v to %v", m.Latency.Min(), m.Latency.Max())
		case !fromSubmission && m.Latency.Max() != (9*80+1+80-19)*us:
			t.Errorf("from arrival: at most %v, want %v", m.Latency.Max(), (9*80+1+80-19)*us)
		}
	}
}

// The device is notified of each request once, in order, and of the next one before a request is submitted.
func TestDeviceExpects(t *testing.T) {
	b := newBench(t, nil,
		cosim.Flow{Source: workload.Slice(many(200)), Outstanding: 4, Queue: block.QueueConfig{Depth: 64, Weight: 1}})
	b.run(t)
	for i, r := range b.dev.requests {
		if ahead := min(2, 200-i); b.dev.told[i] != r.Offset || b.dev.ahead[i] != ahead {
			t.Fatalf("request %d for %d was told as %d, with %d told ahead, not %d", i, r.Offset, b.dev.told[i],
				b.dev.ahead[i], ahead)
		}
	}
	if len(b.dev.told) != 200 {
		t.Errorf("%d requests were told", len(b.dev.told))
	}
}

// In a closed loop deeper than its queue the excess requests wait.
func TestClosedLoopDeeperThanQueue(t *testing.T) {
	b := newBench(t, nil,
		cosim.Flow{Source: workload.Slice(many(200)), Outstanding: 16, Queue: block.QueueConfig{Depth: 5, Weight: 1}})
	b.run(t)
	if b.dev.mostUnder[0] != 4 || b.host.Ended() != 200 {
		t.Errorf("%d requests are under way at the most, %d ended", b.dev.mostUnder[0], b.host.Ended())
	}
	if !slices.IsSortedFunc(b.dev.requests, func(x, y block.Request) int { return int(x.Offset - y.Offset) }) {
		t.Error("requests are submitted out of order")
	}
}

func TestUntil(t *testing.T) {
	for _, c := range []struct {
		name string
		flow cosim.Flow
		want uint64
	}{
		{"open loop", cosim.Flow{Source: workload.Slice(reads(0, 10*us, 20*us, 30*us)), Until: 20 * us}, 2},
		{"open loop, after its end", cosim.Flow{Source: workload.Slice(reads(0, 10*us)), Until: 20 * us}, 2},
		{"open loop, for a picosecond", cosim.Flow{Source: workload.Slice(reads(0, 10*us)), Until: 1}, 1},
		{"open loop, nothing", cosim.Flow{Source: workload.Slice(reads(30 * us)), Until: 20 * us}, 0},
		{"closed loop", cosim.Flow{Source: workload.Slice(many(1000)), Outstanding: 2, Until: 160 * us}, 4},
		{"closed loop, one more", cosim.Flow{Source: workload.Slice(many(1000)), Outstanding: 2, Until: 160*us + 1}, 6},
		{"closed loop, nothing",
			cosim.Flow{Source: workload.Slice(many(1000)), Outstanding: 2, Start: 50 * us, Until: 50 * us}, 0},
	} {
		b := newBench(t, nil, c.flow)
		b.run(t)
		if got := b.host.Issued(); got != c.want {
			t.Errorf("%s: %d requests are issued, want %d", c.name, got, c.want)
		}
	}
}

func TestFold(t *testing.T) {
	const size = 64 * 512
	small := func(c *blocktest.Config) { c.Capacity = []int64{1 << 30, size} }
	for _, c := range []struct {
		name           string
		offset, length int64
		fold           bool
		want           string // a part of the error; "": it is issued within the namespace
	}{
		{"inside", size - 4096, 4096, false, ""},
		{"one sector too far", size - 4096 + 512, 4096, false,
			"flow 0: request 1 is for bytes 29184 to 33280, but the namespace ends at 32768; fold addresses or use a " +
				"larger drive"},
		{"far", 1 << 50, 4096, false, "but the namespace ends at 32768"},
		{"at the end of numbers", 1<<63 - 512, 4096, false, "but the namespace ends at 32768"},
		{"one sector too far, folded", size - 4096 + 512, 4096, true, ""},
		{"at the end, folded", size, 512, true, ""},
		{"far, folded", 1<<50 + 512, 4096, true, ""},
		{"at the end of numbers, folded", 1<<63 - 512, 4096, true, ""},
		{"as large as the namespace, folded", 512, size, true, ""},
		{"larger than the namespace, folded", 0, size + 512, true,
			"flow 0: request 1 is for 32.5KiB, more than the namespace's 32KiB"},
	} {
		record := workload.Record{Op: block.Read, Offset: c.offset, Size: c.length}
		b := newBench(t, small,
			cosim.Flow{Source: workload.Slice([]workload.Record{record}), Namespace: 1, Fold: c.fold})
		err := b.host.Start()
		if err == nil {
			b.eng.Run(sim.Forever)
			err = b.host.Err()
		}
		switch {
		case c.want == "" && (err != nil || len(b.samples) != 1):
			t.Errorf("%s: %v, %d requests ended", c.name, err, len(b.samples))
		case c.want == "":
			if r := b.dev.requests[0]; r.Offset < 0 || r.Offset%512 != 0 || r.Offset+r.Length > size ||
				r.Length != c.length || r.Namespace != 1 {
				t.Errorf("%s: becomes %+v", c.name, r)
			}
			want := c.offset
			if c.offset > size-c.length {
				// addresses outside are taken modulo the size less a sector, in whole sectors, ending before the end
				want = min(c.offset%(size-512)/512*512, size-c.length)
			}
			if got := b.dev.requests[0].Offset; got != want {
				t.Errorf("%s: goes to %d, not %d", c.name, got, want)
			}
		case err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		case b.host.Issued() != 0:
			t.Errorf("%s: %d requests are issued", c.name, b.host.Issued())
		}
	}
}

// A namespace of one sector can be folded into.
func TestFoldIntoOneSector(t *testing.T) {
	b := newBench(t, func(c *blocktest.Config) { c.Capacity = []int64{512} },
		cosim.Flow{Source: workload.Slice([]workload.Record{{Op: block.Read, Offset: 1 << 20, Size: 512}}), Fold: true})
	b.run(t)
	if b.dev.requests[0].Offset != 0 {
		t.Errorf("the offset is %d", b.dev.requests[0].Offset)
	}
}

// A flow's hints apply to its writes only.
func TestHints(t *testing.T) {
	var records []workload.Record
	for op := range block.Flush + 1 {
		records = append(records, workload.Record{Op: op, Offset: 4096, Size: 4096})
	}
	records[block.Flush] = workload.Record{Op: block.Flush}
	b := newBench(t, nil, cosim.Flow{Source: workload.Slice(records), Placement: 3, ForceUnit: true})
	b.run(t)
	for _, r := range b.dev.requests {
		if r.ForceUnit != (r.Op == block.Write) {
			t.Errorf("%v: force unit access is %v", r.Op, r.ForceUnit)
		}
		if r.Op == block.Write && r.Placement != 3 {
			t.Errorf("a write has placement hint %d", r.Placement)
		}
	}
	for op := range block.Flush + 1 {
		if n := b.host.Measured(op).Latency.Count(); n != 1 {
			t.Errorf("%d %vs are measured", n, op)
		}
	}
}

func TestFlowsAreMeasuredApart(t *testing.T) {
	writes := many(30)
	for i := range writes {
		writes[i].Op = block.Write
	}
	b := newBench(t, nil,
		cosim.Flow{Source: workload.Slice(many(10)), Outstanding: 2},
		cosim.Flow{Source: workload.Slice(writes), Outstanding: 4})
	b.run(t)
	for flow, want := range [][2]int64{{10, 0}, {0, 30}} {
		for op, n := range want {
			if got := b.host.FlowMeasured(flow, block.Op(op)).Latency.Count(); got != n {
				t.Errorf("flow %d: %d %vs, want %d", flow, got, block.Op(op), n)
			}
		}
	}
	if r, w := b.host.Measured(block.Read), b.host.Measured(block.Write); r.Latency.Count() != 10 ||
		w.Latency.Count() != 30 {
		t.Errorf("altogether %d reads and %d writes", r.Latency.Count(), w.Latency.Count())
	}
	ids := map[uint64]bool{}
	for _, s := range b.samples {
		ids[s.ID] = true
		if (s.Flow == 1) != (s.Op == block.Write) {
			t.Errorf("a %v of flow %d", s.Op, s.Flow)
		}
	}
	if len(ids) != 40 {
		t.Errorf("40 requests have %d identities", len(ids))
	}
}

// A request that the device fails stops the host, and is counted but not measured.
func TestDeviceErrorStops(t *testing.T) {
	b := newBench(t, func(c *blocktest.Config) {
		c.Refuse = func(r block.Request) block.Status {
			if r.Offset == 5*4096 {
				return block.WriteFault
			}
			return block.OK
		}
	}, cosim.Flow{Name: "db", Source: workload.Slice(many(100)), Outstanding: 1})
	if err := b.host.Start(); err != nil {
		t.Fatal(err)
	}
	b.eng.Run(sim.Forever)
	err := b.host.Err()
	if want := "db: request 6 (read of 4KiB at 20480): write fault"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	m := b.host.Measured(block.Read)
	if m.Failed != 1 || m.Latency.Count() != 5 || m.Bytes != 5*4096 {
		t.Errorf("%d failed, %d measured, %d bytes", m.Failed, m.Latency.Count(), m.Bytes)
	}
	if b.eng.Now() != 6*80*us {
		t.Errorf("the host goes on until %v", b.eng.Now())
	}
}

// failing yields some records, then an error.
type failing struct {
	workload.Source
	err error
}

func (f *failing) Next(r *workload.Record) error {
	if err := f.Source.Next(r); err != io.EOF {
		return err
	}
	return f.err
}

func TestSourceErrors(t *testing.T) {
	broken := errors.New("trace.csv:4: no size")
	// In the first record: Start returns it, and the run does not start.
	b := newBench(t, nil, cosim.Flow{Source: &failing{workload.Slice(nil), broken}})
	if err := b.host.Start(); !errors.Is(err, broken) || !errors.Is(b.host.Err(), broken) {
		t.Errorf("Start returns %v, Err %v", err, b.host.Err())
	}
	// Later: the run stops there.
	for _, outstanding := range []int{0, 1} {
		b := newBench(t, nil,
			cosim.Flow{Source: &failing{workload.Slice(reads(0, 100*us, 200*us)), broken}, Outstanding: outstanding})
		if err := b.host.Start(); err != nil {
			t.Fatal(err)
		}
		b.eng.Run(sim.Forever)
		if err := b.host.Err(); !errors.Is(err, broken) {
			t.Errorf("Err is %v", err)
		}
		if b.host.Issued() != 3 {
			t.Errorf("%d requests are issued before the error", b.host.Issued())
		}
	}
	// An empty source is no error.
	b = newBench(t, nil, cosim.Flow{Source: workload.Slice(nil)})
	b.run(t)
}

func TestAttachErrors(t *testing.T) {
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := blocktest.New(blocktest.DefaultConfig(), eng, h.Complete)
	if err != nil {
		t.Fatal(err)
	}
	err = h.Attach(d, []cosim.Flow{{Name: "logs", Source: workload.Slice(nil), Queue: block.QueueConfig{Depth: 1}}})
	if err == nil || !strings.HasPrefix(err.Error(), "logs: ") {
		t.Errorf("error %v", err)
	}
}

func TestProgress(t *testing.T) {
	b := newBench(t, nil, cosim.Flow{Source: workload.Slice(many(20)), Outstanding: 3})
	var seen []uint64
	b.host.OnProgress = func(n uint64) { seen = append(seen, n) }
	b.run(t)
	if len(seen) != 20 || seen[0] != 1 || !slices.IsSorted(seen) || seen[19] != 20 {
		t.Errorf("progress %v", seen)
	}
}

// However flows, queues and limits are mixed, no request is lost, none is issued twice, and each flow's requests are
// submitted in order.
func TestConservation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var flows []cosim.Flow
		want := uint64(0)
		for i := range rapid.IntRange(1, 4).Draw(rt, "flows") {
			n := rapid.IntRange(0, 80).Draw(rt, "requests")
			want += uint64(n)
			records := many(n)
			at := sim.Time(0)
			for k := range records {
				at += sim.Time(rapid.IntRange(0, 90).Draw(rt, "gap")) * us
				records[k].Time = at
				records[k].Op = block.Op(rapid.IntRange(0, 3).Draw(rt, "op"))
				records[k].Offset = int64(k) * 4096
			}
			flows = append(flows, cosim.Flow{
				Name: fmt.Sprint("flow ", i), Source: workload.Slice(records),
				Outstanding: rapid.IntRange(0, 9).Draw(rt, "outstanding"),
				Start:       sim.Time(rapid.IntRange(0, 50).Draw(rt, "start")) * us,
				Queue: block.QueueConfig{Depth: rapid.IntRange(2, 9).Draw(rt, "depth"), Weight: 1,
					InFlight: rapid.IntRange(0, 4).Draw(rt, "limit")},
			})
		}
		b := newBench(t, nil, flows...)
		b.run(t)
		if b.host.Ended() != want || uint64(len(b.samples)) != want {
			rt.Fatalf("%d requests went in, %d ended, %d samples", want, b.host.Ended(), len(b.samples))
		}
		last := make([]cosim.Sample, len(flows))
		slices.SortFunc(b.samples, func(x, y cosim.Sample) int { return int(x.ID) - int(y.ID) })
		for i, s := range b.samples {
			if s.ID != uint64(i) {
				rt.Fatalf("request %d is missing", i)
			}
			if s.Arrival > s.Submitted || s.Submitted > s.Fetched || s.Fetched > s.Finished {
				rt.Fatalf("times of %+v", s)
			}
			if before := last[s.Flow]; before.Submitted > s.Submitted || before.Offset > s.Offset {
				rt.Fatalf("%+v follows %+v", s, before)
			}
			last[s.Flow] = s
		}
	})
}

// repeating yields the same record for ever.
type repeating struct{ record workload.Record }

func (r *repeating) Next(out *workload.Record) error {
	*out = r.record
	r.record.Time += 10 * us
	return nil
}

// In steady state a request causes no allocation, with a full queue or not.
func TestNoAllocations(t *testing.T) {
	for _, c := range []struct {
		name string
		flow cosim.Flow
	}{
		{"open loop", cosim.Flow{}},
		{"closed loop", cosim.Flow{Outstanding: 32}},
		{"closed loop, full queue", cosim.Flow{Outstanding: 32, Queue: block.QueueConfig{Depth: 8, Weight: 1}}},
	} {
		eng := sim.New()
		h := cosim.NewHost(eng)
		d, err := blocktest.New(blocktest.DefaultConfig(), eng, h.Complete)
		if err != nil {
			t.Fatal(err)
		}
		c.flow.Source = &repeating{workload.Record{Op: block.Read, Size: 4096}}
		if c.flow.Queue.Depth == 0 {
			c.flow.Queue = block.QueueConfig{Depth: 1024, Weight: 1}
		}
		if err := h.Attach(d, []cosim.Flow{c.flow}); err != nil {
			t.Fatal(err)
		}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		eng.Run(units.Second)
		before := h.Ended()
		n := testing.AllocsPerRun(20, func() { eng.Run(eng.Now() + 10*units.Millisecond) })
		if n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
		if h.Ended() < before+20*900 {
			t.Errorf("%s: only %d requests ended meanwhile", c.name, h.Ended()-before)
		}
	}
}

func BenchmarkHost(b *testing.B) {
	eng := sim.New()
	h := cosim.NewHost(eng)
	d, err := blocktest.New(blocktest.DefaultConfig(), eng, h.Complete)
	if err != nil {
		b.Fatal(err)
	}
	flow := cosim.Flow{Source: workload.Limit(&repeating{workload.Record{Op: block.Read, Size: 4096}}, int64(b.N), 0),
		Outstanding: 64, Queue: block.QueueConfig{Depth: 128, Weight: 1}}
	if err := h.Attach(d, []cosim.Flow{flow}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	if err := h.Start(); err != nil {
		b.Fatal(err)
	}
	eng.Run(sim.Forever)
}

// TestIdle verifies that the host becomes idle once, when the last request of the last flow has completed, however long
// it was idle before.
func TestIdle(t *testing.T) {
	for name, second := range map[string]cosim.Flow{
		"none":               {Source: workload.Slice(nil)},
		"later":              {Source: workload.Slice(reads(500*us, 900*us))},
		"later, closed loop": {Source: workload.Slice(many(3)), Outstanding: 1, Start: 500 * us},
	} {
		b := newBench(t, nil, cosim.Flow{Source: workload.Slice(reads(0, 10*us))}, second)
		var idle []sim.Time
		b.host.OnIdle = func(at sim.Time) { idle = append(idle, at) }
		b.run(t)
		if len(idle) != 1 || idle[0] != b.eng.Now() {
			t.Errorf("%s: idle at %v, the last completion is at %v", name, idle, b.eng.Now())
		}
	}
}

// TestWaiting counts requests that wait for a place in a queue, and checks their order.
func TestWaiting(t *testing.T) {
	b := newBench(t, nil,
		cosim.Flow{Source: workload.Slice(many(10)), Queue: block.QueueConfig{Depth: 4, Class: block.High, Weight: 1}})
	if err := b.host.Start(); err != nil {
		t.Fatal(err)
	}
	b.eng.Run(0)
	if n := b.host.Waiting() + uint64(len(b.dev.requests)); n != 10 || b.host.Waiting() < 6 {
		t.Errorf("%d wait, %d are in the device", b.host.Waiting(), len(b.dev.requests))
	}
	for k, r := range b.dev.requests {
		if id := b.host.ID(r.Tag); id != uint64(k) {
			t.Errorf("the %d-th request is number %d", k, id)
		}
	}
	b.eng.Run(sim.Forever)
	if b.host.Waiting() != 0 || b.host.Ended() != 10 {
		t.Errorf("%d wait, %d have ended", b.host.Waiting(), b.host.Ended())
	}
}

// TestMostOutstanding verifies that the limit of outstanding requests can be reached, and that one more ends the run
// with an error that names it.
func TestMostOutstanding(t *testing.T) {
	for n, want := range map[int]string{8: "", 9: "more than 8 requests are outstanding at 0s"} {
		b := newBench(t, nil, cosim.Flow{Source: workload.Slice(many(n))})
		b.host.Bound(8)
		err := b.host.Start()
		b.eng.Run(sim.Forever)
		if err == nil {
			err = b.host.Err()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d requests: %v, want %q", n, err, want)
		}
		if want == "" && b.host.Ended() != 8 {
			t.Errorf("%d of 8 requests ended", b.host.Ended())
		}
	}
}

// TestEndOfTheClock verifies that a request may come at the last time of the clock, but not after it or before the
// beginning; the error counts requests from 1.
func TestEndOfTheClock(t *testing.T) {
	const start = 7 * us
	for _, c := range []struct {
		at   sim.Time
		want string
	}{{sim.Forever - start, ""}, {sim.Forever - start + 1, "request 2 arrives more than 106 days"},
		{-1, "request 2 arrives more than 106 days"}} {
		b := newBench(t, nil, cosim.Flow{Start: start, Source: workload.Slice(reads(0, c.at, 5))})
		err := b.host.Start()
		b.eng.Run(100 * us)
		if err == nil {
			err = b.host.Err()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("a request at %d: %v, want %q", c.at, err, c.want)
		}
	}
}

// TestLoneFlowIsMeasured verifies that a lone flow's measurements are the total's, and that several flows have separate
// ones.
func TestLoneFlowIsMeasured(t *testing.T) {
	b := newBench(t, nil, cosim.Flow{Source: workload.Slice(many(10))})
	b.run(t)
	if n := b.host.FlowMeasured(0, block.Read).Latency.Count(); n != 10 {
		t.Errorf("%d of 10 requests are measured", n)
	}
}
