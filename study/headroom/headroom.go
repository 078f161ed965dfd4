// Package headroom finds the factor by which the load of a scenario can grow until one of its figures exceeds a limit:
// for example until the 99th percentile of its reads is above 500 us.
//
// [Keys] returns the keys of a scenario that represent its load. [Search] simulates the scenario at multiples of that
// load: first the load itself, then twice as much or half as much until the limit lies between two loads, then the
// middle of those two, by bisection along the logarithm, until they are close enough. Every load runs on the same seeds
// (common random numbers), so the requests of a synthetic workload are the same ones with shorter gaps; a load exceeds
// the limit if the mean over the replicates does. The seeds quantify the uncertainty: for each one the load at which it
// exceeds the limit is interpolated between simulated loads, and the interval of their mean is Student's t.
//
// It leaves out the computation and storage of trials (package study), and drawing (package report). It finds one
// crossing of the limit: a figure that is not monotonic in the load may have others.
package headroom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"farflash/experiment/trial"
	"farflash/numeric/stats"
	"farflash/result"
	"farflash/scenario"
	"farflash/scenario/shape"
	"farflash/study"
)

// Config configures a search.
type Config struct {
	Source  shape.Source
	Changes []shape.Change // of the scenario, at every load
	// Limits are conditions for a load that is too high; the first that holds counts. At least one is mandatory.
	Limits []result.Condition
	// Scale names the items whose load is scaled; none means all of them.
	Scale []string
	// Depth scales the depth of closed loops.
	Depth bool
	Seed  uint64 // the first seed
	Reps  int
	// Most is the largest multiple of the load that is tried; its reciprocal is the smallest.
	Most float64
	// Within is the required distance of the two loads around the limit: 0.02 is 2 %.
	Within float64
	Level  float64 // of intervals
}

// DefaultConfig tries loads from 1/64 to 64 times the scenario's, to 2 %.
func DefaultConfig() Config { return Config{Seed: 1, Reps: 1, Most: 64, Within: 0.02, Level: 0.95} }

// Validate reports the first invalid setting.
func (c *Config) Validate() error {
	switch {
	case len(c.Limits) == 0:
		return errors.New("--until is missing; write for example --until 'read.latency.p99>500us'")
	case c.Reps < 1 || c.Reps > study.MostTrials/mostPoints:
		return fmt.Errorf("--reps %d is not possible; use 1 to %d", c.Reps, study.MostTrials/mostPoints)
	case !(c.Most >= 2 && c.Most <= 1e6):
		return fmt.Errorf("--most %v is not possible; use 2 to 1000000", c.Most)
	case !(c.Within >= 0.001 && c.Within <= 1):
		return fmt.Errorf("--within %v is not possible; use 0.1%% to 100%%", c.Within)
	}
	for _, x := range c.Limits {
		if x.Operator == "==" || x.Operator == "!=" {
			return fmt.Errorf("--until %q: a search cannot bracket an equality; use >, >=, < or <=", x.Text)
		}
	}
	return nil
}

// mostPoints limits the loads that are tried: 20 doublings, and the bisections that a resolution of 0.1 % takes.
const mostPoints = 64

// Point is a load that was tried.
type Point struct {
	Load     float64  // as a multiple of the scenario's
	Values   []string // of the keys
	Digest   string
	Scenario *scenario.Scenario
	Outcomes []study.Outcome
	Over     bool   // a limit is exceeded
	Limit    int    // which one, if Over
	Why      string // set if Over because its trials failed
}

// Headroom is the result of a search.
type Headroom struct {
	Config
	Name   string
	Digest string // of all inputs of the search
	Keys   []Key
	Points []Point // in ascending order of load
	// Under is the index of the largest load below the smallest that exceeds a limit, Over the index of that one; -1:
	// none.
	Under, Over int
	// Refused is the reason why the scenario cannot have a load larger than that of Under, if so.
	Refused error
	// Finest means that no load lies between the two, because depths are integers.
	Finest bool
	// Crossing is the load at which the limit is exceeded, by seed; N is 0 if some seed exceeds it at none of the
	// loads.
	Crossing    stats.Interval
	Interrupted bool
}

