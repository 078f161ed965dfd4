package media

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/rng"
)

func shape() Shape {
	s := Shape{UUID: UUID{9, 8, 7}, Grains: []int64{5000, 3000}, Pages: 64, LogPages: 40, Capacity: 4000}
	return s
}

func body(s *Shape, seed uint64) Body {
	draw := rng.NewStream(seed, "body")
	b := Body{Segments: make([]Segment, s.AllSegments()), Entries: make([][]Entry, s.AllSegments()),
		Pages: s.Pages}
	for i := range b.Segments {
		b.Segments[i] = Segment{Use(draw.IntN(3)), uint8(draw.IntN(3)), uint16(draw.Uint64()), draw.IntN(2) == 0,
			uint32(draw.IntN(int64(s.Pages))), uint32(draw.Uint64()), uint32(draw.Uint64()), draw.Uint64()}
	}
	for i := range b.Entries {
		if b.Segments[i].Use == Erased {
			continue
		}
		b.Entries[i] = make([]Entry, s.Pages)
		for k := range b.Entries[i] {
			b.Entries[i][k] = Entry{uint64(draw.IntN(MaxLBA + 1)), uint32(draw.Uint64()), draw.IntN(2) == 0}
		}
	}
	return b
}

// TestRoundTrip encodes and decodes one of each structure, and verifies that any changed bit is detected.
func TestRoundTrip(t *testing.T) {
	s := shape()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	log := LogPage{Number: 77, Session: 3, Back: 0xdeadbeef, First: 1 << 40, Mark: 1<<40 - 5}
	for i := range RecordsPerPage {
		r := Record{Kind: Kind(1 + i%5), LBA: uint64(i) << 30, PPA: uint64(i) * 3}
		r.Joined = i%3 == 0 && i < RecordsPerPage-1
		if r.Kind.counted() {
			r.Count = uint32(i)
		} else {
			r.Sum = uint32(i) * 7
		}
		log.Records = append(log.Records, r)
		r.Sum ^= 1
		if r.Kind.counted() {
			r.Sum = 0
		}
		log.Again = append(log.Again, r)
	}
	header := Header{Generation: 5, Session: 6, Next: 7, Record: 8, Back: 9, Clean: true, Writes: 10}
	b := body(&s, 1)
	sum := Summary{Segment: 4, Session: 2, Erases: 8, Stream: 1, Back: 5, Order: 99,
		Entries: make([]Entry, s.Pages)}
	for i := range sum.Entries {
		sum.Entries[i] = Entry{Page: uint64(i) << 40, Sum: uint32(i) * 13}
	}
	for _, c := range []struct {
		name   string
		size   int
		encode func([]byte)
		decode func([]byte) (any, error)
		want   any
	}{
		{"superblock", Grain, func(p []byte) { s.EncodeSuperblock(p, 1) }, func(p []byte) (any, error) {
			got, device, err := DecodeSuperblock(p)
			if err == nil && device != 1 {
				t.Errorf("device %d", device)
			}
			return got, err
		}, s},
		{"log page", Grain, func(p []byte) { log.Encode(p, s.UUID) }, func(p []byte) (any, error) {
			got, _, err := DecodeLogPage(p, s.UUID)
			return got, err
		}, log},
		{"header", Grain, func(p []byte) { header.Encode(p, s.UUID) },
			func(p []byte) (any, error) { return DecodeHeader(p, s.UUID) }, header},
		{"summary", s.SummaryGrains() * Grain, func(p []byte) { sum.Encode(p, s.UUID) },
			func(p []byte) (any, error) { return DecodeSummary(p, s.UUID, s.Pages) }, sum},
		{"body", Grain, func(p []byte) { b.EncodePage(p, 1, s.UUID, 5) }, func(p []byte) (any, error) {
			got := Body{Segments: make([]Segment, len(b.Segments)), Entries: make([][]Entry, len(b.Segments)),
				Pages: s.Pages}
			return nil, got.DecodePage(p, 1, s.UUID, 5)
		}, nil},
	} {
		page := make([]byte, c.size)
		c.encode(page)
		got, err := c.decode(page)
		if err != nil || c.want != nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; it was %+v", c.name, got, err, c.want)
		}
		draw := rng.NewStream(1, c.name)
		for range 300 {
			bit := draw.IntN(int64(len(page)) * 8)
			page[bit/8] ^= 1 << (bit % 8)
			if _, err := c.decode(page); !errors.Is(err, ErrForeign) {
				t.Errorf("%s with bit %d changed: %v", c.name, bit, err)
			}
			page[bit/8] ^= 1 << (bit % 8)
		}
		if c.name == "superblock" {
			continue
		}
		other := s.UUID
		other[15] = 1
		was := s.UUID
		s.UUID = other
		if _, err := c.decode(page); !errors.Is(err, ErrForeign) {
			t.Errorf("%s of another pool: %v", c.name, err)
		}
		s.UUID = was
	}
}

