package drives

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/units"
	"farflash/planner/tco"
	"farflash/scenario/shape"
)

// TestLimits verifies the limits on a plan's keys, from both sides of each bound. Each key replaces a line with the
// same key.
func TestLimits(t *testing.T) {
	const list = "workloads: {list: [{name: w, write_gb_per_day: 1, working_set_gb: 1, peak_iops: 1}]}\n"
	group := func(more string) string {
		return "drives: [{model: Intel DC P3700 2TB, price: 1, " + more + "}]\n" + list
	}
	plain := func(more string) string { return more + "\n" + group("count: 1") }
	for _, c := range []struct{ text, want string }{
		{plain("review: 30d"), ""},
		{plain("review: 29d"), "review: 29d is too short; workloads may move at most every 30d"},
		{plain("effective: {reduction: 0.5}"), ""},
		{plain("effective: {reduction: 0}"),
			"effective.reduction: 0 is not possible; it is user bytes over stored bytes, 1 for no overhead"},
		{plain("effective: {replication: 1}"), ""},
		{plain("effective: {replication: 0.9}"), "effective.replication: 0.9 copies are not possible; write 1 or more"},
		{plain("search: {steps: 0}"), ""},
		{plain("search: {steps: -1}"), "search.steps: -1 is not possible; write 0 or more"},
		{plain("search: {climb: 0}"), ""},
		{plain("search: {climb: -1}"), "search.climb: -1 is not possible; write 0 or more"},
		{plain("objective: calendar\nmode: paper"), "objective: mode: paper needs objective: paper"},
		{plain("weights: {}\nalgorithm: min-rate"),
			"weights: min-rate does not use it; leave it out, or choose mintco-perf"},
		{plain("zones: {switch: 50%}\nalgorithm: min-rate"), "zones"},
		{group("count: 0"), "write either count, for existing drives, or up_to, for drives that may be bought"},
		{group("count: -1"), "count: -1 is not possible; a count is 0 or more"},
		{group("count: 1, up_to: 1"), "write either count"},
		{group("up_to: -1"), "up_to: -1 is not possible; a count is 0 or more"},
		{group("up_to: 2, owned: true"), "owned: owned drives already exist; write count instead of up_to"},
		{group("count: 2, owned: true"), ""},
		{group("count: 1000000"), ""}, {group("up_to: 1000000"), ""},
		{group("count: 1000001"), "count: 1000001 drives are too many; a plan has at most 1000000"},
		{group("up_to: 1000001"), "count: 1000001 drives are too many; a plan has at most 1000000"},
		{group("count: 1, afr: 100%"), ""},
		{group("count: 1, afr: 101%"),
			"afr: it is above 100%; write the share of drives that fail in a year, at most 100%"},
		{group("count: 1, duty: 100%"), ""},
		{group("count: 1, duty: 101%"), "duty: it is above 100%; a drive is active for at most all of the time"},
		{group("count: 1, write_share: 101%"),
			"write_share: 101% is above 100%; write the share of I/Os that write, at most 100%"},
		{group("count: 1, write_share: 50%"),
			"write_share: each workload's own write_share counts, against the ratings for reads and writes; leave it " +
				"out, or choose mode: paper"},
		{group("count: 1, spare: 90%"), ""},
		{group("count: 1, spare: 91%"), "spare: 91% is not possible; at most 90% of a drive may be left unused"},
		{group("count: 1, worn: 99%"), ""},
		{group("count: 1, worn: 100%"), "worn: a worn-out drive takes no workload; write less than 100%"},
		{group("count: 1, read_iops: 0"), ""},
		{group("count: 1, read_iops: -1"), "read_iops: the value is not possible; write 0 or more"},
		{group("count: 1, write_iops: -1"), "write_iops: the value is not possible"},
		{group("count: 1, active_w: -1"), "active_w: the value is not possible"},
		{group("count: 1, idle_w: -1"), "idle_w: the value is not possible"},
		{group("count: 1, tbw: -1"), "tbw: the value is not possible"},
		{group("count: 1, rated_waf: 1"), ""},
		{group("count: 1, rated_waf: 0.9"), "rated_waf: a write amplification of 0.9 is not possible; write 1 or more"},
		{group("count: 1, latency: {}"), "latency: latency has either points or simulate; write one of the two"},
		{group("count: 1, array: {kind: raid5, drives: -1}"),
			"array.drives: -1 is not possible; an array has at least one drive"},
		{group("count: 1, array: {kind: raid5, drives: 4, data: 2}"),
			"array.data: only ec takes data shards, and the array is raid5; leave it out, or choose ec"},
		{group("count: 1, array: {kind: raid5, drives: 4, parity: 2}"),
			"array.parity: the parity of raid5 is fixed; leave it out, or choose ec or replication"},
		{group("count: 1, array: {kind: ec, drives: 6, data: 4, parity: 2}"), ""},
		{group("count: 1, domains: [a]"), ""}, {group("count: 1, domains: [a/b]"), ""},
		{group("count: 1, domains: ['']"), `domains[0]: "" is not the name of a domain`},
		{group("count: 1, domains: [/a]"),
			`domains[0]: "/a" is not the name of a domain; write a name such as r1 or east/r1`},
		{group("count: 1, domains: [a/]"), `domains[0]: "a/" is not the name of a domain`},
		{"apart_by: zone\n" + group("count: 1"),
			"domains: apart_by: zone needs the zone of these drives; write domains such as [east/r1, west/r1]"},
		{group("count: 1, waf: {}"), "waf: write amplification comes from exactly one of random"},
		{group("count: 1, waf: {constant: 1}"), ""},
		{group("count: 1, waf: {constant: 0.9}"), "waf.constant: a write amplification of 0.9 is not possible"},
		{group("count: 1, waf: {constant: 2, random: 3}"), "exactly one of"},
		{group("count: 1, waf: {simulate: 16}"), ""},
		{group("count: 1, waf: {simulate: 15}"),
			"waf.simulate: a drive of 15 blocks cannot be simulated; write 16 to 20000, such as 500"},
		{group("count: 1, waf: {simulate: 20000}"), ""},
		{group("count: 1, waf: {simulate: 20001}"), "waf.simulate: a drive of 20001 blocks cannot be simulated"},
		{group("count: 1, waf: {simulate: -1}"), "waf.simulate: -1 blocks are not possible; write 0 or more"},
		{group("count: 1, waf: {random: 1}"), ""},
		{group("count: 1, waf: {random: 0.9}"), "waf.random: a write amplification of 0.9 is not possible"},
		{group("count: 1, waf: {random: 3, sequential: 1}"), ""},
		{group("count: 1, waf: {random: 3, sequential: 0.9}"),
			"waf.sequential: a write amplification of 0.9 is not possible"},
		{group("count: 1, waf: {random: 3, sequential: 3}"), ""},
		{group("count: 1, waf: {random: 3, sequential: 3.1}"),
			"waf.sequential: sequential writes are amplified by 3.1, more than random ones, by 3; write at most the " +
				"value of random"},
		{group("count: 1, waf: {random: 3, turn: 99%}"), ""},
		{group("count: 1, waf: {random: 3, turn: 100%}"), "waf.turn: 100% is not possible; write less than 100%"},
		{strings.Replace(group("count: 1"), "name: w", "name: ''", 1),
			"workloads.list[0]: the workload has no name; give it one"},
		{strings.Replace(group("count: 1"), "}]}", "}, {name: w, write_gb_per_day: 1, working_set_gb: 1}]}", 1),
			`workloads.list[1].name: two workloads are named "w"; give each its own name`},
		{strings.Replace(group("count: 1"), "{list", "{file: w.csv, list", 1),
			"workloads are either a CSV file or a list; write one of the two"},
	} {
		_, err := Load(shape.Source{File: "plan.yaml", Text: []byte(c.text)}, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s\n%v\nnot\n%s", c.text, err, c.want)
		}
	}
}

