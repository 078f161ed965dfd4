package verbs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
)

// victim is a responder with one region for each kind of right, each 64 bytes of secret data in the middle of memory
// that no region covers.
type victim struct {
	*rig
	read, write, atomic, inv, elsewhere, scoped, gone *verbs.Region
	memory                                            []byte
	stored                                            *verbs.Region
	store                                             *verbstest.Pages
}

const base = 0x4000

func newVictim(t testing.TB) *victim {
	v := &victim{rig: attacker(t, func(c *verbs.Config) { c.IRD = 2 }, wire.StartupFields{})}
	v.memory = bytes.Repeat([]byte("secret!!"), 24)
	region := func(rights verbs.Rights) *verbs.Region {
		return v.region(1, verbs.RegionConfig{Memory: v.memory[64:128:128], Base: base, Rights: rights})
	}
	v.read, v.write, v.atomic, v.inv = region(verbs.RemoteRead), region(verbs.RemoteWrite),
		region(verbs.RemoteAtomic), region(verbs.RemoteInvalidate)
	s := v.sides[1]
	other := s.adapter.NewDomain(2)
	g, err := other.Register(verbs.RegionConfig{Memory: v.memory[64:128], Base: base,
		Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.RemoteInvalidate})
	if err != nil {
		t.Fatal(err)
	}
	v.elsewhere = g
	cfg := verbs.DefaultConfig()
	qp, err := verbs.NewQueuePair(s.domain, cfg, verbs.NewCompletionQueue(200, nil), verbs.NewCompletionQueue(200, nil))
	if err != nil {
		t.Fatal(err)
	}
	v.scoped = v.region(1,
		verbs.RegionConfig{Memory: v.memory[64:128], Base: base, Scope: qp,
			Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.RemoteInvalidate})
	v.gone = region(verbs.RemoteRead | verbs.RemoteWrite)
	v.gone.Deregister()
	v.store = verbstest.NewPages(65536, 4096, 0)
	v.stored = v.region(1,
		verbs.RegionConfig{Store: v.store, Offset: 8192, Length: 4096, Base: base,
			Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic})
	return v
}

func atomicRequest(sequence uint32, f wire.AtomicRequestFields) []byte {
	b := make([]byte, wire.AtomicRequestLength)
	f.Put(b)
	return untagged(wire.UntaggedFields{Op: wire.AtomicReq, Last: true, Queue: wire.QueueRead, Sequence: sequence}, b)
}

