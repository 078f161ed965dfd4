package wire_test

import (
	"fmt"
	"testing"

	"farflash/flash/wire"
)

// frame writes one Read Response with payload p to the front of b.
func frame(f *wire.Framer, b, p []byte) []byte {
	n := wire.TaggedLength + len(p)
	b = f.Begin(b[:0], n)
	s := b[len(b)-n:]
	wire.TaggedFields{Op: wire.ReadResp, Last: true, STag: 7, Offset: 4096}.Put(s)
	copy(s[wire.TaggedLength:], p)
	return f.End(b)
}

// TestNoAllocations verifies that neither framing nor deframing allocates.
func TestNoAllocations(t *testing.T) {
	for _, markers := range []bool{false, true} {
		f, d := wire.Framer{CRC: true, Markers: markers}, wire.Deframer{CRC: true, Markers: markers}
		p := make([]byte, 4096)
		b := make([]byte, 0, 8192)
		if n := testing.AllocsPerRun(100, func() {
			out := frame(&f, b, p)
			s, _, err := d.Next(out)
			if err != nil || len(s.Payload()) != len(p) || wire.Tagged(s).STag() != 7 {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("markers %v: %v allocations a frame", markers, n)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, n := range []int{64, 4096, 61440} {
		for _, markers := range []bool{false, true} {
			b.Run(fmt.Sprintf("%dB/markers=%v", n, markers), func(b *testing.B) {
				f := wire.Framer{CRC: true, Markers: markers}
				p, out := make([]byte, n), make([]byte, 0, wire.MaxFPDU)
				b.ReportAllocs()
				b.SetBytes(int64(n))
				for b.Loop() {
					frame(&f, out, p)
				}
			})
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, n := range []int{64, 4096, 61440} {
		b.Run(fmt.Sprintf("%dB", n), func(b *testing.B) {
			f, d := wire.Framer{CRC: true}, wire.Deframer{CRC: true}
			in := frame(&f, make([]byte, 0, wire.MaxFPDU), make([]byte, n))
			b.ReportAllocs()
			b.SetBytes(int64(n))
			for b.Loop() {
				if s, _, err := d.Next(in); err != nil || len(s.Payload()) != n {
					b.Fatal(err)
				}
			}
		})
	}
}
