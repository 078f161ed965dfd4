package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"farflash/flash/nvme/host"
	"farflash/flash/nvme/wire"
	"farflash/internal/hostile"
	"farflash/internal/patience"
)

// rig drives one queue without I/O, with commands of all kinds.
type rig struct {
	*host.Queue
	t        testing.TB
	digests  wire.Digests
	done     int // commands
	begun    int
	commands []*host.Command // outstanding, and those that wait
}

const inCapsule = 1024

func newRig(t testing.TB, d wire.Digests, depth int) *rig {
	q, err := host.New(host.Config{Digests: d, Depth: depth, InCapsule: inCapsule})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{Queue: q, t: t, digests: d}
}

// submit begins a command with data.
func (r *rig) submit(out, in int) *host.Command {
	c := &host.Command{Request: wire.Request{Opcode: wire.Write, NSID: 1}}
	if in > 0 {
		c.Opcode, c.In = wire.Read, make([]byte, in)
	} else if out > 0 {
		c.Out = bytes.Repeat([]byte{byte(out)}, out)
	} else {
		c.Opcode = wire.Flush
	}
	before := bytes.Clone(c.Out)
	r.begun++
	r.commands = append(r.commands, c)
	c.Done = func() {
		r.done++
		if !bytes.Equal(c.Out, before) {
			r.t.Error("data to send were changed")
		}
		for i := range r.commands {
			if r.commands[i] == c {
				r.commands = append(r.commands[:i], r.commands[i+1:]...)
				return
			}
		}
		r.t.Error("a command is done twice")
	}
	r.Submit(c)
	return c
}

// output takes pending output, up to most bytes.
func (r *rig) output(most int) []byte {
	var out []byte
	for len(out) < most {
		vec := r.Vectors(nil, 5)
		if len(vec) == 0 {
			break
		}
		n := 0
		for _, v := range vec {
			v = v[:min(len(v), most-len(out))]
			out = append(out, v...)
			n += len(v)
		}
		r.Sent(n)
	}
	return out
}

// icresp is what a controller answers first.
func icresp(d wire.Digests, align uint8, limit uint32) []byte {
	return wire.IC{Align: align, Digests: d, Limit: limit}.Append(nil, wire.ICResp)
}

