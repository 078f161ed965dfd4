// Package headroom finds how much more load a scenario takes until a figure of it passes a limit: until the 99th
// percentile of its reads is above 500 us, say.
//
// [Keys] says which keys of a scenario stand for its load. [Search] simulates the scenario at multiples of that load:
// first its own, then twice as much or half as much until the limit lies between two loads, then the middle of those
// two, by bisection along the logarithm, until they are close enough to each other. Every load runs on the same seeds
// (common random numbers), so that of a synthetic workload the same requests come sooner; a load is over the limit if
// the mean over the replicates is. What chance leaves is said by the seeds: for each the load at which it passes the
// limit by itself is interpolated between the loads that were simulated, and the interval of their mean is Student's
// t.
//
// It leaves out how trials are computed and kept (package study), and drawing (package report). It finds one place
// where the limit is passed: of a figure that does not rise with the load there may be others.
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

// Config says what is looked for.
type Config struct {
	Source  shape.Source
	Changes []shape.Change // of the scenario, at every load
	// Limits are conditions that end what is good enough; the first that holds does. At least one.
	Limits []result.Condition
	// Scale names the items whose load is scaled; none is all of them.
	Scale []string
	// Depth scales the depth of closed loops.
	Depth bool
	Seed  uint64 // the first
	Reps  int
	// Most is the largest multiple of the load that is tried, and one over it the smallest.
	Most float64
	// Within is how close the two loads around the limit are to be: 0.02 is 2 %.
	Within float64
	Level  float64 // of intervals
}

// DefaultConfig tries up to 64 times the load and 64th parts of it, to 2 %.
func DefaultConfig() Config { return Config{Seed: 1, Reps: 1, Most: 64, Within: 0.02, Level: 0.95} }

// Validate says what cannot be.
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
			return fmt.Errorf("--until %q: no load is where a figure begins to be equal to a value; use >, >=, < or <=", x.Text)
		}
	}
	return nil
}

// mostPoints bounds the loads that are tried: 20 doublings and as many halvings of what is between them as 0.1 % takes.
const mostPoints = 64

// Point is a load that was tried.
type Point struct {
	Load     float64  // as a multiple of the scenario's
	Values   []string // of the keys
	Digest   string
	Scenario *scenario.Scenario
	Outcomes []study.Outcome
	Over     bool   // a limit is passed
	Limit    int    // which; of Over
	Why      string // Over because its trials failed
}

// Headroom is what was found.
type Headroom struct {
	Config
	Name   string
	Digest string // of all that decides what is looked for
	Keys   []Key
	Points []Point // in the order of their loads
	// Under is the number of the largest load below the smallest that is over a limit, Over that one's; -1: there is
	// none.
	Under, Over int
	// Refused is why the scenario cannot have more load than that of Under, if it cannot.
	Refused error
	// Finest says that no load lies between the two: depths are whole numbers.
	Finest bool
	// Crossing is the load at which the limit is passed, seed by seed; N is 0 if some seed passes it at none of the
	// loads.
	Crossing    stats.Interval
	Interrupted bool
}

// Plan returns the scenario's keys and what is looked for, without simulating.
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

// Step is told of before a load is simulated.
type Step struct {
	Load float64
	Done int // loads that are known
}

// Search finds the limit. Run computes trials and returns what became of each, in order. When the context ends, what
// was found until then is left in h and the error is trial.ErrInterrupted.
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
	refused := 0.0 // the smallest load that cannot be; 0: none
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

// refusedAbove forgets that more is refused once a smaller load is over the limit.
func refusedAbove(refused error, over *Point) error {
	if over != nil {
		return nil
	}
	return refused
}

// between is the geometric middle of two loads, to four digits.
func between(low, high float64) float64 {
	v, err := strconv.ParseFloat(strconv.FormatFloat(math.Sqrt(low*high), 'g', 4, 64), 64)
	if err != nil {
		return low
	}
	return v
}

// refusal is a load that the scenario cannot have.
type refusal struct {
	load float64
	err  error
}

// Error is what is wrong, and at which load.
func (r *refusal) Error() string {
	return fmt.Sprintf("%v (at %s times the load)", r.err, number(r.load))
}

// Unwrap is what is wrong.
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

// judge finds out whether a load is over a limit. A load whose trials fail is, if a smaller one's do not: a model may
// end where a queue grows without end.
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

// values are a limit's figures, one a replicate.
func (h *Headroom) values(p *Point, limit int) ([]float64, error) {
	out := make([]float64, len(p.Outcomes))
	for i, o := range p.Outcomes {
		v, err := h.Limits[limit].Value(o.Result)
		if err != nil {
			return nil, fmt.Errorf(
				"at %s times the load, seed %d: %w; a percentile needs some hundred values, so a longer run may do",
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

// settle sorts the points and makes of them what is said at the end.
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

// crossing is the interval of the loads at which the seeds pass the limit.
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
	if err != nil { // one seed has no interval
		return stats.Interval{Mean: loads[0], Level: h.Level, N: 1, Batch: 1}
	}
	return x
}

// passes interpolates the load at which a seed passes a limit: the logarithm of the load along the logarithm of the
// figure, or along the figure itself where that is not positive.
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