// TestEveryFault sends every kind of invalid message, each on its own connection, and verifies the layer, type and code
// of the Terminate, that no byte moved, and that only the Terminate came back.
func TestEveryFault(t *testing.T) {
	x := []byte("x")
	write := func(g *verbs.Region, offset uint64, n int) []byte {
		return tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: g.STag(), Offset: offset}, bytes.Repeat(x, n))
	}
	read := func(g *verbs.Region, offset uint64, n uint32) []byte {
		return readRequest(1, wire.ReadRequestFields{SinkSTag: 7, Size: n, SourceSTag: g.STag(), SourceOffset: offset})
	}
	atomic := func(g *verbs.Region, offset uint64) []byte {
		return atomicRequest(1,
			wire.AtomicRequestFields{STag: g.STag(), Offset: offset, Operand: wire.Operand{Data: 1}})
	}
	send := func(op wire.Op, f wire.UntaggedFields, payload []byte) []byte {
		f.Op, f.Last = op, true
		if f.Sequence == 0 {
			f.Sequence = 1
		}
		return untagged(f, payload)
	}
	change := func(b []byte, at int, to byte) []byte { b[at] = to; return b }
	for _, c := range []struct {
		name string
		want wire.Fault
		send func(v *victim) []byte
	}{
		// Tagged: every way in which a Write can miss (RFC 5041, 7.1; RFC 5042, 6.1.1, 6.2.1).
		{"write: no such STag", wire.FaultTaggedSTag, func(v *victim) []byte {
			return tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: 0xABCD00}, x)
		}},
		{"write: STag zero", wire.FaultTaggedSTag,
			func(v *victim) []byte { return tagged(wire.TaggedFields{Op: wire.Write, Last: true}, x) }},
		{"write: revoked", wire.FaultTaggedSTag, func(v *victim) []byte { return write(v.gone, base, 1) }},
		{"write: read only", wire.FaultTaggedSTag, func(v *victim) []byte { return write(v.read, base, 1) }},
		{"write: flags not allowed", wire.FaultTaggedSTag, func(v *victim) []byte {
			return tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: v.write.STag() | 1, Offset: base}, x)
		}},
		{"write: another domain's", wire.FaultTaggedDomain,
			func(v *victim) []byte { return write(v.elsewhere, base, 1) }},
		{"write: another stream's", wire.FaultTaggedDomain, func(v *victim) []byte { return write(v.scoped, base, 1) }},
		{"write: one before", wire.FaultTaggedBounds, func(v *victim) []byte { return write(v.write, base-1, 1) }},
		{"write: one behind", wire.FaultTaggedBounds, func(v *victim) []byte { return write(v.write, base+64, 1) }},
		{"write: one too long", wire.FaultTaggedBounds, func(v *victim) []byte { return write(v.write, base, 65) }},
		{"write: far too long", wire.FaultTaggedBounds, func(v *victim) []byte { return write(v.write, base, 65000) }},
		{"write: wraps", wire.FaultTaggedWrap, func(v *victim) []byte { return write(v.write, ^uint64(0), 2) }},
		{"write: DDP version", wire.FaultTaggedVersion,
			func(v *victim) []byte { return change(write(v.write, base, 1), 0, 0xC2) }},
		{"write: RDMAP version", wire.FaultRDMAPVersion,
			func(v *victim) []byte { return change(write(v.write, base, 1), 1, 0x80) }},
		{"write: one before, of a store", wire.FaultTaggedBounds,
			func(v *victim) []byte { return write(v.stored, base-1, 1) }},
		{"write: one too long, of a store", wire.FaultTaggedBounds,
			func(v *victim) []byte { return write(v.stored, base+1, 4096) }},
		{"an answer that nobody asked for", wire.FaultOpcode, func(v *victim) []byte {
			return tagged(wire.TaggedFields{Op: wire.ReadResp, Last: true, STag: v.write.STag(), Offset: base}, x)
		}},
		{"tagged send", wire.FaultOpcode, func(v *victim) []byte { return change(write(v.write, base, 1), 1, 0x43) }},
		{"tagged, unknown opcode", wire.FaultOpcode,
			func(v *victim) []byte { return change(write(v.write, base, 1), 1, 0x4F) }},
		// Reads (RFC 5040, 7.2; RFC 5042, 6.3.1, 6.3.4, 6.3.5).
		{"read: no such STag", wire.FaultReadSTag, func(v *victim) []byte {
			return readRequest(1, wire.ReadRequestFields{Size: 1, SourceSTag: 0x12345600})
		}},
		{"read: revoked", wire.FaultReadSTag, func(v *victim) []byte { return read(v.gone, base, 1) }},
		{"read: write only", wire.FaultReadRights, func(v *victim) []byte { return read(v.write, base, 1) }},
		{"read: another domain's", wire.FaultReadDomain, func(v *victim) []byte { return read(v.elsewhere, base, 1) }},
		{"read: another stream's", wire.FaultReadDomain, func(v *victim) []byte { return read(v.scoped, base, 1) }},
		{"read: one before", wire.FaultReadBounds, func(v *victim) []byte { return read(v.read, base-1, 2) }},
		{"read: one behind", wire.FaultReadBounds, func(v *victim) []byte { return read(v.read, base+64, 1) }},
		{"read: one too long", wire.FaultReadBounds, func(v *victim) []byte { return read(v.read, base, 65) }},
		{"read: all there is", wire.FaultReadBounds, func(v *victim) []byte { return read(v.read, base, 1<<32-1) }},
		{"read: wraps", wire.FaultReadWrap, func(v *victim) []byte { return read(v.read, ^uint64(0)-1, 3) }},
		{"read: the rest of the store", wire.FaultReadBounds,
			func(v *victim) []byte { return read(v.stored, base, 4097) }},
		{"read: cut", wire.FaultUnspecified,
			func(v *victim) []byte { b := read(v.read, base, 1); return b[:len(b)-1] }},
		{"read: too long a header", wire.FaultTooLong,
			func(v *victim) []byte { return append(read(v.read, base, 1), 0) }},
		{"read: not from the start", wire.FaultOffset,
			func(v *victim) []byte { return change(read(v.read, base, 1), 17, 1) }},
		{"read: more to come", wire.FaultUnspecified,
			func(v *victim) []byte { return change(read(v.read, base, 1), 0, 0x01) }},
		// Atomics (RFC 7306, 5.1, 8.2).
		{"atomic: no right", wire.FaultReadRights, func(v *victim) []byte { return atomic(v.read, base) }},
		{"atomic: one before", wire.FaultReadBounds, func(v *victim) []byte { return atomic(v.atomic, base-8) }},
		{"atomic: at the end", wire.FaultReadBounds, func(v *victim) []byte { return atomic(v.atomic, base+57) }},
		{"atomic: not aligned", wire.FaultStream, func(v *victim) []byte { return atomic(v.atomic, base+4) }},
		{"atomic: no such operation", wire.FaultOpcode, func(v *victim) []byte {
			return atomicRequest(1, wire.AtomicRequestFields{Op: 1, STag: v.atomic.STag(), Offset: base})
		}},
		{"an atomic's answer that nobody asked for", wire.FaultOpcode, func(v *victim) []byte {
			return send(wire.AtomicResp, wire.UntaggedFields{Queue: wire.QueueAtomic},
				make([]byte, wire.AtomicResponseLength))
		}},
		// Untagged (RFC 5041, 7.1).
		{"send: no receive", wire.FaultNoBuffer,
			func(v *victim) []byte { return send(wire.Send, wire.UntaggedFields{}, x) }},
		{"send: DDP version", wire.FaultVersion,
			func(v *victim) []byte { return change(send(wire.Send, wire.UntaggedFields{}, x), 0, 0x42) }},
		{"send: queue 4", wire.FaultQueue,
			func(v *victim) []byte { return send(wire.Send, wire.UntaggedFields{Queue: 4}, x) }},
		{"send: to the queue of reads", wire.FaultOpcode,
			func(v *victim) []byte { return send(wire.Send, wire.UntaggedFields{Queue: 1}, x) }},
		{"send: a number too high", wire.FaultSequence,
			func(v *victim) []byte { v.buffer(8); return send(wire.Send, wire.UntaggedFields{Sequence: 2}, x) }},
		{"send: not from the start", wire.FaultOffset,
			func(v *victim) []byte { v.buffer(8); return send(wire.Send, wire.UntaggedFields{Offset: 1}, x) }},
		{"send: too long", wire.FaultTooLong, func(v *victim) []byte {
			v.buffer(8)
			return send(wire.Send, wire.UntaggedFields{}, make([]byte, 9))
		}},
		{"untagged write", wire.FaultOpcode,
			func(v *victim) []byte { return send(wire.Write, wire.UntaggedFields{}, x) }},
		{"unknown opcode", wire.FaultOpcode, func(v *victim) []byte { return send(12, wire.UntaggedFields{}, x) }},
		{"immediate: seven bytes", wire.FaultUnspecified, func(v *victim) []byte {
			v.buffer(8)
			return send(wire.Imm, wire.UntaggedFields{}, make([]byte, 7))
		}},
		{"immediate: nine bytes", wire.FaultTooLong, func(v *victim) []byte {
			v.buffer(16)
			return send(wire.Imm, wire.UntaggedFields{}, make([]byte, 9))
		}},
		{"invalidate: what is not to be", wire.FaultInvalidate, func(v *victim) []byte {
			v.buffer(8)
			return send(wire.SendInv, wire.UntaggedFields{Invalidate: v.read.STag()}, x)
		}},
		{"invalidate: another domain's", wire.FaultInvalidate, func(v *victim) []byte {
			v.buffer(8)
			return send(wire.SendInv, wire.UntaggedFields{Invalidate: v.elsewhere.STag()}, x)
		}},
		{"invalidate: another stream's", wire.FaultInvalidate, func(v *victim) []byte {
			v.buffer(8)
			return send(wire.SendSEInv, wire.UntaggedFields{Invalidate: v.scoped.STag()}, x)
		}},
		{"no header", wire.FaultUnspecified, func(v *victim) []byte { return []byte{0x41, 0x43, 0} }},
		{"nothing", wire.FaultUnspecified, func(v *victim) []byte { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVictim(t)
			before, stored := bytes.Clone(v.memory), bytes.Clone(v.store.Bytes())
			v.inject(c.send(v))
			v.fault(c.want)
			if !bytes.Equal(v.memory, before) || !bytes.Equal(v.store.Bytes(), stored) {
				t.Error("bytes have moved")
			}
			if bytes.Contains(v.sides[1].written, []byte("secret")) {
				t.Error("what is not the peer's was sent")
			}
			if got := v.store.Log(); len(got) > 0 {
				t.Errorf("the store was asked for pages: %v", got)
			}
			v.settled(v.store)
		})
	}
}

