package nbd

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"farflash/flash/reply"
	"farflash/internal/fifo"
)

const patch = 512 // bytes per uniform patch of a quilt

// quilt is a volume of data and holes whose tasks finish when the test decides.
type quilt struct {
	rapid   *rapid.T
	content []byte
	data    []bool // by patch
	begun   []*Task
	lent    int
	broken  bool // Extent fails
}

func newQuilt(t *rapid.T) *quilt {
	v := &quilt{rapid: t, content: make([]byte, 3*Window+rapid.IntRange(1, 2*Window).Draw(t, "size"))}
	v.data = make([]bool, len(v.content)/patch+1)
	longest := rapid.SampledFrom([]int{1, 3, 100, 2000}).Draw(t, "longest run")
	for at, is := 0, rapid.Bool().Draw(t, "begins with data"); at < len(v.data); is = !is {
		for n := 1 + at*7%longest; n > 0 && at < len(v.data); n-- {
			v.data[at] = is
			at++
		}
	}
	for i := range v.content {
		if v.data[i/patch] {
			v.content[i] = byte(1 + (i+i/patch*11)%251)
		}
	}
	return v
}

func (v *quilt) Size() uint64 { return uint64(len(v.content)) }

func (v *quilt) Start(tasks []*Task) { v.begun = append(v.begun, tasks...) }

func (v *quilt) Release(*Task) { v.lent-- }

// alike is the length, up to n, over which the bytes at offset are all data or all a hole.
func (v *quilt) alike(offset, n uint64) (length uint64, data bool) {
	end := offset/patch + 1
	for data = v.data[offset/patch]; end*patch < offset+n && v.data[end] == data; end++ {
	}
	return min(n, end*patch-offset), data
}

// Extent may report less than the full run.
func (v *quilt) Extent(offset, n uint64) (uint64, bool, error) {
	if v.broken {
		return 0, false, errMagic
	}
	length, data := v.alike(offset, n)
	if length > 2*patch && offset%3 == 0 {
		length /= 2
	}
	return length, data, nil
}

func (v *quilt) List() iter.Seq[Export] { return func(func(Export) bool) {} }

func (v *quilt) Open(string) (Export, error) { return Export{Volume: v}, nil }

// finish completes the i-th outstanding task.
func (v *quilt) finish(i int, e Errno) {
	t := v.begun[i]
	v.begun = slices.Delete(v.begun, i, i+1)
	if t.Err = e; e == 0 && t.Kind == Read {
		v.lent++
		for at, end := t.Offset, t.Offset+uint64(t.Length); at < end; {
			n, data := v.alike(at, min(end-at, 4096))
			p := Piece{Zeros: int(n)}
			if data {
				p = Piece{Data: v.content[at:][:n]}
			}
			t.Pieces = append(t.Pieces, p)
			at += n
		}
	}
	t.Done(t)
}

// span is a range of bytes.
type span struct {
	at uint64
	n  uint32
}

// tiles reports whether spans cover a range exactly once.
func tiles(spans []span, at uint64, n uint32) bool {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.at, b.at) })
	end := at + uint64(n)
	for _, s := range spans {
		if s.at != at {
			return false
		}
		at += uint64(s.n)
	}
	return at == end
}

// asked is a command from the client's point of view.
type asked struct {
	span
	kind     Command
	flags    uint16
	head     int     // offset of the end of its header in the client's output
	end      int     // offset of its end
	wrong    []Errno // errors that the protocol permits, if the command must be refused
	tasks    []span
	failed   Errno // error of the first task that failed
	got      []span
	extents  bool
	answered bool
}

// talker is a client that tracks its commands.
type talker struct {
	*rapid.T
	v          *quilt
	s          *Session
	structured bool
	context    bool
	readOnly   bool
	limits     Limits
	asked      []*asked // by cookie
	said       []byte   // sent, not yet consumed by the session
	total      int      // bytes sent in total
	heard      []byte   // received, not yet parsed
	seen       map[*Task]bool
}

