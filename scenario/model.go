package scenario

import (
	"fmt"
	"os"

	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
	"farflash/scenario/shape"
)

// AutoModel stands for a model trained for the drive on demand.
const AutoModel = "auto"

// checkLocalControl validates the separate submission queues of a local drive, on which no network places demands.
func (s *Scenario) checkLocalControl(d *shape.Decoder) {
	if s.RateControl == nil {
		return
	}
	if s.SSD == nil || s.Fabric != nil {
		d.Fail(s.Where("rate_control"),
			"rate_control: no drives to divide; add targets, such as \"targets: [{count: 2, ssds: 4, "+
				"ssd: tlc-enterprise}]\", or leave it out")
		return
	}
	d.Wrong("rate_control", s.RateControl.Validate())
	if k := s.RateControl.Kind; s.Controlled() && k != ratecontrol.Static {
		d.Fail(s.Where("rate_control.kind"),
			"rate_control.kind: %v follows a network's demand, which a local drive does not have; use static, or add "+
				"targets and a fabric", k)
	}
}

// Foresees reports whether the rate controller needs a prediction.
func (s *Scenario) Foresees() bool {
	return s.RateControl != nil && s.RateControl.Kind == ratecontrol.SRC
}

// Unforeseen returns the drives that need a trained model, one for each kind.
func (s *Scenario) Unforeseen() []*Drive {
	var out []*Drive
	if s.Foresees() && s.RateControl.Model == AutoModel {
		for i := range s.Targets {
			out = append(out, s.Steered(i))
		}
	}
	return out
}

// Steered returns a target's drive as its rate controller sees it: with as many commands of each queue as the target's
// driver submits at once.
func (s *Scenario) Steered(group int) *Drive {
	// Where nvmf.drive_depth is smaller than the drive's fetch size, that is the limit. A model describes the drive at
	// that depth.
	d := *s.DriveOf(group)
	d.Host.FetchSize = min(d.Host.FetchSize, s.NVMf.DriveDepth)
	return &d
}

// checkModel reads the file of the model.
func (s *Scenario) checkModel(d *shape.Decoder) {
	if !s.Foresees() || s.RateControl.Model == AutoModel || s.RateControl.Model == "" {
		return
	}
	m, err := s.Model()
	if err != nil {
		d.Fail(s.Where("rate_control.model"), "rate_control.model: %v", err)
		return
	}
	if p, ok := m.Partition(); ok && p != s.RateControl.Partition {
		d.Fail(s.Where("rate_control.model"), "rate_control.model: %s was trained with partition %v, and here it is "+
			"%v; use rate_control.partition: %v, or train one with --set rate_control.partition=%v", s.RateControl.Model, p,
			s.RateControl.Partition, p, s.RateControl.Partition)
	}
}

// Model reads rate_control's model; nil if it is trained on demand.
func (s *Scenario) Model() (*ratecontrol.Model, error) {
	if s.RateControl == nil || s.RateControl.Model == AutoModel {
		return nil, nil
	}
	return readModel(s.Path(s.RateControl.Model))
}

// readModel reads the file of a drive's model.
func readModel(file string) (*ratecontrol.Model, error) {
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
