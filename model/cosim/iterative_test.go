package cosim_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/cosim"
	"farflash/model/nvmf"
	"farflash/sim"
	"farflash/workload/flows"
)

// TestReadings verifies the results of the different readings of SNIS for a read and a write on a drive and a network
// that take constant times. By hand: the network takes n, the drive r and w. In the first iteration the write's delay
// is n + w when its stages are added, w when it is measured to its departure from a drive that it reached at its
// arrival time, and n when it does not reach the drive at all; from the next iteration on it is n + w, the true value,
// in all of them.
func TestReadings(t *testing.T) {
	const n = sim.Time(7_000_000) // 7 us
	drive := blocktest.DefaultConfig()
	r, w := drive.Latency[block.Read], drive.Latency[block.Write]
	for _, c := range []struct {
		name        string
		cfg         cosim.IterativeConfig
		first       func(int) sim.Time
		write       sim.Time // of the first iteration
		fixed, less int      // the iteration that repeats, and how many writes the first has moved
	}{
		{name: "stages", write: n + w, fixed: 1, less: 1},
		{name: "departure", cfg: cosim.IterativeConfig{WritesToDeparture: true}, write: w, fixed: 1, less: 1},
		{name: "absent", cfg: cosim.IterativeConfig{FirstWithoutWrites: true}, write: n, fixed: 1, less: 1},
		{name: "absent, departure", cfg: cosim.IterativeConfig{FirstWithoutWrites: true, WritesToDeparture: true},
			write: n, fixed: 1, less: 1},
		{name: "unloaded, departure", cfg: cosim.IterativeConfig{WritesToDeparture: true},
			first: func(int) sim.Time { return n }, write: n + w},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Weights, c.cfg.Most, c.cfg.Full, c.cfg.Threshold, c.cfg.StableFor, c.cfg.DriveDepth = [3]float64{1},
				3, true, 0.1, 3, 8
			jobs := []cosim.Job{
				{Arrival: 0, Request: 0, Command: block.Request{Op: block.Write, Offset: 0, Length: 4096}},
				{Arrival: 1e12, Request: 1, Command: block.Request{Op: block.Read, Offset: 0, Length: 4096}},
			}
			it, err := cosim.NewIterative(c.cfg, jobs, 1, c.first)
			if err != nil {
				t.Fatal(err)
			}
			for i := range c.cfg.Most {
				if err := it.Storage(0, func(e *sim.Engine, done func(block.Completion)) (block.Device, error) {
					return blocktest.New(drive, e, done)
				}); err != nil {
					t.Fatal(err)
				}
				err := it.Network(func(*cosim.Job) (int32, int32) { return 0, 1 }, 3,
					func(list []flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
						return func(k int) (sim.Time, sim.Time) { return list[k].Start, list[k].Start + n }, 0, nil
					})
				if err != nil {
					t.Fatal(err)
				}
				it.Finish()
				want := []sim.Time{n + w, r + n}
				if i == 0 {
					want[0] = c.write
				}
				for q, d := range it.Delays() {
					if d != want[q] {
						t.Errorf("iteration %d: request %d is %v late, not %v", i, q, d, want[q])
					}
					var sum sim.Time
					for stage := range nvmf.Stages {
						sum += it.Stages(q)[stage]
					}
					if sum != d {
						t.Errorf("iteration %d: the stages of request %d take %v, it %v", i, q, sum, d)
					}
				}
			}
			if it.Fixed != c.fixed || it.Turns[0].Changed != c.less {
				t.Errorf("it repeats at %d, and the first iteration moved %d writes", it.Fixed, it.Turns[0].Changed)
			}
		})
	}
}

