package examples

import (
	"context"
	"testing"

	"farflash/experiment"
	"farflash/experiment/system"
	"farflash/experiment/trial"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// Polite is a custom rate controller, as a program outside of Farflash might implement it: when the network cuts the
// demand, a target's drives serve writes four times as often as reads, until Rest has passed since the last cut.
type Polite struct {
	Rest units.Duration
	cuts int
}

// Start implements ratecontrol.Controller.
func (p *Polite) Start(s *ratecontrol.Steering) { p.set(s, 1) }

// React implements ratecontrol.Controller.
func (p *Polite) React(s *ratecontrol.Steering, x *ratecontrol.Signal) {
	switch {
	case x.Event == ratecontrol.Demand && x.Cut:
		p.cuts++
		p.set(s, 4)
		s.Wake = x.Now + p.Rest
	case x.Event == ratecontrol.Timer:
		p.set(s, 1)
	}
}

func (p *Polite) set(s *ratecontrol.Steering, ratio int) {
	for d := range s.Weights {
		s.SetRatio(d, ratio)
	}
}

// incastOfReads has two targets whose reads share one initiator's link, while the initiator writes.
const incastOfReads = `
initiators: 1
targets: [{count: 2, ssds: 1, ssd: src-ssd-a}]
nvmf: {queue_depth: 4096, drive_depth: 64, txq: 256KiB}
workload:
  - synthetic:
      reads: {size: 44KiB, interarrival: {mean: 7us, kind: exponential}}
      writes: {size: 24KiB, interarrival: {mean: 7us, kind: exponential}}
fabric: {host_link: 25Gbps}
measure: {until: 10ms, warm_up: 1ms}
`

// TestControllerOfOnesOwn passes a custom controller to the experiment in place of the built-in ones, and verifies
// that it is notified of congestion and increases the write bandwidth.
func TestControllerOfOnesOwn(t *testing.T) {
	s, err := scenario.Parse(shape.Source{File: "incast.yaml", Text: []byte(incastOfReads)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	run := func(k experiment.Kind) float64 {
		out, err := experiment.Run(context.Background(), k, trial.Vocabulary(), s, experiment.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range out.Result.Checks {
			if !c.OK {
				t.Errorf("%s: %s", c.Name, c.Detail)
			}
		}
		m, _ := out.Result.Metric("target.write.bandwidth")
		return m.Value
	}
	var made []*Polite
	polite := run(system.Coupled{Controller: func(target, drives int) (ratecontrol.Controller, error) {
		made = append(made, &Polite{Rest: units.Millisecond})
		return made[len(made)-1], nil
	}})
	nobody := run(system.Coupled{})
	t.Logf("%.3g B/s written with it, %.3g without", polite, nobody)
	if len(made) != 2 || made[0].cuts == 0 || made[1].cuts == 0 {
		t.Fatalf("%d controllers were made for 2 targets, or heard of no congestion", len(made))
	}
	if polite < 1.1*nobody {
		t.Errorf("%v B/s written with it, %v without", polite, nobody)
	}
}
