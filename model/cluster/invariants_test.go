//go:build invariants

package cluster_test

import (
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// script yields chunks at given times.
type script []cluster.Arrival

func (s *script) Next(a *cluster.Arrival) bool {
	if len(*s) == 0 {
		return false
	}
	*a, *s = (*s)[0], (*s)[1:]
	return true
}

// faultRun puts and reads some chunks on a small cluster with the faults that change and lose inject. All of them must
// complete, and every law is checked throughout.
func faultRun(t *testing.T, p cluster.Scheme, seed uint64, change func(*cluster.Config),
	lose func(arrival int, data bool) bool) (arrivals int, until sim.Time) {
	t.Helper()
	cfg := cluster.DefaultConfig()
	cfg.Protocol, cfg.Gateways, cfg.Targets, cfg.Group, cfg.Replicas, cfg.Chunk = p, 2, 8, 4, 2, 20*units.KB
	cfg.Outstanding, cfg.Reads, cfg.Objects = 2, 0.3, 30
	cfg.Read = cluster.Reading(seed % uint64(cluster.ReadTied+1))
	cfg.Link.Loss = 1e-300 // messages can be lost, but only this test loses any
	cfg.Repair.Detect = 100 * units.Microsecond
	change(&cfg)
	eng := sim.New()
	c, err := cluster.New(settled(cfg), eng, seed)
	if err != nil {
		t.Fatal(err)
	}
	c.Lose(func(_ int32, data bool) bool {
		arrivals++
		return lose(arrivals, data)
	})
	var chunks script
	for k := range 4 {
		chunks = append(chunks,
			cluster.Arrival{At: sim.Time(k) * 10 * units.Microsecond, Gateway: int32(k % 2), Read: k == 3, Object: -1})
	}
	want := len(chunks)
	c.Replay(&chunks)
	done := 0
	c.OnDone = func(d *cluster.Done) {
		if done++; done == want {
			until = d.Done
		}
	}
	c.Start()
	eng.Run(10 * units.Second)
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	if k := &c.Counters; done+int(k.Unavailable) != want || k.Failed > k.Unavailable {
		t.Fatalf("%v: %d of %d are done; %+v", p, done, want, k)
	}
	// A target of Replicast that misses a cancellation keeps its bid until the next request.
	if promised, open := c.Expects(); promised > 0 || open > 0 && (!p.Grouped() || p == cluster.Pull) {
		t.Errorf("%v: all is done, %d targets expect data and %d an answer", p, promised, open)
	}
	return arrivals, until
}

func unchanged(*cluster.Config) {}

// TestEverySingleLoss loses each message and frame in turn.
func TestEverySingleLoss(t *testing.T) {
	for _, p := range recovering() {
		all, _ := faultRun(t, p, 1, unchanged, func(int, bool) bool { return false })
		if all < 25 {
			t.Errorf("%v: %d arrivals: the run is not a test", p, all)
		}
		for k := 1; k <= all; k++ {
			faultRun(t, p, 1, unchanged, func(arrival int, _ bool) bool { return arrival == k })
		}
	}
}

// TestEverySingleDeath has each target fail at each of many moments of a run, for good or temporarily.
func TestEverySingleDeath(t *testing.T) {
	for _, p := range recovering() {
		_, until := faultRun(t, p, 1, unchanged, func(int, bool) bool { return false })
		const moments = 50
		for target := range 8 {
			for k := range moments {
				at := until * sim.Time(k) / moments
				faultRun(t, p, 1, func(c *cluster.Config) {
					f := cluster.Failure{Target: target, At: at}
					if k%2 == 1 {
						f.Back = at + 300*units.Microsecond
					}
					c.Failures = []cluster.Failure{f}
				}, func(int, bool) bool { return false })
			}
		}
	}
}

// TestRandomFaults draws losses and a failing target by seed. Some gateways time out while data is in flight.
func TestRandomFaults(t *testing.T) {
	for _, p := range recovering() {
		for seed := range uint64(100) {
			s := rng.NewStream(seed, "faults")
			chance := float64(seed%3+1) / 150
			faultRun(t, p, seed, func(c *cluster.Config) {
				if seed%3 == 0 {
					c.RetryAfter = 20 * units.Microsecond // expires while data is in flight
				}
				if seed%2 == 1 {
					c.Failures = []cluster.Failure{{Target: int(s.IntN(8)),
						At: sim.Time(s.IntN(int64(200 * units.Microsecond)))}}
				}
			}, func(int, bool) bool { return s.Float64() < chance })
		}
	}
}
