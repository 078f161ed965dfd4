package trace

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"farflash/block"
	"farflash/numeric/rng"
	"farflash/numeric/units"
	"farflash/workload"
)

// TestSecondsAreSpreadAlike reads a trace of whole seconds from each of its seconds on: the requests of a second have
// the same times, wherever the file starts.
func TestSecondsAreSpreadAlike(t *testing.T) {
	text := strings.Repeat("5,8,8,0,1\n", 7) + strings.Repeat("6,8,8,1,2\n", 3) + strings.Repeat("9,8,8,0,3\n", 4)
	times := func(text string) (list []units.Duration) {
		got, r, err := read(text, Options{Format: Tencent, Seed: 11})
		if err != nil {
			t.Fatal(err)
		}
		sec, rest := r.Start()
		for _, x := range got {
			list = append(list, x.Time+rest+units.Duration(sec)*units.Second)
		}
		return list
	}
	whole := times(text)
	if len(whole) != 14 || !slices.IsSorted(whole) {
		t.Fatalf("%v", whole)
	}
	for i, at := range whole {
		if sec := int64(at / units.Second); sec != []int64{5, 6, 9}[min(i/7, 1)+i/10] {
			t.Errorf("request %d arrives at %v", i, at)
		}
	}
	for _, from := range []int{7, 10} {
		if got := times(text[10*from:]); !slices.Equal(got, whole[from:]) {
			t.Errorf("from request %d on: %v, and in the whole trace %v", from, got, whole[from:])
		}
	}
}

