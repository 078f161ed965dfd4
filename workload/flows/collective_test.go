package flows

import (
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"farflash/numeric/units"

	"pgregory.net/rapid"
)

// TestCollectivesCompute tracks the data of every host through every collective, with flows that end in any order. It
// verifies that every host ends with the data that the operation promises, that no flow starts before its data are
// available, and that with ring and halving-doubling a host sends no more than it must.
func TestCollectivesCompute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Collective{
			Operation: Operation(rapid.IntRange(0, int(operations)-1).Draw(t, "operation")),
			Algorithm: Algorithm(rapid.IntRange(0, int(algorithms)-1).Draw(t, "algorithm")),
			Rounds:    rapid.IntRange(0, 3).Draw(t, "rounds"),
			Delay:     units.Duration(rapid.IntRange(0, 5).Draw(t, "delay")),
			Pause:     units.Duration(rapid.IntRange(0, 50).Draw(t, "pause")),
		}
		n := rapid.IntRange(2, 20).Draw(t, "hosts")
		if c.Algorithm == HalvingDoubling {
			n = 1 << rapid.IntRange(1, 4).Draw(t, "power")
			if c.Operation == AllToAllOf {
				c.Operation = AllReduce
			}
		}
		c.Size = units.Bytes(n + rapid.IntRange(0, 10000).Draw(t, "size"))
		cfg := Config{Class: 3, Start: 7, Collective: &c}
		src, err := New(cfg, Network{Hosts: n})
		if err != nil {
			t.Fatal(err)
		}
		k := src.(*Chorus)
		type flight struct {
			f    Flow
			has  []uint32 // by part, the set of contributing hosts
			from int
		}
		var under []flight
		var state [][]uint32 // by host and part, the contributing hosts; for an all-to-all, the senders
		reset := func() {
			state = make([][]uint32, n)
			for h := range state {
				state[h] = make([]uint32, n)
				for p := range state[h] {
					if c.Operation != AllGather || p == h {
						state[h][p] = 1 << h
					}
				}
			}
		}
		reset()
		sent := make([]units.Bytes, n)
		whole := func() {
			for h := range n {
				for p := range n {
					want := uint32(1)<<n - 1
					switch {
					case c.Operation == ReduceScatter && p != home(k, h), c.Operation == AllToAllOf && p != h:
						continue
					case c.Operation == AllGather:
						want = 1 << p
					}
					if state[h][p] != want {
						t.Fatalf("host %d has part %d of %b, want %b", h, p, state[h][p], want)
					}
				}
			}
		}
		begin := func(f Flow) {
			step, i := int(f.ID)/n, 0
			for ; ; i++ {
				if to, _, _, _ := k.span(int(f.Src), step, i); to == int(f.Dst) {
					break
				}
			}
			_, lo, hi, _ := k.span(int(f.Src), step, i)
			if f.Size != k.part(lo, hi) || f.Class != 3 {
				t.Fatalf("%+v has parts %d to %d", f, lo, hi)
			}
			sent[f.Src] += f.Size
			under = append(under, flight{f, slices.Clone(state[f.Src][lo:hi]), lo})
		}
		var f Flow
		for err = src.Next(&f); err == nil; err = src.Next(&f) {
			begin(f)
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		now, ended, rounds := units.Duration(7), 0, 1
		for len(under) > 0 {
			i := rapid.IntRange(0, len(under)-1).Draw(t, "which")
			x := under[i]
			under = slices.Delete(under, i, i+1)
			now = max(now, x.f.Start) + 1
			step := int(x.f.ID) / n
			_, _, _, gathers := k.span(int(x.f.Src), step, 0)
			for j, has := range x.has {
				switch p := &state[x.f.Dst][x.from+j]; {
				case gathers:
					*p = has
				case c.Operation == AllToAllOf:
					*p |= 1 << x.f.Src
				default:
					*p |= has
				}
			}
			ended++
			out := k.Ended(&x.f, false, now, nil)
			if len(k.rounds) > rounds {
				rounds++
				whole()
				reset()
			}
			for _, g := range out {
				if g.Start < now {
					t.Fatalf("%+v begins before %v", g, now)
				}
				begin(g)
			}
			if got := k.Ended(&x.f, true, now, nil); len(got) > 0 {
				t.Fatalf("an ACK begins %v", got)
			}
		}
		whole()
		if n, known := cfg.Count(n); ended != k.flows() || k.Left() != 0 || n != ended || !known {
			t.Fatalf("%d flows ended of %d, %d are left", ended, k.flows(), k.Left())
		}
		all := units.Bytes(0)
		for _, s := range sent {
			all += s
		}
		if want := k.Share() * float64(c.Size) * float64(n*max(c.Rounds, 1)); float64(all) != want &&
			c.Algorithm != Direct && (c.Operation != AllToAllOf || c.Size%units.Bytes(n) == 0) &&
			float64(all-units.Bytes(want)) > 1 {
			t.Fatalf("%d bytes are sent, %v are needed", all, want)
		}
		for _, r := range k.rounds {
			if r.End() == units.Forever || !slices.IsSorted(r.Steps) {
				t.Fatalf("steps end at %v", r.Steps)
			}
		}
	})
}

