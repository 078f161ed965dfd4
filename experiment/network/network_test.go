package network_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/sim"
)

// TestNetworkPresets runs the network presets and verifies that all flows complete, and that every check holds.
func TestNetworkPresets(t *testing.T) {
	n := 0
	for _, p := range scenario.Presets() {
		text, err := scenario.PresetText(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, "\nfabric:") || strings.Contains(text, "\ntargets:") {
			continue
		}
		n++
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			o := trialtest.Run(t, text, 1)
			if trialtest.Metric(t, o, "flow.count") == 0 || trialtest.Metric(t, o, "flow.unfinished") != 0 ||
				trialtest.Metric(t, o, "fabric.drops") != 0 {
				t.Errorf("%g flows ended, %g did not, %g packets were lost", trialtest.Metric(t, o, "flow.count"),
					trialtest.Metric(t, o, "flow.unfinished"), trialtest.Metric(t, o, "fabric.drops"))
			}
			if p.Description == "" {
				t.Error("no description")
			}
		})
	}
	if n < 4 {
		t.Errorf("%d presets are networks", n)
	}
}

// TestFlowsAndPauses verifies that reported flows and pauses agree with the figures, and that reporting them does not
// change the digest.
func TestFlowsAndPauses(t *testing.T) {
	text := trialtest.SmallFabric + "measure: {flows: true, pauses: true}\n"
	text = strings.Replace(text, "10KB", "1MB", 1)
	text = strings.Replace(text, "host_link: 40Gbps", "host_link: 40Gbps\n  buffer: 1MiB\n  congestion_control: none",
		1)
	s, err := trialtest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	flows, begun, ended := 0, 0, 0
	o, err := trial.Run(t.Context(), s, experiment.Options{Seed: 1, Flow: func(f experiment.Flow) error {
		flows++
		if f.Dst != 0 || f.Size != 1e6 || f.FCT < f.Ideal {
			t.Errorf("%+v", f)
		}
		return nil
	}, Pause: func(p experiment.Pause) error {
		if p.Switch || p.Port != 1 {
			t.Errorf("%+v", p)
		}
		if p.Resume {
			ended++
		} else {
			begun++
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if flows != int(trialtest.Metric(t, o, "flow.count")) || begun == 0 || begun != ended {
		t.Errorf("%d flows, %d pauses, %d of them ended", flows, begun, ended)
	}
	one, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	s.Measure.Flows, s.Measure.Pauses = false, false
	if two, err := s.Digest(); err != nil || one != two {
		t.Errorf("digest %s becomes %s, %v", one, two, err)
	}
	stop := errors.New("enough")
	if _, err := trial.Run(t.Context(), s,
		experiment.Options{Seed: 1, Flow: func(experiment.Flow) error { return stop }}); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
}

// TestParts verifies that a network yields the same bytes in any number of parts, including pauses and flows.
func TestParts(t *testing.T) {
	for _, c := range []struct{ name, more, measure string }{
		{"dcqcn", "congestion_control: dcqcn", ""},
		{"cut", "congestion_control: dcqcn", ", until: 170us"},
		{"hpcc", "congestion_control: hpcc", ""},
		{"pint", "congestion_control: hpcc-pint", ""},
		{"swift", "congestion_control: swift", ""},
		{"pauses", "congestion_control: none, buffer: 1MiB", ""},
		{"stuck", "congestion_control: none, buffer: 1MiB, watchdog: {after: 20us}", ""},
		{"lost", "congestion_control: dctcp, pfc: {enabled: false}, buffer: 200KB, recovery: {kind: selective-repeat}", ""},
		{"messages", "congestion_control: timely, queue_pairs: {life: per-message}, acks: {every: 4}", ""},
		{"hpcc compat", "compat: hpcc, random: own, congestion_control: dcqcn", ""},
		{"failures", "congestion_control: hpcc-pint, queue_pairs: {life: per-message}, failures: [{a: h3, b: tor1, " +
			"at: 60us, until: 200us}, {a: tor2, b: leaf2, at: 100us}]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Negative counts use threads. Every number of parts is tried for two of the cases, and at night for all.
			counts := []int{1, 2, 3, 0, 7, -2, -4}
			two := c.name == "hpcc" || c.name == "pauses"
			switch {
			case testing.Short() && !two:
				t.Skip("two of them are enough for a short test")
			case testing.Short():
				counts = []int{1, 2, -3}
			case !long && !two:
				counts = []int{1, 3, -4}
			}
			text := fmt.Sprintf(`name: parts
fabric: {topology: {clos: {pods: 4, leaves: 2, tors: 2, hosts_per_pod: 4, spines: 2}}, %s}
flows:
  - poisson: {load: 60%%, sizes: alistorage-2019, duration: 300us}
  - incast: {fan: 12, size: 100KB, rounds: 2, every: 100us, target: 1}
  - class: 5
    permutation: {size: 30KB}
measure: {warm_up: 50us%s}
`, c.more, c.measure)
			var want []byte
			for _, parts := range counts {
				s, err := scenario.Parse(shape.Source{File: "parts.yaml", Text: []byte(text)},
					[]shape.Change{{Path: "fabric.parts", Value: fmt.Sprint(max(parts, 0))},
						{Path: "fabric.threads", Value: fmt.Sprint(max(-parts, 1))}})
				if err != nil {
					t.Fatal(err)
				}
				var b bytes.Buffer
				out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 3,
					Flow:  func(f experiment.Flow) error { _, err := fmt.Fprintln(&b, f); return err },
					Pause: func(p experiment.Pause) error { _, err := fmt.Fprintln(&b, p); return err }})
				if err != nil {
					t.Fatal(err)
				}
				if !out.Result.OK() {
					t.Errorf("%d parts: %v", parts, out.Result.Checks)
				}
				text, err := out.Result.Encode()
				if err != nil {
					t.Fatal(err)
				}
				b.Write(text)
				// Without a receiver, flows are forgotten as they complete.
				if out, err = trial.Run(context.Background(), s, experiment.Options{Seed: 3}); err != nil {
					t.Fatal(err)
				}
				if brief, err := out.Result.Encode(); err != nil || !bytes.Equal(brief, text) {
					t.Errorf("%d parts: another result when flows are forgotten (%v)", parts, err)
				}
				switch {
				case want == nil:
					want = b.Bytes()
				case !bytes.Equal(want, b.Bytes()):
					t.Errorf("%d parts give another result than one", parts)
				}
			}
		})
	}
}

// TestThreads verifies that threads beyond the number of processors are not used, and that the run reports it with an
// unchanged result.
func TestThreads(t *testing.T) {
	text := "name: threads\nfabric: {topology: {clos: {pods: 4, leaves: 1, tors: 1, hosts_per_pod: 2, spines: 1}}, " +
		"threads: 3}\nflows: [{all_to_all: {size: 100KB}}]\n"
	var want []byte
	for _, procs := range []int{1, 2, 4} {
		was := runtime.GOMAXPROCS(procs)
		o := trialtest.Run(t, text, 1)
		runtime.GOMAXPROCS(was)
		said := strings.Contains(strings.Join(o.Remarks, "\n"), fmt.Sprintf("fabric.threads: %d of 3 are used", procs))
		if said != (procs < 3) {
			t.Errorf("%d processors: %q", procs, o.Remarks)
		}
		b, err := o.Result.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = b
		}
		if !bytes.Equal(want, b) {
			t.Errorf("another result on %d processors", procs)
		}
	}
}

