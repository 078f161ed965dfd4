package ssd_test

import (
	"testing"

	"farflash/block"
	"farflash/model/cosim"
	"farflash/model/ssd"
	"farflash/numeric/units"
	"farflash/sim"
	"farflash/workload/mqsimgen"
)

// TestClassesOff verifies that a scheduler that ignores classes serves an urgent and a low queue like two queues of one
// class.
func TestClassesOff(t *testing.T) {
	took := func(respected bool, classes ...block.Class) [2]float64 {
		cfg := smallConfig()
		cfg.Scheduling.Classes = respected
		cfg.Geometry.Channels, cfg.Geometry.ChipsPerChannel = 1, 1
		cfg.Host.Commands = 0
		eng := sim.New()
		h := cosim.NewHost(eng)
		d, err := ssd.New(cfg, eng, h, 1, "ssd")
		if err != nil {
			t.Fatal(err)
		}
		var flows []cosim.Flow
		for i, class := range classes {
			c := mqsimgen.DefaultConfig()
			c.Seed, c.Requests = int32(1+i), 500
			g, err := mqsimgen.New(c)
			if err != nil {
				t.Fatal(err)
			}
			flows = append(flows,
				cosim.Flow{Name: class.String(), Source: g, Outstanding: 16, Start: units.Nanosecond,
					Queue: block.QueueConfig{Class: class}})
		}
		if err := h.Attach(d, flows); err != nil {
			t.Fatal(err)
		}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		eng.Run(sim.Forever)
		return [2]float64{h.FlowMeasured(0, block.Read).Latency.Mean(), h.FlowMeasured(1, block.Read).Latency.Mean()}
	}
	if got, want := took(false, block.Urgent, block.Low), took(false, block.High, block.High); got != want {
		t.Errorf("without classes an urgent and a low queue have means of %v, two of one class %v", got, want)
	}
	if got := took(true, block.Urgent, block.Low); got[0]*2 > got[1] {
		t.Errorf("with classes the urgent queue's mean is %v, the low one's %v", got[0], got[1])
	}
}
