package convert

import (
	"fmt"
	"path/filepath"
	"strings"

	"farflash/block"
	"farflash/scenario"
	"farflash/workload/synth"
)

// FromFit is the text of a scenario, without a drive, of a workload that was fitted
// to a trace of that name.
func FromFit(name string, c synth.Config, notes []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# fitted to %s\n", name)
	for _, n := range notes {
		fmt.Fprintf(&b, "# %s\n", n)
	}
	l := scenario.Load{Queue: scenario.Queue{Class: block.Medium, Weight: 1}, Closed: c.QueueDepth, Synthetic: &c}
	base := filepath.Base(name)
	s := &scenario.Scenario{Name: strings.TrimSuffix(base, filepath.Ext(base)), Workload: []scenario.Load{l}}
	b.WriteString(s.Resolved())
	return b.String()
}
