package tier_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/model/cluster/tier"
	"farflash/numeric/units"
	"farflash/sim"
)

// failer is the part of testing.T and rapid.T that the helpers use.
type failer interface {
	Helper()
	Fatal(...any)
}

// run simulates a server until a time and returns it with the completed writes and its cycles.
func run(t failer, cfg tier.Config, until sim.Time) (*tier.Server, []tier.Done, []tier.Cycle) {
	t.Helper()
	eng := sim.New()
	s, err := tier.New(cfg, eng)
	if err != nil {
		t.Fatal(err)
	}
	var done []tier.Done
	var cycles []tier.Cycle
	s.OnDone = func(d *tier.Done) { done = append(done, *d) }
	s.OnCycle = func(c *tier.Cycle) { cycles = append(cycles, *c) }
	s.Start()
	for at := sim.Time(0); at < until; at += until / 50 {
		eng.Run(at)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	eng.Run(until)
	return s, done, cycles
}

// TestFloor verifies that a lone write takes exactly the time of the closed form.
func TestFloor(t *testing.T) {
	cfg := tier.DefaultConfig()
	cfg.SSD.Window, cfg.HDD.Window, cfg.Trip = 1, 1, units.Microsecond
	s, done, _ := run(t, cfg, 20*units.Millisecond)
	seen := map[int32]bool{}
	for _, d := range done {
		if seen[d.Device] {
			continue
		}
		seen[d.Device] = true
		if got := d.Done - d.Begun; got != s.Floor(int(d.Device)) {
			t.Errorf("device %d: a write takes %v, alone it should take %v", d.Device, got, s.Floor(int(d.Device)))
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d devices have done a write", len(seen))
	}
}

// TestRates verifies that an SSD with space and HDDs without moved chunks are always busy and reach their rates.
func TestRates(t *testing.T) {
	cfg := tier.DefaultConfig()
	cfg.SSD.Capacity = 100 * units.GiB
	until := 2 * units.Second
	s, _, _ := run(t, cfg, until)
	for i, b := range s.Busy(until) {
		if share := b.Seconds() / until.Seconds(); share < 0.99 || share > 1 {
			t.Errorf("device %d is busy for %.4f of the time", i, share)
		}
	}
	got := float64(s.Counters.FastDone) * float64(cfg.Chunk) / until.Seconds()
	if want := float64(cfg.SSD.Rate); math.Abs(got/want-1) > 0.02 {
		t.Errorf("the SSD writes %.4g B/s, not %.4g", got, want)
	}
}

// TestMoves verifies that in the long run the SSD accepts as much as the HDDs drain, if that is less than its own rate.
func TestMoves(t *testing.T) {
	for _, hdds := range []int{1, 3, 6} {
		cfg := tier.DefaultConfig()
		cfg.HDDs, cfg.HDD.Window, cfg.HDD.Sequential = hdds, 0, 1
		until := 20 * units.Second
		s, _, _ := run(t, cfg, until)
		got := float64(s.Counters.Moved) * float64(cfg.Chunk) / until.Seconds()
		if want := float64(hdds) * float64(cfg.HDD.Rate); math.Abs(got/want-1) > 0.02 {
			t.Errorf("%d HDDs: %.4g B/s move, not %.4g", hdds, got, want)
		}
		if s.Counters.Taken-s.Counters.Moved > 100 {
			t.Errorf("%d HDDs: %d chunks taken, %d moved", hdds, s.Counters.Taken, s.Counters.Moved)
		}
	}
}

// TestWatermarks verifies that below the low watermark a cycle only accepts writes, and that from the high one on the
// SSD accepts none until it has fallen below the third, and continues to move until it is at the low one.
func TestWatermarks(t *testing.T) {
	cfg := tier.DefaultConfig()
	_, _, cycles := run(t, cfg, 5*units.Second)
	draining, drains := false, 0
	for k, c := range cycles {
		used := units.Fraction(float64(c.Used) / float64(cfg.SSD.Capacity))
		if c.Take+c.Move != cfg.Cycle {
			t.Fatalf("cycle %d is %+v", k, c)
		}
		switch {
		case used <= cfg.Low && c.Move > 0:
			t.Fatalf("cycle %d moves chunks at %v: %+v", k, used, c)
		case used >= cfg.High && (c.Take > 0 || !c.Draining):
			t.Fatalf("cycle %d takes writes at %v: %+v", k, used, c)
		case draining && used >= cfg.Resume && !c.Draining:
			t.Fatalf("cycle %d no longer drains at %v: %+v", k, used, c)
		case c.Draining && c.Take > 0:
			t.Fatalf("cycle %d drains and takes: %+v", k, c)
		}
		if c.Draining && !draining {
			drains++
		}
		draining = c.Draining
	}
	if len(cycles) < 100 {
		t.Errorf("%d cycles", len(cycles))
	}
	t.Logf("%d cycles, %d drains", len(cycles), drains)
}

// TestLaws verifies for random servers that writes and chunks are conserved, that the SSD never exceeds its capacity,
// and that work progresses.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := tier.DefaultConfig()
		cfg.HDDs = rapid.IntRange(1, 5).Draw(t, "hdds")
		cfg.Chunk = units.Bytes(rapid.SampledFrom([]int{4096, 1 << 20}).Draw(t, "chunk"))
		cfg.SSD.Capacity = cfg.Chunk*units.Bytes(rapid.IntRange(2, 60).Draw(t, "capacity")) + cfg.Chunk/3
		cfg.SSD.Window, cfg.HDD.Window = rapid.IntRange(1, 40).Draw(t, "ssd"), rapid.IntRange(0, 30).Draw(t, "hdd")
		cfg.HDD.Sequential = rapid.IntRange(1, 20).Draw(t, "sequential")
		cfg.Low = units.Fraction(rapid.Float64Range(0, 0.8).Draw(t, "low"))
		cfg.High = units.Fraction(rapid.Float64Range(float64(cfg.Low)+0.01, 1).Draw(t, "high"))
		cfg.Resume = (cfg.Low + cfg.High) / 2
		cfg.Cycle, cfg.Moving = rapid.IntRange(1, 20).Draw(t, "cycle"), rapid.IntRange(1, 40).Draw(t, "moving")
		until := 4000 * cfg.HDD.Rate.TimeFor(cfg.Chunk)
		s, done, _ := run(t, cfg, until)
		if uint64(len(done)) != s.Counters.FastDone+s.Counters.SlowDone {
			t.Fatalf("%d writes seen, %+v", len(done), s.Counters)
		}
		half := 0
		for _, d := range done {
			if d.Device == 0 && d.Done > until/2 {
				half++
			}
		}
		// Writes stored on the SSD or in flight may have begun before.
		all, slack := 0.0, float64(cfg.SSD.Capacity)+
			float64(cfg.Chunk)*float64(cfg.SSD.Window+cfg.HDDs*cfg.HDD.Window+cfg.Moving)
		for _, d := range done {
			if d.Done > until/2 {
				all += float64(cfg.Chunk)
			}
		}
		if most := s.Bound()*(until/2).Seconds() + slack; all > most {
			t.Fatalf("%.4g B in the second half, more than %.4g", all, most)
		}
		if half == 0 {
			t.Fatalf("the SSD has done nothing in the second half: %+v, %v used", s.Counters, s.Used())
		}
	})
}