func (v *victim) buffer(n int) {
	v.t.Helper()
	if err := v.sides[1].qp.PostReceive(verbs.Receive{Local: make([]byte, n)}); err != nil {
		v.t.Fatal(err)
	}
}

// TestEdges verifies that accesses just within bounds succeed: first and last bytes, the whole region, and empty
// accesses, whose STag and offset are not checked.
func TestEdges(t *testing.T) {
	v := newVictim(t)
	for i, s := range [][]byte{
		tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: v.write.STag(), Offset: base}, []byte("A")),
		tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: v.write.STag(), Offset: base + 63}, []byte("Z")),
		tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: 0xFFFFFFFF, Offset: ^uint64(0)}, nil),
		readRequest(1, wire.ReadRequestFields{Size: 64, SourceSTag: v.read.STag(), SourceOffset: base}),
		readRequest(2, wire.ReadRequestFields{Size: 0, SourceSTag: 0xFFFFFFFF, SourceOffset: ^uint64(0)}),
		atomicRequest(3, wire.AtomicRequestFields{STag: v.atomic.STag(), Offset: base + 56, Operand: wire.Operand{}}),
	} {
		v.inject(s)
		if err := v.sides[1].qp.Err(); err != nil {
			t.Fatalf("segment %d: %v", i, err)
		}
	}
	if got := v.memory[64:128]; got[0] != 'A' || got[63] != 'Z' || !bytes.Contains(v.sides[1].written, got) {
		t.Errorf("%q", got)
	}
	if !bytes.Equal(v.memory[56:64], []byte("secret!!")) || !bytes.Equal(v.memory[128:136], []byte("secret!!")) {
		t.Error("bytes outside have changed")
	}
}

