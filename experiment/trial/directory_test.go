package trial_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/result/columnar"
	"farflash/scenario"
)

// written writes a scenario's run directory, and reads it back.
func written(t *testing.T, text string, set ...string) *result.Run {
	t.Helper()
	s, err := trialtest.Parse(text, set...)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(t.TempDir(), "run")
	d, err := result.Create(place)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Discard()
	w := trial.Writer{Version: "v", CommandLine: "farflash run", Parallel: 3}
	run, out, err := w.Write(t.Context(), trial.Trial{Scenario: s, Digest: digest, Seed: 5}, d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Commit(); err != nil {
		t.Fatal(err)
	}
	back, err := result.Load(place)
	if err != nil {
		t.Fatal(err)
	}
	if back.Result.Seed != 5 || back.Result.Digest != digest || back.Scenario != s.Resolved() ||
		back.Timing.CommandLine != "farflash run" || back.Timing.Parallel != 3 {
		t.Errorf("read back: seed %d, digest %s, %+v", back.Result.Seed, back.Result.Digest, back.Timing)
	}
	if off := math.Abs(back.Timing.EventsPerS*back.Timing.WallS - float64(out.Events)); off > 1 || out.Events == 0 ||
		run.Result.Version != "v" {
		t.Errorf("%d events, %+v", out.Events, back.Timing)
	}
	return back
}

// rowsOf reads one of a run's tables.
func rowsOf[R any](t *testing.T, run *result.Run, name string,
	read func(io.ReaderAt, int64, func(R) error) error) (out []R) {
	t.Helper()
	f, err := os.Open(filepath.Join(run.Path, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := read(f, s.Size(), func(r R) error { out = append(out, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// metric returns a metric of a run.
func metric(t *testing.T, r *result.Run, name string) float64 {
	t.Helper()
	m, ok := r.Result.Metric(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return m.Value
}

// near compares two figures.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %v by the rows, %v by the metrics", what, got, want)
	}
}

// TestRequestTables verifies that the rows of requests.parquet agree with the metrics, for local drives and systems,
// with tenants and without.
func TestRequestTables(t *testing.T) {
	for _, x := range []struct {
		name, text string
		set        []string
		local      bool
	}{
		{"drive", trialtest.Mixed, []string{"workload[0].tenant=web", "measure.warm_up=0s", "measure.anatomy=true"},
			true},
		{"system", trialtest.SmallSystem,
			[]string{"workload[0].synthetic.writes={size: 4KiB, interarrival: 20us}", "measure.warm_up=0s"}, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			run := written(t, x.text, append(x.set, "measure.requests=true")...)
			var count, bytes, took = map[string]float64{}, map[string]float64{}, map[string]*stats.Histogram{}
			staged, blocked := 0, 0
			for _, q := range rowsOf(t, run, result.RequestsFile, columnar.ReadRequests) {
				for _, op := range []string{q.Op, "all"} {
					if took[op] == nil {
						took[op] = &stats.Histogram{}
					}
					count[op]++
					bytes[op] += float64(q.Size)
					took[op].Record(q.Completion - q.Arrival)
				}
				if x.local {
					var sum units.Duration
					for _, d := range q.Local {
						sum += max(d, 0)
					}
					if q.Local[0] != columnar.Absent {
						if staged++; sum != q.Completion-q.Arrival {
							t.Fatalf("request %d took %v, its stages in the drive %v", q.ID, q.Completion-q.Arrival,
								sum)
						}
					}
					if q.BlockedBy != "" {
						blocked++
					}
					if want := []string{"web", "writes"}[min(q.Workload, 1)]; q.Workload == 0 && q.Tenant != want {
						t.Fatalf("request %d of item %d is of tenant %q", q.ID, q.Workload, q.Tenant)
					}
					if q.NetworkArrival != columnar.Absent || q.Stage[0] != columnar.Absent {
						t.Fatalf("request %d to a local drive was in a network: %+v", q.ID, q)
					}
				} else if q.NetworkArrival == columnar.Absent || q.NetworkDeparture <= q.NetworkArrival {
					t.Fatalf("request %d to a target was in the network from %v to %v", q.ID, q.NetworkArrival,
						q.NetworkDeparture)
				}
			}
			for _, op := range []string{"read", "write", "all"} {
				near(t, op+"s", count[op], metric(t, run, op+".count"))
				near(t, op+" bytes", bytes[op], metric(t, run, op+".bytes"))
				near(t, op+" latency", took[op].Mean()/1e6, metric(t, run, op+".latency.mean"))
				near(t, op+" deviation", took[op].StdDev()/1e6, metric(t, run, op+".latency.stddev"))
				near(t, op+" longest", took[op].Max().Microseconds(), metric(t, run, op+".latency.max"))
			}
			if x.local && (staged == 0 || blocked == 0) {
				t.Errorf("%d rows have stages, %d what stood in their way", staged, blocked)
			}
		})
	}
}

// TestDatalessRows verifies that requests without data have no times in the network, for a system and a drive.
func TestDatalessRows(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "all.log"), []byte(everyOperation), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, network := range []bool{false, true} {
		text := "ssd: mqsim-default\n"
		if network {
			text = "targets: [{ssds: 1, ssd: mqsim-default}]\n"
		}
		run := written(t, text+"workload: [{trace: {file: "+filepath.Join(dir, "all.log")+
			", format: fio}}]\nmeasure: {requests: true}\n")
		seen := map[string]bool{}
		for _, q := range rowsOf(t, run, result.RequestsFile, columnar.ReadRequests) {
			seen[q.Op] = true
			there := q.NetworkArrival != columnar.Absent
			if there != (q.NetworkDeparture != columnar.Absent) ||
				there != (network && (q.Op == "read" || q.Op == "write")) {
				t.Errorf("network %v: a %s was in it from %v to %v", network, q.Op, q.NetworkArrival,
					q.NetworkDeparture)
			}
		}
		for _, op := range []string{"read", "write", "trim", "flush"} {
			if !seen[op] {
				t.Errorf("network %v: there is no %s", network, op)
			}
		}
	}
}

// TestNetworkTables verifies that flows.parquet and pauses.parquet agree with the metrics of flows and pauses.
func TestNetworkTables(t *testing.T) {
	run := written(t, trialtest.SmallFabric, "flows[0].incast.size=1MB", "fabric.pfc.threshold=20KB",
		"measure.flows=true", "measure.pauses=true", "measure.timeline=true")
	n, sum, bytes := 0.0, 0.0, 0.0
	for _, f := range rowsOf(t, run, result.FlowsFile, columnar.ReadFlows) {
		if f.FCT == columnar.Absent {
			continue
		}
		if f.FCT < f.Ideal/2 || f.Src == f.Dst {
			t.Errorf("flow %d: %+v", f.ID, f)
		}
		n++
		sum += f.FCT.Microseconds()
		bytes += float64(f.Size)
	}
	near(t, "flows", n, metric(t, run, "flow.count"))
	near(t, "mean time of a flow", sum/n, metric(t, run, "flow.fct.mean"))
	pauses := 0.0
	type port struct{ node, port, class int32 }
	held := map[port]bool{}
	for _, x := range rowsOf(t, run, result.PausesFile, columnar.ReadPauses) {
		p := port{x.Node, x.Port, x.Class}
		if !x.Resume {
			pauses++
		} else if !held[p] {
			t.Errorf("%v goes on at %v, and was not paused", p, x.Time)
		}
		held[p] = !x.Resume
	}
	if want := metric(t, run, "fabric.pause.count"); want == 0 || pauses > want {
		t.Errorf("%v pauses, %v by the metrics", pauses, want)
	}
	if s, err := os.Stat(filepath.Join(run.Path, result.TimelineFile)); err != nil || s.Size() < 1000 {
		t.Errorf("the timeline: %+v, %v", s, err)
	}
}

// TestChunkTable verifies that chunks.parquet agrees with the metrics of puts and gets.
func TestChunkTable(t *testing.T) {
	run := written(t, "object_cluster: {gateways: 6, targets: 18, chunk: 64KiB, reads: 50%, protocol: "+
		"pull}\nmeasure: {until: 20ms, warm_up: 0s, requests: true}\n")
	n, sum := map[string]float64{}, map[string]float64{}
	for _, c := range rowsOf(t, run, result.ChunksFile, columnar.ReadChunks) {
		n[c.Op]++
		sum[c.Op] += (c.Done - c.Begun).Microseconds()
		if c.Size != 65536 || c.Gateway < 0 || c.Gateway >= 6 || c.Target >= 18 {
			t.Fatalf("%+v", c)
		}
	}
	for _, op := range []string{"put", "get"} {
		near(t, op+"s", n[op], metric(t, run, "cluster."+op+".count"))
		near(t, op+" latency", sum[op]/n[op], metric(t, run, "cluster."+op+".latency.mean"))
	}
}

// TestAskedForNothing verifies that a run without requested tables has none.
func TestAskedForNothing(t *testing.T) {
	run := written(t, trialtest.Mixed)
	for _, name := range []string{result.RequestsFile, result.ChunksFile, result.FlowsFile, result.PausesFile,
		result.TimelineFile, result.ReportFile} {
		if _, err := os.Stat(filepath.Join(run.Path, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWriterFails verifies that a failure to write a table or the page is an error, and leaves no run.
func TestWriterFails(t *testing.T) {
	s, err := trialtest.Parse(trialtest.Mixed, "measure.requests=true")
	if err != nil {
		t.Fatal(err)
	}
	x := trial.Trial{Scenario: s, Seed: 1}
	begin := func() *result.Directory {
		d, err := result.Create(filepath.Join(t.TempDir(), "run"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Discard() })
		return d
	}
	network, err := trialtest.Parse(trialtest.SmallFabric, "measure.flows=true", "measure.pauses=true",
		"measure.timeline=true")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := trialtest.Parse(trialtest.SmallCluster, "measure.requests=true")
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*scenario.Scenario{result.RequestsFile: s, result.FlowsFile: network,
		result.PausesFile: network, result.TimelineFile: network, result.ChunksFile: cluster} {
		d := begin()
		if err := d.Write(name, nil); err != nil { // where the table would be
			t.Fatal(err)
		}
		if run, _, err := (&trial.Writer{}).Write(t.Context(), trial.Trial{Scenario: s, Seed: 1}, d); run != nil ||
			!errors.Is(err, os.ErrExist) {
			t.Errorf("%s that is there already: %v", name, err)
		}
	}
	torn := errors.New("torn")
	if run, _, err := (&trial.Writer{Page: func(*result.Run) (string, error) { return "", torn }}).Write(t.Context(),
		x, begin()); run != nil || !errors.Is(err, torn) {
		t.Errorf("a page that tears: %v", err)
	}
	run, _, err := (&trial.Writer{Page: func(r *result.Run) (string, error) {
		return "page of " + r.Result.Digest,
			nil
	}}).Write(t.Context(), x, begin())
	if err != nil || run.Report != "page of "+run.Result.Digest {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestSimulate verifies that an interrupted trial has no result, and neither has one whose model panics, whose position
// is reported.
func TestSimulate(t *testing.T) {
	s, err := trialtest.Parse(trialtest.Mixed)
	if err != nil {
		t.Fatal(err)
	}
	r, err := trial.Simulate(t.Context(), trial.Trial{Scenario: s, Seed: 9}, experiment.Options{Seed: 1, Version: "v"})
	if err != nil || r.Seed != 9 || r.Version != "v" || !r.OK() {
		t.Errorf("%+v, %v", r, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := trial.Simulate(ctx, trial.Trial{Scenario: s, Seed: 9}, experiment.Options{}); r != nil ||
		!errors.Is(err, trial.ErrInterrupted) {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := trial.Simulate(t.Context(), trial.Trial{}, experiment.Options{}); r != nil || err == nil {
		t.Errorf("no scenario: %v, %v", r, err)
	}
}
