package examples

import (
	"fmt"
	"io"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload"
)

// Strided is a custom source of requests, as a program outside of Farflash might implement it: reads of 16 KiB, Stride
// apart, one every Gap.
type Strided struct {
	Requests int
	Stride   int64
	Gap      units.Duration
	made     int
}

// Next implements workload.Source.
func (s *Strided) Next(r *workload.Record) error {
	if s.made == s.Requests {
		return io.EOF
	}
	*r = workload.Record{Time: units.Duration(s.made) * s.Gap, Response: workload.NoResponse,
		Offset: int64(s.made) * s.Stride, Size: 16384, Op: block.Read}
	s.made++
	return nil
}

// A single drive under a custom source: an engine, a drive on it, and the host that issues requests and measures.
func Example_driveAlone() {
	eng := sim.New()
	host := cosim.NewHost(eng)
	cfg := ssd.DefaultConfig()
	cfg.Preconditioning.Fill = ssd.FillSequential
	cfg.Mapping.Ideal = true // the whole map is in DRAM
	drive, err := ssd.New(cfg, eng, host, 1, "ssd[0]")
	if err != nil {
		fmt.Println(err)
		return
	}
	flow := cosim.Flow{Name: "strided",
		Source: &Strided{Requests: 2000, Stride: 1 << 20, Gap: 20 * units.Microsecond},
		Queue:  block.QueueConfig{Depth: 64, Class: block.Medium, Weight: 1}}
	if err := host.Attach(drive, []cosim.Flow{flow}); err != nil {
		fmt.Println(err)
		return
	}
	if err := host.Start(); err != nil {
		fmt.Println(err)
		return
	}
	eng.Run(sim.Forever)
	reads := host.Measured(block.Read)
	fmt.Println(reads.Latency.Count(), "reads,", drive.Stats().Reads, "pages of flash")
	fmt.Println("none takes less than the flash does:", reads.Latency.Min() > cfg.Timing.Read[0])
	// Output:
	// 2000 reads, 4000 pages of flash
	// none takes less than the flash does: true
}
