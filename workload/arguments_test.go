package workload_test

import (
	"errors"
	"io"
	"math"
	"testing"

	"farflash/block"
	"farflash/internal/hostile"
	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/workload"
)

// TestArguments verifies that a source that cannot be made returns an error, and goes on doing so.
func TestArguments(t *testing.T) {
	z := block.Zones{Size: 100, Capacity: 60, Count: 5}
	some := workload.Slice(nil)
	for _, c := range []struct {
		name string
		src  workload.Source
		want string
	}{
		{"merge", workload.Merge(some, nil), "source 1 of a merge"},
		{"limit", workload.Limit(nil, 1, 1), "source is nil"},
		{"flushed", workload.Flushed(nil, 1), "source is nil"},
		{"flushed never", workload.Flushed(some, 0), "every 0 writes"},
		{"zoned", workload.Zoned(nil, z, 0, 1, 1, false), "source is nil"},
		{"no zones", workload.Zoned(some, block.Zones{}, 0, 1, 1, false), "0 zones"},
		{"zones that overflow",
			workload.Zoned(some, block.Zones{Size: 1 << 60, Capacity: 1, Count: 64}, 0, 1, 1, false),
			"64 zones"},
		{"first zone", workload.Zoned(some, z, -1, 1, 1, false), "zones -1 to"},
		{"too many zones", workload.Zoned(some, z, 1, 5, 1, false), "there are 5"},
		{"zones without number", workload.Zoned(some, z, math.MaxInt, 2, 1, false), "there are 5"},
		{"none at once", workload.Zoned(some, z, 0, 5, 0, false), "0 zones written at once"},
		{"more at once than there are", workload.Zoned(some, z, 0, 2, 3, false), "3 zones written at once"},
	} {
		refused := hostile.Check(t, "workload")
		for range 2 {
			refused(c.name, func() error { return c.src.Next(new(workload.Record)) }, c.want)
		}
	}
	if _, err := workload.Collect(nil); err == nil {
		t.Error("no source is read")
	}
}

// FuzzSources combines sources as the input says: each ends, with every record once, or fails with the same error for
// ever.
func FuzzSources(f *testing.F) {
	f.Add([]byte{3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1, 2, 3, 4, 5, 6})
	f.Add([]byte{9, 200, 1, 200, 2, 200, 3, 200, 4, 200, 5, 200, 6, 200, 7, 200, 8, 200, 9, 4, 3, 2, 1})
	f.Add([]byte("records are merged, limited, flushed and laid into zones"))
	f.Fuzz(func(t *testing.T, in []byte) {
		defer patience.Limit()()
		code := hostile.Code(in)
		list := func() workload.Source {
			records := make([]workload.Record, code.Below(20))
			for i := range records {
				records[i] = workload.Record{Time: units.Duration(code.Int()), Offset: code.Int(), Size: code.Int(),
					Op: block.Op(code.Below(9))}
			}
			return workload.Slice(records)
		}
		src := list()
		for range code.Below(6) {
			switch code.Below(5) {
			case 0:
				src = workload.Merge(src, list())
			case 1:
				src = workload.Limit(src, code.Int(), units.Duration(code.Int()))
			case 2:
				src = workload.Flushed(src, code.Int())
			case 3:
				src = nil
			default:
				src = workload.Zoned(src, block.Zones{Size: code.Int(), Capacity: code.Int(), Count: int(code.Int())},
					int(code.Int()), int(code.Int()), int(code.Int()), code.Below(2) == 1)
			}
		}
		if src == nil {
			return
		}
		var r workload.Record
		n := 0
		err := error(nil)
		for ; n < 10000 && err == nil; n++ {
			err = src.Next(&r)
		}
		if err == nil {
			t.Fatalf("a source of %d records", n)
		}
		if again := src.Next(&r); again == nil || errors.Is(err, io.EOF) != errors.Is(again, io.EOF) {
			t.Errorf("%v after %v", again, err)
		}
	})
}
