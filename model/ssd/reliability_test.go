package ssd_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/block"
	"farflash/internal/draws"
	"farflash/model/ssd"
	"farflash/model/ssd/decay"
	"farflash/numeric/units"
	"farflash/workload"
)

// erring returns a drive of one die whose bits are wrong with constant probability p.
func erring(p float64, change func(*ssd.Reliability)) ssd.Config {
	cfg := smallConfig()
	cfg.Geometry.Channels, cfg.Geometry.ChipsPerChannel, cfg.Geometry.DiesPerChip, cfg.Geometry.PlanesPerDie = 1, 1,
		1, 1
	cfg.Cache.Mode = ssd.CacheOff
	r := ssd.DefaultReliability()
	r.Curve, r.Fit = decay.Given, &decay.Fit{Base: p}
	if change != nil {
		change(&r)
	}
	cfg.Reliability = &r
	return cfg
}

// TestRetries compares the number of retried reads, the number of retries and their time with the closed form: each try
// fails with the probability of a binomial tail, and each retry takes a command, the array time with its surcharge, and
// the data transfer.
func TestRetries(t *testing.T) {
	t.Parallel()
	const n, size, slow = 6000, 4096, 7 * units.Microsecond
	for _, independent := range []bool{false, true} {
		cfg := erring(0, nil)
		cfg.Scheduling.IndependentReads = independent
		_, plain, _ := play(t, cfg, 1, random(n, block.Read, size, 64<<20))
		for _, p := range []float64{.0075, .0088, .012, .03} {
			cfg := erring(p, func(r *ssd.Reliability) { r.Retries, r.RetryLatency, r.Gain = 2, slow, .7 })
			cfg.Scheduling.IndependentReads = independent
			d, h, _ := play(t, cfg, 1, random(n, block.Read, size, 64<<20))
			e := d.Stats().Errors
			code := decay.NewCode(8192, 72)
			fails := func(try int) float64 { return code.AnyFails(p*math.Pow(.7, float64(try)), size/1024) }
			for _, x := range []struct {
				what string
				got  uint64
				want float64 // per read
			}{{"tried again", e.Retried, fails(0)}, {"tries", e.Retries, fails(0) + fails(1)},
				{"not corrected", e.Uncorrectable, fails(2)}} {
				if off := float64(x.got) - n*x.want; math.Abs(off) > 4*math.Sqrt(n*x.want*2)+1e-9 {
					t.Errorf("%v wrong bits: %d %s, want %v", p, x.got, x.what, n*x.want)
				}
			}
			if got := h.Measured(block.Read).Failed; got != e.Uncorrectable || d.Stats().Failed != got {
				t.Errorf("%v wrong bits: the host heard of %d errors of %d", p, got, e.Uncorrectable)
			}
			if e.Uncorrectable > 0 {
				continue // failed requests have no latency
			}
			tm := &cfg.Timing
			each := tm.ReadCommand(1) + tm.Read[0] + tm.ReadyBusy + slow + tm.DataOutSetup + tm.Data(size)
			got, want := h.Measured(block.Read).Latency.Mean()-plain.Measured(block.Read).Latency.Mean(),
				float64(each)*float64(e.Retries)/n
			if math.Abs(got-want) > 1e-6*float64(each) {
				t.Errorf("%v wrong bits: a read takes %v ps longer, want %v", p, got, want)
			}
		}
	}
}

