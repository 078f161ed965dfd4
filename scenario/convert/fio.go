package convert

import (
	"fmt"
	"strings"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/workload/synth"
)

// FromFio converts a fio job file to a scenario, for the drive of a preset.
func FromFio(file, drive string) (*Conversion, error) {
	x, err := scenario.PresetDrive(drive)
	if err != nil {
		return nil, err
	}
	x.Preset = drive
	flows, err := scenario.ReadFio(file, "", x.Addressable(0))
	if err != nil {
		return nil, err
	}
	c := FromFlows(flows, &x)
	c.Notes = append([]string{fmt.Sprintf("converted from the fio job file %s, for the drive of the preset %s", file,
		drive)}, c.Notes...)
	c.Scenario.Name = strings.TrimSuffix(baseName(file), ".fio")
	return c, nil
}

// FromFlows converts copies of fio jobs on a drive to a scenario. It has no name.
func FromFlows(flows []scenario.FioFlow, drive *scenario.Drive) *Conversion {
	s := &scenario.Scenario{SSD: drive}
	c := &Conversion{Scenario: s}
	last := map[int]string{} // last item of each wave
	for i, f := range flows {
		if i > 0 && flows[i-1].Job == f.Job && len(f.Notes) == 0 && f.Copies > 1 && f.Name != f.Job+".0" {
			continue // covered by the item's copies
		}
		l := scenario.Load{Name: f.Job, Closed: f.Config.QueueDepth,
			Queue: scenario.Queue{Class: block.Medium, Weight: 1}, After: last[f.Wave-1]}
		if f.Copies > 1 {
			l.Copies = &scenario.Copies{Count: f.Copies, Stride: f.Stride}
		}
		if f.Think > 0 {
			l.Think = &scenario.Think{Time: f.Think, Every: f.ThinkEvery}
		}
		if f.FlushEvery > 0 {
			l.Flush = &scenario.Flush{Every: f.FlushEvery}
		}
		last[f.Wave] = l.Name
		g := f.Config
		l.Synthetic = &g
		l.Synthetic.QueueDepth, l.Synthetic.Seed, l.Synthetic.Name = 0, 0, ""
		if l.Closed > 0 && g.Duration > 0 {
			// A closed loop has no times of its own; Until ends it.
			l.Until, l.Synthetic.Duration = g.Duration, 0
		}
		for _, flow := range []*synth.Flow{g.Reads, g.Writes} {
			plain(flow)
		}
		s.Workload = append(s.Workload, l)
		if f.Ramp > s.Measure.WarmUp.Time {
			s.Measure.WarmUp = scenario.WarmUp{Time: f.Ramp}
		}
		for _, n := range f.Notes {
			c.note("%s: %s", f.Job, n)
		}
	}
	return c
}

// plain removes redundant settings from a flow: bounds of a constant size.
func plain(f *synth.Flow) {
	if f == nil {
		return
	}
	if x := &f.Size; x.Mix == "" && x.Min == x.Mean && x.Max == x.Mean {
		x.Min, x.Max = 0, 0
	}
	if f.Size.Mix != "" {
		f.Size.Mean = 4 * units.KiB // unused by a mixture
	}
}
