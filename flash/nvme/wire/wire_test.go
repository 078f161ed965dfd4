package wire_test

import (
	"bytes"
	"fmt"

	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"farflash/flash/nvme/nvmetest"
	"farflash/flash/nvme/wire"
	"farflash/internal/patience"
)

// TestPDUs decodes the PDUs in testdata/pdus.
func TestPDUs(t *testing.T) {
	datadriven.RunTest(t, "testdata/pdus", func(t *testing.T, d *datadriven.TestData) string {
		b, err := nvmetest.Hex(d.Input)
		if err != nil {
			t.Fatal(err)
		}
		digests := wire.Digests{Header: d.HasArg("hdgst"), Data: d.HasArg("ddgst")}
		switch d.Cmd {
		case "from-host", "from-controller":
			return describe(b, d.Cmd == "from-host", digests)
		}
		d.Fatalf(t, "unknown command %s", d.Cmd)
		return ""
	})
}

// describe decodes one PDU as a peer does, and prints its fields.
func describe(b []byte, host bool, digests wire.Digests) string {
	var out strings.Builder
	if len(b) < wire.CommonSize {
		return "incomplete\n"
	}
	h := wire.Common(b)
	if h.Type == wire.ICReq || h.Type == wire.ICResp {
		if len(b) < wire.ICSize {
			return "incomplete\n"
		}
		c, f, ok := wire.DecodeIC(b, h.Type)
		if !ok {
			return fmt.Sprintf("%v\n", f)
		}
		return fmt.Sprintf("%+v\n", c)
	}
	if f, ok := h.Check(host, digests, 8192); !ok {
		return fmt.Sprintf("%v\n", f)
	}
	if len(b) < int(h.Length) {
		return "incomplete\n"
	}
	if f, ok := h.Sound(b); !ok {
		return fmt.Sprintf("%v\n", f)
	}
	head, pad, n := h.Parts()
	data := b[head+pad:][:n]
	fmt.Fprintf(&out, "type %#02x flags %#x head %d pad %d data %d\n", uint8(h.Type), h.Flags, head, pad, n)
	switch h.Type {
	case wire.CapsuleCmd:
		s := wire.SQE(b[wire.CommonSize:][:wire.SQESize])
		fmt.Fprintf(&out, "opcode %#02x cid %d nsid %d sgl %+v direction %d pointers %v\n", uint8(s.Opcode()), s.CID(),
			s.NSID(), s.SGL(), s.Direction(), s.Pointers())
		switch {
		case s.Opcode() == wire.Fabrics && s.FabricsType() == wire.Connect:
			fmt.Fprintf(&out, "%+v\n", s.Connection())
			if n >= wire.ConnectSize {
				i, at, ok := wire.DecodeIdentity(data)
				fmt.Fprintf(&out, "%+v %d %v\n", i, at, ok)
			}
		case s.Opcode() == wire.Fabrics:
			p, ok := s.Property()
			fmt.Fprintf(&out, "fabrics %#x %+v %v\n", s.FabricsType(), p, ok)
		case s.Opcode() == wire.GetLogPage:
			fmt.Fprintf(&out, "%+v\n", s.LogRequest())
		default:
			fmt.Fprintf(&out, "slba %d blocks %d fua %v\n", s.SLBA(), s.Blocks(), s.Word(12)&wire.FUA != 0)
		}
	case wire.CapsuleResp:
		c := wire.DecodeCQE(b[wire.CommonSize:])
		fmt.Fprintf(&out, "%+v %v\n", c, c.Status.Error())
	case wire.H2CData, wire.C2HData, wire.R2T:
		fmt.Fprintf(&out, "%+v\n", wire.DecodeTransfer(b))
	case wire.H2CTermReq, wire.C2HTermReq:
		fmt.Fprintf(&out, "%v\n", wire.Term(b))
	}
	if h.Flags&wire.FlagDataDigest != 0 {
		got := b[head+pad+n:]
		fmt.Fprintf(&out, "data digest %x, is %08x\n", got, wire.Digest(0, data))
	}
	return out.String()
}

