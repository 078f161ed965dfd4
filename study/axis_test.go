package study

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"farflash/internal/patience"

	"pgregory.net/rapid"
)

func TestParseAxis(t *testing.T) {
	for text, want := range map[string][]string{
		"ssd.collection.victim=greedy,random":          {"greedy", "random"},
		"ssd.over_provisioning=7%":                     {"7%"},
		"a=1, 2 ,3":                                    {"1", "2", "3"},
		"a=[1,2],{b: 3, c: 4},\"x,y\"":                 {"[1,2]", "{b: 3, c: 4}", "\"x,y\""},
		"workload[0].trace.file=../t/a.csv,../t/b.csv": {"../t/a.csv", "../t/b.csv"},
		"workload[0].trace.file=../t/a..b.csv":         {"../t/a..b.csv"},
		"a=1..64:x4":                                   {"1", "4", "16", "64"},
		"a=1..10:x2":                                   {"1", "2", "4", "8"},
		"a=4KiB..1MiB:x16":                             {"4KiB", "64KiB", "1MiB"},
		"a=0..30us:+10us":                              {"0s", "10us", "20us", "30us"},
		"a=900ns..1.1us:+100ns":                        {"900ns", "1us", "1.1us"},
		"a=0.1..0.4:+0.1":                              {"0.1", "0.2", "0.3", "0.4"},
		"a=5%..25%:+10%":                               {"5%", "15%", "25%"},
		"a=7%..28%:x2":                                 {"7%", "14%", "28%"},
		"a=10Gbps..40Gbps:x2":                          {"10Gbps", "20Gbps", "40Gbps"},
		"a=100MB/s..1GB/s:+450MB/s":                    {"100MB/s", "550MB/s", "1GB/s"},
		"a=100MT/s..400MT/s:x2":                        {"100MT/s", "200MT/s", "400MT/s"},
		"a=1us..2us:x1.5":                              {"1us", "1.5us"},
		"workload[0].synthetic.reads.interarrival=10us..20us:+10us": {"10us", "20us"},
	} {
		a, err := ParseAxis(text)
		if err != nil || !slices.Equal(a.Values, want) {
			t.Errorf("%s: %q, %v", text, a.Values, err)
		}
		if path, _, _ := strings.Cut(text, "="); a.Path != path {
			t.Errorf("%s: path %s", text, a.Path)
		}
	}
}

func TestParseAxisErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "names no values; write path=a,b,c or path=lo..hi:x2",
		"ssd.cache":              "names no values",
		"=1,2":                   "names no values",
		"a=":                     "names no values",
		"a=1,,2":                 "value 2 is empty",
		"a=1,2,1":                "the value 1 is listed twice",
		"a=[1,2":                 "missing ] at the end",
		"a=1],2":                 "unmatched ]",
		"a='x,y":                 "unclosed '",
		"a=10..x":                "the range has no step; write 10..x:x2 or 10..x:+10",
		"a=10..":                 "the range has no end",
		"a=10..20":               "the range has no step; write 10..20:x2 or 10..20:+10",
		"a=0..20":                "the range has no step; write 0..20:+K with a K above 0",
		"a=10..20:5":             "the step 5 is neither xK nor +K",
		"a=10..20:x1":            `the factor "1" is not a number above 1`,
		"a=10..20:xfast":         `the factor "fast" is not a number above 1`,
		"a=0..20:x2":             "cannot start at 0",
		"a=10..20:+0":            "the step is 0; it must be above 0",
		"a=20..10:+1":            "starts above its end",
		"a=4KiB..10us:+1KiB":     `"4KiB", "10us", "1KiB" are not all numbers or quantities of one kind`,
		"a=4KiB..64KiB:+4":       "are not all numbers or quantities of one kind",
		"a=4kib..64kib:x2":       "are not all numbers or quantities of one kind",
		"a=0..1000000:+1":        "more than 10000 values",
		"a=1ps..3ps:x1.1":        "the step is too small",
		"a=1..1e300:x2":          "are not all numbers",
		"a=1..2:x1.000000000001": "more than 10000 values",
	} {
		if _, err := ParseAxis(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		values []string
		unit   string
		want   []float64
	}{
		{[]string{"1", "2.5", "1e3"}, "", []float64{1, 2.5, 1000}},
		{[]string{"7%", "0.14"}, "fraction", []float64{0.07, 0.14}},
		{[]string{"10us", "1ms"}, "us", []float64{10, 1000}},
		{[]string{"4KiB", "1MB"}, "B", []float64{4096, 1e6}},
		{[]string{"40Gbps"}, "bit/s", []float64{4e10}},
	} {
		got, unit, ok := Axis{Values: c.values}.Numbers()
		if !ok || unit != c.unit ||
			!slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12*b }) {
			t.Errorf("%v: %v %s %v", c.values, got, unit, ok)
		}
	}
	for _, c := range []struct {
		value, unit string
		want        float64
	}{{"250ns", "us", 0.25}, {"100MB/s", "B/s", 1e8}, {"1GiB/s", "B/s", 1 << 30}, {"800MT/s", "1/s", 8e8},
		{"1/4", "fraction", 0.25}} {
		if got, unit, ok := (Axis{Values: []string{c.value}}).Numbers(); !ok || unit != c.unit ||
			math.Abs(got[0]-c.want) > 1e-12*c.want {
			t.Errorf("%s is %v %s", c.value, got, unit)
		}
	}
	for _, v := range [][]string{{"greedy"}, {"1", "greedy"}, {"4KiB", "10us"}} {
		if _, _, ok := (Axis{Values: v}).Numbers(); ok {
			t.Errorf("%v are numbers", v)
		}
	}
}

