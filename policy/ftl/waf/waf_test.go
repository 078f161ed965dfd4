package waf

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"farflash/policy/ftl"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %.6f, not %.6f", what, got, want)
	}
}

// must returns a policy's WAF, or fails the test.
func must(t *testing.T, p Policy, alpha float64, pages int) float64 {
	t.Helper()
	a, err := p.WAF(alpha, pages)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTable compares with values computed independently (a separate fixed-point program, four decimals).
func TestTable(t *testing.T) {
	for _, r := range []struct {
		alpha, fifo, greedy64, greedy128, greedy256, exact64, exact128, exact256, random, d2, d5, d10, mixed80,
		apart80, mixed95, apart95 float64
	}{
		{1.07, 7.8172, 7.0014, 7.3863, 7.5955, 7.0099, 7.3916, 7.5969, 15.2857, 10.2772, 7.8746, 7.3230, 8.1818,
			5.2539, 9.9576, 2.0860},
		{1.12, 4.8463, 4.5286, 4.6819, 4.7626, 4.5307, 4.6833, 4.7629, 9.3333, 6.4135, 5.0143, 4.6973, 5.2042, 3.3596,
			6.6959, 1.5537},
		{1.28, 2.4814, 2.4020, 2.4410, 2.4610, 2.4028, 2.4412, 2.4610, 4.5714, 3.2453, 2.6122, 2.4711, 2.8196, 1.8655,
			3.7881, 1.1701},
	} {
		const tol = 6e-5
		near(t, "FIFO", FIFO(r.alpha), r.fifo, tol)
		near(t, "greedy 64", Greedy(r.alpha, 64), r.greedy64, tol)
		near(t, "greedy 128", Greedy(r.alpha, 128), r.greedy128, tol)
		near(t, "greedy 256", Greedy(r.alpha, 256), r.greedy256, tol)
		near(t, "greedy exact 64", GreedyExact(r.alpha, 64), r.exact64, tol)
		near(t, "greedy exact 128", GreedyExact(r.alpha, 128), r.exact128, tol)
		near(t, "greedy exact 256", GreedyExact(r.alpha, 256), r.exact256, tol)
		near(t, "random", Random(r.alpha), r.random, tol)
		near(t, "d=2", must(t, Policy{Victim: ftl.DChoices, Choices: 2}, r.alpha, 64), r.d2, tol)
		near(t, "d=5", must(t, Policy{Victim: ftl.DChoices, Choices: 5}, r.alpha, 64), r.d5, tol)
		near(t, "d=10", must(t, Policy{Victim: ftl.DChoices, Choices: 10}, r.alpha, 64), r.d10, tol)
		for _, c := range []struct{ share, space, mixed, apart float64 }{{.8, .2, r.mixed80, r.apart80},
			{.95, .05, r.mixed95, r.apart95}} {
			mixed, err := MixedFIFO(r.alpha, HotCold(c.share, c.space))
			if err != nil {
				t.Fatal(err)
			}
			near(t, "mixed", mixed, c.mixed, tol)
			apart, alphas, err := SeparatedFIFO(r.alpha, HotCold(c.share, c.space))
			if err != nil {
				t.Fatal(err)
			}
			near(t, "apart", apart, c.apart, tol)
			near(t, "space", float64(c.space*alphas[0])+float64((1-c.space)*alphas[1]), r.alpha, 1e-9)
		}
	}
}

// TestSharedTable compares with every closed form in the shared table.
func TestSharedTable(t *testing.T) {
	text := shared(t, "data/waf-closed-forms.txt")
	number := regexp.MustCompile(`[0-9]+\.[0-9]+`)
	n := 0
	for _, line := range strings.Split(text, "\n") {
		var v []float64
		for _, s := range number.FindAllString(line, -1) {
			x, _ := strconv.ParseFloat(s, 64)
			v = append(v, x)
		}
		switch {
		case strings.HasPrefix(line, "1.") && len(v) == 11:
			near(t, line, FIFO(v[0]), v[3], 6e-5)
			for i, pages := range []int{64, 128, 256} {
				near(t, line, Greedy(v[0], pages), v[4+i], 6e-5)
				near(t, line, GreedyExact(v[0], pages), v[7+i], 6e-5)
			}
			near(t, line, Random(v[0]), v[10], 6e-5)
		case strings.HasPrefix(line, "Sf="):
			alpha := SpareFactor(v[0]).Alpha()
			near(t, line, alpha, v[1], 6e-5)
			near(t, line, FIFO(alpha), v[2], 6e-5)
			near(t, line, Greedy(alpha, 128), v[3], 6e-5)
			near(t, line, GreedyExact(alpha, 128), v[4], 6e-5)
			near(t, line, Random(alpha), v[5], 6e-5)
		case strings.HasPrefix(line, "OP") && strings.Contains(line, "separated optimum"):
			op, _ := strconv.ParseFloat(line[3:strings.Index(line, "%")], 64)
			alpha := OverProvision(op / 100).Alpha()
			mixed, err := MixedFIFO(alpha, HotCold(v[0], v[1]))
			if err != nil {
				t.Fatal(err)
			}
			near(t, line, mixed, v[2], 6e-5)
			apart, alphas, err := SeparatedFIFO(alpha, HotCold(v[0], v[1]))
			if err != nil {
				t.Fatal(err)
			}
			near(t, line, apart, v[3], 6e-5)
			near(t, line, alphas[0], v[4], 2e-3) // the table's were searched in steps of 0.0005
			near(t, line, alphas[1], v[5], 2e-3)
		case strings.HasPrefix(line, "alpha 1."):
			pages, _ := strconv.Atoi(strings.Fields(line)[3][:strings.Index(strings.Fields(line)[3]+":", ":")])
			for i, d := range []int{1, 2, 5, 10} {
				near(t, line, must(t, Policy{Victim: ftl.DChoices, Choices: d}, v[0], pages), v[1+i], 6e-5)
			}
		default:
			continue
		}
		n++
	}
	if n < 25 {
		t.Errorf("only %d lines of the table were understood", n)
	}
}

// shared reads a file of the folder next to the repository.
func shared(t *testing.T, path string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above")
		}
		dir = filepath.Dir(dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, "..", "shared", path))
	if os.IsNotExist(err) {
		t.Skipf("../shared/%s is missing", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMeanings(t *testing.T) {
	near(t, "7 % of logical space", OverProvision(0.07).Alpha(), 1.07, 1e-12)
	near(t, "7 % of physical space", SpareFactor(0.07).Alpha(), 1.0752688, 1e-7)
	near(t, "GiB sold as GB", BinarySlack(0).Alpha(), 1.073741824, 1e-12)
}

// TestSteadyState verifies the properties common to the distributions of all policies.
func TestSteadyState(t *testing.T) {
	policies := []Policy{
		{Victim: ftl.Greedy}, {Victim: ftl.FIFO}, {Victim: ftl.Random}, {Victim: ftl.CostBenefit},
		{Victim: ftl.DChoices, Choices: 1}, {Victim: ftl.DChoices, Choices: 2}, {Victim: ftl.DChoices, Choices: 11},
		{Victim: ftl.DChoices, Choices: 300},
		{Victim: ftl.WindowedGreedy, Window: 0}, {Victim: ftl.WindowedGreedy, Window: 0.1},
		{Victim: ftl.WindowedGreedy, Window: 1},
	}
	for _, p := range policies {
		for _, alpha := range []float64{1.005, 1.03, 1.07, 1.28, 2, 7} {
			for _, pages := range []int{2, 5, 64, 300} {
				x, err := SteadyState(p, alpha, pages)
				if err != nil {
					t.Fatal(err)
				}
				sum, mean := 0.0, 0.0
				for i, part := range x {
					if !(part >= 0 && part <= 1) {
						t.Errorf("%v, alpha %v, %d pages: a part of %v of the blocks holds %d", p, alpha, pages, part,
							i)
					}
					sum += part
					mean += float64(float64(i) * part)
				}
				if math.Abs(sum-1) > 1e-9 || math.Abs(mean/float64(pages)*alpha-1) > 1e-6 {
					t.Errorf("%v, alpha %v, %d pages: parts sum to %v, mean times alpha %v", p, alpha, pages, sum,
						mean/float64(pages)*alpha)
				}
				if a := must(t, p, alpha, pages); !(a >= 1-1e-9 && a <= Random(alpha)*(1+1e-9)) {
					t.Errorf("%v, alpha %v, %d pages: write amplification %v", p, alpha, pages, a)
				}
			}
		}
	}
}

// TestLimits verifies that the policies agree where they should.
func TestLimits(t *testing.T) {
	for _, alpha := range []float64{1.02, 1.07, 1.28, 1.9} {
		window := func(w float64) float64 { return must(t, Policy{Victim: ftl.WindowedGreedy, Window: w}, alpha, 64) }
		greedy, fifo := GreedyExact(alpha, 64), FIFO(alpha)
		near(t, "a window of everything", window(1), greedy, 1e-9)
		near(t, "a window of nothing", window(0), fifo, 1e-9*fifo)
		last := fifo
		for _, w := range []float64{0.001, 0.01, 0.1, 0.2, 0.5, 0.9, 1} {
			if a := window(w); a > last*(1+1e-9) {
				t.Errorf("alpha %v: a window of %v has %v, a narrower one %v", alpha, w, a, last)
			} else {
				last = a
			}
		}
		near(t, "one choice", must(t, Policy{Victim: ftl.DChoices, Choices: 1}, alpha, 64), Random(alpha),
			1e-9*Random(alpha))
		near(t, "many choices", must(t, Policy{Victim: ftl.DChoices, Choices: 3000}, alpha, 64), greedy, 2e-3*greedy)
		near(t, "long blocks", GreedyExact(alpha, 20000), fifo, 2e-3*fifo)
		mixed, err := MixedFIFO(alpha, HotCold(0.3, 0.3))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "classes alike, mixed", mixed, fifo, 1e-9*fifo)
		apart, alphas, err := SeparatedFIFO(alpha, HotCold(0.3, 0.3))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "classes alike, apart", apart, fifo, 1e-9*fifo)
		near(t, "classes alike, alpha", alphas[0], alphas[1], 1e-9)
	}
}

