package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/model/fabric/topo"
	"farflash/numeric/units"
	"farflash/policy/forest"
	"farflash/policy/ratecontrol"
	"farflash/scenario/shape"
)

// refusal is a scenario and the error message expected for it, empty if it must be accepted.
type refusal struct{ text, want string }

// held verifies that each scenario is rejected with its message and no further ones, or accepted.
func held(t *testing.T, list []refusal) {
	t.Helper()
	for _, c := range list {
		_, err := parse(c.text)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s\nis refused: %v", c.text, err)
		case c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want) ||
				strings.Count(err.Error(), "\n") > strings.Count(c.want, "\n")):
			t.Errorf("%s\n%v\nnot\n%s", c.text, err, c.want)
		}
	}
}

// TestRefusedItems verifies the limits on an item of a local drive's workload, from both sides of each bound.
func TestRefusedItems(t *testing.T) {
	reads := func(more string) string {
		return "ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 9}, " + more + "}]\n"
	}
	behind := func(more string) string {
		return "initiators: 2\ntargets: [{count: 1, ssds: 1, ssd: mqsim-default}]\n" +
			"workload: [{synthetic: {reads: {size: 4KiB}, requests: 9}, closed: 1, " + more + "}]\n"
	}
	open := func(more string) string {
		return "ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 10us}, requests: 9}" +
			more + "}]\n"
	}
	two := func(first, second string) string {
		item := "{synthetic: {reads: {size: 4KiB}, requests: 9}, closed: 1, "
		return "ssd: mqsim-default\nworkload: [" + item + first + "}, " + item + second + "}]\n"
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "a.csv")
	table := filepath.Join(dir, "t.csv")
	jobs := filepath.Join(dir, "j.fio")
	for name, text := range map[string]string{trace: "128166372003061629,hm,0,Read,0,4096,100\n",
		table: "when,what,where,long\n0,R,0,4096\n",
		jobs:  "[a]\nrw=randread\nbs=4k\nsize=1m\n[b]\nrw=randread\nbs=4k\nsize=1m\nnumjobs=2\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	traced := func(more string) string {
		return "ssd: mqsim-default\nworkload: [{addresses: fold, trace: {file: " + trace + ", format: msr" + more +
			"}}]\n"
	}
	job := func(more string) string {
		return "ssd: mqsim-default\nworkload: [{fio: {file: " + jobs + "}" + more + "}]\n"
	}
	held(t, []refusal{
		{reads("closed: 1"), ""}, {reads("closed: 1048576"), ""},
		{reads("closed: 1048577"),
			"a.yaml:2:68: workload[0].closed: 1048577 outstanding requests are not possible; use 1 to 1048576, or 0 " +
				"for an open loop"},
		{reads("closed: -1"),
			"a.yaml:2:24: workload[0].synthetic: queue_depth: -1 is not possible; it must not be " +
				"negative\na.yaml:2:68: workload[0].closed: -1 outstanding requests are not possible"},
		{reads("closed: 1, limit: 0"), ""},
		{reads("closed: 1, limit: -1"), "workload[0].limit: -1 is not possible; 0 is no limit"},
		{reads("closed: 1, start: 5s, until: 5000001us"), ""},
		{reads("closed: 1, start: 5s, until: 5s"),
			"workload[0].until: the item starts at 5s and stops at 5s"},
		{reads("closed: 1, namespace: -1"), "workload[0].namespace: the drive has no namespace -1; it has 0 to 0"},
		{reads("closed: 1, placement: 1"),
			"workload[0].placement: 1 is not possible: namespace 0 distinguishes 0 to 0; raise " +
				"ssd.namespaces[0].streams, or ssd.fdp.handles"},
		{reads("closed: 1, placement: -1"), "workload[0].placement: -1 is not possible"},
		{reads("closed: 1, group: 1"),
			"workload[0].group: 1 is not possible: the drive has reclaim groups 0 to 0; raise ssd.fdp.groups"},
		{reads("closed: 1, group: -1"), "workload[0].group: -1 is not possible"},
		{reads("closed: 1, queue: {depth: 2}"), ""}, {reads("closed: 1, queue: {depth: 65536}"), ""},
		{reads("closed: 1, queue: {depth: 0}"), ""},
		{reads("closed: 1, queue: {depth: 1}"),
			"workload[0].queue.depth: 1 entries are not possible; use 2 to 65536, or 0 for the drive's own"},
		{reads("closed: 1, queue: {depth: 65537}"), "workload[0].queue.depth: 65537 entries are not possible"},
		{reads("closed: 1, queue: {weight: 1}"), ""}, {reads("closed: 1, queue: {weight: 256}"), ""},
		{reads("closed: 1, queue: {weight: 0}"), "workload[0].queue.weight: 0 is not possible; use 1 to 256"},
		{reads("closed: 1, queue: {weight: 257}"), "workload[0].queue.weight: 257 is not possible"},
		{reads("closed: 1, queue: {in_flight: 65536}"), ""},
		{reads("closed: 1, queue: {in_flight: 65537}"),
			"workload[0].queue.in_flight: 65537 is not possible; use 1 to 65536, or 0 for the drive's fetch_size"},
		{reads("closed: 1, queue: {in_flight: -1}"), "workload[0].queue.in_flight: -1 is not possible"},

		{reads("closed: 1, copies: 1"), ""}, {reads("closed: 1, copies: 65536"), ""},
		{reads("closed: 1, copies: 0"), "workload[0].copies.count: 0 is not possible; use 1 to 65536"},
		{reads("closed: 1, copies: 65537"), "workload[0].copies.count: 65537 is not possible"},
		{reads("closed: 1, copies: {count: 2, stride: 512B}"), ""},
		{reads("closed: 1, copies: {count: 2, stride: 513B}"),
			"workload[0].copies.stride: 513B is not possible; use a multiple of 512B, or 0B for the same addresses"},
		{reads("closed: 1, copies: {count: 2, stride: 1PiB}"), "workload[0].copies.stride: 1PiB is not possible"},
		{"ssd: mqsim-default\nworkload: [{mqsim: {}, closed: 1, copies: 2}]\n",
			"workload[0].copies: only synthetic requests can be copied; make each an item of the list"},
		{reads("closed: 1, initiator: any"), ""},
		{reads("closed: 1, initiator: 0"),
			"workload[0].initiator: a drive without a network has one host; leave it out, or add targets"},
		{reads("closed: 1, initiator: -1"), `"-1" is no host; use any or a whole number`},
		{behind("initiator: 1"), ""},
		{behind("initiator: 2"), "workload[0].initiator: there is no initiator 2; there are 0 to 1"},
		{behind("initiator: 1") + "route: {initiator: each}\n",
			"workload[0].initiator: each initiator runs all items (route.initiator: each); leave it out, or use another route"},
		{reads("closed: 1, think: 1us"), ""},
		{reads("closed: 1, think: 0s"), "workload[0].think.time: 0s is not possible; use more than 0s"},
		{reads("closed: 1, think: {time: 1us, every: 1073741824}"), ""},
		{reads("closed: 1, think: {time: 1us, every: 1073741825}"),
			"workload[0].think.every: 1073741825 is not possible"},
		{reads("closed: 1, think: {time: 1us, every: 0}"), "workload[0].think.every: 0 is not possible; use 1 or more"},
		{open(""), ""}, {open(", think: 1us"),
			"workload[0].think: an open loop never pauses; add closed, or leave it out"},
		{reads("closed: 1, flush: 1"), ""},
		{reads("closed: 1, flush: 0"), "workload[0].flush.every: 0 is not possible; use 1 or more"},
		{two("name: fill", "after: fill"), ""},
		{two("name: fill", "after: fil"),
			`workload[1].after: no earlier item is named "fil"; did you mean "fill"?`},
		{two("name: fill", "after: another"),
			`workload[1].after: no earlier item is named "another"; there are fill`},
		{two("name: a, after: zzzzzz", "name: b"),
			"workload[0].after: the first item has no earlier item to follow; leave it out"},
		{two("name: a, after: b", "name: b"), "workload[0].after: the first item has no earlier item to follow; leave it out"},
		{strings.Replace(job(", name: j"), "}]",
			"}, {after: j, synthetic: {reads: {size: 4KiB}, requests: 9}, closed: 1}]", 1),
			`workload[1].after: "j" is a job file; put this item before it, or write its jobs with stonewall`},

		{traced(""), ""}, {traced(", scale: 1000000"), ""},
		{traced(", scale: 1000001"),
			"workload[0].trace.scale: 1.000001e+06 is not possible; use more than 0: 0.5 replays twice as fast"},
		{traced(", scale: 0"), "workload[0].trace.scale: 0 is not possible"},
		{traced(", part: 100%"), ""},
		{traced(", part: 101%"), "workload[0].trace.part: 101% is not possible; use more than 0% up to 100%"},
		{traced(", part: 0%"), "workload[0].trace.part: 0% is not possible"},
		{traced(", loop: 1"), ""}, {traced(", loop: 0"), "workload[0].trace.loop: 0 is not possible; use 1 or more"},
		{traced(", window: 0"), ""},
		{traced(", window: -1"), "workload[0].trace.window: -1 is not possible; 0 is the format's own"},
		{traced(", skip_bad: 0"), ""},
		{traced(", skip_bad: -1"),
			"workload[0].trace.skip_bad: -1 is not possible; use the number of bad records that may be skipped"},
		{traced(", columns: {time: when, op: what, offset: where, size: long}"),
			"workload[0].trace.columns: columns are for tables, and format msr has its own; leave out one " +
				"of the two"},
		{strings.Replace(traced(", columns: {time: when, op: what, offset: where, size: long}"), "format: msr",
			"format: csv", 1), ""},
		{strings.Replace(traced(", columns: {time: when}"), "format: msr", "format: csv", 1), "workload[0].trace"},
		{strings.Replace(traced(""), trace, dir, 1),
			"workload[0].trace.file: " + dir + " is a folder; give the path of a trace"},
		{strings.Replace(traced(""), trace, os.DevNull, 1),
			"workload[0].trace.file: /dev/null is a pipe or a device: it can be read once"},
		{strings.Replace(traced(""), trace, `"-"`, 1),
			"workload[0].trace.file: standard input can be read once, and a run reads its trace more than once"},
		{"ssd: mqsim-default\nworkload: [{trace: {}}]\n", "workload[0].trace.file: no trace; give its path"},

		{job(""), ""}, {job(", closed: 1"),
			"workload[0].closed: the job file's iodepth sets the number of outstanding requests; leave closed out"},
		{strings.Replace(job(""), jobs, jobs+"x", 1), "workload[0].fio: open " + jobs + "x: no such file or directory"},
		{strings.Replace(job(""), "}}", ", job: c}}", 1), "workload[0].fio: " + jobs + `: no job "c"; there are a, b`},
		{strings.Replace(job(""), "}}", ", job: b}}", 1), ""},
		{"ssd: mqsim-default\nworkload: [{fio: {}}]\n", "workload[0].fio.file: no job file; give its path"},

		{reads("closed: 1, tenant: a") + "measure: {alone: true}\n",
			"a.yaml:3:18: measure.alone: the only tenant is alone already; leave it out, or add an " +
				"item to workload"},
		{two("tenant: a", "tenant: b") + "measure: {alone: true}\n", ""},
		{reads("closed: 1") + "rate_control: static\n", ""},
		{reads("closed: 1") + "rate_control: aimd\n",
			"a.yaml:3:15: rate_control.kind: aimd follows a network's demand, which a local drive does not have; use " +
				"static, or add targets and a fabric"},
		{reads("closed: 1") + "flows: [{incast: {fan: 2, size: 1KB}}]\n",
			`a.yaml:3:8: flows need a network; add a fabric section, such as "fabric: {topology: {star: {hosts: 9}}}"`},
		{"fabric: {topology: {star: {hosts: 3}}}\nflows: [{incast: {fan: 2, size: 1KB}}]\nrate_control: static\n",
			"rate_control: no drives to divide; add targets"},
		{"fabric: {topology: {star: {hosts: 3}}}\nflows: [{incast: {fan: 2, size: 1KB}}]\nssd: mqsim-default\n",
			"a fabric section with a drive or a workload, and no targets; put the drives behind the network"},
		{"fabric: {topology: {star: {hosts: 3}}}\n",
			`the network has no flows; add some, such as "flows: [{incast: {fan: 8, size: 1MB}}]"`},
	})
}

