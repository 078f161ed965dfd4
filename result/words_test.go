package result

import (
	"slices"
	"testing"
)

// vocabulary returns a vocabulary for tests.
func vocabulary() *Vocabulary {
	var l, more Lexicon
	for _, op := range []string{"read", "write", "all"} {
		l.Metric(op+".count", "count", "how many")
		l.Metric(op+".bytes", "B", "bytes")
		l.Metric(op+".iops", "1/s", "a second")
		l.Metric(op+".bandwidth", "B/s", "bytes a second")
		l.Latency(op, " of it", "of it")
	}
	for _, m := range [][2]string{{"ssd.waf", "ratio"}, {"ssd.gc.count", "count"}, {"ssd.flash.programs", "count"},
		{"ssd.flash.erases", "count"}, {"ssd.energy", "J"}, {"ssd.power", "W"}, {"ssd.utilisation.die", "fraction"},
		{"ssd.cmt.hit_ratio", "fraction"}, {"fabric.drops", "count"}, {"fabric.goodput", "bit/s"},
		{"fabric.pause.time", "s"}, {"cluster.durability.mttdl", "years"}, {"sim.events", "count"}} {
		more.Metric(m[0], m[1], "what it is")
	}
	for _, s := range [][2]string{{"read.iops", "1/s"}, {"write.iops", "1/s"}, {"read.latency.mean", "us"},
		{"ssd.free_blocks", "count"}, {"ssd.waf", "ratio"}, {"snis.conv_c", "fraction"}} {
		more.Series(s[0], s[1], "over time")
	}
	for _, m := range [][2]string{{"ssd.die.busy", "fraction"}, {"ssd.latency.breakdown", "us"},
		{"ssd.wear", "count"}} {
		more.Matrix(m[0], m[1], "a table")
	}
	more.Metric("ssd.cache.hit_ratio", "fraction", "more")
	more.Series("write.bandwidth", "B/s", "more")
	more.Series("read.bandwidth", "B/s", "more")
	return NewVocabulary(l.Words, more.Words)
}

// TestOrder: names are ordered by group, then by index, then by definition.
func TestOrder(t *testing.T) {
	want := []string{"read.count", "read.latency.p50", "read.latency.max", "write.count", "all.count", "ssd.waf",
		"ssd.gc.count",
		"ssd[0].waf", "ssd[0].gc.count", "ssd[2].waf", "ssd[10].waf", "fabric.drops", "sim.events", "another", "x[y]"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, vocabulary().Metrics.compare)
	if !slices.Equal(got, want) {
		t.Errorf("order is %v", got)
	}
}

