package host_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"farflash/flash/nvme/host"
	"farflash/flash/nvme/wire"
)

// TestSent verifies what a queue sends of writes, byte by byte: headers and their digests, and data with theirs, in the
// capsule or after an R2T. Data of Fabrics commands are in the capsule whatever the controller takes there.
func TestSent(t *testing.T) {
	for k := range 4 {
		d := wire.Digests{Header: k&1 != 0, Data: k&2 != 0}
		t.Run(fmt.Sprintf("%+v", d), func(t *testing.T) {
			r := newRig(t, d, 4)
			r.output(1 << 20)
			r.answer(icresp(d, 0, 4096), 1<<20)
			parts := func(b []byte, k wire.Type) (header, data []byte) {
				t.Helper()
				h := wire.Common(b)
				if h.Type != k || int(h.Length) != len(b) {
					t.Fatalf("%+v of %d bytes, want type %d", h, len(b), k)
				}
				head, pad, n := h.Parts()
				if _, ok := h.Sound(b[:head+pad]); !ok {
					t.Error("the header's digest is wrong")
				}
				data = b[head+pad:][:n]
				rest := b[head+pad+n:]
				if want := d.Data && n > 0; (h.Flags&wire.FlagDataDigest != 0) != want ||
					(len(rest) == wire.DigestSize) != want ||
					want && binary.LittleEndian.Uint32(rest) != wire.Digest(0, data) {
					t.Errorf("%+v with %d bytes of data ends with %x", h, n, rest)
				}
				return b[:head], data
			}
			small := r.submit(600, 0)
			header, data := parts(r.output(1<<20), wire.CapsuleCmd)
			if x := wire.SQE(header[wire.CommonSize:]).SGL(); !bytes.Equal(data, small.Out) ||
				x.Type != wire.InCapsule ||
				x.Length != 600 {
				t.Errorf("%+v, %d bytes", x, len(data))
			}
			r.submit(0, 700)
			header, data = parts(r.output(1<<20), wire.CapsuleCmd)
			if x := wire.SQE(header[wire.CommonSize:]).SGL(); len(data) != 0 || x.Type != wire.Transport ||
				x.Length != 700 {
				t.Errorf("a read: %+v, %d bytes", x, len(data))
			}
			connect := &host.Command{Request: wire.Request{Opcode: wire.Fabrics, Fabrics: wire.Connect},
				Out: bytes.Repeat([]byte{5}, wire.AdminCapsule), Done: func() {}}
			r.Submit(connect)
			if _, data := parts(r.output(1<<20), wire.CapsuleCmd); !bytes.Equal(data, connect.Out) {
				t.Errorf("%d bytes of a Fabrics command are in its capsule", len(data))
			}
			large := r.submit(inCapsule+1, 0)
			header, data = parts(r.output(1<<20), wire.CapsuleCmd)
			if x := wire.SQE(header[wire.CommonSize:]).SGL(); len(data) != 0 || x.Type != wire.Transport ||
				x.Length != inCapsule+1 {
				t.Errorf("%+v, %d bytes", x, len(data))
			}
			cid := wire.SQE(header[wire.CommonSize:]).CID()
			r.answer(wire.AppendR2T(nil, d, wire.Transfer{Command: cid, Tag: 7, Offset: 0, Length: 1000}), 1<<20)
			header, data = parts(r.output(1<<20), wire.H2CData)
			if x := wire.DecodeTransfer(header); x != (wire.Transfer{Command: cid, Tag: 7, Length: 1000}) ||
				!bytes.Equal(data, large.Out[:1000]) {
				t.Errorf("%+v, %d bytes", x, len(data))
			}
		})
	}
}

// TestRefused verifies that commands with data in both directions, and those after the end, are done at once and with
// an error, and that the end forgets what was being received.
func TestRefused(t *testing.T) {
	r := newRig(t, wire.Digests{}, 4)
	r.output(1 << 20)
	r.answer(icresp(wire.Digests{}, 0, 4096), 1<<20)
	done := 0
	both := &host.Command{Out: make([]byte, 8), In: make([]byte, 8), Done: func() { done++ }}
	if r.Submit(both); done != 1 || both.Status() == nil || r.Outstanding() != 0 {
		t.Errorf("%d done, %v, %d outstanding", done, both.Status(), r.Outstanding())
	}
	for _, x := range []*host.Command{{Out: make([]byte, 8), Done: func() { done++ }},
		{In: make([]byte, 8), Done: func() {
			done++
		}}} {
		if r.Submit(x); done != 1 || r.Outstanding() == 0 {
			t.Errorf("a command with data in one direction: %d done", done)
		}
	}
	read := r.submit(0, 60_000)
	r.output(1 << 20)
	b := c2h(wire.Digests{}, wire.FlagLast, wire.Transfer{Command: read.CID, Length: 60_000}, make([]byte, 60_000))
	r.answer(b[:30_000], 1<<20)
	if r.Sink() == nil || r.Pending() == 0 {
		t.Fatal("no data are being received")
	}
	lost := errors.New("lost")
	r.Fail(lost)
	if r.Sink() != nil || r.Outstanding() != 0 || done != 3 || !errors.Is(read.Status(), lost) {
		t.Errorf("%d outstanding, %d done, %v", r.Outstanding(), done, read.Status())
	}
	for _, cid := range []uint16{4, 5, 0xffff} { // of no command: the first beyond the slots
		r := newRig(t, wire.Digests{}, 4)
		r.output(1 << 20)
		r.answer(icresp(wire.Digests{}, 0, 4096), 1<<20)
		r.submit(0, 0)
		r.Input(wire.AppendResponse(nil, wire.Digests{}, wire.CQE{CID: cid}))
		if r.Err() == nil {
			t.Errorf("command %#x, which there is not, is answered", cid)
		}
	}
	late := &host.Command{Done: func() { done++ }}
	if r.Submit(late); done != 4 || !errors.Is(late.Status(), lost) {
		t.Errorf("%d done, %v", done, late.Status())
	}
}

