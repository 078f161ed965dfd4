package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// sample returns a result that has each kind of entry.
func sample() *Result {
	r := New(vocabulary(), "sha256:0123", 7, "0.1.0")
	r.SimulatedS, r.Name, r.Summary = 0.2, "sample", "a drive & <some> requests"
	r.WarmUp = WarmUp{0.01, "MSER-5 cuts the first 5 of 100 observations"}
	r.Steady = &Steady{true, "the mean is known to 3 %"}
	g := rand.New(rand.NewPCG(1, 2))
	var reads, writes, all stats.Histogram
	for range 5000 {
		reads.Record(units.Microseconds(80 + 30*g.ExpFloat64()))
		writes.Record(units.Microseconds(20 + 200*g.ExpFloat64()))
	}
	all.Merge(&reads)
	all.Merge(&writes)
	// Deliberately not in the order of the table.
	r.Set("sim.events", 123456)
	r.Set("ssd[1].waf", 1.75)
	r.Set("ssd.waf", 1.5)
	r.SetLatencies("write", &writes)
	r.SetLatencies("read", &reads)
	r.SetLatencies("all", &all)
	r.SetLatencies("trim", &stats.Histogram{})
	for _, k := range []string{"read", "write"} {
		r.Set(k+".count", 5000)
		r.Set(k+".bytes", 5000*4096)
		r.Set(k+".iops", 5000/0.19)
		r.Set(k+".bandwidth", 5000*4096/0.19)
	}
	r.Set("read.count", 5000) // a second time
	r.SetSeries("write.bandwidth", 10*units.Millisecond, []float64{1e8, 1.5e8, 0.1 + 0.2})
	r.SetSeries("read.bandwidth", 10*units.Millisecond, []float64{2e8, math.NaN(), 1e-9})
	r.SetSeries("read.iops", 10*units.Millisecond, []float64{1, 2, 3})
	r.SetMatrix("ssd.die.busy", []string{"0", "1"}, []string{"0.0", "0.1"}, [][]float64{{0.5, 0.25}, {1, math.NaN()}})
	r.Check("requests conserved", true, "issued 10000 = completed 10000")
	r.Warn("%d of %d requests were late", 1, 2)
	r.Limits = []string{"no program errors"}
	return r
}

