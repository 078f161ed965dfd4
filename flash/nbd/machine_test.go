package nbd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"

	"farflash/internal/patience"

	"github.com/cockroachdb/datadriven"
)

// tape is a volume whose tasks finish when the test decides. Bytes below written are letters, the rest is a hole.
type tape struct {
	size, written uint64
	begun         []*Task
	lent          int
	fail          Errno
	many          int // number of exports to list
}

func (v *tape) Size() uint64 { return v.size }

func (v *tape) Start(tasks []*Task) { v.begun = append(v.begun, tasks...) }

func (v *tape) Release(*Task) { v.lent-- }

func (v *tape) Extent(offset, n uint64) (uint64, bool, error) {
	if offset < v.written {
		return min(n, v.written-offset), true, nil
	}
	return n, false, nil
}

// finish completes the i-th outstanding task.
func (v *tape) finish(i int) {
	t := v.begun[i]
	v.begun = append(v.begun[:i], v.begun[i+1:]...)
	if t.Err = v.fail; t.Err == 0 && t.Kind == Read {
		v.lent++
		for at, end := t.Offset, t.Offset+uint64(t.Length); at < end; {
			if at >= v.written {
				t.Pieces = append(t.Pieces, Piece{Zeros: int(end - at)})
				break
			}
			n := min(end, v.written, at+4096) - at
			t.Pieces = append(t.Pieces, Piece{Data: bytes.Repeat([]byte{'a' + byte(at>>12%26)}, int(n))})
			at += n
		}
	}
	t.Done(t)
}

func (v *tape) List() iter.Seq[Export] {
	return func(yield func(Export) bool) {
		for range max(1, v.many) {
			if !yield(Export{Name: "disk", Description: "a tape"}) {
				return
			}
		}
	}
}

func (v *tape) Open(name string) (Export, error) {
	if name != "" && name != "disk" {
		return Export{}, errors.New("no such export")
	}
	return Export{Name: "disk", Description: "a tape", Volume: v}, nil
}

var words = map[string]uint64{
	"export-name": 1, "abort": 2, "list": 3, "starttls": 5, "info": 6, "go": 7, "structured": 8, "list-meta": 9,
	"set-meta": 10,
	"read":     0, "write": 1, "disconnect": 2, "flush": 3, "trim": 4, "cache": 5, "zeroes": 6, "status": 7,
}

func number(s string) uint64 {
	if n, ok := words[s]; ok {
		return n
	}
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		return 999
	}
	return n
}

// formatReplies formats the output of a handshake.
func formatReplies(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		if len(b) >= 20 && ReplyHeader(b).Magic() == magicReply {
			h := ReplyHeader(b)
			fmt.Fprintf(&out, "reply to %d: %#x %q\n", h.Option(), uint32(h.Reply()), b[20:20+h.Length()])
			b = b[20+h.Length():]
			continue
		}
		fmt.Fprintf(&out, "%d bytes: % x\n", len(b), b[:min(len(b), 20)])
		break
	}
	return out.String()
}

// sent formats the output of a session, including the data after simple replies to reads.
func sent(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		switch {
		case len(b) >= 20 && ChunkHeader(b).Valid():
			h := ChunkHeader(b)
			p := b[20 : 20+h.Length()]
			fmt.Fprintf(&out, "chunk of %d: type %d", h.Cookie(), h.Type())
			switch h.Type() {
			case ChunkData:
				fmt.Fprintf(&out, " at %d, %d bytes from %q", binary.BigEndian.Uint64(p), len(p)-8,
					p[8:min(len(p), 12)])
			case ChunkHole:
				fmt.Fprintf(&out, " at %d, %d bytes", binary.BigEndian.Uint64(p), binary.BigEndian.Uint32(p[8:]))
			case ChunkStatus:
				for q := p[4:]; len(q) > 0; q = q[8:] {
					fmt.Fprintf(&out, " %d:%d", binary.BigEndian.Uint32(q), binary.BigEndian.Uint32(q[4:]))
				}
			case ChunkError:
				fmt.Fprintf(&out, " error %d %q", binary.BigEndian.Uint32(p), p[6:])
			}
			if h.Flags()&ChunkDone != 0 {
				out.WriteString(", done")
			}
			out.WriteByte('\n')
			b = b[20+h.Length():]
		case len(b) >= 16 && SimpleHeader(b).Valid():
			fmt.Fprintf(&out, "reply of %d: error %d\n", SimpleHeader(b).Cookie(), SimpleHeader(b).Error())
			b = b[16:]
		default:
			fmt.Fprintf(&out, "%d bytes from %q\n", len(b), b[:min(4, len(b))])
			b = nil
		}
	}
	return out.String()
}

