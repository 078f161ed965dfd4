package workload_test

import (
	"fmt"
	"strings"
	"testing"

	"farflash/block"
	"farflash/workload"
)

// TestZoned verifies that writes go to zones in rotation, whatever their offsets; a zone without space for one is
// finished unless it is full, and the next is reset before it is written.
func TestZoned(t *testing.T) {
	z := block.Zones{Size: 100, Capacity: 60, Count: 5}
	write := func(size int64) workload.Record {
		return workload.Record{Time: 7, Op: block.Write, Offset: 9999, Size: size}
	}
	source := []workload.Record{write(30), write(20), write(30), write(30), {Op: block.Read, Offset: 5, Size: 10},
		write(50), write(20), write(60), {Op: block.Flush}, write(60), write(1)}
	for _, c := range []struct {
		appends       bool
		count, atOnce int
		want          string
	}{
		{false, 3, 1, "reset 100, reset 200, write 100+30, write 130+20, finish 100, reset 300, write 200+30, write " +
			"230+30, read 5+10, reset 100, write 300+50, finish 300, reset 200, write 100+20, " +
			"finish 100, reset 300, write 200+60, flush 0, reset 100, write 300+60, reset 200, write 100+1"},
		{true, 3, 2, "reset 100, reset 200, append 100+30, reset 300, append 200+20, append 100+30, append 200+30, " +
			"read 5+10, reset 100, append 300+50, finish 200, reset 200, append 100+20, " +
			"finish 300, reset 300, append 200+60, flush 0, finish 100, reset 100, append 300+60, reset 200, append " +
			"100+1"},
		{true, 1, 1, "reset 100, append 100+30, append 100+20, finish 100, reset 100, append 100+30, append 100+30, " +
			"read 5+10, reset 100, append 100+50, finish 100, reset 100, append 100+20, " +
			"finish 100, reset 100, append 100+60, flush 0, reset 100, append 100+60, reset 100, append 100+1"},
	} {
		records, err := workload.Collect(workload.Zoned(workload.Slice(source), z, 1, c.count, c.atOnce, c.appends))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range records {
			what := r.Op.String()
			if r.Append {
				what = "append"
			}
			if what += fmt.Sprintf(" %d", r.Offset); r.Size > 0 {
				what += fmt.Sprintf("+%d", r.Size)
			}
			got = append(got, what)
			if r.Op.OfZone() && r.Time != 7 {
				t.Errorf("%s comes at %v", what, r.Time)
			}
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%d zones, %d at once, appends %v:\n%s\nnot\n%s", c.count, c.atOnce, c.appends, s, c.want)
		}
	}
	// An open zone that lags behind the others is neither rewritten nor reset by those that pass it.
	drift := workload.Zoned(workload.Slice([]workload.Record{write(60), write(1), write(60), write(1), write(60)}), z,
		0, 3, 2, false)
	records, err := workload.Collect(drift)
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprintf("%v %d", r.Op, r.Offset))
	}
	if s := strings.Join(got, ", "); err != nil ||
		s != "reset 0, reset 100, write 0, reset 200, write 100, reset 0, write 200, write 101, reset 200, write 0" {
		t.Errorf("%s, %v", s, err)
	}
	src := workload.Zoned(workload.Slice([]workload.Record{write(61)}), z, 0, 2, 1, false)
	for range 2 {
		if err := src.Next(new(workload.Record)); err == nil ||
			!strings.Contains(err.Error(), "exceeds the capacity of a zone") {
			t.Errorf("error %v", err)
		}
	}
}
