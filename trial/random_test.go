package trial_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"farflash/experiment"
	"farflash/result"
	"farflash/rng"
	"farflash/scenario"
	"farflash/shape"
	"farflash/trial"
	"farflash/trial/trialtest"
)

// What random scenarios begin with: one of each kind of experiment, small.
var seedlings = []string{
	trialtest.Mixed,
	"ssd: " + trialtest.TinyDrive + "\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 8KiB}, read_fraction: 50%, requests: 500}, closed: 8}]\n",
	"ssd: mqsim-default\nworkload: [{mqsim: {requests: 300}, closed: 4}, {synthetic: {writes: {size: 16KiB, interarrival: 40us}, requests: 200}}]\n",
	trialtest.SmallFabric,
	"fabric: {topology: {clos: {pods: 2, leaves: 2, tors: 2, hosts_per_pod: 4, spines: 2}}}\nflows: [{poisson: {load: 40%, sizes: websearch, duration: 50us}}, {permutation: {size: 20KB}}]\n",
	trialtest.SmallSystem,
	"initiators: 2\ntargets: [{count: 2, ssds: 1, ssd: " + trialtest.TinyDrive + "}]\nroute: {target: {stripe: 16KiB}}\nworkload: [{synthetic: {reads: {size: 16KiB, interarrival: 20us}, writes: {size: 8KiB, interarrival: 50us}, requests: 300}}]\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: tlc-enterprise}]\nprotocol: nvme-tcp\nfabric: {transport: tcp}\nworkload: [{synthetic: {reads: {size: 32KiB, interarrival: 20us}, writes: {size: 64KiB, interarrival: 50us}, requests: 200}}]\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: tlc-enterprise}]\nprotocol: flows\ncoupling: {mode: iterative}\nworkload: [{synthetic: {reads: {size: 32KiB, interarrival: 20us}, requests: 100}}]\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: tlc-enterprise}]\ncoupling: {mode: both, iterative: {full: true}}\nworkload: [{synthetic: {writes: {size: 32KiB, interarrival: 30us}, requests: 60}}]\n",
	"object_cluster: {gateways: 6, targets: 18, chunk: 64KiB}\nmeasure: {until: 3ms}\n",
	"object_cluster: {gateways: 6, targets: 18, chunk: 16KiB, protocol: pull, reads: 30%}\nmeasure: {until: 3ms, warm_up: 20%}\n",
	"object_cluster: {gateways: 6, targets: 18, chunk: 128KiB, protocol: chain, load: {share: 60%}}\nmeasure: {until: 3ms}\n",
	"object_cluster: {gateways: 4, targets: 8, chunk: 64KiB, protocol: grants, core: packet}\nfabric: {topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 6}}}\nmeasure: {until: 2ms}\n",
	"object_cluster: {protocol: storm}\nmeasure: {until: 100us}\n",
	"object_cluster: {protocol: tiering}\nmeasure: {until: 200ms}\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, cache: {capacity: 256KiB}, preconditioning: {fill: steady, occupancy: 80%}," +
		" energy: {read: 1uJ, program: 1uJ, idle_watts: 1}, namespaces: [{streams: 2}, {channels: [0], cache: write}]}\n" +
		"workload:\n- {synthetic: {reads: {size: {mean: 8KiB, scv: 1.5}, addresses: {pattern: zipf, theta: 0.9}}, writes: {size: 16KiB}, interarrival: {mean: 50us, scv: 4, acf1: 0.1}, read_fraction: 50%, requests: 300}, placement: 1, queue: {depth: 16, weight: 2, in_flight: 8}}\n" +
		"- {mqsim: {reads: 50%, addresses: hot-cold, hot_region: 10%, sizes: normal, size: 16KiB, size_deviation: 1KiB, requests: 200, bandwidth: 100MB/s}, namespace: 1}\n- {trace: {file: random.csv}, addresses: fold, limit: 100}\n",
	"ssd: " + trialtest.TinyDrive + "\nworkload: [{trace: {file: random.csv, scale: 2, loop: 2, part: 50%}, addresses: fold}, {mqsim: {size: 4KiB, requests: 100}, closed: 2}]\n",
	"fabric: {topology: {leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 4}}, failures: [{a: leaf0, b: spine0, at: 20us, until: 60us}]}\nflows: [{list: [{src: 0, dst: 5, size: 200KB}, {src: 5, dst: 1, size: 1KB, class: 4, start: 10us}]}, {incast: {fan: 3, size: 10KB}}]\n",
	"fabric: {topology: {dragonfly: {groups: 3, routers: 2, hosts_per_router: 2, global_links: 1}}}\nflows: [{permutation: {size: 30KB}, class: 2}]\n",
	"fabric: {topology: {fat_tree: {k: 4}}, congestion_control: hpcc, parts: 2}\nflows: [{all_to_all: {size: 2KB}}]\n",
	"fabric: {topology: {star: {hosts: 2}}, failures: [{a: h0, b: s0, at: 30us}]}\nflows: [{list: [{src: 0, dst: 1, size: 1MB}]}]\nmeasure: {until: 2ms}\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 1, ssd: " + trialtest.TinyDrive + "}, {count: 1, ssds: 2, ssd: tlc-enterprise}]\nplace: {initiators: first, targets: last}\nfabric: {topology: {leaf_spine: {leaves: 2, spines: 1, hosts_per_leaf: 3}}, failures: [{a: leaf0, b: spine0, at: 100us, until: 300us}]}\n" +
		"workload: [{trace: random.csv, addresses: fold}]\nflows: [{incast: {fan: 2, size: 10KB}}]\nmeasure: {until: 20ms}\n",
	"initiators: 1\ntargets: [{count: 1, ssds: 1}]\nssd: " + trialtest.TinyDrive + "\nnvmf: {txq: 4KiB}\nrate_control: {kind: none}\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 100}, closed: 4}]\n",
	"ssd: " + trialtest.TinyDrive + "\nrate_control: {kind: static, weight_ratio: 3}\nworkload: [{synthetic: {reads: {size: 16KiB, interarrival: 20us}, writes: {size: 8KiB, interarrival: 20us}, requests: 600}}]\n",
	"object_cluster: {gateways: 5, targets: 12, group: 6, protocol: pull}\nworkload: [{trace: random.csv}]\nmeasure: {until: 20ms}\n",
	"object_cluster: {gateways: 3, targets: 8, protocol: pull, group: 4, reads: 20%, code: {data: 2, parity: 1}, failures: [{target: 1, at: 1ms, back: 8ms}], repair: {detect: 500us}, durability: {afr: 1%}}\nmeasure: {until: 10ms}\n",
	"object_cluster: {gateways: 4, targets: 12, chunk: 64KiB, disk: {kinds: [{share: 50%, rate: 200MiB/s}]}, load: {rate: 2000}}\nmeasure: {until: 3ms}\n",
	"object_cluster: {gateways: 2, targets: 6, chunk: 64KiB, protocol: chain, disk: {model: ssd}}\nssd: " + trialtest.TinyDrive + "\nmeasure: {until: 3ms}\n",
	"object_cluster: {protocol: ping-pong}\nmeasure: {until: 100us}\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, preconditioning: {fill: steady, occupancy: 80%}," +
		" reliability: {cycles: 3000, retention: 90d, retries: 2, refresh: {at: 80%, patrol: 100us}}, controller: {processors: 2, command: 2us, completion: 1us}}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: 100us, read_fraction: 70%, requests: 400}}]\nmeasure: {anatomy: true}\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, energy: {idle_watts: 3, read: 10uJ, program: 100uJ}, power_limit: {watts: 4, window: 1ms}," +
		" power_states: [{after: 1ms, entry: 500us, exit: 2ms, watts: 1}, {after: 2ms, exit: 5ms}]}\nworkload: [{synthetic: {reads: {size: 4KiB}, requests: 50}, closed: 1, think: 1700us}]\n",
	"ssd: {preset: qlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%," +
		" slc_cache: {capacity: 24MiB, reserved: 1MiB, fold: idle, idle_after: 200us, when_full: wait}}\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 64KiB}, interarrival: 300us, requests: 300}}]\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 60, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 50%, preconditioning: {fill: steady, occupancy: 80%}, fdp: {handles: 3, isolation: persistently}," +
		" namespaces: [{handles: [0, 2]}, {handles: [2, 1]}]}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: 100us, read_fraction: 30%, requests: 400}, placement: 1}, {synthetic: {writes: {size: 8KiB}, requests: 300}, closed: 2, namespace: 1, placement: 1}]\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 60, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 50%, preconditioning: {fill: steady}, fdp: {handles: 2, groups: 2}}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: 100us, read_fraction: 30%, requests: 400}, group: 1}, {synthetic: {writes: {size: 8KiB}, requests: 300}, closed: 2, placement: 1}]\n",
	"ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, cache: {capacity: 1MiB}, preconditioning: {fill: sequential, occupancy: 50%}," +
		" zones: {capacity: 1MiB, size: 1028KiB, max_open: 3, max_active: 8, max_append: 64KiB}, namespaces: [{}, {conventional: true, cache: write}]}\n" +
		"workload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 16KiB}, interarrival: 100us, read_fraction: 30%, requests: 400}, zones: {append: true, at_once: 2}}, {synthetic: {writes: {size: 8KiB}, requests: 100}, closed: 2, namespace: 1}," +
		" {synthetic: {writes: {size: 32KiB, addresses: {start: 5140KiB, space: 3084KiB}}, requests: 100}, closed: 4, zones: {append: false}}]\n",
	"initiators: 2\ntargets: [{count: 1, ssds: 2, ssd: {preset: tlc-enterprise, reliability: {curve: given, fit: {base: 0.012}, retries: 1, gain: 70%}}}]\nworkload: [{synthetic: {reads: {size: 32KiB, interarrival: 20us}, requests: 200}}]\n",
	"initiators: 3\ntargets: [{count: 2, ssds: 1, ssd: {preset: tlc-enterprise, geometry: {blocks_per_plane: 40, pages_per_block: 16, channels: 2, chips_per_channel: 1, dies_per_chip: 1}, over_provisioning: 35%, cache: {capacity: 1MiB}, zones: {max_append: 64KiB}}}]\n" +
		"route: {target: {stripe: 2MiB}}\nworkload: [{synthetic: {reads: {size: 4KiB}, writes: {size: 32KiB, addresses: {space: 8MiB}}, read_fraction: 30%, requests: 400}, closed: 8, zones: {append: true, at_once: 2}}," +
		" {synthetic: {writes: {size: 16KiB, interarrival: 40us, addresses: {start: 8MiB, space: 8MiB}}, requests: 200}, zones: {append: false}}]\n",
}