func TestEncodeShape(t *testing.T) {
	text, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	// Decode it independently, as another program would.
	var doc struct {
		Schema     string
		Digest     string
		Seed       int
		SimulatedS float64 `json:"simulated_s"`
		Metrics    map[string]struct {
			Value      float64
			Unit, Help string
		}
		Series map[string]struct {
			Unit, TUnit string
			T           []float64
			V           []*float64
		}
		Checks   []struct{ Name, Detail string }
		Warnings []string
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if doc.Schema != "farflash/result/1" || doc.Seed != 7 || doc.SimulatedS != 0.2 || len(doc.Checks) != 1 ||
		len(doc.Warnings) != 1 {
		t.Errorf("%+v", doc)
	}
	if m := doc.Metrics["read.latency.p99"]; m.Unit != "us" || m.Help == "" || m.Value < 200 || m.Value > 240 {
		t.Errorf("read.latency.p99 is %+v", m)
	}
	if s := doc.Series["read.bandwidth"]; len(s.T) != 3 || s.T[1] != 0.01 || s.V[1] != nil || *s.V[2] != 1e-9 {
		t.Errorf("read.bandwidth is %+v", s)
	}
	if !strings.Contains(string(text), "a drive & <some> requests") {
		t.Error("text is escaped for HTML")
	}
	if i, j := strings.Index(string(text), `"read.count"`), strings.Index(string(text), `"sim.events"`); i > j ||
		i < 0 {
		t.Error("metrics are not in the table's order")
	}
}

func TestRoundTrip(t *testing.T) {
	r := sample()
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, again) {
		t.Errorf("reading and writing changed the bytes:\n%s\n%s", text, again)
	}
	if !reflect.DeepEqual(r.Metrics, back.Metrics) || !reflect.DeepEqual(r.Checks, back.Checks) ||
		*r.Histogram("read.latency") != *back.Histogram("read.latency") {
		t.Error("reading changed metrics, checks or histograms")
	}
	r.Interrupted = true
	r.Parts = []Parts{{"tenant", []string{"web", ""}}, {"workload", []string{"a"}}}
	// points, not bins
	r.PutSeries(Series{Name: "snis.conv_c", TimeUnit: "iteration", T: []float64{1, 2, 5},
		V: []float64{0.5, 0.25, math.NaN()}})
	for _, steady := range []*Steady{nil, {false, "it rises"}, r.Steady} {
		r.Steady, r.Transient = steady, map[bool]string{true: "it falls"}[steady != nil]
		if text, err = r.Encode(); err != nil {
			t.Fatal(err)
		}
		if back, err = Decode(text); err != nil {
			t.Fatal(err)
		}
		for what, pair := range map[string][2]any{
			"steady": {r.Steady, back.Steady}, "transient": {r.Transient, back.Transient},
			"warm-up": {r.WarmUp, back.WarmUp}, "interrupted": {r.Interrupted, back.Interrupted},
			"parts": {r.Parts, back.Parts}, "limits": {r.Limits, back.Limits},
			"warnings": {r.Warnings, back.Warnings},
			"name": {r.Name + r.Summary + r.Version + r.Digest,
				back.Name + back.Summary + back.Version + back.Digest}, "seconds": {r.SimulatedS, back.SimulatedS},
			// compared as text, because they contain NaN
			"series":   {fmt.Sprint(r.Series), fmt.Sprint(back.Series)},
			"matrices": {fmt.Sprint(r.Matrices), fmt.Sprint(back.Matrices)},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s: %+v is read as %+v", what, pair[0], pair[1])
			}
		}
		if strings.Contains(string(text), `"steady"`) != (steady != nil) {
			t.Errorf("steady is written of %+v in\n%s", steady, text)
		}
		if strings.Contains(string(text), `"transient"`) != (r.Transient != "") {
			t.Errorf("a transient is written of %q in\n%s", r.Transient, text)
		}
	}
	if s := string(text); strings.Count(s, `"width"`) != 3 {
		t.Errorf("%d series of 3 have bins in\n%s", strings.Count(s, `"width"`), s)
	}
	empty, err := New(vocabulary(), "d", math.MaxUint64, "").Encode()
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Decode(empty); err != nil || back.Seed != math.MaxUint64 {
		t.Errorf("an empty result: %v", err)
	}
}

