package heat

import (
	"math"
	"testing"

	"farflash/numeric/rng"
)

// TestIntervals writes pages at fixed rates among others and compares the estimate with the true interval, and the
// streams with the bounds.
func TestIntervals(t *testing.T) {
	const pages = 10_000
	p, clock := Default(), NewClock(pages, 0)
	draw := rng.NewStream(1, "heat")
	for _, every := range []int64{100, 5_000, 50_000} {
		var page Page
		sum, n, hot := 0.0, 0, 0
		for range 400 {
			for range 1 + int64(float64(every)*draw.Exp()) {
				clock.Tick()
			}
			var s Stream
			page, s = p.Written(page, &clock, pages, Auto)
			if n++; n > 50 {
				sum += page.Interval(&clock)
				if s == Hot {
					hot++
				}
			}
		}
		if mean := sum / float64(n-50); math.Abs(mean/float64(every)-1) > 0.25 {
			t.Errorf("a page written every %d writes is estimated at %v", every, mean)
		}
		if share := float64(hot) / float64(n-50); every == 100 && share < 0.99 || every > 1000 && share > 0.01 {
			t.Errorf("a page written every %d writes is hot %v of the time", every, share)
		}
	}
}

// TestCooling verifies that a formerly hot page that is no longer written passes through warm to cold, and that the
// origin decides for pages without history.
func TestCooling(t *testing.T) {
	const pages = 1000
	p, clock := Default(), NewClock(pages, 0)
	var page Page
	for range 100 {
		clock.Tick()
		page, _ = p.Written(page, &clock, pages, Auto)
	}
	var seen []Stream
	for range 3 * pages {
		clock.Tick()
		if s := p.Survived(page, &clock, pages); len(seen) == 0 || seen[len(seen)-1] != s {
			seen = append(seen, s)
		}
	}
	if len(seen) != 3 || seen[0] != Hot || seen[1] != Warm || seen[2] != Cold {
		t.Errorf("a page that cools is %v", seen)
	}
	for _, c := range []struct {
		from Origin
		want Stream
	}{{Auto, Cold}, {Steady, Cold}, {Brief, Hot}} {
		if _, s := p.Written(0, &clock, pages, c.from); s != c.want {
			t.Errorf("origin %d, written first: %v", c.from, s)
		}
	}
	single := Policy{Weight: 1, Single: true}
	if _, s := single.Written(0, &clock, pages, Steady); s != Hot || single.Survived(page, &clock, pages) != Hot {
		t.Error("a single stream is several")
	}
}

// TestClock verifies that quanta preserve the order of intervals in pools of any size.
func TestClock(t *testing.T) {
	for _, pages := range []int64{10, 1 << 20, 1 << 34} {
		clock := NewClock(pages, 1<<40)
		if clock.Writes() != 1<<40 || clock.Tick() != 1<<40+1 {
			t.Error("a clock does not go on from where it was")
		}
		if q := int64(1) << clock.quantum; q > 1 && pages/q < 1<<17 {
			t.Errorf("a pool of %d pages has only %d quanta", pages, pages/q)
		}
	}
}

// TestShort verifies that a history of 16 bits keeps the interval to a factor of the square root of two, and the time
// to a unit of 2^13 quanta.
func TestShort(t *testing.T) {
	draw := rng.NewStream(1, "short")
	if Page(0).Short() != 0 || Short(0).Page() != 0 {
		t.Error("a page that was never written has a history")
	}
	for range 10_000 {
		now := uint32(draw.Uint64())
		ago, interval := uint32(draw.IntN(wraps-1<<unit)), math.Exp(20*draw.Float64())
		p := pack(now-ago, interval)
		is := p.Short().Page().at(now)
		if off := math.Abs(math.Log2(is.interval() / interval)); off > 0.51 {
			t.Fatalf("the interval %v becomes %v", interval, is.interval())
		}
		if late := int64(now-is.last()) - int64(ago); late < 0 || late >= 1<<unit {
			t.Fatalf("written %d ago becomes %d", ago, now-is.last())
		}
		if again := p.Short().Page().Short(); again != p.Short() {
			t.Fatalf("%x becomes %x", p.Short(), again)
		}
	}
}