// TestRefusedMeasures verifies which measurements are accepted for a drive alone and for a network alone.
func TestRefusedMeasures(t *testing.T) {
	drive := func(m string) string {
		return "ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 9}, closed: 1}]\nmeasure: {" + m + "}\n"
	}
	network := func(m string) string {
		return "fabric: {topology: {star: {hosts: 3}}}\nflows: [{incast: {fan: 2, size: 1KB}}]\nmeasure: {" + m + "}\n"
	}
	held(t, []refusal{
		{drive("requests: true, anatomy: true"), ""}, {network("flows: true, pauses: true"), ""},
		{network("requests: true"),
			"a.yaml:3:21: measure.requests: a network alone has no requests; use flows: true for its flows"},
		{network("warm_up: auto"),
			"measure.warm_up: auto detects where the latency of requests settles, and a network alone has no requests"},
		{network("warm_up: 10%"),
			"measure.warm_up: a network runs until its flows end, so 10% of the run is not known in advance"},
		{network("warm_up: 10%, until: 1ms"), ""}, {network("warm_up: 1us"), ""},
		{network("anatomy: true"),
			"measure.anatomy: it is for a drive without a network; leave it out (a system always has its stages)"},
		{network("alone: true"), "measure.alone: a network alone has no tenants; leave it out"},
		{network("until: steady"), "measure.until: steady is for drives; give a time such as 10ms, or end"},
		{drive("flows: true"), "measure.flows: only a network alone has flows; use requests: true for requests"},
		{drive("pauses: true"), "measure.pauses: a drive without a network has no pauses; leave it out"},
		{network("queue_pairs: [0, 15]"), ""},
		{network("queue_pairs: [0, 16]"), "measure.queue_pairs[1]: 16 is not possible; use 0 to 15"},
		{network("queue_pairs: [-1]"), "measure.queue_pairs[0]: -1 is not possible; use 0 to 15"},
		{drive("warm_up: 99%"), ""},
		{drive("warm_up: 100%"), "measure.warm_up: 100% leaves nothing to measure; use less than 100%"},
		{drive("warm_up: 2s, until: 2000001us"), ""},
		{drive("warm_up: 2s, until: 2s"), "measure.warm_up: 2s is not shorter than the run, 2s"},
		{drive("until: 0s"),
			`measure.until: "0s" is not an end of a run; use end, steady, or a time above zero such as 2s`},
	})
	for _, c := range []struct {
		text string
		want units.Duration
	}{{drive("warm_up: 2s"), 2 * units.Second}, {drive("warm_up: 10%, until: 1s"), 0},
		{network("warm_up: 10%, until: 1s"), units.Second / 10}, {network("warm_up: 3us"), 3 * units.Microsecond}} {
		s, err := parse(c.text)
		if err != nil || s.WarmUpUntil() != c.want {
			t.Errorf("%s: %v until %v", c.text, err, s.WarmUpUntil())
		}
		if again, err := parse(s.Resolved()); err != nil || again.Measure.WarmUp != s.Measure.WarmUp ||
			again.Measure.Until != s.Measure.Until {
			t.Errorf("%s: %v", s.Resolved(), err)
		}
	}
	for text, want := range map[string]Until{"end": {}, "steady": {Steady: true},
		"3ms": {Time: 3 * units.Millisecond}} {
		var u Until
		if err := u.UnmarshalText([]byte(text)); err != nil || u != want {
			t.Errorf("%s: %+v, %v", text, u, err)
		}
		if back, err := u.MarshalText(); err != nil || string(back) != text {
			t.Errorf("%s is written as %s, %v", text, back, err)
		}
	}
}