// TestSame verifies that a configuration determines the writes and their times.
func TestSame(t *testing.T) {
	_, a, _ := run(t, tier.DefaultConfig(), units.Second)
	_, b, _ := run(t, tier.DefaultConfig(), units.Second)
	if !slices.Equal(a, b) {
		t.Error("two runs differ")
	}
}

func TestNoAllocations(t *testing.T) {
	eng := sim.New()
	s, err := tier.New(tier.DefaultConfig(), eng)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	at := 2 * units.Second
	eng.Run(at)
	if n := testing.AllocsPerRun(5, func() {
		at += 200 * units.Millisecond
		eng.Run(at)
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}

func TestMistakes(t *testing.T) {
	for _, x := range []struct {
		change func(*tier.Config)
		want   string
	}{
		{func(c *tier.Config) { c.HDDs = 0 }, "hdds: 0 is not possible; use 1 to 65535"},
		{func(c *tier.Config) { c.SSD.Capacity = units.MiB },
			"ssd.capacity: 1MiB is too little for chunks of 1MiB; use at least 2MiB"},
		{func(c *tier.Config) { c.Low = 0.8 },
			"high: watermarks of 80% and 70% are not possible; use 0% <= low < high <= 100%"},
		{func(c *tier.Config) { c.Resume = 0.3 },
			"resume: 30% is not between the watermarks; use more than 40% and at most 70%"},
		{func(c *tier.Config) { c.HDD.Sequential = 0 }, "hdd.sequential: 0 is not possible; use 1 to 1000"},
	} {
		cfg := tier.DefaultConfig()
		x.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

// Example shows where the time of a tier with SURGE's constants goes.
func Example() {
	eng := sim.New()
	s, err := tier.New(tier.DefaultConfig(), eng)
	if err != nil {
		panic(err)
	}
	s.Start()
	eng.Run(units.Second)
	fmt.Printf("%d writes to the SSD and %d to HDDs, %d chunks moved, %v in use\n", s.Counters.FastDone,
		s.Counters.SlowDone, s.Counters.Moved, s.Used())
	// Output: 805 writes to the SSD and 1566 to HDDs, 740 chunks moved, 66MiB in use
}
