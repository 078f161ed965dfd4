package put_test

import (
	"testing"

	"farflash/model/cluster/put"
	"farflash/model/cluster/put/puttest"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"
)

// faulty is a run of a protocol on an in-memory cluster with faults.
type faulty struct {
	*puttest.Memory
	eng   *sim.Engine
	alone sim.Time // time of a lone chunk
	again int      // abandoned attempts
}

func newFaulty(t *testing.T, p put.Scheme, change func(*put.Plan)) *faulty {
	t.Helper()
	plan, err := puttest.Parts(p)
	if err != nil {
		t.Fatal(err)
	}
	plan.Lossy = true
	plan.Ahead = 3 * plan.Times.DiskChunk
	change(&plan)
	eng := sim.New()
	m, err := puttest.NewMemory(plan, eng)
	if err != nil {
		t.Fatal(err)
	}
	return &faulty{Memory: m, eng: eng, alone: m.Protocol.(put.Forecast).Floor(&m.Bus.Plan)}
}

// until runs until all chunks are done, or until end. Attempts that take longer than patience are retried, as at
// gateways whose messages can be lost.
func (f *faulty) until(all int, patience, end sim.Time, happens func()) {
	since := map[int32]uint64{}
	at := map[int32]sim.Time{}
	for now := f.eng.Now(); now < end && f.Done < all; now += f.alone / 8 {
		f.eng.Run(now)
		happens()
		for i := range f.Bus.Chunks {
			i := int32(i)
			id := f.Bus.Chunks[i].ID
			switch {
			case id == 0:
			case since[i] != id:
				since[i], at[i] = id, now
			case now-at[i] > patience:
				f.Again(i)
				f.again++
			}
		}
	}
}

// ends verifies that all chunks are done and no state of them is left.
func (f *faulty) ends(t *testing.T, all int, what string) {
	t.Helper()
	name := f.Bus.Traits.Name
	if f.Wrong != nil {
		t.Fatalf("%s: %v", what, f.Wrong)
	}
	if f.Done != all {
		t.Fatalf("%v, %s: %d done of %d, %d attempts aborted", name, what, f.Done, all, f.Aborted)
	}
	f.eng.Run(f.eng.Now() + units.Second)
	if n := put.InFlight(f.Protocol); n != 0 {
		t.Errorf("%v, %s: all is done, and %d replicas are in flight", name, what, n)
	}
	for g := range int32(min(f.Bus.Gateways, all)) {
		// A gateway with k chunks has at most k Choosy instances, and after its last chunk at least one is free.
		if n, once := put.Idle(f.Protocol, g); n < 1 || n > (all+f.Bus.Gateways-1)/f.Bus.Gateways || !once {
			t.Errorf("%v, %s: gateway %d keeps %d choices, each once: %v", name, what, g, n, once)
		}
	}
	if f.Wrong != nil {
		t.Fatalf("%s: %v", what, f.Wrong)
	}
}

// expects returns the number of targets that still expect data, and of those that expect an answer.
func (f *faulty) expects() (promised, open int) {
	for target := range int32(f.Bus.Targets) {
		p, o := f.Protocol.(put.Forecast).Expects(target)
		if p {
			promised++
		}
		if o {
			open++
		}
	}
	return promised, open
}

// each calls run for each protocol that tolerates loss, and for its variants.
func each(run func(p put.Scheme, variant string, change func(*put.Plan))) {
	for p := range put.Count {
		traits := p.Traits()
		if traits.Stuck != "" {
			continue
		}
		run(p, "as it is", func(*put.Plan) {})
		if traits.Sequential {
			run(p, "choosy", func(x *put.Plan) { x.Choosy = true })
		}
		if traits.Finds == put.FindsPlaced {
			run(p, "choices", func(x *put.Plan) { x.Choices = 2 })
			run(p, "spread", func(x *put.Plan) { x.Spread = true })
		}
		if !traits.Multicasts {
			run(p, "coded", func(x *put.Plan) { x.Coded = true })
		}
		run(p, "a last frame of one byte", func(x *put.Plan) { x.Piece = 2*x.Frame + 1 })
	}
}

