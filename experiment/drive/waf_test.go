package drive_test

import (
	"fmt"
	"math"
	"testing"

	"farflash/experiment/trial/trialtest"
	"farflash/internal/golden"
	"farflash/internal/patience"
	"farflash/policy/ftl"
	"farflash/policy/ftl/waf"
	"farflash/scenario"
)

// TestBusyDrive compares the write amplification of the preset busy-drive, in steady state, with that of a pool of as
// many blocks without a drive around it, and reports the deviation of both from the closed form for many blocks; with
// FARFLASH_LONG. Collection starts below 6 free blocks of 128, so 5 are free when a victim is chosen and one is open
// for the host and one for survivors: 121 are closed. Of 93 blocks' worth of data some are in the open ones, and
// survivors have their own blocks; both are negligible with thousands of blocks, and matter by 1 to 2 % here.
func TestBusyDrive(t *testing.T) {
	patience.SkipUnlessLong(t)
	preset, err := scenario.PresetText("busy-drive")
	if err != nil {
		t.Fatal(err)
	}
	// data of 128 blocks, of which this share is logical space
	const blocks, closed, data, alpha = 128, 121, 93, 128 / 1.3744
	greedy := waf.Policy{Victim: ftl.Greedy}
	lines := golden.Head("`ssd.mapping.allocation`", ">pages a block", ">form for all 128 blocks",
		">form for the 121 closed", ">a pool of so many, simulated", ">drive, the preset's 1.5 s",
		">drive, after 4 s, for 8 s")
	for _, c := range []struct {
		allocation  string
		pages, pool int // beyond 1,024 pages the size of a pool's blocks has no effect
	}{{"dynamic", 192 * 43, 1024}, {"static", 43, 43}} {
		all, err := greedy.WAF(blocks/alpha, c.pages)
		if err != nil {
			t.Fatal(err)
		}
		form, err := greedy.WAF(closed/alpha, c.pages)
		if err != nil {
			t.Fatal(err)
		}
		e := waf.DefaultExperiment()
		e.Policy, e.Blocks, e.Alpha, e.Pages, e.Layout, e.WarmUp, e.Measure, e.Seed = greedy, data,
			closed/float64(data), c.pool, waf.SurvivorsApart, 6, 10, 7
		pool, err := waf.Simulate(e)
		if err != nil {
			t.Fatal(err)
		}
		const seeds = 5
		sum, squares := 0.0, 0.0
		for seed := range uint64(seeds) {
			x := trialtest.Metric(t, trialtest.Run(t, preset, seed+1, "ssd.mapping.allocation="+c.allocation),
				"ssd.waf")
			sum += x
			squares += float64(x * x)
		}
		mean := sum / seeds
		spread := math.Sqrt(max(0, squares/seeds-mean*mean) * seeds / (seeds - 1))
		long := trialtest.Metric(t,
			trialtest.Run(t, preset, 1, "ssd.mapping.allocation="+c.allocation, "workload[0].synthetic.duration=12s",
				"workload[1].synthetic.duration=12s", "measure.warm_up=4s"), "ssd.waf")
		if off := long/pool.WAF - 1; math.Abs(off) > 0.015 {
			t.Errorf("%s: the drive has %.3f, a pool like it %.3f", c.allocation, long, pool.WAF)
		}
		if off := pool.WAF/form - 1; math.Abs(off) > 0.03 {
			t.Errorf("%s: the pool has %.3f, the form for what is closed %.3f", c.allocation, pool.WAF, form)
		}
		lines = append(lines,
			golden.Row(c.allocation, fmt.Sprint(c.pages), fmt.Sprintf("%.2f", all), fmt.Sprintf("%.2f", form),
				fmt.Sprintf("%.2f", pool.WAF), fmt.Sprintf("%.2f +- %.2f", mean, spread), fmt.Sprintf("%.2f", long)))
	}
	golden.Table(t, wafPage, "busy-drive", "seeds 1 to 5, the longer runs and the pools one seed", lines, *update)
}

const wafPage = "../../docs/validation/waf.md"

// TestSaturatedDrive verifies that a drive of many blocks under saturating writes has the closed form's write
// amplification for the closed blocks: collection is urgent below 10 free blocks of 2048, and one is open for the host
// and one for survivors; with FARFLASH_LONG.
func TestSaturatedDrive(t *testing.T) {
	patience.SkipUnlessLong(t)
	const text = `
ssd: {preset: tlc-enterprise, geometry: {pages_per_block: 64}, preconditioning: {fill: steady}}
workload: [{synthetic: {writes: {size: 16KiB, addresses: {align: 16KiB}}, read_fraction: 0%, requests: 1500000}, closed: 512}]
`
	lines := golden.Head("`ssd.mapping.allocation`", ">pages a block", ">form for the 2037 closed", ">drive", ">off by")
	for _, c := range []struct {
		allocation string
		pages      int
	}{{"dynamic", 192 * 64}, {"static", 64}} {
		form, err := waf.Policy{Victim: ftl.Greedy}.WAF(1.3744*2037/2048, c.pages)
		if err != nil {
			t.Fatal(err)
		}
		got := trialtest.Metric(t, trialtest.Run(t, text, 1, "ssd.mapping.allocation="+c.allocation), "ssd.waf")
		if math.Abs(got/form-1) > 0.02 {
			t.Errorf("%s: %.3f, the form %.3f", c.allocation, got, form)
		}
		lines = append(lines,
			golden.Row(c.allocation, fmt.Sprint(c.pages), fmt.Sprintf("%.3f", form), fmt.Sprintf("%.3f", got),
				fmt.Sprintf("%+.1f %%", 100*(got/form-1))))
	}
	golden.Table(t, wafPage, "saturated", "seed 1", lines, *update)
}