// TestRetryBreakdown does the same for the array and channel times alone, which a read's breakdown includes for all its
// tries.
func TestRetryBreakdown(t *testing.T) {
	t.Parallel()
	const n = 2000
	cfg := erring(.0087, nil)
	d, _, _ := play(t, cfg, 4, random(n, block.Read, 4096, 64<<20))
	s := d.Stats()
	tm := &cfg.Timing
	b := &s.Breakdown[block.Read]
	senses := units.Duration(n + s.Errors.Retries)
	if b.Array != units.TotalOf(senses*(tm.Read[0]+tm.ReadyBusy)) ||
		b.Transfer != units.TotalOf(senses*(tm.ReadCommand(1)+tm.DataOutSetup+tm.Data(4096))) ||
		b.Backlog.Sign() != 0 ||
		s.Errors.Retries == 0 || s.Reads != uint64(senses) {
		t.Errorf("%d tries of %d reads: array %v, channel %v, other %v", s.Errors.Retries, n, b.Array, b.Transfer,
			b.Backlog)
	}
	if sum := b.Parts(); sum != b.All {
		t.Errorf("the parts are %v, all is %v", sum, b.All)
	}
}

// TestReadDisturb verifies how often a block that is read all the time is refreshed: whenever its reads have caused as
// many wrong bits as the limit allows. Without refresh, in contrast, its data are lost.
func TestReadDisturb(t *testing.T) {
	t.Parallel()
	const each, n = 3000, 60_000 // reads of the block between two refreshes
	const pages = 64
	disturbed := func(refresh bool) ssd.Config {
		cfg := erring(0, nil)
		cfg.Geometry.PagesPerBlock = pages
		cfg.Preconditioning.Fill, cfg.OverProvisioning = ssd.FillSequential, .2
		r := cfg.Reliability
		code := decay.NewCode(8192, r.Correctable)
		// Half of the correctable bits are wrong after this many reads.
		r.Fit = &decay.Fit{Disturb: code.Limit(.5) / (each / pages), DisturbReads: 1}
		if refresh {
			f := ssd.DefaultRefresh()
			r.Refresh = &f
		}
		return cfg
	}
	d, _, _ := play(t, disturbed(true), 1, random(n, block.Read, 8192, pages*8192))
	s := d.Stats()
	// A refresh takes as many programs as the block has pages; reads during it still disturb the old block.
	if got := s.FTL.Renewals; float64(got) > n/each+1 || float64(got) < .9*n/each {
		t.Errorf("%d refreshes of %d reads, want one each %d", got, n, each)
	}
	if s.Errors.Uncorrectable > 0 || s.RenewPrograms != uint64(s.FTL.Renewals)*pages ||
		s.MovePrograms != s.RenewPrograms {
		t.Errorf("%d reads failed, %d refreshes moved %d of %d pages", s.Errors.Uncorrectable, s.FTL.Renewals,
			s.RenewPrograms, s.MovePrograms)
	}
	cfg := disturbed(false)
	cfg.Reliability.Retries = 0
	d, _, _ = play(t, cfg, 1, random(n, block.Read, 8192, pages*8192))
	if s := d.Stats(); s.FTL.Renewals != 0 || s.Errors.Uncorrectable < n/2 {
		t.Errorf("without refresh: %d refreshes, %d of %d reads failed", s.FTL.Renewals, s.Errors.Uncorrectable, n)
	}
}

// TestPatrol verifies that data that are never read are moved when they come of age, each block once a lifetime: as
// many times as lifetimes fit into the run.
func TestPatrol(t *testing.T) {
	t.Parallel()
	const life, patrol = 2 * units.Second, units.Millisecond
	cfg := erring(0, nil)
	cfg.Geometry.PagesPerBlock, cfg.Geometry.BlocksPerPlane = 16, 64
	cfg.Preconditioning.Fill, cfg.OverProvisioning = ssd.FillSequential, .5
	r := cfg.Reliability
	r.Acceleration = 1e9
	days := life.Seconds() * r.Acceleration / 86400
	code := decay.NewCode(8192, r.Correctable)
	r.Fit = &decay.Fit{Retention: code.Limit(.5) / days, RetentionDays: 1}
	r.Refresh = &ssd.Refresh{At: .5, Patrol: patrol}
	var records []workload.Record
	for i := range 12000 { // of one page, to advance the clock
		records = append(records,
			workload.Record{Op: block.Read, Size: 8192, Time: units.Duration(i) * units.Millisecond})
	}
	d, _, eng := play(t, cfg, 0, records)
	s := d.Stats()
	blocks := float64(d.LogicalSize()) / (16 * 8192)
	// A lifetime is extended by a round of the patrol and the sequential refresh of all blocks that are due.
	wait := 64*patrol + units.Duration(blocks)*16*units.Millisecond
	most, least := blocks*float64(eng.Now()/life), blocks*math.Floor(float64(eng.Now())/float64(life+wait))
	if got := float64(s.FTL.Renewals); got > most || got < least || s.Errors.Uncorrectable > 0 {
		t.Errorf("%v refreshes in %v, want %v to %v; %d reads failed", got, eng.Now(), least, most,
			s.Errors.Uncorrectable)
	}
}

