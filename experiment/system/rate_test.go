package system_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/policy/ratecontrol"
	"farflash/scenario"
)

// still predicts 0.
type still struct{}

func (still) Predict(*ratecontrol.Features, int) (read, write float64) { return 1, 1 }

// TestModelIsOfTheDepth verifies that a model is requested for the drive at the queue depth that the target gives it,
// both by the run and by training before it.
func TestModelIsOfTheDepth(t *testing.T) {
	for _, c := range []struct {
		given string
		want  int
	}{{"16", 16}, {"4096", 512}} {
		s, err := trialtest.Parse("targets: [{count: 1, ssds: 1, ssd: "+trialtest.TinyDrive+
			"}]\nfabric: {topology: {star: {hosts: 2}}}\nrate_control: {kind: src, partition: always}\n"+
			"workload: [{synthetic: {reads: {size: 4KiB, interarrival: 50us}, writes: {size: 4KiB, interarrival: "+
			"50us}, requests: 20}}]\n", "nvmf.drive_depth="+c.given)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		_, err = trial.Run(context.Background(), s,
			experiment.Options{Seed: 1,
				Predict: func(d *scenario.Drive, p ratecontrol.Partition) (ratecontrol.Predictor, error) {
					if asked = d.Host.FetchSize; p != ratecontrol.Always {
						t.Errorf("the run asks for a model with the partition %v", p)
					}
					return still{}, nil
				}})
		if err != nil {
			t.Fatal(err)
		}
		before := s.Unforeseen()
		if len(before) != 1 || asked != c.want || before[0].Host.FetchSize != c.want {
			t.Errorf("drive_depth %s: the run asks for a drive of %d commands, who trains for %d; both are to be %d",
				c.given, asked, before[0].Host.FetchSize, c.want)
		}
	}
}

// TestRatesOfParts verifies that the last, shorter slice of a series is divided by its own length: the rates of all
// slices, times their lengths, add up to the total.
func TestRatesOfParts(t *testing.T) {
	o := trialtest.Run(t,
		"name: parts\ninitiators: 1\ntargets: [{count: 1, ssds: 1, ssd: "+trialtest.TinyDrive+
			"}]\nfabric: {topology: {star: {hosts: 2}}}\nrate_control: {kind: static, weight_ratio: 2}\n"+
			"workload: [{synthetic: {reads: {size: 4KiB, interarrival: {mean: 10us, kind: constant}}, requests: "+
			"120}}]\nmeasure: {until: 1400us}\n", 1)
	v, ok := o.Result.SeriesOf("rate.received")
	if !ok {
		t.Fatal("no series")
	}
	width, bits, at := v.T[1]-v.T[0], 0.0, 0.0 // s
	for _, x := range v.V {
		end := min(at+width, o.Result.SimulatedS)
		bits += x * (end - at)
		at = end
	}
	// one is in flight
	if want := trialtest.Metric(t, o, "read.count") * 4096 * 8; bits < want || bits > want+4096*8 ||
		math.Abs(at-o.Result.SimulatedS) > 1e-12 || math.Mod(at, width) < 1e-9 {
		t.Errorf("%g bits in slices of %g s until %g s, want %g", bits, width, at, want)
	}
}

// TestFailedReadsRelease: reads that fail release their share of the bytes that a controller lets reads have
// outstanding, for the reads of all drives of the target.
func TestFailedReadsRelease(t *testing.T) {
	for _, kind := range []string{"reserve", "pace"} {
		o := trialtest.Run(t, `
targets:
  - ssds: 8
    ssd:
      preset: tlc-enterprise
      reliability: {curve: given, fit: {base: 0.012}, retries: 1, gain: 70%}
      geometry: {channels: 1, chips_per_channel: 2, blocks_per_plane: 20, pages_per_block: 8}
workload: [{synthetic: {reads: {size: 32KiB, interarrival: 20us}, requests: 200}}]
rate_control: {kind: `+kind+`, demands: [{rate: 10Gbps}]}
`, 1)
		failed := trialtest.Metric(t, o, "ssd.errors.failed")
		if failed == 0 {
			t.Errorf("%s: no read failed", kind)
		}
	}
}

