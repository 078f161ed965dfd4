package put_test

import (
	"math/bits"
	"testing"

	"farflash/model/cluster/put"
	"farflash/model/cluster/put/puttest"
	"farflash/numeric/units"
	"farflash/sim"
)

// TestProtocols verifies that every protocol works on a cluster other than package cluster's: a lone chunk is no faster
// than the floor, and many chunks complete concurrently; afterwards no target expects anything, and every bid made has
// ended.
func TestProtocols(t *testing.T) {
	for k := range 4 * put.Count {
		p := k % put.Count
		plan, err := puttest.Parts(p)
		switch k / put.Count {
		case 1:
			if plan.Queued = false; plan.Traits.Queued {
				continue
			}
		case 2:
			if p.Traits().Build == put.CompatNone {
				continue
			}
			plan, err = puttest.Peers(p)
		case 3:
			plan.WriteBack = true
		}
		if err != nil {
			t.Fatal(err)
		}
		eng := sim.New()
		m, err := puttest.NewMemory(plan, eng)
		if err != nil {
			t.Fatal(err)
		}
		name := plan.Traits.Name
		m.Begin(0)
		expected := 0
		for at := sim.Time(0); at < plan.Times.DiskChunk; at += plan.Times.DiskChunk / 200 {
			eng.Run(at)
			for target := range int32(plan.Targets) {
				if promised, _ := m.Protocol.(put.Forecast).Expects(target); promised {
					expected |= 1 << target
				}
			}
		}
		if bits.OnesCount(uint(expected)) < 1 || plan.Traits.Finds == put.FindsOwn && expected != 1 {
			t.Errorf("%v: targets %b expect data", name, expected)
		}
		if m.Done > 0 && !plan.WriteBack {
			t.Errorf("%v: a chunk is kept before a disk can have written it", name)
		}
		floor := m.Protocol.(put.Forecast).Floor(&m.Bus.Plan)
		at := eng.Now()
		for m.Done == 0 && at < 20*units.Millisecond {
			at = eng.Next()
			eng.Run(at)
		}
		near := sim.Time(0)
		if plan.Traits.Finds == put.FindsPlaced {
			near = 10 * units.Picosecond // rates of flows are whole bits a second
		}
		if off, ok := overFloor(&plan); ok && max(at-floor-off, floor+off-at) > near {
			t.Errorf("%v: a chunk that is alone takes %v; its floor is %v, %v from what is expected", name, at, floor,
				at-floor-off)
		}
		eng.Run(20 * units.Millisecond)
		if m.Done != 1 {
			t.Errorf("%v: a chunk that is alone is not put", name)
		}
		const rounds = 40
		for range rounds {
			for g := range int32(plan.Gateways) {
				m.Begin(g)
			}
		}
		eng.Run(units.Second)
		if m.Done+m.Dropped != 1+rounds*plan.Gateways || m.Done < rounds {
			t.Errorf("%v: %d done and %d given up of %d", name, m.Done, m.Dropped, 1+rounds*plan.Gateways)
		}
		if m.Wrong != nil || put.InFlight(m.Protocol) != 0 {
			t.Errorf("%v: %d replicas are in flight; %v", name, put.InFlight(m.Protocol), m.Wrong)
		}
		for target := range int32(plan.Targets) {
			if promised, open := m.Protocol.(put.Forecast).Expects(target); promised || open {
				t.Errorf("%v: target %d still expects something", name, target)
			}
		}
	}
}

// overFloor returns the difference between a lone chunk's time on an in-memory cluster and its floor, for protocols
// without randomness. Messages never queue there, neither behind each other nor behind frames; on a link, the request
// for each next replica waits for the last frame of the one before.
func overFloor(p *put.Plan) (sim.Time, bool) {
	switch p.Traits.Name {
	case "uch-ccp", "uch-ccp-inverse", "uch-aimd":
		if p.Queued {
			return -sim.Time(p.Copies-1) * p.Times.Send(p.Piece%p.Frame, p.Times.Effective), true
		}
		return 0, p.Traits.Name != "uch-aimd"
	case "pull":
		// The data need not wait until the announcements have left.
		return -sim.Time(p.Candidates) * p.Times.Send(p.Times.ControlSize, p.Times.Effective), true
	case "replicast-m", "replicast-proxy":
		return 0, p.Queued
	case "replicast-h", "replicast-h-double":
		return 0, false // later replicas are requested at random times
	}
	return 0, true
}

// TestTable verifies that protocols have distinct names, implement Forecast and Recovery as their traits say, and name
// their messages.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for p := range put.Count {
		x := p.Traits()
		if x == nil || x.Name == "" || x.New == nil || x.Times == nil || x.Finds == 0 {
			t.Fatalf("protocol %d has no traits: %+v", p, x)
		}
		for _, name := range []string{x.Name, "model " + x.Number} {
			if seen[name] {
				t.Errorf("two protocols are %s", name)
			}
			seen[name] = name != "model "
		}
		for kind, name := range x.Messages {
			if name == "" || x.Says(uint8(kind)) != name {
				t.Errorf("%v: message %d is %q", x.Name, kind, x.Says(uint8(kind)))
			}
		}
		if (x.Finds == put.FindsPlaced) == (x.Chosen != "") {
			t.Errorf("%v: who chooses its targets? %q", x.Name, x.Chosen)
		}
		plan, err := puttest.Parts(p)
		if err != nil {
			t.Fatal(err)
		}
		m, err := puttest.NewMemory(plan, sim.New())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Protocol.(put.Forecast); !ok {
			t.Errorf("%v foresees nothing", x.Name)
		}
		if _, ok := m.Protocol.(put.Recovery); ok != (x.Stuck == "") {
			t.Errorf("%v: recovers %v, stuck %q", x.Name, ok, x.Stuck)
		}
	}
}
