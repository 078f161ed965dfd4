package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/cosim"
	"farflash/shape"
	"farflash/units"
)

// run simulates a scenario's text.
func run(t testing.TB, text string, seed uint64, set ...string) *Outcome {
	t.Helper()
	s, err := parse(text, set...)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(context.Background(), Options{Seed: seed, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range out.Result.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	return out
}

func metric(t testing.TB, o *Outcome, name string) float64 {
	t.Helper()
	m, ok := o.Result.Metric(name)
	if !ok {
		t.Fatalf("no metric %s", name)
	}
	return m.Value
}

const mixed = `
ssd: {preset: mqsim-default, geometry: {blocks_per_plane: 64, pages_per_block: 64}, over_provisioning: 25%, cache: {capacity: 1MiB}, preconditioning: {fill: steady}}
workload:
  - name: reads
    synthetic: {reads: {size: 4KiB, interarrival: {mean: 60us, scv: 4}}, requests: 3000}
  - name: writes
    synthetic: {writes: {size: 8KiB, interarrival: 400us, addresses: {align: 8KiB}}, requests: 500}
`

// TestSameBytes holds that a digest and a seed give the same result, to the byte,
// and that another seed does not.
func TestSameBytes(t *testing.T) {
	encode := func(seed uint64) []byte {
		text, err := run(t, mixed, seed).Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := encode(1)
	if !bytes.Equal(first, encode(1)) {
		t.Error("two runs of one seed differ")
	}
	if bytes.Equal(first, encode(2)) {
		t.Error("seeds 1 and 2 give the same")
	}
}

// TestMetrics holds how figures hang together.
func TestMetrics(t *testing.T) {
	o := run(t, mixed, 1)
	m := func(name string) float64 { return metric(t, o, name) }
	if m("read.count") != 3000 || m("write.count") != 500 || m("all.count") != 3500 {
		t.Errorf("counts %v, %v, %v", m("read.count"), m("write.count"), m("all.count"))
	}
	if got, want := m("read.iops"), m("read.count")/o.Result.SimulatedS; math.Abs(got-want) > 1e-9*want {
		t.Errorf("read.iops %v, want %v", got, want)
	}
	if got, want := m("ssd.flash.programs"), m("ssd.writes.host")+m("ssd.writes.gc")+m("ssd.writes.mapping")+m("ssd.writes.wear"); got > want || got < want-64 {
		t.Errorf("%v programs, but %v were handed out", got, want)
	}
	x, ok := o.Result.Matrix("ssd.latency.breakdown")
	if !ok {
		t.Fatal("no breakdown")
	}
	sum := 0.0
	for _, v := range x.V[0] {
		sum += v
	}
	if want := m("read.latency.mean"); math.Abs(sum-want) > 0.02*want {
		t.Errorf("the parts of the mean read add up to %v us, not %v", sum, want)
	}
	for _, s := range o.Result.Series {
		if len(s.T) == 0 || len(s.T) > 256 {
			t.Errorf("series %s has %d bins", s.Name, len(s.T))
		}
	}
	reads, _ := o.Result.SeriesOf("read.iops")
	total := 0.0
	for i, v := range reads.V {
		w := reads.Width
		if end := o.Result.SimulatedS - reads.T[i]; end < w {
			w = end
		}
		if !math.IsNaN(v) {
			total += v * w
		}
	}
	if math.Abs(total-3000) > 1 {
		t.Errorf("the series of reads adds up to %v", total)
	}
}

// TestWarmUp holds that a warm-up that is cut is missing from the figures, and that
// what remains is what happened after it.
func TestWarmUp(t *testing.T) {
	whole := run(t, mixed, 1)
	seen := 0
	s, err := parse(mixed, "measure.warm_up=50ms")
	if err != nil {
		t.Fatal(err)
	}
	cut, err := s.Run(context.Background(), Options{Seed: 1, Sample: func(x cosim.Sample) error {
		if x.Finished > units.Duration(0.05*float64(units.Second)) {
			seen++
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	until := cut.Result.WarmUp.UntilS
	if until < 0.05 || until > 0.06 {
		t.Errorf("the warm-up was cut at %v s", until)
	}
	n := metric(t, cut, "all.count")
	if n >= metric(t, whole, "all.count") || n > float64(seen) || n < float64(seen)*0.9 {
		t.Errorf("%v requests are left of %v; %d came after", n, metric(t, whole, "all.count"), seen)
	}
	if got, want := metric(t, cut, "all.iops"), n/(cut.Result.SimulatedS-until); math.Abs(got-want) > 1e-9*want {
		t.Errorf("all.iops %v, want %v", got, want)
	}
	h := cut.Result.Histogram("read.latency")
	if h.Count() != int64(metric(t, cut, "read.count")) {
		t.Errorf("the histogram has %d reads, the count says %v", h.Count(), metric(t, cut, "read.count"))
	}
	for _, w := range []string{"10%", "auto"} {
		if o := run(t, mixed, 1, "measure.warm_up="+w); metric(t, o, "all.count") > 3500 {
			t.Errorf("%s counts too much", w)
		}
	}
}

// TestUntil holds how runs are ended by time and by precision.
func TestUntil(t *testing.T) {
	o := run(t, mixed, 1, "measure.until=20ms")
	if o.Result.SimulatedS != 0.02 {
		t.Errorf("it ended at %v s", o.Result.SimulatedS)
	}
	if n := metric(t, o, "all.count"); n < 100 || n > 1000 {
		t.Errorf("%v requests in 20 ms", n)
	}
	long := strings.Replace(mixed, "requests: 3000", "requests: 300000", 1)
	o = run(t, long, 1, "measure.until=steady")
	if n := metric(t, o, "all.count"); n > 200_000 {
		t.Errorf("steady took %v requests", n)
	}
}

// TestInterrupted holds that a run that is broken off gives what was done.
func TestInterrupted(t *testing.T) {
	s, err := parse(mixed)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	o, err := s.Run(ctx, Options{Seed: 1, Sample: func(cosim.Sample) error {
		if n++; n == 1000 {
			cancel()
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !o.Interrupted || !strings.HasPrefix(o.Result.Warnings[0], "incomplete") {
		t.Errorf("interrupted %v, warnings %q", o.Interrupted, o.Result.Warnings)
	}
	if c := metric(t, o, "all.count"); c < 1000 || c > 1000+interruptEvery {
		t.Errorf("%v requests were counted", c)
	}
	for _, c := range o.Result.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// TestSampleError holds that who listens can end the run.
func TestSampleError(t *testing.T) {
	s, err := parse(mixed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(context.Background(), Options{Seed: 1, Sample: func(cosim.Sample) error { return os.ErrClosed }})
	if err != os.ErrClosed {
		t.Errorf("error %v", err)
	}
}

// TestOverload holds that a drive that cannot keep up is reported as such.
func TestOverload(t *testing.T) {
	o := run(t, `
ssd: mqsim-default
workload: [{synthetic: {reads: {size: 64KiB, interarrival: 1us}, requests: 20000}}]
`, 1)
	if !strings.Contains(strings.Join(o.Result.Warnings, "\n"), "overload") {
		t.Errorf("warnings %q", o.Result.Warnings)
	}
}

// TestLocated holds that what goes wrong in a run names the flow and its place.
func TestLocated(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "far.trace"), []byte("0 0 0 8 1\n5 0 99999999999 8 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.trace"), []byte("0 0 0 8 1\n5 0 8 zero 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"far.trace": "a.yaml:2:12: workload[0]: request 2 is for bytes",
		"bad.trace": "bad.trace:2: ",
	} {
		s, err := Parse(shape.Source{File: "a.yaml", Dir: dir, Text: []byte("ssd: mqsim-default\nworkload: [{trace: {file: " + name + ", format: mqsim}}]\n")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Run(context.Background(), Options{Seed: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestReplay holds scaling, parts and rounds of a trace.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.trace"), []byte("1000 0 0 8 1\n2000 0 8 8 1\n3000 0 16 8 1\n5000 0 24 8 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var at []string
	s, err := Parse(shape.Source{File: "a.yaml", Dir: dir, Text: []byte("ssd: mqsim-default\nworkload: [{trace: {file: a.trace, format: mqsim, scale: 10, part: 75%, loop: 2}, start: 1ms}]\n")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(context.Background(), Options{Seed: 1, Sample: func(x cosim.Sample) error {
		at = append(at, fmt.Sprint(x.Arrival-units.Millisecond, "@", x.Offset))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0s@0", "10us@4096", "20us@8192", "30us@0", "40us@4096", "50us@8192"}
	for _, w := range want {
		found := false
		for _, a := range at {
			found = found || a == w
		}
		if !found {
			t.Errorf("no request %s among %v", w, at)
		}
	}
	if len(at) != len(want) {
		t.Errorf("%d requests, want %d", len(at), len(want))
	}
}

// casesOf finds the folder of another simulator's inputs beside the repository.
func casesOf(t testing.TB, peer string) string {
	t.Helper()
	dir := filepath.Join("..", "..", "shared", "cases", peer)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("../shared/cases/%s is not there", peer)
	}
	return dir
}

// TestMQSimCases converts MQSim's inputs and sets the answers side by side, with the
// tolerances that ../shared/cases/check has.
func TestMQSimCases(t *testing.T) {
	dir := casesOf(t, "mqsim")
	text, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	type op struct{ N, Mean, P99 float64 }
	var expected map[string]struct {
		IOPS     float64 `json:"iops_true"`
		Programs float64 `json:"page_programs"`
		Erases   float64 `json:"block_erases"`
		Moves    float64 `json:"gc_page_moves"`
		Flows    []struct {
			Read  *op `json:"dev_read"`
			Write *op `json:"dev_write"`
		}
		CMT struct{ CMT_Hits, Total_CMT_Queries float64 }
	}
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	tolerance := map[string][3]float64{ // of the mean, of IOPS, of the 99th percentile; 0: not compared
		"A01": {.001}, "A02": {.005, .005}, "A03": {.02, .02, .05}, "A04": {.001}, "A06": {.02, .02}, "A07": {.02, .02}, "A09": {.03, .02}, "A10": {.05}, "A12": {},
	}
	for name, e := range expected {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name[:3] == "A12" {
				t.Skip("800,000 requests")
			}
			c, err := FromMQSim(filepath.Join(dir, name, "ssdconfig.xml"), filepath.Join(dir, name, "workload.xml"), 1, CompatMQSim)
			if err != nil {
				t.Fatal(err)
			}
			o := run(t, c.Text(), 1)
			within := func(what string, want, tol float64) {
				t.Helper()
				if got := metric(t, o, what); math.Abs(got-want) > math.Max(tol*want, 1e-3) {
					t.Errorf("%s is %v, MQSim's is %v, within %v", what, got, want, tol)
				}
			}
			tol := tolerance[name[:3]]
			for _, op := range []string{"read", "write"} {
				var n, sum, p99 float64
				flows := 0
				for _, f := range e.Flows {
					x := f.Read
					if op == "write" {
						x = f.Write
					}
					if x != nil && x.N > 0 {
						n, sum, p99 = n+x.N, sum+x.N*x.Mean, x.P99
						flows++
					}
				}
				if n == 0 {
					continue
				}
				within(op+".count", n, map[bool]float64{true: .0005}[name[:3] == "A12"])
				if tol[0] > 0 {
					within(op+".latency.mean", sum/n/1000, tol[0])
				}
				if tol[2] > 0 && flows == 1 {
					within(op+".latency.p99", p99/1000, tol[2])
				}
			}
			if tol[1] > 0 {
				within("all.iops", e.IOPS, tol[1])
			}
			switch name[:3] {
			case "A02":
				within("ssd.cmt.hit_ratio", e.CMT.CMT_Hits/e.CMT.Total_CMT_Queries, .005)
			case "A04":
				within("ssd.flash.programs", e.Programs, .01)
			case "A12":
				within("ssd.flash.programs", e.Programs, .02)
				within("ssd.flash.erases", e.Erases, .03)
				within("ssd.gc.pages_moved", e.Moves, .03)
			}
		})
	}
}

// TestMQSimRefused holds that what has no counterpart is refused by name and place,
// and what has one only under --compat none converts there.
func TestMQSimRefused(t *testing.T) {
	dir := filepath.Join(casesOf(t, "mqsim"), "A09_two_flows_prio_qfs16")
	device, err := os.ReadFile(filepath.Join(dir, "ssdconfig.xml"))
	if err != nil {
		t.Fatal(err)
	}
	workload, err := os.ReadFile(filepath.Join(dir, "workload.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tag, value string
		none       bool // --compat none takes it
	}{
		{"HostInterface_Type", "SATA", false}, {"Caching_Mechanism", "SIMPLE", false}, {"Address_Mapping", "HYBRID", false},
		{"Transaction_Scheduling_Policy", "FLIN", false}, {"GC_Block_Selection_Policy", "RANDOM_PP", false}, {"Memory_Type", "PCM", false},
		{"Flash_Comm_Protocol", "NVDDR3", false}, {"Use_Copyback_for_GC", "true", true}, {"Plane_Allocation_Scheme", "CWDX", false},
		{"Data_Cache_Sharing_Mode", "NONE", false}, {"CMT_Sharing_Mode", "NONE", false}, {"CMD_Suspension_Support", "READ", false},
		{"Flash_Technology", "QLC", false}, {"Priority_Class", "BULK", false}, {"Device_Level_Data_Caching_Mode", "ON", false},
		{"Address_Distribution", "ZIPF", false}, {"Request_Size_Distribution", "PARETO", false}, {"Synthetic_Generator_Type", "RATE", false},
	} {
		t.Run(c.tag, func(t *testing.T) {
			tmp := t.TempDir()
			put := func(name string, src []byte) string {
				p := filepath.Join(tmp, name)
				text := string(src)
				if i := strings.Index(text, "<"+c.tag+">"); i >= 0 {
					end := strings.Index(text, "</"+c.tag+">")
					text = text[:i] + "<" + c.tag + ">" + c.value + text[end:]
				}
				if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
				return p
			}
			d, w := put("ssdconfig.xml", device), put("workload.xml", workload)
			_, err := FromMQSim(d, w, 1, CompatMQSim)
			if err == nil || !strings.Contains(err.Error(), "<"+c.tag+">") || !strings.Contains(err.Error(), ".xml:") {
				t.Errorf("error %v", err)
			}
			_, err = FromMQSim(d, w, 1, CompatNone)
			if (err == nil) != c.none {
				t.Errorf("--compat none: %v", err)
			}
		})
	}
}

// TestMQSimScenarios holds the choice among several scenarios.
func TestMQSimScenarios(t *testing.T) {
	dir := filepath.Join(casesOf(t, "mqsim"), "A01_lat_read_ideal_qd1")
	w := filepath.Join(dir, "workload.xml")
	if _, err := FromMQSim(filepath.Join(dir, "ssdconfig.xml"), w, 2, CompatMQSim); err == nil || !strings.Contains(err.Error(), "there is no scenario 2; it has 1 to 1") {
		t.Errorf("error %v", err)
	}
}

func Example() {
	src := shape.Source{File: "example.yaml", Text: []byte(`
ssd: mqsim-default
workload: [{mqsim: {requests: 1000}, closed: 1}]
`)}
	s, err := Parse(src, []shape.Change{{Path: "ssd.mapping.ideal", Value: "true"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := s.Run(context.Background(), Options{Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, _ := out.Result.Metric("read.latency.p50")
	fmt.Printf("median read %.1f %s\n", m.Value, m.Unit)
	// Output:
	// median read 88.9 us
}

// BenchmarkRun is a whole run, reading the scenario included.
func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		run(b, "ssd: mqsim-default\nworkload: [{mqsim: {requests: 100000}, closed: 16}]\n", 1)
	}
}
