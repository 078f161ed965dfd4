package calibrate

import (
	"fmt"
	"math"
	"strings"

	"farflash/scenario"
	"farflash/scenario/convert"
	"farflash/scenario/shape"
)

// Document is the output of farflash calibrate fio --json.
type Document struct {
	Schema      string              `json:"schema"` // farflash/calibration/1
	File        string              `json:"file"`
	Fio         string              `json:"fio"`
	Preset      string              `json:"preset"`
	Parameters  []ParameterDocument `json:"parameters"`
	Figures     []FigureDocument    `json:"figures"`
	Loss        float64             `json:"loss"`
	Evaluations int                 `json:"evaluations"`
	Interrupted bool                `json:"interrupted"`
}

// ParameterDocument is a parameter.
type ParameterDocument struct {
	Path   string   `json:"path"`
	Preset string   `json:"preset"`
	Value  string   `json:"value"`
	State  State    `json:"state"`
	Error  *float64 `json:"relative_error"` // null: unknown
	With   string   `json:"only_together_with,omitempty"`
}

// FigureDocument is a figure.
type FigureDocument struct {
	Job        string   `json:"job"`
	Op         string   `json:"op"`
	Name       string   `json:"name"`
	Unit       string   `json:"unit"`
	Measured   float64  `json:"measured"`
	Fitted     *float64 `json:"fitted"` // null: the simulation has too few requests
	Difference *float64 `json:"difference"`
}

// Document returns the output of --json.
func (c *Calibration) Document() Document {
	d := Document{Schema: "farflash/calibration/1", File: c.Measured.File, Fio: c.Measured.Version, Preset: c.Preset,
		Loss: c.Loss, Evaluations: c.Evaluations, Interrupted: c.Interrupted,
		Parameters: []ParameterDocument{}, Figures: []FigureDocument{}}
	for _, p := range c.Parameters {
		x := ParameterDocument{Path: p.Path, Preset: p.Preset, Value: p.Value, State: p.State, With: p.With}
		if p.State == Fitted && p.Error > 0 && !math.IsInf(p.Error, 0) {
			x.Error = &p.Error
		}
		d.Parameters = append(d.Parameters, x)
	}
	for _, f := range c.Fits {
		x := FigureDocument{Job: f.Job, Op: f.Op.String(), Name: f.Name, Unit: f.Unit, Measured: f.Measured}
		if !math.IsNaN(f.Simulated) {
			difference := f.Difference()
			x.Fitted, x.Difference = &f.Simulated, &difference
		}
		d.Figures = append(d.Figures, x)
	}
	return d
}

// Uncertainty describes the extent to which the data determine a parameter.
func (p *Parameter) Uncertainty() string {
	switch {
	case p.State == Unidentified:
		return "not identified: no figure depends on it; the preset's value is kept"
	case p.State == AtLeast:
		return "at least: a larger value changes no figure"
	case p.State == AtMost:
		return "at most: a smaller value changes no figure"
	case p.State == AtBound:
		return fmt.Sprintf("at the bound of the search, %d times the preset's value or a %dth: the preset may be "+
			"another kind of drive", most, most)
	case p.State == "":
		return "not known yet"
	case p.With != "":
		return "only together with " + p.With + ", which changes all figures alike"
	case p.Error > 0 && !math.IsInf(p.Error, 0):
		return fmt.Sprintf("+- %.1f %% (standard error)", 100*p.Error)
	}
	return "fitted"
}

// Scenario returns the drive as a scenario file, with the jobs of the first wave as its workload and the result of the
// fit as comments.
func (c *Calibration) Scenario() string {
	x := *c.drive
	conv := &convert.Conversion{}
	conv.Notes = append(conv.Notes,
		fmt.Sprintf("the drive of the preset %s, its timing fitted to %s (%s) by farflash calibrate fio", c.Preset,
			c.Measured.File, c.Measured.Version))
	var changes []shape.Change
	for i := range c.Parameters {
		p := &c.Parameters[i]
		conv.Notes = append(conv.Notes, fmt.Sprintf("%s: %s (was %s): %s", p.Path, p.Value, p.Preset, p.Uncertainty()))
		if p.Value != p.Preset {
			changes = append(changes, shape.Change{Path: p.Path, Value: p.Value, Flag: "fit"})
		}
	}
	s, err := scenario.Parse(shape.Source{File: "fit", Text: []byte(c.texts[0])}, changes)
	if err != nil {
		panic(err) // it was simulated
	}
	x.Config = s.SSD.Config
	s.SSD = &x
	s.Name = strings.TrimSuffix(base(c.Measured.File), ".json")
	conv.Scenario = s
	return conv.Text()
}

func base(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
