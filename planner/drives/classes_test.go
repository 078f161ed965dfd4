package drives

import "testing"

// TestClasses verifies that equal drives are one class, in which they can be exchanged for each other, unless workloads
// must be kept apart and the drives are in domains that say how.
func TestClasses(t *testing.T) {
	const in = "domains: [east/r1, east/r1, east/r2, west/r1]"
	for _, c := range []struct {
		domains, apart string
		classes        int
	}{{"", "", 1}, {"", "apart: g", 1}, {in, "", 1}, {in, "apart: g", 3}} {
		p := loaded(t, "drives: [{model: Intel DC P3700 2TB, count: 4, price: $1, "+c.domains+"}]\n"+
			"workloads: {list: [{name: a, write_gb_per_day: 1, working_set_gb: 10, "+c.apart+"}, {name: b, "+
			"write_gb_per_day: 1, working_set_gb: 10, "+c.apart+"}]}\n")
		f, err := p.fleet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		prob, order := (&Outcome{Plan: p, fleet: f}).problem()
		n := 0
		for i := range prob.Classes {
			n += prob.Classes[i].Count
		}
		if len(prob.Classes) != c.classes || n != 4 || len(order) != 4 {
			t.Errorf("%+v: %d classes of %d drives in all, %v", c, len(prob.Classes), n, order)
		}
	}
}