// TestNothingLimited verifies that a run whose controller had nothing to divide says so and by how much its requests
// must be faster; that one with them so fast says nothing; and that one whose initiator holds back the commands says
// where they wait.
func TestNothingLimited(t *testing.T) {
	const text = "name: idle\ninitiators: 1\ntargets: [{count: 2, ssds: 1, ssd: " + trialtest.TinyDrive +
		"}]\nnvmf: {queue_depth: 1024, drive_depth: 16, txq: 64KiB}\n" +
		"fabric: {topology: {star: {hosts: 3}}, host_link: 1Gbps}\n" +
		"workload: [{synthetic: {reads: {size: 16KiB, interarrival: {mean: 4ms, kind: exponential}}, " +
		"writes: {size: 16KiB, interarrival: {mean: 4ms, kind: exponential}}, requests: 400}}]\n"
	said := func(o *experiment.Outcome) string {
		for _, w := range o.Result.Warnings {
			if strings.HasPrefix(w, "rate_control limited nothing") {
				return w
			}
		}
		return ""
	}
	for _, kind := range []string{"static", "aimd", "reserve", "pace"} {
		o := trialtest.Run(t, text+"rate_control: {kind: "+kind+"}\n", 1)
		used := trialtest.Metric(t, o, "fabric.utilisation.max")
		want := fmt.Sprintf("rate_control limited nothing: no command waited in a target, so there was nothing to divide. "+
			"The busiest link was used %.2g %%; requests %.2g times as fast would fill it (a trace's scale: %.2g)", 100*used,
			1/used, used)
		if got := said(o); got != want || used > 0.2 {
			t.Errorf("%s: %q, and the busiest link was used %g", kind, got, used)
		}
		faster := fmt.Sprintf("%.0fns", 4e6*used)
		o = trialtest.Run(t, text+"rate_control: {kind: "+kind+"}\n", 1,
			"workload[0].synthetic.reads.interarrival.mean="+faster,
			"workload[0].synthetic.writes.interarrival.mean="+faster)
		if got := said(o); strings.Contains(got, "no command waited") || got != "" && kind != "static" && kind != "aimd" {
			t.Errorf("%s, requests every %s: %q", kind, faster, got) // weights need both kinds to wait
		}
	}
	o := trialtest.Run(t, text+"rate_control: static\n", 1, "nvmf.queue_depth=2",
		"workload[0].synthetic.writes.interarrival.mean=1s", "workload[0].synthetic.reads.interarrival.mean=50us")
	if got := said(o); !strings.HasSuffix(got, "commands wait elsewhere; raise nvmf.queue_depth") {
		t.Errorf("with two commands: %q", got)
	}
	o = trialtest.Run(t, text+"rate_control: static\n", 1, "workload[0].synthetic.writes.interarrival.mean=1s",
		"workload[0].synthetic.reads.interarrival.mean=5us")
	if got := said(o); !strings.HasSuffix(got, ": reads and writes never waited for one drive at the same time") {
		t.Errorf("with reads alone: %q", got)
	}
	if o = trialtest.Run(t, text, 1); said(o) != "" {
		t.Errorf("without rate control: %q", said(o))
	}
}

// TestYieldWithoutAcks verifies that a yield holds back writes only where their data has acknowledgements, as
// fabric.acks.answers has it.
func TestYieldWithoutAcks(t *testing.T) {
	const text = "name: yield\ninitiators: 1\ntargets: [{count: 2, ssds: 1, ssd: " + trialtest.TinyDrive +
		"}]\nnvmf: {queue_depth: 1024, drive_depth: 16, txq: 64KiB, in_capsule: 0B}\n" +
		"fabric: {topology: {star: {hosts: 3}}, host_link: 1Gbps}\nrate_control: {kind: reserve}\n" +
		"workload: [{synthetic: {reads: {size: 16KiB, interarrival: 60us}, " +
		"writes: {size: 16KiB, interarrival: 200us}, requests: 400}}]\nmeasure: {until: 20ms}\n"
	for _, x := range []struct {
		set  string
		held bool
	}{
		{"fabric.congestion_control=dcqcn", false}, {"fabric.acks.answers=explicit", true},
		{"fabric.congestion_control=hpcc", true}, {"fabric.recovery.kind=selective-repeat", true},
		{"fabric.congestion_control={algorithm: none, none: {window: bdp}}", true},
	} {
		written := func(yield string) float64 {
			o := trialtest.Run(t, text, 1, x.set, "rate_control.yield="+yield)
			return trialtest.Metric(t, o, "target.write.bandwidth")
		}
		if all, few := written("100%"), written("0.1%"); (few < 0.9*all) != x.held || !x.held && few != all {
			t.Errorf("%s: writes of %g and, at a yield of 0.1 %%, %g", x.set, all, few)
		}
	}
}

// TestPartitionApplies verifies that a scenario's partition reaches the drives' queues: with only reads, a weight ratio
// of 3 leaves them a quarter of the drive's depth of 16 where shares always bind, and otherwise all of it.
func TestPartitionApplies(t *testing.T) {
	for _, x := range []struct {
		partition string
		most      float64
	}{{"waiting", 16}, {"always", 4}} {
		o := trialtest.Run(t, "name: partition\ninitiators: 1\ntargets: [{count: 1, ssds: 1, ssd: "+trialtest.TinyDrive+
			"}]\nnvmf: {queue_depth: 1024, drive_depth: 16}\nfabric: {topology: {star: {hosts: 2}}}\n"+
			"rate_control: {kind: static, weight_ratio: 3, partition: "+x.partition+"}\n"+
			"workload: [{synthetic: {reads: {size: 16KiB}, requests: 400}, closed: 64}]\n", 1)
		inside, ok := o.Result.SeriesOf("rate.inside.read")
		if !ok {
			t.Fatal("no series")
		}
		most := 0.0
		for _, v := range inside.V {
			most = max(most, v)
		}
		if most != x.most {
			t.Errorf("%s: %v reads are in the drive, not %v", x.partition, most, x.most)
		}
	}
}
