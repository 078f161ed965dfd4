package tco

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/rng"
)

// mixed draws a problem of one of the families, with scarce kinds, owned drives, racks and groups.
func mixed(seed uint64, jobs int) (*Problem, *rng.Stream) {
	r := rng.NewStream(seed, "mixed")
	p := family(familyNames[seed%uint64(len(familyNames))], &r, jobs)
	for i := range p.Classes {
		p.Classes[i].Count = int(r.IntN(int64(jobs) + 2))
		p.Classes[i].Optional = r.IntN(3) > 0
	}
	p.Classes = append(p.Classes, p.Classes[1])
	p.Classes[3].Count, p.Classes[0].Count = 1+int(r.IntN(3)), 1+p.Classes[0].Count
	if seed%3 > 0 {
		for j := range p.Jobs {
			p.Jobs[j].Apart = []string{"", "", "g", "h"}[r.IntN(4)]
		}
	}
	if seed%2 == 0 {
		p.Classes[0].Drive.Domain, p.Classes[2].Drive.Domain = "left", "left"
	}
	return p, &r
}

// TestArranged verifies the canonical order of a problem: every drive and workload once, equal drives together, groups
// and racks preserved, and the sunk cost.
func TestArranged(t *testing.T) {
	for seed := range uint64(90) {
		p, r := mixed(seed, 7)
		a, err := arrange(p)
		if err != nil {
			t.Fatal(err)
		}
		drives, class := p.Drives()
		sunk, together, endless := 0.0, true, true
		of := make([]int, len(drives))
		for k := range of {
			of[k] = -1
		}
		for k := range a.kinds {
			q := &a.kinds[k]
			if q.count != min(len(q.members), len(p.Jobs)) || len(q.members) == 0 {
				t.Errorf("seed %d: %d of %d drives", seed, q.count, len(q.members))
			}
			for _, m := range q.members {
				if of[m] >= 0 {
					t.Fatalf("seed %d: drive %d is of two kinds", seed, m)
				}
				of[m] = k
				if c := &p.Classes[class[m]]; c.Optional != q.optional ||
					!slices.Equal(c.Drive.measures(), q.drive.measures()) {
					t.Errorf("seed %d: drive %d is of a kind that it is not like", seed, m)
				}
			}
			if k > 0 && !q.optional && a.kinds[k-1].optional {
				t.Errorf("seed %d: drives that are there come behind others", seed)
			}
		}
		racks := map[string]int{}
		for k := range drives {
			racks[p.Classes[class[k]].Drive.Domain]++
			if c := &p.Classes[class[k]]; !c.Optional {
				sunk += c.Drive.Buy
			}
		}
		for k := range drives {
			mine := p.Classes[class[k]].Drive.Domain
			if shared := mine != "" && racks[mine] > 1 && a.groups > 0; shared != (a.kinds[of[k]].domain >= 0) ||
				int(a.kinds[of[k]].domain) >= a.domains {
				t.Errorf("seed %d: drive %d is in domain %d of %d", seed, k, a.kinds[of[k]].domain, a.domains)
			}
			for l := range k {
				other := p.Classes[class[l]].Drive.Domain
				x, y := &a.kinds[of[k]], &a.kinds[of[l]]
				if x.domain >= 0 && y.domain >= 0 && (x.domain == y.domain) != (mine == other) {
					t.Errorf("seed %d: drives %d and %d in %q and %q", seed, k, l, mine, other)
				}
				// Equal drives are of one kind unless a rack distinguishes them.
				if x != y && x.optional == y.optional && x.domain == y.domain &&
					slices.Equal(x.drive.measures(), y.drive.measures()) {
					t.Errorf("seed %d: drives %d and %d are alike, of kinds %d and %d", seed, k, l, of[k], of[l])
				}
			}
		}
		names := map[string]bool{}
		seen := make([]bool, len(p.Jobs))
		for j, from := range a.from {
			w := &p.Jobs[from]
			if seen[from] || !slices.Equal(w.measures(), a.jobs[j].measures()) ||
				j > 0 && slices.Compare(a.jobs[j-1].measures(), a.jobs[j].measures()) > 0 {
				t.Errorf("seed %d: workload %d is %d", seed, from, j)
			}
			seen[from] = true
			together, endless = together && w.Arrival == p.Jobs[0].Arrival && w.End == 0, endless && w.End == 0
			if w.Apart != "" {
				names[w.Apart] = true
			}
			if (w.Apart != "") != (a.group[j] >= 0) || int(a.group[j]) >= a.groups {
				t.Errorf("seed %d: workload %d of %q is in group %d", seed, from, w.Apart, a.group[j])
			}
			for l := range j {
				if v := &p.Jobs[a.from[l]]; v.Apart != "" && w.Apart != "" &&
					(v.Apart == w.Apart) != (a.group[j] == a.group[l]) {
					t.Errorf("seed %d: %q and %q are groups %d and %d", seed, v.Apart, w.Apart, a.group[l], a.group[j])
				}
			}
		}
		if a.groups != len(names) || math.Abs(a.sunk-sunk) > 1e-9*sunk || a.together != together ||
			a.endless != endless {
			t.Errorf("seed %d: %d groups, %v paid, at once: %v, endless: %v", seed, a.groups, a.sunk, a.together,
				a.endless)
		}
		// The cost and the contents of a drive agree with an assessment, and it exceeds its limits where the assessment
		// refuses.
		for range 12 {
			k := int(r.IntN(int64(len(a.kinds))))
			var list []int32
			host := make([]int, len(p.Jobs))
			apart := map[string]bool{}
			clashes := 0
			for j, from := range a.from {
				host[from] = -1
				if r.IntN(3) == 0 {
					list, host[from] = append(list, int32(j)), 0
					if g := p.Jobs[from].Apart; g != "" {
						if apart[g] {
							clashes++
						}
						apart[g] = true
					}
				}
			}
			cost, data, over := a.try(k, list)
			d := a.kinds[k].drive
			d.Domain = "one"
			got, err := Assess(p.Config, []Drive{d}, p.Jobs, host)
			if (err == nil) != (over == 0) || over < float64(clashes) {
				t.Errorf("seed %d: %v over its limits, %d of them for groups; %v", seed, over, clashes, err)
			}
			if err == nil && len(list) > 0 {
				if !a.kinds[k].optional {
					cost += d.Buy
				}
				if math.Abs(cost-got.Cost) > 1e-9*got.Cost || math.Abs(data-got.Data) > 1e-9*(1+got.Data) {
					t.Errorf("seed %d: %v for %v GB, assessed %v for %v", seed, cost, data, got.Cost, got.Data)
				}
			}
			if a.together && clashes == 0 && d.Tail == nil {
				space, load := 0.0, 0.0
				for _, j := range list {
					space, load = space+a.jobs[j].WorkingSet, load+d.Stripe.Load(&a.jobs[j])
				}
				want := max(0, space/(d.Capacity*p.Config.FillSpace)-1) + max(0, load/(d.IOPS*p.Config.FillIOPS)-1)
				if math.Abs(over-want) > 1e-8*(1+want) {
					t.Errorf("seed %d: over by %v, not %v", seed, over, want)
				}
			}
		}
		// A plan of slots and its placement agree.
		f := a.filling()
		slots := f.plan(f.orders()[0], -1)
		host := a.placement(slots)
		back := a.slotsOf(host)
		key := func(s slot) int32 { return s.list[0] }
		slices.SortFunc(slots, func(x, y slot) int { return cmp.Compare(key(x), key(y)) })
		slices.SortFunc(back, func(x, y slot) int { return cmp.Compare(key(x), key(y)) })
		if !slices.EqualFunc(slots, back,
			func(x, y slot) bool { return x.kind == y.kind && slices.Equal(x.list, y.list) }) {
			t.Errorf("seed %d: %v is placed as %v", seed, slots, back)
		}
	}
}