// refusals returns the errors that the protocol permits for each reason to refuse the command.
func (a *asked) refusals(size uint64, structured, context, readOnly bool) (out []Errno) {
	why := func(is bool, e Errno) {
		if is {
			out = append(out, e)
		}
	}
	allowed := map[Command]uint16{
		CmdRead: CmdFUA, CmdWrite: CmdFUA, CmdFlush: CmdFUA, CmdTrim: CmdFUA, CmdCache: CmdFUA,
		CmdWriteZeroes: CmdFUA | CmdNoHole | CmdFastZero, CmdBlockStatus: CmdFUA | CmdOne,
	}
	if structured {
		allowed[CmdRead] |= CmdDF
	}
	flags, known := allowed[a.kind]
	changes := a.kind == CmdWrite || a.kind == CmdTrim || a.kind == CmdWriteZeroes
	beyond := a.kind != CmdFlush && (a.at > size || uint64(a.n) > size-a.at)
	grows := a.kind == CmdWrite || a.kind == CmdWriteZeroes
	why(!known, EINVAL)
	why(known && a.flags&^flags != 0, EINVAL)
	why(changes && readOnly, EPERM)
	why(known && beyond && grows, ENOSPC)
	why(known && beyond && !grows, EINVAL)
	why((a.kind == CmdRead || a.kind == CmdWrite) && a.n > MaxPayload, EINVAL)
	why(a.kind == CmdBlockStatus && (!context || a.n == 0), EINVAL)
	why(a.kind == CmdRead && structured && a.flags&CmdDF != 0 && a.n > Window, EOVERFLOW)
	why(a.kind == CmdWriteZeroes && a.flags&CmdNoHole != 0 && a.flags&CmdFastZero != 0, ENOTSUP)
	return out
}

// letter is byte i of a write's payload.
func letter(cookie uint64, i int) byte { return byte(uint64(i)*31 + cookie*17 + 5) }

// say sends a random command.
func (k *talker) say() {
	a := &asked{kind: Command(rapid.SampledFrom([]int{0, 0, 0, 1, 1, 3, 4, 5, 6, 6, 7, 7, 8}).Draw(k.T, "command"))}
	if rapid.IntRange(0, 2).Draw(k.T, "flagged") == 0 {
		a.flags = uint16(1) << rapid.IntRange(0, 5).Draw(k.T, "flag")
		a.flags |= uint16(rapid.SampledFrom([]int{0, 0, 0, CmdFUA, CmdNoHole}).Draw(k.T, "another flag"))
	}
	size := int(k.v.Size())
	a.at = uint64(rapid.IntRange(0, size).Draw(k.T, "at"))
	most := rapid.SampledFrom([]int{0, 10, 5000, Window, Window + 1, 3 * Window}).Draw(k.T, "most")
	a.n = uint32(rapid.IntRange(0, most).Draw(k.T, "n"))
	if rapid.IntRange(0, 9).Draw(k.T, "whole") == 0 {
		a.n = uint32(most)
	}
	if rapid.IntRange(0, 9).Draw(k.T, "beyond") > 0 {
		a.n = min(a.n, uint32(uint64(size)-a.at))
	} else {
		a.at = uint64(size) - uint64(min(a.n/2, 2*Window))
	}
	if a.kind == CmdFlush {
		a.span = span{}
	}
	a.wrong = a.refusals(k.v.Size(), k.structured, k.context, k.readOnly)
	cookie := uint64(len(k.asked))
	k.said = AppendRequest(k.said, a.flags, a.kind, cookie, a.at, a.n)
	k.total += requestSize
	a.head, a.end = k.total, k.total
	if a.kind == CmdWrite {
		for i := range int(a.n) {
			k.said = append(k.said, letter(cookie, i))
		}
		k.total += int(a.n)
		a.end = k.total
	}
	k.asked = append(k.asked, a)
}

