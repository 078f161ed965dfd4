package drives

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/rng"
	"farflash/planner/tco"
	"farflash/policy/ftl/waf"
)

// mixedPlan returns a plan with workloads of arbitrary mix, rate and space.
func mixedPlan(seed uint64, more string) string {
	r := rng.NewStream(seed, "workloads")
	text := "drives: [{model: Intel DC P3700 2TB, count: 6, price: $1000, waf: {simulate: 200}}]\nworkloads: {list: [\n"
	for i := range 12 {
		text += fmt.Sprintf(
			"{name: w%d, working_set_gb: %.4g, peak_iops: 1000, write_gb_per_day: %.4g, sequential: %.3f},\n", i,
			20+400*r.Float64(), 2000*r.Float64()*r.Float64(), r.Float64())
	}
	return text + more + "]}\n"
}

// TestOwnMix compares the amplification by sequential share with simulations of drives with a subset of the workloads
// each: the properties that the share ignores (which workloads write hot data, which are large) change it by a few
// per cent, and the mix of the whole plan is met within the workloads' range.
func TestOwnMix(t *testing.T) {
	for seed := range uint64(2) {
		p := loaded(t, mixedPlan(seed, ""))
		w, err := p.simulatedWAF(200, 1.15)
		if err != nil {
			t.Fatal(err)
		}
		list, err := p.authors(p.jobs)
		if err != nil {
			t.Fatal(err)
		}
		r := rng.NewStream(seed, "parts")
		sum, n := 0.0, 0.0
		for try := range 8 {
			parts := make([]float64, len(list))
			rate, mix := 0.0, 0.0
			for i := range parts {
				if try == 0 || r.Float64() < 0.4 {
					parts[i] = 1
					rate, mix = rate+list[i].rate, mix+float64(list[i].rate*list[i].sequential)
				}
			}
			if rate == 0 {
				continue
			}
			e := waf.DefaultExperiment()
			e.Alpha, e.Blocks = 1.15, 200
			e.Writers = writersOf(list, parts, e.Blocks*e.Pages)
			v, err := waf.Simulate(e)
			if err != nil {
				t.Fatal(err)
			}
			off := math.Abs(w.At(mix/rate)/v.WAF - 1)
			sum, n = sum+off, n+1
			if try == 0 && off > 0.05 || off > 0.5 {
				t.Errorf("seed %d, try %d: %v at %v, simulated %v", seed, try, w.At(mix/rate), mix/rate, v.WAF)
			}
		}
		if sum/n > 0.15 {
			t.Errorf("seed %d: off by %v on average", seed, sum/n)
		}
	}
}

// TestTilted verifies that parts yield the requested share, and are all equal at the plan's own share.
func TestTilted(t *testing.T) {
	list := []author{{rate: 1, space: 1, sequential: 0.1}, {rate: 2, space: 1, sequential: 0.5},
		{rate: 3, space: 2, sequential: 0.9}, {space: 5}}
	for _, share := range []float64{0.1, 0.2, 3.8 / 6, 0.8, 0.9} {
		parts := tilted(list, share)
		rate, mix := 0.0, 0.0
		for i := range list {
			rate, mix = rate+parts[i]*list[i].rate, mix+parts[i]*list[i].rate*list[i].sequential
		}
		if math.Abs(mix/rate-share) > 1e-3 {
			t.Errorf("%v has a share of %v, not %v", parts, mix/rate, share)
		}
	}
	if parts := tilted(list, 3.8/6); math.Abs(parts[0]-1) > 1e-6 || math.Abs(parts[2]-1) > 1e-6 {
		t.Errorf("%v", parts)
	}
	sum := waf.Writer{}
	for _, w := range writersOf(list, tilted(list, 0.3), 1000) {
		sum.Space, sum.Writes = sum.Space+w.Space, sum.Writes+w.Writes
	}
	if math.Abs(sum.Space-1) > 1e-9 || math.Abs(sum.Writes-1) > 1e-9 {
		t.Errorf("%+v", sum)
	}
}

