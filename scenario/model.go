package scenario

import (
	"fmt"
	"os"

	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
	"farflash/scenario/shape"
)

// AutoModel stands for a model that is trained for the drive when it is needed. What it is trained on depends on the
// drive and on the program alone, which the digest has already.
const AutoModel = "auto"

// checkLocalControl checks the separate submission queues of a local drive, which no network demands anything of.
func (s *Scenario) checkLocalControl(d *shape.Decoder) {
	if s.RateControl == nil {
		return
	}
	if s.SSD == nil || s.Fabric != nil {
		d.Fail(s.Where("rate_control"),
			"rate_control: there is no drive to be divided; add targets, such as \"targets: [{count: 2, ssds: 4, "+
				"ssd: tlc-enterprise}]\", or leave it out")
		return
	}
	d.Wrong("rate_control", s.RateControl.Validate())
	if k := s.RateControl.Kind; s.Controlled() && k != ratecontrol.Static {
		d.Fail(s.Where("rate_control.kind"),
			"rate_control.kind: %v follows what a network demands, and a local drive has none; use static, or add "+
				"targets and a fabric", k)
	}
}

// Foresees reports whether something must foresee what drives do.
func (s *Scenario) Foresees() bool {
	return s.RateControl != nil && s.RateControl.Kind == ratecontrol.SRC
}

// Unforeseen are the drives for which a model is to be trained: of each kind of target one.
func (s *Scenario) Unforeseen() []*Drive {
	var out []*Drive
	if s.Foresees() && s.RateControl.Model == AutoModel {
		for i := range s.Targets {
			out = append(out, s.Steered(i))
		}
	}
	return out
}

// Steered is a target's drive as a rate controller has it: of each of its queues it holds as many commands as the
// target's driver gives it at once, which is fewer than it would fetch where nvmf.drive_depth is less. A model is one
// of the drive at that depth.
func (s *Scenario) Steered(group int) *Drive {
	d := *s.DriveOf(group)
	d.Host.FetchSize = min(d.Host.FetchSize, s.NVMf.DriveDepth)
	return &d
}

// checkModel reads the model that a file is to be.
func (s *Scenario) checkModel(d *shape.Decoder) {
	if !s.Foresees() || s.RateControl.Model == AutoModel || s.RateControl.Model == "" {
		return
	}
	if _, err := s.Model(); err != nil {
		d.Fail(s.Where("rate_control.model"), "rate_control.model: %v", err)
	}
}

// Model reads the file of the model that predicts for rate_control; nil if it is one that is trained when it is needed.
func (s *Scenario) Model() (*ratecontrol.Model, error) {
	if s.RateControl == nil || s.RateControl.Model == AutoModel {
		return nil, nil
	}
	return ReadModel(s.Path(s.RateControl.Model))
}

// ReadModel reads the file of a model of a drive.
func ReadModel(file string) (*ratecontrol.Model, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f, err := forest.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m, err := ratecontrol.NewModel(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}
