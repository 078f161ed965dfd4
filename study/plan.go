package study

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"farflash/experiment/trial"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// Kind is the type of a study.
type Kind string

// The kinds.
const (
	Sweep      Kind = "sweep"
	Comparison Kind = "compare"
)

// Plan is the list of all trials of a study: each of its points with each of its seeds.
type Plan struct {
	Kind   Kind
	Name   string // of the scenario, or of the first arm
	Axes   []Axis // of a sweep
	Points []Point
	Seed   uint64 // the first seed; replicate r has Seed+r
	Reps   int
	Apart  bool // of a comparison: every arm has its own seeds
	Shard  Shard
}

// Values of --seeds: seeds common to all arms, or each arm its own.
const (
	SeedsCommon = "common"
	SeedsApart  = "apart"
)

// seedOf returns the seed of a point's replicate.
func (p *Plan) seedOf(point, rep int) uint64 {
	if p.Apart {
		return p.Seed + uint64(rep*len(p.Points)+point)
	}
	return p.Seed + uint64(rep)
}

// Point is one scenario of a study: a point of a sweep's grid, or an arm of a comparison.
type Point struct {
	Label    string   // unique name
	Values   []string // one for each axis
	Digest   string
	Scenario *scenario.Scenario
}

// Shard is the part of a plan for one of several machines: every Of-th trial starting with the Index-th. The zero Shard
// is the whole plan.
type Shard struct{ Index, Of int } // Index counts from 1

// ParseShard reads "2/5", the second of five.
func ParseShard(text string) (Shard, error) {
	first, second, ok := strings.Cut(text, "/")
	i, errI := strconv.Atoi(strings.TrimSpace(first))
	n, errN := strconv.Atoi(strings.TrimSpace(second))
	if !ok || errI != nil || errN != nil || n < 1 || i < 1 || i > n {
		return Shard{}, fmt.Errorf("%q is not a shard; write 1/3, 2/3 and 3/3 for the three thirds", text)
	}
	return Shard{i, n}, nil
}

// String formats the shard as ParseShard reads it, or as "" for the whole plan.
func (s Shard) String() string {
	if s.Of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Index, s.Of)
}

// has reports whether the k-th trial belongs to the shard.
func (s Shard) has(k int) bool { return s.Of == 0 || k%s.Of == s.Index-1 }

// MostTrials limits a plan: a larger grid is probably a mistake.
const MostTrials = 1_000_000

// NewSweep plans a sweep of a scenario over the grid of all axes, the last one varying fastest. Every point is parsed
// before anything runs, so that an invalid value is found at once; changes apply to all points, before the axes.
func NewSweep(src shape.Source, changes []shape.Change, axes []Axis, seed uint64, reps int) (*Plan, error) {
	if len(axes) == 0 {
		return nil, errors.New("a sweep needs an axis")
	}
	if reps < 1 || reps > MostTrials {
		return nil, fmt.Errorf("%d replicates are not between 1 and %d", reps, MostTrials)
	}
	p := &Plan{Kind: Sweep, Axes: axes, Seed: seed, Reps: reps}
	n := 1
	for i, a := range axes {
		for _, b := range axes[:i] {
			if a.Path == b.Path {
				return nil, fmt.Errorf("%s is varied twice; give all its values at once", a.Path)
			}
		}
		if n *= len(a.Values); n*reps > MostTrials {
			return nil, fmt.Errorf("the grid has more than %d trials; take larger steps", MostTrials)
		}
	}
	short := shortPaths(axes)
	for i := range n {
		at := make([]int, len(axes)) // index on each axis
		for k, rest := len(axes)-1, i; k >= 0; k-- {
			at[k] = rest % len(axes[k].Values)
			rest /= len(axes[k].Values)
		}
		all := changes[:len(changes):len(changes)]
		x := Point{}
		var names []string
		for k, a := range axes {
			all = append(all, a.change(at[k], fmt.Sprintf("--vary:%d", k+1)))
			x.Values = append(x.Values, a.Values[at[k]])
			names = append(names, short[k]+"="+a.Values[at[k]])
		}
		x.Label = strings.Join(names, ", ")
		if err := x.open(src, all); err != nil {
			return nil, fmt.Errorf("%w\n(with %s)", err, x.Label) // the error's position may not show the axis at fault
		}
		p.Points = append(p.Points, x)
	}
	p.Name = p.Points[0].Scenario.Name
	return p, nil
}

// shortPaths returns the last components of the axes' paths if these are unique, or else the whole paths.
func shortPaths(axes []Axis) []string {
	var out []string
	for _, a := range axes {
		end := a.Path[strings.LastIndexByte(a.Path, '.')+1:]
		if slices.Contains(out, end) {
			out = out[:0]
			for _, a := range axes {
				out = append(out, a.Path)
			}
			return out
		}
		out = append(out, end)
	}
	return out
}

// open parses the point's scenario.
func (x *Point) open(src shape.Source, changes []shape.Change) error {
	var err error
	if x.Scenario, err = scenario.Parse(src, changes); err != nil {
		return err
	}
	x.Digest, err = x.Scenario.Digest()
	return err
}

// Arm is a design in a comparison.
type Arm struct {
	Label   string // "": the scenario's name
	Source  shape.Source
	Changes []shape.Change
}

// NewComparison plans a comparison of arms with the first of them.
func NewComparison(arms []Arm, seed uint64, reps int) (*Plan, error) {
	if len(arms) < 2 {
		return nil, errors.New("a comparison needs at least two arms")
	}
	if reps < 2 || reps > MostTrials/len(arms) {
		return nil, fmt.Errorf("a comparison needs 2 to %d replicates, not %d",
			MostTrials/len(arms), reps)
	}
	p := &Plan{Kind: Comparison, Seed: seed, Reps: reps}
	taken := map[string]bool{}
	for _, a := range arms {
		x := Point{Label: a.Label}
		if err := x.open(a.Source, a.Changes); err != nil {
			return nil, err
		}
		if x.Label == "" {
			x.Label = x.Scenario.Name
		}
		for name, n := x.Label, 2; taken[x.Label]; n++ {
			x.Label = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[x.Label] = true
		p.Points = append(p.Points, x)
	}
	p.Name = p.Points[0].Scenario.Name
	return p, nil
}

// slot is the position of a trial in a plan.
type slot struct{ point, rep int }

// slots lists the trials of the shard in order: by point, then by replicate.
func (p *Plan) slots() []slot {
	var out []slot
	for k := range len(p.Points) * p.Reps {
		if p.Shard.has(k) {
			out = append(out, slot{k / p.Reps, k % p.Reps})
		}
	}
	return out
}

// Label returns the label of the point of the k-th of Trials.
func (p *Plan) Label(k int) string { return p.Points[p.slots()[k].point].Label }

// Trials lists the trials of the plan's shard, in the order of Outcomes.
func (p *Plan) Trials() []trial.Trial {
	var out []trial.Trial
	for _, s := range p.slots() {
		x := &p.Points[s.point]
		out = append(out, trial.Trial{Scenario: x.Scenario, Digest: x.Digest, Seed: p.seedOf(s.point, s.rep)})
	}
	return out
}

// Digest identifies the computation of the plan, apart from its shard.
func (p *Plan) Digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %d %d\n", p.Kind, p.Seed, p.Reps)
	if p.Apart {
		fmt.Fprintln(h, "seeds apart")
	}
	for _, x := range p.Points {
		fmt.Fprintf(h, "%s %q %q\n", x.Digest, x.Label, x.Values)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