// FuzzPDU verifies that no bytes make a decoder fail, and that what Check accepts has parts that add up.
func FuzzPDU(f *testing.F) {
	d := wire.Digests{Header: true, Data: true}
	s := wire.Request{Opcode: wire.Write, CID: 3, NSID: 1, SGL: wire.SGL{Length: 512, Type: wire.InCapsule}}.Append(nil)
	f.Add(true, true, true, append(wire.AppendCommand(nil, d, s, 512), make([]byte, 516)...))
	f.Add(true, false, false, wire.IC{}.Append(nil, wire.ICReq))
	f.Add(false, true, false, wire.AppendResponse(nil, d, wire.CQE{CID: 3}))
	f.Add(false, false, false, wire.AppendR2T(nil, wire.Digests{}, wire.Transfer{Command: 1, Tag: 2, Length: 4096}))
	f.Add(true, false, false, wire.AppendTerm(nil, wire.H2CTermReq, wire.Fault{Status: 1, Field: 2}, s))
	f.Fuzz(func(t *testing.T, host, header, data bool, b []byte) {
		defer patience.Limit()()
		digests := wire.Digests{Header: header, Data: data}
		describe(b, host, digests)
		if len(b) < wire.CommonSize {
			return
		}
		h := wire.Common(b)
		if _, ok := h.Check(host, digests, 8192); !ok || h.Type == wire.ICReq || h.Type == wire.ICResp {
			return
		}
		head, pad, n := h.Parts()
		sum := head + pad + n
		if h.Flags&wire.FlagDataDigest != 0 {
			sum += wire.DigestSize
		}
		if pad < 0 || n < 0 || n > 8192 || sum != int(h.Length) {
			t.Errorf("%+v has parts %d, %d and %d", h, head, pad, n)
		}
	})
}

// FuzzStructures verifies that no bytes make a decoder of data fail.
func FuzzStructures(f *testing.F) {
	f.Add(wire.Controller{Serial: "1"}.Append(nil))
	f.Add(wire.AppendDescriptors(nil, [16]byte{1}, [16]byte{2}))
	f.Add(wire.AppendANA(nil, 1, []wire.Group{{ID: 1, State: wire.Optimized, Namespaces: []uint32{1, 2}}}))
	f.Add(wire.AppendDiscovery(nil, 1, []wire.Entry{{Address: "127.0.0.1"}}))
	f.Add(wire.Identity{Subsystem: "nqn.a", Host: "nqn.b"}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		wire.DecodeANA(b)
		wire.DecodeDiscovery(b)
		wire.DecodeDescriptors(b)
		wire.DecodeList(b)
		b = append(b, make([]byte, wire.IdentifySize)...)
		if c := wire.DecodeController(b); c.InCapsule < 0 {
			t.Errorf("%d bytes in a capsule", c.InCapsule)
		}
		wire.DecodeNamespace(b)
		wire.DecodeSetLimits(b)
		wire.DecodeHealth(b)
		wire.DecodeErrorEntry(b)
		wire.DecodeRange(b)
		if i, _, ok := wire.DecodeIdentity(b); ok && (!wire.ValidName(i.Host) || !wire.ValidName(i.Subsystem)) {
			t.Errorf("%q and %q are accepted", i.Host, i.Subsystem)
		}
	})
}