// TestLayout pins the layout of result.json, on which line-based comparisons of runs rely.
func TestLayout(t *testing.T) {
	r := New(vocabulary(), "d", 7, "v")
	r.SimulatedS, r.Interrupted, r.Name, r.Summary = 0.5, true, "a & b", "<c>"
	r.WarmUp = WarmUp{0.25, "it"}
	r.Steady = &Steady{Explain: "no"}
	r.Parts = []Parts{{"tenant", []string{"a", "b"}}}
	r.Set("ssd.waf", 1.5)
	r.Set("read.count", 3)
	var h stats.Histogram
	h.Record(1500 * units.Picosecond)
	h.Record(200 * units.Nanosecond)
	r.SetHistogram("read.latency", &h)
	r.SetSeries("read.iops", units.Second, []float64{1, math.NaN()})
	r.SetMatrix("ssd.wear", []string{"x", "y"}, []string{"1", "2"}, [][]float64{{1, 2}, {math.NaN(), 1e-7}})
	r.Check("law", true, "1 = 1")
	r.Check("other", false, "1 < 2")
	r.Warn("%d", 1)
	r.Limits = []string{"l", "m"}
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "schema": "farflash/result/1",
  "digest": "d",
  "seed": 7,
  "simulated_s": 0.5,
  "version": "v",
  "name": "a & b",
  "summary": "<c>",
  "interrupted": true,
  "warm_up": {"until_s": 0.25, "explain": "it"},
  "steady": {"reached": false, "explain": "no"},
  "parts": {
    "tenant": ["a", "b"]
  },
  "metrics": {
    "read.count": {"value": 3, "unit": "count", "help": "how many"},
    "ssd.waf": {"value": 1.5, "unit": "ratio", "help": "what it is"}
  },
  "series": {
    "read.iops": {"unit": "1/s", "t_unit": "s", "width": 1,
      "t": [0, 1],
      "v": [1, null]}
  },
  "histograms": {
    "read.latency": {"unit": "us", "count": 2, "mean": 0.10075, "stddev": 0.09925, "min": 0.0015, "max": 0.2,
      "exact": {"sum_ps": "201500", "squares_ps2": "40002250000", "min_ps": "1500", "max_ps": "200000"},
      "intervals": {"p50": [0, null], "p90": [0.002, null], "p95": [0.002, null], "p99": [0.2, null], "p99_9": [0.2, null], "p99_99": [0.2, null]},
      "low_ns": [1, 200],
      "high_ns": [2, 202],
      "counts": [1, 1]}
  },
  "matrices": {
    "ssd.wear": {"unit": "count",
      "rows": ["x", "y"],
      "cols": ["1", "2"],
      "v": [[1, 2],
            [null, 1e-07]]}
  },
  "checks": [
    {"name": "law", "ok": true, "detail": "1 = 1"},
    {"name": "other", "ok": false, "detail": "1 < 2"}
  ],
  "limits": [
    "l",
    "m"
  ],
  "warnings": [
    "1"
  ]
}
`
	if string(text) != want {
		t.Errorf("%s\nnot\n%s", text, want)
	}
	if r.OK() {
		t.Error("a law that does not hold is well")
	}
	if m, ok := r.Matrix("ssd.wear"); !ok || m.V[1][1] != 1e-7 {
		t.Errorf("%+v", m)
	}
	if m, ok := r.Matrix("ssd.die.busy"); ok {
		t.Errorf("%+v", m)
	}
	if s, ok := r.SeriesOf("read.iops"); !ok || s.Width != 1 {
		t.Errorf("%+v", s)
	}
	if s, ok := r.SeriesOf("write.iops"); ok {
		t.Errorf("%+v", s)
	}
	if name := r.PartName("tenant", 1) + r.PartName("tenant", 2) + r.PartName("job", 0); name != "btenant[2]job[0]" {
		t.Error(name)
	}
	// An empty result has the lines of its lists too.
	if text, err = New(vocabulary(), "", 0, "").Encode(); err != nil ||
		!strings.HasSuffix(string(text),
			"  \"metrics\": {},\n  \"series\": {},\n  \"histograms\": {},\n  \"checks\": [],\n  \"warnings\": []\n}\n") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestLatencyMetrics: mean, deviation, extremes and quantiles are those of the recorded values, in microseconds.
func TestLatencyMetrics(t *testing.T) {
	r := New(vocabulary(), "d", 1, "v")
	var h stats.Histogram
	var values []float64
	for i := range 5000 {
		d := units.Duration(1+i*i) * 1234
		h.Record(d)
		values = append(values, d.Microseconds())
	}
	r.SetLatencies("read", &h)
	sum, squares := 0.0, 0.0
	for _, v := range values {
		sum += v
		squares += v * v
	}
	n := float64(len(values))
	for name, want := range map[string]float64{"mean": sum / n, "stddev": math.Sqrt(squares/n - sum/n*sum/n),
		"min": values[0], "max": values[len(values)-1],
		"p50": values[2499], "p90": values[4499], "p95": values[4749], "p99": values[4949], "p99_9": values[4994]} {
		near := 1e-9 // for the moments and extremes, which are exact
		if name[0] == 'p' {
			near = 1.0 / 64
		}
		if m, ok := r.Metric("read.latency." + name); !ok || m.Unit != "us" || math.Abs(m.Value/want-1) > near {
			t.Errorf("%s is %+v, not %v", name, m, want)
		}
	}
	if r.Histogram("read.latency") != &h {
		t.Error("the histogram is not there")
	}
	if r.DropHistogram("read.latency"); r.Histogram("read.latency") != nil {
		t.Error("the histogram is still there")
	}
}

func TestEncodeRefusesNaN(t *testing.T) {
	r := New(vocabulary(), "d", 1, "v")
	r.Set("ssd.waf", math.NaN())
	if _, err := r.Encode(); err == nil || !strings.Contains(err.Error(), "ssd.waf") {
		t.Errorf("error is %v", err)
	}
}

func TestFloats(t *testing.T) {
	for v, want := range map[float64]string{0: "0", math.Copysign(0, -1): "0", 402.1: "402.1", 1e6: "1000000",
		1e21: "1e+21", 1e-7: "1e-07", 0.30000000000000004: "0.30000000000000004", 1.0 / 3: "0.3333333333333333"} {
		if got := string(appendFloat(nil, v)); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	good, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	change := func(old, new string) string {
		s := strings.Replace(string(good), old, new, 1)
		if s == string(good) {
			t.Fatalf("%q is not in the sample", old)
		}
		return s
	}
	for _, c := range []struct{ text, want string }{
		{"", "ends in the middle"},
		{string(good[:len(good)/2]), "ends in the middle"},
		{"{}", "not a result"},
		{string(good) + "{}", "trailing text"},
		{change("result/1", "result/9"), `"farflash/result/9"`},
		{change(`"seed": 7`, `"seed": "x"`), "4:"},
		{change(`"seed": 7`, `"seed": 7,,`), "4:"},
		{change(`"low_ns": [`, `"low_ns": [1, `), "lower bounds"},
		{change(`"high_ns": [`, `"high_ns": [1, `), "upper bounds"},
		{change(`"counts": [`, `"counts": [1, `), "counts"},
		{strings.Replace(change(`"low_ns": [`, `"low_ns": [1, `), `"high_ns": [`, `"high_ns": [1, `, 1), "counts"},
		{change(`"sum_ps": "`, `"sum_ps": "x`), "sum_ps"},
		{change(`"counts": [`, `"counts": [9`), "read.latency"},
		{change(`"rows": ["0"`, `"rows": ["0", "5"`), "row labels"},
		{change(`"t": [0, `, `"t": [`), "times"},
	} {
		if _, err := Decode([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, want it to say %q", err, c.want)
		}
	}
}

// TestDecodePlaces: whichever value is corrupted, the error has its line and the name it belongs to.
func TestDecodePlaces(t *testing.T) {
	good, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(good), "\n")
	spoilt := 0
	section, name := "", ""
	for i, l := range lines {
		switch {
		case strings.HasPrefix(l, "  \"") && strings.HasSuffix(l, "{"):
			section = strings.Trim(strings.TrimSpace(l), `": {`)
		case strings.HasPrefix(l, "    \""):
			name = strings.Split(l, `"`)[1]
		}
		for _, x := range []struct{ mark, now string }{
			{`"value": `, `"value": "x", "unused": `}, {`"unit": "`, `"unit": 5, "unused": "`},
			{`"t": [`, `"t": [true, `}, {`"v": [`, `"v": ["x", `}, {`"counts": [`, `"counts": [0.5, `},
		} {
			if section == "" || !strings.Contains(l, x.mark) ||
				section == "histograms" && strings.Contains(x.mark, "unit") {
				// not read: the unit of histograms is fixed
				continue
			}
			spoilt++
			changed := append(append([]string{}, lines[:i]...),
				append([]string{strings.Replace(l, x.mark, x.now, 1)}, lines[i+1:]...)...)
			_, err := Decode([]byte(strings.Join(changed, "\n")))
			var e *DecodeError
			if !errors.As(err, &e) || e.Line != i+1 || e.Column < strings.Index(l, x.mark)+len(x.mark) ||
				!strings.Contains(err.Error(), section+": "+name+".") {
				t.Errorf("line %d, %s of %s: %v", i+1, x.mark, name, err)
			}
		}
	}
	if spoilt < 20 {
		t.Errorf("only %d values were spoilt", spoilt)
	}
	for _, text := range []string{"[]", "3", "{\"metrics\": []}", "{\"metrics\": {\"a\": {}}}"} {
		_, err := Decode([]byte(text))
		var e *DecodeError
		if !errors.As(err, &e) || e.Line != 1 || e.Column < 1 || e.Column > len(text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestDecodeTwice: if a member or a name occurs twice, the last occurrence counts.
func TestDecodeTwice(t *testing.T) {
	r, err := Decode([]byte(`{"schema": "farflash/result/1", "metrics": {"gone": {"value": 1}}, "metrics": {"a": {"value": 1}, "b": {"value": 2}, "a": {"value": 3}}, "seed": 1, "seed": 2}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Metrics) != 2 || r.Metrics[0].Name != "a" || r.Metrics[0].Value != 3 || r.Metrics[1].Value != 2 ||
		r.Seed != 2 {
		t.Errorf("%+v", r)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := sample().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	small := New(vocabulary(), "d", 1, "v")
	var h stats.Histogram
	h.Record(units.Microsecond)
	h.Record(units.Millisecond)
	small.SetLatencies("read", &h)
	small.SetSeries("read.iops", units.Second, []float64{1, math.NaN()})
	text, err := small.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		defer patience.Limit()()
		r, err := Decode(text)
		if err != nil {
			return
		}
		once, err := r.Encode()
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		back, err := Decode(once)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if twice, err := back.Encode(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("the second round changed the bytes (%v)", err)
		}
	})
}

// TestFewValues: a quantile with too few values has no metric; its interval reports the known bounds, and a condition
// on it reports why it cannot be judged.
func TestFewValues(t *testing.T) {
	r := New(vocabulary(), "d", 1, "v")
	var h stats.Histogram
	for i := range 400 {
		h.Record(units.Duration(i+1) * units.Microsecond)
	}
	r.SetLatencies("read", &h)
	for name, there := range map[string]bool{"read.latency.p50": true, "read.latency.p99": true,
		"read.latency.p99_9": false, "read.latency.max": true} {
		if _, ok := r.Metric(name); ok != there {
			t.Errorf("%s is there: %v", name, ok)
		}
	}
	low, high, bounded := Quantiles[3].Interval(&h)
	if low < 380*units.Microsecond || low > 396*units.Microsecond || high != 400*units.Microsecond || !bounded {
		t.Errorf("p99 is between %v and %v", low, high)
	}
	if low, _, bounded := Quantiles[4].Interval(&h); low < 396*units.Microsecond || bounded {
		t.Errorf("p99.9 is at least %v, or bounded", low)
	}
	text, err := r.Encode()
	if err != nil || !strings.Contains(string(text), `"p99_9": [398.208, null]`) {
		t.Errorf("%s %v", text, err)
	}
	c, err := ParseCondition(vocabulary().Metrics, "read.latency.p99_9>500us")
	if err != nil {
		t.Fatal(err)
	}
	if held, detail, err := (Condition{Text: "x", Metric: c.Metric, Operator: ">", Threshold: 300,
		Unit: c.Unit}).Holds(r); !held || err != nil {
		t.Errorf("%q, %v", detail, err)
	}
	if _, _, err := c.Holds(r); err == nil ||
		!strings.Contains(err.Error(),
			"read.latency.p99_9 cannot be determined from 400 values, it needs 3688; it is at least 398.208us") {
		t.Error(err)
	}
}