// Plan returns the scenario's keys and the search's inputs, without simulating.
func Plan(c Config) (*Headroom, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s, err := scenario.Parse(c.Source, c.Changes)
	if err != nil {
		return nil, err
	}
	h := &Headroom{Config: c, Name: s.Name, Under: -1, Over: -1}
	if h.Keys, err = Keys(s, c.Scale, c.Depth); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Source.File, err)
	}
	digest, err := s.Digest()
	if err != nil {
		return nil, err
	}
	h.Digest = identity(h, digest)
	return h, nil
}

// Step is reported before a load is simulated.
type Step struct {
	Load float64
	Done int // loads with known results
}

// Search finds the limit. run computes trials and returns their outcomes, in order. When the context ends, h has the
// results so far and the error is trial.ErrInterrupted.
func (h *Headroom) Search(ctx context.Context, run func(context.Context, []trial.Trial) []study.Outcome,
	step func(Step)) error {
	defer h.settle()
	at := func(load float64) (*Point, error) {
		if step != nil {
			step(Step{load, len(h.Points)})
		}
		return h.try(ctx, load, run)
	}
	var under, over *Point
	p, err := at(1)
	if err != nil {
		return err
	}
	refused := 0.0 // the smallest invalid load; 0: none
	for load := 1.0; ; {
		if p.Over {
			over = p
		} else {
			under = p
		}
		if under != nil && over != nil {
			break
		}
		if p.Over {
			load /= 2
		} else {
			load *= 2
		}
		if load > h.Most || load < 1/h.Most {
			return nil
		}
		if p, err = at(load); errors.As(err, new(*refusal)) && under != nil {
			h.Refused, refused = err, load
			break
		}
		if err != nil {
			return err
		}
	}
	for len(h.Points) < mostPoints {
		high := refused
		if over != nil {
			high = over.Load
		}
		middle := between(under.Load, high)
		if high <= under.Load*(1+h.Within) || middle <= under.Load || middle >= high {
			return nil
		}
		p, err := at(middle)
		switch {
		case errors.As(err, new(*refusal)):
			h.Refused, refused = err, middle
			if over != nil {
				return nil
			}
			continue
		case err != nil:
			return err
		case p.Digest == under.Digest || over != nil && p.Digest == over.Digest:
			h.Finest = true
			return nil
		case p.Over:
			over = p
		default:
			under = p
		}
		h.Refused = refusedAbove(h.Refused, over)
	}
	return nil
}

// refusedAbove drops the refusal of larger loads once a smaller load exceeds the limit.
func refusedAbove(refused error, over *Point) error {
	if over != nil {
		return nil
	}
	return refused
}

// between is the geometric mean of two loads, to four digits.
func between(low, high float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(math.Sqrt(low*high), 'g', 4, 64), 64)
	if err != nil {
		return low
	}
	return v
}

// refusal is the error for a load that the scenario cannot have.
type refusal struct {
	load float64
	err  error
}

// Error returns the reason, with the load.
func (r *refusal) Error() string {
	return fmt.Sprintf("%v (at %s times the load)", r.err, number(r.load))
}

// Unwrap returns the reason.
func (r *refusal) Unwrap() error { return r.err }

// try simulates a load.
func (h *Headroom) try(ctx context.Context, load float64,
	run func(context.Context, []trial.Trial) []study.Outcome) (*Point, error) {
	p := Point{Load: load}
	for i := range h.Keys {
		v := h.Keys[i].Base
		if load != 1 {
			var err error
			if v, err = h.Keys[i].At(load); err != nil {
				return nil, &refusal{load, fmt.Errorf("%s: %w", h.Keys[i].Path, err)}
			}
		}
		p.Values = append(p.Values, v)
	}
	more, err := changes(h.Keys, load)
	if err != nil {
		return nil, &refusal{load, err}
	}
	if p.Scenario, err = scenario.Parse(h.Source, append(slices.Clip(h.Changes), more...)); err != nil {
		return nil, &refusal{load, err}
	}
	if p.Digest, err = p.Scenario.Digest(); err != nil {
		return nil, err
	}
	if same := slices.IndexFunc(h.Points, func(q Point) bool { return q.Digest == p.Digest }); same >= 0 {
		return &h.Points[same], nil
	}
	trials := make([]trial.Trial, h.Reps)
	for i := range trials {
		trials[i] = trial.Trial{Scenario: p.Scenario, Digest: p.Digest, Seed: h.Seed + uint64(i)}
	}
	p.Outcomes = run(ctx, trials)
	if slices.ContainsFunc(p.Outcomes, func(o study.Outcome) bool { return o.State == study.Pending }) {
		h.Interrupted = true
		return nil, trial.ErrInterrupted
	}
	if err := h.judge(&p); err != nil {
		return nil, err
	}
	h.Points = append(h.Points, p)
	return &p, nil
}

