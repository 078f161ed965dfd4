package media

import (
	"fmt"
	"slices"
	"testing"
)

// TestIndexPages decodes the pages of an index, and compares their items with those added.
func TestIndexPages(t *testing.T) {
	s := shape()
	const segments = 1000
	words := (s.Pages + 63) / 64
	var want, got []string
	var pages [][]byte
	page := make([]byte, Grain)
	x := NewIndexPage(page)
	full := func() {
		x.Seal(s.UUID, 7, uint64(len(pages)+1))
		pages = append(pages, slices.Clone(page))
		x = NewIndexPage(page)
	}
	for i := range uint64(400) {
		want = append(want, fmt.Sprint(IndexRun, i*10, i*3, i%5+1), fmt.Sprint(IndexWhole, i, 2))
		for !x.Run(i*10, i*3, uint32(i%5+1)) {
			full()
		}
		for !x.Whole(int64(i), 2) {
			full()
		}
		kind := IndexLive + IndexKind(i%2)
		set := make([]uint64, words)
		for k := range set {
			set[k] = i & (1<<min(s.Pages, 63) - 1)
			want = append(want, fmt.Sprint(kind, i, k, set[k]))
		}
		for from := 0; from < words; {
			n := x.Bits(kind, int64(i), from, set[from:])
			if from += n; n == 0 {
				full()
			}
		}
	}
	full()
	for k := range pages {
		next, err := DecodeIndex(pages[k], s.UUID, 7, segments, s.Pages, func(x *IndexItem) error {
			switch x.Kind {
			case IndexRun:
				got = append(got, fmt.Sprint(x.Kind, x.Page, x.Place, x.Count))
			case IndexWhole:
				got = append(got, fmt.Sprint(x.Kind, x.Segment, x.Count))
			default:
				for j, w := range x.Words {
					got = append(got, fmt.Sprint(x.Kind, x.Segment, x.From+j, w))
				}
			}
			return nil
		})
		if err != nil || next != uint64(k+1) {
			t.Fatalf("page %d: next %d, %v", k, next, err)
		}
		if _, err := DecodeIndex(pages[k], s.UUID, 8, segments, s.Pages, nil); err == nil {
			t.Error("a page of another checkpoint is accepted")
		}
	}
	if !slices.Equal(got, want) || len(pages) < 2 {
		t.Errorf("%d pages have %d items, not %d", len(pages), len(got), len(want))
	}
}

// TestEntriesRun compares runs of entries with the entries.
func TestEntriesRun(t *testing.T) {
	b := Body{Segments: []Segment{{Use: Filled}}, Entries: [][]Entry{{{Page: 5}, {Page: 6}, {Page: 7, Renamed: true},
		{Page: 8, Renamed: true}, {}, {}, {}, {Page: 9}, {Page: 11}, {Page: 10}}}, Pages: 10}
	page := make([]byte, Grain)
	b.EncodePage(page, 1, UUID{1}, 3)
	e := MakeEntries(10)
	if e.Copy(0, EntriesOf(page, 0, 4)) != 4 || e.Copy(4, EntriesOf(page, 4, 6)) != 6 {
		t.Fatal("not all entries were copied")
	}
	var got []int
	for k := 0; k < e.Len(); {
		first, n := e.Run(k)
		for j := range n {
			if x := e.At(k + j); x != b.Entries[0][k+j] || first != e.At(k) {
				t.Errorf("entry %d is %+v", k+j, x)
			}
		}
		got = append(got, n)
		k += n
	}
	if want := []int{2, 2, 3, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("runs of %v, not %v", got, want)
	}
}