// TestSteps runs scripted exchanges; the files list the messages of both sides.
func TestSteps(t *testing.T) {
	datadriven.Walk(t, "testdata/steps", func(t *testing.T, path string) {
		v := &tape{size: 1 << 20, written: 8192}
		h := NewHandshake(v, NoTLS)
		var s *Session
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			flush := func() {
				for _, x := range s.Starts(nil) {
					fmt.Fprintf(&out, "begun: kind %d, %d bytes at %d, durable %v\n", x.Kind, x.Length, x.Offset,
						x.Durable)
					v.Start([]*Task{x})
				}
				var all []byte
				for _, p := range s.Vectors(nil, 10000) {
					all = append(all, p...)
				}
				s.Sent(len(all))
				out.WriteString(sent(all))
				if more := s.Starts(nil); len(more) > 0 {
					for _, x := range more {
						fmt.Fprintf(&out, "begun: kind %d, %d bytes at %d\n", x.Kind, x.Length, x.Offset)
					}
					v.Start(more)
				}
				if s.stalled {
					out.WriteString("stalled\n")
				}
				if s.Err() != nil {
					fmt.Fprintf(&out, "broken: %v\n", s.Err())
				}
				if s.Over() {
					out.WriteString("over\n")
				}
			}
			handshake := func() {
				out.WriteString(formatReplies(h.Output()))
				switch h.State() {
				case Ended:
					fmt.Fprintf(&out, "ended: %v\n", h.Err())
				case Upgrading:
					out.WriteString("upgrading\n")
				case Transmitting:
					e, structured, context := h.Chosen()
					fmt.Fprintf(&out, "transmitting %q, structured %v, context %v\n", e.Name, structured, context)
					s = NewSession(h, Limits{Depth: 4, Memory: 512 << 10, Ahead: 2}, func(t *Task) { s.Finish(t) })
				}
			}
			switch d.Cmd {
			case "server":
				mode := NoTLS
				if d.HasArg("offers-tls") {
					mode = OfferTLS
				}
				if d.HasArg("requires-tls") {
					mode = RequireTLS
				}
				d.MaybeScanArgs(t, "size", &v.size)
				h = NewHandshake(v, mode)
				handshake()
			case "secured":
				h.Secured(v)
			case "flags":
				h.Input(binary.BigEndian.AppendUint32(nil, uint32(number(d.CmdArgs[0].Key))))
				handshake()
			case "option":
				var p []byte
				for _, a := range d.CmdArgs[1:] {
					switch a.Key {
					case "letters":
						p = append(p, bytes.Repeat([]byte{'x'}, int(number(a.Vals[0])))...)
					case "zeros":
						p = append(p, make([]byte, number(a.Vals[0]))...)
					case "name":
						p = append(binary.BigEndian.AppendUint32(p, uint32(len(a.Vals[0]))), a.Vals[0]...)
					case "raw":
						p = append(p, a.Vals[0]...)
					case "u16":
						p = binary.BigEndian.AppendUint16(p, uint16(number(a.Vals[0])))
					case "u32":
						p = binary.BigEndian.AppendUint32(p, uint32(number(a.Vals[0])))
					}
				}
				h.Input(AppendOption(nil, Option(number(d.CmdArgs[0].Key)), p))
				handshake()
			case "bytes":
				h.Input([]byte(d.Input))
				handshake()
			case "command":
				var flags, cookie, at, n, payload uint64
				d.MaybeScanArgs(t, "flags", &flags)
				d.MaybeScanArgs(t, "cookie", &cookie)
				d.MaybeScanArgs(t, "at", &at)
				d.MaybeScanArgs(t, "n", &n)
				k := Command(number(d.CmdArgs[0].Key))
				if payload = n; k != CmdWrite {
					payload = 0
				}
				d.MaybeScanArgs(t, "payload", &payload)
				b := AppendRequest(nil, uint16(flags), k, cookie, at, uint32(n))
				b = append(b, make([]byte, payload)...)
				for len(b) > 0 && s.Err() == nil {
					k := s.Input(b)
					if b = b[k:]; k == 0 {
						fmt.Fprintf(&out, "%d bytes wait\n", len(b))
						break
					}
				}
				flush()
			case "finish":
				v.fail = 0
				var e uint64
				d.MaybeScanArgs(t, "error", &e)
				v.fail = Errno(e)
				v.finish(int(number(d.CmdArgs[0].Key)))
				flush()
			case "lent":
				fmt.Fprintf(&out, "%d\n", v.lent)
			default:
				d.Fatalf(t, "unknown step %s", d.Cmd)
			}
			return out.String()
		})
	})
}