// TestEveryLoss loses each message and frame of two chunks in turn, and verifies that both are put and stored correctly
// and that no state of the lost attempts is left.
func TestEveryLoss(t *testing.T) {
	each(func(p put.Scheme, variant string, change func(*put.Plan)) {
		arrivals := 0
		for lost := 0; lost <= arrivals; lost++ {
			f := newFaulty(t, p, change)
			n := 0
			f.Lose = func(int32, bool) bool {
				n++
				return n == lost
			}
			f.Begin(0)
			f.Begin(1)
			f.until(2, 4*f.alone, units.Second, func() {})
			f.ends(t, 2, variant)
			if lost == 0 {
				if arrivals = n; f.again > 0 || arrivals < 2*f.Bus.Copies*4 {
					t.Fatalf("%v, %s: %d arrivals, begun again %d times", p.Traits().Name, variant, n, f.again)
				}
			}
			// A target whose gateway's answer is lost keeps its bid until the next request.
			if promised, open := f.expects(); promised > 0 ||
				open > 0 && (p.Traits().Finds != put.FindsBidders || p == put.Pull) {
				t.Errorf("%v, %s, arrival %d is lost: %d targets expect data and %d an answer", p.Traits().Name,
					variant, lost, promised, open)
			}
		}
	})
}

// TestImpatience draws retries at any moment of an attempt, restarts of targets, and lost messages, by seed.
func TestImpatience(t *testing.T) {
	each(func(p put.Scheme, variant string, change func(*put.Plan)) {
		again := 0
		for seed := range uint64(12) {
			s := rng.NewStream(seed, "impatience")
			f := newFaulty(t, p, change)
			chance := float64(seed%3) / 200
			f.Lose = func(int32, bool) bool { return s.Float64() < chance }
			const all = 12
			for k := range all {
				f.Begin(int32(k % f.Bus.Gateways))
			}
			patience := f.alone * sim.Time(1+seed)
			troubles := 20
			f.until(all, max(patience, 16*f.alone), units.Second, func() {
				if troubles == 0 || s.IntN(4) > 0 {
					return
				}
				troubles--
				if i := int32(s.IntN(int64(len(f.Bus.Chunks)))); f.Bus.Chunks[i].ID > 0 {
					f.Again(i)
					f.again++
				}
				if seed%2 == 1 && s.IntN(4) == 0 {
					f.Crash(int32(s.IntN(int64(f.Bus.Targets))))
				}
			})
			f.ends(t, all, variant)
			again += f.again
		}
		if again < 40 {
			t.Errorf("%v, %s: begun again %d times: the run is not a test", p.Traits().Name, variant, again)
		}
	})
}

// TestAbandonedGroups verifies that an abandoned attempt is forgotten by all targets that it asked, whatever another
// chunk has asked since: no more groups expect anything than chunks are in flight.
func TestAbandonedGroups(t *testing.T) {
	for _, p := range []put.Scheme{put.ReplicastM, put.ReplicastH, put.ReplicastHDouble} {
		seen := 0
		for round := range 30 {
			f := newFaulty(t, p, func(x *put.Plan) { x.Targets, x.Seed = 6*x.GroupSize, uint64(round) })
			all := func() (groups int) {
				for g := range int32(f.Bus.GroupCount()) {
					for k := range int32(f.Bus.GroupSize) {
						if promised, open := f.Protocol.(put.Forecast).Expects(g*int32(f.Bus.GroupSize) +
							k); promised || open {
							groups++
							break
						}
					}
				}
				return groups
			}
			first := f.Begin(0)
			f.Begin(1)
			f.eng.Run(f.alone * sim.Time(round) / 60)
			f.Again(first)
			if round%2 == 1 {
				f.Again(first)
			}
			f.eng.Run(f.eng.Now() + 2*f.Bus.Trip)
			n := all()
			if n > 2 {
				t.Fatalf("%v, round %d: %d groups expect something of two chunks", p.Traits().Name, round, n)
			}
			if n == 2 {
				seen++
			}
			f.until(2, 100*f.alone, units.Second, func() {})
			f.ends(t, 2, "given up")
			if n := all(); n > 0 {
				t.Errorf("%v: %d groups expect something in the end", p.Traits().Name, n)
			}
		}
		if seen < 5 {
			t.Errorf("%v: two groups expected something %d times: no test", p.Traits().Name, seen)
		}
	}
}

