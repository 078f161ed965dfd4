package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"farflash/flash/wire"
	"farflash/flash/wire/wiretest"
	"farflash/internal/inputs"
)

// encode wraps a segment in an FPDU, as the connection code does.
func encode(f *wire.Framer, segment []byte) []byte {
	b := make([]byte, 0, len(segment)+f.Overhead(len(segment)))
	b = f.Begin(b, len(segment))
	copy(b[len(b)-len(segment):], segment)
	return f.End(b)
}

// reframe is encode with a caller-supplied pad, because siw pads with leftover memory instead of zeros.
func reframe(f *wire.Framer, segment, pad []byte) []byte {
	b := make([]byte, 0, len(segment)+f.Overhead(len(segment)))
	b = f.Begin(b, len(segment))
	copy(b[len(b)-len(segment):], segment)
	return f.End(append(b, pad...))
}

// again re-encodes a segment from its decoded headers.
func again(t testing.TB, s wire.Segment) []byte {
	t.Helper()
	b := make([]byte, s.HeaderLength(), len(s))
	if s.IsTagged() {
		h := wire.Tagged(s)
		wire.TaggedFields{Op: s.Op(), Last: s.Last(), STag: h.STag(), Offset: h.Offset()}.Put(b)
		return append(b, s.Payload()...)
	}
	h := wire.Untagged(s)
	wire.UntaggedFields{Op: s.Op(), Last: s.Last(), Invalidate: h.Invalidate(), Queue: h.Queue(),
		Sequence: h.Sequence(), Offset: h.Offset()}.Put(b)
	p := s.Payload()
	switch {
	case s.Op() == wire.ReadReq && len(p) == wire.ReadRequestLength:
		b = b[:len(b)+len(p)]
		wire.ReadRequest(p).Fields().Put(b[wire.UntaggedLength:])
	case s.Op() == wire.AtomicReq && len(p) == wire.AtomicRequestLength:
		b = b[:len(b)+len(p)]
		wire.AtomicRequest(p).Fields().Put(b[wire.UntaggedLength:])
	case s.Op() == wire.AtomicResp && len(p) == wire.AtomicResponseLength:
		b = b[:len(b)+len(p)]
		h := wire.AtomicResponse(p)
		wire.AtomicResponseFields{ID: h.ID(), Original: h.Original()}.Put(b[wire.UntaggedLength:])
	default:
		b = append(b, p...)
	}
	return b
}

