package ledger

import (
	"slices"
	"testing"

	"farflash/flash/ctl/media"
	"farflash/numeric/rng"
	"farflash/policy/ftl"
)

// TestFill fills segments from entries and from bits, and compares them with those whose places were set one by one.
func TestFill(t *testing.T) {
	const pages, segments = 200, 30
	draw := rng.NewStream(1, "fill")
	one, all, bits := New(segments, pages), New(segments, pages), New(segments, pages)
	for segment := range int64(segments) {
		entries := make([]media.Entry, pages)
		b := media.Body{Segments: []media.Segment{{Use: media.Filled}}, Entries: [][]media.Entry{entries}, Pages: pages}
		for k := 0; k < pages; {
			n := min(1+int(draw.IntN(1+segment*segment/4)), pages-k)
			if segment == 0 {
				n = pages
			}
			page, used, renamed := uint64(draw.IntN(1<<30)), segment%4 == 0 || draw.IntN(3) > 0, draw.IntN(4) == 0
			for j := k; used && j < k+n; j++ {
				entries[j] = media.Entry{Page: page + uint64(j-k) + 1, Renamed: renamed}
			}
			k += n
		}
		for k, e := range entries {
			if p := ftl.PPA(segment*pages + int64(k)); e.Page > 0 {
				one.SetOwner(p, e.Page-1)
				one.SetLive(p, true)
				one.SetRenamed(p, e.Renamed)
			}
		}
		page := make([]byte, media.Grain)
		b.EncodePage(page, 1, media.UUID{}, 1)
		all.Fill(segment, media.EntriesOf(page, 0, pages))
		set := make([]uint64, (pages+63)/64)
		if one.Bits(segment, false, set) == pages {
			bits.FillWhole(segment)
		} else {
			bits.FillBits(segment, false, 0, set[:1])
			bits.FillBits(segment, false, 1, set[1:])
		}
		one.Bits(segment, true, set)
		bits.FillBits(segment, true, 0, set)
		for _, l := range []*Ledger{all, bits} {
			for _, renamed := range []bool{false, true} {
				was, is := make([]uint64, len(set)), slices.Repeat([]uint64{^uint64(0)}, len(set))
				if n := one.Bits(segment, renamed, was); n != l.Bits(segment, renamed, is) || !slices.Equal(was, is) {
					t.Fatalf("segment %d has %x, not %x", segment, is, was)
				}
			}
			if l.Lives() != one.Lives() || l.LivesOf(segment) != one.LivesOf(segment) {
				t.Fatalf("segment %d: %d live places, not %d", segment, l.LivesOf(segment), one.LivesOf(segment))
			}
		}
		if all.Away(segment) {
			continue
		}
		for k, e := range entries {
			if page, known := all.Owner(ftl.PPA(segment*pages + int64(k))); e.Page > 0 && (!known || page != e.Page-1) {
				t.Fatalf("place %d of segment %d has page %d, not %d", k, segment, page, e.Page-1)
			}
		}
	}
	if !all.Away(1) || all.Away(0) {
		t.Error("owners are away if they are more than a few runs")
	}
}