// TestRefusedZones verifies that the writes of an item must match the zones of its drive.
func TestRefusedZones(t *testing.T) {
	zoned := func(ssd, writes, more string) string {
		return "ssd: {preset: tlc-enterprise, mapping: {ideal: true}" + ssd + "}\nworkload: [{synthetic: {writes: {" +
			writes + "}, requests: 100}, closed: 4" + more + "}]\n"
	}
	s, err := parse(zoned(", zones: {}", "size: 64KiB", ", zones: {append: true}"))
	if err != nil {
		t.Fatal(err)
	}
	z := s.SSD.ZonesOf(0)
	size := units.Bytes(z.Size)
	held(t, []refusal{
		{zoned("", "size: 64KiB", ", zones: {append: true}"),
			"workload[0].zones: namespace 0 is not zoned; add ssd.zones, or leave it out"},
		{zoned(", zones: {}", "size: 64KiB", ""),
			`workload[0]: namespace 0 is zoned, and its writes must follow zones; add zones, such as "zones: {append: true}"`},
		{"ssd: {preset: tlc-enterprise, zones: {}}\nworkload: [{mqsim: {}, closed: 1}]\n",
			"workload[0]: namespace 0 is zoned, and its writes must follow zones; use synthetic with zones, or a trace"},
		{zoned(", zones: {}", "size: 64KiB", ", addresses: fold, zones: {append: true}"),
			"workload[0].addresses: writes to zones must be in order, which folding would change; use addresses: error"},
		{strings.Replace(zoned(", zones: {}", "size: 64KiB", ", zones: {append: true}"), "writes", "reads", 1),
			"workload[0].zones: no writes; leave it out"},
		{zoned(", zones: {}", "size: 2KiB", ", zones: {append: true}"), "workload[0].synthetic.writes.size: "},
		{zoned(", zones: {max_append: 64KiB}", "size: 64KiB", ", zones: {append: true}"), ""},
		{zoned(", zones: {max_append: 64KiB}", "size: 128KiB", ", zones: {append: true}"),
			"workload[0].synthetic.writes.size: 128KiB is not possible: an append is at most 64KiB " +
				"(ssd.zones.max_append); use less, or set its max"},
		{zoned(", zones: {max_append: 64KiB}", "size: 128KiB", ", zones: {append: false}"), ""},
		{zoned(", zones: {}", fmt.Sprintf("size: 64KiB, addresses: {start: %v, space: %v}", size, 2*size),
			", zones: {append: true}"), ""},
		{zoned(", zones: {}", "size: 64KiB, addresses: {start: 1MiB}", ", zones: {append: true}"),
			"workload[0].synthetic.writes.addresses: "},
		{zoned(", zones: {}", "size: 64KiB, addresses: {space: 1MiB}", ", zones: {append: true}"),
			"is not a whole number of zones of "},
		{zoned(", zones: {}", fmt.Sprintf("size: 64KiB, addresses: {space: %v}", 2*size),
			", zones: {append: true, at_once: 2}"), ""},
		{zoned(", zones: {}", fmt.Sprintf("size: 64KiB, addresses: {space: %v}", 2*size),
			", zones: {append: true, at_once: 3}"),
			"workload[0].zones.at_once: 3 is not possible; use 1 to the number of zones in its addresses, 2"},
		{zoned(", zones: {}", "size: 64KiB", ", zones: {append: true, at_once: 65537}"),
			"workload[0].zones.at_once: 65537 is not possible; use 1 to 65536"},
		{zoned(", zones: {}", "size: 64KiB", ", zones: {append: true, at_once: 0}"),
			"workload[0].zones.at_once: 0 is not possible"},
		{zoned(", zones: {max_active: 4, max_open: 4}", "size: 64KiB", ", zones: {append: true, at_once: 2}"), ""},
		{zoned(", zones: {max_active: 4, max_open: 4}", "size: 64KiB", ", zones: {append: true, at_once: 3}"),
			"workload[0].zones.at_once: the items of namespace 0 write 3 zones at once, each of which may still be " +
				"active when the next one starts, and 4 may be active"},
	})
}