// begun receives the tasks that the session issues.
func (k *talker) begun(tasks []*Task) {
	kinds := map[Command]Kind{CmdRead: Read, CmdWrite: Write, CmdFlush: Flush, CmdTrim: Trim, CmdCache: Cache,
		CmdWriteZeroes: Zero}
	for _, t := range tasks {
		k.seen[t] = true
		a := k.asked[t.command.cookie]
		a.tasks = append(a.tasks, span{t.Offset, t.Length})
		switch {
		case len(a.wrong) > 0:
			k.Fatalf("a task of a command that may not be: %+v", a)
		case t.Kind != kinds[a.kind] || t.Durable != (a.flags&CmdFUA != 0) || t.NoHole != (a.flags&CmdNoHole != 0) ||
			t.Err != 0:
			k.Fatalf("%+v has a task %+v", a, t)
		case t.Offset < a.at || t.Offset+uint64(t.Length) > a.at+uint64(a.n):
			k.Fatalf("a task of %d bytes at %d for %+v", t.Length, t.Offset, a)
		case t.Length > Window && t.Kind != Trim && (t.Kind != Zero || t.NoHole):
			k.Fatalf("a task of %d bytes", t.Length)
		case t.command.tasks > k.limits.Ahead:
			k.Fatalf("%d tasks of a command are under way", t.command.tasks)
		case t.Sole != (len(tasks) == 1 && k.s.active == 1):
			k.Fatalf("alone: %v, of %d tasks and %d commands", t.Sole, len(tasks), k.s.active)
		}
		for i, x := range t.Payload {
			if x != letter(t.command.cookie, int(t.Offset-a.at)+i) {
				k.Fatalf("byte %d of what %+v writes is %d", int(t.Offset-a.at)+i, a, x)
			}
		}
	}
	k.v.Start(tasks)
}

// hear parses replies.
func (k *talker) hear(b []byte) {
	k.heard = append(k.heard, b...)
	for {
		n := k.answer(k.heard)
		if n == 0 {
			return
		}
		k.heard = k.heard[n:]
	}
}

// of returns the command that a reply belongs to.
func (k *talker) of(cookie uint64) *asked {
	if cookie >= uint64(len(k.asked)) || k.asked[cookie].answered {
		k.Fatalf("an answer to %d", cookie)
	}
	return k.asked[cookie]
}

// answer parses one reply or chunk and returns its length, or 0 if it is incomplete.
func (k *talker) answer(b []byte) int {
	switch {
	case len(b) < 4:
		return 0
	case binary.BigEndian.Uint32(b) == magicSimple:
		if len(b) < simpleSize {
			return 0
		}
		h := SimpleHeader(b)
		a := k.of(h.Cookie())
		n := simpleSize
		if a.kind == CmdRead && h.Error() == 0 {
			if k.structured {
				k.Fatalf("a simple reply to a read")
			}
			if n += int(a.n); len(b) < n {
				return 0
			}
			k.data(a, a.at, b[simpleSize:n])
		}
		k.over(a, h.Error())
		return n
	case binary.BigEndian.Uint32(b) == magicStructured && k.structured:
		if len(b) < structuredSize || len(b) < structuredSize+int(ChunkHeader(b).Length()) {
			return 0
		}
		h := ChunkHeader(b)
		k.chunk(k.of(h.Cookie()), h, b[structuredSize:][:h.Length()])
		return structuredSize + int(h.Length())
	}
	k.Fatalf("no answer begins with % x", b[:4])
	return 0
}

func (k *talker) chunk(a *asked, h ChunkHeader, p []byte) {
	last, e := h.Flags()&ChunkDone != 0, Errno(0)
	switch h.Type() {
	case ChunkData:
		k.data(a, binary.BigEndian.Uint64(p), p[8:])
	case ChunkHole:
		k.data(a, binary.BigEndian.Uint64(p), make([]byte, binary.BigEndian.Uint32(p[8:])))
	case ChunkNone:
	case ChunkStatus:
		k.extents(a, p)
	case ChunkError:
		e = Errno(binary.BigEndian.Uint32(p))
		if text := p[6:]; int(binary.BigEndian.Uint16(p[4:])) != len(text) || string(text) != errnoNames[e] {
			k.Fatalf("error %d says %q", e, text)
		}
	default:
		k.Fatalf("a chunk of type %d", h.Type())
	}
	if last {
		k.over(a, e)
	} else if e != 0 {
		k.Fatalf("an error that ends nothing")
	}
}