// TestReadQueue verifies that the negotiated number of reads is enforced (RFC 5042, 6.4.3.3): one more ends the
// connection.
func TestReadQueue(t *testing.T) {
	v := newVictim(t)
	v.store.Hold = true
	for i := range uint32(3) {
		v.inject(readRequest(i+1, wire.ReadRequestFields{Size: 4096, SourceSTag: v.stored.STag(), SourceOffset: base}))
	}
	v.fault(wire.FaultNoBuffer)
	if v.store.Out() != 2 {
		t.Errorf("%d reads are under way", v.store.Out())
	}
	v.store.Release(-1)
	v.step()
	v.store.Release(-1)
	v.settled(v.store)
}

// TestReadsAreWindowed verifies that a read of a huge region requests only a window and the next one from the store,
// and that reads queued behind it request one window each.
func TestReadsAreWindowed(t *testing.T) {
	v := newVictim(t)
	huge := &hugeStore{size: 1 << 60}
	g := v.region(1, verbs.RegionConfig{Store: huge, Length: 1 << 60, Rights: verbs.RemoteRead})
	v.inject(readRequest(1, wire.ReadRequestFields{Size: 1<<32 - 1, SourceSTag: g.STag(), SourceOffset: 1 << 59}))
	window := verbs.DefaultConfig().Window
	if huge.asked != 2*window {
		t.Errorf("the store was asked for %d bytes", huge.asked)
	}
	v.inject(readRequest(2, wire.ReadRequestFields{Size: 1<<32 - 1, SourceSTag: g.STag(), SourceOffset: 1 << 58}))
	if huge.asked != 3*window {
		t.Errorf("the store was asked for %d bytes of two reads", huge.asked)
	}
}

// hugeStore has any size and never provides a page.
type hugeStore struct {
	size  uint64
	asked int
}

func (h *hugeStore) Size() uint64        { return h.size }
func (h *hugeStore) PageSize() int       { return 4096 }
func (h *hugeStore) Get(a *verbs.Access) { h.asked += a.Length }
func (h *hugeStore) Put(*verbs.Access)   {}

// TestRegistrationCost verifies that registration touches no page and allocates no memory that grows with the length.
func TestRegistrationCost(t *testing.T) {
	a := newAdapter(t, 9)
	d := a.NewDomain(1 << 20)
	cost := func(n uint64) float64 {
		h := &hugeStore{size: n}
		return testing.AllocsPerRun(200, func() {
			g, err := d.Register(verbs.RegionConfig{Store: h, Length: n, Rights: verbs.RemoteRead})
			if err != nil || h.asked != 0 {
				t.Fatal(err, h.asked)
			}
			g.Deregister()
		})
	}
	if small, large := cost(4096), cost(1<<62); small != large || small > 2 {
		t.Errorf("%v and %v allocations", small, large)
	}
}

