package bench_test

import (
	"testing"
	"time"

	"farflash/flash/bench"
	"farflash/flash/uring"
)

// small is a measurement that takes no time.
func small(t *testing.T) bench.Config {
	c := bench.DefaultConfig()
	c.Dir, c.Size, c.Memory, c.Rounds, c.Time, c.Connections = t.TempDir(), 12<<20, 1<<20, 2, 40*time.Millisecond, 3
	c.Systems = append(c.Systems, bench.SocketCached)
	if r, err := uring.New(2); err != nil {
		c.Systems = []bench.System{bench.Verbs, bench.Socket, bench.SocketCached}
	} else {
		r.Close()
	}
	return c
}

// TestRun has every system serve reads, writes and both, in closed and open loops, of small and large blocks. What is measured is only that something was.
func TestRun(t *testing.T) {
	for name, change := range map[string]func(*bench.Config){
		"reads":  func(*bench.Config) {},
		"writes": func(c *bench.Config) { c.Writes = 1 },
		"mixed":  func(c *bench.Config) { c.Writes, c.Depth = 0.3, 5 },
		"large":  func(c *bench.Config) { c.Block, c.Memory = 256<<10, 4<<20 },
		"open":   func(c *bench.Config) { c.Load = 0.3 },
	} {
		t.Run(name, func(t *testing.T) {
			c := small(t)
			change(&c)
			r, err := bench.Run(c)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Outcomes) != len(c.Systems) || len(r.Ratios) != len(c.Systems)-1 || r.Confidence != 0.5 {
				t.Fatalf("%+v", r)
			}
			for _, o := range r.Outcomes {
				if o.Rate.Low <= 0 || o.P50.Low <= 0 || o.P99.Low < o.P50.Low || len(o.Rounds) != c.Rounds {
					t.Errorf("%v: %+v", o.System, o)
				}
			}
			if reads := r.Outcomes[0].Reads; name == "reads" && (reads.Low < 0.5 || reads.High > 1.01) {
				t.Errorf("%v device reads a request, with a twelfth of the pages in memory", reads)
			}
		})
	}
}

// TestRefused says what is wrong.
func TestRefused(t *testing.T) {
	for _, change := range []func(*bench.Config){
		func(c *bench.Config) { c.Systems = nil },
		func(c *bench.Config) { c.Systems = []bench.System{bench.Socket, bench.Socket} },
		func(c *bench.Config) { c.Block = 1000 },
		func(c *bench.Config) { c.Connections = 0 },
		func(c *bench.Config) { c.Writes = 1.5 },
		func(c *bench.Config) { c.Rounds = 0 },
		func(c *bench.Config) { c.Size = 1 },
		func(c *bench.Config) { c.Dir = "/nowhere/at/all" },
	} {
		c := bench.DefaultConfig()
		change(&c)
		if _, err := bench.Run(c); err == nil {
			t.Errorf("%+v is measured", c)
		}
	}
}
