package traffic_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"farflash/model/cluster/traffic"
	"farflash/numeric/units"
	"farflash/sim"
)

var kinds = []traffic.Kind{traffic.Storm, traffic.PowerOfTwo, traffic.Peers, traffic.PeersBucket, traffic.PingPong,
	traffic.Pipeline}

// failer is the part of testing.T and rapid.T that the helpers use.
type failer interface {
	Helper()
	Fatal(...any)
}

// start creates a machine and runs it until a time.
func start(t failer, cfg traffic.Config, seed uint64, until sim.Time) (*traffic.Machine, *sim.Engine) {
	t.Helper()
	eng := sim.New()
	m, err := traffic.New(cfg, eng, seed)
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	eng.Run(until)
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return m, eng
}

// load measures the mean number of events pending at a receiver after a warm-up.
func load(t failer, cfg traffic.Config, warm, until sim.Time) (mean, rate float64) {
	m, eng := start(t, cfg, 1, warm)
	before, sent := m.Pending(warm), m.Counters.Sent
	eng.Run(until)
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	span := (until - warm).Seconds()
	return (m.Pending(until) - before) / span / float64(m.Receivers()), float64(m.Counters.Sent-sent) / span
}

// TestKinds verifies that each of SURGE's patterns has the rate of its closed form, and that by Little's law this rate
// times an event's latency is the number pending.
func TestKinds(t *testing.T) {
	for _, k := range kinds {
		cfg := traffic.ConfigOf(k, 20, 20)
		mean, rate := load(t, cfg, units.Millisecond, 5*units.Millisecond)
		m, _ := start(t, cfg, 1, 0)
		if want := m.Bound(); math.Abs(rate/want-1) > 0.01 {
			t.Errorf("%v: %.4g events a second, not %.4g", k, rate, want)
		}
		flight := cfg.Trip + cfg.Jitter/2
		if want := rate * flight.Seconds() / float64(m.Receivers()); math.Abs(mean/want-1) > 0.01 {
			t.Errorf("%v: %.4g events pending at a node, not %.4g", k, mean, want)
		}
	}
}

// TestQueue: targets with a service time are single-server queues, whose length is known; the less loaded of two is the
// supermarket model.
func TestQueue(t *testing.T) {
	const n, service = 200, units.Microsecond
	for _, x := range []struct {
		rho     float64
		choices int
	}{{0.5, 1}, {0.9, 1}, {0.5, 2}, {0.9, 2}, {0.7, 3}} {
		cfg := traffic.Config{Gateways: n, Targets: n, Size: 1,
			Pattern: traffic.Pattern{Choices: x.choices, Hops: 1, Service: service,
				Interval: sim.Time(float64(service) / x.rho)}}
		mean, _ := load(t, cfg, 2*units.Millisecond, 12*units.Millisecond)
		want := 0.0
		for k, exponent := 1, 1.0; k < 100; k++ {
			want += math.Pow(x.rho, exponent) // the share of queues with k or more events
			exponent = float64(x.choices)*exponent + 1
		}
		// The limit is for many nodes.
		if off := math.Abs(mean/want - 1); off > 0.04 {
			t.Errorf("load %g, best of %d: %.4g events at a target, not %.4g (%.1f %%)", x.rho, x.choices, mean, want,
				100*off)
		}
	}
}

// TestBucket verifies that a node that has been idle sends a burst, and then at the rate that the bucket admits.
func TestBucket(t *testing.T) {
	cfg := traffic.ConfigOf(traffic.PeersBucket, 1, 1)
	cfg.Interval, cfg.Both, cfg.Load = units.Nanosecond, false, 0
	m, _ := start(t, cfg, 1, 100*units.Microsecond)
	if want := uint64(cfg.Burst) + 200; m.Counters.Begun < want-1 || m.Counters.Begun > want {
		t.Errorf("%d exchanges in 100 us, not %d", m.Counters.Begun, want)
	}
}

// TestLoad verifies that no peer exceeds its limit of pending events.
func TestLoad(t *testing.T) {
	cfg := traffic.ConfigOf(traffic.Storm, 50, 5)
	cfg.Interval = 20 * units.Nanosecond
	m, _ := start(t, cfg, 1, units.Millisecond)
	if most := m.Counters.MostPending; int(most) != cfg.Load+1 {
		t.Errorf("%d events were pending at a target, where %d are too many", most, cfg.Load+2)
	}
	if m.Counters.Held == 0 {
		t.Error("no exchange was held back")
	}
}

