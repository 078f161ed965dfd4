package halfopen

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func addr(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }

// TestVictim compares the displaced connections with ones worked out by hand.
func TestVictim(t *testing.T) {
	table := New[int](4)
	for _, c := range []struct {
		source byte
		conn   int
		want   int // 0: none
	}{
		{1, 1, 0}, {2, 2, 0}, {2, 3, 0}, {3, 4, 0},
		{4, 5, 2}, // source 2 has two
		{5, 6, 1}, // all have one: the oldest
		{5, 7, 6}, // source 5 has two now, of which 6 is the older
		{5, 8, 7}, {6, 9, 3},
	} {
		got, full, _ := table.Enter(addr(c.source), c.conn, time.Time{})
		if got != c.want || full != (c.want != 0) {
			t.Errorf("connection %d displaces %d, not %d", c.conn, got, c.want)
		}
	}
	var left []int
	table.Each(func(c int) { left = append(left, c) })
	if !slices.Equal(left, []int{4, 5, 8, 9}) || table.Len() != 4 {
		t.Errorf("%v are left", left)
	}
	if table.Leave(7) || !table.Leave(5) || table.Leave(5) || table.Len() != 3 {
		t.Error("5 does not leave once, or 7 although it was displaced")
	}
	if _, full, _ := table.Enter(addr(1), 10, time.Time{}); full {
		t.Error("a free place is not used")
	}
}

// TestShares verifies for random arrivals that a connection is displaced only when the table is full, that its source
// then has at least as many as any other, and that it is the oldest of its source.
func TestShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type conn struct{ source, number int }
		most := rapid.IntRange(1, 9).Draw(t, "most")
		table := New[conn](most)
		var model []conn
		for number := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(model) > 0 && rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				if !table.Leave(model[i]) {
					t.Fatalf("%v is not there", model[i])
				}
				model = slices.Delete(model, i, i+1)
				continue
			}
			c := conn{rapid.IntRange(1, 4).Draw(t, "source"), number}
			out, full, _ := table.Enter(addr(byte(c.source)), c, time.Time{})
			model = append(model, c)
			if full != (len(model) > most) {
				t.Fatalf("%d of %d: full %v", len(model), most, full)
			}
			if !full {
				continue
			}
			counts := map[int]int{}
			first := -1
			for i, x := range model {
				if counts[x.source]++; x.source == out.source && first < 0 {
					first = i
				}
			}
			for source, n := range counts {
				if n > counts[out.source] {
					t.Fatalf("%v is displaced, of %d; source %d has %d", out, counts[out.source], source, n)
				}
			}
			if first < 0 || model[first] != out {
				t.Fatalf("%v is displaced and not the oldest of its source, %v", out, model)
			}
			if out == c && most > 1 && len(counts) > 1 {
				t.Fatalf("the newcomer %v is displaced", out)
			}
			model = slices.Delete(model, first, first+1)
		}
		var got []conn
		table.Each(func(c conn) { got = append(got, c) })
		if !slices.Equal(got, model) {
			t.Fatalf("%v, not %v", got, model)
		}
		if len(table.sources) > len(model) {
			t.Fatalf("%d sources are counted for %d connections", len(table.sources), len(model))
		}
	})
}

// TestSource verifies which connections count as one host's.
func TestSource(t *testing.T) {
	tcp := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	for _, c := range []struct {
		a, b net.Addr
		same bool
	}{
		{tcp("10.0.0.1:5"), tcp("10.0.0.1:6"), true}, {tcp("10.0.0.1:5"), tcp("10.0.0.2:5"), false},
		{tcp("[2001:db8::1]:5"), tcp("[2001:db8::ffff:1:2:3]:5"), true},
		{tcp("[2001:db8::1]:5"), tcp("[2001:db8:0:1::1]:5"), false},
		{tcp("[fe80::1%lo]:5"), tcp("[fe80::2]:5"), true}, {tcp("[::ffff:10.0.0.1]:5"), tcp("10.0.0.1:5"), true},
		{&net.UnixAddr{Name: "a"}, &net.UnixAddr{Name: "b"}, true}, {nil, &net.UnixAddr{}, true},
	} {
		if got := Source(c.a) == Source(c.b); got != c.same {
			t.Errorf("%v and %v: %v, %v", c.a, c.b, Source(c.a), Source(c.b))
		}
	}
}

// TestReports verifies that at most one report a second is due, and that each displacement is in one.
func TestReports(t *testing.T) {
	table := New[int](1)
	at := time.Unix(100, 0)
	table.Enter(addr(1), 0, at)
	for i, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {time.Millisecond, 0}, {900 * time.Millisecond, 0}, {99 * time.Millisecond, 3}, {0, 0},
		{time.Minute, 2}} {
		at = at.Add(c.after)
		if _, full, report := table.Enter(addr(1), i+1, at); !full || report != c.want {
			t.Errorf("after %v: %d to report, want %d", c.after, report, c.want)
		}
	}
	if n := table.Displaced(); n != 6 {
		t.Errorf("%d were displaced", n)
	}
}