// TestLost verifies that data that collection cannot read are lost until they are written or trimmed, and that every
// read of them fails.
func TestLost(t *testing.T) {
	t.Parallel()
	const n = 256
	cfg := erring(0, func(r *ssd.Reliability) {
		// Unreadable from the hundredth read of a page on.
		r.Fit, r.Reads = &decay.Fit{Disturb: .5, DisturbReads: 1}, 0
		r.Retries = 1
	})
	cfg.Geometry.PagesPerBlock, cfg.Geometry.BlocksPerPlane = 16, 32
	cfg.OverProvisioning = .3
	cfg.Preconditioning.Fill = ssd.FillSteady
	span := int64(n * 8192)
	records := random(3000, block.Write, 8192, 2<<20)
	for i := range n {
		records = append(records, workload.Record{Op: block.Read, Size: 8192, Offset: int64(i) * 8192})
	}
	d, h, _ := play(t, cfg, 1, records)
	s := d.Stats()
	if s.Errors.Lost == 0 || h.Measured(block.Read).Failed == 0 || s.Failed != h.Measured(block.Read).Failed {
		t.Errorf("%d grains lost, %d reads failed of %d", s.Errors.Lost, h.Measured(block.Read).Failed, n)
	}
	// Finally everything is written or trimmed: only pages disturbed since can fail.
	cfg.Reliability.Fit = &decay.Fit{Base: 0}
	for off := int64(0); off < span; off += 8192 {
		records = append(records, workload.Record{Op: block.Trim, Size: 8192, Offset: off})
	}
	if d, h, _ := play(t, cfg, 1, records); h.Measured(block.Read).Failed != 0 || d.Stats().Errors.Lost != 0 {
		t.Errorf("without errors %d reads fail", h.Measured(block.Read).Failed)
	}
}

// TestSoakErring makes drives of all kinds err, retry, lose and refresh at random.
func TestSoakErring(t *testing.T) {
	t.Parallel()
	var all ssd.ErrorCounts
	var renewals int64
	draws.Until(t, func() bool { return all.Retries > 0 && all.Uncorrectable > 0 && all.Lost > 0 && renewals > 0 },
		func(t *rapid.T) {
			cfg := drawConfig(t)
			if cfg.Quirks != (ssd.Quirks{}) {
				t.Skip("MQSim's flash never errs")
			}
			cfg.Collection.Copyback, cfg.SLCCache = false, nil
			r := ssd.DefaultReliability()
			r.Curve = decay.Given
			r.Fit = &decay.Fit{Base: rapid.OneOf(rapid.SampledFrom([]float64{.007, .0095}),
				rapid.Float64Range(0, .01)).Draw(t, "base"),
				Disturb: rapid.SampledFrom([]float64{0, .001}).Draw(t, "disturb"), DisturbReads: 1,
				Retention: rapid.SampledFrom([]float64{0, .001}).Draw(t, "retention"), RetentionDays: 1}
			r.Acceleration = rapid.SampledFrom([]float64{1, 1e7}).Draw(t, "acceleration")
			r.Retries = rapid.IntRange(0, 4).Draw(t, "retries")
			r.RetryLatency = units.Duration(rapid.IntRange(0, 50).Draw(t, "retry us")) * units.Microsecond
			if rapid.IntRange(0, 2).Draw(t, "refresh") > 0 {
				// Data must live longer than it takes to rewrite all of them, and mapping pages must stay in place for
				// a while, or the refreshes never end: some of these drives ran for minutes.
				cfg.Mapping.CMTCapacity = max(cfg.Mapping.CMTCapacity, 10000)
				r.Fit.Base /= 3
				r.Fit.Disturb = rapid.SampledFrom([]float64{.0003, .0005}).Draw(t, "disturb of what is renewed")
				r.Acceleration = min(r.Acceleration, 1e5)
				r.Refresh = &ssd.Refresh{At: units.Fraction(rapid.Float64Range(.6, 1).Draw(t, "at")),
					Patrol: units.Duration(rapid.SampledFrom([]int{0, 10, 1000}).Draw(t, "patrol us")) *
						units.Microsecond}
			}
			cfg.Reliability = &r
			s := soakOf(t, cfg, nil).Stats()
			all.Retries += s.Errors.Retries
			all.Lost += s.Errors.Lost
			all.Uncorrectable += s.Errors.Uncorrectable
			renewals += s.FTL.Renewals
		})
	t.Logf("%d retries, %d not corrected, %d lost, %d refreshes", all.Retries, all.Uncorrectable, all.Lost, renewals)
}