// TestSTags verifies that successive STags are unpredictable, and that one is reused only after all others (RFC 5042,
// 6.1.1).
func TestSTags(t *testing.T) {
	a := newAdapter(t, 5)
	d := a.NewDomain(10)
	seen := map[uint32]bool{}
	var last uint32
	steps := map[uint32]int{}
	for range 100_000 {
		g, err := d.Register(verbs.RegionConfig{Memory: []byte{0}})
		if err != nil {
			t.Fatal(err)
		}
		s := g.STag()
		g.Deregister()
		if s == 0 || s&0xFF != 0 || seen[s] {
			t.Fatalf("STag %#x, seen before: %v", s, seen[s])
		}
		seen[s] = true
		steps[(s-last)>>8]++
		last = s
	}
	for step, n := range steps {
		if n > 4 {
			t.Errorf("%d STags follow their predecessor by %d", n, step)
		}
	}
	other := newAdapter(t, 6)
	g, err := other.NewDomain(1).Register(verbs.RegionConfig{Memory: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	first, err := newAdapter(t, 5).NewDomain(1).Register(verbs.RegionConfig{Memory: []byte{0}})
	if err != nil {
		t.Fatal(err)
	}
	if g.STag() == first.STag() {
		t.Error("the key makes no difference")
	}
	if _, err := verbs.NewAdapter([16]byte{}); err == nil {
		t.Error("a key of zeros is taken")
	}
}

// TestDomainLimit verifies that the number of regions in a domain is bounded (RFC 5042, 6.4.1).
func TestDomainLimit(t *testing.T) {
	a := newAdapter(t, 5)
	d := a.NewDomain(2)
	var last *verbs.Region
	for i := range 3 {
		g, err := d.Register(verbs.RegionConfig{Memory: []byte{0}})
		if (err == nil) != (i < 2) || i == 2 && !errors.Is(err, verbs.ErrFull) {
			t.Fatalf("region %d: %v", i, err)
		}
		if err == nil {
			last = g
		}
	}
	last.Deregister()
	last.Deregister()
	if d.Regions() != 1 || a.Regions() != 1 {
		t.Errorf("%d and %d regions", d.Regions(), a.Regions())
	}
	for name, c := range map[string]verbs.RegionConfig{
		"nothing":       {},
		"both":          {Memory: []byte{1}, Store: &hugeStore{size: 1}},
		"beyond":        {Store: &hugeStore{size: 10}, Offset: 5, Length: 6},
		"far beyond":    {Store: &hugeStore{size: 10}, Offset: 1 << 63, Length: 1 << 63},
		"wraps":         {Memory: make([]byte, 2), Base: ^uint64(0)},
		"rights":        {Memory: []byte{1}, Rights: 1 << 7},
		"semantics":     {Memory: []byte{1}, Allowed: 1 << 7},
		"contradiction": {Memory: []byte{1}, Default: verbs.Sync | verbs.Async},
		"odd":           {Memory: []byte{1}, Base: 4, Rights: verbs.RemoteAtomic},
	} {
		if _, err := d.Register(c); err == nil {
			t.Errorf("%s is registered", name)
		}
	}
}

// TestHostileResponder verifies that a responder can place only the response to the oldest read, and only in that
// read's buffer (RFC 5042, 6.2.1).
func TestHostileResponder(t *testing.T) {
	type answer struct {
		stag   uint32
		offset uint64
		n      int
		last   bool
	}
	for name, c := range map[string]struct {
		answers []answer
		want    wire.Fault
	}{
		"another STag":   {[]answer{{1, 0, 16, true}}, wire.FaultTaggedSTag},
		"behind":         {[]answer{{0, 1, 15, true}}, wire.FaultTaggedBounds},
		"before":         {[]answer{{0, ^uint64(0), 16, true}}, wire.FaultTaggedBounds},
		"too long":       {[]answer{{0, 0, 17, true}}, wire.FaultTaggedBounds},
		"too short":      {[]answer{{0, 0, 15, true}}, wire.FaultTaggedBounds},
		"no end":         {[]answer{{0, 0, 16, false}}, wire.FaultTaggedBounds},
		"a gap":          {[]answer{{0, 0, 8, false}, {0, 9, 7, true}}, wire.FaultTaggedBounds},
		"twice":          {[]answer{{0, 0, 16, true}, {0, 0, 16, true}}, wire.FaultOpcode},
		"nothing":        {[]answer{{0, 0, 0, true}}, wire.FaultTaggedBounds},
		"drops of zeros": {[]answer{{0, 0, 0, false}}, wire.FaultTaggedBounds},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := verbs.DefaultConfig()
			cfg.Initiator = true
			s := newSide(t, 1, cfg)
			memory := bytes.Repeat([]byte("m"), 48)
			if err := s.qp.Post(verbs.Work{Op: wire.ReadReq, Local: memory[16:32], STag: 99}); err != nil {
				t.Fatal(err)
			}
			out := s.qp.Fill(make([]byte, 0, wire.MaxFPDU))
			reply := wire.StartupFields{Reply: true, CRC: true, Revision: 2, Enhanced: true, IRD: 1, ORD: 1}
			b := make([]byte, 100)
			b = b[:reply.Put(b)]
			s.qp.Input(b)
			out = s.qp.Fill(out[:0])
			d := wire.Deframer{CRC: true}
			seg, _, err := d.Next(out)
			if err != nil || seg == nil || seg.Op() != wire.ReadReq {
				t.Fatal(err, seg)
			}
			sink := wire.ReadRequest(seg.Payload()).Fields()
			f := wire.Framer{CRC: true}
			for _, a := range c.answers {
				p := tagged(wire.TaggedFields{Op: wire.ReadResp, Last: a.last, STag: sink.SinkSTag + a.stag,
					Offset: sink.SinkOffset + a.offset}, bytes.Repeat([]byte("!"), a.n))
				b = f.Begin(make([]byte, 0, 200), len(p))
				copy(b[2:], p)
				s.qp.Input(f.End(b))
			}
			if err := s.qp.Err(); err != error(verbs.Terminated{Fault: c.want}) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if string(memory[:16]) != "mmmmmmmmmmmmmmmm" || string(memory[32:]) != "mmmmmmmmmmmmmmmm" {
				t.Error("memory around the buffer has changed")
			}
		})
	}
	// An ORD above the initiator's IRD (RFC 6581, 9.1), and invalid replies.
	for name, c := range map[string]struct {
		reply []byte
		want  error
	}{
		"ORD too high": {func() []byte {
			b := make([]byte, 24)
			wire.StartupFields{Reply: true, CRC: true, Revision: 2, Enhanced: true, IRD: 1, ORD: 99}.Put(b)
			return b
		}(), verbs.Terminated{Fault: wire.FaultIRD}},
		"a request": {[]byte(wire.RequestKey), verbs.Terminated{Fault: wire.FaultStartup}},
		"HTTP":      {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), verbs.Terminated{Fault: wire.FaultStartup}},
	} {
		cfg := verbs.DefaultConfig()
		cfg.Initiator = true
		s := newSide(t, 1, cfg)
		s.qp.Fill(make([]byte, 0, wire.MaxFPDU))
		s.qp.Input(c.reply)
		if err := s.qp.Err(); err != c.want {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestCRCAndFlips verifies that a flipped bit ends the connection with the MPA code, and that no part of the frame is
// processed.
func TestCRCAndFlips(t *testing.T) {
	for bit := range 8 * 40 {
		v := newVictim(t)
		before := bytes.Clone(v.memory)
		s := tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: v.write.STag(), Offset: base},
			bytes.Repeat([]byte("x"), 20))
		f := v.sides[0].framer
		b := f.Begin(make([]byte, 0, 100), len(s))
		copy(b[2:], s)
		b = f.End(b)
		b[bit/8] ^= 1 << (bit % 8)
		v.sides[1].in = b
		v.pump()
		if err := v.sides[1].qp.Err(); err != nil && err != error(verbs.Terminated{Fault: wire.FaultCRC}) ||
			err == nil && bit >= 16 {
			t.Fatalf("bit %d: %v", bit, err)
		}
		if !bytes.Equal(v.memory, before) {
			t.Fatalf("bit %d: bytes have moved", bit)
		}
	}
}