// TestSeparatedIsBest moves space from class to class and verifies that this never helps.
func TestSeparatedIsBest(t *testing.T) {
	classes := []Class{{0.6, 0.1}, {0.3, 0.3}, {0.1, 0.6}}
	best, alphas, err := SeparatedFIFO(1.15, classes)
	if err != nil {
		t.Fatal(err)
	}
	at := func(alphas []float64) (a, space float64) {
		for i, c := range classes {
			a += float64(c.Writes * FIFO(alphas[i]))
			space += float64(c.Space * alphas[i])
		}
		return a, space
	}
	a, space := at(alphas)
	near(t, "its own sum", a, best, 1e-6)
	near(t, "space", space, 1.15, 1e-9)
	for i := range classes {
		for j := range classes {
			if i == j {
				continue
			}
			moved := append([]float64(nil), alphas...)
			moved[i] += 0.003 / classes[i].Space
			moved[j] -= 0.003 / classes[j].Space
			if a, _ := at(moved); a <= best {
				t.Errorf("space from class %d to %d improves %v to %v", j, i, best, a)
			}
		}
	}
}

func TestFormErrors(t *testing.T) {
	for _, p := range []Policy{{Victim: ftl.DChoices}, {Victim: ftl.WindowedGreedy, Window: 2}, {Victim: 99}} {
		if _, err := p.WAF(1.1, 64); err == nil {
			t.Errorf("%v has a write amplification", p)
		}
	}
	for _, alpha := range []float64{1, 0.5, 0, -1, math.NaN(), math.Inf(1)} {
		if _, err := (Policy{}).WAF(alpha, 64); err == nil {
			t.Errorf("alpha %v has a write amplification", alpha)
		}
	}
	if _, err := SteadyState(Policy{}, 1.1, 1); err == nil {
		t.Error("blocks of one page have a steady state")
	}
	for _, classes := range [][]Class{nil, {{0.5, 1}}, {{1, 0.5}}, {{1, 1}, {0, 0}}, HotCold(1.2, 0.2)} {
		if _, err := MixedFIFO(1.1, classes); err == nil {
			t.Errorf("classes %v were accepted, mixed", classes)
		}
		if _, _, err := SeparatedFIFO(1.1, classes); err == nil {
			t.Errorf("classes %v were accepted, apart", classes)
		}
	}
}

func BenchmarkSteadyState(b *testing.B) {
	for _, p := range []Policy{{Victim: ftl.Greedy}, {Victim: ftl.FIFO}, {Victim: ftl.DChoices, Choices: 11},
		{Victim: ftl.CostBenefit}} {
		b.Run(p.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := SteadyState(p, 1.07, 256); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