// unescape interprets s as a Go string literal without quotes.
func unescape(t testing.TB, s string) string {
	t.Helper()
	s, err := strconv.Unquote(`"` + strings.TrimSpace(s) + `"`)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRFC5044Figures verifies the two FPDUs that RFC 5044 prints with their CRCs: one at the start of a stream, one
// with an embedded marker.
func TestRFC5044Figures(t *testing.T) {
	send := func(sequence uint32, payload int) []byte {
		b := make([]byte, wire.UntaggedLength+payload)
		wire.UntaggedFields{Op: wire.Send, Last: true, Sequence: sequence}.Put(b)
		return b
	}
	figure5 := unhex(t, "00000000 002a 4143 00000000 00000000 00000001 00000000"+strings.Repeat("00", 24)+"52239983")
	f := wire.Framer{CRC: true, Markers: true}
	if got := encode(&f, send(1, 24)); !bytes.Equal(got, figure5) {
		t.Errorf("figure 5 is\n%x, want\n%x", got, figure5)
	}
	// Figure 6 starts at octet 0x1ec, so the FPDU before it is 492 bytes long.
	figure6 := unhex(t, "002a 4143 00000000 00000000 00000002 00000000 00000014"+strings.Repeat("00", 24)+"84925898")
	f = wire.Framer{CRC: true, Markers: true}
	first := encode(&f, send(1, 492-4-6-18))
	if len(first) != 492 {
		t.Fatalf("the first FPDU has %d bytes", len(first))
	}
	second := encode(&f, send(2, 24))
	if !bytes.Equal(second, figure6) {
		t.Errorf("figure 6 is\n%x, want\n%x", second, figure6)
	}
	d := wire.Deframer{CRC: true, Markers: true}
	for i, b := range [][]byte{first, second} {
		s, n, err := d.Next(b)
		if err != nil || n != len(b) {
			t.Fatalf("FPDU %d: %d bytes, %v", i, n, err)
		}
		wiretest.Segment(t, s, wiretest.Op(wire.Send), wiretest.Last(true), wiretest.Sequence(uint32(i+1), 0))
	}
}

// TestHeaders runs the cases in testdata: fields to bytes and back, with expected bytes derived by hand from the RFCs'
// figures.
func TestHeaders(t *testing.T) {
	datadriven.RunTest(t, "testdata/headers", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		num := func(key string) (v uint64) {
			if d.HasArg(key) {
				var s string
				d.ScanArgs(t, key, &s)
				if _, err := fmt.Sscanf(s, "%v", &v); err != nil {
					d.Fatalf(t, "%s: %v", key, err)
				}
			}
			return v
		}
		op := func() wire.Op { return wire.Op(num("op")) }
		b := make([]byte, 1024)
		switch d.Cmd {
		case "tagged":
			f := wire.TaggedFields{Op: op(), Last: d.HasArg("last"), STag: uint32(num("stag")), Offset: num("offset")}
			f.Put(b)
			b = b[:wire.TaggedLength]
			s, h := wire.Segment(b), wire.Tagged(b)
			if back := (wire.TaggedFields{Op: s.Op(), Last: s.Last(), STag: h.STag(),
				Offset: h.Offset()}); !s.IsTagged() || back != f {
				t.Errorf("%+v comes back as %+v", f, back)
			}
		case "untagged":
			f := wire.UntaggedFields{Op: op(), Last: d.HasArg("last"), Invalidate: uint32(num("invalidate")),
				Queue: uint32(num("queue")), Sequence: uint32(num("sequence")), Offset: uint32(num("offset"))}
			f.Put(b)
			b = b[:wire.UntaggedLength]
			s, h := wire.Segment(b), wire.Untagged(b)
			if back := (wire.UntaggedFields{Op: s.Op(), Last: s.Last(), Invalidate: h.Invalidate(), Queue: h.Queue(),
				Sequence: h.Sequence(), Offset: h.Offset()}); s.IsTagged() || back != f {
				t.Errorf("%+v comes back as %+v", f, back)
			}
		case "read":
			wire.ReadRequestFields{SinkSTag: uint32(num("sink")), SinkOffset: num("to"), Size: uint32(num("size")),
				SourceSTag: uint32(num("source")), SourceOffset: num("from")}.Put(b)
			b = b[:wire.ReadRequestLength]
		case "atomic":
			f := wire.AtomicRequestFields{Op: wire.AtomicOp(op()), ID: uint32(num("id")), STag: uint32(num("stag")),
				Offset: num("offset")}
			f.Operand = wire.Operand{Data: num("data"), Mask: num("mask"), Compare: num("compare"),
				CompareMask: num("comparemask")}
			f.Put(b)
			b = b[:wire.AtomicRequestLength]
			if got := wire.AtomicRequest(b).Fields(); got != f {
				t.Errorf("%+v comes back as %+v", f, got)
			}
		case "original":
			wire.AtomicResponseFields{ID: uint32(num("id")), Original: num("original")}.Put(b)
			b = b[:wire.AtomicResponseLength]
		case "terminate":
			f := wire.TerminateFields{Fault: wire.Fault{Layer: wire.Layer(num("layer")), Type: uint8(num("type")),
				Code: uint8(num("code"))}, Length: uint16(num("length"))}
			if d.HasArg("header") {
				f.Header = make([]byte, num("header"))
				if len(f.Header) == wire.TaggedLength {
					f.Header[0] = 0x81
				}
			}
			if d.HasArg("request") {
				f.Request = make([]byte, wire.ReadRequestLength)
			}
			b = b[:f.Put(b)]
			fmt.Fprintln(&out, wire.Terminate(b).Fault())
		case "parse-terminate":
			term := wire.Terminate(unhex(t, d.Input))
			header, request, length := term.Segment()
			return fmt.Sprintf("%v\nheader %d bytes, request %d bytes, length %d\n", term.Fault(), len(header),
				len(request), length)
		case "startup":
			f := wire.StartupFields{Reply: d.HasArg("reply"), Markers: d.HasArg("markers"), CRC: d.HasArg("crc"),
				Reject: d.HasArg("reject"), Revision: uint8(num("rev"))}
			f.Enhanced, f.PeerToPeer, f.RTR = d.HasArg("enhanced"), d.HasArg("peer"), wire.RTR(num("rtr"))
			f.IRD, f.ORD = uint16(num("ird")), uint16(num("ord"))
			f.Private = []byte(strings.TrimSpace(d.Input))
			b = b[:f.Put(b)]
			back := wire.Startup(b).Fields()
			if fmt.Sprint(back) != fmt.Sprint(f) {
				t.Errorf("%+v comes back as %+v", f, back)
			}
			n, err := wire.CheckStartup(b, f.Reply)
			fmt.Fprintf(&out, "%s %d %v\n", b[:16], n, err)
			b = b[16:]
		case "check-startup":
			n, err := wire.CheckStartup([]byte(unescape(t, d.Input)), d.HasArg("reply"))
			return fmt.Sprintf("%d %v\n", n, err)
		default:
			d.Fatalf(t, "unknown command")
		}
		for len(b) > 0 {
			n := min(4, len(b))
			fmt.Fprintf(&out, "%x ", b[:n])
			b = b[n:]
		}
		return strings.TrimRight(out.String(), " ") + "\n"
	})
}

