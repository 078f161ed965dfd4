package placement

import (
	"farflash/numeric/rng"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// maker creates a placer of one kind for a map.
type maker struct {
	name  string
	make  func(Map) (Placer, error)
	equal bool // refuses weights
}

func makers() []maker {
	return []maker{
		{"random", func(m Map) (Placer, error) { return NewRandom(m, rng.NewStream(1, "placement"), false) }, false},
		{"random-excluding", func(m Map) (Placer, error) { return NewRandom(m, rng.NewStream(1, "placement"), true) },
			false},
		{"ring", func(m Map) (Placer, error) { return NewRing(m, DefaultVirtualNodes) }, false},
		{"hrw", func(m Map) (Placer, error) { return NewHRW(m) }, false},
		{"jump", func(m Map) (Placer, error) { return NewJump(m) }, true},
		{"maglev", func(m Map) (Placer, error) { return NewMaglev(m, MaglevTable(len(m.Weights))) }, false},
		{"straw2", func(m Map) (Placer, error) { return NewStraw2(m) }, false},
		{"bounded", func(m Map) (Placer, error) { return NewBoundedLoad(m, DefaultVirtualNodes, 0.25) }, false},
		{"group", func(m Map) (Placer, error) { return NewGroup(m, 9) }, false},
		{"copysets", func(m Map) (Placer, error) {
			v, err := newView(m)
			if err != nil {
				return nil, err
			}
			return NewCopysets(m, min(3, v.most), min(10, len(v.live)-1))
		}, true},
		{"two-choices", func(m Map) (Placer, error) {
			h, err := NewHRW(m)
			if err != nil {
				return nil, err
			}
			return NewLeastLoaded(h, 2, func(t int32) int64 { return int64(t % 7) })
		}, false},
	}
}

func must(t testing.TB, p Placer, err error) Placer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPlaced verifies that every placer returns n live targets in different domains, appends them, and, except for
// Random, is deterministic.
func TestPlaced(t *testing.T) {
	for _, mk := range makers() {
		t.Run(mk.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := Uniform(9 * rapid.IntRange(2, 6).Draw(t, "groups"))
				if rapid.Bool().Draw(t, "domains") {
					m = m.Racks(rapid.IntRange(1, 6).Draw(t, "rack"))
				}
				for i := range m.Weights {
					if !mk.equal {
						m.Weights[i] = rapid.SampledFrom([]float64{0, 0.25, 1, 1, 4}).Draw(t, "weight")
					} else if rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
						m.Weights[i] = 0
					}
				}
				if slices.Max(m.Weights) == 0 {
					t.Skip("nothing in use")
				}
				p, err := mk.make(m)
				if err != nil && mk.name == "copysets" {
					t.Skip("some maps do not divide into copysets")
				}
				if err != nil {
					t.Fatal(err)
				}
				again, _ := mk.make(m)
				n := rapid.IntRange(0, p.Most()).Draw(t, "copies")
				previous := []int32{}
				for range 5 {
					chunk := rapid.Uint64().Draw(t, "chunk")
					out := p.Place(chunk, n, []int32{-7})
					if out[0] != -7 || len(out) != n+1 {
						t.Fatalf("appended %d targets to one: %v", n, out)
					}
					out = out[1:]
					domains := map[int32]bool{}
					for _, x := range out {
						d := x
						if m.Domains != nil {
							d = m.Domains[x]
						}
						if m.Weights[x] == 0 {
							t.Fatalf("target %d is not in use: %v", x, out)
						}
						if domains[d] {
							t.Fatalf("two copies in domain %d: %v", d, out)
						}
						domains[d] = true
						if mk.name == "random-excluding" && slices.Contains(previous, x) {
							t.Fatalf("target %d had the chunk before", x)
						}
					}
					previous = out
					if same := again.Place(chunk, n, nil); !slices.Equal(same, out) {
						t.Fatalf("chunk %d is on %v and on %v", chunk, out, same)
					}
				}
			})
		})
	}
}

