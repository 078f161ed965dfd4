package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"farflash/internal/patience"
	"farflash/model/ssd"
	"farflash/model/ssd/nand"
	"farflash/numeric/units"
	"farflash/scenario/shape"
	"farflash/workload/synth"
)

// parse parses text that stands for a.yaml.
func parse(text string, set ...string) (*Scenario, error) {
	var changes []shape.Change
	for _, s := range set {
		c, err := shape.ParseChange(s)
		if err != nil {
			return nil, err
		}
		changes = append(changes, c)
	}
	return Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, changes)
}

const small = `
workload:
  - synthetic: {reads: {size: 4KiB}, requests: 100}
    closed: 4
ssd: mqsim-default
`

// TestMistakes verifies the messages and positions of errors.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name, text string
		set        []string
		want       string // each line of the error must be here, in order
	}{
		{"unknown key", "ssd: {geometry: {chanels: 8}}\n" + strings.Split(small, "ssd:")[0], nil,
			`a.yaml:1:18: unknown key "chanels" in ssd.geometry; did you mean "channels"?`},
		{"unknown section", small + "fabrik: {}\n", nil,
			`a.yaml:6:1: unknown key "fabrik" in the scenario; did you mean "fabric"?`},
		{"key at the wrong level", strings.Replace(small, "ssd: mqsim-default", "ssd:\n  channels: 4", 1), nil,
			`a.yaml:6:3: unknown key "channels" in ssd; did you mean "geometry.channels"?`},
		{"bare number", strings.Replace(small, "ssd: mqsim-default", "ssd: {timing: {read_latency: 75}}", 1), nil,
			`a.yaml:5:30: ssd.timing.read_latency: "75" has no unit; try 75us`},
		{"duplicate", "name: a\nname: b\n" + small, nil, `a.yaml:2:1: key "name" is given twice; first on line 1`},
		{"all at once", small + "name: {}\nmeasure: {warm_up: maybe, until: [1]}\n", nil,
			"a.yaml:6:7: name is a mapping; write text\n" +
				`a.yaml:7:20: measure.warm_up: "maybe" is not a warm-up; use none, auto, a time such as 50ms, or a share such as 10%` + "\n" +
				`a.yaml:7:34: measure.until is a list; write a single word`},
		{"validate has its place",
			strings.Replace(small, "ssd: mqsim-default",
				"ssd:\n  preset: mqsim-default\n  geometry:\n    channels: 0", 1), nil,
			`a.yaml:8:15: ssd.geometry.channels: 0 is not possible; use 1 to 256`},
		{"validate of what a preset says",
			strings.Replace(small, "ssd: mqsim-default", "ssd: {preset: mqsim-default, collection: {hard: 6%}}", 1),
			nil,
			`a.yaml:5:49: ssd.collection.hard: 6% must be between 0% and collection.start, 5%`},
		{"no preset", strings.Replace(small, "mqsim-default", "mqsim-defalt", 1), nil,
			`a.yaml:5:6: ssd.preset: no preset "mqsim-defalt"; did you mean mqsim-default?`},
		{"no share of reads",
			"ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: " +
				"50us, requests: 1000}}]\n", nil,
			"a.yaml:2:24: workload[0].synthetic: the share of reads is missing; " +
				"add read_fraction"},
		{"no reads, as is said",
			"ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, read_fraction: " +
				"0, requests: 1000}, closed: 1, start: 5s, until: 5s}]\n", nil,
			"a.yaml:2:133: workload[0].until: the item starts at 5s and stops at 5s"},
		{"a shape without its pattern",
			"ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, addresses: {hot_requests: 90%, " +
				"hot_space: 10%}}, requests: 9}, closed: 1}]\n", nil,
			"a.yaml:2:71: workload[0].synthetic.reads.addresses.hot_requests: only pattern hot-cold uses it, " +
				"and the default is uniform; add \"pattern: hot-cold\""},
		{"no drive", "workload: [{mqsim: {}, closed: 1}]\n", nil,
			`a.yaml:1:1: no ssd and no fabric section, so there is nothing to simulate; add one, such as "ssd: mqsim-default"`},
		{"no workload", "ssd: mqsim-default\n", nil,
			`a.yaml:1:1: no workload; add one, such as "workload: [{trace: hm_0.csv}]"`},
		{"no source", "ssd: mqsim-default\nworkload: [{closed: 3}]\n", nil,
			`a.yaml:2:12: workload[0]: no source of requests; add one of trace, synthetic, fio or mqsim`},
		{"two sources", "ssd: mqsim-default\nworkload: [{mqsim: {}, closed: 1, synthetic: {reads: {size: 4KiB}, " +
			"requests: 1}}]\n", nil,
			`a.yaml:2:12: workload[0]: synthetic and mqsim exclude each other; make each an item of the list`},
		{"open-loop synthetic without times",
			"ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 1}}]\n", nil,
			`a.yaml:2:24: workload[0].synthetic: reads.interarrival: its mean is 0s, so arrivals are undefined; give one, such as 10us, or a number of requests outstanding, such as closed: 16`},
		{"endless", "ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, interarrival: 1us}}}]\n", nil,
			`a.yaml:2:24: workload[0].synthetic: it never ends; set synthetic.requests, synthetic.duration, limit, until, or measure.until`},
		{"no such trace", "ssd: mqsim-default\nworkload: [{trace: nowhere.csv}]\n", nil,
			`a.yaml:2:20: workload[0].trace.file: stat nowhere.csv: no such file or directory`},
		{"compat decides", strings.Replace(small, "ssd: mqsim-default",
			"ssd: {compat: mqsim, collection: {copyback: true}}", 1), nil,
			`a.yaml:5:45: ssd.collection.copyback: compat: mqsim always sets this to false; leave it out or set compat: none`},
		{"quirks are not for users",
			strings.Replace(small, "ssd: mqsim-default", "ssd: {quirks: {whole_chip: true}}", 1), nil,
			`a.yaml:5:7: unknown key "quirks" in ssd; its keys are preset, compat, geometry, timing,`},
		{"namespace", small + "measure: {}\n", []string{"workload[0].namespace=1"},
			`--set:1:1:23: workload[0].namespace: the drive has no namespace 1; it has 0 to 0`},
		{"--set of a wrong value", small, []string{"name=x", "ssd.over_provisioning=12"},
			`--set:2:1:23: ssd.over_provisioning: `},
		{"--set of an unknown key", small, []string{"ssd.overprovisioning=12%"},
			`--set:1:1:1: unknown key "overprovisioning" in ssd; did you mean "over_provisioning"?`},
		{"--set of an item that is not there", small, []string{"workload[3].closed=1"},
			`--set:1:1:1: workload has no item 3; it has 1`},
		{"--set of a list without an index", small, []string{"workload.closed=1"},
			`--set:1:1:1: workload is a list; say which item with workload[0] or workload[*]`},
		{"not YAML", "a: b: c\n", nil, "a.yaml:1:5: not valid YAML: mapping values are not allowed in this context"},
		{"tabs", "ssd:\n\tpreset: x\n", nil,
			"a.yaml:2:1: not valid YAML: while scanning for the next token: found character that cannot start any " +
				"token; indent with spaces"},
		{"two documents", "---\na: 1\n---\nb: 1\n", nil, "a.yaml: more than one YAML document"},
		{"not a mapping", "- 1\n", nil,
			"a.yaml:1:1: the scenario is a list; a mapping is expected, with the keys name,"},
		{"alias within itself", "name: &a [*a]\n", nil, "a.yaml:1:11: the alias *a refers to itself"},
		{"tag", "name: !!str x\n", nil, "a.yaml:1:7: the tag !!str is not supported; write the value alone"},
		{"null", "ssd:\nworkload: [{mqsim: {}, closed:}]\n", nil,
			"a.yaml:2:31: workload[0].closed has no value; write a whole number such as 4"},
		{"wrong length", strings.Replace(small, "ssd: mqsim-default", "ssd: {host: {weights: [1, 2]}}", 1), nil,
			"a.yaml:5:23: ssd.host.weights has 2 values; 3 are expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(c.text, c.set...)
			var errs shape.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("error %v is not a list of located mistakes", err)
			}
			got := strings.Split(err.Error(), "\n")
			want := strings.Split(c.want, "\n")
			if len(got) < len(want) {
				t.Fatalf("got\n%v\nwant\n%v", err, c.want)
			}
			for i := range want {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("got\n%s\nwant\n%s", got[i], want[i])
				}
			}
		})
	}
}

