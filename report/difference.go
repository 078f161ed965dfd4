package report

import (
	"fmt"
	"strings"

	"farflash/scenario/shape"
)

// settings returns the values of a resolved scenario. Text that is not YAML is returned as one value, so that none is
// lost.
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

// Limits of the settings in a label: their number, and its length in characters.
const (
	mostToldApart = 3
	longestLabel  = 60
)

// told returns the runs' names. Runs that share one are distinguished by the settings that differ, and by the seed,
// unless the label would be too long.
func told(runs []Run) []string {
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
		labels := apart(same)
		for k := range labels {
			if len(alike) > 1 {
				labels[k] = name + ", " + labels[k]
			}
			out[list[k]] = labels[k]
		}
	}
	return out
}

// apart returns the labels that distinguish runs of one name; nil if there are none, or too many.
func apart(runs []Run) (out []string) {
	list := differences(runs)
	if len(runs) < 2 || len(list) > mostToldApart {
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
