// Package training trains the models that predict a drive's read and write throughput: it simulates the drive under
// many workloads and weight ratios, grows a forest on the results, and reports its accuracy on unseen workloads.
//
// Its main types are Config, the runs and the parameters of the forest; Set, the resulting samples; Trainer, which
// trains and stores the models for scenarios with model: auto; and Report, the accuracy of models (Evaluate).
//
// It follows section III-B of SRC (Jia et al., "SRC: Mitigate I/O Throughput Degradation in Network Congestion Control
// of Disaggregated Storage Systems", 2023) and its section IV-C: micro traces with exponential sizes and inter-arrival
// times, and synthetic ones, Markov-modulated processes with the moments of recorded traces, in four classes by the
// variability of both. A sample is a trace at a weight ratio: the load on the drive in a window (ratecontrol.Features),
// and its reads and writes in it. In each division a trace is either for training or for testing.
//
// Every sample is a trial of package study, so samples are cached and computed in parallel, and an interrupted training
// resumes. The same drive and Config yield the same bytes. It leaves out online learning, and several drives in one
// model.
package training

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"

	"farflash/block"
	"farflash/experiment/trial"
	"farflash/numeric/units"
	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
	"farflash/workload"
	"farflash/workload/synth"
)

// Config configures the training of a model.
type Config struct {
	Micro     int // traces with exponential sizes and times
	Synthetic int // traces with the moments of recorded ones, over all four classes
	// Ratios are weight ratios, in ascending order; each trace runs at one out of each Per neighbours among them.
	Ratios []int
	Per    int
	// Partition is that of the drive's separate queues.
	Partition ratecontrol.Partition
	// Sizes are the smallest and the largest mean size, Gaps the smallest and the largest mean inter-arrival time of
	// the requests of a direction.
	Sizes [2]units.Bytes
	Gaps  [2]units.Duration
	// A run lasts WarmUp followed by Window, from which the sample is taken. A longer warm-up leaves a larger backlog
	// that no feature describes.
	WarmUp, Window units.Duration
	Seed           uint64
	Forest         forest.Config
}

// DefaultConfig is the configuration for model: auto. Its ranges of sizes and times include those of SRC's figure 5 (10
// to 40 KB, 10 to 25 us) and of its experiments (44 KB, 23 KB) with a margin.
func DefaultConfig() Config {
	return Config{
		Micro: 320, Synthetic: 320, Ratios: []int{1, 2, 3, 4, 5, 6, 8, 12, 16, 32}, Per: 2,
		Sizes:  [2]units.Bytes{8 * units.KB, 64 * units.KB},
		Gaps:   [2]units.Duration{8 * units.Microsecond, 64 * units.Microsecond},
		WarmUp: units.Millisecond, Window: 15 * units.Millisecond, Seed: 1,
		Forest: forest.Config{Trees: 100, Try: ratecontrol.Inputs / 2, Leaf: 3, Seed: 1},
	}
}

// Limits of a training.
const (
	mostTraces = 100_000
	mostRatio  = 10_000
)

// Validate reports invalid settings, each with its key.
func (c *Config) Validate() error {
	var bad units.Faults
	bad.Hold(c.Micro >= 0 && c.Micro <= mostTraces, "micro", "%d traces are not possible; use 0 to %d", c.Micro,
		mostTraces)
	bad.Hold(c.Synthetic >= 0 && c.Synthetic <= mostTraces, "synthetic", "%d traces are not possible; use 0 to %d",
		c.Synthetic, mostTraces)
	bad.Hold(c.Micro+c.Synthetic > 0, "micro", "no traces")
	bad.Hold(len(c.Ratios) > 0, "ratios", "no ratios; use for example 1, 2, 4")
	for i, w := range c.Ratios {
		bad.Hold(w >= 1 && w <= mostRatio && (i == 0 || w > c.Ratios[i-1]), fmt.Sprintf("ratios[%d]", i),
			"%d is not possible; use 1 to %d, in rising order", w, mostRatio)
	}
	bad.Hold(c.Per >= 1, "per", "%d is not possible; use 1 or more", c.Per)
	bad.Hold(c.Sizes[0] >= units.Sector && c.Sizes[0] <= c.Sizes[1] && c.Sizes[1] <= units.MiB, "sizes",
		"%v to %v are not possible; use 512B to 1MiB", c.Sizes[0], c.Sizes[1])
	bad.Hold(c.Gaps[0] >= 100*units.Nanosecond && c.Gaps[0] <= c.Gaps[1] && c.Gaps[1] <= units.Second, "gaps",
		"%v to %v are not possible; use 100ns to 1s", c.Gaps[0], c.Gaps[1])
	bad.Hold(c.WarmUp >= 0 && c.Window >= units.Millisecond && c.Window <= 10*units.Second &&
		c.WarmUp <= 10*units.Second, "window", "%v after %v is not possible; use 1ms to 10s", c.Window, c.WarmUp)
	if err := bad.Err(); err != nil {
		return err
	}
	return units.Within("forest", c.Forest.Validate())
}

// Row describes a sample beyond its inputs and outputs.
type Row struct {
	Trace int
	Class Class
	Ratio int
	// Saturated means that the drive has read and written less than 95 % of the arriving bytes.
	Saturated bool
}

// Set is the samples of a drive.
type Set struct {
	Samples *forest.Samples
	Rows    []Row
}

