package workload

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"farflash/block"
	"farflash/numeric/units"
)

// failing yields its records and then an error.
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
	}{{0, 0, 3}, {2, 0, 2}, {9, 0, 3}, {0, 2, 1}, {0, 3, 2}, {1, 3, 1}} {
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