// data checks a part of a read.
func (k *talker) data(a *asked, at uint64, p []byte) {
	if a.kind != CmdRead || at < a.at || at+uint64(len(p)) > a.at+uint64(a.n) ||
		!bytes.Equal(p, k.v.content[at:][:len(p)]) {
		k.Fatalf("%+v has %d wrong bytes at %d", a, len(p), at)
	}
	if len(p) > 0 {
		a.got = append(a.got, span{at, uint32(len(p))})
	}
}

// extents checks a block status reply.
func (k *talker) extents(a *asked, p []byte) {
	if a.kind != CmdBlockStatus || a.extents || binary.BigEndian.Uint32(p) != allocationID {
		k.Fatalf("extents of %+v", a)
	}
	a.extents = true
	at, left, n := a.at, uint64(a.n), 0
	for p = p[4:]; len(p) > 0; p = p[8:] {
		length, data := k.v.alike(at, left)
		state := uint32(StateHole | StateZero)
		if data {
			state = 0
		}
		if got, was := uint64(binary.BigEndian.Uint32(p)), binary.BigEndian.Uint32(p[4:]); was != state ||
			got != length && (len(p) > 8 || got == 0 || got > length) {
			k.Fatalf("extent %d of %+v: %d bytes, state %d, not %d and %d", n, a, got, was, length, state)
		}
		at, left, n = at+length, left-length, n+1
	}
	one := a.flags&CmdOne != 0
	if n == 0 || one && n > 1 || n > maxExtents || left > 0 && !one && n < maxExtents {
		k.Fatalf("%d extents answer %+v, %d bytes are left", n, a, left)
	}
}

// over checks the end of a reply.
func (k *talker) over(a *asked, e Errno) {
	a.answered = true
	switch {
	case len(a.wrong) > 0:
		if !slices.Contains(a.wrong, e) {
			k.Fatalf("error %d answers %+v", e, a)
		}
	case a.kind == CmdBlockStatus:
		if (e == EIO) != k.v.broken || e != 0 && e != EIO || a.extents == k.v.broken {
			k.Fatalf("error %d answers %+v", e, a)
		}
	case e != a.failed:
		k.Fatalf("error %d answers %+v", e, a)
	case e != 0:
	case a.kind == CmdRead && !tiles(a.got, a.at, a.n):
		k.Fatalf("%+v has not every byte once", a)
	case a.kind == CmdFlush && len(a.tasks) != 1:
		k.Fatalf("%d tasks of a flush", len(a.tasks))
	case !tiles(a.tasks, a.at, a.n):
		k.Fatalf("the tasks of %+v are not all of it", a)
	}
}

// taken is the number of the client's bytes that the session has consumed.
func (k *talker) taken() int { return k.total - len(k.said) }

// all returns the tasks that the session holds, outside the volume.
func (s *Session) all() []*Task {
	all := slices.Clone(s.starts)
	for _, q := range []*fifo.Ring[*reply.Output[Task]]{&s.out.Ring, &s.held} {
		for i := range q.N {
			all = append(all, (*q.At(i)).Task)
		}
	}
	if s.filling != nil {
		all = append(all, s.filling)
	}
	return all
}