// TestFind verifies that a file takes precedence over a preset of the same name, that folders are ignored, and that an
// unknown name is rejected with a suggestion.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, []byte("name: mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if src, err := Find(file); err != nil || src.File != file || src.Dir != dir || string(src.Text) != "name: mine\n" {
		t.Errorf("%+v, %v", src, err)
	}
	if src, err := Find("mqsim-default"); err != nil || src.File != "mqsim-default.yaml" || src.Dir != "" ||
		len(src.Text) == 0 {
		t.Errorf("%+v, %v", src.File, err)
	}
	for name, want := range map[string]string{
		"mqsim-defalt":                  `no file and no preset "mqsim-defalt"; did you mean mqsim-default?`,
		filepath.Join(dir, "none.yaml"): filepath.Join(dir, "none.yaml") + ": file does not exist",
		"none.yml":                      "none.yml: file does not exist",
		dir:                             dir + ": file does not exist",
	} {
		if _, err := Find(name); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Find(filepath.Join(file, "below")); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}
	if _, err := PresetText("mqsim-default"); err != nil {
		t.Error(err)
	}
	if _, err := PresetText("nothing-like-it"); err == nil ||
		!strings.HasPrefix(err.Error(), `no preset "nothing-like-it"; there are `) {
		t.Error(err)
	}
}