// TestDivision verifies that the least sum of a division equals that of an enumeration of all placements, also where
// domains already have workloads of a group.
func TestDivision(t *testing.T) {
	divided := 0
	for seed := range uint64(200) {
		p, r := mixed(seed, 9)
		a, err := arrange(p)
		if err != nil {
			t.Fatal(err)
		}
		var jobs []int32
		for j := range int32(9) {
			if len(jobs) < 5 && r.IntN(2) == 0 {
				jobs = append(jobs, j)
			}
		}
		if len(jobs) == 0 {
			continue
		}
		counts, held := make([]int, len(a.kinds)), make([]int32, a.domains*a.groups)
		for k := range counts {
			counts[k] = int(r.IntN(int64(min(a.kinds[k].count, len(jobs)) + 1)))
		}
		for i := range held {
			held[i] = int32(r.IntN(6) / 5)
		}
		rate := 0.01 * r.Float64()
		var drives []slot
		left, rack, least := slices.Clone(counts), slices.Clone(held), math.Inf(1)
		var next func(n int)
		next = func(n int) {
			if n == len(jobs) {
				sum := 0.0
				for _, d := range drives {
					cost, data, over := a.try(d.kind, d.list)
					if over > 0 {
						return
					}
					sum += cost - rate*data
				}
				least = min(least, sum)
				return
			}
			j := jobs[n]
			on := func(k int, then func()) {
				q, g := &a.kinds[k], a.group[j]
				if q.domain < 0 || g < 0 {
					then()
					return
				}
				if at := int(q.domain)*a.groups + int(g); rack[at] == 0 {
					rack[at]++
					then()
					rack[at]--
				}
			}
			for i := range drives {
				on(drives[i].kind, func() {
					was := drives[i].list
					drives[i].list = append(slices.Clone(was), j)
					next(n + 1)
					drives[i].list = was
				})
			}
			for k := range left {
				if left[k] > 0 {
					on(k, func() {
						left[k]--
						drives = append(drives, slot{kind: k, list: []int32{j}})
						next(n + 1)
						drives = drives[:len(drives)-1]
						left[k]++
					})
				}
			}
		}
		next(0)
		found := a.division(jobs, counts, held).divide(rate)
		if (found == nil) != math.IsInf(least, 1) {
			t.Errorf("seed %d: %v, the least is %v", seed, found, least)
			continue
		}
		if found == nil {
			continue
		}
		divided++
		sum, all := 0.0, []int32(nil)
		for _, d := range found {
			cost, data, over := a.try(d.kind, d.list)
			sum += cost - rate*data
			all = append(all, d.list...)
			if counts[d.kind]--; counts[d.kind] < 0 || over > 0 || cost != d.cost || data != d.data {
				t.Errorf("seed %d: %+v", seed, d)
			}
		}
		slices.Sort(all)
		if !slices.Equal(all, jobs) || math.Abs(sum-least) > 1e-9*(1+math.Abs(least)) {
			t.Errorf("seed %d: %v for %v, the least is %v", seed, sum, all, least)
		}
	}
	if divided < 60 {
		t.Errorf("%d divisions: no test", divided)
	}
}

