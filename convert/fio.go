package convert

import (
	"strings"

	"farflash/block"
	"farflash/scenario"
)

// FromFio makes a scenario of a fio job file, for the drive of a preset.
func FromFio(file, drive string) (*Conversion, error) {
	x, err := scenario.PresetDrive(drive)
	if err != nil {
		return nil, err
	}
	x.Preset = drive
	s := &scenario.Scenario{SSD: &x}
	flows, err := scenario.ReadFio(file, "", s.Addressable())
	if err != nil {
		return nil, err
	}
	c := &Conversion{Scenario: s}
	c.note("converted from the fio job file %s, for the drive of the preset %s", file, drive)
	for _, f := range flows {
		l := scenario.Load{Name: f.Name, Closed: f.Config.QueueDepth, Queue: scenario.Queue{Class: block.Medium, Weight: 1}}
		g := f.Config
		l.Synthetic = &g
		l.Synthetic.QueueDepth, l.Synthetic.Seed, l.Synthetic.Name = 0, 0, ""
		if l.Closed > 0 && g.Duration > 0 {
			// A closed loop has no times of its own: the flow ends it.
			l.Until, l.Synthetic.Duration = g.Duration, 0
		}
		s.Workload = append(s.Workload, l)
		if f.Ramp > s.Measure.WarmUp.Time {
			s.Measure.WarmUp = scenario.WarmUp{Time: f.Ramp}
		}
		for _, n := range f.Notes {
			c.note("%s: %s", f.Name, n)
		}
	}
	s.Name = strings.TrimSuffix(baseName(file), ".fio")
	return c, nil
}