// same reports a value that does not survive encoding and decoding.
func same[T any](t *testing.T, want, got T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRoundTrips verifies that each structure is decoded as it was encoded.
func TestRoundTrips(t *testing.T) {
	c := wire.Controller{Serial: "S1", Model: "Farflash", Firmware: "1.0", ID: 77, Version: wire.Version14,
		Transfer: 8, Events: wire.EventANA, Entries: 128, Namespaces: 32, Options: wire.OptionCompare,
		VolatileCache: true, ANA: true, KeepAlive: 10, InCapsule: 8192, Subsystem: "nqn.2026-01.example:disk"}
	same(t, c, wire.DecodeController(c.Append(nil)))
	same(t, wire.Controller{Discovery: true}, wire.DecodeController(wire.Controller{Discovery: true}.Append(nil)))
	n := wire.Namespace{Blocks: 1 << 40, Used: 77, Shift: 9, Grain: 8, Group: 1, ReadOnly: true,
		NGUID: [16]byte{1, 15: 2}}
	same(t, n, wire.DecodeNamespace(n.Append(nil)))
	l := wire.SetLimits{Verify: 1, Zeroes: 2, Ranges: 3, RangeBlocks: 4}
	same(t, l, wire.DecodeSetLimits(l.Append(nil)))
	same(t, []uint32{5, 9}, wire.DecodeList(wire.AppendList(nil, 2, []uint32{1, 2, 5, 9})))
	nguid, uuid, ok := wire.DecodeDescriptors(wire.AppendDescriptors(nil, [16]byte{1}, [16]byte{2}))
	if nguid[0] != 1 || uuid[0] != 2 || !ok {
		t.Errorf("%v %v %v", nguid, uuid, ok)
	}
	h := wire.Health{Warning: 1, PowerCycles: 11, Kelvin: 300, Spare: 99, Threshold: 10, Used: 3, Read: 512000,
		Written: 1024000, Reads: 5, Writes: 6, PowerOn: 7,
		MediaErrors: 8, Entries: 9, UnsafeTerminating: 10}
	same(t, h, wire.DecodeHealth(h.Append(nil)))
	e := wire.ErrorEntry{Count: 1, Queue: 2, CID: 3, Status: wire.WriteFault, Field: 4, SLBA: 5, NSID: 6}
	same(t, e, wire.DecodeErrorEntry(e.Append(nil)))
	groups := []wire.Group{{1, 3, wire.Optimized, []uint32{1, 2}}, {2, 4, wire.Lost, nil}}
	changes, got, ok := wire.DecodeANA(wire.AppendANA(nil, 9, groups))
	if same(t, groups, got); changes != 9 || !ok {
		t.Errorf("%d %v", changes, ok)
	}
	entries := []wire.Entry{{Port: 1, Address: "127.0.0.1", Service: "4420", Subsystem: "nqn.a"},
		{Discovery: true, IPv6: true, Port: 2, Address: "::1", Service: "8009", Subsystem: wire.DiscoveryName}}
	log := wire.AppendDiscovery(nil, 4, entries)
	if log[wire.DiscoveryHeader+3] != 0 {
		t.Error("with a TREQ nvme-cli 2.3 asks for TLS, and connect-all fails")
	}
	gen, list, ok := wire.DecodeDiscovery(log)
	if same(t, entries, list); gen != 4 || !ok {
		t.Errorf("%d %v", gen, ok)
	}
	i := wire.Identity{HostID: [16]byte{7}, Controller: 3, Subsystem: "nqn.a", Host: "nqn.b"}
	back, _, _ := wire.DecodeIdentity(i.Append(nil))
	same(t, i, back)
	for _, r := range []wire.LogRequest{{Log: wire.LogANA, Retain: true, Length: 4, Offset: 1 << 33},
		{Log: wire.LogHealth, Length: 1 << 30, Offset: 5}} {
		same(t, r, wire.Request{Opcode: wire.GetLogPage, Words: r.Words()}.Append(nil).LogRequest())
	}
	for _, p := range []wire.Property{{Wide: true, Offset: 8, Value: 1 << 40}, {Offset: 0x14, Value: 3}} {
		back, ok := wire.Request{Opcode: wire.Fabrics, Words: p.Words()}.Append(nil).Property()
		if same(t, p, back); !ok {
			t.Errorf("%+v", p)
		}
	}
	o := wire.Connection{Queue: 3, Size: 127, Attribs: wire.NoFlowControl, KeepAlive: 5000, Format: 1}
	same(t, o, wire.Request{Opcode: wire.Fabrics, Fabrics: wire.Connect, Words: o.Words()}.Append(nil).Connection())
	r := wire.Range{Start: 1 << 50, Blocks: 12}
	same(t, r, wire.DecodeRange(r.Append(nil)))
	q := wire.CQE{Result: 1 << 60, Head: 2, Queue: 3, CID: 4, Status: wire.OutOfRange | wire.NoRetry}
	same(t, q, wire.DecodeCQE(q.Append(nil)))
	if wire.DecodeQueues(wire.Queues(9)) != 9 {
		t.Error("the number of queues is decoded otherwise than it is encoded")
	}
}

// TestData verifies that the data of all alignments begin at a multiple of it, with any digests.
func TestData(t *testing.T) {
	for align := range wire.MaxAlign + 1 {
		for k := range 4 {
			d := wire.Digests{Header: k&1 != 0, Data: k&2 != 0}
			data := bytes.Repeat([]byte{0xa5}, 512)
			x := wire.Transfer{Command: 1, Offset: 4096, Length: 512}
			b := append(wire.AppendData(nil, wire.C2HData, d, wire.FlagLast, uint8(align), x), data...)
			if d.Data {
				b = append(b, 0, 0, 0, 0)
			}
			h := wire.Common(b)
			if _, ok := h.Check(false, d, 512); !ok || int(h.Length) != len(b) {
				t.Fatalf("align %d, %+v: %+v with %d bytes", align, d, h, len(b))
			}
			head, pad, n := h.Parts()
			if (head+pad)%(4*(align+1)) != 0 || n != 512 || !bytes.Equal(b[head+pad:][:n], data) {
				t.Errorf("align %d, %+v: head %d, padding %d, data %d", align, d, head, pad, n)
			}
			same(t, x, wire.DecodeTransfer(b))
		}
	}
}

// TestNoAllocations verifies that a connection encodes and decodes its PDUs without allocating.
func TestNoAllocations(t *testing.T) {
	d := wire.Digests{Header: true, Data: true}
	b := make([]byte, 0, 4096)
	s := wire.Request{Opcode: wire.Read, SGL: wire.SGL{Length: 4096, Type: wire.Transport}}.Append(nil)
	if n := testing.AllocsPerRun(100, func() {
		b = wire.AppendResponse(b[:0], d, wire.CQE{CID: 1})
		b = wire.AppendR2T(b, d, wire.Transfer{Length: 4})
		b = wire.AppendData(b, wire.C2HData, d, wire.FlagLast, 0, wire.Transfer{Length: 4})
		b = wire.AppendCommand(b[:0], d, s, 0)
		h := wire.Common(b)
		h.Check(true, d, 8192)
		h.Sound(b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
