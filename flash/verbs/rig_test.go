package verbs_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"farflash/flash/verbs"
	"farflash/flash/verbs/verbstest"
	"farflash/flash/wire"
	"farflash/flash/wire/wiretest"
)

// side is one end of a connection in a test: a queue pair, or a raw peer that sends whatever a test writes.
type side struct {
	qp      *verbs.QueuePair
	cq      *verbs.CompletionQueue
	domain  *verbs.Domain
	adapter *verbs.Adapter
	in      []byte // received but not consumed

	// raw marks a peer that is not a queue pair; framer is its framer.
	raw    bool
	framer wire.Framer

	tap         wire.Deframer // decodes what the queue pair sends
	tapStarted  bool
	written     []byte // all bytes sent
	wantMarkers bool
	told        bool // its end has been logged
}

func newAdapter(t testing.TB, key byte) *verbs.Adapter {
	t.Helper()
	a, err := verbs.NewAdapter([16]byte{key})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newSide(t testing.TB, key byte, cfg verbs.Config) *side {
	t.Helper()
	s := &side{adapter: newAdapter(t, key), wantMarkers: cfg.Markers}
	s.domain = s.adapter.NewDomain(16)
	s.cq = verbs.NewCompletionQueue(cfg.Sends+cfg.Receives, nil)
	qp, err := verbs.NewQueuePair(s.domain, cfg, s.cq, s.cq)
	if err != nil {
		t.Fatal(err)
	}
	s.qp = qp
	return s
}

// rig is two sides and the stream between them.
type rig struct {
	t     testing.TB
	sides [2]*side
	// names of STags, for the log.
	names map[uint32]string
	log   func(string)
	// cut, if set, splits the delivered bytes.
	cut *rand.Rand
	// hook, if set, sees all sent bytes.
	hook func(from int, b []byte)
	// manual: the test calls Accept.
	manual  bool
	private []byte
}

func newRig(t testing.TB, a, b *side) *rig {
	return &rig{t: t, sides: [2]*side{a, b}, names: map[uint32]string{}}
}

// connected returns a rig of two queue pairs after startup.
func connected(t testing.TB, change func(a, b *verbs.Config)) *rig {
	t.Helper()
	ca, cb := verbs.DefaultConfig(), verbs.DefaultConfig()
	ca.Initiator = true
	if change != nil {
		change(&ca, &cb)
	}
	r := newRig(t, newSide(t, 1, ca), newSide(t, 2, cb))
	r.pump()
	if a, b := r.sides[0].qp.State(), r.sides[1].qp.State(); a != verbs.Running || b != verbs.Running {
		t.Fatalf("the ends are %v and %v: %v, %v", a, b, r.sides[0].qp.Err(), r.sides[1].qp.Err())
	}
	return r
}

func (r *rig) say(format string, args ...any) {
	if r.log != nil {
		r.log(fmt.Sprintf(format, args...))
	}
}

func (r *rig) stag(v uint32) string {
	name, ok := r.names[v>>8]
	switch {
	case v == 0:
		return "0"
	case !ok:
		name = "?"
	}
	for i, f := range []string{"sync", "async", "prefetch"} {
		if v>>i&1 != 0 {
			name += "|" + f
		}
	}
	return name
}

// describe formats a segment on one line.
func (r *rig) describe(s wire.Segment) string {
	var b strings.Builder
	fmt.Fprint(&b, s.Op())
	if !s.Last() {
		fmt.Fprint(&b, " more")
	}
	p := s.Payload()
	if s.IsTagged() {
		h := wire.Tagged(s)
		fmt.Fprintf(&b, " stag=%s offset=%d length=%d", r.stag(h.STag()), h.Offset(), len(p))
		return b.String()
	}
	h := wire.Untagged(s)
	fmt.Fprintf(&b, " queue=%d sequence=%d offset=%d length=%d", h.Queue(), h.Sequence(), h.Offset(), len(p))
	switch {
	case s.Op().Invalidates():
		fmt.Fprintf(&b, " invalidate=%s", r.stag(h.Invalidate()))
	case s.Op() == wire.ReadReq && len(p) == wire.ReadRequestLength:
		f := wire.ReadRequest(p).Fields()
		fmt.Fprintf(&b, ": %d bytes at %s+%d", f.Size, r.stag(f.SourceSTag), f.SourceOffset)
	case s.Op() == wire.Term && len(p) >= wire.TerminateControl:
		h, q, n := wire.Terminate(p).Segment()
		fmt.Fprintf(&b, ": %v", wire.Terminate(p).Fault())
		if h != nil {
			fmt.Fprintf(&b, ", of a %v of %d bytes", h.Op(), n)
		}
		if q != nil {
			fmt.Fprintf(&b, " for %d bytes at %s+%d", q.Size(), r.stag(q.SourceSTag()), q.SourceOffset())
		}
	}
	return b.String()
}

// show logs the bytes that a side has sent.
func (r *rig) show(from int, b []byte) {
	s := r.sides[from]
	s.written = append(s.written, b...)
	if r.hook != nil {
		r.hook(from, b)
	}
	b = append([]byte(nil), b...)
	if !s.tapStarted {
		n, err := wire.CheckStartup(b, from == 1)
		if err != nil || len(b) < n {
			r.t.Fatalf("side %d has sent no startup frame: %x", from, b)
		}
		f := wire.Startup(b[:n]).Fields()
		kind := "request"
		if f.Reply {
			kind = "reply"
		}
		line := fmt.Sprintf("%s: MPA %s revision %d", r.name(from), kind, f.Revision)
		for _, x := range []struct {
			on   bool
			name string
		}{{f.CRC, "crc"}, {f.Markers, "markers"}, {f.Reject, "reject"}, {f.PeerToPeer, "peer-to-peer"}} {
			if x.on {
				line += " " + x.name
			}
		}
		if f.Enhanced {
			line += fmt.Sprintf(" ird=%d ord=%d rtr=%d", f.IRD, f.ORD, f.RTR)
		}
		if len(f.Private) > 0 {
			line += fmt.Sprintf(" %q", f.Private)
		}
		r.say("%s", line)
		s.tapStarted, b = true, b[n:]
	}
	other := r.sides[1-from]
	if len(b) > 0 && s.tap == (wire.Deframer{}) {
		s.tap.CRC, s.tap.Markers = r.crc(), other.wantMarkers
	}
	for len(b) > 0 {
		seg, n, err := s.tap.Next(b)
		if err != nil || seg == nil {
			r.t.Fatalf("side %d has sent what is not a frame: %v, %d of %d bytes", from, err, len(b), n)
		}
		if !seg.Whole() {
			r.t.Fatalf("side %d has sent a segment without a header", from)
		}
		r.say("%s: %s", r.name(from), r.describe(seg))
		b = b[n:]
	}
}

func (r *rig) crc() bool {
	for _, s := range r.sides {
		if len(s.written) > 16 && s.written[16]&0x40 != 0 {
			return true
		}
	}
	return false
}

func (r *rig) name(i int) string { return string(rune('a' + i)) }

// send moves a side's pending output to the other and reports whether there was any.
func (r *rig) send(from int) bool {
	s := r.sides[from]
	if s.raw {
		return false
	}
	buf := make([]byte, 0, 2*wire.MaxFPDU)
	buf = s.qp.Fill(buf)
	if len(buf) == 0 {
		return false
	}
	r.show(from, buf)
	s.qp.Sent()
	r.sides[1-from].in = append(r.sides[1-from].in, buf...)
	return true
}

// receive delivers pending input to a side and reports whether it made progress.
func (r *rig) receive(to int) bool {
	s := r.sides[to]
	if s.raw {
		took := len(s.in) > 0
		s.in = nil
		return took
	}
	n := len(s.in)
	if r.cut != nil && n > 0 && s.qp.Need() < n {
		n = s.qp.Need() + r.cut.IntN(n-s.qp.Need()+1)
	}
	k := s.qp.Input(s.in[:n])
	if k == 0 && n < len(s.in) { // it needs more, and more is available
		k = s.qp.Input(s.in)
	}
	s.in = s.in[k:]
	if s.qp.State() == verbs.Asked && !r.manual {
		if err := s.qp.Accept(r.private); err != nil {
			r.t.Fatal(err)
		}
		return true
	}
	return k > 0
}

// pump moves bytes until none are left to move.
func (r *rig) pump() {
	for again := true; again; {
		again = false
		for i := range r.sides {
			again = r.send(i) || again
			again = r.receive(1-i) || again
			again = r.sides[i].qp != nil && r.sides[i].qp.Fresh() || again
		}
	}
}

// step processes store callbacks and continues.
func (r *rig) step() {
	for _, s := range r.sides {
		if !s.raw {
			s.qp.Step()
		}
	}
	r.pump()
}

// poll returns the completions of a side.
func (r *rig) poll(i int) []verbs.Completion {
	out := make([]verbs.Completion, 4096)
	return out[:r.sides[i].cq.Poll(out)]
}

// one polls exactly one completion, which must have no error.
func (r *rig) one(i int) verbs.Completion {
	r.t.Helper()
	c := r.poll(i)
	if len(c) != 1 || c[0].Err != nil {
		r.t.Fatalf("side %d has the completions %+v; errors of the ends: %v, %v", i, c, r.sides[0].err(),
			r.sides[1].err())
	}
	return c[0]
}

func (s *side) err() error {
	if s.qp == nil {
		return nil
	}
	return s.qp.Err()
}

func (r *rig) post(i int, w verbs.Work) {
	r.t.Helper()
	if err := r.sides[i].qp.Post(w); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) region(i int, cfg verbs.RegionConfig) *verbs.Region {
	r.t.Helper()
	g, err := r.sides[i].domain.Register(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.names[g.STag()>>8] = fmt.Sprintf("r%d", len(r.names)+1)
	return g
}

// attacker returns a rig whose side a is a raw peer, after a startup with CRCs.
func attacker(t testing.TB, change func(*verbs.Config), startup wire.StartupFields) *rig {
	t.Helper()
	cfg := verbs.DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	if startup.Revision == 0 {
		startup = wire.StartupFields{CRC: true, Revision: 1}
	}
	a := &side{raw: true, framer: wire.Framer{CRC: true}}
	r := newRig(t, a, newSide(t, 2, cfg))
	b := make([]byte, startup.Length())
	startup.Put(b)
	r.show(0, b)
	r.sides[1].in = b
	r.pump()
	return r
}

// inject sends a segment to side b.
func (r *rig) inject(s []byte) {
	r.t.Helper()
	f := &r.sides[0].framer
	b := make([]byte, 0, len(s)+f.Overhead(len(s)))
	b = f.Begin(b, len(s))
	copy(b[len(b)-len(s):], s)
	r.sides[1].in = append(r.sides[1].in, f.End(b)...)
	r.pump()
}

// tagged and untagged build segments to inject.
func tagged(f wire.TaggedFields, payload []byte) []byte {
	b := make([]byte, wire.TaggedLength, wire.TaggedLength+len(payload))
	f.Put(b)
	return append(b, payload...)
}

func untagged(f wire.UntaggedFields, payload []byte) []byte {
	b := make([]byte, wire.UntaggedLength, wire.UntaggedLength+len(payload))
	f.Put(b)
	return append(b, payload...)
}

func readRequest(sequence uint32, f wire.ReadRequestFields) []byte {
	b := make([]byte, wire.ReadRequestLength)
	f.Put(b)
	return untagged(wire.UntaggedFields{Op: wire.ReadReq, Last: true, Queue: wire.QueueRead, Sequence: sequence}, b)
}

// settled verifies that a connection has released everything: no pages held in stores, no regions, all completions
// delivered.
func (r *rig) settled(stores ...*verbstest.Pages) {
	r.t.Helper()
	for i, s := range r.sides {
		if s.raw {
			continue
		}
		s.qp.Step()
		if !s.qp.Settled() {
			r.t.Errorf("side %d has accesses left", i)
		}
	}
	for _, p := range stores {
		if n := p.Out(); n != 0 {
			r.t.Errorf("%d accesses of the store are not given back", n)
		}
	}
}

// lastSent returns the last segment that a side has sent.
func (r *rig) lastSent(i int) wire.Segment {
	r.t.Helper()
	s := r.sides[i]
	n, err := wire.CheckStartup(s.written, i == 1)
	if err != nil {
		r.t.Fatal(err)
	}
	b := append([]byte(nil), s.written[n:]...)
	d := wire.Deframer{CRC: r.crc(), Markers: r.sides[1-i].wantMarkers}
	var last wire.Segment
	for len(b) > 0 {
		seg, n, err := d.Next(b)
		if err != nil || seg == nil {
			r.t.Fatal(err)
		}
		last, b = seg, b[n:]
	}
	return last
}

// fault expects the connection to have ended with a Terminate from side b in the RFC's layout.
func (r *rig) fault(want wire.Fault) {
	r.t.Helper()
	err := r.sides[1].qp.Err()
	if err != error(verbs.Terminated{Fault: want}) {
		r.t.Errorf("the connection ended with %v, want %v", err, want)
		return
	}
	if s := r.lastSent(1); s == nil {
		r.t.Error("nothing was sent")
	} else {
		wiretest.Segment(r.t, s, wiretest.Fault(want), wiretest.Last(true), wiretest.Sequence(1, 0))
	}
	if st := r.sides[1].qp.State(); st != verbs.Closed {
		r.t.Errorf("the state is %v after the Terminate", st)
	}
}
