package cosim_test

import (
	"fmt"
	"slices"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/internal/draws"
	"farflash/model/cosim"
	"farflash/model/nvmf"
	"farflash/model/nvmf/nvmftest"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/sim"

	"pgregory.net/rapid"
)

// arrayRig is an array of drives over a network in memory.
type arrayRig struct {
	*cosim.Array
	eng   *sim.Engine
	sys   *nvmf.System
	parts []string // commands given to drives
	torn  func(drive int, r block.Request) int64
	done  []block.Completion
}

// newArrayRig returns an array of drives in one target, striped by 64 KiB. refuse decides with which status a drive
// completes a command.
func newArrayRig(t *testing.T, drives int, refuse func(drive int, r block.Request) block.Status) *arrayRig {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a := &arrayRig{eng: sim.New()}
	cfg := nvmf.DefaultConfig()
	var err error
	a.sys, err = nvmf.New(cfg, nvmf.NVMeoF, true, a.eng)
	must(err)
	a.sys.AddInitiator(0)
	target := a.sys.AddTarget(1)
	for i := range drives {
		c := blocktest.DefaultConfig()
		// Later drives are faster, so that parts do not complete in order.
		for op := range c.Latency {
			c.Latency[op] += sim.Time(drives-i) * 10 * units.Microsecond
		}
		c.Refuse = func(r block.Request) block.Status {
			a.parts = append(a.parts, fmt.Sprintf("%v %d+%d on %d", r.Op, r.Offset, r.Length, i))
			return refuse(i, r)
		}
		c.Torn = func(r block.Request) int64 {
			if a.torn == nil {
				return r.Length
			}
			return a.torn(i, r)
		}
		d, err := blocktest.New(c, a.eng, a.sys.Complete)
		must(err)
		_, err = a.sys.AddDrive(target, d)
		must(err)
	}
	a.Array, err = cosim.NewArray(a.eng, a.sys,
		cosim.Route{Drive: cosim.ByStripe, Unit: 64 * units.KiB,
			MaxTransfer: units.MiB}, func(c block.Completion) { a.done = append(a.done, c) })
	must(err)
	a.sys.Connect(nvmftest.New(nvmftest.DefaultConfig(), a.eng, a.sys), a.Array)
	_, err = a.Open(block.QueueConfig{})
	must(err)
	return a
}

// Whichever part of a request fails, first, last or in between, the request fails with the part's status; and it
// completes once, when all parts have.
func TestArrayStatus(t *testing.T) {
	const drives = 4
	for _, c := range []struct {
		name string
		req  block.Request
	}{
		{"read", block.Request{Op: block.Read, Offset: 0, Length: drives * 64 << 10}},
		{"write", block.Request{Op: block.Write, Offset: 1 << 20, Length: drives * 64 << 10}},
		{"flush", block.Request{Op: block.Flush}},
	} {
		for fails := -1; fails < drives; fails++ {
			for _, status := range []block.Status{block.WriteFault, block.OutOfRange} {
				a := newArrayRig(t, drives, func(drive int, _ block.Request) block.Status {
					if drive == fails {
						return status
					}
					return block.OK
				})
				c.req.Tag = 77
				a.Submit(0, c.req)
				a.eng.Run(sim.Forever)
				want := status
				if fails < 0 {
					want = block.OK
				}
				if len(a.done) != 1 || a.done[0].Status != want || a.done[0].Tag != 77 || a.done[0].Op != c.req.Op ||
					a.done[0].Length != c.req.Length {
					t.Errorf("%s, drive %d refuses: %+v, want one completion with %v", c.name, fails, a.done, want)
				}
				if n := a.Trip().Commands; n != drives || a.Inside() != 0 {
					t.Errorf("%s: %d commands, %d requests inside", c.name, n, a.Inside())
				}
			}
		}
	}
}

// However drives fail and tear writes, each request completes once and fails if and only if one of its commands did, in
// agreement with the system's counters.
func TestArrayFailures(t *testing.T) {
	failed := 0
	draws.Until(t, func() bool { return failed > 0 }, func(rt *rapid.T) {
		const drives = 3
		random := rng.NewStream(rapid.Uint64().Draw(rt, "seed"), "failures")
		odds := rapid.Int64Range(2, 20).Draw(rt, "odds")
		bad := map[uint64]bool{} // requests, by offset
		commands := uint64(0)
		a := newArrayRig(t, drives, func(int, block.Request) block.Status { return block.OK })
		a.torn = func(drive int, r block.Request) int64 {
			if random.IntN(odds) > 0 {
				return r.Length
			}
			commands++
			// The stripes of request n are those numbered n, one in each drive.
			bad[uint64(r.Offset/(64<<10))] = true
			return random.IntN(r.Length/512) * 512
		}
		n := rapid.IntRange(1, 60).Draw(rt, "requests")
		for i := range n {
			a.Submit(0, block.Request{Tag: uint64(i), Op: block.Write, Offset: int64(i) * drives * 64 << 10,
				Length: drives * 64 << 10})
		}
		a.eng.Run(sim.Forever)
		if len(a.done) != n || a.sys.Counters.Failed != commands {
			rt.Fatalf("%d of %d requests ended, %d of %d commands failed", len(a.done), n, a.sys.Counters.Failed,
				commands)
		}
		seen := map[uint64]bool{}
		for _, c := range a.done {
			if seen[c.Tag] || (c.Status != block.OK) != bad[c.Tag] {
				rt.Fatalf("request %d ends as %v, ended before: %v; a command of it failed: %v", c.Tag, c.Status,
					seen[c.Tag], bad[c.Tag])
			}
			seen[c.Tag] = true
		}
		failed += len(bad)
	})
}

// A request is split at stripe boundaries, and each drive's stripes are contiguous.
func TestArrayParts(t *testing.T) {
	const k = 1 << 10
	a := newArrayRig(t, 2, func(int, block.Request) block.Status { return block.OK })
	a.Submit(0, block.Request{Op: block.Read, Offset: 63 * k, Length: 130 * k})
	a.eng.Run(sim.Forever)
	want := []string{
		fmt.Sprintf("read %d+%d on 0", 63*k, k),    // the end of stripe 0
		fmt.Sprintf("read %d+%d on 1", 0, 64*k),    // stripe 1, the first of drive 1
		fmt.Sprintf("read %d+%d on 0", 64*k, 64*k), // stripe 2, behind stripe 0
		fmt.Sprintf("read %d+%d on 1", 64*k, k),    // the beginning of stripe 3
	}
	slices.Sort(a.parts)
	slices.Sort(want)
	if !slices.Equal(a.parts, want) {
		t.Errorf("parts %q, want %q", a.parts, want)
	}
	if len(a.done) != 1 || a.done[0].Length != 130*k {
		t.Errorf("completions %+v", a.done)
	}
}

// TestArrayNumbers verifies that the numbers of completed requests are reused.
func TestArrayNumbers(t *testing.T) {
	a := newArrayRig(t, 2, func(int, block.Request) block.Status { return block.OK })
	for k := range uint64(20) {
		a.Submit(0, block.Request{Op: block.Read, Tag: 100 + k, Length: 512})
		if got, known := a.Tag(1); !known || got != 100+k || a.Inside() != 1 {
			t.Errorf("the only request under way has tag %d, not %d; %d are inside", got, 100+k, a.Inside())
		}
		a.eng.Run(sim.Forever)
	}
	if trip := a.Trip(); trip.Commands != 1 || trip.Ended > a.eng.Now() || trip.Arrival >= trip.Ended {
		t.Errorf("the last trip is %+v", trip)
	}
}
