package report

import (
	"strings"

	"farflash/shape"
)

// settings are the values of a resolved scenario. A text that is no YAML is one value, so that nothing is lost.
func settings(lines []Line) []shape.Value {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text + "\n")
	}
	list, err := shape.Flatten("scenario.yaml", b.String())
	if err != nil {
		return []shape.Value{{Path: "scenario", Text: b.String()}}
	}
	return list
}

// differing is a setting that is not the same in all runs.
type differing struct {
	Path   string
	Values []string // per run; "" where the run does not have it
}

// differences returns the settings that are not the same in all runs, in the order of the first run that has them.
func differences(runs []Run) []differing {
	type entry struct{ values []string }
	var order []string
	all := map[string]*entry{}
	for i := range runs {
		for _, s := range settings(runs[i].Scenario) {
			e := all[s.Path]
			if e == nil {
				e = &entry{make([]string, len(runs))}
				all[s.Path] = e
				order = append(order, s.Path)
			}
			e.values[i] = s.Text
		}
	}
	var out []differing
	for _, path := range order {
		v := all[path].values
		for _, x := range v[1:] {
			if x != v[0] {
				out = append(out, differing{path, v})
				break
			}
		}
	}
	return out
}