// TestForms verifies equivalent notations.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		name, text string
		set        []string
		check      func(*Scenario) bool
	}{
		{"preset alone", small, nil, func(s *Scenario) bool {
			return s.SSD.Preset == "mqsim-default" && s.SSD.Timing.Erase == 3800*units.Microsecond
		}},
		{"preset with changes",
			strings.Replace(small, "ssd: mqsim-default", "ssd: {over_provisioning: 12%, preset: src-ssd-a}", 1), nil,
			func(s *Scenario) bool {
				return s.SSD.OverProvisioning == 0.12 && s.SSD.Geometry.PageSize == 16*units.KiB &&
					s.SSD.Geometry.Channels == 8
			}},
		{"scalar latency", strings.Replace(small, "ssd: mqsim-default",
			"ssd: {timing: {cell: TLC, read_latency: 60us}}", 1), nil,
			func(s *Scenario) bool { return s.SSD.Timing.Read[2] == 60*units.Microsecond }},
		{"short list of latencies",
			strings.Replace(small, "ssd: mqsim-default", "ssd: {timing: {cell: TLC, read_latency: [40us, 60us]}}", 1),
			nil,
			func(s *Scenario) bool {
				return s.SSD.Timing.Read ==
					[4]units.Duration{40 * units.Microsecond, 60 * units.Microsecond, 60 * units.Microsecond,
						60 * units.Microsecond}
			}},
		{"anchors", "ssd: mqsim-default\nworkload:\n  - &f {mqsim: {}, closed: 4}\n  - {<<: *f, closed: 8}\n  - *f\n",
			nil,
			func(s *Scenario) bool {
				return len(s.Workload) == 3 && s.Workload[1].Closed == 8 && s.Workload[2].Closed == 4
			}},
		{"size with a distribution",
			"ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: {mean: 44KB, scv: 2}, interarrival: 10us}, " +
				"requests: 5}}]\n", nil,
			func(s *Scenario) bool {
				r := s.Workload[0].Synthetic.Reads
				return r.Size.Mean == 44*units.KB && r.Size.SCV == 2 && r.Interarrival.Mean == 10*units.Microsecond
			}},
		{"set on a preset alone", small, []string{"ssd[*].over_provisioning=12%"},
			func(s *Scenario) bool { return s.SSD.Preset == "mqsim-default" && s.SSD.OverProvisioning == 0.12 }},
		{"another pattern from the command line",
			"ssd: mqsim-default\nworkload: [{synthetic: {reads: {size: 4KiB, addresses: {pattern: zipf, theta: " +
				"0.9}}, requests: 9}, closed: 1}]\n",
			[]string{"workload[0].synthetic.reads.addresses.pattern=uniform"},
			func(s *Scenario) bool { return s.Workload[0].Synthetic.Reads.Addresses.Pattern == synth.Uniform }},
		{"set on all items", "ssd: mqsim-default\nworkload: [{mqsim: {}, closed: 4}, {mqsim: {}, closed: 5}]\n",
			[]string{"workload[*].closed=9", "workload[1].name=x"},
			func(s *Scenario) bool {
				return s.Workload[0].Closed == 9 && s.Workload[1].Closed == 9 && s.Workload[0].Name == "" &&
					s.Workload[1].Name == "x"
			}},
		{"set of a mapping", small, []string{"ssd.geometry={channels: 4, blocks_per_plane: 512}"},
			func(s *Scenario) bool { return s.SSD.Geometry.Channels == 4 && s.SSD.Geometry.BlocksPerPlane == 512 }},
		{"set of a section that is not there", small, []string{"measure.until=2s"},
			func(s *Scenario) bool { return s.Measure.Until.Time == 2*units.Second }},
		{"last set wins", small, []string{"name=a", "name=b"}, func(s *Scenario) bool { return s.Name == "b" }},
		{"compat", strings.Replace(small, "ssd: mqsim-default", "ssd: {preset: mqsim-default, compat: mqsim}", 1), nil,
			func(s *Scenario) bool {
				return s.SSD.Quirks.WholeChip && s.SSD.Config.Cache.Destage == ssd.DestageFirstTouch
			}},
		{"energy", strings.Replace(small, "ssd: mqsim-default", "ssd: {energy: {read: 42uJ, idle_watts: 5}}", 1), nil,
			func(s *Scenario) bool {
				return s.SSD.Energy != nil && s.SSD.Energy.Idle == 5 && s.SSD.Energy.Read == 42e-6
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := parse(c.text, c.set...)
			if err != nil {
				t.Fatal(err)
			}
			if !c.check(s) {
				t.Errorf("decoded to\n%s", s.Resolved())
			}
		})
	}
}

