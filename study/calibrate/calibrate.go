// Package calibrate fits a drive's timing to fio measurements of a real one: the times to read and to program a flash
// page, and the rates of the channels and of the host's link.
//
// [Read] reads fio's results, whose jobs describe the load; [Calibration.Fit] simulates those jobs and varies the
// parameters until the figures agree: rates, mean latencies and percentiles up to the 99th. The loss is Huber's on the
// figures' logarithms, so that one figure outside of the model's range does not distort all others; it is minimised
// without derivatives by the pattern search of Hooke and Jeeves ("'Direct search' solution of numerical and statistical
// problems", Journal of the ACM 8(2), 1961), along the logarithms of the parameters, since a simulated figure is
// neither smooth nor always sensitive. If several parameters affect the same figures, its steps become short; then
// finite differences give a common direction for all of them (a Gauss-Newton step with Huber's weights and Marquardt's
// damping), which is followed as far as it helps.
//
// Parameters that the data do not determine are reported: a parameter that affects no figure keeps its value; one that
// affects figures in one direction only has a bound; two that affect all figures alike are reported as a pair. Standard
// errors are those of linear regression at the solution.
//
// It leaves out what the model leaves out: the controller's processor takes no time, so its time in a real drive is
// included in the fitted read and program times; and tails beyond the 99th percentile, retries, thermal limits.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"farflash/experiment/trial"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
)

// State is the extent to which the data determine a parameter.
type State string

// The states.
const (
	Fitted       State = "fitted"
	AtLeast      State = "at least"       // a larger value has no effect
	AtMost       State = "at most"        // a smaller value has no effect
	Unidentified State = "not identified" // no figure depends on it: it keeps the preset's value
	AtBound      State = "at the bound"   // of the range that is tried
)

// Parameter is a fitted parameter.
type Parameter struct {
	Path   string
	Preset string // its value before the fit
	Value  string // and after it
	Factor float64
	State  State
	Error  float64 // relative standard error; 0 if unknown
	With   string  // another parameter that affects all figures alike, so that only the two together are determined

	write func(factor float64) string
}

// Fit is a figure with its fitted value.
type Fit struct {
	Figure
	Simulated float64 // NaN: the simulation has too few requests for it
}

// Difference is the relative deviation of the simulated figure from the measured one.
func (f *Fit) Difference() float64 { return f.Simulated/f.Measured - 1 }

// Calibration is a fit in progress, and its result.
type Calibration struct {
	Measured    *Measured
	Preset      string
	Parameters  []Parameter
	Fits        []Fit
	Loss        float64 // mean over figures; 0 is exact
	Evaluations int
	Interrupted bool
	Controller  bool // the drive's controller takes time, which is not fitted
	drive       *scenario.Drive
	texts       []string // the waves' scenarios
	run         func(context.Context, []trial.Trial) []study.Outcome
	seed        uint64
	step        func(evaluations int, loss float64)
	known       map[string]valued
}

// valued is the result of a set of parameters.
type valued struct {
	loss    float64
	figures []float64
}

// Config configures a fit.
type Config struct {
	Preset   string
	Changes  []shape.Change // of the drive, such as its preconditioning
	Requests int            // of the slowest side of a job
	Seed     uint64
	// Run computes trials and returns their outcomes, in order.
	Run func(context.Context, []trial.Trial) []study.Outcome
	// Step, if not nil, receives the progress of the fit.
	Step func(evaluations int, loss float64)
}

// The range that is tried: a parameter's value in the preset, multiplied and divided by this.
const most = 16

// New prepares a fit. It returns an error for an invalid preset, change or job.
func New(m *Measured, cfg Config) (*Calibration, error) {
	if cfg.Requests < 1000 || cfg.Requests > 10_000_000 {
		return nil, fmt.Errorf("%d requests are not possible; use 1000 to 10000000", cfg.Requests)
	}
	// Apply the changes to the drive before the jobs.
	stub := shape.Source{File: cfg.Preset,
		Text: []byte("ssd: {preset: " + cfg.Preset +
			"}\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 1}, closed: 1}]\n")}
	if _, err := scenario.PresetDrive(cfg.Preset); err != nil {
		return nil, err
	}
	s, err := scenario.Parse(stub, cfg.Changes)
	if err != nil {
		return nil, err
	}
	c := &Calibration{Measured: m, Preset: cfg.Preset, drive: s.SSD, run: cfg.Run, seed: cfg.Seed, step: cfg.Step,
		known: map[string]valued{}, Controller: s.SSD.Config.Controller != nil}
	if c.texts, err = m.scenarios(s.SSD, cfg.Requests); err != nil {
		return nil, err
	}
	x := &s.SSD.Config
	times := func(of [4]units.Duration) func(float64) string {
		return func(factor float64) string {
			var out []string
			same := true
			for _, d := range of {
				// To a nanosecond, the resolution of data sheets.
				out = append(out, (units.Duration(math.Max(1, math.Round(float64(d)*factor/1e3))) *
					units.Nanosecond).String())
				same = same && out[0] == out[len(out)-1]
			}
			if same {
				return out[0]
			}
			return "[" + strings.Join(out, ", ") + "]"
		}
	}
	c.Parameters = []Parameter{
		{Path: "ssd.timing.read_latency", write: times(x.Timing.Read)},
		{Path: "ssd.timing.program_latency", write: times(x.Timing.Program)},
		{Path: "ssd.timing.channel_rate", write: func(factor float64) string {
			return units.TransferRate(math.Max(1, math.Round(float64(x.Timing.TransferRate)*factor/1e5)) * 1e5).String()
		}},
		{Path: "ssd.host.lane_rate", write: func(factor float64) string {
			return units.ByteRate(math.Max(1, math.Round(float64(x.Host.LaneRate)*factor/1e5)) * 1e5).String()
		}},
	}
	for i := range c.Parameters {
		p := &c.Parameters[i]
		p.Preset, p.Value, p.Factor = p.write(1), p.write(1), 1
	}
	return c, nil
}