// TestConvergence compares SNIS' equation 3 with a calculation by hand. Five requests of 8 KiB have delays of 1, 2,
// 2.5, 4 and 8 us in one iteration and of 2, 2.5, 4, 4 and 8 us in the next, which are throughputs of 8, 4, 3.2, 2, 1
// and of 4, 3.2, 2, 2, 1 KiB per us: the means are 18.2/5 and 12.2/5, the medians 3.2 and 2, the 90th percentiles,
// which nine in ten do not exceed, 8 and 4. So the distances are 6/18.2, 1.2/3.2 and 4/8, and weighted by 1/2, 1/3 and
// 1/6 they are 3/18.2 + 1/8 + 1/12.
func TestConvergence(t *testing.T) {
	const us = sim.Time(1_000_000)
	jobs := make([]cosim.Job, 5)
	for i := range jobs {
		jobs[i] = cosim.Job{Arrival: sim.Time(i) * 1000 * us, Request: int32(i),
			Command: block.Request{Op: block.Write, Length: 8192}}
	}
	drive := blocktest.DefaultConfig()
	drive.Latency[block.Write] = 0
	second := []sim.Time{2 * us, 2500 * us / 1000, 4 * us, 4 * us, 8 * us}
	delays := [][]sim.Time{{1 * us, 2 * us, 2500 * us / 1000, 4 * us, 8 * us}, second, second}
	it, err := cosim.NewIterative(cosim.IterativeConfig{Weights: [3]float64{1. / 2, 1. / 3, 1. / 6}, Most: 3,
		Full: true, Threshold: .3, StableFor: 3, DriveDepth: 8}, jobs, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, network := range delays {
		if err := it.Storage(0, func(e *sim.Engine, done func(block.Completion)) (block.Device, error) {
			return blocktest.New(drive, e, done)
		}); err != nil {
			t.Fatal(err)
		}
		err := it.Network(func(*cosim.Job) (int32, int32) { return 0, 1 }, 3,
			func(list []flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
				return func(k int) (sim.Time, sim.Time) { return list[k].Start, list[k].Start + network[k] }, 0, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		it.Finish()
	}
	for i, want := range []cosim.Turn{{}, {Mean: 6 / 18.2, Median: .375, P90: .5, ConvC: 3/18.2 + 1./8 + 1./12}, {}} {
		got := it.Turns[i]
		for _, x := range [][2]float64{{got.Mean, want.Mean}, {got.Median, want.Median}, {got.P90, want.P90},
			{got.ConvC, want.ConvC}} {
			if math.Abs(x[0]-x[1]) > 1e-12 {
				t.Errorf("iteration %d: distances %v, %v, %v and Conv_C %v; want %v, %v, %v and %v", i, got.Mean,
					got.Median, got.P90, got.ConvC, want.Mean, want.Median, want.P90, want.ConvC)
			}
		}
	}
	// 0.3732 is not below 0.3, and 0 is.
	if it.Converged != 2 {
		t.Errorf("converged at %d, not 2", it.Converged)
	}
	for _, x := range [][3]float64{{3, 4, .25}, {4, 3, .25}, {0, 5, 1}, {0, 0, 0}, {2, 2, 0}} {
		if got := cosim.RelativeDistance(x[0], x[1]); got != x[2] {
			t.Errorf("the distance of %v and %v is %v, not %v", x[0], x[1], got, x[2])
		}
	}
}

// TestWhereThingsLie uses three drives, two of them in the first target, and stripes of 8 KiB.
func TestWhereThingsLie(t *testing.T) {
	const K = 1024
	type part struct {
		drive          int32
		offset, length int64
	}
	for _, c := range []struct {
		name           string
		by             cosim.Spread
		volume         uint32
		offset, length int64
		want           []part
	}{
		// Stripe i of volume v is on drive i + v modulo 3, as the i/3rd there: volumes begin on different drives.
		{"volume 0 from its beginning", cosim.ByStripe, 0, 0, 32 * K,
			[]part{{0, 0, 8 * K}, {1, 0, 8 * K}, {2, 0, 8 * K}, {0, 8 * K, 8 * K}}},
		{"volume 1 from its beginning", cosim.ByStripe, 1, 0, 32 * K,
			[]part{{1, 0, 8 * K}, {2, 0, 8 * K}, {0, 0, 8 * K}, {1, 8 * K, 8 * K}}},
		{"volume 5 as volume 2", cosim.ByStripe, 5, 0, 8 * K, []part{{2, 0, 8 * K}}},
		{"volume 2 across an edge", cosim.ByStripe, 2, 29 * K, 4 * K, []part{{2, 8*K + 5*K, 3 * K}, {0, 8 * K, K}}},
		{"within a stripe", cosim.ByStripe, 0, 25 * K, 2 * K, []part{{0, 9 * K, 2 * K}}},
		// Commands have at most 16 KiB.
		{"volume 4 as a whole", cosim.ByVolume, 4, 5 * K, 40 * K,
			[]part{{1, 5 * K, 16 * K}, {1, 21 * K, 16 * K}, {1, 37 * K, 8 * K}}},
		// Volume 3 is the second of target 1, which has one drive; volume 2 the second of target 0, which has two,
		// and 4 its third.
		{"target of volume 3", cosim.ByTarget, 3, K, K, []part{{2, K, K}}},
		{"target of volume 2", cosim.ByTarget, 2, K, K, []part{{1, K, K}}},
		{"target of volume 4", cosim.ByTarget, 4, K, K, []part{{0, K, K}}},
	} {
		r, err := cosim.NewRouter(cosim.Route{Drive: c.by, Unit: 8 * K, MaxTransfer: 16 * K}, 1,
			[][]int32{{0, 1}, {2}}, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := cosim.NewRecorder(sim.New(), r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rec.Open(block.QueueConfig{}); err != nil {
			t.Fatal(err)
		}
		rec.Submit(0, block.Request{Op: block.Read, Volume: c.volume, Offset: c.offset, Length: c.length})
		var got []part
		for _, j := range rec.Jobs {
			got = append(got, part{j.Drive, j.Command.Offset, j.Command.Length})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	// A drive holds whole stripes only: three drives of 20 KiB hold six stripes.
	if r, err := cosim.NewRouter(cosim.Route{Drive: cosim.ByStripe, Unit: 8 * K}, 1, [][]int32{{0, 1}, {2}},
		20*K); err != nil || r.Capacity(0) != 48*K {
		t.Errorf("%d B, %v", r.Capacity(0), err)
	}
}

// turnsOf returns an alternating simulation of drives and network for reads and writes in one drive.
func turnsOf(t *testing.T, cfg cosim.IterativeConfig, ops ...block.Op) *cosim.Iterative {
	t.Helper()
	var jobs []cosim.Job
	for k, op := range ops {
		jobs = append(jobs, cosim.Job{Arrival: sim.Time(k), Request: int32(k),
			Command: block.Request{Op: op, Length: 4096}})
	}
	it, err := cosim.NewIterative(cfg, jobs, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// memory returns a constructor of drives in memory with a configuration.
func memory(cfg blocktest.Config) func(*sim.Engine, func(block.Completion)) (block.Device, error) {
	return func(e *sim.Engine, done func(block.Completion)) (block.Device, error) {
		return blocktest.New(cfg, e, done)
	}
}

// TestDriveDepth verifies that a drive with a depth of two serves five commands that arrive almost simultaneously two
// at a time, in order, while the others are held before it.
func TestDriveDepth(t *testing.T) {
	cfg := blocktest.DefaultConfig()
	l := cfg.Latency[block.Read]
	it := turnsOf(t, cosim.IterativeConfig{DriveDepth: 2, Most: 1, StableFor: 3}, block.Read, block.Read, block.Read,
		block.Read, block.Read)
	if err := it.Storage(0, memory(cfg)); err != nil {
		t.Fatal(err)
	}
	started := 0
	err := it.Network(func(*cosim.Job) (int32, int32) { return 1, 0 }, 3,
		func(list []flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
			for k, f := range list {
				if f.Src != 1 || f.Dst != 0 || f.Class != 3 || f.Size != 4096 || k > 0 && f.Start < list[k-1].Start {
					t.Errorf("flow %d is %+v", k, f)
				}
				started++
			}
			return func(k int) (sim.Time, sim.Time) { return list[k].Start + 5, list[k].Start + 12 }, 9, nil
		})
	if err != nil || started != 5 {
		t.Fatalf("%d flows: %v", started, err)
	}
	it.Finish()
	for k, departs := range []sim.Time{l, 1 + l, 2 * l, 1 + 2*l, 3 * l} {
		sa, sd, na, nd := it.Times(k)
		if sa != sim.Time(k) || sd != departs || na != sd || nd != sd+12 {
			t.Errorf("request %d: %v, %v, %v, %v", k, sa, sd, na, nd)
		}
		s := it.Stages(k)
		if s[nvmf.AtTarget] != departs-l-sim.Time(k) || s[nvmf.Flash] != l || s[nvmf.TXQ] != 5 ||
			s[nvmf.NetworkBack] != 7 || s[nvmf.DriveWait] != 0 {
			t.Errorf("request %d: %v", k, s)
		}
	}
	if it.Turns[0].Pauses != 9 {
		t.Errorf("%d pauses", it.Turns[0].Pauses)
	}
}

// TestTurnsErrors covers requests that cannot be simulated in turns, a drive that fails, one that never completes, and
// messages that never arrive.
func TestTurnsErrors(t *testing.T) {
	if _, err := cosim.NewIterative(cosim.IterativeConfig{},
		[]cosim.Job{{Request: 4, Command: block.Request{Op: block.Flush}}}, 1, nil); err == nil ||
		!strings.HasPrefix(err.Error(), "request 5 is a flush") {
		t.Errorf("a flush: %v", err)
	}
	depth := cosim.IterativeConfig{DriveDepth: 8}
	broken := errors.New("no such drive")
	if err := turnsOf(t, depth, block.Read).Storage(0,
		func(*sim.Engine, func(block.Completion)) (block.Device, error) {
			return nil,
				broken
		}); !errors.Is(err, broken) {
		t.Errorf("a drive that cannot be made: %v", err)
	}
	refuses := blocktest.DefaultConfig()
	refuses.Refuse = func(block.Request) block.Status { return block.WriteFault }
	if err := turnsOf(t, depth, block.Read, block.Write).Storage(0, memory(refuses)); err == nil ||
		err.Error() != "request 2: write fault" {
		t.Errorf("a drive that fails: %v", err)
	}
	never := turnsOf(t, depth, block.Read, block.Write)
	err := never.Storage(0, func(e *sim.Engine, _ func(block.Completion)) (block.Device, error) {
		return blocktest.New(blocktest.DefaultConfig(), e, func(block.Completion) {})
	})
	if err == nil || err.Error() != "drive 0: 2 of 2 requests have not completed and no events remain" {
		t.Errorf("a drive that is never done: %v", err)
	}
	ends := func(*cosim.Job) (int32, int32) { return 0, 1 }
	if err := never.Network(ends, 3,
		func([]flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
			return nil, 0,
				broken
		}); !errors.Is(err, broken) {
		t.Errorf("a network that fails: %v", err)
	}
	err = never.Network(ends, 3, func([]flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
		return func(k int) (sim.Time, sim.Time) {
			if k == 0 {
				return 1, 2
			}
			return 1, sim.Forever
		}, 0, nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "request 2 never arrived") {
		t.Errorf("a message that is lost: %v", err)
	}
}

// unwilling is a device that refuses to open queues.
type unwilling struct{ block.Device }

func (unwilling) Open(block.QueueConfig) (block.QueueID, error) {
	return 0, errors.New("no more queues")
}

// TestTurnsWaits verifies that the wait that a drive reports for a request is used, bounded by the request's time in
// the drive; and that a drive must open a queue.
func TestTurnsWaits(t *testing.T) {
	cfg := blocktest.DefaultConfig()
	l := cfg.Latency[block.Read]
	for _, c := range []struct{ says, want sim.Time }{{0, 0}, {l / 3, l / 3}, {l, l}, {9 * l, l}} {
		it := turnsOf(t, cosim.IterativeConfig{DriveDepth: 1, Most: 1, StableFor: 3}, block.Read, block.Read)
		if err := it.Storage(0, func(e *sim.Engine, done func(block.Completion)) (block.Device, error) {
			return blocktest.New(cfg, e, func(x block.Completion) {
				x.Waited = c.says
				done(x)
			})
		}); err != nil {
			t.Fatal(err)
		}
		if err := it.Network(func(*cosim.Job) (int32, int32) { return 1, 0 }, 3,
			func(list []flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
				return func(k int) (sim.Time, sim.Time) { return list[k].Start, list[k].Start + 12 }, 0, nil
			}); err != nil {
			t.Fatal(err)
		}
		it.Finish()
		for k := range 2 {
			if s := it.Stages(k); s[nvmf.DriveWait] != c.want || s[nvmf.Flash] != l-c.want {
				t.Errorf("request %d, which the drive says waited %v, waited %v and was served for %v", k, c.says,
					s[nvmf.DriveWait], s[nvmf.Flash])
			}
		}
	}
	err := turnsOf(t, cosim.IterativeConfig{DriveDepth: 1}, block.Read).Storage(0,
		func(e *sim.Engine, done func(block.Completion)) (block.Device, error) {
			d, err := blocktest.New(cfg, e, done)
			return unwilling{d}, err
		})
	if err == nil || err.Error() != "no more queues" {
		t.Errorf("a drive without queues: %v", err)
	}
}

// TestFlowsInOrder verifies that the network receives flows in order of their starts, and that its results go to the
// right requests: a read's data follows a write that arrived after it.
func TestFlowsInOrder(t *testing.T) {
	cfg := blocktest.DefaultConfig()
	l := cfg.Latency[block.Read]
	it := turnsOf(t, cosim.IterativeConfig{DriveDepth: 8, Most: 1, StableFor: 3}, block.Read, block.Write, block.Read,
		block.Write)
	if err := it.Storage(0, memory(cfg)); err != nil {
		t.Fatal(err)
	}
	if err := it.Network(func(*cosim.Job) (int32, int32) { return 0, 1 }, 3,
		func(list []flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
			var starts []sim.Time
			for _, f := range list {
				starts = append(starts, f.Start)
			}
			if want := []sim.Time{1, 3, l, l + 2}; !slices.Equal(starts, want) {
				t.Errorf("flows start at %v, want %v", starts, want)
			}
			return func(k int) (sim.Time, sim.Time) { return list[k].Start, list[k].Start + sim.Time(100+k) }, 0, nil
		}); err != nil {
		t.Fatal(err)
	}
	for k, want := range []sim.Time{l + 102, 1 + 100, l + 2 + 103, 3 + 101} {
		if _, _, _, nd := it.Times(k); nd != want {
			t.Errorf("request %d is there at %v, want %v", k, nd, want)
		}
	}
}