// FuzzHandshake feeds arbitrary client bytes, whole and byte by byte: the replies are identical and bounded.
func FuzzHandshake(f *testing.F) {
	hello := []byte{0, 0, 0, 3}
	f.Add(hello, uint8(0))
	f.Add(AppendOption(AppendOption(hello, OptStructuredReply, nil), OptGo,
		[]byte("\x00\x00\x00\x04disk\x00\x01\x00\x03")), uint8(0))
	f.Add(AppendOption(AppendOption(hello, OptList, nil), OptSetMetaContext,
		[]byte("\x00\x00\x00\x04disk\x00\x00\x00\x01\x00\x00\x00\x0fbase:allocation")), uint8(1))
	f.Add(AppendOption(AppendOption(hello, OptStartTLS, nil), OptExportName, []byte("disk")), uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, mode uint8) {
		defer patience.Limit()()
		whole := NewHandshake(&tape{size: 1 << 20}, TLS(mode%3))
		n := whole.Input(b)
		drip := NewHandshake(&tape{size: 1 << 20}, TLS(mode%3))
		var have []byte
		used := 0
		for _, x := range b {
			if drip.State() != Negotiating {
				break
			}
			have = append(have, x)
			k := drip.Input(have)
			have, used = have[k:], used+k
			if len(have) > drip.Need() {
				t.Fatalf("%d bytes are kept", len(have))
			}
		}
		if errors.Is(whole.Err(), errInjected) {
			return // detected only if the bytes after the option are visible
		}
		if out := whole.Output(); !bytes.Equal(out, drip.Output()) || whole.State() != drip.State() || n != used {
			t.Fatalf("in one piece: %d bytes, state %d; byte by byte: %d, state %d", n, whole.State(), used,
				drip.State())
		}
	})
}