// saturated is the least share of the arriving bytes that a drive which keeps up completes: the rest is in flight at
// both ends of the window.
const saturated = 0.95

// Sweep runs a drive under all traces and returns the samples, in the order of the traces. Trials in the runner's cache
// are not run again.
func Sweep(ctx context.Context, r study.Runner, drive *scenario.Drive, cfg Config) (*Set, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	base, err := base(drive, &cfg)
	if err != nil {
		return nil, err
	}
	set := &Set{Samples: &forest.Samples{Inputs: ratecontrol.InputNames(), Outputs: ratecontrol.OutputNames()}}
	var trials []trial.Trial
	for _, x := range cfg.traces() {
		for _, w := range cfg.ratios(&x) {
			s := x.scenario(base, w)
			digest, err := s.Digest()
			if err != nil {
				return nil, err
			}
			trials = append(trials, trial.Trial{Scenario: s, Digest: digest, Seed: x.seed})
			set.Rows = append(set.Rows, Row{Trace: x.number, Class: x.class, Ratio: w})
		}
	}
	outcomes := r.Run(ctx, trials)
	ch, of := ratecontrol.Features{}, -1
	for i, o := range outcomes {
		switch {
		case o.State == study.Pending:
			return nil, trial.ErrInterrupted
		case o.Err != nil:
			return nil, fmt.Errorf("trace %d at weight ratio %d: %w", set.Rows[i].Trace, set.Rows[i].Ratio, o.Err)
		}
		row := &set.Rows[i]
		if row.Trace != of {
			of = row.Trace
			if ch, err = features(o.Scenario, o.Seed, &cfg); err != nil {
				return nil, fmt.Errorf("trace %d: %w", of, err)
			}
		}
		x := ch.Vector(row.Ratio)
		var y [ratecontrol.Outputs]float64
		asked := 0.0
		for op := range y {
			// A drive without completions has no such metric.
			if m, ok := o.Result.Metric(block.Op(op).String() + ".bandwidth"); ok {
				y[op] = m.Value
			}
			asked += ch.Of[op].Speed
		}
		row.Saturated = y[block.Read]+y[block.Write] < float64(saturated*asked)
		set.Samples.Add(x[:], y[:], row.Trace)
	}
	return set, nil
}

// base returns the scenario on which all trials are based.
func base(drive *scenario.Drive, cfg *Config) (*scenario.Scenario, error) {
	text := fmt.Sprintf(
		"ssd: mqsim-default\nrate_control: {kind: static}\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: "+
			"10us}}, addresses: fold}]\nmeasure: {until: %v, warm_up: %v}\n",
		cfg.WarmUp+cfg.Window, cfg.WarmUp)
	s, err := scenario.Parse(shape.Source{File: "training", Text: []byte(text)}, nil)
	if err != nil {
		return nil, err
	}
	s.Name, s.SSD, s.RateControl.Partition = "training", drive, cfg.Partition
	return s, nil
}

// features are the features of the arrivals in a trial's window, which do not depend on the weight ratio.
func features(s *scenario.Scenario, seed uint64, cfg *Config) (ratecontrol.Features, error) {
	end := cfg.WarmUp + cfg.Window
	g, err := synth.New(s.SyntheticConfig(0, 0, 0, seed, s.Addressable(0)))
	if err != nil {
		return ratecontrol.Features{}, err
	}
	m := ratecontrol.NewMonitor(cfg.Window, cfg.WarmUp)
	var r workload.Record
	for {
		switch err := g.Next(&r); {
		case errors.Is(err, io.EOF) || err == nil && r.Time >= end:
			return m.Features(end), nil
		case err != nil:
			return ratecontrol.Features{}, err
		case r.Time >= cfg.WarmUp:
			m.Arrived(r.Time, r.Op, r.Size)
		}
	}
}

// Grow grows the model on all samples of a set.
func (s *Set) Grow(drive string, cfg *Config, workers int) (*forest.Forest, error) {
	f, err := forest.Grow(s.Samples, cfg.Forest, workers)
	if err != nil {
		return nil, err
	}
	traces, most := map[int]bool{}, 0
	for _, r := range s.Rows {
		traces[r.Trace] = true
		most = max(most, r.Ratio)
	}
	f.Notes = []forest.Note{
		{Name: "drive", Value: drive}, {Name: "samples", Value: strconv.Itoa(len(s.Rows))},
		{Name: "traces", Value: strconv.Itoa(len(traces))},
		{Name: "largest weight ratio", Value: strconv.Itoa(most)}, {Name: "window", Value: cfg.Window.String()},
		{Name: ratecontrol.PartitionNote, Value: cfg.Partition.String()},
		{Name: "seed", Value: strconv.FormatUint(cfg.Seed, 10)},
	}
	return f, nil
}

// WriteCSV writes the samples as a table: a header line, then one line per sample.
func (s *Set) WriteCSV(to io.Writer) error {
	w := csv.NewWriter(to)
	line := append([]string{"trace", "class", "saturated"}, s.Samples.Inputs...)
	line = append(line, s.Samples.Outputs...)
	if err := w.Write(line); err != nil {
		return err
	}
	for i, r := range s.Rows {
		line = append(line[:0], strconv.Itoa(r.Trace), r.Class.String(), strconv.FormatBool(r.Saturated))
		for _, v := range s.Samples.X(i) {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
		}
		for _, v := range s.Samples.Y(i) {
			line = append(line, strconv.FormatFloat(v, 'g', -1, 64))
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}
