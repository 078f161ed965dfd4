package accounts_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/accounts"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/internal/inputs"
	"farflash/model/cosim"
	"farflash/numeric/stats"
	"farflash/numeric/units"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/convert"
	"farflash/scenario/shape"
)

// tenants are three workloads of two tenants.
const tenants = `
ssd: {preset: mqsim-default, geometry: {blocks_per_plane: 64, pages_per_block: 64}, over_provisioning: 25%, cache: {capacity: 1MiB}, preconditioning: {fill: steady}}
workload:
  - name: reads
    tenant: web
    synthetic: {reads: {size: 4KiB, interarrival: {mean: 60us, scv: 4}}, requests: 2000}
  - name: writes
    synthetic: {writes: {size: 8KiB, interarrival: 400us, addresses: {align: 8KiB}}, requests: 300}
  - tenant: web
    synthetic: {reads: {size: 16KiB, interarrival: 200us}, writes: {size: 4KiB, interarrival: 500us}, requests: 800}
`

func metric(t *testing.T, r *result.Result, name string) float64 {
	t.Helper()
	m, ok := r.Metric(name)
	if !ok {
		t.Fatalf("no metric %s", name)
	}
	return m.Value
}

// TestPartsAreTheWhole verifies that parts add up to the whole, including distributions, for any warm-up and any number
// of merged slices.
func TestPartsAreTheWhole(t *testing.T) {
	for _, warmUp := range []string{"none", "30ms", "25%", "auto"} {
		r := trialtest.Run(t, tenants, 1, "measure.warm_up="+warmUp).Result
		want := []result.Parts{{Scope: "workload", Names: []string{"reads", "writes", "workload[2]"}},
			{Scope: "tenant", Names: []string{"web", "writes"}}}
		if !reflect.DeepEqual(r.Parts, want) {
			t.Errorf("parts %v", r.Parts)
		}
		for _, p := range r.Parts {
			for _, op := range []string{"read", "write"} {
				var all stats.Histogram
				count, iops := 0.0, 0.0
				for i := range p.Names {
					name := fmt.Sprintf("%s[%d].%s", p.Scope, i, op)
					h := r.Histogram(name + ".latency")
					if h == nil {
						continue
					}
					all.Merge(h)
					count += metric(t, r, name+".count")
					iops += metric(t, r, name+".iops")
					if got := metric(t, r, name+".latency.mean"); got != h.Mean()/1e6 {
						t.Errorf("%s: mean %v, of the distribution %v", name, got, h.Mean()/1e6)
					}
				}
				if !reflect.DeepEqual(all.State(), r.Histogram(op+".latency").State()) {
					t.Errorf("warm-up %s: %ss of each %s do not add up to all", warmUp, op, p.Scope)
				}
				if whole := metric(t, r, op+".iops"); count != metric(t, r, op+".count") ||
					math.Abs(iops-whole) > 1e-9*whole {
					t.Errorf("warm-up %s: %ss by %s: %v, %v a second of %v", warmUp, op, p.Scope, count, iops, whole)
				}
			}
		}
		a, b := metric(t, r, "tenant[0].all.bandwidth"), metric(t, r, "tenant[1].all.bandwidth")
		if got, want := metric(t, r, "fairness.bandwidth"), (a+b)*(a+b)/(2*(a*a+b*b)); math.Abs(got-want) > 1e-12 {
			t.Errorf("fairness %v, want %v", got, want)
		}
	}
}

// TestOneWorkload verifies that a single workload has no parts.
func TestOneWorkload(t *testing.T) {
	r := trialtest.Run(t,
		"ssd: "+trialtest.TinyDrive+"\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 50}, closed: 2}]\n",
		1).Result
	for _, m := range r.Metrics {
		if strings.Contains(m.Name, "[") || strings.HasPrefix(m.Name, "fairness") {
			t.Errorf("there is %s", m.Name)
		}
	}
}

// TestVolumes verifies that the volumes of a trace are distinguished by name, in order of appearance.
func TestVolumes(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "%d,usr,%d,Read,%d,4096,100\n", 128166372000000000+int64(i)*1000, []int{7, 2, 7}[i%3], i*4096)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.csv"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(shape.Source{File: "a.yaml", Dir: dir,
		Text: []byte("ssd: tlc-enterprise\nworkload: [{trace: {file: a.csv, format: msr}}]\n")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if want := []result.Parts{{Scope: "volume",
		Names: []string{"usr,7", "usr,2"}}}; !reflect.DeepEqual(out.Result.Parts, want) {
		t.Errorf("%v", out.Result.Parts)
	}
	if a, b := metric(t, out.Result, "volume[0].read.count"),
		metric(t, out.Result, "volume[1].read.count"); a != 200 || b != 100 {
		t.Errorf("%v and %v reads", a, b)
	}
}

// TestInitiators verifies that a system's initiators have their own figures, and rows name their owner.
func TestInitiators(t *testing.T) {
	s, err := trialtest.Parse(trialtest.SmallSystem, "workload[0].tenant=web", "route.initiator=each")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[int32]int{}
	out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1, Sample: func(x cosim.Sample) error {
		rows[x.Trip.Initiator]++
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if n := metric(t, out.Result, fmt.Sprintf("initiator[%d].read.count", i)); n != 100 || rows[int32(i)] != 100 {
			t.Errorf("initiator %d has %v reads, %d rows", i, n, rows[int32(i)])
		}
	}
}