// TestForgottenBids verifies that, where messages can be lost, the bid of a gateway that has fallen silent expires when
// another gateway asks the target, which can then offer its window again.
func TestForgottenBids(t *testing.T) {
	for _, p := range []put.Scheme{put.ReplicastM, put.ReplicastH, put.ReplicastHDouble} {
		f := newFaulty(t, p, func(*put.Plan) {})
		f.Lose = func(node int32, _ bool) bool { return node == 0 } // gateway 0 is cut off
		f.Begin(0)
		f.Begin(0)
		f.eng.Run(units.Second)
		if _, open := f.expects(); open == 0 {
			t.Errorf("%v: no bids are open: no test", p.Traits().Name)
		}
		for k := range 8 { // one after the other, so that time passes
			f.Begin(1)
			f.eng.Run(sim.Time(k+2) * units.Second)
		}
		if promised, open := f.expects(); promised+open > 0 || f.Done != 8 || f.Wrong != nil {
			t.Errorf("%v: %d done, %d targets expect data and %d an answer; %v", p.Traits().Name, f.Done, promised,
				open, f.Wrong)
		}
		if n, _ := put.Idle(f.Protocol, 1); n != 1 {
			t.Errorf("%v: a gateway with one chunk at a time keeps %d choices", p.Traits().Name, n)
		}
	}
}

// TestGroups verifies that a chunk goes to any group but that of its gateway's last one, with equal frequency.
func TestGroups(t *testing.T) {
	plan, err := puttest.Parts(put.ReplicastM)
	if err != nil {
		t.Fatal(err)
	}
	for _, groups := range []int{2, 5} {
		plan.Targets = groups * plan.GroupSize
		m, err := puttest.NewMemory(plan, sim.New())
		if err != nil {
			t.Fatal(err)
		}
		var drawn [5]int
		const all = 5000
		last := int32(-1)
		for range all {
			g := m.Bus.ChooseGroup(2)
			if g == last || g < 0 || int(g) >= groups {
				t.Fatalf("group %d of %d after %d", g, groups, last)
			}
			drawn[g]++
			last = g
			m.Bus.ChooseGroup(1) // another gateway's
		}
		// Four standard deviations of a fifth of 5000 are 113; the second of the two tries does not change the balance.
		for g, n := range drawn[:groups] {
			if n < all/groups-120 || n > all/groups+120 {
				t.Errorf("group %d of %d is drawn %d times of %d", g, groups, n, all)
			}
		}
	}
}

// TestOracle verifies that under SURGE's rules senders know what others send to a target and do not exceed its link:
// incoming frames never queue longer than two that begin simultaneously.
func TestOracle(t *testing.T) {
	for _, p := range []put.Scheme{put.UCH, put.UCHInverse, put.UCHAIMD} {
		plan, err := puttest.Peers(p)
		if err != nil {
			t.Fatal(err)
		}
		plan.Targets = 3 // each chunk goes to all of them
		eng := sim.New()
		m, err := puttest.NewMemory(plan, eng)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			for g := range int32(plan.Gateways) {
				m.Begin(g)
			}
		}
		eng.Run(units.Second)
		if frame := m.Bus.FrameTime(plan.Frame); m.Crowd > 2*frame || m.Done != 20 || m.Wrong != nil {
			t.Errorf("%v: %d done, frames would wait for %v, of %v each; %v", p.Traits().Name, m.Done, m.Crowd, frame,
				m.Wrong)
		}
	}
}
