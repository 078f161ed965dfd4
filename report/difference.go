package report

import (
	"strconv"
	"strings"
)

// setting is one value of a resolved scenario: "ssd.over_provisioning" and "7%".
type setting struct {
	path  string
	value string
	line  Line
}

// settings flattens the block-style YAML of a resolved scenario: nested keys are joined with dots, items of lists get their
// index. It understands what this program writes, which is block mappings and lists with scalars or flow values on one line;
// what it does not understand is a value by itself, so nothing is lost.
func settings(lines []Line) []setting {
	type level struct {
		indent int
		name   string
		items  int // list items seen directly below this level
	}
	var out []setting
	var stack []level
	join := func() string {
		var names []string
		for _, l := range stack {
			names = append(names, l.name)
		}
		return strings.ReplaceAll(strings.Join(names, "."), ".[", "[")
	}
	for _, l := range lines {
		text := strings.TrimLeft(l.Text, " ")
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		indent := len(l.Text) - len(text)
		for {
			item := strings.HasPrefix(text, "- ") || text == "-"
			// A list may stand at its key's own indentation.
			for len(stack) > 0 {
				top := stack[len(stack)-1]
				if top.indent < indent || item && top.indent == indent && !strings.HasPrefix(top.name, "[") {
					break
				}
				stack = stack[:len(stack)-1]
			}
			if !item {
				break
			}
			number := 0
			if len(stack) > 0 {
				number = stack[len(stack)-1].items
				stack[len(stack)-1].items++
			}
			stack = append(stack, level{indent: indent, name: "[" + strconv.Itoa(number) + "]"})
			rest := strings.TrimLeft(strings.TrimPrefix(text, "-"), " ")
			indent += len(text) - len(rest)
			text = rest
		}
		if text == "" {
			continue
		}
		key, value, isKey := strings.Cut(text, ":")
		if !isKey || value != "" && value[0] != ' ' || strings.ContainsAny(key, "\"'{[ ") {
			out = append(out, setting{join(), text, l})
			continue
		}
		value = strings.TrimSpace(value)
		if value == "" {
			stack = append(stack, level{indent: indent, name: key})
			continue
		}
		path := key
		if p := join(); p != "" {
			path = p + "." + key
		}
		out = append(out, setting{path, value, l})
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
			e := all[s.path]
			if e == nil {
				e = &entry{make([]string, len(runs))}
				all[s.path] = e
				order = append(order, s.path)
			}
			e.values[i] = s.value
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