// sealed appends data to a header.
func sealed(b []byte, d wire.Digests, data []byte) []byte {
	b = append(b, data...)
	if d.Data {
		x := wire.Digest(0, data)
		b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return b
}

func c2h(d wire.Digests, flags uint8, x wire.Transfer, data []byte) []byte {
	return sealed(wire.AppendData(nil, wire.C2HData, d, flags, 0, x), d, data)
}

// answer passes bytes to the queue, a few at a time, all of which it must take.
func (r *rig) answer(b []byte, step int) {
	r.t.Helper()
	for len(b) > 0 && r.Err() == nil {
		taken := 0
		for n := min(step, len(b)); taken == 0 && r.Err() == nil; n = min(n+1, len(b)) {
			taken = r.Input(b[:n])
			if taken == 0 && n == len(b) && r.Err() == nil {
				r.t.Fatalf("%d bytes are not taken", len(b))
			}
		}
		b = b[taken:]
	}
}

// TestExchange runs a read, a write in its capsule and one by R2Ts, with all digests and in pieces of all sizes.
func TestExchange(t *testing.T) {
	for k := range 4 {
		d := wire.Digests{Header: k&1 != 0, Data: k&2 != 0}
		for _, step := range []int{1, 7, 1 << 20} {
			r := newRig(t, d, 8)
			read, small, large := r.submit(0, 600), r.submit(inCapsule, 0), r.submit(9000, 0)
			if b := r.output(1 << 20); len(b) != wire.ICSize {
				t.Fatalf("%d bytes before the ICResp", len(b))
			}
			r.answer(icresp(d, 1, 4096), step)
			if n := len(r.output(1 << 20)); n < 3*wire.CommandSize+inCapsule {
				t.Fatalf("%d bytes of capsules", n)
			}
			// In another order, the read in two parts, and with the success flag.
			r.answer(wire.AppendResponse(nil, d, wire.CQE{CID: small.CID, Result: 7}), step)
			if r.done != 1 || small.Status() != nil || small.CQE.Result != 7 {
				t.Errorf("%d done, %+v", r.done, small.CQE)
			}
			data := bytes.Repeat([]byte{1, 2, 3}, 200)
			r.answer(c2h(d, 0, wire.Transfer{Command: read.CID, Length: 400}, data[:400]), step)
			r.answer(c2h(d, wire.FlagLast|wire.FlagSuccess, wire.Transfer{Command: read.CID, Offset: 400, Length: 200},
				data[400:]), step)
			if r.done != 2 || read.Status() != nil || !bytes.Equal(read.In, data) {
				t.Errorf("%d done, %v", r.done, read.Status())
			}
			var sent []byte
			for _, x := range []wire.Transfer{{Command: large.CID, Tag: 3, Length: 5000},
				{Command: large.CID, Tag: 4, Offset: 5000, Length: 4000}} {
				r.answer(wire.AppendR2T(nil, d, x), step)
				for b := r.output(1 << 20); len(b) > 0; {
					h := wire.Common(b)
					if f, ok := h.Check(true, d, 4096); !ok || h.Offset%8 != 0 {
						t.Fatalf("%+v: %v", h, f)
					}
					y := wire.DecodeTransfer(b)
					if y.Tag != x.Tag || int(y.Offset) != len(sent) ||
						h.Flags&wire.FlagLast != 0 != (y.Offset+y.Length == x.Offset+x.Length) {
						t.Errorf("%+v for %+v", y, x)
					}
					sent = append(sent, b[h.Offset:][:y.Length]...)
					b = b[h.Length:]
				}
			}
			if !bytes.Equal(sent, large.Out) {
				t.Error("not the command's data were sent")
			}
			r.answer(wire.AppendResponse(nil, d, wire.CQE{CID: large.CID, Status: wire.WriteFault}), step)
			if r.done != 3 || !errors.Is(large.Status(), wire.WriteFault) || r.Outstanding() != 0 || r.Err() != nil {
				t.Errorf("%d done, %v, %v", r.done, large.Status(), r.Err())
			}
		}
	}
}

// TestEarlyAnswer verifies that a command keeps its memory until its data are sent, even if it is answered before.
func TestEarlyAnswer(t *testing.T) {
	r := newRig(t, wire.Digests{}, 1)
	first, second := r.submit(inCapsule, 0), r.submit(0, 0)
	r.output(1 << 20)
	r.answer(icresp(wire.Digests{}, 0, 4096), 1<<20)
	r.output(100) // of its capsule
	r.answer(wire.AppendResponse(nil, wire.Digests{}, wire.CQE{CID: first.CID, Status: wire.Aborted}), 1<<20)
	if r.done != 0 {
		t.Error("the command is done while its data are to be sent")
	}
	r.output(1 << 20)
	if r.done != 1 || !errors.Is(first.Status(), wire.Aborted) {
		t.Errorf("%d done, %v", r.done, first.Status())
	}
	r.answer(wire.AppendResponse(nil, wire.Digests{}, wire.CQE{CID: second.CID}), 1<<20)
	if r.done != 2 || second.Status() != nil {
		t.Errorf("the command that waited: %d done, %v", r.done, second.Status())
	}
}

// TestSpoiled verifies that data with a wrong digest fail their command only.
func TestSpoiled(t *testing.T) {
	d := wire.Digests{Data: true}
	r := newRig(t, d, 4)
	c, other := r.submit(0, 512), r.submit(0, 0)
	r.output(1 << 20)
	r.answer(icresp(d, 0, 4096), 1<<20)
	b := c2h(d, wire.FlagLast|wire.FlagSuccess, wire.Transfer{Command: c.CID, Length: 512}, make([]byte, 512))
	b[100] ^= 1
	r.output(1 << 20)
	r.answer(b, 1<<20)
	r.answer(wire.AppendResponse(nil, d, wire.CQE{CID: other.CID}), 1<<20)
	if r.done != 2 || !errors.Is(c.Status(), wire.TransientError) || other.Status() != nil || r.Err() != nil {
		t.Errorf("%d done, %v, %v, %v", r.done, c.Status(), other.Status(), r.Err())
	}
}

// TestViolations verifies that everything that a controller must not do ends the queue with its reason, and that all
// commands are then done with an error.
func TestViolations(t *testing.T) {
	const read, write = 4096, 8192
	success := uint8(wire.FlagLast | wire.FlagSuccess)
	none := wire.Digests{}
	for name, x := range map[string]struct {
		b     func(in, out uint16) []byte
		want  string
		fault wire.Fault // in the H2CTermReq (TCP 3.6.2.4): the status, and the offset of the field in the header
	}{
		"an answer to no command": {func(in, _ uint16) []byte {
			return wire.AppendResponse(nil, none, wire.CQE{CID: in + 1<<10})
		}, "not outstanding", wire.Fault{Status: wire.FaultHeader, Field: 20}},
		"an answer beyond the slots": {func(uint16, uint16) []byte {
			return wire.AppendResponse(nil, none, wire.CQE{CID: 1000})
		}, "not outstanding", wire.Fault{Status: wire.FaultHeader, Field: 20}},
		"success without data": {func(in, _ uint16) []byte {
			return wire.AppendResponse(nil, none, wire.CQE{CID: in})
		}, "before all data", wire.Fault{Status: wire.FaultSequence}},
		"success without R2T": {func(_, out uint16) []byte {
			return wire.AppendResponse(nil, none, wire.CQE{CID: out})
		}, "before all data", wire.Fault{Status: wire.FaultSequence}},
		"too little data and success": {func(in, _ uint16) []byte {
			return c2h(none, success, wire.Transfer{Command: in, Length: 8}, make([]byte, 8))
		}, "before all data", wire.Fault{Status: wire.FaultHeader, Field: 1}},
		"too much data": {func(in, _ uint16) []byte {
			return c2h(none, success, wire.Transfer{Command: in, Length: read + 4}, make([]byte, read+4))
		}, "more data", wire.Fault{Status: wire.FaultRange, Field: 16}},
		"data with a gap": {func(in, _ uint16) []byte {
			return c2h(none, 0, wire.Transfer{Command: in, Offset: 4, Length: 8}, make([]byte, 8))
		}, "out of order", wire.Fault{Status: wire.FaultRange, Field: 12}},
		"data after the last": {func(in, _ uint16) []byte {
			b := c2h(none, wire.FlagLast, wire.Transfer{Command: in, Length: 8}, make([]byte, 8))
			return append(b, c2h(none, 0, wire.Transfer{Command: in, Offset: 8, Length: 8}, make([]byte, 8))...)
		}, "out of order", wire.Fault{Status: wire.FaultRange, Field: 12}},
		"data for a write": {func(_, out uint16) []byte {
			return c2h(none, 0, wire.Transfer{Command: out, Length: 8}, make([]byte, 8))
		}, "more data", wire.Fault{Status: wire.FaultRange, Field: 16}},
		"a length that is not the data's": {func(in, _ uint16) []byte {
			b := c2h(none, 0, wire.Transfer{Command: in, Length: 8}, make([]byte, 8))
			b[16]++
			return b
		}, "not the length", wire.Fault{Status: wire.FaultHeader, Field: 16}},
		"an R2T for a read": {func(in, _ uint16) []byte {
			return wire.AppendR2T(nil, none, wire.Transfer{Command: in, Length: 8})
		}, "no data to ask for", wire.Fault{Status: wire.FaultHeader, Field: 8}},
		"an R2T of nothing": {func(_, out uint16) []byte {
			return wire.AppendR2T(nil, none, wire.Transfer{Command: out})
		}, "not the length", wire.Fault{Status: wire.FaultRange, Field: 16}},
		"an R2T beyond the data": {func(_, out uint16) []byte {
			return wire.AppendR2T(nil, none, wire.Transfer{Command: out, Length: write + 4})
		}, "not the length", wire.Fault{Status: wire.FaultRange, Field: 16}},
		"an R2T with a gap": {func(_, out uint16) []byte {
			return wire.AppendR2T(nil, none, wire.Transfer{Command: out, Offset: 4, Length: 4})
		}, "out of order", wire.Fault{Status: wire.FaultRange, Field: 12}},
		"three R2Ts at a time": {func(_, out uint16) (b []byte) {
			for i := range uint32(3) {
				b = wire.AppendR2T(b, none, wire.Transfer{Command: out, Offset: 4 * i, Length: 4})
			}
			return b
		}, "several R2Ts", wire.Fault{Status: wire.FaultLimit}},
		"a second ICResp": {func(uint16, uint16) []byte { return icresp(none, 0, 4096) }, "second ICResp",
			wire.Fault{Status: wire.FaultSequence}},
		"a PDU of hosts": {func(in, _ uint16) []byte {
			return wire.AppendData(nil, wire.H2CData, none, 0, 0, wire.Transfer{Command: in, Length: 8})
		}, "header", wire.Fault{Status: wire.FaultHeader}},
		"a digest that was not agreed on": {func(uint16, uint16) []byte {
			return wire.AppendR2T(nil, wire.Digests{Header: true}, wire.Transfer{})
		}, "header", wire.Fault{Status: wire.FaultHeader, Field: 1}},
		"its own end": {func(uint16, uint16) []byte {
			return wire.AppendTerm(nil, wire.C2HTermReq, wire.Fault{Status: wire.FaultSequence}, make([]byte, 24))
		}, "the controller ends", wire.Fault{}},
	} {
		r := newRig(t, none, 4)
		in, out, waits := r.submit(0, read), r.submit(write, 0), r.submit(0, 0)
		r.output(1 << 20)
		r.answer(icresp(none, 0, 4096), 1<<20)
		r.output(1 << 20)
		r.answer(x.b(in.CID, out.CID), 1<<20)
		if r.Err() == nil || !strings.Contains(r.Err().Error(), x.want) {
			t.Errorf("%s: %v", name, r.Err())
		}
		if term := len(r.Last()) > 0; term != (name != "its own end") {
			t.Errorf("%s: last words %v", name, r.Last())
		} else if term && wire.Term(r.Last()) != x.fault {
			t.Errorf("%s: the controller is told of %+v, want %+v", name, wire.Term(r.Last()), x.fault)
		}
		r.Fail(errors.New("closed"))
		if r.done != 3 || in.Err == nil || out.Err == nil || waits.Err == nil || r.Outstanding() != 0 {
			t.Errorf("%s: %d done; %v, %v, %v", name, r.done, in.Err, out.Err, waits.Err)
		}
	}
	for name, b := range map[string][]byte{
		"other digests":    icresp(wire.Digests{Header: true}, 0, 4096),
		"a small limit":    icresp(none, 0, 512),
		"another PDU":      wire.AppendResponse(nil, none, wire.CQE{}),
		"an end at once":   wire.AppendTerm(nil, wire.C2HTermReq, wire.Fault{Status: wire.FaultSequence}, nil),
		"another protocol": []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
	} {
		r := newRig(t, none, 4)
		c := r.submit(0, 512)
		r.answer(b, 1<<20)
		if r.Err() == nil {
			t.Errorf("%s is accepted", name)
		}
		if r.Fail(errors.New("closed")); r.done != 1 || c.Err == nil {
			t.Errorf("%s: %v", name, c.Err)
		}
	}
	r := newRig(t, none, 1)
	c := &host.Command{Out: make([]byte, 4), In: make([]byte, 4), Done: func() { r.done++ }}
	if r.Submit(c); c.Err == nil || r.done != 1 {
		t.Error("a command with data in both directions is accepted")
	}
	for _, depth := range []int{0, -1, host.MaxDepth + 1} {
		if _, err := host.New(host.Config{Depth: depth}); err == nil {
			t.Errorf("a depth of %d is accepted", depth)
		}
	}
}

// FuzzQueue has a controller send answers, valid ones, ones with changed bytes, and arbitrary bytes, in pieces, while
// commands of all kinds are outstanding and output is taken in pieces. Whatever arrives, nothing panics, and every
// command is done once.
func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add(bytes.Repeat([]byte{9, 200, 31, 7, 77, 3}, 40))
	f.Add(bytes.Repeat([]byte{1, 0, 16, 2, 0, 0, 3, 255, 0}, 30))
	f.Fuzz(func(t *testing.T, program []byte) {
		defer patience.Limit()()
		code := hostile.Code(program)
		k := code.Byte()
		d := wire.Digests{Header: k&1 != 0, Data: k&2 != 0}
		r := newRig(t, d, 1+int(k>>4))
		var in []byte
		if k&4 == 0 {
			in = icresp(d, code.Byte()%32, 4096+4*uint32(code.Byte()))
		}
		for code.More() && r.Err() == nil {
			switch code.Below(5) {
			case 0:
				r.submit(0, int(code.Word()%4096))
			case 1:
				r.submit(int(code.Word()%(3*inCapsule)), 0)
			case 2:
				r.output(int(code.Word() % 4096))
			default:
				b := r.draw(&code)
				if code.Below(4) == 0 {
					b = append(b, byte(code.Word()))
				}
				for range code.Below(3) / 2 * code.Below(4) { // hostile
					b[int(code.Word()%uint64(len(b)))] = code.Byte()
				}
				in = append(in, b...)
			}
			for len(in) > 0 && r.Err() == nil {
				n := min(len(in), 1+int(code.Word()%4096))
				if sink := r.Sink(); len(sink) > 0 && code.Below(2) == 0 {
					n = copy(sink, in[:n])
					r.Sunk(n)
				} else if n = r.Input(in[:n]); n == 0 {
					break
				}
				in = in[n:]
			}
		}
		if r.done+r.Outstanding() != r.begun || len(r.commands) != r.Outstanding() {
			t.Fatalf("%d begun, %d done, %d outstanding", r.begun, r.done, r.Outstanding())
		}
		r.Fail(errors.New("the end"))
		if r.done != r.begun || r.Outstanding() != 0 || len(r.Vectors(nil, 10)) != 0 {
			t.Fatalf("%d of %d commands are done, %d outstanding", r.done, r.begun, r.Outstanding())
		}
	})
}