// recorded is the trace that some of them replay.
const recorded = `128166372000012750,usr,0,Read,2142208,65536,100
128166372000029960,usr,0,Write,3903488,4096,100
128166372000032270,usr,1,Write,3117056,8192,100
128166372000043400,usr,0,Read,851968,16384,100
128166372000051750,usr,1,Write,2342912,4096,100
128166372000055010,usr,1,Read,6389760,512,100
128166372000057600,usr,0,Write,1105920,512,100
`

// leaf is a key that a change can set, and what to try.
type leaf struct {
	path   string
	values []string
}

// leaves lists the keys of the language below a path for which there is something to try, by what explain says is to be written.
func leaves(t testing.TB, path, written string, try func(wanted string) []string) []leaf {
	t.Helper()
	d, err := scenario.Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []leaf
	for _, k := range d.Keys {
		name := strings.TrimPrefix(strings.TrimPrefix(k.Path, path), ".")
		at := name
		if written != "" {
			at = written + "." + name
		}
		switch {
		case strings.HasPrefix(k.Value, "a list of mappings"):
			out = append(out, leaves(t, k.Path, at+"[0]", try)...)
		case strings.HasPrefix(k.Value, "a mapping"):
			out = append(out, leaves(t, k.Path, at, try)...)
		default:
			if v := try(k.Value); len(v) > 0 {
				out = append(out, leaf{at, v})
			}
		}
	}
	return out
}

