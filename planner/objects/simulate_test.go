package objects_test

import (
	"context"
	"encoding/json"
	"farflash/model/cluster"
	"fmt"
	"strings"
	"testing"

	"farflash/planner/objects"
	"farflash/scenario/shape"
	"farflash/study"
)

const small = `rate: 4000
chunk: 128KiB
put_p99: 2ms
drives: [{name: slow, rate: 400MiB/s, price: $200}, {name: fast, rate: 1200MiB/s, price: $500}]
nics: [{name: 10G, rate: 10Gbps, price: $250}]
node: {price: $1500}
gateways: {count: 8}
protocols: [chain, pull]
group_sizes: [3]
search: {chunks: 800, most: 30}
`

func load(t testing.TB, text string, changes ...shape.Change) *objects.File {
	t.Helper()
	n, err := objects.Load(shape.Source{File: "need.yaml", Text: []byte(text)}, changes)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestErrors verifies that errors have positions and remedies.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"rate: 4000", "rate: many", `need.yaml:1:7: rate: "many" is not a number; write one such as 1.5`},
		{"rate: 4000", "rate: 0",
			`need.yaml:1:7: rate: 0 is not possible; give the rate in chunks per second, such as 50000`},
		{"put_p99: 2ms", "putp99: 2ms", `need.yaml:3:1: unknown key "putp99" in the need; did you mean "put_p99"?`},
		{"put_p99: 2ms", "get_p99: 2ms",
			"need.yaml:3:10: get_p99: no chunks are read; give reads, such as 50%, or leave the limit out"},
		{"price: $200", "price: cheap",
			`need.yaml:4:46: drives[0].price: "cheap" is not an amount of money; try $2700`},
		{"name: fast", "name: slow", `need.yaml:4:60: drives[1].name: "slow" is used twice; give each its own name`},
		{"protocols: [chain, pull]", "protocols: [chain, pul]", `need.yaml:8:20: protocols[1]: `},
		{"group_sizes: [3]", "group_sizes: [2]",
			"need.yaml:9:15: group_sizes[0]: a group of 2 cannot keep 3 parts of a chunk"},
		{"gateways: {count: 8}", "cluster: {targets: 9}",
			"need.yaml:7:20: cluster.targets: it is what the search finds; leave it out"},
		{"gateways: {count: 8}", "cluster: {link: {trip: 2s}}",
			"need.yaml:7:24: cluster.link.trip: 2s is not possible; use 0s to 1s"},
		{"gateways: {count: 8}", "replicas: 99", "need.yaml:7:11: replicas: 99 are not possible; use 1 to 16"},
		{"gateways: {count: 8}", "survive: 3", "need.yaml:7:10: survive: with 3 nodes down"},
		{"gateways: {count: 8}", "capacity: 1PB",
			"need.yaml:4:10: drives[0].capacity: the cluster must store 1PB, so state the capacity of slow, such as 4TB"},
	} {
		_, err := objects.Load(shape.Source{File: "need.yaml", Text: []byte(strings.Replace(small, c.old, c.new, 1))},
			nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s:\n%v\nis not\n%s", c.new, err, c.want)
		}
	}
}

// TestText verifies that a written need loads to the same need, and that its digest ignores settings without effect.
func TestText(t *testing.T) {
	for _, text := range []string{small, objects.Template} {
		n := load(t, text)
		again := load(t, n.Text)
		if again.Digest != n.Digest || !strings.Contains(n.Text, "put_p99: 2ms\n") {
			t.Errorf("%s\n%s", n.Text, again.Text)
		}
	}
	n := load(t, small)
	if load(t, "description: other\n"+small).Digest != n.Digest {
		t.Error("the description changes the digest")
	}
	if load(t, small, shape.Change{Path: "survive", Value: "1"}).Digest == n.Digest {
		t.Error("survive does not change the digest")
	}
}

