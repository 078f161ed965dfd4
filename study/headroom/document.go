package headroom

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"farflash/experiment/trial"
	"farflash/result"
	"farflash/study"
)

const schema = "farflash/headroom/1"

// File is the document of a search's results in its directory.
const File = "headroom.json"

// Document is headroom.json.
type Document struct {
	Schema string        `json:"schema"` // farflash/headroom/1
	Name   string        `json:"name"`
	Digest string        `json:"digest"` // of the search's inputs
	Until  []string      `json:"until"`
	Keys   []KeyDocument `json:"keys"` // keys that represent the load
	Seed   uint64        `json:"seed"`
	Reps   int           `json:"reps"`
	Level  float64       `json:"level"`
	Within float64       `json:"within"`
	Most   float64       `json:"most"`
	// Under is the largest load within the limits, Over the smallest beyond them; null: none.
	Under *float64 `json:"under"`
	Over  *float64 `json:"over"`
	// Crossing is the load at which the limit is exceeded, by seed; null: unknown.
	Crossing *study.IntervalDocument `json:"crossing"`
	Refused  string                  `json:"refused,omitempty"` // why a load larger than under is impossible
	Finest   bool                    `json:"finest,omitempty"`  // no load lies between under and over
	Points   []PointDocument         `json:"points"`
	// Interrupted means that the search did not finish.
	Interrupted bool `json:"interrupted"`
}

// KeyDocument is a key that represents load.
type KeyDocument struct {
	Path    string `json:"path"`
	Base    string `json:"base"`
	Divided bool   `json:"divided"`
}

// PointDocument is a simulated load.
type PointDocument struct {
	Load    float64                           `json:"load"`
	Values  map[string]string                 `json:"values"`
	Digest  string                            `json:"digest"`
	Over    bool                              `json:"over"`
	Limit   string                            `json:"limit,omitempty"` // the exceeded limit
	Why     string                            `json:"why,omitempty"`   // its trials failed
	Metrics map[string]study.IntervalDocument `json:"metrics"`
}

// identity is the digest of the search's inputs.
func identity(h *Headroom, scenario string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "headroom %s %d %d %v %v %v\n", scenario, h.Seed, h.Reps, h.Most, h.Within, h.Level)
	for _, k := range h.Keys {
		fmt.Fprintf(sum, "%q\n", k.Path)
	}
	for _, c := range h.Limits {
		fmt.Fprintf(sum, "%q\n", c.Text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Curves returns the loads as a sweep over one axis.
func (h *Headroom) Curves() (*study.Curves, error) {
	plan := &study.Plan{Kind: study.Sweep, Name: h.Name, Axes: []study.Axis{{Path: "load", Geometric: true}},
		Seed: h.Seed, Reps: h.Reps}
	var outcomes []study.Outcome
	for _, p := range h.Points {
		load := number(p.Load)
		plan.Axes[0].Values = append(plan.Axes[0].Values, load)
		plan.Points = append(plan.Points,
			study.Point{Label: "load x" + load, Values: []string{load}, Digest: p.Digest, Scenario: p.Scenario})
		outcomes = append(outcomes, p.Outcomes...)
	}
	return study.Respond(plan, outcomes, h.Level)
}

// Document returns the content of headroom.json.
func (h *Headroom) Document() (Document, error) {
	d := Document{Schema: schema, Name: h.Name, Digest: h.Digest, Seed: h.Seed, Reps: h.Reps, Level: h.Level,
		Within: h.Within, Most: h.Most,
		Finest: h.Finest, Points: []PointDocument{}, Interrupted: h.Interrupted}
	for _, c := range h.Limits {
		d.Until = append(d.Until, c.Text)
	}
	for _, k := range h.Keys {
		d.Keys = append(d.Keys, KeyDocument{k.Path, k.Base, k.Divided})
	}
	if h.Under >= 0 {
		d.Under = &h.Points[h.Under].Load
	}
	if h.Over >= 0 {
		d.Over = &h.Points[h.Over].Load
	}
	if h.Refused != nil {
		d.Refused = h.Refused.Error()
	}
	if x := h.Crossing; x.N > 0 {
		d.Crossing = &study.IntervalDocument{Mean: x.Mean, N: x.N, Unit: "ratio"}
		if x.N > 1 {
			d.Crossing.Half = &x.Half
		}
	}
	curves, err := h.Curves()
	if err != nil {
		return d, err
	}
	swept := curves.Document()
	for i, p := range h.Points {
		x := PointDocument{Load: p.Load, Values: map[string]string{}, Digest: p.Digest, Over: p.Over, Why: p.Why,
			Metrics: swept.Points[i].Metrics}
		for k := range h.Keys {
			x.Values[h.Keys[k].Path] = p.Values[k]
		}
		if p.Over && p.Why == "" {
			x.Limit = h.Limits[p.Limit].Text
		}
		d.Points = append(d.Points, x)
	}
	return d, nil
}

// Read reads the loads of a search, as a sweep over one axis, and its limits by metric, from its directory. The error
// is fs.ErrNotExist if there is no search.
func Read(path string) (*study.Curves, map[string]float64, error) {
	file := filepath.Join(path, File)
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	if d.Schema != schema {
		return nil, nil, fmt.Errorf("%s: schema %q is not %q, which this program reads", file, d.Schema, schema)
	}
	c := &study.Curves{Name: d.Name, Axes: []study.Axis{{Path: "load", Geometric: true}}, Level: d.Level,
		Seed: d.Seed, Reps: d.Reps}
	for _, p := range d.Points {
		load := number(p.Load)
		c.Axes[0].Values = append(c.Axes[0].Values, load)
		c.Points = append(c.Points,
			study.PointSummary{Label: "load x" + load, Values: []string{load}, Digest: p.Digest,
				Metrics: study.EstimatesOf(p.Metrics, d.Level)})
	}
	if len(c.Points) == 0 {
		return nil, nil, fmt.Errorf("%s: the search has tried no loads", file)
	}
	limits := map[string]float64{}
	for _, u := range d.Until {
		l, err := result.ParseCondition(trial.Vocabulary().Metrics, u)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		limits[l.Metric] = l.Threshold
	}
	return c, limits, nil
}