// TestDisconnectAnywhere cuts a small exchange at every byte of either direction: outstanding requests complete with an
// error, the store gets all accesses back, and completed operations have taken effect.
func TestDisconnectAnywhere(t *testing.T) {
	run := func(from, cut int) (sent int, ended bool) {
		r := connected(t, nil)
		p := verbstest.NewPages(1<<16, 4096, 0)
		p.HoldPuts = true
		g := r.region(1, verbs.RegionConfig{Store: p, Length: 1 << 16,
			Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic, Allowed: verbs.AllSemantics})
		for range 2 {
			if err := r.sides[1].qp.PostReceive(verbs.Receive{Local: make([]byte, 64)}); err != nil {
				t.Fatal(err)
			}
		}
		works := []verbs.Work{
			{Op: wire.Write, Local: []byte("durable"), STag: g.STag() | uint32(verbs.Sync), Offset: 4090},
			{Op: wire.ReadReq},
			{Op: wire.AtomicReq, Operand: wire.Operand{Data: 1}, STag: g.STag() | uint32(verbs.Sync), Offset: 8},
			{Op: wire.Send, Local: []byte("hello")},
			{Op: wire.ReadReq, Local: make([]byte, 7), STag: g.STag(), Offset: 4090},
			{Op: wire.Imm, Immediate: 1},
		}
		for i, w := range works {
			w.ID = uint64(i)
			r.post(0, w)
		}
		counted := [2]int{}
		lost := false
		deliver := func(i int) bool {
			s := r.sides[i]
			buf := s.qp.Fill(make([]byte, 0, wire.MaxFPDU*2))
			if len(buf) == 0 {
				return false
			}
			s.qp.Sent()
			counted[i] += len(buf)
			if i == from && counted[i] > cut {
				buf = buf[:len(buf)-(counted[i]-cut)]
				lost = true
			}
			r.sides[1-i].in = append(r.sides[1-i].in, buf...)
			return true
		}
		for again := true; again && !lost; {
			again = deliver(0)
			r.receive(1)
			again = deliver(1) && !lost || again
			r.receive(0)
			if !again && p.Held() > 0 {
				p.Release(0)
				r.sides[1].qp.Step()
				r.receive(1)
				again = true
			}
		}
		r.sides[0].qp.Lost(io.ErrUnexpectedEOF)
		r.sides[1].qp.Lost(io.ErrUnexpectedEOF)
		p.Release(-1)
		r.settled(p)
		done := r.poll(0)
		if len(done) != len(works) {
			t.Fatalf("side %d cut at %d: %d completions", from, cut, len(done))
		}
		for i, c := range done {
			if c.ID != uint64(i) || i > 0 && c.Err == nil && done[i-1].Err != nil {
				t.Fatalf("side %d cut at %d: completion %d is %+v", from, cut, i, c)
			}
			switch {
			case c.Err != nil:
			case i == 1 && !bytes.Equal(p.Medium()[4090:4097], []byte("durable")):
				t.Fatalf("side %d cut at %d: the Read of nothing has completed, and the data are not on the medium",
					from, cut)
			case i == 2 && p.Medium()[8] != 1:
				t.Fatalf("side %d cut at %d: the atomic has completed, and is not on the medium", from, cut)
			}
		}
		if n := len(r.poll(1)); n != 2 {
			t.Fatalf("side %d cut at %d: %d receives", from, cut, n)
		}
		return counted[from], !lost
	}
	for from := range 2 {
		for cut := 0; ; cut++ {
			if n, whole := run(from, cut); whole {
				t.Logf("side %d: %d bytes", from, n)
				break
			}
		}
	}
}

