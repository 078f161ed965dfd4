package perfetto

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"farflash/internal/patience"
	"farflash/numeric/units"
	"farflash/result/perfetto/perfettotest"
	"farflash/sim"
)

var out = flag.String("out", "", "write the sample trace to this file, to be opened with Perfetto")

const us = units.Microsecond

// sample writes a small system: requests of initiators with their stages, the dies that serve them and a counter.
func sample(w *Writer) error {
	hosts := w.Track(Top, "initiators")
	target := w.Track(Top, "target 0")
	dies := w.Track(target, "drive 1")
	queue := w.CounterTrack(target, "queue", "requests")
	initiator := w.Lanes(hosts, "initiator 3")
	var die [2]Track
	for i := range die {
		die[i] = w.Track(dies, fmt.Sprintf("die %d", i))
	}
	for i := range 40 {
		begin := sim.Time(i)*7*us + 123
		flash := begin + 20*us + sim.Time(i)*333
		end := flash + 14*us
		if err := w.Counter(queue, begin, float64(i%5)+0.5); err != nil {
			return err
		}
		if err := w.Slice(die[i%2],
			Slice{Name: "read", Begin: flash - 13*us, End: flash, Flow: uint64(i + 1)}); err != nil {
			return err
		}
		s := Slice{
			Name: "read", Begin: begin, End: end, Flow: uint64(i + 1),
			Annotations: []Annotation{Int("request", int64(i)), Int("offset", -int64(i)), Text("volume", "vol\xff0"),
				Float("share", 0.25)},
			Parts: []Slice{{Name: "flash", Begin: flash - 13*us, End: flash},
				{Name: "network back", Begin: flash, End: end}},
		}
		if _, err := initiator.Slice(s); err != nil {
			return err
		}
	}
	return w.Instant(die[0], "suspended", 1000*us, Text("why", "a read"))
}