// values are things to try for a key, by what explain says is to be written.
func values(wanted string) []string {
	if strings.HasPrefix(wanted, "a list") || wanted == "text" {
		return nil
	}
	var out []string
	for _, x := range []struct {
		hint string
		list []string
	}{
		{"a time such as", []string{"0s", "1ps", "1ns", "100ns", "1us", "10us", "100us", "1ms"}},
		{"a time above zero", []string{"1us", "50us", "1ms"}},
		{"a size such as", []string{"0B", "1B", "512B", "1KiB", "4KiB", "16KiB", "64KiB", "1MiB"}},
		{"40Gbps", []string{"1Mbps", "1Gbps", "10Gbps", "25Gbps", "100Gbps", "400Gbps"}},
		{"1GB/s", []string{"1MB/s", "200MB/s", "1GB/s", "8GB/s"}},
		{"333MT/s", []string{"100MT/s", "800MT/s"}},
		{"a share such as", []string{"0%", "0.1%", "1%", "10%", "33%", "50%", "90%", "100%"}},
		{"an energy such as", []string{"0uJ", "5uJ"}},
		{"true or false", []string{"true", "false"}},
		{"a whole number", []string{"0", "1", "2", "3", "4", "7", "8", "16", "33"}},
		{"a number", []string{"0", "0.5", "1", "2", "10"}},
	} {
		if strings.Contains(wanted, x.hint) {
			out = append(out, x.list...)
		}
	}
	if wanted == "true or false" {
		return out
	}
	for _, w := range strings.FieldsFunc(strings.ReplaceAll(wanted, " or ", ", "), func(r rune) bool { return r == ',' }) {
		if w = strings.TrimSpace(w); !strings.Contains(w, " ") {
			out = append(out, w)
		}
	}
	return out
}

