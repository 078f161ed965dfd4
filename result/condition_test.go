package result

import (
	"fmt"
	"strings"
	"testing"

	"farflash/internal/patience"
)

func TestCondition(t *testing.T) {
	r := New(vocabulary(), "d", 1, "v")
	r.Set("read.latency.p99", 400)
	r.Set("read.bandwidth", 5e8)
	r.Set("read.iops", 120000)
	r.Set("ssd.waf", 1.5)
	r.Set("ssd[1].waf", 2.5)
	r.Set("ssd.cache.hit_ratio", 0.25)
	r.Set("fabric.pause.time", 0.002)
	r.Set("read.bytes", 65536)
	for text, want := range map[string]bool{
		"read.latency.p99>500us":        false,
		"read.latency.p99>399us":        true,
		" read.latency.p99 >= 0.4 ms ":  true,
		"read.latency.p99<400us":        false,
		"read.latency.p99<=400000ns":    true,
		"read.latency.p99==400us":       true,
		"read.latency.p99!=400us":       false,
		"read.bandwidth<1GB/s":          true,
		"read.bandwidth>476MiB/s":       true,
		"read.iops<100k":                false,
		"read.iops<121k":                true,
		"read.iops>0.1M":                true,
		"read.iops > 0.00013 G/s":       false,
		"read.iops>=120000 IOPS":        true,
		"ssd.waf>1.4":                   true,
		"ssd[1].waf>2":                  true,
		"ssd.cache.hit_ratio<30%":       true,
		"ssd.cache.hit_ratio<0.2":       false,
		"fabric.pause.time>1ms":         true,
		"read.bytes==64KiB":             true,
		"read.latency.p99>0":            true,
		"read.latency.p99 > 4.0e2us":    false,
		"read.latency.p99>0.000399999s": true,
	} {
		c, err := ParseCondition(vocabulary().Metrics, text)
		if err != nil {
			t.Error(err)
			continue
		}
		held, detail, err := c.Holds(r)
		if err != nil || held != want {
			t.Errorf("%s: %v, %v (%s)", text, held, err, detail)
		}
	}
	c, err := ParseCondition(vocabulary().Metrics, "write.latency.p99>1ms")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Holds(r); err == nil || !strings.Contains(err.Error(), "no metric write.latency.p99") {
		t.Errorf("error is %v", err)
	}
}

// TestConditionOfParts: a part, the first as well as others, can be given by its name.
func TestConditionOfParts(t *testing.T) {
	var l Lexicon
	l.Metric("read.iops", "1/s", "a second")
	l.Scope("tenant", "tenant", func(string) bool { return true })
	v := NewVocabulary(l.Words)
	r := New(v, "d", 1, "v")
	r.Parts = []Parts{{"tenant", []string{"web", "log", "twin", "twin"}}}
	for i := range 4 {
		r.Set(fmt.Sprintf("tenant[%d].read.iops", i), float64(100*(i+1)))
	}
	for text, want := range map[string]struct {
		held bool
		err  string
	}{
		"tenant[web].read.iops==100": {held: true}, "tenant[log].read.iops==200": {held: true},
		"tenant[0].read.iops==100": {held: true}, "tenant[web].read.iops>100": {},
		"tenant[twin].read.iops>1":   {err: "several have the name \"twin\"; give the index, such as tenant[2]"},
		"tenant[nobody].read.iops>1": {err: "no tenant \"nobody\"; use one of web, log, twin, twin"},
		"tenant[9].read.iops>1":      {err: "this run has no metric tenant[9].read.iops; similar names: "},
	} {
		c, err := ParseCondition(v.Metrics, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		held, detail, err := c.Holds(r)
		if held != want.held || (err != nil) != (want.err != "") ||
			err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%s: %v, %q, %v", text, held, detail, err)
		}
		value, failed := c.Value(r)
		if (failed != nil) != (err != nil) || failed == nil && c.Of(value) != held {
			t.Errorf("%s: the value is %v, %v", text, value, failed)
		}
	}
	r.Parts = nil
	c, err := ParseCondition(v.Metrics, "tenant[web].read.iops>1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Holds(r); err == nil || !strings.Contains(err.Error(), "this run has no tenant names") {
		t.Errorf("%v", err)
	}
}

func TestConditionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "no comparison",
		"read.latency.p99":          "no comparison",
		"read.latency.p99=500us":    "not a comparison; use",
		"read.latency.p99>":         "no value",
		"read.latency.p99>500":      "no unit",
		"read.latency.p99>500MB/s":  "unknown unit",
		"read.bandwidth>3Gbps":      "counts bits",
		"read.latncy.p99>5us":       "similar names: read.latency.p99",
		"p99>5us":                   "read.latency.p99",
		"ssd[0].wfa>1":              "similar names: ssd.waf",
		"zzzzzz>1":                  "result.json",
		"ssd.waf>1us":               "plain numbers",
		"ssd.cache.hit_ratio>7":     "7%",
		"read.iops>many":            "not a rate",
		"read.iops>NaN":             "not a rate",
		"read.iops>inf":             "not a rate",
		"read.latency.p99>-5us":     "negative",
		"read[0].latency.p99>500us": "unknown metric",
	} {
		_, err := ParseCondition(vocabulary().Metrics, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want it to say %q", text, err, want)
		}
	}
}

// TestUnitsRead verifies that the examples in error messages are accepted, for every unit.
func TestUnitsRead(t *testing.T) {
	for unit, read := range unitParsers {
		if _, err := read(example(unit)); err != nil {
			t.Errorf("%s: %v", unit, err)
		}
	}
}

func FuzzParseCondition(f *testing.F) {
	f.Add("read.latency.p99>500us")
	f.Add("ssd[3].waf <= 1.5")
	f.Add("read.iops!=1e3k")
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		c, err := ParseCondition(vocabulary().Metrics, text)
		if err != nil {
			return
		}
		r := New(vocabulary(), "d", 1, "v")
		r.Set(c.Metric, c.Threshold)
		held, _, err := c.Holds(r)
		equal := c.Operator == "==" || c.Operator == ">=" || c.Operator == "<="
		if err != nil || held != equal {
			t.Fatalf("%q: %v, %v", text, held, err)
		}
	})
}
