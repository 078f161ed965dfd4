package drive_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/internal/drivemeter"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/model/cosim"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// TestSameBytes verifies that a digest and a seed yield the same result, byte for byte, and that another seed does not.
func TestSameBytes(t *testing.T) {
	encode := func(seed uint64) []byte {
		text, err := trialtest.Run(t, trialtest.Mixed, seed).Result.Encode()
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

// TestMetrics verifies relations between figures.
func TestMetrics(t *testing.T) {
	o := trialtest.Run(t, trialtest.Mixed, 1)
	m := func(name string) float64 { return trialtest.Metric(t, o, name) }
	if m("read.count") != 3000 || m("write.count") != 500 || m("all.count") != 3500 {
		t.Errorf("counts %v, %v, %v", m("read.count"), m("write.count"), m("all.count"))
	}
	if got, want := m("read.iops"), m("read.count")/o.Result.SimulatedS; math.Abs(got-want) > 1e-9*want {
		t.Errorf("read.iops %v, want %v", got, want)
	}
	if got, want := m("ssd.flash.programs"),
		m("ssd.writes.host")+m("ssd.writes.gc")+m("ssd.writes.mapping")+m("ssd.writes.wear"); got > want ||
		got < want-64 {
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

// TestWarmUp verifies that the warm-up is excluded from the figures, and that the remainder is what happened after it.
func TestWarmUp(t *testing.T) {
	whole := trialtest.Run(t, trialtest.Mixed, 1)
	seen := 0
	s, err := trialtest.Parse(trialtest.Mixed, "measure.warm_up=50ms")
	if err != nil {
		t.Fatal(err)
	}
	cut, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1, Sample: func(x cosim.Sample) error {
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
	n := trialtest.Metric(t, cut, "all.count")
	if n >= trialtest.Metric(t, whole, "all.count") || n > float64(seen) || n < float64(seen)*0.9 {
		t.Errorf("%v requests are left of %v; %d came after", n, trialtest.Metric(t, whole, "all.count"), seen)
	}
	if got, want := trialtest.Metric(t, cut, "all.iops"),
		n/(cut.Result.SimulatedS-until); math.Abs(got-want) > 1e-9*want {
		t.Errorf("all.iops %v, want %v", got, want)
	}
	h := cut.Result.Histogram("read.latency")
	if h.Count() != int64(trialtest.Metric(t, cut, "read.count")) {
		t.Errorf("the histogram has %d reads, the count says %v", h.Count(), trialtest.Metric(t, cut, "read.count"))
	}
	for _, w := range []string{"10%", "auto"} {
		if o := trialtest.Run(t, trialtest.Mixed, 1, "measure.warm_up="+w); trialtest.Metric(t, o, "all.count") > 3500 {
			t.Errorf("%s counts too much", w)
		}
	}
}

// TestWarmUpAtEnd verifies that a warm-up is cut however late it ends, and that one that leaves no measurement is an
// error.
func TestWarmUpAtEnd(t *testing.T) {
	whole := trialtest.Run(t, trialtest.Mixed, 1)
	end := whole.Result.SimulatedS
	for _, w := range []string{fmt.Sprintf("%.1fus", end*1e6-30), "99.9%"} {
		o := trialtest.Run(t, trialtest.Mixed, 1, "measure.warm_up="+w)
		if got := o.Result.WarmUp.UntilS; got < 0.98*end || got >= end {
			t.Errorf("%s of %v s was cut at %v s: %v", w, end, got, o.Result.Warnings)
		}
		if n := trialtest.Metric(t, o, "all.count"); n > 100 {
			t.Errorf("%s: %v requests are left", w, n)
		}
	}
	s, err := trialtest.Parse(trialtest.Mixed, fmt.Sprintf("measure.warm_up=%.1fus", end*1e6+1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1}); err == nil ||
		!strings.Contains(err.Error(), "measure.warm_up: ") || !strings.Contains(err.Error(), "measures nothing") {
		t.Errorf("a warm-up beyond the end: %v", err)
	}
}

// TestUntil checks runs that end by time and by precision.
func TestUntil(t *testing.T) {
	o := trialtest.Run(t, trialtest.Mixed, 1, "measure.until=20ms")
	if o.Result.SimulatedS != 0.02 {
		t.Errorf("it ended at %v s", o.Result.SimulatedS)
	}
	if n := trialtest.Metric(t, o, "all.count"); n < 50 || n > 1000 {
		// collection has priority and is active from the start
		t.Errorf("%v requests in 20 ms", n)
	}
	long := strings.Replace(trialtest.Mixed, "requests: 3000", "requests: 300000", 1)
	o = trialtest.Run(t, long, 1, "measure.until=steady")
	if n := trialtest.Metric(t, o, "all.count"); n > 200_000 {
		t.Errorf("steady took %v requests", n)
	}
}

// TestInterrupted verifies that an interrupted run returns the results so far.
func TestInterrupted(t *testing.T) {
	s, err := trialtest.Parse(trialtest.Mixed)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	o, err := trial.Run(ctx, s, experiment.Options{Seed: 1, Sample: func(cosim.Sample) error {
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
	if c := trialtest.Metric(t, o, "all.count"); c < 1000 || c > 1000+drivemeter.InterruptEvery {
		t.Errorf("%v requests were counted", c)
	}
	for _, c := range o.Result.Checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
}

// TestSampleError verifies that a receiver of samples can end the run.
func TestSampleError(t *testing.T) {
	s, err := trialtest.Parse(trialtest.Mixed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = trial.Run(context.Background(), s,
		experiment.Options{Seed: 1, Sample: func(cosim.Sample) error { return os.ErrClosed }})
	if err != os.ErrClosed {
		t.Errorf("error %v", err)
	}
}

// TestOverload verifies that an overloaded drive is reported.
func TestOverload(t *testing.T) {
	o := trialtest.Run(t, `
ssd: mqsim-default
workload: [{synthetic: {reads: {size: 64KiB, interarrival: 1us}, requests: 20000}}]
`, 1)
	if !strings.Contains(strings.Join(o.Result.Warnings, "\n"), "overload") {
		t.Errorf("warnings %q", o.Result.Warnings)
	}
}

// TestLongWaits: the parts of a request's time add up to its latency where the waits of all requests together exceed
// the 106 days that the clock holds.
func TestLongWaits(t *testing.T) {
	o := trialtest.Run(t, `
ssd: {preset: mqsim-default, geometry: {channels: 1, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 1}, timing: {read_latency: 10s}}
workload: [{synthetic: {reads: {size: 8KiB, addresses: {align: 8KiB}, interarrival: 1us}, requests: 3000}}]
`, 1)
	sum := 0.0
	m, _ := o.Result.Matrix("ssd.latency.breakdown")
	for k, part := range m.V[0] {
		if part < 0 {
			t.Errorf("%s takes %v us", m.Cols[k], part)
		}
		sum += part
	}
	if mean := trialtest.Metric(t, o, "read.latency.mean"); mean*3000 < (106*units.Day).Microseconds() ||
		math.Abs(sum/mean-1) > 1e-9 {
		t.Errorf("the parts are %v us together, the mean latency %v us", sum, mean)
	}
}

// TestLocated verifies that errors during a run name the flow and its position.
func TestLocated(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "far.trace"), []byte("0 0 0 8 1\n5 0 99999999999 8 1\n"), 0o666); err !=
		nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad.trace"), []byte("0 0 0 8 1\n5 0 8 zero 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"far.trace": "a.yaml:2:12: workload[0]: " + filepath.Join(dir, "far.trace") + ":2: request 2 is for bytes",
		"bad.trace": "bad.trace:2: ",
	} {
		s, err := scenario.Parse(shape.Source{File: "a.yaml", Dir: dir,
			Text: []byte("ssd: mqsim-default\nworkload: [{trace: {file: " + name + ", format: mqsim}}]\n")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = trial.Run(context.Background(), s, experiment.Options{Seed: 1})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// TestReplay checks scaling, parts and repetitions of a trace.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.trace"),
		[]byte("1000 0 0 8 1\n2000 0 8 8 1\n3000 0 16 8 1\n5000 0 24 8 1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var at []string
	s, err := scenario.Parse(shape.Source{File: "a.yaml", Dir: dir,
		Text: []byte("ssd: mqsim-default\nworkload: [{trace: {file: a.trace, format: mqsim, scale: 10, part: 75%, " +
			"loop: 2}, start: 1ms}]\n")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = trial.Run(context.Background(), s, experiment.Options{Seed: 1, Sample: func(x cosim.Sample) error {
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

// TestUtilisationOfCut verifies that in a run that ends during long operations no resource is busy for longer than the
// run.
func TestUtilisationOfCut(t *testing.T) {
	const text = `
ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 1, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, timing: {program_latency: 2ms}, cache: {mode: 'off'}}
workload: [{synthetic: {writes: {size: 16KiB}, requests: 5000}, closed: 64}]
measure: {until: 10.1ms}
`
	for _, warmUp := range []string{"none", "3.3ms"} {
		o := trialtest.Run(t, text, 1, "measure.warm_up="+warmUp)
		if u := trialtest.Metric(t, o, "ssd.utilisation.die"); u > 1 || u < .9 {
			t.Errorf("warm-up %s: the die is busy for %v of the time", warmUp, u)
		}
	}
}

// TestSmallWrites checks the cost of 4 KiB writes on a saturated drive with pages of 16 KiB: in bytes, four times the
// cost with a map of pages, since each takes a page, and no more with a map of 4 KiB; and that their wait for a place
// in the cache is attributed to that.
func TestSmallWrites(t *testing.T) {
	const text = `
ssd:
  preset: tlc-enterprise
  geometry: {blocks_per_plane: 64, pages_per_block: 16, channels: 2, chips_per_channel: 1}
  over_provisioning: 35%
  cache: {capacity: 1MiB}
  preconditioning: {fill: steady}
workload: [{synthetic: {writes: {size: 4KiB, addresses: {align: 4KiB}}, requests: 6000}, closed: 32}]
`
	for grain, times := range map[string]float64{"page": 4, "4KiB": 1} {
		o := trialtest.Run(t, text, 1, "ssd.mapping.grain="+grain)
		pages, host := trialtest.Metric(t, o, "ssd.waf"), trialtest.Metric(t, o, "ssd.writes.host")
		want := pages * host * 16384 / (6000 * 4096)
		got := trialtest.Metric(t, o, "ssd.waf.bytes")
		if math.Abs(got-want) > 1e-9*want || pages < 1.2 || got < .85*times*pages || got > times*pages {
			t.Errorf("a map of %s: write amplification %v in pages, %v in bytes, want %v", grain, pages, got, want)
		}
	}
	o := trialtest.Run(t, text, 1)
	x, _ := o.Result.Matrix("ssd.latency.breakdown")
	part := map[string]float64{}
	sum := 0.0
	for i, c := range x.Cols {
		part[c] = x.V[1][i]
		sum += x.V[1][i]
	}
	if mean := trialtest.Metric(t, o, "write.latency.mean"); math.Abs(sum-mean) > .02*mean ||
		part["cache"] < .9*mean || part["dram"] > .05*mean {
		t.Errorf("a mean write of %v us is %v", mean, part)
	}
}

// TestRunFull verifies that a drive with MQSim's rules that runs full is reported with its position, and that the
// remedy in the error helps.
func TestRunFull(t *testing.T) {
	const text = `name: full
ssd:
  compat: mqsim
  preset: mqsim-default
  geometry: {channels: 2, chips_per_channel: 1, dies_per_chip: 1, planes_per_die: 1, blocks_per_plane: 48, pages_per_block: 32, page_size: 8KiB}
  mapping: {cmt_capacity: 16KiB}
  cache: {capacity: 1MiB}
  over_provisioning: 12%
workload:
  - mqsim: {reads: 0%, size: 8KiB, align: 8KiB, requests: 100000}
    closed: 16
`
	for _, c := range []struct{ change, want string }{
		{"", "small.yaml:3:11: ssd.compat: mqsim: drive 0 is full at "},
		{"measure.until=10s", ""},
		{"workload[0].mqsim.requests=1000", ""},
	} {
		var changes []shape.Change
		if c.change != "" {
			x, err := shape.ParseChange(c.change)
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, x)
		}
		s, err := scenario.Parse(shape.Source{File: "small.yaml", Text: []byte(text)}, changes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = trial.Run(t.Context(), s, experiment.Options{Seed: 1})
		if c.want == "" && err != nil ||
			c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "never complete")) {
			t.Errorf("%s: %v", c.change, err)
		}
	}
}
