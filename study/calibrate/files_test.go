package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/experiment/trial"
	"farflash/scenario/shape"
	"farflash/study"
)

// result1 is a file with one job that reads.
func result1(name, options string, iops float64, more string) string {
	return fmt.Sprintf(`{"fio version": "fio-3.33", "global options": {"direct": "1"}, "jobs": [{"jobname": %q, `+
		`"job options": {%s}, "read": {"iops": %v, "total_ios": 5, "clat_ns": {"mean": 2000, "percentile": `+
		`{"50.000000": 1500, "90.000000": 2500, "99.000000": 3500, "99.900000": 4500}}}}%s]}`, name, options, iops, more)
}

// entry is another job of a file.
func entry(name, options, sides string) string {
	return fmt.Sprintf(`, {"jobname": %q, "job options": {%s}, %s}`, name, options, sides)
}

// TestWaves verifies which jobs run together, and which metrics of the simulation their figures are compared with.
func TestWaves(t *testing.T) {
	const read = `"read": {"iops": 10, "total_ios": 5, "clat_ns": {"mean": 1000}}`
	const both = read + `, "write": {"iops": 20, "total_ios": 1, "clat_ns": {"mean": 4000, "percentile": {"99.000000": 0}}}`
	text := result1("a", `"rw": "randread", "bs": "4k", "stonewall": ""`, 5,
		entry("b", `"rw": "randrw", "bs": "8k", "new_group": ""`, both)+
			entry("c", `"rw": "randread", "wait_for_previous": ""`, read)+
			entry("d", `"rw": "randread", "stonewall": "1", "numjobs": "3"`, read))
	m, err := Read(strings.NewReader(text), "r.json")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range m.Waves {
		var of []string
		for _, j := range w {
			of = append(of, j.Name)
		}
		names = append(names, strings.Join(of, "+"))
	}
	if !slices.Equal(names, []string{"a+b", "c", "d"}) {
		t.Errorf("waves %v", names)
	}
	var got []string
	for _, f := range m.Figures {
		got = append(got, fmt.Sprintf("%s %v %s %v%s %v %s %d", f.Job, f.Op, f.Name, f.Measured, f.Unit, f.weight, f.metric,
			f.wave))
	}
	want := []string{
		"a read iops 51/s 1 workload[0].read.iops 0", "a read mean 2us 1 workload[0].read.latency.mean 0",
		"a read p50 1.5us 1 workload[0].read.latency.p50 0", "a read p90 2.5us 0.5 workload[0].read.latency.p90 0",
		"a read p99 3.5us 0.1 workload[0].read.latency.p99 0",
		"b read iops 101/s 1 workload[1].read.iops 0", "b read mean 1us 1 workload[1].read.latency.mean 0",
		"b write iops 201/s 1 workload[1].write.iops 0", "b write mean 4us 1 workload[1].write.latency.mean 0",
		"c read iops 101/s 1 read.iops 1", "c read mean 1us 1 read.latency.mean 1",
		"d read iops 101/s 1 read.iops 2", "d read mean 1us 1 read.latency.mean 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("figures\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestReadRefuses verifies the limits of a file and of its jobs.
func TestReadRefuses(t *testing.T) {
	many := func(n int) string {
		more := ""
		for i := range n - 1 {
			more += entry(fmt.Sprintf("j%d", i), `"rw": "randread"`, `"read": {"iops": 1, "total_ios": 1, "clat_ns": {"mean": 1}}`)
		}
		return result1("a", `"rw": "randread"`, 5, more)
	}
	const sides = `"read": {"iops": 1, "total_ios": 1, "clat_ns": {"mean": 1}}`
	for text, want := range map[string]string{
		many(256): "", many(257): "r.json: 257 jobs; a fit takes at most 256",
		result1("a", `"rw": "randread"`, 5, entry("a", `"rw": "randread"`, sides)):                                 `r.json: job "a": two jobs have this name; give each its own`,
		result1("a", `"rw": "randread", "numjobs": "2"`, 5, entry("a", `"rw": "randread", "numjobs": "2"`, sides)): `r.json: job "a": its numjobs=2 copies are reported separately; run fio with group_reporting`,
		result1("a", `"rw": "randread"`, 5, entry("b", `"rw": "randread"`, `"trim": {"total_ios": 1}, `+sides)):    `r.json: job "b": it trims, and trims have no timing to fit; leave it out`,
		result1("a", `"rw": "randread"`, 0, ""):                                                                    `r.json: job "a": iops of reads is 0`,
		`{"fio version": "fio-3", "jobs": []}`:                                                                     "r.json: not a fio result",
		`{"jobs": [{}]}`:                                                                                           "r.json: not a fio result",
		"warning\n\n{\n\"fio version\": 3}":                                                                        "r.json:4: json: cannot unmarshal number",
	} {
		m, err := Read(strings.NewReader(text), "r.json")
		if want == "" && (err != nil || len(m.Figures) != 5+2*255) ||
			want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
	if _, err := Read(failing{}, "r.json"); err == nil || err.Error() != "r.json: a bad disk" {
		t.Errorf("%v", err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("a bad disk") }

// TestDuration verifies how long each wave is simulated: until its slowest side has its requests, and writes have
// filled the cache three times.
func TestDuration(t *testing.T) {
	read := func(iops float64) string {
		return fmt.Sprintf(`"read": {"iops": %v, "total_ios": 1, "clat_ns": {"mean": 1}}`, iops)
	}
	write := strings.ReplaceAll(read(100), `"read"`, `"write"`)
	for _, x := range []struct {
		name, text string
		requests   int
		seconds    []float64
		want       string
	}{
		{"one", result1("a", `"rw": "randread", "bs": "4k"`, 2000, ""), 5000, []float64{2.5}, ""},
		{"slower beside it", result1("a", `"rw": "randread", "bs": "4k"`, 2000,
			entry("b", `"rw": "randread", "bs": "4k"`, read(100))), 5000, []float64{50}, ""},
		{"one behind the other", result1("a", `"rw": "randread", "bs": "4k"`, 2000,
			entry("b", `"rw": "randread", "bs": "4k", "stonewall": ""`, read(100))), 5000, []float64{2.5, 50}, ""},
		// 3 times 64 MiB in blocks of 4 KiB are 49,152 writes.
		{"writes", result1("a", `"rw": "randread", "bs": "4k"`, 2000,
			entry("b", `"rw": "randwrite", "bs": "4k"`, write)), 5000, []float64{491.52}, ""},
		{"rarer writes", result1("a", `"rw": "randread", "bs": "4k"`, 2000,
			entry("b", `"rw": "randwrite", "bs": "1m"`, write)), 5000, []float64{50}, ""},
		{"too many", result1("a", `"rw": "randread", "bs": "4k"`, 400_001,
			entry("b", `"rw": "randread", "bs": "4k"`, read(100))), 5000, nil,
			`r.json: job "a": its 5000 requests, or three times the drive's cache of 64MiB, take 50 s, in which the jobs ` +
				`that run with it issue 2e+07 requests, more than 2e+07; leave out the slowest job, or use fewer requests`},
		{"as many as may be", result1("a", `"rw": "randread", "bs": "4k"`, 399_900,
			entry("b", `"rw": "randread", "bs": "4k"`, read(100))), 5000, []float64{50}, ""},
		{"too long", result1("a", `"rw": "randread", "bs": "4k"`, 0.001, ""), 1001, nil, "take 1e+06 s"},
		{"as long as may be", result1("a", `"rw": "randread", "bs": "4k"`, 0.001, ""), 1000, []float64{1e6}, ""},
	} {
		m, err := Read(strings.NewReader(x.text), "r.json")
		if err != nil {
			t.Fatalf("%s: %v", x.name, err)
		}
		c, err := New(m, Config{Preset: "tlc-enterprise", Requests: x.requests,
			Changes: []shape.Change{{Path: "ssd.cache.capacity", Value: "64MiB", Flag: "set"}}})
		if x.want != "" {
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("%s: %v", x.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		var ran []float64
		c.run = func(_ context.Context, trials []trial.Trial) []study.Outcome {
			for i, y := range trials {
				if y.Scenario.Name != fmt.Sprintf("calibration-%d", i+1) {
					t.Errorf("%s: wave %d is named %s", x.name, i+1, y.Scenario.Name)
				}
				ran = append(ran, y.Scenario.Measure.Until.Time.Seconds())
				if y.Scenario.Measure.WarmUp.Share != 0.2 || y.Seed != c.seed || y.Digest == "" {
					t.Errorf("%s: %+v", x.name, y.Scenario.Measure)
				}
				for _, l := range y.Scenario.Workload {
					if l.After != "" || l.Synthetic.Requests != 0 || l.Synthetic.Duration != 0 {
						t.Errorf("%s: %+v", x.name, l)
					}
				}
			}
			return []study.Outcome{{State: study.Pending}}
		}
		if _, err := c.at(context.Background(), make([]float64, 4)); !errors.Is(err, trial.ErrInterrupted) {
			t.Fatal(err)
		}
		if len(ran) != len(x.seconds) {
			t.Errorf("%s: %v", x.name, ran)
			continue
		}
		for i := range ran {
			if !near(ran[i], x.seconds[i], 1e-6) {
				t.Errorf("%s: wave %d takes %v s, want %v", x.name, i+1, ran[i], x.seconds[i])
			}
		}
	}
}

// TestDocument verifies what --json and reports say of each state of a parameter, and of a figure that is missing.
func TestDocument(t *testing.T) {
	of := func(x float64) *float64 { return &x }
	for _, x := range []struct {
		p    Parameter
		text string
		err  *float64
	}{
		{Parameter{}, "not known yet", nil},
		{Parameter{State: Unidentified, Error: 1}, "not identified: no figure depends on it; the preset's value is kept", nil},
		{Parameter{State: AtLeast, With: "x"}, "at least: a larger value changes no figure", nil},
		{Parameter{State: AtMost}, "at most: a smaller value changes no figure", nil},
		{Parameter{State: AtBound}, "at the bound of the search, 16 times the preset's value or a 16th: the preset may be " +
			"another kind of drive", nil},
		{Parameter{State: Fitted}, "fitted", nil},
		{Parameter{State: Fitted, Error: math.Inf(1)}, "fitted", nil},
		{Parameter{State: Fitted, Error: 0.0123}, "+- 1.2 % (standard error)", of(0.0123)},
		{Parameter{State: Fitted, Error: 2}, "+- 200.0 % (standard error)", of(2)},
		{Parameter{State: Fitted, Error: 0.5, With: "x"}, "only together with x, which changes all figures alike", of(0.5)},
	} {
		if got := x.p.Uncertainty(); got != x.text {
			t.Errorf("%+v: %s", x.p, got)
		}
		c := Calibration{Measured: &Measured{File: "dir/r.json", Version: "fio-3"}, Preset: "p", Parameters: []Parameter{x.p}}
		d := c.Document().Parameters[0]
		if (d.Error == nil) != (x.err == nil) || d.Error != nil && *d.Error != *x.err || d.State != x.p.State ||
			d.With != x.p.With {
			t.Errorf("%+v: %+v", x.p, d)
		}
	}
	c := Calibration{Measured: &Measured{File: "r.json", Version: "fio-3"}, Preset: "p", Loss: 3, Evaluations: 7,
		Interrupted: true, Fits: []Fit{
			{Figure{Job: "a", Op: block.Write, Name: "p50", Unit: "us", Measured: 8}, 10},
			{Figure{Job: "a", Name: "iops", Unit: "1/s", Measured: 8}, math.NaN()}}}
	d := c.Document()
	if f := d.Figures[0]; f.Job != "a" || f.Op != "write" || f.Name != "p50" || f.Unit != "us" || f.Measured != 8 ||
		*f.Fitted != 10 || *f.Difference != 0.25 {
		t.Errorf("%+v", f)
	}
	if f := d.Figures[1]; f.Op != "read" || f.Fitted != nil || f.Difference != nil {
		t.Errorf("%+v", f)
	}
	if d.Schema != "farflash/calibration/1" || d.File != "r.json" || d.Fio != "fio-3" || d.Preset != "p" || d.Loss != 3 ||
		d.Evaluations != 7 || !d.Interrupted || d.Parameters == nil {
		t.Errorf("%+v", d)
	}
}
