package calibrate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/inputs"
	"farflash/internal/patience"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
	"farflash/study/calibrate"
)

// small makes the preset's drive fast to simulate.
var small = []shape.Change{
	{Path: "ssd.geometry",
		Value: "{channels: 2, chips_per_channel: 2, dies_per_chip: 1, planes_per_die: 2, blocks_per_plane: 64, " +
			"pages_per_block: 128}"},
	{Path: "ssd.over_provisioning", Value: "25%"}, {Path: "ssd.mapping.ideal", Value: "true"},
	{Path: "ssd.cache.capacity", Value: "256KiB"},
}

// job is a fio job with the equivalent workload.
type job struct{ name, options, workload string }

var jobs = []job{
	{"one", `"rw": "randread", "bs": "4k", "iodepth": "1"`,
		"synthetic: {reads: {size: 4KiB, addresses: {align: 4KiB}}}\n    closed: 1"},
	{"many", `"rw": "randread", "bs": "8k", "iodepth": "32"`,
		"synthetic: {reads: {size: 8KiB, addresses: {align: 8KiB}}}\n    closed: 32"},
	{"large", `"rw": "read", "bs": "128k", "iodepth": "8"`,
		"synthetic: {reads: {size: 128KiB, addresses: {pattern: sequential, align: 128KiB}}}\n    closed: 8"},
	{"write", `"rw": "write", "bs": "64k", "iodepth": "4"`,
		"synthetic: {writes: {size: 64KiB, addresses: {pattern: sequential, align: 64KiB}}}\n    closed: 4"},
}

// measure produces fio results of jobs on the small drive with other parameters, by simulation of handwritten
// scenarios.
func measure(t *testing.T, jobs []job, parameters string) string {
	t.Helper()
	var entries []string
	for i, j := range jobs {
		text := "ssd: tlc-enterprise\nworkload:\n  - " + j.workload + "\nmeasure: {until: 200ms, warm_up: 20%}\n"
		changes := append([]shape.Change{}, small...)
		for _, p := range strings.Fields(parameters) {
			c, err := shape.ParseChange(p)
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, c)
		}
		s, err := scenario.Parse(shape.Source{File: j.name, Text: []byte(text)}, changes)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		o := run(context.Background(), []trial.Trial{{Scenario: s, Digest: digest, Seed: 7}})[0]
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		op, other := "read", "write"
		if strings.Contains(j.workload, "writes") {
			op, other = other, op
		}
		v := func(name string) float64 {
			m, ok := o.Result.Metric(op + "." + name)
			if !ok {
				t.Fatalf("%s has no %s", j.name, name)
			}
			return m.Value
		}
		wall := ""
		if i > 0 {
			wall = `, "stonewall": ""`
		}
		entries = append(entries, fmt.Sprintf(`{"jobname": %q, "error": 0, "job options": {%s, "name": %q, "filename": "/dev/nvme0n1", "size": "100g"%s},
%q: {"iops": %v, "total_ios": %v, "clat_ns": {"mean": %v, "percentile": {"50.000000": %v, "99.000000": %v, "99.990000": 1}}}, %q: {"iops": 0, "total_ios": 0}, "trim": {"total_ios": 0}}`,
			j.name, j.options, j.name, wall, op, v("iops"), v("count"), v("latency.mean")*1e3, v("latency.p50")*1e3,
			v("latency.p99")*1e3, other))
	}
	return `{"fio version": "fio-3.33", "global options": {"ioengine": "io_uring", "direct": "1", "runtime": "60", "time_based": "1"}, "jobs": [` + strings.Join(entries, ",\n") + "]}"
}

func run(ctx context.Context, trials []trial.Trial) []study.Outcome {
	runner := study.Runner{Version: "test"}
	return runner.Run(ctx, trials)
}

