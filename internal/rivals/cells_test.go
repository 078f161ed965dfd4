package main

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"farflash/model/cluster"
	"farflash/numeric/units"
	"farflash/scenario"
	"farflash/scenario/shape"
)

// TestKeys verifies what the scenarios of cells say, with the values of each dimension written out.
func TestKeys(t *testing.T) {
	const mib = units.ByteRate(units.MiB)
	for _, x := range []struct {
		cell cell
		form rival
		want func(c *cluster.Config)
	}{
		{cell{"16KiB", hardware{400, 10}, code{}, equal, load{outstanding: 2}}, usual, func(c *cluster.Config) {
			c.Chunk, c.Outstanding = 16*units.KiB, 2
			c.Disk.Rate, c.Link.Rate = 400*mib, 10*units.Gbps
		}},
		{cell{"128KiB", hardware{1000, 25}, code{4, 2}, slow, load{share: 90}},
			rival{"chain", []string{"choices: 4"}, "4"}, func(c *cluster.Config) {
				c.Chunk, c.Choices, c.Code = 128*units.KiB, 4, cluster.Code{Data: 4, Parity: 2}
				c.Disk.Rate, c.Link.Rate = 1000*mib, 25*units.Gbps
				c.Disk.Kinds = []cluster.Kind{{Share: 0.1, Rate: 250 * mib}}
				// 90 disks of 1000 MiB/s, a tenth of them with a quarter, take 192 KiB for a chunk.
				c.Load.Rate, c.Outstanding = math.Round(0.9*90*0.925*1000*1024/192), 256
			}},
		{cell{"1MiB", hardware{1000, 10}, code{8, 3}, loss, load{share: 70, bursts: true}},
			rival{"replicast-h", []string{smallMessages, "bid_width: 110%", "group: 18"}, ""},
			func(c *cluster.Config) {
				c.Chunk, c.Code, c.Group, c.BidWidth = units.MiB, cluster.Code{Data: 8, Parity: 3}, 18, 1.1
				c.Control.Replicast, c.Control.Share = 100, 0.03
				c.Disk.Rate, c.Link.Rate, c.Link.Loss = 1000*mib, 10*units.Gbps, 0.001
				c.Load.Rate, c.Load.Burst, c.Outstanding = math.Round(0.7*90*1000*8/11), 64, 256
			}},
	} {
		parse := func(text string) cluster.Config {
			s, err := scenario.Parse(shape.Source{File: "a.yaml", Text: []byte(text)}, nil)
			if err != nil {
				t.Fatalf("%v: %v\n%s", x.cell, err, text)
			}
			return s.ObjectCluster.Config
		}
		want := parse("object_cluster: {protocol: " + x.form.protocol + "}\nmeasure: {until: 1ms}\n")
		x.want(&want)
		if got := parse(x.cell.scenario(x.form, 0.01)); !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %v:\n%+v, want\n%+v", x.cell, x.form, got, want)
		}
	}
	text := cell{"128KiB", hardware{400, 10}, code{}, ssds, load{outstanding: 1}}.scenario(usual, 0.0125)
	for _, want := range []string{"model: ssd", "preset: tlc-enterprise", "until: 12500000ns, warm_up: 50%"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

// TestForms verifies which forms are tried in a cell.
func TestForms(t *testing.T) {
	for _, x := range []struct {
		code         code
		condition    string
		theirs, ours int
		has, hasNot  string
	}{
		// Each of three protocols has six forms; Replicast has one, three, and with a proxy three.
		{code{}, equal, 18 + 1 + 3 + 3, 12, "replicast-proxy, groups of 45", "chain, 7"},
		{code{}, loss, 18 + 1 + 3, 12, "replicast-m, bids of 200%", "replicast-proxy, groups of 9"},
		{code{4, 2}, equal, 18 + 1, 12, "grants, 6", "replicast-m, bids of 110%"},
		// Six candidates for each of eleven pieces are 66 targets, and two groups of five are too few.
		{code{8, 3}, equal, 15 + 1, 9, "replicast-h, bids of 110%, groups of 18", "dctcp, 6"},
	} {
		c := cell{"16KiB", hardware{400, 10}, x.code, x.condition, load{outstanding: 1}}
		theirs, ours := c.rivals(), c.pulls(12.5)
		if len(theirs) != x.theirs || len(ours) != x.ours {
			t.Errorf("%v: %d forms of rivals, %d of pull, want %d and %d", c, len(theirs), len(ours), x.theirs, x.ours)
		}
		names := map[string]rival{}
		for _, r := range append(theirs, ours...) {
			if _, twice := names[r.String()]; twice {
				t.Errorf("%v: %v is tried twice", c, r)
			}
			names[r.String()] = r
		}
		if _, there := names[x.has]; !there {
			t.Errorf("%v: %s is not tried", c, x.has)
		}
		if _, there := names[x.hasNot]; there {
			t.Errorf("%v: %s is tried", c, x.hasNot)
		}
		if ours[0].String() != "pull" || len(ours[0].set) > 0 {
			t.Errorf("%v: %v is first, not the default, which wins ties", c, ours[0])
		}
		if got := names["pull, groups of 18, ahead x 4"].set; !slices.Equal(got, []string{"group: 18", "ahead: 50us"}) {
			t.Errorf("%v: four times 12.5 us in groups of 18 are %q", c, got)
		}
		if got := names["pull, ahead x 2"].set; !slices.Equal(got, []string{"ahead: 25us"}) {
			t.Errorf("%v: twice 12.5 us are %q", c, got)
		}
	}
}

// TestSettings verifies that the settings hold all cells once, that the most expensive ones are last, and that the
// others are a mixture from the start.
func TestSettings(t *testing.T) {
	list := settings()
	if len(list) != 3*3*3*3+4 { // without SSDs; and two kinds of hardware with two codes
		t.Errorf("%d settings", len(list))
	}
	seen := map[string]bool{}
	cost, mixed := 0, map[string]bool{}
	for k, cells := range list {
		if want := 10; len(cells) != want && (cells[0].condition != ssds || len(cells) != 5) {
			t.Errorf("%v has %d loads", cells[0], len(cells))
		}
		for _, x := range cells {
			if seen[x.String()] || x.setting() != cells[0].setting() {
				t.Errorf("%v is twice, or among those of %v", x, cells[0].setting())
			}
			seen[x.String()] = true
		}
		c := map[string]int{"16KiB": 0, "128KiB": 0, "1MiB": 1}[cells[0].chunk]
		if cells[0].condition == ssds {
			c = 2
		}
		if c < cost {
			t.Errorf("%v is late", cells[0])
		}
		cost = c
		if k < 12 {
			x := cells[0]
			for _, value := range []string{x.chunk, x.hardware.String(), x.code.String(), x.condition} {
				mixed[value] = true
			}
		}
	}
	if len(seen) != 830 {
		t.Errorf("%d cells", len(seen))
	}
	if len(mixed) != 2+3+3+3 {
		t.Errorf("the first twelve settings have only %v", mixed)
	}
}

// TestWindow verifies the lengths of runs, each a number of chunks per gateway over the rate that the disks allow.
func TestWindow(t *testing.T) {
	for _, x := range []struct {
		chunk        string
		load         load
		rounds, deep int
		chunks       float64 // per gateway
	}{
		{"128KiB", load{outstanding: 1}, 10, 3, 10},
		{"128KiB", load{outstanding: 16}, 10, 3, 48}, // three times the outstanding ones
		{"128KiB", load{outstanding: 1}, 64, 6, 64},
		{"128KiB", load{share: 90}, 64, 6, 64},
		{"128KiB", load{share: 70, bursts: true}, 64, 6, 128},
		{"16KiB", load{outstanding: 1}, 10, 3, 10},
		{"16KiB", load{outstanding: 1}, 63, 3, 63},
		{"16KiB", load{outstanding: 1}, 64, 6, 128}, // the last, which counts
		{"1MiB", load{outstanding: 1}, 10, 3, 5},
		{"1MiB", load{outstanding: 4}, 10, 3, 12},
	} {
		size := map[string]float64{"16KiB": 1. / 64, "128KiB": 1. / 8, "1MiB": 1}[x.chunk] // MiB
		for _, c := range []code{{}, {8, 3}} {
			written := map[int]float64{0: 3, 8: 11. / 8}[c.data]
			got := cell{x.chunk, hardware{400, 10}, c, equal, x.load}.window(x.rounds, x.deep)
			if want := x.chunks * size * written / 400; math.Abs(got/want-1) > 1e-9 {
				t.Errorf("%s, %v, %v, %d rounds: %v s, want %v", x.chunk, c, x.load, x.rounds, got, want)
			}
		}
	}
}

// TestBetter verifies the order of results by hand: disks of 400 MiB/s allow 96,000 chunks of 128 KiB per second.
func TestBetter(t *testing.T) {
	for _, x := range []struct {
		load load
		list []found
		want []int
	}{
		{load{outstanding: 1}, []found{{80_000, 1, 1}, {90_000, 1, 5}, {96_000, 1, 9}}, []int{2, 1, 0}},
		{load{outstanding: 1}, []found{{96_000, 1, 10}, {95_600, 1, 9}, {95_400, 1, 1}}, []int{1, 0, 2}},
		{load{outstanding: 1}, []found{{97_000, 1, 10}, {96_000, 1, 9}}, []int{1, 0}}, // 97,000 cannot last
		{load{outstanding: 1}, []found{{96_000, 1, 9}, {96_000, 1, 9}}, []int{0, 1}},
		{load{share: 90}, []found{{86_400, 1, 10}, {84_700, 1, 9}, {84_600, 1, 8}}, []int{1, 0, 2}},
		{load{share: 70, bursts: true}, []found{{67_200, 1, 10}, {65_200, 1, 9}, {65_100, 1, 8}}, []int{1, 0, 2}},
	} {
		c := cell{"128KiB", hardware{400, 10}, code{}, equal, x.load}
		if got := c.better(x.list, ofRate); !slices.Equal(got, x.want) {
			t.Errorf("%v: %v are in the order %v, want %v", x.load, x.list, got, x.want)
		}
	}
}

// TestSettle verifies that pull's best form is its default where that is as good.
func TestSettle(t *testing.T) {
	for _, x := range []struct {
		form        string
		best, usual found
		want        string
	}{
		{"ahead x 2", found{96_000, 1, 9}, found{96_000, 1, 10}, "ahead x 2"},
		{"ahead x 2", found{96_000, 1, 10}, found{96_000, 1, 9}, asItIs},
		{"ahead x 2", found{96_000, 1, 9}, found{96_000, 1, 9}, asItIs},
		{"ahead x 2", found{95_000, 1, 9}, found{96_000, 1, 10}, asItIs},
		{"", found{96_000, 1, 9}, found{90_000, 1, 10}, asItIs},
	} {
		r := row{cell: cell{"128KiB", hardware{400, 10}, code{}, equal, load{outstanding: 4}}, form: x.form,
			best: x.best, usual: x.usual}
		r.settle()
		want := x.best
		if x.want == asItIs {
			want = x.usual
		}
		if r.form != x.want || r.best != want {
			t.Errorf("%q, %v, by default %v: %q, %v", x.form, x.best, x.usual, r.form, r.best)
		}
	}
}

// TestClass verifies in which cell the forms for each load are chosen.
func TestClass(t *testing.T) {
	for _, x := range [][2]load{
		{{outstanding: 1}, {outstanding: 4}}, {{outstanding: 16}, {outstanding: 4}}, {{share: 50}, {share: 90}},
		{{share: 95}, {share: 90}}, {{share: 70, bursts: true}, {share: 70, bursts: true}},
	} {
		c := cell{"16KiB", hardware{400, 10}, code{}, loss, x[0]}
		if got := c.class(); got.load != x[1] || got.setting() != c.setting() {
			t.Errorf("the forms of %v are chosen in %v", c, got)
		}
	}
}

// TestCapacity verifies that the measured rate of SSDs is that of every load of their setting, and of no other cell.
func TestCapacity(t *testing.T) {
	x := cell{"16KiB", hardware{400, 10}, code{}, ssds, load{outstanding: 1}} // not in the grid
	defer func() {
		driving.Lock()
		defer driving.Unlock()
		delete(driven, x.setting())
	}()
	if got := x.capacity(); got != 768_000 { // 90 disks of 400 MiB/s, 48 KiB for a chunk
		t.Errorf("%v before it is measured", got)
	}
	x.does(5000)
	for _, l := range loads {
		y := x
		if y.load = l; y.capacity() != 5000 {
			t.Errorf("%v: %v", y, y.capacity())
		}
	}
	for _, y := range []cell{
		{"16KiB", hardware{400, 10}, code{}, equal, load{outstanding: 1}},
		{"16KiB", hardware{400, 10}, code{4, 2}, ssds, load{outstanding: 1}},
	} {
		if y.does(1); y.condition == equal && y.capacity() != 768_000 {
			t.Errorf("%v: %v", y, y.capacity())
		}
	}
	if got := (cell{"16KiB", hardware{400, 10}, code{}, ssds, load{share: 50}}).allowed(); got != 2500 {
		t.Errorf("half of 5000 is %v", got)
	}
}