// check compares the session's state with the client's.
func (k *talker) check() {
	owed, open, coming := 0, 0, 0
	for _, a := range k.asked {
		if a.head > k.taken() {
			break
		}
		if a.end > k.taken() {
			owed = a.end - k.taken()
			if len(a.wrong) == 0 {
				coming++
			}
		}
		if !a.answered {
			open++
		}
	}
	s := k.s
	idle := s.Drained() && s.Pending() == 0 // as package driver concludes
	if s.Pending() != owed || s.active != open || idle != (open == 0 && owed == 0) ||
		s.Drained() != (open == coming) {
		k.Fatalf("%d bytes are owed, not %d; %d commands are under way, not %d; idle %v, drained %v", s.Pending(), owed,
			s.active, open, idle, s.Drained())
	}
	used := 0 // memory in use by tasks of the volume and by output waiting for the client
	for _, t := range append(s.all(), k.v.begun...) {
		if t.Kind == Read || t.Kind == Write {
			used += int(t.Length)
		}
	}
	if s.active > k.limits.Depth || used > s.memory || s.memory > k.limits.Memory {
		k.Fatalf("%d commands have %d bytes and are charged %d, of %+v", s.active, used, s.memory, k.limits)
	}
}

// listen sends some of the pending output.
func (k *talker) listen(all bool) {
	most := 1 << 20
	if !all {
		most = rapid.IntRange(1, 6).Draw(k.T, "vectors")
	}
	vectors := k.s.Vectors(nil, most)
	if len(vectors) > most || slices.ContainsFunc(vectors, func(v []byte) bool { return len(v) == 0 }) {
		k.Fatalf("%d vectors, not %d, or one of no bytes", len(vectors), most)
	}
	b := slices.Concat(vectors...)
	if !all && len(b) > 0 {
		b = b[:rapid.IntRange(1, len(b)).Draw(k.T, "sent")]
	}
	k.s.Sent(len(b))
	k.hear(b)
}

// talk passes some of the client's bytes to the session.
func (k *talker) talk(all bool) {
	n := len(k.said)
	if !all {
		n = rapid.IntRange(0, n).Draw(k.T, "comes")
	}
	before := len(k.said)
	if sink := k.s.Sink(); sink != nil && rapid.Bool().Draw(k.T, "sink") {
		n = copy(sink, k.said[:n])
		k.said = k.said[n:]
		k.s.Sunk(n)
	} else {
		used := k.s.Input(k.said[:n])
		k.said = k.said[used:]
		header := true // the next header is incomplete
		for _, a := range k.asked {
			header = header && (a.end <= k.taken() || a.head > k.taken())
		}
		if used < n && !k.s.stalled && (n-used >= requestSize || !header) {
			k.Fatalf("%d of %d bytes are taken", used, n)
		}
	}
	if len(k.said) == before && k.s.stalled && k.s.active == 0 {
		k.Fatalf("a session that has nothing to do waits")
	}
}

// end completes a task, sometimes with an error.
func (k *talker) end(i int, fails bool) {
	e := Errno(0)
	if fails && rapid.IntRange(0, 7).Draw(k.T, "fails") == 0 {
		e = rapid.SampledFrom([]Errno{EIO, ENOSPC}).Draw(k.T, "error")
	}
	a := k.asked[k.v.begun[i].command.cookie]
	if a.failed == 0 {
		a.failed = e
	}
	k.v.finish(i, e)
}

