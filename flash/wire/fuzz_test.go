package wire_test

import (
	"bytes"
	"slices"
	"testing"

	"farflash/flash/wire"
	"farflash/internal/patience"
)

// FuzzStream feeds arbitrary bytes to the deframer. It must return no errors except its two, never read past the input,
// and each extracted segment must re-encode to the same bytes unless reserved bits were set.
func FuzzStream(f *testing.F) {
	for _, markers := range []bool{false, true} {
		fr := wire.Framer{CRC: true, Markers: markers}
		b := encode(&fr, []byte("\x41\x43------------------"))
		b = append(b, encode(&fr, make([]byte, 700))...)
		f.Add(b, true, markers)
	}
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0}, false, false)
	f.Fuzz(func(t *testing.T, b []byte, crc, markers bool) {
		defer patience.Limit()()
		d, fr := wire.Deframer{CRC: crc, Markers: markers}, wire.Framer{CRC: crc, Markers: markers}
		for len(b) > 0 {
			raw := slices.Clone(b)
			s, n, err := d.Next(b)
			if err != nil {
				if err != error(wire.FaultCRC) && err != error(wire.FaultMarker) {
					t.Fatal(err)
				}
				return
			}
			if s == nil {
				if n <= len(b) || n > wire.MaxFPDU {
					t.Fatalf("%d bytes needed where there are %d", n, len(b))
				}
				return
			}
			if got := encode(&fr, s); crc && !bytes.Equal(got, raw[:n]) && clean(raw[:n], len(s)) {
				t.Fatalf("%x comes back as %x", raw[:n], got)
			}
			if s.Whole() {
				_, _ = s.Header(), s.Payload()
			}
			b = b[n:]
		}
	})
}

// clean reports whether an FPDU is padded with zeros. Markers may have reserved bits set, so frames with markers do not
// qualify.
func clean(b []byte, n int) bool {
	if len(b) != wire.Size(n) {
		return false
	}
	for _, p := range b[2+n : len(b)-4] {
		if p != 0 {
			return false
		}
	}
	return true
}

// FuzzStartup verifies that CheckStartup accepts only frames of a valid length and that an accepted frame round-trips.
func FuzzStartup(f *testing.F) {
	b := make([]byte, 64)
	n := wire.StartupFields{CRC: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTR: 7, IRD: 3, ORD: 4,
		Private: []byte("hello")}.Put(b)
	f.Add(b[:n], false)
	n = wire.StartupFields{Reply: true, Revision: 1}.Put(b)
	f.Add(b[:n], true)
	f.Fuzz(func(t *testing.T, b []byte, reply bool) {
		defer patience.Limit()()
		n, err := wire.CheckStartup(b, reply)
		if err != nil {
			return
		}
		if n < wire.StartupLength || n > wire.StartupLength+wire.MaxPrivate {
			t.Fatalf("%d bytes", n)
		}
		if len(b) < wire.StartupLength || len(b) < n {
			return
		}
		fields := wire.Startup(b[:n]).Fields()
		again := make([]byte, fields.Length())
		fields.Put(again)
		other := wire.Startup(again).Fields()
		if fields.Length() != n || !bytes.Equal(fields.Private, other.Private) || fields.RTR != other.RTR ||
			fields.IRD != other.IRD || fields.ORD != other.ORD {
			t.Fatalf("%+v comes back as %+v", fields, other)
		}
	})
}

// FuzzTerminate verifies that a Terminate of arbitrary bytes can be read, and that one we write round-trips.
func FuzzTerminate(f *testing.F) {
	f.Add([]byte{0x10, 0, 7, 0, 0, 0, 0x81, 0x40})
	f.Add([]byte{0x01, 0, 0xE0, 0, 0, 0, 0x41, 0x41})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer patience.Limit()()
		if len(b) < wire.TerminateControl {
			return
		}
		h, r, n := wire.Terminate(b).Segment()
		_ = wire.Terminate(b).Fault().Error()
		if len(h) != 0 && !h.Whole() || len(r) != 0 && len(r) != wire.ReadRequestLength || n < 0 {
			t.Fatalf("%x: %d %d %d", b, len(h), len(r), n)
		}
		out := make([]byte, wire.MaxTerminate)
		fields := wire.TerminateFields{Fault: wire.Terminate(b).Fault(), Header: h, Length: uint16(n), Request: r}
		out = out[:fields.Put(out)]
		h2, r2, _ := wire.Terminate(out).Segment()
		if !bytes.Equal(h, h2) || len(h) > 0 && !bytes.Equal(r, r2) || wire.Terminate(out).Fault() != fields.Fault {
			t.Fatalf("%x comes back as %x", b, out)
		}
	})
}
