package study

import (
	"math"

	"farflash/stats"
)

// The documents below are what other programs read: curves.json and effects.json, and --json.

// CurvesDocument is curves.json.
type CurvesDocument struct {
	Schema string          `json:"schema"` // farflash/curves/1
	Name   string          `json:"name"`
	Axes   []Axis          `json:"axes"`
	Level  float64         `json:"level"`
	Seed   uint64          `json:"seed"`
	Reps   int             `json:"reps"`
	Shard  string          `json:"shard,omitempty"`
	Points []PointDocument `json:"points"`
	Knees  []Knee          `json:"knees,omitempty"` // where metrics bend most; of sweeps over one axis of numbers
	// Interrupted says that trials have not been run of a study in one piece; of a shard, pending says it.
	Interrupted bool `json:"interrupted,omitempty"`
}

// PointDocument is a point of a sweep.
type PointDocument struct {
	Values  map[string]string           `json:"values"` // by the axis' path
	Digest  string                      `json:"digest"`
	Done    int                         `json:"done"`
	Pending int                         `json:"pending"`
	Failed  []Failure                   `json:"failed"`
	Metrics map[string]IntervalDocument `json:"metrics"`
	// Transient is what was still changing in the first of the replicates whose figures rest on a transient.
	Transient string `json:"transient,omitempty"`
}

// IntervalDocument is a mean with its confidence interval; half is null if there is one replicate.
type IntervalDocument struct {
	Mean float64  `json:"mean"`
	Half *float64 `json:"half"`
	N    int      `json:"n"`
	Unit string   `json:"unit"`
}

// Document returns what curves.json says.
func (c *Curves) Document() CurvesDocument {
	d := CurvesDocument{Schema: "farflash/curves/1", Name: c.Name, Axes: c.Axes, Level: c.Level, Seed: c.Seed, Reps: c.Reps, Shard: c.Shard.String()}
	for _, p := range c.Points {
		x := PointDocument{Values: map[string]string{}, Digest: p.Digest, Done: p.Done, Pending: p.Pending, Failed: p.Failed, Metrics: map[string]IntervalDocument{}, Transient: p.Transient}
		if x.Failed == nil {
			x.Failed = []Failure{}
		}
		for i, a := range c.Axes {
			x.Values[a.Path] = p.Values[i]
		}
		for _, e := range p.Metrics {
			x.Metrics[e.Name] = intervalDocument(e.Interval, e.Unit)
		}
		d.Points = append(d.Points, x)
		d.Interrupted = d.Interrupted || p.Pending > 0 && d.Shard == ""
	}
	d.Knees = c.Knees(c.Main(nil))
	return d
}

func intervalDocument(i stats.Interval, unit string) IntervalDocument {
	d := IntervalDocument{Mean: i.Mean, N: i.N, Unit: unit}
	if i.N > 1 {
		d.Half = &i.Half
	}
	return d
}

// EffectsDocument is effects.json.
type EffectsDocument struct {
	Schema   string         `json:"schema"` // farflash/effects/1
	Name     string         `json:"name"`
	Level    float64        `json:"level"`
	Power    float64        `json:"power"`
	Relevant float64        `json:"relevant"`
	Seeds    []uint64       `json:"seeds"`
	Arms     []ArmDocument  `json:"arms"`
	Pairs    []PairDocument `json:"pairs"`
	// Interrupted says that trials have not been run.
	Interrupted bool `json:"interrupted,omitempty"`
}

// ArmDocument is an arm.
type ArmDocument struct {
	Label  string    `json:"label"`
	Digest string    `json:"digest"`
	Done   int       `json:"done"`
	Failed []Failure `json:"failed"`
}

// PairDocument is an arm beside the first.
type PairDocument struct {
	A       string                    `json:"a"`
	B       string                    `json:"b"`
	Family  int                       `json:"family"`
	OnlyA   []string                  `json:"only_a"`
	OnlyB   []string                  `json:"only_b"`
	Metrics map[string]EffectDocument `json:"metrics"`
}

// EffectDocument is how a metric differs.
type EffectDocument struct {
	Unit         string   `json:"unit"`
	A            float64  `json:"a"`
	B            float64  `json:"b"`
	Difference   float64  `json:"difference"` // mean of b-a
	Half         float64  `json:"half"`
	Relative     *float64 `json:"relative"` // of a's mean; null if that is 0
	P            float64  `json:"p"`
	Holm         float64  `json:"p_holm"`
	Wilcoxon     float64  `json:"wilcoxon"`
	WilcoxonHolm float64  `json:"wilcoxon_holm"`
	Verdict      Verdict  `json:"verdict"`
	Doubtful     bool     `json:"doubtful"`
	Within       bool     `json:"within"`
	Alone        bool     `json:"alone"`
	More         int      `json:"more"`
}

// Document returns what effects.json says.
func (x *Effects) Document() EffectsDocument {
	d := EffectsDocument{Schema: "farflash/effects/1", Name: x.Name, Level: x.Level, Power: x.Power, Relevant: x.Relevant, Seeds: x.Seeds}
	for _, a := range x.Arms {
		f := a.Failed
		if f == nil {
			f = []Failure{}
		}
		d.Arms = append(d.Arms, ArmDocument{a.Label, a.Digest, a.Done, f})
		d.Interrupted = d.Interrupted || a.Pending > 0
	}
	for _, p := range x.Pairs {
		y := PairDocument{A: x.Arms[0].Label, B: x.Arms[p.Arm].Label, Family: p.Family, OnlyA: orEmpty(p.OnlyA), OnlyB: orEmpty(p.OnlyB), Metrics: map[string]EffectDocument{}}
		for i := range p.Effects {
			e := &p.Effects[i]
			m := EffectDocument{Unit: e.Unit, A: e.A, B: e.B, Difference: e.Effect.Mean, Half: e.Effect.Half, P: e.P, Holm: e.Holm,
				Wilcoxon: e.Wilcoxon, WilcoxonHolm: e.WilcoxonHolm, Verdict: e.Verdict, Doubtful: e.Doubtful, Within: e.Within, Alone: e.Alone, More: e.More}
			if relative, _, _, ok := e.Relative(); ok && !math.IsInf(relative, 0) {
				m.Relative = &relative
			}
			y.Metrics[e.Name] = m
		}
		d.Pairs = append(d.Pairs, y)
	}
	return d
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