// TestManyParts verifies that parts beyond the limit are counted and reported.
func TestManyParts(t *testing.T) {
	text := "ssd: tlc-enterprise\nworkload:\n" +
		strings.Repeat("- {synthetic: {reads: {size: 4KiB}, requests: 2}, closed: 1}\n", accounts.MostParts+4)
	r := trialtest.Run(t, text, 1).Result
	if _, ok := r.Metric(fmt.Sprintf("workload[%d].read.count", accounts.MostParts)); ok ||
		!strings.Contains(strings.Join(r.Warnings, "\n"),
			"figures per workload cover only the first 256; 8 requests belong to the rest") {
		t.Errorf("%q", r.Warnings)
	}
}

// TestAlone verifies that two tenants with one request each outstanding on a drive with one die wait for each other, so
// that sharing doubles their times; a tenant alone is a separate run.
func TestAlone(t *testing.T) {
	const drive = "ssd: {preset: mqsim-default, geometry: {channels: 1, chips_per_channel: 1, dies_per_chip: 1, " +
		"planes_per_die: 1}, mapping: {ideal: true}, cache: {mode: 'off'}}\n"
	const one = "- {name: a, synthetic: {reads: {size: 8KiB, addresses: {align: 8KiB}}, requests: 400}, closed: 1}\n"
	const two = "- {name: b, synthetic: {reads: {size: 8KiB, addresses: {align: 8KiB}}, requests: 400}, closed: 1}\n"
	r := trialtest.Run(t, drive+"workload:\n"+one+two, 1, "measure.alone=true").Result
	for i := range 2 {
		if v := metric(t, r, fmt.Sprintf("workload[%d].slowdown.mean", i)); v < 1.6 || v > 2.02 {
			t.Errorf("slowdown of %d is %v", i, v)
		}
	}
	if f := metric(t, r, "fairness.slowdown"); f < 0.97 || f > 1 {
		t.Errorf("fairness of slowdown %v", f)
	}
	by := trialtest.Run(t, drive+"workload:\n"+one, 1).Result
	if got, want := metric(t, r, "workload[0].alone.latency.mean"), metric(t, by, "all.latency.mean"); got != want {
		t.Errorf("a takes %v alone, its own run says %v", got, want)
	}
	without := trialtest.Run(t, drive+"workload:\n"+one+two, 1).Result
	if got, want := metric(t, r, "workload[1].read.latency.p99"),
		metric(t, without, "workload[1].read.latency.p99"); got != want {
		t.Errorf("runs alone change the run itself: %v and %v", got, want)
	}
	for set, want := range map[string]string{
		drive + "workload:\n" + one: "measure.alone: the only tenant is alone already",
		trialtest.SmallFabric:       "measure.alone: a network alone has no tenants",
		"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: tlc-enterprise}]\nprotocol: flows\ncoupling: {mode: " +
			"iterative}\nworkload:\n" +
			strings.Repeat("- {synthetic: {reads: {size: 32KiB, interarrival: 20us}, requests: 100}}\n",
				2): "measure.alone: drives and network in turns",
	} {
		if _, err := trialtest.Parse(set, "measure.alone=true"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestAloneOverNetwork verifies that a tenant with many reads slows another down across the network too, and not vice
// versa.
func TestAloneOverNetwork(t *testing.T) {
	r := trialtest.Run(t, `initiators: 2
targets: [{count: 1, ssds: 2, ssd: tlc-enterprise}]
workload:
- {tenant: small, synthetic: {reads: {size: 4KiB, interarrival: {mean: 40us, kind: exponential}}, requests: 1000}}
- {tenant: scan, synthetic: {reads: {size: 256KiB, addresses: {align: 256KiB}}}, closed: 16, until: 40ms}
`, 1, "measure.alone=true").Result
	small, scan := metric(t, r, "tenant[0].slowdown.mean"), metric(t, r, "tenant[1].slowdown.mean")
	if small < 1.5 || scan > 1.1 {
		t.Errorf("slowdowns %v and %v", small, scan)
	}
}

// TestPeersFlows compares each flow's figures with those of MQSim, whose flows keep the order of its file.
func TestPeersFlows(t *testing.T) {
	dir := inputs.Path(t, "cases/mqsim/A09_two_flows_prio_qfs16")
	c, err := convert.FromMQSim(filepath.Join(dir, "ssdconfig.xml"), filepath.Join(dir, "workload.xml"), 1,
		scenario.CompatMQSim)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(shape.Source{File: "a09.yaml", Text: []byte(c.Scenario.Resolved())}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := trial.Run(context.Background(), s, experiment.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ mean, least, most units.Duration }{{555407187, 98783000, 1104185000},
		{714144642, 89914000, 3189188000}} {
		h := out.Result.Histogram(fmt.Sprintf("workload[%d].read.latency", i))
		if h == nil || h.Count() != 50000 || units.Duration(h.Mean()) != want.mean ||
			h.Min()/units.Nanosecond != want.least/units.Nanosecond ||
			h.Max()/units.Nanosecond != want.most/units.Nanosecond {
			t.Errorf("flow %d: mean %v, %v to %v; want %v, %v to %v", i, units.Duration(h.Mean()), h.Min(), h.Max(),
				want.mean, want.least, want.most)
		}
	}
}

// TestJain verifies that the index is 1 for equal shares, 1/n if one has all, and k/n if k of n share equally.
func TestJain(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{[]float64{3, 3, 3}, 1}, {[]float64{5, 0, 0, 0}, 0.25}, {[]float64{2, 2, 0, 0, 0}, 0.4}, {[]float64{1, 3}, 0.8}} {
		if got, ok := accounts.Jain(c.x); !ok || math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%v: %v, want %v", c.x, got, c.want)
		}
	}
	if _, ok := accounts.Jain([]float64{0, 0}); ok {
		t.Error("nobody has anything, and there is an index")
	}
}
