// Package wiretest supports tests of iWARP: composable checkers of segments, and reading and writing of captures.
//
// Segment applies checkers to a segment and reports every mismatch. Read extracts the TCP streams of a pcap or pcapng
// file; Capture writes pcap files of streams that never crossed a network. IPv6 is not supported, and of TCP only
// ordering and retransmission are.
package wiretest

import (
	"testing"

	"farflash/flash/wire"
)

// A Checker verifies one property of a segment.
type Checker func(t testing.TB, s wire.Segment)

// Segment verifies that the header is complete and runs all checkers.
func Segment(t testing.TB, s wire.Segment, checkers ...Checker) {
	t.Helper()
	if !s.Whole() {
		t.Errorf("the segment of %d bytes has an incomplete header", len(s))
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

// Op expects an opcode, and the buffer kind and queue that go with it.
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

// Last expects the last flag to have this value.
func Last(last bool) Checker {
	return func(t testing.TB, s wire.Segment) {
		t.Helper()
		equal(t, "last", s.Last(), last)
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

// Fault expects a Terminate that reports this fault in the RFC's bit layout.
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
		equal(t, "the layer bits", p[0]>>4, byte(want.Layer))
		equal(t, "the type bits", p[0]&0xF, want.Type)
	}
}
