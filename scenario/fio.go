package scenario

import (
	"fmt"
	"os"
	"strings"

	"farflash/block"
	"farflash/units"
	"farflash/workload/fiojob"
	"farflash/workload/synth"
)

// Fio is a fio job file. Each copy of each of its jobs is a flow.
type Fio struct {
	// File is the job file. A relative path starts at the scenario's own folder.
	File string
	// Job names the only job section that is used; without it all are.
	Job string
}

// fioFlow is one copy of a job.
type fioFlow struct {
	name   string
	config synth.Config
	ramp   units.Duration
	notes  []string
}

// readFio reads a job file for a namespace of a size.
func readFio(file, only string, capacity units.Bytes) ([]fioFlow, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	jobs, err := fiojob.Parse(f, file)
	if err != nil {
		return nil, err
	}
	var out []fioFlow
	var names []string
	for _, j := range jobs {
		names = append(names, j.Name)
		if only != "" && j.Name != only {
			continue
		}
		for i := range j.Copies {
			c, err := j.Config(i, capacity)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", file, j.Line, err)
			}
			name := j.Name
			if j.Copies > 1 {
				name = fmt.Sprintf("%s.%d", j.Name, i)
			}
			x := fioFlow{name: name, config: c, ramp: j.Ramp}
			if i == 0 {
				x.notes = j.Notes
			}
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		if only == "" {
			return nil, fmt.Errorf("%s: no job", file)
		}
		return nil, fmt.Errorf("%s: no job %q; there are %s", file, only, strings.Join(names, ", "))
	}
	return out, nil
}

// FromFio makes a scenario of a fio job file, for the drive of a preset.
func FromFio(file, drive string) (*Conversion, error) {
	x, err := presetDrive(drive)
	if err != nil {
		return nil, err
	}
	x.Preset = drive
	s := &Scenario{SSD: &x}
	flows, err := readFio(file, "", s.smallest())
	if err != nil {
		return nil, err
	}
	c := &Conversion{Scenario: s}
	c.note("converted from the fio job file %s, for the drive of the preset %s", file, drive)
	for _, f := range flows {
		l := Load{Name: f.name, Closed: f.config.QueueDepth, Queue: Queue{Class: block.Medium, Weight: 1}}
		g := f.config
		l.Synthetic = &g
		l.Synthetic.QueueDepth, l.Synthetic.Seed, l.Synthetic.Name = 0, 0, ""
		if l.Closed > 0 && g.Duration > 0 {
			// A closed loop has no times of its own: the flow ends it.
			l.Until, l.Synthetic.Duration = g.Duration, 0
		}
		s.Workload = append(s.Workload, l)
		if f.ramp > s.Measure.WarmUp.Time {
			s.Measure.WarmUp = WarmUp{Time: f.ramp}
		}
		for _, n := range f.notes {
			c.note("%s: %s", f.name, n)
		}
	}
	s.Name = strings.TrimSuffix(baseName(file), ".fio")
	return c, nil
}
