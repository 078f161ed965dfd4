package wire_test

import (
	"strings"
	"testing"

	"farflash/flash/wire"
)

// TestLargestFrame builds frames of the largest segment at every marker phase and verifies that MaxFPDU covers them and
// exceeds the longest by at most one marker.
func TestLargestFrame(t *testing.T) {
	longest := 0
	for lead := range 256 {
		// A preceding frame shifts the marker positions.
		f := wire.Framer{CRC: true, Markers: true}
		encode(&f, make([]byte, 4*lead))
		longest = max(longest, len(encode(&f, make([]byte, wire.MaxULPDU))))
	}
	if longest > wire.MaxFPDU || longest+8 < wire.MaxFPDU {
		t.Errorf("frames have up to %d bytes, MaxFPDU is %d", longest, wire.MaxFPDU)
	}
}

// TestFaultNumbers verifies the codes against RFC 5040 (figure 10), RFC 5041 (7.2), RFC 5044 (8) and RFC 6581 (8), and
// the text for codes that none of them defines.
func TestFaultNumbers(t *testing.T) {
	for _, x := range []struct {
		fault wire.Fault
		want  [3]uint8
		text  string
	}{
		{wire.FaultLost, [3]uint8{2, 0, 1}, "connection lost"}, {wire.FaultCRC, [3]uint8{2, 0, 2}, "CRC"},
		{wire.FaultMarker, [3]uint8{2, 0, 3}, "marker"},
		{wire.FaultStartup, [3]uint8{2, 0, 4}, "invalid MPA"}, {wire.FaultSetup, [3]uint8{2, 0, 5}, "setup"},
		{wire.FaultIRD, [3]uint8{2, 0, 6}, "IRD"}, {wire.FaultRTR, [3]uint8{2, 0, 7}, "RTR"},
		{wire.FaultTaggedSTag, [3]uint8{1, 1, 0}, "invalid STag"},
		{wire.FaultTaggedBounds, [3]uint8{1, 1, 1}, "bounds"},
		{wire.FaultTaggedDomain, [3]uint8{1, 1, 2}, "not associated"},
		{wire.FaultTaggedWrap, [3]uint8{1, 1, 3}, "wraps"}, {wire.FaultTaggedVersion, [3]uint8{1, 1, 4}, "version"},
		{wire.FaultQueue, [3]uint8{1, 2, 1}, "queue"}, {wire.FaultNoBuffer, [3]uint8{1, 2, 2}, "no buffer"},
		{wire.FaultSequence, [3]uint8{1, 2, 3}, "sequence"},
		{wire.FaultOffset, [3]uint8{1, 2, 4}, "offset"}, {wire.FaultTooLong, [3]uint8{1, 2, 5}, "too long"},
		{wire.FaultVersion, [3]uint8{1, 2, 6}, "version"},
		{wire.FaultReadSTag, [3]uint8{0, 1, 0}, "invalid STag"}, {wire.FaultReadBounds, [3]uint8{0, 1, 1}, "bounds"},
		{wire.FaultReadRights, [3]uint8{0, 1, 2}, "rights"},
		{wire.FaultReadDomain, [3]uint8{0, 1, 3}, "not associated"}, {wire.FaultReadWrap, [3]uint8{0, 1, 4}, "wraps"},
		{wire.FaultInvalidate, [3]uint8{0, 1, 9}, "invalidated"},
		{wire.FaultRDMAPVersion, [3]uint8{0, 2, 5}, "version"}, {wire.FaultOpcode, [3]uint8{0, 2, 6}, "opcode"},
		{wire.FaultStream, [3]uint8{0, 2, 7}, "localized"},
		{wire.FaultGlobal, [3]uint8{0, 2, 8}, "global"}, {wire.FaultUnspecified, [3]uint8{0, 2, 0xff}, "unspecified"},
		{wire.Fault{Layer: 1, Type: 2, Code: 0x77}, [3]uint8{1, 2, 0x77}, "DDP: unknown error (1/2/0x77)"},
		{wire.Fault{Layer: 2, Type: 0, Code: 0x77}, [3]uint8{2, 0, 0x77}, "MPA: unknown error"},
		{wire.Fault{Layer: 0, Type: 0, Code: 0x77}, [3]uint8{0, 0, 0x77}, "RDMAP: local catastrophic error"},
		{wire.Fault{Layer: 5, Type: 1}, [3]uint8{5, 1, 0}, "layer 5: unknown error"},
	} {
		if got := [3]uint8{uint8(x.fault.Layer), x.fault.Type, x.fault.Code}; got != x.want ||
			!strings.Contains(x.fault.Error(), x.text) {
			t.Errorf("%v is %v, want %v and %q", x.fault, got, x.want, x.text)
		}
	}
}

// TestAtomicOps verifies that only the two operations of RFC 7306 are valid.
func TestAtomicOps(t *testing.T) {
	for op := range wire.AtomicOp(16) {
		if want := op == 0 || op == 2; op.Valid() != want {
			t.Errorf("operation %d is valid: %v", op, !want)
		}
	}
}

// TestReadyToReceive writes and reads back each set of ready-to-receive messages that RFC 6581 (9.1) has a bit for,
// together with the IRD and ORD that share the bytes.
func TestReadyToReceive(t *testing.T) {
	for rtr := range wire.RTRSend | wire.RTRWrite | wire.RTRRead + 1 {
		for _, peer := range []bool{false, true} {
			f := wire.StartupFields{Revision: 2, Enhanced: true, PeerToPeer: peer, RTR: rtr, IRD: 0x1234, ORD: 0x2345,
				Private: []byte("x")}
			b := make([]byte, f.Length())
			if n := f.Put(b); n != len(b) {
				t.Fatalf("%d bytes of %d", n, len(b))
			}
			bits := [4]bool{b[20]&0x80 != 0, b[20]&0x40 != 0, b[22]&0x80 != 0, b[22]&0x40 != 0} // A, B, C and D
			want := [4]bool{peer, peer && rtr&wire.RTRSend != 0, peer && rtr&wire.RTRWrite != 0,
				peer && rtr&wire.RTRRead != 0}
			if bits != want || b[20]&0x3f != 0x12 || b[21] != 0x34 || b[22]&0x3f != 0x23 || b[23] != 0x45 {
				t.Errorf("%d, %v: %x has %v, want %v", rtr, peer, b[20:24], bits, want)
			}
		}
	}
}
