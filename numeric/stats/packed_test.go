package stats_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"farflash/numeric/stats"
	"farflash/numeric/units"
)

// TestPacked verifies that packing, joining and unpacking in any grouping gives the histogram of all values.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, rest stats.Histogram
		var joined stats.Packed
		var slice stats.Histogram
		for _, v := range rapid.SliceOfN(rapid.Int64Range(0, 1<<60), 0, 60).Draw(t, "values") {
			d := units.Duration(v >> rapid.IntRange(0, 60).Draw(t, "shift"))
			whole.Record(d)
			switch rapid.IntRange(0, 3).Draw(t, "where") {
			case 0:
				p := slice.Pack()
				if slice.Count() != 0 || slice.Mean() != 0 || len(slice.Bins()) != 0 {
					t.Fatal("a histogram is not empty after it was packed")
				}
				joined = stats.Join(&joined, &p)
				slice.Record(d)
			case 1:
				rest.Record(d)
			default:
				slice.Record(d)
			}
		}
		p := slice.Pack()
		both := stats.Join(&p, &joined)
		if both.Count() != p.Count()+joined.Count() {
			t.Fatal("counts do not add up")
		}
		rest.Unpack(&both)
		if !reflect.DeepEqual(rest.State(), whole.State()) {
			t.Fatalf("%+v, want %+v", rest.State(), whole.State())
		}
	})
}

// TestPackedWide verifies that joining carries sums of squares beyond 128 bits into the third word.
func TestPackedWide(t *testing.T) {
	var whole, rest stats.Histogram
	var joined stats.Packed
	for range 5 {
		var part stats.Histogram
		for range 9 {
			part.Record(1<<63 - 1)
			whole.Record(1<<63 - 1)
		}
		p := part.Pack()
		joined = stats.Join(&joined, &p)
	}
	rest.Unpack(&joined)
	if !reflect.DeepEqual(rest.State(), whole.State()) {
		t.Errorf("%+v, want %+v", rest.State(), whole.State())
	}
	rest.Unpack(&joined)
	if got, want := rest.State().Squares, whole.State().Squares; got.Cmp(want.Lsh(want, 1)) != 0 {
		t.Errorf("twice it is %v, want %v", got, want)
	}
}
