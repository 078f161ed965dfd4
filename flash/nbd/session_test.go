package nbd

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// transmission returns a session of an export.
func transmission(e Export, structured bool, limits Limits) *Session {
	var s *Session
	h := &Handshake{chosen: e, structured: structured, context: structured}
	s = NewSession(h, limits, func(t *Task) { s.Finish(t) })
	return s
}

// heard returns, formatted, all pending output of a session and marks it as sent.
func heard(s *Session) string {
	b := slices.Concat(s.Vectors(nil, math.MaxInt)...)
	s.Sent(len(b))
	return sent(b)
}

// TestRefusals sends every command with every flag, for ranges inside, at the end of, and beyond a volume, to exports
// of all kinds. Permitted commands start tasks, or are answered if there is no work to do; others get an error that the
// protocol permits, and the payload of a refused write is skipped.
func TestRefusals(t *testing.T) {
	const size = 1 << 30
	ranges := []span{
		{0, 0}, {0, 1}, {size - 1, 1}, {size, 0}, {size, 1}, {size - 1, 2}, {size + 1, 0}, {math.MaxUint64, 2},
		{0, Window}, {0, Window + 1}, {0, MaxPayload}, {0, MaxPayload + 1},
		{7, maxWaste}, {size, maxWaste}, {size, maxWaste + 1}, {1, math.MaxUint32},
	}
	for export := range 6 { // plain, structured, and with contexts; writable and read-only
		structured, context, readOnly := export%3 > 0, export%3 > 1, export > 2
		for kind := range CmdBlockStatus + 2 {
			for flags := range uint16(64) {
				for _, r := range ranges {
					if kind == CmdDisconnect {
						continue
					}
					a := &asked{span: r, kind: kind, flags: flags}
					s := transmission(Export{Volume: &tape{size: size}, ReadOnly: readOnly}, structured,
						DefaultLimits())
					s.context = context
					s.Input(AppendRequest(nil, flags, kind, 7, r.at, r.n))
					wrong := a.refusals(size, structured, context, readOnly)
					if err := answered(s, a, wrong); err != nil {
						t.Fatalf("command %d with flags %#x, %d bytes at %d, structured %v, context %v, read only "+
							"%v: %v", kind, flags, r.n, r.at, structured, context, readOnly, err)
					}
				}
			}
		}
	}
}

// answered returns an error if a session reacts incorrectly to the header of its first command.
func answered(s *Session, a *asked, wrong []Errno) error {
	b, starts := slices.Concat(s.Vectors(nil, math.MaxInt)...), s.Starts(nil)
	owed := 0
	if a.kind == CmdWrite {
		owed = int(a.n)
	}
	var e Errno
	switch {
	case len(wrong) > 0 && a.kind == CmdWrite && a.n > maxWaste:
		if s.Err() == nil || len(b) > 0 {
			return fmt.Errorf("%q, and the connection goes on", sent(b))
		}
		return nil
	case s.Err() != nil:
		return s.Err()
	case s.Pending() != owed:
		return fmt.Errorf("%d bytes are owed", s.Pending())
	case len(b) == 0:
		if ends := a.kind == CmdBlockStatus || a.n == 0 && a.kind != CmdFlush; len(wrong) > 0 || ends ||
			len(starts) == 0 && a.kind != CmdWrite {
			return fmt.Errorf("no answer, and %d tasks", len(starts))
		}
		return nil
	case len(starts) > 0:
		return errors.New("an answer, and tasks")
	case ChunkHeader(b).Valid() && s.structured:
		h := ChunkHeader(b)
		switch p := b[structuredSize:]; {
		case h.Flags() != ChunkDone || int(h.Length()) != len(p) || h.Cookie() != 7:
			return fmt.Errorf("%q", sent(b))
		case h.Type() == ChunkError:
			e = Errno(p[3])
		case h.Type() != ChunkNone && a.kind == CmdRead || h.Type() != ChunkStatus && a.kind == CmdBlockStatus ||
			a.kind != CmdRead && a.kind != CmdBlockStatus:
			return fmt.Errorf("%q", sent(b))
		}
	default:
		h := SimpleHeader(b)
		if e = h.Error(); !h.Valid() || h.Cookie() != 7 || len(b) != simpleSize ||
			s.structured && (e != 0 || a.kind == CmdRead || a.kind == CmdBlockStatus) {
			return fmt.Errorf("%q", sent(b))
		}
	}
	if len(wrong) > 0 && !slices.Contains(wrong, e) ||
		len(wrong) == 0 && (e != 0 || a.kind != CmdBlockStatus && a.n > 0 || a.kind == CmdFlush) {
		return fmt.Errorf("error %d", uint32(e))
	}
	return nil
}

