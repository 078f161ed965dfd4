package trial_test

import (
	"strings"
	"testing"

	"farflash/experiment/trial/drawn"
	"farflash/internal/patience"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// sections lists the keys of the language below a path whose values are mappings or lists.
func sections(t testing.TB, path, written string) (out []string) {
	t.Helper()
	d, err := scenario.Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range d.Keys {
		at := strings.TrimPrefix(strings.TrimPrefix(k.Path, path), ".")
		if written != "" {
			at = written + "." + at
		}
		list := strings.HasPrefix(k.Value, "a list")
		if list || strings.HasPrefix(k.Value, "a mapping") {
			out = append(out, at)
		}
		switch {
		case strings.HasPrefix(k.Value, "a list of mappings"):
			out = append(out, sections(t, k.Path, at+"[0]")...)
		case strings.HasPrefix(k.Value, "a mapping"):
			out = append(out, sections(t, k.Path, at)...)
		}
	}
	return out
}

// TestSectionsThatAreEmpty: a section that is missing, empty or misplaced is an error with a position, never a panic.
// FARFLASH_LONG tries all sections in all scenarios.
func TestSectionsThatAreEmpty(t *testing.T) {
	t.Parallel()
	all := sections(t, "", "")
	if len(all) < 80 {
		t.Fatalf("the language has only %d sections", len(all))
	}
	// Settings under which checks refer to other sections.
	with := [][]shape.Change{nil, {{Path: "ssd.zones", Value: "{}"}},
		{{Path: "workload[0].zones", Value: "{append: true}"}}, {{Path: "workload[0].addresses", Value: "fold"}},
		{{Path: "host_raid", Value: "{drives: 2, level: 1}"}},
		{{Path: "ssd.zones", Value: "{}"}, {Path: "workload[0].addresses", Value: "fold"},
			{Path: "workload[0].zones", Value: "{append: true}"}}}
	n, tried := 0, 0
	for i, text := range drawn.Seeds {
		for _, path := range all {
			for _, value := range []string{"null", "{}", "[]", "[{}]"} {
				for _, more := range with {
					if n++; !patience.Long(t) && n%37 != i%37 {
						continue
					}
					tried++
					empty(t, text, append([]shape.Change{{Path: path, Value: value}}, more...))
				}
			}
		}
	}
	t.Logf("%d of %d", tried, n)
}

// empty checks a scenario with changes.
func empty(t *testing.T, text string, changes []shape.Change) {
	t.Helper()
	defer func() {
		if x := recover(); x != nil {
			t.Errorf("%v: %s\n%+v", x, text, changes)
		}
	}()
	s, err := scenario.Parse(shape.Source{File: "empty.yaml", Text: []byte(text)}, changes)
	if err == nil && s == nil {
		t.Errorf("nothing came of %s\n%+v", text, changes)
	}
}