// TestBody encodes and decodes a whole body, and verifies that its grains cannot swap positions or generations.
func TestBody(t *testing.T) {
	s := shape()
	b := body(&s, 2)
	got := Body{Segments: make([]Segment, len(b.Segments)), Entries: make([][]Entry, len(b.Segments)), Pages: s.Pages}
	page := make([]byte, Grain)
	for i := range BodyPages(int64(len(b.Segments)), s.Pages) {
		b.EncodePage(page, i, s.UUID, 3)
		if err := got.DecodePage(page, i, s.UUID, 3); err != nil {
			t.Fatal(err)
		}
		if err := got.DecodePage(page, i+1, s.UUID, 3); !errors.Is(err, ErrForeign) {
			t.Errorf("grain %d as %d: %v", i, i+1, err)
		}
		if err := got.DecodePage(page, i, s.UUID, 2); !errors.Is(err, ErrForeign) {
			t.Errorf("grain %d of another generation: %v", i, err)
		}
	}
	if !reflect.DeepEqual(got, b) {
		t.Error("a body is not what it was")
	}
}

// TestOldList verifies that a list of leaves without checksums, which an earlier program made, is none, and that such a
// program finds none of ours.
func TestOldList(t *testing.T) {
	u, page := UUID{1}, make([]byte, Grain)
	(&Header{Generation: 1, Leaves: 5}).Encode(page, u)
	if le.Uint64(page[72:]) != 0 {
		t.Error("an earlier program takes a list for its own")
	}
	le.PutUint64(page[72:], 5)
	le.PutUint64(page[80:], 0)
	seal(u.Seed(), page)
	if h, err := DecodeHeader(page, u); err != nil || h.Leaves != 0 {
		t.Errorf("%+v, %v", h, err)
	}
}

// TestLeaf verifies that leaves and their list come back as they were encoded, and only under their number, tag and
// generation.
func TestLeaf(t *testing.T) {
	u, page := UUID{1}, make([]byte, Grain)
	const number = 1<<43 - 1
	for _, places := range []int64{1000, 1<<32 - 1, 1<<36 + 1, 1<<45 + 1} {
		var l, got Leaf
		bits := PlaceBits(places)
		for i := range uint64(LeafPages) {
			l[i] = i*uint64(places)/(LeafPages-1) | (i*0x9e3779b97f4a7c15)<<bits
		}
		tag := l.Encode(page, u, number)
		if err := DecodeLeaf(page, u, number, tag<<(bits-32)>>(bits-32), places, &got); err != nil || got != l {
			t.Errorf("%d places: %+v, %v", places, got, err)
		}
		page[1000]++
		damaged := DecodeLeaf(page, u, number, tag, places, &got)
		page[1000]--
		for _, err := range []error{damaged, DecodeLeaf(page, u, 1, tag, places, &got),
			DecodeLeaf(page, u, number, tag+1, places, &got), DecodeLeaf(page, UUID{2}, number, tag, places, &got),
			DecodeLeaf(page, u, number, tag, places-1, &got)} {
			if !errors.Is(err, ErrForeign) {
				t.Errorf("%d places: another leaf is accepted: %v", places, err)
			}
		}
	}
	list := Leaves{Generation: 6, Next: 9}
	for i := range uint64(LeavesPerPage) {
		list.List = append(list.List, Stored{i << 30, i << 39, uint32(i << 24)})
	}
	list.Encode(page, u)
	is, err := DecodeLeaves(page, u, 6, 1<<48)
	if err != nil || is.Next != 9 || !slices.Equal(is.List, list.List) {
		t.Errorf("%+v, %v", is, err)
	}
	for _, places := range []int64{8, 1 << 39} {
		if _, err := DecodeLeaves(page, u, 6, places); !errors.Is(err, ErrForeign) {
			t.Errorf("a list with places beyond %d is accepted", places)
		}
	}
	if _, err := DecodeLeaves(page, u, 7, 1<<48); !errors.Is(err, ErrForeign) {
		t.Error("another checkpoint's list is accepted")
	}
}