// ribbon is a volume with a scripted sequence of extents, which must be queried contiguously.
type ribbon struct {
	tape
	extents  []extent
	at, left uint64
	lost     bool // a query was not contiguous
}

func (r *ribbon) Extent(offset, n uint64) (uint64, bool, error) {
	r.lost = r.lost || offset != r.at || n != r.left
	x := r.extents[0]
	r.extents = r.extents[1:]
	r.at, r.left = r.at+x.length, r.left-x.length
	return x.length, x.allocated, x.err
}

type extent struct {
	length    uint64
	allocated bool
	err       error
}

// TestStatus verifies how extents are reported: neighbours in the same state are merged, the reply is clipped to the
// request, and it has at most the permitted number of extents.
func TestStatus(t *testing.T) {
	stripes := func(n int, last ...extent) (all []extent) {
		for i := range n {
			all = append(all, extent{length: 1, allocated: i%2 == 0})
		}
		return append(all, last...)
	}
	striped := strings.TrimSuffix(strings.Repeat(" 1:0 1:3", maxExtents/2), " 1:3")
	for what, x := range map[string]struct {
		extents []extent
		n       uint32
		flags   uint16
		want    string
		asked   int
	}{
		"alike": {[]extent{{300, true, nil}, {200, true, nil}, {500, false, nil}}, 1000, 0,
			" 500:0 500:3", 3},
		"more than asked":   {[]extent{{300, true, nil}, {1 << 40, false, nil}}, 1000, 0, " 300:0 700:3", 2},
		"one":               {[]extent{{300, true, nil}, {200, true, nil}, {1, false, nil}}, 1000, CmdOne, " 500:0", 3},
		"one that is all":   {[]extent{{300, true, nil}, {700, true, nil}}, 1000, CmdOne | CmdFUA, " 1000:0", 2},
		"one that is more":  {[]extent{{1 << 40, false, nil}}, 1000, CmdOne, " 1000:3", 1},
		"as many as may be": {stripes(maxExtents), maxExtents, 0, striped + " 1:3", maxExtents},
		"one too many":      {stripes(maxExtents + 1), maxExtents + 10, 0, striped + " 1:3", maxExtents + 1},
		"the last is long": {stripes(maxExtents, extent{length: 9}), maxExtents + 9, 0, striped + " 10:3",
			maxExtents + 1},
		"nothing":  {[]extent{{300, true, nil}, {0, true, nil}}, 1000, 0, "", 2},
		"an error": {[]extent{{300, true, nil}, {700, true, errors.ErrUnsupported}}, 1000, 0, "", 2},
	} {
		v := &ribbon{tape: tape{size: 1 << 20}, extents: x.extents, at: 4096, left: uint64(x.n)}
		s := transmission(Export{Volume: v}, true, DefaultLimits())
		s.Input(AppendRequest(nil, x.flags, CmdBlockStatus, 9, 4096, x.n))
		want := "chunk of 9: type 5" + x.want + ", done\n"
		if x.want == "" {
			want = "chunk of 9: type 32769 error 5 \"input/output error\", done\n"
		}
		if got := heard(s); got != want || !s.Drained() {
			t.Errorf("%s: %.200s drained %v", what, got, s.Drained())
		}
		if n := len(x.extents) - len(v.extents); n != x.asked || v.lost {
			t.Errorf("%s: %d extents are asked for, in other places %v", what, n, v.lost)
		}
	}
}

