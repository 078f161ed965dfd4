package chart

import (
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"farflash/internal/patience"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// samples returns one chart of each kind, with values that can be checked by hand.
func samples() map[string]string {
	x := []float64{0, 1, 2, 3, 4}
	shares := []float64{0, 0.5, 0.9, 0.99, 1}
	return map[string]string{
		"network": Network(NetworkChart{Frame: Frame{Title: "a <net>"}, Times: []float64{0.001, 0.002, 0.003},
			Nodes: []NetworkNode{{"h0", 0.25, 0.75, true}, {"h1", 0.75, 0.75, true}, {"s0", 0.5, 0.25, false}},
			Links: []NetworkLink{
				{0, 2, []NetworkDirection{{"h0->s0", []float64{0.5, 1000}, [][]float64{{0, 0.5, 1}, {0, 0, 0}}},
					{"s0->h0", []float64{0, math.NaN()}, [][]float64{{0, 0, 0}, {2000, math.NaN(), 0}}}}},
				{1, 2, []NetworkDirection{{"h1->s0", []float64{0, 0}, nil}}},
				{1, 2, []NetworkDirection{{"h1->s0", []float64{1, 0}, nil}}},
			},
			Measures: []NetworkMeasure{{Name: "utilisation", Whole: "utilisation", Unit: Fractions, Max: 1,
				WholeMax: 1}, {Name: "queue", Whole: "largest queue", Unit: Bytes}}}),
		"lines": Lines(LineChart{Frame: Frame{Title: "a & b"}, X: Axis{Label: "Time", Unit: Secs, Tight: true},
			Y: Axis{Label: "Rate", Unit: ByteRates, FromZero: true},
			Series: []Series{{"read", 0, x, []float64{1e8, 2e8, math.NaN(), 3e8, 4e8}, nil},
				{"write <1>", 1, x, []float64{4e8, 3e8, 2e8, 1e8, 0}, nil}},
			Shade: []Span{{0, 1, "warm-up"}}}),
		"dots": Dots(LineChart{Frame: Frame{Title: "one by one"}, X: Axis{Label: "Chunk", Tight: true},
			Y: Axis{Label: "Latency", Unit: Micros, FromZero: true},
			Series: []Series{{"read", 0, x, []float64{10, 20, math.NaN(), 10, 40}, nil},
				{"write", 1, []float64{1, 1, 3}, []float64{5, 5, 7}, nil}}}),
		"cdf": CDF(CDFChart{X: Axis{Label: "Latency", Unit: Micros, Scale: Log}, YLabel: "Within",
			Distributions: []Distribution{{"read", 0, []float64{80, 100, 200, 1000, 9000}, shares, 100000},
				{"write", 1, []float64{10, 20, 40, 80, 160}, shares, 50}}}),
		"columns": Columns(ColumnChart{X: Axis{Label: "Erases", Unit: Counts},
			Y: Axis{Label: "Blocks", Unit: Counts, FromZero: true}, Edges: []float64{0, 1, 2, 3, 4},
			Parts: []Part{{"blocks", 0, []float64{10, 40, 20, 0}}}}),
		"areas": Areas(ColumnChart{X: Axis{Label: "Time", Unit: Secs}, Y: Axis{Label: "Pages", Unit: PerSecond},
			Edges: []float64{0, 0.1, 0.2, 0.3},
			Parts: []Part{{"host", 0, []float64{1000, 2000, 1500}}, {"gc", 1, []float64{0, 500, math.NaN()}}}}),
		"bars": Bars(BarChart{X: Axis{Label: "Latency", Unit: Micros}, Rows: []string{"read", "write"}, Total: true,
			Parts: []Part{{"wait", 1, []float64{200, 0}}, {"array", 0, []float64{60, 640}}}}),
		"curves with intervals": Lines(
			LineChart{X: Axis{Label: "Cache", Scale: Log, Marks: []Mark{{4, "4MiB"}, {8, "8MiB"}, {16, "16MiB"}}},
				Y: Axis{Label: "Latency", Unit: Micros, FromZero: true},
				Series: []Series{{"greedy", 0, []float64{4, 8, 16}, []float64{200, 150, 140}, []float64{20, 0, 10}},
					{"random", 1, []float64{4, 16}, []float64{400, 300}, []float64{50, 450}}}}),
		"ladder": Ladder(LadderChart{Frame: Frame{Title: "who says <what>"}, X: Axis{Label: "Time", Unit: Micros},
			From: 0, To: 20,
			Lanes: []LadderTrack{{"gateway 0: A", 0}, {"target 3", 2}, {"target 4", 2}},
			Kinds: []LadderKind{{Name: "bid", Style: 7, Outline: true}, {Name: "accepted", Style: 2},
				{Name: "others", Style: 0, Faint: true}, {Name: "request", Style: 3, Arrow: true}},
			Boxes: []LadderBox{{0, 1, 0, 3, 12, "A", "bid of A"}, {1, 1, 0, 5, 12, "A", "accepted"},
				{2, 2, 1, -4, 30, "", "others"}, {2, 2, 1, 30, 40, "", "not seen"}},
			Arrows: []LadderArrow{{3, 0, 1, 1, 3, "request"}, {3, 1, 0, 18, 22, "cut off"},
				{3, 0, 2, -2, 2, "began before"}, {3, 0, 2, 25, 28, "not seen"}}}),
		"forest": Forest(ForestChart{X: Axis{Label: "Difference", Unit: Fractions}, Rows: []ForestRow{
			{"read.latency.p99", 0.2, 0.1, 0.3, "worse", 1, false, "p <99>", false, false},
			{"read.iops", -0.01, -0.03, 0.01, "no evidence", 7, true, "read.iops", false, false}}}),
		"forest of ratios": Forest(ForestChart{X: Axis{Label: "B over A", Scale: Log}, Zero: 1,
			Rows: []ForestRow{{"a", 59, 40, 70, "worse", 1, false, "a", false, true},
				{"b", 0.5, -0.2, 1.2, "", 7, true, "b", false, true}}}),
		"groups": Groups(GroupChart{XLabel: "Iteration", Y: Axis{Label: "Distance", Unit: Fractions},
			Labels: []string{"1", "2", "3"},
			Parts:  []Part{{"mean", 0, []float64{0.5, 0.2, math.NaN()}}, {"median", 2, []float64{0.4, 0.3, 0}}},
			Lines:  []Part{{"both", 1, []float64{0.45, 0.25, math.NaN()}}}}),
		"strips": Strips(StripChart{Frame: Frame{Title: "ours & theirs"}, Zero: 1, Wanted: "wanted",
			X:    Axis{Label: "ours over theirs", Scale: Log, Min: 0.5, Max: 2},
			Keys: []string{"is", "is not"}, TextFor: "rows",
			Strips: []Strip{{"table 1", "3", []StripPoint{{1, 0.9, 1.1, 0, "a <b>"}, {1.5, 1, 1, 1, "count"},
				{9, math.Inf(-1), 1, 1, "beyond"}}},
				{"table 2", "2", []StripPoint{{-1, 0.9, math.Inf(1), 1, "below"}, {math.NaN(), 1, 2, 1, "missing"}}},
				{"table 3", "0", nil}}}),
		"heatmap": HeatMap(HeatMapChart{RowLabel: "channel", ColLabel: "die", Rows: []string{"0", "1"},
			Cols: []string{"0.0", "0.1", "1.0"},
			V:    [][]float64{{0, 0.25, 0.5}, {0.75, 1, math.NaN()}}, Unit: Fractions, Legend: "busy", Max: 1}),
	}
}

func TestGolden(t *testing.T) {
	for name, got := range samples() {
		file := filepath.Join("testdata", name+".svg")
		if *rewrite {
			if err := os.MkdirAll("testdata", 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs from %s; look at it and run the test with -rewrite if it is right", name, file)
		}
		if why := broken(got); why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
}

var (
	tags   = regexp.MustCompile(`<(/?)([a-z]+)[^<>]*?(/?)>`)
	number = regexp.MustCompile(`NaN|Inf|="-?[0-9.]*e[+-]|(?:width|height|r)="-`)
)

// broken reports the first defect of a drawing: unbalanced elements, non-finite coordinates, negative sizes.
func broken(svg string) string {
	var open []string
	for _, m := range tags.FindAllStringSubmatch(svg, -1) {
		switch {
		case m[3] == "/":
		case m[1] == "":
			open = append(open, m[2])
		case len(open) == 0 || open[len(open)-1] != m[2]:
			return "</" + m[2] + "> closes nothing"
		default:
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return "<" + open[0] + "> is not closed"
	}
	if rest := tags.ReplaceAllString(svg, ""); strings.ContainsAny(rest, "<>") {
		return "a stray < or >"
	}
	if m := number.FindString(svg); m != "" {
		return "it says " + m
	}
	if strings.Count(svg, "<svg") != 1 || !strings.HasPrefix(svg, "<svg") {
		return "it is not one svg element"
	}
	return ""
}

func TestEmpty(t *testing.T) {
	nan := []float64{math.NaN()}
	for name, s := range map[string]string{
		"lines": Lines(LineChart{}), "lines of nothing": Lines(LineChart{Series: []Series{{"a", 0, nan, nan, nil}}}),
		"cdf": CDF(CDFChart{}), "dots": Dots(LineChart{}), "ladder": Ladder(LadderChart{}),
		"columns": Columns(ColumnChart{}), "areas": Areas(ColumnChart{}), "bars": Bars(BarChart{}),
		"heat map": HeatMap(HeatMapChart{}), "network": Network(NetworkChart{}), "forest": Forest(ForestChart{}),
		"zeros on a log axis": Lines(LineChart{Y: Axis{Scale: Log},
			Series: []Series{{"a", 0, []float64{1, 2}, []float64{0, 0}, nil}}}),
	} {
		if why := broken(s); why != "" || !strings.Contains(s, "no values") {
			t.Errorf("%s: %s\n%s", name, why, s)
		}
	}
}

// FuzzCharts draws values of any magnitude and verifies that the drawing is sound.
func FuzzCharts(f *testing.F) {
	f.Add(uint64(1), 1.0, 5, 2, uint8(0))
	f.Add(uint64(2), 1e-9, 200, 9, uint8(7))
	f.Add(uint64(3), 1e15, 1, 1, uint8(255))
	f.Fuzz(func(t *testing.T, seed uint64, size float64, n, m int, kind uint8) {
		defer patience.Limit()()
		if n < 1 || n > 300 || m < 1 || m > 12 || !(math.Abs(size) < 1e100) || size != 0 && math.Abs(size) < 1e-100 {
			return
		}
		g := rand.New(rand.NewPCG(seed, 1))
		axis := Axis{Label: "<x>", Unit: Unit(kind % 12), Scale: Scale(kind / 16 % 2), FromZero: kind&64 != 0,
			Tight: kind&128 != 0}
		rising, edges := make([]float64, n), []float64{0}
		at := 0.0
		for i := range rising {
			at += math.Abs(size) * (0.01 + g.Float64())
			rising[i] = at
			edges = append(edges, at)
		}
		values := func(positive bool) []float64 {
			v := make([]float64, n)
			for i := range v {
				v[i] = size * g.NormFloat64()
				if positive {
					v[i] = math.Abs(v[i])
				}
				if g.IntN(10) == 0 {
					v[i] = math.NaN()
				}
				if g.IntN(10) == 0 {
					v[i] = 0
				}
			}
			return v
		}
		lines := LineChart{X: axis, Y: axis}
		columns := ColumnChart{X: Axis{Unit: axis.Unit}, Y: Axis{Unit: axis.Unit, FromZero: true}, Edges: edges}
		cdf := CDFChart{X: axis}
		heat := HeatMapChart{Cols: make([]string, n), Unit: axis.Unit}
		forest := ForestChart{X: axis, Zero: 1}
		marked := axis
		for _, v := range rising[:min(n, 5)] {
			marked.Marks = append(marked.Marks, Mark{v, "<m>"})
		}
		bars := BarChart{X: Axis{Unit: axis.Unit}, Rows: make([]string, n)}
		for k := range m {
			lines.Series = append(lines.Series, Series{"s&", k, rising, values(false), values(true)})
			columns.Parts = append(columns.Parts, Part{"p", k, values(true)})
			forest.Rows = append(forest.Rows,
				ForestRow{"<f>", rising[0], values(false)[0], rising[n-1], "t&", k, k%2 == 0, "<t>", k%3 == 0,
					k%3 == 1})
			heat.Rows = append(heat.Rows, "r")
			heat.V = append(heat.V, values(false))
			d := Distribution{Name: "d", Style: k, Value: rising, Share: make([]float64, n),
				Count: int64(1 + g.IntN(1000000))}
			for i := range d.Share {
				d.Share[i] = float64(i+1) / float64(n)
			}
			cdf.Distributions = append(cdf.Distributions, d)
		}
		bars.Parts = columns.Parts
		net := NetworkChart{Measures: []NetworkMeasure{{Name: "m", Unit: axis.Unit}}, Times: rising}
		for i := range n {
			net.Nodes = append(net.Nodes,
				NetworkNode{Name: "<n>", X: g.Float64(), Y: float64(g.IntN(4)) / 4, End: g.IntN(2) == 0})
			net.Links = append(net.Links,
				NetworkLink{A: g.IntN(i + 1), B: g.IntN(i + 1),
					Ways: []NetworkDirection{{Name: "a|b;c", Whole: values(false)[:1],
						Over: [][]float64{values(false)}}}})
		}
		for name, s := range map[string]string{"lines": Lines(lines), "columns": Columns(columns),
			"areas": Areas(columns), "cdf": CDF(cdf), "heat map": HeatMap(heat), "bars": Bars(bars),
			"network": Network(net), "forest": Forest(forest),
			"marked": Lines(LineChart{X: marked, Y: axis, Series: lines.Series})} {
			if why := broken(s); why != "" {
				t.Fatalf("%s: %s\n%s", name, why, s[:min(len(s), 3000)])
			}
		}
	})
}

// TestNetworkOrder verifies that the busiest link is drawn last, and checks the attributes for scripts.
func TestNetworkOrder(t *testing.T) {
	s := samples()["network"]
	lines := regexp.MustCompile(`<line [^>]*>`).FindAllString(s, -1)
	if len(lines) != 3 || !strings.Contains(lines[2], `data-whole="1 0"`) ||
		!strings.Contains(lines[0], `stroke="`+idle+`"`) {
		t.Errorf("the order is\n%s", strings.Join(lines, "\n"))
	}
	// 0.5 of 1 is 2047 of 4094, two digits in base 64; 2000 B is the maximum; the last level is unknown.
	if want := `data-over="00v~~.;|;~.~~"`; !strings.Contains(lines[1], want) {
		t.Errorf("%s lacks %s", lines[1], want)
	}
	if len(digits) != 64 || strings.ContainsAny(digits, `IN|;&<>"'`) {
		t.Error("the digits")
	}
}

// TestSharedScales verifies that the same number has the same colour in all pictures.
func TestSharedScales(t *testing.T) {
	chart := func(most float64) NetworkChart {
		return NetworkChart{Links: []NetworkLink{{0, 1,
			[]NetworkDirection{{"a", []float64{most}, [][]float64{{most / 2}}}}}},
			Measures: []NetworkMeasure{{Name: "queue"}}}
	}
	charts := []NetworkChart{chart(10), chart(80), chart(0)}
	SharedScales(charts)
	for _, c := range charts {
		if m := c.Measures[0]; m.Max != 40 || m.WholeMax != 80 {
			t.Errorf("the scales end at %v and %v", m.Max, m.WholeMax)
		}
	}
	SharedScales(nil)
}

func TestDeterministic(t *testing.T) {
	a, b := samples(), samples()
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs from one time to the next", name)
		}
	}
}
