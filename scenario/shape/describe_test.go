package shape

import (
	"fmt"
	"strings"
	"testing"
)

// TestPredicate verifies that a key's description omits its name, unless that would change the meaning.
func TestPredicate(t *testing.T) {
	for _, c := range []struct{ subject, comment, want string }{
		{"Until", "Until is when the flow ends; 0 is never.", "When the flow ends; 0 is never."},
		{"Scale", "Scale multiplies times.", "Multiplies times."},
		{"Hosts", "Hosts are those that send.", "Those that send."},
		{"Gain", "Gain is g, the weight of the newest.", "g, the weight of the newest."},
		{"Choice", "Choice is hash (of addresses) or random.", "hash (of addresses) or random."},
		{"Operation", "Operation is all-reduce or all-gather.", "all-reduce or all-gather."},
		{"Level", "Level is a name.", "A name."},
		{"Addresses", "Addresses beyond the end are errors.", "Addresses beyond the end are errors."},
		{"A", "A and B bound it.", "A and B bound it."},
		{"Window", "Windows are many.", "Windows are many."},
		{"Window", "Window", "Window"},
		{"Window", "", ""},
	} {
		if got := predicate(c.subject, c.comment); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.subject, c.comment, got, c.want)
		}
	}
}

// TestRepeats verifies that a type's comment is omitted where it adds nothing to its key's.
func TestRepeats(t *testing.T) {
	for _, c := range []struct {
		key, about string
		want       bool
	}{
		{"An erasure code: a chunk is cut into pieces.", "An erasure code.", true},
		{"Replays a recorded trace.", "A recorded trace that is replayed.", true},
		{"", "A recorded trace that is replayed.", false},
		{"A network.", "Two tiers of switches. A leaf and its hosts are a pod.", false},
		{"How large requests are.", `How large requests are: a lone quantity is a constant.`, false},
	} {
		if got := repeats(c.key, c.about); got != c.want {
			t.Errorf("%q beside %q: %v", c.about, c.key, got)
		}
	}
}

// described is the language of plans with comments.
func described() *Language {
	l := plans
	l.Doc = "A plan says what is built."
	l.Comments = "\n" + strings.Join([]string{
		"shape.plan.Size\tSize is how large all is, beside Ratio and Name.",
		"shape.plan.Paint\tPaint is the colour of bolts without one of their own. Paint dries.",
		"shape.plan.Main\tMain holds the rest. MQSim has none, nor has an SSD.",
		"shape.plan.Bolts\tBolts are what holds.",
		"shape.plan.File\tFile names what is read; see HowMany and Tiny.",
		"shape.plan.Depth\tDepth and Size bound it. Size counts twice, as Depth.",
		"shape.bolt\tbolt is a screw: it has a Count.",
		"shape.bolt.Count\tCount is of a kind.",
		"shape.Frame.Height\tHeight is above the ground; Width is beside.",
		"shape.spread\tspread is even.",
		"shape.paint=1\tWarm.",
		"shape.paint=2\tCold, as Size is not.",
		"shape.paint=3\tNight.",
	}, "\n") + "\n"
	return &l
}

// line writes a description on one line.
func line(d Description) string {
	s := fmt.Sprintf("%s|%s|%s|%s", d.Path, d.Value, d.Default, strings.ReplaceAll(d.Doc, "\n", "/"))
	for _, k := range d.Keys {
		s += "|" + k.Path
	}
	for _, v := range d.Values {
		s += fmt.Sprintf("|%s=%s", v.Word, v.Doc)
	}
	return s
}

// TestDescribe verifies the descriptions of keys of all kinds: the accepted values, the default, the comment with
// identifiers replaced by keys, and the keys inside.
func TestDescribe(t *testing.T) {
	l := described()
	for path, want := range map[string]string{
		"": "|a mapping||A plan says what is " +
			"built.|name|width|tall|paint|size|latency|grid|rate|bolts|main|spread|depth|ratio|live|tiny|how_many|most|short|words|file",
		"name":  "name|text|none|",
		"width": "width|a whole number|0|",
		"tall":  "tall|a whole number|0|Above the ground; width is beside.",
		"paint": "paint|red, green or dark-blue|red|The colour of bolts without one of their own. Paint " +
			"dries.|red=Warm.|green=Cold, as size is not.|dark-blue=Night.",
		"size":    "size|a size such as 16KiB|4KiB|How large all is, beside ratio and name.",
		"latency": "latency|a time such as 75us, or a list of one a page type|[1ns, 2ns, 3ns]|",
		"grid":    "grid|a list of 2: a whole number|[0, 0]|",
		"rate":    "rate|a rate such as 40Gbps|none|",
		"bolts": "bolts|a list of mappings||What holds./A screw: it has a " +
			"count.|bolts.name|bolts.count|bolts.paint|bolts.inner",
		"bolts[3].count": "bolts.count|a whole number|1|Of a kind.",
		"bolts[*].inner": "bolts.inner|a mapping, or its name alone||A screw: it has a " +
			"count.|bolts.inner.name|bolts.inner.count|bolts.inner.paint|bolts.inner.inner",
		"main": "main|a mapping, or its name alone||Holds the rest. MQSim has none, nor has an SSD./A " +
			"screw: it has a count.|main.name|main.count|main.paint|main.inner",
		"main.paint": "main.paint|red, green or dark-blue|red||red=Warm.|green=Cold, as Size is " +
			"not.|dark-blue=Night.",
		"spread":          "spread|a mapping, or its mean alone||Even.|spread.mean|spread.mix",
		"depth":           "depth|a mapping||Depth and size bound it. Size counts twice, as depth.|depth.top|depth.low",
		"depth.top.level": "depth.top.level|a whole number|0|",
		"ratio":           "ratio|a number|0|",
		"live":            "live|true or false|false|",
		"how_many":        "how_many|a whole number|0|",
		"words":           "words|a list: text|[]|",
		"file":            "file|text|none|Names what is read; see HowMany and tiny.",
	} {
		d, err := l.Describe(&plan{}, path)
		if got := line(d); err != nil || got != want {
			t.Errorf("%s: %v\n%s\nnot\n%s", path, err, got, want)
		}
	}
	for path, want := range map[string]string{
		"naem":        `no key "naem" in the plan; did you mean name?`,
		"main.cuont":  `no key "cuont" in main; did you mean main.count?`,
		"mean":        `no key "mean" in the plan; did you mean spread.mean?`,
		"bolts.mean":  `no key "mean" in bolts; its keys are name, count, paint, inner`,
		"zzzzzzzz":    `no key "zzzzzzzz" in the plan; its keys are name, width, tall, paint, size, latency, grid, rate, bolts, main, spread, depth, ratio, live, tiny, how_many, most, short, words, file`,
		"name.x":      "name has no keys",
		"words.x":     "words has no keys",
		"main..count": `"main..count" has an empty part; paths look like ssd.geometry.channels`,
	} {
		if d, err := l.Describe(&plan{}, path); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %s", path, err, line(d))
		}
	}
	l.Comments = strings.Replace(l.Comments, "shape.paint=2\t", "shape.paint=9\t", 1)
	if d, err := l.Describe(&plan{}, "paint"); err != nil || d.Values != nil {
		t.Errorf("of values that are not all explained %v are, %v", d.Values, err)
	}
}
