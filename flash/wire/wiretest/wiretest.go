// Package wiretest is for tests of iWARP: checkers of segments, which combine, and
// captures, read and written.
//
// Segment applies checkers to a segment and names everything that is not as expected.
// Read takes the TCP streams out of a pcap or pcapng file; Capture writes pcap files of
// streams that never were on a network. It leaves out IPv6, and all of TCP but order and
// repetition.
package wiretest

import (
	"bytes"
	"testing"

	"farflash/flash/wire"
)

// A Checker looks at one thing of a segment.
type Checker func(t testing.TB, s wire.Segment)

// Segment checks that the header is whole and all checkers are content.
func Segment(t testing.TB, s wire.Segment, checkers ...Checker) {
	t.Helper()
	if !s.Whole() {
		t.Errorf("the segment of %d bytes has no whole header", len(s))
		return
	}
	if s.DDPVersion() != wire.Version || s.RDMAPVersion() != wire.Version {
		t.Errorf("versions are DDP %d and RDMAP %d, want %d", s.DDPVersion(), s.RDMAPVersion(), wire.Version)
	}
	for _, c := range checkers {
		c(t, s)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// Op expects an opcode, and with it the kind of buffer that it goes to.
func Op(o wire.Op) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		equal(t, "the opcode", s.Op(), o)
		equal(t, "tagged", s.IsTagged(), o.Tagged())
		if !s.IsTagged() {
			equal(t, "the queue", wire.Untagged(s).Queue(), o.Queue())
		}
	}
}

// Last expects the last flag to be so.
func Last(last bool) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		equal(t, "last", s.Last(), last)
	}
}

// STag expects a tagged segment's STag and offset.
func STag(stag uint32, offset uint64) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		equal(t, "the STag", wire.Tagged(s).STag(), stag)
		equal(t, "the offset", wire.Tagged(s).Offset(), offset)
	}
}

// Sequence expects an untagged segment's sequence number and offset.
func Sequence(sequence, offset uint32) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		equal(t, "the sequence number", wire.Untagged(s).Sequence(), sequence)
		equal(t, "the offset", wire.Untagged(s).Offset(), offset)
	}
}

// Payload expects these bytes behind the DDP header.
func Payload(want []byte) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		if !bytes.Equal(s.Payload(), want) {
			t.Errorf("the payload is\n%x, want\n%x", s.Payload(), want)
		}
	}
}

// ReadRequest expects a Read Request of these fields.
func ReadRequest(want wire.ReadRequestFields) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		if p := s.Payload(); len(p) != wire.ReadRequestLength {
			t.Errorf("the Read Request has %d bytes", len(p))
		} else {
			equal(t, "the Read Request", wire.ReadRequest(p).Fields(), want)
		}
	}
}

// Fault expects a Terminate that reports this, in the RFC's form.
func Fault(want wire.Fault) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		Op(wire.Term)(t, s)
		p := s.Payload()
		if len(p) < wire.TerminateControl {
			t.Errorf("the Terminate has %d bytes", len(p))
			return
		}
		equal(t, "the fault", wire.Terminate(p).Fault(), want)
		equal(t, "the layer's bits", p[0]>>4, byte(want.Layer))
		equal(t, "the type's bits", p[0]&0xF, want.Type)
	}
}

// All is several checkers as one.
func All(checkers ...Checker) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		for _, c := range checkers {
			c(t, s)
		}
	}
}
