package drive_test

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"

	"farflash/block"
	"farflash/experiment"
	"farflash/experiment/trial"
	"farflash/experiment/trial/trialtest"
	"farflash/model/cosim"
	"farflash/model/ssd/blame"
	"farflash/numeric/units"
	"farflash/sim"
)

// collected runs a scenario with latency breakdowns and returns its requests.
func collected(t *testing.T, text string, set ...string) (out *experiment.Outcome, stages []blame.Times,
	samples []cosim.Sample) {
	t.Helper()
	s, err := trialtest.Parse(text, append(set, "measure.anatomy=true")...)
	if err != nil {
		t.Fatal(err)
	}
	out, err = trial.Run(context.Background(), s,
		experiment.Options{Seed: 1, Version: "test", Sample: func(x cosim.Sample) error {
			stages, samples = append(stages, *x.Stages), append(samples, x)
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return out, stages, samples
}

// TestAnatomy verifies on drives that collect continuously that the stages of each request add up to its latency, that
// nearly all obstacles are identified, and that the breakdown does not change the result.
func TestAnatomy(t *testing.T) {
	for name, text := range map[string]string{
		"collecting": "ssd: " + strings.Replace(trialtest.TinyDrive, "victim: greedy}", "victim: greedy}, preconditioning: {fill: steady}", 1) + `
workload:
- {synthetic: {reads: {size: 4KiB, interarrival: {mean: 600us, kind: exponential}}, requests: 2000}}
- {synthetic: {writes: {size: 8KiB, interarrival: 1500us}, requests: 1000}, placement: 0}
`,
		"mapped": trialtest.Mixed,
		"closed": "ssd: {preset: tlc-enterprise}\nworkload: [{synthetic: {reads: {size: 16KiB}, writes: {size: " +
			"64KiB}, read_fraction: 70%, requests: 3000}, closed: 64, fua: true}]\n",
		"waiting": "ssd: " + trialtest.TinyDrive +
			"\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 10us}, requests: 500}, queue: {depth: 4}}]\n" +
			"rate_control: {kind: static, weight_ratio: 2}\n",
	} {
		out, stages, samples := collected(t, text)
		var waited, held, gc sim.Time
		for i := range samples {
			x, sum := &samples[i], sim.Time(0)
			for k, v := range stages[i] {
				if v < 0 {
					t.Fatalf("%s: request %d: %s is %v", name, x.ID, blame.Names[k], v)
				}
				sum += v
			}
			if sum != x.Finished-x.Arrival {
				t.Fatalf("%s: request %d took %v, its stages %v add up to %v", name, x.ID, x.Finished-x.Arrival,
					stages[i], sum)
			}
			for k := blame.Reads; k <= blame.Held; k++ {
				waited += stages[i][k]
			}
			held += stages[i][blame.Held]
			gc += stages[i][blame.Moves] + stages[i][blame.Erases]
		}
		if float64(held) > 0.1*float64(waited) {
			t.Errorf("%s: of %v that requests waited, it is not known for %v what for", name, waited, held)
		}
		if name == "collecting" && float64(gc) < 0.2*float64(waited) {
			t.Errorf("%s: of %v that requests waited, %v were behind collection", name, waited, gc)
		}
		m, ok := out.Result.Matrix("read.anatomy")
		if !ok {
			t.Fatalf("%s: no anatomy", name)
		}
		sum := 0.0
		for _, v := range m.V[0] {
			sum += v
		}
		if want := trialtest.Metric(t, out, "read.latency.mean"); math.Abs(sum-want) > 1e-6*want {
			t.Errorf("%s: the parts of the mean read add up to %v, not %v", name, sum, want)
		}
		if plain := trialtest.Run(t, text, 1); !reflect.DeepEqual(plain.Result.Metrics, out.Result.Metrics) {
			t.Errorf("%s: that it is explained changes it", name)
		}
	}
	if _, err := trialtest.Parse(trialtest.SmallSystem, "measure.anatomy=true"); err == nil ||
		!strings.Contains(err.Error(), "measure.anatomy: it is for a drive without a network") {
		t.Errorf("error %v", err)
	}
}

// TestBlame verifies that the second of two reads of one die waits for the first one's array, and for its command and
// its data on the channel.
func TestBlame(t *testing.T) {
	_, stages, samples := collected(t,
		"ssd: {preset: mqsim-default, geometry: {channels: 1, chips_per_channel: 1, dies_per_chip: 1, "+
			"planes_per_die: 1}, mapping: {ideal: true}, cache: {mode: 'off'}, preconditioning: {fill: sequential}}\n"+
			"workload: [{synthetic: {reads: {size: 8KiB, addresses: {align: 8KiB}}, requests: 2}, closed: 2}]\n")
	first, second := &stages[0], &stages[1]
	if first[blame.Reads] != 0 || first[blame.Bus] != 0 || first[blame.Array] < 75*units.Microsecond {
		t.Errorf("the first: %v", *first)
	}
	// The second arrives over the host link some nanoseconds after the first, whose command is being transferred at
	// that time.
	late := first[blame.Transfer] - second[blame.Bus]
	if second[blame.Reads] != first[blame.Array] || late < 0 || late > 100*units.Nanosecond || second[blame.Held] != 0 {
		t.Errorf("the second waits %v for the array, %v for the channel, %v for nothing known; the first one's "+
			"transfer is %v", second[blame.Reads], second[blame.Bus], second[blame.Held], first[blame.Transfer])
	}
	if samples[1].Op != block.Read || samples[1].Blame == nil || samples[1].Blame.By != blame.Reads {
		t.Errorf("what stood in its way: %+v", samples[1].Blame)
	}
}