// TestProposals verifies that a change is accepted if it changes the sum of cost - rate data and penalties by less than
// the threshold and enough drives exist; that the search's state then equals its plan's, and is unchanged otherwise;
// and that the best plan is the best one seen without excess.
func TestProposals(t *testing.T) {
	taken, refused := 0, 0
	for seed := range uint64(60) {
		p, r := mixed(seed, 12)
		a, err := arrange(p)
		if err != nil {
			t.Fatal(err)
		}
		f := a.filling()
		s := a.begin(f.plan(f.orders()[r.IntN(5)], -1))
		s.rate, s.penalty = 0.005*r.Float64(), 500
		least := s.least
		for range 150 {
			before := a.begin(s.slots)
			copyOf := func(i int) slot {
				if i < 0 {
					return slot{}
				}
				return slot{kind: s.slots[i].kind, list: slices.Clone(s.slots[i].list)}
			}
			// Divide some workloads of one or two drives between two drives of any kind.
			x, y := int(r.IntN(int64(len(s.slots)))), int(r.IntN(int64(len(s.slots)+1)))-1
			if x == y {
				y = -1
			}
			all := merged(copyOf(x).list, copyOf(y).list, nil)
			var la, lb []int32
			for _, j := range all {
				if r.IntN(4) > 0 {
					la = append(la, j)
				} else {
					lb = append(lb, j)
				}
			}
			ka, kb := int(r.IntN(int64(len(a.kinds)))), int(r.IntN(int64(len(a.kinds))))
			s.threshold = []float64{0, 2000, -2000, math.Inf(1)}[r.IntN(4)]
			var slots []slot
			for i := range s.slots {
				if i != x && i != y {
					slots = append(slots, copyOf(i))
				}
			}
			if len(la) > 0 {
				slots = append(slots, slot{kind: ka, list: la})
			}
			if len(lb) > 0 {
				slots = append(slots, slot{kind: kb, list: lb})
			}
			after := a.begin(slots)
			grows := false
			for k := range after.used {
				grows = grows || after.used[k] > a.kinds[k].count && after.used[k] > before.used[k]
			}
			sum := func(s *search, rate float64) float64 { return s.cost - rate*s.data + 500*(s.over+float64(s.clash)) }
			change := sum(after, s.rate) - sum(before, s.rate)
			if math.Abs(change-s.threshold) < 1e-6*(1+math.Abs(after.cost)) {
				continue
			}
			want, is := before, !grows && change < s.threshold
			if is {
				want = after
				taken++
			} else {
				refused++
			}
			s.propose(x, ka, la, y, kb, lb)
			near := func(x, y float64) bool { return math.Abs(x-y) <= 1e-8*(1+math.Abs(x)+math.Abs(y)) }
			if !near(s.cost, want.cost) || !near(s.data, want.data) || !near(s.over, want.over) ||
				s.clash != want.clash || !slices.Equal(s.used, want.used) || !slices.Equal(s.held, want.held) ||
				len(s.slots) != len(want.slots) {
				t.Fatalf("seed %d: taken should be %v (%v of %v): %v, %v, %v, %v of %v; it is %v, %v, %v, %v of %v",
					seed, is, change, s.threshold,
					s.cost, s.data, s.over, s.clash, s.used, want.cost, want.data, want.over, want.clash, want.used)
			}
			for i := range s.slots {
				d := &s.slots[i]
				cost, data, over := a.try(d.kind, d.list)
				if !slices.IsSorted(d.list) || len(d.list) == 0 || cost != d.cost || data != d.data || over != d.over {
					t.Fatalf("seed %d: drive %d is %+v", seed, i, d)
				}
				for _, j := range d.list {
					if s.host[j] != int32(i) {
						t.Fatalf("seed %d: workload %d is on %d, not on %d", seed, j, s.host[j], i)
					}
				}
			}
			least = min(least, want.least)
			if !near(s.least, least) && !(math.IsInf(s.least, 1) && math.IsInf(least, 1)) {
				t.Fatalf("seed %d: the best is %v, not %v", seed, s.least, least)
			}
		}
		s.save()
		if s.best != nil && math.Abs(a.begin(s.best).least/least-1) > 1e-8 {
			t.Errorf("seed %d: %v was kept, the best is %v", seed, a.begin(s.best).least, least)
		}
	}
	if taken < 1000 || refused < 1000 {
		t.Errorf("%d taken, %d refused: no test", taken, refused)
	}
}