// TestShape verifies that no two areas overlap and none exceeds its device.
func TestShape(t *testing.T) {
	for _, s := range []Shape{shape(),
		{UUID: UUID{1}, Grains: []int64{100_000}, Pages: 2048, LogPages: 64, Capacity: 1},
		{UUID: UUID{1}, Grains: []int64{600, 300, 200}, Pages: 8, LogPages: 8, Capacity: 1}} {
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		type piece struct {
			device     int
			from, upto int64
		}
		pieces := []piece{{0, 0, 2}, {0, s.LogStart(), s.LogStart() + s.LogPages}}
		for slot := range 2 {
			at := s.CheckpointStart(slot)
			pieces = append(pieces, piece{0, at, at + 1 + BodyPages(s.AllSegments(), s.Pages)})
		}
		for i := range s.AllSegments() {
			d, at := s.Place(i)
			pieces = append(pieces, piece{d, at / Grain, at/Grain + int64(s.Pages+s.SummaryGrains())})
		}
		for i, a := range pieces {
			if a.upto > s.Grains[a.device] || a.from < 0 {
				t.Errorf("%+v is beyond the device's %d grains", a, s.Grains[a.device])
			}
			for _, b := range pieces[:i] {
				if a.device == b.device && a.from < b.upto && b.from < a.upto {
					t.Errorf("%+v overlaps %+v", a, b)
				}
			}
		}
		if d, _ := s.Place(s.AllSegments()); d != -1 {
			t.Errorf("a segment beyond the last is on device %d", d)
		}
	}
}