// TestPresets verifies that every preset loads, and that its resolved text loads back to an equal scenario with the
// same digest.
func TestPresets(t *testing.T) {
	for _, p := range Presets() {
		t.Run(p.Name, func(t *testing.T) {
			if p.Description == "" {
				t.Error("no description")
			}
			src, err := Find(p.Name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse(src, nil)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != p.Name {
				t.Errorf("its name is %q", s.Name)
			}
			roundTrip(t, s)
		})
	}
}

func roundTrip(t *testing.T, s *Scenario) {
	t.Helper()
	text := s.Resolved()
	back, err := Parse(shape.Source{File: "resolved.yaml", Text: []byte(text)}, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(plainValues(s), plainValues(back)) {
		t.Errorf("the resolved scenario loads to something else:\n%s\nand\n%s", text, back.Resolved())
	}
	a, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	b, err := back.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Errorf("digests %s and %s", a, b)
	}
	again := strings.NewReplacer("  # default", "", "  # set", "")
	if again.Replace(back.Resolved()) != again.Replace(text) {
		t.Error("resolving twice differs from resolving once")
	}
}

// plainValues returns a scenario without its load-time state. Empty and absent lists are equivalent.
func plainValues(s *Scenario) Scenario {
	x := *s
	x.dir, x.set, x.files = "", nil, nil
	if s.SSD != nil {
		d := *s.SSD
		d.Namespaces = append([]ssd.Namespace(nil), d.Namespaces...)
		for i := range d.Namespaces {
			n := &d.Namespaces[i]
			for _, l := range []*[]int{&n.Channels, &n.Chips, &n.Dies, &n.Planes} {
				if len(*l) == 0 {
					*l = nil
				}
			}
		}
		x.SSD = &d
	}
	x.Workload = append([]Load(nil), x.Workload...)
	for i := range x.Workload {
		l := &x.Workload[i]
		if l.Trace != nil {
			c := *l.Trace
			c.File = s.Path(c.File)
			l.Trace = &c
		}
		if l.Fio != nil {
			c := *l.Fio
			c.File = s.Path(c.File)
			l.Fio = &c
		}
	}
	return x
}

// TestRoundTrip encodes and reloads scenarios that use keys no preset does.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a b.trace": "0 0 0 8 1\n10 0 8 8 0\n",
		"j.fio":     "[a]\nrw=randread\nbs=4k\nsize=1m\niodepth=4\nioengine=libaio\nramp_time=1ms\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Parse(shape.Source{File: filepath.Join(dir, "x.yaml"), Dir: dir, Text: []byte(`
name: "null"
description: "a: b # c\n\"d\""
workload:
  - {trace: {file: a b.trace, format: mqsim, scale: 0.1, part: 50%, loop: 3, volume: "0", columns: {}}, name: "- x", namespace: 1, placement: 1, fua: true, addresses: fold, latency_from: submission}
  - {fio: j.fio, queue: {depth: 16, class: urgent, weight: 3, in_flight: 2}}
  - {synthetic: {reads: {size: {mean: 4KiB, scv: 1.5}}, writes: {size: 8KiB}, read_fraction: 1/3, requests: 7}, closed: 2, start: 1ms, until: 2s, limit: 9}
  - {mqsim: {addresses: hot-cold, hot_region: 12.5%, sizes: normal, size_deviation: 1KiB, bandwidth: 1MB/s}}
ssd:
  preset: mqsim-default
  energy: {read: 42uJ, source: "a table: the third"}
  mapping: {scheme: PWCD}
  namespaces: [{channels: [0, 1], cache: read-write}, {channels: [2], streams: 4}]
measure: {warm_up: 10%, until: 3s, requests: true}
`)}, []shape.Change{{Path: "name", Value: "'null'"}})
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	text := s.Resolved()
	for _, want := range []string{"name: \"null\"  # set", "lanes: 4  # default", "scale: 0.1\n",
		"cache: read-write\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestDigest verifies which changes alter a digest.
func TestDigest(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("a.trace", "0 0 0 8 1\n")
	write("same.trace", "0 0 0 8 1\n")
	write("other.trace", "0 0 8 8 1\n")
	of := func(set ...string) string {
		var changes []shape.Change
		for _, s := range set {
			c, err := shape.ParseChange(s)
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, c)
		}
		s, err := Parse(shape.Source{File: "a.yaml", Dir: dir,
			Text: []byte("ssd: mqsim-default\nworkload: [{trace: {file: a.trace, format: mqsim}}]\n")}, changes)
		if err != nil {
			t.Fatal(err)
		}
		d, err := s.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := of()
	for _, same := range []string{"description=y", "measure.requests=true", "workload[0].trace.file=same.trace",
		"ssd.over_provisioning=7%"} {
		if of(same) != first {
			t.Errorf("%s changes the digest", same)
		}
	}
	for _, other := range []string{"name=x", "workload[0].trace.file=other.trace", "ssd.over_provisioning=8%",
		"ssd.compat=mqsim", "measure.warm_up=auto", "workload[0].trace.scale=2"} {
		if of(other) == first {
			t.Errorf("%s does not change the digest", other)
		}
	}
}

// TestAliases verifies that a small file cannot grow without bound.
func TestAliases(t *testing.T) {
	var b strings.Builder
	b.WriteString("a: &a [x, x, x, x, x, x, x, x, x, x]\n")
	for c := 'b'; c < 'l'; c++ {
		b.WriteString(string(c) + ": &" + string(c) + " [")
		for range 9 {
			b.WriteString("*" + string(c-1) + ", ")
		}
		b.WriteString("x]\n")
	}
	start := time.Now()
	_, err := parse(b.String())
	if err == nil || !strings.Contains(err.Error(), "nested too deep or too long") {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
}

// TestSchema verifies that every key of the schema is unambiguous and can be encoded.
func TestSchema(t *testing.T) {
	seen := language.Structs(new(Scenario))
	if !slices.Contains(seen, reflect.TypeFor[nand.Geometry]()) {
		t.Fatal("the drive's geometry is not part of the schema")
	}
	for _, s := range seen {
		keys := map[string]bool{}
		for _, key := range language.KeysOf(s) {
			if keys[key] {
				t.Errorf("%v has two keys %s", s, key)
			}
			keys[key] = true
			if key != strings.ToLower(key) {
				t.Errorf("%v: key %s is not lower case", s, key)
			}
		}
	}
	for name := range language.Keys {
		t.Run(name, func(t *testing.T) {
			pkg, rest, _ := strings.Cut(name, ".")
			typ, field, _ := strings.Cut(rest, ".")
			for _, s := range seen {
				if s.String() == pkg+"."+typ {
					if _, ok := s.FieldByName(field); ok {
						return
					}
				}
			}
			t.Error("there is no such field")
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small, "ssd.over_provisioning=12%")
	f.Add("ssd: {<<: {a: 1}}\nworkload: [{trace: x}]\n", "workload[*]={}")
	for _, p := range Presets() {
		text, _ := presetText(p.Name)
		f.Add(string(text), "name=x")
	}
	f.Fuzz(func(t *testing.T, text, set string) {
		defer patience.Limit()()
		var changes []shape.Change
		if c, err := shape.ParseChange(set); err == nil {
			changes = append(changes, c)
		}
		s, err := Parse(shape.Source{File: "f.yaml", Text: []byte(text)}, changes)
		if err != nil {
			var errs shape.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for i := range s.Workload {
			if s.Workload[i].Trace != nil || s.Workload[i].Fio != nil {
				return // file names become absolute
			}
		}
		roundTrip(t, s)
	})
}