// TestLaws verifies for random patterns that events and exchanges are conserved.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := traffic.ConfigOf(rapid.SampledFrom(kinds).Draw(t, "kind"), rapid.IntRange(1, 30).Draw(t, "gateways"),
			rapid.IntRange(1, 30).Draw(t, "targets"))
		cfg.Hops = rapid.IntRange(1, 6).Draw(t, "hops")
		cfg.Service = units.Duration(rapid.IntRange(0, 2).Draw(t, "service")) * 300 * units.Nanosecond
		cfg.Choices = rapid.IntRange(1, 3).Draw(t, "choices")
		cfg.Trip = units.Duration(rapid.IntRange(1, 3).Draw(t, "trip")) * units.Microsecond
		if cfg.Outstanding == 0 {
			cfg.Load = rapid.IntRange(0, 70).Draw(t, "load")
		}
		m, eng := start(t, cfg, rapid.Uint64().Draw(t, "seed"), 100*units.Microsecond)
		eng.Run(200 * units.Microsecond)
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSame verifies that a configuration and a seed determine the exchanges and their times, and that another seed
// gives others.
func TestSame(t *testing.T) {
	list := func(k traffic.Kind, seed uint64) (done []traffic.Done) {
		eng := sim.New()
		m, err := traffic.New(traffic.ConfigOf(k, 10, 10), eng, seed)
		if err != nil {
			t.Fatal(err)
		}
		m.OnDone = func(d *traffic.Done) { done = append(done, *d) }
		m.Start()
		eng.Run(100 * units.Microsecond)
		return done
	}
	for _, k := range kinds {
		a := list(k, 1)
		if !slices.Equal(a, list(k, 1)) {
			t.Errorf("%v: two runs of a seed differ", k)
		}
		if slices.Equal(a, list(k, 2)) {
			t.Errorf("%v: two seeds give the same", k)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for _, k := range kinds {
		at := units.Millisecond
		m, eng := start(t, traffic.ConfigOf(k, 20, 20), 1, at)
		before := m.Counters.Sent
		n := testing.AllocsPerRun(1, func() {
			at += units.Millisecond
			eng.Run(at)
		})
		// The pool may still grow when the number of exchanges reaches a new maximum.
		if events := float64(m.Counters.Sent-before) / 2; n > events/1000 {
			t.Errorf("%v: %g allocations for %g events", k, n, events)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, x := range []struct {
		change func(*traffic.Config)
		want   string
	}{
		{func(c *traffic.Config) { c.Gateways = 0 }, "gateways: 0 is not possible; use 1 to 1048576"},
		{func(c *traffic.Config) { c.Interval = 0 },
			"interval: 0s is not possible; use a time such as 500ns, or outstanding: 1 for a closed loop"},
		{func(c *traffic.Config) { c.Trip, c.Jitter = 0, 0 },
			"service: events that take no time would run forever; use a trip, a jitter or a service time above 0s"},
		{func(c *traffic.Config) { c.Outstanding = 1 }, "load: a closed loop ignores pending events; use 0"},
		{func(c *traffic.Config) { c.Pattern = traffic.PatternOf(traffic.PingPong, 20) },
			"outstanding: 20 exchanges of a gateway, one at a time with each target, need as many targets, " +
				"not 10"},
	} {
		cfg := traffic.DefaultConfig()
		x.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

func BenchmarkTraffic(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.String(), func(b *testing.B) {
			eng := sim.New()
			m, err := traffic.New(traffic.ConfigOf(k, 90, 90), eng, 1)
			if err != nil {
				b.Fatal(err)
			}
			m.Start()
			b.ReportAllocs()
			for at := sim.Time(0); m.Counters.Sent < uint64(b.N); {
				at += 100 * units.Microsecond
				eng.Run(at)
			}
			b.ReportMetric(float64(eng.Events())/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// Example shows the effect of choosing the less loaded of two on the most loaded target of a storm.
func Example() {
	for _, choices := range []int{1, 2} {
		cfg := traffic.ConfigOf(traffic.Storm, 90, 90)
		cfg.Choices, cfg.Service = choices, 450*units.Nanosecond
		eng := sim.New()
		m, err := traffic.New(cfg, eng, 1)
		if err != nil {
			panic(err)
		}
		m.Start()
		eng.Run(5 * units.Millisecond)
		fmt.Printf("best of %d: at most %d events pending at a target\n", choices, m.Counters.MostPending)
	}
	// Output:
	// best of 1: at most 65 events pending at a target
	// best of 2: at most 16 events pending at a target
}