// TestLimitsHaveLeast verifies that a command can run whatever the limits are, and only one at a time if they are too
// small for more.
func TestLimitsHaveLeast(t *testing.T) {
	if l := DefaultLimits(); l != (Limits{Depth: 128, Memory: 8388608, Ahead: 4}) {
		t.Errorf("limits are %+v", l)
	}
	for _, limits := range []Limits{{}, {Depth: -1, Memory: -1, Ahead: -1}, {Depth: 1, Memory: Window - 1, Ahead: 1}} {
		v := &tape{size: 1 << 20}
		s := transmission(Export{Volume: v}, true, limits)
		read := AppendRequest(nil, 0, CmdRead, 1, 0, 2*Window)
		if n := s.Input(append(read, read...)); n != requestSize || !s.stalled {
			t.Fatalf("%+v: %d bytes are taken, stalled %v", limits, n, s.stalled)
		}
		for range 2 {
			if v.Start(s.Starts(nil)); len(v.begun) != 1 || v.begun[0].Length != Window {
				t.Fatalf("%+v: %d tasks are begun", limits, len(v.begun))
			}
			v.finish(0)
			heard(s)
		}
		if !s.Drained() || s.Input(read) != requestSize {
			t.Errorf("%+v: nothing more is taken", limits)
		}
	}
	v := &tape{size: 1 << 20}
	read := AppendRequest(nil, 0, CmdRead, 1, 0, Window)
	for memory, want := range map[int]int{2*Window - 1: 1, 2 * Window: 2} {
		// one byte less than two reads need, and enough for both
		s := transmission(Export{Volume: v}, true, Limits{Depth: 3, Memory: memory, Ahead: 1})
		if n := s.Input(append(read, read...)); n != want*requestSize || s.stalled != (want == 1) {
			t.Errorf("of two reads with memory for %d bytes %d bytes are taken, stalled %v", memory, n, s.stalled)
		}
	}
	// commands without payload need no memory
	s := transmission(Export{Volume: v}, true, Limits{Depth: 3})
	if n := s.Input(AppendRequest(AppendRequest(read, 0, CmdCache, 2, 0, 2*Window), 0, CmdFlush, 3, 0, 0)); n != 3*
		requestSize || s.stalled {
		t.Errorf("%d bytes are taken beside a read that has all the memory, stalled %v", n, s.stalled)
	}
}

// TestHalfAnswered has a partially answered read fail while a write is being received: the session consumes, starts and
// keeps no more.
func TestHalfAnswered(t *testing.T) {
	v := &tape{size: 1 << 20, written: 1 << 20}
	s := transmission(Export{Volume: v}, false, Limits{Depth: 4, Memory: 4 * Window, Ahead: 2})
	s.Input(AppendRequest(AppendRequest(nil, 0, CmdRead, 1, 0, 2*Window), 0, CmdWrite, 2, 0, 100))
	v.Start(s.Starts(nil))
	v.finish(0)
	heard(s)
	v.Start(s.Starts(nil))
	if s.Pending() != 100 || len(s.Sink()) != 100 || s.Drained() {
		t.Fatalf("%d bytes are owed, drained %v", s.Pending(), s.Drained())
	}
	v.fail = ENOSPC
	v.finish(0)
	if !errors.Is(s.Err(), ENOSPC) || !strings.Contains(s.Err().Error(), "after part of its reply") {
		t.Fatal(s.Err())
	}
	if n := s.Input(make([]byte, 100)); n != 0 || s.Sink() != nil {
		t.Errorf("%d bytes are taken", n)
	}
	err := s.Err()
	s.Fail(errMagic)
	if !errors.Is(s.Err(), err) || len(s.tasks) != 2 || v.lent != 0 || s.Pending() != 0 {
		t.Errorf("%v, %d tasks are kept, %d lent, %d bytes owed", s.Err(), len(s.tasks), v.lent, s.Pending())
	}
}

// TestFailGivesAllBack breaks the connection while there is a task in every possible place: being sent, held behind it,
// not yet started, with the volume, and being filled.
func TestFailGivesAllBack(t *testing.T) {
	v := &tape{size: 1 << 20, written: 1 << 20}
	s := transmission(Export{Volume: v}, false, Limits{Depth: 5, Memory: 5 * Window, Ahead: 2})
	b := AppendRequest(AppendRequest(nil, 0, CmdRead, 1, 0, 2*Window), 0, CmdRead, 2, 0, 4096)
	s.Input(AppendRequest(b, 0, CmdRead, 3, 0, 4096))
	v.Start(s.Starts(nil))
	v.finish(0)
	s.Sent(100)
	v.finish(0)
	s.Input(append(AppendRequest(AppendRequest(nil, 0, CmdFlush, 4, 0, 0), 0, CmdWrite, 5, 0, 4096),
		make([]byte, 100)...))
	if s.out.N != 1 || s.held.N != 1 || len(s.starts) != 1 || len(v.begun) != 1 || s.Pending() != 3996 || v.lent != 1 {
		t.Fatalf("%d on their way, %d wait, %d not begun, %d begun, %d bytes owed, %d lent", s.out.N, s.held.N,
			len(s.starts), len(v.begun), s.Pending(), v.lent)
	}
	s.Fail(errMagic)
	if n := len(s.Starts(nil)) + len(s.Vectors(nil, 1)) + s.Pending() + v.lent; n != 0 ||
		!errors.Is(s.Err(), errMagic) {
		t.Errorf("%d are left, %v", n, s.Err())
	}
	v.finish(0)
	kept := map[*Task]bool{}
	for _, x := range s.tasks {
		if kept[x] = true; x.Payload != nil || x.command != nil {
			t.Errorf("a task that is kept holds %+v", x)
		}
	}
	if len(s.tasks) != 5 || len(kept) != 5 || v.lent != 0 || len(s.Vectors(nil, 1)) != 0 {
		t.Errorf("%d tasks are kept, %d of them once, %d lent", len(s.tasks), len(kept), v.lent)
	}
}

