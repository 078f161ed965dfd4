package ssd

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDivider(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		by := rapid.Uint32Range(1, 1<<32-1).Draw(t, "by")
		n := rapid.Uint32().Draw(t, "n")
		d := newDivider(int64(by))
		for _, n := range []uint32{n, n / by * by, max(n/by, 1)*by - 1, 0, 1<<32 - 1} {
			if q, r := d.split(n); q != n/by || r != n%by {
				t.Fatalf("%d / %d = %d rest %d", n, by, q, r)
			}
		}
	})
}
