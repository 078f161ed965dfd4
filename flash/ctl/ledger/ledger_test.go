package ledger

import (
	"slices"
	"testing"

	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// TestLedger compares with arrays while segments are filled in order and at random, sealed, renamed and erased.
func TestLedger(t *testing.T) {
	for _, pages := range []int{8, 64, 70, 1000} {
		const segments = 5
		type place struct {
			page          uint64
			sum           uint32
			live, renamed bool
		}
		l, want := New(segments, pages), make([]place, segments*pages)
		draw := rng.NewStream(1, "ledger")
		fill := func(s int, scattered bool) {
			l.Prepare(ftl.PPA(s * pages))
			first := draw.Uint64() >> 12
			for k := range pages {
				p, page := ftl.PPA(s*pages+k), first+uint64(k)
				if scattered && draw.IntN(3) == 0 {
					page = draw.Uint64() >> 12
				}
				want[p] = place{page: page, sum: uint32(draw.Uint64()), live: draw.IntN(8) > 0 || !scattered}
				l.SetOwner(p, page)
				l.SetSum(p, want[p].sum)
				l.SetLive(p, want[p].live)
				l.SetRenamed(p, false)
			}
		}
		medium := make([]uint64, len(want)) // owners, as the checkpoint in force has them
		owner := func(p ftl.PPA) uint64 {
			if page, known := l.Owner(p); known {
				return page
			}
			return medium[p]
		}
		check := func() {
			t.Helper()
			lives := int64(0)
			for s := range segments {
				n := 0
				for k := range pages {
					p := ftl.PPA(s*pages + k)
					w := want[p]
					if l.IsLive(p) != w.live || l.IsRenamed(p) != w.renamed || w.live && owner(p) != w.page {
						t.Fatalf("place %d: live %v, renamed %v, page %d; want %+v", p, l.IsLive(p), l.IsRenamed(p),
							owner(p), w)
					}
					if sum, known := l.SumAt(p); known && sum != w.sum {
						t.Fatalf("place %d has checksum %d, want %d", p, sum, w.sum)
					}
					if w.live {
						if next := l.NextLive(int64(s), k); next != k {
							t.Fatalf("the next live place from %d on is %d", k, next)
						}
						n++
					}
				}
				if l.LivesOf(int64(s)) != n {
					t.Fatalf("segment %d has %d live places, want %d", s, l.LivesOf(int64(s)), n)
				}
				lives += int64(n)
			}
			if l.Lives() != lives {
				t.Fatalf("%d places are live, want %d", l.Lives(), lives)
			}
		}
		for range 300 {
			s := int(draw.IntN(segments))
			p := ftl.PPA(s*pages + int(draw.IntN(int64(pages))))
			switch draw.IntN(8) {
			case 0, 1:
				for k := range pages {
					want[s*pages+k] = place{}
					l.SetLive(ftl.PPA(s*pages+k), false)
				}
				l.Erase(int64(s))
				fill(s, draw.IntN(2) == 0)
			case 2:
				l.Seal(int64(s))
			case 3:
				for k := range draw.IntN(int64(pages)) {
					at := ftl.PPA(s*pages + int(k))
					want[at].live = draw.IntN(4) > 0
					l.SetLive(at, want[at].live)
				}
				for k := range pages { // a place that is not live may have lost its page when it was sealed
					if at := ftl.PPA(s*pages + k); want[at].live {
						l.SetOwner(at, want[at].page)
					}
				}
			case 4:
				if want[p].live {
					want[p].page, want[p].renamed = draw.Uint64()>>12, true
					l.SetOwner(p, want[p].page)
					l.SetRenamed(p, true)
				}
			case 5: // what the medium has of a segment that is settled
				for i := range want {
					if !l.Away(int64(i / pages)) {
						medium[i] = want[i].page
					}
				}
				for range 2 {
					l.Drop(0, segments, func(int64) (bool, bool) { return true, true })
				}
				rest := int64(len(l.named)+len(l.frozen)) * namedBytes
				for i := range l.sheets {
					x := &l.sheets[i]
					rest += int64(len(x.live)+len(x.renamed))*8 + int64(len(x.runs))*runBytes
				}
				if l.Bytes() != rest {
					t.Fatalf("%d bytes are left, not %d", l.Bytes(), rest)
				}
				for strip := int64(p) / Strip; strip <= int64(p)/Strip+1; strip++ {
					var sums [Strip]uint32
					var owners [Strip]uint64
					for k := range sums {
						if at := int(strip)*Strip + k; at < len(want) {
							sums[k], owners[k] = want[at].sum, medium[at]
						}
					}
					l.Read(int64(s), strip, &sums)
					l.ReadOwners(int64(s), strip, &owners)
				}
				if _, known := l.SumAt(p); !known {
					t.Fatal("a checksum that was read is not in memory")
				}
				if _, known := l.Owner(p); !known {
					t.Fatal("an owner that was read is not in memory")
				}
			case 6: // a checkpoint
				l.Freeze()
				next := slices.Clone(medium)
				for i := range want {
					next[i] = want[i].page
				}
				if p := ftl.PPA(draw.IntN(int64(segments * pages))); want[p].live {
					want[p].page = draw.Uint64() >> 12
					l.SetOwner(p, want[p].page)
				}
				check()
				l.Thaw(func(p ftl.PPA) bool { return p%2 == 0 })
				medium = next
			case 7:
				l.Return(int64(s), slices.Clone(medium[s*pages:][:pages]))
			}
			check()
		}
		for s := range segments {
			for k := range pages {
				l.SetLive(ftl.PPA(s*pages+k), false)
			}
			l.Erase(int64(s))
		}
		if l.Bytes() != 0 {
			t.Errorf("%d bytes are counted when nothing is in memory", l.Bytes())
		}
	}
}

// TestOrder verifies that a segment that was written in order takes memory that does not grow with its pages.
func TestOrder(t *testing.T) {
	l := New(1, 1<<14)
	for p := range ftl.PPA(1 << 14) {
		l.SetOwner(p, uint64(p)+1e9)
		l.SetLive(p, true)
	}
	l.Seal(0)
	if s := &l.sheets[0]; s.owners != nil || len(s.runs) != 1 || s.live != nil || s.renamed != nil {
		t.Errorf("%d runs, %d words of live places", len(s.runs), len(s.live))
	}
	if page, _ := l.Owner(77); page != 77+1e9 || l.LivesOf(0) != 1<<14 {
		t.Error("its pages are not what they were")
	}
}

// TestReusedIsNotSealed erases a segment that was unsealed and uses it again while others are unsealed: the owners of
// places that are not live yet stay.
func TestReusedIsNotSealed(t *testing.T) {
	const pages = 64
	l := New(mostLoose+2, pages)
	unseal := func(segment int64) {
		for k := range pages {
			p := ftl.PPA(segment*pages + int64(k))
			l.SetOwner(p, uint64(k))
			l.SetLive(p, true)
		}
		l.Seal(segment)
		l.SetOwner(ftl.PPA(segment*pages), 1<<40)
	}
	unseal(0)
	for k := range pages {
		l.SetLive(ftl.PPA(k), false)
	}
	l.Erase(0)
	l.SetOwner(0, 100)
	l.SetLive(0, true)
	l.SetOwner(1, 7) // its write is in flight
	for i := range int64(mostLoose + 1) {
		unseal(i + 1)
	}
	if got, _ := l.Owner(1); got != 7 {
		t.Errorf("the place belongs to page %d, want 7", got)
	}
}