// FuzzSession feeds arbitrary client bytes while tasks complete in any order: all lent memory is returned, memory is
// bounded, and no range is out of bounds.
func FuzzSession(f *testing.F) {
	r := AppendRequest(nil, 0, CmdRead, 1, 4096, 300_000)
	f.Add(append(r, AppendRequest(nil, CmdFUA, CmdWriteZeroes, 2, 0, 1<<20)...), []byte{1, 2, 3}, true)
	f.Add(append(AppendRequest(r, 0, CmdWrite, 3, 100, 10), "0123456789"...), []byte{0}, false)
	f.Add(AppendRequest(AppendRequest(r, 0, CmdBlockStatus, 3, 0, 10), 0, CmdDisconnect, 0, 0, 0), []byte{9, 200}, true)
	f.Fuzz(func(t *testing.T, b, order []byte, structured bool) {
		defer patience.Limit()()
		v := &tape{size: 1 << 20, written: 500_000}
		h := NewHandshake(v, NoTLS)
		hello := []byte{0, 0, 0, 3}
		if structured {
			hello = AppendOption(AppendOption(hello, OptStructuredReply, nil), OptSetMetaContext,
				[]byte("\x00\x00\x00\x04disk\x00\x00\x00\x01\x00\x00\x00\x0fbase:allocation"))
		}
		h.Input(AppendOption(hello, OptGo, []byte("\x00\x00\x00\x04disk\x00\x00")))
		limits := Limits{Depth: 6, Memory: 1 << 20, Ahead: 3}
		var s *Session
		s = NewSession(h, limits, func(t *Task) { s.Finish(t) })
		next := func() int {
			if len(order) == 0 {
				return 0
			}
			x := order[0]
			order = order[1:]
			return int(x)
		}
		for range 4096 {
			k := s.Input(b[:min(len(b), 1+next()*7)])
			if sink := s.Sink(); k == 0 && sink != nil && next()%3 == 0 && len(b) > 0 {
				k = copy(sink, b)
				s.Sunk(k)
			}
			b = b[k:]
			starts := s.Starts(nil)
			for _, x := range starts {
				if x.Kind != Flush && (x.Offset > v.size || uint64(x.Length) > v.size-x.Offset) {
					t.Fatalf("a task of %d bytes at %d", x.Length, x.Offset)
				}
			}
			v.Start(starts)
			if s.memory > limits.Memory || s.active > limits.Depth {
				t.Fatalf("%d commands have %d bytes", s.active, s.memory)
			}
			if len(v.begun) > 0 {
				x := next()
				v.fail = Errno(x / 200 * 5)
				v.finish(x % len(v.begun))
			}
			if next()%5 == 4 {
				s.Detach()
			}
			if vec := s.Vectors(nil, 3); len(vec) > 0 {
				s.Sent(1 + next()*len(vec[0])/256)
			}
			if s.Err() != nil || s.Over() || len(b) == 0 && len(v.begun) == 0 && s.out.N == 0 && len(s.starts) == 0 {
				break
			}
		}
		over := s.err == nil && s.write == nil && s.skip == 0 && s.active == 0
		if over && (s.memory != 0 || v.lent != 0 || len(v.begun) != 0) {
			t.Fatalf("all is answered, and %d bytes, %d lent, %d tasks are left", s.memory, v.lent, len(v.begun))
		}
		s.Fail(errMagic)
		v.Start(s.Starts(nil))
		for len(v.begun) > 0 {
			v.finish(0)
		}
		if v.lent != 0 {
			t.Fatalf("%d reads are lent for ever", v.lent)
		}
	})
}

// TestNames verifies that a name is split off a payload only if it is complete.
func TestNames(t *testing.T) {
	for have := range 12 {
		for says := range uint32(16) {
			p := append(binary.BigEndian.AppendUint32(nil, says), bytes.Repeat([]byte("n"), have)...)
			s, rest, ok := name(p)
			if ok != (int(says) <= have) || ok && (len(s) != int(says) || len(rest) != have-len(s)) {
				t.Errorf("of %d bytes a name of %d is %q, %v", have, says, s, ok)
			}
		}
	}
	if _, _, ok := name([]byte{0, 0, 0}); ok {
		t.Error("there is a name in three bytes")
	}
}

// TestListIsBounded has a client request a long list 250 times, and the information about an export 32,000 times,
// before it reads: pending output is bounded, and each option is answered once there is space.
func TestListIsBounded(t *testing.T) {
	hello := []byte{0, 0, 0, 3}
	for name, c := range map[string]struct {
		exports, asked int
		option         []byte
		last           Reply
	}{
		"a list":          {1000, 250, AppendOption(nil, OptList, nil), ReplyAck},
		"too long a list": {1 << 20, 250, AppendOption(nil, OptList, nil), ReplyTooBig},
		"a name, for ever": {1, 20,
			AppendOption(nil, OptInfo,
				append([]byte("\x00\x00\x00\x04disk\x7d\x00"), bytes.Repeat([]byte{0, InfoName}, 32000)...)), ReplyAck},
	} {
		h := NewHandshake(&tape{size: 1 << 20, many: c.exports}, NoTLS)
		in, rounds := append(bytes.Clone(hello), bytes.Repeat(c.option, c.asked)...), 0
		ack := appendReply(nil, Option(binary.BigEndian.Uint32(c.option[8:])), c.last, nil)[:16]
		for answered := 0; answered < c.asked; rounds++ {
			in = in[h.Input(in):]
			out := h.Output()
			if len(out) > maxList+enough {
				t.Fatalf("%s: %d bytes wait to be sent", name, len(out))
			}
			if n := bytes.Count(out, ack); n > 0 {
				answered += n
			} else if rounds > 0 {
				t.Fatalf("%s: after %d answers there is none", name, answered)
			}
		}
		if len(in) > 0 || h.State() != Negotiating {
			t.Errorf("%s: %d bytes are left, state %d, %v", name, len(in), h.State(), h.Err())
		}
	}
}