// home is the part that a reduce-scatter leaves at a host: with the ring, the one after its own.
func home(k *Chorus, h int) int {
	if k.c.Algorithm == Ring {
		return (h + 1) % len(k.hosts)
	}
	return h
}

func TestCollectiveRefusals(t *testing.T) {
	for want, c := range map[string]Collective{
		"collective.size":       {Size: 3},
		"collective.algorithm":  {Size: 1000, Algorithm: HalvingDoubling},
		"collective.hosts[1]":   {Size: 1000, Hosts: []int{0, 0}},
		"collective.rounds":     {Size: 1000, Rounds: -1},
		"collective.delay":      {Size: 1000, Delay: -1},
		"collective.pause":      {Size: 1000, Pause: -1},
		"collective.operation":  {Size: 1000, Operation: 9},
		"collective.algorithm ": {Size: 1000, Operation: AllToAllOf, Algorithm: HalvingDoubling, Hosts: []int{1, 2}},
	} {
		_, err := New(Config{Collective: &c}, Network{Hosts: 5})
		if f := units.FieldErrors(err); len(f) != 1 || f[0].Path != strings.TrimSpace(want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestSequels verifies that a flow begins when all flows that it waits for have ended, after its delay, counted from
// the selected end of the last of them.
func TestSequels(t *testing.T) {
	list := []Entry{
		{Src: 0, Dst: 1, Size: 1, Name: "a", Start: 5}, {Src: 1, Dst: 2, Size: 2, Name: "b"},
		{Src: 2, Dst: 0, Size: 3, Name: "c", After: []string{"a", "b"}, Start: 10},
		{Src: 1, Dst: 0, Size: 4, After: []string{"a"}, Upon: Acknowledged},
		{Src: 0, Dst: 2, Size: 5, After: []string{"c"}},
	}
	src, err := New(Config{List: list, Start: 100}, Network{Hosts: 3})
	if err != nil {
		t.Fatal(err)
	}
	r := src.(Reactive)
	var a, b, f Flow
	if err := errors.Join(r.Next(&b), r.Next(&a)); err != nil || a.Start != 105 || b.Start != 100 || a.Size != 1 ||
		!errors.Is(r.Next(&f), io.EOF) || r.Left() != 3 {
		t.Fatal(a, b, err, r.Left())
	}
	if out := r.Ended(&a, false, 200, nil); len(out) != 0 {
		t.Error(out)
	}
	if out := r.Ended(&a, true, 210, nil); len(out) != 1 || out[0].Size != 4 || out[0].Start != 210 {
		t.Error(out)
	}
	out := r.Ended(&b, false, 300, nil)
	if len(out) != 1 || out[0].Size != 3 || out[0].Start != 310 || r.Left() != 1 {
		t.Error(out, r.Left())
	}
	if out = r.Ended(&out[0], false, units.Forever-1, nil); len(out) != 1 || r.Left() != 0 {
		t.Error(out)
	}
	for want, e := range map[string]Entry{"list[5].after[0]": {After: []string{"nobody"}},
		"list[5].name": {Name: "a"}, "list[5].after[1]": {After: []string{"a", "a"}},
		"list[5].after[0] ": {Name: "x", After: []string{"x"}}} {
		e.Dst, e.Size = 1, 1
		_, err := New(Config{List: append(slices.Clone(list), e)}, Network{Hosts: 3})
		if f := units.FieldErrors(err); len(f) != 1 || f[0].Path != strings.TrimSpace(want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	circle := slices.Clone(list)
	circle[0].After = []string{"c"}
	if _, err := New(Config{List: circle}, Network{Hosts: 3}); err == nil ||
		!strings.Contains(fmt.Sprint(err), "in a cycle") {
		t.Error(err)
	}
}

// TestStepsOfCollectives verifies the number of steps against the papers.
func TestStepsOfCollectives(t *testing.T) {
	for n := 2; n <= 64; n *= 2 {
		for a, want := range map[Algorithm]int{Ring: 2 * (n - 1), HalvingDoubling: 2 * bits.Len(uint(n-1)), Direct: 2} {
			src, err := New(Config{Collective: &Collective{Algorithm: a, Size: units.MB}}, Network{Hosts: n})
			if err != nil {
				t.Fatal(err)
			}
			if got := src.(*Chorus).steps; got != want {
				t.Errorf("%v among %d hosts has %d steps, want %d", a, n, got, want)
			}
		}
	}
}