// TestSevered verifies that flows whose hosts are disconnected by a link failure are counted and reported, and that the
// run ends. If only the completion of all flows can end it, that is a failure.
func TestSevered(t *testing.T) {
	const text = "name: severed\nfabric: {topology: {star: {hosts: 3}}, failures: [{a: h0, b: s0, at: " +
		"10us}]}\nflows: [{list: [{src: 0, dst: 1, size: 1MB}, {src: 2, dst: 1, size: 1MB}, {src: 1, dst: 0, size: " +
		"1MB, start: 50us}]}]\n"
	for _, keep := range []func(experiment.Flow) error{nil, func(experiment.Flow) error { return nil }} {
		s, err := trialtest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		o, err := trial.Run(t.Context(), s, experiment.Options{Seed: 1, Flow: keep})
		if err != nil {
			t.Fatal(err)
		}
		last := o.Result.Checks[len(o.Result.Checks)-1]
		if want := "h0 cannot be reached; the link between h0 and s0 is down for good since 10us: 2 messages did not " +
			"end (1MB from h0 to h1 since 0s; 1MB from h1 to h0 since 50us)"; last.OK ||
			last.Name != "every flow ends" || last.Detail != want {
			t.Errorf("%+v", last)
		}
	}
	o := trialtest.Run(t, text+"measure: {until: 2ms}\n", 1)
	if trialtest.Metric(t, o, "flow.unfinished") != 2 || trialtest.Metric(t, o, "flow.count") != 1 {
		t.Errorf("%g flows ended, %g did not", trialtest.Metric(t, o, "flow.count"),
			trialtest.Metric(t, o, "flow.unfinished"))
	}
	if said := strings.Join(o.Result.Warnings, "\n"); !strings.Contains(said,
		"packets lost: the link went down") {
		t.Error(said)
	}
}