// TestSecondAnswer verifies that a second answer to a command is not taken for the answer to a later one in its place.
func TestSecondAnswer(t *testing.T) {
	r := newRig(t, wire.Digests{}, 1)
	r.answer(icresp(wire.Digests{}, 0, 4096), 1<<20)
	first := r.submit(0, 0)
	r.output(1 << 20)
	again := wire.AppendResponse(nil, wire.Digests{}, wire.CQE{CID: first.CID})
	r.answer(again, 1<<20)
	second := r.submit(0, 0)
	r.output(1 << 20)
	r.Input(again)
	if r.done != 1 || r.Err() == nil || r.Outstanding() != 1 {
		t.Errorf("%d done, %v; commands %#x and %#x", r.done, r.Err(), first.CID, second.CID)
	}
}

// TestSunk verifies that data that are read into Sink in two parts end a command with the last byte, not before.
func TestSunk(t *testing.T) {
	const n = 60_000
	r := newRig(t, wire.Digests{}, 1)
	r.answer(icresp(wire.Digests{}, 0, 4096), 1<<20)
	read := r.submit(0, n)
	r.output(1 << 20)
	b := c2h(wire.Digests{}, wire.FlagLast|wire.FlagSuccess, wire.Transfer{Command: read.CID, Length: n},
		bytes.Repeat([]byte{1, 2, 3, 4}, n/4))
	b = b[r.Input(b[:wire.DataSize]):]
	for k := 0; len(b) > 0; k++ {
		if r.done != 0 || r.Pending() != len(b) || len(r.Sink()) != len(b) {
			t.Fatalf("%d done with %d bytes to come, %d pending, %d to read", r.done, len(b), r.Pending(),
				len(r.Sink()))
		}
		sunk := copy(r.Sink(), b[:min(len(b), n/2+1)])
		r.Sunk(sunk)
		b = b[sunk:]
	}
	if r.done != 1 || read.Status() != nil || !bytes.Equal(read.In, bytes.Repeat([]byte{1, 2, 3, 4}, n/4)) {
		t.Errorf("%d done, %v", r.done, read.Status())
	}
}

// TestNextR2T verifies that a controller may ask for more data as soon as it has the last data, even if the sender
// has not learnt yet that they are sent.
func TestNextR2T(t *testing.T) {
	r := newRig(t, wire.Digests{}, 1)
	r.answer(icresp(wire.Digests{}, 0, 4096), 1<<20)
	write := r.submit(8000, 0)
	r.output(1 << 20)
	for i := range uint32(2) {
		r.answer(wire.AppendR2T(nil, wire.Digests{}, wire.Transfer{Command: write.CID, Offset: 4000 * i, Length: 4000}),
			1<<20)
	}
	if n := len(r.output(1 << 20)); r.Err() != nil || n != 2*(wire.DataSize+4000) {
		t.Errorf("%d bytes are sent, %v", n, r.Err())
	}
}

// TestNoAllocation verifies that a queue reuses its memory for commands.
func TestNoAllocation(t *testing.T) {
	q, err := host.New(host.Config{Depth: 2, InCapsule: inCapsule})
	if err != nil {
		t.Fatal(err)
	}
	q.Input(icresp(wire.Digests{}, 0, 4096))
	done := 0
	c := &host.Command{Request: wire.Request{Opcode: wire.Write, NSID: 1}, Out: make([]byte, 9000),
		Done: func() { done++ }}
	var vec [][]byte
	var in []byte
	send := func() {
		for {
			vec = q.Vectors(vec[:0], 8)
			n := 0
			for _, v := range vec {
				n += len(v)
			}
			if n == 0 {
				return
			}
			q.Sent(n)
		}
	}
	const runs = 100
	n := testing.AllocsPerRun(runs, func() {
		q.Submit(c)
		send()
		in = wire.AppendR2T(in[:0], wire.Digests{}, wire.Transfer{Command: c.CID, Length: 9000})
		q.Input(in)
		send()
		in = wire.AppendResponse(in[:0], wire.Digests{}, wire.CQE{CID: c.CID})
		q.Input(in)
	})
	if n != 0 || done != runs+1 || q.Err() != nil {
		t.Errorf("a write allocates %v times; %d are done, %v", n, done, q.Err())
	}
}
