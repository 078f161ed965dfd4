package report

import (
	"fmt"
	"strings"
	"testing"

	"farflash/experiment/trial"
	"farflash/internal/term"
	"farflash/result"
)

// shares returns a result with the number of requests of each operation, and their latencies, for each part of a scope.
func shares(scope string, names []string, ops ...map[string]float64) *result.Result {
	r := result.New(trial.Vocabulary(), "sha256:00", 1, "test")
	r.Parts = append(r.Parts, result.Parts{Scope: scope, Names: names})
	for i, of := range ops {
		set := func(name string, v float64) { r.Set(fmt.Sprintf("%s[%d].%s", scope, i, name), v) }
		all := 0.0
		for op, n := range of {
			if op == "slowdown" {
				set("slowdown.mean", n)
				continue
			}
			all += n
			set(op+".count", n)
			set(op+".iops", 10*n)
			set(op+".bandwidth", 40960*n)
			set(op+".latency.mean", 100+n)
			set(op+".latency.p99", 300+n)
			set(op+".latency.max", 900+n)
		}
		set("all.count", all)
	}
	return r
}

// tenants returns a run with two tenants of these names, which share reads.
func tenants(names ...string) Run {
	r := shares("tenant", names, map[string]float64{"read": 20, "write": 10, "slowdown": 1.5},
		map[string]float64{"read": 5, "slowdown": 2})
	r.Set("fairness.progress", 0.9)
	return Run{Result: r, Label: names[0]}
}