func TestRefused(t *testing.T) {
	uneven := Uniform(9)
	uneven.Weights[3] = 2
	bad := Uniform(9)
	bad.Weights[0] = math.NaN()
	short := Uniform(9)
	short.Domains = []int32{1}
	negative := Uniform(9).Racks(3)
	negative.Domains[8] = -1
	for _, mk := range makers() {
		for name, m := range map[string]Map{"empty": {}, "nan": bad, "short": short, "negative": negative,
			"unused": Uniform(2).Without(0, 1)} {
			if _, err := mk.make(m); err == nil {
				t.Errorf("%s takes a map that is %s", mk.name, name)
			}
		}
	}
	for name, err := range map[string]error{
		"jump with weights":   second(NewJump(uneven)),
		"maglev not prime":    second(NewMaglev(Uniform(9), 1000)),
		"maglev too small":    second(NewMaglev(Uniform(9), 7)),
		"maglev too large":    second(NewMaglev(Uniform(9), 1<<31-1)),
		"no virtual nodes":    second(NewRing(Uniform(9), 0)),
		"heavy virtual nodes": second(NewRing(Map{Weights: []float64{1e9, 1}}, 100)),
		"no slack":            second(NewBoundedLoad(Uniform(9), 100, 0)),
		"groups do not fit":   second(NewGroup(Uniform(10), 9)),
		"empty groups":        second(NewGroup(Uniform(10), 0)),
		"no choice":           second(NewLeastLoaded(nil, 0, nil)),
		"too many copies":     Check(must(t, nil2(NewHRW(Uniform(9).Racks(3))), nil), 4),
		"no copies":           Check(must(t, nil2(NewHRW(Uniform(9))), nil), 0),
	} {
		if err == nil {
			t.Errorf("%s: not refused", name)
		}
	}
	if err := Check(must(t, nil2(NewHRW(Uniform(9).Racks(3))), nil), 3); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("placing more copies than fit did not panic")
		}
	}()
	must(t, nil2(NewHRW(Uniform(2))), nil).Place(1, 3, nil)
}

func second[T any](_ T, err error) error { return err }

func nil2(p Placer, _ error) Placer { return p }

// TestAll verifies that with as many copies as domains every domain is used, whatever the weights.
func TestAll(t *testing.T) {
	m := Uniform(18)
	m.Weights[0], m.Weights[5] = 1e5, 1e-5
	m.Weights[0] = 1000
	for _, mk := range makers() {
		mm := m
		if mk.equal {
			mm = Uniform(18)
		}
		p := must(t, nil2(mk.make(mm)), nil)
		out := p.Place(12, p.Most(), nil)
		slices.Sort(out)
		if len(slices.Compact(out)) != p.Most() {
			t.Errorf("%s: %v", mk.name, out)
		}
	}
}

// TestAllocations verifies that Place does not allocate.
func TestAllocations(t *testing.T) {
	for _, mk := range makers() {
		for _, m := range []Map{Uniform(90), Uniform(90).Racks(9)} {
			p := must(t, nil2(mk.make(m)), nil)
			out, chunk := make([]int32, 0, 8), uint64(0)
			p.Place(chunk, 3, out)
			if n := testing.AllocsPerRun(200, func() {
				chunk++
				out = p.Place(chunk, 3, out[:0])
			}); n != 0 {
				t.Errorf("%s allocates %v times a chunk", mk.name, n)
			}
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, mk := range makers() {
		for _, targets := range []int{90, 900, 9000} {
			for _, m := range []struct {
				name string
				Map
			}{{"flat", Uniform(targets)}, {"racks", Uniform(targets).Racks(max(9, targets/90))}} {
				b.Run(fmt.Sprintf("%s/%s/%d", mk.name, m.name, targets), func(b *testing.B) {
					p := must(b, nil2(mk.make(m.Map)), nil)
					out := make([]int32, 0, 8)
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						out = p.Place(uint64(i), 3, out[:0])
					}
				})
			}
		}
	}
}

func ExampleHRW() {
	m := Uniform(90).Racks(9)
	before, _ := NewHRW(m)
	after, _ := NewHRW(m.Without(17))
	fmt.Println(before.Place(5, 3, nil))
	least, _ := leastMoved(m, m.Without(17), 3)
	moved := countMoved(before, after, 100_000, 3).share()
	fmt.Printf("moved %.1f %%, the least in expectation is %.1f %%\n", 100*moved, 100*least)
	// Output:
	// [53 70 29]
	// moved 1.1 %, the least in expectation is 1.1 %
}
