package workload

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"farflash/block"
	"farflash/numeric/units"
)

// failing yields the records of its source and then an error.
type failing struct {
	Source
	err error
}

func (f *failing) Next(r *Record) error {
	err := f.Source.Next(r)
	if err == io.EOF {
		return f.err
	}
	return err
}

func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sources []Source
		total := 0
		for i := range rapid.IntRange(0, 6).Draw(t, "sources") {
			var records []Record
			at := units.Duration(0)
			for range rapid.IntRange(0, 10).Draw(t, "records") {
				at += units.Duration(rapid.IntRange(0, 3).Draw(t, "gap"))
				records = append(records, Record{Time: at, Volume: uint32(i), Size: 512})
			}
			total += len(records)
			sources = append(sources, Slice(records))
		}
		got, err := Collect(Merge(sources...))
		if err != nil || len(got) != total {
			t.Fatalf("%d of %d records, %v", len(got), total, err)
		}
		for i := 1; i < len(got); i++ {
			a, b := got[i-1], got[i]
			if a.Time > b.Time || a.Time == b.Time && a.Volume > b.Volume {
				t.Fatalf("%+v before %+v", a, b)
			}
		}
	})
}

func TestMergeKeepsErrors(t *testing.T) {
	broken := errors.New("broken")
	m := Merge(Slice([]Record{{Time: 1}, {Time: 5}}), &failing{Slice([]Record{{Time: 2}}), broken})
	var r Record
	for want := units.Duration(1); want <= 2; want++ {
		if err := m.Next(&r); err != nil || r.Time != want {
			t.Fatalf("%v, %v", r.Time, err)
		}
	}
	for range 2 {
		if err := m.Next(&r); err != broken {
			t.Errorf("error %v", err)
		}
	}
	if err := Merge(&failing{Slice(nil), broken}).Next(&r); err != broken {
		t.Errorf("at once: %v", err)
	}
}

func TestLimit(t *testing.T) {
	records := []Record{{Time: 1}, {Time: 2}, {Time: 3}}
	for _, c := range []struct {
		n     int64
		until units.Duration
		want  int
	}{{0, 0, 3}, {2, 0, 2}, {9, 0, 3}, {0, 2, 1}, {0, 3, 2}, {1, 3, 1}, {0, 1, 0}} {
		src := Limit(Slice(records), c.n, c.until)
		got, err := Collect(src)
		if err != nil || len(got) != c.want {
			t.Errorf("limit %d, %v: %d records, %v", c.n, c.until, len(got), err)
		}
		var r Record
		if err := src.Next(&r); err != io.EOF {
			t.Errorf("behind the end: %v", err)
		}
	}
}

// TestLimitLeavesTheRest verifies that a source is not read beyond the first record after the limit: it may be a pipe,
// or damaged there.
func TestLimitLeavesTheRest(t *testing.T) {
	src := Limit(&failing{Slice([]Record{{Time: 1}, {Time: 3}}), errors.New("read on")}, 0, 3)
	var r Record
	if err := src.Next(&r); err != nil || r.Time != 1 {
		t.Fatalf("%v, %v", r.Time, err)
	}
	for range 3 {
		if err := src.Next(&r); err != io.EOF {
			t.Errorf("behind the end: %v", err)
		}
	}
	if err := Limit(&failing{Slice(nil), io.ErrUnexpectedEOF}, 2, 0).Next(&r); err != io.ErrUnexpectedEOF {
		t.Errorf("the source's error is %v", err)
	}
}

// TestFlushed verifies that every third write is followed by a flush of the same volume at the same time, and that
// other operations do not count.
func TestFlushed(t *testing.T) {
	var records []Record
	for i, op := range []block.Op{block.Write, block.Read, block.Write, block.Flush, block.Write, block.Trim,
		block.Write, block.Write, block.Write, block.Write} {
		records = append(records,
			Record{Time: units.Duration(10 * i), Response: 5, Offset: 4096 * int64(i), Size: 4096, Volume: uint32(i),
				Op: op})
	}
	want := slices.Concat(records[:5], []Record{{Time: 40, Response: NoResponse, Volume: 4, Op: block.Flush}},
		records[5:9], []Record{{Time: 80, Response: NoResponse, Volume: 8, Op: block.Flush}}, records[9:])
	got, err := Collect(Flushed(Slice(records), 3))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v\n%+v\nnot\n%+v", err, got, want)
	}
	broken := errors.New("broken")
	if got, err := Collect(Flushed(&failing{Slice(records[:1]), broken}, 1)); err != broken || len(got) != 2 ||
		got[1].Op != block.Flush {
		t.Errorf("%v, %+v", err, got)
	}
}

// TestRecord verifies that a record ends before the next byte, and that NoResponse is not a valid response time.
func TestRecord(t *testing.T) {
	if r := (Record{Offset: 4096, Size: 512}); r.End() != 4608 {
		t.Errorf("it ends at %d", r.End())
	}
	if NoResponse >= 0 {
		t.Errorf("a response may take %v", NoResponse)
	}
}

func Example() {
	reads := Slice([]Record{{Time: 10 * units.Microsecond, Size: 4096, Op: block.Read},
		{Time: 30 * units.Microsecond, Size: 4096, Op: block.Read}})
	writes := Slice([]Record{{Time: 20 * units.Microsecond, Size: 8192, Op: block.Write}})
	src := Merge(reads, writes)
	var r Record
	for src.Next(&r) == nil {
		fmt.Println(r.Time, r.Op, r.Size)
	}
	// Output:
	// 10us read 4096
	// 20us write 8192
	// 30us read 4096
}