// TestReadMix verifies that a table of write amplification has two columns, with or without a header, as shares or
// percentages.
func TestReadMix(t *testing.T) {
	for text, want := range map[string]float64{"0,4\n1,2\n": 3, "sequential,waf\n0%, 4\n 100 % ,2\n": 3,
		"# a comment\n0,3\n1,3\n": 3} {
		m, err := readMix(strings.NewReader(text), "m.csv")
		if err != nil || math.Abs(m.At(0.5)-want) > 1e-9 {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"0,4,1\n":           "; it has two columns, sequential and waf",
		"0,4\nx,2\n":        `m.csv: row 2: "x" is not a number; write one such as 0.45`,
		"x,4\n1,2\n":        `m.csv: row 1: "x" is not a number`,
		"0,4\n1,NaN\n":      `m.csv: row 2: "NaN" is not a number`,
		"0,4\n1,Inf\n":      `m.csv: row 2: "Inf" is not a number`,
		"a,b\n0,x\n":        `m.csv: row 2: "x" is not a number`,
		"0,4\n0.5,2\n0,3\n": "m.csv: ",
	} {
		if _, err := readMix(strings.NewReader(text), "m.csv"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %s", text, err, want)
		}
	}
}

// TestUnserved verifies that the number of workloads without a drive, from the start or later, is reported with a
// remedy.
func TestUnserved(t *testing.T) {
	lost, moved := Move{Workload: "a"}, Move{Workload: "b", To: "x"}
	for _, c := range []struct {
		refused, placed int
		moves           []Move
		want            string
	}{
		{0, 3, nil, ""}, {0, 3, []Move{moved}, ""}, {2, 3, []Move{moved}, "2 of 5 workloads have no drive; add drives"},
		{2, 3, []Move{lost, moved, lost},
			"2 workloads have no drive, and 2 more lose theirs when it is worn out; add drives"},
		{0, 3, []Move{moved, lost},
			"1 workloads lose their drive when it is worn out; add drives (up_to), or choose drives with more endurance"},
	} {
		o := &Outcome{Moves: c.moves, Assessment: &tco.Assessment{Refused: c.refused, Placed: c.placed}}
		if err := o.Unserved(); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, c := range []struct {
		s       tco.DriveState
		horizon float64
		want    string
	}{
		{tco.DriveState{Lifetime: 5}, 10, "unused"},
		{tco.DriveState{Workloads: 1, Limited: true, Lifetime: 5}, 10, "endurance"},
		{tco.DriveState{Workloads: 1, Lifetime: 5}, 10, "end of its last workload"},
		{tco.DriveState{Workloads: 1, Lifetime: 10}, 10, "horizon"},
		{tco.DriveState{Workloads: 1, Lifetime: 10}, 0, "end of its last workload"},
	} {
		if got := endsBy(&c.s, c.horizon); got != c.want {
			t.Errorf("%+v within %v ends by %s", c.s, c.horizon, got)
		}
	}
}

// TestWilson verifies the half width of Wilson's interval for shares of 10 and 100 samples, and the text that lists the
// inputs that vary.
func TestWilson(t *testing.T) {
	for _, c := range []struct{ share, n, want float64 }{{0.5, 10, 0.2634}, {0.5, 100, 0.0962}, {1, 10, 0.1388},
		{0, 10, 0.1388}} {
		if got := wilson(c.share, c.n); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("of %v in %v: %v, not %v", c.share, c.n, got, c.want)
		}
	}
	u := Uncertainty{Prices: []units.Fraction{0.9, 1.2}, WAF: []units.Fraction{0.5, 2},
		Growth: []units.Change{-0.1, 0.2}, Estimates: true}
	if got := u.Text(); got !=
		"prices 90% to 120%, WAF 50% to 200%, growth per year -10% to 20% more, estimates over the range of other "+
			"drives" {
		t.Error(got)
	}
	if got := (&Uncertainty{}).Text(); got != "" {
		t.Error(got)
	}
}

// TestMergedAuthors verifies that authors beyond mostAuthors are merged with their neighbours, preserving the sums of
// their rates, their space and their sequential writes.
func TestMergedAuthors(t *testing.T) {
	var list []author
	rate, space, sequential := 0.0, 0.0, 0.0
	for i := range 2*mostAuthors + 1 {
		x := author{rate: float64(1 + i%3), space: float64(i), sequential: float64(i) / 1000}
		list = append(list, x)
		rate, space, sequential = rate+x.rate, space+x.space, sequential+float64(x.rate*x.sequential)
	}
	out := merge(list)
	if len(out) > mostAuthors || len(out) != (2*mostAuthors+3)/3 {
		t.Errorf("%d authors", len(out))
	}
	for _, x := range out {
		rate, space, sequential = rate-x.rate, space-x.space, sequential-float64(x.rate*x.sequential)
	}
	if math.Abs(rate) > 1e-9 || math.Abs(space) > 1e-9 || math.Abs(sequential) > 1e-9 {
		t.Errorf("%v, %v and %v are lost", rate, space, sequential)
	}
	if same := merge(list[:mostAuthors]); len(same) != mostAuthors {
		t.Errorf("of as many as may be %d are left", len(same))
	}
	if y := merge(append(make([]author, mostAuthors), make([]author, 2)...)); y[0].sequential != 0 {
		t.Errorf("who writes nothing is %+v", y[0])
	}
}

// TestTracesNamed verifies that a workload is named after its file up to the first dot, or by the whole name if that is
// taken, and that a folder without traces is rejected.
func TestTracesNamed(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := FromTraces(dir, true, nil); err == nil ||
		!strings.HasSuffix(err.Error(), "yields a workload") {
		t.Error(err)
	}
	const text = "128166372003061629,hm,0,Write,0,4096,100\n128166972003061629,hm,0,Read,4096,4096,100\n"
	for _, name := range []string{"hm.csv", "hm.1.csv", "src.csv"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	list, skipped, err := FromTraces(dir, true, func(i, n int, name string) {
		if told = append(told, name); n != 3 || i != len(told)-1 {
			t.Errorf("%d of %d", i, n)
		}
	})
	if err != nil || len(skipped) > 0 {
		t.Fatal(err, skipped)
	}
	var names []string
	for _, w := range list {
		names = append(names, w.Name)
	}
	if got := strings.Join(names, " "); got != "hm hm.csv src" || strings.Join(told, " ") != "hm.1.csv hm.csv src.csv" {
		t.Errorf("%s of %v", got, told)
	}
	if _, _, err := FromTraces(filepath.Join(dir, "none"), true, nil); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestWritersOf verifies that authors with a negligible part of a drive are dropped, that authors without writes keep
// their space, and that shares add up to 1.
func TestWritersOf(t *testing.T) {
	list := []author{{rate: 100, space: 10, sequential: 0.2}, {rate: 0, space: 10}, {rate: 1e-12, space: 1e-9},
		{rate: 300, space: 0, sequential: 0.8}}
	for name, c := range map[string]struct {
		parts []float64
		want  [][3]float64 // writes, space, sequential
	}{
		"all":         {[]float64{1, 1, 1, 1}, [][3]float64{{0.25, 0.5, 0.2}, {0, 0.5, 0}, {0.75, 0, 0.8}}},
		"half of one": {[]float64{1, 1, 1, 0.5}, [][3]float64{{0.4, 0.5, 0.2}, {0, 0.5, 0}, {0.6, 0, 0.8}}},
		"no space":    {[]float64{0, 0, 0, 1}, [][3]float64{{1, 1, 0.8}}},
	} {
		got := writersOf(list, c.parts, 1000)
		if len(got) != len(c.want) {
			t.Errorf("%s: %d writers, not %d: %+v", name, len(got), len(c.want), got)
			continue
		}
		for i, w := range got {
			if !(math.Abs(w.Writes-c.want[i][0]) <= 1e-6) || !(math.Abs(w.Space-c.want[i][1]) <= 1e-6) || // nor NaN
				w.Sequential != c.want[i][2] {
				t.Errorf("%s: writer %d is %+v, not %v", name, i, w, c.want[i])
			}
		}
	}
	p := &Plan{Horizon: 100}
	jobs := []tco.Workload{{WriteRate: 10, WorkingSet: 4, Sequential: 0.5, Arrival: 20, End: 70},
		{WriteRate: 10, WorkingSet: 4, Sequential: 0.1, Arrival: 40}, {WriteRate: 5, WorkingSet: 2, Arrival: 100},
		{WriteRate: 8, WorkingSet: 1, Sequential: 0.3, Arrival: 90, End: 900}}
	out, err := p.authors(jobs)
	if want := []author{{rate: 6, space: 2.4, sequential: 0.1}, {rate: 0.8, space: 0.1, sequential: 0.3},
		{rate: 5, space: 2, sequential: 0.5}}; err != nil || len(out) != len(want) || math.Abs(out[0].rate-6) > 1e-9 ||
		math.Abs(out[0].space-2.4) > 1e-9 || out[0].sequential != 0.1 || math.Abs(out[1].rate-0.8) > 1e-9 ||
		out[2] != want[2] {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestAuthorsOrdered verifies that workloads of one mix are ordered by their writes per GB, so that merging them joins
// those that write alike: what has no space of its own is written most densely.
func TestAuthorsOrdered(t *testing.T) {
	jobs := []tco.Workload{{WriteRate: 5}, {WriteRate: 10, WorkingSet: 1}, {WriteRate: 4, WorkingSet: 2}, {},
		{WriteRate: 2, WorkingSet: 1}, {WorkingSet: 4}, {WriteRate: 1, WorkingSet: 9, Sequential: 0.5},
		{WriteRate: 6}}
	want := []author{{space: 4}, {rate: 2, space: 1}, {rate: 4, space: 2}, {rate: 10, space: 1}, {rate: 5}, {rate: 6},
		{rate: 1, space: 9, sequential: 0.5}}
	if got, err := (&Plan{}).authors(jobs); err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v; %+v is right", got, err, want)
	}
}
