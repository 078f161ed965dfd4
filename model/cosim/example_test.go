package cosim_test

import (
	"fmt"

	"farflash/block"
	"farflash/block/blocktest"
	"farflash/model/cosim"
	"farflash/sim"
	"farflash/workload"
)

// A host keeps four reads outstanding on a device that takes 80 us for each.
func Example() {
	eng := sim.New()
	host := cosim.NewHost(eng)
	device, err := blocktest.New(blocktest.DefaultConfig(), eng, host.Complete)
	if err != nil {
		fmt.Println(err)
		return
	}
	records := make([]workload.Record, 1000)
	for i := range records {
		records[i] = workload.Record{Op: block.Read, Offset: int64(i) * 4096, Size: 4096}
	}
	flow := cosim.Flow{Name: "reads", Source: workload.Slice(records), Outstanding: 4,
		Queue: block.QueueConfig{Depth: 32, Weight: 1}}
	if err := host.Attach(device, []cosim.Flow{flow}); err != nil {
		fmt.Println(err)
		return
	}
	if err := host.Start(); err != nil {
		fmt.Println(err)
		return
	}
	eng.Run(sim.Forever)
	m := host.Measured(block.Read)
	fmt.Println(m.Latency.Count(), "reads in", eng.Now(), "of", m.Latency.Max(), "each")
	// Output: 1000 reads in 20ms of 80us each
}