func TestSample(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := sample(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Written() != int64(b.Len()) {
		t.Errorf("Written is %d, the file has %d bytes", w.Written(), b.Len())
	}
	if *out != "" {
		if err := os.WriteFile(*out, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// The bytes must be the same on every machine. A change of the format changes this hash too.
	const want = "b86dd48e494576c3"
	if got := fmt.Sprintf("%x", sha256.Sum256(b.Bytes()))[:16]; got != want {
		t.Errorf("the trace's hash is %s, was %s", got, want)
	}
	var again bytes.Buffer
	w = NewWriter(&again)
	if err := errors.Join(sample(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), again.Bytes()) {
		t.Error("the trace differs from one time to the next")
	}

	trace, found := perfettotest.Read(t, b.Bytes())
	paths := map[string]perfettotest.Track{}
	names := map[uint64]string{}
	for _, x := range trace.Tracks {
		names[x.ID] = strings.TrimPrefix(names[x.Parent]+" / "+x.Name, " / ")
		paths[names[x.ID]] = x
	}
	for _, want := range []string{"initiators / initiator 3 / 1", "initiators / initiator 3 / 5",
		"target 0 / drive 1 / die 1", "target 0 / queue"} {
		if _, ok := paths[want]; !ok {
			t.Errorf("no track %s in %v", want, names)
		}
	}
	if x := paths["target 0 / queue"]; !x.Counter || x.Unit != "requests" || x.Rank != 1 {
		t.Errorf("the counter is %+v", x)
	}
	if x := paths["target 0 / drive 1 / die 1"]; x.Counter || x.Rank != 1 {
		t.Errorf("a die is %+v", x)
	}
	requests, values := 0, 0
	for _, list := range found {
		for _, s := range list {
			if s.Notes["request"] == nil {
				continue
			}
			i := s.Notes["request"].(int64)
			requests++
			if s.Depth != 0 || s.Notes[BeginAnnotation] != i*7e6+123 || s.Notes[DurationAnnotation] != 34e6+i*333 ||
				s.Begin != uint64(i*7e6+123)/1000 ||
				s.End != uint64(i*7e6+123+34e6+i*333)/1000 || s.Notes["offset"] != -i ||
				s.Notes["volume"] != "vol\uFFFD0" || s.Notes["share"] != 0.25 ||
				!slices.Equal(s.Flows, []uint64{uint64(i + 1)}) {
				t.Errorf("request %d is %+v", i, s)
			}
		}
	}
	for _, e := range trace.Events {
		if e.Kind == 4 {
			if e.Track != paths["target 0 / queue"].ID || e.Value != float64(values%5)+0.5 ||
				e.Time != uint64(values*7e6+123)/1000 {
				t.Errorf("value %d is %+v", values, e)
			}
			values++
		}
	}
	if requests != 40 || values != 40 {
		t.Errorf("%d requests and %d values, not 40", requests, values)
	}
	lane := found[paths["initiators / initiator 3 / 1"].ID]
	if len(lane) < 6 || lane[1].Name != "flash" || lane[1].Depth != 1 || lane[2].Name != "network back" ||
		lane[2].Depth != 1 || lane[2].End != lane[0].End || lane[3].Depth != 0 {
		t.Errorf("stages are not within their request: %+v", lane[:min(4, len(lane))])
	}
	last := found[paths["target 0 / drive 1 / die 0"].ID]
	if x := last[len(last)-1]; x.Name != "suspended" || x.Begin != 1e6 || x.Notes["why"] != "a read" {
		t.Errorf("the moment is %+v", x)
	}
}

func TestRefused(t *testing.T) {
	slice := func(begin, end sim.Time, parts ...Slice) Slice {
		return Slice{Name: "x", Begin: begin, End: end, Parts: parts}
	}
	for _, c := range []struct {
		name string
		list []Slice
		want string
	}{
		{"overlap", []Slice{slice(0, 10), slice(9, 12)}, `slice "x" on track "die" starts at 9ps, before 10ps`},
		{"before", []Slice{slice(10, 20), slice(0, 5)}, "starts at 0"},
		{"ends early", []Slice{slice(10, 9)}, "extends from 10ps to 9ps"},
		{"before time 0", []Slice{slice(-1, 9)}, "starts at -1ps"},
		{"part begins early", []Slice{slice(10, 20, slice(9, 12))}, `part "x" of slice "x" extends from 9ps to 12ps`},
		{"part ends late", []Slice{slice(10, 20, slice(12, 21))}, "outside 10ps to 20ps"},
		{"parts overlap", []Slice{slice(10, 20, slice(12, 15), slice(14, 16))}, "outside 15ps to 20ps"},
		{"part of a part", []Slice{slice(10, 20, slice(12, 15, slice(13, 16)))}, "outside 12ps to 15ps"},
	} {
		var b bytes.Buffer
		w := NewWriter(&b)
		die := w.Track(Top, "die")
		var err error
		for i, s := range c.list {
			if err != nil {
				t.Fatalf("%s: slice %d: %v", c.name, i-1, err)
			}
			err = w.Slice(die, s)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
		// A refused event leaves no state behind, and the writer remains usable.
		if err := w.Slice(die, slice(100, 200)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, found := perfettotest.Read(t, b.Bytes())
		if len(found[uint64(die)]) != len(c.list) {
			t.Errorf("%s: %d slices", c.name, len(found[uint64(die)]))
		}
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	counter, die := w.CounterTrack(Top, "c", ""), w.Track(Top, "die")
	if err := errors.Join(w.Slice(die, slice(5, 10)), w.Slice(die, slice(10, 10)),
		w.Slice(die, slice(10, 12))); err != nil {
		t.Errorf("slices that touch: %v", err)
	}
	for name, err := range map[string]error{
		"NaN": w.Counter(counter, 1, math.NaN()), "infinite": w.Counter(counter, 1, math.Inf(1)),
		"before time 0": w.Counter(counter, -1, 1), "moment": w.Instant(die, "m", 11),
	} {
		if err == nil {
			t.Errorf("%s is not refused", name)
		}
	}
	for name, f := range map[string]func(){
		"slice on a counter": func() {
			_ = w.Slice(counter,
				slice(0, 1))
		}, "moment on a counter": func() { _ = w.Instant(counter, "m", 1) },
		"value on slices": func() { _ = w.Counter(die, 1, 1) }, "no track": func() {
			_ = w.Slice(99,
				slice(0, 1))
		}, "slice on the top": func() { _ = w.Slice(Top, slice(0, 1)) },
		"no parent": func() { w.Track(77, "x") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Close() == nil || w.Slice(die, slice(50, 60)) == nil {
		t.Error("a closed trace takes more")
	}
}

// full is a writer whose disk is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteError(t *testing.T) {
	w := NewWriter(full{})
	die := w.Track(Top, "die")
	var err error
	for i := range sim.Time(10000) {
		if err = w.Slice(die, Slice{Name: "x", Begin: i, End: i + 1}); err != nil {
			break
		}
	}
	if !errors.Is(err, io.ErrShortWrite) || !errors.Is(w.Close(), io.ErrShortWrite) {
		t.Errorf("the error is %v", err)
	}
}

// TestManyNames verifies that an unlimited number of names takes bounded memory, and that all are still written.
func TestManyNames(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	die := w.Track(Top, "die")
	const n = mostNames + 100
	for i := range sim.Time(n) {
		name := fmt.Sprintf("request %d", i)
		if err := w.Slice(die,
			Slice{Name: name, Begin: i, End: i + 1, Annotations: []Annotation{Int("a "+name, 1)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if len(w.events.id) != mostNames || len(w.notes.id) != mostNames {
		t.Errorf("%d and %d names are kept", len(w.events.id), len(w.notes.id))
	}
	_, found := perfettotest.Read(t, b.Bytes())
	list := found[uint64(die)]
	if len(list) != n || list[n-1].Name != fmt.Sprintf("request %d", n-1) ||
		list[n-1].Notes[fmt.Sprintf("a request %d", n-1)] != int64(1) {
		t.Errorf("the last of %d slices is %+v", len(list), list[len(list)-1])
	}
}

// TestAllocations verifies that writing does not allocate once names and lanes exist.
func TestAllocations(t *testing.T) {
	w := NewWriter(io.Discard)
	l := w.Lanes(Top, "initiator")
	c := w.CounterTrack(Top, "queue", "")
	s := Slice{Name: "read", Annotations: []Annotation{Int("request", 7), Text("op", "read")},
		Parts: []Slice{{Name: "flash"}, {Name: "back"}}, Flow: 9}
	at := sim.Time(0)
	step := func() {
		s.Begin, s.End = at, at+25*us
		s.Parts[0].Begin, s.Parts[0].End, s.Parts[1].Begin, s.Parts[1].End = at, at+3*us, at+4*us, at+25*us
		if _, err := l.Slice(s); err != nil {
			t.Fatal(err)
		}
		if err := w.Counter(c, at, 1); err != nil {
			t.Fatal(err)
		}
		at += us
	}
	for range 100 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("a slice takes %v allocations", n)
	}
	if l.Len() != 25 {
		t.Errorf("%d lanes, not 25", l.Len())
	}
}

// overlapping is a list of intervals in order of their ends.
type overlapping [][2]sim.Time

func (o overlapping) depth() int {
	type edge struct {
		at sim.Time
		by int
	}
	var edges []edge
	for _, s := range o {
		// An empty interval overlaps one that ends at its time and is given later, so it starts half a picosecond
		// earlier.
		begin := 2 * s[0]
		if s[0] == s[1] {
			begin--
		}
		edges = append(edges, edge{at: begin, by: 1}, edge{at: 2 * s[1], by: -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return a.by - b.by // ends before begins
	})
	most, now := 0, 0
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	return most
}

// checkLanes writes intervals through Lanes and reads them back: all are present, none overlap on a track, and there
// are no more lanes than intervals that overlap.
func checkLanes(t testing.TB, spans overlapping) {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	l := w.Lanes(w.Track(Top, "all"), "group")
	for i, s := range spans {
		if _, err := l.Slice(Slice{Name: "s", Begin: s[0], End: s[1],
			Annotations: []Annotation{Int("i", int64(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if most := max(spans.depth(), min(1, len(spans))); l.Len() > most {
		t.Errorf("%d lanes for %d spans of which %d overlap", l.Len(), len(spans), most)
	}
	_, found := perfettotest.Read(t, b.Bytes())
	n := 0
	for track, list := range found {
		var end uint64
		for _, s := range list {
			if s.Depth != 0 || s.Begin < end || s.End < s.Begin {
				t.Fatalf("track %d: slice %+v overlaps one before %d", track, s, end)
			}
			end = s.End
			i := s.Notes["i"].(int64)
			if s.Notes[BeginAnnotation] != int64(spans[i][0]) ||
				s.Notes[DurationAnnotation] != int64(spans[i][1]-spans[i][0]) ||
				s.Begin != uint64(spans[i][0])/1000 || s.End != uint64(spans[i][1])/1000 {
				t.Fatalf("span %d from %v to %v became %+v", i, spans[i][0], spans[i][1], s)
			}
			n++
		}
	}
	if n != len(spans) {
		t.Errorf("%d of %d slices are there", n, len(spans))
	}
}

func TestLanes(t *testing.T) {
	for seed := range uint64(200) {
		g := rand.New(rand.NewPCG(seed, 1))
		spans := make(overlapping, 1+g.IntN(300))
		for i := range spans {
			begin := sim.Time(g.IntN(100000))
			spans[i] = [2]sim.Time{begin, begin + sim.Time(g.IntN(3+int(seed)*40))}
		}
		slices.SortStableFunc(spans, func(a, b [2]sim.Time) int { return int(a[1] - b[1]) })
		checkLanes(t, spans)
	}
	w := NewWriter(io.Discard)
	l := w.Lanes(Top, "g")
	if _, err := l.Slice(Slice{Name: "a", Begin: 5, End: 10}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Slice(Slice{Name: "b", Begin: 0, End: 9}); err == nil ||
		!strings.Contains(err.Error(), "ends at 9ps, before 10ps") {
		t.Errorf("out of order: %v", err)
	}
	if _, err := l.Slice(Slice{Name: "c", Begin: 12, End: 11}); err == nil || l.Len() != 1 {
		t.Errorf("ends before it begins: %v, %d lanes", err, l.Len())
	}
}

// FuzzLanes builds intervals from arbitrary bytes.
func FuzzLanes(f *testing.F) {
	f.Add([]byte{1, 0, 200, 0, 3, 0, 0, 0, 1, 2})
	f.Add(bytes.Repeat([]byte{7, 3, 1}, 50))
	f.Add([]byte{5, 0, 0, 0, 0, 0, 5, 0}) // an empty interval, and one that ends at the same time
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		var spans overlapping
		end := sim.Time(0)
		for ; len(b) >= 4; b = b[4:] {
			end += sim.Time(binary.LittleEndian.Uint16(b)) % 3000
			spans = append(spans, [2]sim.Time{max(0, end-sim.Time(binary.LittleEndian.Uint16(b[2:]))), end})
		}
		checkLanes(t, spans)
	})
}

// FuzzTexts writes names of arbitrary bytes.
func FuzzTexts(f *testing.F) {
	f.Add("read", "op", "a\xffb", int64(-1))
	f.Fuzz(func(t *testing.T, name, note, text string, v int64) {
		defer patience.Limit()()
		if note == BeginAnnotation || note == DurationAnnotation || note == "n" {
			t.Skip()
		}
		var b bytes.Buffer
		w := NewWriter(&b)
		die := w.Track(Top, name)
		err := w.Slice(die, Slice{Name: name, Begin: 1, End: 2,
			Annotations: []Annotation{Text(note, text), Int("n", v)}})
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		trace, found := perfettotest.Read(t, b.Bytes())
		s := found[uint64(die)][0]
		if trace.Tracks[0].Name != valid(name) || s.Name != valid(name) || s.Notes[valid(note)] != valid(text) ||
			s.Notes["n"] != v {
			t.Errorf("%q %q %q %d became %+v", name, note, text, v, s)
		}
	})
}

func BenchmarkSlice(b *testing.B) {
	w := NewWriter(io.Discard)
	l := w.Lanes(Top, "initiator")
	at := sim.Time(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Slice(Slice{Name: "read", Begin: at, End: at + 200*us}); err != nil {
			b.Fatal(err)
		}
		at += us
	}
	b.SetBytes(w.Written() / int64(b.N))
}