func search(t testing.TB, n *objects.File, seeds ...uint64) (*objects.Plan, *objects.Sizer) {
	t.Helper()
	z := &objects.Sizer{Need: n.Need, Runner: &study.Runner{}}
	p, err := objects.Search(context.Background(), n.Need, z, seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p, z
}

// TestSimulated verifies with real simulations that no cheaper design meets the need than the one found.
func TestSimulated(t *testing.T) {
	n := load(t, small)
	p, z := search(t, n, 1, 2, 3)
	if p.Best == nil {
		t.Fatal("nothing meets the need")
	}
	limit := n.PutP99.Microseconds()
	checked := 0
	for drive := range n.Drives {
		for nodes := 3; nodes < 30; nodes++ {
			for _, c := range p.Candidates {
				d := objects.Design{Option: c.Option, Nodes: nodes}
				if c.Drive != drive || n.Cost(d) >= p.Best.Cost ||
					d.Group > 0 && (nodes%d.Group > 0 || nodes < 2*d.Group) {
					continue
				}
				checked++
				samples, err := z.Evaluate(t.Context(), d, 0, []uint64{1, 2, 3})
				if err != nil {
					t.Fatal(err)
				}
				sum, grown := 0.0, 0.0
				for _, s := range samples {
					sum, grown = sum+s.Put/3, max(grown, s.Growth)
				}
				if sum < limit*0.7 && grown < 0.01 {
					t.Errorf("%s costs %v and has a percentile of %.0f us; %v were asked for", n.Label(d), n.Cost(d),
						sum, p.Best.Cost)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("nothing is cheaper, so nothing was checked")
	}
	again, _ := search(t, n, 1, 2, 3)
	if got, want := document(t, again, n), document(t, p, n); got != want {
		t.Errorf("a second search gives\n%s\nnot\n%s", got, want)
	}
}

func document(t *testing.T, p *objects.Plan, n *objects.File) string {
	t.Helper()
	text, err := json.Marshal(objects.Describe(p, n, true, place))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func place(digest string, seed uint64) string { return fmt.Sprintf("%s-%d", digest, seed) }

// TestDown verifies that a node down requires more nodes, or longer times.
func TestDown(t *testing.T) {
	n := load(t, small, shape.Change{Path: "survive", Value: "1"}, shape.Change{Path: "protocols", Value: "[chain]"},
		shape.Change{Path: "reads", Value: "30%"})
	p, _ := search(t, n, 1, 2)
	if p.Best == nil || p.Best.Point.Down == nil || p.Best.Point.Intact == nil || p.Best.Point.Down.Down != 1 {
		t.Fatalf("%+v", p.Best)
	}
	if down, up := p.Best.Point.Down.Put.Mean, p.Best.Point.Intact.Put.Mean; down <= up {
		t.Errorf("puts take %.0f us with a node down and %.0f us without", down, up)
	}
}

func ExampleSizer() {
	need, err := objects.Load(shape.Source{File: "need.yaml", Text: []byte(small)}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	sizer := &objects.Sizer{Need: need.Need, Runner: &study.Runner{}}
	plan, err := objects.Search(context.Background(), need.Need, sizer, []uint64{1, 2, 3}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Best.Cost, need.Label(plan.Best.Point.Design))
	// Output: $6750 chain, 3 nodes, fast, 10G
}

// TestRebuilds verifies that with a node down a cluster is judged while it rebuilds that node's contents, and that less
// rebuild traffic interferes less.
func TestRebuilds(t *testing.T) {
	p99 := func(changes ...shape.Change) (float64, *objects.File) {
		t.Helper()
		n := load(t, small, append(changes, shape.Change{Path: "survive", Value: "1"},
			shape.Change{Path: "protocols", Value: "[chain]"})...)
		z := &objects.Sizer{Need: n.Need, Runner: &study.Runner{}}
		samples, err := z.Evaluate(t.Context(),
			objects.Design{Option: objects.Option{Protocol: cluster.Chain}, Nodes: 24}, 1, []uint64{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, s := range samples {
			sum += s.Put / 3
		}
		return sum, n
	}
	none, _ := p99(shape.Change{Path: "cluster.repair.streams", Value: "0"})
	some, _ := p99(shape.Change{Path: "cluster.repair.disk", Value: "10%"})
	all, n := p99()
	if some < none || all < 1.1*some {
		t.Errorf("p99 of %.0f us without a rebuild, %.0f with a tenth of the disks for it, %.0f with all", none, some,
			all)
	}
	if cfg := n.Config(objects.Design{Option: objects.Option{Protocol: cluster.Chain}, Nodes: 24}, 1); cfg.Objects <
		20_000 || cfg.Repair.Detect != 0 || cfg.Repair.Streams != 0.5 || len(cfg.Failures) != 1 {
		t.Errorf("%+v", cfg)
	}
	if _, err := objects.Load(shape.Source{File: "a.yaml", Text: []byte(small)},
		[]shape.Change{{Path: "cluster.repair.disk", Value: "10%"}}); err == nil ||
		!strings.Contains(err.Error(), "cluster.repair: no node is down, so nothing is rebuilt") {
		t.Errorf("%v", err)
	}
}