// TestOwnTrace verifies that a workload with a recorded trace writes like the trace, not sequentially through its whole
// space, and that the result is reported for each drive.
func TestOwnTrace(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	r := rng.NewStream(1, "trace")
	for i := range 6000 { // MSR: time in 100 ns, host, disk, type, offset, size, latency; runs of four pages in 8 MiB
		fmt.Fprintf(&b, "%d,h,0,Write,%d,16384,100\n", 128166372000000000+i*10000, r.IntN(512)*16384)
	}
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "drives: [{model: Intel DC P3700 2TB, count: 1, price: $1000, waf: {simulate: 200}}]\n" +
		"workloads: {list: [{name: w, working_set_gb: 0.008, peak_iops: 1000, write_gb_per_day: 100, sequential: " +
		"100%, trace: " + filepath.Join(dir, "t.csv") + "}]}\n"
	traced, err := loaded(t, text).Solve(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	rounds, err := loaded(t, strings.Replace(text, ", trace", ", apart", 1)).Solve(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Sequential overwriting causes no amplification; the same pages in random order do.
	if a, b := traced.Drives[0].State.WAF, rounds.Drives[0].State.WAF; !(a > 1.5) || b > 1.1 {
		t.Errorf("by its trace %v, round its space %v", a, b)
	}
	if _, err := loaded(t, strings.Replace(text, "t.csv", "none.csv", 1)).Solve(t.Context(), Options{}); err == nil ||
		!strings.Contains(err.Error(), "drives[0].waf: workload w: trace: ") {
		t.Errorf("error %v", err)
	}
}

// TestSettled verifies that a drive's write amplification in the plan is that of a simulation of its workloads, and
// that its cost follows from it.
func TestSettled(t *testing.T) {
	for _, text := range []string{mixedPlan(3, ""), "algorithm: mintco-v3\n" + mixedPlan(4, "")} {
		p := loaded(t, text)
		o, err := p.Solve(t.Context(), Options{Bound: true})
		if err != nil {
			t.Fatal(err)
		}
		used := 0
		of := map[int][]float64{} // amplifications, by group
		for i := range o.Drives {
			d := &o.Drives[i]
			if d.State.WriteRate == 0 {
				continue
			}
			used++
			group := o.fleet.parts[o.kept[i]].group
			of[group] = append(of[group], d.State.WAF)
			var on []tco.Workload
			for j := range p.jobs {
				if o.Placements[j].Drive == d.Name {
					on = append(on, p.jobs[j])
				}
			}
			m := o.fleet.parts[o.kept[i]].model
			own, err := p.aloneWAF(on, 200, m.Alpha())
			if err != nil || math.Abs(d.State.WAF/own-1) > 1e-9 {
				t.Errorf("%s: %v, by itself %v, %v", d.Name, d.State.WAF, own, err)
			}
			written := 0.0
			for j := range on {
				written += on[j].WriteRate * float64(p.Horizon) * own
			}
			if life := d.State.WearAtDeath * o.fleet.drives[o.kept[i]].Budget; d.Replaced == nil &&
				d.EndsBy == "horizon" && math.Abs(life/written-1) > 1e-6 {
				t.Errorf("%s: its flash is written %v GB, not %v", d.Name, life, written)
			}
		}
		for group, all := range of {
			if got := p.simulated.alone[group]; got != [2]float64{slices.Min(all), slices.Max(all)} {
				t.Errorf("drives of group %d amplify by %v, and the range is said to be %v", group, all, got)
			}
		}
		if len(p.simulated.alone) != len(of) {
			t.Errorf("%v, of groups %v", p.simulated.alone, of)
		}
		if used == 0 || !(o.Gap() >= -1e-9) {
			t.Errorf("%d drives, a gap of %v", used, o.Gap())
		}
	}
}