// TestParseWorkload verifies that a scenario read only for its workload needs no drive, but must have a workload.
func TestParseWorkload(t *testing.T) {
	read := func(text string, changes ...shape.Change) (*Scenario, error) {
		return ParseWorkload(shape.Source{File: "a.yaml", Text: []byte(text)}, changes)
	}
	const item = "workload: [{synthetic: {reads: {size: 4KiB}, requests: 9}, closed: 1}]\n"
	s, err := read(item)
	if err != nil || s.SSD.Preset != "mqsim-default" {
		t.Fatalf("%v", err)
	}
	if s, err = read("ssd: src-ssd-a\n" + item); err != nil || s.SSD.Preset != "src-ssd-a" {
		t.Errorf("%v", err)
	}
	if _, err = read("name: x\n"); err == nil ||
		!strings.HasPrefix(err.Error(), "a.yaml:1:1: no workload, so there are no requests to drives here; add one") {
		t.Error(err)
	}
	if s, err = read("name: x\n", shape.Change{Path: "workload", Value: item[len("workload: "):]}); err != nil ||
		len(s.Workload) != 1 {
		t.Error(err)
	}
	if _, err = read("- 1\n"); err == nil || !strings.Contains(err.Error(), "the scenario is a list") {
		t.Error(err)
	}
	if _, err = read("a: ["); err == nil || !strings.HasPrefix(err.Error(), "a.yaml:") {
		t.Error(err)
	}
}