// TestInjectedErrors injects store errors, drawn by seed, at any point of an exchange. The peer must see them as a
// Terminate and never as data, and all resources must be released.
func TestInjectedErrors(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 77))
		told := 0
		r := connected(t, func(a, b *verbs.Config) { b.Notice = func(error) { told++ }; b.Window = 4096 })
		p := verbstest.NewPages(1<<16, 4096, seed+1)
		p.Hold = true
		copy(p.Bytes(), bytes.Repeat([]byte("good"), 1<<14))
		g := r.region(1, verbs.RegionConfig{Store: p, Length: 1 << 16,
			Rights: verbs.RemoteRead | verbs.RemoteWrite | verbs.RemoteAtomic, Allowed: verbs.AllSemantics})
		failed := false
		var reads [][]byte
		for range 12 {
			if r.sides[0].qp.State() >= verbs.Terminating {
				break
			}
			switch rnd.IntN(6) {
			case 0:
				p.FailGet, failed = verbstest.ErrMedium, true
			case 1:
				p.FailPut, failed = verbstest.ErrMedium, true
			}
			stag := g.STag() | uint32(rnd.IntN(2))*uint32(verbs.Sync)
			w := verbs.Work{STag: stag, Offset: uint64(rnd.IntN(5000)) &^ 7, ID: uint64(len(reads))}
			switch rnd.IntN(3) {
			case 0:
				w.Op, w.Local = wire.Write, bytes.Repeat([]byte("good"), rnd.IntN(3000))
			case 1:
				w.Op, w.Local, w.ID = wire.ReadReq, make([]byte, 4*rnd.IntN(5000)), uint64(len(reads))
				reads = append(reads, w.Local)
			case 2:
				w.Op = wire.AtomicReq
			}
			r.post(0, w)
			for range rnd.IntN(20) {
				r.pump()
				if p.Held() > 0 {
					p.Release(rnd.IntN(p.Held()))
					r.step()
				}
			}
		}
		for r.pump(); p.Held() > 0; r.step() {
			p.Release(rnd.IntN(p.Held()))
		}
		for _, c := range r.poll(0) {
			if c.Err == nil && c.Op == wire.ReadReq &&
				!bytes.Equal(reads[c.ID], bytes.Repeat([]byte("good"), len(reads[c.ID])/4)) {
				t.Fatalf("seed %d: a read has completed with bad data", seed)
			}
		}
		if err := r.sides[1].qp.Err(); err != nil &&
			(!failed || told == 0 || err != error(verbs.Terminated{Fault: wire.FaultStream})) {
			t.Fatalf("seed %d: %v, injected: %v, told %d", seed, err, failed, told)
		}
		r.sides[0].qp.Close()
		r.sides[1].qp.Close()
		for ; p.Held() > 0; r.step() {
			p.Release(-1)
		}
		r.settled(p)
	}
}

// TestSharedSTagInvalidation verifies that one of several streams can revoke a shared region only if the region allows
// it (RFC 5042, 6.4.5).
func TestSharedSTagInvalidation(t *testing.T) {
	v := newVictim(t)
	v.buffer(8)
	v.inject(untagged(wire.UntaggedFields{Op: wire.SendInv, Last: true, Sequence: 1, Invalidate: v.inv.STag() | 0xFF},
		nil))
	if err := v.sides[1].qp.Err(); err != nil {
		t.Fatal(err)
	}
	if c := v.one(1); c.Invalidated>>8 != v.inv.STag()>>8 {
		t.Errorf("%+v", c)
	}
	v.inject(readRequest(1, wire.ReadRequestFields{Size: 1, SourceSTag: v.inv.STag(), SourceOffset: base}))
	v.fault(wire.FaultReadSTag)
}

// TestRevocation verifies that after Deregister no byte of the region moves for a request in progress (RFC 5042, 6.2.2,
// 6.3.3).
func TestRevocation(t *testing.T) {
	for _, write := range []bool{false, true} {
		v := newVictim(t)
		v.store.Hold = true
		copy(v.store.Bytes()[8192:], "secret")
		if write {
			v.inject(tagged(wire.TaggedFields{Op: wire.Write, Last: true, STag: v.stored.STag(), Offset: base},
				[]byte("forged")))
		} else {
			v.inject(readRequest(1, wire.ReadRequestFields{Size: 100, SourceSTag: v.stored.STag(), SourceOffset: base}))
		}
		v.stored.Deregister()
		v.store.Release(-1)
		v.step()
		if write {
			v.fault(wire.FaultTaggedSTag)
		} else {
			v.fault(wire.FaultReadSTag)
		}
		if string(v.store.Bytes()[8192:8198]) != "secret" || bytes.Contains(v.sides[1].written, []byte("secret")) {
			t.Errorf("write %v: bytes have moved", write)
		}
		v.store.Release(-1)
		v.settled(v.store)
	}
}

