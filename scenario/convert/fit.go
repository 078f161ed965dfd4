package convert

import (
	"path/filepath"
	"strings"

	"farflash/block"
	"farflash/internal/term"
	"farflash/scenario"
	"farflash/workload/synth"
)

// FromFit returns the text of a scenario, without a drive, of a workload that was fitted to a trace of that name.
func FromFit(name string, c synth.Config, notes []string) string {
	var b strings.Builder
	comment(&b, "fitted to "+term.Shown(name))
	for _, n := range notes {
		comment(&b, n)
	}
	l := scenario.Load{Queue: scenario.Queue{Class: block.Medium, Weight: 1}, Closed: c.QueueDepth, Synthetic: &c}
	base := filepath.Base(name)
	s := &scenario.Scenario{Name: strings.TrimSuffix(base, filepath.Ext(base)), Workload: []scenario.Load{l}}
	b.WriteString(s.Brief())
	return b.String()
}