// at simulates the jobs with the parameters at the given factors, as logarithms to base 2.
func (c *Calibration) at(ctx context.Context, logs []float64) (valued, error) {
	var changes []shape.Change
	key := ""
	for i, l := range logs {
		v := c.Parameters[i].write(math.Exp2(l))
		changes = append(changes, shape.Change{Path: c.Parameters[i].Path, Value: v, Flag: "fit"})
		key += v + ";"
	}
	if v, ok := c.known[key]; ok {
		return v, nil
	}
	var trials []trial.Trial
	for w, text := range c.texts {
		s, err := scenario.Parse(shape.Source{File: fmt.Sprintf("%s, wave %d", c.Measured.File, w+1),
			Text: []byte(text)}, changes)
		if err != nil {
			return valued{}, err
		}
		digest, err := s.Digest()
		if err != nil {
			return valued{}, err
		}
		trials = append(trials, trial.Trial{Scenario: s, Digest: digest, Seed: c.seed})
	}
	outcomes := c.run(ctx, trials)
	v := valued{figures: make([]float64, len(c.Measured.Figures))}
	for _, o := range outcomes {
		switch o.State {
		case study.Failed:
			return valued{}, o.Err
		case study.Pending:
			return valued{}, trial.ErrInterrupted
		}
	}
	whole := 0.0
	for i, f := range c.Measured.Figures {
		m, ok := outcomes[f.wave].Result.Metric(f.metric)
		v.figures[i] = math.NaN()
		if ok && m.Value > 0 {
			v.figures[i] = m.Value
		}
		v.loss += float64(f.weight * huber(v.figures[i], f.Measured))
		whole += f.weight
	}
	v.loss /= whole
	for _, l := range logs {
		v.loss += float64(ridge * (l * l))
	}
	c.Evaluations++
	c.known[key] = v
	if c.step != nil {
		c.step(c.Evaluations, v.loss)
	}
	return v, nil
}

// enough is the smallest worthwhile improvement of the loss: all figures closer by about 0.04 %.
const enough = 1e-7

// ridge is the penalty on the square of a parameter's logarithm relative to the preset: for a factor of 2, as much as
// one figure of ten that is off by half a per cent. So parameters that the data do not determine stay unchanged.
const ridge = 1e-6

// Huber's threshold, as a share of a figure, and the residual of a missing figure: that of a drive far too slow.
const (
	threshold = 0.1
	missing   = 3.0
)

// huber is the loss of a figure: half the square of its logarithmic error, and linear beyond the threshold.
func huber(simulated, measured float64) float64 {
	r := missing
	if !math.IsNaN(simulated) {
		r = math.Abs(math.Log(simulated / measured))
	}
	if r <= threshold {
		return r * r / 2
	}
	return threshold * (r - threshold/2)
}

// Fit finds the parameters. When the context ends, it keeps the best set so far and returns trial.ErrInterrupted.
func (c *Calibration) Fit(ctx context.Context) (err error) {
	defer func() { c.Interrupted = errors.Is(err, trial.ErrInterrupted) }()
	x := make([]float64, len(c.Parameters))
	best, err := c.at(ctx, x)
	if err != nil {
		return err
	}
	defer func() { c.keep(x, best) }()
	limit := math.Log2(most)
	better := func(y []float64) (bool, error) {
		for i := range y {
			if math.Abs(y[i]) > limit {
				return false, nil
			}
		}
		v, err := c.at(ctx, y)
		if err != nil {
			return false, err
		}
		if v.loss < best.loss-math.Max(enough, float64(1e-3*best.loss)) {
			best = v
			copy(x, y)
			return true, nil
		}
		return false, nil
	}
	for _, step := range []float64{2, 1, 0.5, 0, 0.1, 0.02} {
		if step == 0 {
			if err := c.descend(ctx, x, &best, better); err != nil {
				return err
			}
			continue
		}
		for moved := true; moved; {
			before := slices.Clone(x)
			moved = false
			for k := range 2 * len(x) {
				y := slices.Clone(before)
				y[k/2] += float64(step * float64(1-k%2*2))
				ok, err := better(y) // the best of all neighbours is kept
				if err != nil {
					return err
				}
				moved = moved || ok
			}
			if moved { // the pattern move: further in the combined direction of all moves
				y := slices.Clone(x)
				for i := range y {
					y[i] += x[i] - before[i]
				}
				if _, err := better(y); err != nil {
					return err
				}
			}
		}
	}
	return c.identify(ctx, x, &best, limit)
}

// keep stores the result of the fit.
func (c *Calibration) keep(logs []float64, v valued) {
	for i := range c.Parameters {
		p := &c.Parameters[i]
		p.Factor = math.Exp2(logs[i])
		p.Value = p.write(p.Factor)
	}
	c.Loss, c.Fits = v.loss, nil
	for i, f := range c.Measured.Figures {
		c.Fits = append(c.Fits, Fit{f, v.figures[i]})
	}
}