// TestDisconnect verifies that a disconnect is always accepted, that no input is consumed after it, that earlier
// commands are answered, and that the session is over then.
func TestDisconnect(t *testing.T) {
	v := &tape{size: 1 << 20}
	s := transmission(Export{Volume: v}, true, Limits{Depth: 1})
	b := AppendRequest(AppendRequest(nil, 0, CmdFlush, 1, 0, 0), 0, CmdDisconnect, 0, 0, 0)
	if n := s.Input(append(b, b...)); n != len(b) || !s.leaving || s.Over() || s.Drained() {
		t.Fatalf("%d of %d bytes are taken, leaving %v, over %v", n, len(b), s.leaving, s.Over())
	}
	v.Start(s.Starts(nil))
	v.finish(0)
	if s.Over() {
		t.Error("it is over before the answer is sent")
	}
	if got := heard(s); got != "reply of 1: error 0\n" || !s.Over() || s.Input(b) != 0 {
		t.Errorf("%q, over %v", got, s.Over())
	}
}

// TestFirstErrorCounts has two parts of a command fail with different errors: the client receives the first.
func TestFirstErrorCounts(t *testing.T) {
	for _, kind := range []Command{CmdRead, CmdWrite} {
		v := &tape{size: 1 << 20}
		s := transmission(Export{Volume: v}, true, DefaultLimits())
		b := AppendRequest(nil, 0, kind, 1, 0, 2*Window)
		if kind == CmdWrite {
			b = append(b, make([]byte, 2*Window)...)
		}
		for len(b) > 0 {
			b = b[s.Input(b):]
		}
		v.Start(s.Starts(nil))
		for _, v.fail = range []Errno{ENOSPC, EIO} {
			v.finish(0)
		}
		if got := heard(s); got != "chunk of 1: type 32769 error 28 \"no space left\", done\n" {
			t.Errorf("command %d: %q", kind, got)
		}
	}
}

// TestNothingIsAllocated repeats the common operations and verifies that they do not allocate.
func TestNothingIsAllocated(t *testing.T) {
	data := make([]byte, 4096)
	for _, structured := range []bool{true, false} {
		v := &tape{size: 1 << 20, written: 8192}
		s := transmission(Export{Volume: v}, structured, DefaultLimits())
		b := AppendRequest(AppendRequest(nil, 0, CmdRead, 1, 0, 12288), 0, CmdRead, 2, 0, Window+1)
		b = AppendRequest(AppendRequest(b, 0, CmdFlush, 3, 0, 0), CmdNoHole, CmdWriteZeroes, 4, 0, Window+1)
		b = AppendRequest(AppendRequest(b, 0, CmdBlockStatus, 5, 0, 16384), CmdNoHole, CmdRead, 6, 0, 1)
		starts, vectors := make([]*Task, 0, 16), make([][]byte, 0, 64)
		said := 0
		round := func() {
			s.Input(b)
			for s.active > 0 {
				starts = s.Starts(starts[:0])
				for _, x := range starts {
					for n := int(x.Length); n > 0 && x.Kind == Read; n -= 2 * len(data) {
						x.Pieces = append(x.Pieces, Piece{Data: data[:min(n, len(data))]})
						if n > len(data) {
							x.Pieces = append(x.Pieces, Piece{Zeros: min(n-len(data), len(data))})
						}
					}
					x.Done(x)
				}
				vectors = s.Vectors(vectors[:0], cap(vectors))
				n := 0
				for _, p := range vectors {
					n += len(p)
				}
				s.Sent(n)
				said += n
			}
		}
		for range 50 { // until every recycled task has been used for everything
			round()
		}
		if n := testing.AllocsPerRun(20, round); n > 0 || said < Window {
			t.Errorf("structured %v: %v times something is allocated, %d bytes are said", structured, n, said)
		}
	}
}