// TestQuirksOfSiw verifies that deviations of siw of Linux from the RFCs are accepted.
func TestQuirksOfSiw(t *testing.T) {
	// A Terminate with its bit fields in little-endian order, and one that reports a bounds error of a Read Response as
	// a tagged error.
	for _, c := range []struct {
		bytes []byte
		want  wire.Fault
	}{
		{[]byte{0x10, 0, 7, 0}, wire.FaultReadSTag},
		{append([]byte{0x11, 1, 3, 0, 0, 0}, tagged(wire.TaggedFields{Op: wire.ReadResp, Last: true}, nil)...),
			wire.FaultTaggedBounds},
	} {
		v := newVictim(t)
		v.inject(untagged(wire.UntaggedFields{Op: wire.Term, Last: true, Queue: wire.QueueTerminate, Sequence: 1},
			c.bytes))
		if err := v.sides[1].qp.Err(); err != error(verbs.Terminated{Fault: c.want, Remote: true}) {
			t.Errorf("%x: %v", c.bytes, err)
		}
	}
	// Without CRCs, siw leaves arbitrary bytes in the CRC field and stale memory in the pad.
	r := attacker(t, func(c *verbs.Config) { c.CRC = false },
		wire.StartupFields{Revision: 2, Enhanced: true, IRD: 1, ORD: 1})
	v := &victim{rig: r}
	v.buffer(8)
	s := untagged(wire.UntaggedFields{Op: wire.Send, Last: true, Sequence: 1}, []byte("hi"))
	b := binary.BigEndian.AppendUint16(nil, uint16(len(s)))
	b = append(append(b, s...), 0x00, 0x40, 1, 2, 3, 4)
	r.sides[1].in = b
	r.pump()
	if c := r.one(1); c.Length != 2 {
		t.Errorf("%+v", c)
	}
	// Responders that omit the peer-to-peer flag still get an empty Write.
	cfg := verbs.DefaultConfig()
	cfg.Initiator, cfg.PeerToPeer = true, true
	i := newSide(t, 1, cfg)
	i.qp.Fill(make([]byte, 0, wire.MaxFPDU))
	reply := make([]byte, 24)
	wire.StartupFields{Reply: true, CRC: true, Revision: 2, Enhanced: true, IRD: 1, ORD: 1}.Put(reply)
	i.qp.Input(reply)
	d := wire.Deframer{CRC: true}
	if seg, _, err := d.Next(i.qp.Fill(make([]byte, 0, wire.MaxFPDU))); err != nil || seg == nil ||
		seg.Op() != wire.Write || len(seg.Payload()) != 0 {
		t.Errorf("%v, %v", seg, err)
	}
	// The first FPDU may arrive together with the request, before the responder has decided. It must not be lost (siw's
	// own responder can lose it).
	cfg = verbs.DefaultConfig()
	early := newSide(t, 2, cfg)
	if err := early.qp.PostReceive(verbs.Receive{Local: make([]byte, 8)}); err != nil {
		t.Fatal(err)
	}
	request := make([]byte, 20)
	wire.StartupFields{CRC: true, Revision: 1}.Put(request)
	f := wire.Framer{CRC: true}
	fp := f.Begin(make([]byte, 0, 100), len(s))
	copy(fp[2:], s)
	all := append(request, f.End(fp)...)
	n := early.qp.Input(all)
	if early.qp.State() != verbs.Asked || n != 20 {
		t.Fatalf("%v after %d bytes", early.qp.State(), n)
	}
	if err := early.qp.Accept(nil); err != nil {
		t.Fatal(err)
	}
	if k := early.qp.Input(all[n:]); k != len(all)-n {
		t.Errorf("%d bytes taken of %d", k, len(all)-n)
	}
	if c := make([]verbs.Completion, 1); early.cq.Poll(c) != 1 {
		t.Error("the Send that came early is lost")
	}
}

// TestMemoryIsBounded verifies that memory does not grow with what a hostile peer announces (RFC 5042, 6.4): a frame
// length whose bytes have not arrived allocates no memory, and Need never exceeds one frame.
func TestMemoryIsBounded(t *testing.T) {
	v := newVictim(t)
	qp := v.sides[1].qp
	huge := []byte{0xFF, 0xFF, 0x41, 0x43}
	if n := testing.AllocsPerRun(10, func() {
		if qp.Input(huge) != 0 || qp.Need() > wire.MaxFPDU {
			t.Fatal(qp.Need())
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