// TestLossyPauses verifies that a link that corrupts packets also corrupts pause frames, so that packets overflow the
// buffer in the meantime. That is not a fault of the model.
func TestLossyPauses(t *testing.T) {
	o := trialtest.Run(t,
		"name: lossy\nfabric: {topology: {star: {hosts: 16}}, loss: 2%, congestion_control: none, buffer: "+
			"4MiB}\nflows: [{incast: {fan: 15, size: 2MB}}]\nmeasure: {until: 20ms}\n", 1)
	if trialtest.Metric(t, o, "fabric.drops") == 0 ||
		!strings.Contains(strings.Join(o.Result.Warnings, "\n"), "no room") {
		t.Errorf("%g packets dropped, %q", trialtest.Metric(t, o, "fabric.drops"), o.Result.Warnings)
	}
}

// TestEndOfFlows verifies that a run whose flows complete before measure.until ends with the last of them: its figures
// are those of a run without a time limit.
func TestEndOfFlows(t *testing.T) {
	const text = "name: ends\nfabric: {topology: {star: {hosts: 4}}, host_link: 100Gbps, congestion_control: " +
		"none}\nflows: [{list: [{src: 0, dst: 1, size: 100KB}]}]\n"
	want, got := trialtest.Run(t, text, 1), trialtest.Run(t, text+"measure: {until: 1ms}\n", 1)
	if got.Result.SimulatedS != want.Result.SimulatedS {
		t.Errorf("%g s, without until %g s", got.Result.SimulatedS, want.Result.SimulatedS)
	}
	for _, name := range []string{"fabric.goodput", "fabric.utilisation.max"} {
		if a, b := trialtest.Metric(t, want, name), trialtest.Metric(t, got, name); a != b {
			t.Errorf("%s is %g without until, %g with it", name, a, b)
		}
	}
}

// TestGoodputOfPlanes verifies that a host with a link to each plane has a single goodput, the sum over all of them.
func TestGoodputOfPlanes(t *testing.T) {
	o := trialtest.Run(t,
		"name: planes\nfabric: {topology: {star: {hosts: 4}, planes: 2}, host_link: 10Gbps, congestion_control: "+
			"none}\nflows: [{all_to_all: {size: 200KB}}]\n", 1)
	m, ok := o.Result.Matrix("fabric.host.goodput")
	if !ok || !slices.Equal(m.Rows, []string{"h0", "h1", "h2", "h3"}) {
		t.Fatalf("rows %q", m.Rows)
	}
	sum := 0.0
	for _, v := range m.V {
		sum += v[0]
	}
	if want := 12 * 200e3 * 8 / o.Result.SimulatedS; math.Abs(sum-want) > 1e-6*want {
		t.Errorf("%g bit/s reach hosts, want %g", sum, want)
	}
}

// TestSwiftsTarget: a target delay is warned of exactly up to the round trip of an empty path that flows use, which a
// flow of one packet takes. The idle far pair does not count.
func TestSwiftsTarget(t *testing.T) {
	run := func(target, dst string) (string, experiment.Flow) {
		s, err := trialtest.Parse("fabric:\n  topology: {links: [{a: h0, b: s0, delay: 5us}, {a: h1, b: s0, delay: 5us}, " +
			"{a: h2, b: s0, delay: 50us}]}\n  congestion_control: {algorithm: swift, swift: {target_delay: " + target +
			"}}\nflows: [{list: [{src: 0, dst: " + dst + ", size: 1KiB}]}]\n")
		if err != nil {
			t.Fatal(err)
		}
		var flow experiment.Flow
		o, err := trial.Run(t.Context(), s, experiment.Options{Seed: 1, Flow: func(f experiment.Flow) error {
			flow = f
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(o.Result.Warnings, "\n"), flow
	}
	_, flow := run("100us", "1")
	exact := flow.FCT - units.Microsecond // target_per_hop
	for _, x := range []struct {
		target sim.Time
		dst    string
		warns  bool
	}{{exact, "1", true}, {exact + 1, "1", false}, {exact + 1, "2", true}} {
		text, _ := run(fmt.Sprintf("%dps", x.target), x.dst)
		if got := strings.Contains(text, "not above the round trip of an empty path"); got != x.warns {
			t.Errorf("%v to h%s: %q", x.target, x.dst, text)
		}
		if x.warns && x.dst == "1" && !strings.Contains(text, fmt.Sprintf("%v from h0 to h1", flow.FCT)) {
			t.Errorf("%q does not have %v", text, flow.FCT)
		}
		if x.warns && x.dst == "1" && !strings.Contains(text, "use a target_delay of 20us") {
			t.Errorf("%q", text)
		}
	}
}