// TestRanges verifies that a range consists of its start and the values that follow by the step or the factor, none of
// them above its end, and that its values are exact.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low, more, by := rapid.Int64Range(1, 1000).Draw(t, "low"), rapid.Int64Range(0, 100_000).Draw(t, "more"),
			rapid.Int64Range(2, 500).Draw(t, "by")
		unit := rapid.SampledFrom([]string{"", "us", "KiB", "Mbps", "MB/s"}).Draw(t, "unit")
		value := func(v int64) string { return strconv.FormatInt(v, 10) + unit }
		read := func(text string) []float64 {
			a, err := ParseAxis(text)
			if err != nil {
				t.Fatal(err)
			}
			at, _, ok := a.Numbers()
			if !ok {
				t.Fatalf("%q are no numbers", a.Values)
			}
			return at
		}
		hold := func(text string, next func(int64) int64) {
			var list []string
			for v := low; v <= low+more; v = next(v) {
				list = append(list, value(v))
			}
			if got, want := read(text), read("a="+strings.Join(list, ",")); !slices.Equal(got, want) {
				t.Errorf("%s: %v, not %v", text, got, want)
			}
		}
		end := value(low + more)
		hold("a="+value(low)+".."+end+":x"+strconv.FormatInt(by, 10), func(v int64) int64 { return v * by })
		if more/by < mostValues {
			hold("a="+value(low)+".."+end+":+"+value(by), func(v int64) int64 { return v + by })
		}
	})
}

// FuzzParseAxis verifies that an accepted axis has distinct values, and that the values of a range can be parsed.
func FuzzParseAxis(f *testing.F) {
	for _, s := range []string{"a=1,2", "a=4KiB..1MiB:x2", "a=0..1:+0.1", "a=[1,{b: 2}],'c'", "a=1us..9us:x1.001",
		"a=5%..1/2:+7%", "a=1..2..3:x2", "a=.5..1:+1e-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		defer patience.Limit()()
		a, err := ParseAxis(text)
		if err != nil {
			return
		}
		if a.Path == "" || len(a.Values) == 0 || len(a.Values) > mostValues {
			t.Fatalf("%q: %+v", text, a)
		}
		for i, v := range a.Values {
			if v == "" || i > 0 && v == a.Values[i-1] {
				t.Fatalf("%q: values %q", text, a.Values)
			}
		}
		if a.Geometric {
			if at, _, ok := a.Numbers(); !ok || !slices.IsSorted(at) {
				t.Fatalf("%q: %q are %v", text, a.Values, at)
			}
		}
	})
}