// TestFrames verifies that segments of any length round-trip through FPDUs, with and without markers, however the
// stream is split.
func TestFrames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, crc := range []bool{false, true} {
		for _, markers := range []bool{false, true} {
			f, d := wire.Framer{CRC: crc, Markers: markers}, wire.Deframer{CRC: crc, Markers: markers}
			var stream []byte
			var want [][]byte
			lengths := []int{0, 1, 2, 3, 4, 494, 500, 501, 502, 503, 504, 505, 506, 507, 508, 509, 510, 511, 512,
				1010, 1016, 4110, wire.Limit(markers)}
			for range 300 {
				lengths = append(lengths, r.IntN(1200))
			}
			for _, n := range lengths {
				s := make([]byte, n)
				for i := range s {
					s[i] = byte(r.Uint32())
				}
				want = append(want, s)
				b := encode(&f, s)
				if len(b) > n+f.Overhead(n) || len(b) > wire.MaxFPDU {
					t.Fatalf("%d bytes become %d, beyond Overhead's %d", n, len(b), f.Overhead(n))
				}
				if !markers && len(b) != wire.Size(n) {
					t.Fatalf("%d bytes become %d, not Size's %d", n, len(b), wire.Size(n))
				}
				stream = append(stream, b...)
			}
			if markers {
				for at := 0; at+4 <= len(stream); at += 512 {
					if p := int(stream[at+2])<<8 | int(stream[at+3]); p%4 != 0 || stream[at] != 0 ||
						stream[at+1] != 0 || p > at {
						t.Fatalf("at %d there is no marker but %x", at, stream[at:at+4])
					}
				}
			}
			var have []byte
			for i, s := range want {
				for {
					got, n, err := d.Next(have)
					if err != nil {
						t.Fatalf("segment %d: %v", i, err)
					}
					if got != nil {
						if !bytes.Equal(got, s) {
							t.Fatalf("crc %v markers %v: segment %d of %d bytes comes back with %d bytes", crc,
								markers, i, len(s), len(got))
						}
						have = have[n:]
						break
					}
					if n <= len(have) {
						t.Fatalf("segment %d: %d bytes are needed, and there are %d", i, n, len(have))
					}
					more := 1 + r.IntN(n-len(have))
					have = append(have, stream[:more]...)
					stream = stream[more:]
				}
			}
			if len(stream)+len(have) != 0 {
				t.Errorf("%d bytes are left", len(stream)+len(have))
			}
		}
	}
}

// TestCorruption verifies that the CRC detects every flipped bit of an FPDU, and that a wrong marker under a correct
// CRC is detected by its pointer.
func TestCorruption(t *testing.T) {
	for _, markers := range []bool{false, true} {
		f := wire.Framer{CRC: true, Markers: markers}
		whole := encode(&f, make([]byte, 600))
		for bit := range len(whole) * 8 {
			b := slices.Clone(whole)
			b[bit/8] ^= 1 << (bit % 8)
			d := wire.Deframer{CRC: true, Markers: markers}
			s, n, err := d.Next(b)
			if s != nil || err == nil && n <= len(b) || err != nil && !errors.Is(err, wire.FaultCRC) {
				t.Fatalf("markers %v, bit %d: segment of %d bytes, %d, %v", markers, bit, len(s), n, err)
			}
		}
	}
	f := wire.Framer{Markers: true}
	b := encode(&f, make([]byte, 600))
	b[512+3] ^= 4
	d := wire.Deframer{Markers: true}
	if _, _, err := d.Next(b); !errors.Is(err, wire.FaultMarker) {
		t.Errorf("a wrong marker gives %v", err)
	}
}