// TestTenants verifies that items are grouped into tenants by name, in order of appearance, that items without a tenant
// are tenants of their own, and that in a tenant's lone run the items of the others are off.
func TestTenants(t *testing.T) {
	item := func(more string) string {
		return "{synthetic: {reads: {size: 4KiB}, requests: 9}, closed: 1" + more + "}"
	}
	for _, c := range []struct {
		items []string
		names []string
		of    []int
		named bool
	}{
		{[]string{"", ", name: b"}, []string{"workload[0]", "b"}, []int{0, 1}, false},
		{[]string{", name: b", ", name: b"}, []string{"b", "b"}, []int{0, 1}, false},
		{[]string{", tenant: b", ", tenant: a", ", tenant: b", ", name: c"}, []string{"b", "a", "c"},
			[]int{0, 1, 0, 2}, true},
	} {
		var items []string
		for _, x := range c.items {
			items = append(items, item(x))
		}
		s, err := parse("ssd: mqsim-default\nworkload: [" + strings.Join(items, ", ") +
			"]\nmeasure: {requests: true, anatomy: true}\n")
		if err != nil {
			t.Fatal(err)
		}
		names, of, named := s.Tenants()
		if !slices.Equal(names, c.names) || !slices.Equal(of, c.of) || named != c.named {
			t.Errorf("%v: %v, %v, %v", c.items, names, of, named)
		}
		for tenant := range names {
			x := s.Lone(tenant)
			for i := range of {
				if x.Runs(i) != (of[i] == tenant) || !s.Runs(i) {
					t.Errorf("%v: item %d runs for tenant %d alone: %v", c.items, i, tenant, x.Runs(i))
				}
			}
			if x.Measure.Requests || x.Measure.Anatomy || !s.Measure.Requests {
				t.Errorf("alone it writes files: %+v", x.Measure)
			}
		}
	}
}

// TestOpenFlows verifies the number of the flows of all groups, where it is known in advance, and their classes.
func TestOpenFlows(t *testing.T) {
	open := func(flows string) (Offer, *topo.Graph, *Scenario) {
		s, err := parse("fabric: {topology: {star: {hosts: 4}}}\nflows: [" + flows + "]\n")
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Graph()
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.OpenFlows(g, 1)
		if err != nil {
			t.Fatal(err)
		}
		return o, g, s
	}
	o, _, s := open("{list: [{src: 0, dst: 1, size: 1KB, start: 5us, class: 1}, {src: 2, dst: 1, size: 1KB, start: " +
		"9us, class: 2}]}, {name: mine, incast: {fan: 3, size: 2KB}, class: 4}")
	if o.Count != 5 || o.Classes&^(1<<DataClass) != 1<<1|1<<2|1<<4 || o.Reactive != nil {
		t.Errorf("%d flows, classes %b, %v", o.Count, o.Classes, o.Reactive)
	}
	if s.FlowName(0) != "list" || s.FlowName(1) != "mine" {
		t.Errorf("%s and %s", s.FlowName(0), s.FlowName(1))
	}
	if o, _, _ := open("{incast: {fan: 3, size: 2KB}}, {poisson: {load: 10%, sizes: {fixed: 1KB}, duration: 1ms}}"); o.Count != 0 {
		t.Errorf("%d flows are known of a stream that time ends", o.Count)
	}
}

// TestFindLink verifies that a link is found by the names or numbers of its ends, in either order.
func TestFindLink(t *testing.T) {
	g := &topo.Graph{Nodes: []topo.Node{{Name: "h0"}, {Name: "h1"}, {Name: "s0"}},
		Links: []topo.Link{{A: 0, B: 2}, {A: 2, B: 1}}}
	for ends, want := range map[[2]string]string{
		{"h0", "s0"}: "0", {"s0", "h0"}: "0", {"h1", "s0"}: "1", {"s0", "h1"}: "1", {"1", "2"}: "1",
		{"h0", "h1"}: "no link between h0 and h1", {"h0", "h9"}: `no node "h9"; did you mean h0?`,
		{"x", "h0"}: `no node "x"; did you mean h0?`,
	} {
		i, err := FindLink(g, ends[0], ends[1])
		if got := fmt.Sprint(i); err != nil && err.Error() != want || err == nil && got != want {
			t.Errorf("%v: %s, %v", ends, got, err)
		}
	}
}