// partsText returns the part section of a run's text.
func partsText(t *testing.T, r *result.Result) string {
	t.Helper()
	var b strings.Builder
	if err := (&Run{Result: r}).partText(&b, term.Style{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPartsText verifies that tenants that share a kind of request have a row for each kind, that long names are
// truncated in the middle, and that of many parts those with the most requests are shown, in their order.
func TestPartsText(t *testing.T) {
	type of = map[string]float64
	var many []of
	for i := range 11 {
		many = append(many, of{"read": float64(10 + 7*i%11)})
	}
	for name, c := range map[string]struct {
		r    *result.Result
		want string
	}{
		"two tenants": {shares("tenant", []string{"web", "a rather long name of a tenant"}, of{"read": 20, "write": 10}, of{"read": 5}), `
tenant                         IOPS  bandwidth    mean     p99     max
web                     read    200   819 KB/s  120 us  320 us  920 us
                        write   100   410 KB/s  110 us  310 us  910 us
a rather lo…f a tenant  read   50.0   205 KB/s  105 us  305 us  905 us
`},
		"alone too": {shares("tenant", []string{"web", "log"}, of{"read": 20, "slowdown": 1.5}, of{"write": 5, "slowdown": 1}), `
tenant         IOPS  bandwidth    mean     p99     max  slowdown
web     read    200   819 KB/s  120 us  320 us  920 us     1.500
log     write  50.0   205 KB/s  105 us  305 us  905 us     1.000
`},
		"one tenant":                {shares("tenant", []string{"web"}, of{"read": 20}), ""},
		"each its own kind":         {shares("tenant", nil, of{"read": 20}, of{"write": 20}), ""},
		"initiators are for a page": {shares("initiator", nil, of{"read": 20}, of{"read": 20}), ""},
		"those with most": {shares("volume", nil, many...), `
volume            IOPS  bandwidth    mean     p99     max
volume[1]   read   170   696 KB/s  117 us  317 us  917 us
volume[2]   read   130   532 KB/s  113 us  313 us  913 us
volume[3]   read   200   819 KB/s  120 us  320 us  920 us
volume[4]   read   160   655 KB/s  116 us  316 us  916 us
volume[6]   read   190   778 KB/s  119 us  319 us  919 us
volume[7]   read   150   614 KB/s  115 us  315 us  915 us
volume[9]   read   180   737 KB/s  118 us  318 us  918 us
volume[10]  read   140   573 KB/s  114 us  314 us  914 us
and 3 other volumes with fewer requests (result.json has all)
`},
	} {
		if got := partsText(t, c.r); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", name, got, c.want)
		}
	}
	both := shares("tenant", nil, of{"read": 1}, of{"read": 2})
	for i := range 2 {
		both.Set(fmt.Sprintf("workload[%d].all.count", i), 1)
		both.Set(fmt.Sprintf("workload[%d].read.count", i), 1)
	}
	if got := partsText(t, both); strings.Contains(got, "workload") {
		t.Errorf("workloads are told beside tenants that they are:\n%s", got)
	}
	both.Set("workload[2].all.count", 1)
	if got := partsText(t, both); !strings.Contains(got, "workload[0]  read") {
		t.Errorf("workloads are not told beside tenants that have several:\n%s", got)
	}
	both.Set("fairness.bandwidth", 0.875)
	both.Set("fairness.progress", 1)
	if got := partsText(t, both); !strings.HasSuffix(got,
		"\nfairness: 0.88 of bandwidth (Jain), 1.00 of progress (Jain)\n") {
		t.Errorf("%s", got)
	}
	loads := shares("workload", nil, of{"read": 1}, of{"read": 2})
	loads.Set("fairness.bandwidth", 0.5)
	if got := partsText(t, loads); strings.Contains(got, "fairness") {
		t.Errorf("fairness between items that are no tenants:\n%s", got)
	}
	loads.Set("fairness.slowdown", 0.5)
	if got := partsText(t, loads); !strings.Contains(got,
		"fairness: 0.50 of bandwidth (Jain), 0.50 of slowdown (least over greatest)") {
		t.Errorf("%s", got)
	}
	for _, c := range []struct {
		name string
		most int
		want string
	}{{"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abc…fg"}, {"äöüßéè", 6, "äöüßéè"}, {"äöüßéèê", 5, "äö…èê"}} {
		if got := short(c.name, c.most); got != c.want {
			t.Errorf("%s in %d: %s, not %s", c.name, c.most, got, c.want)
		}
	}
}

// TestPartsPage verifies that a page has a table of a division with all figures, and a chart of its latencies for each
// kind of request, which is wide for a single kind or for many parts.
func TestPartsPage(t *testing.T) {
	type of = map[string]float64
	r := shares("tenant", []string{"web", "log"}, of{"read": 20, "write": 10, "slowdown": 1.5},
		of{"read": 5, "slowdown": 2})
	r.Set("fairness.progress", 0.9)
	f := partFigures([]Run{{Result: r}})
	if len(f) != 3 || f[0].Table == nil || f[1].Caption != "Read latency by tenant" ||
		f[2].Caption != "Write latency by tenant" || f[1].Wide || f[1].Note != "Fairness: 0.90 of progress (Jain)." ||
		f[2].Note != "" {
		t.Fatalf("%d figures, %+v", len(f), f)
	}
	var rows []string
	for _, row := range f[0].Table.Rows {
		var cells []string
		for _, c := range row {
			cells = append(cells, c.Text)
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	want := "web|read|20|200|819 KB/s|120 us||320 us||920 us|1.500\n|write|10|100|410 KB/s|110 us||310 us||910 " +
		"us|\nlog|read|5|50.0|205 KB/s|105 us||305 us||905 us|2.000"
	if got := strings.Join(rows, "\n"); got != want || f[0].Table.Caption != "Tenants" || len(f[0].Table.Head) != 11 {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	r = shares("volume", nil, of{"read": 20}, of{"read": 5})
	if f = partFigures([]Run{{Result: r}}); len(f) != 2 || f[1].Caption != "Latency by volume" || !f[1].Wide ||
		f[1].Note != "" || len(f[0].Table.Head) != 10 {
		t.Errorf("%+v", f)
	}
	many := make([]of, mostPagedParts+3)
	for i := range many {
		many[i] = of{"read": float64(100 - i)}
	}
	if f = partFigures([]Run{{Result: shares("volume", nil, many...)}}); f[1].Note !=
		"The 32 with most requests; result.json has 3 more." || len(f[0].Table.Rows) != mostPagedParts {
		t.Errorf("%d rows, %q", len(f[0].Table.Rows), f[1].Note)
	}
	a, b := shares("tenant", []string{"web", "log"}, of{"read": 20}, of{"read": 5}),
		shares("tenant", []string{"web", "log"}, of{"read": 10}, of{"read": 5})
	f = partFigures([]Run{{Result: a, Path: "a"}, {Result: b, Path: "b"}})
	if len(f) != 1 || f[0].Table.Caption != "Tenants" || f[0].Table.Rows[0][0].Text != "web: read.latency.mean" {
		t.Fatalf("%+v", f)
	}
	if joinedSentences("", "b.") != "b." || joinedSentences("a.", "b.") != "a. b." {
		t.Error("two sentences are not joined")
	}
}

// TestFlowGroups verifies that groups with completed flows are listed up to a limit, and that other groups are skipped.
func TestFlowGroups(t *testing.T) {
	r := result.New(trial.Vocabulary(), "sha256:00", 1, "test")
	for i, n := range []float64{3, 0, 2, 5} {
		r.Set(fmt.Sprintf("flows[%d].count", i), n)
	}
	run := Run{Result: r}
	for most, want := range map[int]string{9: "flows[0]. flows[2]. flows[3]., 0 left",
		3: "flows[0]. flows[2]. flows[3]., 0 left", 2: "flows[0]. flows[2]., 1 left"} {
		list, left := run.flowGroups(most)
		var names []string
		for _, p := range list {
			names = append(names, p.prefix)
		}
		if got := fmt.Sprintf("%s, %d left", strings.Join(names, " "), left); got != want {
			t.Errorf("of %d: %s", most, got)
		}
	}
	if flowGroupTable(&Run{Result: result.New(trial.Vocabulary(), "", 1, "")}) != nil {
		t.Error("a table of no flows")
	}
}