// TestOperand compares Apply with RFC 7306's bit-by-bit description.
func TestOperand(t *testing.T) {
	naive := func(old, data, mask uint64) (sum uint64) {
		var carry uint64
		for bit := range 64 {
			s := carry + old>>bit&1 + data>>bit&1
			sum |= s & 1 << bit
			carry = s >> 1
			if mask>>bit&1 != 0 {
				carry = 0
			}
		}
		return sum
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 20000 {
		old, data, mask := r.Uint64(), r.Uint64(), r.Uint64()
		switch i % 4 {
		case 0:
			mask = 0
		case 1:
			mask = 1 << r.IntN(64)
		case 2:
			mask &= r.Uint64() & r.Uint64()
		}
		if got, want := (wire.Operand{Data: data, Mask: mask}).Apply(wire.FetchAdd, old),
			naive(old, data, mask); got != want {
			t.Fatalf("%x + %x in fields %x is %x, want %x", old, data, mask, got, want)
		}
	}
	all := ^uint64(0)
	for _, c := range []struct{ old, data, mask, compare, comparemask, want uint64 }{
		{5, 7, all, 5, all, 7},
		{5, 7, all, 6, all, 5},
		{0xFF00, 0x00AB, 0xFF, 0xFF12, 0xFF00, 0xFFAB},
		{1, 2, all, 99, 0, 2},
	} {
		o := wire.Operand{Data: c.data, Mask: c.mask, Compare: c.compare, CompareMask: c.comparemask}
		if got := o.Apply(wire.CmpSwap, c.old); got != c.want {
			t.Errorf("%+v: %x", c, got)
		}
	}
}

// TestFaultsHaveNames verifies that Error includes the three numbers for every fault, including codes that no RFC
// defines.
func TestFaultsHaveNames(t *testing.T) {
	for layer := range 17 {
		for typ := range 16 {
			for _, code := range []uint8{0, 1, 9, 0xFF} {
				if s := (wire.Fault{Layer: wire.Layer(layer), Type: uint8(typ),
					Code: code}).Error(); !strings.Contains(s, fmt.Sprintf("(%d/%d/", layer, typ)) {
					t.Errorf("%d/%d/%d: %s", layer, typ, code, s)
				}
			}
		}
	}
	if got := wire.FaultReadBounds.Error(); got != "RDMAP: base or bounds violation (0/1/0x01)" {
		t.Error(got)
	}
	if s := wire.Op(15).String(); s != "Op(15)" {
		t.Error(s)
	}
}

// replay decodes a stream, verifies that it re-encodes to the same bytes, and returns the number of segments per
// opcode.
func replay(t *testing.T, stream []byte, reply bool, crc, markers bool) map[wire.Op]int {
	t.Helper()
	n, err := wire.CheckStartup(stream, reply)
	if err != nil {
		t.Fatal(err)
	}
	startup := wire.Startup(stream[:n])
	b := make([]byte, n)
	if startup.Fields().Put(b); !bytes.Equal(b, startup) {
		t.Errorf("the startup frame\n%x comes back as\n%x", []byte(startup), b)
	}
	stream = stream[n:]
	f, d := wire.Framer{CRC: crc, Markers: markers}, wire.Deframer{CRC: crc, Markers: markers}
	seen := map[wire.Op]int{}
	next := [wire.Queues]uint32{1, 1, 1, 1}
	for len(stream) > 0 {
		raw := slices.Clone(stream)
		s, n, err := d.Next(stream)
		if err != nil || s == nil {
			t.Fatalf("after %v: %d bytes of %d are needed, %v", seen, n, len(stream), err)
		}
		if !s.Op().Valid() {
			t.Fatalf("unknown opcode %v", s.Op())
		}
		wiretest.Segment(t, s, wiretest.Op(s.Op()))
		if !s.IsTagged() {
			q := s.Op().Queue()
			equal := wire.Untagged(s).Sequence()
			if equal != next[q] {
				t.Fatalf("%v has sequence number %d, want %d", s.Op(), equal, next[q])
			}
			if s.Last() {
				next[q]++
			}
		}
		seen[s.Op()]++
		var pad []byte
		if !markers {
			pad = raw[2+len(s) : n-4]
		}
		if got := reframe(&f, again(t, s), pad); !bytes.Equal(got, raw[:n]) {
			t.Fatalf("%v: the FPDU\n%x comes back as\n%x", s.Op(), raw[:n], got)
		}
		stream = stream[n:]
	}
	return seen
}

// TestCaptures decodes captures of siw of Linux and verifies that they re-encode to the same bytes.
func TestCaptures(t *testing.T) {
	for name, want := range map[string]map[wire.Op]int{
		"rping2.pcap": {wire.Write: 20, wire.ReadReq: 5, wire.ReadResp: 20, wire.Send: 20},
		"ibread.pcap": {wire.ReadReq: 200, wire.ReadResp: 600, wire.Send: 22},
	} {
		t.Run(name, func(t *testing.T) {
			streams := wiretest.Read(t, inputs.Path(t, "cases/iwarp/"+name))
			seen := map[wire.Op]int{}
			count := 0
			for i := 0; i+1 < len(streams); i += 2 {
				request, reply := streams[i], streams[i+1]
				if request.From != reply.To {
					t.Fatalf("streams %d and %d are not one connection", i, i+1)
				}
				crc := wire.Startup(request.Bytes).CRC() || wire.Startup(reply.Bytes).CRC()
				for side, s := range [][]byte{request.Bytes, reply.Bytes} {
					for op, n := range replay(t, s, side == 1, crc, false) {
						seen[op] += n
						count += n
					}
				}
			}
			if !maps.Equal(seen, want) {
				t.Errorf("%d segments are %v, want %v, which tshark counts", count, seen, want)
			}
		})
	}
}

// TestVectors does the same with the streams in testdata: handwritten connections that cover every opcode.
func TestVectors(t *testing.T) {
	files, err := filepath.Glob("testdata/vectors/*.hex")
	if err != nil || len(files) == 0 {
		t.Fatal("no vectors", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for l := range strings.Lines(string(text)) {
				l, _, _ = strings.Cut(l, "#")
				lines = append(lines, l)
			}
			b := unhex(t, strings.Join(lines, ""))
			replay(t, b, strings.Contains(path, "reply"), wire.Startup(b).CRC(), strings.Contains(path, "markers"))
		})
	}
}

