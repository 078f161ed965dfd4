package report

import (
	"fmt"
	"strings"

	"farflash/scenario/shape"
)

// settings returns the values of a resolved scenario. A text that is not valid YAML becomes a single value, so that it
// is not lost.
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

// Limits of a label that is made of differing settings: the number of settings, and the length in bytes.
const (
	mostDistinguished = 3
	longestLabel      = 60
)

// runNames returns the names of runs. Runs with the same name are distinguished by their differing settings and
// seeds, if these fit into a label.
func runNames(runs []Run) []string {
	out := make([]string, len(runs))
	alike := map[string][]int{}
	for i := range runs {
		out[i] = runs[i].name()
		alike[out[i]] = append(alike[out[i]], i)
	}
	for name, list := range alike {
		var same []Run
		for _, i := range list {
			same = append(same, runs[i])
		}
		labels := disambiguate(same)
		for k := range labels {
			if len(alike) > 1 {
				labels[k] = name + ", " + labels[k]
			}
			out[list[k]] = labels[k]
		}
	}
	return out
}

// disambiguate returns labels that distinguish runs of the same name; nil if the runs do not differ, or if a label
// would be too long.
func disambiguate(runs []Run) (out []string) {
	list := differences(runs)
	if len(runs) < 2 || len(list) > mostDistinguished {
		return nil
	}
	seeds := false
	for i := range runs {
		seeds = seeds || runs[i].Result.Seed != runs[0].Result.Seed
	}
	for i := range runs {
		var parts []string
		for _, d := range list {
			value := d.Values[i]
			if value == "" {
				value = "none"
			}
			parts = append(parts, d.Path+"="+value)
		}
		if seeds {
			parts = append(parts, fmt.Sprintf("seed %d", runs[i].Result.Seed))
		}
		label := strings.Join(parts, ", ")
		if label == "" || len(label) > longestLabel {
			return nil
		}
		out = append(out, label)
	}
	return out
}

// differing is a setting that differs between runs.
type differing struct {
	Path   string
	Values []string // per run; "" for a run without the setting
}

// differences returns the settings that differ between runs, in order of first appearance.
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
