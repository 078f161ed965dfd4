package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"farflash/internal/golden"
	"farflash/internal/patience"
)

// rare is a source of latencies with occasional long ones, which it counts.
type rare struct {
	name  string
	truth float64
	start func(r *rand.Rand, times *int64) func() float64
}

// alone generates latencies of mean 1, to which extra adds with the given probability.
func alone(name string, chance, mean float64, extra func(r *rand.Rand) float64) rare {
	return rare{name, 1 + chance*mean, func(r *rand.Rand, times *int64) func() float64 {
		return func() float64 {
			x := r.ExpFloat64()
			if r.Float64() < chance {
				*times++
				x += extra(r)
			}
			return x
		}
	}}
}

// queued is a single server with Poisson arrivals and services of mean 1, which cost extra with the given probability.
// Its mean sojourn time follows from Pollaczek and Khinchine's formula.
func queued(name string, load, chance, extra float64, regular bool) rare {
	moment := 2.0
	if regular {
		moment = 1
	}
	mean := 1 + chance*extra
	moment += chance * (2*extra + extra*extra)
	apart := mean / load
	return rare{name, mean + moment/apart/(2*(1-load)), func(r *rand.Rand, times *int64) func() float64 {
		stay := 0.0
		return func() float64 {
			service := 1.0
			if !regular {
				service = r.ExpFloat64()
			}
			if r.Float64() < chance {
				*times++
				service += extra
			}
			stay = math.Max(0, stay-r.ExpFloat64()*apart) + service
			return stay
		}
	}}
}

// rares returns ten such sources, modelled on drives and networks.
func rares() []rare {
	constant := func(x float64) func(*rand.Rand) float64 { return func(*rand.Rand) float64 { return x } }
	const down, fails = 60, 1. / 3000 // requests affected by a failure, and the probability of one
	return []rare{
		queued("a block is collected, load 30 %", 0.3, 1./2000, 300, false),
		queued("the same, load 10 %", 0.1, 1./2000, 300, false),
		queued("a read is repeated, load 50 %", 0.5, 1./500, 20, false),
		queued("a class of large requests, load 20 %", 0.2, 1./1000, 50, false),
		queued("a block is folded, regular services, load 50 %", 0.5, 1./2000, 100, true),
		alone("a block is collected, nobody waits", 1./2000, 300, constant(300)),
		alone("a class of large requests, nobody waits", 1./1000, 100, constant(100)),
		alone("a drive awakes, for a random time", 1./1500, 200,
			func(r *rand.Rand) float64 { return 200 * r.ExpFloat64() }),
		{"a patrol, every 1,000 requests", 1.1, func(r *rand.Rand, times *int64) func() float64 {
			n := r.IntN(1000)
			return func() float64 {
				x := r.ExpFloat64()
				if n++; n%1000 == 0 {
					*times++
					x += 100
				}
				return x
			}
		}},
		{"a link fails, and all wait until it is up", 1 + down*(down+1)/2/((1-fails)/fails+down),
			func(r *rand.Rand, times *int64) func() float64 {
				left := 0
				return func() float64 {
					if left == 0 && r.Float64() < fails {
						*times++
						left = down
					}
					x := r.ExpFloat64() + float64(left)
					left = max(0, left-1)
					return x
				}
			}},
	}
}

// TestRarePromise verifies that with costly rare events 93 % of self-terminating runs are within the precision if the
// events are counted. Without counting, runs end before they have seen enough events.
func TestRarePromise(t *testing.T) {
	runs, list, ways := 20, rares()[8:], []bool{true}
	if patience.Long(t) {
		runs, list, ways = 100, rares(), append(ways, false)
	}
	lines := golden.Head("what is seldom", ">within 5 %", ">bias", ">observations on average",
		">within 5 % if it is not counted", ">bias")
	for _, x := range list {
		var cells []string
		for _, counted := range ways {
			inside, bias, length := 0, 0.0, 0
			for run := range runs {
				var times int64
				next := x.start(rand.New(rand.NewPCG(uint64(run), 22)), &times)
				s := NewSettling(DefaultSettlingConfig())
				for {
					s.Add(next())
					if !s.Due() {
						continue
					}
					var v Verdict
					if counted {
						v = s.Look(Occurrence{What: x.name, Times: times})
					} else {
						v = s.Look()
					}
					if v.Hopeless {
						t.Errorf("%s: %s", x.name, v.Explain)
					}
					if v.Reached || v.Hopeless {
						break
					}
				}
				off := s.total/float64(s.n)/x.truth - 1
				bias += off / float64(runs)
				length += s.n / runs
				if math.Abs(off) <= DefaultSettlingConfig().precision {
					inside++
				}
			}
			share := float64(inside) / float64(runs)
			t.Logf("%s, counted %v: %5.1f %% of the runs are within 5 %%, bias %+.2f %%, %d observations", x.name,
				counted, 100*share, 100*bias, length)
			if counted && share < 0.93 {
				t.Errorf("%s: %.1f %% of the runs are within 5 %%, bias %+.2f %%", x.name, 100*share, 100*bias)
			}
			cells = append(cells, fmt.Sprintf("%.1f %%", 100*share), fmt.Sprintf("%+.2f %%", 100*bias))
			if counted {
				cells = append(cells, fmt.Sprint(length))
			}
		}
		lines = append(lines, golden.Row(append([]string{x.name}, cells...)...))
	}
	if !patience.Long(t) {
		return
	}
	golden.Table(t, "../../docs/validation/stats.md", "settling-rare", "seeds 0 to 99", lines, *update)
}
