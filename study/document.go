package study

import (
	"math"

	"farflash/numeric/rng"
	"farflash/numeric/stats"
)

// The documents below are machine-readable: curves.json and effects.json, and the output of --json.

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
	Knees  []Knee          `json:"knees,omitempty"` // points of largest curvature; of sweeps over one numeric axis
	// Interrupted means that trials of an unsharded study have not run; for a shard, see pending.
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
	// Transient describes the first transient among the point's replicates.
	Transient string `json:"transient,omitempty"`
}

// IntervalDocument is a mean with its confidence interval; half is null if there is one replicate.
type IntervalDocument struct {
	Mean float64  `json:"mean"`
	Half *float64 `json:"half"`
	N    int      `json:"n"`
	Unit string   `json:"unit"`
}

// Document returns the content of curves.json.
func (c *Curves) Document() CurvesDocument {
	d := CurvesDocument{Schema: "farflash/curves/1", Name: c.Name, Axes: c.Axes, Level: c.Level, Seed: c.Seed,
		Reps: c.Reps, Shard: c.Shard.String()}
	for _, p := range c.Points {
		x := PointDocument{Values: map[string]string{}, Digest: p.Digest, Done: p.Done, Pending: p.Pending,
			Failed: p.Failed, Metrics: map[string]IntervalDocument{}, Transient: p.Transient}
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
	Schema   string   `json:"schema"` // farflash/effects/2
	Name     string   `json:"name"`
	Level    float64  `json:"level"`
	Power    float64  `json:"power"`
	Relevant float64  `json:"relevant"`
	Seeds    []uint64 `json:"seeds"` // of the first arm
	Apart    bool     `json:"seeds_apart,omitempty"`
	// Looks are the numbers of replicates at which the comparison may stop; Decided means that every primary metric was
	// decided.
	Looks   []int          `json:"looks,omitempty"`
	Decided bool           `json:"decided"`
	Arms    []ArmDocument  `json:"arms"`
	Pairs   []PairDocument `json:"pairs"`
	// Interrupted means that some trials have not run.
	Interrupted bool `json:"interrupted,omitempty"`
}

// ArmDocument is an arm.
type ArmDocument struct {
	Label  string    `json:"label"`
	Digest string    `json:"digest"`
	Done   int       `json:"done"`
	Failed []Failure `json:"failed"`
}

// PairDocument is the comparison of an arm with the first.
type PairDocument struct {
	A           string                    `json:"a"`
	B           string                    `json:"b"`
	Family      int                       `json:"family"`   // primary metrics that were tested
	Explored    int                       `json:"explored"` // other metrics that were tested
	Primary     []string                  `json:"primary"`  // in table order
	Exploratory []string                  `json:"exploratory"`
	OnlyA       []string                  `json:"only_a"`
	OnlyB       []string                  `json:"only_b"`
	Remarks     []string                  `json:"remarks,omitempty"`
	Metrics     map[string]EffectDocument `json:"metrics"`
}

// EffectDocument is the difference of a metric.
type EffectDocument struct {
	Unit    string         `json:"unit"`
	Aliases []string       `json:"aliases,omitempty"` // other names of the same quantity
	Primary bool           `json:"primary"`
	A       float64        `json:"a"` // geometric mean, or arithmetic for differences
	B       float64        `json:"b"`
	RangeA  [2]float64     `json:"a_range"`
	RangeB  [2]float64     `json:"b_range"`
	Scale   string         `json:"scale"` // ratio: of ln(b/a); difference: of b-a
	Mean    float64        `json:"mean"`  // on that scale
	Half    float64        `json:"half"`  // of the interval, on that scale
	Level   float64        `json:"level"` // of the interval
	Ratio   *RatioDocument `json:"ratio"` // of b to a; null for differences
	// Deviation is the standard deviation of the replicates' differences, on that scale, with its degrees of freedom.
	Deviation float64 `json:"deviation"`
	Degrees   int     `json:"degrees"`
	P         float64 `json:"p"`
	Adjusted  float64 `json:"p_adjusted"`
	Wilcoxon  float64 `json:"wilcoxon"`
	Verdict   Verdict `json:"verdict"`
	Doubtful  bool    `json:"doubtful"`
	Within    bool    `json:"within"`
	More      int     `json:"more"`
}

// RatioDocument is a ratio with the ends of its interval.
type RatioDocument struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

const (
	effectsSchema = "farflash/effects/2"
	ratioScale    = "ratio"
	plainScale    = "difference"
)

// Document returns the content of effects.json.
func (x *Effects) Document() EffectsDocument {
	d := EffectsDocument{Schema: effectsSchema, Name: x.Name, Level: x.Level, Power: x.Power, Relevant: x.Relevant,
		Seeds: x.Seeds, Apart: x.Apart, Looks: x.Looks, Decided: x.Decided()}
	for _, a := range x.Arms {
		f := a.Failed
		if f == nil {
			f = []Failure{}
		}
		d.Arms = append(d.Arms, ArmDocument{a.Label, a.Digest, a.Done, f})
		d.Interrupted = d.Interrupted || a.Pending > 0
	}
	for _, p := range x.Pairs {
		y := PairDocument{A: x.Arms[0].Label, B: x.Arms[p.Arm].Label, Family: p.Family, Explored: p.Explored,
			Primary: []string{}, Exploratory: []string{},
			OnlyA: orEmpty(p.OnlyA), OnlyB: orEmpty(p.OnlyB), Remarks: p.Remarks, Metrics: map[string]EffectDocument{}}
		for i := range p.Effects {
			e := &p.Effects[i]
			list := &y.Exploratory
			if e.Primary {
				list = &y.Primary
			}
			*list = append(*list, e.Name)
			y.Metrics[e.Name] = e.document()
		}
		d.Pairs = append(d.Pairs, y)
	}
	return d
}

func (e *Effect) document() EffectDocument {
	m := EffectDocument{Unit: e.Unit, Aliases: e.Aliases, Primary: e.Primary, A: e.A, B: e.B, RangeA: e.RangeA,
		RangeB: e.RangeB, Scale: plainScale, Mean: e.Effect.Mean, Half: e.Effect.Half, Level: e.Effect.Level,
		Deviation: e.Deviation, Degrees: e.Degrees, P: e.P, Adjusted: e.Adjusted, Wilcoxon: e.Wilcoxon,
		Verdict: e.Verdict, Doubtful: e.Doubtful, Within: e.Within, More: e.More}
	if e.Ratio {
		m.Scale = ratioScale
		r := RatioDocument{rng.Exp(e.Effect.Mean), rng.Exp(e.Effect.Low()), rng.Exp(e.Effect.High())}
		if !math.IsInf(r.High, 0) { // infinity has no JSON number
			m.Ratio = &r
		}
	}
	return m
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