func fit(t *testing.T, text string) *calibrate.Calibration {
	t.Helper()
	m, err := calibrate.Read(strings.NewReader(text), "result.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := calibrate.New(m,
		calibrate.Config{Preset: "tlc-enterprise", Changes: small, Requests: 1000, Seed: 1, Run: run})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fit(context.Background()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRecovered verifies that figures of a drive with known parameters yield those parameters, from a preset with
// others: 40us, 270us and 2400 MT/s.
func TestRecovered(t *testing.T) {
	jobs := jobs
	if !patience.Long(t) {
		jobs = slices.Delete(slices.Clone(jobs), 1, 2)
	}
	c := fit(t, measure(t, jobs,
		"ssd.timing.read_latency=28us ssd.timing.program_latency=500us ssd.timing.channel_rate=400MT/s"))
	want := map[string]float64{"ssd.timing.read_latency": 28. / 40, "ssd.timing.program_latency": 500. / 270,
		"ssd.timing.channel_rate": 400. / 2400}
	for _, p := range c.Parameters {
		t.Logf("%s: %s, %s, was %s, +- %.2f %%, with %q", p.Path, p.Value, p.State, p.Preset, 100*p.Error, p.With)
		factor, ok := want[p.Path]
		if ok && (p.State != calibrate.Fitted || math.Abs(p.Factor/factor-1) > 0.02 || p.With != "") {
			t.Errorf("%s is %s by a factor of %.3f, and should be by %.3f (%s)", p.Path, p.Value, p.Factor, factor,
				p.State)
		}
	}
	for _, f := range c.Fits {
		t.Logf("%s %v %s: %v measured, %v", f.Job, f.Op, f.Name, f.Measured, f.Simulated)
		if math.Abs(f.Difference()) > map[string]float64{"iops": 0.03, "mean": 0.03, "p50": 0.1, "p99": 0.25}[f.Name] {
			t.Errorf("%s: %s of %vs is %v, measured %v", f.Job, f.Name, f.Op, f.Simulated, f.Measured)
		}
	}
	t.Logf("%d evaluations, loss %.3g", c.Evaluations, c.Loss)
	text := c.Scenario()
	s, err := scenario.Parse(shape.Source{File: "drive.yaml", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if got := s.SSD.Timing.Read[0].Microseconds(); math.Abs(got/28-1) > 0.02 || len(s.Workload) == 0 {
		t.Errorf("the drive that is written reads in %v us:\n%s", got, text)
	}
}

// TestUnidentified verifies that reads at a depth of one do not determine programs and fast links, and that this is
// reported. TestLaws has the same in closed form.
func TestUnidentified(t *testing.T) {
	patience.SkipUnlessLong(t)
	c := fit(t, measure(t, jobs[:1], "ssd.timing.read_latency=60us"))
	for _, p := range c.Parameters {
		t.Logf("%s: %s, %s, was %s, with %q", p.Path, p.Value, p.State, p.Preset, p.With)
		switch p.Path {
		case "ssd.timing.program_latency":
			if p.State != calibrate.Unidentified || p.Value != p.Preset {
				t.Errorf("%s: %s, %s", p.Path, p.State, p.Value)
			}
		case "ssd.timing.read_latency":
			// A single job's latency is the sum of reading and transferring the page.
			if p.With == "" {
				t.Errorf("%s: %s with %q", p.Path, p.State, p.With)
			}
		}
	}
}

// TestOutlier verifies that a figure outside of the model's range affects the others only slightly. TestOutlierPulls
// has the same in closed form.
func TestOutlier(t *testing.T) {
	patience.SkipUnlessLong(t)
	text := measure(t, jobs[:1], "ssd.timing.read_latency=60us")
	var d map[string]any
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	latency := d["jobs"].([]any)[0].(map[string]any)["read"].(map[string]any)["clat_ns"].(map[string]any)
	latency["percentile"].(map[string]any)["99.000000"] = 9e6 // 9 ms
	bent, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	c := fit(t, string(bent))
	for _, f := range c.Fits {
		if f.Name == "mean" && math.Abs(f.Difference()) > 0.03 {
			t.Errorf("one outlier moves the mean of %s by %v", f.Job, f.Difference())
		}
	}
}

// TestRead checks rejected inputs and their messages.
func TestRead(t *testing.T) {
	entry := func(options, read string) string {
		return `{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "job options": {` + options + `}, "read": {` +
			read + `}}]}`
	}
	sound := `"iops": 5, "total_ios": 5, "clat_ns": {"mean": 1000}`
	if m, err := calibrate.Read(strings.NewReader("fio: a warning\n"+entry(`"rw": "randread"`, sound)),
		"r.json"); err != nil || len(m.Figures) != 2 || len(m.Waves) != 1 {
		t.Errorf("%v: %+v", err, m)
	}
	for text, want := range map[string]string{
		"":                  "not JSON; write it with fio",
		"{\n\n\"jobs\": [}": "r.json:3: invalid character '}'",
		`{"jobs": []}`:      "not a fio result",
		`{"fio version": "fio-2.1", "jobs": [{}]}`: "use fio 3",
		entry(`"rw": "randread", "verify": "crc32c"`,
			sound): `job "a": options:3: option verify is not supported`,
		entry(`"rw": "randread", "bs": "4k\nrw=write"`,
			sound): "contains a line break",
		entry(`"rw": "randread"`, `"total_ios": 0`):                                          "neither read nor wrote",
		entry(`"rw": "randread"`, `"iops": -1, "total_ios": 5`):                              "iops of reads is -1",
		strings.Replace(entry(`"rw": "randread"`, sound), `"read"`, `"error": 5, "read"`, 1): "ended with error 5",
	} {
		if _, err := calibrate.Read(strings.NewReader(text), "r.json"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, wanted %s", text, err, want)
		}
	}
	// A file written by fio.
	f, err := os.Open(inputs.Path(t, "data/fio-3.33-jsonplus-example.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := calibrate.Read(f, "example.json")
	if err != nil || len(m.Figures) != 10 || m.Figures[1].Measured != 0.182503554 {
		t.Errorf("%v: %+v", err, m)
	}
}

// FuzzRead reads results from arbitrary bytes: accepted ones have figures that can be fitted, and jobs that belong to a
// wave.
func FuzzRead(f *testing.F) {
	f.Add(`{"fio version": "fio-3.33", "global options": {"bs": "4k"}, "jobs": [{"jobname": "a", "job options": {"rw": "randrw", "stonewall": ""}, "read": {"iops": 5, "total_ios": 5, "clat_ns": {"mean": 1000, "percentile": {"99.000000": 7}}}, "write": {"iops": 1e300, "total_ios": 1, "clat_ns": {"mean": 1}}}]}`)
	f.Add(`{"fio version": "fio-3", "jobs": [{"jobname": "\n", "job options": {"numjobs": "65536", "rate": "1"}, "read": {"iops": 1e-300, "total_ios": 5, "clat_ns": {"mean": 1000}}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		m, err := calibrate.Read(strings.NewReader(text), "r.json")
		if err != nil {
			return
		}
		for _, x := range m.Figures {
			if !(x.Measured > 0) || math.IsInf(x.Measured, 0) {
				t.Errorf("%+v", x)
			}
		}
		if len(m.Waves) == 0 || len(m.Figures) == 0 {
			t.Errorf("%d waves, %d figures", len(m.Waves), len(m.Figures))
		}
		c, err := calibrate.New(m,
			calibrate.Config{Preset: "tlc-enterprise", Changes: small, Requests: 1000, Seed: 1, Run: run})
		if err == nil && len(c.Parameters) != 4 {
			t.Error("no parameters")
		}
	})
}