// TestGroups: a group with words of two kinds of experiment takes its position from the first.
func TestGroups(t *testing.T) {
	var a, b Lexicon
	a.Metric("read.count", "count", "x")
	a.Metric("ssd.waf", "ratio", "x")
	b.Metric("read.stage", "us", "x")
	r := New(NewVocabulary(a.Words, b.Words), "d", 1, "v")
	for _, n := range []string{"read.stage", "ssd.waf", "read.count"} {
		r.Set(n, 1)
	}
	var got []string
	for _, m := range r.Metrics {
		got = append(got, m.Name)
	}
	if want := []string{"read.count", "read.stage", "ssd.waf"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestScopes: a scoped name has the meaning of the plain one, and its help names the kind of part. Only numbers are
// valid as indices of parts.
func TestScopes(t *testing.T) {
	var l Lexicon
	l.Metric("read.latency.mean", "us", "mean of it")
	l.Metric("ssd.waf", "ratio", "what it is")
	l.Histogram("read.latency", "of it")
	l.Scope("tenant", "tenant", func(name string) bool { return name != "ssd.waf" },
		Definition{Name: "slowdown.mean", Unit: "ratio", Help: "how much slower", Better: LowerIsBetter})
	v := NewVocabulary(l.Words)
	d, ok := v.Metrics.Lookup("tenant[3].read.latency.mean")
	if want := (Definition{"tenant[3].read.latency.mean", "us", "mean of it, of one tenant", LowerIsBetter}); !ok ||
		d != want {
		t.Errorf("%+v, not %+v", d, want)
	}
	if d, ok := v.Metrics.Lookup("tenant[0].slowdown.mean"); !ok || d.Better != LowerIsBetter || d.Unit != "ratio" ||
		d.Help != "how much slower, of one tenant" {
		t.Errorf("%+v", d)
	}
	if d, ok := v.Histograms.Lookup("tenant[1].read.latency"); !ok || d.Unit != "us" {
		t.Errorf("%+v", d)
	}
	for _, name := range []string{"tenant.read.latency.mean", "tenant[1].ssd.waf", "tenant[x].read.latency.mean",
		"tenant[-1].slowdown.mean", "tenant[01].slowdown.mean", "tenant[1].nothing", "slowdown.mean",
		"user[1].slowdown.mean", "read[1].latency.mean", "tenant[1"} {
		if d, ok := v.Metrics.Lookup(name); ok {
			t.Errorf("%s is %+v", name, d)
		}
	}
}

// TestScopesOrder: the figures of parts follow all others, scope by scope in order of definition, with each part's
// figures together.
func TestScopesOrder(t *testing.T) {
	var l Lexicon
	l.Metric("read.count", "count", "x")
	l.Metric("read.iops", "1/s", "x")
	all := func(string) bool { return true }
	l.Scope("tenant", "tenant", all)
	l.Scope("workload", "item", all)
	l.Scope("job", "job", all)
	want := []string{"read.count", "read.iops", "tenant[0].read.count", "tenant[0].read.iops", "tenant[1].read.count",
		"workload[0].read.count", "workload[10].read.iops", "job[0].read.count", "job[3].read.iops",
		"user[0].read.count"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, NewVocabulary(l.Words).Metrics.compare)
	if !slices.Equal(got, want) {
		t.Errorf("order is %v", got)
	}
}

// TestDirections: times should be short and throughput high; other metrics have the direction declared for them, or
// none.
func TestDirections(t *testing.T) {
	var l Lexicon
	for _, name := range []string{"read.latency.p99", "flow.fct.mean", "flow.slowdown.max", "ssd.queue.wait.urgent",
		"ssd.transaction.wait.read", "read.iops", "aggregate.bandwidth", "ssd.gc.count", "ssd.waf",
		"cluster.put.rate", "iops.least"} {
		l.Metric(name, "count", "x")
	}
	l.Fewer("ssd.waf", "nothing")
	l.More("cluster.put.rate")
	metrics := NewVocabulary(l.Words).Metrics
	for name, want := range map[string]Direction{"read.latency.p99": LowerIsBetter, "flow.fct.mean": LowerIsBetter,
		"flow.slowdown.max": LowerIsBetter, "ssd.queue.wait.urgent": LowerIsBetter,
		"ssd.transaction.wait.read": LowerIsBetter,
		"read.iops":                 HigherIsBetter, "aggregate.bandwidth": HigherIsBetter,
		"ssd.gc.count": NeitherBetter,
		"ssd.waf":      LowerIsBetter, "ssd[3].waf": LowerIsBetter, "cluster.put.rate": HigherIsBetter,
		"iops.least": NeitherBetter, "unknown": NeitherBetter} {
		if got := metrics.Better(name); got != want {
			t.Errorf("of %s %d is better, not %d", name, got, want)
		}
	}
	if LowerIsBetter == HigherIsBetter || LowerIsBetter == NeitherBetter || HigherIsBetter == NeitherBetter ||
		NeitherBetter != 0 {
		t.Error("directions are not told apart, or none is not the zero one")
	}
}

// TestTwice: a duplicate definition panics.
func TestTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a name was defined twice")
		}
	}()
	var l Lexicon
	l.Metric("a", "count", "x")
	NewVocabulary(l.Words, l.Words)
}

func TestSetPanicsOnUnknownName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an unknown name was accepted")
		}
	}()
	New(vocabulary(), "d", 1, "v").Set("read.latency.p98", 1)
}