// FuzzDecode gives every decoder arbitrary input, and valid pages that were modified and resealed with a correct
// checksum.
func FuzzDecode(f *testing.F) {
	s := shape()
	b := body(&s, 3)
	pages := make([][]byte, 8)
	for i := range pages {
		pages[i] = make([]byte, Grain)
	}
	s.EncodeSuperblock(pages[0], 0)
	(&LogPage{Number: 1, Records: []Record{{Kind: Write, LBA: 1, PPA: 2, Sum: 3}}}).Encode(pages[1], s.UUID)
	(&Header{Generation: 1}).Encode(pages[2], s.UUID)
	b.EncodePage(pages[3], 0, s.UUID, 1)
	(&Summary{Entries: make([]Entry, s.Pages)}).Encode(pages[4], s.UUID)
	(&Leaf{7}).Encode(pages[5], s.UUID, 7)
	(&Leaves{Generation: 1, List: []Stored{{1, 2, 3}}}).Encode(pages[6], s.UUID)
	index := NewIndexPage(pages[7])
	index.Run(5, 6, 7)
	index.Whole(1, 1)
	index.Bits(IndexRenamed, 2, 0, []uint64{9})
	index.Seal(s.UUID, 1, 3)
	for _, p := range pages {
		f.Add(p[:128], uint16(0), false)
		f.Add(p[:128], uint16(8), true)
	}
	f.Fuzz(func(t *testing.T, head []byte, at uint16, right bool) {
		defer patience.Limit()()
		for i := range pages {
			page := append([]byte(nil), pages[i]...)
			copy(page[int(at)%Grain:], head)
			if right {
				u := s.UUID
				if i == 0 {
					u = UUID(page[16:32])
				}
				seal(u.Seed(), page)
			}
			if got, device, err := DecodeSuperblock(page); err == nil {
				if device >= len(got.Grains) || got.Check() != nil {
					t.Errorf("superblock %+v, device %d", got, device)
				}
			}
			if l, _, err := DecodeLogPage(page, s.UUID); err == nil && len(l.Records) > RecordsPerPage {
				t.Errorf("%d records", len(l.Records))
			}
			if _, err := DecodeHeader(page, s.UUID); err != nil && !errors.Is(err, ErrForeign) {
				t.Error(err)
			}
			got := Body{Segments: make([]Segment, len(b.Segments)), Entries: make([][]Entry, len(b.Segments)),
				Pages: s.Pages}
			for _, grain := range []int64{0, 1, BodyPages(int64(len(b.Segments)), s.Pages) - 1} {
				if err := got.DecodePage(page, grain, s.UUID, 1); err != nil && !errors.Is(err, ErrForeign) {
					t.Error(err)
				}
			}
			var leaf Leaf
			if len(page) == Grain && DecodeLeaf(page, s.UUID, 7, tagOf(page, s.UUID, 7), 1000, &leaf) == nil {
				for _, entry := range leaf {
					if at := entry & (1<<32 - 1); at > 1000 {
						t.Errorf("place %d", at)
					}
				}
			}
			all := int64(len(b.Segments))
			next, err := DecodeIndex(page, s.UUID, 1, all, s.Pages, func(x *IndexItem) error {
				end := x.Segment + 1
				if x.Kind == IndexWhole {
					end = x.Segment + int64(x.Count)
				}
				n, places := uint64(x.Count), uint64(all)*uint64(s.Pages)
				within := x.Segment >= 0 && end <= all && x.From+len(x.Words) <= (s.Pages+63)/64
				if x.Kind == IndexRun {
					within = x.Page+n <= MaxLBA && x.Place+n <= places
				}
				if !within {
					t.Errorf("item %+v", x)
				}
				return nil
			})
			if err != nil && !errors.Is(err, ErrForeign) || next > uint64(all)*uint64(s.Pages) {
				t.Error(next, err)
			}
			if l, err := DecodeLeaves(page, s.UUID, 1, 1000); err == nil {
				for _, x := range l.List {
					if x.Place >= 1000 || x.Number >= MaxLBA/LeafPages || l.Next > 1000 {
						t.Errorf("leaf %+v, next %d", x, l.Next)
					}
				}
			}
			if sum, err := DecodeSummary(page, s.UUID, s.Pages); err == nil && len(sum.Entries) != s.Pages {
				t.Errorf("%d entries", len(sum.Entries))
			}
		}
	})
}

// TestHolds verifies that a checkpoint has each group with an entry of a segment in use, and few others.
func TestHolds(t *testing.T) {
	s := shape()
	s.Grains, s.Pages = []int64{3_000_000}, 2048
	segments := s.AllSegments()
	all := BodyPages(segments, s.Pages)
	draw := rng.NewStream(1, "holds")
	for range 200 {
		b := Body{Segments: make([]Segment, segments), Entries: make([][]Entry, segments), Pages: s.Pages}
		used := draw.IntN(segments)
		b.Segments[used].Use = Filled
		b.Entries[used] = make([]Entry, s.Pages)
		for k := range b.Entries[used] {
			b.Entries[used][k] = Entry{Page: uint64(k) + 1}
		}
		page, have, groups := make([]byte, Grain), 0, 0
		got := Body{Segments: make([]Segment, segments), Entries: make([][]Entry, segments), Pages: s.Pages}
		for i := int64(0); i < all; i += Group {
			if !b.Holds(i) {
				continue
			}
			groups++
			for k := i; k < min(i+Group, all); k++ {
				b.EncodePage(page, k, s.UUID, 1)
				if err := got.DecodePage(page, k, s.UUID, 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, e := range got.Entries[used] {
			if e.Page > 0 {
				have++
			}
		}
		if have != s.Pages || groups > 3 {
			t.Fatalf("segment %d of %d: %d of %d entries in %d groups", used, segments, have, s.Pages, groups)
		}
	}
}