// TestRebuild verifies that a few workloads, each alone on a drive, are redistributed optimally.
func TestRebuild(t *testing.T) {
	rebuilt := 0
	for seed := range uint64(40) {
		p, r := mixed(seed, 6)
		a, err := arrange(p)
		if err != nil {
			t.Fatal(err)
		}
		best, ok := a.exactly()
		f := a.filling()
		var slots []slot
		free := make([]int, len(a.kinds))
		for k := range free {
			free[k] = a.kinds[k].count
		}
		for j := range int32(6) {
			for k := range free {
				if free[k] > 0 && len(slots) == int(j) {
					free[k]--
					slots = append(slots, slot{kind: k, list: []int32{j}})
				}
			}
		}
		if !ok || len(slots) < 6 {
			slots = f.plan(f.orders()[2], -1)
		}
		s := a.begin(slots)
		if !ok || math.IsInf(s.least, 1) {
			continue
		}
		s.rate = s.least
		s.rebuild(60, nil, r)
		again, want := a.begin(s.slots), a.begin(best)
		rebuilt++
		if math.Abs(s.least/want.least-1) > 1e-9 || math.Abs(again.least/s.least-1) > 1e-9 ||
			!slices.Equal(again.used, s.used) || !slices.Equal(again.held, s.held) ||
			math.Abs(again.cost-s.cost) > 1e-8*again.cost {
			t.Errorf("seed %d: a plan of %v was rebuilt; the best costs %v", seed, s.least, want.least)
		}
		if kept := a.begin(s.best); kept.least != s.least && math.Abs(kept.least/s.least-1) > 1e-9 {
			t.Errorf("seed %d: %v was kept of %v", seed, kept.least, s.least)
		}
	}
	if rebuilt < 20 {
		t.Errorf("%d were rebuilt: no test", rebuilt)
	}
}

