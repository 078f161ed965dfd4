package cosim_test

import (
	"testing"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/cosim"
	"farflash/nvmf"
	"farflash/sim"
	"farflash/workload/flows"
)

// TestReadings: what the ways to read SNIS give for a read and a write on a drive and in a network that take constant times. By hand: the
// network takes n, the drive r and w. In the first iteration the write is n + w late when its stages are added, w when its departure from a drive
// that it came to at its arrival counts, and n when it is not in the drive at all; from the next on n + w, which is the truth, in all of them.
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
		{name: "absent, departure", cfg: cosim.IterativeConfig{FirstWithoutWrites: true, WritesToDeparture: true}, write: n, fixed: 1, less: 1},
		{name: "unloaded, departure", cfg: cosim.IterativeConfig{WritesToDeparture: true}, first: func(int) sim.Time { return n }, write: n + w},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Weights, c.cfg.Most, c.cfg.Full, c.cfg.Threshold, c.cfg.StableFor, c.cfg.DriveDepth = [3]float64{1}, 3, true, 0.1, 3, 8
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
				err := it.Network(func(*cosim.Job) (int32, int32) { return 0, 1 }, 3, func(list []flows.Flow) (func(int) (sim.Time, sim.Time), uint64, error) {
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