// judge determines whether a load exceeds a limit. A load whose trials fail counts as too high if a smaller one's
// succeed, because a model may fail when a queue grows without bound.
func (h *Headroom) judge(p *Point) error {
	for _, o := range p.Outcomes {
		if o.State == study.Failed {
			if !slices.ContainsFunc(h.Points, func(q Point) bool { return q.Load < p.Load && q.Why == "" }) {
				return fmt.Errorf("at %s times the load, seed %d: %w", number(p.Load), o.Seed, o.Err)
			}
			p.Over, p.Why = true, fmt.Sprintf("seed %d failed: %v", o.Seed, o.Err)
			return nil
		}
	}
	for i, c := range h.Limits {
		v, err := h.values(p, i)
		if err != nil {
			return err
		}
		if c.Of(mean(v)) {
			p.Over, p.Limit = true, i
			return nil
		}
	}
	return nil
}

// values returns a limit's figures, one per replicate.
func (h *Headroom) values(p *Point, limit int) ([]float64, error) {
	out := make([]float64, len(p.Outcomes))
	for i, o := range p.Outcomes {
		v, err := h.Limits[limit].Value(o.Result)
		if err != nil {
			return nil, fmt.Errorf(
				"at %s times the load, seed %d: %w; a percentile needs a few hundred values; try a longer run",
				number(p.Load), o.Seed, err)
		}
		out[i] = v
	}
	return out, nil
}

func mean(v []float64) float64 {
	var m stats.Moments
	for _, x := range v {
		m.Add(x)
	}
	return m.Mean()
}

// settle sorts the points and computes the final results.
func (h *Headroom) settle() {
	slices.SortFunc(h.Points, func(a, b Point) int {
		if a.Load < b.Load {
			return -1
		}
		return 1
	})
	h.Under, h.Over = -1, -1
	for i := range h.Points {
		if !h.Points[i].Over {
			h.Under = i
		} else if h.Over < 0 {
			h.Over = i
		}
	}
	if h.Under >= 0 && h.Over >= 0 && h.Points[h.Over].Why == "" {
		h.Crossing = h.crossing()
	}
}

// crossing is the interval of the loads at which the seeds exceed the limit.
func (h *Headroom) crossing() stats.Interval {
	loads := make([]float64, h.Reps)
	for r := range h.Reps {
		least := math.Inf(1)
		for limit := range h.Limits {
			if x, ok := h.passes(r, limit); ok {
				least = math.Min(least, x)
			}
		}
		if math.IsInf(least, 1) {
			return stats.Interval{}
		}
		loads[r] = least
	}
	x, err := stats.Replicates(loads, h.Level)
	if err != nil { // a single seed has no interval
		return stats.Interval{Mean: loads[0], Level: h.Level, N: 1, Batch: 1}
	}
	return x
}

// passes interpolates the load at which a seed exceeds a limit: the logarithm of the load along the logarithm of the
// figure, or along the figure itself if that is not positive.
func (h *Headroom) passes(r, limit int) (float64, bool) {
	c := h.Limits[limit]
	last, lastLoad, known := 0.0, 0.0, false
	for i := range h.Points {
		p := &h.Points[i]
		if p.Why != "" {
			continue
		}
		v, err := c.Value(p.Outcomes[r].Result)
		if err != nil {
			return 0, false
		}
		if c.Of(v) && known {
			a, b, t := last, v, c.Threshold
			if a > 0 && b > 0 && t > 0 {
				a, b, t = math.Log(a), math.Log(b), math.Log(t)
			}
			share := (t - a) / (b - a)
			return math.Exp(math.Log(lastLoad) + float64(share*math.Log(p.Load/lastLoad))), true
		}
		last, lastLoad, known = v, p.Load, !c.Of(v)
	}
	return 0, false
}