// TestFilling verifies that an initial plan has every workload once and no more drives of a kind than exist; that a
// drive takes the workloads in order as long as they fit, and no others; and that a workload's weight is the cost of
// its share of the best-suited drive.
func TestFilling(t *testing.T) {
	sound := 0
	for seed := range uint64(90) {
		p, r := mixed(seed, 16)
		a, err := arrange(p)
		if err != nil {
			t.Fatal(err)
		}
		f := a.filling()
		for j := range a.jobs {
			w := &a.jobs[j]
			least := math.Inf(1)
			for k := range a.kinds {
				d := &a.kinds[k].drive
				share := max(w.WorkingSet/(d.Capacity*p.Config.FillSpace), d.Stripe.Load(w)/(d.IOPS*p.Config.FillIOPS))
				price := d.Buy
				if h := p.Config.Horizon; h > 0 {
					price += d.Run * h
					if w.End > 0 {
						h = min(h, w.End-w.Arrival)
					}
					share = max(share, w.WriteRate*d.Stripe.Bytes(w.FullStripe)*d.WAF.At(w.Sequential)*h/
						(d.Budget-d.Worn))
				}
				least = min(least, share*price)
			}
			if math.Abs(f.weight[j]-least) > 1e-8*least && least > 1 {
				t.Errorf("seed %d: workload %d weighs %v, not %v", seed, j, f.weight[j], least)
			}
		}
		keys := []func(w *Workload, j int32) float64{
			func(_ *Workload, j int32) float64 { return f.weight[j] },
			func(w *Workload, _ int32) float64 { return w.WorkingSet / (w.WorkingSet + w.PeakIOPS) },
			func(w *Workload, _ int32) float64 { return w.Sequential },
			func(_ *Workload, j int32) float64 { return -float64(j) },
			func(w *Workload, _ int32) float64 { return w.WriteRate / w.WorkingSet },
		}
		for n, order := range f.orders() {
			if sorted := slices.Clone(order); len(order) != len(a.jobs) ||
				!slices.IsSortedFunc(order,
					func(x, y int32) int { return cmp.Compare(keys[n](&a.jobs[y], y), keys[n](&a.jobs[x], x)) }) {
				t.Fatalf("seed %d: order %d is %v", seed, n, sorted)
			}
			only := int(r.IntN(int64(len(a.kinds)+1))) - 1
			slots := f.plan(order, only)
			s := a.begin(slots)
			var all []int32
			for i := range slots {
				all = append(all, slots[i].list...)
				if !slices.IsSorted(slots[i].list) || len(slots[i].list) == 0 {
					t.Errorf("seed %d: drive %d has %v", seed, i, slots[i].list)
				}
			}
			if only >= 0 && slots[0].kind != only &&
				slices.ContainsFunc(order,
					func(j int32) bool { _, _, over := a.try(only, []int32{j}); return over == 0 }) {
				t.Errorf("seed %d: the first drive is of kind %d, not of %d", seed, slots[0].kind, only)
			}
			slices.Sort(all)
			for j := range all {
				if len(all) != len(a.jobs) || all[j] != int32(j) {
					t.Fatalf("seed %d: the plan has %v", seed, all)
				}
			}
			for k := range s.used {
				if s.used[k] > a.kinds[k].count {
					t.Errorf("seed %d: %d of %d drives of kind %d", seed, s.used[k], a.kinds[k].count, k)
				}
			}
			if s.sound() {
				sound++
			}
			// One drive, checking each workload in turn.
			k := int(r.IntN(int64(len(a.kinds))))
			held := make([]int32, a.domains*a.groups)
			for i := range held {
				held[i] = int32(r.IntN(4) / 3)
			}
			var want []int32
			weight := 0.0
			for _, j := range order {
				next := with(want, -1, j, nil)
				slices.Sort(next)
				_, _, over := a.try(k, next)
				if d, g := a.kinds[k].domain,
					a.group[j]; over == 0 && (d < 0 || g < 0 || held[int(d)*a.groups+int(g)] == 0) {
					want = append(want, j)
					weight += f.weight[j]
				}
			}
			cost, got := f.fill(k, order, held)
			if len(want) == 0 {
				if len(f.list) > 0 {
					t.Errorf("seed %d: a drive of kind %d takes %v, and has room for none", seed, k, f.list)
				}
				continue
			}
			sorted := slices.Clone(want)
			slices.Sort(sorted)
			c, data, over := a.try(k, sorted)
			if over > 0 {
				continue
			}
			if p.Config.Horizon == 0 && data > 0 {
				weight = data
			}
			if !slices.Equal(f.list, want) || math.Abs(cost-c) > 1e-9*(1+c) || math.Abs(got-weight) > 1e-9*weight {
				t.Errorf("seed %d: a drive of kind %d takes %v for %v of %v; by turns it is %v for %v of %v", seed, k,
					f.list, cost, got, want, c, weight)
			}
		}
	}
	if sound < 100 {
		t.Errorf("%d plans pass no limit: no test", sound)
	}
}