// draw returns an answer to one of the commands that are outstanding, which may or may not be right.
func (r *rig) draw(code *hostile.Code) []byte {
	if len(r.commands) == 0 {
		return wire.AppendResponse(nil, r.digests, wire.CQE{CID: uint16(code.Word())})
	}
	c := r.commands[code.Below(len(r.commands))]
	x := wire.Transfer{Command: c.CID, Tag: uint16(code.Byte())}
	switch n := len(c.In) + len(c.Out); {
	case code.Below(3) == 0 || n == 0:
		return wire.AppendResponse(nil, r.digests, wire.CQE{CID: c.CID, Status: wire.Status(code.Below(3))})
	case code.Below(4) == 0:
		x.Offset, x.Length = uint32(code.Word()%uint64(n)), uint32(code.Word()%uint64(n+1))
	default:
		x.Length = uint32(n)
	}
	if len(c.In) == 0 {
		return wire.AppendR2T(nil, r.digests, x)
	}
	return c2h(r.digests, uint8(code.Below(4))<<2, x, make([]byte, x.Length))
}

// Example reads a block: the caller moves the bytes.
func ExampleQueue() {
	q, err := host.New(host.Config{Depth: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := &host.Command{Request: wire.Request{Opcode: wire.Read, NSID: 1}, In: make([]byte, 4),
		Done: func() { fmt.Println("done") }}
	q.Submit(c)
	send := func() {
		n := 0
		for _, v := range q.Vectors(nil, 16) {
			n += len(v)
		}
		q.Sent(n)
		fmt.Println(n, "bytes to the controller")
	}
	send()
	q.Input(icresp(wire.Digests{}, 0, 4096))
	send()
	q.Input(c2h(wire.Digests{}, wire.FlagLast|wire.FlagSuccess, wire.Transfer{Length: 4}, []byte("data")))
	fmt.Printf("%s, %v\n", c.In, c.Status())
	// Output:
	// 128 bytes to the controller
	// 72 bytes to the controller
	// done
	// data, <nil>
}