// TestWindowIsExact verifies that a window of 3 records sorts a record that is 3 places late, and not one that is 4,
// that equal times stay in the file's order, and that late records can be skipped.
func TestWindowIsExact(t *testing.T) {
	line := func(at, offset int) string { return fmt.Sprintf("0,R,%d,512,%d\n", 512*offset, at) }
	three := line(7, 0) + line(7, 1) + line(8, 2) + line(2, 3) + line(8, 4) + line(9, 5)
	got, r, err := read(three, Options{Window: 3})
	if err != nil {
		t.Fatal(err)
	}
	var order []int64
	for _, x := range got {
		order = append(order, x.Offset/512)
	}
	if !slices.Equal(order, []int64{3, 0, 1, 2, 4, 5}) || r.OutOfOrder() != 1 {
		t.Errorf("sorted as %v, %d out of order", order, r.OutOfOrder())
	}
	const note = "sorted by arrival within a window of 3 records; 1 followed a later one"
	if notes := r.Notes(); !slices.Contains(notes, note) {
		t.Errorf("%v", notes)
	}
	four := line(7, 0) + line(7, 1) + line(8, 2) + line(8, 3) + line(2, 4) + line(9, 5)
	const want = "t:5: its time is 5us before that of a request already returned: the window of 3 records is too small " +
		"to sort it; make it larger (--window)"
	if _, _, err := read(four, Options{Window: 3}); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	if got, r, err := read(four, Options{Window: 3, SkipBad: 1}); err != nil || len(got) != 5 || r.Skipped() != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// blkparseLine is an event of one request of 8 sectors.
func blkparseLine(ns int64, action byte, kind string, sector int) string {
	return fmt.Sprintf("8,1 0 1 %d.%09d 42 %c %s %d + 8 [p]\n", ns/1e9, ns%1e9, action, kind, sector)
}

// TestCompletions pairs events by hand: by end, operation and order.
func TestCompletions(t *testing.T) {
	text := blkparseLine(5, 'C', "R", 0) + // of a request before the trace
		blkparseLine(10, 'Q', "R", 0) +
		blkparseLine(20, 'Q', "W", 0) + // the same sectors, another operation
		blkparseLine(30, 'Q', "R", 64) +
		blkparseLine(30, 'C', "R", 64) + // at once
		blkparseLine(40, 'C', "W", 0) +
		blkparseLine(50, 'C', "R", 0) +
		blkparseLine(60, 'C', "R", 0) + // a second time
		blkparseLine(70, 'Q', "R", 8) + // never
		// Merged in front of the next one, with which it completes: only the one that ends there is found.
		blkparseLine(80, 'Q', "R", 120) + blkparseLine(80, 'Q', "R", 128) + "8,1 0 1 0.000000090 42 C R 120 + 16 [0]\n" +
		blkparseLine(100, 'Q', "R", 320) + blkparseLine(110, 'C', "R", 320) + blkparseLine(120, 'C', "R", 320)
	got, r, err := read(text, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var responses []units.Duration
	for _, x := range got {
		responses = append(responses, x.Response)
	}
	if want := []units.Duration{40000, 20000, 0, none, none, 10000, 10000}; !slices.Equal(responses, want) {
		t.Errorf("responses %v, want %v", responses, want)
	}
	for _, want := range []string{"5 of 7 requests have their completion in the trace",
		"a request arrives at its Q event (the file begins with 7 Q, 0 D and 8 C events)"} {
		if !slices.Contains(r.Notes(), want) {
			t.Errorf("no %q in %q", want, r.Notes())
		}
	}
}

// TestManyInFlight compares the responses of a random trace, of which some hundred requests are in flight, with those
// that it was made with.
func TestManyInFlight(t *testing.T) {
	const n = 3000
	type action struct {
		ns     int64
		what   byte
		sector int
	}
	s := rng.NewStream(5, "completions")
	var list []action
	var want []units.Duration
	for i := range n {
		at, took := int64(1000*i), 1000+s.IntN(200_000)
		list = append(list, action{at, 'Q', 8 * i}, action{at + took, 'C', 8 * i})
		want = append(want, units.Duration(took)*units.Nanosecond)
	}
	slices.SortStableFunc(list, func(a, b action) int { return int(a.ns - b.ns) })
	var text strings.Builder
	for _, x := range list {
		text.WriteString(blkparseLine(x.ns, x.what, "R", x.sector))
	}
	got, _, err := read(text.String(), Options{})
	if err != nil || len(got) != n {
		t.Fatalf("%d requests, %v", len(got), err)
	}
	for i, x := range got {
		if x.Response != want[i] || x.Offset != int64(8*i*512) {
			t.Fatalf("request %d takes %v, want %v", i, x.Response, want[i])
		}
	}
}

// TestFlushes verifies how blkparse shows flushes: alone, with an empty range, and as part of a write.
func TestFlushes(t *testing.T) {
	got, _, err := read("8,1 0 1 0.0 42 Q FN [p]\n8,1 0 1 0.0 42 Q FWS 64 + 0 [p]\n8,1 0 1 0.0 42 Q FWFS 64 + 8 [p]\n",
		Options{})
	flush := workload.Record{Response: none, Volume: 8<<20 | 1, Op: block.Flush}
	write := workload.Record{Response: none, Volume: 8<<20 | 1, Op: block.Write, Offset: 32768, Size: 4096}
	if err != nil || !slices.Equal(got, []workload.Record{flush, flush, write}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTornLines verifies that a line of blkparse that ends behind the + is refused, and does not take the number of
// sectors of the line before.
func TestTornLines(t *testing.T) {
	const good = "8,1 0 1 0.0 42 Q R 64 + 8 [p]\n"
	for line, want := range map[string]string{
		"8,1 0 1 0.1 42 Q R 64 +":       "t:2: 9 columns instead of at least 10 (a sector, + and a number of sectors)",
		"8,1 0 1 0.1 42 Q FWS 64 +":     "t:2: 9 columns instead of at least 10",
		"8,1 0 1 0.1 42 Q R 64":         "t:2: 8 columns instead of at least 10",
		"8,1 0 1 0.1 42 Q R":            "t:2: 7 columns instead of at least 10",
		"8,1 0 1 0.1 42 Q R 64 8 [p] q": `t:2: the word after the sector is "8"; it must be +`,
		"8,1 0 1 0.1 42 Q":              "t:2: 6 columns instead of at least 7",
	} {
		got, _, err := read(good+line+"\n", Options{Format: Blkparse})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, %v", line, got, err)
		}
	}
}

// TestPending verifies that at most 4096 requests wait for their completion: of more in flight, the first are returned
// without.
func TestPending(t *testing.T) {
	for n, without := range map[int]int{maxPending - 1: 0, maxPending: 1, maxPending + 1: 2,
		2*maxPending + 50: maxPending + 51} {
		var text strings.Builder
		for i := range n {
			text.WriteString(blkparseLine(int64(i), 'Q', "R", 8*i))
		}
		for i := range n {
			text.WriteString(blkparseLine(int64(n+i), 'C', "R", 8*i))
		}
		got, _, err := read(text.String(), Options{Format: Blkparse})
		if err != nil || len(got) != n {
			t.Fatalf("%d requests, %v", len(got), err)
		}
		for i, x := range got {
			want := units.Duration(n) * units.Nanosecond
			if i < without {
				want = none
			}
			if x.Response != want {
				t.Fatalf("request %d of %d takes %v, want %v", i, n, x.Response, want)
			}
		}
	}
}

// TestOtherVolumes verifies that the error of a filter that accepts nothing lists the first ten volumes.
func TestOtherVolumes(t *testing.T) {
	for n, want := range map[int]string{2: `it has "0" "1"`, 10: `"8" "9"`, 11: `"8" "9" and others`} {
		var text strings.Builder
		for i := range 2 * n {
			fmt.Fprintf(&text, "%d,R,0,512,%d\n", i%n, i)
		}
		_, _, err := read(text.String(), Options{Volume: "77"})
		begin := fmt.Sprintf(`t: none of its %d requests goes to volume "77"; it has "0" "1"`, 2*n)
		if err == nil || !strings.HasPrefix(err.Error(), begin) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%d volumes: %v", n, err)
		}
	}
	// Volumes that alternate are all found.
	got, _, err := read(strings.Repeat("3,R,0,512,1\n4,R,0,512,1\n5,R,0,512,1\n", 3), Options{Volume: "4"})
	if err != nil || len(got) != 3 || got[2].Volume != 4 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestArrivals verifies that a request arrives at the earliest stage that a file has.
func TestArrivals(t *testing.T) {
	event := map[byte]uint32{'Q': blktraceQueue, 'D': blktraceIssue, 'C': blktraceComplete}
	for stages, want := range map[string]byte{"QDC": 'Q', "DC": 'D', "C": 'C', "CD": 'D', "CQ": 'Q'} {
		text := ""
		var list []blktraceEvent
		for i := range len(stages) {
			text += blkparseLine(int64(100*i), stages[i], "R", 64)
			list = append(list, blktraceEvent{uint64(100 * i), 64, 4096, blktraceRead | event[stages[i]], ""})
		}
		// Plugging, a message and a command that moves no data are no requests.
		text += "8,1 0 1 5.0 42 UT N [p] 1\n8,1 0 1 6.0 42 Q N [p]\n8,1 0 1 7.0 42 m N a message\n"
		list = append(list, blktraceEvent{5e9, 0, 0, blktraceNotify, "message"},
			blktraceEvent{6e9, 0, 36, blktracePC | blktraceRead | blktraceQueue, ""},
			blktraceEvent{7e9, 0, 0, blktraceQueue, ""})
		for _, text := range []string{text, blktraceBytes(binary.LittleEndian, list...)} {
			got, r, err := read(text, Options{})
			note := fmt.Sprintf("a request arrives at its %c event (the file begins with %d Q, %d D and 1 C events)", want,
				strings.Count(stages, "Q"), strings.Count(stages, "D"))
			if err != nil || len(got) != 1 || !slices.Contains(r.Notes(), note) {
				t.Errorf("%s: %v, %v; want %q", stages, got, err, note)
				if r != nil {
					t.Error(r.Notes())
				}
			}
		}
	}
}

// TestPlaces verifies that Locate names the line, or the byte of a binary file, of the record returned last.
func TestPlaces(t *testing.T) {
	for _, x := range []struct {
		text   string
		format Format
		want   []string
	}{
		{"\n0,R,0,512,5\n\n0,R,0,512,6\n", Alibaba, []string{"t:2", "t:4"}},
		{vscsiBytes(2, [4]uint64{8, 512, 1, 0x28}, [4]uint64{8, 0, 2, 0}, [4]uint64{8, 512, 3, 0x28}), VSCSI,
			[]string{"t: record at byte 0", "t: record at byte 80"}},
		{blktraceBytes(binary.LittleEndian, blktraceEvents[0], blktraceEvents[1], blktraceEvents[3], blktraceEvents[4]),
			Blktrace, []string{"t: record at byte 55", "t: record at byte 103", "t: record at byte 152"}},
	} {
		r, err := NewReader(strings.NewReader(x.text), "t", Options{Format: x.format})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range x.want {
			var rec workload.Record
			if err := r.Next(&rec); err != nil {
				t.Fatal(err)
			}
			if got := r.Locate(strconv.ErrRange).Error(); got != want+": value out of range" {
				t.Errorf("%s: %s, want %s", x.format, got, want)
			}
		}
	}
}