// TestCaptureReads verifies that Read returns the streams that Capture wrote.
func TestCaptureReads(t *testing.T) {
	c := wiretest.NewCapture()
	c.Add(0, []byte("hello, "), 3)
	c.Add(1, []byte("yes"), 100)
	c.Add(0, []byte("world"), 100)
	path := filepath.Join(t.TempDir(), "c.pcap")
	if err := os.WriteFile(path, c.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	streams := wiretest.Read(t, path)
	if len(streams) != 2 || string(streams[0].Bytes) != "hello, world" || string(streams[1].Bytes) != "yes" {
		t.Errorf("%+v", streams)
	}
}

// TestSolicited verifies which messages request an event at the receiver (RFC 5040, 4.3; RFC 7306, 4.1).
func TestSolicited(t *testing.T) {
	for op := range wire.Op(16) {
		want := op == wire.SendSE || op == wire.SendSEInv || op == wire.ImmSE
		if op.Solicited() != want {
			t.Errorf("%v is solicited: %v", op, !want)
		}
	}
}

// TestFramesBehindOthers verifies that a frame's bytes do not depend on its position in the buffer.
func TestFramesBehindOthers(t *testing.T) {
	for _, markers := range []bool{false, true} {
		one, apart := wire.Framer{CRC: true, Markers: markers}, wire.Framer{CRC: true, Markers: markers}
		var want []byte
		got := append(make([]byte, 0, 1<<16), "before"...)
		for n := range 40 {
			p := bytes.Repeat([]byte{byte(n)}, 37*n)
			write := func(f *wire.Framer, b []byte) []byte {
				b = f.Begin(b, len(p))
				copy(b[len(b)-len(p):], p)
				return f.End(b)
			}
			got = write(&one, got)
			want = append(want, write(&apart, make([]byte, 0, 4096))...)
		}
		if !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Errorf("markers %v: frames behind others are not what they are by themselves", markers)
		}
	}
}

// TestTerminateOfSiw verifies that faults decode correctly in either bit layout.
func TestTerminateOfSiw(t *testing.T) {
	for _, x := range []struct {
		bytes [4]byte
		want  wire.Fault
	}{
		{[4]byte{0x01, 0x00, 0xe0, 0x00}, wire.FaultReadSTag}, {[4]byte{0x10, 0x00, 0x07, 0x00}, wire.FaultReadSTag},
		{[4]byte{0x12, 0x05, 0xc0, 0x00}, wire.FaultTooLong}, {[4]byte{0x21, 0x05, 0x03, 0x00}, wire.FaultTooLong},
		{[4]byte{0x02, 0x06, 0x40, 0x00}, wire.FaultOpcode}, {[4]byte{0x20, 0x06, 0x02, 0x00}, wire.FaultOpcode},
		{[4]byte{0x20, 0x02, 0x00, 0x00}, wire.FaultCRC},
	} {
		if got := wire.Terminate(x.bytes[:]).Fault(); got != x.want {
			t.Errorf("% x is %v, not %v", x.bytes, got, x.want)
		}
	}
}