// TestRandomScenarios goes through the whole language: what check accepts either runs with every law of conservation held or ends with a
// clear error, and gives the same bytes however it is computed. FARFLASH_SOAK says for how many seconds, FARFLASH_CASE which case to run
// alone (N), or to begin with (N-), FARFLASH_KEEP a folder where those that were run are written to, for other builds of the program to run.
func TestRandomScenarios(t *testing.T) {
	seconds, _ := strconv.ParseFloat(os.Getenv("FARFLASH_SOAK"), 64)
	if seconds == 0 {
		seconds = 2
		if testing.Short() {
			seconds = 1
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	keys := leaves(t, "", "", values)
	if len(keys) < 300 {
		t.Fatalf("the language has only %d keys to try", len(keys))
	}
	first, last := uint64(1), uint64(1<<40)
	number, on := strings.CutSuffix(os.Getenv("FARFLASH_CASE"), "-")
	if n, err := strconv.ParseUint(number, 10, 64); err == nil {
		if first = n; !on {
			last = n
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "random.csv"), []byte(recorded), 0o666); err != nil {
		t.Fatal(err)
	}
	var count [4]int // refused, ended by an error, cut short, run
	began := time.Now()
	n := first
	for ; n <= last && (n < first+uint64(len(seedlings)) || time.Since(began).Seconds() < seconds); n++ {
		count[randomScenario(t, n, keys, dir)]++
		if t.Failed() {
			break
		}
	}
	t.Logf("%d scenarios: %d refused, %d ended by an error, %d cut short, %d run and compared", n-first, count[0], count[1], count[2], count[3])
	if first != last && count[3] == 0 {
		t.Error("none was run")
	}
}

// cutOff reports whether a check fails for what was to be simulated, and not for a fault of the models: a host is cut off for good.
func cutOff(c result.Check) bool {
	return (c.Name == "every flow ends" || c.Name == "every request ends") && strings.Contains(c.Detail, "down for good")
}

// randomScenario makes and tries one, and says what became of it.
func randomScenario(t *testing.T, number uint64, keys []leaf, dir string) int {
	draw := rng.NewStream(number, "random scenario")
	text := seedlings[int(number)%len(seedlings)]
	top := map[string]bool{"measure": true}
	for line := range strings.Lines(text) {
		if key, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, " ") {
			top[key] = true
		}
	}
	var changes []shape.Change
	var said []string
	for range draw.IntN(5) {
		var k leaf
		for tries := 0; tries < 1000; tries++ {
			k = keys[draw.IntN(int64(len(keys)))]
			section, _, _ := strings.Cut(strings.ReplaceAll(k.path, "[", "."), ".")
			if top[section] || draw.IntN(50) == 0 {
				break
			}
		}
		c := shape.Change{Path: k.path, Value: k.values[draw.IntN(int64(len(k.values)))]}
		changes, said = append(changes, c), append(said, c.Path+"="+c.Value)
	}
	about := func(format string, args ...any) {
		t.Helper()
		t.Errorf("case %d: %s\n%swith %q", number, fmt.Sprintf(format, args...), text, said)
	}
	defer func() {
		if x := recover(); x != nil {
			about("it panics: %v", x)
			panic(x)
		}
	}()
	s, err := scenario.Parse(shape.Source{File: "random.yaml", Text: []byte(text), Dir: dir}, changes)
	if err != nil {
		var wrong shape.Errors
		if !errors.As(err, &wrong) || len(wrong) == 0 || strings.TrimSpace(err.Error()) == "" {
			about("%T has no place: %v", err, err)
		}
		return 0
	}
	if large(s) {
		return 2
	}
	if err := trial.Check(t.Context(), s, number); err != nil {
		var wrong shape.Errors
		if !errors.As(err, &wrong) || len(wrong) == 0 || wrong[0].At.File == "" {
			about("%T has no place: %v", err, err)
		}
		return 0
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	run := func(s *scenario.Scenario, o experiment.Options) ([]byte, *result.Result, bool) {
		o.Seed, o.Version = number, "test"
		out, err := trial.Run(ctx, s, o)
		var refusal *experiment.Refusal
		switch {
		case ctx.Err() != nil:
			return nil, nil, false // its time is over, whatever it was doing
		case errors.As(err, &refusal):
			about("check accepts what a run refuses: %v", err)
			return nil, nil, false
		case err != nil && (strings.Contains(err.Error(), "fault in the model") || strings.TrimSpace(err.Error()) == ""):
			about("the run fails: %v", err)
			return nil, nil, false
		case err != nil:
			return []byte("error: " + err.Error()), nil, true
		case out.Interrupted:
			return nil, nil, false
		}
		b, err := out.Result.Encode()
		if err != nil {
			about("the result cannot be written: %v", err)
			return nil, nil, false
		}
		return b, out.Result, true
	}
	runtime.GOMAXPROCS(1)
	want, r, whole := run(s, experiment.Options{})
	if !whole {
		return 2
	}
	if r != nil {
		for _, c := range r.Checks {
			if !c.OK && !cutOff(c) {
				about("%s: %s", c.Name, c.Detail)
			}
		}
		if back, err := result.Decode(want); err != nil {
			about("the result does not read back: %v", err)
		} else if b, err := back.Encode(); err != nil || !bytes.Equal(b, want) {
			about("the result reads back as another one (%v)", err)
		}
	}
	compare := func(how string, s *scenario.Scenario, o experiment.Options) {
		got, _, whole := run(s, o)
		// A place in the text may be named in an error.
		if whole && !bytes.Equal(got, want) && !(r == nil && bytes.HasPrefix(got, []byte("error: "))) {
			about("%s: another result:\n%s", how, firstDifference(want, got))
		}
	}
	runtime.GOMAXPROCS(8)
	compare("on eight processors", s, experiment.Options{})
	compare("with a timeline", s, experiment.Options{Timeline: io.Discard})
	resolved := s.Resolved()
	again, err := scenario.Parse(shape.Source{File: "resolved.yaml", Text: []byte(resolved)}, nil)
	if err != nil {
		about("what it resolves to is refused: %v\n%s", err, resolved)
		return 3
	}
	if twice := again.Resolved(); withoutMarks(twice) != withoutMarks(resolved) {
		about("what it resolves to resolves to something else:\n%s", firstDifference([]byte(withoutMarks(resolved)), []byte(withoutMarks(twice))))
	}
	compare("from its resolved text", again, experiment.Options{})
	if dir := os.Getenv("FARFLASH_KEEP"); dir != "" && r != nil {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("random-%d.yaml", number)), []byte(resolved), 0o666); err != nil {
			t.Error(err)
		}
	}
	if s.Fabric != nil && s.Fabric.Parts <= 1 && s.ObjectCluster == nil {
		if parts, err := scenario.Parse(shape.Source{File: "resolved.yaml", Text: []byte(resolved)}, []shape.Change{{Path: "fabric.parts", Value: "2"}}); err == nil {
			compare("in two parts", parts, experiment.Options{})
			parts.Fabric.Threads = 2
			compare("on two threads", parts, experiment.Options{})
		}
	}
	if r == nil {
		return 1
	}
	return 3
}

// withoutMarks is a resolved scenario without the comments that say what was written and what was not.
func withoutMarks(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, " # ")
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// large tells scenarios that would take more memory or time than a test should.
func large(s *scenario.Scenario) bool {
	targets, ssds := s.CountTargets()
	for i := range max(len(s.Targets), 1) {
		if x := s.DriveOf(i); x != nil && x.Geometry.Pages()*int64(max(ssds, 1)) > 4<<20 {
			return true
		}
	}
	if c := s.ObjectCluster; c != nil && s.SSD != nil && s.SSD.Geometry.Pages()*int64(c.Targets) > 4<<20 {
		return true
	}
	return targets > 64 || s.Initiators > 64
}

// firstDifference is the first line in which two texts differ.
func firstDifference(a, b []byte) string {
	x, y := strings.Split(string(a), "\n"), strings.Split(string(b), "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}
