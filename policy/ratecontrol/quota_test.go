package ratecontrol_test

import (
	"slices"
	"testing"

	"farflash/block"
	"farflash/numeric/units"
	"farflash/policy/ratecontrol"

	"pgregory.net/rapid"
)

// started returns the slices in which a backlog of n commands of a size, all present at 0.3 ms, starts.
func started(q ratecontrol.Quotas, op block.Op, n int, size int64) (out []int) {
	now := 300 * units.Microsecond
	for len(out) < n {
		if q.Take(now, op, size) {
			out = append(out, int(now/ratecontrol.Slice))
		} else {
			now = q.Next(now)
		}
	}
	return out
}

// TestQuotas computes in which slices of a millisecond commands start.
func TestQuotas(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		q    ratecontrol.Quotas
		op   block.Op
		size int64
		want []int
	}{
		{"2000 a second", ratecontrol.NewQuotas(2000, 0, 0, 0), block.Read, 512, []int{0, 0, 1, 1, 2, 2}},
		{"no limit", ratecontrol.NewQuotas(0, 0, 0, 0), block.Read, mib, []int{0, 0, 0}},
		{"the other operation's limit", ratecontrol.NewQuotas(0, 0, mib, 0), block.Write, mib, []int{0, 0, 0}},
		{"not a read or write", ratecontrol.NewQuotas(1000, mib, mib, mib), block.Flush, 0, []int{0, 0, 0}},
		// 4 MiB/s are 4194 bytes a slice. 16 KiB leave -12190; 4194 more each: -7996, -3802, 392, which is enough.
		{"bytes", ratecontrol.NewQuotas(0, 4*mib, 0, 0), block.Write, 16384, []int{0, 3, 7, 11}},
		{"bytes read", ratecontrol.NewQuotas(0, 0, 4*mib, 0), block.Read, 16384, []int{0, 3, 7, 11}},
		{"bytes written", ratecontrol.NewQuotas(0, 0, 0, 4*mib), block.Write, 16384, []int{0, 3, 7, 11}},
		{"the tighter of two", ratecontrol.NewQuotas(1000, 400*mib, 0, 0), block.Read, 4096, []int{0, 1, 2}},
		// The rest of a slice lets one more start, whatever its size: 1048 bytes, of which 512 remain after one.
		{"the rest", ratecontrol.NewQuotas(0, mib, 0, 0), block.Read, 512, []int{0, 0, 0, 1, 1, 2, 2}},
	} {
		if got := started(c.q, c.op, len(c.want), c.size); !slices.Equal(got, c.want) {
			t.Errorf("%s: in slices %v, not %v", c.name, got, c.want)
		}
	}
}

// TestQuotasLaw verifies for arbitrary commands that quotas equal those of a poller that runs every slice, and that any
// span of slices starts at most their quotas and one command.
func TestQuotasLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := int64(rapid.IntRange(1000, 50_000_000).Draw(t, "rate"))
		q := ratecontrol.NewQuotas(0, rate, 0, 0)
		each := max(rate/1000, 512)
		left, slice, now := each, int64(0), units.Duration(0)
		ahead, largest := int64(0), int64(0) // bytes beyond the quotas since the span in which that is most
		for range rapid.IntRange(1, 200).Draw(t, "commands") {
			step := rapid.SampledFrom([]int{0, 1, 300, 1000, 5000, 100000}).Draw(t, "us")
			now += units.Duration(step) * units.Microsecond
			for ; slice < int64(now/ratecontrol.Slice); slice++ {
				left, ahead = min(left, 0)+each, max(ahead-each, 0)
			}
			size := 512 * int64(rapid.IntRange(1, 256).Draw(t, "sectors"))
			got := q.Take(now, block.Op(rapid.IntRange(0, 1).Draw(t, "op")), size)
			if got != (left > 0) {
				t.Fatalf("at %v: %v with %d left", now, got, left)
			}
			if got {
				left -= size
				ahead += size
				largest = max(largest, size)
				if ahead > each+largest {
					t.Fatalf("%d bytes more than the quotas", ahead)
				}
			}
		}
	})
}