// TestCram verifies that workloads without space go where they exceed the limits least, largest first.
func TestCram(t *testing.T) {
	drive := Drive{Name: "d", Buy: 1000, Budget: 1e9, Capacity: 100, IOPS: 1e5, WAF: Constant(1)}
	p := &Problem{Config: DefaultConfig(), Classes: []Class{{Drive: drive, Count: 2, Optional: true}}}
	for _, size := range []float64{90, 80, 70, 20} { // 90 and 80, then 70 with 80, then 20 with 90
		p.Jobs = append(p.Jobs, Workload{Name: "w", WriteRate: 1, WorkingSet: size})
	}
	a, err := arrange(p)
	if err != nil {
		t.Fatal(err)
	}
	f := a.filling()
	slots := f.cram(nil, []int32{0, 1, 2, 3}, []int{2})
	var got []float64
	for _, s := range slots {
		sum := 0.0
		for _, j := range s.list {
			sum += a.jobs[j].WorkingSet
		}
		got = append(got, sum)
		if cost, data, over := a.try(s.kind, s.list); cost != s.cost || data != s.data || over != s.over {
			t.Errorf("%+v: %v, %v, %v", s, cost, data, over)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, []float64{110, 150}) {
		t.Errorf("the drives have %v GB", got)
	}
}

// TestSteps verifies that of sixteen steps five move a workload, five exchange two, and one each is of six other kinds.
// Every change is accepted here, so that the plan shows it.
func TestSteps(t *testing.T) {
	drive := Drive{Name: "d", Buy: 1000, Budget: 1e9, Capacity: 1e6, IOPS: 1e9, WAF: Constant(1)}
	other := drive
	other.Buy = 2000
	p := &Problem{Config: DefaultConfig(),
		Classes: []Class{{Drive: drive, Count: 30, Optional: true}, {Drive: other, Count: 30, Optional: true}}}
	for j := range 24 {
		p.Jobs = append(p.Jobs, Workload{Name: "w", WriteRate: 1 + float64(j), WorkingSet: 1})
	}
	a, err := arrange(p)
	if err != nil {
		t.Fatal(err)
	}
	r := rng.NewStream(1, "steps")
	const tries = 16000
	got := map[string]int{}
	for range tries {
		// Six drives with four workloads each, three drives of each kind.
		var slots []slot
		for i := range int32(6) {
			slots = append(slots, slot{kind: int(i % 2), list: []int32{4 * i, 4*i + 1, 4*i + 2, 4*i + 3}})
		}
		s := a.begin(slots)
		s.threshold = math.Inf(1)
		s.step(&r, 24, 2)
		var left, changed int // workloads that left existing drives, drives of another kind
		kinds := 0
		for i := range min(6, len(s.slots)) {
			for _, j := range s.slots[i].list {
				if int(j/4) != i {
					left++
				}
			}
			if s.slots[i].kind != i%2 {
				changed++
			}
		}
		for i := range s.slots {
			kinds += s.slots[i].kind
		}
		switch n := len(s.slots); {
		case n == 7 && len(s.slots[6].list) == 1:
			got["alone or divided"]++
		case n == 7:
			got["divided"]++
		case n == 5:
			got["joined"]++
		case changed == 1 && left == 0:
			got["another kind"]++
		case changed == 2 && left == 0:
			got["kinds change places"]++
		case changed > 0 || left > 2:
			got["anew"]++
		case left == 1:
			got["moved"]++
		case left == 2:
			got["exchanged"]++
		default:
			got["nothing"]++
		}
	}
	// The second drive differs from the first with probability 5/6, and its kind with 1/2, or 3/5 of different drives;
	// half of 16 splits leave 1 of 4 workloads with 4/16.
	for name, want := range map[string]float64{"moved": 5 * 5. / 6, "exchanged": 5 * 20. / 24, "another kind": 1. / 2,
		"kinds change places": 5. / 6 * 3 / 5, "joined": 5. / 6,
		"alone or divided": 1 + 4./16, "divided": 10. / 16} {
		if share := 16 * float64(got[name]) / tries; math.Abs(share-want) > 0.2*(1+math.Sqrt(want))/2+0.1 {
			t.Errorf("%s: %.2f of 16, not %.2f", name, share, want)
		}
	}
	if n := got["anew"]; n < tries/40 || n > tries/10 {
		t.Errorf("%d of %d were divided anew", n, tries)
	}
}

// TestRun verifies that every 1024 steps the rate becomes that of the best plan, that the penalty has risen evenly to a
// thousand times its initial value at the end, and that cost increases are accepted in the first four fifths only.
func TestRun(t *testing.T) {
	for seed, name := range familyNames {
		r := rng.NewStream(uint64(seed), "run")
		a, err := arrange(family(name, &r, 18))
		if err != nil {
			t.Fatal(err)
		}
		f := a.filling()
		s := a.begin(f.plan(f.orders()[0], -1))
		var least, rates, penalties, thresholds []float64
		s.run(annealing{steps: 4096, hot: 500, penalty: 70, stop: func() bool {
			least, rates, penalties, thresholds = append(least, s.least), append(rates, s.rate),
				append(penalties, s.penalty), append(thresholds, s.threshold)
			return len(least) == 4
		}}, &r)
		if len(least) != 4 || s.unsaved {
			t.Fatalf("%s: asked %d times; not copied: %v", name, len(least), s.unsaved)
		}
		for n := 1; n < 4; n++ {
			if want := 70 * math.Pow(1000, float64(n-1)/4); math.Abs(penalties[n]/want-1) > 1e-9 ||
				!(thresholds[n] > 0) || s.data > 0 && !math.IsInf(least[n-1], 1) && rates[n] != least[n-1] {
				t.Errorf("%s: a penalty of %v, not %v, a threshold of %v, a rate of %v, not %v", name, penalties[n],
					want, thresholds[n], rates[n], least[n-1])
			}
		}
		s.run(annealing{steps: 100, hot: 500, penalty: 70}, &r)
		if s.threshold != 0 {
			t.Errorf("%s: a threshold of %v at the end", name, s.threshold)
		}
	}
}

// TestOnes verifies that day 1 and a latency of 1 us are written as such, and unset values as empty; and that the last
// drawn workload arrives on the last day however few there are.
func TestOnes(t *testing.T) {
	var b bytes.Buffer
	if err := WriteWorkloads(&b,
		[]Workload{{Name: "w", WriteRate: 1, End: 1, P99: 1}, {Name: "v", WriteRate: 1}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	list, err := ReadWorkloads(strings.NewReader(b.String()), "w.csv")
	if err != nil || list[0].End != 1 || list[0].P99 != 1 || !strings.HasPrefix(lines[1], "w,1,0,0,0,0,0,1,0,1,") ||
		strings.Count(lines[2], ",,") == 0 {
		t.Errorf("%v: %s", err, b.String())
	}
	fit, err := FitWorkloads(Table4())
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		if jobs := fit.Draw(seed, 2, 30); math.Abs(jobs[1].Arrival-30) > 1e-9 {
			t.Errorf("seed %d: the last comes on day %v", seed, jobs[1].Arrival)
		}
	}
}