// TestReliabilityLimits verifies both sides of each limit.
func TestReliabilityLimits(t *testing.T) {
	for _, c := range []struct {
		change func(*ssd.Config)
		want   string
	}{
		{func(*ssd.Config) {}, ""},
		{func(c *ssd.Config) { c.Reliability.Fit = nil }, "reliability.fit: curve: given needs it"},
		{func(c *ssd.Config) { c.Reliability.Curve = decay.TLC72 },
			"reliability.fit: the curve is tlc-72-layers, which has its own"},
		{func(c *ssd.Config) { c.Reliability.Fit.Wear = -1 }, "reliability.fit.wear: -1 is not possible"},
		{func(c *ssd.Config) { c.Reliability.Scale = math.NaN() }, "reliability.scale: NaN is not possible"},
		{func(c *ssd.Config) { c.Reliability.Cycles = -1 }, "reliability.cycles: -1"},
		{func(c *ssd.Config) { c.Reliability.Retention = -1 }, "reliability.retention"},
		{func(c *ssd.Config) { c.Reliability.Reads = math.Inf(1) }, "reliability.reads"},
		{func(c *ssd.Config) { c.Reliability.Acceleration = -1 }, "reliability.acceleration"},
		{func(c *ssd.Config) { c.Reliability.Codeword = 63 }, "reliability.codeword: 63B"},
		{func(c *ssd.Config) { c.Reliability.Correctable = 8193 }, "reliability.correctable: 8193"},
		{func(c *ssd.Config) { c.Reliability.Correctable = 8192 }, ""},
		{func(c *ssd.Config) { c.Reliability.Retries = 101 }, "reliability.retries: 101"},
		{func(c *ssd.Config) { c.Reliability.Retries = 100 }, ""},
		{func(c *ssd.Config) { c.Reliability.RetryLatency = units.Second + 1 }, "reliability.retry_latency"},
		{func(c *ssd.Config) { c.Reliability.Gain = 1.01 }, "reliability.gain"},
		{func(c *ssd.Config) { c.Reliability.Refresh = &ssd.Refresh{} }, "reliability.refresh.at: 0% is not possible"},
		{func(c *ssd.Config) { c.Reliability.Refresh = &ssd.Refresh{At: 1, Patrol: units.Nanosecond} },
			"reliability.refresh.patrol"},
		{func(c *ssd.Config) { c.Collection.Copyback, c.Mapping.Allocation = true, ssd.AllocateStatic },
			"reliability: with collection.copyback"},
	} {
		cfg := erring(.001, nil)
		c.change(&cfg)
		err := cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
