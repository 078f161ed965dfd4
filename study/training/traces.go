package training

import (
	"fmt"
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"
	"farflash/scenario"
	"farflash/workload/synth"
)

// Class is the variability of a trace's sizes and inter-arrival times.
type Class uint8

// The classes: micro traces, and those of SRC's table III.
const (
	Micro Class = iota
	LowLow
	LowHigh
	HighLow
	HighHigh
	Classes // number of classes
)

var classNames = units.Names[Class]{"micro", "low size SCV + low inter-arrival SCV",
	"low size SCV + high inter-arrival SCV", "high size SCV + low inter-arrival SCV",
	"high size SCV + high inter-arrival SCV"}

// String returns the class's name.
func (c Class) String() string { return classNames.Name(c) }

// moments are the statistics of a recorded trace: squared coefficient of variation, skewness and lag-1 autocorrelation.
// A skewness of 0 means any; it replaces one that no two-phase process with that variation has.
type moments struct{ scv, skewness, acf1 float64 }

// Results of farflash trace info on public excerpts of recorded traces. Variations up to 2 count as low.
var (
	sizeMoments = [2][]moments{
		{
			{1.238, 0, 0.151},     // Fujitsu VDI (SYSTOR '17), reads, whose skewness is 0.84
			{1.543, 2.171, 0.390}, // MSR hm_0, reads
			{1.069, 2.625, 0},     // MSR hm_0, writes, whose autocorrelation is -0.008
		},
		{
			{5.000, 0, 0.799},     // Fujitsu VDI, writes, whose skewness is 2.786
			{2.870, 5.557, 0.172}, // Tencent CBS, reads
			{8.330, 4.216, 0.241}, // Tencent CBS, writes
		},
	}
	gapMoments = [2][]moments{
		{
			{1.418, 2.189, 0.079}, // Fujitsu VDI, reads
			{1.043, 3.433, 0.088}, // TPC-C as in MQSim, reads
			{1.441, 2.985, 0.090}, // DiskSim's ascii.trace, writes
		},
		{
			{6.160, 3.755, 0.215}, // Fujitsu VDI, writes
			{8.916, 3.975, 0.188}, // MSR hm_0, writes
			{3.062, 6.731, 0.173}, // TPC-C as in MQSim, writes
			{8.258, 3.950, 0.498}, // CloudPhysics, writes
		},
	}
)

// shape returns the process with these moments. Moments outside of the range of a two-phase process are replaced by the
// nearest possible ones: any skewness, and 99 % of the largest autocorrelation.
func (m moments) shape() synth.Shape {
	s := synth.Shape{SCV: m.scv, ACF1: min(m.acf1, float64(0.99*(1-1/m.scv)/2))}
	if m.skewness > synth.SkewnessBound(m.scv) {
		s.Skewness = m.skewness
	}
	return s
}

// trace is a workload.
type trace struct {
	number        int
	class         Class
	seed          uint64
	reads, writes synth.Flow
}

// golden is the root of x^5 = x + 1: the fractional parts of i over its powers fill a four-dimensional space evenly
// (Roberts, "The unreasonable effectiveness of quasirandom sequences", 2018).
const golden = 1.1673039782614187

// even returns four numbers from 0 to 1 that fill the space evenly as i grows.
func even(i int) (out [4]float64) {
	step := 1.0
	for k := range out {
		step /= golden
		v := 0.5 + float64(float64(i+1)*step)
		out[k] = v - math.Floor(v)
	}
	return out
}

// between interpolates from a to b by a share, on a logarithmic scale.
func between(a, b, share float64) float64 { return a * rng.Exp(float64(share*rng.Log(b/a))) }

// traces returns all workloads: the micro ones, then the others, cycling through the classes.
func (c *Config) traces() []trace {
	exponential := synth.Shape{Kind: synth.Exponential}
	out := make([]trace, 0, c.Micro+c.Synthetic)
	for n := range c.Micro + c.Synthetic {
		x := trace{number: n, seed: rng.Mix(c.Seed) + uint64(n)}
		i := n
		if n >= c.Micro {
			i = n - c.Micro
			x.class = LowLow + Class(i%int(Classes-LowLow))
			i /= int(Classes - LowLow)
		}
		share := even(i)
		r := rng.NewStream(c.Seed, fmt.Sprintf("training/trace[%d]", n))
		for k, f := range []*synth.Flow{&x.reads, &x.writes} {
			f.Size.Mean = units.Bytes(between(float64(c.Sizes[0]), float64(c.Sizes[1]), share[2*k]))
			f.Interarrival.Mean = units.Duration(between(float64(c.Gaps[0]), float64(c.Gaps[1]), share[2*k+1]))
			f.Size.Shape, f.Interarrival.Shape = exponential, exponential
			if x.class == Micro {
				continue
			}
			high := x.class - LowLow
			f.Size.Shape = pick(&r, sizeMoments[high/2]).shape()
			f.Interarrival.Shape = pick(&r, gapMoments[high%2]).shape()
		}
		out = append(out, x)
	}
	return out
}

// pick returns a random element.
func pick(r *rng.Stream, list []moments) moments { return list[r.IntN(int64(len(list)))] }

// ratios returns the weight ratios at which a trace runs: one out of each Per neighbours.
func (c *Config) ratios(x *trace) []int {
	r := rng.NewStream(c.Seed, fmt.Sprintf("training/ratios[%d]", x.number))
	var out []int
	for i := 0; i < len(c.Ratios); i += c.Per {
		n := min(c.Per, len(c.Ratios)-i)
		out = append(out, c.Ratios[i+int(r.IntN(int64(n)))])
	}
	return out
}

// scenario returns the trace's scenario at a weight ratio.
func (x *trace) scenario(base *scenario.Scenario, w int) *scenario.Scenario {
	s := *base
	load := base.Workload[0]
	reads, writes := x.reads, x.writes
	load.Synthetic = &synth.Config{Reads: &reads, Writes: &writes}
	s.Workload = []scenario.Load{load}
	control := *base.RateControl
	control.Kind, control.WeightRatio = ratecontrol.Static, w
	s.RateControl = &control
	return &s
}