// TestAnySession has a client send valid and invalid commands, in pieces, to a volume whose tasks complete in any order
// and may fail. An independently written client parses the replies: each command has exactly one, with every byte of a
// read once, the correct error, or the correct extents; tasks cover what was asked for exactly once. Limits hold, and
// when the session ends, at any point, no resource leaks.
func TestAnySession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := &talker{T: t, v: newQuilt(t), seen: map[*Task]bool{}}
		k.structured = rapid.Bool().Draw(t, "structured")
		k.context = k.structured && rapid.IntRange(0, 3).Draw(t, "no context") > 0
		k.readOnly = rapid.IntRange(0, 5).Draw(t, "read only") == 0
		k.v.broken = rapid.IntRange(0, 5).Draw(t, "extents fail") == 0
		k.limits = Limits{
			Depth:  rapid.IntRange(1, 6).Draw(t, "depth"),
			Memory: Window * rapid.IntRange(1, 5).Draw(t, "windows"),
			Ahead:  rapid.IntRange(1, 4).Draw(t, "ahead"),
		}
		h := &Handshake{chosen: Export{Volume: k.v, ReadOnly: k.readOnly}, structured: k.structured, context: k.context}
		k.s = NewSession(h, k.limits, func(t *Task) { k.s.Finish(t) })
		leaves := rapid.Bool().Draw(t, "leaves")
		breaks := -1 // steps until the connection breaks
		if rapid.IntRange(0, 3).Draw(t, "breaks") == 0 {
			breaks = rapid.IntRange(5, 60).Draw(t, "steps")
		}
		for left := rapid.IntRange(1, 12).Draw(t, "commands"); ; {
			draining := left == 0 && rapid.IntRange(0, 3).Draw(t, "on with it") == 0
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				if left > 0 {
					left--
					k.say()
					if left == 0 && leaves {
						k.said = AppendRequest(k.said, 0, CmdDisconnect, 0, 0, 0)
						k.total += requestSize
					}
				}
			case 1:
				k.talk(draining)
			case 2:
				if n := len(k.v.begun); n > 0 {
					k.end(rapid.IntRange(0, n-1).Draw(t, "ends"), true)
				}
			case 3:
				k.listen(draining)
			case 4:
				k.s.Detach()
				if k.v.lent != 0 {
					t.Fatalf("%d reads are lent after Detach", k.v.lent)
				}
			}
			if breaks--; k.s.Err() != nil || breaks == 0 {
				break
			}
			k.begun(k.s.Starts(nil))
			k.check()
			if left == 0 && len(k.said) == 0 && k.s.active == 0 {
				break
			}
		}
		broken := k.s.Err()
		switch {
		case breaks == 0: // unanswered commands stay unanswered
		case broken == nil:
			k.complete(leaves)
		case !slices.ContainsFunc(k.asked, func(a *asked) bool {
			return !k.structured && a.kind == CmdRead && a.n > Window && a.failed != 0 && !a.answered
		}):
			t.Fatal(broken)
		}
		for _, x := range k.s.all() {
			k.seen[x] = true
		}
		k.s.Fail(errMagic)
		if n := len(k.s.Starts(nil)) + len(k.s.Vectors(nil, 1)) + len(k.s.Sink()) +
			k.s.Input(make([]byte, requestSize)); n > 0 {
			t.Fatal("a session that has ended goes on")
		}
		for len(k.v.begun) > 0 {
			k.end(0, false)
		}
		if k.v.lent != 0 {
			t.Fatalf("%d reads are lent for ever", k.v.lent)
		}
		k.kept()
	})
}

// complete verifies that a session without outstanding work has answered every command and holds no memory.
func (k *talker) complete(leaves bool) {
	if unanswered := slices.IndexFunc(k.asked, func(a *asked) bool { return !a.answered }); unanswered >= 0 {
		k.Fatalf("%+v has no answer", k.asked[unanswered])
	}
	if k.s.memory != 0 || k.s.Over() != leaves || k.s.leaving != leaves || len(k.heard) > 0 {
		k.Fatalf("%d bytes are left, over %v, leaving %v, %d bytes are no answer", k.s.memory, k.s.Over(),
			k.s.leaving, len(k.heard))
	}
}

// kept verifies that every task was recycled exactly once and without references.
func (k *talker) kept() {
	kept := map[*Task]bool{}
	for _, x := range k.s.tasks {
		kept[x] = true
		pieces, vectors := x.Pieces[:cap(x.Pieces)], x.answer.Vec[:cap(x.answer.Vec)]
		if x.Payload != nil || x.command != nil ||
			slices.ContainsFunc(pieces, func(p Piece) bool { return p.Data != nil }) ||
			slices.ContainsFunc(vectors, func(v []byte) bool { return v != nil }) {
			k.Fatalf("a task that is kept holds %+v", x)
		}
	}
	if len(kept) != len(k.s.tasks) {
		k.Fatal("a task is kept twice")
	}
	for x := range k.seen {
		if !kept[x] {
			k.Fatal("a task was not kept for later")
		}
	}
}