// TestLocated verifies that an error that has a position keeps it, that an error that names a key gets the key's
// position, and that nil stays nil.
func TestLocated(t *testing.T) {
	s, err := parse(small)
	if err != nil {
		t.Fatal(err)
	}
	placed := &shape.Error{At: shape.Position{File: "b.yaml", Line: 3, Column: 4}, Msg: "wrong"}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {shape.Errors{placed}, "b.yaml:3:4: wrong"},
		{fmt.Errorf("around: %w", placed), "b.yaml:3:4: wrong"},
		{units.Wrong("workload[0].closed", "too deep"), "a.yaml:4:13: workload[0].closed: too deep"},
		{s.LoadError(0, errors.New("broken")), "a.yaml:3:5: workload[0]: broken"},
	} {
		if got := s.Located(c.err); (got == nil) != (c.want == "") || got != nil && got.Error() != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// TestBrief verifies that a scenario reduced to its differences from the defaults reads back unchanged and is shorter.
func TestBrief(t *testing.T) {
	for _, text := range []string{
		small, "ssd: {preset: tlc-enterprise, over_provisioning: 12%}\nworkload: [{name: a, mqsim: {requests: 9}, " +
			"closed: 4}]\nmeasure: {warm_up: 10%}\n",
		"fabric: {topology: {star: {hosts: 3}}, host_link: 10Gbps}\nflows: [{incast: {fan: 2, size: 1KB}}]\n",
	} {
		s, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		brief := s.Brief()
		again, err := parse(brief)
		if err != nil || len(brief) > len(s.Resolved())/3 {
			t.Errorf("%v, %d of %d bytes:\n%s", err, len(brief), len(s.Resolved()), brief)
			continue
		}
		a, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := again.Digest(); err != nil || a != b {
			t.Errorf("%v: %s is another scenario than\n%s", err, brief, text)
		}
	}
	if !sameScenario(small, small+"measure: {until: end}\n") || sameScenario(small, small+"measure: {until: 1s}\n") ||
		sameScenario(small, "a: [") || sameScenario("a: [", small) {
		t.Error("two scenarios are told apart by their texts")
	}
}

// TestFlowFiles verifies that the flows of a file connect hosts of the topology, in the file's priority groups, with
// start times relative to the item's from, and that invalid flows are rejected with their line.
func TestFlowFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	// Node 1 is the switch, so hosts 0, 1 and 2 are the nodes 0, 2 and 3.
	net := write("net.txt", "4 1 3\n1\n0 1 25Gbps 1000ns 0\n2 1 25Gbps 1000ns 0\n3 1 25Gbps 1000ns 0\n")
	text := func(flows, more string) string {
		return "fabric: {topology: {file: " + net + "}}\nflows: [{file: " + write("flows.txt", flows) + more + "}]\n"
	}
	s, err := parse(text("2\n0 2 3 100 20000 0.000001\n3 0 4 100 30000 0.000002\n", ", from: 1us"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := s.Graph()
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.fileFlows(&s.Flows[0], g)
	if err != nil || len(list) != 2 || list[0].Src != 0 || list[0].Dst != 1 || list[1].Src != 2 || list[1].Dst != 0 ||
		list[0].Start != 0 || list[1].Start != units.Microsecond || list[1].Size != 30000 || list[1].Class != 4 {
		t.Errorf("%+v, %v", list, err)
	}
	o, err := s.OpenFlows(g, 1)
	if err != nil || o.Count != 2 || o.Classes != 1<<3|1<<4 {
		t.Errorf("%+v, %v", o, err)
	}
	if s.FlowName(0) != "flows.txt" {
		t.Errorf("%s", s.FlowName(0))
	}
	for flow, want := range map[string]string{
		"0 1 3 100 20000 0.000001":  "flows.txt:2: node 1 is not a host of the topology",
		"4 0 3 100 20000 0.000001":  "flows.txt:2: node 4 is not a host of the topology",
		"0 2 0 100 20000 0.000001":  "flows.txt:2: priority group 0 is the class of control traffic; use 1 to 7",
		"0 2 3 100 20000 0.0000009": "flows.txt:2: the flow starts at 900ns, before from, 1us",
	} {
		if _, err := parse(text("1\n"+flow+"\n", ", from: 1us")); err == nil ||
			!strings.Contains(err.Error(), "flows[0].file: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flow, err)
		}
	}
}

// TestSpreadOut verifies the space that a host can address: one drive if requests are routed whole, the whole stripes
// of all drives if they are striped, and the volume if the host builds one. The smallest drive decides.
func TestSpreadOut(t *testing.T) {
	one, err := parse(small)
	if err != nil {
		t.Fatal(err)
	}
	each := one.Addressable(0)
	system := func(route string) string {
		return "targets: [{count: 2, ssds: 2, ssd: mqsim-default}]\ninitiators: 1\n" + route +
			"workload: [{synthetic: {reads: {size: 4KiB}, requests: 9}, closed: 1}]\n"
	}
	for text, want := range map[string]units.Bytes{
		system(""):                                     each,
		system("route: {target: hash}\n"):              each,
		system("route: {target: {stripe: 3MiB}}\n"):    4 * (each - each%(3*units.MiB)),
		system("host_raid: {level: 5, chunk: 1MiB}\n"): 3 * (each - each%units.MiB),
		strings.Replace(small, "ssd: ", "host_raid: {drives: 3, level: 0}\nssd: ",
			1): 3 * (each - each%(64*units.KiB)),
		strings.Replace(system("route: {target: {stripe: 1MiB}}\n"), "}]",
			"}, {count: 1, ssds: 1, ssd: {preset: mqsim-default, geometry: {blocks_per_plane: 512}}}]", 1): 0,
	} {
		s, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if want == 0 { // drives of different sizes
			least := s.DriveOf(1).Addressable(0)
			want = 5 * (least - least%units.MiB)
			if least >= each {
				t.Errorf("a smaller drive has %v", least)
			}
		}
		if got := s.Addressable(0); got != want {
			t.Errorf("%s: %v, not %v", text, got, want)
		}
	}
}

// TestAllMistakesAtOnce verifies that errors of flows are reported together with errors of the network, as long as a
// topology can still be built.
func TestAllMistakesAtOnce(t *testing.T) {
	const flows = "flows: [{incast: {fan: 9, size: 1KB}}]\n"
	for fabric, want := range map[string]string{
		"{topology: {star: {hosts: 3}}}": "flows[0].incast.fan: ",
		"{topology: {star: {hosts: 3}}, host_link: 0bps}": "fabric.host_link: " +
			"0bps is not possible",
		"{topology: {leaf_spine: {leaves: 1, spines: 1, hosts_per_leaf: 3}}, up_link: 0bps}": "fabric.up_link: 0bps " +
			"is not possible",
		"{topology: {star: {hosts: 3}}, threads: 0}": "fabric.threads: 0 is " +
			"not possible",
	} {
		_, err := parse("fabric: " + fabric + "\n" + flows)
		if err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "flows[0].incast.fan: ") {
			t.Errorf("%s: %v", fabric, err)
		}
	}
}

// TestModelOfAnotherPartition verifies that a model is refused that was trained under another partition than the
// scenario has, and that one whose file names none is not.
func TestModelOfAnotherPartition(t *testing.T) {
	s := &forest.Samples{Inputs: ratecontrol.InputNames(), Outputs: ratecontrol.OutputNames()}
	s.Add(make([]float64, ratecontrol.Inputs), []float64{1, 2}, 0)
	model, err := forest.GrowTree(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.forest")
	for _, x := range []struct{ trained, used, want string }{
		{"", "waiting", ""}, {"", "always", ""}, {"always", "always", ""}, {"waiting", "waiting", ""},
		{"waiting", "always", "m.forest was trained with partition waiting, and here it is always; use " +
			"rate_control.partition: waiting, or train one with --set rate_control.partition=always"},
		{"always", "waiting", "m.forest was trained with partition always, and here it is waiting; use " +
			"rate_control.partition: always, or train one with --set rate_control.partition=waiting"},
	} {
		model.Notes = nil
		if x.trained != "" {
			model.Notes = []forest.Note{{Name: ratecontrol.PartitionNote, Value: x.trained}}
		}
		if err := os.WriteFile(file, model.Encode(), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := parse("targets: [{count: 1, ssds: 1, ssd: mqsim-default}]\nfabric: {topology: {star: {hosts: 2}}}\n" +
			"rate_control: {kind: src, model: " + file + ", partition: " + x.used + "}\n" +
			"workload: [{synthetic: {reads: {size: 4KiB, interarrival: 50us}, requests: 9}}]\n")
		if (err == nil) != (x.want == "") || err != nil && !strings.Contains(err.Error(), x.want) {
			t.Errorf("trained %q, used %q: %v", x.trained, x.used, err)
		}
	}
}

// TestReadModel verifies that a file that is not a drive's model is rejected with its name.
func TestReadModel(t *testing.T) {
	s := &forest.Samples{Inputs: ratecontrol.InputNames(), Outputs: ratecontrol.OutputNames()}
	s.Add(make([]float64, ratecontrol.Inputs), []float64{1, 2}, 0)
	good, err := forest.GrowTree(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Inputs = slices.Clone(s.Inputs)
	s.Inputs[0] = "moon"
	other, err := forest.GrowTree(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text []byte
		want string
	}{"good": {good.Encode(), ""}, "other": {other.Encode(), `: the model has inputs ["moon"`},
		"text": {[]byte("no forest"), ": not a farflash model"}, "none": {nil, ": no such file or directory"}} {
		file := filepath.Join(dir, name)
		if c.text != nil {
			if err := os.WriteFile(file, c.text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, err := readModel(file)
		if (err == nil) != (c.want == "") || (m == nil) != (err != nil) ||
			err != nil && !strings.Contains(err.Error(), file+c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
